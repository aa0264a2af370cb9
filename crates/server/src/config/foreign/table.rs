//! The directives of redis-server and Valkey that are no settings here, each once: its names, its default,
//! the values that are accepted, and why it changes nothing.
//!
//! The names are those of redis-server 7.0 to 7.4 and of Valkey 8. The defaults are those of redis-server
//! 7.0.15, which a test compares with a real one (`tests/defaults.rs`).

use super::{Accepts, Foreign};

/// Directives that share a reason.
pub(super) struct Group {
    /// Why none of them changes anything here: a sentence without its full stop.
    pub(super) reason: &'static str,
    pub(super) rows: &'static [Foreign],
}

/// See the module.
pub(super) static GROUPS: &[Group] = &[
    Group {
        reason: "it says no more than which append-only file of redis-server a first start takes over (docs/durability.md)",
        rows: &[text("appendfilename", "appendonly.aof").fixed()],
    },
    Group {
        reason: "the log has a format of its own and is compacted all the time (docs/durability.md)",
        rows: &[
            flag("aof-use-rdb-preamble", "yes"),
            flag("aof-rewrite-incremental-fsync", "yes"),
            flag("aof-disable-auto-gc", "no"),
            flag("no-appendfsync-on-rewrite", "no"),
        ],
    },
    Group {
        reason: "the log holds no timestamps",
        rows: &[flag("aof-timestamp-enabled", "no").only(&["no"])],
    },
    Group {
        reason: "there is no replication",
        rows: &[
            text("replicaof", "")
                .also("slaveof")
                .only(&["", "no one"])
                .fixed(),
            number("min-replicas-to-write", "0")
                .also("min-slaves-to-write")
                .only(&["0"]),
            number("min-replicas-max-lag", "10").also("min-slaves-max-lag"),
            text("masterauth", "").also("primaryauth"),
            text("masteruser", "").also("primaryuser"),
            word(
                "propagation-error-behavior",
                "ignore",
                &["ignore", "panic", "panic-on-replicas"],
            ),
            size("repl-backlog-size", "1048576"),
            number("repl-backlog-ttl", "3600"),
            flag("repl-disable-tcp-nodelay", "no"),
            word(
                "repl-diskless-load",
                "disabled",
                &["disabled", "on-empty-db", "swapdb", "flush-before-load"],
            ),
            flag("repl-diskless-sync", "yes"),
            number("repl-diskless-sync-delay", "5"),
            number("repl-diskless-sync-max-replicas", "0"),
            number("repl-ping-replica-period", "10").also("repl-ping-slave-period"),
            number("repl-timeout", "60"),
            text("replica-announce-ip", "").also("slave-announce-ip"),
            number("replica-announce-port", "0").also("slave-announce-port"),
            flag("replica-announced", "yes"),
            flag("replica-ignore-disk-write-errors", "no"),
            flag("replica-ignore-maxmemory", "yes").also("slave-ignore-maxmemory"),
            flag("replica-lazy-flush", "no").also("slave-lazy-flush"),
            number("replica-priority", "100").also("slave-priority"),
            flag("replica-read-only", "yes").also("slave-read-only"),
            flag("replica-serve-stale-data", "yes").also("slave-serve-stale-data"),
            flag("dual-channel-replication-enabled", "no").newer(),
            text("availability-zone", "").newer(),
            number("shutdown-timeout", "10"),
            text("bind-source-addr", ""),
        ],
    },
    Group {
        reason: "nodes of a cluster do not talk to each other: the file of cluster-map says all (docs/cluster.md)",
        rows: &[
            flag("cluster-allow-replica-migration", "yes"),
            number("cluster-announce-bus-port", "0"),
            text("cluster-announce-client-ipv4", "").newer(),
            text("cluster-announce-client-ipv6", "").newer(),
            text("cluster-announce-human-nodename", "").newer(),
            number("cluster-announce-tls-port", "0"),
            number("cluster-blacklist-ttl", "60").newer(),
            text("cluster-config-file", "nodes.conf").fixed(),
            size("cluster-link-sendbuf-limit", "0"),
            number("cluster-migration-barrier", "1"),
            number("cluster-node-timeout", "15000"),
            number("cluster-port", "0").fixed(),
            flag("cluster-replica-no-failover", "no").also("cluster-slave-no-failover"),
            number("cluster-replica-validity-factor", "10").also("cluster-slave-validity-factor"),
            flag("cluster-slot-stats-enabled", "no").newer(),
        ],
    },
    Group {
        reason: "a service manager that sets NOTIFY_SOCKET is told, whatever this says",
        rows: &[
            word("supervised", "no", &["no", "systemd", "auto", "upstart"])
                .only(&["no", "systemd", "auto"])
                .fixed(),
        ],
    },
    Group {
        reason: "there is no TLS",
        rows: &[
            number("tls-port", "0").only(&["0"]),
            flag("tls-replication", "no").only(&["no"]),
            flag("tls-cluster", "no").only(&["no"]),
            word("tls-auth-clients", "yes", &["yes", "no", "optional"]),
            text("tls-ca-cert-dir", ""),
            text("tls-ca-cert-file", ""),
            text("tls-cert-file", ""),
            text("tls-ciphers", ""),
            text("tls-ciphersuites", ""),
            text("tls-client-cert-file", ""),
            text("tls-client-key-file", ""),
            text("tls-client-key-file-pass", ""),
            text("tls-dh-params-file", ""),
            text("tls-key-file", ""),
            text("tls-key-file-pass", ""),
            flag("tls-prefer-server-ciphers", "no"),
            text("tls-protocols", ""),
            number("tls-session-cache-size", "20480"),
            number("tls-session-cache-timeout", "300"),
            flag("tls-session-caching", "yes"),
            number("max-new-tls-connections-per-cycle", "1").newer(),
        ],
    },
    Group {
        reason: "there are no users; requirepass sets the password of all clients",
        rows: &[
            text("aclfile", "").only(&[""]).fixed(),
            number("acllog-max-len", "128"),
            word(
                "acl-pubsub-default",
                "resetchannels",
                &["resetchannels", "allchannels"],
            ),
            text("user", "").rule_of_user().newer().fixed(),
        ],
    },
    Group {
        reason: "commands cannot be renamed",
        rows: &[text("rename-command", "").never()],
    },
    Group {
        reason: "there are no modules",
        rows: &[
            word("enable-module-command", "no", &["no", "yes", "local"])
                .only(&["no"])
                .fixed(),
            text("loadmodule", "").never(),
        ],
    },
    Group {
        reason: "'dir' and 'dbfilename' are fixed at the start",
        rows: &[
            word("enable-protected-configs", "no", &["no", "yes", "local"])
                .only(&["no"])
                .fixed(),
        ],
    },
    Group {
        reason: "functions that redis-server has removed from scripts are not here either",
        rows: &[flag("lua-enable-deprecated-api", "no").newer()],
    },
    Group {
        reason: "it tunes how redis-server stores a type; every type here has one form",
        rows: &[number("list-compress-depth", "0")],
    },
    Group {
        reason: "it tunes the memory allocator of redis-server; the one here returns memory by itself",
        rows: &[
            number("active-defrag-cycle-max", "25"),
            number("active-defrag-cycle-min", "1"),
            size("active-defrag-ignore-bytes", "104857600"),
            number("active-defrag-max-scan-fields", "1000"),
            number("active-defrag-threshold-lower", "10"),
            number("active-defrag-threshold-upper", "100"),
            flag("activedefrag", "no"),
            flag("jemalloc-bg-thread", "yes"),
            flag("disable-thp", "yes").fixed(),
        ],
    },
    Group {
        reason: "large values are always freed in the background",
        rows: &[
            flag("lazyfree-lazy-eviction", "no"),
            flag("lazyfree-lazy-expire", "no"),
            flag("lazyfree-lazy-server-del", "no"),
            flag("lazyfree-lazy-user-del", "no"),
            flag("lazyfree-lazy-user-flush", "no"),
        ],
    },
    Group {
        reason: "keys expire on time, and tables grow in small steps, without tuning",
        rows: &[
            number("active-expire-effort", "1"),
            flag("activerehashing", "yes"),
            flag("dynamic-hz", "yes"),
        ],
    },
    Group {
        reason: "every worker thread serves clients; 'threads' sets how many there are",
        rows: &[
            number("io-threads", "1").fixed(),
            flag("io-threads-do-reads", "no").fixed(),
            number("events-per-io-thread", "2").newer(),
            number("prefetch-batch-max-size", "16").newer(),
            number("max-new-connections-per-cycle", "10").newer(),
        ],
    },
    Group {
        reason: "threads are not bound to CPUs; taskset or CPUAffinity of systemd does that for the whole process",
        rows: &[
            text("server_cpulist", "")
                .also("server-cpulist")
                .only(&[""])
                .fixed(),
            text("bio_cpulist", "")
                .also("bio-cpulist")
                .only(&[""])
                .fixed(),
            text("aof_rewrite_cpulist", "")
                .also("aof-rewrite-cpulist")
                .only(&[""])
                .fixed(),
            text("bgsave_cpulist", "")
                .also("bgsave-cpulist")
                .only(&[""])
                .fixed(),
        ],
    },
    Group {
        reason: "the server leaves its priority for the kernel's OOM killer alone; OOMScoreAdjust of systemd sets it",
        rows: &[
            word(
                "oom-score-adj",
                "no",
                &["no", "yes", "absolute", "relative"],
            )
            .only(&["no"]),
            text("oom-score-adj-values", "0 200 800"),
        ],
    },
    Group {
        reason: "messages go to 'logfile' or to the standard output",
        rows: &[
            flag("syslog-enabled", "no").only(&["no"]).fixed(),
            text("syslog-ident", "redis").fixed(),
            text("syslog-facility", "local0").fixed(),
        ],
    },
    Group {
        reason: "messages have one format",
        rows: &[
            word("log-format", "legacy", &["legacy", "logfmt"])
                .only(&["legacy"])
                .newer(),
            word(
                "log-timestamp-format",
                "legacy",
                &["legacy", "iso8601", "milliseconds"],
            )
            .only(&["legacy"])
            .newer(),
            flag("hide-user-data-from-log", "yes").newer(),
        ],
    },
    Group {
        reason: "a signal saves where there are save points, and then ends the server",
        rows: &[
            text("shutdown-on-sigint", "default").only(&["default"]),
            text("shutdown-on-sigterm", "default").only(&["default"]),
        ],
    },
    Group {
        reason: "the kernel's mark of sockets is left alone",
        rows: &[number("socket-mark-id", "0").only(&["0"]).fixed()],
    },
    Group {
        reason: "the unix socket keeps the group of the process",
        rows: &[text("unixsocketgroup", "").only(&[""]).newer().fixed()],
    },
    Group {
        reason: "the latency of every command is kept, and INFO shows the 50th, the 99th and the 99.9th percentile",
        rows: &[
            flag("latency-tracking", "yes"),
            text("latency-tracking-info-percentiles", "50 99 99.9").only(&["50 99 99.9"]),
        ],
    },
    Group {
        reason: "there is no Sentinel",
        rows: &[text("sentinel", "").never()],
    },
    Group {
        reason: "there is nothing for it to switch",
        rows: &[
            flag("crash-log-enabled", "yes"),
            flag("crash-memcheck-enabled", "yes"),
            flag("enable-debug-assert", "no").newer(),
            text("ignore-warnings", ""),
            text("proc-title-template", "{title} {listen-addr} {server-mode}"),
            word("sanitize-dump-payload", "no", &["no", "yes", "clients"]),
            flag("set-proc-title", "yes").fixed(),
            text("locale-collate", "").newer(),
        ],
    },
    Group {
        reason: "the server always says that it is Ferrite",
        rows: &[flag("extended-redis-compatibility", "no")
            .only(&["no"])
            .newer()],
    },
];

