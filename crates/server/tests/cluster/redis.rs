//! One node beside a redis-server that is the same node: the same id, port and slots, so the same replies.
//! The two other nodes are known to both and run nowhere. redis-server learns all of that from its file
//! nodes.conf.

use super::{CACHE, IDS, THIRDS, addresses, elsewhere, fresh_dir, map_text, start_node};
use crate::support;

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;

use support::{Client, Proto, Server, Target, Value, eventually, free_port};

/// The two servers.
pub(super) struct Pair {
    pub(super) redis: Server,
    pub(super) ferrite: Server,
}

impl Pair {
    pub(super) fn start(slots: [&str; 3]) -> Pair {
        let addresses = addresses();
        let redis = start_redis(&addresses, &slots);
        let (dir, own) = (fresh_dir(), elsewhere(addresses[0]));
        let map = dir.join("map.toml");
        fs::write(&map, map_text(1, &addresses, &slots)).expect("the directory is the test's own");
        let ferrite = start_node(CACHE, own, dir, &map, &["--cluster-node", IDS[0]]);
        let ferrite = ferrite.unwrap_or_else(|failure| panic!("{failure}"));
        Pair { redis, ferrite }
    }

    /// Sends the same requests to both and compares the replies.
    pub(super) fn compare<R: AsRef<str>>(&self, proto: Proto, requests: &[R]) {
        let (mut redis, mut ferrite) = (
            self.redis.client_with(proto),
            self.ferrite.client_with(proto),
        );
        for request in requests.iter().map(AsRef::as_ref) {
            let (theirs, ours) = (redis.ask(request), ferrite.ask(request));
            assert_eq!(ours, theirs, "{proto:?}: {request}");
        }
    }
}

fn start_redis(addresses: &[SocketAddr; 3], slots: &[&str; 3]) -> Server {
    let (dir, bus) = (fresh_dir(), free_port());
    let mut nodes = String::new();
    for (at, (id, address)) in IDS.iter().zip(addresses).enumerate() {
        let (flags, slots) = (if at == 0 { "myself,master" } else { "master" }, slots[at]);
        // Nobody answers at the ports of the others' buses.
        let bus = if at == 0 { bus } else { at as u16 };
        let epoch = at + 1;
        nodes += &format!("{id} {address}@{bus} {flags} - 0 0 {epoch} connected {slots}\n");
    }
    nodes += "vars currentEpoch 3 lastVoteEpoch 0\n";
    fs::write(dir.join("nodes.conf"), nodes).expect("the directory is the test's own");
    let bus = bus.to_string();
    let options = [
        "--cluster-enabled",
        "yes",
        "--cluster-port",
        &bus,
        // The other nodes never answer, and shall not be found out.
        "--cluster-node-timeout",
        "100000000",
    ];
    let server = Server::start_at(Target::Redis, addresses[0], dir, &options);
    let server = server.unwrap_or_else(|failure| panic!("{failure}"));
    if slots.concat() == THIRDS.concat() {
        wait_until_it_serves(&server);
    }
    server
}

/// For two seconds after its start a node of redis-server serves nothing; and it looks ten times a second
/// what has changed.
pub(super) fn wait_until_it_serves(redis: &Server) {
    let mut client = redis.client();
    eventually("redis-server serving its slots", || {
        let info = client.ask("CLUSTER INFO").text();
        info.contains("cluster_state:ok")
    });
}

/// `{a}` is of slot 15495 and so of the third node, `bar` of the first (5061), `foo` of the third (12182),
/// `{b}` (3300) of the first, `hello` (866) of the first, `key` (12539) of the third.
const ROUTED: &[&str] = &[
    "SET bar 1",
    "GET bar",
    "GET foo",
    "SET foo 1",
    "MGET foo bar",
    "MGET bar foo",
    "MGET bar hello",
    "MGET {b}1 {b}2",
    "MSET {b}1 x {b}2 y",
    "MSET {b}1 x {c}2 y",
    "MSET {a}1 x {a}2 y",
    "MSETNX {b}1 x {a}2 y",
    "DEL {b}1 {b}2",
    "DEL {b}1 {c}2",
    "EXISTS foo foo",
    "BITOP AND {b}x {b}y {b}z",
    "BITOP AND {b}x {b}y {a}z",
    "BITOP AND {a}x {a}y {a}z",
    "RENAME bar foo",
    "RENAME bar {bar}2",
    "RENAME {bar}2 bar",
    "OBJECT ENCODING bar",
    "OBJECT ENCODING foo",
    "MEMORY USAGE foo",
    "LCS {b}1 {b}2",
    "LCS {b}1 {a}2",
    "STRLEN",
    "GET",
    "NOSUCH foo",
    "PING",
    "DBSIZE",
    "PUBLISH foo 1",
    "SPUBLISH foo 1",
    "SPUBLISH bar 1",
    "COPY bar foo",
    "COPY bar {bar}3",
    "COPY bar {bar}3 DB 1",
    "COPY bar bar",
    "MOVE bar 1",
    "MOVE foo 1",
    "MOVE bar nonsense",
    "SWAPDB 0 1",
    "SWAPDB a b",
    "SELECT 0",
    "SELECT 1",
    "SELECT 99",
    "SELECT x",
    "READONLY",
    "GET foo",
    "READWRITE",
    "ASKING",
    "GET foo",
    "UNLINK {bar}3",
];

