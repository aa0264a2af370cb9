//! Which node of a map this server is: the one that `cluster-node` names, or the one with its address and
//! port.

use std::net::UdpSocket;

use crate::config::{Setting, Settings};
use map::{Map, Node};

/// The index of this node.
///
/// # Errors
/// Why it cannot be told.
pub(super) fn find(map: &Map, settings: &Settings) -> Result<usize, String> {
    let id = settings.text(Setting::ClusterNode);
    let at = if id.is_empty() {
        by_address(map, settings)?
    } else {
        let names = || {
            map.nodes
                .iter()
                .map(|node| node.name.as_str())
                .collect::<Vec<_>>()
                .join(", ")
        };
        map.find(&id).ok_or_else(|| {
            format!(
                "this node, {id} (cluster-node), is missing; the nodes are {}",
                names()
            )
        })?
    };
    check_port(&map.nodes[at], settings)?;
    Ok(at)
}

/// The port at which clients reach this server.
fn own_port(settings: &Settings) -> i64 {
    match settings.int(Setting::ClusterAnnouncePort) {
        0 => settings.int(Setting::Port),
        port => port,
    }
}

/// Refuses a node whose port differs from the server's.
pub(super) fn check_port(node: &Node, settings: &Settings) -> Result<(), String> {
    let own = own_port(settings);
    if i64::from(node.port) == own {
        return Ok(());
    }
    Err(format!(
        "this node, {}, has the port {} there, but {own} here (cluster-announce-port says which port clients use)",
        node.name, node.port
    ))
}

fn by_address(map: &Map, settings: &Settings) -> Result<usize, String> {
    let port = own_port(settings);
    let announced = settings.text(Setting::ClusterAnnounceIp);
    let bind = settings.text(Setting::Bind);
    let is_named = |host: &str| {
        let mut words = bind
            .split_whitespace()
            .map(|word| word.trim_start_matches('-'));
        words.any(|word| word.eq_ignore_ascii_case(host))
    };
    let with = |is_it: &dyn Fn(&str) -> bool| -> Vec<usize> {
        let nodes = map.nodes.iter().enumerate();
        let found = nodes.filter(|(_, node)| i64::from(node.port) == port && is_it(&node.host));
        found.map(|(at, _)| at).collect()
    };
    let mut found = if announced.is_empty() {
        with(&is_named)
    } else {
        with(&|host| host.eq_ignore_ascii_case(&announced))
    };
    if found.is_empty() && announced.is_empty() {
        found = with(&is_of_this_machine);
    }
    match found[..] {
        [at] => Ok(at),
        [] => Err(format!(
            "this node is missing: none has port {port} and an address of this machine; cluster-node says which it is"
        )),
        [one, other, ..] => Err(format!(
            "both {} and {} may be this node; cluster-node says which it is",
            map.nodes[one].name, map.nodes[other].name
        )),
    }
}

/// Whether a socket can be bound to an address; any free port serves.
fn is_of_this_machine(host: &str) -> bool {
    UdpSocket::bind((host, 0)).is_ok()
}
