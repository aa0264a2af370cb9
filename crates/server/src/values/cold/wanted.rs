//! Cold values for a request: those it needs, and those that were read for it.

use keyspace::{ColdValue, Key, LargeValue};

use crate::request::Failure;

/// Value that is to be read back.
#[derive(Clone)]
pub(crate) struct Wanted {
    pub(crate) db: usize,
    pub(crate) hash: u64,
    pub(crate) key: Box<[u8]>,
    pub(crate) value: ColdValue,
    /// Whether the value is only served and the entry stays cold.
    pub(crate) stays_out: bool,
}

/// State of a connection's first request with regard to cold values.
#[derive(Default)]
pub(crate) struct FetchState {
    /// Number of the wait for values; 0 for none.
    pub(crate) number: u64,
    /// Rounds of reading values for it.
    pub(crate) tries: u32,
    /// Error of a value that could not be read.
    pub(crate) failure: Option<Failure>,
    /// Whether the values that it asks for were recorded.
    pub(crate) is_noted: bool,
    /// Whether it may exceed the limit of memory.
    pub(crate) goes_without_room: bool,
    /// Values that were read for it and are only served.
    pub(crate) arrived: Vec<Arrived>,
}

impl FetchState {
    /// Takes the error because of which the request can't run. The request is over then.
    #[inline]
    pub(crate) fn take_failure(&mut self) -> Option<Failure> {
        let failure = self.failure.take();
        if failure.is_some() {
            self.done();
        }
        failure
    }

    /// Resets the state when the request is complete.
    #[inline]
    pub(crate) fn done(&mut self) {
        if self.is_noted {
            *self = FetchState::default();
        }
    }
}

/// Value that was read to be served.
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
    /// Whether a value was read for the request and is to be served.
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
