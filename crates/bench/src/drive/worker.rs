//! A thread of the load: its connections, what it sends on them, and what it counts.
//!
//! One turn is `wait, answer, send`: what the poller reports is read and counted, then each connection
//! whose batch is answered gets the next (closed loop), or whatever the timetable says is due goes out
//! on the connections in turn (open loop).
//!
//! Invariants:
//! 1. Replies come in the order of requests, so the front of a client's queue is what is answered next.
//! 2. A request is counted once: when it is answered, or as lost when its connection breaks.
//! 3. The latency of a request counts from when its batch was sent; in the open loop from when it
//!    should have been sent; and where every batch has a connection of its own, from the beginning of
//!    the connection. It ends when the bytes that complete the reply have been received.
//!
//! Budget of the closed loop: one receive and one send per batch, no allocation.

mod nodes;
mod open_loop;

use super::clock::{self, Ticks, now};
use super::counts::Slice;
use super::plan::{Pace, Until};
use super::run::{Job, Message};
use super::schedule::Schedule;
use super::tally::{Sent, Tally, enqueue, stamp};
use crate::limits::{BATCH_BYTES, MAX_DIALING, READ_BYTES, REDIAL_PAUSE};
use crate::limits::{SLICE, SPIN_BEFORE_DUE};
use crate::load::outgoing::Outgoing;
use crate::load::workload::Source;
use crate::wire::cluster::Map;
use crate::wire::link::{Link, LinkError, Progress};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;
use sys::{Backend, Event, Poller};

/// One connection and what is under way on it.
#[derive(Debug, Default)]
struct Client {
    /// `None`: it has to be opened.
    link: Option<Link>,
    sent: VecDeque<Sent>,
    in_flight: usize,
    /// Requests that were sent since the connection was opened.
    sent_since_open: u64,
    /// How many replies the first request in flight still owes, if it has several.
    owed: u32,
    /// When the connection was begun.
    dialed_at: Ticks,
    /// Goes up with every connection, so that an event of an old one is known as such.
    generation: u32,
    /// The node of a cluster that it is connected to, and the one that it is to be.
    node: usize,
    next_node: usize,
}

impl Client {
    /// It is connected to another node than it should be.
    fn is_stale(&self) -> bool {
        self.node != self.next_node
    }
}

/// A thread of the load.
pub(crate) struct Worker<'a> {
    job: &'a Job<'a>,
    thread: usize,
    /// The nodes of the cluster, as far as they were heard of, and the number of that map.
    nodes: Option<Arc<Map>>,
    map_version: u32,
    /// Its first connection among those of all threads.
    first_client: usize,
    poller: Poller,
    clients: Vec<Client>,
    source: Source<'a>,
    schedule: Option<Schedule>,
    /// The connection whose turn it is in the open loop.
    turn: usize,
    out: Outgoing,
    input: Vec<u8>,
    slice: Slice,
    slice_ends: Ticks,
    reports: Sender<Message>,
    /// Connections that wait to be opened.
    closed: Vec<usize>,
    dialing: usize,
    open: usize,
    redial_at: Ticks,
    /// Requests in flight on all connections.
    in_flight: usize,
    started: Ticks,
    cpu_at_start: Duration,
    last_reply: Ticks,
    /// When the server last took or sent anything: with large values, long before a reply is whole.
    last_sign: Ticks,
    /// Since when no connection has been open, while they are opened again.
    alone_since: Option<Ticks>,
    /// The server has been silent for too long.
    is_stalled: bool,
}

