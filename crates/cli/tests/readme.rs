//! README.md, followed word by word: the commands of its `console` blocks run in their order against the
//! programs as they are built, and print what stands below them.
//!
//! The ports of the README become free ones, and the programs stand in a directory of their own at the head
//! of PATH. What differs from run to run (numbers of processes, times, sizes, the path of the directory) is
//! compared as one placeholder.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use regex_lite::Regex;

use crate::support::{PATIENCE, ferrite_server, free_port, fresh_directory};

/// The server's last message of a start.
const READY: &str = "Ready to accept connections\n";
/// The command that starts the server, in a terminal of its own.
const START: &str = "cargo run --release";

/// Lines that are not run: they build what cargo has built for the tests, or only open the prompt of the
/// client.
const NOT_RUN: &[&str] = &[
    r#"cargo build --release -p ferrite-cli && export PATH="$PWD/target/release:$PATH""#,
    "ferrite-cli",
];

/// The prompt of the client, before a command that is sent.
const PROMPT: &str = "127.0.0.1:6379> ";

/// The README's ports: of Ferrite, and of a redis-server beside it.
const PORTS: [&str; 2] = ["6379", "6380"];

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the repository is there")
}

fn readme() -> String {
    fs::read_to_string(root().join("README.md")).expect("it is there")
}

/// A command of a block, and what it prints.
struct Step {
    command: String,
    output: String,
}

/// The steps of all `console` blocks.
fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut is_inside = false;
    for line in text.lines() {
        match line {
            "```console" => is_inside = true,
            "```" => is_inside = false,
            _ if !is_inside => {}
            _ => {
                let sent = line
                    .strip_prefix(PROMPT)
                    .map(|sent| format!("ferrite-cli {sent}"));
                match line.strip_prefix("$ ").map(str::to_owned).or(sent) {
                    Some(command) => steps.push(Step {
                        command,
                        output: String::new(),
                    }),
                    None => {
                        let step = steps.last_mut().expect("a block begins with a command");
                        step.output += line;
                        step.output.push('\n');
                    }
                }
            }
        }
    }
    steps
}

/// Where the README is followed: a directory to work in, and the programs.
struct Place {
    directory: PathBuf,
    programs: PathBuf,
    /// Free ports in the place of [`PORTS`].
    ports: [u16; 2],
    server: Option<Child>,
}

impl Place {
    fn new() -> Place {
        let directory = fresh_directory("readme")
            .canonicalize()
            .expect("it is there");
        let programs = fresh_directory("readme-programs");
        let place = Place {
            ports: [free_port(), free_port()],
            directory,
            programs,
            server: None,
        };
        let client = env!("CARGO_BIN_EXE_ferrite-cli");
        // As on a terminal: replies with quotes and numbers.
        let port = place.ports[0];
        place.program(
            "ferrite-cli",
            &format!("exec {client} --no-raw -p {port} \"$@\""),
        );
        place.program(
            "redis-cli",
            "exec \"$(PATH=${PATH#*:} command -v redis-cli)\" --no-raw \"$@\"",
        );
        // Not every machine has it.
        place.program("nc", "exec 3<>\"/dev/tcp/$1/$2\"; cat >&3; exec cat <&3");
        place
    }

    fn program(&self, name: &str, text: &str) {
        let path = self.programs.join(name);
        fs::write(&path, format!("#!/bin/bash\n{text}\n")).expect("the directory is ours");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("the file is ours");
    }

    /// A text with the ports that are used in this run.
    fn with_ports(&self, text: &str) -> String {
        let pairs = PORTS.iter().zip(self.ports);
        pairs.fold(text.to_owned(), |text, (port, own)| {
            text.replace(port, &own.to_string())
        })
    }

