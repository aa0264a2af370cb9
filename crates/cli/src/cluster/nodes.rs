//! The file that lists the hosts of a cluster: a line a node, `user@host[:sshport] [port]`.
//!
//! ```text
//! # three machines
//! ann@10.0.0.1
//! ann@10.0.0.2:2222
//! ann@[fd00::3]:2222 6390     # another port of the node
//! ```
//!
//! The text is checked as a whole, and each mistake is told with its line. Nothing of it reaches a shell:
//! users and hosts have letters, digits and few signs, and none begins with a dash.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;

use crate::failure::reason;

/// What a line is to look like.
const FORM: &str = "user@host[:sshport] [port]";

/// Bytes that the file may have.
const MAX_BYTES: u64 = 1 << 20;

/// Nodes that the file may have.
const MAX_NODES: usize = 1000;

/// The most characters of a host or a user.
const MAX_NAME: usize = 255;

/// Mistakes of which the first are told.
const MOST_PROBLEMS: usize = 20;

/// A node of a cluster, and how its host is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    /// Whom to log in as; the configuration of ssh says it otherwise.
    pub(crate) user: Option<String>,
    /// An address, without brackets, or a name.
    pub(crate) host: String,
    /// Where sshd listens; the configuration of ssh says it otherwise.
    pub(crate) ssh_port: Option<u16>,
    /// Where the node serves.
    pub(crate) port: u16,
}

/// A mistake in the file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) line: usize,
    pub(crate) text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.text)
    }
}

