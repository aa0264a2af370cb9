//! Runs a step: the program, its standard input, and what it prints as lines of a script.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Output, Stdio};
use std::thread;

use crate::golden::script::{Outcome, Step};
use crate::support::{Server, fresh_directory};

/// What is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Ferrite,
    Redis,
}

/// A program, a server without data, and an empty directory.
pub(crate) struct Setting<'a> {
    program: Program,
    server: &'a Server,
    directory: PathBuf,
}

impl Setting<'_> {
    pub(crate) fn new(program: Program, server: &Server) -> Setting<'_> {
        assert_eq!(server.tell("FLUSHALL"), "+OK\r\n");
        Setting {
            program,
            server,
            directory: fresh_directory("home"),
        }
    }

    pub(crate) fn run(&mut self, step: &Step) -> Outcome {
        let mut command = match (self.program, step.lines) {
            (Program::Ferrite, _) => Command::new(env!("CARGO_BIN_EXE_ferrite-cli")),
            (Program::Redis, None) => Command::new("redis-cli"),
            // It keeps lines for itself until they are many, where nobody asks for them one by one.
            (Program::Redis, Some(_)) => {
                let mut command = Command::new("stdbuf");
                command.args(["-oL", "redis-cli"]);
                command
            }
        };
        for name in [
            "REDISCLI_AUTH",
            "FERRITECLI_AUTH",
            "REDISCLI_HISTFILE",
            "REDISCLI_RCFILE",
            "FAKETTY",
            "NO_COLOR",
        ] {
            command.env_remove(name);
        }
        command.env("HOME", &self.directory);
        command.envs(step.environment.iter().map(|(name, value)| (name, value)));
        if step.connects {
            command.arg("-p").arg(self.server.port.to_string());
        }
        command.args(split(&self.fill_in(&step.command)));
        command.current_dir(&self.directory);
        let output = match step.lines {
            None => self.output(&mut command, step.input.clone()),
            Some(lines) => first_lines(&mut command, lines),
        };
        self.outcome(&output)
    }

    fn output(&self, command: &mut Command, input: Option<Vec<u8>>) -> Output {
        let stdin = match input {
            Some(_) => Stdio::piped(),
            None => Stdio::null(),
        };
        let spawned = command
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = spawned.unwrap_or_else(|error| {
            panic!("{command:?} cannot be started ({error}); `make setup` installs redis-tools")
        });
        let pipe = child.stdin.take();
        thread::scope(|scope| {
            scope.spawn(move || {
                if let (Some(mut pipe), Some(input)) = (pipe, input) {
                    // Whoever ends early does not read it all.
                    let _ = pipe.write_all(&input);
                }
            });
            child.wait_with_output().expect("it is ours")
        })
    }

    fn outcome(&self, output: &Output) -> Outcome {
        let mut outcome = Outcome {
            lines: Vec::new(),
            code: output.status.code().unwrap_or(-1),
        };
        for (mark, bytes) in [(">", &output.stdout), ("!", &output.stderr)] {
            for line in bytes.split_inclusive(|&byte| byte == b'\n') {
                let (mark, line) = match line.strip_suffix(b"\n") {
                    Some(line) => (mark.to_owned(), line),
                    None => (format!("{mark}-"), line),
                };
                let text = self.take_out(&readable(line));
                let line = format!("{mark} {text}");
                outcome.lines.push(line.trim_end_matches(' ').to_owned());
            }
        }
        outcome
    }

    /// Replaces the words that stand for something.
    fn fill_in(&self, text: &str) -> String {
        text.replace("{port}", &self.server.port.to_string())
            .replace("{socket}", &self.server.socket().to_string_lossy())
            .replace("{dir}", &self.directory.to_string_lossy())
    }

    /// Puts the words back.
    fn take_out(&self, text: &str) -> String {
        text.replace(&*self.server.socket().to_string_lossy(), "{socket}")
            .replace(&*self.directory.to_string_lossy(), "{dir}")
            .replace(&format!(":{}", self.server.port), ":{port}")
    }
}

impl Drop for Setting<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// What a program prints that goes on for ever.
fn first_lines(command: &mut Command, lines: usize) -> Output {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("the program can be started");
    let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut stdout = Vec::new();
    for _ in 0..lines {
        output
            .read_until(b'\n', &mut stdout)
            .expect("a pipe can be read");
    }
    let _ = child.kill();
    let _ = child.wait();
    Output {
        status: ExitStatus::default(),
        stdout,
        stderr: Vec::new(),
    }
}

/// Text as it is, everything else as `<xx>`.
fn readable(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character.is_control() {
                text.push_str(&format!("<{:02x}>", u32::from(character)));
            } else {
                text.push(character);
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("<{byte:02x}>"));
        }
    }
    text
}

/// Arguments as a shell would take them apart: between single quotes everything is itself, between double
/// quotes a backslash keeps a quote or a backslash from being one.
fn split(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = line.chars().peekable();
    loop {
        while rest.next_if(|character| *character == ' ').is_some() {}
        if rest.peek().is_none() {
            return words;
        }
        let mut word = String::new();
        while let Some(character) = rest.next_if(|character| *character != ' ') {
            match character {
                '\'' => word.extend(rest.by_ref().take_while(|&character| character != '\'')),
                '"' => {
                    while let Some(character) = rest.next().filter(|&character| character != '"') {
                        match character {
                            '\\' => word.extend(rest.next()),
                            _ => word.push(character),
                        }
                    }
                }
                _ => word.push(character),
            }
        }
        words.push(word);
    }
}
