//! DEBUG: subcommands for tests of clients and of this server, allowed by `enable-debug-command`.
//!
//! Of the many subcommands of Redis these apply here and are used by tests; `debug_suites` has those that only
//! suites of other servers need. Subcommands that crash the server are left out.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use keyspace::collection::any::SMALL_BYTES;
use keyspace::collection::cell::{Cell, DECIMAL_MAX};
use keyspace::{AnyItems, COLD_MIN_BYTES, Kind};
use resp::number;
use resp::reply::Protocol;

use super::debug_suites as suites;
use super::digest::Digest;
use super::{Args, Context, Failure, Handled, Next, help};
use crate::command::{deferred, failure};
use crate::persistence::snapshot::{self, Duplicates, Reload, ReloadError};
use crate::persistence::{AgainError, Persistence};
use crate::request::{Pieces, Reply};

pub(super) fn debug(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    match (args.len(), args.get(1).to_ascii_lowercase().as_slice()) {
        (3, b"sleep") => sleep(context, args.get(2)),
        (3, b"set-active-expire") => set_active_expire(context, args.get(2)),
        (3, b"object") => return object(context, args, true),
        (4, b"object") if args.is(3, "fast") => return object(context, args, false),
        (_, b"reload") => return reload(context, args),
        (2, b"loadaof") => return load_log(context, args),
        (2, b"digest") => return digest(context),
        (_, b"digest-value") => digest_values(context, args),
        #[cfg(any(debug_assertions, feature = "faults"))]
        (3 | 4, b"disk") => return disk(context, args),
        (3, b"error") => context.reply.error(args.get(2)),
        (3, b"log") => log(context, args),
        (3, b"offload") => return offload(context, args),
        (3, b"offload-all") => return offload_all(context, args.get(2)),
        (3, b"small-bytes") => return small_bytes(context, args),
        (3, b"protocol") => protocol(&mut context.reply, args.get(2))?,
        (3..=5, b"populate") => return suites::populate(context, args),
        (3 | 4, b"htstats") => return suites::table_figures(context, args),
        (3 | 4, b"htstats-key") => return suites::key_table_figures(context, args),
        (3, b"listpack") => return suites::form(context, args, "listpack", "Listpack"),
        (3 | 4, b"quicklist") => return suites::form(context, args, "quicklist", "Quicklist"),
        (3, b"sdslen") => return suites::lengths(context, args),
        (2, b"stringmatch-test") => context
            .reply
            .simple("Patterns are matched without recursion: nothing to test"),
        (2, b"help") => print_help(context),
        _ => {
            return suites::accept(context, args)
                .unwrap_or_else(|| Err(Failure::wrong_subcommand("DEBUG", args.get(1))));
        }
    }
    Ok(Next::Done)
}

/// Stops the whole server: no worker can run anything meanwhile.
fn sleep(context: &mut Context<'_>, seconds: &[u8]) {
    let seconds = number::parse_f64(seconds).unwrap_or(0.0).max(0.0);
    let time = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    context.store.turn.exclusive(|_| std::thread::sleep(time));
    context.reply.ok();
}

fn set_active_expire(context: &mut Context<'_>, wanted: &[u8]) {
    let on = number::parse_i64(wanted).is_some_and(|wanted| wanted != 0);
    context.server.active_expire.store(on, Relaxed);
    context.reply.ok();
}

/// Saves and loads. No other worker is inside a turn while data is saved. During the load others get LOADING.
fn reload(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let mut reload = Reload {
        saves: true,
        flushes: true,
        duplicates: Duplicates::Refused,
    };
    for at in 2..args.len() {
        match () {
            () if args.is(at, "nosave") => reload.saves = false,
            () if args.is(at, "noflush") => reload.flushes = false,
            () if args.is(at, "merge") => reload.duplicates = Duplicates::Replaced,
            () => {
                return Err(Failure::of(
                    "ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.",
                ));
            }
        }
    }
    match snapshot::reload(context.server, context.store.turn, reload) {
        Ok(()) => {
            context.store.watch_over_all();
            context.reply.ok();
            Ok(Next::Done)
        }
        Err(ReloadError::Loading) => Err(failure::LOADING),
        Err(ReloadError::Save) => Err(Failure::of("ERR")),
        Err(ReloadError::Load) => Err(Failure::of(
            "ERR Error trying to load the RDB dump, check server logs.",
        )),
    }
}

