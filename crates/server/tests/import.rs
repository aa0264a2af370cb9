//! A snapshot and no log yet: the log begins with what the snapshot holds, and has it from the first answer on.

#[path = "support/mod.rs"]
mod support;

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
        let _ = fs::remove_dir_all(&self.0);
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
    let server = data.start(Target::Redis, &[]);
    server.client().ask("SET a 1");
    server.client().ask("RPUSH list x");
    server.client().ask("SAVE");
    drop(server);
    let directory = data.0.to_str().expect("a path of UTF-8");
    let Err(failure) = Server::try_start(LOGGED, &[], &["--dir", directory]) else {
        panic!("it started");
    };
    assert!(failure.output.contains("key \"list\""), "{failure}");
    fs::remove_file(data.snapshot()).expect("it was there");
    let server = data.start(LOGGED, &[]);
    assert_eq!(server.client().ask("DBSIZE"), Value::Int(0));
}
