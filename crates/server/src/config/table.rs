//! Every setting, once: its name, its values, its default and its purpose.
//!
//! Flags, the configuration file, CONFIG GET, SET and REWRITE, `--help` and docs/config.md derive from this
//! table, so each of them knows every setting. A row is added together with the code that uses it.
//!
//! Invariant: `TABLE[i].setting as usize == i`, checked when this is compiled.

mod clustering;
mod keeping;
mod running;
mod serving;

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
    BusyReplyThreshold,
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
    HashMaxListpackEntries,
    HashMaxListpackValue,
    HllSparseMaxBytes,
    ListMaxListpackSize,
    StreamNodeMaxEntries,
    StreamNodeMaxBytes,
    SetMaxIntsetEntries,
    SetMaxListpackEntries,
    SetMaxListpackValue,
    ZsetMaxListpackEntries,
    ZsetMaxListpackValue,
    MaxMemoryClients,
    Dir,
    AppendOnly,
    AppendFsync,
    AppendDirName,
    AofLoadTruncated,
    BackupDir,
    AutoAofRewritePercentage,
    AutoAofRewriteMinSize,
    LogLazyLoadSize,
    LogSegmentSize,
    LogBlobSize,
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
    HttpHosts,
    SlowlogLogSlowerThan,
    SlowlogMaxLen,
    LatencyMonitorThreshold,
    NotifyKeyspaceEvents,
    ClusterEnabled,
    ClusterMap,
    ClusterNode,
    ClusterRequireFullCoverage,
    ClusterAllowReadsWhenDown,
    ClusterAllowPubsubshardWhenDown,
    ClusterAnnounceIp,
    ClusterAnnouncePort,
    ClusterAnnounceHostname,
    ClusterPreferredEndpointType,
}

/// How many there are.
const SETTINGS: usize = Setting::ClusterPreferredEndpointType as usize + 1;

impl Setting {
    /// Its row of the table.
    pub(crate) fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }
}

/// Row of a setting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) setting: Setting,
    /// In lower case: the directive, the flag without its dashes, and the parameter of CONFIG GET.
    pub(crate) name: &'static str,
    /// An older name of the same.
    pub(crate) also: Option<&'static str>,
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
    /// Whether its value is shown only on request.
    pub(crate) fn is_secret(&self) -> bool {
        matches!(self.kind, Kind::Secret)
    }

    /// The row of a name in any case.
    pub(crate) fn find(name: &[u8]) -> Option<&'static Row> {
        TABLE.iter().find(|row| row.name_like(name).is_some())
    }

    /// Its names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.also)
    }

    /// The name of it that this is in any case.
    pub(crate) fn name_like(&self, name: &[u8]) -> Option<&'static str> {
        self.names()
            .find(|own| own.as_bytes().eq_ignore_ascii_case(name))
    }
}

/// Values of a setting.
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
    /// Names of hosts.
    Hosts {
        most: usize,
    },
    /// Letters that name classes of keyspace events, held as their bits.
    Events,
    /// Limits for classes of clients.
    OutputLimits,
    /// The name of a file in `dir`, without a path; empty for none.
    FileName,
    /// A word of an address or an id; empty for none.
    Word,
    /// Points at which a snapshot is due: any number of pairs of seconds and changes.
    SavePoints,
}

/// Whole of a percentage.
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
            Kind::Addresses { .. } | Kind::Hosts { .. } | Kind::OutputLimits | Kind::SavePoints
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
    Cluster,
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
        Section::Cluster,
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
            Section::Cluster => "Cluster",
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
    also: None,
    short: None,
    kind: Kind::Flag,
    default: "",
    mutable: false,
    section: Section::Network,
    summary: "",
};

/// See the module. A part of it is a file of its own.
pub(crate) static TABLE: &[Row] = &joined([
    serving::SERVING,
    keeping::KEEPING,
    running::RUNNING,
    clustering::CLUSTERING,
]);

/// The parts of the table one behind the other.
const fn joined(parts: [&[Row]; 4]) -> [Row; SETTINGS] {
    let mut rows = [BASE; SETTINGS];
    let (mut part, mut at) = (0, 0);
    while part < parts.len() {
        let mut row = 0;
        while row < parts[part].len() {
            rows[at] = parts[part][row];
            row += 1;
            at += 1;
        }
        part += 1;
    }
    assert!(at == SETTINGS, "every setting has a row");
    rows
}

const _: () = {
    let mut at = 0;
    while at < TABLE.len() {
        assert!(
            TABLE[at].setting as usize == at,
            "the rows are in the order of the settings"
        );
        at += 1;
    }
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
            // zset-max-listpack-value ends like set-max-listpack-value.
            let rest = &row.name.as_bytes()[1..];
            assert!(Row::find(rest).is_none_or(|other| other.name.as_bytes() == rest));
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
