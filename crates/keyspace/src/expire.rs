//! The timing wheel of one shard: which keys may have expired by now, without looking at the others.
//!
//! An item is 4 bytes: the upper half of a key's place. It says nothing about when: whoever takes it out
//! looks at the entry for the exact time. So an item that is out of date (its key deleted, its expiry moved)
//! is harmless, and deleting a key doesn't touch the wheel.
//!
//! ```text
//!  level   a slot spans   items that are at most    are looked at
//!    0          8 ms            0.5 s away          when they expire
//!    1        128 ms              8 s               at least 128 ms before, and move down
//!    2          2 s             2 min               at least 2 s before
//!    3         33 s            34 min               ...
//!    4       8.7 min              9 h
//!    5       2.3 h            6 days
//!    6        37 h           98 days
//!    7        25 days       4.3 years               anything later waits in the last slot
//! ```
//!
//! What is special about this wheel: an item of a higher level comes up *early*, by as much as a slot of its
//! level spans. When a slot begins, its items become *ready*, and there is that much time to move them down.
//! Millions of keys that were given the same time to live come up at once, and are moved a few at a time
//! while others expire on time; only what has waited for half of its time is pressing. Level 0 always is.
//!
//! Items are chained in chunks of 14, a cache line each, and chunks come in slabs, so that nothing is ever
//! moved to grow. Costs per volatile key: 4 bytes and a share of a half-full chunk per slot in use.
//!
//! Invariants:
//! 1. Every item in a slot waits for a granule (a slot's span, counted from the epoch) that is ahead of
//!    `elapsed` by less than [`SLOTS`]. So a slot means one granule, and no item is forgotten.
//! 2. A level's item is in the granule before the one its time falls into, on level 0 in that one itself.
//! 3. `occupied[level]` has a bit for each slot with a chain.

use std::collections::VecDeque;

/// Milliseconds of a tick.
pub(crate) const TICK_MS: i64 = 8;

const LEVELS: usize = 8;
/// A slot of a level spans `1 << RATIO_BITS` slots of the level below.
const RATIO_BITS: u32 = 4;
const SLOTS: usize = 64;
const CHUNK_ITEMS: usize = 14;
const SLAB_CHUNKS: usize = 64;
const NO_CHUNK: u32 = u32::MAX;
/// Items out of date that are not worth forgetting, and unused room that is not worth giving back, in items.
const SPARE_ITEMS: usize = 4096;
/// How far the wheel may be ahead of the clock (it was set back) before it had better be made anew, in ticks.
const AHEAD: u64 = 128;

struct Chunk {
    items: [u32; CHUNK_ITEMS],
    len: u32,
    next: u32,
}

const _: () = assert!(size_of::<Chunk>() == 64);

/// A chain whose slot has begun.
struct Ready {
    head: u32,
    level: usize,
    /// The tick at which it may not wait any longer.
    presses_at: u64,
}

/// See the module.
pub(crate) struct Wheel {
    /// Ticks that are over: all slots that have begun by then are ready.
    elapsed: u64,
    occupied: [u64; LEVELS],
    heads: Box<[[u32; SLOTS]; LEVELS]>,
    /// Chains of level 0, the oldest first.
    due: VecDeque<Ready>,
    /// Chains of other levels.
    early: Vec<Ready>,
    slabs: Vec<Box<[Chunk; SLAB_CHUNKS]>>,
    /// Chunks that were ever used since the wheel was last empty.
    used: u32,
    /// Used chunks that are free again.
    free: u32,
    len: usize,
}

/// The first tick at whose beginning a key with this expiry is expired (`now > expiry`).
fn tick_of(expiry_ms: i64) -> u64 {
    (expiry_ms.max(0) as u64) / TICK_MS as u64 + 1
}

fn shift_of(level: usize) -> u32 {
    RATIO_BITS * level as u32
}

fn ms_of(tick: u64) -> i64 {
    (tick as i64).saturating_mul(TICK_MS)
}

impl Wheel {
    /// An empty wheel at a time.
    pub(crate) fn new(now_ms: i64) -> Wheel {
        Wheel {
            elapsed: now_ms.max(0) as u64 / TICK_MS as u64,
            occupied: [0; LEVELS],
            heads: Box::new([[NO_CHUNK; SLOTS]; LEVELS]),
            due: VecDeque::new(),
            early: Vec::new(),
            slabs: Vec::new(),
            used: 0,
            free: NO_CHUNK,
            len: 0,
        }
    }

