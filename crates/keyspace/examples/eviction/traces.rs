//! Sequences of keys: what the policies are compared on. All come from a seed, so a table can be made again.

use fastrand::Rng;

/// The name of a kind of trace, and how one is made of so many keys for a cache of so many.
type Named = (&'static str, fn(usize, usize) -> Trace);

/// What the policies are compared on.
pub(crate) const ALL: &[Named] = &[
    ("zipf 0.8", |keys, _| Trace::Zipf(Zipf::new(keys, 0.8, 1))),
    ("zipf 0.99", |keys, _| Trace::Zipf(Zipf::new(keys, 0.99, 1))),
    ("zipf 1.2", |keys, _| Trace::Zipf(Zipf::new(keys, 1.2, 1))),
    ("zipf 0.99 with scans", |keys, cached| Trace::Scans {
        zipf: Zipf::new(keys, 0.99, 1),
        run: cached as u64,
        every: 5 * cached as u64,
        at: 0,
    }),
    ("loop", |keys, _| Trace::Loop {
        keys: keys as u64,
        at: 0,
    }),
    ("zipf 0.99, shifting", |keys, _| Trace::Shifting {
        zipf: Zipf::new(keys, 0.99, 1),
        every: 50_000,
        at: 0,
    }),
];

/// A sequence of keys, given out one after the other.
pub(crate) enum Trace {
    /// Keys by a power law: the n-th most wanted has the weight 1/n^skew.
    Zipf(Zipf),
    /// The same, with long runs of keys in between that are wanted once and never again.
    Scans {
        zipf: Zipf,
        /// Keys of a run, and requests from the beginning of one to that of the next.
        run: u64,
        every: u64,
        at: u64,
    },
    /// All keys one after the other, again and again.
    Loop { keys: u64, at: u64 },
    /// A power law whose keys change their weights: every so often the order of a part of them is another
    /// one.
    Shifting { zipf: Zipf, every: u64, at: u64 },
}

impl Trace {
    /// The next key.
    pub(crate) fn next(&mut self) -> u64 {
        match self {
            Trace::Zipf(zipf) => zipf.next(),
            Trace::Scans {
                zipf,
                run,
                every,
                at,
            } => {
                *at += 1;
                if *at % *every < *run {
                    zipf.keys() + *at
                } else {
                    zipf.next()
                }
            }
            Trace::Loop { keys, at } => {
                *at = (*at + 1) % *keys;
                *at
            }
            Trace::Shifting { zipf, every, at } => {
                *at += 1;
                if at.is_multiple_of(*every) {
                    zipf.shift();
                }
                zipf.next()
            }
        }
    }
}

/// Draws from a power law by looking a random number up in the sums of the weights.
pub(crate) struct Zipf {
    sums: Vec<f64>,
    /// Which key has which rank.
    names: Vec<u32>,
    random: Rng,
}

impl Zipf {
    /// Of so many keys.
    pub(crate) fn new(keys: usize, skew: f64, seed: u64) -> Zipf {
        let mut random = Rng::with_seed(seed);
        let mut sum = 0.0;
        let sums = (1..=keys)
            .map(|rank| {
                sum += (rank as f64).powf(-skew);
                sum
            })
            .collect();
        let mut names: Vec<u32> = (0..keys as u32).collect();
        random.shuffle(&mut names);
        Zipf {
            sums,
            names,
            random,
        }
    }

    fn keys(&self) -> u64 {
        self.sums.len() as u64
    }

    fn next(&mut self) -> u64 {
        let total = self.sums[self.sums.len() - 1];
        let at = self.random.f64() * total;
        let rank = self.sums.partition_point(|&sum| sum <= at);
        u64::from(self.names[rank.min(self.names.len() - 1)])
    }

    /// A hundredth of the keys get other ranks.
    fn shift(&mut self) {
        for _ in 0..self.names.len() / 200 {
            let (one, other) = (
                self.random.usize(..self.names.len()),
                self.random.usize(..self.names.len() / 20),
            );
            self.names.swap(one, other);
        }
    }
}
