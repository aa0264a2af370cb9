//! Trees whose records are damaged: what a start says, what a repair costs, and what is never lost with them.
//!
//! A tree is a record of its key that names an instance, and a Leaf for each of its ranges; changes are Edits
//! of the instance (docs/format.md, "Collections").

use crate::support;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use support::{Client, Server, Target, Value, check_log, ok};

const LOGGED: Target = Target::Synced { threads: 1 };
const FIELDS: usize = 300;
/// Bytes of a segment's header, and of a record's.
const SEGMENT_HEADER: usize = 4096;
const HEADER: usize = 16;
/// Kinds of records: those of a hash have a 2 in front.
const BATCH: u8 = 0x06;
const LEAF: u8 = 0x2b;
const EDIT: u8 = 0x2c;
/// The record is of an instance.
const OF_INSTANCE: u8 = 16;

/// A record of a segment.
#[derive(Clone, Copy, Debug)]
struct Found {
    at: usize,
    len: usize,
    kind: u8,
    flags: u8,
}

/// The records of a segment between two offsets, those inside of batches too.
fn records(bytes: &[u8], mut at: usize, end: usize) -> Vec<Found> {
    let mut found = Vec::new();
    while at + HEADER <= end {
        let len = u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize;
        if len < HEADER {
            break;
        }
        let (kind, flags) = (bytes[at + 8], bytes[at + 9]);
        found.push(Found {
            at,
            len,
            kind,
            flags,
        });
        if kind == BATCH {
            found.extend(records(bytes, at + HEADER, at + len));
        }
        at += len.next_multiple_of(8);
    }
    found
}

/// A stopped server's only segment.
struct Segment {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Segment {
    fn of(server: &Server) -> Segment {
        let entries = fs::read_dir(log_of(server).join("log")).expect("it is there");
        let mut paths = entries.map(|entry| entry.expect("it can be listed").path());
        let is_log = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "log");
        let path = paths.find(is_log).expect("there is a segment");
        assert!(!paths.any(|path| is_log(&path)), "there are several");
        let bytes = fs::read(&path).expect("it was written");
        Segment { path, bytes }
    }

    /// The records of instances of a kind.
    fn of_instances(&self, kind: u8) -> Vec<Found> {
        let all = records(&self.bytes, SEGMENT_HEADER, self.bytes.len());
        let is_it = |found: &Found| found.kind == kind && found.flags & OF_INSTANCE != 0;
        all.into_iter().filter(is_it).collect()
    }

    fn write(&self) {
        fs::write(&self.path, &self.bytes).expect("it is ours");
    }
}

fn log_of(server: &Server) -> PathBuf {
    server.dir().join("appendonlydir")
}

/// Sets so many fields of a hash, by requests of a hundred.
fn set_fields(client: &mut Client, key: &str) {
    for from in (0..FIELDS).step_by(100) {
        let pairs = (from..from + 100).map(|field| format!(" field:{field} {key}:{field}"));
        client.ask(&format!("HSET {key}{}", pairs.collect::<String>()));
    }
}

/// A stopped server with two trees, a small hash and a string in database 3. The first tree has an Edit.
fn stopped() -> Server {
    let mut server = Server::start(LOGGED, &[]);
    let mut client = server.client();
    client.ask("SELECT 3");
    set_fields(&mut client, "first");
    set_fields(&mut client, "other");
    client.ask("HSET small f v");
    client.ask("SET string s");
    client.ask("HSET first field:5 changed");
    server.signal(Signal::TERM);
    assert!(server.wait_for_exit().is_some());
    server
}

fn root(server: &Server) -> &str {
    server.dir().to_str().expect("a path of UTF-8")
}

/// Why a server does not start with the log of another.
fn refusal(server: &Server) -> String {
    match Server::try_start(LOGGED, &[], &["--dir", root(server)]) {
        Ok(_) => panic!("it started"),
        Err(failure) => failure.output,
    }
}

/// Mends the log; what is said about it contains `wanted`.
fn mend(server: &Server, wanted: &str) {
    let (told, code) = check_log("--repair-log", &log_of(server));
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains(wanted), "{wanted}: {told}");
    let (again, code) = check_log("--check-log", &log_of(server));
    assert_eq!(code, Some(0), "{again}");
}

/// Starts with the mended log, twice: the first tree is gone, which is told, and nothing else.
fn assert_first_is_gone(server: &Server) {
    for round in 0..2 {
        let mut again = Server::start(LOGGED, &["--dir", root(server)]);
        let is_named = again.output().contains(
            "a repair of the log has found damaged parts of these keys, which are gone: \
             \"first\" in database 3",
        );
        assert_eq!(is_named, round == 0, "{}", again.output());
        let mut client = again.client();
        client.ask("SELECT 3");
        assert_eq!(client.ask("DBSIZE"), Value::Int(3));
        assert_eq!(client.ask("EXISTS first"), Value::Int(0));
        assert_others(&mut client);
        again.signal(Signal::KILL);
        assert!(again.wait_for_exit().is_some());
    }
}

