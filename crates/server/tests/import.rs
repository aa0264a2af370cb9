//! A snapshot and no log yet: the log begins with what the snapshot holds, and has it from the first answer
//! on.

use crate::support;

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use support::{Client, PATIENCE, Server, Target, Value};

const LOGGED: Target = Target::Logged { threads: 2 };

/// A directory that outlives servers.
struct Data(PathBuf);

impl Data {
    fn new() -> Data {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ferrite-import-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("the directory for temporary files is writable");
        Data(path)
    }

    fn start(&self, target: Target, options: &[&str]) -> Server {
        let mut all = vec!["--dir", self.0.to_str().expect("a path of UTF-8")];
        all.extend(options);
        Server::start(target, &all)
    }

    fn snapshot(&self) -> PathBuf {
        self.0.join("dump.rdb")
    }

    /// Lets redis-server write a snapshot here. What it holds.
    fn write_snapshot(&self) -> String {
        let server = self.start(Target::Redis, &[]);
        let mut client = server.client();
        for db in [0, 3, 15] {
            client.ask(&format!("SELECT {db}"));
            for number in 0..100 {
                client.ask(&format!("SET key:{number} value:{db}:{number}"));
                if number % 5 == 0 {
                    client.ask(&format!("EXPIRE key:{number} 100000"));
                }
            }
            client.ask("SET number 12345");
            client.ask(&format!("SET large {}", "x".repeat(300_000)));
        }
        client.ask("SAVE");
        digest(&mut client)
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        crate::support::remove_data(&self.0);
    }
}

fn digest(client: &mut Client) -> String {
    client.ask("DEBUG DIGEST").text()
}

fn kill(mut server: Server) {
    server.signal(Signal::KILL);
    assert!(server.wait_for_exit().is_some());
}

#[test]
fn a_snapshot_is_in_the_log_before_the_first_answer() {
    for policy in ["everysec", "always"] {
        let data = Data::new();
        let expected = data.write_snapshot();
        let server = data.start(LOGGED, &["--appendfsync", policy]);
        assert_eq!(digest(&mut server.client()), expected);
        kill(server);
        // From here on the log counts.
        fs::remove_file(data.snapshot()).expect("it was there");
        let server = data.start(LOGGED, &["--appendfsync", policy]);
        assert_eq!(digest(&mut server.client()), expected, "{policy}");
    }
}

#[test]
fn a_snapshot_does_not_come_back_over_the_log() {
    let data = Data::new();
    data.write_snapshot();
    let server = data.start(LOGGED, &["--appendfsync", "always"]);
    let mut client = server.client();
    client.ask("SET key:1 changed");
    client.ask("DEL key:2");
    client.ask("SELECT 3");
    client.ask("FLUSHDB");
    let expected = digest(&mut client);
    kill(server);
    let server = data.start(LOGGED, &[]);
    assert_eq!(digest(&mut server.client()), expected);
    server.client().ask("FLUSHALL");
    let expected = digest(&mut server.client());
    let mut server = server;
    server.signal(Signal::TERM);
    assert!(server.wait_for_exit().is_some());
    let server = data.start(LOGGED, &[]);
    assert_eq!(
        digest(&mut server.client()),
        expected,
        "empty is something, too"
    );
}

/// What the server says of a start that it gives up.
fn refused(data: &Data) -> String {
    let directory = data.0.to_str().expect("a path of UTF-8");
    let (status, output) = match Server::try_start(LOGGED, &[], &["--dir", directory]) {
        Err(failure) => (failure.status, failure.output),
        // It may answer before it has seen the file.
        Ok(mut server) => (server.wait_for_exit(), server.output()),
    };
    assert!(status.is_some_and(|status| !status.success()), "{output}");
    output
}

#[test]
fn a_snapshot_that_is_refused_leaves_the_directory_as_it_was() {
    let data = Data::new();
    let expected = data.write_snapshot();
    let good = fs::read(data.snapshot()).expect("it was written");
    fs::write(data.snapshot(), &good[..good.len() / 2]).expect("the directory is ours");
    for _ in 0..2 {
        let output = refused(&data);
        assert!(output.contains("Nothing was changed."), "{output}");
        assert_eq!(output.matches("cannot be loaded").count(), 1, "{output}");
        assert!(!data.0.join("appendonlydir").exists(), "{output}");
    }
    // What else is in the directory stays, and a snapshot that is mended is loaded.
    fs::create_dir(data.0.join("appendonlydir")).expect("the directory is ours");
    let other = data.0.join("appendonlydir/notes");
    fs::write(&other, "mine").expect("the directory is ours");
    refused(&data);
    assert_eq!(fs::read(&other).expect("it is there"), b"mine");
    assert_eq!(
        fs::read_dir(data.0.join("appendonlydir"))
            .expect("it is there")
            .count(),
        1
    );
    fs::write(data.snapshot(), &good).expect("the directory is ours");
    let server = data.start(LOGGED, &[]);
    assert_eq!(digest(&mut server.client()), expected);
}

