//! Hashes: values that are fields with values of their own.
//!
//! The table of the family is here; its handlers are in the files below, in table order:
//!
//! | file | commands |
//! |---|---|
//! | `read` | HGET HMGET HGETALL HKEYS HVALS HLEN HSTRLEN HEXISTS |
//! | `write` | HSET HSETNX HMSET HDEL HGETDEL |
//! | `number` | HINCRBY HINCRBYFLOAT |
//! | `random` | HRANDFIELD |
//! | `expiry` | HEXPIRE HPEXPIRE HEXPIREAT HPEXPIREAT, HTTL HPTTL HEXPIRETIME HPEXPIRETIME, HPERSIST |
//! | `timed` | HGETEX HSETEX |
//!
//! HSCAN, and what hashes and sets have in common, is in [`super::items`].

mod expiry;
mod number;
mod random;
mod read;
mod timed;
mod write;

use keyspace::collection::kind::Fields;

use super::items::scan;
use super::spec::ItemsNeeded;
use super::{Arg, ArgKind, Group, KeySpec, Makes, Spec, access, flag::*};

const KEY: Arg = Arg::key("key");
const FIELD: Arg = Arg::of("field", ArgKind::String);
const VALUE: Arg = Arg::of("value", ArgKind::String);

/// Fields and values in turn, as HSET takes them.
const PAIRS: Arg = Arg::block("field_value", &[FIELD, VALUE]).multiple();

/// A row of the commands that read one key.
const READS: Spec = Spec {
    flags: READONLY | FAST,
    keys: &[KeySpec::one(1, access::RO | access::ACCESS)],
    group: Group::Hash,
    since: "2.0.0",
    ..Spec::BASE
};

/// A row of the commands that list a hash as a whole.
const LISTS: Spec = Spec {
    arity: 2,
    flags: READONLY,
    complexity: "O(N) for N fields",
    tips: &["nondeterministic_output_order"],
    args: &[KEY],
    ..READS
};

/// A row of the commands that tell something about a hash or a field.
const REPORTS: Spec = Spec {
    keys: &[KeySpec::one(1, access::RO)],
    ..READS
};

/// A row of the commands that set fields.
const SETS: Spec = Spec {
    flags: WRITE | DENYOOM | FAST,
    keys: &[KeySpec::one(1, access::RW | access::UPDATE)],
    ..READS
};

/// `FIELDS numfields` and the fields.
const FIELDS: Arg = Arg::block(
    "fields",
    &[Arg::of("numfields", ArgKind::Integer), FIELD.multiple()],
)
.token("FIELDS");

/// When a field is told to expire, by EX, PX, EXAT or PXAT.
const EX: Arg = Arg::of("seconds", ArgKind::Integer).token("EX");
const PX: Arg = Arg::of("milliseconds", ArgKind::Integer).token("PX");
const EXAT: Arg = Arg::of("unix-time-seconds", ArgKind::UnixTime).token("EXAT");
const PXAT: Arg = Arg::of("unix-time-milliseconds", ArgKind::UnixTime).token("PXAT");

/// What the expiry that a field has must be for it to get another.
const CONDITION: Arg = Arg::one_of(
    "condition",
    &[
        Arg::word("nx", "NX"),
        Arg::word("xx", "XX"),
        Arg::word("gt", "GT"),
        Arg::word("lt", "LT"),
    ],
)
.optional();

/// A row of the commands that let fields expire.
const EXPIRES: Spec = Spec {
    arity: -6,
    flags: WRITE | FAST,
    items: ItemsNeeded::Named { from: 5, step: 1 },
    since: "7.4.0",
    complexity: "O(N) for N fields that are named",
    ..SETS
};

/// A row of the commands that tell when fields expire.
const TELLS: Spec = Spec {
    arity: -5,
    keys: &[KeySpec::one(1, access::RO | access::ACCESS)],
    items: ItemsNeeded::Named { from: 4, step: 1 },
    since: "7.4.0",
    complexity: "O(N) for N fields that are named",
    args: &[KEY, FIELDS],
    ..REPORTS
};

