//! A cache, and a server that leaves values in its log, under everything that makes a limit hard to keep,
//! watched by the physical memory of their processes.
//!
//! `FERRITE_CHURN_SECONDS` says for how long; `make churn` runs each for half an hour. With
//! `FERRITE_CHURN_GROUP=1` each server is in a memory cgroup that allows hardly more than its limit, so that
//! the kernel would kill it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::memory::info;
use crate::memory::watch::{Refusals, watch};
use crate::support::{MemoryGroup, PATIENCE, Server, Target, encode_request, eventually};

/// What a server may take, in bytes: enough that the program itself is a small part of it.
const LIMIT: u64 = 256 << 20;
/// And so little that everything which does not shrink with it shows.
const SMALL_LIMIT: u64 = 48 << 20;
/// How much more its process may be seen to take.
const TOLERATED_PERCENT: u64 = 10;
/// How much more the group of its process may take, page cache included, before the kernel kills.
const GROUP_PERCENT: u64 = 15;

const WORKERS: usize = 2;
/// The largest value, in bytes.
const LARGEST: u64 = 1 << 20;
/// A value that has no file of its own, in bytes.
const IN_MEMORY: usize = 30_000;

/// Clients that ask for much and read nothing.
const SLOW_READERS: usize = 1_000;

fn seconds() -> u64 {
    let asked = std::env::var("FERRITE_CHURN_SECONDS").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(6)
}

/// What a server is to keep to, and what is asked of it.
#[derive(Clone, Copy)]
struct Load {
    limit: u64,
    /// Keys whose values have all sizes, and keys whose values have a megabyte.
    keys: u32,
    large_keys: u32,
    /// The most keys of four bytes.
    small_keys: u32,
}

/// Keys that go when memory is short.
const CACHE: Load = Load {
    limit: LIMIT,
    keys: 5_000_000,
    large_keys: 100_000,
    small_keys: 2_000_000_000,
};

/// Keys that stay, and values of some gigabytes.
const STORE: Load = Load {
    limit: LIMIT,
    keys: 40_000,
    large_keys: 400,
    small_keys: 300_000,
};

/// The same for a small server; the second has keys that it can keep.
const SMALL_CACHE: Load = Load {
    limit: SMALL_LIMIT,
    ..CACHE
};
const SMALL_STORE: Load = Load {
    limit: SMALL_LIMIT,
    keys: 4_000,
    large_keys: 40,
    small_keys: 30_000,
};

/// What each part of the load knows.
#[derive(Clone, Copy)]
struct Run<'a> {
    server: &'a Server,
    load: Load,
    done: &'a AtomicBool,
    written: &'a AtomicU64,
    refusals: &'a Refusals,
}

/// Writes requests and reads as many bytes as arrive, until time is up.
struct Writer<'a> {
    server: &'a Server,
    refusals: &'a Refusals,
    stream: TcpStream,
    random: fastrand::Rng,
    buffer: Vec<u8>,
}

