//! Mailboxes of workers: how other threads reach them.
//!
//! A sender leaves a message and then wakes the worker. The worker drains its waker before it takes messages,
//! so a message is either taken or ends the worker's next wait at once.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use parking_lot::Mutex;
use sys::poller::Waker;
use sys::socket::Socket;

use super::clients::Client;
use super::memory::Evictor;
use super::waits::Outcome;
use crate::metrics::WorkerStats;

/// What other threads reach of a worker.
pub(crate) struct WorkerHandle {
    pub(crate) stats: WorkerStats,
    pub(crate) connections: AtomicUsize,
    /// How far it has got with making room.
    pub(crate) evictor: Evictor,
    inbox: Mutex<Vec<Message>>,
    waker: Waker,
}

/// What any thread may ask a worker to do.
pub(crate) enum Message {
    /// Take over a connection.
    Accept(Socket, Arc<Client>),
    /// Close a connection that was killed.
    Close(Arc<Client>),
    /// Let a connection go on whose wait, of this number, was claimed.
    GoOn(Arc<Client>, u64, Outcome),
    /// Look again at what waits: a pause was ended, or the server ends.
    Wake,
}

impl WorkerHandle {
    pub(crate) fn new(commands: usize) -> std::io::Result<WorkerHandle> {
        Ok(WorkerHandle {
            stats: WorkerStats::new(commands),
            connections: AtomicUsize::new(0),
            evictor: Evictor::default(),
            inbox: Mutex::new(Vec::new()),
            waker: Waker::new()?,
        })
    }

    /// Leaves a message and wakes the worker.
    pub(crate) fn send(&self, message: Message) {
        self.inbox.lock().push(message);
        self.waker.wake();
    }

    /// Ends the worker's wait, or its next.
    pub(crate) fn wake(&self) {
        self.waker.wake();
    }

    /// All messages that were left. Called by the worker, before it looks into other mailboxes: from here on
    /// a sender wakes it again.
    pub(crate) fn take_messages(&self) -> Vec<Message> {
        self.waker.drain();
        std::mem::take(&mut *self.inbox.lock())
    }

    /// The clients among the messages that are to be closed.
    pub(crate) fn take_closes(&self) -> Vec<Arc<Client>> {
        let mut inbox = self.inbox.lock();
        let closes = inbox.extract_if(.., |message| matches!(message, Message::Close(_)));
        let client = |message| match message {
            Message::Close(client) => Some(client),
            _ => None,
        };
        closes.filter_map(client).collect()
    }

    pub(crate) fn waker(&self) -> &Waker {
        &self.waker
    }
}

/// Messages of one kind, by worker. The room that owns the kind owns its mailboxes, too.
pub(crate) struct Mailboxes<T>(Box<[Mutex<Vec<T>>]>);

impl<T> Mailboxes<T> {
    pub(crate) fn new(workers: usize) -> Mailboxes<T> {
        Mailboxes((0..workers).map(|_| Mutex::default()).collect())
    }

    /// Leaves a message for a worker, and wakes it.
    pub(crate) fn send(&self, workers: &[WorkerHandle], worker: usize, message: T) {
        self.0[worker].lock().push(message);
        workers[worker].wake();
    }

    /// All messages that were left for a worker.
    pub(crate) fn take(&self, worker: usize) -> Vec<T> {
        std::mem::take(&mut *self.0[worker].lock())
    }
}
