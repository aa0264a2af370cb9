//! Golden scripts as data: reading a script file, and writing it back with new expectations.
//!
//! A file is blocks separated by blank lines. A block is command lines, then `---`, then one expectation per
//! command in the notation of `notation.rs`:
//!
//! ```text
//! # A comment.
//! SET k v
//! c2: GET k
//! ---
//! +OK
//! "v"
//! ```
//!
//! `c2:` names a connection (without it: `c1`); it is opened on first use. Besides commands, a line may be:
//!
//! ```text
//! send CMD...            sends a request and does not wait for a reply
//! write "bytes"          sends bytes as they are and does not wait
//! read                   waits for the next reply or push message
//! raw "bytes"            sends bytes; the expectation is the exact bytes of the answer, `closed` behind them if
//!                        the server then closes the connection
//! eventually CMD...      repeats the command until its expectation is met, a few seconds at most
//! let name = CMD... /re/ keeps the reply, or the first group of the expression in it, as ${name}; no expectation
//! sleep 20ms             waits
//! close                  closes the connection
//! ```
//!
//! Variables that are always there: `${now}` and `${now_ms}` (Unix time), `${port}`, `${dir}`, `${addr}` (of
//! this connection); `${now+10}` adds.
//!
//! Where the targets differ, a block has several sections, and the most specific one counts: `--- resp2`,
//! `--- resp3`, `--- ferrite: why`, `--- ferrite resp3: why`. A first line `only ferrite: why` (or `only
//! resp3: why`) keeps a block to one target. The head of a file may have `server: --option value` (a server
//! of its own, started with these options), `config: directive` (a line of its configuration file) and
//! `script only ferrite: why`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use regex_lite::Regex;

use super::expect::Expected;
use super::notation::Reader;
use super::words::{Word, split_words};
use crate::support::{Proto, Target};

/// What one command line does.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Call(Vec<Word>),
    Send(Vec<Word>),
    Write(Word),
    Read,
    Raw(Word),
    Eventually(Vec<Word>),
    Let {
        name: String,
        words: Vec<Word>,
        regex: Option<Regex>,
    },
    Sleep(Duration),
    Close,
}

impl Action {
    /// True when an expectation belongs to it.
    pub(crate) fn replies(&self) -> bool {
        matches!(
            self,
            Action::Call(_) | Action::Read | Action::Raw(_) | Action::Eventually(_)
        )
    }
}

/// One command line.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    /// Counted from 1.
    pub(crate) line: usize,
    pub(crate) text: String,
    pub(crate) connection: String,
    pub(crate) action: Action,
}

/// Which runs something is for; a field that is not set means all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    /// `Some(true)`: Ferrite, `Some(false)`: redis-server.
    ferrite: Option<bool>,
    proto: Option<Proto>,
}

impl Filter {
    pub(crate) fn admits(self, target: Target, proto: Proto) -> bool {
        self.ferrite
            .is_none_or(|ferrite| ferrite == (target != Target::Redis))
            && self.proto.is_none_or(|p| p == proto)
    }

    fn specificity(self) -> usize {
        // A section for a target outranks one for a protocol: it states a difference on purpose.
        2 * usize::from(self.ferrite.is_some()) + usize::from(self.proto.is_some())
    }
}

/// The expectations behind one `---`.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    filter: Filter,
    /// The text behind `---`.
    title: String,
    lines: Vec<String>,
    /// One for each command that replies, with its text.
    pub(crate) expected: Vec<(Expected, String)>,
}

/// Commands and what they are expected to answer.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    only: Option<Filter>,
    /// Everything above the first `---`, as it stands.
    head: Vec<String>,
    pub(crate) commands: Vec<Command>,
    sections: Vec<Section>,
}

impl Block {
    pub(crate) fn admits(&self, target: Target, proto: Proto) -> bool {
        self.only.is_none_or(|only| only.admits(target, proto))
    }

    /// The expectations for this run: the most specific section that is for it.
    pub(crate) fn section(&self, target: Target, proto: Proto) -> Option<&Section> {
        let fitting = self
            .sections
            .iter()
            .filter(|section| section.filter.admits(target, proto));
        fitting.max_by_key(|section| section.filter.specificity())
    }

    pub(crate) fn replies(&self) -> usize {
        self.commands
            .iter()
            .filter(|command| command.action.replies())
            .count()
    }

    /// Replaces redis-server's sections: one where the protocols agree, else one for each.
    pub(crate) fn set_expected(&mut self, resp2: Vec<String>, resp3: Vec<String>) {
        self.sections
            .retain(|section| section.filter.ferrite == Some(true));
        let section = |title: &str, proto, lines| Section {
            filter: Filter {
                ferrite: None,
                proto,
            },
            title: title.to_owned(),
            lines,
            expected: Vec::new(),
        };
        if resp2 == resp3 {
            self.sections.insert(0, section("", None, resp2));
        } else {
            self.sections
                .insert(0, section(" resp3", Some(Proto::Resp3), resp3));
            self.sections
                .insert(0, section(" resp2", Some(Proto::Resp2), resp2));
        }
    }
}

