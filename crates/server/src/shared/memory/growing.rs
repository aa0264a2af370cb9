//! Memory of something that a command makes, and of which only the end shows how large it is.

use std::time::Duration;

use crate::shared::Shared;

/// Bytes between two looks.
const LOOK_BYTES: usize = 64 * 1024;

/// A thread's wait for room, and how many of them it waits.
const NAP: Duration = Duration::from_millis(2);
const NAPS: u32 = 100;

/// Counts the bytes of something that grows, and looks now and then whether there is room for more.
pub(crate) struct Growing<'s> {
    shared: &'s Shared,
    bytes: usize,
    /// Bytes since the last look.
    unseen: usize,
    /// Bytes that it may have, even if more are free.
    most: usize,
    /// Whether all of it is there twice in the end.
    doubles: bool,
    /// How often it still waits for room.
    naps: u32,
    is_refused: bool,
}

impl<'s> Growing<'s> {
    /// Nothing yet.
    pub(crate) fn new(shared: &'s Shared) -> Growing<'s> {
        Growing {
            shared,
            bytes: 0,
            unseen: 0,
            most: usize::MAX,
            doubles: false,
            naps: 0,
            is_refused: false,
        }
    }

    /// The same of something that is copied in the end, when it is put in order.
    pub(crate) fn doubled(shared: &'s Shared) -> Growing<'s> {
        Growing {
            doubles: true,
            ..Growing::new(shared)
        }
    }

    /// The same of values that are copied into the reply in the end, and that other requests run beside: a
    /// client that keeps too much is closed ([`Shared::bound_clients`]).
    pub(crate) fn of_reply(shared: &'s Shared) -> Growing<'s> {
        Growing {
            most: shared.most_held() / 2,
            ..Growing::doubled(shared)
        }
    }

    /// The same of a reply that a thread makes, which waits while workers make room.
    pub(crate) fn on_a_thread(shared: &'s Shared) -> Growing<'s> {
        Growing {
            naps: NAPS,
            ..Growing::new(shared)
        }
    }

    /// Notes that it has become so many bytes larger. Returns whether it may go on growing: if not, it is to
    /// be dropped.
    #[inline]
    pub(crate) fn may_go_on(&mut self, bytes: usize) -> bool {
        self.bytes += bytes;
        self.unseen += bytes;
        if self.unseen >= LOOK_BYTES {
            self.unseen = 0;
            let copy = if self.doubles { self.bytes } else { 0 };
            self.is_refused |= !self.has_room(LOOK_BYTES + copy) || self.bytes > self.most;
        }
        !self.is_refused
    }

    /// Looks whether there is room for so many bytes that are about to be taken at once. Returns whether they
    /// may be.
    pub(crate) fn may_take(&mut self, bytes: usize) -> bool {
        self.bytes += bytes;
        self.is_refused |= bytes >= LOOK_BYTES && !self.has_room(bytes);
        !self.is_refused
    }

    fn has_room(&mut self, bytes: usize) -> bool {
        loop {
            if self.shared.room_now() >= bytes {
                return true;
            }
            if self.naps == 0 {
                return false;
            }
            self.naps -= 1;
            std::thread::sleep(NAP);
        }
    }

    /// Its bytes when there was no room for more; `None` if there always was.
    pub(crate) fn refused(&self) -> Option<usize> {
        self.is_refused.then_some(self.bytes)
    }
}
