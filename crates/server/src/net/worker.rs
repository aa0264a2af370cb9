//! One worker: an event loop that runs every command to completion on the thread that read it.
//!
//! A turn is seven verbs: *wait, read, parse, execute, commit, reply, maintain*. Connections that have
//! something to say are read in groups small enough to stay in the cache; all requests of a group are parsed
//! and their keys' buckets, then entries, prefetched before the first of them runs; each connection gets its
//! replies with one send.
//!
//! Budget of a pipelined GET or SET: no allocation, no system call, no lock that waits (two workers rarely
//! want the same of a thousand shards), one miss for the bucket and one for the entry, both already under
//! way.
//!
//! Not here: the meaning of a request (`command`), reading and sending bytes (`connection`, `sys`), sending
//! later than the group ([`sending`]), and work without a request ([`upkeep`]).

mod ahead;
mod bulk;
mod closing;
mod reading;
mod room;
mod sending;
mod upkeep;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use ferrite_log::Lsn;
use keyspace::INLINE_VALUE_MAX;
use resp::request::{Limits, Span};
use sys::poller::{Event, Poller};
use sys::process::ThreadId;
use sys::socket::Socket;

use super::ahead::REQUESTS_MIN;
use super::batch::Batch;
use super::connection::{Connection, State};
use super::connections::Connections;
use super::expiring::Expiring;
use super::fetching::Reads;
use super::lane::{Parsing, Source};
use super::outside::Outside;
use super::turn_clock::TurnClock;
use super::waits::Deadlines;
use super::work::Waiting;
use crate::command::session::Session;
use crate::command::{Caller, Table, table};
use crate::config::Setting;
use crate::limits::{
    CONNECTION_BYTES, FLUSH_BYTES, GROUP_BYTES, OUTPUT_KEEP_BYTES, OUTSIDE_WAIT, READ_BYTES,
    ROOM_RETRY_MS, ROOM_TRIES, SCRATCH_BYTES, SEND_TURN_BYTES,
};
use crate::metrics::WorkerStats;
use crate::observe::removals;
use crate::observe::tracking::Sweep;
use crate::pubsub::begin_worker;
use crate::server::Server;
use crate::shared::Message;
use crate::shared::clients::{Client, status};
use bulk::Bulk;

/// The longest a worker sleeps, which is how often it looks after itself at least.
const LONGEST_WAIT_MS: i64 = 1000;

/// The token of a worker's own waker.
pub(super) const WAKER: u64 = u64::MAX;

/// See the module.
pub(crate) struct Worker {
    pub(crate) server: &'static Server,
    pub(crate) number: usize,
    pub(crate) caller: Caller,
    pub(crate) stats: &'static WorkerStats,
    pub(crate) table: &'static Table,
    pub(crate) connections: Connections,
    pub(crate) batch: Batch,
    pub(crate) limits: Limits,
    pub(crate) poller: Poller,
    pub(crate) scratch: Box<[u8]>,
    /// When the time is up of connections that wait for what they asked for.
    pub(crate) deadlines: Deadlines,
    /// Connections that wait until the log is durable up to somewhere.
    pub(crate) disk_waits: BTreeSet<(Lsn, u64)>,
    /// Connections that are held back: by CLIENT PAUSE, or because they publish faster than others can be
    /// told.
    pub(crate) paused: Vec<u64>,
    /// How many of these have ended, about.
    paused_gone: usize,
    /// Connections that wait for commands which take long.
    pub(crate) waiting: Waiting,
    pub(crate) bulk: Bulk,
    /// Connections that have something to run which was read before.
    pub(crate) ready: Vec<u64>,
    next_cron: i64,
    pub(crate) next_expire: i64,
    next_pack: i64,
    /// How many of its shards the last round of packing has passed.
    packed: usize,
    pub(crate) expiring: Expiring,
    /// Which log the caller's journal leads into, as [`crate::persistence::Persistence::current`] says.
    pub(crate) log: u64,
    /// How far it has got with removing what connections that have ended had read.
    pub(crate) sweep: Sweep,
    /// Values that the poller reads.
    pub(crate) reads: Reads,
    /// State while scripts keep the worker from the data.
    pub(crate) outside: Outside,
    /// Connections whose replies wait until what is below a position in the log is durable, in that order.
    pub(crate) held: VecDeque<(Lsn, u64)>,
}

