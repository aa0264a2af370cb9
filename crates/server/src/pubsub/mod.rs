//! Publish and subscribe: from a PUBLISH on one worker to the connections that listen on all of them.
//!
//! ```text
//!  PUBLISH ──> Registry ──> Inbox of each worker ──> Listeners ──> Log ──> one send per connection and turn
//!              who listens,  that has listeners       the worker's  the turn's messages,
//!              how many      (its own as well)        connections   encoded once per protocol
//! ```
//!
//! A message is written once into the inbox of each worker that has somebody who listens, whatever the number
//! of connections there, and once into that worker's [`Log`] for each protocol in use. A connection only
//! notes which part of the log is its own: a message to a thousand connections of a worker is copied once by
//! the worker and a thousand times by the kernel.
//!
//! Reading order: `registry` knows which workers listen to a name (with `patterns`), `inbox` is what is under
//! way to a worker, in a `tray`, `listeners` are a worker's connections that may be told something, `log` is
//! what they have yet to be sent. Sending it is in [`crate::net::delivery`], the commands in
//! [`crate::command::pubsub`].
//!
//! What always holds:
//! 1. The number that PUBLISH answers is the number of connections that are sent the message, unless they end
//!    or are dropped for not reading. [`Registry`] says how.
//! 2. Messages to one name reach all who listen to it in the same order. Messages of one connection reach
//!    everybody in the order in which it sent them.
//! 3. A publisher waits for no subscriber. What may wait for a worker is bounded
//!    ([`crate::limits::INBOX_BYTES`]): beyond it, connections that publish are held back until that worker
//!    has caught up, and their workers go on with others.
//! 4. Locks are taken in this order, all of them after those of shards: channel, patterns, inbox. Whoever
//!    holds one of them only writes into memory.

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

/// What trays are made of; their model has others.
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

/// The floor of messages between connections.
pub(crate) struct PubSub {
    pub(crate) shared: Shared,
    /// The workers that listen to each name.
    pub(crate) registry: Registry,
    /// The workers that are behind with what was published.
    pub(crate) crowd: Crowd,
    /// What is under way to each worker.
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

/// What a subscription names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(usize)]
pub(crate) enum NameKind {
    /// SUBSCRIBE, PUBLISH.
    Channel,
    /// PSUBSCRIBE: a glob-style pattern of channels.
    Pattern,
    /// SSUBSCRIBE, SPUBLISH: a space of names of its own, which patterns don't reach.
    Shard,
}

impl NameKind {
    pub(crate) const ALL: [NameKind; 3] = [NameKind::Channel, NameKind::Pattern, NameKind::Shard];
}
