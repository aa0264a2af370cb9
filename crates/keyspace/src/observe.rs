//! Who wants to hear of changes to keys.
//!
//! A shard has an *observed* byte beside its lock: a bit for each reason why somebody wants to know what
//! happens to some key of it. Whoever changes a key looks at the byte, which is in the cache line of the lock
//! it holds; while it is zero that is all. Where it isn't, the [`Observer`] is told, and what it answers
//! becomes the byte. Of keys whose time had come it is told everywhere if it wants to
//! ([`crate::Keyspace::set_hears_expiry`]).
//!
//! Invariants:
//! 1. A shard's byte is read and written under its lock: whoever observes a key under that lock hears of
//!    every change that comes after.
//! 2. A bit may be set though nobody observes any more (the next change clears it); it is never clear while
//!    somebody does.
//! 3. The byte is a shard's, and a shard is a database's: whoever empties or exchanges databases sets the
//!    bits anew for what is still observed. Only what is observed everywhere
//!    ([`crate::Keyspace::observe_everywhere`]) is set in new databases too.
//!
//! What does not live here: which keys are meant, and what becomes of the news. That is the server's.

use crate::entry::overwritten::Overwritten;
use crate::entry::{LogAddress, Type};
use crate::hash::Key;
use crate::shard_set::ShardId;

/// Reasons to hear of changes: the bits of a shard's observed byte.
pub mod reason {
    /// WATCH: a transaction fails if the key changes.
    pub const WATCHED: u8 = 1;
    /// CLIENT TRACKING: a client keeps a copy of the key's value.
    pub const TRACKED: u8 = 1 << 1;
    /// A client waits for something to be in the key.
    pub const AWAITED: u8 = 1 << 2;
    /// A command is reading very many keys, one after the other, as they are at one moment.
    pub const MULTI_READ: u8 = 1 << 3;
    /// A command has read the key, and is to know whether it changes before it ends.
    pub const READ: u8 = 1 << 4;
}

/// What happened to a key of an observed shard.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// The database, by its present number.
    pub database: usize,
    /// The shard in it, which is locked.
    pub shard: ShardId,
    /// The key.
    pub key: Key<'a>,
    /// Why the shard is observed: the bits of [`reason`] that are set.
    pub observed: u8,
    /// What became of the key.
    pub kind: ChangeKind,
}

/// What became of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It is there, with another value or another expiry.
    Written,
    /// It is a stream, and its groups are others. Its entries are the same.
    Groups {
        /// Whether readers that wait for entries have to look again.
        concerns_readers: bool,
    },
    /// A command removed it.
    Removed,
    /// Its time had come.
    Expired,
    /// The time of some of its items had come. With the last of them the key goes.
    ItemsExpired {
        /// Whether it goes.
        is_gone: bool,
    },
}

/// Items of a collection whose time had come.
#[derive(Clone, Copy)]
pub struct ItemsExpired<'a> {
    /// The number of the database.
    pub database: usize,
    /// The key.
    pub key: &'a [u8],
    /// What the value is.
    pub of: Type,
    /// Whether other items of it expire.
    pub is_expiring: bool,
    /// Of a tree: the number of its instance, and the log's number of its database, if its leaves are in the
    /// log.
    pub instance: Option<(u64, u16)>,
    /// What the log has of the entry.
    pub old: Overwritten,
    /// Their removal, as changes of items ([`crate::collection::log::edits`]).
    pub edits: &'a [u8],
    /// Whether none is left, so that the key goes.
    pub is_gone: bool,
}

