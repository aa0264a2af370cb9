//! One limit for all memory: what counts, when it is checked, and what happens at the limit.
//!
//! ```text
//!  counted   all allocations: buffers of connections, requests being received,
//!            replies in flight, large values, wheels, registries              sys::memory::Counted
//!            slabs of entries and index tables, by the pages they hold        keyspace, Options::charge
//!            the process before it has data: code, stacks, rings              Budget::startup
//!            memory that allocators keep, as far as it is resident            Budget::unreturned
//!  checked   at every request: one comparison of the published bytes with `ceiling`
//!            beyond that, at requests that may take memory: exactly, with
//!            the bytes they may take                                          [`Context::make_room`]
//!  done      keys are evicted by `maxmemory-policy`, clients closed by `maxmemory-clients`,
//!            or the command is refused
//! ```
//!
//! Invariants:
//!
//! 1. A command that may take memory runs only if the limit holds with all that it may take. A command that
//!    needs more than is free makes room first, a few hundred microseconds at a time, and waits in between.
//! 2. `ceiling` is so far below the limit that no request passes the limit unseen: by the bytes that threads
//!    have not published, and by the bytes that each worker may add before its next check. A request for
//!    which that is not enough is checked with its size.
//! 3. Room that one thread has found is found by no other thread before it is taken: more than a worker's
//!    share of the margin is *claimed* first, and counts as in use until the worker asks for room again or
//!    its turn ends. The margin covers smaller needs.
//! 4. A buffer for the rest of a large request grows as far as there is room for it; until then in small
//!    steps.
//! 5. A turn of a worker spends at most a few milliseconds on making room, whatever the number of waiting
//!    commands. Clients with too many unsent bytes are closed meanwhile, else the replies to hundreds of
//!    clients in one turn would be many times the limit.
//!
//! 6. A reply of many items is bounded while it is made, and so is a value whose size shows only at its end
//!    ([`Growing`], `command::room`).
//!
//! Three things may exceed the limit for a moment. What cannot wait for room: the requests of a transaction,
//! and replies, by [`BEYOND_SHARE`] of the limit. Requests that are being received while nothing can be
//! evicted: they are clients' buffers, which `maxmemory-clients` bounds. The values that one command per turn
//! reads from the log when nothing could leave memory for long.
//!
//! Not here: the choice of a key (`keyspace::evict`), and the effects of its eviction ([`crate::store`]).

mod clients;
mod evictor;
mod growing;
mod physical;

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use keyspace::{Access, Policy};
use parking_lot::Mutex;

use crate::config::{MaxMemoryPolicy, Scope, Setting};
use crate::limits::{
    CLIENTS_SHARE, FREE_KEPT_BYTES, FREE_KEPT_SHARE, LEAST_CLIENTS_BYTES, LEAST_ROOM_BYTES,
    LOG_WORK_BYTES, LOG_WORK_SHARE, ROOM_BYTES, ROOM_SHARE, SCRIPT_MEMORY_LEAST,
    SCRIPT_MEMORY_MOST, SCRIPT_MEMORY_SHARE, SCRIPT_RUN_LEAST,
};
use crate::script::LoadBounds;
use crate::shared::Shared;

pub(crate) use evictor::{Evictor, Room};
pub(crate) use growing::Growing;

/// What cannot wait for room, such as a reply inside of a transaction, may exceed the limit by 1/N of it.
const BEYOND_SHARE: i64 = 16;

/// The limit and what counts against it.
#[derive(Default)]
pub(crate) struct Budget {
    /// Held while the budget is updated: the control thread must not write back values that it read before a
    /// CONFIG SET.
    update: Mutex<()>,
    /// `maxmemory`; [`i64::MAX`] without a limit.
    limit: AtomicI64,
    /// Published bytes from which on a request is checked exactly.
    ceiling: AtomicI64,
    /// Uncounted resident bytes of the process when it began to serve.
    startup: AtomicI64,
    /// Bytes in use at that time, including these, without data.
    startup_used: AtomicI64,
    /// Bytes kept free for what workers add between two checks.
    pub(crate) margin: AtomicI64,
    /// A worker's part of the margin; a larger need is claimed.
    pub(super) share: AtomicI64,
    /// Bytes that workers have claimed and not yet taken.
    pub(super) claimed: AtomicI64,
    /// Uncounted resident bytes that allocators keep for later.
    unreturned: AtomicI64,
    /// Last check of resident memory by a worker that makes room, Unix ms.
    looked_ms: AtomicI64,
    /// Last request for a purge by a worker, Unix ms.
    purge_asked_ms: AtomicI64,
    /// Limit of all clients together, bytes; 0: none.
    clients: AtomicUsize,
    /// Time (monotonic ns) since which memory exceeds the limit, 0 if it does not; nanoseconds of earlier
    /// excesses.
    exceeded_since: AtomicI64,
    exceeded_ns: AtomicI64,
    /// Lock of the search for clients to close.
    is_dropping: AtomicBool,
    /// Time (Unix ms) at which all remaining clients were spared and still exceeded the limit.
    spared_ms: AtomicI64,
    /// Whether reads are no uses (LRM).
    only_writes_count: AtomicBool,
    /// Bytes beyond the limit of all clients: the largest request with its replies, if clients exceeded their
    /// limit a moment ago.
    pub(crate) single: AtomicUsize,
}

