//! One limit for all memory: what counts, who looks when, and what is done at the limit.
//!
//! ```text
//!  what counts   everything the process allocator gives: connections' buffers, requests being received, replies in flight,
//!                large values, wheels, registries                                               sys::memory::Counted
//!                slabs of entries and index tables, by the pages they hold                      keyspace, Options::charge
//!                what the process took before any of it: code, stacks, rings                    Budget::startup
//!                what allocators keep for later, as far as physical memory shows it             Budget::unreturned
//!  who looks     every request, by one comparison of what threads have published with `ceiling`
//!                beyond that those that may take memory: exactly, with what they may take       [`Context::make_room`]
//!  what is done  keys go by `maxmemory-policy`, clients by `maxmemory-clients`, or the command is refused
//! ```
//!
//! Invariants:
//! 1. A command that may take memory runs only if, with all it may take, the limit holds; whoever needs more
//!    than is free makes room first, a few hundred microseconds at a time, and waits in between.
//! 2. `ceiling` is so far below the limit that no request can pass it unseen: by what threads have not
//!    published and by what each worker may add before it looks again. A request for which that would not be
//!    enough is looked at with its size.
//! 3. Between finding room and taking it nobody else finds the same room: what is more than a worker's share
//!    of the margin is *claimed* first, and counts as in use until the worker asks for room again or its turn
//!    ends. Less than that is what the margin is for.
//! 4. A buffer for the rest of a large request grows as far as there is room for it: until then by little at
//!    a time.
//!
//! 5. A turn of a worker spends no more than a few milliseconds on making room, however many wait for it, and
//!    clients that leave too much unread are closed while it goes on: else what hundreds of them are answered
//!    in one turn would be many times the limit.
//!
//! What may pass the limit nevertheless, for a moment: the reply of a command that reads, beyond the margin,
//! until it is sent or room is made for it before the next command of its window, or behind the last; and
//! requests that are being received while nothing may go. Both are clients' buffers, which are bounded by
//! `maxmemory-clients`. And when for long nothing may leave memory, what one command in a turn reads from the
//! log.
//!
//! How a key is chosen is the keyspace's (`keyspace::evict`); what going means to others is in
//! [`crate::store`].

mod clients;
mod evictor;
mod physical;

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering::Relaxed};

use keyspace::{Access, Order, Policy};
use parking_lot::Mutex;

use crate::config::Setting;
use crate::limits::{
    CLIENTS_SHARE, FREE_KEPT_BYTES, FREE_KEPT_SHARE, LEAST_ROOM_BYTES, LOG_WORK_BYTES,
    LOG_WORK_SHARE, ROOM_BYTES, ROOM_SHARE,
};
use crate::shared::Shared;

pub(crate) use evictor::{Evictor, Room};

/// See the module.
#[derive(Default)]
pub(crate) struct Budget {
    /// Held while the budget is brought up to date: the control thread must not put back what it read before
    /// CONFIG SET.
    update: Mutex<()>,
    /// `maxmemory`; [`i64::MAX`] without a limit.
    limit: AtomicI64,
    /// What threads may have published before a request looks closer.
    ceiling: AtomicI64,
    /// Bytes of physical memory that the process took when it began to serve, beyond those that were counted.
    startup: AtomicI64,
    /// Bytes that were in use then, those included, and data not.
    startup_used: AtomicI64,
    /// Bytes kept free for what workers add before they look again.
    pub(crate) margin: AtomicI64,
    /// A worker's part of that: who needs more claims it.
    pub(super) share: AtomicI64,
    /// Bytes that workers have found room for and are about to take.
    pub(super) claimed: AtomicI64,
    /// Bytes of physical memory that the process has beyond what is counted: what allocators keep for later.
    unreturned: AtomicI64,
    /// When (Unix, ms) somebody has looked at that who makes room.
    looked_ms: AtomicI64,
    /// When one of those has asked for a purge.
    purge_asked_ms: AtomicI64,
    /// Bytes that clients may take together; 0 is no limit.
    clients: AtomicUsize,
    /// Since when (monotonic ns) memory is over the limit, and how long it was before; 0 if it is not.
    exceeded_since: AtomicI64,
    exceeded_ns: AtomicI64,
    /// One thread at a time looks for clients to drop.
    is_dropping: AtomicBool,
    /// When (Unix, ms) one has found that all clients that are left are spared, and take too much
    /// nevertheless.
    spared_ms: AtomicI64,
    /// Bytes beyond what clients may take together: those of the largest request with its replies, if there
    /// was more than they may take a moment ago.
    pub(crate) single: AtomicUsize,
}

