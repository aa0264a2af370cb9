//! Keys of any type, and databases as such.
//!
//! The table is here; the handlers follow its order: [`existence`], [`expiry`], [`iteration`], [`transfer`],
//! [`migrate`], [`object`], [`database`]. SELECT is not here: it says something about a connection.
//!
//! What a command does to the access clock and to the counts of hits and misses is what Redis does: a look
//! that reports on a key (TYPE, TTL, OBJECT) counts but is no access, a look before a change is an access but
//! does not count.

mod database;
mod exchange;
mod existence;
mod expiry;
mod iteration;
mod migrate;
mod object;
mod payload;
mod transfer;

pub(crate) use existence::type_name;

use super::spec::{FIRST_VALUE, ItemsNeeded, LargeUse, NO_VALUES};
use super::{Arg, ArgKind, Group, KeySpec, Makes, Spec, access, category, flag::*};

/// The key of the first key rule.
const KEY: Arg = Arg::key("key");

/// When EXPIRE and its kin do something.
const CONDITION: Arg = Arg::one_of(
    "condition",
    &[
        Arg::word("nx", "NX"),
        Arg::word("xx", "XX"),
        Arg::word("gt", "GT"),
        Arg::word("lt", "LT"),
    ],
)
.since("7.0.0")
.optional();

/// How FLUSHDB and FLUSHALL free memory.
const FLUSH_MODE: Arg = Arg::one_of(
    "async",
    &[
        Arg::word("async", "ASYNC").since("4.0.0"),
        Arg::word("sync", "SYNC").since("6.2.0"),
    ],
)
.optional();

/// Arguments of RESTORE.
const RESTORE_ARGS: &[Arg] = &[
    KEY,
    Arg::of("ttl", ArgKind::Integer),
    Arg::of("serialized-value", ArgKind::String),
    Arg::word("replace", "REPLACE").since("3.0.0").optional(),
    Arg::word("absttl", "ABSTTL").since("5.0.0").optional(),
    Arg::of("seconds", ArgKind::Integer)
        .token("IDLETIME")
        .since("5.0.0")
        .optional(),
    Arg::of("frequency", ArgKind::Integer)
        .token("FREQ")
        .since("5.0.0")
        .optional(),
];

/// A row of RESTORE and of its other name.
const RESTORES: Spec = Spec {
    arity: -4,
    flags: WRITE | DENYOOM,
    keys: &[KeySpec::one(1, access::OW | access::UPDATE)],
    categories: category::DANGEROUS,
    complexity: "O(N), N being the bytes of the value",
    args: RESTORE_ARGS,
    history: &[
        ("3.0.0", "Takes `REPLACE`."),
        ("5.0.0", "Takes `ABSTTL`."),
        ("5.0.0", "Takes `IDLETIME` and `FREQ`."),
    ],
    needs: NO_VALUES,
    handler: transfer::restore,
    makes: Makes::Value,
    ..Spec::BASE
};

/// History of EXPIRE and its relatives.
const CONDITION_HISTORY: &[(&str, &str)] = &[("7.0.0", "Takes `NX`, `XX`, `GT` and `LT`.")];

/// History of FLUSHDB and FLUSHALL.
const FLUSH_HISTORY: &[(&str, &str)] = &[("4.0.0", "Takes `ASYNC`."), ("6.2.0", "Takes `SYNC`.")];

/// History of TTL and PTTL.
const TTL_HISTORY: &[(&str, &str)] = &[("2.8.0", "Answers -2 if there is no such key.")];

/// Tips of commands that count over all of their keys.
const COUNTS_ALL_KEYS: &[&str] = &["request_policy:multi_shard", "response_policy:agg_sum"];

/// The flags of commands that tell something about one key.
const REPORTS: u32 = READONLY | FAST;

