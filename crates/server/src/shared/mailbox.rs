//! Mailboxes of workers, for messages from other threads.
//!
//! A sender adds a message and then wakes the worker. The worker drains its waker before it takes messages,
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

/// The part of a worker that other threads reach.
pub(crate) struct WorkerHandle {
    pub(crate) stats: WorkerStats,
    pub(crate) connections: AtomicUsize,
    /// Its progress with evictions.
    pub(crate) evictor: Evictor,
    inbox: Mutex<Vec<Message>>,
    waker: Waker,
}

/// Request to a worker, from any thread.
pub(crate) enum Message {
    /// Take over a connection.
    Accept(Socket, Arc<Client>),
    /// Close a connection that was killed.
    Close(Arc<Client>),
    /// Resume a connection; its wait, of this number, was claimed.
    GoOn(Arc<Client>, u64, Outcome),
    /// Check all waiting connections: a pause has ended, or the server is stopping.
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

    /// Adds a message and wakes the worker.
    pub(crate) fn send(&self, message: Message) {
        self.inbox.lock().push(message);
        self.waker.wake();
    }

    /// Ends the worker's current or next wait.
    pub(crate) fn wake(&self) {
        self.waker.wake();
    }

    /// Takes all messages. The worker calls it before it reads its other mailboxes: later senders wake it
    /// again.
    pub(crate) fn take_messages(&self) -> Vec<Message> {
        self.waker.drain();
        std::mem::take(&mut *self.inbox.lock())
    }

    /// Takes the [`Message::Close`] messages alone. Returns their clients.
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

/// Messages of one kind, by worker. The room of the kind owns the mailboxes.
pub(crate) struct Mailboxes<T>(Box<[Mutex<Vec<T>>]>);

impl<T> Mailboxes<T> {
    pub(crate) fn new(workers: usize) -> Mailboxes<T> {
        Mailboxes((0..workers).map(|_| Mutex::default()).collect())
    }

    /// Adds a message for a worker and wakes it.
    pub(crate) fn send(&self, workers: &[WorkerHandle], worker: usize, message: T) {
        self.0[worker].lock().push(message);
        workers[worker].wake();
    }

    /// Takes all messages for a worker.
    pub(crate) fn take(&self, worker: usize) -> Vec<T> {
        std::mem::take(&mut *self.0[worker].lock())
    }
}
