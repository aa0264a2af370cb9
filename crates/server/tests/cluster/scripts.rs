//! The keys of scripts: one node beside a redis-server that is the same node, and a map that changes while a
//! script runs.

use super::redis::{Pair, wait_until_it_serves};
use super::{CACHE, Nodes, THIRDS};
use crate::support;

use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;
use support::{Proto, Value, eventually};

/// The slots of `bar` (5061), `{b}` (3300) and `hello` (866) are of the first node, `foo` (12182) is not.
const BODIES: [&str; 7] = [
    "return redis.call('get','bar')",
    "return redis.call('set','bar',1)",
    "return redis.call('mget','bar','{b}1')",
    "redis.call('set','bar',2); return redis.call('get','{b}1')",
    "redis.pcall('get','bar'); return redis.call('mget','{b}1','{b}2')",
    "return redis.call('get','foo')",
    "return redis.call('set','hello',1)",
];

const FIRST_LINES: [&str; 4] = [
    "",
    "#!lua\n",
    "#!lua flags=no-writes\n",
    "#!lua flags=allow-cross-slot-keys\n",
];

const KEYS: [&[&str]; 5] = [&[], &["bar"], &["{b}1"], &["foo"], &["bar", "{b}1"]];

/// An error as text, without the digits of the script.
fn shown(reply: Value) -> String {
    let text = match reply {
        Value::Error(_) => reply.text(),
        _ => format!("{reply:?}"),
    };
    match text.split_once(" script: ") {
        Some((before, after)) => format!("{before}{}", after.get(40..).unwrap_or_default()),
        None => text,
    }
}

fn compare(pair: &Pair) {
    for proto in [Proto::Resp2, Proto::Resp3] {
        let (mut redis, mut ferrite) = (
            pair.redis.client_with(proto),
            pair.ferrite.client_with(proto),
        );
        for name in ["EVAL", "EVAL_RO"] {
            for first_line in FIRST_LINES {
                for (body, keys) in BODIES.iter().flat_map(|body| KEYS.map(|keys| (body, keys))) {
                    let (text, count) = (format!("{first_line}{body}"), keys.len().to_string());
                    let request = [&[name, &text, &count], keys].concat();
                    let replies = [&mut redis, &mut ferrite]
                        .map(|client| shown(client.call(&request).expect("a reply")));
                    assert_eq!(replies[1], replies[0], "{proto:?}: {request:?}");
                }
            }
        }
    }
}

#[test]
fn scripts_may_use_the_keys_that_they_may_use_in_redis() {
    compare(&Pair::start(THIRDS));
}

#[test]
fn scripts_while_slots_have_no_node_are_answered_as_in_redis() {
    let pair = Pair::start(["0-865 867-5460", THIRDS[1], THIRDS[2]]);
    compare(&pair);
    pair.compare(
        Proto::Resp2,
        &["CONFIG SET cluster-allow-reads-when-down yes"],
    );
    compare(&pair);
    pair.compare(
        Proto::Resp2,
        &["CONFIG SET cluster-require-full-coverage no"],
    );
    wait_until_it_serves(&pair.redis);
    compare(&pair);
}

#[test]
fn a_script_keeps_the_slot_of_its_keys_when_the_map_changes_while_it_runs() {
    let nodes = Nodes::start(CACHE, THIRDS);
    let (server, mut client) = (&nodes.servers[0], nodes.servers[0].client());
    // It changes nothing for one to two seconds.
    let text = "local ends=redis.call('time')[1]+2 while redis.call('time')[1]+0<ends do end \
                return {redis.call('set',KEYS[1],1),redis.call('mset',KEYS[1],2,'{bar}2',3),\
                redis.pcall('get','hello')}";
    let request = ["EVAL", text, "1", "bar"];
    let mut epoch = 1;
    // On a slow machine the node may read the new map before the script begins, or after it has ended.
    let parts = loop {
        assert!(epoch < 40, "the map never changed while the script ran");
        client.send(&request).expect("the connection is there");
        sleep(Duration::from_millis(300));
        epoch += 1;
        nodes.write_map(epoch, ["0-100", THIRDS[1], "101-5460 10923-16383"]);
        server.signal(Signal::HUP);
        let reply = client.read(Duration::from_secs(30)).expect("a reply");
        eventually("the new map", || {
            server.output().contains(&format!("epoch {epoch}, 3 nodes"))
        });
        match reply {
            Value::Array(parts) if matches!(parts[2], Value::Error(_)) => break parts,
            Value::Array(parts) => assert_eq!(parts[2], Value::NullBulk),
            other => assert!(other.text().starts_with("MOVED"), "{other:?}"),
        }
        epoch += 1;
        nodes.write_map(epoch, THIRDS);
        assert_eq!(client.ask("CLUSTER RELOAD").text(), "OK");
    };
    assert_eq!(parts[0].text(), "OK");
    assert_eq!(parts[1].text(), "OK");
    assert!(
        parts[2]
            .text()
            .contains("attempted to access a non local key"),
        "{parts:?}"
    );
    assert!(client.ask("GET bar").text().starts_with("MOVED 5061 "));
}
