//! A cache under everything that makes a limit hard to keep, watched by the physical memory of its process.
//!
//! `FERRITE_CHURN_SECONDS` says for how long; `make churn` runs it for half an hour.

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
            assert!(!got.contains(&b'-'), "{}", String::from_utf8_lossy(got));
            replies -= got.iter().filter(|&&byte| byte == b'\n').count();
        }
        true
    }
}

/// Values whose sizes are of another kind every second: from 10 bytes to a megabyte.
fn shifting_sizes(server: &Server, seed: u64, done: &AtomicBool, written: &AtomicU64) {
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
            writer.set(5_000_000, len);
        }
        if !writer.exchange(count) {
            writer = Writer::new(server, seed);
        }
        written.fetch_add(count as u64, Relaxed);
    }
}

/// Ever more small keys, so that tables grow.
fn growing_index(server: &Server, done: &AtomicBool, written: &AtomicU64) {
    let mut writer = Writer::new(server, 77);
    let mut keys = 1_000;
    while !done.load(Relaxed) {
        keys = (keys + keys / 50).min(2_000_000_000);
        (0..100).for_each(|_| writer.set(keys, 4));
        if !writer.exchange(100) {
            writer = Writer::new(server, 77);
        }
        written.fetch_add(100, Relaxed);
    }
}

/// Many values of a megabyte in one go.
fn pipelines(server: &Server, done: &AtomicBool) {
    let mut writer = Writer::new(server, 5);
    while !done.load(Relaxed) {
        (0..16).for_each(|_| writer.set(100_000, 1 << 20));
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

#[test]
fn the_limit_holds_whatever_comes() {
    let limit = LIMIT.to_string();
    let server = Server::start(
        Target::Ferrite { threads: 2 },
        &["--maxmemory", &limit, "--maxmemory-policy", "allkeys-lru"],
    );
    let (done, written) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut client = server.client();
    let slow = "x".repeat(15_000);
    let (mut most, mut samples) = (0, 0);
    std::thread::scope(|scope| {
        for seed in 0..2 {
            let (server, done, written) = (&server, &done, &written);
            scope.spawn(move || shifting_sizes(server, seed, done, written));
        }
        scope.spawn(|| growing_index(&server, &done, &written));
        scope.spawn(|| pipelines(&server, &done));
        scope.spawn(|| slow_readers(&server, &done));
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
    assert!(info(&mut client, "evicted_keys") > 0, "nothing was evicted");
    let tolerated = LIMIT / 100 * (100 + TOLERATED_PERCENT);
    assert!(
        most <= tolerated,
        "the process took {} MiB, {} MiB are tolerated",
        most >> 20,
        tolerated >> 20
    );
    eprintln!("{samples} samples, most {} MiB", most >> 20);
}