impl Worker {
    /// Builds the worker; the thread that runs it calls this.
    pub(crate) fn new(
        server: &'static Server,
        number: usize,
        mut poller: Poller,
    ) -> std::io::Result<Worker> {
        let handle = &server.workers[number];
        poller.add_waker(handle.waker(), WAKER)?;
        Ok(Worker {
            server,
            number,
            caller: Caller::new(server, number, &handle.stats),
            stats: &handle.stats,
            table: table(),
            connections: Connections::default(),
            batch: Batch::default(),
            limits: Limits::default(),
            poller,
            scratch: vec![0; SCRATCH_BYTES].into_boxed_slice(),
            deadlines: Deadlines::default(),
            disk_waits: BTreeSet::new(),
            paused: Vec::new(),
            paused_gone: 0,
            waiting: Waiting::default(),
            bulk: Bulk::default(),
            ready: Vec::new(),
            next_cron: 0,
            next_expire: 0,
            next_pack: 0,
            packed: 0,
            expiring: Expiring::default(),
            log: 0,
            sweep: Sweep::default(),
            reads: Reads::default(),
            outside: Outside::default(),
            held: VecDeque::new(),
        })
    }

    /// Runs until the server shuts down.
    // `scripts/instructions` finds the worker by this name.
    #[inline(never)]
    pub(crate) fn run(mut self) {
        begin_worker(self.number);
        self.stats.thread.get_or_init(ThreadId::current);
        let mut events = Vec::with_capacity(256);
        let mut turn_clock = TurnClock::default();
        while !self.server.is_shutting_down() {
            self.waiting.give_way();
            self.wait(&mut events);
            turn_clock.begin_turn(self.stats);
            self.turn(&events);
            turn_clock.end_turn(self.stats);
        }
        self.end();
    }

    /// Sleeps until there is something to do.
    fn wait(&mut self, events: &mut Vec<Event>) {
        let timeout = self.timeout();
        // Results of the disk and of other threads do not wait for requests.
        let waited = match self.held.is_empty() && self.disk_waits.is_empty() {
            true => self.poller.gather(events, Some(timeout)),
            false => self.poller.wait(events, Some(timeout)),
        };
        if let Err(error) = waited {
            // Nothing a connection does can cause this; without a poller the worker can't go on.
            log::error!("worker {}: waiting for events failed: {error}", self.number);
            self.server.begin_shutdown();
        }
    }

    fn timeout(&self) -> Duration {
        if self.is_outside() {
            return OUTSIDE_WAIT;
        }
        if self.caller.listeners.anybody_waits()
            || self.waiting.is_busy()
            || !self.ready.is_empty()
            || removals::any()
            || self.sweep.goes_on()
            || !self.waits_for_disk()
        {
            return Duration::ZERO;
        }
        let mut until = self.next_cron.min(self.next_pack);
        if self.server.keyspace.has_volatile() {
            until = until.min(self.next_expire);
        }
        if let Some(deadline) = self.deadlines.first() {
            until = until.min(deadline);
        }
        if !self.paused.is_empty() {
            if let Some((end, _)) = self.server.pause.until(self.caller.now) {
                until = until.min(end + 1);
            } else {
                // A connection that is held back may wait for room, even if only its own need makes
                // memory short.
                until = until.min(self.caller.now + ROOM_RETRY_MS);
            }
        }
        Duration::from_millis((until - sys::clock::realtime_ms()).clamp(0, LONGEST_WAIT_MS) as u64)
    }

    /// Everything between two waits.
    fn turn(&mut self, events: &[Event]) {
        if !self.enter() {
            return self.stay_outside(events);
        }
        if self.server.is_shutting_down() {
            // The last snapshot was written while this worker was kept out: nothing may change any more.
            self.caller.turn.leave();
            return;
        }
        self.follow_log();
        self.caller.now = sys::clock::realtime_ms();
        self.stats.turns.add(1);
        self.limits.max_bulk_len = self.server.settings.int(Setting::ProtoMaxBulkLen) as usize;
        let mut used = 0;
        for event in events {
            if event.token == WAKER {
                self.take_messages();
                continue;
            }
            let resumed =
                event.writable && !self.puts_off(event.token) && self.write_more(event.token);
            if (event.readable || event.hangup) && !resumed {
                used += self.read(event.token, used);
            }
            if event.hangup || event.finished {
                self.peer_ended(event);
            }
            if used >= GROUP_BYTES {
                self.run_group();
                used = 0;
            }
        }
        if !self.ready.is_empty() {
            self.go_on_with_ready(used);
        }
        self.take_reads();
        self.run_group();
        self.move_bulk();
        self.resume_paused();
        self.end_waits();
        self.work_on();
        self.release_held();
        self.maintain();
        self.post();
        self.bound_clients();
        self.server.end_making_room(self.number);
        if let Some(journal) = &self.caller.journal {
            journal.nudge();
        }
        self.caller.turn.leave();
        self.begin_errand();
    }

