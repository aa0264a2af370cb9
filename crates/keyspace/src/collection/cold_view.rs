//! The cold leaves of a tree at one moment: their records, and what was read of them.

use super::cursor::{cursor_of, first_of};
use super::kind::{Edge, LeafKind};
use super::log::leaf::LeafRecord;
use super::node::Base;
use super::run::Damage;
use super::thawed::ThawedLeaf;
use super::view::View;
use crate::large::LargeValue;

impl<K: LeafKind> View<'_, K> {
    /// The record of the leaf that has the item of a rank, if it is cold.
    pub fn cold_at(&self, rank: u64) -> Option<Base> {
        let leaf = self.seek_rank(rank).0.leaf();
        leaf.is_cold().then(|| leaf.base())
    }

    /// The records of the cold leaves that have items of the ranks from one to another.
    pub fn cold_between(&self, from: u64, to: u64) -> Vec<Base> {
        let (leaves, index) = self.leaves_from_rank(from);
        let (mut records, mut at) = (Vec::new(), from - (index as u64).min(from));
        for leaf in leaves {
            if at >= to {
                break;
            }
            records.extend(leaf.is_cold().then(|| leaf.base()));
            at += leaf.count;
        }
        records
    }

    /// The records of the cold leaves among those that a scan of `count` items from a cursor on shows
    /// ([`crate::ItemsRef::scan`]).
    pub fn cold_of_scan(&self, cursor: u64, count: usize) -> Vec<Base> {
        let Some(first) = first_of(cursor) else {
            return Vec::new();
        };
        let from = Edge::before(u128::from(first) << 64);
        let (mut shown, mut before) = (0, cursor);
        let mut records = Vec::new();
        for leaf in self.leaves(&from) {
            let next = cursor_of((leaf.order >> 64) as u64);
            if shown >= count.max(1) as u64 && next > before {
                break;
            }
            records.extend(leaf.is_cold().then(|| leaf.base()));
            // Of the first leaf not all items may be shown.
            if leaf.start() >= from {
                shown += leaf.count;
            }
            before = before.max(next);
        }
        records
    }

    /// The record of the leaf that covers an edge, if it is cold.
    pub fn cold_covering(&self, edge: &Edge<'_>) -> Option<Base> {
        let leaf = self.seek(edge).leaf();
        leaf.is_cold().then(|| leaf.base())
    }

    /// Checks that `contents` are those of the record on which a cold leaf rests, or did when `base` was
    /// asked for.
    ///
    /// # Errors
    /// They are not.
    pub fn thaw(&self, base: Base, contents: LargeValue) -> Result<ThawedLeaf, Damage> {
        let record = LeafRecord::read(&contents)?;
        let leaf = self.leaves(&record.from).next();
        let leaf = leaf.filter(|leaf| leaf.is_cold());
        let leaf = leaf.ok_or(Damage::Kind)?;
        let run = self
            .kind
            .check_leaf(record.run, &record.from, record.to.as_ref())?;
        if record.from != leaf.start() || run.count() as u64 != leaf.count {
            return Err(Damage::Kind);
        }
        let run = contents.len() - record.run.len()..contents.len();
        Ok(ThawedLeaf {
            leaf: leaf.node(),
            at: base.at,
            contents,
            run,
        })
    }
}
