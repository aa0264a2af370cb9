//! In which order messages arrive: among each other, and among replies.

use std::thread;

use super::{FOUR, TWO, Value, integer, parts, read};
use crate::support::{Client, Proto, Server};

/// The same for all who listen to a channel, and that of sending for each publisher.
#[test]
fn all_who_listen_to_a_channel_see_the_same_order() {
    const MESSAGES: usize = 3_000;
    const PUBLISHERS: usize = 4;
    let server = Server::start(FOUR, &[]);
    let mut listeners: Vec<Client> = (0..8)
        .map(|number| {
            let mut client = server.client_with([Proto::Resp2, Proto::Resp3][number % 2]);
            client.ask("SUBSCRIBE c");
            client
        })
        .collect();
    thread::scope(|scope| {
        for publisher in 0..PUBLISHERS {
            let mut client = server.client();
            scope.spawn(move || {
                for number in 0..MESSAGES {
                    let payload = format!("{publisher}:{number}");
                    client
                        .send(&["PUBLISH", "c", &payload])
                        .expect("the server reads");
                    if number % 50 == 49 {
                        (0..50).for_each(|_| assert_eq!(integer(&read(&mut client)), 8));
                    }
                }
            });
        }
        let readers: Vec<_> = listeners
            .iter_mut()
            .map(|client| {
                scope.spawn(|| {
                    let message = |_| parts(&read(client)).pop().expect("a payload");
                    (0..PUBLISHERS * MESSAGES)
                        .map(message)
                        .collect::<Vec<String>>()
                })
            })
            .collect();
        let mut all = readers
            .into_iter()
            .map(|reader| reader.join().expect("nothing is missing"));
        let first = all.next().expect("there are listeners");
        for publisher in 0..PUBLISHERS {
            let prefix = format!("{publisher}:");
            let own = first
                .iter()
                .filter_map(|payload| payload.strip_prefix(&prefix));
            let expected = (0..MESSAGES).map(|number| number.to_string());
            assert!(own.map(str::to_owned).eq(expected));
        }
        assert!(all.all(|other| other == first));
    });
}

/// Once a publisher has its reply, a listener that asks anything is told first.
#[test]
fn what_was_published_before_a_request_comes_before_its_reply() {
    let server = Server::start(FOUR, &[]);
    let mut publisher = server.client();
    let mut listeners: Vec<Client> = (0..6).map(|_| server.client_with(Proto::Resp3)).collect();
    for listener in &mut listeners {
        listener.ask("SUBSCRIBE c");
    }
    for round in 0..300 {
        let payload = round.to_string();
        let told = publisher
            .call(&["PUBLISH", "c", &payload])
            .expect("a reply");
        assert_eq!(told, Value::Int(listeners.len() as i64));
        let asked = (round * 7) as usize % listeners.len();
        listeners[asked].send(&["PING"]).expect("the server reads");
        for listener in &mut listeners {
            assert_eq!(parts(&read(listener)), ["message", "c", payload.as_str()]);
        }
        let pong = Value::Simple(b"PONG".to_vec());
        assert_eq!(read(&mut listeners[asked]), pong);
    }
}

/// Once a publisher has its reply, who then begins to listen is not told, and who then ends it has been.
#[test]
fn listening_begins_and_ends_between_two_messages() {
    let server = Server::start(FOUR, &[]);
    let mut publisher = server.client();
    let mut clients: Vec<Client> = (0..8).map(|_| server.client()).collect();
    // One that always listens, so that there is always mail under way.
    let mut always = server.client();
    always.ask("SUBSCRIBE c");
    for round in 0..200 {
        let number = round % clients.len();
        let client = &mut clients[number];
        assert_eq!(integer(&publisher.ask("PUBLISH c before")), 1);
        assert_eq!(parts(&client.ask("SUBSCRIBE c"))[0], "subscribe");
        assert_eq!(integer(&publisher.ask("PUBLISH c during")), 2);
        client
            .send(&["UNSUBSCRIBE", "c"])
            .expect("the server reads");
        assert_eq!(parts(&read(client)), ["message", "c", "during"]);
        assert_eq!(parts(&read(client))[0], "unsubscribe");
        assert_eq!(integer(&publisher.ask("PUBLISH c after")), 1);
        for payload in ["before", "during", "after"] {
            assert_eq!(parts(&read(&mut always)), ["message", "c", payload]);
        }
    }
}

/// A connection that publishes to itself, in the middle of other requests and of messages from elsewhere.
#[test]
fn own_messages_follow_the_reply_of_their_publish() {
    let server = Server::start(TWO, &[]);
    let mut own = server.client_with(Proto::Resp3);
    own.ask("SUBSCRIBE own shared");
    read(&mut own);
    thread::scope(|scope| {
        let mut other = server.client();
        scope.spawn(move || {
            for number in 0..500 {
                let payload = number.to_string();
                other
                    .call(&["PUBLISH", "shared", &payload])
                    .expect("a reply");
            }
        });
        let (mut shared, mut number) = (0, 0);
        let mut next = |own: &mut Client| {
            loop {
                let value = read(own);
                if matches!(&value, Value::Push(all) if all[1].text() == "shared") {
                    assert_eq!(parts(&value)[2], shared.to_string());
                    shared += 1;
                    continue;
                }
                return value;
            }
        };
        while number < 500 {
            own.send(&["PUBLISH", "own", &number.to_string()])
                .expect("the server reads");
            own.send(&["PING"]).expect("the server reads");
            assert_eq!(next(&mut own), Value::Int(1));
            let message = next(&mut own);
            assert_eq!(parts(&message), ["message", "own", &number.to_string()]);
            assert_eq!(next(&mut own), Value::Simple(b"PONG".to_vec()));
            number += 1;
        }
    });
}

/// What happens to a key is told in the order in which it happened, though it happens on several workers.
#[test]
fn events_of_a_key_are_told_in_order() {
    const WRITERS: usize = 6;
    const ROUNDS: usize = 2_000;
    let server = Server::start(FOUR, &["--notify-keyspace-events", "KA"]);
    let mut listeners: Vec<Client> = (0..4).map(|_| server.client()).collect();
    for listener in &mut listeners {
        listener.ask("PSUBSCRIBE __keyspace@0__:k*");
    }
    let changes: i64 = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let mut client = server.client();
                scope.spawn(move || {
                    let mut changes = 0;
                    for round in 0..ROUNDS {
                        let words: &[&str] = match (round + writer) % 3 {
                            0 => &["DEL", "k"],
                            _ => &["SETNX", "k", "v"],
                        };
                        changes += integer(&client.call(words).expect("a reply"));
                    }
                    changes
                })
            })
            .collect();
        let changes = writers
            .into_iter()
            .map(|writer| writer.join().expect("no writer fails"));
        changes.sum()
    });
    for listener in &mut listeners {
        for number in 0..changes {
            let expected = if number % 2 == 0 { "set" } else { "del" };
            assert_eq!(parts(&read(listener))[3], expected, "event {number}");
        }
    }
}
