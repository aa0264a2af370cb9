//! Three nodes of one map: clients that are sent to the right one, maps that are read again, keys that stay
//! behind.

use super::{CACHE, IDS, Nodes, THIRDS, start_node};
use crate::support;

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rustix::process::Signal;
use support::{Client, PATIENCE, Proto, Target, Value, eventually, ok};

use crate::migrate::Double;

/// Sends a request to a node, and on to the one that it is sent to. Returns the reply and who gave it.
fn follow(nodes: &Nodes, clients: &mut [Client], first: usize, request: &str) -> (Value, usize) {
    let mut at = first;
    // One map sends on once. While it is exchanged nodes may have either, and send on to each other.
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        let reply = clients[at].ask(request);
        match nodes.target(&reply) {
            Some(next) => at = next,
            None => return (reply, at),
        }
    }
    panic!("{request} finds no node");
}

#[test]
fn every_node_sends_clients_to_the_one_that_has_the_slot() {
    let nodes = Nodes::start(CACHE, THIRDS);
    let mut clients = nodes.clients();
    let mut served = [0; 3];
    for number in 0..300 {
        let (reply, at) = follow(
            &nodes,
            &mut clients,
            number % 3,
            &format!("SET key:{number} {number}"),
        );
        assert_eq!(reply.text(), "OK");
        served[at] += 1;
    }
    assert!(served.iter().all(|&keys| keys > 50), "{served:?}");
    for number in 0..300 {
        let (reply, _) = follow(
            &nodes,
            &mut clients,
            (number + 1) % 3,
            &format!("GET key:{number}"),
        );
        assert_eq!(reply.text(), number.to_string());
    }
    for (at, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.ask("DBSIZE").text(), served[at].to_string());
        assert_eq!(client.ask("CLUSTER MYID").text(), IDS[at]);
        let Value::Array(keys) = client.ask("KEYS *") else {
            panic!("the keys are a list");
        };
        // What COUNTKEYSINSLOT counts is what CLUSTER KEYSLOT says of each key.
        let mut counted = 0;
        for key in &keys {
            let slot = client
                .ask(&format!("CLUSTER KEYSLOT {}", key.text()))
                .text();
            let own = client.ask(&format!("CLUSTER GETKEYSINSLOT {slot} 100"));
            let count = client.ask(&format!("CLUSTER COUNTKEYSINSLOT {slot}"));
            let Value::Array(own) = own else {
                panic!("the keys are a list");
            };
            assert!(own.contains(key), "{own:?}");
            assert_eq!(Value::Int(own.len() as i64), count);
            let few = client.ask(&format!("CLUSTER GETKEYSINSLOT {slot} 1"));
            assert!(matches!(few, Value::Array(few) if few.len() == 1));
            counted += 1;
        }
        assert_eq!(counted, served[at]);
    }
}

#[test]
fn pipelines_are_answered_in_order_whoever_has_the_keys() {
    let nodes = Nodes::start(CACHE, THIRDS);
    let mut client = nodes.servers[0].client();
    // bar is here, foo is not.
    let requests =
        b"SET bar 1\r\nGET foo\r\nGET bar\r\nMGET bar foo\r\nINCR bar\r\nPING\r\n".repeat(50);
    client.send_bytes(&requests).expect("the server reads");
    for _ in 0..50 {
        let mut reply = || client.read(PATIENCE).expect("it answers").text();
        assert_eq!(reply(), "OK");
        assert!(reply().starts_with("MOVED 12182 127.0.0.1:"));
        assert_eq!(reply(), "1");
        assert_eq!(
            reply(),
            "CROSSSLOT Keys in request don't hash to the same slot"
        );
        assert_eq!(reply(), "2");
        assert_eq!(reply(), "PONG");
    }
    let text = client.ask("INFO errorstats").text();
    assert!(text.contains("errorstat_MOVED:count=50"), "{text}");
    assert!(text.contains("errorstat_CROSSSLOT:count=50"), "{text}");
    let text = client.ask("INFO commandstats").text();
    let line = text
        .lines()
        .find(|line| line.starts_with("cmdstat_get:"))
        .unwrap_or_default();
    assert!(line.contains("rejected_calls=50,failed_calls=0"), "{line}");
}

