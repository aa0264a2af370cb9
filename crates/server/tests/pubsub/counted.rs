//! The number that PUBLISH answers against what arrives.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst};
use std::thread;

use super::{FOUR, Value, confirmed, eventually, info, integer, parts, read};
use crate::support::{Client, Proto, Server};

const CHANNELS: usize = 6;
const PUBLISHERS: usize = 3;
const LISTENERS: usize = 8;
const ROUNDS: usize = 1_500;

/// What a listener has seen: the last number of each publisher on each channel since it began to listen
/// there.
#[derive(Default)]
struct Seen {
    last: HashMap<(String, String), i64>,
    messages: i64,
}

impl Seen {
    /// Checks that a publisher's messages come without a gap, by channel and by pattern on their own.
    fn take(&mut self, message: &[String]) {
        self.messages += 1;
        let [.., channel, payload] = message else {
            panic!("not a message: {message:?}");
        };
        let source = if message[0] == "pmessage" {
            format!("{} {channel}", message[1])
        } else {
            channel.clone()
        };
        let (publisher, number) = payload.split_once(' ').expect("a publisher and a number");
        let number: i64 = number.parse().expect("a number");
        let last = self
            .last
            .insert((source.clone(), publisher.to_owned()), number);
        if let Some(last) = last {
            assert_eq!(number, last + 1, "{publisher} on {source}");
        }
    }

    /// From here on a name is listened to anew, or not any more.
    fn forget(&mut self, name: &str) {
        let pattern = format!("{name} ");
        self.last
            .retain(|(source, _), _| source != name && !source.starts_with(&pattern));
    }
}

fn listen(mut client: Client, mut random: fastrand::Rng, done: &AtomicBool) -> i64 {
    let mut seen = Seen::default();
    let mut names: HashSet<(bool, String)> = HashSet::new();
    let mut between = Vec::new();
    while !done.load(SeqCst) {
        let is_pattern = random.u8(..4) == 0;
        let name = match is_pattern {
            true => format!("c{}*", random.usize(..3)),
            false => format!("c{}", random.usize(..CHANNELS)),
        };
        let prefix = if is_pattern { "P" } else { "" };
        let key = (is_pattern, name.clone());
        let word = if names.remove(&key) {
            format!("{prefix}UNSUBSCRIBE")
        } else {
            names.insert(key);
            format!("{prefix}SUBSCRIBE")
        };
        let confirmation = confirmed(&mut client, &[&word, &name], &mut between);
        assert_eq!(confirmation[1], name);
        assert_eq!(confirmation[2], names.len().to_string());
        between.drain(..).for_each(|message| seen.take(&message));
        seen.forget(&name);
    }
    // What was published before the last confirmation comes before it.
    for word in ["UNSUBSCRIBE", "PUNSUBSCRIBE"] {
        client.send(&[word]).expect("the server reads");
    }
    let mut left = 2;
    while left > 0 {
        let got = parts(&read(&mut client));
        match got[0].as_str() {
            "unsubscribe" | "punsubscribe" if got[2] == "0" => left = 0,
            "unsubscribe" | "punsubscribe" => {}
            _ => seen.take(&got),
        }
    }
    seen.messages
}

fn publish(mut client: Client, number: usize, mut random: fastrand::Rng) -> i64 {
    let mut sent = [0i64; CHANNELS];
    let mut counted = 0;
    for _ in 0..ROUNDS {
        // Some at once, so that they run in one window.
        let batch: Vec<usize> = (0..random.usize(1..6))
            .map(|_| random.usize(..CHANNELS))
            .collect();
        for &channel in &batch {
            let name = format!("c{channel}");
            let payload = format!("p{number} {}", sent[channel]);
            sent[channel] += 1;
            client
                .send(&["PUBLISH", &name, &payload])
                .expect("the server reads");
        }
        for _ in &batch {
            counted += integer(&read(&mut client));
        }
    }
    counted
}

