//! The subcommands of CLUSTER. Their work is in [`crate::cluster`]. On a server that is not part of a cluster
//! each of them says so: clients tell the mode by that.

use super::{Arg, ArgKind, Group, Makes, Spec, flag};
use crate::command::cluster;

/// Common part of the rows below.
const ROW: Spec = Spec {
    flags: flag::STALE,
    group: Group::Cluster,
    since: "3.0.0",
    handler: cluster::refuse,
    ..Spec::BASE
};

/// Flags of what changes the cluster.
const CHANGE: u32 = flag::ADMIN | flag::STALE | flag::NO_ASYNC_LOADING;

const VARIES: &[&str] = &["nondeterministic_output"];
const NODE: &[Arg] = &[Arg::of("node-id", ArgKind::String)];
const SLOT: Arg = Arg::of("slot", ArgKind::Integer);
const SLOTS: &[Arg] = &[Arg::of("slot", ArgKind::Integer).multiple()];
const SLOT_RANGES: &[Arg] = &[Arg::block(
    "start-slot_end-slot",
    &[
        Arg::of("start-slot", ArgKind::Integer),
        Arg::of("end-slot", ArgKind::Integer),
    ],
)
.multiple()];
const PER_NODE: &str = "O(N) where N is the number of nodes";
const PER_SLOT: &str = "O(N) where N is the number of slots";