#[derive(Clone, Debug)]
enum Part {
    /// Blank lines, comments and the head of the file.
    Prose(String),
    Block(Block),
}

/// A script file.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) path: PathBuf,
    /// Options for a server of its own; empty: the shared one will do.
    pub(crate) server: Vec<String>,
    /// Lines of its configuration file.
    pub(crate) config: Vec<String>,
    only: Option<Filter>,
    parts: Vec<Part>,
}

impl Script {
    /// Reads a script file. Where it is about to be recorded, redis-server's expectations may be incomplete.
    ///
    /// # Errors
    /// `file:line: why`.
    pub(crate) fn load(path: &Path, recording: bool) -> Result<Self, String> {
        let text =
            fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Self::parse(path, &text, recording)
    }

    pub(crate) fn parse(path: &Path, text: &str, recording: bool) -> Result<Self, String> {
        let at = |line: usize, why: String| format!("{}:{line}: {why}", path.display());
        let mut script = Script {
            path: path.to_owned(),
            server: Vec::new(),
            config: Vec::new(),
            only: None,
            parts: Vec::new(),
        };
        let lines: Vec<&str> = text.lines().collect();
        let mut index = 0;
        while index < lines.len() {
            let end = lines[index..]
                .iter()
                .position(|line| line.trim().is_empty())
                .map_or(lines.len(), |n| index + n);
            let chunk = &lines[index..end];
            let is_prose = chunk.iter().all(|line| line.starts_with('#'));
            if is_prose
                || (script.blocks().next().is_none()
                    && script.take_head(chunk).map_err(|why| at(index + 1, why))?)
            {
                script
                    .parts
                    .extend(chunk.iter().map(|line| Part::Prose((*line).to_owned())));
            } else {
                let block = parse_block(chunk, index + 1, recording)
                    .map_err(|(line, why)| at(line, why))?;
                script.parts.push(Part::Block(block));
            }
            if end < lines.len() {
                script.parts.push(Part::Prose(String::new()));
            }
            index = end + 1;
        }
        Ok(script)
    }

    /// Takes a paragraph of head lines; false when it is something else.
    fn take_head(&mut self, chunk: &[&str]) -> Result<bool, String> {
        let mut taken = 0;
        for line in chunk.iter().filter(|line| !line.starts_with('#')) {
            if let Some(options) = line.strip_prefix("server: ") {
                let words = split_words(options)?;
                self.server.extend(
                    words
                        .iter()
                        .map(|word| String::from_utf8_lossy(word).into_owned()),
                );
            } else if let Some(directive) = line.strip_prefix("config: ") {
                self.config.push(directive.to_owned());
            } else if let Some(only) = line.strip_prefix("script only ") {
                self.only = Some(parse_filter(only, true)?);
            } else if taken > 0 {
                return Err(format!("not a line of the head: {line}"));
            } else {
                return Ok(false);
            }
            taken += 1;
        }
        Ok(taken > 0)
    }

    pub(crate) fn admits(&self, target: Target, proto: Proto) -> bool {
        self.only.is_none_or(|only| only.admits(target, proto))
    }

    /// Folder and file: `strings/set.txt`.
    pub(crate) fn name(&self) -> String {
        let parts: Vec<_> = self
            .path
            .iter()
            .rev()
            .take(2)
            .map(|part| part.to_string_lossy())
            .collect();
        parts.into_iter().rev().collect::<Vec<_>>().join("/")
    }

    /// True when it needs a server process of its own.
    pub(crate) fn needs_own_server(&self) -> bool {
        !self.server.is_empty() || !self.config.is_empty()
    }

    pub(crate) fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.parts.iter().filter_map(|part| match part {
            Part::Block(block) => Some(block),
            Part::Prose(_) => None,
        })
    }

    pub(crate) fn blocks_mut(&mut self) -> impl Iterator<Item = &mut Block> {
        self.parts.iter_mut().filter_map(|part| match part {
            Part::Block(block) => Some(block),
            Part::Prose(_) => None,
        })
    }

    /// The file's text.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Prose(line) => out.push_str(&format!("{line}\n")),
                Part::Block(block) => {
                    block
                        .head
                        .iter()
                        .for_each(|line| out.push_str(&format!("{line}\n")));
                    for section in block.sections.iter().filter(|_| block.replies() > 0) {
                        out.push_str(&format!("---{}\n", section.title));
                        section
                            .lines
                            .iter()
                            .for_each(|line| out.push_str(&format!("{line}\n")));
                    }
                }
            }
        }
        out
    }
}

