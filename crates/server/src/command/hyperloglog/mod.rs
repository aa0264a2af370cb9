//! HyperLogLogs: strings from which the number of different elements can be estimated
//! ([`keyspace::hyperloglog`]).
//!
//! The table of the family is here; its handlers are in the files below, in table order:
//!
//! | file | commands |
//! |---|---|
//! | `add` | PFADD PFMERGE |
//! | `count` | PFCOUNT |
//! | `debug` | PFDEBUG PFSELFTEST |

mod add;
mod count;
mod debug;

use keyspace::hyperloglog::{self, Corrupted, Density};

use super::spec::{Begin, Find};
use super::{Arg, ArgKind, Failure, Group, KeySpec, Makes, Spec, access, flag::*};
use crate::config::{Setting, Settings};

const NOT_ONE: Failure = Failure::of("WRONGTYPE Key is not a valid HyperLogLog string value.");

/// The error for a value whose runs do not add up.
fn corrupted(_: Corrupted) -> Failure {
    Failure::of("INVALIDOBJ Corrupted HLL object detected")
}

/// How the registers of a value are written.
///
/// # Errors
/// It is no HyperLogLog.
fn density_of(value: &[u8]) -> Result<Density, Failure> {
    hyperloglog::density(value).ok_or(NOT_ONE)
}

/// The most bytes of a sparse value that grows.
fn most_sparse(settings: &Settings) -> usize {
    usize::try_from(settings.int(Setting::HllSparseMaxBytes)).unwrap_or(usize::MAX)
}

/// A row of this family.
const ROW: Spec = Spec {
    group: Group::HyperLogLog,
    since: "2.8.9",
    ..Spec::BASE
};

const ALL: Find = Find::Range {
    last: -1,
    step: 1,
    limit: 0,
};

/// The table of this family.
pub(crate) const COMMANDS: &[Spec] = &[
    Spec {
        name: "pfadd",
        makes: Makes::Little,
        arity: -2,
        flags: WRITE | DENYOOM | FAST,
        keys: &[KeySpec::one(1, access::RW | access::INSERT)],
        summary: "Adds elements to a HyperLogLog; tells whether its estimate may have changed",
        complexity: "O(1) for each element",
        args: &[
            Arg::key("key"),
            Arg::of("element", ArgKind::String).optional().multiple(),
        ],
        handler: add::pfadd,
        ..ROW
    },
    Spec {
        name: "pfmerge",
        makes: Makes::Little,
        arity: -2,
        flags: WRITE | DENYOOM,
        keys: &[
            KeySpec::one(1, access::RW | access::ACCESS | access::INSERT),
            KeySpec {
                access: access::RO | access::ACCESS,
                begin: Begin::Index(2),
                find: ALL,
                notes: None,
            },
        ],
        summary: "Adds the elements of several HyperLogLogs to one",
        complexity: "O(N) for N HyperLogLogs, with a large constant",
        args: &[
            Arg::key("destkey"),
            Arg {
                key_spec: Some(1),
                ..Arg::key("sourcekey")
            }
            .optional()
            .multiple(),
        ],
        handler: add::pfmerge,
        ..ROW
    },
    Spec {
        name: "pfcount",
        makes: Makes::Little,
        arity: -2,
        flags: READONLY | MAY_REPLICATE,
        keys: &[KeySpec {
            access: access::RW | access::ACCESS,
            begin: Begin::Index(1),
            find: ALL,
            notes: Some(
                "RW because it may change the internal representation of the key, and propagate to replicas",
            ),
        }],
        summary: "Estimates how many different elements one or several HyperLogLogs have",
        complexity: "O(1) for one key, O(N) for N keys, with a large constant",
        args: &[Arg::key("key").multiple()],
        handler: count::pfcount,
        ..ROW
    },
    Spec {
        name: "pfdebug",
        makes: Makes::Little,
        arity: 3,
        flags: WRITE | DENYOOM | ADMIN | SYSTEM,
        keys: &[KeySpec::one(2, access::RW | access::ACCESS)],
        summary: "Shows the registers of a HyperLogLog, or makes it dense",
        complexity: "N/A",
        args: &[Arg::of("subcommand", ArgKind::String), Arg::key("key")],
        handler: debug::pfdebug,
        ..ROW
    },
    Spec {
        name: "pfselftest",
        makes: Makes::Little,
        arity: 1,
        flags: ADMIN | SYSTEM,
        summary: "Tests HyperLogLogs",
        complexity: "N/A",
        handler: debug::pfselftest,
        ..ROW
    },
];
