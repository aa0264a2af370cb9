//! Strings: values that are bytes, and sometimes integers or decimals written as text.
//!
//! The table of the family is here; its handlers are in the files below, in table order:
//!
//! | file | commands |
//! |---|---|
//! | `read` | GET MGET STRLEN GETRANGE SUBSTR, GETEX GETDEL GETSET |
//! | `received` | SET SETNX SETEX PSETEX GETSET of values that have come in files of their own |
//! | `write` | SET SETNX SETEX PSETEX MSET MSETNX MSETEX APPEND SETRANGE |
//! | `number` | INCR DECR INCRBY DECRBY INCRBYFLOAT |
//! | `compare` | DIGEST DELEX DELIFEQ, and the conditions that SET shares with them |
//! | `lcs` | LCS; `subsequence` is its algorithm |
//!
//! `options` reads the flags of SET and GETEX, `range` turns positions that count from either end into a
//! range, `operand` keeps a value beside others. The last two also serve the bitmaps, the family next door.

mod compare;
mod lcs;
mod number;
pub(super) mod operand;
mod options;
pub(super) mod range;
mod read;
mod received;
mod subsequence;
mod write;

use super::spec::{Begin, Find, LargeUse, NO_VALUES};
use super::{Arg, ArgKind, Failure, Group, KeySpec, Makes, Spec, access, failure, flag::*};
use crate::server::Server;

/// The length of a string that `len` bytes at `offset` make necessary, if `proto-max-bulk-len` allows for it.
fn length_with(server: &Server, offset: usize, len: usize) -> Result<usize, Failure> {
    let most = server.longest_made();
    match offset.checked_add(len) {
        Some(total) if total <= most => Ok(total),
        _ => Err(failure::TOO_LONG),
    }
}

const KEY: Arg = Arg::key("key");
const VALUE: Arg = Arg::of("value", ArgKind::String);

/// Keys and values in turn, as MSET takes them.
const PAIRS: &[Arg] = &[Arg::block("key_value", &[KEY, VALUE]).multiple()];

/// A time of expiry, as SET and GETEX take it; SET says since when.
const EX: Arg = Arg::of("seconds", ArgKind::Integer).token("EX");
const PX: Arg = Arg::of("milliseconds", ArgKind::Integer).token("PX");
const EXAT: Arg = Arg::of("unix-time-seconds", ArgKind::UnixTime).token("EXAT");
const PXAT: Arg = Arg::of("unix-time-milliseconds", ArgKind::UnixTime).token("PXAT");

const IFEQ: Arg = Arg::of("ifeq-value", ArgKind::String).token("IFEQ");
const IFNE: Arg = Arg::of("ifne-value", ArgKind::String).token("IFNE");
const IFDEQ: Arg = Arg::of("ifdeq-digest", ArgKind::String).token("IFDEQ");
const IFDNE: Arg = Arg::of("ifdne-digest", ArgKind::String).token("IFDNE");

/// One key that is read.
const READ: &[KeySpec] = &[KeySpec::one(1, access::RO | access::ACCESS)];
/// One key whose value depends on what it was.
const CHANGE: &[KeySpec] = &[KeySpec::one(
    1,
    access::RW | access::ACCESS | access::UPDATE,
)];
/// One key that is overwritten.
const REPLACE: &[KeySpec] = &[KeySpec::one(1, access::OW | access::UPDATE)];

