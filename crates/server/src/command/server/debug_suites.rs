//! DEBUG subcommands that test suites of other servers and of clients send: POPULATE, what they look at, and
//! those that are accepted without effect.

use resp::number;

use super::{Args, Context, Failure, Handled, Next};
use crate::command::failure;
use crate::config::parse_memory;
use crate::limits::FORESEEN_BYTES;

/// A subcommand that is accepted without effect: it tunes or tests a part that this server does not have.
struct Accepted {
    name: &'static str,
    /// Arguments behind the name, at least and at most.
    arguments: (usize, usize),
    /// What is checked of the first argument.
    first: First,
    /// As DEBUG HELP shows it.
    usage: &'static str,
}

/// What the first argument of an accepted subcommand must be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum First {
    Anything,
    /// A size of less than 4 GiB.
    Size,
    /// A number from 0 to 2^63 - 1.
    Number,
    /// RESIZING, or PEAK-RESET-TIME, which takes a time or the name of one.
    ReplyBuffer,
}

const fn switch(name: &'static str, usage: &'static str) -> Accepted {
    Accepted {
        name,
        arguments: (1, 1),
        first: First::Anything,
        usage,
    }
}

const ACCEPTED: &[Accepted] = &[
    Accepted {
        first: First::Number,
        ..switch("aof-flush-sleep", "AOF-FLUSH-SLEEP <microseconds>")
    },
    Accepted {
        arguments: (0, 0),
        ..switch("change-repl-id", "CHANGE-REPL-ID")
    },
    Accepted {
        arguments: (0, 0),
        ..switch("client-eviction", "CLIENT-EVICTION")
    },
    switch(
        "client-enforce-reply-list",
        "CLIENT-ENFORCE-REPLY-LIST <0|1>",
    ),
    switch(
        "close-cluster-link-on-packet-drop",
        "CLOSE-CLUSTER-LINK-ON-PACKET-DROP <0|1>",
    ),
    Accepted {
        arguments: (0, 1),
        ..switch(
            "delay-rdb-client-free-second",
            "DELAY-RDB-CLIENT-FREE-SECOND <seconds>",
        )
    },
    switch("dict-resizing", "DICT-RESIZING <0|1>"),
    switch(
        "disable-cluster-random-ping",
        "DISABLE-CLUSTER-RANDOM-PING <0|1>",
    ),
    switch(
        "disable-cluster-reconnection",
        "DISABLE-CLUSTER-RECONNECTION <0|1>",
    ),
    switch(
        "drop-cluster-packet-filter",
        "DROP-CLUSTER-PACKET-FILTER <type>",
    ),
    switch("force-free-primary-async", "FORCE-FREE-PRIMARY-ASYNC <0|1>"),
    switch(
        "hashtable-can-abort-shrink",
        "HASHTABLE-CAN-ABORT-SHRINK <0|1>",
    ),
    Accepted {
        first: First::Number,
        ..switch("keysizes-hist-assert", "KEYSIZES-HIST-ASSERT <0|1>")
    },
    switch("leak", "LEAK <text>"),
    Accepted {
        arguments: (0, 1),
        ..switch("mark-internal-client", "MARK-INTERNAL-CLIENT [UNMARK]")
    },
    switch("pause-after-fork", "PAUSE-AFTER-FORK <0|1>"),
    switch("pause-cron", "PAUSE-CRON <0|1>"),
    Accepted {
        first: First::Size,
        ..switch(
            "quicklist-packed-threshold",
            "QUICKLIST-PACKED-THRESHOLD <size>",
        )
    },
    switch("repl-pause", "REPL-PAUSE <point>"),
    Accepted {
        arguments: (1, usize::MAX),
        ..switch("replicate", "REPLICATE <text>")
    },
    Accepted {
        arguments: (2, 2),
        first: First::ReplyBuffer,
        ..switch(
            "replybuffer",
            "REPLYBUFFER PEAK-RESET-TIME <NEVER|RESET|time>",
        )
    },
    switch(
        "set-skip-checksum-validation",
        "SET-SKIP-CHECKSUM-VALIDATION <0|1>",
    ),
    Accepted {
        arguments: (2, 2),
        ..switch("slotmigration", "SLOTMIGRATION PREVENT-PAUSE <0|1>")
    },
    Accepted {
        arguments: (0, 2),
        ..switch("stringmatch-len", "STRINGMATCH-LEN [<length> <pattern>]")
    },
    Accepted {
        arguments: (0, 0),
        ..switch("structsize", "STRUCTSIZE")
    },
];

/// Further uses of accepted subcommands that have several.
const FURTHER_USAGES: [&str; 2] = [
    "REPLYBUFFER RESIZING <0|1>",
    "SLOTMIGRATION PREVENT-FAILOVER <0|1>",
];

/// How the accepted subcommands are used, for DEBUG HELP.
pub(super) fn accepted_usages() -> impl Iterator<Item = &'static str> {
    let usages = ACCEPTED.iter().map(|accepted| accepted.usage);
    usages.chain(FURTHER_USAGES)
}

/// Answers a subcommand that has no effect, if this is one.
pub(super) fn accept(context: &mut Context<'_>, args: &Args<'_>) -> Option<Handled> {
    let name = args.get(1);
    let found = ACCEPTED
        .iter()
        .find(|accepted| name.eq_ignore_ascii_case(accepted.name.as_bytes()))?;
    let (least, most) = found.arguments;
    let count = args.len() - 2;
    if count < least || count > most {
        return None;
    }
    if let Err(failure) = check(args, found.first) {
        return Some(Err(failure));
    }
    context.reply.ok();
    Some(Ok(Next::Done))
}

