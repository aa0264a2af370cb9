//! `--cluster` with three nodes, of redis-server and of Ferrite: where requests go, what is counted of each
//! node, and what happens when the map was wrong.

use super::support::{
    PATIENCE, Server, bench, bench_words, failed, ferrite_server, fresh_dir, printed, words,
};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::ops::Deref;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// First and last slot of each node.
const RANGES: [(u16, u16); 3] = [(0, 5460), (5461, 10922), (10923, 16383)];

/// Three nodes of a program with a third of the slots each.
struct Nodes {
    servers: Vec<Server>,
    dir: PathBuf,
}

impl Drop for Nodes {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

impl Deref for Nodes {
    type Target = [Server];

    fn deref(&self) -> &[Server] {
        &self.servers
    }
}

/// A cluster of redis-server, and one of Ferrite.
fn clusters() -> [Nodes; 2] {
    [cluster(), own_cluster()]
}

fn cluster() -> Nodes {
    let command = [
        "redis-server",
        "--save",
        "",
        "--appendonly",
        "no",
        "--cluster-enabled",
        "yes",
    ];
    let nodes: Vec<Server> = RANGES
        .iter()
        .map(|_| Server::start_at(free_pair, &command))
        .collect();
    for (node, (first, last)) in nodes.iter().zip(RANGES) {
        let reply = node.ask(&format!("CLUSTER ADDSLOTSRANGE {first} {last}"));
        assert_eq!(reply, "+OK\r\n");
        let reply = nodes[0].ask(&format!("CLUSTER MEET 127.0.0.1 {}", node.port));
        assert_eq!(reply, "+OK\r\n");
    }
    let end = Instant::now() + PATIENCE;
    for node in &nodes {
        loop {
            let info = node.ask("CLUSTER INFO");
            if info.contains("cluster_state:ok") && info.contains("cluster_size:3") {
                break;
            }
            assert!(Instant::now() < end, "the cluster does not come up: {info}");
            sleep(Duration::from_millis(20));
        }
    }
    let dir = fresh_dir();
    Nodes {
        servers: nodes,
        dir,
    }
}

fn own_cluster() -> Nodes {
    let nodes = (0..5).find_map(|_| try_own_cluster());
    nodes.expect("no three nodes of Ferrite come up")
}

/// `None` if somebody else took a port.
fn try_own_cluster() -> Option<Nodes> {
    let mut nodes = Nodes {
        servers: Vec::new(),
        dir: fresh_dir(),
    };
    let ports = RANGES.map(|_| free_pair());
    let mut text = "name = \"test\"\nepoch = 1\n".to_owned();
    for (port, (first, last)) in ports.iter().zip(RANGES) {
        text += &format!(
            "[[nodes]]\nid = \"at{port}\"\nhost = \"127.0.0.1\"\nport = {port}\nslots = \"{first}-{last}\"\n"
        );
    }
    let map = nodes.dir.join("map.toml");
    fs::write(&map, text).expect("the directory is ours");
    let (program, map) = (
        ferrite_server().display().to_string(),
        map.display().to_string(),
    );
    for port in ports {
        let command = [
            &*program,
            "--save",
            "",
            "--appendonly",
            "no",
            "--threads",
            "2",
            "--cluster-enabled",
            "yes",
            "--cluster-map",
            &*map,
        ];
        nodes.servers.push(Server::try_start(port, &command)?);
    }
    Some(nodes)
}

/// A port that was free a moment ago, as well as the one that the nodes talk to each other at.
fn free_pair() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Both below the ports that systems give out by themselves.
    const FIRST: u16 = 12_000;
    const COUNT: u16 = 10_000;
    // Ports for one process: more than it has nodes, as a port can be taken between the look and the start of
    // a node.
    const STRIDE: u32 = 16;
    let begin = (std::process::id() % (u32::from(COUNT) / STRIDE) * STRIDE) as u16;
    loop {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = FIRST + (begin + step) % COUNT;
        let is_free = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
        if is_free(port) && is_free(port + 10_000) {
            return port;
        }
    }
}

fn keys(nodes: &[Server]) -> Vec<u64> {
    let size = |node: &Server| {
        let reply = node.ask("DBSIZE");
        let digits = reply.trim().trim_start_matches(':');
        digits.parse().expect("a number")
    };
    nodes.iter().map(size).collect()
}

