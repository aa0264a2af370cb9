//! Places on the earth: members of sorted sets whose scores are places.
//!
//! The table of the family is here; its handlers are in the files below:
//!
//! | file | commands |
//! |---|---|
//! | `members` | GEOADD GEOPOS GEODIST GEOHASH |
//! | `search` | GEOSEARCH GEOSEARCHSTORE GEORADIUS GEORADIUSBYMEMBER GEORADIUS_RO GEORADIUSBYMEMBER_RO |
//!
//! `place` turns places into scores, and knows distances and what is around a place. A search looks at the
//! members in a few ranges of scores, whose ranks are found in O(log n).

mod members;
mod place;
mod polygon;
mod running;
mod search;

use super::spec::{Begin, Find};
use super::{Arg, ArgKind, Args, Failure, Group, KeySpec, Makes, Spec, access, flag::*};

const NO_UNIT: Failure = Failure::of("ERR unsupported unit provided. please use M, KM, FT, MI");

/// Meters of the unit that an argument names.
fn unit(args: &Args<'_>, at: usize) -> Result<f64, Failure> {
    Ok(match () {
        () if args.is(at, "M") => 1.0,
        () if args.is(at, "KM") => 1000.0,
        () if args.is(at, "FT") => 0.3048,
        () if args.is(at, "MI") => 1609.34,
        () => return Err(NO_UNIT),
    })
}

/// The units of distances.
const UNIT: Arg = Arg::one_of(
    "unit",
    &[
        Arg::word("m", "M"),
        Arg::word("km", "KM"),
        Arg::word("ft", "FT"),
        Arg::word("mi", "MI"),
    ],
);

/// The order of what is found.
const ORDER: Arg = Arg::one_of(
    "order",
    &[Arg::word("asc", "ASC"), Arg::word("desc", "DESC")],
)
.optional();

/// How many are found.
const COUNT: Arg = Arg::block(
    "count",
    &[
        Arg::of("count", ArgKind::Integer).token("COUNT"),
        Arg::word("any", "ANY").optional(),
    ],
);

/// A polygon, as in Valkey.
const POLYGON: Arg = Arg::block(
    "polygon",
    &[
        Arg::of("num-vertices", ArgKind::Integer).token("BYPOLYGON"),
        Arg::block(
            "vertices",
            &[
                Arg::of("longitude", ArgKind::Double),
                Arg::of("latitude", ArgKind::Double),
            ],
        )
        .multiple(),
    ],
)
.since("9.0.0");

const POLYGON_HISTORY: &[(&str, &str)] = &[
    ("7.0.0", "Takes units in upper case."),
    ("9.0.0", "Takes `BYPOLYGON`, as Valkey."),
];

/// The middle of a circle or a box.
const FROM: Arg = Arg::one_of(
    "from",
    &[
        Arg::of("member", ArgKind::String).token("FROMMEMBER"),
        Arg::block(
            "longitude_latitude",
            &[
                Arg::of("longitude", ArgKind::Double),
                Arg::of("latitude", ArgKind::Double),
            ],
        )
        .token("FROMLONLAT"),
    ],
)
.optional();

/// A row of the commands that read one key.
const READS: Spec = Spec {
    flags: READONLY,
    keys: &[KeySpec::one(1, access::RO | access::ACCESS)],
    complexity: "O(log N)",
    group: Group::Geo,
    ..Spec::BASE
};

