//! The settings about a cluster of several servers.

use super::{BASE, Kind, Row, Section, Setting};

/// See the module.
pub(super) const CLUSTERING: &[Row] = &[
    Row {
        setting: Setting::ClusterEnabled,
        name: "cluster-enabled",
        default: "no",
        section: Section::Cluster,
        summary: "Serves the hash slots that the map of a cluster gives to this node, and sends clients elsewhere for \
                  all others (docs/cluster.md).",
        ..BASE
    },
    Row {
        setting: Setting::ClusterMap,
        name: "cluster-map",
        kind: Kind::Path,
        section: Section::Cluster,
        summary: "The file that says which node has which hash slots. All nodes have the same. It is read again by \
                  CLUSTER RELOAD and by SIGHUP.",
        ..BASE
    },
    Row {
        setting: Setting::ClusterNode,
        name: "cluster-node",
        kind: Kind::Word,
        section: Section::Cluster,
        summary: "The id of this node in the map; empty: the node whose address and port are those of this server.",
        ..BASE
    },
    Row {
        setting: Setting::ClusterRequireFullCoverage,
        name: "cluster-require-full-coverage",
        default: "yes",
        mutable: true,
        section: Section::Cluster,
        summary: "Serves no key at all while some slot has no node.",
        ..BASE
    },
    Row {
        setting: Setting::ClusterAllowReadsWhenDown,
        name: "cluster-allow-reads-when-down",
        default: "no",
        mutable: true,
        section: Section::Cluster,
        summary: "Serves reads even while some slot has no node and cluster-require-full-coverage is set.",
        ..BASE
    },
    Row {
        setting: Setting::ClusterAllowPubsubshardWhenDown,
        name: "cluster-allow-pubsubshard-when-down",
        default: "yes",
        mutable: true,
        section: Section::Cluster,
        summary: "Serves shard channels even then.",
        ..BASE
    },
    Row {
        setting: Setting::ClusterAnnounceIp,
        name: "cluster-announce-ip",
        kind: Kind::Word,
        mutable: true,
        section: Section::Cluster,
        summary: "The address that this node tells clients of itself; empty: the host in the map.",
        ..BASE
    },
    Row {
        setting: Setting::ClusterAnnouncePort,
        name: "cluster-announce-port",
        kind: Kind::Integer { min: 0, max: 65535 },
        default: "0",
        mutable: true,
        section: Section::Cluster,
        summary: "The port that this node tells clients of itself; 0: the port in the map.",
        ..BASE
    },
    Row {
        setting: Setting::ClusterAnnounceHostname,
        name: "cluster-announce-hostname",
        kind: Kind::Word,
        mutable: true,
        section: Section::Cluster,
        summary: "The name that this node tells clients of its host; empty: the hostname in the map.",
        ..BASE
    },
    Row {
        setting: Setting::ClusterPreferredEndpointType,
        name: "cluster-preferred-endpoint-type",
        kind: Kind::Choice(&["ip", "hostname", "unknown-endpoint"]),
        default: "ip",
        mutable: true,
        section: Section::Cluster,
        summary: "What clients are to connect to: the address of a node, the name of its host, or whatever they are \
                  connected to already.",
        ..BASE
    },
];
