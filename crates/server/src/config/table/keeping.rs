//! Settings about data in memory and on the disk.

use super::{BASE, INT_MAX, Kind, Row, Section, Setting, Whole};
use crate::config::policy::POLICY_NAMES;

/// See the module.
pub(super) const KEEPING: &[Row] = &[
    Row {
        setting: Setting::Databases,
        name: "databases",
        kind: Kind::Integer { min: 1, max: 65535 },
        default: "16",
        section: Section::Data,
        summary: "The number of databases that SELECT can choose from.",
        ..BASE
    },
    Row {
        setting: Setting::MaxMemory,
        name: "maxmemory",
        also: None,
        short: Some('m'),
        kind: Kind::MemoryOrShare(Whole::Machine),
        default: "80%",
        mutable: true,
        section: Section::Data,
        summary: "The memory that the process may take, in bytes or as a share such as 80% of what it may use of \
                  this machine; 0 is no limit. The short flag counts in megabytes.",
    },
    Row {
        setting: Setting::MaxMemoryPolicy,
        name: "maxmemory-policy",
        kind: Kind::Choice(&POLICY_NAMES),
        default: "offload",
        mutable: true,
        section: Section::Data,
        summary: "What happens at the limit of memory: offload leaves values that were not used lately in the log \
                  alone (docs/offload.md), noeviction refuses writes, the others evict keys, of all or \
                  of those with an expiry. Without a log it is noeviction while nothing else is said. See docs/eviction.md.",
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
        setting: Setting::HashMaxListpackEntries,
        name: "hash-max-listpack-entries",
        also: Some("hash-max-ziplist-entries"),
        kind: Kind::Integer {
            min: 0,
            max: i64::MAX,
        },
        default: "512",
        mutable: true,
        section: Section::Data,
        summary: "The fields beyond which OBJECT ENCODING calls a hash hashtable. \
                  How a hash is stored does not depend on it.",
        ..BASE
    },
    Row {
        setting: Setting::HashMaxListpackValue,
        name: "hash-max-listpack-value",
        also: Some("hash-max-ziplist-value"),
        kind: Kind::Memory {
            min: 0,
            max: i64::MAX,
        },
        default: "64",
        mutable: true,
        section: Section::Data,
        summary: "The bytes of a field or a value beyond which OBJECT ENCODING calls a hash hashtable. \
                  How a hash is stored does not depend on it.",
        ..BASE
    },
    Row {
        setting: Setting::HllSparseMaxBytes,
        name: "hll-sparse-max-bytes",
        kind: Kind::Memory {
            min: 0,
            max: i64::MAX,
        },
        default: "3000",
        mutable: true,
        section: Section::Data,
        summary: "The bytes beyond which PFADD and PFMERGE write a HyperLogLog in the dense form, which has \
                  12304 bytes.",
        ..BASE
    },
    Row {
        setting: Setting::ListMaxListpackSize,
        name: "list-max-listpack-size",
        also: Some("list-max-ziplist-size"),
        kind: Kind::Integer {
            min: i32::MIN as i64,
            max: i32::MAX as i64,
        },
        default: "-2",
        mutable: true,
        section: Section::Data,
        summary: "The elements up to which OBJECT ENCODING calls a list listpack; or the bytes: -1 is 4 KiB, \
                  -2 is 8 KiB, up to -5 for 64 KiB. How a list is stored does not depend on it.",
        ..BASE
    },
    Row {
        setting: Setting::StreamNodeMaxEntries,
        name: "stream-node-max-entries",
        kind: Kind::Integer {
            min: 0,
            max: i64::MAX,
        },
        default: "100",
        mutable: true,
        section: Section::Data,
        summary: "The entries that XADD and XTRIM remove together where they trim with ~; 0 is no limit. \
                  How a stream is stored does not depend on it.",
        ..BASE
    },
    Row {
        setting: Setting::StreamNodeMaxBytes,
        name: "stream-node-max-bytes",
        kind: Kind::Memory {
            min: 0,
            max: INT_MAX,
        },
        default: "4096",
        mutable: true,
        section: Section::Data,
        summary: "The bytes of entries that XADD and XTRIM remove together where they trim with ~, about; \
                  0 is no limit. How a stream is stored does not depend on it.",
        ..BASE
    },
    Row {
        setting: Setting::SetMaxIntsetEntries,
        name: "set-max-intset-entries",
        kind: Kind::Integer {
            min: 0,
            max: i64::MAX,
        },
        default: "512",
        mutable: true,
        section: Section::Data,
        summary: "The members up to which OBJECT ENCODING calls a set of integers intset. \
                  How a set is stored does not depend on it.",
        ..BASE
    },
    Row {
        setting: Setting::SetMaxListpackEntries,
        name: "set-max-listpack-entries",
        kind: Kind::Integer {
            min: 0,
            max: i64::MAX,
        },
        default: "128",
        mutable: true,
        section: Section::Data,
        summary: "The members up to which OBJECT ENCODING calls any other set listpack. \
                  How a set is stored does not depend on it.",
        ..BASE
    },
    Row {
        setting: Setting::SetMaxListpackValue,
        name: "set-max-listpack-value",
        kind: Kind::Integer {
            min: 0,
            max: i64::MAX,
        },
        default: "64",
        mutable: true,
        section: Section::Data,
        summary: "The bytes of a member up to which OBJECT ENCODING calls a set listpack. \
                  How a set is stored does not depend on it.",
        ..BASE
    },
    Row {
        setting: Setting::ZsetMaxListpackEntries,
        name: "zset-max-listpack-entries",
        also: Some("zset-max-ziplist-entries"),
        kind: Kind::Integer {
            min: 0,
            max: i64::MAX,
        },
        default: "128",
        mutable: true,
        section: Section::Data,
        summary: "The members beyond which OBJECT ENCODING calls a sorted set skiplist. \
                  How a sorted set is stored does not depend on it.",
        ..BASE
    },
    Row {
        setting: Setting::ZsetMaxListpackValue,
        name: "zset-max-listpack-value",
        also: Some("zset-max-ziplist-value"),
        kind: Kind::Memory {
            min: 0,
            max: i64::MAX,
        },
        default: "64",
        mutable: true,
        section: Section::Data,
        summary: "The bytes of a member beyond which OBJECT ENCODING calls a sorted set skiplist. \
                  How a sorted set is stored does not depend on it.",
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
        summary: "The directory of the log, in `dir`. Where redis-server has its append-only file there, the log is in a directory \
                  beside it whose name ends in `.ferrite`.",
        ..BASE
    },
    Row {
        setting: Setting::AofLoadTruncated,
        name: "aof-load-truncated",
        kind: Kind::Flag,
        default: "yes",
        mutable: true,
        section: Section::Data,
        summary: "Whether an append-only file of redis-server that ends in the middle of a command is taken over without that \
                  command. An incomplete record at the end of the log is always cut off.",
        ..BASE
    },
    Row {
        setting: Setting::BackupDir,
        name: "backup-dir",
        kind: Kind::Path,
        default: "backups",
        section: Section::Data,
        summary: "The directory that BACKUP makes backups in, each in a directory of its name. On the file system of the log \
                  a backup is made of links; empty refuses BACKUP.",
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
        setting: Setting::LogLazyLoadSize,
        name: "log-lazy-load-size",
        kind: Kind::Memory {
            min: 0,
            max: i64::MAX,
        },
        default: "128mb",
        section: Section::Data,
        summary: "With maxmemory-policy offload, a log of at least so many bytes is loaded without its values: the server \
                  serves, and they come back in the background; 0 is never.",
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
        setting: Setting::LogBlobSize,
        name: "log-blob-size",
        kind: Kind::Memory {
            min: 16 << 10,
            max: 1 << 40,
        },
        default: "256kb",
        mutable: true,
        section: Section::Data,
        summary: "The length from which on a value that SET brings goes to a file of its own in the log's directory \
                  while it arrives, and GET sends it from there, so that neither takes memory.",
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
                  those before it, and without any, snapshots are only written when asked for. Where nothing is said \
                  there are none with the log, and without it those of redis-server: 3600 1 300 100 60 10000.",
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
        summary: "Writes a snapshot to the disk while it is made, past the page cache where that can be done, not all of it at its end.",
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
];
