//! What the command line asks of `cluster deploy`.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::cluster::given::Given;
use crate::cluster::ssh::Ssh;
use crate::cluster::subcommand::SubcommandFlag;
use crate::failure::{Failure, Result};

pub(super) const FLAGS: &[SubcommandFlag] = &[
    SubcommandFlag {
        long: "port",
        value: "PORT",
        summary: "The port of nodes whose line has none (6380).",
    },
    SubcommandFlag {
        long: "threads",
        value: "N",
        summary: "The worker threads of a node (4); 0 is one for each processor.",
    },
    SubcommandFlag {
        long: "memory",
        value: "SIZE",
        summary: "The memory that a node may take, such as 2gb or 80% (512mb).",
    },
    SubcommandFlag {
        long: "build",
        value: "",
        summary: "Copies the sources and builds them on each host; hosts of another architecture are sent \
                  the sources anyway.",
    },
    SubcommandFlag {
        long: "source",
        value: "DIR",
        summary: "The sources; else those that this program was built from, or the current directory.",
    },
    SubcommandFlag {
        long: "server",
        value: "FILE",
        summary: "The program to copy; else the ferrite-server beside this program.",
    },
    SubcommandFlag {
        long: "dir",
        value: "DIR",
        summary: "Where a node has its directory PORT on its host, from the home directory on \
                  (ferrite-cluster).",
    },
    SubcommandFlag {
        long: "name",
        value: "NAME",
        summary: "What the cluster is called (ferrite). Its nodes take no map of another one.",
    },
    SubcommandFlag {
        long: "deal",
        value: "",
        summary: "Deals all slots anew, evenly, where nodes came or went. Keys do not move with their slots.",
    },
    SubcommandFlag {
        long: "detached",
        value: "",
        summary: "Starts the nodes without systemd.",
    },
    SubcommandFlag {
        long: "ssh-config",
        value: "FILE",
        summary: "A configuration of ssh in place of the user's.",
    },
];

/// See the module.
#[derive(Debug)]
pub(super) struct Wanted {
    /// The file of nodes.
    pub(super) nodes: PathBuf,
    pub(super) port: u16,
    pub(super) threads: u16,
    pub(super) memory: String,
    pub(super) builds: bool,
    pub(super) source: Option<PathBuf>,
    pub(super) server: Option<PathBuf>,
    pub(super) dir: Option<String>,
    pub(super) name: Option<String>,
    pub(super) deals: bool,
    pub(super) is_detached: bool,
    pub(super) ssh: Ssh,
    /// Further lines of the configuration.
    pub(super) settings: String,
}

impl Wanted {
    /// What was given.
    ///
    /// # Errors
    /// A value is not what it should be.
    pub(super) fn read(given: &Given) -> Result<Wanted> {
        let text = |flag: &str| -> Result<Option<String>> {
            let Some(value) = given.value(flag) else {
                return Ok(None);
            };
            let is_plain = |text: &&str| !text.is_empty() && !text.contains(char::is_control);
            match value.to_str().filter(is_plain) {
                Some(text) => Ok(Some(text.to_owned())),
                None => {
                    Err(given.wrong(&format!("--{flag} takes a text without control characters")))
                }
            }
        };
        let number = |flag: &str, default: u16, least: u16, most: u16| -> Result<u16> {
            let Some(word) = text(flag)? else {
                return Ok(default);
            };
            match word.parse() {
                Ok(number) if (least..=most).contains(&number) => Ok(number),
                _ => Err(given.wrong(&format!("--{flag} takes a number from {least} to {most}"))),
            }
        };
        let path = |flag: &str| given.value(flag).map(PathBuf::from);
        let memory = text("memory")?.unwrap_or_else(|| "512mb".to_owned());
        if !memory
            .chars()
            .all(|sign| sign.is_ascii_alphanumeric() || sign == '%')
        {
            return Err(given.wrong("--memory takes a size such as 512mb or a share such as 80%"));
        }
        let dir = text("dir")?.map(|dir| {
            dir.strip_prefix("~/")
                .unwrap_or(&dir)
                .trim_end_matches('/')
                .to_owned()
        });
        if dir
            .as_ref()
            .is_some_and(|dir| dir.is_empty() || dir.starts_with('~'))
        {
            return Err(given.wrong("--dir takes a directory of its own"));
        }
        Ok(Wanted {
            nodes: given.path(0).to_owned(),
            port: number("port", 6380, 1, u16::MAX)?,
            threads: number("threads", 4, 0, 1024)?,
            memory,
            builds: given.has("build"),
            source: path("source"),
            server: path("server"),
            dir,
            name: text("name")?,
            deals: given.has("deal"),
            is_detached: given.has("detached"),
            ssh: Ssh {
                config: path("ssh-config"),
            },
            settings: settings(&given.rest).map_err(|text| given.wrong(&text))?,
        })
    }

