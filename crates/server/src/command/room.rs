//! Room in memory for what a command is about to take.

use std::sync::atomic::Ordering::Relaxed;

use keyspace::Key;
use keyspace::collection::any::Collection;

use super::{Args, Command, Context, Handled, Handler, Next, Spec, flag};
use crate::limits::{
    FLUSH_BYTES, FORESEEN_BYTES, FORESEEN_TRIES, QUEUE_CLIENTS_PERCENT, REPLY_LOOK_BYTES,
};
use crate::request::reply::Mark;
use crate::request::{Failure, failure};
use crate::shared::memory::Room;
use crate::store::{Taking, make_room};

impl Context<'_> {
    /// Whether a command may run as far as memory is concerned, after making room for it if it takes any.
    #[cold]
    #[inline(never)]
    pub(crate) fn has_room(&self, command: &Command, need: usize) -> bool {
        if command.spec.has(flag::DENYOOM) {
            return self.make_room(need) == Room::Enough;
        }
        // Reads are never refused, but a window of them can leave much to be sent. A worker's share of the
        // margin is for other things too.
        let unasked = FLUSH_BYTES.min(self.server.memory.share() / 2);
        if self.reply.position() > unasked {
            self.make_room(0);
        }
        true
    }

    /// Looks whether there is room for a reply that is made of what a request repeats, such as the same id a
    /// million times.
    ///
    /// # Errors
    /// There is none.
    #[inline]
    pub(crate) fn check_reply(&self, bytes: usize) -> Result<(), Failure> {
        // A buffer that grows is there twice.
        let has_room = bytes < REPLY_LOOK_BYTES
            || !self.server.memory.is_near_with(2 * bytes)
            || self.server.memory.has_room(2 * bytes as u64);
        has_room.then_some(()).ok_or(failure::OUT_OF_MEMORY)
    }

    /// Makes room for a command that needs about `need` bytes, within what `maxmemory-eviction-tenacity`
    /// allows.
    pub(crate) fn make_room(&self, need: usize) -> Room {
        make_room(self.server, &self.store, self.worker, need)
    }

    /// Makes room for a value of so many bytes that a small request asks for, as far as it is not there yet.
    /// Outside of a transaction nothing is locked.
    ///
    /// # Errors
    /// There is none, or the key is no string.
    #[inline]
    pub(crate) fn foresee(&self, key: Key<'_>, len: usize) -> Result<(), Failure> {
        if len < FORESEEN_BYTES {
            return Ok(());
        }
        self.foresee_large(key, len)
    }

    #[cold]
    fn foresee_large(&self, key: Key<'_>, len: usize) -> Result<(), Failure> {
        let mut shard = self.store.lock(key);
        let bytes = shard.find_string(key)?.map_or(len, |text| text.growth(len));
        drop(shard);
        self.foresee_bytes(bytes)
    }

    /// Makes room for a value of so many bytes that a small request asks for. Outside of a transaction
    /// nothing is locked.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn foresee_bytes(&self, bytes: usize) -> Result<(), Failure> {
        if bytes < FORESEEN_BYTES {
            return Ok(());
        }
        if !self.in_transaction {
            return self.make_room_now(bytes);
        }
        // The records of a transaction are gathered in a buffer, which grows.
        let foreseen = &self.extras.foreseen;
        let records = match self.server.persistence.is_open() {
            true => 2 * (foreseen.get() + bytes),
            false => 0,
        };
        self.make_room_now(bytes.saturating_add(records))?;
        foreseen.set(foreseen.get() + bytes);
        Ok(())
    }

    /// Looks whether `bytes` more may be kept for the client until it says otherwise, such as the names that
    /// one request subscribes to, and makes room for them.
    ///
    /// # Errors
    /// They are too many for one client, or there is no room.
    #[inline]
    pub(crate) fn check_kept(&self, bytes: usize) -> Result<(), Failure> {
        if bytes < FORESEEN_BYTES {
            return Ok(());
        }
        let clients = self.server.memory.clients();
        let share = clients.map_or(usize::MAX, |bytes| bytes / 100 * QUEUE_CLIENTS_PERCENT);
        if self.session.client.kept.load(Relaxed) + bytes > share {
            return Err(failure::OUT_OF_MEMORY);
        }
        self.foresee_bytes(bytes)
    }

    /// Makes room for a value of so many bytes that a command on several keys makes: its record is gathered
    /// before it goes into the log. Outside of a transaction nothing is locked.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn foresee_gathered(&self, bytes: usize) -> Result<(), Failure> {
        let is_gathered = self.server.persistence.is_open() && !self.in_transaction;
        self.foresee_bytes(bytes * (1 + usize::from(is_gathered)))
    }

    /// Makes room for a copy of the value of a key. Outside of a transaction nothing is locked.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn foresee_copy(&self, key: Key<'_>) -> Result<(), Failure> {
        let bytes = self.store.lock(key).bytes_of_copy(key);
        self.foresee_gathered(bytes)
    }

    /// Makes room for more of what a command makes than the `bytes` at which there was no more.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn make_room_beyond(&self, bytes: usize) -> Result<(), Failure> {
        if self.in_transaction {
            return Err(failure::OUT_OF_MEMORY);
        }
        self.make_room_now(2 * bytes + FORESEEN_BYTES)?;
        // What grows looks at what is free, with no claim.
        let evictor = &self.server.workers[self.worker].evictor;
        evictor.release(&self.server.memory);
        Ok(())
    }

    /// In a transaction nothing is evicted, because its shards are locked.
    fn make_room_now(&self, bytes: usize) -> Result<(), Failure> {
        let memory = &self.server.memory;
        if self.in_transaction {
            let fits = bytes <= self.server.room_now();
            return fits.then_some(()).ok_or(failure::OUT_OF_MEMORY);
        }
        if !memory.can_have_room(bytes) {
            return Err(failure::OUT_OF_MEMORY);
        }
        let evictor = &self.server.workers[self.worker].evictor;
        for _ in 0..FORESEEN_TRIES {
            // It cannot wait for the next turn.
            let may_wait = evictor.begins_again();
            match self.make_room(bytes) {
                Room::Enough => return Ok(()),
                Room::Later if may_wait => std::thread::yield_now(),
                Room::Later | Room::No => break,
            }
        }
        Err(failure::OUT_OF_MEMORY)
    }

    /// Makes room for `bytes` in this turn of the worker, or in one of the `most` that follow: outside of a
    /// transaction the command can run again. `None`: it goes on now.
    ///
    /// # Errors
    /// There is none.
    fn make_room_in_turns(&mut self, bytes: usize, most: u32) -> Result<Option<Next>, Failure> {
        let turns = std::mem::take(&mut self.session.turns_without_room);
        if self.in_transaction {
            self.make_room_now(bytes)?;
        } else if !self.server.memory.can_have_room(bytes) {
            return Err(failure::OUT_OF_MEMORY);
        } else {
            match self.make_room(bytes) {
                Room::Enough => {}
                Room::Later if turns < most => {
                    self.session.turns_without_room = turns + 1;
                    return Ok(Some(Next::Retry));
                }
                Room::Later | Room::No => return Err(failure::OUT_OF_MEMORY),
            }
        }
        Ok(None)
    }

    /// Whether a request of a transaction has room for its reply beside those of the requests before it.
    #[inline]
    pub(crate) fn may_reply(&self, command: &Command) -> bool {
        let bytes = self.reply.position();
        let replies_little = matches!(command.spec.makes, Makes::Little | Makes::Value);
        bytes < FLUSH_BYTES || replies_little || self.may_reply_more(bytes)
    }

    /// The buffer may move.
    #[cold]
    fn may_reply_more(&self, bytes: usize) -> bool {
        self.server.room_now() > bytes + FLUSH_BYTES
    }
}

