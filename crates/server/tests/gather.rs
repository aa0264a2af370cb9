//! Commands that read very many keys: they see all of them at one moment, whatever others do, and answer what
//! they would answer at once.
//!
//! The writers here go on until the reader has seen enough; no test depends on who gets how far meanwhile.

use crate::support;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use support::{Client, PATIENCE, Server, Target, Value, encode_request, items};

/// Enough that they are not read under one lock.
const KEYS: usize = 5000;

/// How often the readers look.
const ROUNDS: usize = 25;

fn server() -> Server {
    Server::start(Target::Ferrite { threads: 2 }, &[])
}

fn name(prefix: &str, number: usize) -> String {
    format!("{prefix}:{number}")
}

/// A command on all keys of a prefix.
fn on_all(command: &str, prefix: &str) -> Vec<String> {
    let mut words = vec![command.to_string()];
    words.extend((0..KEYS).map(|number| name(prefix, number)));
    words
}

/// MSET of all keys of a prefix to one value.
fn set_all(prefix: &str, value: &str) -> Vec<String> {
    let mut words = vec!["MSET".to_string()];
    for number in 0..KEYS {
        words.extend([name(prefix, number), value.to_string()]);
    }
    words
}

fn call(client: &mut Client, words: &[String]) -> Value {
    client.call(words).expect("a reply")
}

/// What all items are; they are alike.
fn only(items: &[Value]) -> &Value {
    for (at, item) in items.iter().enumerate() {
        assert_eq!(item, &items[0], "{at}");
    }
    &items[0]
}

/// What a writer does in a round, by its number.
type Write<'w> = &'w (dyn Fn(&mut Client, usize) + Sync);

/// Lets others write while `read` is called again and again.
fn meanwhile(server: &Server, writers: &[Write<'_>], mut read: impl FnMut(&mut Client)) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for write in writers {
            let done = &done;
            scope.spawn(move || {
                let mut client = server.client();
                for round in 1.. {
                    if done.load(Relaxed) {
                        break;
                    }
                    write(&mut client, round);
                }
            });
        }
        // Whatever fails here, the writers have to end.
        let end = End(&done);
        let mut client = server.client();
        (0..ROUNDS).for_each(|_| read(&mut client));
        drop(end);
    });
}

struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[test]
fn values_are_those_of_one_moment() {
    let server = server();
    let mut client = server.client();
    call(&mut client, &set_all("together", "0"));
    client.ask("MSET first 0 second 0");
    let together = |client: &mut Client, round: usize| {
        call(client, &set_all("together", &round.to_string()));
    };
    // One behind the other: nobody sees the second ahead of the first.
    let in_turn = |client: &mut Client, round: usize| {
        client.ask(&format!("SET first {round}"));
        client.ask(&format!("SET second {round}"));
    };
    let mut request = on_all("MGET", "together");
    request.insert(1, "second".into());
    request.push("first".into());
    let number = |value: &Value| value.text().parse::<usize>().expect("a number");
    meanwhile(&server, &[&together, &in_turn], |client| {
        let values = items(call(client, &request));
        assert_eq!(values.len(), KEYS + 2);
        only(&values[1..=KEYS]);
        let (second, first) = (number(&values[0]), number(&values[KEYS + 1]));
        assert!(first == second || first == second + 1, "{first} {second}");
    });
}

#[test]
fn keys_are_counted_at_one_moment() {
    let server = server();
    let toggle = |client: &mut Client, round: usize| {
        let request = match round % 2 {
            0 => on_all("DEL", "key"),
            _ => set_all("key", "v"),
        };
        call(client, &request);
    };
    let (exists, touch) = (on_all("EXISTS", "key"), on_all("TOUCH", "key"));
    meanwhile(&server, &[&toggle], |client| {
        for request in [&exists, &touch] {
            let Value::Int(count) = call(client, request) else {
                panic!("it answers a number");
            };
            assert!(count == 0 || count == KEYS as i64, "{count}");
        }
    });
}