#[test]
fn a_map_with_a_higher_epoch_takes_the_place_of_the_old_one_while_clients_run() {
    let nodes = Nodes::start(CACHE, THIRDS);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..3)
            .map(|first| {
                let (nodes, is_over) = (&nodes, &is_over);
                scope.spawn(move || {
                    let mut clients = nodes.clients();
                    let mut done = 0u64;
                    while !is_over.load(Ordering::Relaxed) {
                        let key = format!("key:{first}:{}", done % 100);
                        let (reply, _) =
                            follow(nodes, &mut clients, first, &format!("SET {key} {done}"));
                        assert_eq!(reply.text(), "OK");
                        done += 1;
                    }
                    done
                })
            })
            .collect();
        let mut clients = nodes.clients();
        let turned = [THIRDS[1], THIRDS[2], THIRDS[0]];
        for epoch in 2..12 {
            nodes.write_map(epoch, if epoch % 2 == 0 { turned } else { THIRDS });
            for client in &mut clients {
                assert_eq!(client.ask("CLUSTER RELOAD").text(), "OK");
                // The same map once more is no change.
                assert_eq!(client.ask("CLUSTER RELOAD").text(), "OK");
                let info = client.ask("CLUSTER INFO").text();
                assert!(
                    info.contains(&format!("cluster_current_epoch:{epoch}\r\n")),
                    "{info}"
                );
            }
        }
        is_over.store(true, Ordering::Relaxed);
        let done: u64 = runs
            .into_iter()
            .map(|run| run.join().expect("no reply was wrong"))
            .sum();
        assert!(done > 0);
    });
}

#[test]
fn a_signal_reads_the_map_again_and_a_wrong_one_changes_nothing() {
    let nodes = Nodes::start(CACHE, THIRDS);
    let (server, mut client) = (&nodes.servers[0], nodes.servers[0].client());
    let moved = "MOVED 12182 127.0.0.1:";
    assert!(client.ask("GET foo").text().starts_with(moved));
    // Slots change without a higher epoch; a range is broken; this node is missing; the cluster is another.
    let right = super::map_text(2, &nodes.addresses, &["10923-16383", THIRDS[1], THIRDS[0]]);
    let port = nodes.addresses[0].port();
    for (wrong, says) in [
        (
            right.replace("epoch = 2", "epoch = 1"),
            "needs a higher one than 1",
        ),
        (
            right.replace("10923-16383", "10923-"),
            "map.toml:8: 'slots' takes ranges",
        ),
        (right.replace(IDS[0], &"0".repeat(40)), "is missing"),
        (
            right.replace("\"test\"", "\"other\""),
            "it is of the cluster other, this node is of test",
        ),
        (
            right.replace(&format!("port = {port}"), "port = 1"),
            "has the port 1 there",
        ),
        (
            right.replace("epoch = 2", "epoch = 2\nepoc = 2"),
            "map.toml:3: unknown name 'epoc'",
        ),
        (String::new(), "map.toml:1: "),
    ] {
        fs::write(&nodes.map, wrong).expect("it is the test's own");
        let reply = client.ask("CLUSTER RELOAD").text();
        assert!(reply.starts_with("ERR The old map stays: "), "{reply}");
        assert!(reply.contains(says), "{reply}");
        assert!(client.ask("GET foo").text().starts_with(moved));
        assert!(server.output().contains(says));
    }
    fs::remove_file(&nodes.map).expect("it is there");
    let reply = client.ask("CLUSTER RELOAD").text();
    assert!(reply.contains("cannot read"), "{reply}");
    fs::write(&nodes.map, right).expect("it is the test's own");
    server.signal(Signal::HUP);
    eventually("the new map", || client.ask("GET foo") == Value::NullBulk);
    assert!(server.output().contains("epoch 2, 3 nodes: this is"));
    assert!(client.ask("GET bar").text().starts_with("MOVED 5061 "));
}

#[test]
fn keys_of_slots_that_a_node_has_no_more_are_named_and_kept() {
    let nodes = Nodes::start(Target::Logged { threads: 2 }, THIRDS);
    let mut client = nodes.servers[0].client();
    for key in ["bar", "{bar}2", "hello"] {
        assert_eq!(client.ask(&format!("SET {key} 1")).text(), "OK");
    }
    nodes.write_map(2, ["0-900", THIRDS[1], "901-5460 10923-16383"]);
    assert_eq!(client.ask("CLUSTER RELOAD").text(), "OK");
    let says = "2 keys are here of slots that this node does not have; they are kept, and served to nobody: slots 5061";
    eventually("counting them", || nodes.servers[0].output().contains(says));
    assert!(client.ask("GET bar").text().starts_with("MOVED 5061 "));
    assert_eq!(client.ask("GET hello").text(), "1");
    assert_eq!(client.ask("DBSIZE").text(), "3");
    // With the next map they are served again.
    nodes.write_map(3, THIRDS);
    assert_eq!(client.ask("CLUSTER RELOAD").text(), "OK");
    assert_eq!(client.ask("GET bar").text(), "1");
}

