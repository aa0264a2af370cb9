//! Connections that wait for an element of a list (BLPOP), or for a time (WAIT).

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use rustix::process::Signal;

use super::{ONE, SILENCE, TWO, bulk, eventually, id_of, info, integer, listed, ok, read};
use crate::support::{Client, Link, PATIENCE, Server, Target, Value, encode_request};

const FOUR: Target = Target::Ferrite { threads: 4 };

fn taken(key: &str, value: &str) -> Value {
    Value::Array(vec![bulk(key), bulk(value)])
}

fn send(client: &mut Client, words: &str) {
    let args: Vec<&str> = words.split_whitespace().collect();
    client.send(&args).expect("the server reads");
}

/// Sends a request that waits, and waits until it does.
fn block(admin: &mut Client, client: &mut Client, request: &str) -> i64 {
    let id = id_of(client);
    send(client, request);
    eventually("the wait", || {
        listed(admin, id, "flags").as_deref() == Some("b")
    });
    id
}

fn is_silent(client: &mut Client) -> bool {
    matches!(client.read(SILENCE), Err(Link::TimedOut))
}

#[test]
fn those_who_wait_for_a_key_are_served_in_the_order_in_which_they_came() {
    for target in [ONE, TWO, FOUR] {
        let server = Server::start(target, &[]);
        let mut admin = server.client();
        let mut waiting: Vec<Client> = (0..12).map(|_| server.client()).collect();
        for client in &mut waiting {
            block(&mut admin, client, "BLPOP k 0");
        }
        assert_eq!(info(&mut admin, "blocked_clients"), "12");
        for (number, client) in waiting.iter_mut().enumerate() {
            // Whoever writes, on whatever worker.
            let mut writer = server.client();
            let value = number.to_string();
            assert_eq!(writer.ask(&format!("RPUSH k {value}")), Value::Int(1));
            assert_eq!(writer.ask("EXISTS k"), Value::Int(0), "{target}");
            assert_eq!(read(client), taken("k", &value), "{target}");
        }
        eventually("all have gone on", || {
            info(&mut admin, "blocked_clients") == "0"
        });
        assert_eq!(admin.ask("RPUSH k last"), Value::Int(1));
        assert_eq!(waiting[0].ask("BLPOP k 0"), taken("k", "last"));
    }
}

#[test]
fn what_waits_behind_is_answered_behind() {
    let server = Server::start(TWO, &[]);
    let (mut admin, mut client) = (server.client(), server.client());
    let id = id_of(&mut client);
    client
        .send_bytes(b"PING\r\nBLPOP k 0\r\nECHO \"\\x41\"\r\nGET other\r\nBLPOP k 0\r\nPING\r\nEC")
        .expect("the server reads");
    assert_eq!(read(&mut client).text(), "PONG");
    eventually("the wait", || {
        listed(&mut admin, id, "flags").as_deref() == Some("b")
    });
    admin.ask("SET other x");
    admin.ask("RPUSH k one");
    assert_eq!(read(&mut client), taken("k", "one"));
    assert_eq!(read(&mut client), bulk("A"));
    assert_eq!(read(&mut client), bulk("x"));
    eventually("the wait", || {
        listed(&mut admin, id, "flags").as_deref() == Some("b")
    });
    admin.ask("RPUSH k two");
    assert_eq!(read(&mut client), taken("k", "two"));
    assert_eq!(read(&mut client).text(), "PONG");
    client.send_bytes(b"HO end\r\n").expect("the server reads");
    assert_eq!(read(&mut client), bulk("end"));
}

/// More requests behind it than are parsed at a time.
#[test]
fn a_wait_in_front_of_a_long_pipeline_lasts() {
    let server = Server::start(TWO, &[]);
    let (mut admin, mut client) = (server.client(), server.client());
    let id = id_of(&mut client);
    let requests = [&b"BLPOP k 0\r\n"[..], &b"PING\r\n".repeat(400)].concat();
    client.send_bytes(&requests).expect("the server reads");
    eventually("the wait", || {
        listed(&mut admin, id, "flags").as_deref() == Some("b")
    });
    assert!(is_silent(&mut client));
    admin.ask("RPUSH k one");
    assert_eq!(read(&mut client), taken("k", "one"));
    for _ in 0..400 {
        assert_eq!(read(&mut client).text(), "PONG");
    }
}