/// The table of this family.
pub(crate) const COMMANDS: &[Spec] = &[
    Spec {
        name: "get",
        makes: Makes::Item,
        arity: 2,
        flags: READONLY | FAST,
        keys: READ,
        group: Group::String,
        summary: "Returns the value of a key",
        args: &[KEY],
        large: LargeUse::SENDS,
        handler: read::get,
        ..Spec::BASE
    },
    Spec {
        name: "mget",
        makes: Makes::Reply,
        arity: -2,
        flags: READONLY | FAST,
        keys: &[KeySpec::rest(1, 1, access::RO | access::ACCESS)],
        group: Group::String,
        summary: "Returns the values of several keys, all read at one point in time",
        complexity: "O(N) for N keys",
        tips: &["request_policy:multi_shard"],
        args: &[KEY.multiple()],
        large: LargeUse::SENDS,
        handler: read::mget,
        ..Spec::BASE
    },
    Spec {
        name: "strlen",
        makes: Makes::Little,
        arity: 2,
        flags: READONLY | FAST,
        keys: &[KeySpec::one(1, access::RO)],
        group: Group::String,
        since: "2.2.0",
        summary: "Returns the length of a value in bytes",
        args: &[KEY],
        needs: NO_VALUES,
        handler: read::strlen,
        ..Spec::BASE
    },
    Spec {
        name: "getrange",
        makes: Makes::Item,
        arity: 4,
        flags: READONLY,
        keys: READ,
        group: Group::String,
        since: "2.4.0",
        summary: "Returns a part of a value",
        complexity: "O(N) for a part of N bytes",
        args: RANGE,
        large: LargeUse::SENDS,
        handler: read::getrange,
        ..Spec::BASE
    },
    Spec {
        name: "substr",
        makes: Makes::Item,
        arity: 4,
        flags: READONLY,
        keys: READ,
        group: Group::String,
        summary: "Returns a part of a value",
        complexity: "O(N) for a part of N bytes",
        args: RANGE,
        deprecated: Some(("2.0.0", "`GETRANGE`")),
        large: LargeUse::SENDS,
        handler: read::getrange,
        ..Spec::BASE
    },
    Spec {
        name: "getex",
        makes: Makes::Item,
        arity: -2,
        flags: WRITE | FAST,
        keys: &[KeySpec {
            notes: Some("An update, as it may change the expiry"),
            ..KeySpec::one(1, access::RW | access::ACCESS | access::UPDATE)
        }],
        group: Group::String,
        since: "6.2.0",
        summary: "Returns the value of a key and changes when it expires",
        args: &[
            KEY,
            Arg::one_of(
                "expiration",
                &[EX, PX, EXAT, PXAT, Arg::word("persist", "PERSIST")],
            )
            .optional(),
        ],
        large: LargeUse::SENDS,
        handler: read::getex,
        ..Spec::BASE
    },
    Spec {
        name: "getdel",
        makes: Makes::Taken,
        arity: 2,
        flags: WRITE | REMOVES | FAST,
        keys: &[KeySpec::one(
            1,
            access::RW | access::ACCESS | access::DELETE,
        )],
        group: Group::String,
        since: "6.2.0",
        summary: "Returns the value of a key and removes the key",
        args: &[KEY],
        large: LargeUse::SENDS,
        handler: read::getdel,
        ..Spec::BASE
    },
    Spec {
        name: "getset",
        makes: Makes::Item,
        arity: 3,
        flags: WRITE | DENYOOM | FAST,
        keys: CHANGE,
        group: Group::String,
        summary: "Sets the value of a key and returns what it was",
        args: &[KEY, VALUE],
        deprecated: Some(("6.2.0", "`SET` with `GET`")),
        large: LargeUse {
            takes: Some((2, received::getset)),
            ..LargeUse::SENDS
        },
        handler: read::getset,
        ..Spec::BASE
    },
    Spec {
        name: "set",
        makes: Makes::Little,
        arity: -3,
        flags: WRITE | DENYOOM | BOUNDED,
        keys: &[KeySpec {
            notes: Some("Read only with `GET` or a condition on the value"),
            ..KeySpec::one(
                1,
                access::RW | access::ACCESS | access::UPDATE | access::VARIABLE_FLAGS,
            )
        }],
        group: Group::String,
        summary: "Sets the value of a key",
        args: &[
            KEY,
            VALUE,
            Arg::one_of(
                "condition",
                &[
                    Arg::word("nx", "NX"),
                    Arg::word("xx", "XX"),
                    IFEQ.since("8.1.0"),
                    IFNE.since("8.4.0"),
                    IFDEQ.since("8.4.0"),
                    IFDNE.since("8.4.0"),
                ],
            )
            .optional()
            .since("2.6.12"),
            Arg::word("get", "GET").optional().since("6.2.0"),
            Arg::one_of(
                "expiration",
                &[
                    EX.since("2.6.12"),
                    PX.since("2.6.12"),
                    EXAT.since("6.2.0"),
                    PXAT.since("6.2.0"),
                    Arg::word("keepttl", "KEEPTTL").since("6.0.0"),
                ],
            )
            .optional(),
        ],
        history: &[
            ("2.6.12", "`EX`, `PX`, `NX` and `XX` came."),
            ("6.0.0", "`KEEPTTL` came."),
            ("6.2.0", "`GET`, `EXAT` and `PXAT` came."),
            ("7.0.0", "`NX` and `GET` go together."),
            ("8.1.0", "`IFEQ` came (in Valkey)."),
            ("8.4.0", "`IFNE`, `IFDEQ` and `IFDNE` came (in Redis)."),
        ],
        needs: options::set_needs,
        large: LargeUse {
            sends: options::set_sends,
            takes: Some((2, received::set)),
            ..LargeUse::NONE
        },
        handler: write::set,
        ..Spec::BASE
    },
    Spec {
        name: "setnx",
        makes: Makes::Little,
        arity: 3,
        flags: WRITE | DENYOOM | FAST,
        keys: &[KeySpec::one(1, access::OW | access::INSERT)],
        group: Group::String,
        summary: "Sets the value of a key that does not exist yet",
        args: &[KEY, VALUE],
        needs: NO_VALUES,
        large: LargeUse {
            takes: Some((2, received::setnx)),
            ..LargeUse::NONE
        },
        handler: write::setnx,
        ..Spec::BASE
    },
    Spec {
        name: "setex",
        makes: Makes::Little,
        arity: 4,
        flags: WRITE | DENYOOM | BOUNDED,
        keys: REPLACE,
        group: Group::String,
        since: "2.0.0",
        summary: "Sets the value of a key that is to expire after some seconds",
        args: &[KEY, Arg::of("seconds", ArgKind::Integer), VALUE],
        needs: NO_VALUES,
        large: LargeUse {
            takes: Some((3, received::setex)),
            ..LargeUse::NONE
        },
        handler: write::setex,
        ..Spec::BASE
    },
    Spec {
        name: "psetex",
        makes: Makes::Little,
        arity: 4,
        flags: WRITE | DENYOOM | BOUNDED,
        keys: REPLACE,
        group: Group::String,
        since: "2.6.0",
        summary: "Sets the value of a key that is to expire after some milliseconds",
        args: &[KEY, Arg::of("milliseconds", ArgKind::Integer), VALUE],
        needs: NO_VALUES,
        large: LargeUse {
            takes: Some((3, received::psetex)),
            ..LargeUse::NONE
        },
        handler: write::psetex,
        ..Spec::BASE
    },
    Spec {
        name: "mset",
        makes: Makes::Little,
        arity: -3,
        flags: WRITE | DENYOOM | BOUNDED,
        keys: &[KeySpec::rest(1, 2, access::OW | access::UPDATE)],
        group: Group::String,
        since: "1.0.1",
        summary: "Sets the values of several keys, all at one point in time",
        complexity: "O(N) for N keys",
        tips: &[
            "request_policy:multi_shard",
            "response_policy:all_succeeded",
        ],
        args: PAIRS,
        needs: NO_VALUES,
        handler: write::mset,
        ..Spec::BASE
    },
    Spec {
        name: "msetnx",
        makes: Makes::Little,
        arity: -3,
        flags: WRITE | DENYOOM | BOUNDED,
        keys: &[KeySpec::rest(1, 2, access::OW | access::INSERT)],
        group: Group::String,
        since: "1.0.1",
        summary: "Sets the values of several keys if none of them exists yet",
        complexity: "O(N) for N keys",
        tips: &["request_policy:multi_shard", "response_policy:agg_min"],
        args: PAIRS,
        needs: NO_VALUES,
        handler: write::msetnx,
        ..Spec::BASE
    },
    Spec {
        name: "msetex",
        makes: Makes::Little,
        arity: -4,
        flags: WRITE | DENYOOM | MOVABLE_KEYS,
        keys: &[KeySpec {
            access: access::OW | access::UPDATE,
            begin: Begin::Index(1),
            find: Find::Count {
                count: 0,
                first: 1,
                step: 2,
            },
            notes: None,
        }],
        group: Group::String,
        since: "8.4.0",
        summary: "Sets the values and the expiry of several keys, if none of them exists or all do",
        complexity: "O(N) for N keys",
        tips: &[
            "request_policy:multi_shard",
            "response_policy:all_succeeded",
        ],
        args: &[
            Arg::of("numkeys", ArgKind::Integer),
            Arg::block("data", &[KEY, VALUE]).multiple(),
            Arg::one_of("condition", &[Arg::word("nx", "NX"), Arg::word("xx", "XX")]).optional(),
            Arg::one_of(
                "expiration",
                &[EX, PX, EXAT, PXAT, Arg::word("keepttl", "KEEPTTL")],
            )
            .optional(),
        ],
        needs: NO_VALUES,
        handler: write::msetex,
        ..Spec::BASE
    },
    Spec {
        name: "append",
        makes: Makes::Value,
        arity: 3,
        flags: WRITE | DENYOOM | FAST,
        keys: &[KeySpec::one(1, access::RW | access::INSERT)],
        group: Group::String,
        since: "2.0.0",
        summary: "Adds bytes at the end of a value",
        complexity: "O(1) on average for what is added, as room is doubled where it runs out",
        args: &[KEY, VALUE],
        handler: write::append,
        ..Spec::BASE
    },
    Spec {
        name: "setrange",
        makes: Makes::Value,
        arity: 4,
        flags: WRITE | DENYOOM,
        keys: &[KeySpec::one(1, access::RW | access::UPDATE)],
        group: Group::String,
        since: "2.2.0",
        summary: "Overwrites a part of a value, which grows as needed",
        complexity: "O(N) for N bytes written, and the bytes by which the value grows",
        args: &[KEY, Arg::of("offset", ArgKind::Integer), VALUE],
        handler: write::setrange,
        ..Spec::BASE
    },
    Spec {
        name: "incr",
        makes: Makes::Little,
        arity: 2,
        flags: WRITE | DENYOOM | FAST,
        keys: CHANGE,
        group: Group::String,
        summary: "Adds one to the integer in a key; a missing key counts as 0",
        args: &[KEY],
        handler: number::incr,
        ..Spec::BASE
    },
    Spec {
        name: "decr",
        makes: Makes::Little,
        arity: 2,
        flags: WRITE | DENYOOM | FAST,
        keys: CHANGE,
        group: Group::String,
        summary: "Takes one from the integer in a key; a missing key counts as 0",
        args: &[KEY],
        handler: number::decr,
        ..Spec::BASE
    },
    Spec {
        name: "incrby",
        makes: Makes::Little,
        arity: 3,
        flags: WRITE | DENYOOM | FAST,
        keys: CHANGE,
        group: Group::String,
        summary: "Adds to the integer in a key; a missing key counts as 0",
        args: &[KEY, Arg::of("increment", ArgKind::Integer)],
        handler: number::incrby,
        ..Spec::BASE
    },
    Spec {
        name: "decrby",
        makes: Makes::Little,
        arity: 3,
        flags: WRITE | DENYOOM | FAST,
        keys: CHANGE,
        group: Group::String,
        summary: "Takes from the integer in a key; a missing key counts as 0",
        args: &[KEY, Arg::of("decrement", ArgKind::Integer)],
        handler: number::decrby,
        ..Spec::BASE
    },
    Spec {
        name: "incrbyfloat",
        makes: Makes::Little,
        arity: 3,
        flags: WRITE | DENYOOM | FAST,
        keys: CHANGE,
        group: Group::String,
        since: "2.6.0",
        summary: "Adds to the decimal number in a key; a missing key counts as 0",
        args: &[KEY, Arg::of("increment", ArgKind::Double)],
        handler: number::incrbyfloat,
        ..Spec::BASE
    },
    Spec {
        name: "digest",
        makes: Makes::Little,
        arity: 2,
        flags: READONLY | FAST,
        keys: READ,
        group: Group::String,
        since: "8.4.0",
        summary: "Returns the XXH3 digest of a value, for conditions on it (as in Redis 8.4)",
        complexity: "O(N) for a value of N bytes",
        args: &[KEY],
        handler: compare::digest,
        ..Spec::BASE
    },
    Spec {
        name: "delex",
        makes: Makes::Little,
        arity: -2,
        flags: WRITE | REMOVES | FAST,
        keys: &[KeySpec::one(
            1,
            access::RW | access::DELETE | access::VARIABLE_FLAGS,
        )],
        group: Group::String,
        since: "8.4.0",
        summary: "Removes a key if its value meets a condition (as in Redis 8.4)",
        complexity: "O(1) for IFEQ and IFNE, O(N) for a digest of a value of N bytes",
        args: &[
            KEY,
            Arg::one_of("condition", &[IFEQ, IFNE, IFDEQ, IFDNE]).optional(),
        ],
        handler: compare::delex,
        ..Spec::BASE
    },
    Spec {
        name: "delifeq",
        makes: Makes::Little,
        arity: 3,
        flags: WRITE | REMOVES | BOUNDED,
        keys: &[KeySpec::one(
            1,
            access::RM | access::ACCESS | access::DELETE,
        )],
        group: Group::String,
        since: "9.0.0",
        summary: "Removes a key if it holds exactly this value (as in Valkey 9.0)",
        args: &[KEY, VALUE],
        handler: compare::delifeq,
        ..Spec::BASE
    },
    Spec {
        name: "lcs",
        makes: Makes::Item,
        arity: -3,
        flags: READONLY,
        keys: &[KeySpec {
            access: access::RO | access::ACCESS,
            begin: Begin::Index(1),
            find: Find::Range {
                last: 1,
                step: 1,
                limit: 0,
            },
            notes: None,
        }],
        group: Group::String,
        since: "7.0.0",
        summary: "Finds the longest sequence of bytes that two values have in common, gaps allowed",
        complexity: "O(N*M) for values of N and M bytes",
        args: &[
            Arg::key("key1"),
            Arg::key("key2"),
            Arg::word("len", "LEN").optional(),
            Arg::word("idx", "IDX").optional(),
            Arg::of("len", ArgKind::Integer)
                .token("MINMATCHLEN")
                .optional(),
            Arg::word("withmatchlen", "WITHMATCHLEN").optional(),
        ],
        handler: lcs::lcs,
        ..Spec::BASE
    },
];

/// Arguments of GETRANGE.
const RANGE: &[Arg] = &[
    KEY,
    Arg::of("start", ArgKind::Integer),
    Arg::of("end", ArgKind::Integer),
];
