//! `--lru-test`: a cache's work on a server with too little memory for it, and how often that hits.
//!
//! Half of the requests write, half read; which keys follows a power law by which four fifths of them go to a
//! fifth of the keys.

use std::io::{self, Write};
use std::time::Duration;

use resp::Value;
use sys::clock::{monotonic_ns, realtime_us};

use super::countdown::Countdown;
use crate::failure::Result;
use crate::flags::Options;
use crate::session::Session;

/// Requests that are sent at once.
const BATCH: usize = 250;
/// The power by which few keys get most requests.
const POWER: f64 = 6.2;
const PERIOD: Duration = Duration::from_secs(1);

pub(super) fn run(session: &mut Session, options: &Options, keys: u64) -> Result {
    let mut out = io::stdout().lock();
    let mut random = Random(realtime_us().unsigned_abs() | 1);
    let mut countdown = Countdown::new(options);
    loop {
        let start_ns = monotonic_ns();
        let (mut hits, mut misses) = (0_u64, 0_u64);
        while Duration::from_nanos(monotonic_ns() - start_ns) < PERIOD {
            let writes: Vec<_> = (0..BATCH).map(|_| write(&mut random, keys)).collect();
            for reply in session.ask_all(&writes)? {
                complain(&reply);
            }
            let reads: Vec<_> = (0..BATCH).map(|_| read(&mut random, keys)).collect();
            for reply in session.ask_all(&reads)? {
                match reply {
                    Value::Null => misses += 1,
                    Value::Error(_) => complain(&reply),
                    _ => hits += 1,
                }
            }
        }
        let gets = hits + misses;
        let share = |count| 100.0 * count as f64 / gets.max(1) as f64;
        writeln!(
            out,
            "{gets} Gets/sec | Hits: {hits} ({:.2}%) | Misses: {misses} ({:.2}%)",
            share(hits),
            share(misses)
        )?;
        if countdown.is_last() {
            return Ok(());
        }
    }
}

fn complain(reply: &Value) {
    if let Value::Error(text) = reply {
        eprintln!("{}", String::from_utf8_lossy(text));
    }
}

fn write(random: &mut Random, keys: u64) -> Vec<Vec<u8>> {
    let value = (0..5).map(|_| b'A' + (random.next() % 57) as u8).collect();
    vec![b"SET".to_vec(), key(random, keys), value]
}

fn read(random: &mut Random, keys: u64) -> Vec<Vec<u8>> {
    vec![b"GET".to_vec(), key(random, keys)]
}

fn key(random: &mut Random, keys: u64) -> Vec<u8> {
    format!("lru:{}", skewed(random.share(), keys)).into_bytes()
}

/// A number from 1 to `keys`, small ones more often, for a `share` that is equally distributed from 0 to 1.
fn skewed(share: f64, keys: u64) -> u64 {
    let end = (keys + 1) as f64;
    let power = POWER + 1.0;
    let place = ((end.powf(power) - 1.0) * share + 1.0).powf(1.0 / power);
    keys + 1 - (place as u64).clamp(1, keys)
}

/// A generator of numbers that nobody has to be unable to guess.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// From 0, inclusive, to 1.
    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifth_of_the_keys_gets_four_fifths_of_the_requests() {
        let mut random = Random(7);
        let mut first_fifth = 0;
        for _ in 0..100_000 {
            let number = skewed(random.share(), 1000);
            assert!((1..=1000).contains(&number));
            first_fifth += u64::from(number <= 200);
        }
        assert!((78_000..82_000).contains(&first_fifth), "{first_fifth}");
        assert_eq!((skewed(0.0, 10), skewed(0.9999999, 10)), (10, 1));
    }
}