fn assert_fields(client: &mut Client, key: &str) {
    assert_eq!(
        client.ask(&format!("HLEN {key}")),
        Value::Int(FIELDS as i64)
    );
    for field in 0..FIELDS {
        let value = client.ask(&format!("HGET {key} field:{field}"));
        assert_eq!(value.text(), format!("{key}:{field}"));
    }
}

fn assert_others(client: &mut Client) {
    assert_fields(client, "other");
    assert_eq!(client.ask("HGET small f").text(), "v");
    assert_eq!(client.ask("GET string").text(), "s");
}

/// Starts with the mended log, twice: the first tree has as many fields as it had once, and nothing else is
/// others than it was.
fn assert_first_is_older(server: &Server) {
    for _ in 0..2 {
        let mut again = Server::start(LOGGED, &["--dir", root(server)]);
        let mut client = again.client();
        client.ask("SELECT 3");
        assert_eq!(client.ask("DBSIZE"), Value::Int(4));
        let Value::Int(fields @ (100 | 200 | 300)) = client.ask("HLEN first") else {
            panic!("it never had so many fields");
        };
        for field in 0..fields {
            let value = client.ask(&format!("HGET first field:{field}"));
            assert_eq!(value.text(), format!("first:{field}"));
        }
        assert_others(&mut client);
        again.signal(Signal::KILL);
        assert!(again.wait_for_exit().is_some());
    }
}

/// The tree is what it was before the record, also if nobody can tell what that was.
#[test]
fn rot_in_a_leaf_or_an_edit_costs_the_tree_what_came_later_and_nothing_else() {
    for kind in [LEAF, EDIT] {
        for is_all in [false, true] {
            let server = stopped();
            let mut segment = Segment::of(&server);
            let found = segment.of_instances(kind)[0];
            let bytes = &mut segment.bytes[found.at..found.at + found.len];
            match is_all {
                true => bytes.fill(0xa5),
                false => bytes[found.len - 3] ^= 1,
            }
            segment.write();
            let refused = refusal(&server);
            assert!(refused.contains("is damaged at byte"), "{refused}");
            assert!(refused.contains("ferrite-server --repair-log"), "{refused}");
            let wanted = match kind {
                LEAF => "the key \"first\" in database 3 has an older value",
                // Of the last change of all nothing is left.
                _ => "are taken out and kept in",
            };
            mend(&server, wanted);
            assert_first_is_older(&server);
        }
    }
}

/// CRC-32C that goes on from another one.
fn crc32c(crc: u32, bytes: &[u8]) -> u32 {
    let bit = |crc: u32, _| (crc >> 1) ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 };
    !bytes
        .iter()
        .fold(!crc, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), bit))
}

/// A log may lack a leaf though all of its records are whole, as earlier builds have mended logs. A start
/// finds that, and a repair deletes the key.
#[test]
fn a_leaf_that_is_missing_is_missed_by_the_start_and_a_repair_deletes_its_key() {
    let server = stopped();
    let mut segment = Segment::of(&server);
    let leaf = segment.of_instances(LEAF)[0];
    // A record that means nothing, of the same length. Its position is its place in the first segment.
    let record = &mut segment.bytes[leaf.at..leaf.at + leaf.len.next_multiple_of(8)];
    let length = record.len() as u32;
    record.fill(0);
    record[..4].copy_from_slice(&length.to_le_bytes());
    record[8] = 0x0a;
    let checksum = crc32c((leaf.at as u32 / 8) ^ length.rotate_left(16), &record[8..]);
    record[4..8].copy_from_slice(&checksum.to_le_bytes());
    segment.write();
    for _ in 0..2 {
        let refused = refusal(&server);
        let wanted = "cannot load the log: these keys lack parts: \"first\" in database 3; \
                      ferrite-server --repair-log deletes them";
        assert!(refused.contains(wanted), "{refused}");
        let (told, code) = check_log("--check-log", &log_of(&server));
        assert_eq!(code, Some(1), "{told}");
        let wanted = "a start has found 1 collections that have lost records";
        assert!(told.contains(wanted), "{told}");
    }
    mend(
        &server,
        "in database 3 has lost records: the next start deletes its key",
    );
    assert!(!log_of(&server).join("LACKING").exists());
    assert_first_is_gone(&server);
}

/// A log with a note of another log, or a note that is not whole, is whole.
#[test]
fn a_note_that_is_not_about_the_log_counts_for_nothing() {
    let server = stopped();
    fs::write(
        log_of(&server).join("LACKING"),
        "ferrite lacking 1\nlog 00\ninstance 3 1 2\n",
    )
    .expect("it is ours");
    mend(&server, "the log is whole");
    let again = Server::start(LOGGED, &["--dir", root(&server)]);
    assert!(!log_of(&server).join("LACKING").exists());
    let mut client = again.client();
    client.ask("SELECT 3");
    assert_others(&mut client);
    assert_eq!(client.ask("HGET first field:5").text(), "changed");
}