/// Runs a line against a server and reads the document that it writes.
fn document(server: &Server, line: &str) -> (String, Value, bool) {
    let dir = fresh_dir();
    let path = dir.join("run.json");
    let json = path.display().to_string();
    let line = format!("-p {} --cluster {line} --json {json}", server.port);
    let output = bench_words(&words(&line));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let document = std::fs::read_to_string(&path).expect("it was written");
    std::fs::remove_dir_all(&dir).expect("it is ours");
    let document = serde_json::from_str(&document).expect("it is JSON");
    (text, document, output.status.success())
}

fn requests_by_node(run: &Value) -> Vec<u64> {
    let nodes = run["nodes"].as_array().expect("there are nodes");
    let requests = nodes.iter().map(|node| node["requests"].as_u64());
    requests.map(|count| count.expect("a number")).collect()
}

#[test]
fn all_tests_find_the_node_of_their_keys() {
    let names = "ping,set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,zpopmin,lrange,mset,\
                 mget,del,setex,multi";
    all_tests_find_their_node(&cluster(), names);
    // Ferrite has strings alone.
    all_tests_find_their_node(
        &own_cluster(),
        "ping,set,get,incr,mset,mget,del,setex,multi",
    );
}

fn all_tests_find_their_node(nodes: &[Server], names: &str) {
    for options in [
        "-n 600 -c 7",
        "-n 2000 -c 9 --threads 2 -P 16 -r 1000 -3",
        "-n 500 -c 3 -k 0 -r 50",
        "-n 1000 -c 6 -r 1000 --key-prefix k --key-digits 0",
        "-n 600 -c 4 --rate 20k -r 1000",
        "-n 900 -c 4 -r 1 --reconnect-interval 50",
    ] {
        let output = bench(&nodes[1], &format!("{options} --cluster -q -t {names}"));
        let text = printed(&output);
        assert!(
            text.starts_with("Cluster has 3 master nodes:\n\nMaster 0: "),
            "{text}"
        );
        assert!(!text.contains("ERRORS"), "{options}: {text}");
    }
    assert!(keys(nodes).iter().all(|count| *count > 0));
}

#[test]
fn nodes_are_counted_apart_and_together() {
    for nodes in clusters() {
        nodes_are_counted_apart_and_together_in(&nodes);
    }
}

fn nodes_are_counted_apart_and_together_in(nodes: &[Server]) {
    let (text, document, is_well) = document(&nodes[0], "-t set,mset -n 3000 -c 6 -r 1000 -P 3");
    assert!(is_well, "{text}");
    assert!(
        text.contains("\n  cluster mode: yes (3 masters)\n"),
        "{text}"
    );
    for run in document["runs"].as_array().expect("there are runs") {
        let requests = requests_by_node(run);
        assert_eq!(requests.len(), 3);
        assert_eq!(requests.iter().sum::<u64>(), 3_000);
        assert_eq!(run["total"]["requests"], 3_000);
        assert!(requests.iter().all(|count| *count > 0), "{requests:?}");
        assert_eq!(run["moved"], 0);
        for (node, row) in nodes.iter().zip(run["nodes"].as_array().expect("nodes")) {
            let name = format!("127.0.0.1:{}", node.port);
            assert_eq!(row["name"], name.as_str());
            assert!(text.contains(&format!("\n  {name} ")), "{text}");
        }
    }
    let sums = text.lines().filter(|line| line.starts_with("  sum "));
    let requests: Vec<_> = sums.map(|line| line.split_whitespace().nth(1)).collect();
    assert_eq!(requests, [Some("3000"); 2], "{text}");
    let dir = fresh_dir();
    let page = dir.join("page.html");
    let line = format!("--cluster -t set -n 300 -c 3 --html {}", page.display());
    printed(&bench(&nodes[0], &line));
    let page = std::fs::read_to_string(page).expect("it was written");
    std::fs::remove_dir_all(&dir).expect("it is ours");
    for node in nodes {
        assert!(
            page.contains(&format!("127.0.0.1:{}</td>", node.port)),
            "{page}"
        );
    }
}

#[test]
fn a_key_has_the_same_name_in_every_test() {
    for nodes in clusters() {
        a_key_has_the_same_name_in_every_test_in(&nodes);
    }
}

fn a_key_has_the_same_name_in_every_test_in(nodes: &[Server]) {
    // Each node's connections go through its part of the range again and again.
    let fill = "--cluster -q -t set -r 1000 -n 60000 -c 6 -P 10 --key-pattern S --threads 2";
    printed(&bench(&nodes[2], fill));
    assert_eq!(keys(nodes).iter().sum::<u64>(), 1_000);
    let (text, document, _) = document(&nodes[2], "-t get -r 1000 -n 3000 -c 6");
    assert_eq!(document["runs"][0]["total"]["misses"], 0, "{text}");
    // A command of the user's own, by the placeholder of redis-benchmark or ours.
    for key in ["key:{tag}:__rand_int__", "__key__"] {
        let line = format!("--cluster -q -n 500 -r 1000 EXISTS {key}");
        printed(&bench(&nodes[0], &line));
    }
    assert_eq!(keys(nodes).iter().sum::<u64>(), 1_000);
}

