//! Sorted sets beyond what golden scripts can say: large ones that change while they are told, scans of
//! members whose scores change, and what is left after a restart.

use crate::support;

use std::collections::BTreeSet;

use rustix::process::Signal;
use support::{Client, PATIENCE, Server, Target, Value, eventually, info, texts as items};

const MEMBERS: usize = 100_000;
const LOGGED: Target = Target::Logged { threads: 2 };

/// Long, so that no socket takes all members.
fn member(number: usize) -> String {
    format!("{number:0>120}")
}

/// Adds `count` members, many at a time, with scores of which each is that of several.
fn fill(client: &mut Client, key: &str, count: usize) {
    for first in (0..count).step_by(10_000) {
        let mut words = vec!["ZADD".to_string(), key.to_string()];
        for number in first..(first + 10_000).min(count) {
            words.extend([(number / 7).to_string(), member(number)]);
        }
        client.call(&words).expect("a reply");
    }
}

#[test]
fn a_large_range_is_told_as_it_was_while_it_changes() {
    let server = Server::start(Target::Logged { threads: 1 }, &[]);
    let (mut slow, mut other) = (server.client(), server.client());
    slow.receive_little_ahead();
    let Value::Int(id) = slow.ask("CLIENT ID") else {
        panic!("no number");
    };
    for (request, is_reverse) in [
        ("ZRANGE set 0 -1", false),
        ("ZREVRANGE set 0 -1", true),
        ("ZRANGEBYSCORE set -inf +inf", false),
        ("ZRANGE set +inf -inf BYSCORE REV", true),
    ] {
        for change in ["ZREMRANGEBYRANK set 1000 50999", "DEL set"] {
            fill(&mut other, "set", MEMBERS);
            let words: Vec<&str> = request.split(' ').collect();
            slow.send(&words).expect("it is sent");
            eventually("the client has unread bytes", || {
                let list = other.ask(&format!("CLIENT LIST ID {id}")).text();
                list.contains(" omem=") && !list.contains(" omem=0 ")
            });
            other.ask(change);
            let mut told = items(slow.read(PATIENCE).expect("a reply"));
            if is_reverse {
                told.reverse();
            }
            assert_eq!(told.len(), MEMBERS, "{request}, {change}");
            let is_right = |(number, name): (usize, &String)| *name == member(number);
            assert!(told.iter().enumerate().all(is_right), "{request}, {change}");
            other.ask("DEL set");
        }
    }
}

#[test]
fn a_range_by_rank_is_found_wherever_it_is() {
    let server = Server::start(Target::Ferrite { threads: 1 }, &[]);
    let mut client = server.client();
    fill(&mut client, "set", MEMBERS);
    for rank in [0, 1, 999, 50_000, MEMBERS - 2] {
        let found = items(client.ask(&format!("ZRANGE set {rank} {}", rank + 1)));
        assert_eq!(found, [member(rank), member(rank + 1)]);
        let found = client.ask(&format!("ZRANK set {}", member(rank)));
        assert_eq!(found, Value::Int(rank as i64));
    }
    let count = client.ask("ZCOUNT set 100 (200");
    assert_eq!(count, Value::Int(700));
}

#[test]
fn a_scan_shows_members_whose_scores_change() {
    let server = Server::start(Target::Ferrite { threads: 1 }, &[]);
    let mut client = server.client();
    const COUNT: usize = 20_000;
    fill(&mut client, "set", COUNT);
    let (mut seen, mut cursor, mut calls) = (BTreeSet::new(), "0".to_string(), 0);
    loop {
        let Value::Array(page) = client.ask(&format!("ZSCAN set {cursor} COUNT 100")) else {
            panic!("no page");
        };
        cursor = page[0].text();
        seen.extend(items(page[1].clone()).into_iter().step_by(2));
        if cursor == "0" {
            break;
        }
        calls += 1;
        for number in 0..50 {
            let number = (calls * 977 + number * 31) % COUNT;
            client.ask(&format!("ZADD set {} {}", number % 100, member(number)));
        }
    }
    assert!(calls > 20, "{calls} calls");
    assert!((0..COUNT).all(|number| seen.contains(&member(number))));
}

/// A page of a scan: its cursor, and what is on it.
fn page(reply: Value) -> (u64, Vec<String>) {
    let Value::Array(page) = reply else {
        panic!("no page: {reply:?}");
    };
    let cursor = page[0].text().parse().expect("a cursor");
    assert!(cursor < 1 << 48, "a client may keep it as a double");
    (cursor, items(page[1].clone()))
}

/// Members that share a score are shown a few at a time, all of them, also while some are moved and the
/// server starts again.
#[test]
fn a_scan_of_one_score_costs_by_its_count() {
    const COUNT: usize = 20_000;
    let mut server = Server::start(LOGGED, &[]);
    let mut client = server.client();
    let fill = |client: &mut Client| {
        for first in (0..COUNT).step_by(10_000) {
            let mut words = vec!["ZADD".to_string(), "set".to_string()];
            words.extend((first..first + 10_000).flat_map(|at| ["1".to_string(), member(at)]));
            client.call(&words).expect("a reply");
        }
    };
    fill(&mut client);
    let (mut seen, mut cursor, mut calls) = (BTreeSet::new(), 0, 0);
    loop {
        let (next, shown) = page(client.ask(&format!("ZSCAN set {cursor}")));
        assert!(shown.len() <= 200, "{} of 10 members", shown.len() / 2);
        seen.extend(shown.into_iter().step_by(2));
        (cursor, calls) = (next, calls + 1);
        if cursor == 0 {
            break;
        }
        // To before all others, over the place of the scan; or on from there.
        let moved = member((calls * 7919) % COUNT);
        client.ask(&format!("ZADD set {} {moved}", [0, 1, 2][calls % 3]));
        if calls == 100 {
            server.start_again(LOGGED, Signal::KILL, &[]);
            client = server.client();
        }
    }
    assert!((0..COUNT).all(|number| seen.contains(&member(number))));
    // In a transaction, and as one page.
    client.ask("MULTI");
    client.ask("ZSCAN set 0 COUNT 100");
    let replies = client.ask("EXEC");
    let Value::Array(replies) = replies else {
        panic!("{replies:?}");
    };
    let (next, shown) = page(replies[0].clone());
    assert!(next != 0 && (200..2000).contains(&shown.len()));
    let (next, shown) = page(client.ask("ZSCAN set 0 MATCH *1 COUNT 1000000"));
    assert_eq!((next, shown.len()), (0, COUNT / 10 * 2));
}

