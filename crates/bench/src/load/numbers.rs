//! Which key comes next: the numbers that are put into keys, drawn from a range by a pattern.
//!
//! A [`Spec`] says what is asked for; each thread makes its own [`Numbers`] of it. Threads share nothing
//! but the counters of what goes on from one to the next: [`Pattern::Sequential`], so that a range is
//! filled without a gap however the requests fall to the threads, and [`Pattern::Latest`].

use super::zipf::Zipf;
use fastrand::Rng;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A way to draw numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Pattern {
    /// Every number as often as any other.
    #[default]
    Uniform,
    /// The first number most often, the others in proportion to 1 / rank^exponent.
    Zipf,
    /// A bell around a centre.
    Gaussian,
    /// One after the other, all connections together, from the start again at the end.
    Sequential,
    /// One after the other, each connection through a part of the range that is its own.
    Parallel,
    /// Writes append one after the other; reads prefer what was appended last, by Zipf.
    Latest,
    /// The first number, or a share of the requests for it and the others uniform.
    Hot,
}

/// Every pattern with its name and memtier_benchmark's letter.
const NAMES: [(Pattern, &str, &str); 7] = [
    (Pattern::Uniform, "uniform", "R"),
    (Pattern::Zipf, "zipf", "Z"),
    (Pattern::Gaussian, "gaussian", "G"),
    (Pattern::Sequential, "sequential", "S"),
    (Pattern::Parallel, "parallel", "P"),
    (Pattern::Latest, "latest", "L"),
    (Pattern::Hot, "hot", "H"),
];

impl Pattern {
    /// The pattern of a name or letter.
    ///
    /// # Errors
    /// There is none; the text lists them.
    pub(crate) fn parse(text: &str) -> Result<Pattern, String> {
        let random = ["random", "uniform-random"];
        NAMES
            .iter()
            .find(|(pattern, name, letter)| {
                text.eq_ignore_ascii_case(name)
                    || text.eq_ignore_ascii_case(letter)
                    || (*pattern == Pattern::Uniform && random.contains(&text))
            })
            .map(|(pattern, ..)| *pattern)
            .ok_or_else(|| {
                let known: Vec<_> = NAMES
                    .map(|(_, name, letter)| format!("{name} ({letter})"))
                    .into();
                format!("'{text}' is no key pattern; there are {}", known.join(", "))
            })
    }

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        NAMES
            .iter()
            .find(|(pattern, ..)| *pattern == self)
            .map_or("", |(_, name, _)| name)
    }
}

/// Numbers as they were asked for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spec {
    /// The smallest number.
    pub(crate) first: u64,
    /// How many numbers there are, at least one.
    pub(crate) count: u64,
    pub(crate) pattern: Pattern,
    /// Of [`Pattern::Zipf`] and [`Pattern::Latest`].
    pub(crate) exponent: f64,
    /// Of [`Pattern::Gaussian`], as an offset into the range; the middle if `None`.
    pub(crate) centre: Option<f64>,
    /// Of [`Pattern::Gaussian`]; a sixth of the range if `None`, so that it holds three to each side.
    pub(crate) deviation: Option<f64>,
    /// Of [`Pattern::Hot`]: how much of it goes to the first number, from 0 to 1.
    pub(crate) hot_share: f64,
    /// The request writes: with [`Pattern::Latest`] it appends.
    pub(crate) writes: bool,
}

impl Spec {
    /// Uniform numbers of a range.
    #[cfg(test)]
    pub(crate) fn uniform(first: u64, count: u64) -> Spec {
        Spec {
            first,
            count,
            pattern: Pattern::Uniform,
            exponent: 0.99,
            centre: None,
            deviation: None,
            hot_share: 1.0,
            writes: false,
        }
    }
}

/// Which part of the whole load a thread is.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    /// The number of its first connection among all.
    pub(crate) first_client: usize,
    /// How many connections it has.
    pub(crate) own_clients: usize,
    /// How many connections all threads have.
    pub(crate) clients: usize,
    /// How many numbers have been appended so far, by all threads.
    pub(crate) appended: Arc<AtomicU64>,
    /// How far each sequence has come, of all threads.
    pub(crate) cursors: Arc<[AtomicU64]>,
}

/// One thread's numbers of one kind of request.
#[derive(Clone, Debug)]
pub(crate) struct Numbers {
    /// Which of several equal sequences goes on; 0 if there is one.
    pub(crate) sequence: usize,
    first: u64,
    count: u64,
    way: Way,
}

#[derive(Clone, Debug)]
enum Way {
    Uniform,
    Zipf(Zipf),
    Gaussian {
        centre: f64,
        deviation: f64,
    },
    Sequential {
        cursors: Arc<[AtomicU64]>,
        own: usize,
    },
    Parallel(Vec<Cursor>),
    Append(Arc<AtomicU64>),
    Latest {
        appended: Arc<AtomicU64>,
        zipf: Zipf,
    },
    Hot {
        share: f64,
    },
}

