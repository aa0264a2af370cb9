//! The table of ranges of sorted sets.

use super::super::spec::ItemsNeeded;
use super::super::{Arg, ArgKind, KeySpec, Makes, Spec, access, flag::*};
use super::{READS, range};

/// The table of what reads members by their place.
pub(crate) const RANGES: &[Spec] = &[
    Spec {
        name: "zrange",
        makes: Makes::Reply,
        arity: -4,
        flags: READONLY,
        since: "1.2.0",
        summary: "Returns the members in a range of ranks, scores or names",
        complexity: "O(log N + M) for M members that are returned",
        args: &[
            Arg::key("key"),
            Arg::of("start", ArgKind::String),
            Arg::of("stop", ArgKind::String),
            Arg::one_of(
                "sortby",
                &[Arg::word("byscore", "BYSCORE"), Arg::word("bylex", "BYLEX")],
            )
            .since("6.2.0")
            .optional(),
            Arg::word("rev", "REV").since("6.2.0").optional(),
            Arg::block(
                "offset_count",
                &[
                    Arg::of("offset", ArgKind::Integer),
                    Arg::of("count", ArgKind::Integer),
                ],
            )
            .token("LIMIT")
            .since("6.2.0")
            .optional(),
            Arg::word("withscores", "WITHSCORES").optional(),
        ],
        history: &[("6.2.0", "Takes `REV`, `BYSCORE`, `BYLEX` and `LIMIT`.")],
        items: ItemsNeeded::By(range::leaves_of_zrange),
        handler: range::zrange,
        ..READS
    },
    Spec {
        name: "zrevrange",
        makes: Makes::Reply,
        arity: -4,
        flags: READONLY,
        since: "1.2.0",
        summary: "Returns the members in a range of ranks, the highest score first",
        complexity: "O(log N + M) for M members that are returned",
        args: &[
            Arg::key("key"),
            Arg::of("start", ArgKind::Integer),
            Arg::of("stop", ArgKind::Integer),
            Arg::word("withscores", "WITHSCORES").optional(),
        ],
        deprecated: Some(("6.2.0", "`ZRANGE` with the `REV` argument")),
        items: ItemsNeeded::By(range::leaves_of_zrevrange),
        handler: range::zrevrange,
        ..READS
    },
    Spec {
        name: "zrangebyscore",
        makes: Makes::Reply,
        arity: -4,
        flags: READONLY,
        since: "1.0.5",
        summary: "Returns the members in a range of scores",
        complexity: "O(log N + M) for M members that are returned",
        args: &[
            Arg::key("key"),
            Arg::of("min", ArgKind::Double),
            Arg::of("max", ArgKind::Double),
            Arg::word("withscores", "WITHSCORES")
                .since("2.0.0")
                .optional(),
            Arg::block(
                "offset_count",
                &[
                    Arg::of("offset", ArgKind::Integer),
                    Arg::of("count", ArgKind::Integer),
                ],
            )
            .token("LIMIT")
            .optional(),
        ],
        history: &[("2.0.0", "Takes `WITHSCORES`.")],
        deprecated: Some(("6.2.0", "`ZRANGE` with the `BYSCORE` argument")),
        items: ItemsNeeded::By(range::leaves_of_zrangebyscore),
        handler: range::zrangebyscore,
        ..READS
    },
    Spec {
        name: "zrevrangebyscore",
        makes: Makes::Reply,
        arity: -4,
        flags: READONLY,
        since: "2.2.0",
        summary: "Returns the members in a range of scores, the highest first",
        complexity: "O(log N + M) for M members that are returned",
        args: &[
            Arg::key("key"),
            Arg::of("max", ArgKind::Double),
            Arg::of("min", ArgKind::Double),
            Arg::word("withscores", "WITHSCORES").optional(),
            Arg::block(
                "offset_count",
                &[
                    Arg::of("offset", ArgKind::Integer),
                    Arg::of("count", ArgKind::Integer),
                ],
            )
            .token("LIMIT")
            .optional(),
        ],
        history: &[("2.1.6", "Takes ends in any order.")],
        deprecated: Some(("6.2.0", "`ZRANGE` with the `REV` and `BYSCORE` arguments")),
        items: ItemsNeeded::By(range::leaves_of_zrevrangebyscore),
        handler: range::zrevrangebyscore,
        ..READS
    },
    Spec {
        name: "zrangebylex",
        makes: Makes::Reply,
        arity: -4,
        flags: READONLY,
        since: "2.8.9",
        summary: "Returns the members in a range of names, where all have one score",
        complexity: "O(log N + M) for M members that are returned",
        args: &[
            Arg::key("key"),
            Arg::of("min", ArgKind::String),
            Arg::of("max", ArgKind::String),
            Arg::block(
                "offset_count",
                &[
                    Arg::of("offset", ArgKind::Integer),
                    Arg::of("count", ArgKind::Integer),
                ],
            )
            .token("LIMIT")
            .optional(),
        ],
        deprecated: Some(("6.2.0", "`ZRANGE` with the `BYLEX` argument")),
        items: ItemsNeeded::By(range::leaves_of_zrangebylex),
        handler: range::zrangebylex,
        ..READS
    },
    Spec {
        name: "zrevrangebylex",
        makes: Makes::Reply,
        arity: -4,
        flags: READONLY,
        since: "2.8.9",
        summary: "Returns the members in a range of names, the last first, where all have one score",
        complexity: "O(log N + M) for M members that are returned",
        args: &[
            Arg::key("key"),
            Arg::of("max", ArgKind::String),
            Arg::of("min", ArgKind::String),
            Arg::block(
                "offset_count",
                &[
                    Arg::of("offset", ArgKind::Integer),
                    Arg::of("count", ArgKind::Integer),
                ],
            )
            .token("LIMIT")
            .optional(),
        ],
        deprecated: Some(("6.2.0", "`ZRANGE` with the `REV` and `BYLEX` arguments")),
        items: ItemsNeeded::By(range::leaves_of_zrevrangebylex),
        handler: range::zrevrangebylex,
        ..READS
    },
    Spec {
        name: "zrangestore",
        makes: Makes::Value,
        arity: -5,
        flags: WRITE | DENYOOM,
        keys: &[
            KeySpec::one(1, access::OW | access::UPDATE),
            KeySpec::one(2, access::RO | access::ACCESS),
        ],
        since: "6.2.0",
        summary: "Gives a key the members in a range of another",
        complexity: "O(log N + M log M) for M members that are stored",
        args: &[
            Arg::key("dst"),
            Arg {
                key_spec: Some(1),
                ..Arg::key("src")
            },
            Arg::of("min", ArgKind::String),
            Arg::of("max", ArgKind::String),
            Arg::one_of(
                "sortby",
                &[Arg::word("byscore", "BYSCORE"), Arg::word("bylex", "BYLEX")],
            )
            .optional(),
            Arg::word("rev", "REV").optional(),
            Arg::block(
                "offset_count",
                &[
                    Arg::of("offset", ArgKind::Integer),
                    Arg::of("count", ArgKind::Integer),
                ],
            )
            .token("LIMIT")
            .optional(),
        ],
        needs: |_, at| at > 1,
        items: ItemsNeeded::By(range::leaves_of_zrangestore),
        handler: range::zrangestore,
        ..READS
    },
];