    /// Items, those out of date included.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether the wheel had better be made anew at `now_ms` from the `live` keys that have an expiry: most
    /// of its items are out of date, most of its memory was needed once and is not any more, or the clock was
    /// set back. Right after that it is not.
    pub(crate) fn is_wasteful(&self, live: usize, now_ms: i64) -> bool {
        let room = self.slabs.len() * SLAB_CHUNKS * CHUNK_ITEMS;
        let now = now_ms.max(0) as u64 / TICK_MS as u64;
        self.len > 2 * live + SPARE_ITEMS
            || room > 4 * (self.len + SPARE_ITEMS)
            || self.elapsed > now + AHEAD
    }

    pub(crate) fn memory(&self) -> usize {
        size_of::<Wheel>()
            + size_of::<[[u32; SLOTS]; LEVELS]>()
            + self.slabs.len() * size_of::<[Chunk; SLAB_CHUNKS]>()
    }

    /// Adds an item that is to be taken when `expiry_ms` has passed, and may be before. Returns when (ms) the
    /// wheel will first have something to do with it.
    pub(crate) fn insert(&mut self, item: u32, expiry_ms: i64) -> i64 {
        let tick = tick_of(expiry_ms).max(self.elapsed + 1);
        if tick - self.elapsed < SLOTS as u64 {
            self.push(0, tick, item);
            return ms_of(tick);
        }
        let mut level = 1;
        loop {
            // Ahead of the present granule by three at least, because the level below did not reach that far.
            let (granule, present) = (
                (tick >> shift_of(level)) - 1,
                self.elapsed >> shift_of(level),
            );
            let reach = present + SLOTS as u64 - 1;
            if granule <= reach || level == LEVELS - 1 {
                let granule = granule.min(reach);
                self.push(level, granule, item);
                return ms_of(granule << shift_of(level));
            }
            level += 1;
        }
    }

    fn push(&mut self, level: usize, granule: u64, item: u32) {
        let slot = granule as usize % SLOTS;
        let head = self.heads[level][slot];
        self.len += 1;
        if head != NO_CHUNK {
            let chunk = self.chunk(head);
            if (chunk.len as usize) < CHUNK_ITEMS {
                chunk.items[chunk.len as usize] = item;
                chunk.len += 1;
                return;
            }
        }
        let at = self.take_chunk();
        let chunk = self.chunk(at);
        chunk.items[0] = item;
        chunk.len = 1;
        chunk.next = head;
        self.heads[level][slot] = at;
        self.occupied[level] |= 1 << slot;
    }

    #[inline]
    fn chunk(&mut self, at: u32) -> &mut Chunk {
        let at = at as usize;
        &mut self.slabs[at / SLAB_CHUNKS][at % SLAB_CHUNKS]
    }

    fn take_chunk(&mut self) -> u32 {
        if self.free != NO_CHUNK {
            let at = self.free;
            self.free = self.chunk(at).next;
            return at;
        }
        let at = self.used;
        self.used += 1;
        if at as usize / SLAB_CHUNKS == self.slabs.len() {
            self.slabs.push(Box::new(
                [const {
                    Chunk {
                        items: [0; CHUNK_ITEMS],
                        len: 0,
                        next: NO_CHUNK,
                    }
                }; SLAB_CHUNKS],
            ));
        }
        at
    }

    /// Makes everything ready whose slot has begun by a tick.
    fn advance(&mut self, now: u64) {
        if now <= self.elapsed {
            return;
        }
        for level in 0..LEVELS {
            let shift = shift_of(level);
            let (from, to) = (self.elapsed >> shift, now >> shift);
            let begun = (to - from).min(SLOTS as u64);
            if begun == 0 {
                // No slot of this level has begun, so none of the levels above.
                break;
            }
            // What waits is less than a round ahead, however long ago this was called last.
            for granule in from + 1..=from + begun {
                self.make_ready(level, granule);
            }
        }
        self.elapsed = now;
    }

    fn make_ready(&mut self, level: usize, granule: u64) {
        let slot = granule as usize % SLOTS;
        if self.occupied[level] >> slot & 1 == 0 {
            return;
        }
        self.occupied[level] &= !(1 << slot);
        let head = std::mem::replace(&mut self.heads[level][slot], NO_CHUNK);
        let (begin, span) = (granule << shift_of(level), 1 << shift_of(level));
        let ready = Ready {
            head,
            level,
            presses_at: if level == 0 { begin } else { begin + span / 2 },
        };
        if level == 0 {
            self.due.push_back(ready);
        } else {
            self.early.push(ready);
        }
    }

