//! The nodes of a cluster and which slots each has, as CLUSTER SLOTS of one of them tells it.
//!
//! A node keeps its place for as long as the program runs: what was counted of it is counted by that. One
//! that has lost all of its
//! slots stays with none.

use resp::cluster::{Node as Named, parse_slots};
use sys::socket::Endpoint;

use super::ask::{Asker, text_of};
use super::target::{Address, Target};
use crate::load::home::Home;
use std::time::Duration;

/// A node.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Its address.
    pub(crate) name: String,
    /// As it names itself.
    pub(crate) id: String,
    pub(crate) endpoint: Endpoint,
    pub(crate) home: Home,
}

/// All nodes.
#[derive(Clone, Debug)]
pub(crate) struct Map {
    pub(crate) nodes: Vec<Node>,
}

impl Map {
    /// Asks a node of the cluster.
    ///
    /// # Errors
    /// It cannot be reached, is no cluster's, or a slot has no node.
    pub(crate) fn read(target: &Target, patience: Duration) -> Result<Map, String> {
        let name = &target.name;
        let mut asker = Asker::open(target, patience)?;
        let reply = asker
            .ask(&[b"CLUSTER", b"SLOTS"])
            .map_err(|error| format!("{name}: {error}"))?;
        if let resp::Value::Error(text) = &reply {
            let text = String::from_utf8_lossy(text);
            return Err(format!("{name} gives no map of a cluster: {text}"));
        }
        let named = parse_slots(&reply)
            .ok_or_else(|| format!("{name} gives no map of a cluster: {:?}", text_of(&reply)))?;
        let slots: usize = named.iter().map(Named::slots).sum();
        if slots == 0 {
            return Err(format!("{name}: no slot of the cluster has a node"));
        }
        Map::of(named, &target.endpoint)
    }

    fn of(named: Vec<Named>, asked: &Endpoint) -> Result<Map, String> {
        let node = |(lane, named): (usize, Named)| {
            let host = match (named.host.as_str(), asked) {
                ("", Endpoint::Tcp(address)) => address.ip().to_string(),
                _ => named.host.clone(),
            };
            let address = Address::Tcp(host, named.port);
            Ok(Node {
                name: address.text(),
                id: named.id.clone(),
                endpoint: address.endpoint()?,
                home: Home::new(lane, &named.ranges),
            })
        };
        let nodes: Result<Vec<Node>, String> = named.into_iter().enumerate().map(node).collect();
        Ok(Map { nodes: nodes? })
    }

    /// This map, with the slots as another has them.
    pub(crate) fn updated(&self, newer: Map) -> Map {
        let mut nodes = self.nodes.clone();
        let count = nodes.len();
        nodes
            .iter_mut()
            .enumerate()
            .for_each(|(lane, node)| node.home = Home::new(lane, &[]));
        for mut node in newer.nodes {
            match nodes[..count].iter_mut().find(|own| own.name == node.name) {
                Some(own) => {
                    node.home.lane = own.home.lane;
                    *own = node;
                }
                None => {
                    node.home.lane = nodes.len();
                    nodes.push(node);
                }
            }
        }
        Map { nodes }
    }

    /// The place of the node that a connection of the load belongs to: they are dealt out in turn.
    pub(crate) fn place_of(&self, client: usize) -> usize {
        let serving = self.nodes.iter().filter(|node| !node.home.is_empty());
        let count = serving.clone().count().max(1);
        let chosen = serving.clone().nth(client % count);
        chosen.map_or(0, |node| node.home.lane)
    }

    /// How many nodes have slots.
    pub(crate) fn serving(&self) -> usize {
        self.nodes
            .iter()
            .filter(|node| !node.home.is_empty())
            .count()
    }

    /// The same slots are at the same nodes.
    pub(crate) fn is_like(&self, other: &Map) -> bool {
        self.nodes.len() == other.nodes.len()
            && self
                .nodes
                .iter()
                .zip(&other.nodes)
                .all(|(one, other)| (&one.name, &one.home) == (&other.name, &other.home))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes by port and slots.
    fn map(nodes: &[(u16, (u16, u16))]) -> Map {
        let node = |lane: usize| {
            let (port, range) = nodes[lane];
            Node {
                name: format!("127.0.0.1:{port}"),
                id: String::new(),
                endpoint: Endpoint::Tcp(([127, 0, 0, 1], port).into()),
                home: Home::new(lane, &[range]),
            }
        };
        Map {
            nodes: (0..nodes.len()).map(node).collect(),
        }
    }

    #[test]
    fn nodes_keep_their_places() {
        let before = map(&[(1, (0, 99)), (2, (100, 199))]);
        let after = before.updated(map(&[(3, (0, 49)), (2, (50, 199))]));
        let found: Vec<_> = after
            .nodes
            .iter()
            .map(|node| (node.name.as_str(), node.home.lane, node.home.slots()))
            .collect();
        assert_eq!(
            found,
            [
                ("127.0.0.1:1", 0, 0),
                ("127.0.0.1:2", 1, 150),
                ("127.0.0.1:3", 2, 50)
            ]
        );
        assert_eq!(after.serving(), 2);
        // Connections are dealt out to those that have slots.
        let places: Vec<_> = (0..4).map(|client| after.place_of(client)).collect();
        assert_eq!(places, [1, 2, 1, 2]);
        assert!(!after.is_like(&before) && after.is_like(&after.clone()));
    }
}
