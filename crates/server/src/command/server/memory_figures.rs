//! Where memory goes: the figures that INFO memory, MEMORY STATS, MEMORY DOCTOR and the dashboard tell.
//!
//! ```text
//!  used  =  startup    what the process took when it began to serve
//!        +  buffers    what connections have sent, are yet to read, and have queued, and what is kept for them: subscriptions, ...
//!        +  slow log   its commands
//!        +  log        the ring that changes pass on their way to the log, as far as it was ever filled
//!        +  databases  entries; index, wheels and free places of slabs
//!        +  pending    dropped already, and freed in the background
//!        +  other      all that has no figure of its own: statistics, registries, what threads work with
//! ```
//!
//! All but `other` are counted where they are taken, so that is small unless something is wrong; a test
//! watches it.

use keyspace::{Overhead, Turn};
use sys::memory::Heap;

use super::overview::databases_of;
use crate::server::Server;

/// Memory of a database.
pub(crate) struct DatabaseFigures {
    pub(crate) db: usize,
    /// Bytes of its entries: keys and values, with what each needs around it.
    pub(crate) entries: u64,
    /// Memory beside the entries.
    pub(crate) overhead: Overhead,
}

/// Loss of one step: outer size against inner size.
pub(super) struct Loss {
    /// As MEMORY STATS calls it.
    pub(super) name: &'static str,
    pub(super) ratio: f64,
    /// Negative if some of what is in it takes no physical memory.
    pub(super) bytes: i64,
}

/// See the module.
pub(crate) struct MemoryFigures {
    /// Bytes in use.
    pub(crate) used: u64,
    /// The most that was ever used.
    pub(crate) peak: u64,
    /// Bytes of physical memory that the process occupies.
    pub(crate) resident: u64,
    /// Held and used memory of the allocators.
    pub(crate) heap: Heap,
    /// Bytes that were in use when the server began to serve, but for data.
    pub(crate) startup: u64,
    /// Bytes of connections' buffers, and of what is kept for them.
    pub(crate) buffers: u64,
    /// Bytes of the slow log.
    pub(crate) slow_log: u64,
    /// Bytes of the log's ring.
    pub(crate) log: u64,
    /// Bytes that wait for the background to free them.
    pub(crate) pending: u64,
    pub(crate) databases: Vec<DatabaseFigures>,
    pub(crate) keys: u64,
}

impl MemoryFigures {
    /// The figures of a server at a time (Unix, ms).
    pub(crate) fn of(server: &Server, turn: &Turn<'_>, now: i64) -> MemoryFigures {
        let used = server.used_memory();
        let databases = databases_of(&server.keyspace, turn);
        let keys = databases.clone().map(|(_, database)| database.len() as u64);
        // Of its own statement: the slow log's lock is not held where shards are locked, for a transaction
        // takes them in the other order.
        let slow_log = server.slowlog.lock().memory() as u64;
        MemoryFigures {
            used,
            peak: used.max(server.totals.peak_memory.get()),
            resident: sys::process::rss_bytes(),
            heap: Heap::now(),
            startup: server.memory.startup(),
            buffers: server.client_bytes() as u64
                + server.sum(|stats| &stats.buffer_bytes)
                + server.sum(|stats| &stats.poller_bytes),
            slow_log,
            log: server.persistence.ring_bytes(),
            pending: server.keyspace.pending_bytes() as u64,
            keys: keys.sum(),
            databases: databases
                .map(|(db, database)| {
                    let overhead = database.overhead(now);
                    let entries = database.memory().saturating_sub(overhead.bytes());
                    DatabaseFigures {
                        db,
                        entries: entries as u64,
                        overhead,
                    }
                })
                .collect(),
        }
    }

    /// Bytes of keys and values, with what each needs around it.
    pub(crate) fn dataset(&self) -> u64 {
        self.databases.iter().map(|database| database.entries).sum()
    }

    /// Bytes that hold neither keys nor values.
    pub(crate) fn overhead(&self) -> u64 {
        self.used.saturating_sub(self.dataset())
    }

    /// Memory of all databases beside entries.
    pub(crate) fn around_entries(&self) -> Overhead {
        let overheads = self.databases.iter().map(|database| database.overhead);
        overheads.fold(Overhead::default(), |sum, one| sum + one)
    }

    /// Bytes that have no figure of their own; negative if something was counted twice.
    pub(crate) fn other(&self) -> i64 {
        let around = self.around_entries().bytes() as u64;
        let named = [
            self.startup,
            self.buffers,
            self.slow_log,
            self.log,
            self.pending,
        ];
        let known = named.iter().sum::<u64>() + self.dataset() + around;
        self.used.wrapping_sub(known) as i64
    }

    /// Bytes that came into use since the start.
    pub(super) fn beyond_startup(&self) -> u64 {
        self.used.saturating_sub(self.startup)
    }

    /// Losses from requested bytes to memory of the process, step by step.
    pub(super) fn losses(&self) -> [Loss; 3] {
        let heap = &self.heap;
        [
            ("allocator-fragmentation", heap.allocated, heap.active),
            ("allocator-rss", heap.active, heap.resident),
            ("rss-overhead", heap.resident, self.resident),
        ]
        .map(|(name, inner, outer)| Loss {
            name,
            ratio: outer as f64 / inner.max(1) as f64,
            bytes: outer.wrapping_sub(inner) as i64,
        })
    }

    /// Physical memory per byte used.
    pub(crate) fn fragmentation(&self) -> f64 {
        self.resident as f64 / self.used.max(1) as f64
    }

    /// Bytes of physical memory beyond what is used; negative if some of it is not resident.
    pub(crate) fn fragmentation_bytes(&self) -> i64 {
        self.resident.wrapping_sub(self.used) as i64
    }
}