    /// Runs a command, and returns what a terminal would show.
    fn run(&mut self, command: &str) -> String {
        if command == START {
            return self.start();
        }
        let path = std::env::var("PATH").unwrap_or_default();
        let output = Command::new("bash")
            .arg("-c")
            .arg(format!("exec 2>&1; {}", self.with_ports(command)))
            .env("PATH", format!("{}:{path}", self.programs.display()))
            .current_dir(&self.directory)
            .stdin(Stdio::null())
            .output()
            .expect("bash can be started");
        if command.starts_with("kill ") {
            let mut server = self.server.take().expect("one runs");
            server.wait().expect("it is ours");
        }
        if command.contains("--daemonize yes") {
            wait_for(self.ports[1]);
        }
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Starts the server and returns what it says until it is ready.
    fn start(&mut self) -> String {
        let log = self.directory.with_extension("log");
        let file = fs::File::create(&log).expect("the directory for temporary files is writable");
        let server = Command::new(ferrite_server())
            .args(["--port", &self.ports[0].to_string()])
            .current_dir(&self.directory)
            .stdin(Stdio::null())
            .stdout(file.try_clone().expect("a descriptor"))
            .stderr(file)
            .spawn();
        let server = self.server.insert(server.expect("the server was built"));
        // A reply may come before the message, and from another process that has taken the port.
        let end = Instant::now() + PATIENCE;
        let said = loop {
            let ended = server.try_wait().expect("it is ours");
            let said = fs::read_to_string(&log).expect("it was made");
            assert!(ended.is_none() && Instant::now() < end, "{said}");
            if said.contains(READY) {
                break said;
            }
            sleep(Duration::from_millis(20));
        };
        fs::remove_file(&log).expect("it is ours");
        said
    }

    /// A text without what differs from run to run.
    fn settled(&self, text: &str) -> String {
        let directory = self.directory.display().to_string();
        let mut text = text.replace(&directory, "DIR").replace('\r', "");
        for (pattern, placeholder) in [
            (r"(?m)^\d+:M \d+ \w+ \d+ [\d:.]+ ", "TIME "),
            (r"/home/me/ferrite", "DIR"),
            (r"pid \d+", "pid N"),
            (r"\d+ workers, \d+ shards, \w+", "N workers, N shards, IO"),
            // A machine may have no IPv6.
            (r" \[::1\]:\d+", ""),
            (r"\d+ segments, \d+ bytes", "N segments, N bytes"),
            (r"\d+ records in [\d.]+ seconds", "N records in N seconds"),
            (r"avg_ttl=\d+", "avg_ttl=N"),
            (r"\([\d.]+K\)", "(SIZE)"),
            // A busy machine takes seconds.
            (r"(?m)^(\(integer\) |:)(5\d|60)$", "${1}60"),
            (r"(?m)^\(integer\) (35\d\d|3600)$", "(integer) 3600"),
        ] {
            let pattern = Regex::new(pattern).expect("the expressions are right");
            text = pattern.replace_all(&text, placeholder).into_owned();
        }
        text
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            // A killed one leaves memory behind for its next start.
            let _ = Command::new("kill").arg(server.id().to_string()).status();
            let _ = server.wait();
        }
        // A redis-server that a failed run has left.
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.ports[1])) {
            let _ = stream.write_all(b"SHUTDOWN NOSAVE\r\n");
        }
        let _ = fs::remove_dir_all(&self.directory);
        let _ = fs::remove_dir_all(&self.programs);
    }
}

/// Waits until a server answers.
fn wait_for(port: u16) {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if let Ok(mut stream) = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], port))) {
            let mut reply = [0; 5];
            if stream.write_all(b"PING\r\n").is_ok()
                && stream.read_exact(&mut reply).is_ok()
                && &reply == b"+PONG"
            {
                return;
            }
        }
        sleep(Duration::from_millis(20));
    }
    panic!("nobody answers at port {port}");
}

#[test]
fn the_commands_print_what_the_readme_says() {
    let mut place = Place::new();
    let (mut ran, mut wrong) = (0, String::new());
    for Step { command, output } in steps(&readme()) {
        if NOT_RUN.contains(&command.as_str()) {
            continue;
        }
        let found = place.run(&command);
        let (found, expected) = (
            place.settled(&found),
            place.settled(&place.with_ports(&output)),
        );
        if found != expected {
            wrong += &format!("$ {command}\n--- the README\n{expected}--- printed\n{found}");
        }
        ran += 1;
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(ran > 15, "only {ran} commands");
}

/// `cargo run --release` is the server only as long as the workspace says so.
#[test]
fn the_first_two_commands_are_what_they_are_said_to_be() {
    let text = readme();
    let (_, block) = text.split_once("```\n").expect("a block comes first");
    let (block, _) = block.split_once("```").expect("it has an end");
    let commands: Vec<&str> = block
        .lines()
        .filter_map(|line| line.split(" #").next())
        .map(str::trim)
        .collect();
    assert_eq!(commands, [START, "make test"]);
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("it is there");
    assert!(manifest.contains("\ndefault-members = [\"crates/server\"]\n"));
    let makefile = fs::read_to_string(root().join("Makefile")).expect("it is there");
    assert!(makefile.contains("\ntest: setup "));
}

/// Every place that the README names is there.
#[test]
fn each_link_leads_somewhere() {
    let text = readme();
    let links = Regex::new(r"\]\(([^)#]+)(#[^)]*)?\)").expect("the expression is right");
    let mut count = 0;
    for link in links.captures_iter(&text) {
        let path = &link[1];
        assert!(
            !path.contains("://"),
            "{path} is no file of this repository"
        );
        assert!(root().join(path).exists(), "{path} is not there");
        count += 1;
    }
    assert!(count > 20, "{count} links");
    assert!(!text.contains("://github.com"), "an address of nobody");
}

/// A library that is said not to work lacks a command that is still not there.
#[test]
fn what_libraries_lack_is_not_there() {
    let mut place = Place::new();
    place.start();
    let page = fs::read_to_string(root().join("docs/libraries.md")).expect("it is there");
    let works = page.lines().filter(|line| line.contains("| yes |")).count();
    let rows = page.lines().filter(|line| line.contains("| no |"));
    let mut count = works;
    for row in rows {
        let (library, lacks) = row.split_once("| no |").expect("it has the column");
        let names: Vec<&str> = lacks.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "{library} lacks nothing");
        let found = place.run(&format!("ferrite-cli COMMAND INFO {}", names.join(" ")));
        assert!(
            found.contains("(nil)"),
            "{library} has all that it lacked: `make libraries` brings the pages up to date"
        );
        count += 1;
    }
    assert!(count > 30, "{count} rows");
}