/// Throws all data away and loads it from the log. A thread of its own does that, for this worker must let go
/// of the log meanwhile.
fn load_log(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    if !context.may_defer() {
        return Err(Failure::of(
            "ERR DEBUG LOADAOF cannot wait here: not in a transaction, nor without replies",
        ));
    }
    let server = context.server;
    deferred::do_apart(context, args, move || {
        match Persistence::load_again(server) {
            Ok(()) => Ok(Pieces::beginning(b"+OK\r\n".into())),
            Err(AgainError::Loading) => Err(failure::LOADING),
            Err(AgainError::NoLog | AgainError::Failed) => Err(Failure::of(
                "ERR Error trying to load the AOF files, check server logs.",
            )),
        }
    })
}

/// `DEBUG OBJECT key [FAST]`: without the length, for which all of a collection is read, if it is fast.
fn object(context: &mut Context<'_>, args: &Args<'_>, with_length: bool) -> Handled {
    let (key, now_s) = (args.key(2), context.store.now / 1000);
    let mut shard = context.store.lock(key);
    let entry = shard.find(key).ok_or(failure::NO_SUCH_KEY)?;
    let (name, idle_s) = (entry.encoding(), entry.idle_seconds());
    let (view, persistence) = (entry.as_ref(), &context.server.persistence);
    let len = match view.kind() {
        _ if !with_length => 0,
        Kind::String => serialized_len(&persistence.bytes_now(view)?),
        kind if view.cold().is_some() => {
            let run = persistence.bytes_now(view)?;
            serialized_len_of(AnyItems::of_run(kind, &run), persistence)?
        }
        Kind::Hash | Kind::Set | Kind::SortedSet | Kind::List | Kind::Stream => serialized_len_of(
            view.all_items()
                .expect("a value that is no string is a collection"),
            persistence,
        )?,
    };
    let length = match with_length {
        true => format!(" serializedlength:{len}"),
        false => String::new(),
    };
    let text = format!(
        "Value at:{:p} refcount:1 encoding:{name}{length} lru:{} lru_seconds_idle:{idle_s}",
        view.key().as_ptr(),
        (now_s - i64::from(idle_s)) & 0xff_ffff,
    );
    drop(shard);
    context.reply.simple(&text);
    Ok(Next::Done)
}

/// Bytes of a value in an RDB file, without its type and without compression: a small integer takes 2, 3 or
/// 5, anything else its own length behind that length in 1, 2, 5 or 9.
fn serialized_len(value: &[u8]) -> usize {
    match number::parse_i64(value) {
        Some(-0x80..=0x7f) => 2,
        Some(-0x8000..=0x7fff) => 3,
        Some(-0x8000_0000..=0x7fff_ffff) => 5,
        _ => {
            let prefix = match value.len() {
                ..64 => 1,
                64..0x4000 => 2,
                0x4000..=0xffff_ffff => 5,
                _ => 9,
            };
            prefix + value.len()
        }
    }
}

/// The same of a collection: its length, then fields and values, or members.
fn serialized_len_of(items: AnyItems<'_>, persistence: &Persistence) -> Result<usize, Failure> {
    let mut len = match items.len() {
        ..64 => 1,
        64..0x4000 => 2,
        0x4000..=0xffff_ffff => 5,
        _ => 9,
    };
    let len_of = |cell: Cell<'_>| serialized_len(cell.text(&mut [0; DECIMAL_MAX]));
    let value_len_of = |value: Cell<'_>| match items {
        // A double.
        AnyItems::SortedSet(_) => 8,
        _ => len_of(value),
    };
    let read = &mut |instance, base| persistence.leaf_now(instance, base, None);
    items.try_each::<Failure>(read, &mut |item| {
        len += len_of(item.name) + item.value.map_or(0, value_len_of);
        Ok(())
    })?;
    Ok(len)
}

fn digest(context: &mut Context<'_>) -> Handled {
    let (keyspace, turn) = (context.store.keyspace, &*context.store.turn);
    let mut digest = Digest::default();
    for db in 0..keyspace.databases() {
        if let Some(database) = keyspace.existing(turn, db) {
            let persistence = &context.server.persistence;
            digest.mix_database(db as u32, database, context.store.now, persistence)?;
        }
    }
    context.reply.simple(&digest.to_string());
    Ok(Next::Done)
}