#[test]
fn a_node_finds_itself_by_its_address_or_its_id() {
    let nodes = Nodes::start(CACHE, THIRDS);
    // By its address all three have found themselves; another one by what it announces.
    let free = super::addresses();
    let map = nodes.map.with_file_name("other.toml");
    let there = super::elsewhere(free[1]);
    fs::write(
        &map,
        super::map_text(1, &[free[0], there, free[2]], &THIRDS),
    )
    .expect("it is the test's own");
    let dir = support::fresh_dir();
    let port = there.port().to_string();
    let options = [
        "--cluster-announce-port",
        &port,
        "--cluster-announce-ip",
        "127.0.0.2",
    ];
    let server = start_node(CACHE, free[0], dir, &map, &options);
    let server = server.unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(server.client().ask("CLUSTER MYID").text(), IDS[1]);
}

#[test]
fn what_changes_a_cluster_of_redis_says_how_this_one_changes() {
    let nodes = Nodes::start(CACHE, THIRDS);
    let mut client = nodes.servers[0].client();
    for request in [
        "MEET 127.0.0.1 7000",
        "FORGET nobody",
        "ADDSLOTS 1",
        "ADDSLOTSRANGE 1 2",
        "DELSLOTS 1",
        "DELSLOTSRANGE 1 2",
        "SETSLOT 1 STABLE",
        "FAILOVER",
        "REPLICATE nobody",
        "RESET",
        "FLUSHSLOTS",
        "BUMPEPOCH",
        "SAVECONFIG",
        "SET-CONFIG-EPOCH 5",
    ] {
        let reply = client.ask(&format!("CLUSTER {request}")).text();
        assert!(
            reply.starts_with("ERR CLUSTER ") && reply.contains("CLUSTER RELOAD"),
            "{reply}"
        );
    }
    assert_eq!(client.ask("CLUSTER LINKS"), Value::Array(vec![]));
    assert_eq!(client.ask("CLUSTER MYSHARDID").text().len(), 40);
    let Value::Array(help) = client.ask("CLUSTER HELP") else {
        panic!("the help is a list");
    };
    assert!(help.iter().any(|line| line.text() == "RELOAD"));
    let alone = support::Server::start(CACHE, &[]);
    for request in [
        "CLUSTER RELOAD",
        "CLUSTER MYSHARDID",
        "READONLY",
        "READWRITE",
        "ASKING",
    ] {
        let reply = alone.client().ask(request).text();
        assert_eq!(
            reply, "ERR This instance has cluster support disabled",
            "{request}"
        );
    }
    assert_eq!(alone.client().ask("SELECT 1").text(), "OK");
}

/// The slot of a key, bit by bit.
fn slot(key: &str) -> u16 {
    let mut sum = 0u16;
    for bit in key
        .bytes()
        .flat_map(|byte| (0..8).rev().map(move |at| u16::from(byte >> at & 1)))
    {
        let is_out = (sum >> 15) ^ bit != 0;
        sum = (sum << 1) ^ if is_out { 0x1021 } else { 0 };
    }
    sum % 16384
}

#[test]
fn all_keys_of_a_slot_are_found_among_very_many() {
    const KEYS: usize = 100_000;
    let nodes = Nodes::start(CACHE, ["0-16383", "", ""]);
    let mut client = nodes.servers[0].client();
    for from in (0..KEYS).step_by(1000) {
        let requests: String = (from..from + 1000)
            .map(|number| format!("SET key:{number} x\r\n"))
            .collect();
        client
            .send_bytes(requests.as_bytes())
            .expect("the server reads");
        let replies = client.read_bytes(5 * 1000, PATIENCE);
        assert!(replies == b"+OK\r\n".repeat(1000));
    }
    let mut expected = vec![Vec::new(); 16384];
    for number in 0..KEYS {
        let key = format!("key:{number}");
        expected[usize::from(slot(&key))].push(key);
    }
    for slot in [0, 866, 5061, 12182, 16383] {
        let expected = &mut expected[slot];
        let count = format!("CLUSTER COUNTKEYSINSLOT {slot}");
        assert_eq!(client.ask(&count), Value::Int(expected.len() as i64));
        let few = client.ask(&format!("CLUSTER GETKEYSINSLOT {slot} 5"));
        assert!(
            matches!(&few, Value::Array(few) if few.len() == expected.len().min(5)),
            "{few:?}"
        );
        let Value::Array(found) = client.ask(&format!("CLUSTER GETKEYSINSLOT {slot} {KEYS}"))
        else {
            panic!("the keys are a list");
        };
        let mut found: Vec<String> = found.iter().map(Value::text).collect();
        found.sort();
        expected.sort();
        assert_eq!(&found, expected);
        // In a transaction it is done at once.
        for (request, reply) in [("MULTI", "OK"), (&count, "QUEUED")] {
            assert_eq!(client.ask(request).text(), reply);
        }
        let done = Value::Array(vec![Value::Int(expected.len() as i64)]);
        assert_eq!(client.ask("EXEC"), done);
    }
}

