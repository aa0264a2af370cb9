//! Scripts as text: parsed, compared, and written again.

use std::fmt;
use std::path::Path;

use regex_lite::Regex;

/// A file, with all of its lines.
pub(crate) struct Script {
    /// What stands before the first step.
    head: Vec<String>,
    pub(crate) steps: Vec<Step>,
}

/// One run of the program.
pub(crate) struct Step {
    /// Comments and empty lines before it.
    comments: Vec<String>,
    /// Of its `$`, from 1.
    pub(crate) line: usize,
    pub(crate) only_ferrite_cli: bool,
    only_redis_server: bool,
    only_ferrite_server: bool,
    pub(crate) environment: Vec<(String, String)>,
    /// Ended after so many lines.
    pub(crate) lines: Option<usize>,
    /// The flags of the connection come in front.
    pub(crate) connects: bool,
    pub(crate) command: String,
    /// As written, and as bytes.
    input_lines: Vec<String>,
    pub(crate) input: Option<Vec<u8>>,
    pub(crate) expected: Outcome,
}

/// What a run prints, line by line, with the mark in front of each, and how it ends.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) lines: Vec<String>,
    pub(crate) code: i32,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.lines {
            writeln!(f, "{line}")?;
        }
        if self.code != 0 {
            writeln!(f, "? {}", self.code)?;
        }
        Ok(())
    }
}

impl Script {
    pub(crate) fn parse(path: &Path, text: &str) -> Script {
        let mut script = Script {
            head: Vec::new(),
            steps: Vec::new(),
        };
        // Directives and comments belong to the step behind them.
        let mut pending = Pending::default();
        for (at, line) in text.lines().enumerate() {
            let place = format!("{}:{}", path.display(), at + 1);
            let (mark, rest) = line.split_once(' ').unwrap_or((line, ""));
            match mark {
                "$" | "$-" => {
                    let connects = mark == "$";
                    let step = std::mem::take(&mut pending).step(at + 1, connects, rest);
                    script.steps.push(step);
                }
                "@" => pending.direct(rest, &place),
                "" | "#" => pending.comments.push(line.to_owned()),
                _ if line.starts_with('#') => pending.comments.push(line.to_owned()),
                _ => {
                    let step = script.steps.last_mut();
                    let step = step.unwrap_or_else(|| panic!("{place}: nothing was run yet"));
                    step.take(line, mark, rest, &place);
                }
            }
        }
        script.head = pending.comments;
        script
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            write!(f, "{step}")?;
        }
        // Comments behind the last step.
        for line in &self.head {
            writeln!(f, "{line}")?;
        }
        Ok(())
    }
}

#[derive(Default)]
struct Pending {
    comments: Vec<String>,
    only_ferrite_cli: bool,
    only_redis_server: bool,
    only_ferrite_server: bool,
    environment: Vec<(String, String)>,
    lines: Option<usize>,
}

impl Pending {
    fn direct(&mut self, directive: &str, place: &str) {
        match directive {
            "ferrite-cli" => self.only_ferrite_cli = true,
            "redis-server" => self.only_redis_server = true,
            "ferrite-server" => self.only_ferrite_server = true,
            _ if directive.starts_with("lines ") => {
                let lines = directive["lines ".len()..].parse();
                self.lines = Some(lines.unwrap_or_else(|_| panic!("{place}: no number")));
            }
            _ => {
                let pair = directive.split_once('=');
                let (name, value) = pair.unwrap_or_else(|| panic!("{place}: unknown directive"));
                self.environment.push((name.to_owned(), value.to_owned()));
            }
        }
    }

    fn step(self, line: usize, connects: bool, command: &str) -> Step {
        Step {
            comments: self.comments,
            line,
            only_ferrite_cli: self.only_ferrite_cli,
            only_redis_server: self.only_redis_server,
            only_ferrite_server: self.only_ferrite_server,
            environment: self.environment,
            lines: self.lines,
            connects,
            command: command.to_owned(),
            input_lines: Vec::new(),
            input: None,
            expected: Outcome::default(),
        }
    }
}

