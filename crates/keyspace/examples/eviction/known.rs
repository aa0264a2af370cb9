//! The policies that others use, as their descriptions have them: what ours is compared with. Simple rather
//! than quick.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use fastrand::Rng;

/// Maps from keys, which are numbers that need no good hash.
type Map<V> = HashMap<u64, V, BuildHasherDefault<Quick>>;

#[derive(Default)]
pub(crate) struct Quick(u64);

impl Hasher for Quick {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// A cache of a number of keys.
pub(crate) trait Cache {
    /// Asks for a key, which is put in if it is missing. Whether it was there.
    fn request(&mut self, key: u64) -> bool;
}

/// A list of keys in an order, with removal anywhere: positions only ascend, and what was removed leaves a
/// hole.
#[derive(Default)]
struct Order {
    keys: VecDeque<Option<u64>>,
    first: u64,
    places: Map<u64>,
}

impl Order {
    fn len(&self) -> usize {
        self.places.len()
    }

    fn contains(&self, key: u64) -> bool {
        self.places.contains_key(&key)
    }

    fn push(&mut self, key: u64) {
        self.places.insert(key, self.first + self.keys.len() as u64);
        self.keys.push_back(Some(key));
    }

    fn remove(&mut self, key: u64) -> bool {
        let Some(place) = self.places.remove(&key) else {
            return false;
        };
        self.keys[(place - self.first) as usize] = None;
        true
    }

    fn pop(&mut self) -> Option<u64> {
        while let Some(key) = self.keys.pop_front() {
            self.first += 1;
            if let Some(key) = key {
                self.places.remove(&key);
                return Some(key);
            }
        }
        None
    }

    fn touch(&mut self, key: u64) {
        if self.remove(key) {
            self.push(key);
        }
    }
}

/// The key that was not used for longest goes.
pub(crate) struct Lru {
    order: Order,
    capacity: usize,
}

impl Lru {
    pub(crate) fn new(capacity: usize) -> Lru {
        Lru {
            order: Order::default(),
            capacity,
        }
    }
}

impl Cache for Lru {
    fn request(&mut self, key: u64) -> bool {
        if self.order.contains(key) {
            self.order.touch(key);
            return true;
        }
        if self.order.len() == self.capacity {
            self.order.pop();
        }
        self.order.push(key);
        false
    }
}

/// How Redis judges the keys it samples.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Judge {
    Recency,
    Frequency,
}

/// Redis: five random keys are looked at, and the worst of these and of a pool of sixteen goes. (Its clock is
/// taken to be exact; the real one counts seconds.)
pub(crate) struct Sampled {
    judge: Judge,
    keys: Vec<(u64, u64, u8)>,
    places: Map<usize>,
    pool: Vec<(u64, u64)>,
    capacity: usize,
    clock: u64,
    random: Rng,
}

const SAMPLES: usize = 5;
const POOL: usize = 16;
const FIRST_COUNT: u8 = 5;
const LOG_FACTOR: f64 = 10.0;

impl Sampled {
    pub(crate) fn new(capacity: usize, judge: Judge) -> Sampled {
        Sampled {
            judge,
            keys: Vec::new(),
            places: Map::default(),
            pool: Vec::new(),
            capacity,
            clock: 0,
            random: Rng::with_seed(1),
        }
    }

    /// The more, the sooner it goes.
    fn badness(&self, at: usize) -> u64 {
        let (_, used, count) = self.keys[at];
        match self.judge {
            Judge::Recency => self.clock - used,
            Judge::Frequency => u64::from(255 - count),
        }
    }

