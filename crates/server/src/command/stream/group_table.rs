//! The table of the commands that read new entries, of groups, and of XINFO.

use super::super::spec::{Begin, Find, ItemsNeeded};
use super::super::{Arg, ArgKind, KeySpec, Makes, Spec, access, flag::*};
use super::arguments::{CONDITION, COUNT, END, ID, IDS, KEY, READS, START};
use super::{ack, claim, consume, group, info, references, waiting};

const GROUP: Arg = Arg::of("group", ArgKind::String);
const CONSUMER: Arg = Arg::of("consumer", ArgKind::String);
const GROUP_NAME: Arg = Arg::of("groupname", ArgKind::String);
const CONSUMER_NAME: Arg = Arg::of("consumername", ArgKind::String);
const MIN_IDLE: Arg = Arg::of("min-idle-time", ArgKind::String);
const BLOCK: Arg = Arg::of("milliseconds", ArgKind::Integer)
    .token("BLOCK")
    .optional();
const STREAMS: Arg =
    Arg::block("streams", &[Arg::key("key").multiple(), ID.multiple()]).token("STREAMS");
const ENTRIES_READ: Arg = Arg::of("entries_read", ArgKind::Integer)
    .token("ENTRIESREAD")
    .optional();
/// An ID, or the last one of the stream.
const ID_OR_LAST: Arg = Arg::one_of("id", &[ID, Arg::word("new_id", "$")]);

/// The keys of a command that reads several streams, after a word.
const fn streams(from: i32) -> KeySpec {
    KeySpec {
        access: access::RO | access::ACCESS,
        begin: Begin::Keyword("STREAMS", from),
        find: Find::Range {
            last: -1,
            step: 1,
            limit: 2,
        },
        notes: None,
    }
}

/// A row of the subcommands that change groups.
const CHANGES: Spec = Spec {
    flags: WRITE,
    makes: Makes::Little,
    keys: &[KeySpec::one(2, access::RW | access::UPDATE)],
    items: ItemsNeeded::None,
    ..READS
};

/// A row of the subcommands of XINFO.
const TELLS: Spec = Spec {
    makes: Makes::Reply,
    keys: &[KeySpec::one(2, access::RO | access::ACCESS)],
    ..READS
};

/// A row of HELP.
const HELPS: Spec = Spec {
    name: "help",
    makes: Makes::Item,
    arity: 2,
    flags: LOADING | STALE,
    summary: "Lists the subcommands",
    keys: &[],
    ..READS
};

const XGROUP: &[Spec] = &[
    Spec {
        name: "create",
        arity: -5,
        flags: WRITE | DENYOOM,
        keys: &[KeySpec::one(2, access::RW | access::INSERT)],
        summary: "Makes a group",
        args: &[
            KEY,
            GROUP_NAME,
            ID_OR_LAST,
            Arg::word("mkstream", "MKSTREAM").optional(),
            ENTRIES_READ,
        ],
        history: &[("7.0.0", "Takes ENTRIESREAD.")],
        handler: group::create,
        ..CHANGES
    },
    Spec {
        name: "delconsumer",
        arity: 5,
        keys: &[KeySpec::one(2, access::RW | access::DELETE)],
        summary: "Removes a consumer, with its pending entries; tells how many there were",
        args: &[KEY, GROUP_NAME, CONSUMER_NAME],
        items: ItemsNeeded::Entries(group::leaves_of_delconsumer),
        handler: group::delete_consumer,
        ..CHANGES
    },
    Spec {
        name: "createconsumer",
        arity: 5,
        flags: WRITE | DENYOOM,
        keys: &[KeySpec::one(2, access::RW | access::INSERT)],
        since: "6.2.0",
        summary: "Makes a consumer; tells whether it is new",
        args: &[KEY, GROUP_NAME, CONSUMER_NAME],
        handler: group::create_consumer,
        ..CHANGES
    },
    Spec {
        name: "destroy",
        arity: 4,
        keys: &[KeySpec::one(2, access::RW | access::DELETE)],
        summary: "Removes a group",
        complexity: "O(N) for N consumers",
        args: &[KEY, GROUP_NAME],
        items: ItemsNeeded::Entries(group::leaves_of_destroy),
        handler: group::destroy,
        ..CHANGES
    },
    Spec {
        name: "setid",
        arity: -5,
        summary: "Sets the last ID that a group got",
        args: &[KEY, GROUP_NAME, ID_OR_LAST, ENTRIES_READ],
        history: &[("7.0.0", "Takes ENTRIESREAD.")],
        handler: group::set_id,
        ..CHANGES
    },
    Spec {
        handler: group::show_help,
        ..HELPS
    },
];

