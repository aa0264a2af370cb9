//! A disk that another program has filled while no server ran.

use rustix::process::Signal;

use crate::support::{Client, Server, SmallDisk, Target, Value, eventually, ok};

const LOGGED: Target = Target::Logged { threads: 2 };
/// Enough for a log with its reserve.
const DISK: u64 = 48 << 20;
const KEYS: usize = 200;

/// A small disk; none, with the reason, where a test may not mount anything.
fn disk() -> Option<SmallDisk> {
    let disk = SmallDisk::new(DISK);
    disk.inspect_err(|problem| eprintln!("this is not tested here: {problem}"))
        .ok()
}

fn assert_whole(client: &mut Client, gone: usize) {
    assert_eq!(client.ask("DBSIZE"), Value::Int((KEYS - gone) as i64));
    for number in gone..KEYS {
        let value = client.ask(&format!("GET key:{number}")).text();
        assert_eq!(value, format!("{number:01000}"));
    }
    assert_eq!(client.ask("EXISTS list"), Value::Int(0));
}

fn assert_refused(client: &mut Client, request: &str, reason: &str) {
    let reply = client.ask(request).text();
    let is_refused = reply.starts_with("MISCONF") && reply.contains(reason);
    assert!(is_refused, "{request}: {reply}");
}

/// A server with keys, and a disk that is full when it has ended. With `is_left` there is the space that it
/// has left for the next one.
fn filled(disk: &SmallDisk, signal: Signal, is_left: bool) -> Server {
    let mut server = Server::start_on(disk, LOGGED, &[]);
    let mut client = server.client();
    for number in 0..KEYS {
        let request = format!("SET key:{number} {number:01000}");
        assert_eq!(client.ask(&request), ok());
    }
    let info = client.ask("INFO persistence").text();
    assert!(info.contains("aof_last_write_status:ok"), "{info}");
    server.signal(signal);
    assert!(server.wait_for_exit().is_some(), "{}", server.output());
    if !is_left {
        std::fs::remove_file(disk.path("appendonlydir/log/next.tmp")).expect("it was left");
    }
    disk.fill();
    server
}

#[test]
fn a_server_starts_on_a_disk_without_any_space() {
    let Some(disk) = disk() else {
        return;
    };
    let mut server = filled(&disk, Signal::TERM, false);
    for signal in [Signal::TERM, Signal::KILL, Signal::TERM] {
        server.start_again_on(&disk, LOGGED, signal, &[]);
        let mut client = server.client();
        assert_whole(&mut client, 0);
        for request in ["SET key:0 x", "DEL key:0", "RPUSH list x"] {
            assert_refused(&mut client, request, "cannot take space for");
        }
        assert_eq!(client.ask("EXISTS key:0"), Value::Int(1));
        let output = server.output();
        let told = "writes and deletions are refused until there is space again";
        assert!(output.contains(told), "{output}");
    }
    disk.clear();
    let mut client = server.client();
    eventually("healing", || client.ask("DEL key:0") == Value::Int(1));
    eventually("writing", || client.ask("SET another 1") == ok());
    assert_eq!(client.ask("DEL another"), Value::Int(1));
    server.start_again_on(&disk, LOGGED, Signal::KILL, &[]);
    assert_whole(&mut server.client(), 1);
}

#[test]
fn a_server_starts_and_deletes_on_a_full_disk_where_the_last_has_left_space() {
    let Some(disk) = disk() else {
        return;
    };
    let mut server = filled(&disk, Signal::TERM, true);
    server.start_again_on(&disk, LOGGED, Signal::TERM, &[]);
    let mut client = server.client();
    assert_whole(&mut client, 0);
    assert_refused(&mut client, "SET key:0 x", "kept in reserve");
    for number in 0..10 {
        assert_eq!(client.ask(&format!("DEL key:{number}")), Value::Int(1));
    }
    server.start_again_on(&disk, LOGGED, Signal::KILL, &[]);
    assert_whole(&mut server.client(), 10);
}
