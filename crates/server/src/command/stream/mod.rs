//! Streams: values that are entries in the order of their IDs.
//!
//! The table of the family is here; its handlers are in the files below, in table order:
//!
//! | file | commands |
//! |---|---|
//! | `write` | XADD XDEL XTRIM XSETID |
//! | `idempotent` | XCFGSET, and the options IDMP and IDMPAUTO of XADD |
//! | `read` | XLEN XRANGE XREVRANGE |
//! | `consume` | XREAD XREADGROUP; `deliver` gives their entries, `waiting` has their waits |
//! | `group` | XGROUP |
//! | `ack` | XACK XPENDING |
//! | `claim` | XCLAIM XAUTOCLAIM |
//! | `references` | XDELEX XACKDEL, and the same options of XADD and XTRIM |
//! | `info` | XINFO |
//!
//! `id` reads and writes IDs, `trim` the options of XADD and XTRIM, `leaves` says which leaves of a large
//! stream commands need in memory, `progress` how far a group is, `room` makes
//! room for the entries that a request takes. All from `consume` on is in the table of
//! `group_table`, the arguments of both tables in `arguments`.

mod ack;
mod arguments;
mod claim;
mod consume;
mod deliver;
mod group;
mod group_table;
mod id;
mod idempotent;
mod info;
mod leaves;
mod progress;
mod read;
mod references;
mod room;
mod trim;
mod waiting;
mod write;

pub(crate) use group_table::COMMANDS as GROUPS;

use super::spec::ItemsNeeded;
use super::{Arg, ArgKind, KeySpec, Makes, Spec, access, flag::*};
use arguments::{CONDITION, CONDITION_SINCE, COUNT, END, ID, IDS, KEY, READS, START};

/// Fields and values in turn.
const PAIRS: Arg = Arg::block(
    "field_value",
    &[
        Arg::of("field", ArgKind::String),
        Arg::of("value", ArgKind::String),
    ],
)
.multiple();

/// How many entries stay.
const STRATEGY: Arg = Arg::one_of(
    "strategy",
    &[
        Arg::word("maxlen", "MAXLEN"),
        Arg::word("minid", "MINID").since("6.2.0"),
    ],
);
const OPERATOR: Arg = Arg::one_of(
    "operator",
    &[Arg::word("equal", "="), Arg::word("approximately", "~")],
)
.optional();
const THRESHOLD: Arg = Arg::of("threshold", ArgKind::String);
const LIMIT: Arg = Arg::of("count", ArgKind::Integer)
    .token("LIMIT")
    .since("6.2.0")
    .optional();

const PRODUCER: Arg = Arg::of("pid", ArgKind::String);
/// An idempotent ID of a producer.
const IDEMPOTENT: Arg = Arg::one_of(
    "idmp",
    &[
        Arg::block("idmp", &[PRODUCER, Arg::of("iid", ArgKind::String)]).token("IDMP"),
        PRODUCER.token("IDMPAUTO"),
    ],
)
.since("8.6.0")
.optional();

