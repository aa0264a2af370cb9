//! A single request or transaction, whatever it asks for, stays within the limit: what does not fit is
//! refused before it has an effect, and the other requests of its transaction run.

use std::time::Duration;

use super::support::{Client, PATIENCE, Server, Target, Value, encode_request, eventually};
use crate::memory::info;

/// The limit, and what docs/eviction.md allows the process beyond it.
const LIMITED: &[&str] = &["--maxmemory", "64mb"];
const MOST: u64 = (64 << 20) / 10 * 11;

/// A request of words.
fn request(words: &[&str]) -> Vec<u8> {
    let words: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
    encode_request(&words)
}

/// The same argument many times behind others.
fn repeated(words: &[&str], argument: &str, times: usize) -> Vec<u8> {
    request(&[words, &vec![argument; times]].concat())
}

fn is_refused(reply: &Value) -> bool {
    matches!(reply, Value::Error(text) if text.starts_with(b"OOM"))
}

/// A server with a limit, and a client.
struct Limited {
    server: Server,
    client: Client,
}

impl Limited {
    fn start() -> Limited {
        Limited::start_with(LIMITED)
    }

    fn start_with(options: &[&str]) -> Limited {
        let server = Server::start(Target::Logged { threads: 2 }, options);
        let client = server.client();
        Limited { server, client }
    }

    fn send(&mut self, request: &[u8]) -> Value {
        self.client.send_bytes(request).expect("the server reads");
        self.client.read(PATIENCE).expect("the server replies")
    }

    /// Adds items of 100 bytes.
    fn fill(&mut self, command: &str, key: &str, items: usize) {
        for first in (0..items).step_by(500) {
            let mut words = vec![command.to_string(), key.to_string()];
            for number in first..first + 500 {
                if command == "HSET" {
                    words.push(format!("f{number}"));
                }
                words.push(format!("{number:0100}"));
            }
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let reply = self.send(&request(&words));
            assert!(matches!(reply, Value::Int(_)), "{reply:?}");
        }
    }

    /// Runs a transaction: `setting` behind the others. How many of the others were refused.
    fn transact(&mut self, requests: &[Vec<u8>]) -> usize {
        let setting = request(&["SETBIT", "behind", "7", "1"]);
        let mut bytes = request(&["MULTI"]);
        requests.iter().for_each(|its| bytes.extend_from_slice(its));
        bytes.extend(setting);
        bytes.extend(request(&["EXEC"]));
        self.client.send_bytes(&bytes).expect("the server reads");
        for _ in 0..=requests.len() + 1 {
            let reply = self.client.read(PATIENCE).expect("the server replies");
            assert!(matches!(reply, Value::Simple(_)), "{reply:?}");
        }
        let replies = self.client.read(PATIENCE).expect("the server replies");
        let Value::Array(replies) = replies else {
            panic!("{replies:?}");
        };
        let (last, others) = replies.split_last().expect("there is one for each");
        assert_eq!(*last, Value::Int(0), "the others run");
        assert_eq!(others.len(), requests.len());
        others.iter().filter(|reply| is_refused(reply)).count()
    }

    /// As [`Limited::check`], with 8 MiB more: workers beside each other have exceeded the bound by 4 MB.
    fn check_nearly(&self) {
        let most = self.server.most_resident_bytes();
        assert!(most <= MOST + (8 << 20), "{most} bytes of {MOST} and 8 MiB");
    }

    /// Looks at the most memory that the process has had.
    fn check(&mut self) {
        let mut other = self.server.client();
        assert_eq!(other.ask("PING"), Value::Simple(b"PONG".to_vec()));
        let most = self.server.most_resident_bytes();
        assert!(most <= MOST, "{most} bytes of {MOST}");
    }
}

#[test]
fn values_that_a_small_request_asks_for_have_to_fit() {
    let setrange = |bytes: &str| -> Vec<Vec<u8>> {
        let request = |number| request(&["SETRANGE", &format!("k{number}"), bytes, "x"]);
        (0..20).map(request).collect()
    };
    let cases = [
        (vec![request(&["SETBIT", "k", "4294967295", "1"])], 1),
        (
            vec![request(&["BITFIELD", "k", "SET", "u8", "3294967000", "1"])],
            1,
        ),
        (setrange("50000000"), 20),
        (setrange("5000000"), 10),
    ];
    for (requests, least) in cases {
        let mut limited = Limited::start();
        assert!(limited.transact(&requests) >= least);
        limited.check();
        // Outside of a transaction nothing but the value itself has to fit.
        let outside = limited.send(&requests[0]);
        let fits = least >= 10;
        assert_eq!(is_refused(&outside), !fits, "{outside:?}");
        limited.check();
    }
}

