//! Compares policies of eviction by the requests they answer from the cache.
//!
//! ```text
//! cargo run --release -p ferrite-keyspace --example eviction [REQUESTS]
//! ```
//!
//! Every policy gets the same requests; the second half of them counts. `ours` is the keyspace itself,
//! evicting as the server's policies lru and lfu do. docs/eviction.md has what it printed.

mod known;
mod ours;
mod traces;

use std::io::Write as _;

use keyspace::Order;

use known::{Cache, Judge, Lru, S3Fifo, Sampled, Sieve, TinyLfu};
use ours::Ours;
use traces::Trace;

/// Keys of a trace; those of scans come on top.
const KEYS: usize = 100_000;

/// Sizes of the caches, in percent of the keys.
const SHARES: [usize; 3] = [1, 10, 50];

/// The name of a policy, and how a cache of so many keys is made that has it.
type Named = (&'static str, fn(usize) -> Box<dyn Cache>);

const POLICIES: &[Named] = &[
    ("exact LRU", |keys| Box::new(Lru::new(keys))),
    ("sampled LRU (Redis)", |keys| {
        Box::new(Sampled::new(keys, Judge::Recency))
    }),
    ("sampled LFU (Redis)", |keys| {
        Box::new(Sampled::new(keys, Judge::Frequency))
    }),
    ("SIEVE", |keys| Box::new(Sieve::new(keys))),
    ("S3-FIFO", |keys| Box::new(S3Fifo::new(keys))),
    ("W-TinyLFU", |keys| Box::new(TinyLfu::new(keys))),
    ("ours", |keys| Box::new(Ours::new(keys, Order::Coldest))),
];

fn main() {
    let mut args = std::env::args().skip(1);
    let requests = args.next().and_then(|text| text.parse().ok());
    let requests: usize = requests.unwrap_or(1_000_000);
    let only = args.next().unwrap_or_default();
    println!("| requests | cache | {} |", names().join(" | "));
    println!("|---|---|{}", "---|".repeat(POLICIES.len()));
    for (name, make) in traces::ALL {
        for share in SHARES {
            let keys = KEYS * share / 100;
            let trace: Vec<u64> = requests_of(make(KEYS, keys), requests);
            print!("| {name} | {share} % |");
            for (policy, make) in POLICIES {
                if policy.contains(&only) {
                    print!(" {:.2} |", hit_percent(&mut *make(keys), &trace));
                    // Some take a while.
                    let _ = std::io::stdout().flush();
                }
            }
            println!();
        }
    }
}

fn names() -> Vec<&'static str> {
    POLICIES.iter().map(|(name, _)| *name).collect()
}

fn requests_of(mut trace: Trace, count: usize) -> Vec<u64> {
    (0..count).map(|_| trace.next()).collect()
}

/// The requests of the second half that found their key.
fn hit_percent(cache: &mut dyn Cache, trace: &[u64]) -> f64 {
    let (warming, counted) = trace.split_at(trace.len() / 2);
    for &key in warming {
        cache.request(key);
    }
    let hits = counted.iter().filter(|&&key| cache.request(key)).count();
    hits as f64 * 100.0 / counted.len() as f64
}