impl<'a> Writer<'a> {
    fn new(run: Run<'a>, seed: u64) -> Writer<'a> {
        let server = run.server;
        let stream = TcpStream::connect(server.addr()).expect("the server accepts");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Writer {
            server,
            refusals: run.refusals,
            stream,
            random: fastrand::Rng::with_seed(seed),
            buffer: Vec::new(),
        }
    }

    /// Adds a SET of a random key to a value of `len` bytes.
    fn set(&mut self, prefix: &str, keys: u32, len: usize) {
        let name = format!("{prefix}:{}", self.random.u32(..keys));
        let value = vec![self.random.alphanumeric() as u8; len];
        let request = encode_request(&[b"SET", name.as_bytes(), &value]);
        self.buffer.extend(request);
    }

    /// Sends what was added and waits for `replies` lines. `false` if the server closed the connection.
    fn exchange(&mut self, mut replies: usize) -> bool {
        let sent = self.stream.write_all(&self.buffer);
        self.buffer.clear();
        if sent.is_err() {
            return false;
        }
        let mut bytes = [0; 4096];
        while replies > 0 {
            let Ok(count @ 1..) = self.stream.read(&mut bytes) else {
                return false;
            };
            let got = &bytes[..count];
            // The reply may come in two parts.
            let mut errors = got.split(|&byte| byte == b'-').skip(1);
            assert!(
                errors.all(|text| text.iter().zip(b"OOM ").all(|(one, other)| one == other)),
                "{}",
                String::from_utf8_lossy(got)
            );
            if got.contains(&b'-') {
                self.refusals
                    .note(self.server, &String::from_utf8_lossy(got));
            }
            replies -= got.iter().filter(|&&byte| byte == b'\n').count();
        }
        true
    }
}

/// Values whose sizes are of another kind every second: from 10 bytes to a megabyte.
fn shifting_sizes(run: Run<'_>, seed: u64) {
    let mut writer = Writer::new(run, seed);
    let began = Instant::now();
    while !run.done.load(Relaxed) {
        let kind = began.elapsed().as_secs() + seed;
        let (least, most) = [
            (10, 60),
            (100, 1_000),
            (2_000, 30_000),
            (50_000, 1_000_000),
            (10, 1_000_000),
        ][kind as usize % 5];
        let count = (200_000 / most).clamp(1, 100);
        // What is small does not take the place of all that is large.
        let keys = if most < 2_000 {
            run.load.keys / 2
        } else {
            run.load.keys
        };
        for _ in 0..count {
            // Few are as large as can be.
            let share = writer.random.f64().powi(3);
            let len = least + ((most - least) as f64 * share) as usize;
            writer.set("key", keys, len);
        }
        if !writer.exchange(count) {
            writer = Writer::new(run, seed);
        }
        run.written.fetch_add(count as u64, Relaxed);
    }
}

/// Ever more small keys, so that tables grow.
fn growing_index(run: Run<'_>) {
    let mut writer = Writer::new(run, 77);
    let mut keys = 1_000;
    while !run.done.load(Relaxed) {
        keys = (keys + keys / 50).min(run.load.small_keys);
        (0..100).for_each(|_| writer.set("small", keys, 4));
        if !writer.exchange(100) {
            writer = Writer::new(run, 77);
        }
        run.written.fetch_add(100, Relaxed);
    }
}

/// Many values of a megabyte in one go.
fn pipelines(run: Run<'_>) {
    let mut writer = Writer::new(run, 5);
    while !run.done.load(Relaxed) {
        (0..16).for_each(|_| writer.set("large", run.load.large_keys, LARGEST as usize));
        if !writer.exchange(16) {
            writer = Writer::new(run, 5);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Clients that ask for values and never read, each replaced when it is dropped.
fn slow_readers(run: Run<'_>) {
    let request = encode_request(&["MGET", "key:1", "key:2", "key:3", "slow"]).repeat(20);
    let connect = || {
        let mut stream = TcpStream::connect(run.server.addr()).expect("the server accepts");
        stream.set_nonblocking(true).expect("a socket can");
        // It may be dropped already.
        let _ = stream.write(&request);
        stream
    };
    let mut readers: Vec<TcpStream> = (0..SLOW_READERS).map(|_| connect()).collect();
    let mut next = 0;
    while !run.done.load(Relaxed) {
        next = (next + 1) % readers.len();
        readers[next] = connect();
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Asks for values of which most are not in memory, and reads them.
fn reader(run: Run<'_>) {
    let (mut client, mut random) = (run.server.client(), fastrand::Rng::with_seed(9));
    while !run.done.load(Relaxed) {
        let names = [(); 4].map(|()| format!("key:{}", random.u32(..run.load.keys)));
        let words: Vec<&str> = std::iter::once("MGET")
            .chain(names.iter().map(String::as_str))
            .collect();
        if client.call(&words).is_err() {
            client = run.server.client();
        }
    }
}

/// A group that kills soon, if one is asked for.
fn group(limit: u64) -> Option<MemoryGroup> {
    let asked = std::env::var("FERRITE_CHURN_GROUP").is_ok_and(|asked| asked == "1");
    let limit = limit / 100 * (100 + GROUP_PERCENT);
    asked.then(|| MemoryGroup::new(limit).unwrap_or_else(|problem| panic!("{problem}")))
}

fn start(group: Option<&MemoryGroup>, target: Target, load: Load) -> Server {
    let limit = load.limit.to_string();
    let policy = match target {
        Target::Logged { .. } => "offload",
        _ => "allkeys-lru",
    };
    let options = ["--maxmemory", &limit, "--maxmemory-policy", policy];
    match group {
        Some(group) => Server::start_in(group, target, &options),
        None => Server::start(target, &options),
    }
}

fn churn_cache(load: Load) {
    let group = group(load.limit);
    let server = start(group.as_ref(), Target::Ferrite { threads: WORKERS }, load);
    let refused = churn(&server, group.as_ref(), load);
    assert_eq!(refused, 0, "there is always something to evict");
    let evicted = info(&mut server.client(), "evicted_keys");
    assert!(evicted > 0, "nothing was evicted");
}

/// Sets keys that nothing else writes to more bytes than the limit, so that some values are always in the
/// log alone, however little the machine gets done while it is watched.
fn fill(server: &Server, limit: u64) {
    let mut client = server.client();
    let value = vec![b'f'; IN_MEMORY];
    for at in 0..=limit / IN_MEMORY as u64 {
        let name = format!("first:{at}");
        eventually("there is room for the next value", || {
            let reply = client.call(&[b"SET", name.as_bytes(), &value]);
            reply.expect("the server answers").text() == "OK"
        });
    }
}

fn churn_store(load: Load) {
    let group = group(load.limit);
    let server = start(group.as_ref(), Target::Logged { threads: WORKERS }, load);
    fill(&server, load.limit);
    churn(&server, group.as_ref(), load);
    let mut client = server.client();
    assert!(
        info(&mut client, "offloaded_values") > 0,
        "no value was left in the log"
    );
    assert_eq!(info(&mut client, "evicted_keys"), 0);
}

#[test]
fn the_limit_of_a_cache_holds_whatever_comes() {
    churn_cache(CACHE);
}

#[test]
fn the_limit_holds_whatever_comes_while_values_are_left_in_the_log() {
    churn_store(STORE);
}

#[test]
fn a_small_limit_of_a_cache_holds_whatever_comes() {
    churn_cache(SMALL_CACHE);
}

#[test]
fn a_small_limit_holds_whatever_comes_while_values_are_left_in_the_log() {
    churn_store(SMALL_STORE);
}

/// Does all of it at once, and looks at memory meanwhile. How many requests were refused for want of it.
fn churn(server: &Server, group: Option<&MemoryGroup>, load: Load) -> usize {
    let (done, written, refusals) = (
        AtomicBool::new(false),
        AtomicU64::new(0),
        Refusals::default(),
    );
    let run = Run {
        server,
        load,
        done: &done,
        written: &written,
        refusals: &refusals,
    };
    let mut client = server.client();
    let slow = "x".repeat(15_000);
    let seen = std::thread::scope(|scope| {
        for seed in 0..2 {
            scope.spawn(move || shifting_sizes(run, seed));
        }
        scope.spawn(move || growing_index(run));
        scope.spawn(move || pipelines(run));
        scope.spawn(move || slow_readers(run));
        scope.spawn(move || reader(run));
        let seen = watch(server, load.limit, Duration::from_secs(seconds()), || {
            if client.call(&["SET", "slow", &slow]).is_err() {
                client = server.client();
            }
            let in_group = group.map(|group| {
                format!(
                    ", group at most {} MiB, {} kills",
                    group.peak() >> 20,
                    group.kills()
                )
            });
            format!(
                "{} written, {} refused{}",
                written.load(Relaxed),
                refusals.count(),
                in_group.unwrap_or_default()
            )
        });
        done.store(true, Relaxed);
        seen
    });
    let limit = load.limit;
    let tolerated = limit / 100 * (100 + TOLERATED_PERCENT);
    assert!(
        seen.peak <= tolerated,
        "the process took {} MiB, {} MiB are tolerated",
        seen.peak >> 20,
        tolerated >> 20
    );
    // While one worker answers, each may be in the middle of a value, which it has counted and not yet made
    // room for.
    let on_their_way = WORKERS as u64 * LARGEST;
    assert!(
        seen.used <= limit + limit / 100 + on_their_way,
        "{} bytes were in use of {limit}",
        seen.used
    );
    assert_eq!(group.map_or(0, MemoryGroup::kills), 0);
    refusals.count()
}