fn check(args: &Args<'_>, first: First) -> Result<(), Failure> {
    match first {
        First::Anything => Ok(()),
        First::Number => args.integer(2).map(drop),
        First::Size => {
            let size = std::str::from_utf8(args.get(2)).ok().and_then(parse_memory);
            let is_size = size.is_some_and(|size| size < u64::from(u32::MAX));
            is_size.then_some(()).ok_or(Failure::of(
                "ERR argument must be a memory value bigger than 1 and smaller than 4gb",
            ))
        }
        First::ReplyBuffer if args.is(2, "resizing") => Ok(()),
        First::ReplyBuffer if args.is(2, "peak-reset-time") => {
            let is_name = args.is(3, "never") || args.is(3, "reset");
            match is_name {
                true => Ok(()),
                false => args.integer(3).map(drop),
            }
        }
        First::ReplyBuffer => Err(Failure::wrong_subcommand("DEBUG", args.get(1))),
    }
}

/// `DEBUG POPULATE count [prefix [size]]`: sets keys that are not there to strings.
pub(super) fn populate(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let number = |at: usize| {
        let number = args.optional(at).map(number::parse_i64);
        let is_known = number.is_none_or(|number| number.is_some_and(|number| number >= 0));
        is_known
            .then(|| number.flatten().unwrap_or_default())
            .ok_or(Failure::of("ERR value is out of range, must be positive"))
    };
    let (count, size) = (number(2)?, number(4)? as usize);
    let prefix = args.optional(3).unwrap_or(b"key");
    if size > context.server.longest_made() {
        return Err(failure::NOT_AN_INTEGER);
    }
    let mut foreseen = 0;
    for at in 0..count {
        let mut name = prefix.to_vec();
        name.extend_from_slice(format!(":{at}").as_bytes());
        let mut value = format!("value:{at}").into_bytes();
        let bytes = 2 * (name.len() + value.len().max(size)) + ENTRY_BYTES;
        if foreseen < bytes {
            foreseen = bytes.max(FORESEEN_BYTES);
            context.foresee_bytes(foreseen)?;
        }
        foreseen -= bytes;
        if size > 0 {
            value.resize(size, 0);
        }
        let key = context.store.database().key(&name);
        let mut shard = context.store.lock(key);
        if !shard.contains(key) {
            shard.set(key, &value, keyspace::Expiry::Clear);
        }
    }
    context.reply.ok();
    Ok(Next::Done)
}

/// Bytes of a key beside its name and its value, at most.
const ENTRY_BYTES: usize = 128;

/// `DEBUG HTSTATS db [full]`
pub(super) fn table_figures(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let keyspace = context.store.keyspace;
    let db = usize::try_from(args.integer(2)?).ok();
    let db = db.filter(|&db| db < keyspace.databases());
    let db = db.ok_or(Failure::of("ERR Out of range database"))?;
    let existing = keyspace.existing(context.store.turn, db);
    let (keys, expiring) = existing.map_or((0, 0), |db| (db.len(), db.volatile()));
    let text = format!(
        "[Dictionary HT]\n{}[Expires HT]\n{}",
        figures_of(keys as u64),
        figures_of(expiring as u64)
    );
    context.reply.verbatim("txt", text.as_bytes());
    Ok(Next::Done)
}

fn figures_of(elements: u64) -> String {
    match elements {
        0 => String::new(),
        _ => {
            format!("Hash table 0 stats (main hash table):\n number of elements: {elements}\n")
        }
    }
}

/// `DEBUG HTSTATS-KEY key [full]`
pub(super) fn key_table_figures(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    const NO_TABLE: Failure = Failure::of(
        "ERR The value stored at the specified key is not represented using an hash table",
    );
    let key = args.key(2);
    let mut shard = context.store.lock(key);
    let entry = shard.find(key).ok_or(failure::NO_SUCH_KEY)?;
    if !matches!(entry.encoding(), "hashtable" | "skiplist") {
        return Err(NO_TABLE);
    }
    let items = entry.as_ref().all_items().map(|items| items.len());
    let text = figures_of(items.ok_or(NO_TABLE)?);
    drop(shard);
    context.reply.verbatim("txt", text.as_bytes());
    Ok(Next::Done)
}

/// `DEBUG LISTPACK key` and `DEBUG QUICKLIST key [0 | 1]`: whether the value would have this form in Redis.
/// Nothing is printed.
pub(super) fn form(context: &mut Context<'_>, args: &Args<'_>, form: &str, title: &str) -> Handled {
    let key = args.key(2);
    let encoding = match context.store.lock(key).find(key) {
        Some(entry) => entry.encoding(),
        None => return Err(failure::NO_SUCH_KEY),
    };
    if encoding != form {
        return Err(Failure::new(format!("ERR Not a {form} encoded object.")));
    }
    let text = format!("{title} structure printed on stdout");
    context.reply.simple(&text);
    Ok(Next::Done)
}

/// `DEBUG SDSLEN key`: lengths of a key and of its value, which is a string. Nothing is left free behind
/// them.
pub(super) fn lengths(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    const NO_TEXT: Failure = Failure::of("ERR Not an sds encoded string.");
    let key = args.key(2);
    let mut shard = context.store.lock(key);
    let entry = shard.find(key).ok_or(failure::NO_SUCH_KEY)?;
    if !matches!(entry.encoding(), "embstr" | "raw") {
        return Err(NO_TEXT);
    }
    let memory = entry.memory();
    let persistence = &context.server.persistence;
    let value = persistence.bytes_now(entry.as_ref())?.len();
    drop(shard);
    let text = format!(
        "key_sds_len:{}, key_sds_avail:0, key_zmalloc: {memory}, \
         val_sds_len:{value}, val_sds_avail:0, val_zmalloc: 0",
        key.bytes.len(),
    );
    context.reply.simple(&text);
    Ok(Next::Done)
}
