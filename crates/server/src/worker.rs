//! One worker: an event loop that runs every command to completion on the thread that read it.
//!
//! A turn is seven verbs: *wait, read, parse, execute, commit, reply, maintain*. Connections that have something
//! to say are read in groups small enough to stay in the cache; all requests of a group are parsed and
//! their keys' buckets, then entries, prefetched before the first of them runs; each
//! connection gets its replies with one send.
//!
//! Budget of a pipelined GET or SET: no allocation, no system call, no lock that waits (two workers rarely want the
//! same of a thousand shards), one miss for the bucket and one for the entry, both already under way.
//!
//! What is not here: what a request means (`command`), how its bytes are read and sent (`connection`, `sys`).

use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use ferrite_log::Lsn;
use keyspace::{INLINE_VALUE_MAX, ShardId, Turn};
use resp::request::{Limits, Span};
use sys::poller::{Event, Poller};
use sys::process::ThreadId;
use sys::socket::Socket;

use crate::batch::{Batch, Lane, Source};
use crate::blocked::Deadlines;
use crate::clients::{Client, status};
use crate::command::{Output, Table, table};
use crate::config::Setting;
use crate::connection::{Connection, State};
use crate::connections::Connections;
use crate::expiring::Expiring;
use crate::journal::Journal;
use crate::limits::{
    EXPIRE_MS, FLUSH_BYTES, GROUP_BYTES, OUTPUT_KEEP_BYTES, PACK_BUSY_MS, PACK_IDLE_MS, PACK_NS,
    PACK_SHARE, READ_AHEAD_BYTES, READ_BYTES, READ_MIN_BYTES, ROOM_RETRY_MS, SCRATCH_BYTES,
};
use crate::metrics::WorkerStats;
use crate::pace::Pace;
use crate::pubsub::{Listeners, begin_worker};
use crate::server::{Message, Server};
use crate::session::{ReplyMode, Session};
use crate::slow::Waiting;
use crate::transaction::Spares;

/// The longest a worker sleeps, which is how often it looks after itself at least.
const LONGEST_WAIT_MS: i64 = 1000;

/// The token of a worker's own waker.
const WAKER: u64 = u64::MAX;