/// What OBJECT ENCODING says of each sorted set.
fn encodings(client: &mut Client) -> Vec<String> {
    let names = ["few", "was-many", "many", "long"];
    let ask = |name| client.ask(&format!("OBJECT ENCODING {name}")).text();
    names.map(ask).to_vec()
}

#[test]
fn sorted_sets_come_back_with_their_encodings() {
    let mut server = Server::start(LOGGED, &[]);
    let mut client = server.client();
    client.ask("ZADD few 1 a -inf b 0.1 c");
    for number in 0..600 {
        client.ask(&format!("ZADD many {}.5 m{number}", number % 31));
        client.ask(&format!("ZADD was-many {number} {number}"));
        client.ask(&format!("ZINCRBY many 3 m{}", number / 2));
    }
    client.ask("ZPOPMAX was-many 598");
    client.ask(&format!("ZADD long 1 {}", "x".repeat(65)));
    let wanted = ["listpack", "skiplist", "skiplist", "skiplist"];
    assert_eq!(encodings(&mut client), wanted);
    let digest = client.ask("DEBUG DIGEST");
    for way in [
        "DEBUG LOADAOF",
        "restart",
        "kill",
        "compaction",
        "DEBUG RELOAD",
    ] {
        match way {
            "restart" | "kill" => {
                drop(client);
                let signal = if way == "kill" {
                    Signal::KILL
                } else {
                    Signal::TERM
                };
                server.start_again(LOGGED, signal, &[]);
                client = server.client();
            }
            "compaction" => drop(client.ask("BGREWRITEAOF")),
            _ => assert_eq!(client.ask(way).text(), "OK"),
        }
        assert_eq!(client.ask("DEBUG DIGEST"), digest, "{way}");
        let mut wanted = wanted;
        if way == "DEBUG RELOAD" {
            // A file has the members alone.
            wanted[1] = "listpack";
        }
        assert_eq!(encodings(&mut client), wanted, "{way}");
        // Members are found by their names, too.
        assert_eq!(client.ask("ZSCORE many m599").text(), "10.5", "{way}");
        assert_eq!(client.ask("ZRANK few c"), Value::Int(1), "{way}");
    }
}

/// Lets a client wait, and returns when it does.
fn block(admin: &mut Client, client: &mut Client, request: &str) {
    let id = client.ask("CLIENT ID").text();
    let words: Vec<&str> = request.split(' ').collect();
    client.send(&words).expect("it is sent");
    eventually("the wait", || {
        let list = admin.ask(&format!("CLIENT LIST ID {id}")).text();
        list.contains(" flags=b ")
    });
}

#[test]
fn waits_for_members_are_served_in_order_on_any_worker_in_the_protocol_of_each() {
    for threads in [1, 2, 4] {
        let server = Server::start(Target::Ferrite { threads }, &[]);
        let mut admin = server.client();
        let requests = [
            "BZPOPMIN k 0",
            "BLPOP k 0",
            "BZMPOP 0 2 other k MAX COUNT 2",
            "BZPOPMAX k other 0",
        ];
        let mut waiting: Vec<Client> = requests.iter().map(|_| server.client()).collect();
        for (number, client) in waiting.iter_mut().enumerate() {
            if number % 2 == 0 {
                client.ask("HELLO 3");
            }
            block(&mut admin, client, requests[number]);
        }
        let mut writer = server.client();
        assert_eq!(writer.ask("ZADD k 1 a 2 b 3 c 4 d 5 e"), Value::Int(5));
        let mut read = |at: usize| waiting[at].read(PATIENCE).expect("a reply").text();
        assert_eq!(read(0), r#"["k", "a", 1.0]"#);
        assert_eq!(read(2), r#"["k", [["e", 5.0], ["d", 4.0]]]"#);
        assert_eq!(read(3), r#"["k", "c", "3"]"#);
        assert_eq!(writer.ask("ZRANGE k 0 -1").text(), r#"["b"]"#);
        assert_eq!(writer.ask("DEL k"), Value::Int(1));
        writer.ask("RPUSH k x");
        assert_eq!(read(1), r#"["k", "x"]"#);
    }
}

#[test]
fn a_wait_is_served_from_a_set_whose_leaves_are_in_the_log_alone() {
    let server = Server::start(LOGGED, &[]);
    let (mut admin, mut waiting) = (server.client(), server.client());
    fill(&mut admin, "from", 5_000);
    assert_eq!(admin.ask("DEBUG OFFLOAD from"), Value::Int(1));
    assert!(info(&mut admin, "cold_leaves") > 50);
    block(&mut admin, &mut waiting, "BZPOPMAX to 0");
    assert_eq!(admin.ask("RENAME from to").text(), "OK");
    let told = items(waiting.read(PATIENCE).expect("a reply"));
    assert_eq!(told[..2], ["to".to_owned(), member(4_999)]);
    assert_eq!(admin.ask("ZCARD to"), Value::Int(4_999));
}
