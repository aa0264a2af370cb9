//! The core together with what writes: what waits for the log thread, or does its work where there is none.

use std::ops::Deref;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::address::Lsn;
use crate::core::Core;
use crate::error::Refusal;
use crate::limits::SYNC_HERE;
use crate::lock::lock;
use crate::options::SyncPolicy;
use crate::sync::make_durable;
use crate::writer::{PIECE, Turn, Writer};

/// See the module. All of the core can be used through it.
pub(crate) struct Engine {
    core: Core,
    /// None once the log is closed.
    pub(crate) writer: Mutex<Option<Writer>>,
}

impl Deref for Engine {
    type Target = Core;

    #[inline]
    fn deref(&self) -> &Core {
        &self.core
    }
}

impl Engine {
    pub(crate) fn new(core: Core, writer: Writer) -> Engine {
        Engine {
            core,
            writer: Mutex::new(Some(writer)),
        }
    }

    /// Waits until `done`, doing the log thread's work if there is none.
    pub(crate) fn wait_for_room(&self, mut done: impl FnMut() -> bool) {
        self.counters.waits.fetch_add(1, Ordering::Relaxed);
        if self.options.background {
            self.wake_writer();
            self.room.wait(done);
            return;
        }
        while !done() {
            self.turn();
        }
    }

    /// One turn of the log thread, on a thread that waits for it. Returns whether it was done: not if
    /// somebody else is about it, or if the disk takes so long that what the thread has to do besides would
    /// wait too long.
    pub(crate) fn turn_here(&self) -> bool {
        let takes = Duration::from_nanos(self.counters.sync_ns.load(Ordering::Relaxed));
        // Between the two reads other threads may append records and write them.
        let is_little = self.ring.tail().saturating_sub(self.ring.head()) <= PIECE;
        let is_meant = self.policy() == SyncPolicy::Always && self.options.background;
        if !is_meant || !is_little || takes > SYNC_HERE {
            return false;
        }
        match self.writer.try_lock() {
            Ok(mut writer) => writer.as_mut().is_some_and(|writer| {
                writer.turn(self);
                true
            }),
            Err(_) => false,
        }
    }

    /// One turn of the log thread.
    pub(crate) fn turn(&self) -> Turn {
        lock(&self.writer)
            .as_mut()
            .map_or_else(Default::default, |writer| writer.turn(self))
    }

    /// Writes and makes durable everything below `lsn`, which has been committed.
    pub(crate) fn force(&self, lsn: Lsn) -> Result<(), Refusal> {
        while self.durable() < lsn {
            if self.whole() < lsn {
                self.wait_for_room(|| self.has_failed() || self.whole() >= lsn);
            }
            make_durable(self)?;
        }
        Ok(())
    }
}
