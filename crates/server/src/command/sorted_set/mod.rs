//! Sorted sets: members in the order of their scores.
//!
//! The tables of the family are here, in `range_table`, `several_table` and `blocking`; handlers are in these
//! files:
//!
//! | file | commands |
//! |---|---|
//! | `add` | ZADD ZINCRBY ZREM |
//! | `read` | ZCARD ZSCORE ZMSCORE ZRANK ZREVRANK ZCOUNT ZLEXCOUNT |
//! | `remove` | ZREMRANGEBYRANK ZREMRANGEBYSCORE ZREMRANGEBYLEX |
//! | `pop` | ZPOPMIN ZPOPMAX ZMPOP |
//! | `blocking` | BZPOPMIN BZPOPMAX BZMPOP |
//! | `random` | ZRANDMEMBER ZSCAN |
//! | `range` | ZRANGE and its kin, ZRANGESTORE |
//! | `several` | ZUNION ZINTER ZDIFF, ZUNIONSTORE ZINTERSTORE ZDIFFSTORE, ZINTERCARD |
//!
//! `bounds` has the ends of ranges. What sorted sets have in common with hashes and sets is in
//! [`super::items`].

mod add;
mod blocking;
mod bounds;
mod pop;
mod random;
mod range;
mod range_table;
mod read;
mod remove;
mod several;
mod several_table;

use super::spec::{Begin, Find, ItemsNeeded};

use super::{Arg, ArgKind, Group, KeySpec, Makes, Spec, access, flag::*};

pub(super) use add::{ScoreOptions, add_scores};
pub(crate) use blocking::COMMANDS as WAITS;
pub(crate) use range_table::RANGES;
pub(crate) use several_table::COMBINES;

/// A row of the commands that read one key.
const READS: Spec = Spec {
    flags: READONLY | FAST,
    keys: &[KeySpec::one(1, access::RO | access::ACCESS)],
    complexity: "O(log N)",
    group: Group::SortedSet,
    ..Spec::BASE
};