const XINFO: &[Spec] = &[
    Spec {
        name: "consumers",
        arity: 4,
        summary: "Lists the consumers of a group",
        complexity: "O(N) for N consumers",
        tips: &["nondeterministic_output"],
        args: &[KEY, GROUP_NAME],
        items: ItemsNeeded::None,
        handler: info::list_consumers,
        ..TELLS
    },
    Spec {
        name: "stream",
        arity: -3,
        summary: "Tells what there is to know about a stream",
        args: &[KEY, Arg::block("full", &[COUNT]).token("FULL").optional()],
        history: &[
            ("6.0.0", "Takes FULL."),
            (
                "7.0.0",
                "Tells max-deleted-entry-id, entries-added, recorded-first-entry-id, entries-read and lag.",
            ),
        ],
        items: ItemsNeeded::Entries(info::leaves_of_stream),
        handler: info::stream,
        ..TELLS
    },
    Spec {
        handler: info::show_help,
        ..HELPS
    },
    Spec {
        name: "groups",
        arity: 3,
        summary: "Lists the groups of a stream",
        complexity: "O(N) for N groups and consumers",
        args: &[KEY],
        history: &[("7.0.0", "Tells entries-read and lag.")],
        items: ItemsNeeded::Entries(info::leaves_of_groups),
        handler: info::groups,
        ..TELLS
    },
];

