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
//! The text is checked as a whole. Each mistake is told with its line, and a map with mistakes is no map. The format is a [`Map`]'s only
//! tie to files: a source of another kind makes a [`Map`] from a [`Draft`] as well.

mod check;
mod read;

use std::fmt;
use std::ops::RangeInclusive;

use keyspace::SLOTS;

/// Bytes that the text of a map may have.
pub(crate) const MAX_MAP_BYTES: u64 = 4 << 20;

/// The digits of a node's id.
pub(crate) const ID_DIGITS: usize = 40;

/// See the module.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Map {
    pub(crate) name: String,
    pub(crate) epoch: u64,
    pub(crate) nodes: Vec<Node>,
    /// For each slot the index of its node and one more; 0 is a slot that no node has.
    owners: Box<[u16]>,
}

/// A node of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    /// Forty hexadecimal digits, by which clients know it.
    pub(crate) id: String,
    /// The id as the map writes it.
    pub(crate) name: String,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Empty if it has none.
    pub(crate) hostname: String,
    /// Its slots: in order, and no two of them touch.
    pub(crate) slots: Vec<RangeInclusive<u16>>,
}

/// A map that has yet to be checked.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) name: String,
    pub(crate) epoch: u64,
    pub(crate) nodes: Vec<DraftNode>,
}

/// A node of it. The lines are those of its parts, for messages.
#[derive(Debug, Default)]
pub(crate) struct DraftNode {
    pub(crate) line: usize,
    pub(crate) id: String,
    pub(crate) id_line: usize,
    pub(crate) host: String,
    pub(crate) host_line: usize,
    pub(crate) port: u16,
    pub(crate) hostname: String,
    pub(crate) slots: Vec<(RangeInclusive<u16>, usize)>,
}

/// What is wrong with the text of a map.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Problem {
    pub(crate) line: usize,
    pub(crate) text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.text)
    }
}

impl Map {
    /// The map that a text describes.
    ///
    /// # Errors
    /// All that is wrong with it, in the order of the lines.
    pub(crate) fn parse(text: &str) -> Result<Map, Vec<Problem>> {
        let mut problems = Vec::new();
        let draft = read::read(text, &mut problems);
        let map = check::check(draft, &mut problems);
        problems.sort();
        problems.dedup();
        if problems.is_empty() {
            Ok(map)
        } else {
            Err(problems)
        }
    }

    /// The index of the node that has a slot.
    #[inline]
    pub(crate) fn owner(&self, slot: u16) -> Option<usize> {
        usize::from(self.owners[usize::from(slot)]).checked_sub(1)
    }

    /// The index of the node of an id, as forty digits or as the map writes it.
    pub(crate) fn find(&self, id: &str) -> Option<usize> {
        let is_it = |node: &Node| node.id.eq_ignore_ascii_case(id) || node.name == id;
        self.nodes.iter().position(is_it)
    }

    /// The ranges of slots that no node has.
    pub(crate) fn gaps(&self) -> Vec<RangeInclusive<u16>> {
        self.ranges()
            .filter_map(|(range, owner)| owner.is_none().then_some(range))
            .collect()
    }

    /// The slots that some node has.
    pub(crate) fn assigned(&self) -> usize {
        self.owners.iter().filter(|&&owner| owner != 0).count()
    }

    /// The longest ranges of slots with one owner, or none, in order.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (RangeInclusive<u16>, Option<usize>)> {
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
pub(crate) fn ranges_text(ranges: &[RangeInclusive<u16>]) -> String {
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