/// A connection's part of the range, and where it is in it.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    first: u64,
    count: u64,
    next: u64,
}

impl Numbers {
    /// The numbers of a thread, the `own`th of the workload's.
    pub(crate) fn new(spec: &Spec, share: &Share, own: usize) -> Numbers {
        let count = spec.count.max(1);
        let way = match spec.pattern {
            Pattern::Uniform => Way::Uniform,
            Pattern::Zipf => Way::Zipf(Zipf::new(count, spec.exponent)),
            Pattern::Gaussian => Way::Gaussian {
                centre: spec.centre.unwrap_or((count - 1) as f64 / 2.0),
                deviation: spec.deviation.unwrap_or(count as f64 / 6.0),
            },
            Pattern::Sequential => Way::Sequential {
                cursors: Arc::clone(&share.cursors),
                own,
            },
            Pattern::Parallel => Way::Parallel(cursors(count, share)),
            Pattern::Latest if spec.writes => Way::Append(Arc::clone(&share.appended)),
            Pattern::Latest => Way::Latest {
                appended: Arc::clone(&share.appended),
                zipf: Zipf::new(count, spec.exponent),
            },
            Pattern::Hot => Way::Hot {
                share: spec.hot_share,
            },
        };
        Numbers {
            sequence: 0,
            first: spec.first,
            count,
            way,
        }
    }

    /// The next number for a connection, counted from this thread's first.
    #[inline]
    pub(crate) fn draw(&mut self, rng: &mut Rng, connection: usize) -> u64 {
        self.first
            + match &mut self.way {
                Way::Uniform => rng.u64(..self.count),
                way => draw_other(way, self.sequence, self.count, rng, connection),
            }
    }
}

fn draw_other(way: &mut Way, sequence: usize, count: u64, rng: &mut Rng, connection: usize) -> u64 {
    match way {
        Way::Uniform => rng.u64(..count),
        Way::Zipf(zipf) => zipf.draw(rng) - 1,
        Way::Gaussian { centre, deviation } => loop {
            let number = (*centre + *deviation * normal(rng)).round();
            // What falls outside is drawn again, or the ends would be hot.
            if number >= 0.0 && number < count as f64 {
                return number as u64;
            }
        },
        Way::Sequential { cursors, own } => {
            let own = (*own + sequence) % cursors.len();
            cursors[own].fetch_add(1, Ordering::Relaxed) % count
        }
        Way::Parallel(cursors) => {
            let cursor = &mut cursors[connection];
            let number = cursor.first + cursor.next;
            cursor.next = (cursor.next + 1) % cursor.count;
            number
        }
        Way::Append(appended) => appended.fetch_add(1, Ordering::Relaxed) % count,
        Way::Latest { appended, zipf } => {
            let appended = appended.load(Ordering::Relaxed);
            // Before anything was appended the whole range counts as written.
            let newest = if appended == 0 { count } else { appended };
            let known = newest.min(count);
            let back = loop {
                let back = zipf.draw(rng);
                if back <= known {
                    break back;
                }
            };
            (newest - back) % count
        }
        Way::Hot { share } => {
            if *share >= 1.0 || rng.f64() < *share {
                0
            } else {
                rng.u64(..count)
            }
        }
    }
}

/// Splits the range into equal parts for all connections, and keeps those of this thread. Where there
/// are more connections than numbers, they share.
fn cursors(count: u64, share: &Share) -> Vec<Cursor> {
    let clients = share.clients.max(1) as u64;
    (0..share.own_clients)
        .map(|own| {
            let client = (share.first_client + own) as u64;
            let edge =
                |client: u64| (u128::from(count) * u128::from(client) / u128::from(clients)) as u64;
            let first = edge(client);
            Cursor {
                first: first.min(count - 1),
                count: (edge(client + 1) - first).max(1),
                next: 0,
            }
        })
        .collect()
}

