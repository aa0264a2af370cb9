//! Who is told what: monitors that leave or lag, secrets, silence, and the last replies of a server.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use super::{ONE, SILENCE, TWO, bulk, eventually, integer, ok, read};
use crate::support::{Client, Link, PATIENCE, Server, Target, Value, encode_request};

#[test]
fn a_monitor_that_left_is_told_nothing_more() {
    let server = Server::start(TWO, &[]);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut client = server.client();
                let batch = encode_request(&["INCR", "k"]).repeat(50);
                while !stop.load(Relaxed) {
                    client.send_bytes(&batch).expect("the server reads");
                    (0..50).for_each(|_| drop(read(&mut client)));
                }
            });
        }
        let mut monitor = server.client();
        for _ in 0..100 {
            assert_eq!(monitor.ask("MONITOR"), ok());
            monitor.send(&["RESET"]).expect("the server reads");
            let mut lines = 0;
            loop {
                match read(&mut monitor) {
                    Value::Simple(text) if text == b"RESET" => break,
                    Value::Simple(line) if line.ends_with(b"\"INCR\" \"k\"") => lines += 1,
                    // It may see itself leave.
                    Value::Simple(line) if line.ends_with(b"\"RESET\"") => {}
                    other => panic!("behind {lines} lines: {other:?}"),
                }
            }
            for _ in 0..5 {
                assert_eq!(monitor.ask("PING"), Value::Simple(b"PONG".to_vec()));
            }
        }
        stop.store(true, Relaxed);
    });
}

#[test]
fn a_monitor_that_reads_slowly_gets_every_line_in_order() {
    const COMMANDS: usize = 20_000;
    let server = Server::start(TWO, &[]);
    let (mut monitor, mut client) = (server.client(), server.client());
    assert_eq!(monitor.ask("MONITOR"), ok());
    // Each line is above a kilobyte, so that the first are sent long before the last.
    let padding = "x".repeat(1_000);
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..COMMANDS {
                let echoed = format!("{number} {padding}");
                client.call(&["ECHO", &echoed]).expect("a reply");
            }
        });
        for number in 0..COMMANDS {
            let line = read(&mut monitor).text();
            let expected = format!("\"ECHO\" \"{number} {padding}\"");
            assert!(line.ends_with(&expected), "line {number}: {}", &line[..80]);
        }
    });
}

#[test]
fn passwords_are_shown_to_nobody() {
    const SECRET: &str = "open-sesame";
    let server = Server::start(ONE, &["--slowlog-log-slower-than", "0"]);
    let (mut client, mut monitor) = (server.client(), server.client());
    assert_eq!(monitor.ask("MONITOR"), ok());
    client.ask(&format!("AUTH {SECRET}"));
    client.ask(&format!("AUTH default {SECRET}"));
    client.ask(&format!("AUTH default {SECRET} more"));
    client.ask(&format!("HELLO 3 SETNAME AUTH AUTH default {SECRET}"));
    client.ask(&format!("HELLO 2 WRONG AUTH default {SECRET}"));
    client.ask(&format!("HELLO 2 AUTH {SECRET}"));
    client.ask(&format!("CONFIG SET timeout 0 requirepass {SECRET}"));
    client.ask("ECHO seen");
    let log = format!("{:?}", client.ask("SLOWLOG GET -1"));
    assert!(!log.contains(SECRET) && log.contains("(redacted)"), "{log}");
    let mut lines = Vec::new();
    loop {
        let line = read(&mut monitor).text();
        let is_last = line.ends_with("\"ECHO\" \"seen\"");
        lines.push(line);
        if is_last {
            break;
        }
    }
    assert!(lines.iter().all(|line| !line.contains(SECRET)), "{lines:?}");
    // CONFIG is not shown at all, the rest is.
    assert_eq!(lines.len(), 7, "{lines:?}");
    let named = "\"HELLO\" \"3\" \"SETNAME\" \"AUTH\" \"AUTH\" \"(redacted)\" \"(redacted)\"";
    assert!(lines[3].ends_with(named), "{lines:?}");
}

