//! Directives that are not in the table: those of redis.conf that this server has no use for, and misspelled ones.
//!
//! A directive that does nothing would let an operator believe it does, so each of them stops the start, and this says
//! why. The names are those of redis-server 7.0.

use super::table::{Row, TABLE};

/// The most letters by which a name may differ from the one that is suggested for it.
const MAX_DISTANCE: usize = 2;

/// Reasons, and the directives (or, with `*` at the end, their beginnings) that each applies to.
const REASONS: &[(&str, &[&str])] = &[
    (
        "the log is not a file of commands; docs/durability.md tells what it is",
        &[
            "appendfilename",
            "aof-*",
            "aof_*",
            "bgsave_cpulist",
            "no-appendfsync-on-rewrite",
        ],
    ),
    (
        "there is no replication",
        &[
            "masterauth",
            "masteruser",
            "min-replicas-*",
            "min-slaves-*",
            "propagation-error-behavior",
            "repl-*",
            "replica*",
            "slave*",
        ],
    ),
    ("there is no cluster mode", &["cluster-*"]),
    (
        "a service manager that wants to be told is told (NOTIFY_SOCKET)",
        &["supervised"],
    ),
    ("there is no TLS", &["tls-*"]),
    (
        "there are no users; requirepass sets the password of all clients",
        &["acl*", "user"],
    ),
    ("commands cannot be renamed", &["rename-command"]),
    (
        "there are no modules",
        &["enable-module-command", "loadmodule"],
    ),
    (
        "there are no scripts",
        &["busy-reply-threshold", "lua-time-limit"],
    ),
    (
        "there are only strings",
        &[
            "hash-max-*",
            "hll-*",
            "list-*",
            "set-max-*",
            "stream-*",
            "zset-*",
        ],
    ),
    (
        "the memory allocator needs no such help",
        &["active-defrag-*", "activedefrag", "jemalloc-bg-thread"],
    ),
    (
        "large values are always freed in the background",
        &["lazyfree-*"],
    ),
    (
        "keys expire exactly when their time has come, and tables grow step by step",
        &["active-expire-effort", "activerehashing", "dynamic-hz"],
    ),
    (
        "all threads serve clients; see threads",
        &["io-threads*", "bio_cpulist", "server_cpulist"],
    ),
    (
        "there is nothing for it to switch",
        &[
            "bind-source-addr",
            "crash-*",
            "disable-thp",
            "enable-protected-configs",
            "ignore-warnings",
            "latency-tracking*",
            "oom-score-adj*",
            "proc-title-template",
            "sanitize-dump-payload",
            "sentinel",
            "set-proc-title",
            "shutdown-*",
            "socket-mark-id",
            "syslog-*",
        ],
    ),
];

/// Why a name is no setting, and what may have been meant.
pub(super) fn explain(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    let covers = |pattern: &&str| match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == **pattern,
    };
    let reason = REASONS
        .iter()
        .find(|(_, patterns)| patterns.iter().any(covers));
    if let Some((reason, _)) = reason {
        return format!("this directive of redis-server has no meaning here: {reason}");
    }
    match closest(&name) {
        Some(row) => format!("unknown directive; did you mean '{}'?", row.name),
        None => "unknown directive; ferrite-server --help lists all of them".into(),
    }
}

/// The setting whose name a misspelled one comes close to.
pub(super) fn closest(name: &str) -> Option<&'static Row> {
    let name = name.to_ascii_lowercase().replace('_', "-");
    let distance = |row: &Row| strsim::damerau_levenshtein(&name, row.name);
    TABLE
        .iter()
        .map(|row| (distance(row), row))
        // Of a short name, two letters are too much of it.
        .filter(|(distance, row)| *distance <= MAX_DISTANCE && distance * 3 <= row.name.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, row)| row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_setting_of_ours_is_called_meaningless() {
        for row in TABLE {
            let covering: Vec<&str> = REASONS
                .iter()
                .flat_map(|(_, patterns)| patterns.iter().copied())
                .filter(|pattern| match pattern.strip_suffix('*') {
                    Some(beginning) => row.name.starts_with(beginning),
                    None => row.name == *pattern,
                })
                .collect();
            assert!(covering.is_empty(), "{}: {covering:?}", row.name);
        }
    }

    #[test]
    fn directives_of_redis_are_told_from_misspelled_ones() {
        for (name, text) in [
            (
                "appendfilename",
                "this directive of redis-server has no meaning here: the log is not a file of commands; docs/durability.md tells what it is",
            ),
            (
                "ReplicaOf",
                "this directive of redis-server has no meaning here: there is no replication",
            ),
            (
                "lazyfree-lazy-eviction",
                "this directive of redis-server has no meaning here: large values are always freed in the background",
            ),
            (
                "io-threads-do-reads",
                "this directive of redis-server has no meaning here: all threads serve clients; see threads",
            ),
            ("prot", "unknown directive; did you mean 'port'?"),
            ("PORTS", "unknown directive; did you mean 'port'?"),
            ("max_memory", "unknown directive; did you mean 'maxmemory'?"),
            (
                "slowlog-max-length",
                "unknown directive; ferrite-server --help lists all of them",
            ),
            (
                "tcp-keep-alive",
                "unknown directive; did you mean 'tcp-keepalive'?",
            ),
            (
                "ip",
                "unknown directive; ferrite-server --help lists all of them",
            ),
            (
                "",
                "unknown directive; ferrite-server --help lists all of them",
            ),
        ] {
            assert_eq!(explain(name), text, "{name}");
        }
    }
}