/// A node that answers CLUSTER SLOTS as if another had all of them, and everything else with OK.
fn liar(port_of_all: u16) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let map = format!("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:{port_of_all}\r\n");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            lie(&stream, &map);
        }
    });
    port
}

fn lie(mut stream: &TcpStream, map: &str) {
    let mut lines = BufReader::new(stream).lines();
    while let Some(Ok(head)) = lines.next() {
        let count: usize = head[1..].parse().expect("a request is an array");
        let mut words = lines.by_ref().take(2 * count).map_while(Result::ok);
        let name = words.nth(1).unwrap_or_default();
        words.for_each(drop);
        let reply = if name == "CLUSTER" { map } else { "+OK\r\n" };
        if stream.write_all(reply.as_bytes()).is_err() {
            return;
        }
    }
}

#[test]
fn a_wrong_map_is_read_again() {
    for nodes in clusters() {
        a_wrong_map_is_read_again_in(&nodes);
    }
}

fn a_wrong_map_is_read_again_in(nodes: &[Server]) {
    let port = liar(nodes[0].port);
    let dir = fresh_dir();
    let path = dir.join("run.json");
    let line = format!(
        "-p {port} --cluster -t set -r 100000 -n 200000 -c 8 -P 8 --threads 2 --json {}",
        path.display()
    );
    let text = failed(&bench_words(&words(&line)));
    assert!(text.starts_with("Cluster has 1 master nodes:"), "{text}");
    let document = std::fs::read_to_string(&path).expect("it was written");
    std::fs::remove_dir_all(&dir).expect("it is ours");
    let document: Value = serde_json::from_str(&document).expect("it is JSON");
    let run = &document["runs"][0];
    let (moved, errors) = (&run["moved"], &run["total"]["errors"]);
    assert_eq!(moved, errors, "{text}");
    let moved = moved.as_u64().expect("a number");
    assert!(0 < moved && moved < 200_000, "{text}");
    assert!(
        text.contains(" of these named another node; the map was read again "),
        "{text}"
    );
    assert_eq!(run["lost_requests"], 0);
    assert_eq!(run["lost_connections"], 0);
    let requests = requests_by_node(run);
    assert_eq!(requests.iter().sum::<u64>(), 200_000);
    assert_eq!(requests.len(), 3);
    assert!(requests.iter().all(|count| *count > 0), "{requests:?}");
}

#[test]
fn what_does_not_go_with_a_cluster_is_refused() {
    let alone = Server::redis(&[]);
    let text = failed(&bench(&alone, "--cluster -t set -n 10"));
    assert!(
        text.contains("gives no map of a cluster: ERR This instance"),
        "{text}"
    );
    let nodes = cluster();
    for (options, reason) in [
        ("-c 2", "3 nodes with slots, more than --clients (2)"),
        (
            "-r 10 --key-pattern P",
            "the key pattern parallel does not go with --cluster",
        ),
        (
            "-r 10 --key-pattern S:L",
            "the key pattern latest does not go with --cluster",
        ),
        ("-t pubsub", "the test pubsub does not go with --cluster"),
        ("--verify", "--verify does not go with --cluster"),
        ("--idle", "--idle does not go with --cluster"),
    ] {
        let text = failed(&bench(&nodes[0], &format!("--cluster -n 10 {options}")));
        assert!(text.contains(reason), "{options}: {text}");
    }
}

#[test]
fn redis_benchmark_loads_all_nodes_of_ferrite() {
    let nodes = own_cluster();
    let line = "--cluster -n 3000 -c 9 -r 1000 -P 4 -q -t ping,set,get,incr,mset";
    let output = Command::new("redis-benchmark")
        .args(["-p", &nodes[1].port.to_string()])
        .args(words(line))
        .output()
        .expect("make setup installs it");
    let text = printed(&output);
    assert!(
        text.starts_with("Cluster has 3 master nodes:\n\nMaster 0: "),
        "{text}"
    );
    for name in ["PING_INLINE", "SET", "GET", "INCR", "MSET (10 keys)"] {
        assert!(text.contains(&format!("{name}: ")), "{text}");
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        !format!("{text}{errors}").contains("MOVED"),
        "{text}{errors}"
    );
    assert!(keys(&nodes).iter().all(|count| *count > 0));
}