/// Removes what a killed server has left in memory for the next start, as a loss of power does.
fn lose_power(server: &mut Server) {
    server.signal(Signal::KILL);
    assert!(server.wait_for_exit().is_some());
    let facts = fs::metadata(log_of(server)).expect("the log is there");
    let owner = [facts.dev().to_le_bytes(), facts.ino().to_le_bytes()].concat();
    let owner: String = owner.iter().map(|byte| format!("{byte:02x}")).collect();
    let prefix = format!("ferrite-{owner}-");
    for entry in fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&prefix) {
            fs::remove_file(entry.path()).expect("it is ours");
        }
    }
    let _ = fs::remove_file(log_of(server).join("RING"));
}

/// Cuts a file off inside of a record.
fn cut(path: &Path, found: Found) {
    let file = fs::File::options().write(true).open(path);
    let file = file.expect("it is ours");
    let len = found.at + found.len / 2;
    file.set_len(len as u64).expect("it is ours");
}

#[test]
fn a_log_that_ends_inside_a_leaf_has_what_was_before() {
    let mut server = Server::start(LOGGED, &[]);
    let mut client = server.client();
    client.ask("SET string s");
    set_fields(&mut client, "tree");
    lose_power(&mut server);
    let segment = Segment::of(&server);
    let leaves = segment.of_instances(LEAF);
    assert!(leaves.len() > 2, "{leaves:?}");
    cut(&segment.path, leaves[leaves.len() - 1]);
    let (told, code) = check_log("--check-log", &log_of(&server));
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("torn: the log ends at"), "{told}");
    let again = Server::start(LOGGED, &["--dir", root(&server)]);
    let mut client = again.client();
    // The request that made a tree of the small hash was not in the log.
    assert_eq!(client.ask("HLEN tree"), Value::Int(200));
    assert_eq!(client.ask("HGET tree field:199").text(), "tree:199");
    assert_eq!(client.ask("GET string").text(), "s");
    set_fields(&mut client, "tree");
    drop(client);
    let mut again = again;
    again.start_again(LOGGED, Signal::KILL, &["--dir", root(&server)]);
    assert_fields(&mut again.client(), "tree");
}

/// Leaves in a batch that empties their database before: of all of it, or none.
#[test]
fn leaves_in_a_transaction_that_empties_databases_are_there_whole_or_not_at_all() {
    for empties in ["FLUSHDB", "FLUSHALL"] {
        for is_cut in [false, true] {
            let mut server = Server::start(LOGGED, &[]);
            let mut client = server.client();
            client.ask("SELECT 3");
            set_fields(&mut client, "before");
            client.ask("SET string s");
            assert_eq!(client.ask("MULTI"), ok());
            client.ask(empties);
            set_fields(&mut client, "tree");
            client.ask("SET after a");
            assert!(matches!(client.ask("EXEC"), Value::Array(replies) if replies.len() == 5));
            if is_cut {
                lose_power(&mut server);
                let segment = Segment::of(&server);
                let leaves = segment.of_instances(LEAF);
                cut(&segment.path, leaves[leaves.len() - 1]);
                server = Server::start(LOGGED, &["--dir", root(&server)]);
            } else {
                server.start_again(LOGGED, Signal::KILL, &[]);
            }
            let mut client = server.client();
            client.ask("SELECT 3");
            assert_eq!(client.ask("DBSIZE"), Value::Int(2), "{empties} {is_cut}");
            let (tree, string) = match is_cut {
                true => ("before", "GET string"),
                false => ("tree", "GET after"),
            };
            assert_fields(&mut client, tree);
            assert_ne!(client.ask(string), Value::NullBulk);
        }
    }
}

/// A start that leaves values in the log reads the records of trees all the same.
#[test]
fn trees_are_put_together_by_a_start_that_leaves_values_in_the_log() {
    let options = [
        "--maxmemory-policy",
        "offload",
        "--log-lazy-load-size",
        "1",
        "--log-segment-size",
        "2mb",
    ];
    let mut server = Server::start(LOGGED, &options);
    let mut client = server.client();
    let long = |field: usize| format!("{field:x<width$}", width = 500 * (field % 20 + 1));
    for key in ["stays", "changes", "moves"] {
        for field in 0..FIELDS {
            client.ask(&format!("HSET {key} field:{field} {}", long(field)));
        }
    }
    client.ask("RENAME moves moved");
    for field in (0..FIELDS).step_by(3) {
        client.ask(&format!("HSET changes field:{field} {}", long(field + 1)));
    }
    client.ask("HDEL changes field:1");
    for _ in 0..2 {
        server.start_again(LOGGED, Signal::KILL, &options);
        let mut client = server.client();
        for (key, count) in [("stays", 0), ("changes", 1), ("moved", 0)] {
            let fields = (FIELDS - count) as i64;
            assert_eq!(client.ask(&format!("HLEN {key}")), Value::Int(fields));
            for field in (0..FIELDS).filter(|&field| field != 1) {
                let is_other = key == "changes" && field % 3 == 0;
                let value = client.ask(&format!("HGET {key} field:{field}"));
                let expected = long(field + usize::from(is_other));
                assert!(value.text() == expected, "{key} {field}: {value:.20?}");
            }
        }
        client.ask("BGREWRITEAOF");
    }
}
