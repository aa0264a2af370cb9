//! ACL categories of commands, as bits.
//!
//! ```text
//! row: flags, group, categories beyond these -> of() -> one word, a bit for each category
//! ```
//!
//! A new category is a constant and a line of [`NAMES`].

use super::spec::{Group, Spec, flag};

pub(crate) const KEYSPACE: u32 = 1 << 0;
pub(crate) const READ: u32 = 1 << 1;
pub(crate) const WRITE: u32 = 1 << 2;
pub(crate) const SET: u32 = 1 << 3;
pub(crate) const SORTEDSET: u32 = 1 << 4;
pub(crate) const LIST: u32 = 1 << 5;
pub(crate) const HASH: u32 = 1 << 6;
pub(crate) const STRING: u32 = 1 << 7;
pub(crate) const BITMAP: u32 = 1 << 8;
pub(crate) const HYPERLOGLOG: u32 = 1 << 9;
pub(crate) const GEO: u32 = 1 << 10;
pub(crate) const PUBSUB: u32 = 1 << 11;
pub(crate) const ADMIN: u32 = 1 << 12;
pub(crate) const FAST: u32 = 1 << 13;
pub(crate) const SLOW: u32 = 1 << 14;
pub(crate) const BLOCKING: u32 = 1 << 15;
pub(crate) const DANGEROUS: u32 = 1 << 16;
pub(crate) const CONNECTION: u32 = 1 << 17;
pub(crate) const TRANSACTION: u32 = 1 << 18;
pub(crate) const SCRIPTING: u32 = 1 << 19;
pub(crate) const STREAM: u32 = 1 << 20;

/// Bits and their names, in the order of COMMAND INFO.
pub(crate) const NAMES: &[(u32, &str)] = &[
    (KEYSPACE, "@keyspace"),
    (READ, "@read"),
    (WRITE, "@write"),
    (SET, "@set"),
    (SORTEDSET, "@sortedset"),
    (LIST, "@list"),
    (HASH, "@hash"),
    (STRING, "@string"),
    (BITMAP, "@bitmap"),
    (HYPERLOGLOG, "@hyperloglog"),
    (GEO, "@geo"),
    (STREAM, "@stream"),
    (PUBSUB, "@pubsub"),
    (ADMIN, "@admin"),
    (FAST, "@fast"),
    (SLOW, "@slow"),
    (BLOCKING, "@blocking"),
    (DANGEROUS, "@dangerous"),
    (CONNECTION, "@connection"),
    (TRANSACTION, "@transaction"),
    (SCRIPTING, "@scripting"),
];

/// Categories that a flag of a command stands for.
const OF_FLAGS: [(u32, u32); 6] = [
    (flag::WRITE, WRITE),
    (flag::READONLY, READ),
    (flag::ADMIN, ADMIN | DANGEROUS),
    (flag::PUBSUB, PUBSUB),
    (flag::BLOCKING, BLOCKING),
    (flag::FAST, FAST),
];

/// The categories of a command: those of its row, and those that follow from its flags and its group.
pub(crate) fn of(spec: &Spec) -> u32 {
    let of_flags = OF_FLAGS
        .iter()
        .filter(|(bit, _)| spec.has(*bit))
        .fold(0, |all, (_, categories)| all | categories);
    // As in Redis a script that only reads is no reading command.
    let of_flags = match spec.group {
        Group::Scripting => of_flags & !READ,
        _ => of_flags,
    };
    let speed = if spec.has(flag::FAST) { 0 } else { SLOW };
    spec.categories | of_flags | speed | of_group(spec)
}

/// The category that the commands of a group share. A container does nothing itself, so it has none; and
/// a generic command is about keys unless its row says that it is about the connection, as WAIT's does,
/// or about types, as SORT's does.
fn of_group(spec: &Spec) -> u32 {
    if !spec.subcommands.is_empty() {
        return 0;
    }
    match spec.group {
        Group::Generic if spec.categories & (CONNECTION | LIST) != 0 => 0,
        Group::Generic => KEYSPACE,
        Group::String => STRING,
        Group::Bitmap => BITMAP,
        Group::HyperLogLog => HYPERLOGLOG,
        Group::List => LIST,
        Group::Hash => HASH,
        Group::Set => SET,
        Group::SortedSet => SORTEDSET,
        Group::Geo => GEO,
        Group::Stream => STREAM,
        Group::Connection => CONNECTION,
        Group::Transactions => TRANSACTION,
        Group::Scripting => SCRIPTING,
        Group::Server | Group::Cluster | Group::PubSub => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn categories_follow_from_flags_group_and_row() {
        let get = Spec {
            flags: flag::READONLY | flag::FAST,
            group: Group::String,
            ..Spec::BASE
        };
        assert_eq!(of(&get), FAST | READ | STRING);
        let keys = Spec {
            flags: flag::READONLY,
            categories: DANGEROUS,
            ..Spec::BASE
        };
        assert_eq!(of(&keys), DANGEROUS | KEYSPACE | READ | SLOW);
        let debug = Spec {
            flags: flag::ADMIN | flag::NOSCRIPT,
            group: Group::Server,
            ..Spec::BASE
        };
        assert_eq!(of(&debug), ADMIN | DANGEROUS | SLOW);
    }

    #[test]
    fn a_container_and_a_command_about_the_connection_are_not_about_keys() {
        let container = Spec {
            subcommands: &[Spec::BASE],
            ..Spec::BASE
        };
        assert_eq!(of(&container), SLOW);
        let wait = Spec {
            categories: CONNECTION,
            ..Spec::BASE
        };
        assert_eq!(of(&wait), CONNECTION | SLOW);
    }

    #[test]
    fn each_category_has_a_bit_and_a_name_of_its_own() {
        let bits = NAMES.iter().fold(0, |all, (bit, _)| all | bit);
        assert_eq!(bits.count_ones() as usize, NAMES.len());
        let names: std::collections::BTreeSet<_> = NAMES.iter().map(|(_, name)| name).collect();
        assert_eq!(names.len(), NAMES.len());
    }
}