#[test]
fn copies_of_keys_are_given_up_when_the_map_changes() {
    let nodes = Nodes::start(CACHE, THIRDS);
    let mut clients = nodes.clients();
    assert_eq!(clients[2].ask("SET foo old").text(), "OK");
    let mut reader = nodes.servers[2].client_with(Proto::Resp3);
    assert_eq!(reader.ask("CLIENT TRACKING ON").text(), "OK");
    let everything = Value::Push(vec![Value::Bulk(b"invalidate".to_vec()), Value::Null]);
    // By the command, and by the signal.
    for (epoch, slots) in [(2, [THIRDS[2], THIRDS[1], THIRDS[0]]), (3, THIRDS)] {
        if epoch == 2 {
            assert_eq!(reader.ask("GET foo").text(), "old");
        }
        nodes.write_map(epoch, slots);
        for (client, server) in clients.iter_mut().zip(&nodes.servers) {
            if epoch == 2 {
                assert_eq!(client.ask("CLUSTER RELOAD").text(), "OK");
            } else {
                server.signal(Signal::HUP);
            }
        }
        let told = reader.read(PATIENCE);
        assert_eq!(told.unwrap_or_else(|link| panic!("{link}")), everything);
    }
    // The connection goes on, with the new map.
    assert_eq!(reader.ask("GET foo").text(), "old");
    // A map that changes nothing tells nobody.
    assert_eq!(clients[2].ask("CLUSTER RELOAD").text(), "OK");
    assert_eq!(reader.ask("PING").text(), "PONG");
}

#[test]
fn keys_are_sent_to_other_servers_as_in_a_cluster_of_redis() {
    let nodes = Nodes::start(CACHE, THIRDS);
    let mut clients = nodes.clients();
    // Slots 866 and 12182.
    clients[0].ask("SET hello v");
    clients[0].ask("SET {hello}2 w");
    let double = Double::new();
    let migrate = |port: u16, rest: &str| format!("MIGRATE 127.0.0.1 {port} {rest}");
    let foreign = clients[0].ask(&migrate(double.port(), "foo 0 60000"));
    assert_eq!(nodes.target(&foreign), Some(2));
    let crossed = clients[0].call(&[
        "MIGRATE",
        "127.0.0.1",
        "1",
        "",
        "0",
        "60000",
        "KEYS",
        "hello",
        "foo",
    ]);
    let crossed = crossed.expect("a reply").text();
    assert!(crossed.starts_with("CROSSSLOT"), "{crossed}");
    // A node takes no keys of slots that are another's.
    let other = nodes.addresses[1].port();
    let refused = clients[0].ask(&migrate(other, "hello 0 60000")).text();
    assert!(
        refused.contains("replied with error: MOVED 866"),
        "{refused}"
    );
    let port = double.port().to_string();
    let request = [
        "MIGRATE",
        "127.0.0.1",
        &port,
        "",
        "0",
        "60000",
        "KEYS",
        "hello",
        "{hello}2",
    ];
    clients[0].send(&request).expect("connected");
    let mut wire = double.accept();
    for key in ["hello", "{hello}2"] {
        let restore = wire.request();
        assert_eq!(restore[0], b"RESTORE-ASKING");
        assert_eq!(restore[1], key.as_bytes());
    }
    wire.reply("+OK\r\n+OK\r\n");
    assert_eq!(clients[0].read(PATIENCE).expect("a reply"), ok());
    assert_eq!(clients[0].ask("DBSIZE"), Value::Int(0));
}
