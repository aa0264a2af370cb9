//! A worker outside of its turns, while a script keeps all others from the data: its connections are read,
//! and requests that need no data are answered. All else waits until the worker is inside again.
//!
//! An *errand* is a command of one of its own connections that takes long. It runs on a thread of its own,
//! with the worker's way into the log and its Lua, so the worker stays outside until both are back.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvError, Sender, TryRecvError, channel};
use std::time::Duration;

use sys::poller::Event;

use super::worker::{WAKER, Worker};
use crate::command::deferred::Errand;
use crate::command::{Caller, Engine};
use crate::config::Setting;
use crate::limits::{GROUP_BYTES, JOURNAL_REQUEST_BYTES, OUTSIDE_PATIENCE};
use crate::persistence::Persistence;
use crate::persistence::journal::Journal;
use crate::request::Failure;
use crate::server::Server;
use crate::shared::Message;

/// See the module.
#[derive(Default)]
pub(crate) struct Outside {
    is_outside: bool,
    /// It is, or an errand has not come back: a turn does not begin as usual.
    is_late: bool,
    /// It is outside because of a script of another worker.
    is_kept_out: bool,
    /// Messages and ends of connections for the next turn.
    pub(super) messages: Vec<Message>,
    closed: BTreeSet<u64>,
    /// Whether the next turn has more to look at than its events.
    has_missed: bool,
    /// Errands that have not begun.
    errands: VecDeque<Box<Errand>>,
    /// The thread of errands, and the way back of its part.
    thread: Option<Sender<Loan>>,
    back: Option<Receiver<Lent>>,
}

impl Outside {
    /// Whether the worker is outside of its turns because of a script.
    #[inline(always)]
    pub(crate) fn is_outside(&self) -> bool {
        self.is_outside
    }
}

/// The part of a worker that an errand has.
struct Lent {
    journal: Option<Journal>,
    engine: Option<Box<Engine>>,
    /// See [`Worker::log`].
    log: u64,
}

/// An errand and its part of the worker.
struct Loan {
    errand: Box<Errand>,
    lent: Lent,
    back: Sender<Lent>,
}

/// Runs errands until their worker ends.
fn run_errands(server: &'static Server, number: usize, loans: &Receiver<Loan>) {
    let mut caller = Caller::new(server, number, &server.workers[number].stats);
    while let Ok(Loan {
        errand,
        mut lent,
        back,
    }) = loans.recv()
    {
        server.running.let_others_in();
        caller.turn.enter();
        if lent.log != server.persistence.current() {
            lent.log = server.persistence.current();
            lent.journal = None;
            lent.journal = Persistence::journal(server, number);
        }
        caller.journal = lent.journal.take();
        caller.extras.engine = lent.engine.take();
        caller.now = sys::clock::realtime_ms();
        if let Some(journal) = &caller.journal {
            let bytes = errand.bytes() as u64 + JOURNAL_REQUEST_BYTES;
            while journal.ensure(bytes).is_err() && !server.follow_refusal() {}
        }
        errand.run(&mut caller);
        lent.journal = caller.journal.take();
        lent.engine = caller.extras.engine.take();
        caller.turn.leave();
        // A worker that has ended needs nothing.
        let _ = back.send(lent);
        server.wake_workers();
    }
}

impl Worker {
    /// See [`Outside::is_outside`].
    #[inline(always)]
    pub(crate) fn is_outside(&self) -> bool {
        self.outside.is_outside
    }

    /// Begins a turn. Returns whether it has begun: not while a script keeps the worker from the data for
    /// long.
    #[inline(always)]
    pub(crate) fn enter(&mut self) -> bool {
        (!self.outside.is_late && self.caller.turn.try_enter()) || self.enter_late()
    }

    #[cold]
    #[inline(never)]
    fn enter_late(&mut self) -> bool {
        if !self.take_back() {
            return self.set_outside(true);
        }
        let was_outside = self.outside.is_outside;
        let patience = || match was_outside && self.server.running.any() {
            true => Duration::ZERO,
            false => OUTSIDE_PATIENCE,
        };
        while !self.caller.turn.enter_within(patience()) {
            if self.server.running.any() {
                return self.set_outside(true);
            }
        }
        self.set_outside(false);
        for token in std::mem::take(&mut self.outside.closed) {
            self.close(token);
        }
        if std::mem::take(&mut self.outside.has_missed) {
            self.take_messages();
        }
        true
    }

