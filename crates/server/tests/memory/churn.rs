//! A cache, and a server that leaves values in its log, under everything that makes a limit hard to keep, watched by the physical memory
//! of their processes.
//!
//! `FERRITE_CHURN_SECONDS` says for how long; `make churn` runs each for half an hour.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::info;
use crate::support::{PATIENCE, Server, Target, encode_request};

/// What the server may take, in bytes: enough that the program itself is a small part of it.
const LIMIT: u64 = 256 << 20;
/// How much more its process may be seen to take.
const TOLERATED_PERCENT: u64 = 10;

/// Clients that ask for much and read nothing.
const SLOW_READERS: usize = 1_000;

fn seconds() -> u64 {
    let asked = std::env::var("FERRITE_CHURN_SECONDS").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(6)
}

/// What is asked of a server.
#[derive(Clone, Copy)]
struct Load {
    /// Keys whose values have all sizes, and keys whose values have a megabyte.
    keys: u32,
    large_keys: u32,
    /// The most keys of four bytes.
    small_keys: u32,
}

/// Keys that go when memory is short.
const CACHE: Load = Load {
    keys: 5_000_000,
    large_keys: 100_000,
    small_keys: 2_000_000_000,
};

/// Keys that stay, and values of some gigabytes.
const STORE: Load = Load {
    keys: 8_000,
    large_keys: 400,
    small_keys: 300_000,
};

/// Writes requests and reads as many bytes as arrive, until time is up.
struct Writer {
    stream: TcpStream,
    random: fastrand::Rng,
    buffer: Vec<u8>,
}

impl Writer {
    fn new(server: &Server, seed: u64) -> Writer {
        let stream = TcpStream::connect(server.addr()).expect("the server accepts");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Writer {
            stream,
            random: fastrand::Rng::with_seed(seed),
            buffer: Vec::new(),
        }
    }

    /// Adds a SET of a random key to a value of `len` bytes.
    fn set(&mut self, keys: u32, len: usize) {
        let name = format!("key:{}", self.random.u32(..keys));
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
            // While the disk is slow there may be nothing that could leave memory. The reply may come in two parts.
            let mut errors = got.split(|&byte| byte == b'-').skip(1);
            assert!(
                errors.all(|text| text.iter().zip(b"OOM ").all(|(one, other)| one == other)),
                "{}",
                String::from_utf8_lossy(got)
            );
            replies -= got.iter().filter(|&&byte| byte == b'\n').count();
        }
        true
    }
}

/// Values whose sizes are of another kind every second: from 10 bytes to a megabyte.
fn shifting_sizes(server: &Server, load: Load, seed: u64, done: &AtomicBool, written: &AtomicU64) {
    let mut writer = Writer::new(server, seed);
    let began = Instant::now();
    while !done.load(Relaxed) {
        let kind = began.elapsed().as_secs() + seed;
        let (least, most) = [
            (10, 60),
            (100, 1_000),
            (2_000, 30_000),
            (50_000, 1_000_000),
            (10, 1_000_000),
        ][kind as usize % 5];
        let count = (200_000 / most).clamp(1, 100);
        for _ in 0..count {
            // Few are as large as can be.
            let share = writer.random.f64().powi(3);
            let len = least + ((most - least) as f64 * share) as usize;
            writer.set(load.keys, len);
        }
        if !writer.exchange(count) {
            writer = Writer::new(server, seed);
        }
        written.fetch_add(count as u64, Relaxed);
    }
}

/// Ever more small keys, so that tables grow.
fn growing_index(server: &Server, load: Load, done: &AtomicBool, written: &AtomicU64) {
    let mut writer = Writer::new(server, 77);
    let mut keys = 1_000;
    while !done.load(Relaxed) {
        keys = (keys + keys / 50).min(load.small_keys);
        (0..100).for_each(|_| writer.set(keys, 4));
        if !writer.exchange(100) {
            writer = Writer::new(server, 77);
        }
        written.fetch_add(100, Relaxed);
    }
}