impl Context<'_> {
    /// Makes room for the reply of a command that takes items out of the first of some keys that there is,
    /// and for their record. Outside of a transaction nothing is locked. Returns what comes next, if the
    /// command is not to run now.
    ///
    /// # Errors
    /// There is none.
    #[inline]
    pub(crate) fn foresee_taken<'k>(
        &mut self,
        keys: impl IntoIterator<Item = Key<'k>>,
        taking: Taking,
    ) -> Result<Option<Next>, Failure> {
        match taking.count() < 2 {
            true => Ok(None),
            false => self.foresee_many(keys.into_iter(), taking),
        }
    }

    fn foresee_many<'k>(
        &mut self,
        mut keys: impl Iterator<Item = Key<'k>>,
        taking: Taking,
    ) -> Result<Option<Next>, Failure> {
        let found = keys.find_map(|key| {
            let mut shard = self.store.lock(key);
            let entry = shard.find(key)?;
            let tree = entry.tree().filter(|tree| tree.kind() == taking.kind());
            let tree = tree.filter(|tree| self.is_scarce_for(tree));
            Some(tree.map_or(0, |tree| taking.reply_bytes(tree)))
        });
        self.foresee_reply(found.unwrap_or_default())
    }

    /// Makes room for a reply of so many bytes with items that a command takes, and for their record. Outside
    /// of a transaction nothing is locked. Returns the next step, if the command is not to run now.
    ///
    /// # Errors
    /// There is no room.
    pub(crate) fn foresee_reply(&mut self, reply: usize) -> Result<Option<Next>, Failure> {
        let bytes = TAKEN_TIMES * reply;
        if bytes < FORESEEN_BYTES {
            self.session.turns_without_room = 0;
            return Ok(None);
        }
        if self.in_transaction {
            self.foresee_bytes(bytes)?;
        } else if let Some(next) = self.make_room_in_turns(bytes, TAKEN_TURNS)? {
            return Ok(Some(next));
        }
        // A buffer that grows would be there twice.
        self.reply.reserve(reply);
        Ok(None)
    }

    /// Whether there may be no room for all items of a tree.
    pub(crate) fn is_scarce_for(&self, tree: &Collection) -> bool {
        let most = Taking::bytes_of_all(tree);
        self.server.memory.is_near_with(TAKEN_TIMES * most)
    }
}

