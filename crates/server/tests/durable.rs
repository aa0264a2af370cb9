//! The server and its log: whatever was acknowledged is there after a restart, however the process ended.

#[path = "support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustix::process::Signal;
use support::{Client, Server, Target, Value};

const ONE: Target = Target::Logged { threads: 1 };
const TWO: Target = Target::Logged { threads: 2 };
const ALWAYS: [&str; 2] = ["--appendfsync", "always"];

fn text(value: &Value) -> String {
    match value {
        Value::Bulk(bytes) | Value::Simple(bytes) | Value::Error(bytes) => {
            String::from_utf8_lossy(bytes).into_owned()
        }
        Value::Int(number) => number.to_string(),
        other => format!("{other:?}"),
    }
}

/// What is in all databases.
fn digest(server: &Server) -> (String, Vec<String>) {
    let mut client = server.client();
    let digest = text(&client.ask("DEBUG DIGEST"));
    let sizes = (0..16).map(|db| {
        client.ask(&format!("SELECT {db}"));
        text(&client.ask("DBSIZE"))
    });
    (digest, sizes.collect())
}

/// A request over a small set of keys, of any kind that changes something.
fn random_request(random: &mut fastrand::Rng) -> Vec<Vec<u8>> {
    let key = |random: &mut fastrand::Rng| format!("key:{}", random.u32(..60));
    let (one, two, three) = (key(random), key(random), key(random));
    let number = random.u32(..1000);
    let db = random.u32(..4);
    let words = match random.u32(..30) {
        0 => format!("SELECT {db}"),
        1 | 2 => format!("SET {one} {number}"),
        3 => format!("SET {one} {number} EX 10000"),
        4 => format!("SET {one} text{number} KEEPTTL"),
        5 => format!("APPEND {one} {number}"),
        6 => format!("INCRBY number:{one} {number}"),
        7 => format!("INCRBYFLOAT float:{one} 1.25"),
        8 => format!("SETBIT {one} {number} {}", number % 2),
        9 => format!("SETRANGE {one} {number} {two}"),
        10 => format!("MSET {one} {number} {two} {number} {one} other{number}"),
        11 => format!("MSETNX {one} {number} {two} {number}"),
        12 => format!("DEL {one} {two} {three}"),
        13 => format!("UNLINK {one}"),
        14 => format!("RENAME {one} {two}"),
        15 => format!("RENAMENX {one} {two}"),
        16 => format!("COPY {one} {two} REPLACE"),
        17 => format!("COPY {one} {two} DB {db} REPLACE"),
        18 => format!("MOVE {one} {db}"),
        19 => format!("EXPIRE {one} 5000"),
        20 => format!("PERSIST {one}"),
        21 => format!("GETEX {one} EX 7000"),
        22 => format!("GETDEL {one}"),
        23 => format!("BITOP XOR {one} {two} {three}"),
        24 => format!("BITFIELD {one} SET u8 #3 {number}"),
        25 => format!("EXPIRE {one} -1"),
        26 => format!("SET {one} {}", "x".repeat(20_000 + number as usize)),
        27 if number < 100 => "FLUSHDB".to_owned(),
        27 if number < 110 => "FLUSHALL".to_owned(),
        28 if number < 300 => format!("SWAPDB {db} {}", random.u32(..4)),
        29 => format!("SETRANGE {one} {} {two}", 17 * number),
        _ => format!("SETEX {one} 9000 {number}"),
    };
    words
        .split(' ')
        .map(|word| word.as_bytes().to_vec())
        .collect()
}

#[test]
fn whatever_was_changed_is_there_again() {
    for (target, seed) in [(ONE, 1), (TWO, 2)] {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut server = Server::start(target, &ALWAYS);
        for signal in [Signal::KILL, Signal::TERM, Signal::KILL] {
            let mut client = server.client();
            for _ in 0..1500 {
                let request = random_request(&mut random);
                client.call(&request).expect("the server answers");
            }
            let before = digest(&server);
            server.start_again(target, signal, &ALWAYS);
            assert_eq!(digest(&server), before, "{signal:?}, seed {seed}");
        }
    }
}

#[test]
fn an_end_on_demand_loses_nothing_whatever_the_policy() {
    for policy in ["everysec", "no"] {
        let options = ["--appendfsync", policy];
        let mut server = Server::start(TWO, &options);
        let mut client = server.client();
        for number in 0..2000 {
            client
                .send(&["SET", &format!("key:{number}"), policy])
                .expect("a connection");
        }
        for _ in 0..2000 {
            client.read(support::PATIENCE).expect("a reply");
        }
        let before = digest(&server);
        server.start_again(TWO, Signal::TERM, &options);
        assert_eq!(digest(&server), before);
        assert_eq!(text(&server.client().ask("GET key:1999")), policy);
    }
}

