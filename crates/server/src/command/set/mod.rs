//! Sets: values that are members without order.
//!
//! The table of the family is here; its handlers are in the files below, in table order:
//!
//! | file | commands |
//! |---|---|
//! | `read` | SMEMBERS SISMEMBER SMISMEMBER SCARD |
//! | `write` | SADD SREM SMOVE |
//! | `random` | SPOP SRANDMEMBER |
//! | `several` | SINTER SUNION SDIFF, SINTERSTORE SUNIONSTORE SDIFFSTORE, SINTERCARD |
//!
//! `combine` has the members of an intersection, a union or a difference. SSCAN, and what hashes and sets
//! have in common, is in [`super::items`].

mod combine;
mod random;
mod read;
mod several;
mod write;

use keyspace::collection::kind::Members;

use super::items::scan;
use super::spec::{Begin, Find, ItemsNeeded};
use super::{Arg, ArgKind, Group, KeySpec, Makes, Spec, access, flag::*};

const KEY: Arg = Arg::key("key");
const MEMBER: Arg = Arg::of("member", ArgKind::String);

/// A row of the commands that read one key.
const READS: Spec = Spec {
    flags: READONLY | FAST,
    keys: &[KeySpec::one(1, access::RO)],
    group: Group::Set,
    ..Spec::BASE
};

/// A row of the commands that read several keys as a whole.
const COMBINES: Spec = Spec {
    arity: -2,
    flags: READONLY,
    keys: &[KeySpec::rest(1, 1, access::RO | access::ACCESS)],
    tips: &["nondeterministic_output_order"],
    args: &[KEY.multiple()],
    ..READS
};

/// A row of the commands that keep what they make of several keys.
const STORES: Spec = Spec {
    arity: -3,
    flags: WRITE | DENYOOM,
    keys: &[
        KeySpec::one(1, access::OW | access::UPDATE),
        KeySpec::rest(2, 1, access::RO | access::ACCESS),
    ],
    needs: |_, at| at > 1,
    args: &[
        Arg::key("destination"),
        Arg {
            key_spec: Some(1),
            ..KEY.multiple()
        },
    ],
    ..READS
};

