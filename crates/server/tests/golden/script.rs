//! Golden scripts as data: reading a script file, and writing it back with new expectations.
//!
//! A file is blocks separated by blank lines. A block is requests, each with the reply that it is expected to
//! get, in the notation of `notation.rs`:
//!
//! ```text
//! # A comment.
//! SET k v            -> +OK
//! c2: GET k          -> "v"
//! MGET k "->" other  -> [
//!   "v"
//!   nil
//!   nil
//! ]
//! CONFIG GET nosuch
//!   -> {}
//! ```
//!
//! The first bare word `->` ends the request: as an argument it needs quotes. A line that begins with a blank is
//! a reply of the request above it. A reply ends with its line, or with the line of its closing bracket.
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
//! let name = CMD... /re/ keeps the reply, or the first group of the expression in it, as ${name}; no reply
//! sleep 20ms             waits
//! window over            waits until ${window} is over
//! close                  closes the connection
//! ```
//!
//! Variables that are always there: `${now}` and `${now_ms}` (Unix time), `${port}`, `${dir}`, `${addr}` (of
//! this connection), `${window}`; `${now+10}` adds.
//!
//! `${window}` is a time in ms for what must be seen before it expires, as in `SET k v PX ${window}`. It
//! counts from the beginning of the block, or from the `window over` before. If more than half of it has
//! passed at `window over`, the machine was too slow: the block begins again, on new connections, with a
//! window twice as long. So such a block opens and sets up all connections that it uses.
//!
//! Where the targets differ, a request has several replies, and the most specific one counts. A difference of
//! Ferrite has its reason:
//!
//! ```text
//! HELLO
//!   resp2 -> ["server", "redis", ...]
//!   resp3 -> {"server": "redis", ...}
//!   ferrite: why it differs -> {...}
//!   ferrite resp3: why it differs -> {...}
//! ```
//!
//! A first line `only ferrite: why` (or `only resp3: why`) keeps a block to one target. The head of a file may
//! have `server: --option value` (a server of its own, started with these options), `config: directive` (a line
//! of its configuration file) and `script only ferrite: why`. `beside: redis8 valkey` names the servers that
//! it runs on instead of redis-server 7.0; where they differ, a reply of one has its name: `valkey -> 1`.
//!
//! [`Script::text`] writes replies of a block in one column; so do recorded files.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use regex_lite::Regex;

use super::expect::Expected;
use super::notation::{Reader, first_line};
use super::words::{Word, split_reply, split_words};
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
    WindowOver,
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

    /// True for a request whose reply depends on how long ago another one was.
    fn asks_the_clock(&self) -> bool {
        let Action::Call(words) = self else {
            return false;
        };
        let is = |index: usize, name: &str| {
            words
                .get(index)
                .is_some_and(|word: &Word| word.eq_ignore_ascii_case(name.as_bytes()))
        };
        ["TTL", "PTTL", "HTTL", "HPTTL"]
            .iter()
            .any(|name| is(0, name))
            || (is(0, "OBJECT") && is(1, "IDLETIME"))
    }
}

/// A request, or something else to do, and what is expected of it.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    /// Comments and `only` above it, as they stand.
    above: Vec<String>,
    /// Counted from 1.
    pub(crate) line: usize,
    pub(crate) text: String,
    pub(crate) connection: String,
    pub(crate) action: Action,
    replies: Vec<Reply>,
}

/// What a request is expected to get.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    filter: Filter,
    /// What stands before `->`: the filter and its reason.
    title: String,
    pub(crate) text: String,
    pub(crate) expected: Expected,
}

impl Command {
    /// The reply expected in this run: the most specific one that is for it.
    pub(crate) fn reply(&self, target: Target, proto: Proto) -> Option<&Reply> {
        let fitting = self
            .replies
            .iter()
            .filter(|reply| reply.filter.admits(target, proto));
        fitting.max_by_key(|reply| reply.filter.specificity())
    }

