//! A map whose parts were checked, and what it says of slots and nodes.

use std::ops::RangeInclusive;

use resp::slot::SLOTS;

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
    pub(crate) owners: Box<[u16]>,
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

impl Map {
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
pub(crate) fn no_owners() -> Box<[u16]> {
    vec![0; usize::from(SLOTS)].into()
}
