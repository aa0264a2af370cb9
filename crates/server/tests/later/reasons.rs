//! Why something of Redis 8.2 or Valkey 9.1 is not here.

/// Groups of commands that Ferrite does not have.
pub(super) const ABSENT_FAMILIES: &[(&str, &str)] = &[("module", "there are no modules")];

/// Lacks, each with `*` at its end for all that begin so, and their reason.
pub(super) const REASONS: &[(&[&str], &str)] = &[
    (
        &["command acl"],
        "there are no users yet; requirepass sets the password of all clients",
    ),
    (
        &[
            "command failover",
            "command psync",
            "command replicaof",
            "command slaveof",
            "command client|import-source",
            "argument shutdown FAILOVER",
        ],
        "there is no replication yet",
    ),
    (
        &[
            "command cluster|*",
            "command clusterscan",
            "argument cluster|*",
            "DEBUG CLUSTERLINK KILL",
            "DEBUG INTERNAL_SECRET",
        ],
        "nodes of a cluster do not talk to each other: the file of cluster-map says all (docs/cluster.md)",
    ),
    (
        &["argument xinfo|stream: another form"],
        "the same arguments, in the form in which Redis 7.0 describes them",
    ),
    (
        &["command commandlog", "flag exec skip_commandlog"],
        "SLOWLOG has the commands that took long; large requests and replies are not logged yet",
    ),
    (
        &["flag client|*", "flag select allow_busy"],
        "there is no BUSY state yet; CLIENT REPLY works in a transaction as in Redis",
    ),
    (
        &["flag multi no_multi", "flag watch no_multi"],
        "in a transaction MULTI and WATCH have errors of their own, as in Redis",
    ),
    (
        &[
            "flag cluster|*",
            "flag memory|*",
            "flag script|*",
            "flag wait blocking",
        ],
        "as in Redis 7.0",
    ),
    (
        &["flag delifeq fast"],
        "it compares values, which may be large",
    ),
    (
        &[
            "DEBUG ASSERT",
            "DEBUG CRASH-AND-RECOVER",
            "DEBUG OOM",
            "DEBUG PANIC",
            "DEBUG RESTART",
            "DEBUG SEGFAULT",
        ],
        "no command makes the server crash",
    ),
    (
        &["DEBUG CONFIG-REWRITE-FORCE-ALL"],
        "CONFIG REWRITE writes what differs from the defaults, and nothing else",
    ),
    (
        &["DEBUG MALLCTL", "DEBUG MALLCTL-STR"],
        "the memory allocator has no switches",
    ),
    (
        &["DEBUG PROTECT-CLIENT"],
        "no memory of a client that has ended is used",
    ),
    (
        &["DEBUG SCRIPT", "INFO engine*", "argument script|debug*"],
        "there is one engine for scripts, and no debugger",
    ),
    (
        &["DEBUG FORCE-TLS-WRITE-ERROR", "INFO tls_*"],
        "there is no TLS yet",
    ),
    (
        &[
            "INFO availability_zone",
            "INFO clients_hz",
            "INFO valkey_*",
            "INFO redis_build_id",
        ],
        "they tell Valkey, or builds of Redis, from each other",
    ),
    (
        &["INFO db0_distrib_*"],
        "sizes are not counted with each write; BIGKEYS looks at them",
    ),
    (
        &[
            "INFO eventloop_*",
            "INFO instantaneous_eventloop_*",
            "INFO used_active_time_main_thread",
        ],
        "turns of workers are not timed",
    ),
    (
        &["INFO expired_keys_with_volatile_items_stale_perc"],
        "fields expire on time, and no command sees one behind its time",
    ),
    (&["INFO module*"], "there are no modules"),
    (
        &["MEMORY STATS allocator.muzzy"],
        "the allocator keeps no memory in that state",
    ),
    (
        &[
            "MEMORY STATS db.dict.rehashing.count",
            "MEMORY STATS overhead.db.hashtable.*",
        ],
        "tables grow in small steps; `overhead.hashtable.main` of each database is all that they take",
    ),
];