/// Hears of changes to keys of observed shards.
pub trait Observer: Sync {
    /// A key has changed, or is about to go. Answers the bits of [`Change::observed`] that stay.
    ///
    /// The shard is locked: this must not lock a shard, enter a turn, or wait for anybody who might.
    fn changed(&self, change: &Change<'_>) -> u8;

    /// An entry that is in the log at `address` goes with its database, or because its time had come: then
    /// its shard is locked, and `expired_in` is the database's number. `value` is the bytes it had. The same
    /// must not be done as in [`Observer::changed`].
    fn lost(&self, _old: Overwritten, _key: &[u8], _expired_in: Option<usize>) {}

    /// Items of an entry that is in the log were removed because their time had come. Its shard is locked.
    /// Answers where the entry is in the log from here on, if that is another place. The same must not be
    /// done as in [`Observer::changed`].
    fn items_expired(&self, _expired: &ItemsExpired<'_>) -> Option<LogAddress> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Expiry, Keyspace, Options};
    use parking_lot::Mutex;

    /// A change that was heard of: database, key, kind.
    type Heard = (usize, Vec<u8>, ChangeKind);

    /// Keeps what it hears, and wants to hear once more so many times.
    #[derive(Default)]
    struct Listener(Mutex<(Vec<Heard>, usize)>);

    impl Observer for Listener {
        fn changed(&self, change: &Change<'_>) -> u8 {
            let (heard, left) = &mut *self.0.lock();
            heard.push((change.database, change.key.bytes.to_vec(), change.kind));
            *left = left.saturating_sub(1);
            if *left > 0 { change.observed } else { 0 }
        }
    }

    #[test]
    fn what_is_observed_everywhere_is_observed_in_new_databases_too() {
        let listener: &Listener = Box::leak(Box::default());
        let keyspace = Keyspace::new(&Options {
            databases: 3,
            workers: 1,
            shards: 4,
            seed: 1,
            ticks: || 0,
            charge: |_| (),
        });
        keyspace.set_observer(listener);
        let mut turn = keyspace.turns().register();
        turn.enter();
        let write = |turn: &crate::Turn<'_>, db: usize, name: &str| {
            let database = keyspace.database(turn, db);
            let key = database.key(name.as_bytes());
            let mut guard = database.lock(key.hash, 0);
            guard.set(key, b"v", Expiry::Clear);
            guard.note_change(key, ChangeKind::Written);
            listener.0.lock().0.len()
        };
        for name in ["a", "b", "c", "d", "e", "f"] {
            assert_eq!(write(&turn, 0, name), 0);
        }
        turn.begin_alone();
        keyspace.observe_everywhere(&turn, reason::TRACKED, 0);
        turn.end_alone();
        // As long as it wants to hear, it hears of all keys.
        listener.0.lock().1 = usize::MAX;
        let mut heard = 0;
        for db in [0, 1] {
            for name in ["a", "b", "c", "d", "e", "f"] {
                heard += 1;
                assert_eq!(write(&turn, db, name), heard);
            }
        }
        turn.exclusive(|alone| keyspace.flush(alone, 0));
        assert_eq!(write(&turn, 0, "a"), heard + 1);
        keyspace.observe_where_asked(reason::TRACKED);
        listener.0.lock().1 = 0;
        assert_eq!(write(&turn, 0, "a"), heard + 2);
        assert_eq!(write(&turn, 0, "a"), heard + 2);
        assert_eq!(write(&turn, 2, "a"), heard + 2);
    }

    #[test]
    fn an_observer_hears_of_expiry_until_it_has_heard_enough() {
        let listener: &Listener = Box::leak(Box::default());
        let keyspace = Keyspace::new(&Options {
            databases: 3,
            workers: 1,
            shards: 1,
            seed: 1,
            ticks: || 0,
            charge: |_| (),
        });
        keyspace.set_observer(listener);
        let mut turn = keyspace.turns().register();
        turn.enter();
        let expire = |turn: &crate::Turn<'_>, db, name: &'static [u8], observes: bool| {
            let database = keyspace.database(turn, db);
            let key = database.key(name);
            let mut guard = database.lock(key.hash, 0);
            guard.set(key, b"v", Expiry::At(10));
            if observes {
                guard.observe(reason::WATCHED);
            }
            drop(guard);
            assert!(!database.lock(key.hash, 11).contains(key));
        };
        expire(&turn, 0, b"unheard", false);
        listener.0.lock().1 = 2;
        expire(&turn, 1, b"a", true);
        // What is observed moves with its database, and knows its new number.
        turn.exclusive(|alone| keyspace.swap(alone, 1, 2));
        assert_eq!(
            keyspace.database(&turn, 2).lock(0, 0).observed(),
            reason::WATCHED
        );
        expire(&turn, 2, b"b", false);
        assert_eq!(keyspace.database(&turn, 2).lock(0, 0).observed(), 0);
        expire(&turn, 2, b"unheard", false);
        let mut guard = keyspace.database(&turn, 1).lock(0, 0);
        guard.observe(reason::TRACKED);
        guard.note_change(
            Key {
                bytes: b"c",
                hash: 0,
            },
            ChangeKind::Written,
        );
        let heard = &listener.0.lock().0;
        assert_eq!(
            *heard,
            [
                (1, b"a".to_vec(), ChangeKind::Expired),
                (2, b"b".to_vec(), ChangeKind::Expired),
                (1, b"c".to_vec(), ChangeKind::Written)
            ]
        );
    }
}
