//! A map before it is checked, and the mistakes in it.

use std::fmt;
use std::ops::RangeInclusive;

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
