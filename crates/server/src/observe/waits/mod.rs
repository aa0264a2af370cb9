//! Waits of blocked connections: the queues of keys, and the end of a wait.
//!
//! Each end of a wait first claims it ([`Client::claim_wait`]), which succeeds once. [`crate::command::park`]
//! blocks a connection, [`crate::net::waits`] resumes it.

#[cfg(test)]
mod model;
pub(crate) mod ready;
mod waiters;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use keyspace::Kind;
use keyspace::collection::stream::Id;
use keyspace::collection::tree::End;
use resp::reply::Protocol;

use crate::observe::Observed;
use crate::shared::clients::Client;

pub(crate) use waiters::Waiters;

/// The bytes of a key.
pub(crate) type Key = Box<[u8]>;

/// Wait in the queues of keys.
pub(crate) struct KeyWait {
    pub(crate) number: u64,
    pub(crate) client: Arc<Client>,
    /// Protocol of the connection, which does not change while it waits.
    pub(crate) protocol: Protocol,
    /// What the connection takes from a key.
    pub(crate) asks: Asks,
}

/// Value that a blocked connection asks for. The worker on which the key is written takes it, by the rules of
/// the commands ([`crate::command::park`]).
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Asks {
    /// Element at an end of a list.
    Element(End),
    /// At most so many elements at an end of a list.
    Elements(End, u64),
    /// Element at an end of a list, which is moved to an end of the list of another key.
    Move([End; 2], Key),
    /// Member at an end of a sorted set; the front is the lowest score.
    Member(End),
    /// At most so many members at an end of a sorted set.
    Members(End, u64),
    /// At most so many entries of each of some streams, after an ID. Nothing is taken.
    Entries(Box<[(Key, Id)]>, u64),
    /// Entries of a stream that a group has not got.
    Group(Box<GroupAsks>),
}

/// The wish of a consumer of a group.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct GroupAsks {
    pub(crate) group: Box<[u8]>,
    pub(crate) consumer: Box<[u8]>,
    /// At most so many entries.
    pub(crate) most: u64,
    /// They do not wait to be acknowledged.
    pub(crate) no_ack: bool,
}

impl Asks {
    /// Kind of the value that has what is asked for.
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Asks::Element(_) | Asks::Elements(..) | Asks::Move(..) => Kind::List,
            Asks::Member(_) | Asks::Members(..) => Kind::SortedSet,
            Asks::Entries(..) | Asks::Group(_) => Kind::Stream,
        }
    }
}

impl Asks {
    /// Whether the wait ends when the key is removed.
    fn hears_removal(&self) -> bool {
        matches!(self, Asks::Group(_))
    }
}

impl KeyWait {
    /// Whether the wait is not claimed.
    fn is_waiting(&self) -> bool {
        self.client.wait.load(Relaxed) == self.number
    }

    /// Claims the wait. Returns false if it was claimed before.
    pub(crate) fn claim(&self) -> bool {
        self.client.claim_wait(self.number)
    }
}

impl Observed {
    /// Whether no connection waits for a value of this kind in a key of a database. The shard is locked.
    pub(crate) fn is_line_empty(&self, db: usize, key: keyspace::Key<'_>, kind: Kind) -> bool {
        !self.has_wait(db, key, |wait| wait.asks.kind() == kind)
    }

    /// Whether a connection waits like that in a key of a database. The shard is locked.
    pub(crate) fn has_wait(
        &self,
        db: usize,
        key: keyspace::Key<'_>,
        is_such: impl Fn(&KeyWait) -> bool,
    ) -> bool {
        let shard = self.keyspace.shard_of(key.hash);
        let waiters = &self.observers.waiters;
        let mut last = 0;
        while let Some(wait) = waiters.behind(shard, db, key, last) {
            if is_such(&wait) {
                return true;
            }
            last = wait.number;
        }
        false
    }
}