/// The table of this family.
pub(crate) const COMMANDS: &[Spec] = &[
    Spec {
        name: "geoadd",
        makes: Makes::Little,
        arity: -5,
        flags: WRITE | DENYOOM,
        keys: &[KeySpec::one(1, access::RW | access::UPDATE)],
        since: "3.2.0",
        summary: "Gives members places on the earth, as scores; tells how many are new",
        complexity: "O(log N) for each member",
        args: &[
            Arg::key("key"),
            Arg::one_of("condition", &[Arg::word("nx", "NX"), Arg::word("xx", "XX")])
                .since("6.2.0")
                .optional(),
            Arg::word("change", "CH").since("6.2.0").optional(),
            Arg::block(
                "longitude_latitude_member",
                &[
                    Arg::of("longitude", ArgKind::Double),
                    Arg::of("latitude", ArgKind::Double),
                    Arg::of("member", ArgKind::String),
                ],
            )
            .multiple(),
        ],
        history: &[("6.2.0", "Takes `CH`, `NX` and `XX`.")],
        handler: members::geoadd,
        ..READS
    },
    Spec {
        name: "geopos",
        makes: Makes::Reply,
        arity: -2,
        since: "3.2.0",
        summary: "Returns longitudes and latitudes of members",
        complexity: "O(M log N) for M members that are asked for",
        args: &[
            Arg::key("key"),
            Arg::of("member", ArgKind::String).optional().multiple(),
        ],
        handler: members::geopos,
        ..READS
    },
    Spec {
        name: "geodist",
        makes: Makes::Little,
        arity: -4,
        since: "3.2.0",
        summary: "Returns the distance between two members",
        args: &[
            Arg::key("key"),
            Arg::of("member1", ArgKind::String),
            Arg::of("member2", ArgKind::String),
            UNIT.optional(),
        ],
        handler: members::geodist,
        ..READS
    },
    Spec {
        name: "geohash",
        makes: Makes::Reply,
        arity: -2,
        since: "3.2.0",
        summary: "Returns the places of members as geohashes",
        complexity: "O(M log N) for M members that are asked for",
        args: &[
            Arg::key("key"),
            Arg::of("member", ArgKind::String).optional().multiple(),
        ],
        handler: members::geohash,
        ..READS
    },
    Spec {
        name: "geosearch",
        makes: Makes::Reply,
        arity: -7,
        since: "6.2.0",
        summary: "Returns the members in a circle or a box",
        complexity: "O(M + log N) for M members in the boxes around it",
        args: &[
            Arg::key("key"),
            FROM,
            Arg::one_of(
                "by",
                &[
                    Arg::block(
                        "circle",
                        &[Arg::of("radius", ArgKind::Double).token("BYRADIUS"), UNIT],
                    ),
                    Arg::block(
                        "box",
                        &[
                            Arg::of("width", ArgKind::Double).token("BYBOX"),
                            Arg::of("height", ArgKind::Double),
                            UNIT,
                        ],
                    ),
                    POLYGON,
                ],
            ),
            ORDER,
            COUNT.optional(),
            Arg::word("withcoord", "WITHCOORD").optional(),
            Arg::word("withdist", "WITHDIST").optional(),
            Arg::word("withhash", "WITHHASH").optional(),
        ],
        history: POLYGON_HISTORY,
        handler: search::geosearch,
        ..READS
    },
    Spec {
        name: "geosearchstore",
        makes: Makes::Value,
        arity: -8,
        flags: WRITE | DENYOOM,
        keys: &[
            KeySpec::one(1, access::OW | access::UPDATE),
            KeySpec::one(2, access::RO | access::ACCESS),
        ],
        since: "6.2.0",
        summary: "Gives a key the members in a circle or a box",
        complexity: "O(M + log N) for M members in the boxes around it",
        args: &[
            Arg::key("destination"),
            Arg {
                key_spec: Some(1),
                ..Arg::key("source")
            },
            FROM,
            Arg::one_of(
                "by",
                &[
                    Arg::block(
                        "circle",
                        &[Arg::of("radius", ArgKind::Double).token("BYRADIUS"), UNIT],
                    ),
                    Arg::block(
                        "box",
                        &[
                            Arg::of("width", ArgKind::Double).token("BYBOX"),
                            Arg::of("height", ArgKind::Double),
                            UNIT,
                        ],
                    ),
                    POLYGON,
                ],
            ),
            ORDER,
            COUNT.optional(),
            Arg::word("storedist", "STOREDIST").optional(),
        ],
        history: POLYGON_HISTORY,
        needs: |_, at| at > 1,
        handler: search::geosearchstore,
        ..READS
    },
    Spec {
        name: "georadius",
        makes: Makes::Reply,
        arity: -6,
        flags: WRITE | DENYOOM | MOVABLE_KEYS,
        keys: &[
            KeySpec::one(1, access::RO | access::ACCESS),
            KeySpec {
                access: access::OW | access::UPDATE,
                begin: Begin::Keyword("STORE", 6),
                find: Find::Range {
                    last: 0,
                    step: 1,
                    limit: 0,
                },
                notes: None,
            },
            KeySpec {
                access: access::OW | access::UPDATE,
                begin: Begin::Keyword("STOREDIST", 6),
                find: Find::Range {
                    last: 0,
                    step: 1,
                    limit: 0,
                },
                notes: None,
            },
        ],
        since: "3.2.0",
        summary: "Returns, or gives a key, the members in a circle around a place",
        complexity: "O(M + log N) for M members in the boxes around it",
        args: &[
            Arg::key("key"),
            Arg::of("longitude", ArgKind::Double),
            Arg::of("latitude", ArgKind::Double),
            Arg::of("radius", ArgKind::Double),
            UNIT,
            Arg::word("withcoord", "WITHCOORD").optional(),
            Arg::word("withdist", "WITHDIST").optional(),
            Arg::word("withhash", "WITHHASH").optional(),
            Arg::block(
                "count",
                &[
                    Arg::of("count", ArgKind::Integer).token("COUNT"),
                    Arg::word("any", "ANY").since("6.2.0").optional(),
                ],
            )
            .optional(),
            ORDER,
            Arg {
                key_spec: Some(1),
                ..Arg::key("key")
            }
            .token("STORE")
            .optional(),
            Arg {
                key_spec: Some(2),
                ..Arg::key("key")
            }
            .token("STOREDIST")
            .optional(),
        ],
        history: &[
            ("6.2.0", "Takes `ANY` behind `COUNT`."),
            ("7.0.0", "Takes units in upper case."),
        ],
        deprecated: Some((
            "6.2.0",
            "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` argument",
        )),
        handler: search::georadius,
        ..READS
    },
    Spec {
        name: "georadiusbymember",
        makes: Makes::Reply,
        arity: -5,
        flags: WRITE | DENYOOM | MOVABLE_KEYS,
        keys: &[
            KeySpec::one(1, access::RO | access::ACCESS),
            KeySpec {
                access: access::OW | access::UPDATE,
                begin: Begin::Keyword("STORE", 5),
                find: Find::Range {
                    last: 0,
                    step: 1,
                    limit: 0,
                },
                notes: None,
            },
            KeySpec {
                access: access::OW | access::UPDATE,
                begin: Begin::Keyword("STOREDIST", 5),
                find: Find::Range {
                    last: 0,
                    step: 1,
                    limit: 0,
                },
                notes: None,
            },
        ],
        since: "3.2.0",
        summary: "Returns, or gives a key, the members in a circle around a member",
        complexity: "O(M + log N) for M members in the boxes around it",
        args: &[
            Arg::key("key"),
            Arg::of("member", ArgKind::String),
            Arg::of("radius", ArgKind::Double),
            UNIT,
            Arg::word("withcoord", "WITHCOORD").optional(),
            Arg::word("withdist", "WITHDIST").optional(),
            Arg::word("withhash", "WITHHASH").optional(),
            COUNT.optional(),
            ORDER,
            Arg {
                key_spec: Some(1),
                ..Arg::key("key")
            }
            .token("STORE")
            .optional(),
            Arg {
                key_spec: Some(2),
                ..Arg::key("key")
            }
            .token("STOREDIST")
            .optional(),
        ],
        history: &[("7.0.0", "Takes units in upper case.")],
        deprecated: Some((
            "6.2.0",
            "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` and `FROMMEMBER` arguments",
        )),
        handler: search::georadiusbymember,
        ..READS
    },
    Spec {
        name: "georadius_ro",
        makes: Makes::Reply,
        arity: -6,
        since: "3.2.10",
        summary: "Returns the members in a circle around a place",
        complexity: "O(M + log N) for M members in the boxes around it",
        args: &[
            Arg::key("key"),
            Arg::of("longitude", ArgKind::Double),
            Arg::of("latitude", ArgKind::Double),
            Arg::of("radius", ArgKind::Double),
            UNIT,
            Arg::word("withcoord", "WITHCOORD").optional(),
            Arg::word("withdist", "WITHDIST").optional(),
            Arg::word("withhash", "WITHHASH").optional(),
            Arg::block(
                "count",
                &[
                    Arg::of("count", ArgKind::Integer).token("COUNT"),
                    Arg::word("any", "ANY").since("6.2.0").optional(),
                ],
            )
            .optional(),
            ORDER,
        ],
        history: &[("6.2.0", "Takes `ANY` behind `COUNT`.")],
        deprecated: Some(("6.2.0", "`GEOSEARCH` with the `BYRADIUS` argument")),
        handler: search::georadius_ro,
        ..READS
    },
    Spec {
        name: "georadiusbymember_ro",
        makes: Makes::Reply,
        arity: -5,
        since: "3.2.10",
        summary: "Returns the members in a circle around a member",
        complexity: "O(M + log N) for M members in the boxes around it",
        args: &[
            Arg::key("key"),
            Arg::of("member", ArgKind::String),
            Arg::of("radius", ArgKind::Double),
            UNIT,
            Arg::word("withcoord", "WITHCOORD").optional(),
            Arg::word("withdist", "WITHDIST").optional(),
            Arg::word("withhash", "WITHHASH").optional(),
            COUNT.optional(),
            ORDER,
        ],
        deprecated: Some((
            "6.2.0",
            "`GEOSEARCH` with the `BYRADIUS` and `FROMMEMBER` arguments",
        )),
        handler: search::georadiusbymember_ro,
        ..READS
    },
];
