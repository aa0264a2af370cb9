//! The map as clients ask for it: CLUSTER SLOTS, SHARDS, NODES and INFO.

use std::fmt::Write as _;

use keyspace::SLOTS;
use resp::reply::Writer;

use super::View;
use crate::config::{Setting, Settings};
use map::{Node, ranges_text};

/// How clients reach a node.
pub(crate) struct Endpoint {
    pub(crate) ip: String,
    pub(crate) port: u16,
    pub(crate) hostname: String,
}

impl Endpoint {
    /// Endpoint from the map; for this node, from its settings too.
    pub(crate) fn of(view: &View, at: usize, settings: &Settings) -> Endpoint {
        let node = &view.map.nodes[at];
        let mut endpoint = Endpoint {
            ip: node.host.clone(),
            port: node.port,
            hostname: node.hostname.clone(),
        };
        if at != view.me {
            return endpoint;
        }
        for (own, setting) in [
            (&mut endpoint.ip, Setting::ClusterAnnounceIp),
            (&mut endpoint.hostname, Setting::ClusterAnnounceHostname),
        ] {
            let announced = settings.text(setting);
            if !announced.is_empty() {
                *own = announced.to_string();
            }
        }
        match u16::try_from(settings.int(Setting::ClusterAnnouncePort)) {
            Ok(0) | Err(_) => {}
            Ok(port) => endpoint.port = port,
        }
        endpoint
    }

    /// Preferred endpoint for clients, by `cluster-preferred-endpoint-type`; `None`: the address that the
    /// client uses.
    pub(crate) fn preferred(&self, settings: &Settings) -> Option<&str> {
        match settings.choice(Setting::ClusterPreferredEndpointType) {
            "hostname" if self.hostname.is_empty() => Some("?"),
            "hostname" => Some(&self.hostname),
            "ip" => Some(&self.ip),
            _ => None,
        }
    }

    fn write_preferred(&self, writer: &mut Writer<'_>, settings: &Settings) {
        match self.preferred(settings) {
            Some(host) => writer.bulk(host.as_bytes()),
            None => writer.null(),
        }
    }
}

/// `CLUSTER SLOTS`
pub(crate) fn slots(writer: &mut Writer<'_>, view: &View, settings: &Settings) {
    let ranges = view.map.ranges();
    let ranges: Vec<_> = ranges
        .filter_map(|(range, owner)| Some((range, owner?)))
        .collect();
    writer.array(ranges.len());
    for (range, owner) in ranges {
        let endpoint = Endpoint::of(view, owner, settings);
        writer.array(3);
        writer.integer(i64::from(*range.start()));
        writer.integer(i64::from(*range.end()));
        writer.array(4);
        endpoint.write_preferred(writer, settings);
        writer.integer(i64::from(endpoint.port));
        writer.bulk(view.map.nodes[owner].id.as_bytes());
        // Other ways to reach the node.
        let kind = settings.choice(Setting::ClusterPreferredEndpointType);
        let all = [("ip", &endpoint.ip), ("hostname", &endpoint.hostname)];
        let others = all
            .iter()
            .filter(|(name, text)| *name != kind && !text.is_empty());
        writer.map(others.clone().count());
        for (name, text) in others {
            writer.bulk(name.as_bytes());
            writer.bulk(text.as_bytes());
        }
    }
}

/// `CLUSTER SHARDS`: each node is a shard of its own.
pub(crate) fn shards(writer: &mut Writer<'_>, view: &View, settings: &Settings) {
    writer.array(view.map.nodes.len());
    for (at, node) in view.map.nodes.iter().enumerate() {
        let endpoint = Endpoint::of(view, at, settings);
        writer.map(2);
        writer.bulk(b"slots");
        writer.array(node.slots.len() * 2);
        for range in &node.slots {
            writer.integer(i64::from(*range.start()));
            writer.integer(i64::from(*range.end()));
        }
        writer.bulk(b"nodes");
        writer.array(1);
        writer.map(if endpoint.hostname.is_empty() { 7 } else { 8 });
        writer.bulk(b"id");
        writer.bulk(node.id.as_bytes());
        writer.bulk(b"port");
        writer.integer(i64::from(endpoint.port));
        writer.bulk(b"ip");
        writer.bulk(endpoint.ip.as_bytes());
        writer.bulk(b"endpoint");
        endpoint.write_preferred(writer, settings);
        if !endpoint.hostname.is_empty() {
            writer.bulk(b"hostname");
            writer.bulk(endpoint.hostname.as_bytes());
        }
        writer.bulk(b"role");
        writer.bulk(b"master");
        writer.bulk(b"replication-offset");
        writer.integer(0);
        writer.bulk(b"health");
        writer.bulk(b"online");
    }
}

/// The id of the shard that a node is: forty digits that follow from its own.
pub(crate) fn shard_id(node: &Node) -> String {
    sha1_smol::Sha1::from(format!("shard {}", node.id))
        .digest()
        .to_string()
}

/// `CLUSTER NODES`: a line for each node. There is no bus, so its port is 0.
pub(crate) fn nodes(view: &View, settings: &Settings) -> String {
    let mut text = String::new();
    for (at, node) in view.map.nodes.iter().enumerate() {
        let Endpoint { ip, port, hostname } = Endpoint::of(view, at, settings);
        let hostname = match &*hostname {
            "" => String::new(),
            name => format!(",{name}"),
        };
        let flags = if at == view.me {
            "myself,master"
        } else {
            "master"
        };
        let slots = match &node.slots[..] {
            [] => String::new(),
            slots => format!(" {}", ranges_text(slots)),
        };
        let (id, epoch) = (&node.id, view.map.epoch);
        let line =
            format_args!("{id} {ip}:{port}@0{hostname} {flags} - 0 0 {epoch} connected{slots}");
        writeln!(text, "{line}").expect("a String takes everything");
    }
    text
}

/// `CLUSTER INFO`
pub(crate) fn info(view: &View, settings: &Settings) -> String {
    let assigned = view.map.assigned();
    let size = view
        .map
        .nodes
        .iter()
        .filter(|node| !node.slots.is_empty())
        .count();
    let state = if view.is_down(settings) { "fail" } else { "ok" };
    let epoch = view.map.epoch;
    let (nodes, name) = (view.map.nodes.len(), &view.map.name);
    debug_assert!(assigned <= usize::from(SLOTS), "a slot is counted once");
    let fields: [(&str, &dyn std::fmt::Display); 13] = [
        ("cluster_state", &state),
        ("cluster_slots_assigned", &assigned),
        ("cluster_slots_ok", &assigned),
        ("cluster_slots_pfail", &0),
        ("cluster_slots_fail", &0),
        ("cluster_known_nodes", &nodes),
        ("cluster_size", &size),
        ("cluster_current_epoch", &epoch),
        ("cluster_my_epoch", &epoch),
        ("cluster_stats_messages_sent", &0),
        ("cluster_stats_messages_received", &0),
        ("total_cluster_links_buffer_limit_exceeded", &0),
        ("cluster_name", name),
    ];
    let lines = fields
        .iter()
        .map(|(field, value)| format!("{field}:{value}\r\n"));
    lines.collect()
}