#[test]
fn as_many_messages_arrive_as_were_counted_while_listeners_come_and_go() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let server = Server::start(FOUR, &[]);
    let done = AtomicBool::new(false);
    let (counted, arrived) = (AtomicI64::new(0), AtomicI64::new(0));
    thread::scope(|scope| {
        for number in 0..LISTENERS {
            let proto = [Proto::Resp2, Proto::Resp3][number % 2];
            let client = server.client_with(proto);
            let random = fastrand::Rng::with_seed(seed.wrapping_add(number as u64));
            let (done, arrived) = (&done, &arrived);
            scope.spawn(move || arrived.fetch_add(listen(client, random, done), SeqCst));
        }
        let publishers: Vec<_> = (0..PUBLISHERS)
            .map(|number| {
                let client = server.client();
                let random = fastrand::Rng::with_seed(seed.wrapping_sub(number as u64));
                let counted = &counted;
                scope.spawn(move || counted.fetch_add(publish(client, number, random), SeqCst))
            })
            .collect();
        for publisher in publishers {
            publisher.join().expect("no publisher fails");
        }
        done.store(true, SeqCst);
    });
    assert!(counted.load(SeqCst) > 0);
    assert_eq!(counted.load(SeqCst), arrived.load(SeqCst));
    let mut asker = server.client();
    for field in ["pubsub_channels", "pubsub_patterns"] {
        assert_eq!(info(&mut asker, field), 0);
    }
}

#[test]
fn connections_that_end_are_forgotten_whatever_they_listened_to() {
    let server = Server::start(FOUR, &[]);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for number in 0..4 {
            let (server, done) = (&server, &done);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(number);
                while !done.load(SeqCst) {
                    let mut client = server.client();
                    for _ in 0..random.usize(1..8) {
                        let word = ["SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE"][random.usize(..3)];
                        let name = format!("c{}", random.usize(..5));
                        client.send(&[word, &name]).expect("the server reads");
                    }
                    // Some end with unread messages, some in the middle of a request, some after QUIT.
                    match random.u8(..4) {
                        0 => {
                            let _ = client.send_bytes(b"*2\r\n$9\r\nSUBSC");
                        }
                        1 => {
                            let _ = client.send(&["QUIT"]);
                        }
                        2 => {
                            read(&mut client);
                        }
                        _ => {}
                    }
                }
            });
        }
        let mut publisher = server.client();
        for round in 0..4_000 {
            let name = format!("c{}", round % 5);
            integer(&publisher.call(&["PUBLISH", &name, "x"]).expect("a reply"));
            integer(&publisher.call(&["SPUBLISH", &name, "x"]).expect("a reply"));
        }
        done.store(true, SeqCst);
    });
    let mut asker = server.client();
    for field in ["pubsub_channels", "pubsub_patterns", "pubsubshard_channels"] {
        eventually(field, || info(&mut asker, field) == 0);
    }
    assert_eq!(asker.ask("PUBLISH c1 x"), Value::Int(0));
}

#[test]
fn thousands_of_names_on_one_connection_end_with_it() {
    const NAMES: usize = 20_000;
    let server = Server::start(FOUR, &[]);
    let (mut asker, mut other) = (server.client(), server.client());
    let mut client = server.client();
    let names: Vec<String> = (0..NAMES).map(|number| format!("name:{number}")).collect();
    let mut request = vec!["SUBSCRIBE"];
    request.extend(names.iter().map(String::as_str));
    client.send(&request).expect("the server reads");
    for number in 1..=NAMES {
        let got = parts(&read(&mut client));
        assert_eq!(got[2], number.to_string());
    }
    other.ask("SUBSCRIBE name:7");
    assert_eq!(info(&mut asker, "pubsub_channels"), NAMES as u64);
    assert_eq!(asker.ask("PUBLISH name:7 x"), Value::Int(2));
    assert_eq!(parts(&read(&mut client)), ["message", "name:7", "x"]);
    drop(client);
    eventually("the end of its names", || {
        info(&mut asker, "pubsub_channels") == 1
    });
    assert_eq!(asker.ask("PUBLISH name:7 y"), Value::Int(1));
    for payload in ["x", "y"] {
        assert_eq!(parts(&read(&mut other)), ["message", "name:7", payload]);
    }
}
