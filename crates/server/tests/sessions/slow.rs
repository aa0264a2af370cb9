//! Clients that read or send slowly, or not at all, and the limits they meet.

use std::thread;
use std::time::{Duration, Instant};

use super::{
    BIG, DISCONNECTIONS, ONE, TWO, eventually, id_of, info, is_big, listed, ok, read, store_big,
};
use crate::support::{Client, PATIENCE, Server, Target, Value, encode_request};

#[test]
fn quit_is_the_end_only_when_everything_before_it_was_read() {
    let server = Server::start(ONE, &[]);
    let (mut admin, mut client) = (server.client(), server.client());
    store_big(&mut admin);
    let id = id_of(&mut client);
    let mut requests = encode_request(&["GET", "big"]).repeat(3);
    requests.extend(b"QUIT\r\nSET behind 1\r\n");
    client.send_bytes(&requests).expect("the server reads");
    // Nobody reads: the replies wait, and the list says so.
    eventually("replies that wait", || {
        listed(&mut admin, id, "events").is_some_and(|events| events.contains('w'))
    });
    let number = |admin: &mut Client, field: &str| {
        listed(admin, id, field).and_then(|digits| digits.parse::<usize>().ok())
    };
    assert!(number(&mut admin, "omem").is_some_and(|bytes| bytes > BIG));
    assert!(number(&mut admin, "oll").is_some_and(|pieces| pieces > 0));
    assert!(number(&mut admin, "tot-mem") > number(&mut admin, "omem"));
    for _ in 0..3 {
        assert!(is_big(client.read(PATIENCE)));
    }
    assert_eq!(read(&mut client), ok());
    assert!(client.is_closed(PATIENCE));
    assert_eq!(admin.ask("EXISTS behind"), Value::Int(0));
}

#[test]
fn who_has_only_finished_sending_gets_all_replies() {
    let server = Server::start(TWO, &[]);
    let mut admin = server.client();
    store_big(&mut admin);
    let mut client = server.client();
    let mut requests = encode_request(&["GET", "big"]).repeat(2);
    requests.extend(encode_request(&["INCR", "counter"]).repeat(20_000));
    requests.extend(encode_request(&["GET", "big"]));
    client.send_bytes(&requests).expect("the server reads");
    client.finish_sending();
    for _ in 0..2 {
        assert!(is_big(client.read(PATIENCE)));
    }
    for count in 1..=20_000 {
        assert_eq!(read(&mut client), Value::Int(count));
    }
    assert!(is_big(client.read(PATIENCE)));
    assert!(client.is_closed(PATIENCE));
}

#[test]
fn a_hard_output_limit_ends_who_leaves_more_unread() {
    let server = Server::start(ONE, &["--client-output-buffer-limit", "normal 4mb 0 0"]);
    let mut admin = server.client();
    store_big(&mut admin);
    let mut lazy = server.client();
    lazy.send(&["GET", "big"]).expect("the server reads");
    eventually("the end of the lazy client", || {
        info(&mut admin, DISCONNECTIONS) == "1"
    });
    assert_eq!(info(&mut admin, "connected_clients"), "1");
    let (bytes, closed) = lazy.read_until_quiet(PATIENCE);
    assert!(closed && bytes.len() < BIG);
}

#[test]
fn a_soft_output_limit_ends_who_stays_above_it() {
    let server = Server::start(ONE, &["--client-output-buffer-limit", "normal 0 64kb 1"]);
    let (mut admin, mut quick, mut lazy) = (server.client(), server.client(), server.client());
    store_big(&mut admin);
    let quick_id = id_of(&mut quick);
    lazy.send(&["GET", "big"]).expect("the server reads");
    // Above the limit now and then, but never for as long.
    eventually("the end of the lazy client", || {
        assert!(is_big(quick.call(&["GET", "big"])));
        info(&mut admin, DISCONNECTIONS) == "1"
    });
    assert!(listed(&mut admin, quick_id, "id").is_some());
    let (bytes, closed) = lazy.read_until_quiet(PATIENCE);
    assert!(closed && bytes.len() < BIG);
}

#[test]
fn who_sends_or_reads_slowly_is_not_idle() {
    for target in [Target::Redis, ONE] {
        let server = Server::start(target, &["--timeout", "3"]);
        let mut slow = server.client();
        let mut idle = server.client();
        assert_eq!(idle.ask("PING"), Value::Simple(b"PONG".to_vec()));
        slow.send_bytes(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000\r\n")
            .expect("the server reads");
        let mut sent = 0;
        // Until somebody who really is idle has been closed, and as long again.
        let start = Instant::now();
        let mut closed_after = None;
        while closed_after.is_none_or(|after| start.elapsed() < after * 2) {
            assert!(start.elapsed() < 3 * PATIENCE, "{target}");
            if closed_after.is_none() && idle.is_closed(Duration::from_millis(20)) {
                closed_after = Some(start.elapsed());
            }
            slow.send_bytes(b"x").expect("the server reads");
            sent += 1;
            thread::sleep(Duration::from_millis(20));
        }
        slow.send_bytes("x".repeat(100_000 - sent).as_bytes())
            .expect("the server reads");
        slow.send_bytes(b"\r\n").expect("the server reads");
        assert_eq!(read(&mut slow), ok(), "{target}");
        assert_eq!(slow.ask("STRLEN k"), Value::Int(100_000), "{target}");
    }
}

#[test]
fn a_closing_connection_that_nobody_reads_ends_with_the_timeout() {
    let server = Server::start(ONE, &["--timeout", "1"]);
    let mut admin = server.client();
    store_big(&mut admin);
    let mut lazy = server.client();
    let id = id_of(&mut lazy);
    let mut requests = encode_request(&["GET", "big"]);
    requests.extend(b"QUIT\r\n");
    lazy.send_bytes(&requests).expect("the server reads");
    // It closes, with most of the value still to send, and never gets rid of it.
    eventually("the end of the lazy client", || {
        listed(&mut admin, id, "id").is_none()
    });
}

#[test]
fn a_reader_that_stopped_does_not_hold_up_the_end() {
    let mut server = Server::start(TWO, &[]);
    let (mut admin, mut lazy) = (server.client(), server.client());
    store_big(&mut admin);
    let id = id_of(&mut lazy);
    lazy.send(&["GET", "big"]).expect("the server reads");
    eventually("replies that wait", || {
        listed(&mut admin, id, "events").is_some_and(|events| events.contains('w'))
    });
    admin
        .send(&["SHUTDOWN", "NOSAVE"])
        .expect("the server reads");
    assert!(
        server
            .wait_for_exit()
            .is_some_and(|status| status.success())
    );
}
