//! What each host is to have: the map that all share, and the node's own configuration. Nothing here talks to
//! a host.

use std::net::IpAddr;

use map::{Draft, DraftNode, ID_DIGITS, Map, even_ranges};

use super::found::Found;
use super::wanted::{Wanted, quoted};
use crate::cluster::nodes::Node;
use crate::failure::{Failure, Result};

/// The map of the cluster, and what to say of it.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) map: Map,
    /// For the person who deploys.
    pub(super) notes: Vec<String>,
}

/// Makes the map: that of the hosts, if they have one, brought up to date with the file of nodes.
///
/// # Errors
/// The hosts have nodes of several clusters, or slots would be lost.
pub(super) fn make(wanted: &Wanted, nodes: &[Node], found: &[Found]) -> Result<Plan> {
    let mut notes = Vec::new();
    let maps = || found.iter().filter_map(|found| found.map.as_ref());
    let newest = maps().max_by_key(|map| map.epoch);
    let name = match (&wanted.name, newest) {
        (Some(name), _) => name.clone(),
        (None, Some(map)) => map.name.clone(),
        (None, None) => "ferrite".to_owned(),
    };
    for (node, found) in nodes.iter().zip(found) {
        if let Some(map) = found.map.as_ref().filter(|map| map.name != name) {
            return Err(Failure::Other(format!(
                "{}: {} has a node of the cluster {}, and this is {name}: --dir makes room for another one",
                node.address(),
                found.dir,
                map.name
            )));
        }
    }
    let is_same = newest.is_some_and(|map| have_same_nodes(map, nodes));
    let mut nodes: Vec<&Node> = nodes.iter().collect();
    if let Some(map) = newest.filter(|_| is_same) {
        // Their order in the file does not make another map.
        nodes.sort_by_key(|node| map.nodes.iter().position(|its| is_at(its, node)));
    }
    let mut draft = Draft {
        name,
        epoch: newest.map_or(1, |map| map.epoch),
        nodes: nodes.iter().map(|node| draft_of(node, newest)).collect(),
    };
    match newest {
        // The same nodes have even shares already, or what somebody wrote down.
        Some(map) if is_same || !wanted.deals => keep_slots(map, &nodes, &mut draft, &mut notes)?,
        _ => {
            for (node, range) in draft.nodes.iter_mut().zip(even_ranges(nodes.len())) {
                node.slots = vec![(range, 0)];
            }
        }
    }
    if newest.is_some() && !is_same {
        draft.epoch += 1;
    }
    if is_open(wanted, &nodes) {
        notes.push(
            "no password is set: all who reach these ports read and write everything (`-- --requirepass ...` \
             sets one)"
                .to_owned(),
        );
    }
    let map = draft.check().map_err(|problems| {
        let lines: Vec<String> = problems.into_iter().map(|problem| problem.text).collect();
        Failure::Other(lines.join("\n"))
    })?;
    Ok(Plan { map, notes })
}

/// Whether other machines need no password.
fn is_open(wanted: &Wanted, nodes: &[&Node]) -> bool {
    let protects =
        |line: &str| line.starts_with("requirepass ") || line.starts_with("protected-mode \"yes\"");
    let is_outside = |node: &&Node| {
        let address: Option<IpAddr> = node.host.parse().ok();
        !address.is_some_and(|address| address.is_loopback())
    };
    !wanted.settings.lines().any(protects) && nodes.iter().any(is_outside)
}

/// Whether a map has exactly these nodes.
fn have_same_nodes(map: &Map, nodes: &[Node]) -> bool {
    map.nodes.len() == nodes.len() && nodes.iter().all(|node| node_of(map, node).is_some())
}

/// The node of a map with this address.
fn node_of<'a>(map: &'a Map, node: &Node) -> Option<&'a map::Node> {
    map.nodes.iter().find(|its| is_at(its, node))
}

fn is_at(its: &map::Node, node: &Node) -> bool {
    its.port == node.port && its.host.eq_ignore_ascii_case(&node.host)
}

/// A node without slots. One that has an id keeps it: the data in its directory is known by it.
fn draft_of(node: &Node, map: Option<&Map>) -> DraftNode {
    let known = map.and_then(|map| node_of(map, node));
    DraftNode {
        id: known.map_or_else(|| id(node), |known| known.name.clone()),
        host: known.map_or_else(|| node.host.clone(), |known| known.host.clone()),
        port: node.port,
        hostname: known
            .map(|known| known.hostname.clone())
            .unwrap_or_default(),
        ..DraftNode::default()
    }
}