#[test]
fn databases_are_emptied_and_exchanged_as_a_whole() {
    let server = server();
    let mut client = server.client();
    call(&mut client, &set_all("key", "one"));
    client.ask("SELECT 1");
    call(&mut client, &set_all("key", "two"));
    let swap = |client: &mut Client, _: usize| drop(client.ask("SWAPDB 0 1"));
    let request = on_all("MGET", "key");
    meanwhile(&server, &[&swap], |client| {
        let values = items(call(client, &request));
        let value = only(&values).text();
        assert!(value == "one" || value == "two", "{value}");
    });
    let refill = |client: &mut Client, _: usize| {
        call(client, &set_all("key", "v"));
        client.ask("FLUSHALL");
    };
    meanwhile(&server, &[&refill], |client| {
        only(&items(call(client, &request)));
    });
}

#[test]
fn answers_are_those_of_few_keys() {
    let server = server();
    let mut client = server.client();
    let large = "x".repeat(40_000);
    for number in (0..KEYS).step_by(3) {
        let value = match number % 500 {
            0 => large.clone(),
            _ => format!("value of {number}"),
        };
        let words = ["SET".into(), name("key", number), value];
        assert_eq!(call(&mut client, &words).text(), "OK");
    }
    for hello in ["HELLO 2", "HELLO 3"] {
        client.ask(hello);
        client.ask("CONFIG RESETSTAT");
        // Each key twice, in two orders.
        let mut request = on_all("MGET", "key");
        request.extend((0..KEYS).rev().map(|number| name("key", number)));
        let values = items(call(&mut client, &request));
        let statistics = client.ask("INFO stats").text();
        let there = 2 * KEYS.div_ceil(3);
        for line in [
            format!("keyspace_hits:{there}\r\n"),
            format!("keyspace_misses:{}\r\n", 2 * KEYS - there),
        ] {
            assert!(statistics.contains(&line), "{line}: {statistics}");
        }
        let few: Vec<Value> = request[1..]
            .chunks(1000)
            .flat_map(|names| {
                let words = [&["MGET".to_string()], names].concat();
                items(call(&mut client, &words))
            })
            .collect();
        assert!(values == few, "other values");
        for command in ["EXISTS", "TOUCH"] {
            request[0] = command.into();
            assert_eq!(call(&mut client, &request), Value::Int(there as i64));
        }
    }
}

#[test]
fn what_is_sent_behind_waits_and_transactions_do_it_at_once() {
    let server = server();
    let mut client = server.client();
    call(&mut client, &set_all("key", "v"));
    let request = on_all("MGET", "key");
    let mut bytes = encode_request(&request);
    bytes.extend(encode_request(&["SET", "key:7", "changed"]));
    bytes.extend(encode_request(&request));
    client.send_bytes(&bytes).expect("the server reads");
    let mut read = || client.read(PATIENCE).expect("a reply");
    assert_eq!(only(&items(read())).text(), "v");
    assert_eq!(read().text(), "OK");
    assert_eq!(items(read())[7].text(), "changed");
    client.ask("MULTI");
    assert_eq!(call(&mut client, &request).text(), "QUEUED");
    client.ask("SET key:7 again");
    let replies = items(client.ask("EXEC"));
    assert_eq!(items(replies[0].clone())[7].text(), "changed");
    // Who leaves while it goes on is forgotten.
    for _ in 0..5 {
        let mut other = server.client();
        other.send(&request).expect("the server reads");
    }
    assert_eq!(items(call(&mut client, &request))[7].text(), "again");
}

#[test]
fn keys_whose_time_has_come_are_not_there() {
    let server = server();
    let mut client = server.client();
    for number in 0..KEYS {
        let words = ["SET", &name("key", number), "v", "PX", "300"];
        client.send(&words).expect("the server reads");
    }
    (0..KEYS).for_each(|_| drop(client.read(PATIENCE).expect("a reply")));
    let request = on_all("MGET", "key");
    // However fast this is, each sees no key that one before it did not.
    let mut before = KEYS;
    while before > 0 {
        let values = items(call(&mut client, &request));
        let there = values
            .iter()
            .filter(|value| **value != Value::NullBulk)
            .count();
        assert!(there <= before, "{there} {before}");
        before = there;
    }
}
