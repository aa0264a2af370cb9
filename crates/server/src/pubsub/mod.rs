//! Publish and subscribe: from a PUBLISH on one worker to the listening connections on all workers.
//!
//! ```text
//!  PUBLISH ──> Registry ──> Inbox of each worker ──> Listeners ──> Log ──> one send per connection and turn
//!              listeners     that has listeners       the worker's  the turn's messages,
//!              of a channel  (its own as well)        connections   encoded once per protocol
//! ```
//!
//! A message is written once into the inbox of each worker that has listeners, whatever their number, and
//! once into that worker's [`Log`] for each protocol in use. A connection stores only its part of the log: a
//! message to a thousand connections of a worker is copied once by the worker and a thousand times by the
//! kernel.
//!
//! Reading order: `registry` has the workers that listen to a name (with `patterns`), `inbox` the messages on
//! their way to a worker (in a `tray`), `listeners` a worker's connections that may get messages, `log` their
//! unsent messages. Sending is in [`crate::net::delivery`], the commands in [`crate::command::pubsub`].
//!
//! Invariants:
//!
//! 1. The reply to PUBLISH is the number of connections that are sent the message, unless they end or are
//!    closed at their output limit; see [`Registry`].
//! 2. Messages to one name reach all its listeners in the same order. Messages of one connection reach every
//!    listener in the order of sending.
//! 3. A publisher waits for no subscriber. The messages on their way to a worker are bounded
//!    ([`crate::limits::INBOX_BYTES`]): beyond the bound, connections that publish are throttled until that
//!    worker has caught up, and their workers serve other connections.
//! 4. Lock order, after all locks of shards: channel, patterns, inbox. A thread with one of these locks only
//!    writes into memory.

mod inbox;
mod listeners;
mod log;
mod monitor;
mod news;
mod patterns;
mod registry;
mod tray;

use std::ops::Deref;

use crate::shared::Shared;

/// Lock and atomics of trays; the model uses others.
mod sync {
    pub(super) use parking_lot::Mutex;
    pub(super) use std::sync::atomic::{AtomicUsize, Ordering};
}

pub(crate) use inbox::{Inbox, Payload, begin_worker, is_worker, tell, wake_noted};
pub(crate) use listeners::{Due, Listeners};
pub(crate) use log::Log;
pub(crate) use monitor::Monitors;
pub(crate) use news::{Addressee, News};
pub(crate) use registry::{Registry, VisitPlace};
pub(crate) use tray::Crowd;

/// Floor of messages between connections.
pub(crate) struct PubSub {
    pub(crate) shared: Shared,
    /// Workers that listen to each name.
    pub(crate) registry: Registry,
    /// Number of workers with a crowded inbox.
    pub(crate) crowd: Crowd,
    /// Messages on their way to each worker.
    pub(crate) inboxes: Box<[Inbox]>,
    pub(crate) monitors: Monitors,
}

impl PubSub {
    pub(crate) fn new(shared: Shared) -> PubSub {
        let workers = shared.workers.len();
        PubSub {
            shared,
            registry: Registry::default(),
            crowd: Crowd::default(),
            inboxes: (0..workers).map(|_| Inbox::default()).collect(),
            monitors: Monitors::new(workers),
        }
    }
}

impl Deref for PubSub {
    type Target = Shared;

    #[inline]
    fn deref(&self) -> &Shared {
        &self.shared
    }
}

/// Kind of a subscription's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(usize)]
pub(crate) enum NameKind {
    /// SUBSCRIBE, PUBLISH.
    Channel,
    /// PSUBSCRIBE: a glob pattern of channels.
    Pattern,
    /// SSUBSCRIBE, SPUBLISH: a separate namespace, which patterns don't match.
    Shard,
}

impl NameKind {
    pub(crate) const ALL: [NameKind; 3] = [NameKind::Channel, NameKind::Pattern, NameKind::Shard];
}
