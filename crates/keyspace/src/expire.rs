//! The timing wheel of one shard: which keys may have expired by now, without looking at the others.
//!
//! Seven levels of 64 slots; a slot of level `n` spans `64^n` ticks of 8 ms. An item is 4 bytes: the top half of a
//! key's place. It is put into the level where its time first differs from now, and moves down as time
//! reaches its slot; the caller looks at the entry itself for the exact time. So an item that is out
//! of date (its key deleted, its expiry moved) is harmless, and deleting a key doesn't touch the wheel.
//!
//! ```text
//!  level 0   |  8 ms a slot, 0.5 s in all      items due within this half second
//!  level 1   |  0.5 s       , 33 s             spread over level 0 when their slot begins
//!  ...
//!  level 6   |  17 years    , 1,100 years      anything later waits in the last slot
//! ```
//!
//! Items of a slot are chained in chunks of 14, a cache line each. Costs per volatile key: 4 bytes and a share of
//! a half-full chunk per slot in use.
//!
//! Invariants:
//! 1. Every item's slot begins after `elapsed`, so no item is forgotten.
//! 2. `occupied[level]` has a bit for each slot with a chain.

/// Milliseconds of a tick.
pub(crate) const TICK_MS: i64 = 8;

const LEVELS: usize = 7;
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
const CHUNK_ITEMS: usize = 14;
/// Ticks the wheel can look ahead.
const HORIZON: u64 = (1 << (SLOT_BITS * LEVELS as u32)) - 1;
const NO_CHUNK: u32 = u32::MAX;
/// Items out of date that are not worth forgetting, and unused room that is not worth giving back, in items.
const SPARE_ITEMS: usize = 4096;

struct Chunk {
    items: [u32; CHUNK_ITEMS],
    len: u32,
    next: u32,
}

const _: () = assert!(size_of::<Chunk>() == 64);

/// See the module.
pub(crate) struct Wheel {
    /// Ticks that are over: every item of them was taken.
    elapsed: u64,
    occupied: [u64; LEVELS],
    heads: Box<[[u32; SLOTS]; LEVELS]>,
    chunks: Vec<Chunk>,
    free: u32,
    len: usize,
    /// The slot that is being taken, no longer in `occupied`: nothing is added to it.
    open: Option<(usize, usize)>,
}

/// The first tick at whose beginning a key with this expiry is expired (`now > expiry`).
fn tick_of(expiry_ms: i64) -> u64 {
    (expiry_ms.max(0) as u64) / TICK_MS as u64 + 1
}

impl Wheel {
    /// An empty wheel at a time.
    pub(crate) fn new(now_ms: i64) -> Wheel {
        Wheel {
            elapsed: now_ms.max(0) as u64 / TICK_MS as u64,
            occupied: [0; LEVELS],
            heads: Box::new([[NO_CHUNK; SLOTS]; LEVELS]),
            chunks: Vec::new(),
            free: NO_CHUNK,
            len: 0,
            open: None,
        }
    }

    /// Items, those out of date included.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether the wheel had better be made anew from the `live` keys that have an expiry: most of its items are out of
    /// date, or most of its memory was needed once and is not any more. Right after that it is not.
    pub(crate) fn is_wasteful(&self, live: usize) -> bool {
        let room = self.chunks.capacity() * CHUNK_ITEMS;
        self.len > 2 * live + SPARE_ITEMS || room > 4 * (self.len + SPARE_ITEMS)
    }

    pub(crate) fn memory(&self) -> usize {
        size_of::<Wheel>()
            + size_of::<[[u32; SLOTS]; LEVELS]>()
            + self.chunks.capacity() * size_of::<Chunk>()
    }

    /// Adds an item that is to be taken when `expiry_ms` has passed.
    pub(crate) fn insert(&mut self, item: u32, expiry_ms: i64) {
        let tick = tick_of(expiry_ms).clamp(self.elapsed + 1, self.elapsed + HORIZON);
        let level = ((63 - ((tick ^ self.elapsed) | 1).leading_zeros()) / SLOT_BITS) as usize;
        let level = level.min(LEVELS - 1);
        let slot = (tick >> (SLOT_BITS * level as u32)) as usize & (SLOTS - 1);
        self.push(level, slot, item);
    }

    fn push(&mut self, level: usize, slot: usize, item: u32) {
        let head = self.heads[level][slot];
        self.len += 1;
        if let Some(chunk) = self.chunks.get_mut(head as usize)
            && (chunk.len as usize) < CHUNK_ITEMS
        {
            chunk.items[chunk.len as usize] = item;
            chunk.len += 1;
            return;
        }
        let mut fresh = Chunk {
            items: [0; CHUNK_ITEMS],
            len: 1,
            next: head,
        };
        fresh.items[0] = item;
        let at = self.free;
        if at == NO_CHUNK {
            self.heads[level][slot] = self.chunks.len() as u32;
            self.chunks.push(fresh);
        } else {
            self.free = self.chunks[at as usize].next;
            self.chunks[at as usize] = fresh;
            self.heads[level][slot] = at;
        }
        self.occupied[level] |= 1 << slot;
    }