    /// When (ms) there is something to do: in the past while anything is ready, the longer ago the longer it
    /// presses.
    pub(crate) fn next_due_ms(&self) -> i64 {
        let mut next = u64::MAX;
        for level in 0..LEVELS {
            if self.occupied[level] != 0 {
                let present = self.elapsed >> shift_of(level);
                // The slots ahead of the present one, in order of time.
                let first = ((present + 1) % SLOTS as u64) as u32;
                let ahead = self.occupied[level].rotate_right(first).trailing_zeros();
                next = next.min((present + 1 + u64::from(ahead)) << shift_of(level));
            }
        }
        let ready = self.due.front().into_iter().chain(&self.early);
        for ready in ready {
            next = next.min(ready.presses_at.min(self.elapsed));
        }
        if next == u64::MAX {
            i64::MAX
        } else {
            ms_of(next)
        }
    }

    /// Whether anything may not wait any longer, as of the last [`Wheel::take_due`].
    pub(crate) fn presses(&self) -> bool {
        !self.due.is_empty()
            || self
                .early
                .iter()
                .any(|ready| ready.presses_at <= self.elapsed)
    }

    /// Takes about `most` items (up to 13 more) that press at `now_ms`, and while there are fewer than
    /// `spare`, some that could wait. Those that turn out not to be expired are to be inserted again.
    pub(crate) fn take_due(
        &mut self,
        now_ms: i64,
        most: usize,
        spare: usize,
        items: &mut Vec<u32>,
    ) {
        self.advance(now_ms.max(0) as u64 / TICK_MS as u64);
        while items.len() < most {
            if let Some(first) = self.due.front_mut() {
                let head = first.head;
                match self.pop_chunk(head, items) {
                    NO_CHUNK => drop(self.due.pop_front()),
                    next => self.due[0].head = next,
                }
            } else if let Some(at) = self.most_pressing(items.len() < spare) {
                let head = self.early[at].head;
                match self.pop_chunk(head, items) {
                    NO_CHUNK => drop(self.early.swap_remove(at)),
                    next => self.early[at].head = next,
                }
            } else {
                break;
            }
        }
        if self.len == 0 {
            // Give memory back when the last item is gone.
            self.slabs = Vec::new();
            (self.used, self.free) = (0, NO_CHUNK);
        }
    }

    /// The chain that presses most, or would first if there is time to spare.
    fn most_pressing(&self, has_time: bool) -> Option<usize> {
        let chains = self.early.iter().enumerate();
        let (at, ready) = chains.min_by_key(|(_, ready)| (ready.presses_at, ready.level))?;
        (has_time || ready.presses_at <= self.elapsed).then_some(at)
    }