/// The table of what changes or reads members one by one.
pub(crate) const COMMANDS: &[Spec] = &[
    Spec {
        name: "zadd",
        makes: Makes::Little,
        arity: -4,
        flags: WRITE | DENYOOM | FAST,
        keys: &[KeySpec::one(1, access::RW | access::UPDATE)],
        since: "1.2.0",
        summary: "Gives members scores, and adds those that are missing; tells how many are new",
        complexity: "O(log N) for each member",
        args: &[
            Arg::key("key"),
            Arg::one_of("condition", &[Arg::word("nx", "NX"), Arg::word("xx", "XX")])
                .since("3.0.2")
                .optional(),
            Arg::one_of(
                "comparison",
                &[Arg::word("gt", "GT"), Arg::word("lt", "LT")],
            )
            .since("6.2.0")
            .optional(),
            Arg::word("change", "CH").since("3.0.2").optional(),
            Arg::word("increment", "INCR").since("3.0.2").optional(),
            Arg::block(
                "score_member",
                &[
                    Arg::of("score", ArgKind::Double),
                    Arg::of("member", ArgKind::String),
                ],
            )
            .multiple(),
        ],
        history: &[
            ("2.4.0", "Takes several members."),
            ("3.0.2", "Takes `XX`, `NX`, `CH` and `INCR`."),
            ("6.2.0", "Takes `GT` and `LT`."),
        ],
        items: ItemsNeeded::Scored {
            from: 3,
            step: 2,
            adds: false,
            records: add::leaves_of_zadd,
        },
        handler: add::zadd,
        ..READS
    },
    Spec {
        name: "zincrby",
        makes: Makes::Little,
        arity: 4,
        flags: WRITE | DENYOOM | FAST,
        keys: &[KeySpec::one(
            1,
            access::RW | access::ACCESS | access::UPDATE,
        )],
        since: "1.2.0",
        summary: "Adds to the score of a member; a missing member's counts as 0",
        args: &[
            Arg::key("key"),
            Arg::of("increment", ArgKind::Integer),
            Arg::of("member", ArgKind::String),
        ],
        items: ItemsNeeded::Scored {
            from: 3,
            step: 1,
            adds: true,
            records: add::leaves_of_zincrby,
        },
        handler: add::zincrby,
        ..READS
    },
    Spec {
        name: "zrem",
        makes: Makes::Little,
        arity: -3,
        flags: WRITE | REMOVES | FAST,
        keys: &[KeySpec::one(1, access::RW | access::DELETE)],
        since: "1.2.0",
        summary: "Removes members, and the key with the last of them; tells how many there were",
        complexity: "O(M log N) for M members that are named",
        args: &[
            Arg::key("key"),
            Arg::of("member", ArgKind::String).multiple(),
        ],
        history: &[("2.4.0", "Takes several members.")],
        items: ItemsNeeded::Named { from: 2, step: 1 },
        handler: add::zrem,
        ..READS
    },
    Spec {
        name: "zcard",
        makes: Makes::Little,
        arity: 2,
        keys: &[KeySpec::one(1, access::RO)],
        since: "1.2.0",
        summary: "Returns the number of members",
        complexity: "O(1)",
        args: &[Arg::key("key")],
        items: ItemsNeeded::None,
        handler: read::zcard,
        ..READS
    },
    Spec {
        name: "zscore",
        makes: Makes::Little,
        arity: 3,
        since: "1.2.0",
        summary: "Returns the score of a member",
        args: &[Arg::key("key"), Arg::of("member", ArgKind::String)],
        items: ItemsNeeded::Named { from: 2, step: 1 },
        handler: read::zscore,
        ..READS
    },
    Spec {
        name: "zmscore",
        makes: Makes::Reply,
        arity: -3,
        since: "6.2.0",
        summary: "Returns the scores of several members",
        complexity: "O(M log N) for M members that are asked for",
        args: &[
            Arg::key("key"),
            Arg::of("member", ArgKind::String).multiple(),
        ],
        items: ItemsNeeded::Named { from: 2, step: 1 },
        handler: read::zmscore,
        ..READS
    },
    Spec {
        name: "zrank",
        makes: Makes::Little,
        arity: -3,
        since: "2.0.0",
        summary: "Tells how many members are before one, the lowest score first",
        args: &[
            Arg::key("key"),
            Arg::of("member", ArgKind::String),
            Arg::word("withscore", "WITHSCORE")
                .since("7.2.0")
                .optional(),
        ],
        history: &[("7.2.0", "Takes `WITHSCORE`.")],
        items: ItemsNeeded::Named { from: 2, step: 1 },
        handler: read::zrank,
        ..READS
    },
    Spec {
        name: "zrevrank",
        makes: Makes::Little,
        arity: -3,
        since: "2.0.0",
        summary: "Tells how many members are before one, the highest score first",
        args: &[
            Arg::key("key"),
            Arg::of("member", ArgKind::String),
            Arg::word("withscore", "WITHSCORE")
                .since("7.2.0")
                .optional(),
        ],
        history: &[("7.2.0", "Takes `WITHSCORE`.")],
        items: ItemsNeeded::Named { from: 2, step: 1 },
        handler: read::zrevrank,
        ..READS
    },
    Spec {
        name: "zcount",
        makes: Makes::Little,
        arity: 4,
        since: "2.0.0",
        summary: "Counts the members whose scores are in a range",
        args: &[
            Arg::key("key"),
            Arg::of("min", ArgKind::Double),
            Arg::of("max", ArgKind::Double),
        ],
        items: ItemsNeeded::By(read::leaves_of_zcount),
        handler: read::zcount,
        ..READS
    },
    Spec {
        name: "zlexcount",
        makes: Makes::Little,
        arity: 4,
        since: "2.8.9",
        summary: "Counts the members in a range of their names, where all have one score",
        args: &[
            Arg::key("key"),
            Arg::of("min", ArgKind::String),
            Arg::of("max", ArgKind::String),
        ],
        items: ItemsNeeded::By(read::leaves_of_zlexcount),
        handler: read::zlexcount,
        ..READS
    },
    Spec {
        name: "zremrangebyrank",
        makes: Makes::Little,
        arity: 4,
        flags: WRITE | REMOVES,
        keys: &[KeySpec::one(1, access::RW | access::DELETE)],
        since: "2.0.0",
        summary: "Removes the members in a range of ranks; tells how many there were",
        complexity: "O(M log N) for M members that are removed",
        args: &[
            Arg::key("key"),
            Arg::of("start", ArgKind::Integer),
            Arg::of("stop", ArgKind::Integer),
        ],
        items: ItemsNeeded::By(remove::leaves_by_rank),
        handler: remove::zremrangebyrank,
        ..READS
    },
    Spec {
        name: "zremrangebyscore",
        makes: Makes::Little,
        arity: 4,
        flags: WRITE | REMOVES,
        keys: &[KeySpec::one(1, access::RW | access::DELETE)],
        since: "1.2.0",
        summary: "Removes the members in a range of scores; tells how many there were",
        complexity: "O(M log N) for M members that are removed",
        args: &[
            Arg::key("key"),
            Arg::of("min", ArgKind::Double),
            Arg::of("max", ArgKind::Double),
        ],
        items: ItemsNeeded::By(remove::leaves_by_score),
        handler: remove::zremrangebyscore,
        ..READS
    },
    Spec {
        name: "zremrangebylex",
        makes: Makes::Little,
        arity: 4,
        flags: WRITE | REMOVES,
        keys: &[KeySpec::one(1, access::RW | access::DELETE)],
        since: "2.8.9",
        summary: "Removes the members in a range of names, where all have one score",
        complexity: "O(M log N) for M members that are removed",
        args: &[
            Arg::key("key"),
            Arg::of("min", ArgKind::String),
            Arg::of("max", ArgKind::String),
        ],
        items: ItemsNeeded::By(remove::leaves_by_lex),
        handler: remove::zremrangebylex,
        ..READS
    },
    Spec {
        name: "zpopmin",
        makes: Makes::Taken,
        arity: -2,
        flags: WRITE | REMOVES | FAST,
        keys: &[KeySpec::one(
            1,
            access::RW | access::ACCESS | access::DELETE,
        )],
        since: "5.0.0",
        summary: "Removes and returns the members with the lowest scores",
        complexity: "O(M log N) for M members that are removed",
        args: &[
            Arg::key("key"),
            Arg::of("count", ArgKind::Integer).optional(),
        ],
        items: ItemsNeeded::By(pop::leaves_of_zpopmin),
        handler: pop::zpopmin,
        ..READS
    },
    Spec {
        name: "zpopmax",
        makes: Makes::Taken,
        arity: -2,
        flags: WRITE | REMOVES | FAST,
        keys: &[KeySpec::one(
            1,
            access::RW | access::ACCESS | access::DELETE,
        )],
        since: "5.0.0",
        summary: "Removes and returns the members with the highest scores",
        complexity: "O(M log N) for M members that are removed",
        args: &[
            Arg::key("key"),
            Arg::of("count", ArgKind::Integer).optional(),
        ],
        items: ItemsNeeded::By(pop::leaves_of_zpopmax),
        handler: pop::zpopmax,
        ..READS
    },
    Spec {
        name: "zmpop",
        makes: Makes::Taken,
        arity: -4,
        flags: WRITE | REMOVES | MOVABLE_KEYS,
        keys: &[KeySpec {
            access: access::RW | access::ACCESS | access::DELETE,
            begin: Begin::Index(1),
            find: Find::Count {
                count: 0,
                first: 1,
                step: 1,
            },
            notes: None,
        }],
        since: "7.0.0",
        summary: "Removes and returns members of the first sorted set that has any",
        complexity: "O(K + M log N) for K keys and M members that are removed",
        args: &[
            Arg::of("numkeys", ArgKind::Integer),
            Arg::key("key").multiple(),
            Arg::one_of("where", &[Arg::word("min", "MIN"), Arg::word("max", "MAX")]),
            Arg::of("count", ArgKind::Integer).token("COUNT").optional(),
        ],
        items: ItemsNeeded::By(pop::leaves_of_zmpop),
        handler: pop::zmpop,
        ..READS
    },
    Spec {
        name: "zrandmember",
        makes: Makes::Reply,
        arity: -2,
        flags: READONLY,
        since: "6.2.0",
        summary: "Returns members by chance: one, several different ones, or some more than once",
        complexity: "O(M log N) for M members that are returned",
        tips: &["nondeterministic_output"],
        args: &[
            Arg::key("key"),
            Arg::block(
                "options",
                &[
                    Arg::of("count", ArgKind::Integer),
                    Arg::word("withscores", "WITHSCORES").optional(),
                ],
            )
            .optional(),
        ],
        items: ItemsNeeded::Any,
        handler: random::zrandmember,
        ..READS
    },
    Spec {
        name: "zscan",
        makes: Makes::Reply,
        arity: -3,
        flags: READONLY,
        since: "2.8.0",
        summary: "Lists some of the members with their scores, and tells where to go on",
        complexity: "O(log N) for each member",
        tips: &["nondeterministic_output"],
        args: &[
            Arg::key("key"),
            Arg::of("cursor", ArgKind::Integer),
            Arg::of("pattern", ArgKind::Pattern)
                .token("MATCH")
                .optional(),
            Arg::of("count", ArgKind::Integer).token("COUNT").optional(),
            Arg::word("noscores", "NOSCORES").since("9.1.0").optional(),
        ],
        history: &[("9.1.0", "Takes `NOSCORES`, as Valkey.")],
        items: ItemsNeeded::By(random::leaves_of_zscan),
        handler: random::zscan,
        ..READS
    },
];