const fn row(name: &'static str, default: &'static str, shape: super::Shape) -> Foreign {
    Foreign {
        name,
        also: None,
        default,
        shape,
        accepts: Accepts::All,
        is_shown: true,
        mutable: true,
    }
}

/// A directive that takes `yes` or `no`.
const fn flag(name: &'static str, default: &'static str) -> Foreign {
    row(name, default, super::Shape::Flag)
}

/// A directive that takes a whole number.
const fn number(name: &'static str, default: &'static str) -> Foreign {
    row(name, default, super::Shape::Number)
}

/// A directive that takes bytes, with an optional unit.
const fn size(name: &'static str, default: &'static str) -> Foreign {
    row(name, default, super::Shape::Size)
}

/// A directive that takes one of some words.
const fn word(
    name: &'static str,
    default: &'static str,
    words: &'static [&'static str],
) -> Foreign {
    row(name, default, super::Shape::Word(words))
}

/// A directive that takes any words.
const fn text(name: &'static str, default: &'static str) -> Foreign {
    row(name, default, super::Shape::Text)
}

impl Foreign {
    /// The same, with a second name.
    const fn also(self, name: &'static str) -> Foreign {
        Foreign {
            also: Some(name),
            ..self
        }
    }

    /// The same, of which other values are refused.
    const fn only(self, values: &'static [&'static str]) -> Foreign {
        Foreign {
            accepts: Accepts::Only(values),
            ..self
        }
    }

    /// The same, which is always refused.
    const fn never(self) -> Foreign {
        Foreign {
            accepts: Accepts::Nothing,
            is_shown: false,
            mutable: false,
            ..self
        }
    }

    /// The same, accepted where it describes the user that every client is.
    const fn rule_of_user(self) -> Foreign {
        Foreign {
            accepts: Accepts::DefaultUser,
            ..self
        }
    }

    /// The same, unknown to redis-server 7.0: CONFIG GET shows it once it was set.
    const fn newer(self) -> Foreign {
        Foreign {
            is_shown: false,
            ..self
        }
    }

    /// The same, which CONFIG SET cannot change.
    const fn fixed(self) -> Foreign {
        Foreign {
            mutable: false,
            ..self
        }
    }
}