/// The end of a thread.
#[derive(Clone, Debug)]
pub(crate) struct Finish {
    /// When the last reply came.
    pub(crate) last_reply: Ticks,
    /// Requests that were never answered.
    pub(crate) unanswered: u64,
    /// The processor time that the thread has used since all connections were open.
    pub(crate) cpu: Duration,
    /// How long that was.
    pub(crate) time: Duration,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(
        job: &'a Job<'a>,
        thread: usize,
        reports: Sender<Message>,
    ) -> Result<Worker<'a>, LinkError> {
        let place = job.place(thread);
        let mut clients = Vec::new();
        clients.resize_with(place.own_clients, Client::default);
        // Of each connection, or one that all connections of the thread share.
        let seeds = match job.plan.distinct_seeds {
            true => place.first_client..place.first_client + place.own_clients,
            false => thread..thread + 1,
        };
        let rng =
            |place: usize| fastrand::Rng::with_seed(job.plan.seed.wrapping_add(place as u64 + 1));
        let rngs = seeds.map(rng).collect();
        let mut worker = Worker {
            job,
            thread,
            nodes: None,
            map_version: 0,
            first_client: place.first_client,
            poller: Poller::new(Backend::Auto)?,
            closed: (0..clients.len()).rev().collect(),
            clients,
            source: Source::new(job.workload, job.data, &place, rngs),
            schedule: None,
            turn: 0,
            out: Outgoing::default(),
            input: vec![0; READ_BYTES],
            slice: job.new_slice(0),
            slice_ends: Ticks::MAX,
            reports,
            dialing: 0,
            open: 0,
            redial_at: 0,
            in_flight: 0,
            started: 0,
            cpu_at_start: Duration::ZERO,
            last_reply: 0,
            last_sign: 0,
            alone_since: None,
            is_stalled: false,
        };
        if let Some(cluster) = &job.cluster {
            let (map, version) = cluster.map();
            worker.take_map(map, version);
        }
        Ok(worker)
    }

    /// Opens all connections, waits for the others, and sends until the end.
    ///
    /// # Errors
    /// A connection cannot be opened, or broke and is not to be opened again.
    pub(crate) fn run(mut self) -> Result<Finish, LinkError> {
        let mut events = Vec::new();
        self.connect_all(&mut events)?;
        // Nobody listens any more only if the run was given up.
        let _ = self.reports.send(Message::Ready);
        let Some(start) = self.job.wait_for_start() else {
            return Ok(self.finish());
        };
        self.started = start;
        self.cpu_at_start = cpu_time();
        self.last_reply = start;
        self.last_sign = start;
        self.slice_ends = self.job.measure_from() + clock::ticks(SLICE);
        if let Pace::Open { rate, arrivals } = self.job.plan.pace {
            let batches = rate / f64::from(self.job.plan.pipeline);
            let turns = (self.thread, self.job.plan.threads);
            self.schedule = Some(Schedule::new(
                start,
                batches,
                arrivals,
                turns,
                self.job.plan.seed,
            ));
        } else {
            for index in 0..self.clients.len() {
                self.send_next(index, None)?;
            }
        }
        while !self.is_done() {
            let timeout = self.timeout();
            self.poller.wait(&mut events, Some(timeout))?;
            for event in &events {
                self.answer(*event)?;
            }
            if self.schedule.is_some() {
                self.send_due()?;
            }
            self.housekeeping()?;
        }
        Ok(self.finish())
    }

    fn finish(mut self) -> Finish {
        let unanswered = self.in_flight as u64;
        if !self.slice.is_empty() {
            self.hand_over();
        }
        let has_begun = self.started > 0;
        Finish {
            last_reply: self.last_reply,
            unanswered,
            cpu: cpu_time().saturating_sub(self.cpu_at_start),
            time: match has_begun {
                true => clock::between(self.started, now()),
                false => Duration::ZERO,
            },
        }
    }

    /// Nothing more is to be sent, and all is answered.
    fn is_done(&self) -> bool {
        if self.job.is_given_up() || self.is_stalled {
            return true;
        }
        self.in_flight == 0 && self.is_over(now())
    }

    fn is_over(&self, now: Ticks) -> bool {
        match self.job.plan.until {
            Until::Requests(_) => self.job.is_claimed(),
            Until::Time(_) => now >= self.job.until(),
        }
    }

    /// How long there is nothing to do if no reply comes.
    fn timeout(&self) -> Duration {
        let now = now();
        let mut next = self.slice_ends;
        if !self.closed.is_empty() {
            next = next.min(self.redial_at);
        }
        if let Until::Time(_) = self.job.plan.until
            && now < self.job.until()
        {
            next = next.min(self.job.until());
        }
        if let Some(schedule) = &self.schedule
            && !self.is_over(now)
        {
            let due = schedule.due().saturating_sub(clock::ticks(SPIN_BEFORE_DUE));
            next = next.min(due);
        }
        clock::between(now, next)
    }

    // Connections.

    fn connect_all(&mut self, events: &mut Vec<Event>) -> Result<(), LinkError> {
        let deadline = now() + clock::ticks(self.job.plan.timeout);
        while self.open < self.clients.len() && !self.job.is_given_up() {
            self.dial_some()?;
            self.poller.wait(events, Some(REDIAL_PAUSE))?;
            for event in events.iter() {
                self.answer(*event)?;
            }
            if now() > deadline {
                return Err(io::Error::from(io::ErrorKind::TimedOut).into());
            }
        }
        Ok(())
    }

    /// Begins as many connections as may be begun at a time.
    fn dial_some(&mut self) -> Result<(), LinkError> {
        while self.dialing < MAX_DIALING
            && let Some(index) = self.closed.pop()
        {
            let endpoint = self.endpoint(index);
            let client = &mut self.clients[index];
            client.generation += 1;
            client.dialed_at = now();
            let token = token(index, client.generation);
            match Link::dial(&mut self.poller, &endpoint, token) {
                Ok(link) => {
                    client.link = Some(link);
                    self.dialing += 1;
                }
                // No port or no room in the queue just now.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::AddrNotAvailable
                    ) =>
                {
                    self.closed.push(index);
                    self.redial_at = now() + clock::ticks(REDIAL_PAUSE);
                    return Ok(());
                }
                Err(error) => {
                    self.closed.push(index);
                    return self.survive(error.into());
                }
            }
        }
        Ok(())
    }

    /// Goes on after a connection was lost, if that is wanted and not for too long already.
    fn survive(&mut self, error: LinkError) -> Result<(), LinkError> {
        let patience = clock::ticks(self.job.plan.reconnect);
        let is_refusal = matches!(error, LinkError::Refused(_) | LinkError::NoReply(_));
        if patience == 0 || is_refusal || !self.job.has_started() {
            return Err(error);
        }
        let now = now();
        if self.open == 0 {
            let since = *self.alone_since.get_or_insert(now);
            if now - since > patience {
                return Err(error);
            }
        }
        self.redial_at = now + clock::ticks(REDIAL_PAUSE);
        Ok(())
    }

    /// Drops a connection and what was under way on it.
    fn lose(&mut self, index: usize, error: LinkError) -> Result<(), LinkError> {
        let client = &mut self.clients[index];
        let Some(link) = client.link.take() else {
            return Ok(());
        };
        if link.is_open() {
            self.open -= 1;
            self.slice.lost_connections += 1;
            self.slice.lost_requests += client.in_flight as u64;
        } else {
            self.dialing -= 1;
        }
        link.leave(&mut self.poller);
        self.in_flight -= client.in_flight;
        client.in_flight = 0;
        client.owed = 0;
        client.sent.clear();
        self.closed.push(index);
        // Another node may have its slots by now.
        self.doubt_map(now());
        self.survive(error)
    }

    // Replies.

    fn answer(&mut self, event: Event) -> Result<(), LinkError> {
        let index = (event.token & u64::from(u32::MAX)) as usize;
        if token(index, self.clients[index].generation) != event.token {
            return Ok(());
        }
        match self.advance(index, event) {
            Ok(()) => Ok(()),
            Err(error) => self.lose(index, error),
        }
    }

    #[inline]
    fn advance(&mut self, index: usize, event: Event) -> Result<(), LinkError> {
        let client = &mut self.clients[index];
        let Some(link) = &mut client.link else {
            return Ok(());
        };
        let greeting = (&self.job.greeting.0[..], self.job.greeting.1);
        let (poller, data) = (&mut self.poller, self.job.data);
        match link.advance(poller, event, greeting, data, &mut self.input)? {
            Progress::None => Ok(()),
            Progress::Opened => {
                self.dialing -= 1;
                self.open += 1;
                self.clients[index].sent_since_open = 0;
                self.alone_since = None;
                if self.job.has_started() && self.schedule.is_none() {
                    // Where every batch has a connection of its own, that is part of it.
                    let dialed_at = self.clients[index].dialed_at;
                    let at = (!self.job.plan.keep_alive).then_some(dialed_at);
                    self.send_next(index, at)?;
                }
                Ok(())
            }
            Progress::Open if event.readable || event.hangup => self.receive(index),
            Progress::Open => {
                // There was room for more of what had to wait.
                self.last_sign = now();
                Ok(())
            }
        }
    }

    fn receive(&mut self, index: usize) -> Result<(), LinkError> {
        let Client {
            link: Some(link),
            sent,
            in_flight,
            owed,
            node,
            ..
        } = &mut self.clients[index]
        else {
            return Ok(());
        };
        let node = self.nodes.is_some().then_some(*node);
        if let Some(node) = node {
            self.slice.reserve_node(node + 1);
        }
        let mut tally = Tally {
            node,
            is_moved: false,
            shapes: &self.job.workload.shapes,
            slice: &mut self.slice,
            sent,
            owed,
            answered: 0,
            unasked: false,
            refusal: None,
            shows_errors: self.job.plan.shows_errors,
            shown: None,
            now: 0,
            measure_from: self.job.measure_from(),
        };
        let count = link.receive(
            &mut self.poller,
            &mut self.input,
            &mut |kind, count, bytes| {
                tally.count(kind, count, bytes);
            },
        )?;
        if tally.unasked {
            return Err(LinkError::Refused(
                "the server sent more replies than it was asked for".into(),
            ));
        }
        if let Some(text) = tally.refusal {
            return Err(LinkError::Refused(text));
        }
        let (answered, now, shown) = (tally.answered, tally.now, tally.shown);
        let is_moved = tally.is_moved;
        if let Some(text) = shown
            && self.job.takes_error(now)
        {
            // Nobody listens any more only if the run was given up.
            let _ = self.reports.send(Message::ErrorReply(text));
        }
        *in_flight -= answered;
        self.in_flight -= answered;
        if is_moved {
            self.doubt_map(now);
        }
        if now >= self.job.measure_from() {
            self.slice.bytes_in += count as u64;
        }
        if answered > 0 {
            self.last_reply = now;
            self.last_sign = now;
        } else if count > 0 {
            self.last_sign = clock::now();
        }
        if self.clients[index].in_flight == 0 && answered > 0 {
            if self.is_spent(index) || !self.job.plan.keep_alive {
                self.hang_up(index);
            } else if self.schedule.is_none() {
                return self.send_next(index, None);
            }
        }
        Ok(())
    }

    /// A connection has sent as many requests as it may.
    #[inline]
    fn is_spent(&self, index: usize) -> bool {
        let interval = self.job.plan.reconnect_interval;
        let client = &self.clients[index];
        interval.is_some_and(|interval| client.sent_since_open >= interval) || client.is_stale()
    }

    /// How many requests a connection may send together.
    #[inline]
    fn batch(&self, index: usize) -> u32 {
        let pipeline = self.job.plan.pipeline;
        let Some(interval) = self.job.plan.reconnect_interval else {
            return pipeline;
        };
        let left = interval.saturating_sub(self.clients[index].sent_since_open);
        // At most the pipeline.
        left.min(u64::from(pipeline)) as u32
    }

    // Requests.

    /// Sends the next batch of the closed loop, if there is one. It counts as sent now, unless it
    /// began earlier.
    #[inline]
    fn send_next(&mut self, index: usize, at: Option<Ticks>) -> Result<(), LinkError> {
        let count = self.claim(self.batch(index), now());
        self.send_batch(index, count, at)
    }

    /// How many requests may be sent of those that are wanted.
    #[inline]
    fn claim(&self, wanted: u32, now: Ticks) -> u32 {
        match self.job.plan.until {
            Until::Time(_) if now >= self.job.until() => 0,
            Until::Requests(_) if now >= self.job.measure_from() => self.job.claim(wanted),
            // Warm-up goes on until its time is over.
            _ => wanted,
        }
    }

    /// Writes and sends so many requests. Without a moment to count from, that is when the first
    /// bytes are handed to the system; nothing else is in flight then.
    #[inline]
    fn send_batch(&mut self, index: usize, count: u32, at: Option<Ticks>) -> Result<(), LinkError> {
        let client = &mut self.clients[index];
        let Some(link) = &mut client.link else {
            return Ok(());
        };
        let token = token(index, client.generation);
        let mut at = at;
        let mut left = count;
        while left > 0 {
            let home = self.nodes.as_ref().map(|map| &map.nodes[client.node].home);
            let shape = self.source.write(&mut self.out, index, home) as u32;
            enqueue(&mut client.sent, shape, at.unwrap_or(0));
            left -= 1;
            // Behind a socket that is full everything joins the backlog.
            if left == 0 || (self.out.bytes.len() >= BATCH_BYTES && !link.is_blocked()) {
                let at = *at.get_or_insert_with(|| stamp(&mut client.sent));
                if at >= self.job.measure_from() {
                    self.slice.bytes_out += self.out.total();
                }
                link.send(&mut self.poller, token, &mut self.out, self.job.data)?;
            }
        }
        client.in_flight += count as usize;
        client.sent_since_open += u64::from(count);
        self.in_flight += count as usize;
        Ok(())
    }

    // What is neither.

    fn housekeeping(&mut self) -> Result<(), LinkError> {
        self.look_at_map();
        if !self.closed.is_empty() {
            let now = now();
            if now >= self.redial_at && !self.is_over(now) {
                self.dial_some()?;
            }
        }
        let now = now();
        if now < self.slice_ends {
            return Ok(());
        }
        self.hand_over();
        // What was counted so far is worth reporting, so this is no error of the thread.
        let silence = now.saturating_sub(self.last_sign);
        self.is_stalled = self.in_flight > 0 && silence > clock::ticks(self.job.plan.timeout);
        Ok(())
    }

    /// Gives what was counted to whoever adds it up, and begins anew.
    fn hand_over(&mut self) {
        let from = self.job.measure_from();
        let step = clock::ticks(SLICE);
        let index = now().saturating_sub(from) / step;
        let next = self.job.new_slice(index);
        let done = std::mem::replace(&mut self.slice, next);
        self.slice_ends = from + (index + 1) * step;
        // Nobody listens any more only if the run was given up.
        let _ = self.reports.send(Message::Slice(Box::new(done)));
    }
}

/// The processor time of this thread so far.
fn cpu_time() -> Duration {
    let times = sys::process::thread_cpu_times();
    times.user + times.system
}

/// What the poller knows a connection by.
fn token(index: usize, generation: u32) -> u64 {
    index as u64 | u64::from(generation) << 32
}