/// Makes trouble with the disk that the log is on. Given seconds, it ends by itself: a record that is being
/// written when the space ends waits for it with its shard, and then no request may be able to end it.
#[cfg(any(debug_assertions, feature = "faults"))]
fn disk(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    use sys::file::Trouble;

    let name = args.get(2).to_ascii_lowercase();
    let seconds = match args.len() {
        4 => Some(number::parse_u64(args.get(3)).ok_or(failure::NOT_AN_INTEGER)?),
        _ => None,
    };
    let known = Trouble::ALL.iter();
    let found = known.clone().find(|(known, _)| known.as_bytes() == name);
    let Some((_, trouble)) = found else {
        let names: Vec<&str> = known.map(|(name, _)| *name).collect();
        return Err(Failure::new(format!(
            "ERR the trouble is none of {}",
            names.join("|")
        )));
    };
    let persistence = &context.server.persistence;
    persistence.disk.set_trouble(*trouble);
    if *trouble == Trouble::Volatile {
        // The power takes memory, too.
        persistence.forget_ring();
    }
    if let Some(seconds) = seconds {
        let trouble = *trouble;
        let spawned = std::thread::Builder::new().spawn(move || {
            std::thread::sleep(Duration::from_secs(seconds));
            persistence.disk.end_trouble(trouble);
        });
        spawned.map_err(|error| Failure::new(format!("ERR no thread ends it: {error}")))?;
    }
    context.reply.ok();
    Ok(Next::Done)
}

/// The digest of a key that is not there is zero.
fn digest_values(context: &mut Context<'_>, args: &Args<'_>) {
    context.reply.array(args.len() - 2);
    for at in 2..args.len() {
        let key = args.key(at);
        let persistence = &context.server.persistence;
        let mut shard = context.store.lock(key);
        let digest = shard
            .find(key)
            .map(|entry| Digest::of_value(entry.as_ref(), persistence));
        drop(shard);
        match digest.unwrap_or(Ok(Digest::default())) {
            Ok(digest) => context.reply.simple(&digest.to_string()),
            Err(failure) => context.refuse(&failure),
        }
    }
}

/// Lets the value of a key leave memory as it would if memory were short, as soon as the log has it. Answers
/// whether it is in the log alone.
fn offload(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    may_offload(context)?;
    let (key, db) = (args.key(2), context.store.db);
    let done = context.store.offload_key(db, key);
    context.reply.integer(i64::from(done));
    Ok(Next::Done)
}

/// Lets values leave memory at any time from here on.
fn may_offload(context: &mut Context<'_>) -> Result<(), Failure> {
    let server = context.server;
    if !server.may_offload() {
        return Err(Failure::of(
            "ERR there is no log that values could be left in",
        ));
    }
    if context.in_transaction {
        return Err(Failure::of(
            "ERR values do not leave memory in a transaction",
        ));
    }
    let turn = &mut context.store.turn;
    turn.exclusive(|alone| server.offload.turn_on_for_good(alone));
    Ok(())
}

/// Lets the values of all keys that a command uses leave memory before it runs, however short they are.
fn offload_all(context: &mut Context<'_>, wanted: &[u8]) -> Handled {
    may_offload(context)?;
    let on = number::parse_i64(wanted).is_some_and(|wanted| wanted != 0);
    let least = if on { 0 } else { COLD_MIN_BYTES };
    context.store.keyspace.set_cold_min(least);
    context.server.offload.set_eager(on);
    context.reply.ok();
    Ok(Next::Done)
}

/// Makes collections trees beyond so many bytes, from here on.
fn small_bytes(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let bytes = usize::try_from(args.integer(2)?).ok();
    let bytes = bytes.filter(|bytes| (64..=SMALL_BYTES).contains(bytes));
    let bytes = bytes.ok_or(failure::NOT_AN_INTEGER)?;
    context.store.keyspace.set_small_bytes(bytes);
    context.reply.ok();
    Ok(Next::Done)
}

fn log(context: &mut Context<'_>, args: &Args<'_>) {
    log::warn!("DEBUG LOG: {}", args.text(2));
    context.reply.ok();
}