const TRANSACTIONS: &[&str] = &[
    "MULTI",
    "SET bar 1",
    "INCR bar",
    "EXEC",
    "MULTI",
    "SET bar 1",
    "GET foo",
    "INCR bar",
    "EXEC",
    "GET bar",
    "MULTI",
    "SET bar 1",
    "SET hello 1",
    "EXEC",
    "EXEC",
    "MULTI",
    "SET bar 1",
    "SET hello 1",
    "GET foo",
    "SET hello 1",
    "EXEC",
    "MULTI",
    "MGET bar foo",
    "DISCARD",
    "MULTI",
    "PING",
    "EXEC",
    "WATCH foo",
    "WATCH bar hello",
    "WATCH bar",
    "WATCH hello",
    "MULTI",
    "GET bar",
    "EXEC",
    "MULTI",
    "WATCH foo",
    "WATCH bar",
    "EXEC",
    "EXEC",
    "MULTI",
    "SPUBLISH foo 1",
    "EXEC",
    "MULTI",
    "SPUBLISH bar 1",
    "SET bar 2",
    "EXEC",
    "MULTI",
    "SPUBLISH hello 1",
    "SET bar 2",
    "EXEC",
    "MULTI",
    "SELECT 1",
    "SET bar 3",
    "EXEC",
    "UNWATCH",
    "GET bar",
];

const ABOUT_SLOTS: &[&str] = &[
    "CLUSTER MYID",
    "CLUSTER KEYSLOT",
    "CLUSTER KEYSLOT a b",
    "CLUSTER COUNTKEYSINSLOT 5061",
    "CLUSTER COUNTKEYSINSLOT 0",
    "CLUSTER COUNTKEYSINSLOT -1",
    "CLUSTER COUNTKEYSINSLOT 16384",
    "CLUSTER COUNTKEYSINSLOT 99999999999",
    "CLUSTER COUNTKEYSINSLOT x",
    "CLUSTER GETKEYSINSLOT 5061 10",
    "CLUSTER GETKEYSINSLOT 5061 0",
    "CLUSTER GETKEYSINSLOT 5061 -1",
    "CLUSTER GETKEYSINSLOT 5061 x",
    "CLUSTER GETKEYSINSLOT x 1",
    "CLUSTER GETKEYSINSLOT 16384 1",
    "CLUSTER GETKEYSINSLOT 12182 10",
    "CLUSTER GETKEYSINSLOT 5061",
    "CLUSTER COUNT-FAILURE-REPORTS 67ed2db8d677e59ec4a4cefb06858cf2a1a89fa1",
    "CLUSTER COUNT-FAILURE-REPORTS nobody",
    "CLUSTER REPLICAS 07c37dfeb235213a872192d90877d0cd55635b91",
    "CLUSTER SLAVES 67ed2db8d677e59ec4a4cefb06858cf2a1a89fa1",
    "CLUSTER REPLICAS nobody",
    "CLUSTER SLOTS",
    "CLUSTER NOSUCH",
];

#[test]
fn requests_find_their_node_as_in_redis() {
    let pair = Pair::start(THIRDS);
    for proto in [Proto::Resp2, Proto::Resp3] {
        pair.compare(proto, ROUTED);
        pair.compare(proto, TRANSACTIONS);
        pair.compare(proto, ABOUT_SLOTS);
        pair.compare(proto, &["SSUBSCRIBE foo"]);
        pair.compare(proto, &["SSUBSCRIBE bar hello"]);
        pair.compare(proto, &["SSUBSCRIBE bar"]);
        for kind in ["hostname", "unknown-endpoint", "ip"] {
            let kind = format!("CONFIG SET cluster-preferred-endpoint-type {kind}");
            let requests = [kind.as_str(), "CLUSTER SLOTS", "GET foo", "SPUBLISH foo 1"];
            pair.compare(proto, &requests);
        }
        let hostname = "CONFIG SET cluster-announce-hostname here.example";
        pair.compare(proto, &[hostname, "CLUSTER SLOTS"]);
        let preferred = "CONFIG SET cluster-preferred-endpoint-type hostname";
        pair.compare(proto, &[preferred, "CLUSTER SLOTS"]);
        let nothing = ["CONFIG", "SET", "cluster-announce-hostname", ""];
        for server in [&pair.redis, &pair.ferrite] {
            let reply = server.client().call(&nothing).expect("it answers");
            assert_eq!(reply.text(), "OK");
        }
        let ip = "CONFIG SET cluster-preferred-endpoint-type ip";
        pair.compare(proto, &[ip, "CLUSTER SLOTS"]);
        assert_eq!(shards(&pair.ferrite, proto), shards(&pair.redis, proto));
        assert_eq!(nodes(&pair.ferrite, proto), nodes(&pair.redis, proto));
    }
    let theirs = fields(&pair.redis, "CLUSTER INFO");
    for (name, value) in fields(&pair.ferrite, "CLUSTER INFO") {
        let is_ours =
            ["cluster_name", "cluster_current_epoch", "cluster_my_epoch"].contains(&&*name);
        // It has sent pings that nobody answers.
        if !is_ours && name != "cluster_stats_messages_sent" {
            assert_eq!(Some(&value), theirs.get(&name), "{name}");
        }
    }
    for (section, line) in [
        ("server", "redis_mode:cluster"),
        ("cluster", "cluster_enabled:1"),
    ] {
        for server in [&pair.redis, &pair.ferrite] {
            let text = server.client().ask(&format!("INFO {section}")).text();
            assert!(text.contains(line), "{text}");
        }
    }
    let hello = format!("{:?}", pair.ferrite.client().ask("HELLO 3"));
    assert!(hello.contains("\"mode\": \"cluster\""), "{hello}");
}

