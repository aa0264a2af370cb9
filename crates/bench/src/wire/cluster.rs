//! The map of a cluster, as CLUSTER SLOTS of one of its nodes tells it.

use resp::cluster::{Node as Named, parse_slots};
use sys::socket::Endpoint;

use super::ask::{Asker, text_of};
use super::map::{Map, Node};
use super::target::{Address, Target};
use crate::load::home::Home;
use std::time::Duration;

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
    map_of(named, &target.endpoint)
}

fn map_of(named: Vec<Named>, asked: &Endpoint) -> Result<Map, String> {
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