pub(super) const SUBCOMMANDS: &[Spec] = &[
    Spec {
        name: "addslots",
        makes: Makes::Little,
        arity: -3,
        flags: CHANGE,
        summary: "Gives hash slots to this node",
        complexity: PER_SLOT,
        args: SLOTS,
        ..ROW
    },
    Spec {
        name: "addslotsrange",
        makes: Makes::Little,
        arity: -4,
        flags: CHANGE,
        since: "7.0.0",
        summary: "Gives ranges of hash slots to this node",
        complexity: PER_SLOT,
        args: SLOT_RANGES,
        ..ROW
    },
    Spec {
        name: "bumpepoch",
        makes: Makes::Little,
        arity: 2,
        flags: CHANGE,
        summary: "Moves the epoch of the configuration on",
        tips: VARIES,
        ..ROW
    },
    Spec {
        name: "count-failure-reports",
        makes: Makes::Little,
        arity: 3,
        flags: flag::ADMIN | flag::STALE,
        summary: "Counts the reports that a node has failed",
        complexity: "O(N) where N is the number of reports",
        tips: VARIES,
        args: NODE,
        handler: cluster::failure_reports,
        ..ROW
    },
    Spec {
        name: "countkeysinslot",
        makes: Makes::Little,
        arity: 3,
        summary: "Counts the keys of a hash slot on this node",
        args: &[SLOT],
        handler: cluster::count_keys,
        ..ROW
    },
    Spec {
        name: "delslots",
        makes: Makes::Little,
        arity: -3,
        flags: CHANGE,
        summary: "Takes hash slots from this node",
        complexity: PER_SLOT,
        args: SLOTS,
        ..ROW
    },
    Spec {
        name: "delslotsrange",
        makes: Makes::Little,
        arity: -4,
        flags: CHANGE,
        since: "7.0.0",
        summary: "Takes ranges of hash slots from this node",
        complexity: PER_SLOT,
        args: SLOT_RANGES,
        ..ROW
    },
    Spec {
        name: "failover",
        makes: Makes::Little,
        arity: -2,
        flags: CHANGE,
        summary: "Makes a replica take the place of its master",
        args: &[Arg::one_of(
            "options",
            &[
                Arg::word("force", "FORCE"),
                Arg::word("takeover", "TAKEOVER"),
            ],
        )
        .optional()],
        ..ROW
    },
    Spec {
        name: "flushslots",
        makes: Makes::Little,
        arity: 2,
        flags: CHANGE,
        summary: "Takes all hash slots from this node",
        ..ROW
    },
    Spec {
        name: "forget",
        makes: Makes::Little,
        arity: 3,
        flags: CHANGE,
        summary: "Removes a node from the list of nodes",
        args: NODE,
        ..ROW
    },
    Spec {
        name: "getkeysinslot",
        makes: Makes::Reply,
        arity: 4,
        summary: "Returns keys of a hash slot on this node",
        complexity: "O(log(N)) where N is the number of keys asked for",
        tips: VARIES,
        args: &[SLOT, Arg::of("count", ArgKind::Integer)],
        handler: cluster::get_keys,
        ..ROW
    },
    Spec {
        name: "help",
        makes: Makes::Item,
        arity: 2,
        flags: flag::LOADING | flag::STALE,
        since: "5.0.0",
        summary: "Prints the subcommands of CLUSTER",
        handler: cluster::show_help,
        ..ROW
    },
    Spec {
        name: "info",
        makes: Makes::Item,
        arity: 2,
        summary: "Reports the state of the cluster as this node sees it",
        tips: VARIES,
        handler: cluster::info,
        ..ROW
    },
    Spec {
        name: "keyslot",
        makes: Makes::Little,
        arity: 3,
        summary: "Returns the hash slot of a key",
        complexity: "O(N) where N is the length of the key",
        args: &[Arg::of("key", ArgKind::String)],
        handler: cluster::key_slot,
        ..ROW
    },
    Spec {
        name: "links",
        makes: Makes::Little,
        arity: 2,
        since: "7.0.0",
        summary: "Lists the connections between this node and others",
        complexity: PER_NODE,
        tips: VARIES,
        handler: cluster::links,
        ..ROW
    },
    Spec {
        name: "meet",
        makes: Makes::Little,
        arity: -4,
        flags: CHANGE,
        summary: "Introduces a node to the cluster",
        args: &[
            Arg::of("ip", ArgKind::String),
            Arg::of("port", ArgKind::Integer),
            Arg::of("cluster_bus_port", ArgKind::Integer)
                .optional()
                .since("4.0.0"),
        ],
        history: &[("4.0.0", "Takes the port of the cluster bus.")],
        ..ROW
    },
    Spec {
        name: "myid",
        makes: Makes::Little,
        arity: 2,
        summary: "Returns the id of this node",
        handler: cluster::my_id,
        ..ROW
    },
    Spec {
        name: "myshardid",
        makes: Makes::Little,
        arity: 2,
        since: "7.2.0",
        summary: "Returns the id of the shard that this node is",
        tips: VARIES,
        handler: cluster::my_shard_id,
        ..ROW
    },
    Spec {
        name: "nodes",
        makes: Makes::Item,
        arity: 2,
        summary: "Describes all nodes, one a line",
        complexity: PER_NODE,
        tips: VARIES,
        handler: cluster::nodes,
        ..ROW
    },
    Spec {
        name: "reload",
        makes: Makes::Little,
        arity: 2,
        flags: CHANGE,
        summary: "Reads the map of the cluster again; of this server's own",
        complexity: "O(N) where N is the size of the map",
        handler: cluster::reload,
        ..ROW
    },
    Spec {
        name: "replicas",
        makes: Makes::Little,
        arity: 3,
        flags: flag::ADMIN | flag::STALE,
        since: "5.0.0",
        summary: "Describes the replicas of a node",
        tips: VARIES,
        args: NODE,
        handler: cluster::replicas,
        ..ROW
    },
    Spec {
        name: "replicate",
        makes: Makes::Little,
        arity: 3,
        flags: CHANGE,
        summary: "Makes this node a replica of another",
        args: NODE,
        ..ROW
    },
    Spec {
        name: "reset",
        makes: Makes::Little,
        arity: -2,
        flags: flag::ADMIN | flag::NOSCRIPT | flag::STALE,
        summary: "Makes this node forget the cluster",
        complexity: "O(N) where N is the number of nodes, and of keys if they are removed",
        args: &[Arg::one_of(
            "hard_soft",
            &[Arg::word("hard", "HARD"), Arg::word("soft", "SOFT")],
        )
        .optional()],
        ..ROW
    },
    Spec {
        name: "saveconfig",
        makes: Makes::Little,
        arity: 2,
        flags: CHANGE,
        summary: "Writes the configuration of the cluster to disk",
        ..ROW
    },
    Spec {
        name: "set-config-epoch",
        makes: Makes::Little,
        arity: 3,
        flags: CHANGE,
        summary: "Sets the epoch of a new node",
        args: &[Arg::of("config-epoch", ArgKind::Integer)],
        ..ROW
    },
    Spec {
        name: "setslot",
        makes: Makes::Little,
        arity: -4,
        flags: CHANGE,
        summary: "Binds a hash slot to a node, or says where it is moving",
        args: &[
            SLOT,
            Arg::one_of(
                "subcommand",
                &[
                    Arg::of("node-id", ArgKind::String).token("IMPORTING"),
                    Arg::of("node-id", ArgKind::String).token("MIGRATING"),
                    Arg::of("node-id", ArgKind::String).token("NODE"),
                    Arg::word("stable", "STABLE"),
                ],
            ),
        ],
        ..ROW
    },
    Spec {
        name: "shards",
        makes: Makes::Item,
        arity: 2,
        since: "7.0.0",
        summary: "Describes which nodes serve which hash slots, by shard",
        complexity: PER_NODE,
        tips: VARIES,
        handler: cluster::shards,
        ..ROW
    },
    Spec {
        name: "slaves",
        makes: Makes::Little,
        arity: 3,
        flags: flag::ADMIN | flag::STALE,
        summary: "Describes the replicas of a node",
        tips: VARIES,
        args: NODE,
        deprecated: Some(("5.0.0", "`CLUSTER REPLICAS`")),
        handler: cluster::replicas,
        ..ROW
    },
    Spec {
        name: "slots",
        makes: Makes::Item,
        arity: 2,
        summary: "Describes which nodes serve which hash slots",
        complexity: PER_NODE,
        tips: VARIES,
        history: &[
            ("4.0.0", "Tells the ids of nodes."),
            ("7.0.0", "Tells more about the network of a node."),
        ],
        deprecated: Some(("7.0.0", "`CLUSTER SHARDS`")),
        handler: cluster::slots,
        ..ROW
    },
];
