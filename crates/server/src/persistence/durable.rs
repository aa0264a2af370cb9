//! Floor of the data on disk.

use std::ops::Deref;
use std::sync::atomic::Ordering::Relaxed;

use super::snapshot::Snapshots;
use super::state::{Persistence, Phase};
use crate::config::{SavePoint, Setting};
use crate::limits::JOURNAL_VALUE_BYTES;
use crate::observe::Observed;
use crate::shared::gate::Closed;

/// Floor of the data on disk.
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

    /// Closes the gate if the log takes no records, else opens it. Returns whether it takes none.
    #[cold]
    pub(crate) fn follow_refusal(&self) -> bool {
        // The state is read under a lock, because an earlier one may be older than the one another worker has
        // stored.
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

    /// The configured save points.
    pub(crate) fn save_points(&self) -> Vec<SavePoint> {
        let text = self.settings.text(Setting::Save);
        SavePoint::parse_all(&text).unwrap_or_default()
    }

    /// Whether the log allows values to leave memory: it has all data.
    pub(crate) fn may_offload(&self) -> bool {
        self.persistence.is_open() && self.persistence.phase() == Phase::Settled
    }

    /// Whether values should leave memory for the first time.
    pub(crate) fn should_begin_offloading(&self) -> bool {
        !self.offload.is_offloading()
            && self.offloads()
            && (self.offload.take_wanted() || self.memory.is_near())
            && self.may_offload()
    }

    /// Longest value that a command may make in memory, bytes.
    pub(crate) fn longest_made(&self) -> usize {
        let most = self.settings.int(Setting::ProtoMaxBulkLen) as usize;
        match self.persistence.is_open() {
            true => most.min(JOURNAL_VALUE_BYTES as usize),
            false => most,
        }
    }
}
