//! Three nodes as one cluster, a third of the slots each: of the distribution's redis-server, or of Ferrite.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{Kind, PATIENCE, Server, fresh_directory};

/// First and last slot of each node.
const RANGES: [(u16, u16); 3] = [(0, 5460), (5461, 10922), (10923, 16383)];

/// A running cluster.
pub(crate) struct Cluster {
    pub(crate) nodes: Vec<Server>,
    /// Where the map of Ferrite's nodes is.
    directory: PathBuf,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl Cluster {
    /// Starts the nodes and waits until each serves.
    ///
    /// # Panics
    /// They do not come up.
    pub(crate) fn start(kind: Kind) -> Cluster {
        match kind {
            Kind::Redis => Cluster::redis(),
            Kind::Ferrite => (0..5)
                .find_map(|_| Cluster::ferrite())
                .expect("no three nodes of Ferrite come up"),
        }
    }

    /// Starts nodes that read their map from a file. `None` if somebody else took a port.
    fn ferrite() -> Option<Cluster> {
        let mut cluster = Cluster {
            nodes: Vec::new(),
            directory: fresh_directory("map"),
        };
        let ports = RANGES.map(|_| free_pair());
        cluster.write_map(1, ports, RANGES);
        let map = cluster.map().display().to_string();
        for (at, port) in ports.into_iter().enumerate() {
            let id = format!("node{at}");
            let options = [
                "--cluster-enabled",
                "yes",
                "--cluster-map",
                &map,
                "--cluster-node",
                &id,
            ];
            cluster
                .nodes
                .push(Server::try_start(port, Kind::Ferrite, &options)?);
        }
        Some(cluster)
    }

    fn map(&self) -> PathBuf {
        self.directory.join("map.toml")
    }

    fn write_map(&self, epoch: u64, ports: [u16; 3], ranges: [(u16, u16); 3]) {
        let mut text = format!("name = \"test\"\nepoch = {epoch}\n");
        for (at, (port, (first, last))) in ports.iter().zip(ranges).enumerate() {
            text += &format!(
                "\n[[nodes]]\nid = \"node{at}\"\nhost = \"127.0.0.1\"\nport = {port}\n\
                 slots = \"{first}-{last}\"\n"
            );
        }
        fs::write(self.map(), text).expect("the directory is ours");
    }

    /// Ferrite's second and third node exchange their slots, of which the first is not told.
    pub(crate) fn exchange_behind_the_first(&self) {
        let ports = [0, 1, 2].map(|at| self.nodes[at].port);
        self.write_map(2, ports, [RANGES[0], RANGES[2], RANGES[1]]);
        for node in &self.nodes[1..] {
            assert_eq!(node.tell("CLUSTER RELOAD"), "+OK\r\n");
        }
    }

    /// Starts nodes of redis-server and makes them known to each other.
    fn redis() -> Cluster {
        let start = |_| {
            let options = ["--cluster-enabled", "yes"];
            Server::start_at(free_pair, Kind::Redis, &options)
        };
        let nodes: Vec<Server> = (0..RANGES.len()).map(start).collect();
        for (node, (first, last)) in nodes.iter().zip(RANGES) {
            let reply = node.tell(&format!("CLUSTER ADDSLOTSRANGE {first} {last}"));
            assert_eq!(reply, "+OK\r\n");
            let reply = nodes[0].tell(&format!("CLUSTER MEET 127.0.0.1 {}", node.port));
            assert_eq!(reply, "+OK\r\n");
        }
        let cluster = Cluster {
            nodes,
            directory: fresh_directory("map"),
        };
        for node in &cluster.nodes {
            let end = Instant::now() + PATIENCE;
            loop {
                let info = node.tell("CLUSTER INFO");
                if info.contains("cluster_state:ok") && info.contains("cluster_size:3") {
                    break;
                }
                assert!(Instant::now() < end, "the cluster does not come up: {info}");
                sleep(Duration::from_millis(20));
            }
        }
        cluster
    }

    /// The node that has a slot.
    pub(crate) fn owner(&self, slot: u16) -> &Server {
        let place = RANGES.iter().position(|(_, last)| slot <= *last);
        &self.nodes[place.expect("every slot has a node")]
    }

    /// The id that a node has in the cluster.
    pub(crate) fn id(&self, node: usize) -> String {
        let reply = self.nodes[node].tell("CLUSTER MYID");
        reply.lines().nth(1).expect("a bulk string").to_owned()
    }
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
    // Processes begin at different places.
    let begin = (std::process::id() % (u32::from(COUNT) / STRIDE) * STRIDE) as u16;
    loop {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = FIRST + (begin + step) % COUNT;
        let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
        if is_free(port) && is_free(port + 10_000) {
            return port;
        }
    }
}
