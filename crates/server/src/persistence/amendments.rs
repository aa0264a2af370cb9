//! Amendments: patches of values whose base is unavailable while a log is replayed.
//!
//! A state in the middle of a replay need not have existed. Compaction appends a value again and drops its
//! old segment. So a `Patch` of that value can precede it, and follow an older value whose file is gone:
//!
//! ```text
//!  written    SetBlob k (file 1)   Set k   Patch k
//!  compacted  SetBlob k (file 1)           Patch k   Set k       file 1 is gone
//! ```
//!
//! So nothing is read for a patch of a value in a file of its own, and an unreadable value is not damage yet:
//! the patches of such a key wait here. A later record that sets or deletes the key discards them. After the
//! last record the values of the keys with patches are read and patched; a value that is unreadable then is
//! damage.
//!
//! Memory: the key, and a few words for each patch.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use ferrite_log::{DbId, Lsn, Tag};
use parking_lot::Mutex;

/// Patch whose bytes are in the log.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub(super) lsn: Lsn,
    pub(super) tag: Tag,
    pub(super) what: What,
    pub(super) len: u64,
}

/// What a record changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Bytes of a string, from an offset on; its length is `total` afterwards.
    Bytes { offset: usize, total: usize },
    /// Items of a small collection.
    Items,
}

/// Key with its database.
pub(super) type FullKey = (DbId, Vec<u8>);

/// Waiting patches by key. All calls for one key come in the order of the log.
#[derive(Default)]
pub(super) struct Amendments {
    waiting: Mutex<HashMap<FullKey, Vec<Part>>>,
    /// Number of keys.
    keys: AtomicUsize,
}

impl Amendments {
    /// Whether a key has waiting patches.
    pub(super) fn has(&self, db: DbId, key: &[u8]) -> bool {
        self.keys.load(Relaxed) > 0 && self.waiting.lock().contains_key(&(db, key.to_vec()))
    }

    /// Adds a patch of a key after its earlier ones.
    pub(super) fn add(&self, db: DbId, key: &[u8], part: Part) {
        let mut waiting = self.waiting.lock();
        waiting.entry((db, key.to_vec())).or_default().push(part);
        self.keys.store(waiting.len(), Relaxed);
    }

    /// Discards the patches of a key that was set or deleted.
    pub(super) fn settle(&self, db: DbId, key: &[u8]) {
        if self.keys.load(Relaxed) == 0 {
            return;
        }
        let mut waiting = self.waiting.lock();
        waiting.remove(&(db, key.to_vec()));
        self.keys.store(waiting.len(), Relaxed);
    }

    /// Takes all keys, sorted, with their patches in the order of the log.
    pub(super) fn take(&self) -> Vec<(FullKey, Vec<Part>)> {
        let mut left: Vec<_> = std::mem::take(&mut *self.waiting.lock())
            .into_iter()
            .collect();
        self.keys.store(0, Relaxed);
        left.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(offset: usize) -> Part {
        Part {
            lsn: Lsn::FIRST,
            tag: Tag::default(),
            what: What::Bytes { offset, total: 100 },
            len: 1,
        }
    }

    #[test]
    fn patches_wait_until_their_key_is_settled() {
        let amendments = Amendments::default();
        assert!(!amendments.has(DbId(0), b"k"));
        amendments.settle(DbId(0), b"k");
        amendments.add(DbId(0), b"k", part(8));
        amendments.add(DbId(1), b"k", part(16));
        amendments.add(DbId(0), b"k", part(24));
        assert!(amendments.has(DbId(0), b"k") && !amendments.has(DbId(0), b"l"));
        amendments.settle(DbId(1), b"k");
        assert!(amendments.has(DbId(0), b"k") && !amendments.has(DbId(1), b"k"));
        let left = amendments.take();
        let [(key, parts)] = &left[..] else {
            panic!("one is left")
        };
        assert_eq!(*key, (DbId(0), b"k".to_vec()));
        let whats: Vec<What> = parts.iter().map(|part| part.what).collect();
        assert_eq!(
            whats,
            [8, 24].map(|offset| What::Bytes { offset, total: 100 })
        );
        assert!(!amendments.has(DbId(0), b"k") && amendments.take().is_empty());
    }
}
