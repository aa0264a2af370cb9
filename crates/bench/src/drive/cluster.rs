//! The map of a cluster while it is loaded: shared by the threads, read again when a node says that a slot is
//! elsewhere.

use super::clock::{self, Ticks};
use crate::limits::MAP_PAUSE;
use crate::wire::cluster::read;
use crate::wire::map::Map;
use crate::wire::target::Target;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// See the module.
pub(crate) struct Cluster {
    map: Mutex<Arc<Map>>,
    /// Goes up with every map that differs.
    version: AtomicU32,
    /// From when on it may be read again.
    next_read: AtomicU64,
}

impl Cluster {
    pub(crate) fn new(map: Arc<Map>) -> Cluster {
        Cluster {
            map: Mutex::new(map),
            version: AtomicU32::new(0),
            next_read: AtomicU64::new(0),
        }
    }

    /// Which map there is: another number, another map.
    #[inline]
    pub(crate) fn version(&self) -> u32 {
        self.version.load(Ordering::Acquire)
    }

    /// The map and its number.
    pub(crate) fn map(&self) -> (Arc<Map>, u32) {
        let map = self.map.lock().unwrap_or_else(PoisonError::into_inner);
        (Arc::clone(&map), self.version())
    }

    /// Whether it is time to read the map again; once a pause, whichever thread asks.
    pub(crate) fn takes_read(&self, now: Ticks) -> bool {
        let next = self.next_read.load(Ordering::Relaxed);
        let after = now + clock::ticks(MAP_PAUSE);
        let order = Ordering::Relaxed;
        now >= next
            && self
                .next_read
                .compare_exchange(next, after, order, order)
                .is_ok()
    }

    /// Reads the map again, from the first node that gives one; false if none does.
    pub(crate) fn read_again(&self, target: &Target, patience: Duration) -> bool {
        let (old, _) = self.map();
        let asked = old.nodes.iter().map(|node| Target {
            name: node.name.clone(),
            endpoint: node.endpoint.clone(),
            ..target.clone()
        });
        let Some(newer) = asked.filter_map(|node| read(&node, patience).ok()).next() else {
            return false;
        };
        let newer = old.updated(newer);
        if !newer.is_like(&old) {
            let mut map = self.map.lock().unwrap_or_else(PoisonError::into_inner);
            *map = Arc::new(newer);
            self.version.fetch_add(1, Ordering::Release);
        }
        true
    }
}
