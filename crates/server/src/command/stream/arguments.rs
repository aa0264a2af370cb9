//! Arguments that several commands have, and the row that most of them begin with.

use super::super::{Arg, ArgKind, Group, KeySpec, Spec, access, flag::*};

pub(super) const KEY: Arg = Arg::key("key");
pub(super) const ID: Arg = Arg::of("id", ArgKind::String);
pub(super) const START: Arg = Arg::of("start", ArgKind::String);
pub(super) const END: Arg = Arg::of("end", ArgKind::String);
pub(super) const COUNT: Arg = Arg::of("count", ArgKind::Integer).token("COUNT").optional();

/// A row of the commands that read one key.
pub(super) const READS: Spec = Spec {
    flags: READONLY,
    keys: &[KeySpec::one(1, access::RO | access::ACCESS)],
    group: Group::Stream,
    since: "5.0.0",
    ..Spec::BASE
};

/// The treatment of references of groups to entries that are removed.
pub(super) const CONDITION: Arg = Arg::one_of(
    "condition",
    &[
        Arg::word("keepref", "KEEPREF"),
        Arg::word("delref", "DELREF"),
        Arg::word("acked", "ACKED"),
    ],
)
.since("8.2.0")
.optional();

/// IDs after their number.
pub(super) const IDS: Arg =
    Arg::block("ids", &[Arg::of("numids", ArgKind::Integer), ID.multiple()]).token("IDS");

/// A release in which several commands have taken these options.
pub(super) const CONDITION_SINCE: (&str, &str) = ("8.2.0", "Takes KEEPREF, DELREF and ACKED.");
