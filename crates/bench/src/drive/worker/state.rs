//! The state of a thread of the load: its connections and what is under way on them.

use crate::drive::clock::Ticks;
use crate::drive::counts::Slice;
use crate::drive::job::{Job, Message};
use crate::drive::schedule::Schedule;
use crate::drive::tally::Sent;
use crate::load::outgoing::Outgoing;
use crate::load::workload::Source;
use crate::wire::link::Link;
use crate::wire::map::Map;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;
use sys::Poller;

/// One connection and what is under way on it.
#[derive(Debug, Default)]
pub(super) struct Client {
    /// `None`: it has to be opened.
    pub(super) link: Option<Link>,
    pub(super) sent: VecDeque<Sent>,
    pub(super) in_flight: usize,
    /// Requests that were sent since the connection was opened.
    pub(super) sent_since_open: u64,
    /// How many replies the first request in flight still owes, if it has several.
    pub(super) owed: u32,
    /// When the connection was begun.
    pub(super) dialed_at: Ticks,
    /// Goes up with every connection, so that an event of an old one is known as such.
    pub(super) generation: u32,
    /// The node of a cluster that it is connected to, and the one that it is to be.
    pub(super) node: usize,
    pub(super) next_node: usize,
}

impl Client {
    /// It is connected to another node than it should be.
    pub(super) fn is_stale(&self) -> bool {
        self.node != self.next_node
    }
}

/// A thread of the load.
pub(crate) struct Worker<'a> {
    pub(super) job: &'a Job<'a>,
    pub(super) thread: usize,
    /// The nodes of the cluster, as far as they were heard of, and the number of that map.
    pub(super) nodes: Option<Arc<Map>>,
    pub(super) map_version: u32,
    /// Its first connection among those of all threads.
    pub(super) first_client: usize,
    pub(super) poller: Poller,
    pub(super) clients: Vec<Client>,
    pub(super) source: Source<'a>,
    pub(super) schedule: Option<Schedule>,
    /// The connection whose turn it is in the open loop.
    pub(super) turn: usize,
    pub(super) out: Outgoing,
    pub(super) input: Vec<u8>,
    pub(super) slice: Slice,
    pub(super) slice_ends: Ticks,
    pub(super) reports: Sender<Message>,
    /// Connections that wait to be opened.
    pub(super) closed: Vec<usize>,
    pub(super) dialing: usize,
    pub(super) open: usize,
    pub(super) redial_at: Ticks,
    /// Requests in flight on all connections.
    pub(super) in_flight: usize,
    pub(super) started: Ticks,
    pub(super) cpu_at_start: Duration,
    pub(super) last_reply: Ticks,
    /// When the server last took or sent anything: with large values, long before a reply is whole.
    pub(super) last_sign: Ticks,
    /// Since when no connection has been open, while they are opened again.
    pub(super) alone_since: Option<Ticks>,
    /// The server has been silent for too long.
    pub(super) is_stalled: bool,
}

/// What the poller knows a connection by.
pub(super) fn token(index: usize, generation: u32) -> u64 {
    index as u64 | u64::from(generation) << 32
}
