//! Every setting, once: its name, what it takes, its default and what it is for.
//!
//! Flags, the configuration file, CONFIG GET, SET and REWRITE, `--help` and docs/config.md derive from this table, so
//! a setting cannot be known to one of them and not to another. It holds only what this server honours: a row is added
//! together with the code that obeys it.
//!
//! Invariant: `TABLE[i].setting as usize == i`, checked when this is compiled.

/// The name by which the server's own code asks for a setting.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(usize)]
pub(crate) enum Setting {
    Bind,
    Port,
    TcpBacklog,
    UnixSocket,
    UnixSocketPerm,
    Timeout,
    TcpKeepalive,
    ProtectedMode,
    RequirePass,
    EnableDebugCommand,
    MaxClients,
    ClientOutputBufferLimit,
    ClientQueryBufferLimit,
    TrackingTableMaxKeys,
    ProtoMaxBulkLen,
    Threads,
    Io,
    Shards,
    Databases,
    MaxMemory,
    MaxMemoryPolicy,
    MaxMemorySamples,
    MaxMemoryEvictionTenacity,
    LfuLogFactor,
    LfuDecayTime,
    MaxMemoryClients,
    Dir,
    AppendOnly,
    AppendFsync,
    AppendDirName,
    AutoAofRewritePercentage,
    AutoAofRewriteMinSize,
    LogSegmentSize,
    Save,
    DbFilename,
    RdbCompression,
    RdbChecksum,
    StopWritesOnBgsaveError,
    RdbSaveIncrementalFsync,
    RdbDelSyncFiles,
    RdbKeySaveDelay,
    KeyLoadDelay,
    Daemonize,
    PidFile,
    LogLevel,
    LogFile,
    AlwaysShowLogo,
    Hz,
    HttpPort,
    HttpBind,
    SlowlogLogSlowerThan,
    SlowlogMaxLen,
    LatencyMonitorThreshold,
    NotifyKeyspaceEvents,
}

impl Setting {
    /// What the table says about it.
    pub(crate) fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }
}

/// What the table says about a setting.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) setting: Setting,
    /// In lower case: the directive, the flag without its dashes, and the parameter of CONFIG GET.
    pub(crate) name: &'static str,
    /// The letter of its short flag.
    pub(crate) short: Option<char>,
    pub(crate) kind: Kind,
    /// As it would be written in a file, without quotes.
    pub(crate) default: &'static str,
    /// Whether CONFIG SET may change it while the server runs.
    pub(crate) mutable: bool,
    pub(crate) section: Section,
    /// One or two sentences for `--help` and the documentation; units included.
    pub(crate) summary: &'static str,
}

impl Row {
    /// Whether its value is shown to nobody who doesn't ask for it.
    pub(crate) fn is_secret(&self) -> bool {
        matches!(self.kind, Kind::Secret)
    }

    /// The row of a name in any case.
    pub(crate) fn find(name: &[u8]) -> Option<&'static Row> {
        TABLE
            .iter()
            .find(|row| row.name.as_bytes().eq_ignore_ascii_case(name))
    }
}

/// What a setting takes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// `yes` or `no`.
    Flag,
    Integer {
        min: i64,
        max: i64,
    },
    /// A power of two, or 0 for a choice of the server's own.
    PowerOfTwo {
        max: i64,
    },
    /// Permissions of a file, from 0 to `max`, in octal digits.
    Octal {
        max: i64,
    },
    /// Bytes, with an optional unit.
    Memory {
        min: i64,
        max: i64,
    },
    /// Bytes, with an optional unit, or a percentage.
    MemoryOrShare(Whole),
    /// One of several words, held as its index.
    Choice(&'static [&'static str]),
    /// Text that no error message repeats.
    Secret,
    /// The path of a file that need not exist; empty for none.
    Path,
    /// The path of a directory that exists.
    Directory,
    /// Words that name addresses to listen on.
    Addresses {
        most: usize,
    },
    /// Letters that name classes of keyspace events, held as their bits.
    Events,
    /// Limits for classes of clients.
    OutputLimits,
    /// The name of a file in `dir`, without a path; empty for none.
    FileName,
    /// Points at which a snapshot is due: any number of pairs of seconds and changes.
    SavePoints,
}