/// Many values of a megabyte in one go.
fn pipelines(server: &Server, load: Load, done: &AtomicBool) {
    let mut writer = Writer::new(server, 5);
    while !done.load(Relaxed) {
        (0..16).for_each(|_| writer.set(load.large_keys, 1 << 20));
        if !writer.exchange(16) {
            writer = Writer::new(server, 5);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Clients that ask for values and never read, each replaced when it is dropped.
fn slow_readers(server: &Server, done: &AtomicBool) {
    let request = encode_request(&["MGET", "key:1", "key:2", "key:3", "slow"]).repeat(20);
    let connect = || {
        let mut stream = TcpStream::connect(server.addr()).expect("the server accepts");
        stream.set_nonblocking(true).expect("a socket can");
        // It may be dropped already.
        let _ = stream.write(&request);
        stream
    };
    let mut readers: Vec<TcpStream> = (0..SLOW_READERS).map(|_| connect()).collect();
    let mut next = 0;
    while !done.load(Relaxed) {
        next = (next + 1) % readers.len();
        readers[next] = connect();
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Asks for values of which most are not in memory, and reads them.
fn reader(server: &Server, load: Load, done: &AtomicBool) {
    let (mut client, mut random) = (server.client(), fastrand::Rng::with_seed(9));
    while !done.load(Relaxed) {
        let names = [(); 4].map(|()| format!("key:{}", random.u32(..load.keys)));
        let words: Vec<&str> = std::iter::once("MGET")
            .chain(names.iter().map(String::as_str))
            .collect();
        if client.call(&words).is_err() {
            client = server.client();
        }
    }
}

#[test]
fn the_limit_of_a_cache_holds_whatever_comes() {
    let limit = LIMIT.to_string();
    let options = ["--maxmemory", &limit, "--maxmemory-policy", "allkeys-lru"];
    let server = Server::start(Target::Ferrite { threads: 2 }, &options);
    churn(&server, CACHE);
    let evicted = info(&mut server.client(), "evicted_keys");
    assert!(evicted > 0, "nothing was evicted");
}

#[test]
fn the_limit_holds_whatever_comes_while_values_are_left_in_the_log() {
    let limit = LIMIT.to_string();
    let options = ["--maxmemory", &limit, "--maxmemory-policy", "offload"];
    let server = Server::start(Target::Logged { threads: 2 }, &options);
    churn(&server, STORE);
    let mut client = server.client();
    // In a few seconds a slow machine may not fill memory.
    let is_long = seconds() >= 60;
    assert!(
        !is_long || info(&mut client, "cold_keys") > 0,
        "no value was left in the log"
    );
    assert_eq!(info(&mut client, "evicted_keys"), 0);
}

/// Does all of it at once, and looks at physical memory meanwhile.
fn churn(server: &Server, load: Load) {
    let (done, written) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut client = server.client();
    let slow = "x".repeat(15_000);
    let (mut most, mut samples) = (0, 0);
    std::thread::scope(|scope| {
        for seed in 0..2 {
            let (done, written) = (&done, &written);
            scope.spawn(move || shifting_sizes(server, load, seed, done, written));
        }
        scope.spawn(|| growing_index(server, load, &done, &written));
        scope.spawn(|| pipelines(server, load, &done));
        scope.spawn(|| slow_readers(server, &done));
        scope.spawn(|| reader(server, load, &done));
        let until = Instant::now() + Duration::from_secs(seconds());
        while Instant::now() < until {
            let resident = server.resident_bytes();
            most = most.max(resident);
            samples += 1;
            if samples % 20 == 0 {
                client.ask(&format!("SET slow {slow}"));
                let used = info(&mut client, "used_memory");
                eprintln!(
                    "{samples}: resident {} MiB, used {} MiB, most {} MiB, {} written",
                    resident >> 20,
                    used >> 20,
                    most >> 20,
                    written.load(Relaxed)
                );
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        done.store(true, Relaxed);
    });
    let tolerated = LIMIT / 100 * (100 + TOLERATED_PERCENT);
    assert!(
        most <= tolerated,
        "the process took {} MiB, {} MiB are tolerated",
        most >> 20,
        tolerated >> 20
    );
    eprintln!("{samples} samples, most {} MiB", most >> 20);
}