    /// Replaces the replies without a server's name: one where the protocols agree, else one for each.
    pub(crate) fn record(&mut self, resp2: String, resp3: String) {
        self.replies
            .retain(|reply| reply.filter.ferrite == Some(true) || reply.filter.peer.is_some());
        let reply = |title: &str, proto, text| Reply {
            filter: Filter {
                proto,
                ..Filter::default()
            },
            title: title.to_owned(),
            text,
            // Recorded replies are written, not compared.
            expected: Expected::Any,
        };
        let recorded = if resp2 == resp3 {
            vec![reply("", None, resp2)]
        } else {
            vec![
                reply("resp2", Some(Proto::Resp2), resp2),
                reply("resp3", Some(Proto::Resp3), resp3),
            ]
        };
        self.replies.splice(0..0, recorded);
    }

    /// Reads the reply that `text` begins with, and says how many lines it has.
    fn take_reply(&mut self, title: &str, text: &str) -> Result<usize, String> {
        let within = |why: String| format!("reply of `{}`: {why}", self.text);
        if !self.action.replies() {
            return Err(within("there is none".to_owned()));
        }
        if first_line(text).trim().is_empty() {
            return Err(within("it is missing".to_owned()));
        }
        let filter = parse_filter(title, false)?;
        let mut reader = Reader::new(text);
        let (expected, text) = reader
            .next(matches!(self.action, Action::Raw(_)))
            .map_err(within)?;
        if !reader.rest_of_line().is_empty() {
            return Err(within(format!(
                "it is followed by {}",
                reader.rest_of_line()
            )));
        }
        if self.action.asks_the_clock() && expected.has_exact_time() {
            return Err(within(
                "time passes on a busy machine: <int from..to>".to_owned(),
            ));
        }
        let lines = text.lines().count();
        self.replies.push(Reply {
            filter,
            title: title.to_owned(),
            text,
            expected,
        });
        Ok(lines)
    }

    fn write(&self, column: usize, out: &mut String) {
        self.above
            .iter()
            .for_each(|line| out.push_str(&format!("{line}\n")));
        out.push_str(&self.text);
        for reply in &self.replies {
            let padding = column.saturating_sub(self.text.chars().count());
            let beside = format!("{:padding$} -> {}", "", reply.text);
            let width = self.text.chars().count() + first_line(&beside).chars().count();
            let is_beside = reply.title.is_empty() && width <= LINE_WIDTH;
            match (is_beside, reply.title.as_str()) {
                (true, _) => out.push_str(&beside),
                (false, "") => out.push_str(&format!("\n  -> {}", reply.text)),
                (false, title) => out.push_str(&format!("\n  {title} -> {}", reply.text)),
            }
        }
        out.push('\n');
    }
}

/// Which runs something is for; a field that is not set means all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    /// `Some(true)`: Ferrite, `Some(false)`: another server.
    ferrite: Option<bool>,
    /// Which other server.
    peer: Option<Target>,
    proto: Option<Proto>,
}

impl Filter {
    pub(crate) fn admits(self, target: Target, proto: Proto) -> bool {
        self.ferrite
            .is_none_or(|ferrite| ferrite == target.is_ferrite())
            && self.peer.is_none_or(|peer| peer == target)
            && self.proto.is_none_or(|p| p == proto)
    }

    fn specificity(self) -> usize {
        // A section for a target outranks one for a protocol: it states a difference on purpose.
        2 * usize::from(self.ferrite.is_some()) + usize::from(self.proto.is_some())
    }
}

/// Requests up to this width have their replies in the block's column.
const REQUEST_WIDTH: usize = 48;
/// A reply that would end beyond this stands below its request.
const LINE_WIDTH: usize = 110;

/// Commands without a blank line between them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    only: Option<Filter>,
    pub(crate) commands: Vec<Command>,
    /// Comments below the last command.
    below: Vec<String>,
}

impl Block {
    pub(crate) fn admits(&self, target: Target, proto: Proto) -> bool {
        self.only.is_none_or(|only| only.admits(target, proto))
    }