/// What a request may make beyond what it brings, if memory is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Makes {
    /// The row does not say. No row may.
    Unsaid,
    /// A reply or a value of about the bytes of the request at most.
    Little,
    /// A small reply, and a large value: the handler looks for room before it makes the value
    /// ([`Context::foresee`]), or while it grows ([`Growing`](crate::shared::memory::Growing)).
    Value,
    /// A reply of one item or value that is stored.
    Item,
    /// A reply of the items that it takes out of a collection.
    Taken,
    /// A reply of many items, the same perhaps many times. It is bounded while it is made ([`within_room`]).
    Reply,
}

/// Turns in which a command waits for room for the items that it takes before it is refused: about a second
/// where nothing else happens, as values leave memory no sooner than the disk has them.
const TAKEN_TURNS: u32 = 1000;

/// The same of a command that replies with many items. In each its values may have to be read from the log.
const REPLY_TURNS: u32 = 100;

/// How many times the bytes of its reply a command takes. A record names each item that goes, but for those
/// of a list. The reply is there twice while it moves to a client that reads slowly.
const TAKEN_TIMES: usize = 2;

/// A buffer that grows takes so many times as much memory as it has bytes, at most.
const GROWTH: usize = 3;

/// The handler for a row of the table.
pub(super) const fn bounded(spec: &Spec) -> Handler {
    match spec.makes {
        Makes::Reply => within_room,
        _ => spec.handler,
    }
}

/// Runs a command whose reply may be large: it changes nothing that a second run would not. If there is no
/// room for the reply, room is made, and the command runs again.
fn within_room(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let handler = context.command.spec.handler;
    // All workers may do this at once. While the bytes of a full buffer move to one of twice the size, both
    // are there.
    let workers = context.server.workers.len();
    let room = context.server.memory.room_nearly() / (GROWTH * workers);
    let room = room.max(FLUSH_BYTES);
    let before = context.reply.mark();
    context.reply.set_limit(room);
    let handled = handler(context, args);
    match context.reply.end_limit() {
        0 => {
            context.session.turns_without_room = 0;
            handled
        }
        dropped => run_again(context, args, before, dropped),
    }
}

/// `dropped`: bytes of the reply for which there was no room in the first run.
#[cold]
fn run_again(context: &mut Context<'_>, args: &Args<'_>, before: Mark, dropped: usize) -> Handled {
    let bytes = context.reply.bytes_since(before) + dropped;
    context.reply.take_back(before);
    // What was begun to be done later is forgotten with its reply.
    context.session.deferred = None;
    // All of the buffer moves.
    let bytes = bytes + context.reply.position();
    // Other workers see what is claimed. The reply is there twice while it moves to a client that does not
    // read it.
    match context.make_room_in_turns(2 * bytes, REPLY_TURNS) {
        Ok(None) => {}
        Ok(Some(next)) => return Ok(next),
        Err(failure) if bytes > context.server.room_now() => return Err(failure),
        // It cannot wait any longer.
        Err(_) => {}
    }
    context.reply.set_limit(bytes + FLUSH_BYTES);
    context.reply.reserve(dropped);
    let handled = (context.command.spec.handler)(context, args);
    match context.reply.end_limit() {
        0 => handled,
        // It has become larger meanwhile.
        _ => {
            context.reply.take_back(before);
            Err(failure::OUT_OF_MEMORY)
        }
    }
}