/// See the module.
pub(crate) struct Worker {
    pub(crate) server: &'static Server,
    pub(crate) number: usize,
    pub(crate) turn: Turn<'static>,
    pub(crate) stats: &'static WorkerStats,
    pub(crate) table: &'static Table,
    /// The time of this turn (Unix, ms).
    pub(crate) now: i64,
    pub(crate) connections: Connections,
    pub(crate) batch: Batch,
    pub(crate) output: Output,
    pub(crate) limits: Limits,
    /// The connections that may be told something they did not ask for.
    pub(crate) listeners: Listeners,
    pub(crate) poller: Poller,
    pub(crate) scratch: Box<[u8]>,
    /// When the time is up of connections that wait for what they asked for.
    pub(crate) deadlines: Deadlines,
    /// Connections that are held back: by CLIENT PAUSE, or because they publish faster than others can be told.
    pub(crate) paused: Vec<u64>,
    /// Connections that wait for commands which take long.
    pub(crate) waiting: Waiting,
    /// Transactions that ended, for those that begin.
    pub(crate) spares: Spares,
    next_cron: i64,
    pub(crate) next_expire: i64,
    next_pack: i64,
    /// How many of its shards the last round of packing has passed.
    packed: usize,
    pub(crate) expiring: Expiring,
    /// The way into the log; none without a log, and until it is loaded.
    pub(crate) journal: Option<Journal>,
    /// Which log that is, as [`crate::persistence::Persistence::current`] says.
    pub(crate) log: u64,
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
            turn: server.keyspace.turns().register(),
            stats: &handle.stats,
            table: table(),
            now: sys::clock::realtime_ms(),
            connections: Connections::default(),
            batch: Batch::default(),
            output: Output::default(),
            limits: Limits::default(),
            listeners: Listeners::new(number),
            poller,
            scratch: vec![0; SCRATCH_BYTES].into_boxed_slice(),
            deadlines: Deadlines::default(),
            paused: Vec::new(),
            waiting: Waiting::default(),
            spares: Spares::default(),
            next_cron: 0,
            next_expire: 0,
            next_pack: 0,
            packed: 0,
            expiring: Expiring::default(),
            journal: None,
            log: 0,
            held: VecDeque::new(),
        })
    }

    /// Runs until the server shuts down.
    pub(crate) fn run(mut self) {
        begin_worker(self.number);
        self.stats.thread.get_or_init(ThreadId::current);
        let mut events = Vec::with_capacity(256);
        let mut pace = Pace::default();
        while !self.server.is_shutting_down() {
            self.wait(&mut events);
            pace.begin_turn(self.stats);
            self.turn(&events);
            pace.end_turn(self.stats);
        }
        self.end();
    }

    /// Sleeps until there is something to do.
    fn wait(&mut self, events: &mut Vec<Event>) {
        let timeout = self.timeout();
        if let Err(error) = self.poller.wait(events, Some(timeout)) {
            // Nothing a connection does can cause this; without a poller the worker can't go on.
            log::error!("worker {}: waiting for events failed: {error}", self.number);
            self.server.begin_shutdown();
        }
    }

    fn timeout(&self) -> Duration {
        if self.listeners.anybody_waits() || self.waiting.is_busy() {
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
            if let Some((end, _)) = self.server.pause.until(self.now) {
                until = until.min(end + 1);
            } else if self.server.memory.is_near() {
                // Who is held back may wait for room.
                until = until.min(self.now + ROOM_RETRY_MS);
            }
            until = until.min(self.ask_disk());
        }
        Duration::from_millis((until - sys::clock::realtime_ms()).clamp(0, LONGEST_WAIT_MS) as u64)
    }

    /// Everything between two waits.
    fn turn(&mut self, events: &[Event]) {
        self.turn.enter();
        if self.server.is_shutting_down() {
            // The last snapshot was written while this worker was kept out: nothing may change any more.
            self.turn.leave();
            return;
        }
        self.follow_log();
        self.now = sys::clock::realtime_ms();
        self.stats.turns.add(1);
        self.limits.max_bulk_len = self.server.settings.int(Setting::ProtoMaxBulkLen) as usize;
        let mut used = 0;
        for event in events {
            if event.token == WAKER {
                self.take_messages();
                continue;
            }
            let resumed = event.writable && self.write_more(event.token);
            if (event.readable || event.hangup) && !resumed {
                used += self.read(event.token, used);
            }
            if event.hangup {
                self.hang_up(event.token);
            }
            if used >= GROUP_BYTES {
                self.run_group();
                used = 0;
            }
        }
        self.run_group();
        self.resume_paused();
        self.end_waits();
        self.work_on();
        self.release_held();
        self.maintain();
        self.post();
        self.server.bound_clients();
        self.turn.leave();
    }

    /// Reads what a connection has sent and makes a lane of it. Returns the bytes of scratch it took.
    fn read(&mut self, token: u64, used: usize) -> usize {
        let Some(connection) = self.connections.get_mut(token) else {
            return 0;
        };
        if connection.state != State::Open || !connection.backlog.is_empty() {
            return 0;
        }
        if connection.pending.is_empty() && connection.expected == 0 {
            let until = (used + READ_BYTES).min(SCRATCH_BYTES);
            match self
                .poller
                .recv(connection.socket.as_fd(), &mut self.scratch[used..until])
            {
                Ok(0) => self.close(token),
                Ok(count) => {
                    connection
                        .session
                        .client
                        .last_active_ms
                        .store(self.now, Relaxed);
                    self.stats.input_bytes.add(count as u64);
                    self.batch.lanes.push(Lane::new(
                        token,
                        Source::Scratch {
                            from: used,
                            until: used + count,
                        },
                    ));
                    return count;
                }
                Err(error) => self.read_failed(token, &error),
            }
            return 0;
        }
        let need = connection.need.max(connection.expected);
        if self.server.memory.is_near() {
            let more = need.saturating_sub(connection.pending.capacity());
            self.make_room(more.min(READ_AHEAD_BYTES));
        }
        let Some(connection) = self.connections.get_mut(token) else {
            return 0;
        };
        reserve(&mut connection.pending, need);
        match self
            .poller
            .recv_spare(connection.socket.as_fd(), &mut connection.pending)
        {
            Ok(0) => self.close(token),
            Ok(count) => {
                connection
                    .session
                    .client
                    .last_active_ms
                    .store(self.now, Relaxed);
                connection.note_input();
                connection.note_memory(self.stats);
                self.stats.input_bytes.add(count as u64);
                let limit = self.server.settings.int(Setting::ClientQueryBufferLimit) as usize;
                if connection.pending.len() > limit {
                    log::warn!(
                        "closing client {}: its request grew beyond client-query-buffer-limit",
                        connection.session.client.id
                    );
                    self.server
                        .totals
                        .query_limit_disconnects
                        .fetch_add(1, Relaxed);
                    self.close(token);
                } else if connection.pending.len() >= connection.need {
                    self.batch.lanes.push(Lane::new(token, Source::Pending));
                }
            }
            Err(error) => {
                if connection.pending.is_empty() {
                    // Nothing came for the buffer that a large request was expected in.
                    connection.pending = Vec::new();
                    connection.expected = 0;
                }
                self.read_failed(token, &error);
            }
        }
        0
    }

    /// Both directions are closed: a connection that isn't being read from would never find out.
    fn hang_up(&mut self, token: u64) {
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        if connection.state != State::Open || !connection.backlog.is_empty() {
            self.close(token);
        }
    }

    fn read_failed(&mut self, token: u64, error: &std::io::Error) {
        if !matches!(
            error.kind(),
            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted
        ) {
            self.close(token);
        }
    }

    /// Runs the requests of all lanes and sends their replies.
    pub(crate) fn run_group(&mut self) {
        if self.batch.lanes.is_empty() {
            return;
        }
        while self.parse() {
            self.execute();
            self.post_early();
            if self.output.bytes.len() > FLUSH_BYTES || self.output.large.len() > 64 {
                self.reply();
            }
        }
        self.reply();
        for at in 0..self.batch.lanes.len() {
            self.finish(at);
        }
        self.batch.lanes.clear();
        self.batch.at = 0;
        if self.output.bytes.capacity() > OUTPUT_KEEP_BYTES {
            self.output.bytes = Vec::new();
        }
    }

    /// Parses the next window of requests and starts loading what they need. Returns whether there are any.
    fn parse(&mut self) -> bool {
        let Worker {
            batch,
            connections,
            scratch,
            turn,
            server,
            table,
            limits,
            ..
        } = self;
        batch.parse_window(&mut Parsing {
            connections,
            scratch,
            limits,
            table,
            server,
            keyspace: &server.keyspace,
            turn,
        })
    }

    /// Makes what the group did durable, then sends each lane's replies.
    pub(crate) fn reply(&mut self) {
        // Who learns that a change is done may rely on others having been told.
        self.server.observers.tracking.broadcast(self.server);
        let waits_for = self.commit();
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
                continue;
            }
            match connection.send(&mut self.poller, &self.output, from, until) {
                Ok(sent) => {
                    self.stats.output_bytes.add(sent as u64);
                    if !connection.backlog.is_empty() {
                        self.slow_reader(token);
                    }
                }
                Err(_) => self.close(token),
            }
        }
        self.output.bytes.clear();
        self.output.large.clear();
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
            connection.state = State::Closing;
            connection.session.client.set_status(status::CLOSING, true);
            connection.pending = Vec::new();
        }
        connection.note_input();
        if connection.parked.is_some() {
            self.note_deadline(token);
        }
        self.settle(token);
    }

    /// Makes the poller watch for what the connection waits for; ends it when nothing is left.
    pub(crate) fn settle(&mut self, token: u64) {
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        let ended = connection.state == State::Closing && connection.backlog.is_empty();
        if ended || connection.session.client.killed.load(Relaxed) {
            self.close(token);
            return;
        }
        connection.note_output();
        connection.note_memory(self.stats);
        let is_paused =
            connection.state == State::Paused && self.server.pause.until(self.now).is_some();
        let wanted = connection.wanted_interest(is_paused);
        if wanted != connection.interest {
            connection.set_interest(wanted);
            if self
                .poller
                .modify(connection.socket.as_fd(), token, wanted)
                .is_err()
            {
                self.close(token);
            }
        }
    }

    /// Sends what waits, and goes on with requests that waited for that. Returns whether there are any.
    pub(crate) fn write_more(&mut self, token: u64) -> bool {
        let Some(connection) = self.connections.get_mut(token) else {
            return false;
        };
        if connection.held.is_some() {
            return false;
        }
        match connection.flush(&mut self.poller) {
            Ok(sent) => {
                self.stats.output_bytes.add(sent as u64);
                if sent > 0 {
                    // Who takes its time to read much is not idle.
                    connection
                        .session
                        .client
                        .last_active_ms
                        .store(self.now, Relaxed);
                }
                if connection.backlog.is_empty() {
                    connection.over_soft_since = None;
                    if connection.owes_news {
                        connection.catch_up();
                        return self.write_more(token);
                    }
                    if connection.state == State::Open
                        && !connection.pending.is_empty()
                        && connection.need == 0
                    {
                        self.batch.lanes.push(Lane::new(token, Source::Pending));
                        return true;
                    }
                }
                self.settle(token);
            }
            Err(_) => self.close(token),
        }
        false
    }

    /// A client that does not read its replies: drop it when it is over its limit.
    pub(crate) fn slow_reader(&mut self, token: u64) {
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        let limit = self
            .server
            .settings
            .output_limits(connection.session.output_class());
        let waiting = connection.backlog.len() as u64;
        if limit.soft == 0 || waiting < limit.soft {
            connection.over_soft_since = None;
        } else if connection.over_soft_since.is_none() {
            connection.over_soft_since = Some(self.now);
        }
        let since = connection.over_soft_since;
        let too_long =
            since.is_some_and(|since| self.now - since > limit.soft_seconds as i64 * 1000);
        if too_long || (limit.hard > 0 && waiting >= limit.hard) {
            log::warn!(
                "closing client {}: it leaves {waiting} bytes unread",
                connection.session.client.id
            );
            self.server
                .totals
                .output_limit_disconnects
                .fetch_add(1, Relaxed);
            self.close(token);
        }
    }

    /// Goes on with connections that were held back: by CLIENT PAUSE, or until workers have caught up with what is published.
    fn resume_paused(&mut self) {
        if self.paused.is_empty()
            || self.server.pause.until(self.now).is_some()
            || self.server.crowd.any()
        {
            return;
        }
        for token in std::mem::take(&mut self.paused) {
            let Some(connection) = self.connections.get_mut(token) else {
                continue;
            };
            connection.state = State::Open;
            connection.session.client.set_status(status::BLOCKED, false);
            self.batch.lanes.push(Lane::new(token, Source::Pending));
        }
        self.run_group();
    }

    fn take_messages(&mut self) {
        for message in self.server.workers[self.number].take_messages() {
            match message {
                Message::Accept(socket, client) => self.accept(socket, client),
                Message::Deliver(token, bytes) => self.deliver(token, &bytes),
                Message::Close(client) => self.close(client.token.load(Relaxed)),
                Message::GoOn(client, number, outcome) => {
                    self.go_on(client.token.load(Relaxed), number, outcome);
                }
                Message::Wake => {}
            }
        }
    }

    fn accept(&mut self, socket: Socket, client: Arc<Client>) {
        let session = Session::new(Arc::clone(&client), !self.server.needs_password());
        let token = self
            .connections
            .add(|token| Connection::new(socket, token, session));
        client.token.store(token, Relaxed);
        let connection = self.connections.get_mut(token).expect("it was just added");
        let watched = self
            .poller
            .add(connection.socket.as_fd(), token, connection.interest);
        if let Err(error) = &watched {
            log::warn!("cannot watch client {}: {error}", client.id);
        }
        // Whoever killed it before it had a token has sent for nobody.
        if watched.is_err() || client.killed.load(Relaxed) {
            self.close(token);
        }
    }

    /// Sends a line to a connection that monitors. One that has stopped since is not to get it.
    fn deliver(&mut self, token: u64, bytes: &[u8]) {
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        let session = &connection.session;
        if !session.monitor
            || session.reply_mode != ReplyMode::On
            || connection.state == State::Closing
        {
            return;
        }
        let was_idle = connection.backlog.is_empty();
        connection.backlog.push_bytes(bytes);
        if was_idle {
            match connection.flush(&mut self.poller) {
                Ok(sent) => self.stats.output_bytes.add(sent as u64),
                Err(_) => return self.close(token),
            }
        }
        // Otherwise the poller will say when there is room. Until then this is not the place to send: whatever waits for
        // the backlog to run empty goes on in `write_more`.
        if !connection.backlog.is_empty() {
            self.slow_reader(token);
        }
        self.settle(token);
    }

    /// Ends a connection.
    pub(crate) fn close(&mut self, token: u64) {
        let Some(mut connection) = self.connections.remove(token) else {
            return;
        };
        // The socket closes with the connection, which also ends the poller's interest; removing it first keeps
        // pollers that don't notice out of trouble.
        let _ = self.poller.remove(connection.socket.as_fd());
        if connection.session.monitor {
            self.server.monitors.remove(self.number, token);
        }
        connection.session.end_tracking(self.server);
        if self.listeners.knows(token) {
            self.listeners.dismiss(self.server, token);
        }
        connection.session.client.set_status(status::ENDED, true);
        connection.forget_memory(self.stats);
        connection.session.unwatch(self.server);
        if let Some(parked) = &connection.parked {
            self.abandon(token, parked, &connection.session.client);
        }
        if connection.state == State::Paused {
            self.paused.retain(|&paused| paused != token);
        }
        self.server.clients.remove(connection.session.client.id);
        self.server.workers[self.number]
            .connections
            .fetch_sub(1, Relaxed);
    }

    /// Slices of work that no request asked for.
    fn maintain(&mut self) {
        if self.is_due(self.next_expire) {
            self.next_expire = self.now + EXPIRE_MS;
            // CLIENT PAUSE promises that data stays as it is.
            let paused = self.server.pause.until(self.now).is_some();
            if self.server.active_expire.load(Relaxed)
                && self.server.keyspace.has_volatile()
                && !paused
                && !self.server.crowd.any()
                && !self.server.is_loading()
            {
                self.expire();
            }
        }
        if self.is_due(self.next_pack) {
            self.pack();
        }
        if self.is_due(self.next_cron) {
            self.next_cron = self.now + 1000 / self.server.settings.int(Setting::Hz);
            self.cron();
        }
    }

    /// Whether a time has come. One that is further away than any that was planned was planned before somebody set
    /// the clock back.
    fn is_due(&self, at: i64) -> bool {
        self.now >= at || at - self.now > LONGEST_WAIT_MS
    }

    /// The shards this worker looks after.
    pub(crate) fn own_shards(&self) -> impl Iterator<Item = ShardId> + Clone + use<> {
        (self.number..self.server.keyspace.shards())
            .step_by(self.server.workers.len())
            .map(ShardId)
    }

    /// Moves entries of own shards together where values that changed their size have left holes, for a short while.
    fn pack(&mut self) {
        let began = sys::clock::ticks();
        let own = self.own_shards().count();
        self.next_pack = self.now + PACK_IDLE_MS;
        for db in 0..self.server.keyspace.databases() {
            let Some(database) = self.server.keyspace.existing(&self.turn, db) else {
                continue;
            };
            // Where the last round ended, so that every shard has its turn.
            let from = self.packed;
            for shard in self.own_shards().cycle().skip(from).take(own) {
                while database.lock_shard(shard, self.now).pack(PACK_SHARE) {
                    let spent = sys::clock::ticks().saturating_sub(began);
                    if sys::clock::ticks_to_ns(spent) > PACK_NS {
                        self.next_pack = self.now + PACK_BUSY_MS;
                        return;
                    }
                }
                self.packed = (self.packed + 1) % own;
            }
        }
    }

    /// `hz` times a second: idle clients, slow readers, tables that are still draining, figures for INFO.
    fn cron(&mut self) {
        for db in 0..self.server.keyspace.databases() {
            let Some(database) = self.server.keyspace.existing(&self.turn, db) else {
                continue;
            };
            for shard in self.own_shards() {
                database.lock_shard(shard, self.now).maintain();
            }
        }
        let timeout_ms = self.server.settings.int(Setting::Timeout) * 1000;
        let (mut buffers, mut idle, mut slow) = (0, Vec::new(), Vec::new());
        for connection in self.connections.iter() {
            buffers += connection.buffer_bytes();
            let quiet = self.now - connection.session.client.last_active_ms.load(Relaxed);
            let spared = connection.session.monitor
                || matches!(
                    connection.state,
                    State::Paused | State::Parked | State::Working
                )
                || connection.session.client.has_status(status::PUBSUB);
            if timeout_ms > 0 && quiet > timeout_ms && !spared {
                idle.push(connection.token);
            }
            if !connection.backlog.is_empty() {
                slow.push(connection.token);
            }
        }
        self.stats.hot_keys.adapt();
        let own = self.output.bytes.capacity() + self.listeners.memory();
        self.stats
            .buffer_bytes
            .set((buffers + own + SCRATCH_BYTES) as u64);
        if self.server.memory.is_near() && self.make_room(0) {
            // There is more to do, whether commands come or not.
            self.next_cron = self.now + ROOM_RETRY_MS;
        }
        for token in idle {
            log::debug!("closing idle client");
            self.close(token);
        }
        for token in slow {
            self.slow_reader(token);
        }
    }

    /// Sends what can be sent and ends all connections.
    fn end(&mut self) {
        self.turn.enter();
        self.take_messages();
        self.run_group();
        self.turn.leave();
        self.end_journal();
        for token in self.connections.tokens() {
            if let Some(connection) = self.connections.get_mut(token) {
                // A client that doesn't read now doesn't hold up the end.
                let _ = connection.flush(&mut self.poller);
            }
            self.close(token);
        }
    }
}

/// What parsing needs of the worker.
pub(crate) struct Parsing<'a> {
    pub(crate) connections: &'a mut Connections,
    pub(crate) scratch: &'a mut [u8],
    pub(crate) limits: &'a Limits,
    pub(crate) table: &'static Table,
    pub(crate) server: &'static Server,
    pub(crate) keyspace: &'static keyspace::Keyspace,
    pub(crate) turn: &'a Turn<'static>,
}

/// Makes room for the rest of a request that takes `need` bytes in all, no further than
/// [`READ_AHEAD_BYTES`] or what has arrived already: a claim costs nothing until it is kept. A large request gets the room it
/// needs and no more, for its buffer may become a value.
fn reserve(pending: &mut Vec<u8>, need: usize) {
    let missing = need.saturating_sub(pending.len());
    let least = if need > INLINE_VALUE_MAX {
        1
    } else {
        READ_MIN_BYTES
    };
    let wanted = missing.clamp(least, pending.len().max(READ_AHEAD_BYTES));
    if pending.capacity() - pending.len() < wanted {
        pending.reserve_exact(wanted);
    }
}

const _: () = assert!(GROUP_BYTES + READ_BYTES <= SCRATCH_BYTES && size_of::<Span>() <= 16);
