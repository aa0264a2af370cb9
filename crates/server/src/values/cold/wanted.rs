//! Cold values for a request: those it needs, and those that were read for it.

use std::num::NonZeroU64;

use keyspace::collection::Base;
use keyspace::{ColdValue, Key, LargeValue, LogAddress};

use crate::persistence::{Sought, instance_key};
use crate::request::Failure;

/// Value, or leaf of a tree, that is to be read back.
#[derive(Clone)]
pub(crate) struct Wanted {
    pub(crate) db: usize,
    pub(crate) hash: u64,
    pub(crate) key: Box<[u8]>,
    /// Of a leaf: where its record is, and how long it is in the log.
    pub(crate) value: ColdValue,
    /// The instance of the tree that it is a leaf of, as its records have it in place of a key.
    pub(crate) instance: Option<[u8; 8]>,
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
    /// Leaves that were missing when it had to wait more often than for values.
    pub(crate) missing: usize,
    /// Values that were read for it and are only served.
    pub(crate) arrived: Vec<Arrived>,
    /// What decides about what it does by chance; 0 until that is asked.
    pub(crate) seed: u64,
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
            *self = FetchState {
                seed: self.seed,
                ..FetchState::default()
            };
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
        own.value == wanted.value
            && own.instance == wanted.instance
            && own.db == wanted.db
            && own.key == wanted.key
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
            instance: None,
            stays_out: false,
        }
    }

    /// A leaf of the tree of an instance.
    pub(crate) fn leaf(db: usize, key: Key<'_>, instance: u64, base: Base) -> Wanted {
        let at = NonZeroU64::new(base.at).expect("a cold leaf rests on a record");
        let value = ColdValue {
            address: LogAddress(at),
            len: base.share.into(),
        };
        Wanted {
            instance: Some(instance_key(instance)),
            ..Wanted::new(db, key, value)
        }
    }

    /// What it is read from.
    pub(crate) fn sought(&self) -> Sought<'_> {
        match &self.instance {
            None => Sought::value(&self.key, self.value),
            Some(instance) => Sought::leaf(instance, self.base()),
        }
    }

    /// Of a leaf: what it rests on.
    fn base(&self) -> Base {
        let share = u32::try_from(self.value.len);
        Base {
            at: self.value.address.0.get(),
            share: share.expect("the length of a record"),
        }
    }

    pub(crate) fn key(&self) -> Key<'_> {
        Key {
            bytes: &self.key,
            hash: self.hash,
        }
    }
}