#[test]
fn a_transaction_serves_when_it_is_over_and_waits_for_nothing() {
    let server = Server::start(TWO, &[]);
    let (mut admin, mut client) = (server.client(), server.client());
    block(&mut admin, &mut client, "BLPOP k 0");
    for request in ["MULTI", "RPUSH k 1", "DEL k", "EXEC"] {
        admin.ask(request);
    }
    assert!(is_silent(&mut client));
    for request in ["MULTI", "RPUSH k 1", "LSET k 0 2", "LLEN k"] {
        admin.ask(request);
    }
    let replies = Value::Array(vec![Value::Int(1), ok(), Value::Int(1)]);
    assert_eq!(admin.ask("EXEC"), replies);
    assert_eq!(read(&mut client), taken("k", "2"));
    for request in ["MULTI", "BLPOP k 0", "WAIT 1 0", "RPUSH k 3", "BLPOP k 0"] {
        admin.ask(request);
    }
    let replies = vec![
        Value::NullArray,
        Value::Int(0),
        Value::Int(1),
        taken("k", "3"),
    ];
    assert_eq!(admin.ask("EXEC"), Value::Array(replies));
}

#[test]
fn databases_that_are_emptied_or_exchanged_are_waited_for_as_before() {
    let server = Server::start(TWO, &[]);
    let (mut admin, mut client) = (server.client(), server.client());
    let mut other = server.client();
    other.ask("SELECT 1");
    block(&mut admin, &mut client, "BLPOP k 0");
    admin.ask("FLUSHALL");
    other.ask("RPUSH k 1");
    assert!(is_silent(&mut client));
    admin.ask("SWAPDB 0 1");
    assert_eq!(read(&mut client), taken("k", "1"));
    block(&mut admin, &mut client, "BLPOP k 0");
    admin.ask("FLUSHDB");
    admin.ask("RPUSH k 2");
    assert_eq!(read(&mut client), taken("k", "2"));
}

#[test]
fn a_wait_ends_with_its_time_and_not_before() {
    let server = Server::start(TWO, &[]);
    let (mut admin, mut client) = (server.client(), server.client());
    for (request, least_ms, reply) in [
        ("BLPOP k 0.05", 50, Value::NullArray),
        ("BLPOP k 0.0001", 1, Value::NullArray),
        ("WAIT 1 50", 50, Value::Int(0)),
        ("WAIT 0 0", 0, Value::Int(0)),
        ("WAIT -1 0", 0, Value::Int(0)),
    ] {
        let start = Instant::now();
        assert_eq!(client.ask(request), reply, "{request}");
        // The server counts in whole milliseconds of a clock that may be one ahead.
        assert!(start.elapsed() + Duration::from_millis(2) >= Duration::from_millis(least_ms));
    }
    for request in ["BLPOP k 1000", "WAIT 1 100000"] {
        let id = block(&mut admin, &mut client, request);
        assert_eq!(info(&mut admin, "clients_in_timeout_table"), "1");
        assert_eq!(admin.ask(&format!("CLIENT UNBLOCK {id}")), Value::Int(1));
        read(&mut client);
        assert_eq!(info(&mut admin, "clients_in_timeout_table"), "0");
    }
}

/// `timeout` counts from the end of a wait: what CLIENT LIST calls idle is less than the wait took.
#[test]
fn a_connection_is_not_idle_while_it_waits() {
    const WAIT_S: i64 = 4;
    for target in [TWO, Target::Redis] {
        let server = Server::start(target, &[]);
        let mut admin = server.client();
        for (before, request) in [
            ("PING", "WAIT 1 4000"),
            ("CLIENT PAUSE 4000 WRITE", "SET k v"),
        ] {
            let mut client = server.client();
            let id = id_of(&mut client);
            admin.ask(before);
            client.ask(request);
            let idle = listed(&mut admin, id, "idle").expect("it is there");
            let idle: i64 = idle.parse().expect("a number");
            assert!(
                idle < WAIT_S,
                "{target}: idle for {idle} s behind {request}"
            );
        }
    }
}