    fn evict(&mut self) {
        loop {
            for _ in 0..SAMPLES {
                let at = self.random.usize(..self.keys.len());
                let (badness, key) = (self.badness(at), self.keys[at].0);
                if self.pool.iter().any(|&(_, other)| other == key) {
                    continue;
                }
                let place = self.pool.partition_point(|&(other, _)| other < badness);
                if self.pool.len() < POOL {
                    self.pool.insert(place, (badness, key));
                } else if place > 0 {
                    self.pool.insert(place, (badness, key));
                    self.pool.remove(0);
                }
            }
            while let Some((_, key)) = self.pool.pop() {
                if let Some(at) = self.places.remove(&key) {
                    self.keys.swap_remove(at);
                    if let Some(&(moved, ..)) = self.keys.get(at) {
                        self.places.insert(moved, at);
                    }
                    return;
                }
            }
        }
    }
}

impl Cache for Sampled {
    fn request(&mut self, key: u64) -> bool {
        self.clock += 1;
        if let Some(&at) = self.places.get(&key) {
            let (_, used, count) = &mut self.keys[at];
            *used = self.clock;
            let above = f64::from(count.saturating_sub(FIRST_COUNT));
            if *count < 255 && self.random.f64() < 1.0 / (above * LOG_FACTOR + 1.0) {
                *count += 1;
            }
            return true;
        }
        if self.keys.len() == self.capacity {
            self.evict();
        }
        self.places.insert(key, self.keys.len());
        self.keys.push((key, self.clock, FIRST_COUNT));
        false
    }
}

/// SIEVE: a queue whose keys keep their places, and a hand that goes from the oldest to the newest and spares
/// those that were used.
pub(crate) struct Sieve {
    /// Oldest first; the key, and whether it was used.
    queue: VecDeque<(u64, bool)>,
    places: Map<u64>,
    first: u64,
    hand: u64,
    capacity: usize,
    used: Vec<bool>,
}

impl Sieve {
    pub(crate) fn new(capacity: usize) -> Sieve {
        Sieve {
            queue: VecDeque::new(),
            places: Map::default(),
            first: 0,
            hand: 0,
            capacity,
            used: Vec::new(),
        }
    }

    fn evict(&mut self) {
        loop {
            if self.hand < self.first || self.hand >= self.first + self.queue.len() as u64 {
                self.hand = self.first;
            }
            let (key, used) = &mut self.queue[(self.hand - self.first) as usize];
            if self.places.get(key) != Some(&self.hand) {
                // A hole: what was here has gone.
                if self.hand == self.first {
                    self.queue.pop_front();
                    self.first += 1;
                }
                self.hand += 1;
            } else if std::mem::take(used) {
                self.hand += 1;
            } else {
                let key = *key;
                self.places.remove(&key);
                self.hand += 1;
                return;
            }
        }
    }

    /// Closes the holes when there are as many as keys.
    fn close_holes(&mut self) {
        if self.queue.len() < 2 * self.capacity {
            return;
        }
        self.used.clear();
        let (old, first, hand) = (std::mem::take(&mut self.queue), self.first, self.hand);
        self.first = 0;
        for (number, (key, used)) in old.into_iter().enumerate() {
            let place = first + number as u64;
            if place == hand {
                self.hand = self.queue.len() as u64;
            }
            if self.places.get(&key) == Some(&place) {
                self.places.insert(key, self.queue.len() as u64);
                self.queue.push_back((key, used));
            }
        }
    }
}

impl Cache for Sieve {
    fn request(&mut self, key: u64) -> bool {
        if let Some(&place) = self.places.get(&key) {
            self.queue[(place - self.first) as usize].1 = true;
            return true;
        }
        if self.places.len() == self.capacity {
            self.evict();
            self.close_holes();
        }
        self.places
            .insert(key, self.first + self.queue.len() as u64);
        self.queue.push_back((key, false));
        false
    }
}

/// S3-FIFO: a small queue that most keys leave soon, a main queue, and the names of those that left.
pub(crate) struct S3Fifo {
    small: VecDeque<u64>,
    main: VecDeque<u64>,
    ghost: Order,
    /// How often a key was used, up to three times.
    uses: Map<u8>,
    capacity: usize,
}

impl S3Fifo {
    pub(crate) fn new(capacity: usize) -> S3Fifo {
        S3Fifo {
            small: VecDeque::new(),
            main: VecDeque::new(),
            ghost: Order::default(),
            uses: Map::default(),
            capacity,
        }
    }