/// Leaves each slot where it is. Keys would not move with it.
fn keep_slots(map: &Map, nodes: &[&Node], draft: &mut Draft, notes: &mut Vec<String>) -> Result {
    for old in &map.nodes {
        let is_left = nodes.iter().any(|node| node_of(map, node) == Some(old));
        if !is_left && !old.slots.is_empty() {
            return Err(Failure::Other(format!(
                "{}:{} has slots of the cluster, and is not in the file of nodes: its keys would be served \
                 no more. --deal deals all slots anew; keys do not move with them",
                old.host, old.port
            )));
        }
    }
    for (node, draft) in nodes.iter().zip(&mut draft.nodes) {
        match node_of(map, node) {
            Some(old) => draft.slots = old.slots.iter().map(|range| (range.clone(), 0)).collect(),
            None => notes.push(format!(
                "{} is new and has no slots: keys do not move with slots yet (`ferrite-cli cluster rebalance \
                 --plan` shows which would; --deal deals all anew)",
                node.address()
            )),
        }
    }
    Ok(())
}

/// The id of a new node: its address, in letters that an id may have.
fn id(node: &Node) -> String {
    let id = format!(
        "{}-{}",
        node.host.to_ascii_lowercase().replace(':', "_"),
        node.port
    );
    if id.len() < ID_DIGITS {
        return id;
    }
    // FNV-1a: two long names are told apart by it.
    let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{}-{hash:016x}", &id[..ID_DIGITS - 18])
}

/// The text of the node's configuration.
pub(super) fn config(wanted: &Wanted, (node, found): (&Node, &Found), id: &str) -> String {
    let dir = &found.dir;
    let mut text = String::from(
        "# Written by `ferrite-cli cluster deploy`, which writes it anew the next time.\n",
    );
    let threads = wanted.threads.to_string();
    for (name, value) in [
        ("port", node.port.to_string()),
        ("bind", bind(node, found)),
        // Clients are on other machines.
        ("protected-mode", "no".to_owned()),
        ("threads", threads),
        ("maxmemory", wanted.memory.clone()),
        ("dir", quoted(&format!("{dir}/data"))),
        ("logfile", quoted(&format!("{dir}/messages.log"))),
        ("pidfile", quoted(&format!("{dir}/ferrite.pid"))),
        ("cluster-enabled", "yes".to_owned()),
        ("cluster-map", quoted(&format!("{dir}/map.toml"))),
        ("cluster-node", id.to_owned()),
    ] {
        text.push_str(&format!("{name} {value}\n"));
    }
    // The last line for a setting counts.
    text + &wanted.settings
}

/// The addresses to listen on: the one that was given, if the host knows it as its own.
fn bind(node: &Node, found: &Found) -> String {
    let given: Option<IpAddr> = node.host.parse().ok();
    match given.filter(|given| found.address == Some(*given)) {
        Some(address) => address.to_string(),
        None => "* -::*".to_owned(),
    }
}

/// Whether another process listens where the node is to.
pub(super) fn port_is_taken(node: &Node, found: &Found) -> bool {
    let has_port = |config: &String| {
        config
            .lines()
            .any(|line| line == format!("port {}", node.port))
    };
    if found.is_running && found.config.as_ref().is_some_and(has_port) {
        return false;
    }
    let own = bind(node, found);
    let collides = |address: &IpAddr| {
        address.is_unspecified() || own.starts_with('*') || address.to_string() == own
    };
    found.listens.iter().any(collides)
}

/// The name of the node's service.
pub(super) fn unit(id: &str) -> String {
    format!("ferrite-{id}.service")
}

/// The file of the node's service.
pub(super) fn unit_text(cluster: &str, id: &str, dir: &str, is_system: bool) -> String {
    let word = |text: &str| {
        let plain = text.replace('\\', "\\\\").replace('"', "\\\"");
        format!("\"{}\"", plain.replace('%', "%%").replace('$', "$$"))
    };
    let path = |name: &str| word(&format!("{dir}/{name}"));
    let target = if is_system { "multi-user" } else { "default" };
    // The first word of a command of systemd has no quotes or dollars, and a directory may have them.
    // What is printed before the messages begin goes where `switch.sh` looks for it.
    format!(
        "# Written by `ferrite-cli cluster deploy`, which writes it anew the next time.\n\
         [Unit]\nDescription=Ferrite, node {id} of the cluster {}\nAfter=network-online.target\n\n\
         [Service]\nType=notify\nWatchdogSec=30\nExecStart=/bin/sh -c {} {} {}\n\
         ExecReload=/bin/kill -HUP $MAINPID\n\
         StandardOutput=append:{}\nStandardError=inherit\nRestart=on-failure\n\
         TimeoutStartSec=infinity\nTimeoutStopSec=10min\nLimitNOFILE=65536\nUMask=0077\n\
         NoNewPrivileges=yes\n\n\
         [Install]\nWantedBy={target}.target\n",
        cluster.replace('%', "%%"),
        word(r#"exec "$0" "$1""#),
        path("ferrite-server"),
        path("ferrite.conf"),
        format_args!("{}/start.log", dir.replace('%', "%%")),
    )
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
