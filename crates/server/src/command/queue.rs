//! A transaction: the requests between MULTI and EXEC, and the keys that were watched before.
//!
//! Queued requests lie one after the other in one buffer, as they came; the results of parsing them
//! (arguments, hashes of keys) lie beside it. A request that came in a large buffer of its own keeps that
//! instead, because it may become a value as it is.
//!
//! ```text
//! bytes   $3 SET $1 a $1 1 | $4 INCR $1 b | ...
//! spans       ---    -    -     ----    -
//! hashes             #                  #
//! ```
//!
//! Before the first request runs, [`Transaction::want`] says which shards all of them use, in any database;
//! EXEC holds those together. Which they are follows from the commands' rows: the rules for keys, and
//! `elsewhere` for what reaches into another database. A command that has no keys and is not said to leave
//! data alone may look at everything: with one of those the transaction runs while no other worker does.
//!
//! Not here: admission and queuing of requests (`execute`), MULTI and EXEC themselves
//! (`command::transaction`).

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use keyspace::{Keyspace, LargeValue};
use resp::request::Span;

use crate::command::session::Session;
use crate::command::{Command, Control, Reach, flag};
use crate::limits::{LEAVE_SLICE, QUEUE_KEEP_BYTES, SPARE_QUEUES};
use crate::observe::removals::{Leftover, leave};
use crate::request::Args;
use crate::server::Server;
use crate::shared::clients::status;
use crate::store::Store;

/// A queued request. Its parts of the transaction's vectors are given by beginning and count.
struct Queued {
    command: &'static Command,
    first_span: usize,
    spans: usize,
    first_hash: usize,
    hashes: usize,
    /// The buffer its spans mean, if it is not the transaction's.
    buffer: Option<LargeValue>,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Transaction {
    bytes: Vec<u8>,
    spans: Vec<Span>,
    hashes: Vec<u64>,
    requests: Vec<Queued>,
    /// Bytes of buffers that requests keep.
    kept_bytes: usize,
    /// The flags of all commands together.
    pub(crate) flags: u32,
    /// Whether one of them may not run while data is loaded.
    pub(crate) needs_data: bool,
    /// A request was refused, so EXEC will be.
    pub(crate) refused: bool,
}

impl Transaction {
    /// The number of requests.
    pub(crate) fn len(&self) -> usize {
        self.requests.len()
    }

    /// Bytes that its requests take.
    pub(crate) fn memory(&self) -> usize {
        bytes_of(&self.bytes)
            + self.kept_bytes
            + bytes_of(&self.spans)
            + bytes_of(&self.hashes)
            + bytes_of(&self.requests)
    }

    /// Bytes of its requests, without free room.
    pub(crate) fn used(&self) -> usize {
        self.bytes.len()
            + self.kept_bytes
            + size_of_val(&*self.spans)
            + size_of_val(&*self.hashes)
            + size_of_val(&*self.requests)
    }

    /// Bytes that its requests take with one more, of so many bytes: a vector without room doubles.
    pub(crate) fn memory_with(&self, bytes: usize) -> usize {
        let free = self.bytes.capacity() - self.bytes.len();
        let growth = match free < bytes {
            true => self.bytes.capacity().max(bytes),
            false => 0,
        };
        self.memory() + growth
    }

    /// Adds a request. `args` are prepared for its command.
    pub(crate) fn push(&mut self, command: &'static Command, args: &Args<'_>) {
        let (first, last) = (args.spans[0], args.spans[args.len() - 1]);
        let end = last.start + last.len;
        let (first_span, first_hash) = (self.spans.len(), self.hashes.len());
        let buffer = args
            .buffer
            .filter(|buffer| buffer.holds_little_beside(end - first.start));
        match buffer {
            Some(buffer) => {
                self.kept_bytes += buffer.buffer().len();
                self.spans.extend_from_slice(args.spans);
            }
            None => {
                let base = self.bytes.len();
                self.bytes.extend_from_slice(&args.input[first.start..end]);
                self.spans.extend(args.spans.iter().map(|span| Span {
                    start: span.start - first.start + base,
                    len: span.len,
                }));
            }
        }
        if args.hashes.is_empty() {
            // For example of a subcommand: the positions of its keys were not known.
            let positions = command.key_positions(args.len());
            self.hashes
                .extend(positions.map(|at| args.keyspace.hash(args.get(at))));
        } else {
            self.hashes.extend_from_slice(args.hashes);
        }
        self.flags |= command.spec.summed_flags();
        self.needs_data |= !command.spec.has(flag::LOADING);
        self.requests.push(Queued {
            command,
            first_span,
            spans: args.len(),
            first_hash,
            hashes: self.hashes.len() - first_hash,
            buffer: buffer.cloned(),
        });
    }