impl Node {
    /// Where clients reach it, as people write it.
    pub(crate) fn address(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

/// Reads the file. A node without a port of its own has `default_port`.
///
/// # Errors
/// What is wrong with it: a line for each mistake.
pub(crate) fn read(path: &Path, default_port: u16) -> Result<Vec<Node>, String> {
    let failed = |problem: String| format!("cannot read {}: {problem}", path.display());
    let file = File::open(path).map_err(|error| failed(reason(&error)))?;
    let mut text = Vec::new();
    file.take(MAX_BYTES + 1)
        .read_to_end(&mut text)
        .map_err(|error| failed(reason(&error)))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(failed(format!("it has more than {MAX_BYTES} bytes")));
    }
    parse(&text, default_port).map_err(|problems| {
        let told = problems.iter().take(MOST_PROBLEMS);
        let mut lines: Vec<String> = told
            .map(|problem| format!("{}:{problem}", path.display()))
            .collect();
        if problems.len() > MOST_PROBLEMS {
            lines.push(format!("and {} more", problems.len() - MOST_PROBLEMS));
        }
        lines.join("\n")
    })
}

/// The nodes that a text lists, in its order.
///
/// # Errors
/// All mistakes, in the order of the lines.
pub(crate) fn parse(text: &[u8], default_port: u16) -> Result<Vec<Node>, Vec<Problem>> {
    let mut nodes = Vec::new();
    let mut problems = Vec::new();
    let mut lines_of: HashMap<(String, u16), usize> = HashMap::new();
    for (number, bytes) in (1..).zip(text.split(|&byte| byte == b'\n')) {
        let mut tell = |text| problems.push(Problem { line: number, text });
        let Ok(line) = std::str::from_utf8(bytes) else {
            tell("this is no text in UTF-8".to_owned());
            continue;
        };
        let node = match parse_line(line, default_port) {
            Ok(Some(node)) => node,
            Ok(None) => continue,
            Err(text) => {
                tell(text);
                continue;
            }
        };
        if nodes.len() == MAX_NODES {
            tell(format!("there are more than {MAX_NODES} nodes"));
            break;
        }
        let address = (node.host.to_ascii_lowercase(), node.port);
        if let Some(earlier) = lines_of.insert(address, number) {
            tell(format!(
                "{} is in line {earlier} too: two nodes need two addresses",
                node.address()
            ));
        }
        nodes.push(node);
    }
    if nodes.is_empty() && problems.is_empty() {
        let text = format!("there is no node: each is a line {FORM}");
        problems.push(Problem { line: 1, text });
    }
    match problems.is_empty() {
        true => Ok(nodes),
        false => Err(problems),
    }
}

/// The node of a line, if it has one.
fn parse_line(line: &str, default_port: u16) -> Result<Option<Node>, String> {
    let said = line.split_once('#').map_or(line, |(said, _)| said);
    let mut words = said.split_whitespace();
    let Some(place) = words.next() else {
        return Ok(None);
    };
    let port = match words.next() {
        None => default_port,
        Some(word) => parse_port(word, "the port of the node, behind the host,")?,
    };
    if let Some(word) = words.next() {
        return Err(format!(
            "nothing is expected at '{}': a line is {FORM}",
            shown(word)
        ));
    }
    let (user, place) = match place.rsplit_once('@') {
        None => (None, place),
        Some((user, place)) => (Some(parse_user(user)?), place),
    };
    let (host, ssh_port) = split_place(place)?;
    Ok(Some(Node {
        user,
        host,
        ssh_port,
        port,
    }))
}

fn parse_port(word: &str, what: &str) -> Result<u16, String> {
    let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    match word.parse() {
        Ok(port @ 1..) if is_number => Ok(port),
        _ => Err(format!(
            "{what} is a number from 1 to 65535, not '{}'",
            shown(word)
        )),
    }
}

fn parse_user(user: &str) -> Result<String, String> {
    if is_name(user, b"-_.$") {
        return Ok(user.to_owned());
    }
    Err(format!(
        "the user before the @ has letters, digits and -_.$, not '{}'",
        shown(user)
    ))
}

/// Host and port of `host`, `host:port`, `[address]` and `[address]:port`.
fn split_place(place: &str) -> Result<(String, Option<u16>), String> {
    let (host, rest) = match place.strip_prefix('[') {
        Some(inner) => {
            let (address, rest) = inner
                .split_once(']')
                .ok_or_else(|| format!("the ] is missing in '{}'", shown(place)))?;
            let address: Ipv6Addr = address.parse().map_err(|_| {
                format!(
                    "an IPv6 address is expected in brackets, not '{}'",
                    shown(address)
                )
            })?;
            if !rest.is_empty() && !rest.starts_with(':') {
                return Err(format!(
                    "behind the ] comes :sshport or nothing, not '{}'",
                    shown(rest)
                ));
            }
            (address.to_string(), rest)
        }
        None if place.parse::<Ipv6Addr>().is_ok() => {
            return Err(format!("an IPv6 address goes in brackets: [{place}]"));
        }
        None => {
            let (host, rest) = place.split_at(place.find(':').unwrap_or(place.len()));
            check_host(host)?;
            (host.to_owned(), rest)
        }
    };
    let ssh_port = match rest.strip_prefix(':') {
        None => None,
        Some(word) => Some(parse_port(word, "the port of ssh, behind the colon,")?),
    };
    Ok((host, ssh_port))
}

fn check_host(host: &str) -> Result<(), String> {
    if !is_name(host, b"-_.") {
        return Err(format!(
            "a host is an address or a name of letters, digits and -_., not '{}': a line is {FORM}",
            shown(host)
        ));
    }
    let has_digits_alone = host
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    if has_digits_alone && host.parse::<Ipv4Addr>().is_err() {
        return Err(format!(
            "'{}' is no IPv4 address: four numbers from 0 to 255 are expected",
            shown(host)
        ));
    }
    Ok(())
}

/// Whether a text can be a word of a command line that is no flag.
fn is_name(text: &str, more: &[u8]) -> bool {
    let may_be = |byte: u8| byte.is_ascii_alphanumeric() || more.contains(&byte);
    !text.is_empty() && text.len() <= MAX_NAME && !text.starts_with('-') && text.bytes().all(may_be)
}

/// A text from the file as a message may show it.
fn shown(text: &str) -> String {
    const MOST: usize = 60;
    let mut shown: String = text
        .chars()
        .take(MOST)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().nth(MOST).is_some() {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests;