    /// Runs the requests of all lanes and sends their replies.
    pub(crate) fn run_group(&mut self) {
        if self.batch.lanes.is_empty() {
            return;
        }
        while self.parse() {
            self.execute();
            self.post_early();
            if self.caller.output.bytes.len() > FLUSH_BYTES || self.caller.output.large.len() > 64 {
                self.reply();
            }
        }
        self.reply();
        for at in 0..self.batch.lanes.len() {
            self.finish(at);
        }
        self.batch.lanes.clear();
        self.batch.at = 0;
        if self.caller.output.bytes.capacity() > OUTPUT_KEEP_BYTES {
            self.caller.output.bytes = Vec::new();
        }
    }

    /// Parses the next window of requests and starts loading what they need. Returns whether there are any.
    fn parse(&mut self) -> bool {
        let Worker {
            batch,
            connections,
            scratch,
            caller,
            server,
            table,
            limits,
            stats,
            outside,
            ..
        } = self;
        let is_any = batch.parse_window(&mut Parsing {
            connections,
            stats,
            scratch,
            limits,
            table,
            server,
            keyspace: &server.keyspace,
            turn: &caller.turn,
            is_outside: outside.is_outside(),
        });
        if self.batch.requests.len() >= REQUESTS_MIN && !self.is_outside() {
            self.prefetch_items();
        }
        is_any
    }

    /// Starts loading the items that the window's requests name. Not a part of [`Worker::parse`]: that keeps
    /// in registers what is given away here by its address.
    #[inline(never)]
    fn prefetch_items(&mut self) {
        self.batch.prefetch_items(&Parsing {
            connections: &mut self.connections,
            stats: self.stats,
            scratch: &mut self.scratch,
            limits: &self.limits,
            table: self.table,
            server: self.server,
            keyspace: &self.server.keyspace,
            turn: &self.caller.turn,
            is_outside: false,
        });
    }

    /// Makes what the group did durable, then sends each lane's replies.
    pub(crate) fn reply(&mut self) {
        // A reply about a change comes after the invalidations of that change.
        self.server.observers.tracking.broadcast(self.server);
        let waits_for = match self.is_outside() {
            // Nothing was written or read, and the log may be with the errand.
            true => None,
            false => self.commit(),
        };
        let mut is_left = false;
        for at in 0..self.batch.lanes.len() {
            let lane = &mut self.batch.lanes[at];
            let (token, from, until) = (lane.token, lane.output_from, lane.output_until);
            lane.output_from = 0;
            lane.output_until = 0;
            if from == until {
                continue;
            }
            let Some(connection) = self.connections.get_mut(token) else {
                continue;
            };
            if waits_for.is_some() || connection.held.is_some() {
                self.hold(token, waits_for, from, until);
                is_left = true;
                continue;
            }
            match connection.send(&mut self.poller, &self.caller.output, from, until) {
                Ok(sent) => {
                    connection.note_sent(self.stats, sent);
                    if !connection.backlog.is_empty() {
                        connection.note_memory(self.stats);
                        self.slow_reader(token);
                        is_left = true;
                    }
                }
                Err(_) => self.close(token),
            }
        }
        self.caller.output.bytes.clear();
        self.caller.output.large.clear();
        if is_left {
            // It was not known that the output would not be sent.
            self.bound_clients();
            for _ in 0..ROOM_TRIES {
                if !(self.server.memory.is_exceeded() && self.make_room(0)) {
                    break;
                }
            }
        }
    }