/// See the module.
pub(crate) const COMMANDS: &[Spec] = &[
    Spec {
        name: "xread",
        makes: Makes::Reply,
        arity: -4,
        flags: READONLY | BLOCKING | MOVABLE_KEYS,
        taker: Some(&waiting::TAKER),
        keys: &[streams(1)],
        summary: "Returns the entries of streams after an ID of each, waits for one if there is none",
        complexity: "O(log N + M) for M of N entries of each stream",
        args: &[COUNT, BLOCK, STREAMS],
        items: ItemsNeeded::Entries(consume::leaves_of_xread),
        handler: consume::xread,
        ..READS
    },
    Spec {
        name: "xreadgroup",
        makes: Makes::Taken,
        arity: -7,
        flags: WRITE | BLOCKING | MOVABLE_KEYS,
        taker: Some(&waiting::TAKER),
        keys: &[streams(4)],
        summary: "Gives new entries of streams to a consumer of a group, waits for one if there is none; or \
                  returns its pending entries",
        complexity: "O(M log N) for M of N entries of each stream",
        args: &[
            Arg::block("group_consumer", &[GROUP, CONSUMER]).token("GROUP"),
            COUNT,
            BLOCK,
            Arg::word("noack", "NOACK").optional(),
            STREAMS,
        ],
        items: ItemsNeeded::Entries(consume::leaves_of_xreadgroup),
        handler: consume::xreadgroup,
        ..READS
    },
    Spec {
        name: "xgroup",
        makes: Makes::Little,
        arity: -2,
        flags: 0,
        keys: &[],
        summary: "Makes, changes and removes groups of consumers",
        complexity: "That of the subcommand",
        subcommands: XGROUP,
        handler: Spec::BASE.handler,
        ..READS
    },
    Spec {
        name: "xack",
        makes: Makes::Little,
        arity: -4,
        flags: WRITE | FAST,
        keys: &[KeySpec::one(1, access::RW | access::UPDATE)],
        summary: "Removes pending entries that were processed; tells how many there were",
        complexity: "O(log N) for each ID",
        args: &[KEY, GROUP, ID.multiple()],
        items: ItemsNeeded::Entries(ack::leaves_of_xack),
        handler: ack::xack,
        ..READS
    },
    Spec {
        name: "xackdel",
        makes: Makes::Little,
        arity: -6,
        flags: WRITE | FAST | REMOVES,
        keys: &[KeySpec::one(
            1,
            access::RW | access::UPDATE | access::DELETE,
        )],
        since: "8.2.0",
        summary: "Removes pending entries that were processed, and the entries",
        complexity: "O(G log N) for each ID and G groups",
        args: &[KEY, GROUP, CONDITION, IDS],
        items: ItemsNeeded::Entries(references::leaves_of_xackdel),
        handler: references::xackdel,
        ..READS
    },
    Spec {
        name: "xpending",
        makes: Makes::Reply,
        arity: -3,
        summary: "Tells which entries were delivered and not acknowledged",
        complexity: "O(log N + M) for M of N pending entries that are looked at",
        tips: &["nondeterministic_output"],
        args: &[
            KEY,
            GROUP,
            Arg::block(
                "filters",
                &[
                    Arg::of("min-idle-time", ArgKind::Integer)
                        .token("IDLE")
                        .since("6.2.0")
                        .optional(),
                    START,
                    END,
                    Arg::of("count", ArgKind::Integer),
                    CONSUMER.optional(),
                ],
            )
            .optional(),
        ],
        history: &[(
            "6.2.0",
            "Takes IDLE, and `(` before an ID that is excluded.",
        )],
        items: ItemsNeeded::Entries(ack::leaves_of_xpending),
        handler: ack::xpending,
        ..READS
    },
    Spec {
        name: "xclaim",
        makes: Makes::Value,
        arity: -6,
        flags: WRITE | FAST,
        keys: &[KeySpec::one(1, access::RW | access::UPDATE)],
        summary: "Gives pending entries to another consumer",
        complexity: "O(log N) for each ID",
        tips: &["nondeterministic_output"],
        args: &[
            KEY,
            GROUP,
            CONSUMER,
            MIN_IDLE,
            ID.multiple(),
            Arg::of("ms", ArgKind::Integer).token("IDLE").optional(),
            Arg::of("unix-time-milliseconds", ArgKind::UnixTime)
                .token("TIME")
                .optional(),
            Arg::of("count", ArgKind::Integer)
                .token("RETRYCOUNT")
                .optional(),
            Arg::word("force", "FORCE").optional(),
            Arg::word("justid", "JUSTID").optional(),
            ID.token("LASTID").optional(),
        ],
        items: ItemsNeeded::Entries(claim::leaves_of_xclaim),
        handler: claim::xclaim,
        ..READS
    },
    Spec {
        name: "xautoclaim",
        makes: Makes::Value,
        arity: -6,
        flags: WRITE | FAST,
        keys: &[KeySpec::one(1, access::RW | access::DELETE)],
        since: "6.2.0",
        summary: "Gives pending entries that nobody works on to another consumer",
        complexity: "O(log N) for each pending entry that is looked at",
        tips: &["nondeterministic_output"],
        args: &[
            KEY,
            GROUP,
            CONSUMER,
            MIN_IDLE,
            START,
            COUNT,
            Arg::word("justid", "JUSTID").optional(),
        ],
        history: &[("7.0.0", "The reply has the IDs of entries that are gone.")],
        items: ItemsNeeded::Entries(claim::leaves_of_xautoclaim),
        handler: claim::xautoclaim,
        ..READS
    },
    Spec {
        name: "xinfo",
        makes: Makes::Little,
        arity: -2,
        flags: 0,
        keys: &[],
        summary: "Tells facts about streams, groups and consumers",
        complexity: "That of the subcommand",
        subcommands: XINFO,
        handler: Spec::BASE.handler,
        ..READS
    },
];