/// # Errors
/// The line it is about, and why.
fn parse_block(
    lines: &[&str],
    first_line: usize,
    recording: bool,
) -> Result<Block, (usize, String)> {
    let head_length = lines
        .iter()
        .position(|line| line.starts_with("---"))
        .unwrap_or(lines.len());
    let mut block = Block {
        only: None,
        head: Vec::new(),
        commands: Vec::new(),
        sections: Vec::new(),
    };
    for (offset, line) in lines[..head_length].iter().enumerate() {
        let number = first_line + offset;
        block.head.push((*line).to_owned());
        if let Some(only) = line.strip_prefix("only ") {
            block.only = Some(parse_filter(only, true).map_err(|why| (number, why))?);
        } else if !line.starts_with('#') {
            block
                .commands
                .push(parse_command(line, number).map_err(|why| (number, why))?);
        }
    }
    let mut index = head_length;
    while index < lines.len() {
        let length = lines[index + 1..]
            .iter()
            .take_while(|line| !line.starts_with("---"))
            .count();
        let body = &lines[index + 1..index + 1 + length];
        let title = &lines[index][3..];
        match parse_section(title, body, &block.commands) {
            Ok(section) => block.sections.push(section),
            // It will be written anew; what is Ferrite's own is not recorded and must be right.
            Err(_) if recording && !title.contains("ferrite") => {}
            Err(why) => return Err((first_line + index, why)),
        }
        index += 1 + length;
    }
    Ok(block)
}

fn parse_section(title: &str, lines: &[&str], commands: &[Command]) -> Result<Section, String> {
    let filter = parse_filter(title, false)?;
    let text = lines.join("\n");
    let mut reader = Reader::new(&text);
    let mut expected = Vec::new();
    for command in commands.iter().filter(|command| command.action.replies()) {
        let raw = matches!(command.action, Action::Raw(_));
        expected.push(
            reader
                .next(raw)
                .map_err(|why| format!("expectation for `{}`: {why}", command.text))?,
        );
    }
    if !reader.is_at_end() {
        return Err("more expectations than commands that reply".to_owned());
    }
    let lines = lines.iter().map(|line| (*line).to_owned()).collect();
    Ok(Section {
        filter,
        title: title.to_owned(),
        lines,
        expected,
    })
}

/// `ferrite resp3: why`; a target named needs its reason.
fn parse_filter(text: &str, reason_needed: bool) -> Result<Filter, String> {
    let (words, reason) = text.split_once(':').unwrap_or((text, ""));
    let mut filter = Filter::default();
    for word in words.split_whitespace() {
        match word {
            "ferrite" => filter.ferrite = Some(true),
            "redis" => filter.ferrite = Some(false),
            "resp2" => filter.proto = Some(Proto::Resp2),
            "resp3" => filter.proto = Some(Proto::Resp3),
            _ => return Err(format!("not a target or protocol: {word}")),
        }
    }
    if reason.trim().is_empty() && (reason_needed || filter.ferrite == Some(true)) {
        return Err("a difference needs its reason behind a colon".to_owned());
    }
    Ok(filter)
}

fn parse_command(line: &str, number: usize) -> Result<Command, String> {
    let (connection, rest) = match line.split_once(' ') {
        Some((name, rest)) if name.ends_with(':') => {
            (name.trim_end_matches(':'), rest.trim_start())
        }
        _ => ("c1", line),
    };
    let action = parse_action(rest)?;
    Ok(Command {
        line: number,
        text: line.to_owned(),
        connection: connection.to_owned(),
        action,
    })
}

fn parse_action(text: &str) -> Result<Action, String> {
    let (directive, rest) = text.split_once(' ').unwrap_or((text, ""));
    match directive {
        "send" => Ok(Action::Send(split_words(rest)?)),
        "eventually" => Ok(Action::Eventually(split_words(rest)?)),
        // The arguments of `raw` and `write` are joined, so that long ones can be written in pieces.
        "write" => Ok(Action::Write(split_words(rest)?.concat())),
        "raw" => Ok(Action::Raw(split_words(rest)?.concat())),
        "read" => Ok(Action::Read),
        "close" => Ok(Action::Close),
        "let" => parse_let(rest),
        "sleep" => {
            let ms = rest
                .strip_suffix("ms")
                .and_then(|number| number.parse().ok());
            ms.map(|ms| Action::Sleep(Duration::from_millis(ms)))
                .ok_or_else(|| format!("not a time: {rest}"))
        }
        _ => Ok(Action::Call(split_words(text)?)),
    }
}

fn parse_let(text: &str) -> Result<Action, String> {
    let (name, command) = text
        .split_once(" = ")
        .ok_or("let needs a name, ` = ` and a command")?;
    let (command, regex) = match command
        .split_once(" /")
        .and_then(|(command, rest)| Some((command, rest.strip_suffix('/')?)))
    {
        Some((command, source)) => (
            command,
            Some(Regex::new(source).map_err(|error| error.to_string())?),
        ),
        None => (command, None),
    };
    Ok(Action::Let {
        name: name.to_owned(),
        words: split_words(command)?,
        regex,
    })
}
