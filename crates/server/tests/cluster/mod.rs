//! A cluster of several servers: what its nodes answer, beside a real redis-server with the same slots; the
//! map and how it is read again; and what is refused.

mod nodes;
mod redis;
mod refused;
mod scripts;

use crate::support;

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use support::{Client, Server, StartFailure, Target, Value, free_port, fresh_dir};

/// The ids of three nodes.
const IDS: [&str; 3] = [
    "07c37dfeb235213a872192d90877d0cd55635b91",
    "67ed2db8d677e59ec4a4cefb06858cf2a1a89fa1",
    "292f8b365bb7edb5e285caf0b7e6ddc7265d2f4f",
];

/// What the nodes of most tests have.
const THIRDS: [&str; 3] = ["0-5460", "5461-10922", "10923-16383"];

const CACHE: Target = Target::Ferrite { threads: 2 };

/// Where three nodes listen.
fn addresses() -> [SocketAddr; 3] {
    let mut ports: Vec<u16> = Vec::new();
    while ports.len() < 3 {
        let port = free_port();
        if !ports.contains(&port) {
            ports.push(port);
        }
    }
    [0, 1, 2].map(|at| SocketAddr::from((Ipv4Addr::LOCALHOST, ports[at])))
}

/// The text of a map.
fn map_text(epoch: u64, addresses: &[SocketAddr], slots: &[&str]) -> String {
    let mut text = format!("name = \"test\"\nepoch = {epoch}\n");
    for ((id, address), slots) in IDS.iter().zip(addresses).zip(slots) {
        let (host, port) = (address.ip(), address.port());
        text += &format!(
            "\n[[nodes]]\nid = \"{id}\"\nhost = \"{host}\"\nport = {port}\nslots = \"{slots}\"\n"
        );
    }
    text
}

/// Three nodes, and the file of their map.
struct Nodes {
    servers: Vec<Server>,
    addresses: [SocketAddr; 3],
    map: PathBuf,
}

impl Nodes {
    fn start(target: Target, slots: [&str; 3]) -> Nodes {
        let addresses = addresses();
        let dirs = [0; 3].map(|_| fresh_dir());
        let map = dirs[0].join("map.toml");
        fs::write(&map, map_text(1, &addresses, &slots)).expect("the directory is the test's own");
        let start = |(at, dir)| {
            let started = start_node(target, addresses[at], dir, &map, &[]);
            started.unwrap_or_else(|failure| panic!("{failure}"))
        };
        let servers = dirs.into_iter().enumerate().map(start).collect();
        Nodes {
            servers,
            addresses,
            map,
        }
    }

    /// Writes the map anew.
    fn write_map(&self, epoch: u64, slots: [&str; 3]) {
        fs::write(&self.map, map_text(epoch, &self.addresses, &slots))
            .expect("it is the test's own");
    }

    fn clients(&self) -> Vec<Client> {
        self.servers.iter().map(Server::client).collect()
    }

    /// The index of the node that a reply sends its client to.
    fn target(&self, reply: &Value) -> Option<usize> {
        let text = reply.text();
        let address = text.strip_prefix("MOVED ")?.split(' ').nth(1)?;
        let found = self
            .addresses
            .iter()
            .position(|own| own.to_string() == address);
        Some(found.unwrap_or_else(|| panic!("{text} is none of {:?}", self.addresses)))
    }
}

fn start_node(
    target: Target,
    address: SocketAddr,
    dir: PathBuf,
    map: &Path,
    options: &[&str],
) -> Result<Server, StartFailure> {
    let map = map.to_str().expect("a path of UTF-8");
    let mut all = vec!["--cluster-enabled", "yes", "--cluster-map", map];
    all.extend(options);
    Server::start_at(target, address, dir, &all)
}

/// The same port on another address of this machine.
fn elsewhere(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(IpAddr::from([127, 0, 0, 2]), address.port())
}