/// What a percentage is a part of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Whole {
    /// The memory of the machine, or what the process may use of it. Becomes bytes when it is read.
    Machine,
    /// `maxmemory`. Held as a negative number, as it changes with that.
    MaxMemory,
}

impl Kind {
    /// Whether a value may consist of any number of words. All others are exactly one.
    pub(crate) fn takes_many_words(self) -> bool {
        matches!(
            self,
            Kind::Addresses { .. } | Kind::OutputLimits | Kind::SavePoints
        )
    }
}

/// The chapter of `--help` and of the documentation that a setting belongs to, in their order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Section {
    Network,
    Access,
    Clients,
    Threads,
    Data,
    Snapshots,
    Process,
    Monitoring,
}

impl Section {
    pub(crate) const ALL: &[Section] = &[
        Section::Network,
        Section::Access,
        Section::Clients,
        Section::Threads,
        Section::Data,
        Section::Snapshots,
        Section::Process,
        Section::Monitoring,
    ];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Section::Network => "Network",
            Section::Access => "Access",
            Section::Clients => "Clients",
            Section::Threads => "Threads",
            Section::Data => "Data and memory",
            Section::Snapshots => "Snapshots",
            Section::Process => "Process",
            Section::Monitoring => "Monitoring",
        }
    }
}

/// The largest of the numbers that Redis keeps in an `int`.
const INT_MAX: i64 = i32::MAX as i64;
const MIB: i64 = 1 << 20;
const GIB: i64 = 1 << 30;

/// Unused settings of a row that is no short flag and may not change while the server runs.
const BASE: Row = Row {
    setting: Setting::Bind,
    name: "",
    short: None,
    kind: Kind::Flag,
    default: "",
    mutable: false,
    section: Section::Network,
    summary: "",
};