    /// The command of a request.
    pub(crate) fn command(&self, at: usize) -> &'static Command {
        self.requests[at].command
    }

    /// The arguments of a request.
    pub(crate) fn args<'a>(&'a self, at: usize, keyspace: &'a Keyspace) -> Args<'a> {
        let request = &self.requests[at];
        Args {
            input: match &request.buffer {
                Some(buffer) => buffer.buffer(),
                None => &self.bytes,
            },
            spans: &self.spans[request.first_span..][..request.spans],
            hashes: &self.hashes[request.first_hash..][..request.hashes],
            first_key: request.command.first_key as usize,
            key_shift: request.command.key_shift,
            keyspace,
            buffer: request.buffer.as_ref(),
        }
    }

    /// Wants the shards that the requests use, from the store's database on. Returns false if one of them may
    /// use any: then what is wanted means nothing. `selectable` databases can be selected.
    pub(crate) fn want(&self, store: &mut Store<'_>, selectable: usize) -> bool {
        let mut db = store.db;
        for at in 0..self.len() {
            let (command, args) = (self.command(at), self.args(at, store.keyspace));
            if command.control == Control::Select {
                db = selected(&args, selectable).unwrap_or(db);
                continue;
            }
            let elsewhere = (command.spec.elsewhere)(&args);
            let elsewhere = elsewhere.filter(|&other| other < store.keyspace.databases());
            let mut want = |position: usize| {
                let hash = args.key(position).hash;
                store.want(db, hash);
                elsewhere.into_iter().for_each(|db| store.want(db, hash));
            };
            match command.reach(&args) {
                Reach::Nothing => {}
                Reach::Range => command.key_positions(args.len()).for_each(want),
                Reach::Found(positions) => positions.into_iter().for_each(&mut want),
                Reach::Everything => return false,
            }
        }
        true
    }

    /// Calls `visit` with each request that is to run, and the database in which that will be unless
    /// databases change places.
    pub(crate) fn for_each_run(
        &self,
        store: &Store<'_>,
        selectable: usize,
        mut visit: impl FnMut(usize, &'static Command, &Args<'_>),
    ) {
        let mut db = store.db;
        for at in 0..self.len() {
            let (command, args) = (self.command(at), self.args(at, store.keyspace));
            if command.control == Control::Select {
                db = selected(&args, selectable).unwrap_or(db);
                continue;
            }
            visit(db, command, &args);
        }
    }

    /// Forgets all requests, to be used again. Room that only a large transaction needs goes.
    fn clear(&mut self) {
        let is_large = self.bytes.capacity() > QUEUE_KEEP_BYTES
            || self.spans.capacity() * size_of::<Span>() > QUEUE_KEEP_BYTES
            || self.hashes.capacity() * size_of::<u64>() > QUEUE_KEEP_BYTES
            || self.requests.capacity() * size_of::<Queued>() > QUEUE_KEEP_BYTES;
        if is_large {
            *self = Transaction::default();
            return;
        }
        self.bytes.clear();
        self.spans.clear();
        self.hashes.clear();
        self.requests.clear();
        self.kept_bytes = 0;
        self.flags = 0;
        self.needs_data = false;
        self.refused = false;
    }
}