impl Budget {
    /// Whether published bytes have reached the ceiling, so that requests that may take memory are checked
    /// exactly.
    #[inline]
    pub(crate) fn is_near(&self) -> bool {
        sys::memory::published() >= self.ceiling.load(Relaxed)
    }

    /// [`Budget::is_near`] with `bytes` more in use.
    pub(crate) fn is_near_with(&self, bytes: usize) -> bool {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        sys::memory::published().saturating_add(bytes) >= self.ceiling.load(Relaxed)
    }

    /// Whether a read counts as a use of a key, by the policy.
    #[inline]
    pub(crate) fn counts_reads(&self) -> bool {
        !self.only_writes_count.load(Relaxed)
    }

    /// Bytes in use.
    pub(crate) fn used(&self) -> i64 {
        sys::memory::used() + self.startup.load(Relaxed)
    }

    /// Bytes in use before there was data.
    pub(crate) fn startup(&self) -> u64 {
        self.startup_used.load(Relaxed).max(0) as u64
    }

    /// Bytes that a worker may take without a claim.
    pub(crate) fn share(&self) -> usize {
        self.share.load(Relaxed).max(0) as usize
    }

    /// Bytes beyond the limit if `need` more were taken; not positive if there is room.
    pub(crate) fn excess(&self, need: usize) -> i64 {
        let kept = self.margin.load(Relaxed) + self.unreturned.load(Relaxed);
        let need = i64::try_from(need).unwrap_or(i64::MAX);
        let taken = self.used() + self.claimed.load(Relaxed);
        taken.saturating_add(need) - (self.limit.load(Relaxed) - kept)
    }

    /// Claims bytes, if there is room for them beside other claims. Returns whether there is.
    fn claim(&self, bytes: i64) -> bool {
        let more =
            |claimed: i64| (self.excess(0).saturating_add(bytes) <= 0).then_some(claimed + bytes);
        // A change of the bytes in use meanwhile is within the margin; no claim is overlooked.
        self.claimed.fetch_update(Relaxed, Relaxed, more).is_ok()
    }

