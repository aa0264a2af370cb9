//! A table that has the right size from the beginning, for who knows how many entries will come.

use std::sync::atomic::Ordering;

use super::lookup::Index;
use super::moving::FULL;
use super::table::{Table, bucket_count};
use crate::pages::{Charge, populate};

/// Shards do not get equally many entries: one part in so many is added.
const SPREAD: usize = 32;
/// How full a bucket shall get: with one entry less than what makes a table grow, no stash fills up before.
const WANTED: usize = FULL - 1;

impl Index<'_> {
    /// Makes the table that so many entries would lead to, if there is none yet.
    pub(crate) fn reserve(&mut self, entries: usize, charge: Charge) {
        if self.tables.active().exists() || entries == 0 {
            return;
        }
        let wanted = (entries + entries / SPREAD) / WANTED + 1;
        let code = (0..)
            .find(|&code| bucket_count(code) >= wanted)
            .expect("codes are unbounded");
        let table = Table::allocate(code);
        if table.mapped() > 0 {
            // Every page of it will be read before it is written, which would be two faults for each.
            populate(table.pointer(), table.mapped());
        }
        self.tables.active.store(table.0, Ordering::Release);
        self.settle(charge);
    }
}