/// The table of this family.
pub(crate) const COMMANDS: &[Spec] = &[
    Spec {
        name: "xadd",
        makes: Makes::Little,
        arity: -5,
        flags: WRITE | DENYOOM | FAST,
        keys: &[KeySpec {
            notes: Some("UPDATE instead of INSERT because of the optional trimming feature"),
            ..KeySpec::one(1, access::RW | access::UPDATE)
        }],
        summary: "Adds an entry at the end of a stream, and returns its ID",
        complexity: "O(log N), and O(log N) for what it removes",
        tips: &["nondeterministic_output"],
        args: &[
            KEY,
            Arg::word("nomkstream", "NOMKSTREAM")
                .since("6.2.0")
                .optional(),
            CONDITION,
            IDEMPOTENT,
            Arg::block("trim", &[STRATEGY, OPERATOR, THRESHOLD, LIMIT]).optional(),
            Arg::one_of("id_or_auto", &[Arg::word("auto_id", "*"), ID]),
            PAIRS,
        ],
        history: &[
            ("6.2.0", "Takes NOMKSTREAM, MINID and LIMIT."),
            ("7.0.0", "Takes IDs of the form `<ms>-*`."),
            CONDITION_SINCE,
            ("8.6.0", "Takes IDMP and IDMPAUTO."),
        ],
        items: ItemsNeeded::Entries(write::leaves_of_xadd),
        handler: write::xadd,
        ..READS
    },
    Spec {
        name: "xdel",
        makes: Makes::Little,
        arity: -3,
        flags: WRITE | FAST | REMOVES,
        keys: &[KeySpec::one(1, access::RW | access::DELETE)],
        summary: "Removes entries; tells how many there were",
        complexity: "O(log N) for each ID",
        args: &[KEY, ID.multiple()],
        items: ItemsNeeded::Entries(write::leaves_of_xdel),
        handler: write::xdel,
        ..READS
    },
    Spec {
        name: "xdelex",
        makes: Makes::Little,
        arity: -5,
        flags: WRITE | FAST | REMOVES,
        keys: &[KeySpec::one(1, access::RW | access::DELETE)],
        since: "8.2.0",
        summary: "Removes entries, with what groups have of them or if groups have nothing of them",
        complexity: "O(G log N) for each ID and G groups",
        args: &[KEY, CONDITION, IDS],
        items: ItemsNeeded::Entries(references::leaves_of_xdelex),
        handler: references::xdelex,
        ..READS
    },
    Spec {
        name: "xtrim",
        makes: Makes::Little,
        arity: -4,
        flags: WRITE | REMOVES,
        keys: &[KeySpec::one(1, access::RW | access::DELETE)],
        summary: "Removes the first entries of a stream; tells how many there were",
        complexity: "O(log N), and O(1) for a leaf of entries that goes",
        tips: &["nondeterministic_output"],
        args: &[
            KEY,
            Arg::block("trim", &[STRATEGY, OPERATOR, THRESHOLD, LIMIT, CONDITION]),
        ],
        history: &[("6.2.0", "Takes MINID and LIMIT."), CONDITION_SINCE],
        items: ItemsNeeded::Entries(write::leaves_of_xtrim),
        handler: write::xtrim,
        ..READS
    },
    Spec {
        name: "xsetid",
        makes: Makes::Little,
        arity: -3,
        flags: WRITE | DENYOOM | FAST,
        keys: &[KeySpec::one(1, access::RW | access::UPDATE)],
        summary: "Sets the last ID of a stream, for those that copy streams",
        args: &[
            KEY,
            Arg::of("last-id", ArgKind::String),
            Arg::of("entries_added", ArgKind::Integer)
                .token("ENTRIESADDED")
                .since("7.0.0")
                .optional(),
            Arg::of("max_deleted_entry_id", ArgKind::String)
                .token("MAXDELETEDID")
                .since("7.0.0")
                .optional(),
        ],
        history: &[("7.0.0", "Takes ENTRIESADDED and MAXDELETEDID.")],
        items: ItemsNeeded::Entries(write::leaves_of_xsetid),
        handler: write::xsetid,
        ..READS
    },
    Spec {
        name: "xcfgset",
        makes: Makes::Little,
        arity: -2,
        // It gives memory back, so it is allowed without room.
        flags: WRITE | FAST,
        keys: &[KeySpec::one(1, access::RW | access::UPDATE)],
        since: "8.6.0",
        summary: "Says how long idempotent IDs are kept, and how many of a producer",
        complexity: "O(N) with N the idempotent IDs that are forgotten, if a value changes",
        args: &[
            KEY,
            Arg::of("idmp-duration", ArgKind::Integer)
                .token("IDMP-DURATION")
                .optional(),
            Arg::of("idmp-maxsize", ArgKind::Integer)
                .token("IDMP-MAXSIZE")
                .optional(),
        ],
        items: ItemsNeeded::None,
        handler: idempotent::xcfgset,
        ..READS
    },
    Spec {
        name: "xlen",
        makes: Makes::Little,
        arity: 2,
        flags: READONLY | FAST,
        keys: &[KeySpec::one(1, access::RO)],
        summary: "Returns the number of entries",
        args: &[KEY],
        items: ItemsNeeded::None,
        handler: read::xlen,
        ..READS
    },
    Spec {
        name: "xrange",
        makes: Makes::Reply,
        arity: -4,
        summary: "Returns the entries from an ID to another",
        complexity: "O(log N + M) for M of N entries",
        args: &[KEY, START, END, COUNT],
        history: &[("6.2.0", "Takes `(` before an ID that is excluded.")],
        items: ItemsNeeded::Entries(read::leaves_of_xrange),
        handler: read::xrange,
        ..READS
    },
    Spec {
        name: "xrevrange",
        makes: Makes::Reply,
        arity: -4,
        summary: "Returns the entries from an ID to another, the last one first",
        complexity: "O(log N + M) for M of N entries",
        args: &[KEY, END, START, COUNT],
        history: &[("6.2.0", "Takes `(` before an ID that is excluded.")],
        items: ItemsNeeded::Entries(read::leaves_of_xrevrange),
        handler: read::xrevrange,
        ..READS
    },
];