impl Budget {
    /// Whether threads have published so much that who may take memory looks closer.
    #[inline]
    pub(crate) fn is_near(&self) -> bool {
        sys::memory::published() >= self.ceiling.load(Relaxed)
    }

    /// [`Budget::is_near`], if so many bytes more were in use.
    pub(crate) fn is_near_with(&self, bytes: usize) -> bool {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        sys::memory::published().saturating_add(bytes) >= self.ceiling.load(Relaxed)
    }

    /// Bytes in use.
    pub(crate) fn used(&self) -> i64 {
        sys::memory::used() + self.startup.load(Relaxed)
    }

    /// Bytes that the process took for itself before it had data.
    pub(crate) fn startup(&self) -> u64 {
        self.startup_used.load(Relaxed).max(0) as u64
    }

    /// Bytes that a worker may take unasked.
    pub(crate) fn share(&self) -> usize {
        self.share.load(Relaxed).max(0) as usize
    }

    /// Bytes too many if `need` more were taken; none are if it is not positive.
    pub(crate) fn excess(&self, need: usize) -> i64 {
        let kept = self.margin.load(Relaxed) + self.unreturned.load(Relaxed);
        let need = i64::try_from(need).unwrap_or(i64::MAX);
        let taken = self.used() + self.claimed.load(Relaxed);
        taken.saturating_add(need) - (self.limit.load(Relaxed) - kept)
    }

    /// Claims so many bytes, if there is room for them beside what others have claimed. Whether there is.
    fn claim(&self, bytes: i64) -> bool {
        let more =
            |claimed: i64| (self.excess(0).saturating_add(bytes) <= 0).then_some(claimed + bytes);
        // What is in use may have changed meanwhile, which the margin is for; no claim is overlooked.
        self.claimed.fetch_update(Relaxed, Relaxed, more).is_ok()
    }

    /// Whether there is room for so many bytes more.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        self.excess(usize::try_from(bytes).unwrap_or(usize::MAX)) <= 0
    }

    /// Whether more is in use than the limit allows.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.is_near() && self.excess(0) > 0
    }

    /// Bytes that clients may take together, if there is a limit.
    #[inline]
    pub(crate) fn clients(&self) -> Option<usize> {
        match self.clients.load(Relaxed) {
            0 => None,
            bytes => Some(bytes),
        }
    }

    /// How long (ms) memory has been over the limit without a pause, and in all.
    pub(crate) fn exceeded_ms(&self) -> (i64, i64) {
        let since = self.exceeded_since.load(Relaxed);
        let current = match since {
            0 => 0,
            since => (sys::clock::monotonic_ns() as i64 - since).max(0),
        };
        let total = self.exceeded_ns.load(Relaxed) + current;
        (current / 1_000_000, total / 1_000_000)
    }

    /// Sets how long it was over the limit back to nothing.
    pub(crate) fn reset(&self) {
        self.exceeded_ns.store(0, Relaxed);
    }

    fn note_excess(&self, is_over: bool) {
        let now = sys::clock::monotonic_ns() as i64;
        let since = self.exceeded_since.load(Relaxed);
        if is_over && since == 0 {
            self.exceeded_since.store(now, Relaxed);
        } else if !is_over && since != 0 {
            self.exceeded_since.store(0, Relaxed);
            self.exceeded_ns.fetch_add((now - since).max(0), Relaxed);
        }
    }
}

impl Shared {
    /// Bytes in use by all of the process.
    pub(crate) fn used_memory(&self) -> u64 {
        self.memory.used().max(0) as u64
    }

    /// Notes what the process takes beside what is counted. Called once everything runs, before there is
    /// data; what databases take that are ready for it is `data_bytes`.
    pub(crate) fn note_startup_memory(&self, data_bytes: usize) {
        let resident = sys::process::rss_bytes() as i64;
        let startup = (resident - sys::memory::used()).max(0);
        self.memory.startup.store(startup, Relaxed);
        let data = data_bytes as i64;
        self.memory
            .startup_used
            .store(self.memory.used() - data, Relaxed);
        self.totals
            .peak_memory
            .set(self.memory.used().max(0) as u64);
    }

