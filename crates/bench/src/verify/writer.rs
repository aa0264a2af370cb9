//! The load of a verification: writes to groups at random, every acknowledgement noted.
//!
//! Invariant: each group belongs to one connection, so its versions are executed in the order in which
//! they were sent.

use super::history::History;
use super::ledger::Ledger;
use crate::limits::{MAX_DIALING, READ_BYTES};
use crate::load::data::Data;
use crate::load::outgoing::Outgoing;
use crate::wire::link::{Link, LinkError, LinkEvent, error_text};
use crate::wire::replies::Kind;
use crate::wire::target::Target;
use fastrand::Rng;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use sys::{Backend, Event, Poller};

/// How much is to be written, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) clients: usize,
    pub(super) pipeline: u32,
    /// Without any reply for so long, the server counts as lost.
    pub(super) timeout: Duration,
    /// Writes that are left to be sent.
    pub(super) writes: u64,
    pub(super) deadline: Option<Instant>,
}

/// How it ended.
#[derive(Clone, Debug, Default)]
pub(super) struct End {
    pub(super) written: u64,
    pub(super) acknowledged: u64,
    pub(super) errors: u64,
    pub(super) first_error: Option<String>,
    pub(super) elapsed: Duration,
    /// Why the server counts as lost; `None`: all was written and answered.
    pub(super) lost: Option<String>,
}

struct Client {
    link: Link,
    /// Groups and versions, in the order in which they were sent.
    sent: VecDeque<(u64, u64)>,
}

struct Writer<'a> {
    load: &'a Load,
    target: &'a Target,
    history: &'a History,
    ledger: &'a mut Ledger,
    greeting: (Vec<u8>, u32),
    poller: Poller,
    clients: Vec<Client>,
    opened: usize,
    rng: Rng,
    data: Data,
    input: Vec<u8>,
    end: End,
}

/// Writes until it is enough, or the server is lost.
///
/// # Errors
/// The server cannot be reached, or refuses the greeting.
pub(super) fn write(
    load: &Load,
    target: &Target,
    history: &History,
    ledger: &mut Ledger,
) -> Result<End, String> {
    let mut writer = Writer {
        load,
        target,
        history,
        ledger,
        greeting: target.greeting.encode(),
        poller: Poller::new(Backend::Auto).map_err(|error| error.to_string())?,
        clients: Vec::new(),
        opened: 0,
        rng: Rng::new(),
        // Values come with the requests here.
        data: Data::new(0),
        input: vec![0; READ_BYTES],
        end: End::default(),
    };
    writer
        .connect()
        .map_err(|error| format!("Could not connect to Redis at {}: {error}", target.name))?;
    let start = Instant::now();
    if let Err(error) = writer.run() {
        writer.ledger.note_loss(sys::clock::realtime_ms());
        writer.end.lost = Some(error.to_string());
    }
    writer.end.elapsed = start.elapsed();
    Ok(writer.end)
}

impl Writer<'_> {
    /// Opens the connections; no more than there are groups, or some would have none.
    fn connect(&mut self) -> Result<(), LinkError> {
        let wanted = self.load.clients.min(self.history.groups() as usize);
        let mut events = Vec::new();
        while self.opened < wanted {
            while self.clients.len() < wanted && self.clients.len() - self.opened < MAX_DIALING {
                let token = self.clients.len() as u64;
                let link = Link::dial(&mut self.poller, &self.target.endpoint, token)?;
                self.clients.push(Client {
                    link,
                    sent: VecDeque::new(),
                });
            }
            self.wait(&mut events)?;
            for event in &events {
                self.handle(*event)?;
            }
        }
        Ok(())
    }

    /// Waits for something to happen; nothing for too long is an error.
    fn wait(&mut self, events: &mut Vec<Event>) -> Result<(), LinkError> {
        self.poller.wait(events, Some(self.load.timeout))?;
        if events.is_empty() {
            return Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into());
        }
        Ok(())
    }

    fn run(&mut self) -> Result<(), LinkError> {
        for index in 0..self.clients.len() {
            self.send(index)?;
        }
        let mut events = Vec::new();
        while self.clients.iter().any(|client| !client.sent.is_empty()) {
            self.wait(&mut events)?;
            for event in &events {
                self.handle(*event)?;
            }
        }
        Ok(())
    }

    fn handle(&mut self, event: Event) -> Result<(), LinkError> {
        let index = event.token as usize;
        let greeting = (&self.greeting.0[..], self.greeting.1);
        let link = &mut self.clients[index].link;
        let progress = link.advance(
            &mut self.poller,
            event,
            greeting,
            &self.data,
            &mut self.input,
        )?;
        match progress {
            LinkEvent::Opened => self.opened += 1,
            LinkEvent::Open if event.readable || event.hangup => self.receive(index)?,
            LinkEvent::Open | LinkEvent::None => {}
        }
        Ok(())
    }

    fn receive(&mut self, index: usize) -> Result<(), LinkError> {
        let Client { link, sent } = &mut self.clients[index];
        let (ledger, end) = (&mut *self.ledger, &mut self.end);
        let now_ms = sys::clock::realtime_ms();
        link.receive(
            &mut self.poller,
            &mut self.input,
            &mut |kind, count, bytes| {
                for _ in 0..count {
                    let Some((group, version)) = sent.pop_front() else {
                        return;
                    };
                    if kind == Kind::Error {
                        // It may or may not have happened; it was not acknowledged.
                        end.errors += 1;
                        end.first_error.get_or_insert_with(|| error_text(bytes));
                    } else {
                        end.acknowledged += 1;
                        ledger.acknowledge(group, version, now_ms);
                    }
                }
            },
        )?;
        if self.clients[index].sent.is_empty() {
            self.send(index)?;
        }
        Ok(())
    }

    /// Sends a connection's next writes, if there are to be more.
    fn send(&mut self, index: usize) -> Result<(), LinkError> {
        if self.load.deadline.is_some_and(|end| Instant::now() >= end) {
            return Ok(());
        }
        let left = self.load.writes - self.end.written;
        let count = left.min(u64::from(self.load.pipeline));
        let mut out = Outgoing::default();
        for _ in 0..count {
            let group = self.group_of(index);
            let version = self.ledger.send(group);
            self.history.write(group, version, &mut out.bytes);
            self.clients[index].sent.push_back((group, version));
        }
        self.end.written += count;
        let link = &mut self.clients[index].link;
        link.send(&mut self.poller, index as u64, &mut out, &self.data)
    }

    /// One of the groups that belong to a connection: every so manieth.
    fn group_of(&mut self, index: usize) -> u64 {
        let (clients, groups) = (self.clients.len() as u64, self.history.groups());
        let own = (groups - index as u64).div_ceil(clients);
        index as u64 + clients * self.rng.u64(..own)
    }
}