/// See the module.
pub(crate) static TABLE: &[Row] = &[
    Row {
        setting: Setting::Bind,
        name: "bind",
        kind: Kind::Addresses { most: 16 },
        default: "127.0.0.1 -::1",
        section: Section::Network,
        summary: "The addresses to listen on; * is every IPv4 address and ::* every IPv6 one. \
                  An address behind a dash is left out where the machine does not have it.",
        ..BASE
    },
    Row {
        setting: Setting::Port,
        name: "port",
        short: Some('p'),
        kind: Kind::Integer { min: 0, max: 65535 },
        default: "6379",
        section: Section::Network,
        summary: "The TCP port to listen on; 0 turns TCP off.",
        ..BASE
    },
    Row {
        setting: Setting::TcpBacklog,
        name: "tcp-backlog",
        kind: Kind::Integer {
            min: 0,
            max: INT_MAX,
        },
        default: "511",
        section: Section::Network,
        summary: "How many connections may wait to be accepted; the kernel may lower it.",
        ..BASE
    },
    Row {
        setting: Setting::UnixSocket,
        name: "unixsocket",
        kind: Kind::Path,
        section: Section::Network,
        summary: "The path of a unix socket to listen on as well; empty for none.",
        ..BASE
    },
    Row {
        setting: Setting::UnixSocketPerm,
        name: "unixsocketperm",
        kind: Kind::Octal { max: 0o777 },
        default: "0",
        section: Section::Network,
        summary: "The permissions of the unix socket, in octal; 0 leaves them to the umask.",
        ..BASE
    },
    Row {
        setting: Setting::Timeout,
        name: "timeout",
        kind: Kind::Integer {
            min: 0,
            max: INT_MAX,
        },
        default: "0",
        mutable: true,
        section: Section::Network,
        summary: "Seconds without a request after which a client is disconnected; 0 is never.",
        ..BASE
    },
    Row {
        setting: Setting::TcpKeepalive,
        name: "tcp-keepalive",
        kind: Kind::Integer {
            min: 0,
            max: INT_MAX,
        },
        default: "300",
        mutable: true,
        section: Section::Network,
        summary: "Seconds between probes that find out whether a silent client is still there; \
                  0 sends none. A change applies to connections made afterwards.",
        ..BASE
    },
    Row {
        setting: Setting::ProtectedMode,
        name: "protected-mode",
        default: "yes",
        mutable: true,
        section: Section::Access,
        summary: "Refuses clients from other machines as long as no password is set.",
        ..BASE
    },
    Row {
        setting: Setting::RequirePass,
        name: "requirepass",
        kind: Kind::Secret,
        mutable: true,
        section: Section::Access,
        summary: "The password that a client has to send before anything else; empty for none.",
        ..BASE
    },
    Row {
        setting: Setting::EnableDebugCommand,
        name: "enable-debug-command",
        kind: Kind::Choice(&["no", "yes", "local"]),
        default: "local",
        section: Section::Access,
        summary: "Who may use DEBUG: nobody, everybody, or clients on this machine.",
        ..BASE
    },
    Row {
        setting: Setting::MaxClients,
        name: "maxclients",
        kind: Kind::Integer {
            min: 1,
            max: u32::MAX as i64,
        },
        default: "10000",
        mutable: true,
        section: Section::Clients,
        summary: "The most clients at the same time; further ones are refused.",
        ..BASE
    },
    Row {
        setting: Setting::ClientOutputBufferLimit,
        name: "client-output-buffer-limit",
        kind: Kind::OutputLimits,
        default: "normal 0 0 0 slave 256mb 64mb 60 pubsub 32mb 8mb 60",
        mutable: true,
        section: Section::Clients,
        summary: "How many bytes of replies may wait for a client: it is disconnected at the \
                  hard limit, or once it was beyond the soft limit for so many seconds; 0 is no \
                  limit. Classes that are not named keep their limits.",
        ..BASE
    },
    Row {
        setting: Setting::ClientQueryBufferLimit,
        name: "client-query-buffer-limit",
        kind: Kind::Memory {
            min: MIB,
            max: i64::MAX,
        },
        default: "1gb",
        mutable: true,
        section: Section::Clients,
        summary: "How many bytes of an unfinished request are kept before its client is \
                  disconnected.",
        ..BASE
    },
    Row {
        setting: Setting::TrackingTableMaxKeys,
        name: "tracking-table-max-keys",
        kind: Kind::Integer {
            min: 0,
            max: i64::MAX,
        },
        default: "1000000",
        mutable: true,
        section: Section::Clients,
        summary: "How many keys are remembered for clients that keep copies of them (CLIENT TRACKING): beyond it, clients \
                  are told to drop some; 0 is no limit.",
        ..BASE
    },
    Row {
        setting: Setting::ProtoMaxBulkLen,
        name: "proto-max-bulk-len",
        kind: Kind::Memory {
            min: MIB,
            max: 64 * GIB,
        },
        default: "512mb",
        mutable: true,
        section: Section::Clients,
        summary: "The longest argument of a request and the longest value of a key, in bytes.",
        ..BASE
    },
    Row {
        setting: Setting::Threads,
        name: "threads",
        short: Some('w'),
        kind: Kind::Integer { min: 0, max: 1024 },
        default: "0",
        section: Section::Threads,
        summary: "The worker threads that serve clients; 0 takes one for each CPU that the \
                  process may use.",
        ..BASE
    },
    Row {
        setting: Setting::Io,
        name: "io",
        kind: Kind::Choice(&["auto", "epoll", "uring"]),
        default: "auto",
        section: Section::Threads,
        summary: "How workers wait for the network; auto takes what measured best. Where uring is \
                  not allowed, as in many containers, epoll takes its place.",
        ..BASE
    },
    Row {
        setting: Setting::Shards,
        name: "shards",
        kind: Kind::PowerOfTwo {
            max: keyspace::MAX_SHARDS as i64,
        },
        default: "0",
        section: Section::Threads,
        summary: "The separately locked parts of each database; 0 chooses by the number of \
                  threads.",
        ..BASE
    },
    Row {
        setting: Setting::Databases,
        name: "databases",
        kind: Kind::Integer { min: 1, max: 65536 },
        default: "16",
        section: Section::Data,
        summary: "The number of databases that SELECT can choose from.",
        ..BASE
    },
    Row {
        setting: Setting::MaxMemory,
        name: "maxmemory",
        short: Some('m'),
        kind: Kind::MemoryOrShare(Whole::Machine),
        default: "0",
        mutable: true,
        section: Section::Data,
        summary: "The memory that the process may take, in bytes or as a share such as 80% of what it may use of \
                  this machine; 0 is no limit. The short flag counts in megabytes.",
    },
    Row {
        setting: Setting::MaxMemoryPolicy,
        name: "maxmemory-policy",
        kind: Kind::Choice(&[
            "volatile-lru",
            "volatile-lfu",
            "volatile-random",
            "volatile-ttl",
            "allkeys-lru",
            "allkeys-lfu",
            "allkeys-random",
            "noeviction",
        ]),
        default: "noeviction",
        mutable: true,
        section: Section::Data,
        summary: "What happens at the limit of memory: noeviction refuses writes, the others evict keys, of all or \
                  of those with an expiry. See docs/eviction.md.",
        ..BASE
    },
    Row {
        setting: Setting::MaxMemorySamples,
        name: "maxmemory-samples",
        kind: Kind::Integer { min: 1, max: 64 },
        default: "5",
        mutable: true,
        section: Section::Data,
        summary: "How many keys volatile-ttl compares to find the one that expires first.",
        ..BASE
    },
    Row {
        setting: Setting::MaxMemoryEvictionTenacity,
        name: "maxmemory-eviction-tenacity",
        kind: Kind::Integer { min: 0, max: 100 },
        default: "10",
        mutable: true,
        section: Section::Data,
        summary: "How long a command evicts before it lets others go first: 500 us for 10, longer for more, \
                  without end for 100.",
        ..BASE
    },
    Row {
        setting: Setting::LfuLogFactor,
        name: "lfu-log-factor",
        kind: Kind::Integer {
            min: 0,
            max: i32::MAX as i64,
        },
        default: "10",
        mutable: true,
        section: Section::Data,
        summary: "How slowly the count of uses grows that OBJECT FREQ tells.",
        ..BASE
    },
    Row {
        setting: Setting::LfuDecayTime,
        name: "lfu-decay-time",
        kind: Kind::Integer {
            min: 0,
            max: i32::MAX as i64,
        },
        default: "1",
        mutable: true,
        section: Section::Data,
        summary: "The minutes without use after which that count is less by one; 0 is never.",
        ..BASE
    },
    Row {
        setting: Setting::MaxMemoryClients,
        name: "maxmemory-clients",
        kind: Kind::MemoryOrShare(Whole::MaxMemory),
        default: "0",
        mutable: true,
        section: Section::Data,
        summary: "The memory that the buffers of all clients may take, in bytes or as a share such as 5% of \
                  maxmemory, before the largest are disconnected; 0 is an eighth of maxmemory.",
        ..BASE
    },
    Row {
        setting: Setting::Dir,
        name: "dir",
        short: Some('d'),
        kind: Kind::Directory,
        default: "./",
        section: Section::Data,
        summary: "The directory to work in; relative paths of other settings start there.",
        ..BASE
    },
    Row {
        setting: Setting::AppendOnly,
        name: "appendonly",
        kind: Kind::Flag,
        default: "yes",
        mutable: true,
        section: Section::Data,
        summary: "Whether writes are kept on disk, in a log that the server starts from.",
        ..BASE
    },
    Row {
        setting: Setting::AppendFsync,
        name: "appendfsync",
        kind: Kind::Choice(&["always", "everysec", "no"]),
        default: "everysec",
        mutable: true,
        section: Section::Data,
        summary: "When the log is made durable: before each reply, once a second, or when the system likes to.",
        ..BASE
    },
    Row {
        setting: Setting::AppendDirName,
        name: "appenddirname",
        kind: Kind::Path,
        default: "appendonlydir",
        section: Section::Data,
        summary: "The directory of the log, in `dir`.",
        ..BASE
    },
    Row {
        setting: Setting::AutoAofRewritePercentage,
        name: "auto-aof-rewrite-percentage",
        kind: Kind::Integer {
            min: 0,
            max: INT_MAX,
        },
        default: "100",
        mutable: true,
        section: Section::Data,
        summary: "Accepted, and changes nothing: the log is kept small all the time, a segment after the other.",
        ..BASE
    },
    Row {
        setting: Setting::AutoAofRewriteMinSize,
        name: "auto-aof-rewrite-min-size",
        kind: Kind::Memory {
            min: 0,
            max: i64::MAX,
        },
        default: "67108864",
        mutable: true,
        section: Section::Data,
        summary: "Accepted, and changes nothing, as `auto-aof-rewrite-percentage`.",
        ..BASE
    },
    Row {
        setting: Setting::LogSegmentSize,
        name: "log-segment-size",
        kind: Kind::Memory {
            min: 2 << 20,
            max: 1 << 40,
        },
        default: "64mb",
        section: Section::Data,
        summary: "The size of the files that the log consists of. What is deleted or written over gives its space \
                  back a file at a time.",
        ..BASE
    },
    Row {
        setting: Setting::Save,
        name: "save",
        kind: Kind::SavePoints,
        mutable: true,
        section: Section::Snapshots,
        summary: "When to write a snapshot: after so many seconds if there were at least so many \
                  changes. Several pairs may be given, in one line or in several; \"\" forgets \
                  those before it, and without any, snapshots are only written when asked for.",
        ..BASE
    },
    Row {
        setting: Setting::DbFilename,
        name: "dbfilename",
        kind: Kind::FileName,
        default: "dump.rdb",
        section: Section::Snapshots,
        summary: "The file of the snapshot, in dir. It is loaded at the start if it is there.",
        ..BASE
    },
    Row {
        setting: Setting::RdbCompression,
        name: "rdbcompression",
        default: "yes",
        mutable: true,
        section: Section::Snapshots,
        summary: "Compresses strings of more than 20 bytes in snapshots.",
        ..BASE
    },
    Row {
        setting: Setting::RdbChecksum,
        name: "rdbchecksum",
        default: "yes",
        section: Section::Snapshots,
        summary: "Ends snapshots with a checksum, and compares it when one is loaded.",
        ..BASE
    },
    Row {
        setting: Setting::StopWritesOnBgsaveError,
        name: "stop-writes-on-bgsave-error",
        default: "yes",
        mutable: true,
        section: Section::Snapshots,
        summary: "Refuses writes as long as there are save points and the last snapshot could not \
                  be written.",
        ..BASE
    },
    Row {
        setting: Setting::RdbSaveIncrementalFsync,
        name: "rdb-save-incremental-fsync",
        default: "yes",
        mutable: true,
        section: Section::Snapshots,
        summary: "Syncs a snapshot to disk every 4 MB while it is written, not all of it at its end.",
        ..BASE
    },
    Row {
        setting: Setting::RdbDelSyncFiles,
        name: "rdb-del-sync-files",
        default: "no",
        mutable: true,
        section: Section::Snapshots,
        summary: "Removes snapshots that were only made for replicas. There are no replicas yet, so \
                  there are none of these.",
        ..BASE
    },
    Row {
        setting: Setting::RdbKeySaveDelay,
        name: "rdb-key-save-delay",
        kind: Kind::Integer {
            min: 0,
            max: INT_MAX,
        },
        default: "0",
        mutable: true,
        section: Section::Snapshots,
        summary: "Microseconds to wait at each key that a snapshot in the background writes. For tests.",
        ..BASE
    },
    Row {
        setting: Setting::KeyLoadDelay,
        name: "key-load-delay",
        kind: Kind::Integer {
            min: 0,
            max: INT_MAX,
        },
        default: "0",
        mutable: true,
        section: Section::Snapshots,
        summary: "Microseconds to wait at each key that is loaded from a snapshot. For tests.",
        ..BASE
    },
    Row {
        setting: Setting::Daemonize,
        name: "daemonize",
        default: "no",
        section: Section::Process,
        summary: "Goes on in the background once the server has started.",
        ..BASE
    },
    Row {
        setting: Setting::PidFile,
        name: "pidfile",
        kind: Kind::Path,
        section: Section::Process,
        summary: "The file that holds the number of the server's process while it runs; empty \
                  for none.",
        ..BASE
    },
    Row {
        setting: Setting::LogLevel,
        name: "loglevel",
        kind: Kind::Choice(&["debug", "verbose", "notice", "warning"]),
        default: "notice",
        mutable: true,
        section: Section::Process,
        summary: "The least important messages that are still logged.",
        ..BASE
    },
    Row {
        setting: Setting::LogFile,
        name: "logfile",
        kind: Kind::Path,
        section: Section::Process,
        summary: "The file to append the log to; empty for the standard output.",
        ..BASE
    },
    Row {
        setting: Setting::AlwaysShowLogo,
        name: "always-show-logo",
        default: "no",
        section: Section::Process,
        summary: "Shows the logo at the start though the log goes to no terminal.",
        ..BASE
    },
    Row {
        setting: Setting::Hz,
        name: "hz",
        kind: Kind::Integer { min: 1, max: 500 },
        default: "10",
        mutable: true,
        section: Section::Process,
        summary: "How often per second each worker does its housekeeping.",
        ..BASE
    },
    Row {
        setting: Setting::HttpPort,
        name: "http-port",
        kind: Kind::Integer { min: 0, max: 65535 },
        default: "0",
        section: Section::Monitoring,
        summary: "The TCP port of the dashboard, of /metrics for Prometheus, and of /healthz and /readyz; 0 turns HTTP off. \
                  With requirepass, all but health wants that password.",
        ..BASE
    },
    Row {
        setting: Setting::HttpBind,
        name: "http-bind",
        kind: Kind::Addresses { most: 16 },
        default: "127.0.0.1 -::1",
        section: Section::Monitoring,
        summary: "The addresses to listen on for HTTP, as in bind.",
        ..BASE
    },
    Row {
        setting: Setting::SlowlogLogSlowerThan,
        name: "slowlog-log-slower-than",
        kind: Kind::Integer {
            min: -1,
            max: i64::MAX,
        },
        default: "10000",
        mutable: true,
        section: Section::Monitoring,
        summary: "Microseconds from which on a command is kept in the slow log; 0 keeps every \
                  command, -1 none.",
        ..BASE
    },
    Row {
        setting: Setting::SlowlogMaxLen,
        name: "slowlog-max-len",
        kind: Kind::Integer {
            min: 0,
            max: i64::MAX,
        },
        default: "128",
        mutable: true,
        section: Section::Monitoring,
        summary: "The most commands that the slow log keeps.",
        ..BASE
    },
    Row {
        setting: Setting::LatencyMonitorThreshold,
        name: "latency-monitor-threshold",
        kind: Kind::Integer {
            min: 0,
            max: i64::MAX,
        },
        default: "0",
        mutable: true,
        section: Section::Monitoring,
        summary: "Milliseconds from which on LATENCY keeps an event; 0 turns it off.",
        ..BASE
    },
    Row {
        setting: Setting::NotifyKeyspaceEvents,
        name: "notify-keyspace-events",
        kind: Kind::Events,
        mutable: true,
        section: Section::Monitoring,
        summary: "Which changes of keys are published: K to the channel __keyspace@N__:KEY, E to the channel \
                  __keyevent@N__:EVENT, and of which class: g general, $ strings, l lists, s sets, h hashes, z sorted \
                  sets, t streams, d modules, x expired, e evicted, A all of these, n new keys, m missed keys. \
                  Empty is none.",
        ..BASE
    },
];

