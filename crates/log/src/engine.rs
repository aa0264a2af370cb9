//! The core together with what writes: what waits for the log thread, or does its work where there is none.

use std::ops::Deref;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sys::ring::{Consumer, Producer};

use crate::address::Lsn;
use crate::core::Core;
use crate::error::{Refusal, Result};
use crate::limits::SYNC_HERE;
use crate::lock::lock;
use crate::options::SyncPolicy;
use crate::recover::aside::Aside;
use crate::sync::make_durable;
use crate::writer::{self, PIECE, Turn, Writer};
use crate::{closed, lacking, space};

/// See the module. All of the core can be used through it.
pub(crate) struct Engine {
    core: Core,
    /// None once the log is closed, and before its first segment is begun.
    pub(crate) writer: Mutex<Option<Writer>>,
    /// What the log thread gets when the first segment of this run is begun.
    ends: Mutex<Option<Ends>>,
    has_begun: AtomicBool,
}

/// What a writer is made of.
pub(crate) struct Ends {
    pub(crate) consumer: Consumer,
    pub(crate) producer: Producer,
    /// What has to be moved before, if the disk had no space for that.
    pub(crate) aside: Option<Aside>,
}

impl Deref for Engine {
    type Target = Core;

    #[inline]
    fn deref(&self) -> &Core {
        &self.core
    }
}

impl Engine {
    /// An engine that takes records; without any space on the disk, one that does when there is some
    /// ([`Engine::begin_late`]).
    ///
    /// # Errors
    /// The disk refuses, for another reason.
    pub(crate) fn begin(core: Core, ends: Ends) -> Result<Engine> {
        let engine = Engine {
            core,
            writer: Mutex::new(None),
            ends: Mutex::new(Some(ends)),
            has_begun: AtomicBool::new(false),
        };
        match engine.begin_late() {
            Err(error) if space::is_lack(&error) => {
                let _ = space::look(&engine);
                engine.set_full(error.to_string());
            }
            begun => begun?,
        }
        Ok(engine)
    }

    /// Whether the first segment of this run is begun. Before that nothing is written.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::SeqCst)
    }

    /// Begins the first segment of this run, if that has not been done.
    ///
    /// # Errors
    /// The disk refuses. For lack of space it may be tried again.
    pub(crate) fn begin_late(&self) -> Result<()> {
        let mut kept = lock(&self.ends);
        let Some(ends) = kept.as_mut() else {
            return Ok(());
        };
        if let Some(aside) = &ends.aside {
            aside.put(&*self.files, &self.paths, &self.segments)?;
            ends.aside = None;
        }
        let begun = writer::begin(self, Lsn(ends.consumer.head()), true)?;
        let Some(Ends {
            consumer, producer, ..
        }) = kept.take()
        else {
            return Ok(());
        };
        let writer = Writer::new(self, begun, consumer, producer);
        writer.sync_segment(self)?;
        // The header of the new segment says as much.
        closed::remove(&*self.files, &self.paths)?;
        lacking::remove(&*self.files, &self.paths)?;
        *lock(&self.writer) = Some(writer);
        self.has_begun.store(true, Ordering::SeqCst);
        self.wake_writer();
        Ok(())
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
    pub(crate) fn force(&self, lsn: Lsn) -> std::result::Result<(), Refusal> {
        while self.durable() < lsn {
            if self.whole() < lsn {
                self.wait_for_room(|| self.has_failed() || self.whole() >= lsn);
            }
            make_durable(self)?;
        }
        Ok(())
    }
}