#[test]
fn expiries_that_pass_while_the_server_is_down_have_passed() {
    let mut server = Server::start(ONE, &ALWAYS);
    let mut client = server.client();
    client.ask("SET short v PX 1");
    client.ask("SET taken-back v PX 60000");
    client.ask("PERSIST taken-back");
    client.ask("SET long v EX 1000");
    server.start_again(ONE, Signal::KILL, &ALWAYS);
    let mut client = server.client();
    assert_eq!(client.ask("GET short"), Value::NullBulk);
    assert_eq!(client.ask("TTL taken-back"), Value::Int(-1));
    assert!(matches!(client.ask("TTL long"), Value::Int(900..=1000)));
}

#[test]
fn a_directory_belongs_to_one_server() {
    let server = Server::start(ONE, &[]);
    let dir = server.dir().to_str().expect("the directory's name is text");
    let Err(failure) = Server::try_start(ONE, &[], &["--dir", dir]) else {
        panic!("a second server started in {dir}");
    };
    let expected = format!("is in use by another server (process {})", server.pid());
    assert!(failure.output.contains(&expected), "{failure}");
}

/// What one connection has been told, and what it said last, which may or may not have come to pass.
#[derive(Default)]
struct Account {
    told: BTreeMap<(u32, String), String>,
    pending: Option<(u32, Vec<(String, String)>)>,
}

/// Changes keys of its own until the server goes.
fn keep_changing(mut client: Client, own: usize, told: &AtomicUsize) -> Account {
    let mut random = fastrand::Rng::with_seed(own as u64);
    let mut account = Account::default();
    let mut db = 0;
    loop {
        if random.u32(..10) == 0 {
            db = random.u32(..3);
            if client.call(&["SELECT", &db.to_string()]).is_err() {
                return account;
            }
        }
        let name = |random: &mut fastrand::Rng| format!("{own}:{}", random.u32(..20));
        let (one, two) = (name(&mut random), name(&mut random));
        let old = |key: &str| {
            let told = account.told.get(&(db, key.to_owned()));
            told.cloned().unwrap_or_default()
        };
        let value = random.u32(..).to_string();
        let (request, changes) = match random.u32(..6) {
            0 => (format!("SET {one} {value}"), vec![(one, value)]),
            1 => {
                let sum = old(&format!("n{one}")).parse::<u64>().unwrap_or(0) + 1;
                let key = format!("n{one}");
                (format!("INCR {key}"), vec![(key, sum.to_string())])
            }
            2 => {
                let appended = old(&one) + &value;
                (format!("APPEND {one} {value}"), vec![(one, appended)])
            }
            3 if one != two => (
                format!("MSET {one} {value} {two} {value}"),
                vec![(one, value.clone()), (two, value)],
            ),
            4 => (format!("DEL {one}"), vec![(one, String::new())]),
            _ => {
                let same = old(&one);
                (format!("EXPIRE {one} 100000"), vec![(one, same)])
            }
        };
        let words: Vec<&str> = request.split(' ').collect();
        if client.call(&words).is_err() {
            account.pending = Some((db, changes));
            return account;
        }
        told.fetch_add(1, Ordering::Relaxed);
        for (key, value) in changes {
            account.told.insert((db, key), value);
        }
    }
}

fn check(client: &mut Client, account: &Account) {
    let mut read = |db: u32, key: &str| {
        client.ask(&format!("SELECT {db}"));
        match client.ask(&format!("GET {key}")) {
            Value::NullBulk => String::new(),
            other => text(&other),
        }
    };
    let mut expected = account.told.clone();
    if let Some((db, changes)) = &account.pending {
        // Whole or not at all.
        let came = changes
            .iter()
            .filter(|(key, value)| read(*db, key) == *value)
            .count();
        if came == changes.len() {
            for (key, value) in changes {
                expected.insert((*db, key.clone()), value.clone());
            }
        }
    }
    for ((db, key), value) in &expected {
        assert_eq!(read(*db, key), *value, "{key} in database {db}");
    }
}

/// How many times the server is killed: `FERRITE_CRASHES`, or a few.
fn crashes() -> usize {
    std::env::var("FERRITE_CRASHES").map_or(3, |count| count.parse().expect("a number"))
}

#[test]
fn what_was_acknowledged_survives_a_kill() {
    let mut random = fastrand::Rng::new();
    for _ in 0..crashes() {
        let mut server = Server::start(TWO, &ALWAYS);
        let until = random.usize(50..3000);
        let told = AtomicUsize::new(0);
        let accounts: Vec<Account> = thread::scope(|scope| {
            let (server, told) = (&server, &told);
            let threads: Vec<_> = (0..8)
                .map(|own| {
                    let client = server.client();
                    scope.spawn(move || keep_changing(client, own, told))
                })
                .collect();
            while told.load(Ordering::Relaxed) < until {
                thread::yield_now();
            }
            server.signal(Signal::KILL);
            let join = |thread: thread::ScopedJoinHandle<'_, Account>| {
                thread.join().expect("a client does not panic")
            };
            threads.into_iter().map(join).collect()
        });
        server.start_again(TWO, Signal::KILL, &ALWAYS);
        let mut client = server.client();
        for account in &accounts {
            check(&mut client, account);
        }
    }
}