    /// Whether there is room for `bytes` more.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        self.excess(usize::try_from(bytes).unwrap_or(usize::MAX)) <= 0
    }

    /// Bytes that can be taken without making room: those below the limit, and the part beyond it that is
    /// for what cannot wait.
    fn room_now(&self) -> usize {
        match self.limit.load(Relaxed) {
            i64::MAX => usize::MAX,
            limit => (limit / BEYOND_SHARE).saturating_sub(self.excess(0)).max(0) as usize,
        }
    }

    /// About as many, without a look at every thread: fewer.
    #[inline]
    pub(crate) fn room_nearly(&self) -> usize {
        let ceiling = self.ceiling.load(Relaxed);
        ceiling.saturating_sub(sys::memory::published()).max(0) as usize
    }

    /// Whether there can ever be room for so many bytes: the server itself takes the rest of the limit.
    pub(crate) fn can_have_room(&self, bytes: usize) -> bool {
        let own = self.startup_used.load(Relaxed) + self.margin.load(Relaxed);
        let most = self.limit.load(Relaxed).saturating_sub(own);
        i64::try_from(bytes).is_ok_and(|bytes| bytes <= most)
    }

    /// Whether the bytes in use exceed the limit.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.is_near() && self.excess(0) > 0
    }

    /// Limit of all clients together, bytes; `None` without one.
    #[inline]
    pub(crate) fn clients(&self) -> Option<usize> {
        match self.clients.load(Relaxed) {
            0 => None,
            bytes => Some(bytes),
        }
    }

    /// Time (ms) over the limit: the current excess, and all of them.
    pub(crate) fn exceeded_ms(&self) -> (i64, i64) {
        let since = self.exceeded_since.load(Relaxed);
        let current = match since {
            0 => 0,
            since => (sys::clock::monotonic_ns() as i64 - since).max(0),
        };
        let total = self.exceeded_ns.load(Relaxed) + current;
        (current / 1_000_000, total / 1_000_000)
    }

    /// Resets the time over the limit.
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
    /// Bytes that a state of Lua may have.
    pub(crate) fn lua_state_limit(&self) -> usize {
        let share = self.settings.int(Setting::MaxMemory).max(0) as usize / SCRIPT_MEMORY_SHARE;
        match share {
            0 => SCRIPT_MEMORY_MOST,
            share => share.clamp(SCRIPT_MEMORY_LEAST, SCRIPT_MEMORY_MOST),
        }
    }

    /// Bounds of the run of a library's text that may take so long.
    pub(crate) fn load_bounds(&self, time: Duration) -> LoadBounds {
        LoadBounds {
            time,
            state_bytes: self.lua_state_limit(),
            run_bytes: self.lua_run_limit(),
        }
    }

    /// Bytes that a run of Lua may take from the process now.
    pub(crate) fn lua_run_limit(&self) -> usize {
        SCRIPT_RUN_LEAST.max(self.room_now() / 2)
    }

    /// Bytes that can be taken without making room ([`Budget::room_now`]). No data is refused that is loaded.
    pub(crate) fn room_now(&self) -> usize {
        match self.is_loading() {
            true => usize::MAX,
            false => self.memory.room_now(),
        }
    }

    /// Bytes in use by the whole process.
    pub(crate) fn used_memory(&self) -> u64 {
        self.memory.used().max(0) as u64
    }

    /// Measures the memory that is not counted. Called once all threads run and before there is data.
    /// `data_bytes`: bytes of the empty databases.
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
        let now_s = sys::clock::realtime_ms() / 1000;
        self.totals.peak_memory_s.set(now_s as u64);
    }

    /// Updates the budget from the settings and the number of threads. `ring_bytes`: size of the log's ring.
    pub(crate) fn check_memory(&self, ring_bytes: u64) {
        let (memory, settings) = (&self.memory, &self.settings);
        let _one = memory.update.lock();
        let limit = match settings.int(Setting::MaxMemory) {
            0 => i64::MAX,
            limit => limit,
        };
        // A small limit has a small margin.
        let share = match limit {
            i64::MAX => 0,
            limit => (limit / ROOM_SHARE).clamp(LEAST_ROOM_BYTES, ROOM_BYTES),
        };
        // The log's threads take memory without a check when they begin to work.
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
            // Twice the margin: a worker below the ceiling may add its part.
            limit => limit - unseen - margin,
        };
        memory.ceiling.store(ceiling, Relaxed);
        memory.clients.store(self.clients_limit(), Relaxed);
        let used = memory.used().max(0);
        memory.note_excess(used > limit);
        if used as u64 > self.totals.peak_memory.get() {
            self.totals.peak_memory.set(used as u64);
            let now_s = sys::clock::realtime_ms() / 1000;
            self.totals.peak_memory_s.set(now_s as u64);
        }
    }

    /// Limit of all clients together, bytes; 0: none. The default is a part of `maxmemory`.
    fn clients_limit(&self) -> usize {
        let limit = self.settings.int(Setting::MaxMemory);
        let clients = match self.settings.int(Setting::MaxMemoryClients) {
            0 if limit > 0 => (limit / CLIENTS_SHARE).max(LEAST_CLIENTS_BYTES),
            0 => 0,
            // As in Redis: a percentage of `maxmemory`.
            percent if percent < 0 => (limit as i128 * i128::from(-percent) / 100) as i64,
            bytes => bytes,
        };
        clients.max(0) as usize
    }

    /// Tells the keyspace which accesses to record for the configured policy.
    pub(crate) fn apply_eviction_settings(&self) {
        let policy = self.settings.max_memory_policy();
        let access = match policy {
            MaxMemoryPolicy::Evict { chosen, .. } => chosen.access(),
            // From the first offloaded value on.
            MaxMemoryPolicy::Offload if self.offload.is_offloading() => Access::Heat,
            MaxMemoryPolicy::Offload | MaxMemoryPolicy::NoEviction => Access::Clock,
        };
        let settings = &self.settings;
        self.memory
            .only_writes_count
            .store(!policy.counts_reads(), Relaxed);
        let number = |setting| settings.int(setting).clamp(0, i64::from(u32::MAX)) as u32;
        let (factor, minutes) = (number(Setting::LfuLogFactor), number(Setting::LfuDecayTime));
        self.keyspace.set_access(access, factor, minutes);
    }

    /// Eviction by the configured policy; `None` if it evicts nothing.
    pub(crate) fn policy(&self) -> Option<Policy> {
        let MaxMemoryPolicy::Evict { scope, chosen } = self.settings.max_memory_policy() else {
            return None;
        };
        Some(Policy {
            volatile_only: scope == Scope::Volatile,
            order: chosen.order(),
            samples: self.settings.int(Setting::MaxMemorySamples) as usize,
        })
    }
}
