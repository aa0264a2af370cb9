//! Watched keys of one connection.

use std::sync::Arc;

use keyspace::Key;

use crate::names::ByHash;

/// Watched key; see the [module above](super).
pub(crate) struct Watched {
    pub(crate) db: usize,
    pub(crate) hash: u64,
    pub(crate) key: Arc<[u8]>,
}

impl AsRef<[u8]> for Watched {
    fn as_ref(&self) -> &[u8] {
        &self.key
    }
}

/// Bytes of a watched key beside its name, in the list of its connection and in the registry.
const WATCHED_BYTES: usize = 256;

impl Watched {
    /// Bytes that it adds to its connection's account.
    pub(crate) fn memory(&self) -> usize {
        Watched::bytes_of(self.key.len())
    }

    /// Bytes of a watched key whose name has `key` bytes.
    pub(crate) const fn bytes_of(key: usize) -> usize {
        key + WATCHED_BYTES
    }
}

/// Watched keys of one connection.
#[derive(Default)]
pub(crate) struct WatchList {
    keys: ByHash<Watched, ()>,
    /// Bytes of the keys.
    pub(crate) bytes: usize,
}

impl WatchList {
    /// Index of a key of a database in the list. It differs between databases.
    fn place(db: usize, hash: u64) -> u64 {
        hash ^ (db as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub(crate) fn contains(&self, db: usize, key: Key<'_>) -> bool {
        self.keys
            .contains(WatchList::place(db, key.hash), key.bytes)
    }

    /// Adds a key that is not present.
    pub(crate) fn add(&mut self, watched: Watched) {
        let place = WatchList::place(watched.db, watched.hash);
        self.bytes += watched.memory();
        self.keys.insert(place, watched, ());
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Watched> {
        self.keys.iter().map(|(watched, ())| watched)
    }

    /// Removes at most `most` keys. Returns whether none is left.
    pub(crate) fn remove_some(&mut self, most: usize, mut removed: impl FnMut(Watched)) -> bool {
        for _ in 0..most {
            let Some((_, watched, ())) = self.keys.pop() else {
                break;
            };
            self.bytes -= watched.memory();
            removed(watched);
        }
        self.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::steps;

    fn watched(db: usize, at: usize) -> Watched {
        let key: Arc<[u8]> = at.to_string().into_bytes().into();
        Watched {
            db,
            hash: at as u64 * 31,
            key,
        }
    }

    fn contains(list: &WatchList, watched: &Watched) -> bool {
        let (bytes, hash) = (&watched.key[..], watched.hash);
        list.contains(watched.db, Key { bytes, hash })
    }

    #[test]
    fn a_key_is_watched_once_in_each_database() {
        let mut list = WatchList::default();
        for db in 0..3 {
            assert!(!contains(&list, &watched(db, 5)));
            list.add(watched(db, 5));
            assert!(contains(&list, &watched(db, 5)));
        }
        assert_eq!((list.len(), list.iter().count()), (3, 3));
        assert!(list.bytes > 0);
        let mut removed = 0;
        assert!(!list.remove_some(2, |_| removed += 1));
        assert!(list.remove_some(2, |_| removed += 1));
        assert_eq!((removed, list.bytes), (3, 0));
    }

    #[test]
    fn twice_as_many_watched_keys_take_twice_the_steps() {
        steps::assert_linear(2_000, |n| {
            let mut list = WatchList::default();
            for at in 0..n {
                assert!(!contains(&list, &watched(0, at)));
                list.add(watched(0, at));
            }
            assert!(list.remove_some(n, |_| {}));
        });
    }
}