    /// Brings the budget up to date with the settings, and with how many threads there are. `ring_bytes` is
    /// what changes on their way to the log take at most.
    pub(crate) fn check_memory(&self, ring_bytes: u64) {
        let (memory, settings) = (&self.memory, &self.settings);
        let _one = memory.update.lock();
        let limit = match settings.int(Setting::MaxMemory) {
            0 => i64::MAX,
            limit => limit,
        };
        // A small limit leaves less free.
        let share = match limit {
            i64::MAX => 0,
            limit => (limit / ROOM_SHARE).clamp(LEAST_ROOM_BYTES, ROOM_BYTES),
        };
        // And what the log's threads take when they begin to work: nobody asks whether they may.
        let log = match limit {
            i64::MAX => 0,
            _ => (ring_bytes.cast_signed() / LOG_WORK_SHARE).min(LOG_WORK_BYTES),
        };
        let margin = self.workers.len() as i64 * share + log;
        if limit < i64::MAX {
            memory.note_resident(limit);
        }
        let kept = (limit / FREE_KEPT_SHARE).min(FREE_KEPT_BYTES);
        sys::memory::keep_free(kept as usize);
        memory.limit.store(limit, Relaxed);
        memory.margin.store(margin, Relaxed);
        memory.share.store(share, Relaxed);
        let unseen = margin
            + memory.startup.load(Relaxed)
            + memory.unreturned.load(Relaxed)
            + sys::memory::unpublished_max();
        let ceiling = match limit {
            i64::MAX => i64::MAX,
            // Twice the margin: whoever is below may add its part.
            limit => limit - unseen - margin,
        };
        memory.ceiling.store(ceiling, Relaxed);
        memory.clients.store(self.clients_limit(), Relaxed);
        let used = memory.used().max(0);
        memory.note_excess(used > limit);
        if used as u64 > self.totals.peak_memory.get() {
            self.totals.peak_memory.set(used as u64);
        }
    }

    /// Bytes that clients may take together; 0 is no limit. While nothing is said, a part of `maxmemory`.
    fn clients_limit(&self) -> usize {
        let limit = self.settings.int(Setting::MaxMemory);
        let clients = match self.settings.int(Setting::MaxMemoryClients) {
            0 => limit / CLIENTS_SHARE,
            // As in Redis: a part of the limit of everything.
            percent if percent < 0 => (limit as i128 * i128::from(-percent) / 100) as i64,
            bytes => bytes,
        };
        clients.max(0) as usize
    }

    /// Tells the keyspace what is to be known of the use of keys under the policy of the settings.
    pub(crate) fn apply_eviction_settings(&self) {
        let access = match self.policy() {
            // From the first value on that leaves memory.
            None if self.offloads() && self.offload.is_offloading() => Access::Heat,
            None => Access::Clock,
            Some(_) if self.counts_uses() => Access::Frequency,
            Some(_) => Access::Heat,
        };
        let settings = &self.settings;
        let number = |setting| settings.int(setting).clamp(0, i64::from(u32::MAX)) as u32;
        let (factor, minutes) = (number(Setting::LfuLogFactor), number(Setting::LfuDecayTime));
        self.keyspace.set_access(access, factor, minutes);
    }

    /// Whether the policy is one of those that count uses.
    pub(crate) fn counts_uses(&self) -> bool {
        self.settings
            .choice(Setting::MaxMemoryPolicy)
            .ends_with("-lfu")
    }

    /// Which keys go when memory is short; `None` if none does.
    pub(crate) fn policy(&self) -> Option<Policy> {
        let (scope, order) = self
            .settings
            .choice(Setting::MaxMemoryPolicy)
            .split_once('-')?;
        let order = match order {
            "random" => Order::Random,
            "ttl" => Order::Soonest,
            _ => Order::Coldest,
        };
        let samples = self.settings.int(Setting::MaxMemorySamples) as usize;
        Some(Policy {
            volatile_only: scope == "volatile",
            order,
            samples,
        })
    }
}
