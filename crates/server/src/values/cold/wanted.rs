//! What a request needs of values in the log: which they are, and what has been read for it.

use keyspace::{ColdValue, Key, LargeValue};

use crate::request::Failure;

/// A value that is to be read back.
#[derive(Clone)]
pub(crate) struct Wanted {
    pub(crate) db: usize,
    pub(crate) hash: u64,
    pub(crate) key: Box<[u8]>,
    pub(crate) value: ColdValue,
    /// It is read for this once, and its entry stays as it is.
    pub(crate) stays_out: bool,
}

/// What a connection knows of its first request as far as values are concerned.
#[derive(Default)]
pub(crate) struct FetchState {
    /// The number of the wait for values; 0 for none.
    pub(crate) number: u64,
    /// How often values were read for it.
    pub(crate) tries: u32,
    /// Why one of them could not be read.
    pub(crate) failure: Option<Failure>,
    /// Whether it was noted which values it asks for.
    pub(crate) is_noted: bool,
    /// Whether it may have them though there is no room.
    pub(crate) goes_without_room: bool,
    /// What was read for it and stays out of memory.
    pub(crate) arrived: Vec<Arrived>,
}

impl FetchState {
    /// Why the request cannot run; it is over then.
    #[inline]
    pub(crate) fn take_failure(&mut self) -> Option<Failure> {
        let failure = self.failure.take();
        if failure.is_some() {
            self.done();
        }
        failure
    }

    /// The request has what it needs, or never will.
    #[inline]
    pub(crate) fn done(&mut self) {
        if self.is_noted {
            *self = FetchState::default();
        }
    }
}

/// A value that was read.
pub(crate) struct Arrived {
    pub(crate) wanted: Wanted,
    pub(crate) value: LargeValue,
}

impl Arrived {
    fn is(&self, wanted: &Wanted) -> bool {
        let own = &self.wanted;
        own.value == wanted.value && own.db == wanted.db && own.key == wanted.key
    }
}

impl FetchState {
    /// Whether a value was read for the request and is kept for it.
    pub(crate) fn has_arrived(&self, wanted: &Wanted) -> bool {
        self.arrived.iter().any(|arrived| arrived.is(wanted))
    }

    pub(crate) fn take_arrived(&mut self, wanted: &Wanted) -> Option<LargeValue> {
        let mut arrived = self.arrived.iter();
        let at = arrived.position(|arrived| arrived.is(wanted))?;
        Some(self.arrived.swap_remove(at).value)
    }
}

impl Wanted {
    pub(crate) fn new(db: usize, key: Key<'_>, value: ColdValue) -> Wanted {
        Wanted {
            db,
            hash: key.hash,
            key: key.bytes.into(),
            value,
            stays_out: false,
        }
    }

    pub(crate) fn key(&self) -> Key<'_> {
        Key {
            bytes: &self.key,
            hash: self.hash,
        }
    }
}