const _: () = {
    let mut at = 0;
    while at < TABLE.len() {
        assert!(
            TABLE[at].setting as usize == at,
            "the rows are in the order of the settings"
        );
        at += 1;
    }
    assert!(
        TABLE.len() == Setting::NotifyKeyspaceEvents as usize + 1,
        "every setting has a row"
    );
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_setting_is_at_its_index() {
        for (at, row) in TABLE.iter().enumerate() {
            assert_eq!(row.setting as usize, at, "{}", row.name);
            assert_eq!(row.setting.row().name, row.name);
        }
    }

    #[test]
    fn names_and_letters_are_unique_and_plain() {
        let mut names = HashSet::new();
        // The letters of --help and --version.
        let mut letters = HashSet::from(['h', 'v']);
        for row in TABLE {
            assert!(names.insert(row.name), "{} twice", row.name);
            assert!(
                row.name
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte == b'-'),
                "{}",
                row.name
            );
            if let Some(letter) = row.short {
                assert!(letters.insert(letter), "-{letter} twice");
                assert!(
                    !row.kind.takes_many_words(),
                    "-{letter} takes exactly one word"
                );
            }
        }
    }

    #[test]
    fn names_are_found_in_any_case() {
        for row in TABLE {
            for name in [row.name.to_owned(), row.name.to_uppercase()] {
                let found = Row::find(name.as_bytes()).expect("it is there");
                assert_eq!(found.setting, row.setting);
            }
            assert!(Row::find(&row.name.as_bytes()[1..]).is_none());
        }
        assert!(Row::find(b"").is_none());
    }

    #[test]
    fn sections_come_one_after_the_other_and_summaries_are_sentences() {
        assert!(TABLE.is_sorted_by_key(|row| row.section));
        for row in TABLE {
            assert!(Section::ALL.contains(&row.section));
            assert!(row.summary.ends_with('.'), "{}", row.name);
            assert!(!row.summary.contains("  "), "{}", row.name);
        }
    }
}
