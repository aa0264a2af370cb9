//! From words to options.
//!
//! What counts more comes later: environment, `--config` file, command line. Flags end where the command
//! begins, so that a command's own arguments may begin with dashes; but a verb is this program's, and so are
//! the flags behind it.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use lexopt::{Arg, Parser};

use super::options::{Mode, Options};
use super::table::{Flag, Wrong, flags, set_mode};
use super::verb::{self, Verb};
use crate::access::Protocol;
use crate::cluster::{self, Given};
use crate::failure::reason;
use crate::format::Format;
use crate::words;

/// What the command line asks for.
pub(crate) enum Request {
    Help,
    /// The help of `cluster`, or of one of its subcommands.
    ClusterHelp(String),
    Version,
    /// To do what the options say, with the command behind them, which may be none.
    Run {
        options: Box<Options>,
        command: Vec<Vec<u8>>,
        /// A password can be seen by others, and nobody said that this is fine.
        warns_of_password: bool,
    },
}

/// A flag that was typed.
struct Typed {
    flag: &'static Flag,
    word: Vec<u8>,
    /// How it was typed, for messages.
    name: String,
}

/// A command of this program.
enum Own {
    None,
    Verb(&'static Verb),
    Cluster(Given),
}

/// Takes the arguments behind the program's name apart. `environment` is asked for variables.
///
/// # Errors
/// In words for the person who typed them.
pub(crate) fn read(
    args: impl Iterator<Item = OsString>,
    environment: impl Fn(&str) -> Option<OsString>,
) -> Result<Request, String> {
    let mut parser = Parser::from_args(args);
    let mut typed = Vec::new();
    let mut command: Vec<Vec<u8>> = Vec::new();
    let mut verb = None;
    let mut given = None;
    while let Some(arg) = parser.next().map_err(|error| error.to_string())? {
        let (flag, name) = match arg {
            Arg::Short(letter) => (
                flags().find(|flag| flag.short == Some(letter)),
                format!("-{letter}"),
            ),
            Arg::Long(name) => (find(name), format!("--{name}")),
            Arg::Value(word) if verb.is_some() => {
                command.push(word.into_vec());
                continue;
            }
            Arg::Value(word) => {
                verb = verb::find(word.as_bytes());
                if verb.is_some() {
                    continue;
                }
                let rest = parser.raw_args().map_err(|error| error.to_string())?;
                let rest: Vec<OsString> = rest.collect();
                let rest = if word == "cluster" {
                    match cluster::read(rest)? {
                        cluster::Words::Command(rest) => rest,
                        cluster::Words::Help(text) => return Ok(Request::ClusterHelp(text)),
                        cluster::Words::Subcommand(its) => {
                            given = Some(its);
                            break;
                        }
                    }
                } else {
                    rest
                };
                command.push(word.into_vec());
                command.extend(rest.into_iter().map(OsString::into_vec));
                break;
            }
        };
        let flag = flag.ok_or_else(|| unknown(&name))?;
        let word = match flag.value {
            "" => Ok(OsString::new()),
            _ => parser.value(),
        };
        let word = match word {
            Ok(word) => word.into_vec(),
            // Without a host it is what it is for most programs.
            Err(_) if name == "-h" => return Ok(Request::Help),
            Err(_) => return Err(unknown(&name)),
        };
        typed.push(Typed { flag, word, name });
    }
    let own = match given {
        Some(given) => Own::Cluster(given),
        None => verb.map_or(Own::None, Own::Verb),
    };
    run(&typed, own, command, environment)
}

fn run(
    typed: &[Typed],
    own: Own,
    command: Vec<Vec<u8>>,
    environment: impl Fn(&str) -> Option<OsString>,
) -> Result<Request, String> {
    let asks_for = |name| typed.iter().any(|typed| typed.flag.long == name);
    if asks_for("help") {
        return Ok(Request::Help);
    }
    if asks_for("version") {
        return Ok(Request::Version);
    }
    let mut options = Options::new();
    let variables = ["FERRITECLI_AUTH", "REDISCLI_AUTH"];
    let password = variables.iter().find_map(|name| environment(name));
    options.access.password = password.map(OsString::into_vec);
    options.has_colors = environment("NO_COLOR").is_none_or(|value| value.is_empty());
    for file in typed.iter().filter(|typed| typed.flag.long == "config") {
        read_file(&file.word, &mut options)?;
    }
    let hidden = options.access.password.clone();
    for Typed { flag, word, name } in typed {
        apply(flag, word, name, &mut options)?;
    }
    let mode = match own {
        Own::None => None,
        Own::Verb(verb) => Some(verb.mode(&command)?),
        Own::Cluster(given) => Some(Mode::Cluster(given)),
    };
    if let Some(mode) = mode {
        set_mode(&mut options, mode).map_err(Wrong::into_text)?;
    }
    let warns_of_password = options.access.password != hidden && !options.allows_typed_password;
    finish(&mut options)?;
    Ok(Request::Run {
        options: Box::new(options),
        command,
        warns_of_password,
    })
}

/// Settles what depends on several flags.
fn finish(options: &mut Options) -> Result<(), String> {
    let access = &mut options.access;
    if access.follows_redirections && matches!(access.place, crate::connection::Place::Socket(_)) {
        return Err("Options -c and -s are mutually exclusive.".to_owned());
    }
    let is_json = matches!(options.format, Some(Format::Json | Format::QuotedJson));
    if is_json && access.protocol.is_none() {
        access.protocol = Some(Protocol::Resp3IfPossible);
    }
    Ok(())
}

fn apply(flag: &Flag, word: &[u8], name: &str, options: &mut Options) -> Result<(), String> {
    (flag.set)(options, word).map_err(|wrong| match wrong {
        Wrong::Word(wrong) => format!("{name}: {wrong}"),
        wrong @ Wrong::All(_) => wrong.into_text(),
    })
}

fn find(name: &str) -> Option<&'static Flag> {
    flags().find(|flag| flag.long == name)
}