#[test]
fn unblock_ends_a_wait_once() {
    let server = Server::start(TWO, &[]);
    let (mut admin, mut client) = (server.client(), server.client());
    let id = block(&mut admin, &mut client, "BLPOP k 0");
    assert_eq!(
        admin.ask(&format!("CLIENT UNBLOCK {id} ERROR")),
        Value::Int(1)
    );
    assert_eq!(admin.ask(&format!("CLIENT UNBLOCK {id}")), Value::Int(0));
    let error = "UNBLOCKED client unblocked via CLIENT UNBLOCK";
    assert_eq!(read(&mut client), Value::Error(error.into()));
    // It stands in no line any more.
    admin.ask("RPUSH k 1");
    assert_eq!(admin.ask("LLEN k"), Value::Int(1));
    for (request, reply) in [
        ("BLPOP none 0", Value::NullArray),
        ("WAIT 3 0", Value::Int(0)),
    ] {
        let id = block(&mut admin, &mut client, request);
        assert_eq!(
            admin.ask(&format!("CLIENT UNBLOCK {id} TIMEOUT")),
            Value::Int(1)
        );
        assert_eq!(read(&mut client), reply);
    }
    // What CLIENT PAUSE holds back does not wait in this sense.
    admin.ask("CLIENT PAUSE 100000 WRITE");
    let id = block(&mut admin, &mut client, "SET a 1");
    assert_eq!(admin.ask(&format!("CLIENT UNBLOCK {id}")), Value::Int(0));
    admin.ask("CLIENT UNPAUSE");
    assert_eq!(read(&mut client), ok());
}

#[test]
fn a_connection_that_ends_while_it_waits_is_noticed_at_once() {
    for io in ["epoll", "auto"] {
        let server = Server::start(TWO, &["--io", io]);
        let mut admin = server.client();
        for request in ["BLPOP k 0", "WAIT 1 0"] {
            for half in [false, true] {
                let mut client = server.client();
                let id = block(&mut admin, &mut client, request);
                // Bytes that nobody reads don't hide the end.
                send(&mut client, "PING");
                if half {
                    client.finish_sending();
                    assert!(client.is_closed(PATIENCE), "{io}");
                } else {
                    drop(client);
                }
                eventually("the end", || listed(&mut admin, id, "id").is_none());
            }
        }
        admin.ask("CLIENT PAUSE 100000 WRITE");
        let mut client = server.client();
        let id = block(&mut admin, &mut client, "SET a 1");
        drop(client);
        // What a pause holds back has been sent, and runs.
        admin.ask("CLIENT UNPAUSE");
        eventually("the end", || listed(&mut admin, id, "id").is_none());
        assert_eq!(admin.ask("GET a"), bulk("1"), "{io}");
        // Nobody stands in line for it.
        admin.ask("RPUSH k 1");
        assert_eq!(admin.ask("LLEN k"), Value::Int(1), "{io}");
        assert_eq!(info(&mut admin, "blocked_clients"), "0");
    }
}

/// A worker hears in one turn that a wait is over and that more has come from the connection that waited.
#[test]
fn what_waits_behind_runs_once_whoever_says_so() {
    const LENGTH: usize = 40_000;
    for io in ["epoll", "auto"] {
        let server = Server::start(TWO, &["--io", io, "--proto-max-bulk-len", "64gb"]);
        // One connection after the other goes to the worker that has the fewest: these two are on different
        // ones.
        let (mut admin, mut busy) = (server.client(), server.client());
        let mut random = Rng::with_seed(1);
        for key in ["a", "b"] {
            let value: Vec<u8> = (0..LENGTH).map(|_| random.u8(b'a'..=b'd')).collect();
            let set = admin.call(&[&b"SET"[..], key.as_bytes(), &value]);
            assert_eq!(set.expect("a reply"), ok());
        }
        for round in 0..3 {
            // Of these two one is on the worker that will be busy.
            let mut waiting = [server.client(), server.client()];
            for (number, client) in waiting.iter_mut().enumerate() {
                let id = id_of(client);
                let requests = format!("BLPOP k{number} 0\r\nINCR {round}:{number}\r\n");
                client
                    .send_bytes(requests.as_bytes())
                    .expect("the server reads");
                eventually("the wait", || {
                    listed(&mut admin, id, "flags").as_deref() == Some("b")
                });
            }
            // Work for one turn, in which the rest happens, unless this machine is too slow for that.
            busy.send_bytes(&encode_request(&["LCS", "a", "b", "LEN"]).repeat(2))
                .expect("the server reads");
            for (number, client) in waiting.iter_mut().enumerate() {
                assert_eq!(admin.ask(&format!("RPUSH k{number} v")), Value::Int(1));
                send(client, &format!("INCR {round}:{number}"));
                client.finish_sending();
            }
            (0..2).for_each(|_| assert!(integer(&read(&mut busy)) > 0));
            for (number, client) in waiting.iter_mut().enumerate() {
                let (_, closed) = client.read_until_quiet(PATIENCE);
                assert!(closed, "{io}");
                // A connection that ends while it still waits runs neither.
                let count = integer(&admin.ask(&format!("INCRBY {round}:{number} 0")));
                assert!((0..=2).contains(&count), "{io}: {count}");
            }
        }
    }
}