#[test]
fn who_waited_for_a_password_is_let_in_when_there_is_none_any_more() {
    for target in [Target::Redis, ONE] {
        let server = Server::start(target, &["--requirepass", "secret"]);
        let (mut admin, mut client) = (server.client(), server.client());
        assert_eq!(admin.ask("AUTH secret"), ok());
        let refused = client.ask("SET k v").text();
        assert!(refused.starts_with("NOAUTH "), "{target}: {refused}");
        assert_eq!(
            admin
                .call(&["CONFIG", "SET", "requirepass", ""])
                .expect("a reply"),
            ok()
        );
        assert_eq!(client.ask("SET k v"), ok(), "{target}");
        // The bounds for strangers are gone with the password.
        let long = "x".repeat(100_000);
        assert_eq!(client.call(&["SET", "k", &long]).expect("a reply"), ok());
        assert_eq!(admin.ask("CONFIG SET requirepass secret"), ok());
        let refused = client.ask("GET k").text();
        assert!(refused.starts_with("NOAUTH "), "{target}: {refused}");
    }
}

#[test]
fn without_replies_a_broken_request_is_answered_with_silence() {
    // Redis is silent too, but forgets to close the connection, to which it no longer listens.
    let server = Server::start(ONE, &[]);
    let mut client = server.client();
    client
        .send_bytes(b"CLIENT REPLY OFF\r\nPING\r\n*1\r\n$x\r\n")
        .expect("the server reads");
    assert_eq!(client.read_until_quiet(PATIENCE), (Vec::new(), true));
}

#[test]
fn replies_that_are_off_stay_off_until_they_are_on_again() {
    for target in [Target::Redis, ONE] {
        let server = Server::start(target, &[]);
        let mut client = server.client();
        let words = "CLIENT REPLY OFF\r\nSET k v\r\nMONITOR\r\nGET k\r\n";
        client
            .send_bytes(words.as_bytes())
            .expect("the server reads");
        server.client().ask("ECHO for-the-monitor");
        assert!(
            matches!(client.read(SILENCE), Err(Link::TimedOut)),
            "{target}"
        );
        assert_eq!(
            client.ask("RESET"),
            Value::Simple(b"RESET".to_vec()),
            "{target}"
        );
        assert_eq!(client.ask("GET k"), bulk("v"), "{target}");
    }
}

#[test]
fn what_was_answered_before_shutdown_arrives() {
    for target in [ONE, TWO] {
        let mut server = Server::start(target, &[]);
        let mut client = server.client();
        client
            .send_bytes(b"SET k v\r\nGET k\r\nSHUTDOWN NOSAVE\r\nGET k\r\n")
            .expect("the server reads");
        let (bytes, closed) = client.read_until_quiet(PATIENCE);
        assert_eq!(String::from_utf8_lossy(&bytes), "+OK\r\n$1\r\nv\r\n");
        assert!(closed);
        assert!(
            server
                .wait_for_exit()
                .is_some_and(|status| status.success())
        );
    }
}

#[test]
fn running_out_of_descriptors_hurts_only_who_comes_then() {
    let server = Server::start(TWO, &[]);
    let mut client = server.client();
    assert_eq!(client.ask("PING"), Value::Simple(b"PONG".to_vec()));
    // The log has its first segment, and has synced the directory.
    integer(&client.ask("INCR k"));
    client.ask("WAITAOF 1 0 0");
    let pid = Pid::from_raw(server.pid().try_into().expect("a process id")).expect("not zero");
    let open = std::fs::read_dir(format!("/proc/{}/fd", server.pid()))
        .expect("the process runs")
        .count() as u64;
    // The server has inherited the hard limit, which need not be the server's to raise again.
    let maximum = getrlimit(Resource::Nofile).maximum;
    let lowered = Rlimit {
        current: Some(open + 2),
        maximum,
    };
    let before = prlimit(Some(pid), Resource::Nofile, lowered).expect("our own child");
    // Connected by the kernel, but not accepted.
    let mut waiting: Vec<Client> = (0..10).map(|_| server.client()).collect();
    waiting
        .iter_mut()
        .for_each(|client| client.send(&["PING"]).expect("the kernel takes it"));
    eventually("a line in the log", || {
        server.output().contains("accepting connections fails")
    });
    // The log looks at free space every second, which needs no descriptor.
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(2) {
        integer(&client.ask("INCR k"));
    }
    prlimit(Some(pid), Resource::Nofile, before).expect("our own child");
    for client in &mut waiting {
        assert_eq!(read(client), Value::Simple(b"PONG".to_vec()));
    }
}
