//! The nodes of a cluster and which slots each has.
//!
//! A node keeps its place for as long as the program runs: what was counted of it is counted by that. One
//! that has lost all of its slots stays with none.

use crate::load::home::Home;
use sys::socket::Endpoint;

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