    /// Takes the items of a chain's first chunk. Returns the next chunk.
    fn pop_chunk(&mut self, head: u32, items: &mut Vec<u32>) -> u32 {
        let free = self.free;
        let chunk = self.chunk(head);
        items.extend_from_slice(&chunk.items[..chunk.len as usize]);
        let (count, next) = (chunk.len as usize, chunk.next);
        chunk.next = free;
        self.free = head;
        self.len -= count;
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs time forward and returns when each item came out for good. With every step there is time to spare
    /// for so many.
    fn fire(
        wheel: &mut Wheel,
        expiries: &[i64],
        (from, until, step): (i64, i64, i64),
        most: usize,
        spare: usize,
    ) -> Vec<i64> {
        let mut fired = vec![0; expiries.len()];
        let mut now = from;
        let mut due = Vec::new();
        while now <= until {
            let mut spare = spare;
            loop {
                due.clear();
                wheel.take_due(now, most, spare, &mut due);
                spare = 0;
                for &item in &due {
                    let expiry = expiries[item as usize];
                    if now > expiry {
                        assert_eq!(fired[item as usize], 0, "an item comes out once");
                        fired[item as usize] = now;
                    } else {
                        wheel.insert(item, expiry);
                    }
                }
                if !wheel.presses() {
                    break;
                }
            }
            now += step;
        }
        fired
    }

    #[test]
    fn every_item_fires_within_a_tick_of_its_time() {
        let mut random = fastrand::Rng::with_seed(3);
        for spare in [0, 5, 1000] {
            for (span, step) in [
                (100i64, 1),
                (2_000, 3),
                (60_000, 8),
                (3_000_000, 50),
                (100_000_000, 60),
            ] {
                let start = 1_700_000_000_000 + random.i64(0..1_000_000);
                let expiries: Vec<i64> = (0..3000).map(|_| start + random.i64(-5..span)).collect();
                let mut wheel = Wheel::new(start);
                for (item, &expiry) in expiries.iter().enumerate() {
                    wheel.insert(item as u32, expiry);
                }
                assert_eq!(wheel.len(), expiries.len());
                let until = start + span + 2 * TICK_MS + step;
                let fired = fire(&mut wheel, &expiries, (start, until, step), 17, spare);
                for (&at, &expiry) in fired.iter().zip(&expiries) {
                    assert!(at > expiry, "early or never: {at} for {expiry}");
                    assert!(
                        at <= expiry.max(start) + 2 * TICK_MS + step,
                        "late: {at} for {expiry} of {span}"
                    );
                }
                assert_eq!((wheel.len(), wheel.next_due_ms()), (0, i64::MAX));
            }
        }
    }

    #[test]
    fn items_added_while_time_runs_are_not_forgotten() {
        let mut random = fastrand::Rng::with_seed(4);
        let mut now = 5_000_000i64;
        let mut wheel = Wheel::new(now);
        let mut waiting = std::collections::BTreeMap::new();
        let mut due = Vec::new();
        for next in 0..20_000u32 {
            let expiry =
                now + [1, 7, 8, 9, 500, 512, 520, 8_000, 33_000, 100_000][random.usize(..10)];
            waiting.insert(next, expiry);
            let told = wheel.insert(next, expiry);
            assert!(told > now && wheel.next_due_ms() <= told);
            now += random.i64(0..40);
            assert!(wheel.next_due_ms() <= waiting.values().min().unwrap() + 2 * TICK_MS);
            loop {
                due.clear();
                wheel.take_due(now, 20, 0, &mut due);
                for item in due.drain(..) {
                    if now > waiting[&item] {
                        waiting.remove(&item);
                    } else {
                        wheel.insert(item, waiting[&item]);
                    }
                }
                if !wheel.presses() {
                    break;
                }
            }
            assert!(
                waiting.values().all(|&expiry| expiry + TICK_MS >= now),
                "an expired item is still inside"
            );
            assert_eq!(wheel.len(), waiting.len());
        }
    }

    #[test]
    fn many_that_come_up_together_can_wait_while_others_are_on_time() {
        const CROWD: u32 = 50_000;
        let start = 1_700_000_000_000i64;
        // All come up in two slots; that is minutes before the first of them expires.
        let first = start + 3_600_000;
        let expiry_of = |item: u32| first + 12 * i64::from(item);
        let mut wheel = Wheel::new(start);
        for item in 0..CROWD {
            wheel.insert(item, expiry_of(item));
        }
        let mut due = Vec::new();
        let (mut now, mut single) = (start, start + 100);
        wheel.insert(CROWD, single);
        let (mut looks, mut pressed) = (0, 0);
        while now < first {
            now += 10;
            due.clear();
            wheel.take_due(now, 64, 64, &mut due);
            for &item in &due {
                if item < CROWD {
                    looks += 1;
                    wheel.insert(item, expiry_of(item));
                } else if now <= single {
                    wheel.insert(CROWD, single);
                } else {
                    assert!(now <= single + TICK_MS + 10, "{now} {single}");
                    single = now + 3_000;
                    wheel.insert(CROWD, single);
                }
            }
            pressed += usize::from(wheel.presses());
        }
        assert_eq!(pressed, 0, "what comes up early presses nobody");
        assert!((CROWD..=5 * CROWD).contains(&looks), "{looks} looks");
    }

    #[test]
    fn far_times_and_long_idle_are_fine() {
        const FAR: i64 = 1_000_000_000_000;
        let mut wheel = Wheel::new(0);
        wheel.insert(1, i64::MAX);
        wheel.insert(2, FAR);
        let mut due = Vec::new();
        for now in [FAR - 1000, FAR + 16] {
            loop {
                due.clear();
                wheel.take_due(now, usize::MAX, 0, &mut due);
                for &item in &due {
                    match item {
                        1 => drop(wheel.insert(1, i64::MAX)),
                        _ if now <= FAR => drop(wheel.insert(2, FAR)),
                        _ => {}
                    }
                }
                if !wheel.presses() {
                    break;
                }
            }
        }
        assert_eq!(wheel.len(), 1, "the one that is due is out");
    }

    #[test]
    fn a_clock_that_is_set_back_is_noticed() {
        let mut wheel = Wheel::new(10_000_000);
        wheel.insert(1, 10_000_100);
        assert!(!wheel.is_wasteful(1, 10_000_000 - 500));
        assert!(wheel.is_wasteful(1, 9_000_000));
        assert!(!Wheel::new(9_000_000).is_wasteful(1, 9_000_000));
    }
}