#[test]
fn who_dies_while_the_snapshot_is_read_begins_again() {
    let data = Data::new();
    let expected = data.write_snapshot();
    for wait_ms in [0, 60, 150, 300] {
        let directory = data.0.to_str().expect("a path of UTF-8").to_owned();
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_ferrite-server"));
        command
            .args(["--port", "0", "--appendonly", "yes", "--dir", &directory])
            .args(["--unixsocket", "import.sock", "--key-load-delay", "20000"])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null());
        let mut child = command.spawn().expect("cargo has built it");
        let start = Instant::now();
        while !data.0.join("appendonlydir/INCOMPLETE").exists() {
            assert!(start.elapsed() < PATIENCE, "it does not begin");
            sleep(Duration::from_millis(2));
        }
        sleep(Duration::from_millis(wait_ms));
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
    }
    let server = data.start(LOGGED, &[]);
    assert_eq!(digest(&mut server.client()), expected);
    assert!(!data.0.join("appendonlydir/INCOMPLETE").exists());
    kill(server);
    fs::remove_file(data.snapshot()).expect("it was there");
    let server = data.start(LOGGED, &[]);
    assert_eq!(digest(&mut server.client()), expected);
}

#[test]
fn a_snapshot_that_cannot_be_loaded_stops_the_start_and_leaves_no_log() {
    let data = Data::new();
    let module = b"REDIS0010\x07\x06events\0\0\xff\0\0\0\0\0\0\0\0";
    fs::write(data.snapshot(), module).expect("the directory is ours");
    let directory = data.0.to_str().expect("a path of UTF-8");
    let Err(failure) = Server::try_start(LOGGED, &[], &["--dir", directory]) else {
        panic!("it started");
    };
    assert!(failure.output.contains("key \"events\""), "{failure}");
    fs::remove_file(data.snapshot()).expect("it was there");
    let server = data.start(LOGGED, &[]);
    assert_eq!(server.client().ask("DBSIZE"), Value::Int(0));
}

/// Bytes that do not get shorter when they are compressed.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

#[test]
fn a_snapshot_that_is_larger_than_memory_is_loaded_within_the_limit() {
    const KEYS: u64 = 600;
    const MOST: u64 = 64 << 20;
    let data = Data::new();
    let server = data.start(Target::Ferrite { threads: 2 }, &[]);
    let mut client = server.client();
    for number in 0..KEYS {
        let (key, value) = (number.to_string(), noise(number, 200_000));
        let reply = client.call(&[b"SET", key.as_bytes(), &value]);
        assert_eq!(reply.expect("it answers"), Value::Simple("OK".into()));
    }
    client.ask("SAVE");
    let expected = digest(&mut client);
    drop(server);
    let limit = [
        "--maxmemory",
        "64mb",
        "--shards",
        "16",
        "--enable-debug-command",
        "yes",
    ];
    let server = data.start(LOGGED, &limit);
    let check = |what: &str| {
        let most = server.most_resident_bytes();
        assert!(
            most <= MOST + MOST / 10 + (16 << 20),
            "{what}: {most} bytes"
        );
        assert_eq!(digest(&mut server.client()), expected, "{what}");
    };
    check("a start");
    for reload in [
        "DEBUG RELOAD",
        "DEBUG RELOAD NOSAVE NOFLUSH MERGE",
        "DEBUG LOADAOF",
    ] {
        let reply = server.client().ask(reload);
        assert_eq!(reply, Value::Simple("OK".into()), "{reload}");
        check(reload);
    }
    kill(server);
    fs::remove_file(data.snapshot()).expect("it was there");
    let server = data.start(LOGGED, &limit);
    assert_eq!(digest(&mut server.client()), expected);
}

#[test]
fn a_broken_snapshot_takes_nothing_away() {
    let value = noise(1, 2_000_000);
    for limit in ["0", "32mb"] {
        let data = Data::new();
        let options = ["--maxmemory", limit, "--enable-debug-command", "yes"];
        let server = data.start(LOGGED, &options);
        let mut client = server.client();
        for key in 0..12 {
            let key = key.to_string();
            let reply = client.call(&[b"SET", key.as_bytes(), &value]);
            assert_eq!(reply.expect("it answers"), Value::Simple("OK".into()));
        }
        // In the log alone.
        client.ask(&format!("SET cold {}", "x".repeat(500)));
        assert_eq!(client.ask("DEBUG OFFLOAD cold"), Value::Int(1));
        let expected = digest(&mut client);
        client.ask("DEBUG OFFLOAD cold");
        fs::write(data.snapshot(), b"REDIS0011 and nothing else").expect("the directory is ours");
        let Value::Error(_) = client.ask("DEBUG RELOAD NOSAVE") else {
            panic!("it was loaded");
        };
        assert_eq!(digest(&mut client), expected, "{limit}");
        kill(server);
        let server = data.start(LOGGED, &options);
        assert_eq!(digest(&mut server.client()), expected, "{limit}");
    }
}
