//! The floor of what is on disk.

use std::ops::Deref;
use std::sync::atomic::Ordering::Relaxed;

use super::snapshot::Snapshots;
use super::{Persistence, Phase};
use crate::config::{SavePoint, Setting};
use crate::limits::JOURNAL_VALUE_BYTES;
use crate::observe::Observed;
use crate::shared::gate::Closed;

/// See the module.
pub(crate) struct Durable {
    pub(crate) observed: Observed,
    pub(crate) persistence: Persistence,
    pub(crate) snapshots: Snapshots,
}

impl Deref for Durable {
    type Target = Observed;

    #[inline]
    fn deref(&self) -> &Observed {
        &self.observed
    }
}

impl Durable {
    /// Asks all threads to end.
    pub(crate) fn begin_shutdown(&self) {
        self.gate.set(Closed::Ending, true);
        self.shutdown.store(true, Relaxed);
        self.snapshots.wake();
        self.control.wake();
        self.http.wake();
        self.wake_workers();
    }

    /// Closes or opens the gate as the log takes records or not. Whether it takes none.
    #[cold]
    pub(crate) fn follow_refusal(&self) -> bool {
        // What the log says now, under a lock: what it said before may be older than what another worker has
        // noted.
        let mut reason = self.persistence.refusal.lock();
        let log = self.persistence.log.read();
        let Some(log) = &*log else { return true };
        let refusal = log.refusal();
        match &refusal {
            Some(refusal) => *reason = refusal.to_string(),
            None => reason.clear(),
        }
        self.gate.set(Closed::LogRefuses, refusal.is_some());
        refusal.is_some()
    }

    /// Changes to data since the start.
    pub(crate) fn changes(&self) -> u64 {
        self.sum(|stats| &stats.dirty)
    }

    /// When a snapshot is due.
    pub(crate) fn save_points(&self) -> Vec<SavePoint> {
        let text = self.settings.text(Setting::Save);
        SavePoint::parse_all(&text).unwrap_or_default()
    }

    /// Whether values may leave memory now, as far as the log is concerned: it has all there is.
    pub(crate) fn may_offload(&self) -> bool {
        self.persistence.is_open() && self.persistence.phase() == Phase::Settled
    }

    /// Whether it is time to let values leave memory for the first time.
    pub(crate) fn should_begin_offloading(&self) -> bool {
        !self.offload.is_offloading()
            && self.offloads()
            && (self.offload.take_wanted() || self.memory.is_near())
            && self.may_offload()
    }

    /// Bytes of the longest value that a command may make in memory.
    pub(crate) fn longest_made(&self) -> usize {
        let most = self.settings.int(Setting::ProtoMaxBulkLen) as usize;
        match self.persistence.is_open() {
            true => most.min(JOURNAL_VALUE_BYTES as usize),
            false => most,
        }
    }
}