    fn write(&self, out: &mut String) {
        let replying = self
            .commands
            .iter()
            .filter(|command| command.action.replies());
        let widths = replying.map(|command| command.text.chars().count());
        let column = widths
            .filter(|&width| width <= REQUEST_WIDTH)
            .max()
            .unwrap_or_default();
        self.commands
            .iter()
            .for_each(|command| command.write(column, out));
        self.below
            .iter()
            .for_each(|line| out.push_str(&format!("{line}\n")));
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
    /// The servers that it runs on beside Ferrite; recorded from the first.
    pub(crate) peers: Vec<Target>,
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
            peers: vec![Target::Redis],
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
            } else if let Some(names) = line.strip_prefix("beside: ") {
                self.peers = names.split(' ').map(peer).collect::<Result<_, _>>()?;
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
        (target.is_ferrite() || self.peers.contains(&target))
            && self.only.is_none_or(|only| only.admits(target, proto))
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
                Part::Block(block) => block.write(&mut out),
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
    let mut block = Block::default();
    let mut index = 0;
    while index < lines.len() {
        let at = |why| (first_line + index, why);
        let line = lines[index];
        let mut title = "";
        let mut reply = None;
        if line.starts_with('#') {
            block.below.push(line.to_owned());
        } else if let Some(only) = line.strip_prefix("only ") {
            block.only = Some(parse_filter(only, true).map_err(at)?);
            block.below.push(line.to_owned());
        } else if line.starts_with(' ') {
            let (before, text) = line
                .split_once("->")
                .ok_or_else(|| at(format!("no reply: {line}")))?;
            (title, reply) = (before.trim(), Some(text));
        } else {
            let (mut command, text) = parse_command(line, first_line + index).map_err(at)?;
            command.above = std::mem::take(&mut block.below);
            block.commands.push(command);
            reply = text;
        }
        let mut taken = 1;
        if let Some(text) = reply {
            let text = [&[text], &lines[index + 1..]].concat().join("\n");
            let command = block
                .commands
                .last_mut()
                .ok_or_else(|| at(format!("no request above: {line}")))?;
            match command.take_reply(title, &text) {
                Ok(lines) => taken = lines,
                // It will be written anew; what is Ferrite's own is not recorded and must be right.
                Err(_) if recording && !title.contains("ferrite") => {}
                Err(why) => return Err(at(why)),
            }
        }
        index += taken;
    }
    Ok(block)
}

/// The server of a name that a script runs beside.
fn peer(name: &str) -> Result<Target, String> {
    match name {
        "redis" => Ok(Target::Redis),
        "redis8" => Ok(Target::Redis8),
        "valkey" => Ok(Target::Valkey),
        _ => Err(format!("not a server: {name}")),
    }
}

/// `ferrite resp3: why`; a target named needs its reason.
fn parse_filter(text: &str, reason_needed: bool) -> Result<Filter, String> {
    let (words, reason) = text.split_once(':').unwrap_or((text, ""));
    let mut filter = Filter::default();
    for word in words.split_whitespace() {
        match word {
            "ferrite" => filter.ferrite = Some(true),
            "redis" => filter.ferrite = Some(false),
            "redis8" | "valkey" => {
                filter.ferrite = Some(false);
                filter.peer = Some(peer(word)?);
            }
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

/// A command, and the text of its reply if that stands beside it.
fn parse_command(line: &str, number: usize) -> Result<(Command, Option<&str>), String> {
    let (connection, rest) = match line.split_once(' ') {
        Some((name, rest)) if name.ends_with(':') => {
            (name.trim_end_matches(':'), rest.trim_start())
        }
        _ => ("c1", line),
    };
    // The expression of `let` is not quoted like a request; it has no reply.
    let (request, reply) = if rest.starts_with("let ") {
        (rest, None)
    } else {
        split_reply(rest)?
    };
    let command = Command {
        above: Vec::new(),
        line: number,
        text: line[..line.len() - rest.len() + request.len()]
            .trim_end()
            .to_owned(),
        connection: connection.to_owned(),
        action: parse_action(request.trim_end())?,
        replies: Vec::new(),
    };
    Ok((command, reply))
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
        "window" if rest == "over" => Ok(Action::WindowOver),
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
