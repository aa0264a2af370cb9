//! Entries whose value has items that expire.
//!
//! Such an entry is *expiring*, a bit of its header. When the first of its items expires is found in the
//! value. Its value is in memory: an entry whose value is in the log alone cannot tell when items expire.
//!
//! Invariant, whenever the shard is unlocked: an entry is expiring if and only if [`Entry::next_due`] of its
//! value knows a time.

use super::{EXPIRING, Entry, KIND, Kind, Stamp, VOLATILE};
use crate::collection::run::Run;

impl Stamp {
    /// Whether it is that of a collection.
    #[inline]
    pub(crate) fn is_collection(self) -> bool {
        self.0 & KIND != Kind::String as u64
    }
}

impl Entry {
    /// Whether the key, or an item of the value, expires. One test of the header.
    #[inline]
    pub(crate) fn may_end(self) -> bool {
        self.header() & (VOLATILE | EXPIRING) != 0
    }

    /// Whether items of the value expire.
    #[inline]
    pub(crate) fn is_expiring(self) -> bool {
        self.header() & EXPIRING != 0
    }

    /// Notes whether items of the value expire.
    pub(crate) fn set_expiring(self, expires: bool) {
        let bit = if expires { EXPIRING } else { 0 };
        self.set_header(self.header() & !EXPIRING | bit);
    }

    /// A time (Unix, ms) at or before which no item of the value expires; none expires at all if there is
    /// none.
    pub(crate) fn next_due(self) -> Option<u64> {
        if self.is_cold() || self.kind() != Kind::Hash {
            return None;
        }
        if self.is_tree() {
            return self.tree().next_due();
        }
        Run::trusted(self.value().bytes()).earliest()
    }

    /// When the key expires or, if that is before, an item of the value may.
    pub(crate) fn ends_at(self) -> Option<i64> {
        if !self.is_expiring() {
            return self.expiry();
        }
        let due = self.next_due().map(|due| due as i64);
        due.into_iter().chain(self.expiry()).min()
    }

    /// Whether nothing is left of it at a time (Unix, ms): the key, or all items of the value have expired.
    pub(crate) fn is_over(self, now: i64) -> bool {
        if !self.may_end() {
            return false;
        }
        if self.expiry().is_some_and(|expiry| now > expiry) {
            return true;
        }
        self.is_expiring() && !self.has_live_item(now.max(0) as u64)
    }

    fn has_live_item(self, now: u64) -> bool {
        if self.is_tree() {
            return self.tree().has_live_item(now);
        }
        let mut items = Run::trusted(self.value().bytes()).iter();
        items.any(|item| !item.is_due(now))
    }
}