#[test]
fn items_that_are_taken_have_to_fit() {
    let takes: [(&str, &str, &[&str]); 3] = [
        ("RPUSH", "LLEN", &["LPOP", "k"]),
        ("RPUSH", "LLEN", &["LMPOP", "1", "k", "RIGHT", "COUNT"]),
        ("SADD", "SCARD", &["SPOP", "k"]),
    ];
    for (command, len, take) in takes {
        let mut limited =
            Limited::start_with(&[LIMITED, &["--maxmemory-policy", "noeviction"]].concat());
        limited.fill(command, "k", 200_000);
        let take = |count: &str| request(&[take, &[count]].concat());
        assert_eq!(limited.transact(&[take("190000")]), 1, "{command}");
        assert!(is_refused(&limited.send(&take("190000"))), "{command}");
        let left = limited.send(&request(&[len, "k"]));
        assert_eq!(left, Value::Int(200_000), "{command}");
        assert!(matches!(limited.send(&take("1000")), Value::Array(_)));
        limited.check();
    }
}

#[test]
fn copies_have_to_fit() {
    for words in [
        &["COPY", "a", "TO"][..],
        &["BITOP", "NOT", "TO", "a"],
        &["BITOP", "OR", "TO", "a", "b"],
    ] {
        let mut limited = Limited::start();
        limited.send(&request(&["SETRANGE", "a", "10000000", "x"]));
        let requests: Vec<Vec<u8>> = (0..10)
            .map(|number| {
                let to = format!("to:{number}");
                let named = words
                    .iter()
                    .map(|&word| if word == "TO" { &to } else { word });
                request(&named.collect::<Vec<_>>())
            })
            .collect();
        assert!(limited.transact(&requests) > 0);
        limited.check();
        for request in &requests {
            limited.send(request);
        }
        limited.check();
    }
}

#[test]
fn replies_of_a_transaction_have_to_fit_together() {
    let cases = [
        ("RPUSH", &["LRANGE", "k", "0", "-1"][..], 200),
        ("HSET", &["HGETALL", "k"], 200),
        ("SADD", &["SMEMBERS", "k"], 200),
        ("HSET", &["HSCAN", "k", "0", "COUNT", "1000000"], 200),
        ("GET", &["GET", "k"], 20_000),
    ];
    for (filling, words, times) in cases {
        let mut limited = Limited::start();
        match filling {
            "GET" => drop(limited.send(&request(&["SET", "k", &"x".repeat(10_000)]))),
            command => limited.fill(command, "k", 20_000),
        }
        let refused = limited.transact(&vec![request(words); times]);
        assert!((1..times).contains(&refused), "{words:?}: {refused}");
        limited.check();
    }
}

#[test]
fn replies_that_repeat_large_items_have_to_fit() {
    let mut limited = Limited::start();
    let large = "x".repeat(15_000);
    limited.send(&request(&["SET", "k", &large]));
    limited.send(&request(&["HSET", "h", "f", &large]));
    for number in 0..20 {
        limited.send(&repeated(&["RPUSH", "l"], &(number % 2).to_string(), 500));
    }
    limited.send(&request(&["MSET", "k0", &large, "k1", &large]));
    for request in [
        repeated(&["HMGET", "h"], "f", 10_000),
        repeated(&["MGET"], "k", 10_000),
        request(&["SORT", "l", "BY", "nosort", "GET", "k*"]),
        request(&["SORT", "l", "BY", "nosort", "GET", "k*", "STORE", "d"]),
        repeated(
            &["HGETEX", "h", "EX", "100", "FIELDS", "10000"],
            "f",
            10_000,
        ),
    ] {
        let reply = limited.send(&request);
        assert!(is_refused(&reply), "{reply:?}");
        limited.check();
    }
    assert_eq!(
        limited.client.ask("HTTL h FIELDS 1 f"),
        Value::Array(vec![Value::Int(-1)]),
        "a refused HGETEX has changed nothing"
    );
    assert_eq!(limited.client.ask("EXISTS d"), Value::Int(0));
}

#[test]
fn a_client_that_does_not_read_gets_what_fits() {
    let mut limited = Limited::start();
    limited.fill("RPUSH", "k", 20_000);
    let mut idle = limited.server.client();
    let mut bytes = request(&["MULTI"]);
    (0..2_000).for_each(|_| bytes.extend(request(&["LRANGE", "k", "0", "-1"])));
    bytes.extend(request(&["EXEC"]));
    idle.send_bytes(&bytes).expect("the server reads");
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(20));
        limited.check();
    }
}