    /// The earliest occupied slot: level, slot, first tick.
    fn earliest(&self) -> Option<(usize, usize, u64)> {
        for level in 0..LEVELS {
            if self.occupied[level] == 0 {
                continue;
            }
            let shift = SLOT_BITS * level as u32;
            let current = self.elapsed >> shift;
            // The slots ahead of the current one, in order of time.
            let ahead =
                self.occupied[level].rotate_right(((current + 1) & (SLOTS as u64 - 1)) as u32);
            let distance = u64::from(ahead.trailing_zeros()) + 1;
            let tick = (current + distance) << shift;
            return Some((level, (current + distance) as usize & (SLOTS - 1), tick));
        }
        None
    }

    /// The time (ms) at which there is something to take.
    pub(crate) fn next_due_ms(&self) -> i64 {
        if self.open.is_some() {
            return 0;
        }
        self.earliest().map_or(i64::MAX, |(_, _, tick)| {
            (tick as i64).saturating_mul(TICK_MS)
        })
    }

    /// Takes about `most` items (up to 13 more) whose slot has begun by `now_ms`. Those that turn out not to be
    /// expired are to be inserted again. Fewer than `most`: there are no more.
    pub(crate) fn take_due(&mut self, now_ms: i64, most: usize, due: &mut Vec<u32>) {
        let now = now_ms.max(0) as u64 / TICK_MS as u64;
        while due.len() < most {
            if let Some((level, slot)) = self.open {
                match self.heads[level][slot] {
                    NO_CHUNK => self.open = None,
                    head => self.pop_chunk(level, slot, head, due),
                }
                continue;
            }
            match self.earliest() {
                Some((level, slot, tick)) if tick <= now => {
                    self.elapsed = tick;
                    self.occupied[level] &= !(1 << slot);
                    self.open = Some((level, slot));
                }
                // Nothing lies between `elapsed` and now.
                _ => {
                    self.elapsed = self.elapsed.max(now);
                    return;
                }
            }
        }
    }

    fn pop_chunk(&mut self, level: usize, slot: usize, head: u32, due: &mut Vec<u32>) {
        let chunk = &mut self.chunks[head as usize];
        due.extend_from_slice(&chunk.items[..chunk.len as usize]);
        self.len -= chunk.len as usize;
        self.heads[level][slot] = chunk.next;
        chunk.next = self.free;
        self.free = head;
        if self.len == 0 {
            // Give memory back when the last item is gone.
            self.chunks = Vec::new();
            self.free = NO_CHUNK;
            self.heads[level][slot] = NO_CHUNK;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs time forward and returns when each item came out for good.
    fn fire(
        wheel: &mut Wheel,
        expiries: &[i64],
        from: i64,
        until: i64,
        step: i64,
        most: usize,
    ) -> Vec<i64> {
        let mut fired = vec![0; expiries.len()];
        let mut now = from;
        let mut due = Vec::new();
        while now <= until {
            loop {
                due.clear();
                wheel.take_due(now, most, &mut due);
                for &item in &due {
                    let expiry = expiries[item as usize];
                    if now > expiry {
                        assert_eq!(fired[item as usize], 0, "an item comes out once");
                        fired[item as usize] = now;
                    } else {
                        wheel.insert(item, expiry);
                    }
                }
                if due.len() < most {
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
        for (span, step) in [(100i64, 1), (2_000, 3), (60_000, 8), (3_000_000, 500)] {
            let start = 1_700_000_000_000 + random.i64(0..1_000_000);
            let expiries: Vec<i64> = (0..3000).map(|_| start + random.i64(-5..span)).collect();
            let mut wheel = Wheel::new(start);
            for (item, &expiry) in expiries.iter().enumerate() {
                wheel.insert(item as u32, expiry);
            }
            assert_eq!(wheel.len(), expiries.len());
            let fired = fire(
                &mut wheel,
                &expiries,
                start,
                start + span + 2 * TICK_MS + step,
                step,
                17,
            );
            for (&at, &expiry) in fired.iter().zip(&expiries) {
                assert!(at > expiry, "early or never: {at} for {expiry}");
                assert!(
                    at <= expiry.max(start) + 2 * TICK_MS + step,
                    "late: {at} for {expiry}"
                );
            }
            assert_eq!(wheel.len(), 0);
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
            let expiry = now + [1, 7, 8, 9, 500, 512, 520, 33_000, 100_000][random.usize(..9)];
            waiting.insert(next, expiry);
            wheel.insert(next, expiry);
            now += random.i64(0..40);
            assert!(wheel.next_due_ms() <= waiting.values().min().unwrap() + 2 * TICK_MS);
            due.clear();
            wheel.take_due(now, usize::MAX, &mut due);
            for item in due.drain(..) {
                if now > waiting[&item] {
                    waiting.remove(&item);
                } else {
                    wheel.insert(item, waiting[&item]);
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
    fn far_times_and_long_idle_are_fine() {
        let mut wheel = Wheel::new(0);
        wheel.insert(1, i64::MAX);
        wheel.insert(2, 1_000_000_000_000);
        let mut due = Vec::new();
        wheel.take_due(999_999_999_000, usize::MAX, &mut due);
        assert!(due.iter().all(|&item| item == 2 || item == 1));
        for item in due.drain(..) {
            wheel.insert(
                item,
                if item == 1 {
                    i64::MAX
                } else {
                    1_000_000_000_000
                },
            );
        }
        wheel.take_due(1_000_000_000_016, usize::MAX, &mut due);
        assert!(due.contains(&2));
    }
}