/// A number of the standard normal distribution, by Box and Muller.
fn normal(rng: &mut Rng) -> f64 {
    // 1 - f64() is never zero, whose logarithm is none.
    let radius = (-2.0 * (1.0 - rng.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.f64()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn share() -> Share {
        Share {
            first_client: 0,
            own_clients: 1,
            clients: 1,
            appended: Arc::default(),
            cursors: Arc::new([AtomicU64::new(0)]),
        }
    }

    fn spec(pattern: Pattern, count: u64) -> Spec {
        Spec {
            pattern,
            ..Spec::uniform(100, count)
        }
    }

    fn draw(spec: &Spec, times: usize) -> Vec<u64> {
        let (mut numbers, mut rng) = (Numbers::new(spec, &share(), 0), Rng::with_seed(3));
        (0..times).map(|_| numbers.draw(&mut rng, 0)).collect()
    }

    #[test]
    fn every_pattern_stays_in_its_range() {
        for (pattern, ..) in NAMES {
            for count in [1, 2, 3, 1_000] {
                for writes in [false, true] {
                    let spec = Spec {
                        writes,
                        ..spec(pattern, count)
                    };
                    for number in draw(&spec, 5_000) {
                        assert!((100..100 + count).contains(&number), "{pattern:?} {number}");
                    }
                }
            }
        }
    }

    #[test]
    fn uniform_numbers_are_even() {
        let mut seen = BTreeMap::new();
        for number in draw(&spec(Pattern::Uniform, 10), 100_000) {
            *seen.entry(number).or_insert(0_u32) += 1;
        }
        assert_eq!(seen.len(), 10);
        // 10,000 each, five deviations of 95.
        assert!(
            seen.values().all(|count| count.abs_diff(10_000) < 475),
            "{seen:?}"
        );
    }

    #[test]
    fn a_bell_has_its_centre_and_its_width() {
        let spec = Spec {
            centre: Some(400.0),
            deviation: Some(50.0),
            ..spec(Pattern::Gaussian, 1_000)
        };
        let numbers = draw(&spec, 100_000);
        let mean = numbers.iter().sum::<u64>() as f64 / 1e5;
        let variance = numbers
            .iter()
            .map(|&n| (n as f64 - mean).powi(2))
            .sum::<f64>()
            / 1e5;
        assert!((mean - 500.0).abs() < 1.0, "{mean}");
        assert!((variance.sqrt() - 50.0).abs() < 1.0, "{variance}");
    }

    #[test]
    fn threads_share_a_sequence_and_leave_no_gap() {
        let share = share();
        let spec = spec(Pattern::Sequential, 10);
        let mut threads = [0; 3].map(|_| Numbers::new(&spec, &share, 0));
        let mut rng = Rng::with_seed(1);
        let mut seen: Vec<_> = (0..10)
            .map(|_| threads[rng.usize(..3)].draw(&mut Rng::with_seed(1), 0))
            .collect();
        seen.sort_unstable();
        assert_eq!(seen, (100..110).collect::<Vec<_>>());
        assert_eq!(
            draw(&self::spec(Pattern::Sequential, 3), 5),
            [100, 101, 102, 100, 101]
        );
    }

    #[test]
    fn connections_have_parts_of_their_own() {
        let mut seen = Vec::new();
        for thread in 0..2 {
            let share = Share {
                first_client: thread * 2,
                own_clients: 2,
                clients: 4,
                ..share()
            };
            let mut numbers = Numbers::new(&spec(Pattern::Parallel, 10), &share, 0);
            let mut rng = Rng::with_seed(1);
            for connection in 0..2 {
                let part: Vec<_> = (0..3).map(|_| numbers.draw(&mut rng, connection)).collect();
                seen.push(part);
            }
        }
        assert_eq!(
            seen,
            [
                [100, 101, 100],
                [102, 103, 104],
                [105, 106, 105],
                [107, 108, 109]
            ]
        );
    }

    #[test]
    fn reads_of_the_latest_follow_the_writes() {
        let share = share();
        let writes = Spec {
            writes: true,
            ..spec(Pattern::Latest, 1_000)
        };
        let mut writer = Numbers::new(&writes, &share, 0);
        let mut reader = Numbers::new(&spec(Pattern::Latest, 1_000), &share, 0);
        let mut rng = Rng::with_seed(1);
        for round in 1..=2_500_u64 {
            assert_eq!(writer.draw(&mut rng, 0), 100 + (round - 1) % 1_000);
            let age = (1_000 + round - 1 - (reader.draw(&mut rng, 0) - 100)) % 1_000;
            assert!(age < round, "never written: {age} at {round}");
        }
        let recent = (0..10_000)
            .filter(|_| (2_499 - (reader.draw(&mut rng, 0) - 100)) % 1_000 < 10)
            .count();
        // Ten of a thousand ranks hold 38 % of a zipf of 0.99.
        assert!((3_300..4_400).contains(&recent), "{recent}");
    }

    #[test]
    fn a_hot_key_takes_its_share() {
        let half = Spec {
            hot_share: 0.5,
            ..spec(Pattern::Hot, 1_000)
        };
        let hits = draw(&half, 10_000).iter().filter(|&&n| n == 100).count();
        assert!((4_700..5_300).contains(&hits), "{hits}");
        assert!(
            draw(&spec(Pattern::Hot, 1_000), 100)
                .iter()
                .all(|&n| n == 100)
        );
    }

    #[test]
    fn names_and_letters_are_read() {
        for (pattern, name, letter) in NAMES {
            for text in [name, letter, &letter.to_lowercase()] {
                assert_eq!(Pattern::parse(text), Ok(pattern));
            }
            assert_eq!(pattern.name(), name);
        }
        assert!(Pattern::parse("zip").is_err_and(|error| error.contains("zipf (Z)")));
    }
}