    /// The directory of a node, absolute or from the home directory on.
    pub(super) fn place(&self, port: u16) -> String {
        let dir = self.dir.as_deref().unwrap_or("ferrite-cluster");
        format!("{dir}/{port}")
    }

    /// The program that is copied.
    ///
    /// # Errors
    /// It is not there.
    pub(super) fn server(&self) -> Result<PathBuf> {
        let server = match &self.server {
            Some(server) => server.clone(),
            None => std::env::current_exe()
                .map(|own| own.with_file_name("ferrite-server"))
                .map_err(|error| Failure::Other(format!("where is this program? {error}")))?,
        };
        if server.is_file() {
            return Ok(server);
        }
        Err(Failure::Other(format!(
            "there is no {}: `cargo build --release` makes it, --server FILE says where it is",
            server.display()
        )))
    }
}

/// Options of the server as lines of its configuration: `--name value...` and `--name=value`.
fn settings(words: &[OsString]) -> std::result::Result<String, String> {
    let mut lines = String::new();
    for word in words {
        let text = word
            .to_str()
            .filter(|text| !text.contains(char::is_control));
        let text = text.ok_or("a server option is a text without control characters")?;
        match text.strip_prefix("--") {
            Some("") => return Err("a name follows the -- of a server option".to_owned()),
            Some(option) => {
                if !lines.is_empty() {
                    lines.push('\n');
                }
                let (name, value) = option.split_once('=').unwrap_or((option, ""));
                let is_name = |sign: char| sign.is_ascii_alphanumeric() || "-_".contains(sign);
                if !name.chars().all(is_name) {
                    return Err(format!("'{name}' is no name of a server option"));
                }
                lines.push_str(name);
                if option.contains('=') {
                    lines.push_str(&format!(" {}", quoted(value)));
                }
            }
            None if lines.is_empty() => {
                return Err(format!("server options begin with --, not with '{text}'"));
            }
            None => lines.push_str(&format!(" {}", quoted(text))),
        }
    }
    if !lines.is_empty() {
        lines.push('\n');
    }
    Ok(lines)
}

/// A value of the configuration in quotes.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_server_are_lines_of_its_configuration() {
        let lines =
            |words: &[&str]| settings(&words.iter().map(OsString::from).collect::<Vec<_>>());
        let words = [
            "--requirepass",
            "a \"b",
            "--save",
            "60",
            "1",
            "--bind=::1",
            "--save=",
        ];
        let expected = "requirepass \"a \\\"b\"\nsave \"60\" \"1\"\nbind \"::1\"\nsave \"\"\n";
        assert_eq!(lines(&words).as_deref(), Ok(expected));
        assert_eq!(lines(&[]).as_deref(), Ok(""));
        for wrong in [&["x"][..], &["--"], &["--a b"], &["--save", "a\nport 1"]] {
            assert!(lines(wrong).is_err(), "{wrong:?}");
        }
    }
}