    fn set_outside(&mut self, is_outside: bool) -> bool {
        self.outside.is_outside = is_outside;
        self.outside.is_late = is_outside;
        let is_kept_out = is_outside && self.outside.back.is_none();
        if is_kept_out != self.outside.is_kept_out {
            self.outside.is_kept_out = is_kept_out;
            self.server.running.note_outside(is_kept_out);
        }
        self.caller.extras.is_outside = is_outside;
        !is_outside
    }

    /// Reads connections, and answers requests that need no data.
    pub(crate) fn stay_outside(&mut self, events: &[Event]) {
        self.caller.now = sys::clock::realtime_ms();
        let mut used = 0;
        for event in events {
            if event.token == WAKER {
                self.sort_messages();
                continue;
            }
            let resumed = event.writable && self.write_more(event.token);
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
        self.run_group();
        if !self.paused.is_empty() && self.lasts_long() {
            // They are refused.
            self.run_paused();
        }
    }

    fn lasts_long(&self) -> bool {
        let threshold = self.server.settings.int(Setting::BusyReplyThreshold);
        self.server.running.any() && self.server.running.ms() >= threshold
    }

    /// Takes over new connections. Other messages wait for the next turn.
    fn sort_messages(&mut self) {
        self.outside.has_missed = true;
        for message in self.server.workers[self.number].take_messages() {
            match message {
                Message::Accept(socket, client) => self.accept(socket, client),
                Message::Wake => {}
                later @ (Message::Close(_) | Message::GoOn(..)) => {
                    self.outside.messages.push(later);
                }
            }
        }
    }

    /// Ends a connection in the next turn.
    pub(crate) fn close_later(&mut self, token: u64) {
        let Some(connection) = self.connections.get_mut(token) else {
            return;
        };
        if self.outside.closed.insert(token) {
            let _ = connection.transport.unwatch(&mut self.poller);
            connection.session.client.killed.store(true, Relaxed);
        }
    }

    /// Adds an errand to those that wait.
    pub(crate) fn add_errand(&mut self, errand: Box<Errand>) {
        self.outside.errands.push_back(errand);
    }

    /// After a turn: hands the next errand to its thread.
    #[inline]
    pub(crate) fn begin_errand(&mut self) {
        if let Some(errand) = self.outside.errands.pop_front() {
            self.lend(errand);
        }
    }

    #[cold]
    fn lend(&mut self, errand: Box<Errand>) {
        let (sender, back) = channel();
        let loan = Loan {
            errand,
            lent: Lent {
                journal: self.caller.journal.take(),
                engine: self.caller.extras.engine.take(),
                log: self.log,
            },
            back: sender,
        };
        let thread = match self.outside.thread.take() {
            Some(thread) => Ok(thread),
            None => self.begin_thread(),
        };
        match thread {
            Ok(thread) => {
                thread.send(loan).expect("the thread of errands runs");
                self.outside.thread = Some(thread);
                self.outside.back = Some(back);
                self.outside.is_late = true;
            }
            Err(error) => {
                self.caller.journal = loan.lent.journal;
                self.caller.extras.engine = loan.lent.engine;
                let text = format!("ERR no thread could be started: {error}");
                loan.errand.refuse(Failure::new(text));
            }
        }
    }

    fn begin_thread(&self) -> std::io::Result<Sender<Loan>> {
        let (server, number) = (self.server, self.number);
        let (sender, loans) = channel();
        std::thread::Builder::new()
            .name(format!("script-{number}"))
            .spawn(move || run_errands(server, number, &loans))?;
        Ok(sender)
    }

    /// Takes back the worker's part from an errand that has ended. Returns whether it is here.
    fn take_back(&mut self) -> bool {
        let Some(back) = &self.outside.back else {
            return true;
        };
        match back.try_recv() {
            Ok(lent) => self.put_back(lent),
            Err(TryRecvError::Empty) => return false,
            Err(TryRecvError::Disconnected) => panic!("the thread of errands has panicked"),
        }
        true
    }

    fn put_back(&mut self, lent: Lent) {
        self.caller.journal = lent.journal;
        self.caller.extras.engine = lent.engine;
        self.log = lent.log;
        self.outside.back = None;
    }

    /// At the end of the worker: waits for an errand.
    pub(crate) fn wait_for_errand(&mut self) {
        if let Some(back) = &self.outside.back {
            match back.recv() {
                Ok(lent) => self.put_back(lent),
                Err(RecvError) => panic!("the thread of errands has panicked"),
            }
        }
        self.set_outside(false);
    }
}
