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
//! | `scan` | HSCAN |
//!
//! `cells` turns arguments into cells, which fields and values are, and cells into replies. `moment` lets
//! commands that look at many fields of a large hash go on in slices.

mod cells;
mod moment;
mod number;
mod random;
mod read;
mod scan;
mod write;

use super::{Arg, ArgKind, Group, KeySpec, Spec, flag::*};

const KEY: Arg = Arg::key("key");
const FIELD: Arg = Arg::of("field", ArgKind::String);
const VALUE: Arg = Arg::of("value", ArgKind::String);

/// Fields and values in turn, as HSET takes them.
const PAIRS: Arg = Arg::block("field_value", &[FIELD, VALUE]).multiple();

/// A row of the commands that read one key.
const READS: Spec = Spec {
    flags: READONLY | FAST,
    keys: &[KeySpec::one(1, &["RO", "access"])],
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
    keys: &[KeySpec::one(1, &["RO"])],
    ..READS
};

/// A row of the commands that set fields.
const SETS: Spec = Spec {
    flags: WRITE | DENYOOM | FAST,
    keys: &[KeySpec::one(1, &["RW", "update"])],
    ..READS
};

/// The table of this family.
pub(crate) const COMMANDS: &[Spec] = &[
    Spec {
        name: "hget",
        arity: 3,
        summary: "Returns the value of a field",
        args: &[KEY, FIELD],
        handler: read::hget,
        ..READS
    },
    Spec {
        name: "hmget",
        arity: -3,
        summary: "Returns the values of several fields",
        complexity: "O(N) for N fields that are asked for",
        args: &[KEY, FIELD.multiple()],
        handler: read::hmget,
        ..READS
    },
    Spec {
        name: "hgetall",
        summary: "Returns all fields with their values",
        handler: read::hgetall,
        ..LISTS
    },
    Spec {
        name: "hkeys",
        summary: "Returns the names of all fields",
        handler: read::hkeys,
        ..LISTS
    },
    Spec {
        name: "hvals",
        summary: "Returns the values of all fields",
        handler: read::hvals,
        ..LISTS
    },
    Spec {
        name: "hlen",
        arity: 2,
        summary: "Returns the number of fields",
        args: &[KEY],
        handler: read::hlen,
        ..REPORTS
    },
    Spec {
        name: "hstrlen",
        arity: 3,
        since: "3.2.0",
        summary: "Returns the length of the value of a field in bytes",
        args: &[KEY, FIELD],
        handler: read::hstrlen,
        ..REPORTS
    },
    Spec {
        name: "hexists",
        arity: 3,
        summary: "Tells whether a hash has a field",
        args: &[KEY, FIELD],
        handler: read::hexists,
        ..REPORTS
    },
    Spec {
        name: "hset",
        arity: -4,
        summary: "Sets the values of fields; tells how many of the fields are new",
        complexity: "O(N) for N fields that are set",
        args: &[KEY, PAIRS],
        history: &[("4.0.0", "Takes several fields.")],
        handler: write::hset,
        ..SETS
    },
    Spec {
        name: "hsetnx",
        arity: 4,
        keys: &[KeySpec::one(1, &["RW", "insert"])],
        summary: "Sets the value of a field that does not exist yet",
        args: &[KEY, FIELD, VALUE],
        handler: write::hsetnx,
        ..SETS
    },
    Spec {
        name: "hmset",
        arity: -4,
        summary: "Sets the values of fields",
        complexity: "O(N) for N fields that are set",
        args: &[KEY, PAIRS],
        deprecated: Some(("4.0.0", "`HSET` with several fields")),
        handler: write::hmset,
        ..SETS
    },
    Spec {
        name: "hdel",
        arity: -3,
        flags: WRITE | REMOVES | FAST,
        keys: &[KeySpec::one(1, &["RW", "delete"])],
        summary: "Removes fields, and the key with the last of them; tells how many there were",
        complexity: "O(N) for N fields that are named",
        args: &[KEY, FIELD.multiple()],
        history: &[("2.4.0", "Takes several fields.")],
        handler: write::hdel,
        ..READS
    },
    Spec {
        name: "hgetdel",
        arity: -5,
        flags: WRITE | REMOVES | FAST,
        keys: &[KeySpec::one(1, &["RW", "access", "delete"])],
        since: "8.0.0",
        summary: "Returns the values of fields and removes these fields (as in Redis 8.0)",
        complexity: "O(N) for N fields that are named",
        args: &[
            KEY,
            Arg::block(
                "fields",
                &[Arg::of("numfields", ArgKind::Integer), FIELD.multiple()],
            )
            .token("FIELDS"),
        ],
        handler: write::hgetdel,
        ..READS
    },
    Spec {
        name: "hincrby",
        arity: 4,
        keys: &[KeySpec::one(1, &["RW", "access", "update"])],
        summary: "Adds to the integer in a field; a missing field counts as 0",
        args: &[KEY, FIELD, Arg::of("increment", ArgKind::Integer)],
        handler: number::hincrby,
        ..SETS
    },
    Spec {
        name: "hincrbyfloat",
        arity: 4,
        keys: &[KeySpec::one(1, &["RW", "access", "update"])],
        since: "2.6.0",
        summary: "Adds to the decimal number in a field; a missing field counts as 0",
        args: &[KEY, FIELD, Arg::of("increment", ArgKind::Double)],
        handler: number::hincrbyfloat,
        ..SETS
    },
    Spec {
        name: "hrandfield",
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
        handler: random::hrandfield,
        ..READS
    },
    Spec {
        name: "hscan",
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
        handler: scan::hscan,
        ..READS
    },
];
