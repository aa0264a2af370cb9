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

mod connections;
mod open_loop;
mod sending;
mod state;

pub(super) use state::Worker;

use super::clock::{self, Ticks, now};
use super::job::{Finish, Job, Message};
use super::plan::{Pace, Until};
use super::schedule::Schedule;
use super::tally::Tally;
use crate::limits::{READ_BYTES, REDIAL_PAUSE, SLICE, SPIN_BEFORE_DUE};
use crate::load::outgoing::Outgoing;
use crate::load::workload::Source;
use crate::wire::link::{LinkError, LinkEvent};
use state::{Client, token};
use std::io;
use std::sync::mpsc::Sender;
use std::time::Duration;
use sys::{Backend, Event, Poller};

impl<'a> Worker<'a> {
    pub(crate) fn new(
        job: &'a Job<'a>,
        thread: usize,
        reports: Sender<Message>,
    ) -> Result<Worker<'a>, LinkError> {
        let share = job.share(thread);
        let mut clients = Vec::new();
        clients.resize_with(share.own_clients, Client::default);
        // Of each connection, or one that all connections of the thread share.
        let seeds = match job.plan.distinct_seeds {
            true => share.first_client..share.first_client + share.own_clients,
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
            first_client: share.first_client,
            poller: Poller::new(Backend::Auto)?,
            closed: (0..clients.len()).rev().collect(),
            clients,
            source: Source::new(job.workload, job.data, &share, rngs),
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
            LinkEvent::None => Ok(()),
            LinkEvent::Opened => {
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
            LinkEvent::Open if event.readable || event.hangup => self.receive(index),
            LinkEvent::Open => {
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

    // Requests.

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