impl Step {
    fn take(&mut self, line: &str, mark: &str, rest: &str, place: &str) {
        match mark {
            "<" => {
                let input = self.input.get_or_insert_default();
                input.extend_from_slice(rest.as_bytes());
                input.push(b'\n');
                self.input_lines.push(line.to_owned());
            }
            "<-" => {
                let input = self.input.get_or_insert_default();
                input.extend(unescape(rest));
                self.input_lines.push(line.to_owned());
            }
            ">" | ">-" | ">/" | ">..." | "!" | "!/" => self.expected.lines.push(line.to_owned()),
            "?" => {
                let code = rest.parse();
                self.expected.code = code.unwrap_or_else(|_| panic!("{place}: no exit code"));
            }
            _ => panic!("{place}: what is {mark:?}?"),
        }
    }

    /// Whether the step can run with this program and server.
    pub(crate) fn is_for(&self, is_redis_cli: bool, is_ferrite_server: bool) -> bool {
        !(self.only_ferrite_cli && is_redis_cli
            || self.only_redis_server && is_ferrite_server
            || self.only_ferrite_server && !is_ferrite_server)
    }

    pub(crate) fn expects(&self, found: &Outcome) -> bool {
        let is_like = |(expected, found): (&String, &String)| match expected.split_once("/ ") {
            Some((mark @ (">" | "!"), pattern)) => {
                let rest = found
                    .strip_prefix(mark)
                    .and_then(|rest| rest.strip_prefix(' '));
                let pattern =
                    Regex::new(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
                rest.is_some_and(|rest| pattern.is_match(rest))
            }
            _ => expected == found,
        };
        let mut found_lines = found.lines.iter().peekable();
        let mut expected_lines = self.expected.lines.iter().peekable();
        while let Some(expected) = expected_lines.next() {
            if expected == ">..." {
                let next = expected_lines.peek();
                let goes_on = |found: &&String| {
                    found.starts_with('>') && next.is_none_or(|next| !is_like((next, found)))
                };
                while found_lines.next_if(goes_on).is_some() {}
            } else if found_lines
                .next_if(|found| is_like((expected, found)))
                .is_none()
            {
                return false;
            }
        }
        self.expected.code == found.code && found_lines.next().is_none()
    }

    /// Takes what was found for what is expected; lines that match their expressions keep them.
    pub(crate) fn learn(&mut self, found: Outcome) {
        if !self.expects(&found) {
            self.expected = found;
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.comments {
            writeln!(f, "{line}")?;
        }
        if self.only_ferrite_cli {
            writeln!(f, "@ ferrite-cli")?;
        }
        if self.only_redis_server {
            writeln!(f, "@ redis-server")?;
        }
        if self.only_ferrite_server {
            writeln!(f, "@ ferrite-server")?;
        }
        for (name, value) in &self.environment {
            writeln!(f, "@ {name}={value}")?;
        }
        if let Some(lines) = self.lines {
            writeln!(f, "@ lines {lines}")?;
        }
        let mark = if self.connects { "$" } else { "$-" };
        writeln!(f, "{}", format!("{mark} {}", self.command).trim_end())?;
        for line in &self.input_lines {
            writeln!(f, "{line}")?;
        }
        write!(f, "{}", self.expected)
    }
}

/// Bytes of a text with `\r`, `\n`, `\\` and `\xHH`.
fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        if character != '\\' {
            bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        match rest.next() {
            Some('r') => bytes.push(b'\r'),
            Some('n') => bytes.push(b'\n'),
            Some('x') => {
                let digits: String = rest.by_ref().take(2).collect();
                bytes.push(u8::from_str_radix(&digits, 16).expect("two hexadecimal digits"));
            }
            other => bytes.extend(other.map(|other| other as u8)),
        }
    }
    bytes
}
