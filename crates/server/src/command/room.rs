//! Room in memory for what a command is about to take.

use keyspace::Key;

use super::{Command, Context, flag};
use crate::limits::{FLUSH_BYTES, FORESEEN_BYTES, FORESEEN_TRIES, REPLY_LOOK_BYTES};
use crate::request::{Failure, failure};
use crate::shared::memory::Room;
use crate::store::make_room;

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
    /// Nothing is locked.
    ///
    /// # Errors
    /// There is none, or the key is no string.
    #[inline]
    pub(crate) fn foresee(&self, key: Key<'_>, len: usize) -> Result<(), Failure> {
        if len < FORESEEN_BYTES || self.in_transaction {
            return Ok(());
        }
        self.foresee_large(key, len)
    }

    #[cold]
    fn foresee_large(&self, key: Key<'_>, len: usize) -> Result<(), Failure> {
        let mut shard = self.store.lock(key);
        let bytes = shard.find_string(key)?.map_or(len, |text| text.growth(len));
        drop(shard);
        match bytes {
            0 => Ok(()),
            bytes => self.make_room_now(bytes),
        }
    }

    /// Makes room for so many bytes that a small request asks for. Nothing is locked.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn foresee_bytes(&self, bytes: usize) -> Result<(), Failure> {
        if bytes < FORESEEN_BYTES || self.in_transaction {
            return Ok(());
        }
        self.make_room_now(bytes)
    }

    fn make_room_now(&self, bytes: usize) -> Result<(), Failure> {
        for _ in 0..FORESEEN_TRIES {
            // It cannot wait for the next turn.
            self.server.workers[self.worker].evictor.begin_turn();
            match self.make_room(bytes) {
                Room::Enough => return Ok(()),
                Room::Later => std::thread::yield_now(),
                Room::No => break,
            }
        }
        Err(failure::OUT_OF_MEMORY)
    }
}
