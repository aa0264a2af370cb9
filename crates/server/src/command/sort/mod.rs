//! SORT and SORT_RO: the elements of a list, a set or a sorted set in order, or what other keys have for
//! them.
//!
//! The table is here, `plan` reads a request, `pattern` finds the value of another key for an element, `sort`
//! does the rest.
//!
//! Without patterns the shard of the key is locked until its elements are copied. With patterns all shards of
//! the database stay locked, because elements say which keys are read: a reply shows one moment.

mod pattern;
mod plan;
#[allow(clippy::module_inception)]
mod sort;

use super::spec::{Begin, FIRST_VALUE, Find};
use super::{Arg, ArgKind, KeySpec, Makes, Spec, access, category, flag::*};

/// Keys that only elements and options tell.
const fn untold(access: u16, notes: &'static str) -> KeySpec {
    KeySpec {
        access,
        begin: Begin::Unknown,
        find: Find::Unknown,
        notes: Some(notes),
    }
}

const KEY: KeySpec = KeySpec::one(1, access::RO | access::ACCESS);
const PATTERNS: KeySpec = untold(
    access::RO | access::ACCESS,
    "For the optional BY/GET keyword. It is marked 'unknown' because the key names derive from the content \
     of the key we sort",
);
const STORE: KeySpec = untold(
    access::OW | access::UPDATE,
    "For the optional STORE keyword. It is marked 'unknown' because the keyword can appear anywhere in the \
     argument array",
);

const fn pattern(token: &'static str) -> Arg {
    Arg {
        key_spec: Some(1),
        ..Arg::of("pattern", ArgKind::Pattern)
    }
    .token(token)
    .optional()
}

const LIMIT: Arg = Arg::block(
    "offset_count",
    &[
        Arg::of("offset", ArgKind::Integer),
        Arg::of("count", ArgKind::Integer),
    ],
)
.token("LIMIT")
.optional();
const GET: Arg = Arg {
    multiple: true,
    multiple_token: true,
    ..pattern("GET")
};
const ORDER: Arg = Arg::one_of(
    "order",
    &[Arg::word("asc", "ASC"), Arg::word("desc", "DESC")],
)
.optional();
const ALPHA: Arg = Arg::word("sorting", "ALPHA").optional();
const DESTINATION: Arg = Arg {
    key_spec: Some(2),
    ..Arg::key("destination")
}
.token("STORE")
.optional();

/// The categories that it shares with the commands of three types.
const CATEGORIES: u32 = category::SET | category::SORTEDSET | category::LIST | category::DANGEROUS;

const ROW: Spec = Spec {
    arity: -2,
    complexity: "O(N+M*log(M)) for N elements of which M are returned; O(N) if they are not sorted",
    categories: CATEGORIES,
    needs: FIRST_VALUE,
    ..Spec::BASE
};

/// The table.
pub(crate) const COMMANDS: &[Spec] = &[
    Spec {
        name: "sort",
        makes: Makes::Reply,
        flags: WRITE | DENYOOM | MOVABLE_KEYS,
        keys: &[KEY, PATTERNS, STORE],
        summary: "Returns the elements of a list, a set or a sorted set in order, or stores them as a list",
        args: &[
            Arg::key("key"),
            pattern("BY"),
            LIMIT,
            GET,
            ORDER,
            ALPHA,
            DESTINATION,
        ],
        handler: sort::sort,
        ..ROW
    },
    Spec {
        name: "sort_ro",
        makes: Makes::Reply,
        flags: READONLY | MOVABLE_KEYS,
        keys: &[KEY, PATTERNS],
        since: "7.0.0",
        summary: "Returns the elements of a list, a set or a sorted set in order",
        args: &[Arg::key("key"), pattern("BY"), LIMIT, GET, ORDER, ALPHA],
        handler: sort::sort_ro,
        ..ROW
    },
];
