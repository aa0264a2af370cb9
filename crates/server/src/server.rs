//! The whole server: the highest floor, which commands and workers reach.

use std::ops::Deref;
use std::sync::atomic::Ordering::Relaxed;

use keyspace::{Change, ItemsExpired, LogAddress, Observer, Overwritten};
use parking_lot::Mutex;

use crate::cluster::Cluster;
use crate::metrics::hotkeys;
use crate::metrics::key_scan::KeyScan;
use crate::metrics::slowlog::SlowLog;
use crate::observe::Observed;
use crate::script::Scripts;
use crate::values::Values;

/// See the module.
pub(crate) struct Server {
    pub(crate) values: Values,
    /// The cluster that this server is a node of.
    pub(crate) cluster: Option<Cluster>,
    /// Scripts by the SHA-1 of their texts.
    pub(crate) scripts: Scripts,
    pub(crate) slowlog: Mutex<SlowLog>,
    /// What a walk through all keys has found.
    pub(crate) key_scan: KeyScan,
    /// Which keys were used most between two moments.
    pub(crate) hot_key_session: hotkeys::Session,
}

impl Deref for Server {
    type Target = Values;

    #[inline]
    fn deref(&self) -> &Values {
        &self.values
    }
}

impl Observer for Server {
    fn changed(&self, change: &Change<'_>) -> u8 {
        Observed::changed(self, change)
    }

    fn lost(&self, old: Overwritten, key: &[u8], expired_in: Option<usize>) {
        self.persistence.lost(old, key, expired_in);
    }

    fn items_expired(&self, expired: &ItemsExpired<'_>) -> Option<LogAddress> {
        self.persistence.items_expired(expired)
    }
}

impl Server {
    /// Whether there are other nodes, as HELLO and INFO say it.
    pub(crate) fn mode(&self) -> &'static str {
        match self.cluster {
            Some(_) => "cluster",
            None => "standalone",
        }
    }

    /// How many databases SELECT knows.
    pub(crate) fn selectable_databases(&self) -> usize {
        match self.cluster {
            Some(_) => 1,
            None => self.keyspace.databases(),
        }
    }

    /// Sets statistics to zero, as CONFIG RESETSTAT does.
    pub(crate) fn reset_stats(&self) {
        self.hot_key_session.note_reset_of_stats(self.stats());
        hotkeys::reset(self.stats());
        self.workers.iter().for_each(|worker| worker.stats.reset());
        self.totals.connections.set(0);
        self.totals.rejected.set(0);
        self.totals.peak_memory.set(0);
        self.totals.expired_at_reset.set(self.keyspace.expired());
        let fields = self.keyspace.expired_items();
        self.totals.expired_fields_at_reset.set(fields);
        self.totals
            .reclaimed_at_reset
            .set(self.keyspace.reclaimed());
        self.totals.slowest_resize_us.set(0);
        self.totals.output_limit_disconnects.store(0, Relaxed);
        self.totals.query_limit_disconnects.store(0, Relaxed);
        self.totals.evicted_clients.store(0, Relaxed);
        self.memory.reset();
        self.errors.reset();
        self.logins.reset_counters();
    }
}
