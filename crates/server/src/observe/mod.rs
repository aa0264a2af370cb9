//! Observation of keys: registries of connections that react to changes of keys, and the messages to them.

pub(crate) mod multi_read;
pub(crate) mod notify;
mod observers;
pub(crate) mod readings;
pub(crate) mod removals;
pub(crate) mod tracking;
pub(crate) mod waits;
pub(crate) mod watch;

use std::ops::Deref;

use crate::pubsub::PubSub;

pub(crate) use observers::{Alone, Observers};

/// Floor of the registries of observed keys.
pub(crate) struct Observed {
    pub(crate) pubsub: PubSub,
    /// Registries, by the reason to observe a key.
    pub(crate) observers: Observers,
}

impl Deref for Observed {
    type Target = PubSub;

    #[inline]
    fn deref(&self) -> &PubSub {
        &self.pubsub
    }
}