/// The table of this family.
pub(crate) const COMMANDS: &[Spec] = &[
    Spec {
        name: "hget",
        makes: Makes::Item,
        arity: 3,
        summary: "Returns the value of a field",
        args: &[KEY, FIELD],
        items: ItemsNeeded::Named { from: 2, step: 1 },
        handler: read::hget,
        ..READS
    },
    Spec {
        name: "hmget",
        makes: Makes::Reply,
        arity: -3,
        summary: "Returns the values of several fields",
        complexity: "O(N) for N fields that are asked for",
        args: &[KEY, FIELD.multiple()],
        items: ItemsNeeded::Named { from: 2, step: 1 },
        handler: read::hmget,
        ..READS
    },
    Spec {
        name: "hgetall",
        makes: Makes::Reply,
        summary: "Returns all fields with their values",
        items: ItemsNeeded::Walked,
        handler: read::hgetall,
        ..LISTS
    },
    Spec {
        name: "hkeys",
        makes: Makes::Reply,
        summary: "Returns the names of all fields",
        items: ItemsNeeded::Walked,
        handler: read::hkeys,
        ..LISTS
    },
    Spec {
        name: "hvals",
        makes: Makes::Reply,
        summary: "Returns the values of all fields",
        items: ItemsNeeded::Walked,
        handler: read::hvals,
        ..LISTS
    },
    Spec {
        name: "hlen",
        makes: Makes::Little,
        arity: 2,
        summary: "Returns the number of fields",
        args: &[KEY],
        items: ItemsNeeded::None,
        handler: read::hlen,
        ..REPORTS
    },
    Spec {
        name: "hstrlen",
        makes: Makes::Little,
        arity: 3,
        since: "3.2.0",
        summary: "Returns the length of the value of a field in bytes",
        args: &[KEY, FIELD],
        items: ItemsNeeded::Named { from: 2, step: 1 },
        handler: read::hstrlen,
        ..REPORTS
    },
    Spec {
        name: "hexists",
        makes: Makes::Little,
        arity: 3,
        summary: "Tells whether a hash has a field",
        args: &[KEY, FIELD],
        items: ItemsNeeded::Named { from: 2, step: 1 },
        handler: read::hexists,
        ..REPORTS
    },
    Spec {
        name: "hset",
        makes: Makes::Little,
        arity: -4,
        summary: "Sets the values of fields; tells how many of the fields are new",
        complexity: "O(N) for N fields that are set",
        args: &[KEY, PAIRS],
        history: &[("4.0.0", "Takes several fields.")],
        items: ItemsNeeded::Named { from: 2, step: 2 },
        handler: write::hset,
        ..SETS
    },
    Spec {
        name: "hsetnx",
        makes: Makes::Little,
        arity: 4,
        keys: &[KeySpec::one(1, access::RW | access::INSERT)],
        summary: "Sets the value of a field that does not exist yet",
        args: &[KEY, FIELD, VALUE],
        items: ItemsNeeded::Named { from: 2, step: 2 },
        handler: write::hsetnx,
        ..SETS
    },
    Spec {
        name: "hmset",
        makes: Makes::Little,
        arity: -4,
        summary: "Sets the values of fields",
        complexity: "O(N) for N fields that are set",
        args: &[KEY, PAIRS],
        deprecated: Some(("4.0.0", "`HSET` with several fields")),
        items: ItemsNeeded::Named { from: 2, step: 2 },
        handler: write::hmset,
        ..SETS
    },
    Spec {
        name: "hdel",
        makes: Makes::Little,
        arity: -3,
        flags: WRITE | REMOVES | FAST,
        keys: &[KeySpec::one(1, access::RW | access::DELETE)],
        summary: "Removes fields, and the key with the last of them; tells how many there were",
        complexity: "O(N) for N fields that are named",
        args: &[KEY, FIELD.multiple()],
        history: &[("2.4.0", "Takes several fields.")],
        items: ItemsNeeded::Named { from: 2, step: 1 },
        handler: write::hdel,
        ..READS
    },
    Spec {
        name: "hgetdel",
        makes: Makes::Taken,
        arity: -5,
        flags: WRITE | REMOVES | FAST,
        keys: &[KeySpec::one(
            1,
            access::RW | access::ACCESS | access::DELETE,
        )],
        since: "8.0.0",
        summary: "Returns the values of fields and removes these fields (as in Redis 8.0)",
        complexity: "O(N) for N fields that are named",
        args: &[KEY, FIELDS],
        items: ItemsNeeded::Named { from: 4, step: 1 },
        handler: write::hgetdel,
        ..READS
    },
    Spec {
        name: "hincrby",
        makes: Makes::Little,
        arity: 4,
        keys: &[KeySpec::one(
            1,
            access::RW | access::ACCESS | access::UPDATE,
        )],
        summary: "Adds to the integer in a field; a missing field counts as 0",
        args: &[KEY, FIELD, Arg::of("increment", ArgKind::Integer)],
        items: ItemsNeeded::Named { from: 2, step: 2 },
        handler: number::hincrby,
        ..SETS
    },
    Spec {
        name: "hincrbyfloat",
        makes: Makes::Little,
        arity: 4,
        keys: &[KeySpec::one(
            1,
            access::RW | access::ACCESS | access::UPDATE,
        )],
        since: "2.6.0",
        summary: "Adds to the decimal number in a field; a missing field counts as 0",
        args: &[KEY, FIELD, Arg::of("increment", ArgKind::Double)],
        items: ItemsNeeded::Named { from: 2, step: 2 },
        handler: number::hincrbyfloat,
        ..SETS
    },
    Spec {
        name: "hrandfield",
        makes: Makes::Reply,
        arity: -2,
        flags: READONLY,
        since: "6.2.0",
        summary: "Returns fields by chance: one, several different ones, or some more than once",
        complexity: "O(N log M) for N fields of M that are returned",
        tips: &["nondeterministic_output"],
        args: &[
            KEY,
            Arg::block(
                "options",
                &[
                    Arg::of("count", ArgKind::Integer),
                    Arg::word("withvalues", "WITHVALUES").optional(),
                ],
            )
            .optional(),
        ],
        items: ItemsNeeded::Any,
        handler: random::hrandfield,
        ..READS
    },
    Spec {
        name: "hscan",
        makes: Makes::Reply,
        arity: -3,
        flags: READONLY,
        since: "2.8.0",
        summary: "Lists some of the fields with their values, and tells where to go on",
        complexity: "O(1) a call, O(N) to meet all fields of a hash, N being their number",
        tips: &["nondeterministic_output"],
        args: &[
            KEY,
            Arg::of("cursor", ArgKind::Integer),
            Arg::of("pattern", ArgKind::Pattern)
                .token("MATCH")
                .optional(),
            Arg::of("count", ArgKind::Integer).token("COUNT").optional(),
            Arg::word("novalues", "NOVALUES").since("7.4.0").optional(),
        ],
        history: &[("7.4.0", "Takes `NOVALUES`.")],
        items: ItemsNeeded::Scan,
        handler: scan::scan::<Fields>,
        ..READS
    },
    Spec {
        name: "hexpire",
        makes: Makes::Little,
        summary: "Lets fields expire after a number of seconds (as in Redis 7.4)",
        args: &[KEY, Arg::of("seconds", ArgKind::Integer), CONDITION, FIELDS],
        handler: expiry::hexpire,
        ..EXPIRES
    },
    Spec {
        name: "hpexpire",
        makes: Makes::Little,
        summary: "Lets fields expire after a number of milliseconds (as in Redis 7.4)",
        args: &[
            KEY,
            Arg::of("milliseconds", ArgKind::Integer),
            CONDITION,
            FIELDS,
        ],
        handler: expiry::hpexpire,
        ..EXPIRES
    },
    Spec {
        name: "hexpireat",
        makes: Makes::Little,
        summary: "Lets fields expire at a Unix time in seconds (as in Redis 7.4)",
        args: &[
            KEY,
            Arg::of("unix-time-seconds", ArgKind::UnixTime),
            CONDITION,
            FIELDS,
        ],
        handler: expiry::hexpireat,
        ..EXPIRES
    },
    Spec {
        name: "hpexpireat",
        makes: Makes::Little,
        summary: "Lets fields expire at a Unix time in milliseconds (as in Redis 7.4)",
        args: &[
            KEY,
            Arg::of("unix-time-milliseconds", ArgKind::UnixTime),
            CONDITION,
            FIELDS,
        ],
        handler: expiry::hpexpireat,
        ..EXPIRES
    },
    Spec {
        name: "httl",
        makes: Makes::Little,
        summary: "Tells in how many seconds fields expire (as in Redis 7.4)",
        tips: &["nondeterministic_output"],
        handler: expiry::httl,
        ..TELLS
    },
    Spec {
        name: "hpttl",
        makes: Makes::Little,
        summary: "Tells in how many milliseconds fields expire (as in Redis 7.4)",
        tips: &["nondeterministic_output"],
        handler: expiry::hpttl,
        ..TELLS
    },
    Spec {
        name: "hexpiretime",
        makes: Makes::Little,
        summary: "Tells at which Unix time in seconds fields expire (as in Redis 7.4)",
        handler: expiry::hexpiretime,
        ..TELLS
    },
    Spec {
        name: "hpexpiretime",
        makes: Makes::Little,
        summary: "Tells at which Unix time in milliseconds fields expire (as in Redis 7.4)",
        handler: expiry::hpexpiretime,
        ..TELLS
    },
    Spec {
        name: "hpersist",
        makes: Makes::Little,
        flags: WRITE | FAST,
        keys: &[KeySpec::one(1, access::RW | access::UPDATE)],
        summary: "Lets fields expire no more (as in Redis 7.4)",
        handler: expiry::hpersist,
        ..TELLS
    },
    Spec {
        name: "hgetex",
        makes: Makes::Reply,
        arity: -5,
        flags: WRITE | FAST,
        keys: &[KeySpec::one(
            1,
            access::RW | access::ACCESS | access::UPDATE,
        )],
        since: "8.0.0",
        summary: "Returns the values of fields, and lets them expire or not (as in Redis 8.0)",
        complexity: "O(N) for N fields that are named",
        args: &[
            KEY,
            Arg::one_of(
                "expiration",
                &[EX, PX, EXAT, PXAT, Arg::word("persist", "PERSIST")],
            )
            .optional(),
            FIELDS,
        ],
        items: ItemsNeeded::Named { from: 4, step: 1 },
        handler: timed::hgetex,
        ..READS
    },
    Spec {
        name: "hsetex",
        makes: Makes::Little,
        arity: -6,
        since: "8.0.0",
        summary: "Sets the values of fields, and lets them expire (as in Redis 8.0)",
        history: &[("9.0.0", "Takes `NX` and `XX`, as Valkey.")],
        complexity: "O(N) for N fields that are set",
        args: &[
            KEY,
            Arg::one_of(
                "key-condition",
                &[Arg::word("nx", "NX"), Arg::word("xx", "XX")],
            )
            .since("9.0.0")
            .optional(),
            Arg::one_of(
                "condition",
                &[Arg::word("fnx", "FNX"), Arg::word("fxx", "FXX")],
            )
            .optional(),
            Arg::one_of(
                "expiration",
                &[EX, PX, EXAT, PXAT, Arg::word("keepttl", "KEEPTTL")],
            )
            .optional(),
            Arg::block("fields", &[Arg::of("numfields", ArgKind::Integer), PAIRS]).token("FIELDS"),
        ],
        items: ItemsNeeded::Named { from: 4, step: 1 },
        handler: timed::hsetex,
        ..SETS
    },
];