/// Requests that were held back run in one turn; their clients read nothing.
#[test]
fn replies_of_one_turn_to_many_clients_have_to_fit() {
    let mut limited = Limited::start();
    limited.send(&request(&["SET", "k", &"x".repeat(8_000)]));
    let asked = repeated(&["MGET"], "k", 100).repeat(20);
    let held = limited.send(&request(&["CLIENT", "PAUSE", "500", "ALL"]));
    assert_eq!(held.text(), "OK");
    let readers: Vec<Client> = std::iter::repeat_with(|| {
        let mut reader = limited.server.client();
        reader.send_bytes(&asked).expect("the server reads");
        reader
    })
    .take(400)
    .collect();
    eventually("the largest clients are closed", || {
        info(&mut limited.client, "evicted_clients") > 100
    });
    // Replies of clients that another worker has closed go when their own worker comes to them.
    limited.check_nearly();
    drop(readers);
}

#[test]
fn replies_of_threads_to_many_clients_have_to_fit() {
    // Nothing makes room, and no client is closed.
    let others = [
        "--maxmemory-policy",
        "noeviction",
        "--maxmemory-clients",
        "0",
    ];
    let mut limited = Limited::start_with(&[LIMITED, &others].concat());
    // A reply fits, two at once do not.
    limited.fill("SADD", "k", 200_000);
    let mut clients: Vec<_> = (0..12).map(|_| limited.server.client()).collect();
    for client in &mut clients {
        let sent = client.send_bytes(&request(&["SUNION", "k", "k"]));
        sent.expect("the server reads");
    }
    // No client reads meanwhile.
    for _ in 0..150 {
        std::thread::sleep(Duration::from_millis(20));
        limited.check();
    }
    // A client that keeps much is closed when others need room.
    let replies = clients.iter_mut().map(|client| client.read(PATIENCE));
    let whole = replies
        .filter(|reply| matches!(reply, Ok(Value::Array(_))))
        .count();
    assert!(whole < 12, "{whole}");
    limited.check();
}

/// Fills a key with many small items, which `words` gives for each number.
fn fill_small(
    limited: &mut Limited,
    words: &[&str],
    items: usize,
    of: impl Fn(usize) -> Vec<String>,
) {
    for first in (0..items).step_by(2000) {
        let mut request: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        (first..first + 2000).for_each(|number| request.extend(of(number)));
        let reply = limited.send(&encode_request(&request));
        assert!(matches!(reply, Value::Int(_)), "{reply:?}");
    }
}

/// What is gathered to find members of several sets is several times as large as the sets are.
#[test]
fn sets_that_are_put_together_have_to_fit() {
    let mut limited = Limited::start();
    fill_small(&mut limited, &["ZADD", "z"], 1_000_000, |number| {
        vec![number.to_string(), number.to_string()]
    });
    for words in [
        &["ZUNION", "2", "z", "z"][..],
        &["ZINTER", "2", "z", "z"],
        &["ZINTERCARD", "2", "z", "z"],
        &["ZDIFF", "2", "z", "missing"],
        &["ZUNIONSTORE", "to", "2", "z", "z"],
    ] {
        let reply = limited.send(&request(words));
        assert!(is_refused(&reply), "{words:?}: {reply:?}");
        limited.check();
    }
    let mut clients: Vec<_> = (0..8).map(|_| limited.server.client()).collect();
    for client in &mut clients {
        let sent = client.send_bytes(&request(&["SORT", "z", "DESC", "LIMIT", "0", "10"]));
        sent.expect("the server reads");
    }
    for client in &mut clients {
        let reply = client.read(PATIENCE).expect("the server replies");
        let is_whole = matches!(&reply, Value::Array(members) if members.len() == 10);
        assert!(is_whole || is_refused(&reply), "{reply:?}");
    }
    limited.check();
    limited.send(&request(&["DEL", "z"]));
    fill_small(&mut limited, &["SADD", "s"], 1_000_000, |number| {
        vec![number.to_string()]
    });
    for words in [&["SUNION"][..], &["SDIFF"], &["SUNIONSTORE", "to"]] {
        let reply = limited.send(&request(&[words, &["s"; 6]].concat()));
        let is_none = reply == Value::Array(Vec::new());
        assert!(is_none || is_refused(&reply), "{words:?}");
        limited.check();
    }
}

