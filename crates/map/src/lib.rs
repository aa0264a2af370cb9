//! The map of a cluster: which node has which hash slots, as a file says that all nodes share.
//!
//! ```toml
//! name = "shop"
//! epoch = 1
//!
//! [[nodes]]
//! id = "a"
//! host = "10.0.0.1"
//! port = 6379
//! slots = ["0-5460", 16383]
//! ```
//!
//! The text is checked as a whole. Each mistake is told with its line, and a map with mistakes is no map
//! ([`Map::parse`]). A program that makes a map fills a [`Draft`]: [`Draft::check`] makes a [`Map`] of it,
//! and [`Map::to_text`] the text for the nodes. A source that is no file makes a [`Map`] from a [`Draft`] as
//! well.
//!
//! Not here: which node of the map a server is, where the file is, and when it is read again.

#![forbid(unsafe_code)]

mod check;
mod file;
mod read;
mod share;
mod write;

use std::fmt;
use std::ops::RangeInclusive;

pub use resp::slot::SLOTS;
pub use share::{Move, even_ranges};

/// Bytes that the text of a map may have.
pub const MAX_MAP_BYTES: u64 = 4 << 20;

/// The digits of a node's id.
pub const ID_DIGITS: usize = 40;

/// A map that was checked: each slot has one node or none, ids and addresses are unique.
#[derive(Debug, PartialEq, Eq)]
pub struct Map {
    /// What the cluster is called.
    pub name: String,
    /// Grows with each change of the map.
    pub epoch: u64,
    /// In the order of the text.
    pub nodes: Vec<Node>,
    /// For each slot the index of its node and one more; 0 is a slot that no node has.
    owners: Box<[u16]>,
}

/// A node of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Forty hexadecimal digits, by which clients know it.
    pub id: String,
    /// The id as the map writes it.
    pub name: String,
    /// An address or the name of a host, as clients connect to it.
    pub host: String,
    /// The port there.
    pub port: u16,
    /// What the map says of `hostname`; empty if it says nothing.
    pub hostname: String,
    /// Its slots: in order, and no two of them touch.
    pub slots: Vec<RangeInclusive<u16>>,
}

/// A map that has yet to be checked.
#[derive(Debug, Default)]
pub struct Draft {
    /// What the cluster is called.
    pub name: String,
    /// Grows with each change of the map.
    pub epoch: u64,
    /// In the order of the text.
    pub nodes: Vec<DraftNode>,
}

/// A node of a draft. The lines are those of its parts, for messages; 0 where there is no text.
#[derive(Debug, Default)]
pub struct DraftNode {
    /// Where the node begins.
    pub line: usize,
    /// As the map writes it: forty hexadecimal digits, or a shorter name.
    pub id: String,
    /// Where the id is.
    pub id_line: usize,
    /// An address or the name of a host.
    pub host: String,
    /// Where the host is.
    pub host_line: usize,
    /// The port there.
    pub port: u16,
    /// Empty if it has none.
    pub hostname: String,
    /// Ranges of slots, each with its line.
    pub slots: Vec<(RangeInclusive<u16>, usize)>,
}

/// What is wrong with the text of a map.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// From 1 on; 0 for a draft that comes from no text.
    pub line: usize,
    /// In words for the person who wrote it.
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.text)
    }
}

impl Draft {
    /// The map that this is.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn check(self) -> Result<Map, Vec<Problem>> {
        self.check_after(Vec::new())
    }

    /// The same, with what was found wrong before.
    fn check_after(self, mut problems: Vec<Problem>) -> Result<Map, Vec<Problem>> {
        let map = check::check(self, &mut problems);
        problems.sort();
        problems.dedup();
        if problems.is_empty() {
            Ok(map)
        } else {
            Err(problems)
        }
    }
}

impl Map {
    /// The map that a text describes.
    ///
    /// # Errors
    /// All that is wrong with it, in the order of the lines.
    pub fn parse(text: &str) -> Result<Map, Vec<Problem>> {
        let mut problems = Vec::new();
        let draft = read::read(text, &mut problems);
        draft.check_after(problems)
    }

    /// The index of the node that has a slot.
    #[must_use]
    #[inline]
    pub fn owner(&self, slot: u16) -> Option<usize> {
        usize::from(self.owners[usize::from(slot)]).checked_sub(1)
    }

    /// The index of the node of an id, as forty digits or as the map writes it.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<usize> {
        let is_it = |node: &Node| node.id.eq_ignore_ascii_case(id) || node.name == id;
        self.nodes.iter().position(is_it)
    }

    /// The ranges of slots that no node has.
    #[must_use]
    pub fn gaps(&self) -> Vec<RangeInclusive<u16>> {
        self.ranges()
            .filter_map(|(range, owner)| owner.is_none().then_some(range))
            .collect()
    }

    /// The slots that some node has.
    #[must_use]
    pub fn assigned(&self) -> usize {
        self.owners.iter().filter(|&&owner| owner != 0).count()
    }

    /// The longest ranges of slots with one owner, or none, in order.
    pub fn ranges(&self) -> impl Iterator<Item = (RangeInclusive<u16>, Option<usize>)> {
        let mut from = 0;
        self.owners
            .chunk_by(|one, other| one == other)
            .map(move |chunk| {
                let first = from;
                from += chunk.len();
                let range = first as u16..=(from - 1) as u16;
                (range, usize::from(chunk[0]).checked_sub(1))
            })
    }
}

/// The slots of a node as words: `0-5460 16383`.
#[must_use]
pub fn ranges_text(ranges: &[RangeInclusive<u16>]) -> String {
    let word = |range: &RangeInclusive<u16>| match (range.start(), range.end()) {
        (first, last) if first == last => first.to_string(),
        (first, last) => format!("{first}-{last}"),
    };
    ranges.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// The slots of an empty map.
fn no_owners() -> Box<[u16]> {
    vec![0; usize::from(SLOTS)].into()
}

#[cfg(test)]
mod tests;