/// The table of this family.
pub(crate) const COMMANDS: &[Spec] = &[
    Spec {
        name: "smembers",
        makes: Makes::Reply,
        arity: 2,
        flags: READONLY,
        keys: &[KeySpec::one(1, access::RO | access::ACCESS)],
        summary: "Returns all members",
        complexity: "O(N) for N members",
        tips: &["nondeterministic_output_order"],
        args: &[KEY],
        items: ItemsNeeded::Walked,
        handler: read::smembers,
        ..READS
    },
    Spec {
        name: "sismember",
        makes: Makes::Little,
        arity: 3,
        summary: "Tells whether a set has a member",
        args: &[KEY, MEMBER],
        items: ItemsNeeded::Named { from: 2, step: 1 },
        handler: read::sismember,
        ..READS
    },
    Spec {
        name: "smismember",
        makes: Makes::Little,
        arity: -3,
        keys: &[KeySpec::one(1, access::RO | access::ACCESS)],
        since: "6.2.0",
        summary: "Tells of several members whether a set has them",
        complexity: "O(N) for N members that are asked for",
        args: &[KEY, MEMBER.multiple()],
        items: ItemsNeeded::Named { from: 2, step: 1 },
        handler: read::smismember,
        ..READS
    },
    Spec {
        name: "scard",
        makes: Makes::Little,
        arity: 2,
        summary: "Returns the number of members",
        args: &[KEY],
        items: ItemsNeeded::None,
        handler: read::scard,
        ..READS
    },
    Spec {
        name: "sadd",
        makes: Makes::Little,
        arity: -3,
        flags: WRITE | DENYOOM | FAST,
        keys: &[KeySpec::one(1, access::RW | access::INSERT)],
        summary: "Adds members; tells how many of them are new",
        complexity: "O(N) for N members that are added",
        args: &[KEY, MEMBER.multiple()],
        history: &[("2.4.0", "Takes several members.")],
        items: ItemsNeeded::Named { from: 2, step: 1 },
        handler: write::sadd,
        ..READS
    },
    Spec {
        name: "srem",
        makes: Makes::Little,
        arity: -3,
        flags: WRITE | REMOVES | FAST,
        keys: &[KeySpec::one(1, access::RW | access::DELETE)],
        summary: "Removes members, and the key with the last of them; tells how many there were",
        complexity: "O(N) for N members that are named",
        args: &[KEY, MEMBER.multiple()],
        history: &[("2.4.0", "Takes several members.")],
        items: ItemsNeeded::Named { from: 2, step: 1 },
        handler: write::srem,
        ..READS
    },
    Spec {
        name: "smove",
        makes: Makes::Little,
        arity: 4,
        flags: WRITE | FAST,
        keys: &[
            KeySpec::one(1, access::RW | access::ACCESS | access::DELETE),
            KeySpec::one(2, access::RW | access::INSERT),
        ],
        summary: "Moves a member from one set to another",
        args: &[
            Arg::key("source"),
            Arg {
                key_spec: Some(1),
                ..Arg::key("destination")
            },
            MEMBER,
        ],
        items: ItemsNeeded::Named { from: 3, step: 1 },
        handler: write::smove,
        ..READS
    },
    Spec {
        name: "spop",
        makes: Makes::Taken,
        arity: -2,
        flags: WRITE | REMOVES | FAST,
        keys: &[KeySpec::one(
            1,
            access::RW | access::ACCESS | access::DELETE,
        )],
        summary: "Removes members by chance and returns them",
        complexity: "O(N log M) for N members of M that are removed",
        tips: &["nondeterministic_output"],
        args: &[
            KEY,
            Arg::of("count", ArgKind::Integer).since("3.2.0").optional(),
        ],
        history: &[("3.2.0", "Takes `count`.")],
        items: ItemsNeeded::Drawn(random::drawn_by_spop),
        handler: random::spop,
        ..READS
    },
    Spec {
        name: "srandmember",
        makes: Makes::Reply,
        arity: -2,
        flags: READONLY,
        keys: &[KeySpec::one(1, access::RO | access::ACCESS)],
        summary: "Returns members by chance: one, several different ones, or some more than once",
        complexity: "O(N log M) for N members of M that are returned",
        tips: &["nondeterministic_output"],
        args: &[
            KEY,
            Arg::of("count", ArgKind::Integer).since("2.6.0").optional(),
        ],
        history: &[("2.6.0", "Takes `count`.")],
        items: ItemsNeeded::Any,
        handler: random::srandmember,
        ..READS
    },
    Spec {
        name: "sscan",
        makes: Makes::Reply,
        arity: -3,
        flags: READONLY,
        keys: &[KeySpec::one(1, access::RO | access::ACCESS)],
        since: "2.8.0",
        summary: "Lists some of the members, and tells where to go on",
        complexity: "O(1) a call, O(N) to meet all members of a set, N being their number",
        tips: &["nondeterministic_output"],
        args: &[
            KEY,
            Arg::of("cursor", ArgKind::Integer),
            Arg::of("pattern", ArgKind::Pattern)
                .token("MATCH")
                .optional(),
            Arg::of("count", ArgKind::Integer).token("COUNT").optional(),
        ],
        items: ItemsNeeded::Scan,
        handler: scan::scan::<Members>,
        ..READS
    },
    Spec {
        name: "sinter",
        makes: Makes::Reply,
        summary: "Returns the members that all sets have",
        complexity: "O(N*M) for N members of the smallest of M sets",
        handler: several::sinter,
        ..COMBINES
    },
    Spec {
        name: "sunion",
        makes: Makes::Reply,
        summary: "Returns the members that any of the sets has",
        complexity: "O(N) for N members in all sets",
        handler: several::sunion,
        ..COMBINES
    },
    Spec {
        name: "sdiff",
        makes: Makes::Reply,
        summary: "Returns the members of the first set that no other has",
        complexity: "O(N) for N members in all sets",
        handler: several::sdiff,
        ..COMBINES
    },
    Spec {
        name: "sinterstore",
        makes: Makes::Value,
        keys: &[
            KeySpec::one(1, access::RW | access::UPDATE),
            KeySpec::rest(2, 1, access::RO | access::ACCESS),
        ],
        summary: "Gives a key the members that all sets have",
        complexity: "O(N*M) for N members of the smallest of M sets",
        handler: several::sinterstore,
        ..STORES
    },
    Spec {
        name: "sunionstore",
        makes: Makes::Value,
        summary: "Gives a key the members that any of the sets has",
        complexity: "O(N) for N members in all sets",
        handler: several::sunionstore,
        ..STORES
    },
    Spec {
        name: "sdiffstore",
        makes: Makes::Value,
        summary: "Gives a key the members of the first set that no other has",
        complexity: "O(N) for N members in all sets",
        handler: several::sdiffstore,
        ..STORES
    },
    Spec {
        name: "sintercard",
        makes: Makes::Little,
        arity: -3,
        flags: READONLY | MOVABLE_KEYS,
        keys: &[KeySpec {
            access: access::RO | access::ACCESS,
            begin: Begin::Index(1),
            find: Find::Count {
                count: 0,
                first: 1,
                step: 1,
            },
            notes: None,
        }],
        since: "7.0.0",
        summary: "Tells how many members all sets have, or whether they have so many",
        complexity: "O(N*M) for N members of the smallest of M sets",
        args: &[
            Arg::of("numkeys", ArgKind::Integer),
            KEY.multiple(),
            Arg::of("limit", ArgKind::Integer).token("LIMIT").optional(),
        ],
        handler: several::sintercard,
        ..READS
    },
];
