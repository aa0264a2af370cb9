//! The server and its log: every acknowledged change is there after a restart, however the process ended.
//! [`killed`]: kills under load. [`switched`]: the log begins, ends and is loaded while the server runs.
//! [`versions`]: kills beside scripts.

use crate::support;

mod killed;
mod requests;
mod switched;
mod versions;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use requests::{random_request, random_transaction};
use rustix::process::Signal;
use support::{PATIENCE, Server, Target, Value, info_text as info};

const ONE: Target = Target::Logged { threads: 1 };
const TWO: Target = Target::Logged { threads: 2 };
const ALWAYS: [&str; 2] = ["--appendfsync", "always"];

fn text(value: &Value) -> String {
    match value {
        Value::Bulk(bytes) | Value::Simple(bytes) | Value::Error(bytes) => {
            String::from_utf8_lossy(bytes).into_owned()
        }
        Value::Int(number) => number.to_string(),
        other => format!("{other:?}"),
    }
}

/// What is in all databases, and in the libraries.
fn digest(server: &Server) -> (String, Vec<String>) {
    let mut client = server.client();
    let digest = text(&client.ask("DEBUG DIGEST")) + &text(&client.ask("FUNCTION LIST WITHCODE"));
    let sizes = (0..16).map(|db| {
        client.ask(&format!("SELECT {db}"));
        text(&client.ask("DBSIZE"))
    });
    (digest, sizes.collect())
}

#[test]
fn every_command_that_writes_is_tried() {
    let server = Server::start(ONE, &[]);
    let mut client = server.client();
    let Value::Array(names) = client.ask("COMMAND LIST FILTERBY ACLCAT write") else {
        panic!("not a list");
    };
    let mut random = fastrand::Rng::with_seed(0);
    let tried: BTreeSet<String> = (0..20_000)
        .flat_map(|_| {
            let request = random_request(&mut random);
            let text = |word: &[u8]| String::from_utf8_lossy(word).to_lowercase();
            let name = text(&request[0]);
            let both = request.get(1).map(|word| format!("{name}|{}", text(word)));
            [Some(name), both]
        })
        .flatten()
        .collect();
    // MIGRATE needs another server; `migrate.rs` kills one that has begun it.
    for name in names.iter().map(text).filter(|name| name != "migrate") {
        assert!(tried.contains(&name), "{name} is missing above");
    }
}

#[test]
fn whatever_was_changed_is_there_again() {
    for (target, seed) in [(ONE, 1), (TWO, 2)] {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut server = Server::start(target, &ALWAYS);
        for signal in [Signal::KILL, Signal::TERM, Signal::KILL] {
            let mut client = server.client();
            for _ in 0..1500 {
                let requests = match random.u32(..10) {
                    0 => random_transaction(&mut random),
                    _ => vec![random_request(&mut random)],
                };
                for request in requests {
                    client.call(&request).expect("the server answers");
                }
            }
            let before = digest(&server);
            server.start_again(target, signal, &ALWAYS);
            assert_eq!(digest(&server), before, "{signal:?}, seed {seed}");
        }
    }
}

#[test]
fn an_end_on_demand_loses_nothing_whatever_the_policy() {
    for policy in ["everysec", "no"] {
        let options = ["--appendfsync", policy];
        let mut server = Server::start(TWO, &options);
        let mut client = server.client();
        for number in 0..2000 {
            client
                .send(&["SET", &format!("key:{number}"), policy])
                .expect("a connection");
        }
        for _ in 0..2000 {
            client.read(support::PATIENCE).expect("a reply");
        }
        let before = digest(&server);
        server.start_again(TWO, Signal::TERM, &options);
        assert_eq!(digest(&server), before);
        assert_eq!(text(&server.client().ask("GET key:1999")), policy);
    }
}

#[test]
fn expiries_that_pass_while_the_server_is_down_have_passed() {
    let mut server = Server::start(ONE, &ALWAYS);
    let mut client = server.client();
    client.ask("SET short v PX 1");
    client.ask("SET taken-back v PX 60000");
    client.ask("PERSIST taken-back");
    client.ask("SET long v EX 1000");
    server.start_again(ONE, Signal::KILL, &ALWAYS);
    let mut client = server.client();
    assert_eq!(client.ask("GET short"), Value::NullBulk);
    assert_eq!(client.ask("TTL taken-back"), Value::Int(-1));
    assert!(matches!(client.ask("TTL long"), Value::Int(900..=1000)));
}

#[test]
fn a_directory_belongs_to_one_server() {
    let server = Server::start(ONE, &[]);
    let dir = server.dir().to_str().expect("the directory's name is text");
    let Err(failure) = Server::try_start(ONE, &[], &["--dir", dir]) else {
        panic!("a second server started in {dir}");
    };
    let expected = format!(
        "{dir}/appendonlydir is in use by another server (process {})",
        server.pid()
    );
    assert!(failure.output.contains(&expected), "{failure}");
}

