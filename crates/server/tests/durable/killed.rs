//! Kills under load: eight clients, each on a thread of its own, so that workers commit and sync at the same
//! time. `torture/crash.rs` tests more commands and failures, from one thread.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::{ALWAYS, TWO, text};
use crate::support::{Client, Server, Value};

/// Acknowledged values of one connection, and its last change, which may or may not be there.
#[derive(Default)]
struct Account {
    told: BTreeMap<(u32, String), String>,
    pending: Option<(u32, Vec<(String, String)>)>,
}

/// A script that gives two keys one value; without blanks, as the requests here are split at those.
const SETS_BOTH: &str = "redis.call('set',KEYS[1],ARGV[1])redis.call('set',KEYS[2],ARGV[1])";

/// Changes keys of its own until the server ends.
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
        let (request, changes) = match random.u32(..9) {
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
            8 if one != two => (
                format!("EVAL {SETS_BOTH} 2 {one} {two} {value}"),
                vec![(one, value.clone()), (two, value)],
            ),
            4 => (format!("DEL {one}"), vec![(one, String::new())]),
            5 | 6 if one != two => (
                format!("MULTI;SET {one} lost;SET {two} {value};DEL {one};EXEC"),
                vec![(one, String::new()), (two, value)],
            ),
            _ => {
                let same = old(&one);
                (format!("EXPIRE {one} 100000"), vec![(one, same)])
            }
        };
        for request in request.split(';') {
            let words: Vec<&str> = request.split(' ').collect();
            if client.call(&words).is_err() {
                account.pending = Some((db, changes));
                return account;
            }
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

/// Number of kills: `FERRITE_CRASHES`, or the usual number.
pub(super) fn crashes(usual: usize) -> usize {
    std::env::var("FERRITE_CRASHES").map_or(usual, |count| count.parse().expect("a number"))
}

#[test]
fn what_was_acknowledged_survives_a_kill() {
    let mut random = fastrand::Rng::new();
    for _ in 0..crashes(3) {
        let mut server = Server::start(TWO, &ALWAYS);
        let until = random.usize(50..1000);
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
                let has_ended = threads.iter().all(|thread| thread.is_finished());
                assert!(!has_ended, "the server has ended: {}", server.output());
                thread::sleep(Duration::from_millis(1));
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