    fn evict(&mut self) {
        loop {
            if self.small.len() * 10 >= self.capacity || self.main.is_empty() {
                let Some(key) = self.small.pop_front() else {
                    continue;
                };
                if self.uses[&key] > 1 {
                    self.uses.insert(key, 0);
                    self.main.push_back(key);
                    continue;
                }
                self.uses.remove(&key);
                self.ghost.push(key);
                if self.ghost.len() > self.capacity * 9 / 10 {
                    self.ghost.pop();
                }
                return;
            }
            let key = self.main.pop_front().expect("it is not empty");
            let uses = self.uses.get_mut(&key).expect("it is in a queue");
            if *uses == 0 {
                self.uses.remove(&key);
                return;
            }
            *uses -= 1;
            self.main.push_back(key);
        }
    }
}

impl Cache for S3Fifo {
    fn request(&mut self, key: u64) -> bool {
        if let Some(uses) = self.uses.get_mut(&key) {
            *uses = (*uses + 1).min(3);
            return true;
        }
        if self.uses.len() == self.capacity {
            self.evict();
        }
        if self.ghost.remove(key) {
            self.main.push_back(key);
        } else {
            self.small.push_back(key);
        }
        self.uses.insert(key, 0);
        false
    }
}

/// W-TinyLFU: a window of a hundredth, and a main part that a key from the window only enters if a sketch has
/// seen it more often than the one that would have to go.
pub(crate) struct TinyLfu {
    window: Order,
    probation: Order,
    protected: Order,
    sketch: Vec<[u8; 4]>,
    seen: usize,
    capacity: usize,
}

impl TinyLfu {
    pub(crate) fn new(capacity: usize) -> TinyLfu {
        TinyLfu {
            window: Order::default(),
            probation: Order::default(),
            protected: Order::default(),
            sketch: vec![[0; 4]; (4 * capacity).next_power_of_two()],
            seen: 0,
            capacity,
        }
    }

    fn cells(&self, key: u64) -> [usize; 4] {
        let mut hash = key.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        std::array::from_fn(|_| {
            hash = (hash ^ hash >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (hash >> 20) as usize & (self.sketch.len() - 1)
        })
    }

    fn count(&mut self, key: u64) {
        for (row, cell) in self.cells(key).into_iter().enumerate() {
            let count = &mut self.sketch[cell][row];
            *count = (*count + 1).min(15);
        }
        self.seen += 1;
        if self.seen >= 10 * self.capacity {
            self.seen /= 2;
            self.sketch
                .iter_mut()
                .flatten()
                .for_each(|count| *count /= 2);
        }
    }

    fn estimate(&self, key: u64) -> u8 {
        let cells = self.cells(key).into_iter().enumerate();
        cells
            .map(|(row, cell)| self.sketch[cell][row])
            .min()
            .expect("four rows")
    }
}

impl Cache for TinyLfu {
    fn request(&mut self, key: u64) -> bool {
        self.count(key);
        if self.window.contains(key) {
            self.window.touch(key);
            return true;
        }
        if self.protected.contains(key) {
            self.protected.touch(key);
            return true;
        }
        if self.probation.remove(key) {
            self.protected.push(key);
            if self.protected.len() > self.capacity * 79 / 100
                && let Some(demoted) = self.protected.pop()
            {
                self.probation.push(demoted);
            }
            return true;
        }
        self.window.push(key);
        if self.window.len() > (self.capacity / 100).max(1)
            && let Some(candidate) = self.window.pop()
        {
            self.probation.push(candidate);
            let all = self.window.len() + self.probation.len() + self.protected.len();
            if all > self.capacity {
                let victim = self.probation.pop().expect("the candidate is in it");
                if victim != candidate && self.estimate(candidate) <= self.estimate(victim) {
                    self.probation.remove(candidate);
                    self.probation.push(victim);
                }
            }
        }
        false
    }
}