/// What to say about a flag that is none, or that lacks its word.
fn unknown(name: &str) -> String {
    let mut text = format!("Unrecognized option or bad number of args for: '{name}'");
    let bare = name.trim_start_matches('-');
    if find(bare).is_none() && name.starts_with("--") {
        let near = flags()
            .map(|flag| (strsim::damerau_levenshtein(bare, flag.long), flag.long))
            .min();
        if let Some((_, near)) = near.filter(|&(distance, _)| distance <= 2) {
            text.push_str(&format!(" (did you mean --{near}?)"));
        }
    }
    text
}

/// Sets what a file says: one flag a line, without dashes, and its word, which may be quoted. Lines that
/// begin with `#` and empty ones say nothing.
fn read_file(path: &[u8], options: &mut Options) -> Result<(), String> {
    let path = std::path::Path::new(std::ffi::OsStr::from_bytes(path));
    let content =
        fs::read(path).map_err(|error| format!("{}: {}", path.display(), reason(&error)))?;
    for (at, line) in content.split(|&byte| byte == b'\n').enumerate() {
        let place = format!("{}:{}", path.display(), at + 1);
        if line.trim_ascii_start().starts_with(b"#") {
            continue;
        }
        let words =
            words::split(line).ok_or_else(|| format!("{place}: a quote is not closed properly"))?;
        let Some((name, values)) = words.split_first() else {
            continue;
        };
        let name = String::from_utf8_lossy(name).into_owned();
        let flag = find(&name)
            .filter(|flag| !["config", "help", "version"].contains(&flag.long))
            .ok_or_else(|| format!("{place}: there is no flag '{name}'"))?;
        let word = match (flag.value, values) {
            ("", []) => &[][..],
            ("", _) => return Err(format!("{place}: '{name}' takes no value")),
            (_, [word]) => word,
            (_, _) => return Err(format!("{place}: '{name}' takes one value")),
        };
        apply(flag, word, &format!("{place}: {name}"), options)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