/// The only segment of a log, and its bytes without the space behind them.
fn segment(server: &Server) -> (PathBuf, Vec<u8>) {
    let files = fs::read_dir(server.dir().join("appendonlydir/log")).expect("the log is there");
    let is_segment = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "log");
    let mut segments = files
        .map(|file| file.expect("a directory can be listed").path())
        .filter(is_segment);
    let path = segments.next().expect("a log has a segment");
    assert!(segments.next().is_none(), "the log has one segment");
    let mut bytes = fs::read(&path).expect("the test may read it");
    let last = bytes.iter().rposition(|&byte| byte != 0);
    // Records end at multiples of 8.
    bytes.truncate(last.map_or(0, |last| (last + 1).next_multiple_of(8)));
    (path, bytes)
}

/// Leaves nothing of a segment behind its first bytes.
fn tear(path: &Path, first: &[u8]) {
    let file = fs::File::create(path).expect("the test may write it");
    std::os::unix::fs::FileExt::write_all_at(&file, first, 0).expect("there is space");
}

#[test]
fn a_torn_transaction_has_never_been() {
    let mut server = Server::start(ONE, &ALWAYS);
    let mut client = server.client();
    for request in ["MSET one 1 two 2 three 3", "SELECT 1", "SET other 4"] {
        client.ask(request);
    }
    let before = digest(&server);
    let (_, start) = segment(&server);
    for request in [
        "SELECT 0",
        "MULTI",
        "SET lost 5",
        "APPEND two 2",
        "FLUSHDB",
        "SET new 6",
        "SWAPDB 0 1",
        "INCR other",
        "SELECT 2",
        "SET third 7",
        "EXEC",
    ] {
        client.ask(request);
    }
    let after = digest(&server);
    server.signal(Signal::KILL);
    assert!(server.wait_for_exit().is_some());
    let (path, all) = segment(&server);
    let mut seen = [0; 2];
    let cuts = (start.len()..all.len()).step_by(1 + (all.len() - start.len()) / 12);
    for cut in cuts.chain([all.len() - 1, all.len()]) {
        tear(&path, &all[..cut]);
        server.start_again(ONE, Signal::KILL, &ALWAYS);
        let found = digest(&server);
        let at = [&before, &after].iter().position(|state| **state == found);
        seen[at.unwrap_or_else(|| panic!("half a transaction at {cut}: {found:?}"))] += 1;
        server.signal(Signal::KILL);
        assert!(server.wait_for_exit().is_some());
        // What this start wrote behind is of no interest.
        for entry in fs::read_dir(path.parent().expect("a directory")).expect("it is there") {
            fs::remove_file(entry.expect("it can be listed").path()).expect("it can go");
        }
    }
    assert!(seen[0] > 5 && seen[1] > 0, "{seen:?}");
}

/// The file of the server's ring: in memory, or beside the log.
fn ring(server: &Server) -> Option<PathBuf> {
    let directory = server.dir().join("appendonlydir");
    let facts = fs::metadata(&directory).expect("the log is there");
    let owner = [facts.dev().to_le_bytes(), facts.ino().to_le_bytes()].concat();
    let owner: String = owner.iter().map(|byte| format!("{byte:02x}")).collect();
    let prefix = format!("/dev/shm/ferrite-{owner}-");
    let in_memory = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let mut paths = in_memory
        .map(|entry| entry.path())
        .chain([directory.join("RING")]);
    paths.find(|path| {
        path.to_string_lossy().starts_with(&prefix) || path.ends_with("RING") && path.exists()
    })
}

#[test]
fn what_was_not_written_outlives_the_process_and_an_end_on_demand_leaves_nothing() {
    let mut server = Server::start(TWO, &["--maxmemory", "64mb"]);
    let path = ring(&server).expect("a log has a ring");
    let facts = fs::metadata(&path).expect("it is there");
    assert_eq!(facts.mode() & 0o7777, 0o600);
    let mut client = server.client();
    assert_eq!(info(&mut client, "mem_aof_buffer"), facts.len().to_string());
    let used: u64 = info(&mut client, "used_memory").parse().expect("a number");
    assert!(
        used > facts.len(),
        "{used} of which the ring is {}",
        facts.len()
    );
    for round in 0..5 {
        for key in 0..300 {
            client
                .send(&["SET".to_owned(), format!("key:{key}"), format!("{round}")])
                .expect("a connection");
        }
        for _ in 0..300 {
            client.read(PATIENCE).expect("a reply");
        }
        server.start_again(TWO, Signal::KILL, &["--maxmemory", "64mb"]);
        assert_ne!(ring(&server), None);
        client = server.client();
        for key in 0..300 {
            let value = text(&client.ask(&format!("GET key:{key}")));
            assert_eq!(value, round.to_string(), "{}", server.output());
        }
    }
    server.signal(Signal::TERM);
    assert!(
        server
            .wait_for_exit()
            .is_some_and(|status| status.success())
    );
    assert_eq!(ring(&server), None);
    assert!(!path.exists());
}
