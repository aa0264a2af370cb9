//! Listeners that don't read, and workers that are behind: who is dropped, what waits, who goes on.

use std::sync::Barrier;
use std::thread;

use super::{TWO, eventually, info, integer, parts, read};
use crate::support::{Client, PATIENCE, Proto, Server, encode_request};

const DISCONNECTIONS: &str = "client_output_buffer_limit_disconnections";

#[test]
fn who_leaves_too_much_unread_is_dropped_and_the_others_get_everything() {
    const MESSAGES: usize = 400;
    /// Messages of 50 kB: half of what may be left unread.
    const STEP: usize = 20;
    let server = Server::start(TWO, &["--client-output-buffer-limit", "pubsub 2mb 0 0"]);
    let mut publisher = server.client();
    let mut lazy: Vec<Client> = (0..4).map(|_| server.client()).collect();
    let mut eager: Vec<Client> = (0..4)
        .map(|number| server.client_with([Proto::Resp2, Proto::Resp3][number % 2]))
        .collect();
    for client in lazy.iter_mut().chain(&mut eager) {
        client.ask("SUBSCRIBE c");
    }
    let payload = |number: usize| format!("{number}:").repeat(10_000);
    // The eager ones are never so far behind, however slow this machine is, that they would be dropped.
    let in_step = Barrier::new(eager.len() + 1);
    thread::scope(|scope| {
        for client in &mut eager {
            let in_step = &in_step;
            scope.spawn(move || {
                for number in 0..MESSAGES {
                    if number % STEP == 0 {
                        in_step.wait();
                    }
                    assert_eq!(parts(&read(client))[2], payload(number));
                }
            });
        }
        for number in 0..MESSAGES {
            if number % STEP == 0 {
                in_step.wait();
            }
            let told = publisher.call(&["PUBLISH", "c", &payload(number)]);
            assert!((4..=8).contains(&integer(&told.expect("a reply"))));
        }
    });
    eventually("the end of the lazy ones", || {
        info(&mut publisher, DISCONNECTIONS) == 4
    });
    assert_eq!(integer(&publisher.ask("PUBLISH c x")), 4);
    for client in &mut lazy {
        let (bytes, closed) = client.read_until_quiet(PATIENCE);
        assert!(closed && bytes.len() < MESSAGES * 20_000);
    }
}

#[test]
fn what_many_leave_unread_is_held_once() {
    const LISTENERS: usize = 100;
    const MESSAGES: usize = 800;
    // Many messages in a turn, and one in each.
    for (bytes, at_once) in [(1_000, 20), (1_000, 1), (100_000, 20)] {
        let messages = MESSAGES * 20_000 / bytes;
        // What is shared counts for each of them: no limit of all clients may depend on the machine.
        let limits = [
            "--client-output-buffer-limit",
            "pubsub 0 0 0",
            "--maxmemory",
            "0",
            "--unixsocket",
            "socket",
        ];
        let server = Server::start(TWO, &limits);
        let mut publisher = server.client();
        // TCP to oneself can wait minutes with a window that is smaller than a segment, which is 64 KB there.
        let socket = server.dir().join("socket");
        let listener = |_| Client::connect_unix(&socket).expect("the server listens there");
        let mut lazy: Vec<Client> = (0..LISTENERS).map(listener).collect();
        for client in &mut lazy {
            client.ask("SUBSCRIBE c");
        }
        let before = server.resident_bytes();
        let payload = "x".repeat(bytes);
        for _ in 0..messages / at_once {
            for _ in 0..at_once {
                publisher
                    .send(&["PUBLISH", "c", &payload])
                    .expect("the server reads");
            }
            (0..at_once).for_each(|_| assert_eq!(integer(&read(&mut publisher)), LISTENERS as i64));
        }
        // 16 MB that a hundred have yet to read: 1.6 GB if each had its own.
        let after = server.resident_bytes();
        let more = after.saturating_sub(before);
        assert!(
            more < 160 << 20,
            "{more} bytes more, {at_once} messages of {bytes} at once"
        );
        for client in &mut lazy {
            for _ in 0..messages {
                assert_eq!(parts(&read(client))[2].len(), bytes);
            }
        }
    }
}

/// One worker is busy: who publishes to it waits, and its own worker serves everybody else.
#[test]
fn publishers_wait_for_a_worker_that_is_behind_and_nobody_else_does() {
    const MESSAGES: usize = 800;
    const WORK: usize = 4;
    const ROUNDS: usize = 100;
    let server = Server::start(
        TWO,
        &[
            "--client-output-buffer-limit",
            "pubsub 0 0 0",
            "--proto-max-bulk-len",
            "64gb",
        ],
    );
    // Connections go to the worker that has the fewest: these are on the first and the second in turn.
    let mut clients: Vec<Client> = (0..4).map(|_| server.client()).collect();
    let [publisher, busy, other, listener] = &mut clients[..] else {
        unreachable!("there are four");
    };
    let id = integer(&publisher.ask("CLIENT ID"));
    listener.ask("SUBSCRIBE c");
    let mut random = fastrand::Rng::with_seed(1);
    for key in ["a", "b"] {
        let value: Vec<u8> = (0..60_000).map(|_| random.u8(b'a'..=b'd')).collect();
        busy.call(&[&b"SET"[..], key.as_bytes(), &value])
            .expect("a reply");
    }
    let before = server.resident_bytes();
    let work = encode_request(&["LCS", "a", "b", "LEN"]).repeat(WORK);
    let payload = "x".repeat(15_000);
    // Work for one turn, and more messages than its worker lets wait. A machine that is slow at the wrong
    // moment has done the one before it comes to the other: then both begin again.
    let mut has_waited = false;
    for _ in 0..ROUNDS {
        busy.send_bytes(&work).expect("the server reads");
        thread::scope(|scope| {
            let publishing = scope.spawn(|| {
                for _ in 0..MESSAGES {
                    publisher
                        .send(&["PUBLISH", "c", &payload])
                        .expect("the server reads");
                }
                (0..MESSAGES).for_each(|_| assert_eq!(integer(&read(publisher)), 1));
            });
            // The publisher's worker goes on with others, and says who waits.
            while !has_waited && !publishing.is_finished() {
                let list = other.ask(&format!("CLIENT LIST ID {id}")).text();
                has_waited = list.contains(" flags=b ");
            }
            (0..WORK).for_each(|_| assert!(integer(&read(busy)) > 0));
            (0..MESSAGES).for_each(|_| assert_eq!(parts(&read(listener))[2], payload));
        });
        if has_waited {
            break;
        }
    }
    assert!(has_waited, "nobody waits");
    let more = server.resident_bytes().saturating_sub(before);
    assert!(more < 100 << 20, "{more} bytes more");
}

#[test]
fn a_message_reaches_more_listeners_than_one_turn_sends_to() {
    const LISTENERS: usize = 1_500;
    let server = Server::start(TWO, &["--maxclients", "4000"]);
    let mut publisher = server.client();
    let mut listeners: Vec<Client> = (0..LISTENERS).map(|_| server.client()).collect();
    for client in &mut listeners {
        client.ask("SUBSCRIBE c");
    }
    for round in 0..5 {
        for number in 0..4 {
            let payload = format!("{round}:{number}");
            let told = publisher
                .call(&["PUBLISH", "c", &payload])
                .expect("a reply");
            assert_eq!(integer(&told), LISTENERS as i64);
        }
        for client in &mut listeners {
            for number in 0..4 {
                let payload = format!("{round}:{number}");
                assert_eq!(parts(&read(client)), ["message", "c", payload.as_str()]);
            }
        }
    }
}