/// Bytes of a vector: with its free room when that is more than what every transaction may have.
fn bytes_of<T>(vector: &Vec<T>) -> usize {
    let room = vector.capacity() * size_of::<T>();
    if room > QUEUE_KEEP_BYTES {
        room
    } else {
        vector.len() * size_of::<T>()
    }
}

/// The database that a SELECT chooses. One that is wrong fails, and changes nothing.
fn selected(args: &Args<'_>, selectable: usize) -> Option<usize> {
    let chosen = args.optional(1).and_then(resp::number::parse_i64)?;
    let chosen = usize::try_from(chosen).ok()?;
    (chosen < selectable).then_some(chosen)
}

/// Transactions of a worker that are over, for those that begin: neither allocates, then.
#[derive(Default)]
#[expect(
    clippy::vec_box,
    reason = "they go back and forth between here and sessions, which have room for a pointer"
)]
pub(crate) struct Spares(Vec<Box<Transaction>>);

impl Spares {
    /// A transaction in which nothing is queued.
    pub(crate) fn take(&mut self) -> Box<Transaction> {
        self.0.pop().unwrap_or_default()
    }

    /// Keeps one that is over, unless there are enough.
    pub(crate) fn give_back(&mut self, mut transaction: Box<Transaction>) {
        if self.0.len() < SPARE_QUEUES {
            transaction.clear();
            self.0.push(transaction);
        }
    }
}

impl Session {
    /// Begins a transaction in which nothing is queued yet.
    pub(crate) fn begin(&mut self, transaction: Box<Transaction>) {
        self.transaction = Some(transaction);
        self.client.set_status(status::MULTI, true);
        self.note_queue();
    }

    /// Tells CLIENT LIST what is queued.
    pub(crate) fn note_queue(&self) {
        let (queued, bytes) = self
            .transaction
            .as_ref()
            .map_or((0, 0), |queue| (queue.len(), queue.memory()));
        self.client.queued.store(queued, Relaxed);
        self.client.queued_bytes.store(bytes, Relaxed);
    }

    /// Ends the transaction, if there is one.
    pub(crate) fn take_transaction(&mut self) -> Option<Box<Transaction>> {
        let transaction = self.transaction.take()?;
        self.client.set_status(status::MULTI, false);
        self.note_queue();
        Some(transaction)
    }

    /// Whether a key that is watched has changed.
    pub(crate) fn is_dirty(&self) -> bool {
        self.client.is_dirty()
    }

    /// Watches nothing any more, and forgets that something has changed.
    pub(crate) fn unwatch(&mut self, server: &Server) {
        if self.watched.is_empty() {
            return;
        }
        let client = &self.client;
        let round = client.watch_round.load(Relaxed);
        let mut list = std::mem::take(&mut self.watched);
        let is_done = list.remove_some(LEAVE_SLICE, |watched| {
            let watches = &server.observers.watches;
            watches.remove(server, &watched, client, round);
            client.free(watched.memory());
        });
        if !is_done {
            // Registrations of this round mean nothing from here on.
            client.watch_round.store(round + 1, Relaxed);
            leave(server, Leftover::Watched(Arc::clone(client), round, list));
        }
        // From here on no shard lists this connection as watching, so the bit is not set again.
        client.watched.store(0, Relaxed);
        client.set_status(status::DIRTY, false);
    }

    /// Bytes that its transaction takes.
    pub(crate) fn queue_bytes(&self) -> usize {
        self.transaction
            .as_ref()
            .map_or(0, |transaction| transaction.memory())
    }

    /// Bytes that its transaction and the keys it watches take.
    pub(crate) fn transaction_bytes(&self) -> usize {
        self.queue_bytes() + self.watched.bytes
    }

    /// Bytes that its transaction and the keys it watches have with so many bytes more, and what they take
    /// then.
    pub(crate) fn transaction_bytes_with(&self, bytes: usize) -> (usize, usize) {
        let watched = self.watched.bytes;
        let of_queue = |queue: &Transaction| (queue.used() + bytes, queue.memory_with(bytes));
        let (used, taken) = (self.transaction.as_deref()).map_or((bytes, bytes), of_queue);
        (watched + used, watched + taken)
    }
}