/// A row of the commands that give a key an expiry.
const EXPIRES: Spec = Spec {
    arity: -3,
    flags: WRITE | FAST,
    keys: &[KeySpec::one(1, access::RW | access::UPDATE)],
    history: CONDITION_HISTORY,
    makes: Makes::Little,
    ..Spec::BASE
};

/// A row of the commands that tell when a key expires.
const LIFETIME: Spec = Spec {
    arity: 2,
    flags: REPORTS,
    keys: &[KeySpec::one(1, access::RO | access::ACCESS)],
    args: &[KEY],
    makes: Makes::Little,
    ..Spec::BASE
};

/// A row of the commands that give a key another name.
const RENAMES: Spec = Spec {
    arity: 3,
    args: &[
        KEY,
        Arg {
            key_spec: Some(1),
            ..Arg::key("newkey")
        },
    ],
    makes: Makes::Little,
    ..Spec::BASE
};

/// A row of OBJECT's subcommands.
const OBJECT: Spec = Spec {
    arity: 3,
    flags: READONLY | BOUNDED,
    keys: &[KeySpec::one(2, access::RO)],
    since: "2.2.3",
    tips: &["nondeterministic_output"],
    args: &[KEY],
    makes: Makes::Little,
    ..Spec::BASE
};

/// The table of this family.
pub(crate) const COMMANDS: &[Spec] = &[
    Spec {
        name: "del",
        makes: Makes::Little,
        arity: -2,
        flags: WRITE | REMOVES | BOUNDED,
        keys: &[KeySpec::rest(1, 1, access::RM | access::DELETE)],
        complexity: "O(N), N being the number of keys; memory of large values is freed in the background",
        summary: "Removes keys, all in one step; tells how many there were",
        tips: COUNTS_ALL_KEYS,
        args: &[KEY.multiple()],
        needs: NO_VALUES,
        handler: existence::del,
        ..Spec::BASE
    },
    Spec {
        name: "unlink",
        makes: Makes::Little,
        arity: -2,
        flags: WRITE | REMOVES | FAST,
        keys: &[KeySpec::rest(1, 1, access::RM | access::DELETE)],
        since: "4.0.0",
        complexity: "O(N), N being the number of keys; memory of large values is freed in the background",
        summary: "Removes keys as DEL does, which frees large values in the background too",
        tips: COUNTS_ALL_KEYS,
        args: &[KEY.multiple()],
        needs: NO_VALUES,
        handler: existence::del,
        ..Spec::BASE
    },
    Spec {
        name: "exists",
        makes: Makes::Little,
        arity: -2,
        flags: REPORTS,
        keys: &[KeySpec::rest(1, 1, access::RO)],
        complexity: "O(N), N being the number of keys",
        summary: "Counts how many of the named keys are there",
        tips: COUNTS_ALL_KEYS,
        args: &[KEY.multiple()],
        history: &[("3.0.3", "Takes several keys.")],
        needs: NO_VALUES,
        handler: existence::exists,
        ..Spec::BASE
    },
    Spec {
        name: "type",
        makes: Makes::Little,
        arity: 2,
        flags: REPORTS,
        keys: &[KeySpec::one(1, access::RO)],
        summary: "Tells the type of a key's value",
        args: &[KEY],
        needs: NO_VALUES,
        handler: existence::type_of,
        ..Spec::BASE
    },
    Spec {
        name: "touch",
        makes: Makes::Little,
        arity: -2,
        flags: REPORTS,
        keys: &[KeySpec::rest(1, 1, access::RO)],
        since: "3.2.1",
        complexity: "O(N), N being the number of keys",
        summary: "Makes keys count as accessed now; tells how many there are",
        tips: COUNTS_ALL_KEYS,
        args: &[KEY.multiple()],
        needs: NO_VALUES,
        handler: existence::touch,
        ..Spec::BASE
    },
    Spec {
        name: "expire",
        summary: "Lets a key expire after a number of seconds",
        args: &[KEY, Arg::of("seconds", ArgKind::Integer), CONDITION],
        needs: NO_VALUES,
        handler: expiry::expire,
        ..EXPIRES
    },
    Spec {
        name: "pexpire",
        since: "2.6.0",
        summary: "Lets a key expire after a number of milliseconds",
        args: &[KEY, Arg::of("milliseconds", ArgKind::Integer), CONDITION],
        needs: NO_VALUES,
        handler: expiry::pexpire,
        ..EXPIRES
    },
    Spec {
        name: "expireat",
        since: "1.2.0",
        summary: "Lets a key expire at a Unix time in seconds",
        args: &[
            KEY,
            Arg::of("unix-time-seconds", ArgKind::UnixTime),
            CONDITION,
        ],
        needs: NO_VALUES,
        handler: expiry::expireat,
        ..EXPIRES
    },
    Spec {
        name: "pexpireat",
        since: "2.6.0",
        summary: "Lets a key expire at a Unix time in milliseconds",
        args: &[
            KEY,
            Arg::of("unix-time-milliseconds", ArgKind::UnixTime),
            CONDITION,
        ],
        needs: NO_VALUES,
        handler: expiry::pexpireat,
        ..EXPIRES
    },
    Spec {
        name: "ttl",
        summary: "Tells in how many seconds a key expires",
        tips: &["nondeterministic_output"],
        history: TTL_HISTORY,
        needs: NO_VALUES,
        handler: expiry::ttl,
        ..LIFETIME
    },
    Spec {
        name: "pttl",
        since: "2.6.0",
        summary: "Tells in how many milliseconds a key expires",
        tips: &["nondeterministic_output"],
        history: TTL_HISTORY,
        needs: NO_VALUES,
        handler: expiry::pttl,
        ..LIFETIME
    },
    Spec {
        name: "expiretime",
        since: "7.0.0",
        summary: "Tells the Unix time in seconds at which a key expires",
        needs: NO_VALUES,
        handler: expiry::expiretime,
        ..LIFETIME
    },
    Spec {
        name: "pexpiretime",
        since: "7.0.0",
        summary: "Tells the Unix time in milliseconds at which a key expires",
        needs: NO_VALUES,
        handler: expiry::pexpiretime,
        ..LIFETIME
    },
    Spec {
        name: "persist",
        makes: Makes::Little,
        arity: 2,
        flags: WRITE | FAST,
        keys: &[KeySpec::one(1, access::RW | access::UPDATE)],
        since: "2.2.0",
        summary: "Lets a key live on: takes its expiry away",
        args: &[KEY],
        needs: NO_VALUES,
        handler: expiry::persist,
        ..Spec::BASE
    },
    Spec {
        name: "keys",
        makes: Makes::Reply,
        arity: -1,
        flags: READONLY,
        categories: category::DANGEROUS,
        complexity: "O(N), N being the number of keys in the database",
        summary: "Lists the keys that match a pattern, or all keys without one",
        tips: &["request_policy:all_shards", "nondeterministic_output_order"],
        args: &[Arg::of("pattern", ArgKind::Pattern)],
        handler: iteration::keys,
        ..Spec::BASE
    },
    Spec {
        name: "scan",
        makes: Makes::Reply,
        arity: -2,
        flags: READONLY,
        since: "2.8.0",
        complexity: "O(1) a call, O(N) to meet all keys of the database, N being their number",
        summary: "Lists some of the keys, and tells where to go on",
        tips: &["nondeterministic_output", "request_policy:special"],
        args: &[
            Arg::of("cursor", ArgKind::Integer),
            Arg::of("pattern", ArgKind::Pattern)
                .token("MATCH")
                .optional(),
            Arg::of("count", ArgKind::Integer).token("COUNT").optional(),
            Arg::of("type", ArgKind::String)
                .token("TYPE")
                .since("6.0.0")
                .optional(),
        ],
        history: &[("6.0.0", "Takes `TYPE`.")],
        handler: iteration::scan,
        ..Spec::BASE
    },
    Spec {
        name: "randomkey",
        makes: Makes::Item,
        arity: 1,
        flags: READONLY,
        summary: "Names one of the keys, by chance",
        tips: &["request_policy:all_shards", "nondeterministic_output"],
        handler: iteration::randomkey,
        ..Spec::BASE
    },
    Spec {
        name: "rename",
        flags: WRITE | BOUNDED,
        keys: &[
            KeySpec::one(1, access::RW | access::ACCESS | access::DELETE),
            KeySpec::one(2, access::OW | access::UPDATE),
        ],
        summary: "Gives a key another name, and takes that name from whatever had it",
        needs: FIRST_VALUE,
        large: LargeUse::SHARES,
        items: ItemsNeeded::Moved,
        handler: transfer::rename,
        ..RENAMES
    },
    Spec {
        name: "renamenx",
        flags: WRITE | FAST,
        keys: &[
            KeySpec::one(1, access::RW | access::ACCESS | access::DELETE),
            KeySpec::one(2, access::OW | access::INSERT),
        ],
        summary: "Gives a key another name if nothing has that name",
        history: &[("3.2.0", "Answers 0, no error, if both names are the same.")],
        needs: FIRST_VALUE,
        large: LargeUse::SHARES,
        items: ItemsNeeded::Moved,
        handler: transfer::renamenx,
        ..RENAMES
    },
    Spec {
        name: "copy",
        makes: Makes::Value,
        arity: -3,
        flags: WRITE | DENYOOM | BOUNDED,
        keys: &[
            KeySpec::one(1, access::RO | access::ACCESS),
            KeySpec::one(2, access::OW | access::UPDATE),
        ],
        since: "6.2.0",
        complexity: "O(N), N being the number of elements of a collection; O(1) for a string",
        summary: "Copies a key with its value and expiry, also into another database",
        args: &[
            Arg::key("source"),
            Arg {
                key_spec: Some(1),
                ..Arg::key("destination")
            },
            Arg::of("destination-db", ArgKind::Integer)
                .token("DB")
                .optional(),
            Arg::word("replace", "REPLACE").optional(),
        ],
        elsewhere: transfer::copy_target,
        needs: FIRST_VALUE,
        large: LargeUse::SHARES,
        handler: transfer::copy,
        ..Spec::BASE
    },
    Spec {
        name: "move",
        makes: Makes::Little,
        arity: 3,
        flags: WRITE | FAST,
        keys: &[KeySpec::one(
            1,
            access::RW | access::ACCESS | access::UPDATE,
        )],
        summary: "Takes a key into another database, if that has no such key",
        args: &[KEY, Arg::of("db", ArgKind::Integer)],
        elsewhere: transfer::move_target,
        large: LargeUse::SHARES,
        handler: transfer::move_key,
        ..Spec::BASE
    },
    Spec {
        name: "dump",
        makes: Makes::Item,
        arity: 2,
        flags: READONLY,
        keys: &[KeySpec::one(1, access::RO | access::ACCESS)],
        since: "2.6.0",
        complexity: "O(N), N being the bytes of the value",
        summary: "Gives a key's value as bytes that RESTORE takes, here or at a redis-server",
        tips: &["nondeterministic_output"],
        args: &[KEY],
        needs: FIRST_VALUE,
        handler: transfer::dump,
        ..Spec::BASE
    },
    Spec {
        name: "restore",
        since: "2.6.0",
        summary: "Makes a key of the bytes that DUMP has given",
        ..RESTORES
    },
    Spec {
        name: "restore-asking",
        flags: WRITE | DENYOOM | ASKING | SYSTEM,
        group: Group::Server,
        since: "3.0.0",
        categories: category::KEYSPACE | category::DANGEROUS,
        summary: "RESTORE, as the nodes of a Redis cluster send it with MIGRATE",
        ..RESTORES
    },
    Spec {
        name: "migrate",
        makes: Makes::Little,
        arity: -6,
        flags: WRITE | REMOVES | MOVABLE_KEYS,
        keys: migrate::KEYS,
        since: "2.6.0",
        categories: category::DANGEROUS,
        complexity: "O(N), N being the bytes of the values, which are sent over the network",
        summary: "Moves keys to another server, each removed here when it is there",
        tips: &["nondeterministic_output"],
        args: migrate::ARGS,
        history: &[
            ("3.0.0", "Takes `COPY` and `REPLACE`."),
            ("3.0.6", "Takes `KEYS`."),
            ("4.0.7", "Takes `AUTH`."),
            ("6.0.0", "Takes `AUTH2`."),
        ],
        secret: migrate::is_secret,
        handler: migrate::migrate,
        ..Spec::BASE
    },
    Spec {
        name: "object",
        makes: Makes::Little,
        arity: -2,
        since: "2.2.3",
        complexity: "That of the subcommand",
        summary: "Tells how a key's value is kept",
        subcommands: &[
            Spec {
                name: "help",
                makes: Makes::Item,
                arity: 2,
                flags: LOADING | STALE,
                since: "6.2.0",
                summary: "Lists the subcommands",
                handler: object::help,
                ..Spec::BASE
            },
            Spec {
                name: "encoding",
                summary: "Tells how Redis would hold the value of a key",
                needs: NO_VALUES,
                handler: object::encoding,
                ..OBJECT
            },
            Spec {
                name: "idletime",
                summary: "Tells how many seconds ago a key was accessed",
                needs: NO_VALUES,
                handler: object::idletime,
                ..OBJECT
            },
            Spec {
                name: "freq",
                since: "4.0.0",
                summary: "Tells how often a key is accessed, on a logarithmic scale",
                needs: NO_VALUES,
                handler: object::freq,
                ..OBJECT
            },
            Spec {
                name: "refcount",
                summary: "Tells how many references there are to the value of a key",
                needs: NO_VALUES,
                handler: object::refcount,
                ..OBJECT
            },
        ],
        ..Spec::BASE
    },
    Spec {
        name: "dbsize",
        makes: Makes::Little,
        arity: 1,
        flags: READONLY | FAST,
        group: Group::Server,
        categories: category::KEYSPACE,
        summary: "Counts the keys of the selected database",
        tips: &["request_policy:all_shards", "response_policy:agg_sum"],
        handler: database::dbsize,
        ..Spec::BASE
    },
    Spec {
        name: "flushdb",
        makes: Makes::Little,
        arity: -1,
        flags: WRITE | REMOVES,
        group: Group::Server,
        categories: category::KEYSPACE | category::DANGEROUS,
        complexity: "O(N), N being the number of keys in the database, all of it in the background",
        summary: "Removes all keys of the selected database",
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        args: &[FLUSH_MODE],
        history: FLUSH_HISTORY,
        handler: database::flushdb,
        ..Spec::BASE
    },
    Spec {
        name: "flushall",
        makes: Makes::Little,
        arity: -1,
        flags: WRITE | REMOVES,
        group: Group::Server,
        categories: category::KEYSPACE | category::DANGEROUS,
        complexity: "O(N), N being the number of keys in all databases, all of it in the background",
        summary: "Removes all keys of all databases",
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        args: &[FLUSH_MODE],
        history: FLUSH_HISTORY,
        handler: database::flushall,
        ..Spec::BASE
    },
    Spec {
        name: "swapdb",
        makes: Makes::Little,
        arity: 3,
        flags: WRITE | FAST,
        group: Group::Server,
        since: "4.0.0",
        categories: category::KEYSPACE | category::DANGEROUS,
        summary: "Exchanges two databases, for all clients at once",
        args: &[
            Arg::of("index1", ArgKind::Integer),
            Arg::of("index2", ArgKind::Integer),
        ],
        handler: database::swapdb,
        ..Spec::BASE
    },
];