#[test]
fn hash_slots_are_those_of_redis() {
    let pair = Pair::start(THIRDS);
    let (mut redis, mut ferrite) = (pair.redis.client(), pair.ferrite.client());
    let mut random = fastrand::Rng::with_seed(9);
    for number in 0..2000 {
        let letters = if number % 2 == 0 {
            &b"{}ab"[..]
        } else {
            &b"{}abcdefgh\xff\x00 :9"[..]
        };
        let key: Vec<u8> = (0..random.usize(..40))
            .map(|_| letters[random.usize(..letters.len())])
            .collect();
        let request = [b"CLUSTER", &b"KEYSLOT"[..], &key];
        let slot = |client: &mut Client| client.call(&request).expect("it answers");
        assert_eq!(slot(&mut ferrite), slot(&mut redis), "{key:?}");
    }
}

#[test]
fn slots_that_nobody_has_are_down_as_in_redis() {
    // Slot 866 (hello) has no node.
    let pair = Pair::start(["0-865 867-5460", THIRDS[1], THIRDS[2]]);
    let requests = [
        "GET hello",
        "GET bar",
        "SET bar 1",
        "GET foo",
        "MGET bar hello",
        "MGET hello bar",
        "SPUBLISH bar 1",
        "SPUBLISH foo 1",
        "SPUBLISH hello 1",
        "PING",
        "MULTI",
        "SET bar 1",
        "EXEC",
        "CLUSTER SLOTS",
        "CLUSTER KEYSLOT hello",
    ];
    let set = |setting: &str, value: &str| {
        pair.compare(
            Proto::Resp2,
            &[format!("CONFIG SET cluster-{setting} {value}")],
        );
    };
    let compare = || {
        for proto in [Proto::Resp2, Proto::Resp3] {
            pair.compare(proto, &requests);
            assert_eq!(shards(&pair.ferrite, proto), shards(&pair.redis, proto));
        }
        for name in [
            "cluster_state",
            "cluster_slots_assigned",
            "cluster_slots_ok",
        ] {
            let [ours, theirs] =
                [&pair.ferrite, &pair.redis].map(|server| fields(server, "CLUSTER INFO"));
            assert_eq!(ours.get(name), theirs.get(name), "{name}");
        }
    };
    compare();
    set("allow-reads-when-down", "yes");
    compare();
    set("allow-pubsubshard-when-down", "no");
    compare();
    set("allow-reads-when-down", "no");
    set("require-full-coverage", "no");
    wait_until_it_serves(&pair.redis);
    compare();
}

/// The fields of a text of lines.
fn fields(server: &Server, request: &str) -> BTreeMap<String, String> {
    let text = server.client().ask(request).text();
    let fields = text.lines().filter_map(|line| line.split_once(':'));
    fields
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// CLUSTER SHARDS in an order that does not depend on that of a table.
fn shards(server: &Server, proto: Proto) -> Vec<String> {
    let Value::Array(shards) = server.client_with(proto).ask("CLUSTER SHARDS") else {
        panic!("the shards are a list");
    };
    let mut shards: Vec<String> = shards.iter().map(|shard| format!("{shard:?}")).collect();
    shards.sort();
    shards
}

/// CLUSTER NODES without what only nodes know that talk to each other: ports of the bus, times, epochs,
/// links.
fn nodes(server: &Server, proto: Proto) -> Vec<String> {
    let reply = server.client_with(proto).ask("CLUSTER NODES");
    assert_eq!(
        matches!(reply, Value::Verbatim { .. }),
        proto == Proto::Resp3
    );
    let text = reply.text();
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let (address, bus) = words[1].split_once('@').expect("a port of the bus");
        let hostname = bus.trim_start_matches(|letter: char| letter.is_ascii_digit());
        [
            &[words[0], address, hostname, words[2], words[3]][..],
            &words[8..],
        ]
        .concat()
        .join(" ")
    };
    let mut lines: Vec<String> = text.lines().map(line).collect();
    lines.sort();
    lines
}