#[test]
fn the_server_ends_with_those_who_wait() {
    let mut server = Server::start(TWO, &[]);
    let mut admin = server.client();
    let (mut one, mut two) = (server.client(), server.client());
    block(&mut admin, &mut one, "BLPOP k 0");
    block(&mut admin, &mut two, "WAIT 1 0");
    server.signal(Signal::TERM);
    assert!(
        server
            .wait_for_exit()
            .is_some_and(|status| status.success())
    );
    assert!(one.is_closed(PATIENCE) && two.is_closed(PATIENCE));
}

/// Takes values until it gets "end".
fn consume(server: &Server, seed: u64, keys: usize) -> Vec<String> {
    let (mut client, mut random) = (server.client(), Rng::with_seed(seed));
    let mut values = Vec::new();
    loop {
        let key = random.usize(..keys);
        // Some wait for ever, for most the time is up again and again.
        let timeout = ["0.001", "0.003", "0.02", "0.1"][random.usize(..4)];
        match client.ask(&format!("BLPOP k{key} {timeout}")) {
            Value::Array(taken) => match taken[1].text() {
                end if end == "end" => return values,
                value => values.push(value),
            },
            Value::NullArray => {}
            Value::Error(text) => assert!(text.starts_with(b"UNBLOCKED"), "{text:?}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn every_value_is_taken_once_however_waits_end() {
    const KEYS: usize = 3;
    const VALUES: usize = 600;
    const CONSUMERS: usize = 6;
    for target in [TWO, FOUR] {
        let server = Server::start(target, &[]);
        let stop = AtomicBool::new(false);
        let taken: Vec<String> = thread::scope(|scope| {
            let (server, stop) = (&server, &stop);
            let consumers: Vec<_> = (0..CONSUMERS)
                .map(|seed| scope.spawn(move || consume(server, seed as u64, KEYS)))
                .collect();
            // Ends waits at random.
            scope.spawn(move || {
                let mut client = server.client();
                let mut random = Rng::with_seed(99);
                while !stop.load(SeqCst) {
                    let id = random.usize(1..CONSUMERS + 4);
                    let how = ["TIMEOUT", "ERROR"][random.usize(..2)];
                    integer(&client.ask(&format!("CLIENT UNBLOCK {id} {how}")));
                }
            });
            let producers: Vec<_> = (0..2)
                .map(|producer| {
                    scope.spawn(move || {
                        let (mut client, mut random) = (server.client(), Rng::with_seed(producer));
                        for number in 0..VALUES {
                            let key = random.usize(..KEYS);
                            integer(&client.ask(&format!("RPUSH k{key} {producer}:{number}")));
                        }
                    })
                })
                .collect();
            for producer in producers {
                producer.join().expect("it writes all");
            }
            let mut client = server.client();
            // A consumer that takes an end leaves no value of that key.
            for number in 0..CONSUMERS {
                integer(&client.ask(&format!("RPUSH k{} end", number % KEYS)));
            }
            let taken = consumers
                .into_iter()
                .flat_map(|consumer| consumer.join().expect("it ends"))
                .collect();
            stop.store(true, SeqCst);
            taken
        });
        let different: HashSet<&String> = taken.iter().collect();
        assert_eq!(
            (taken.len(), different.len()),
            (2 * VALUES, 2 * VALUES),
            "{target}"
        );
        assert_eq!(info(&mut server.client(), "blocked_clients"), "0");
    }
}