    /// Puts away what a lane leaves: an incomplete request, requests that wait, a connection that ends.
    fn finish(&mut self, at: usize) {
        let lane = &self.batch.lanes[at];
        let (token, source, consumed, need) = (lane.token, lane.source, lane.at, lane.need);
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        match source {
            Source::Scratch { from, until } => {
                if from + consumed < until {
                    connection
                        .pending
                        .extend_from_slice(&self.scratch[from + consumed..until]);
                }
            }
            Source::Pending => {
                // Where one large request came, another may follow.
                let bytes = connection.need.max(connection.expected);
                let was_large = lane.large && need == 0 && bytes > INLINE_VALUE_MAX;
                connection.expected = if was_large { bytes } else { 0 };
                connection.consume(consumed);
            }
        }
        connection.need = need;
        if connection.session.closing {
            connection.begin_closing();
        }
        connection.note_input();
        if connection.parked.is_some() {
            self.note_wait(token);
        }
        if need > INLINE_VALUE_MAX && !self.is_outside() {
            self.begin_upload(token);
        }
        self.settle(token);
    }

    /// Resumes connections that were held back: by CLIENT PAUSE, or until workers have delivered published
    /// messages.
    fn resume_paused(&mut self) {
        if self.paused.is_empty()
            || self.server.pause.until(self.caller.now).is_some()
            || self.server.crowd.any()
        {
            return;
        }
        self.run_paused();
    }

    /// Lets connections that were held back try again.
    pub(crate) fn run_paused(&mut self) {
        self.paused_gone = 0;
        for token in std::mem::take(&mut self.paused) {
            let Some(connection) = self.connections.get_mut(token) else {
                continue;
            };
            connection.state = State::Open;
            connection.session.client.set_status(status::BLOCKED, false);
            connection
                .session
                .client
                .last_active_ms
                .store(self.caller.now, Relaxed);
            self.batch.add_pending(token);
        }
        self.run_group();
    }

    pub(crate) fn take_messages(&mut self) {
        let (server, number) = (self.server, self.number);
        let mut messages = std::mem::take(&mut self.outside.messages);
        messages.extend(server.workers[number].take_messages());
        let (lines, is_free) = server.monitors.take_lines(&server.crowd, number);
        if is_free {
            server.wake_workers();
        }
        for (token, line) in lines.all {
            self.deliver(token, &line);
        }
        self.reads
            .whole
            .append(&mut server.fetching.fetched.take(number));
        for upload in server.blobs.uploaded.take(number) {
            self.uploaded(&upload);
        }
        for ready in server.blobs.ready.take(number) {
            self.file_ready(&ready);
        }
        for message in messages {
            match message {
                Message::Accept(socket, client) => self.accept(socket, client),
                Message::Close(client) => self.close(client.token.load(Relaxed)),
                Message::GoOn(client, number, outcome) => {
                    self.go_on(client.token.load(Relaxed), number, outcome);
                }
                Message::Wake => {}
            }
        }
    }

    pub(crate) fn accept(&mut self, socket: Socket, client: Arc<Client>) {
        // A thousand at once are more than what is kept free. It is let in, whether there is room or not.
        let _ = self.finds_room(CONNECTION_BYTES);
        let session = Session::new(Arc::clone(&client), !self.server.needs_password());
        let token = self
            .connections
            .add(|token| Connection::new(socket, token, session));
        client.token.store(token, Relaxed);
        let connection = self.connections.get_mut(token).expect("it was just added");
        let watched = connection
            .transport
            .watch(&mut self.poller, token, connection.interest);
        if let Err(error) = &watched {
            log::warn!("cannot watch client {}: {error}", client.id);
        }
        // A kill before the connection had a token has sent no message.
        if watched.is_err() || client.killed.load(Relaxed) {
            self.close(token);
        }
    }

    /// Sends what can be sent and ends all connections.
    fn end(&mut self) {
        self.wait_for_errand();
        self.caller.turn.enter();
        self.take_messages();
        self.take_reads();
        self.run_group();
        self.caller.turn.leave();
        self.end_journal();
        for token in self.connections.tokens() {
            if let Some(connection) = self.connections.get_mut(token) {
                // A client that doesn't read now doesn't hold up the end.
                let _ = connection.flush(&mut self.poller, SEND_TURN_BYTES);
            }
            self.close(token);
        }
    }
}

const _: () = assert!(GROUP_BYTES + READ_BYTES <= SCRATCH_BYTES && size_of::<Span>() <= 16);