/// Answers one reply of a type. The contents are those of Redis, because tests of clients compare them.
#[expect(
    clippy::approx_constant,
    reason = "the double is these digits, not the number that they begin"
)]
fn protocol(reply: &mut Reply<'_>, kind: &[u8]) -> Result<(), Failure> {
    match kind.to_ascii_lowercase().as_slice() {
        b"string" => reply.bulk(b"Hello World"),
        b"integer" => reply.integer(12345),
        b"double" => reply.double(3.141),
        b"null" => reply.null(),
        b"array" => {
            reply.array(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        b"set" => {
            reply.set(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        b"map" => {
            reply.map(3);
            for number in 0..3 {
                reply.integer(number);
                reply.boolean(number == 1);
            }
        }
        b"attrib" => {
            if reply.attribute(1) {
                reply.bulk(b"key-popularity");
                reply.array(2);
                reply.bulk(b"key:123");
                reply.integer(90);
            }
            reply.bulk(b"Some real reply following the attribute");
        }
        b"push" => {
            if reply.protocol() == Protocol::Resp2 {
                return Err(Failure::of("ERR RESP2 is not supported by this command"));
            }
            reply.push(2);
            reply.bulk(b"server-cpu-usage");
            reply.integer(42);
            reply.bulk(b"Some real reply following the push reply");
        }
        b"verbatim" => reply.verbatim("txt", b"This is a verbatim\nstring"),
        b"true" => reply.boolean(true),
        b"false" => reply.boolean(false),
        b"bignum" => reply.big_number("1234567999999999999999999999999999999"),
        _ => {
            return Err(Failure::of(
                "ERR Wrong protocol type name. Please use one of the following: \
                 string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false",
            ));
        }
    }
    Ok(())
}

fn print_help(context: &mut Context<'_>) {
    let accepted =
        suites::accepted_usages().flat_map(|usage| [usage, "    Accepted without effect."]);
    let lines: Vec<&str> = HELP.iter().copied().chain(accepted).collect();
    help(context, "DEBUG", &lines);
}

const HELP: &[&str] = &[
    "DIGEST",
    "    Return a digest of all keys and values.",
    "DIGEST-VALUE <key> [<key> ...]",
    "    Return a digest of the value of each key.",
    #[cfg(any(debug_assertions, feature = "faults"))]
    "DISK <none|volatile|writes|syncs|full|taken> [<seconds>]",
    #[cfg(any(debug_assertions, feature = "faults"))]
    "    Make trouble with the disk of the log: what is not synced goes with the process, writes or",
    #[cfg(any(debug_assertions, feature = "faults"))]
    "    syncs fail, or there is no space (but what files have taken), for so long. NONE ends it.",
    "ERROR <text>",
    "    Answer an error with this text.",
    "LOADAOF",
    "    Throw all data away and load it from the log.",
    "LOG <message>",
    "    Write a message to the server's log.",
    "HTSTATS <db> [FULL]",
    "    Return how many keys a database has, and how many of them expire.",
    "HTSTATS-KEY <key> [FULL]",
    "    Return how many items a collection has that Redis would hold in a hash table.",
    "LISTPACK <key>",
    "    Tell whether Redis would hold a value in a listpack. Nothing is printed.",
    "OFFLOAD <key>",
    "    Let the value of a key leave memory if the log can have it. Return 1 if it is in the log alone.",
    "OFFLOAD-ALL <0|1>",
    "    Let the values of the keys that a command names leave memory before it runs (1), however short.",
    "OBJECT <key> [FAST]",
    "    Show how a key and its value are held; FAST leaves the length in an RDB file out.",
    "POPULATE <count> [<prefix>] [<size>]",
    "    Set the keys <prefix>:0 and so on (default: key) that are not there to strings, of so many bytes.",
    "PROTOCOL <type>",
    "    Answer a reply of a type: string, integer, double, bignum, null, array, set,",
    "    map, attrib, push, verbatim, true or false.",
    "QUICKLIST <key> [<0|1>]",
    "    Tell whether Redis would hold a list in a quicklist. Nothing is printed.",
    "RELOAD [NOSAVE] [NOFLUSH] [MERGE]",
    "    Save all data, throw it away and load it again. NOSAVE loads the file that is there,",
    "    NOFLUSH keeps the data, MERGE lets the file replace keys that are there.",
    "SDSLEN <key>",
    "    Return the lengths of a key and of its value.",
    "SET-ACTIVE-EXPIRE <0|1>",
    "    Stop (0) or go on with (1) removing expired keys that nobody asks for.",
    "SLEEP <seconds>",
    "    Stop the whole server for so long; a fraction is fine.",
    "SMALL-BYTES <bytes>",
    "    Let collections of more bytes than this, 64 to 4096, be trees; 4096 is the default.",
    "STRINGMATCH-TEST",
    "    Answer that there is nothing to test: patterns are matched without recursion.",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_those_of_an_rdb_file() {
        for (value, len) in [
            ("", 1),
            ("1", 2),
            ("-128", 2),
            ("128", 3),
            ("-32768", 3),
            ("32768", 5),
            ("2147483647", 5),
            ("2147483648", 11),
            ("01", 3),
            ("a", 2),
        ] {
            assert_eq!(serialized_len(value.as_bytes()), len, "{value}");
        }
        for (value, len) in [(63, 64), (64, 66), (0x3fff, 0x4001), (0x4000, 0x4005)] {
            assert_eq!(serialized_len(&vec![b'x'; value]), len);
        }
    }
}