#[test]
fn places_that_are_found_have_to_fit() {
    let mut limited = Limited::start();
    fill_small(&mut limited, &["GEOADD", "g"], 400_000, |number| {
        let place = [number % 360, number / 360 % 170].map(|degrees| degrees as f64 / 2.0);
        vec![
            place[0].to_string(),
            place[1].min(85.0).to_string(),
            format!("{number:050}"),
        ]
    });
    let around = ["FROMLONLAT", "0", "0", "BYRADIUS", "30000", "km"];
    let search = request(&[&["GEOSEARCH", "g"], &around[..], &["WITHDIST"]].concat());
    let mut clients: Vec<_> = (0..3).map(|_| limited.server.client()).collect();
    for client in &mut clients {
        client.send_bytes(&search).expect("the server reads");
    }
    let store = [&["GEOSEARCHSTORE", "to", "g"], &around[..]].concat();
    limited.send(&request(&store));
    limited.check_nearly();
    assert!(limited.transact(&vec![search; 10]) > 5);
    limited.check_nearly();
    let nearest = [&["GEOSEARCH", "g"], &around[..], &["ASC", "COUNT", "2"]].concat();
    // The three clients that do not read still have their replies: for a moment there may be no room.
    eventually("room for two places", || {
        let reply = limited.send(&request(&nearest));
        matches!(reply, Value::Array(members) if members.len() == 2)
    });
    limited.check_nearly();
}

/// The values and the table of a script, its writes, its records at the end, and its reply.
#[test]
fn scripts_have_to_fit() {
    let cases = [
        (
            "OOM",
            "for i = 1, 3000000 do redis.call('set', 'k' .. i, ('x'):rep(100)) end",
        ),
        (
            "OOM",
            "for i = 1, 3000000 do redis.call('rpush', 'l', ('x'):rep(100)) end",
        ),
        (
            "OOM",
            "for i = 1, 300000 do redis.call('append', 's', ('x'):rep(10000)) end",
        ),
        (
            "ERR not enough memory",
            "local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1000) .. i end",
        ),
        (
            "ERR not enough memory",
            "local s, t = ('x'):rep(1000000), {} for i = 1, 200 do t[i] = s end return t",
        ),
    ];
    for is_full in [false, true] {
        let mut limited = Limited::start();
        if is_full {
            limited.fill("HSET", "h", 400_000);
        }
        for (refusal, script) in cases {
            let reply = limited.send(&request(&["EVAL", script, "0"]));
            let is_refused =
                matches!(&reply, Value::Error(text) if text.starts_with(refusal.as_bytes()));
            assert!(is_refused, "{script}: {reply:?}");
            limited.check();
        }
    }
}

/// A client that one request would let keep more than all clients may.
#[test]
fn names_that_are_kept_for_a_client_have_to_fit() {
    let mut limited = Limited::start();
    let names: Vec<String> = (0..200_000)
        .map(|number| format!("name:{number}"))
        .collect();
    for (words, timeout) in [
        ("SUBSCRIBE", None),
        ("PSUBSCRIBE", None),
        ("BLPOP", Some("1")),
    ] {
        let words = std::iter::once(words).chain(names.iter().map(String::as_str));
        let words: Vec<&str> = words.chain(timeout).collect();
        let reply = limited.send(&request(&words));
        assert!(is_refused(&reply), "{}: {reply:?}", words[0]);
        limited.check();
    }
}

#[test]
fn payloads_do_not_unpack_to_more_than_fits() {
    let mut limited = Limited::start_with(&[]);
    limited.send(&request(&["SETRANGE", "s", "60000000", "x"]));
    let mut words = vec!["HSET".to_string(), "h".to_string()];
    for number in 0..50 {
        words.extend([format!("f{number}"), "x".repeat(2_000_000)]);
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    limited.send(&request(&words));
    let dumps = ["s", "h"].map(|key| match limited.send(&request(&["DUMP", key])) {
        Value::Bulk(bytes) => bytes,
        other => panic!("{other:?}"),
    });
    drop(limited);
    let mut limited = Limited::start();
    for payload in dumps {
        assert!(payload.len() < 2 << 20, "it is compressed");
        let restore = [b"RESTORE".to_vec(), b"k".to_vec(), b"0".to_vec(), payload];
        let reply = limited.send(&encode_request(&restore));
        assert!(is_refused(&reply), "{reply:?}");
        limited.check();
    }
}

/// The fields are gone when the reply has them, so it is not refused, and not made again.
#[test]
fn fields_that_end_with_their_reply_are_in_it() {
    let mut limited = Limited::start();
    let large = "x".repeat(1_000_000);
    let names: Vec<String> = (0..25).map(|number| format!("f{number}")).collect();
    for name in &names {
        limited.send(&request(&["HSET", "h", name, &large]));
    }
    let mut words = vec!["HGETEX", "h", "PXAT", "1", "FIELDS", "25"];
    words.extend(names.iter().map(String::as_str));
    let Value::Array(values) = limited.send(&request(&words)) else {
        panic!("it is an array");
    };
    let is_whole = |value: &Value| matches!(value, Value::Bulk(bytes) if bytes.len() == 1_000_000);
    assert!(values.len() == 25 && values.iter().all(is_whole));
    assert_eq!(limited.client.ask("EXISTS h"), Value::Int(0));
}
