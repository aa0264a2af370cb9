//! The table of commands on several sets, sorted or not.

use super::super::spec::{Begin, Find};
use super::super::{Arg, ArgKind, KeySpec, Makes, Spec, access, flag::*};
use super::{READS, several};

/// The table of what is made of several sets.
pub(crate) const COMBINES: &[Spec] = &[
    Spec {
        name: "zunion",
        makes: Makes::Reply,
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
        since: "6.2.0",
        summary: "Returns the members that any of the sets has, with scores made of theirs",
        complexity: "O(N + M log M) for N members in all sets, M of them different",
        args: &[
            Arg::of("numkeys", ArgKind::Integer),
            Arg::key("key").multiple(),
            Arg::of("weight", ArgKind::Integer)
                .token("WEIGHTS")
                .optional()
                .multiple(),
            Arg::one_of(
                "aggregate",
                &[
                    Arg::word("sum", "SUM"),
                    Arg::word("min", "MIN"),
                    Arg::word("max", "MAX"),
                ],
            )
            .token("AGGREGATE")
            .optional(),
            Arg::word("withscores", "WITHSCORES").optional(),
        ],
        handler: several::zunion,
        ..READS
    },
    Spec {
        name: "zinter",
        makes: Makes::Reply,
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
        since: "6.2.0",
        summary: "Returns the members that all sets have, with scores made of theirs",
        complexity: "O(N*K + M log M) for N members of the smallest of K sets, M of them in all",
        args: &[
            Arg::of("numkeys", ArgKind::Integer),
            Arg::key("key").multiple(),
            Arg::of("weight", ArgKind::Integer)
                .token("WEIGHTS")
                .optional()
                .multiple(),
            Arg::one_of(
                "aggregate",
                &[
                    Arg::word("sum", "SUM"),
                    Arg::word("min", "MIN"),
                    Arg::word("max", "MAX"),
                ],
            )
            .token("AGGREGATE")
            .optional(),
            Arg::word("withscores", "WITHSCORES").optional(),
        ],
        handler: several::zinter,
        ..READS
    },
    Spec {
        name: "zdiff",
        makes: Makes::Reply,
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
        since: "6.2.0",
        summary: "Returns the members of the first sorted set that no other has",
        complexity: "O(N + M log M) for N members in all sets, M of them returned",
        args: &[
            Arg::of("numkeys", ArgKind::Integer),
            Arg::key("key").multiple(),
            Arg::word("withscores", "WITHSCORES").optional(),
        ],
        handler: several::zdiff,
        ..READS
    },
    Spec {
        name: "zunionstore",
        makes: Makes::Value,
        arity: -4,
        flags: WRITE | DENYOOM | MOVABLE_KEYS,
        keys: &[
            KeySpec::one(1, access::OW | access::UPDATE),
            KeySpec {
                access: access::RO | access::ACCESS,
                begin: Begin::Index(2),
                find: Find::Count {
                    count: 0,
                    first: 1,
                    step: 1,
                },
                notes: None,
            },
        ],
        since: "2.0.0",
        summary: "Gives a key the members that any of the sets has, with scores made of theirs",
        complexity: "O(N + M log M) for N members in all sets, M of them different",
        args: &[
            Arg::key("destination"),
            Arg::of("numkeys", ArgKind::Integer),
            Arg {
                key_spec: Some(1),
                ..Arg::key("key")
            }
            .multiple(),
            Arg::of("weight", ArgKind::Integer)
                .token("WEIGHTS")
                .optional()
                .multiple(),
            Arg::one_of(
                "aggregate",
                &[
                    Arg::word("sum", "SUM"),
                    Arg::word("min", "MIN"),
                    Arg::word("max", "MAX"),
                ],
            )
            .token("AGGREGATE")
            .optional(),
        ],
        needs: |_, at| at > 1,
        handler: several::zunionstore,
        ..READS
    },
    Spec {
        name: "zinterstore",
        makes: Makes::Value,
        arity: -4,
        flags: WRITE | DENYOOM | MOVABLE_KEYS,
        keys: &[
            KeySpec::one(1, access::OW | access::UPDATE),
            KeySpec {
                access: access::RO | access::ACCESS,
                begin: Begin::Index(2),
                find: Find::Count {
                    count: 0,
                    first: 1,
                    step: 1,
                },
                notes: None,
            },
        ],
        since: "2.0.0",
        summary: "Gives a key the members that all sets have, with scores made of theirs",
        complexity: "O(N*K + M log M) for N members of the smallest of K sets, M of them in all",
        args: &[
            Arg::key("destination"),
            Arg::of("numkeys", ArgKind::Integer),
            Arg {
                key_spec: Some(1),
                ..Arg::key("key")
            }
            .multiple(),
            Arg::of("weight", ArgKind::Integer)
                .token("WEIGHTS")
                .optional()
                .multiple(),
            Arg::one_of(
                "aggregate",
                &[
                    Arg::word("sum", "SUM"),
                    Arg::word("min", "MIN"),
                    Arg::word("max", "MAX"),
                ],
            )
            .token("AGGREGATE")
            .optional(),
        ],
        needs: |_, at| at > 1,
        handler: several::zinterstore,
        ..READS
    },
    Spec {
        name: "zdiffstore",
        makes: Makes::Value,
        arity: -4,
        flags: WRITE | DENYOOM | MOVABLE_KEYS,
        keys: &[
            KeySpec::one(1, access::OW | access::UPDATE),
            KeySpec {
                access: access::RO | access::ACCESS,
                begin: Begin::Index(2),
                find: Find::Count {
                    count: 0,
                    first: 1,
                    step: 1,
                },
                notes: None,
            },
        ],
        since: "6.2.0",
        summary: "Gives a key the members of the first sorted set that no other has",
        complexity: "O(N + M log M) for N members in all sets, M of them stored",
        args: &[
            Arg::key("destination"),
            Arg::of("numkeys", ArgKind::Integer),
            Arg {
                key_spec: Some(1),
                ..Arg::key("key")
            }
            .multiple(),
        ],
        needs: |_, at| at > 1,
        handler: several::zdiffstore,
        ..READS
    },
    Spec {
        name: "zintercard",
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
        complexity: "O(N*K) for N members of the smallest of K sets",
        args: &[
            Arg::of("numkeys", ArgKind::Integer),
            Arg::key("key").multiple(),
            Arg::of("limit", ArgKind::Integer).token("LIMIT").optional(),
        ],
        handler: several::zintercard,
        ..READS
    },
];
