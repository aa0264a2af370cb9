//! XGROUP: groups of consumers.

use keyspace::StreamRef;
use keyspace::collection::Base;
use keyspace::collection::stream::group::NUMBERS_END;
use keyspace::collection::stream::{
    Consumer, Group, Head, Id, IdRange, ItemBuffer, Section, StreamItems,
};

use super::super::prepare::leaves::AskedLeaves;
use super::super::{Args, Context, Failure, Handled, Next, help};
use super::id;
use super::leaves::{self, lacks};
use crate::config::Packed;
use crate::observe::notify::Event;
use crate::request::failure::quoted;
use crate::store::StreamEdit;

const NO_KEY: Failure = Failure::of(
    "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use \
     the MKSTREAM option to create an empty stream automatically.",
);
const BUSY_GROUP: Failure = Failure::of("BUSYGROUP Consumer Group name already exists");
const NEGATIVE_READ: Failure = Failure::of("ERR value for ENTRIESREAD must be positive or -1");
const NO_NUMBERS: Failure = Failure::of(
    "ERR this stream has had as many groups and consumers as it can; copy its entries to another key",
);

/// `NOGROUP` for a subcommand that needs a group.
pub(super) fn no_group(group: &[u8], key: &[u8]) -> Failure {
    let text = [
        b"NOGROUP No such consumer group '",
        quoted(group),
        b"' for key name '",
        quoted(key),
        b"'",
    ];
    Failure(text.concat().into())
}

/// A number for a group or a consumer.
pub(super) fn number(head: &mut Head) -> Result<u32, Failure> {
    let number = head.numbers;
    if number >= NUMBERS_END {
        return Err(NO_NUMBERS);
    }
    head.numbers += 1;
    Ok(number as u32)
}

/// The number of a consumer of a group, which is made if it is missing; whether it was. The head is written
/// then.
pub(super) fn find_or_make(
    edit: &mut StreamEdit<'_, '_>,
    group: u32,
    name: &[u8],
    now: u64,
) -> Result<(u32, bool), Failure> {
    let found = edit
        .stream()
        .consumer_number(group, name, &mut ItemBuffer::default());
    if let Some(number) = found {
        return Ok((number, false));
    }
    let mut head = edit.stream().head().unwrap_or_default();
    let number = number(&mut head)?;
    edit.put_head(&head);
    let consumer = Consumer {
        seen: now,
        active: None,
        pending: 0,
        name,
    };
    edit.new_consumer(group, number, &consumer);
    edit.note_change();
    Ok((number, true))
}

/// `ERR unknown subcommand or wrong number of arguments` of XGROUP.
fn syntax(args: &Args<'_>) -> Failure {
    Failure::wrong_subcommand("XGROUP", args.get(1))
}

/// The ID from which on a group reads: `$` is the last one of the stream.
fn start(args: &Args<'_>, last: Option<Id>) -> Result<Id, Failure> {
    match args.get(4) {
        b"$" => Ok(last.unwrap_or(Id::MIN)),
        text => id::exact(text, 0),
    }
}

/// The same of SETID, which takes the first and the last ID of all, too.
fn start_anywhere(args: &Args<'_>, last: Option<Id>) -> Result<Id, Failure> {
    match args.get(4) {
        b"-" => Ok(Id::MIN),
        b"+" => Ok(Id::MAX),
        _ => start(args, last),
    }
}

/// The options of CREATE and SETID.
struct Options {
    makes: bool,
    read: Option<u64>,
}

impl Options {
    fn parse(args: &Args<'_>, may_make: bool) -> Result<Options, Failure> {
        let mut options = Options {
            makes: false,
            read: None,
        };
        let mut at = 5;
        while at < args.len() {
            if may_make && args.is(at, "MKSTREAM") {
                options.makes = true;
            } else if args.is(at, "ENTRIESREAD") && at + 1 < args.len() {
                at += 1;
                options.read = match args.integer(at)? {
                    -1 => None,
                    read => Some(u64::try_from(read).map_err(|_| NEGATIVE_READ)?),
                };
            } else {
                return Err(syntax(args));
            }
            at += 1;
        }
        Ok(options)
    }
}

/// `XGROUP CREATE key group id | $ [MKSTREAM] [ENTRIESREAD entries-read]`
pub(super) fn create(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let options = Options::parse(args, true)?;
    let (key, name, now) = (args.key(2), args.get(3), context.store.now);
    let mut shard = context.store.lock(key);
    let head = match shard.find_items::<StreamItems>(key)? {
        Some(found) => found.stream().head(),
        None if options.makes => None,
        None => return Err(NO_KEY),
    };
    if args.len() > 8 {
        return Err(syntax(args));
    }
    let last = start(args, head.map(|head| head.last))?;
    let event = Event::XGROUP_CREATE;
    shard.edit_items(key, event, Packed::NONE, |edit: &mut StreamEdit<'_, '_>| {
        let head = edit.stream().head();
        if head.is_some() {
            edit.is_of_groups(false);
        }
        let mut head = head.unwrap_or_else(|| Head::new(now.max(0) as u64));
        let is_there = edit.stream().group(name, &mut ItemBuffer::default());
        if is_there.is_some() {
            return Err(BUSY_GROUP);
        }
        let number = number(&mut head)?;
        edit.put_head(&head);
        let group = Group {
            number,
            last,
            read: options.read,
            pending: 0,
        };
        edit.put_group(name, &group);
        edit.note_change();
        Ok(())
    })?;
    context.reply.ok();
    Ok(Next::Done)
}

/// `XGROUP SETID key group id | $ [ENTRIESREAD entries-read]`
pub(super) fn set_id(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let options = Options::parse(args, false)?;
    let (key, name) = (args.key(2), args.get(3));
    let mut shard = context.store.lock(key);
    let found = shard.find_items::<StreamItems>(key)?.ok_or(NO_KEY)?;
    let stream = found.stream();
    let group = stream.group(name, &mut ItemBuffer::default());
    let mut group = group.ok_or_else(|| no_group(name, key.bytes))?;
    if !matches!(args.len(), 5 | 7) {
        return Err(syntax(args));
    }
    group.last = start_anywhere(args, stream.head().map(|head| head.last))?;
    group.read = options.read;
    found.edit(Event::XGROUP_SETID, Packed::NONE, |edit| {
        // Readers of the group may wait for entries that it gets anew.
        edit.is_of_groups(true);
        edit.put_group(name, &group);
        edit.note_change();
    });
    context.reply.ok();
    Ok(Next::Done)
}

/// The leaves that XGROUP DESTROY needs: those of the ends of the pending entries of the group.
pub(super) fn leaves_of_destroy(stream: StreamRef<'_>, asked: &AskedLeaves<'_>) -> Vec<Base> {
    let group = stream.group(asked.args.get(3), &mut ItemBuffer::default());
    group.map_or(Vec::new(), |group| leaves_to_destroy(stream, group.number))
}

fn leaves_to_destroy(stream: StreamRef<'_>, group: u32) -> Vec<Base> {
    let section = Section::of_pending(group);
    let ends = [Id::MIN, Id::MAX].map(|id| stream.cold_at(section, id));
    if ends.iter().any(Option::is_some) {
        return ends.into_iter().flatten().collect();
    }
    leaves::of_cut(
        stream,
        stream.rank_of(section, Id::MIN),
        stream.rank_behind(section, Id::MAX),
    )
}

/// `XGROUP DESTROY key group`
pub(super) fn destroy(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let (key, name) = (args.key(2), args.get(3));
    let mut shard = context.store.lock(key);
    let found = shard.find_items::<StreamItems>(key)?.ok_or(NO_KEY)?;
    let stream = found.stream();
    let Some(group) = stream.group(name, &mut ItemBuffer::default()) else {
        context.reply.integer(0);
        return Ok(Next::Done);
    };
    if lacks(stream, |stream| leaves_to_destroy(stream, group.number)) {
        return Ok(Next::Retry);
    }
    let consumers: Vec<(Vec<u8>, u32)> = stream
        .consumer_names(group.number)
        .map(|(name, number)| (name.to_vec(), number))
        .collect();
    found.edit(Event::XGROUP_DESTROY, Packed::NONE, |edit| {
        edit.is_of_groups(true);
        if group.pending > 0 {
            edit.cut_ids(&IdRange {
                section: Section::of_pending(group.number),
                from: Id::MIN,
                last: Id::MAX,
            });
        }
        for (name, number) in &consumers {
            edit.take_consumer(group.number, *number, name);
        }
        edit.take_group(name);
        edit.only_change();
    });
    context.reply.integer(1);
    Ok(Next::Done)
}

/// `XGROUP CREATECONSUMER key group consumer`
pub(super) fn create_consumer(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let (key, name, consumer) = (args.key(2), args.get(3), args.get(4));
    let now = context.store.now.max(0) as u64;
    let mut shard = context.store.lock(key);
    let found = shard.find_items::<StreamItems>(key)?.ok_or(NO_KEY)?;
    let group = found.stream().group(name, &mut ItemBuffer::default());
    let group = group.ok_or_else(|| no_group(name, key.bytes))?;
    let event = Event::XGROUP_CREATECONSUMER;
    let made = found.edit(event, Packed::NONE, |edit| {
        edit.is_of_groups(false);
        find_or_make(edit, group.number, consumer, now)
    });
    let (_, is_new) = made?;
    context.reply.integer(i64::from(is_new));
    Ok(Next::Done)
}

/// The leaves that XGROUP DELCONSUMER needs: those of all pending entries of the group, if the consumer has
/// some.
pub(super) fn leaves_of_delconsumer(stream: StreamRef<'_>, asked: &AskedLeaves<'_>) -> Vec<Base> {
    let mut buffer = ItemBuffer::default();
    let args = asked.args;
    let of = stream.group(args.get(3), &mut buffer).and_then(|group| {
        let number = stream.consumer_number(group.number, args.get(4), &mut buffer)?;
        let consumer = stream.consumer(group.number, number, &mut buffer)?;
        Some((group.number, consumer.pending))
    });
    of.map_or(Vec::new(), |(group, pending)| {
        leaves_of_pending(stream, group, pending)
    })
}

fn leaves_of_pending(stream: StreamRef<'_>, group: u32, pending: u64) -> Vec<Base> {
    if pending == 0 {
        return Vec::new();
    }
    leaves::of_range(stream, Section::of_pending(group), Id::MIN, Id::MAX)
}

/// `XGROUP DELCONSUMER key group consumer`
pub(super) fn delete_consumer(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let (key, name, consumer) = (args.key(2), args.get(3), args.get(4));
    let mut shard = context.store.lock(key);
    let found = shard.find_items::<StreamItems>(key)?.ok_or(NO_KEY)?;
    let (stream, mut buffer) = (found.stream(), ItemBuffer::default());
    let group = stream.group(name, &mut buffer);
    let mut group = group.ok_or_else(|| no_group(name, key.bytes))?;
    let number = stream.consumer_number(group.number, consumer, &mut buffer);
    let its = number.and_then(|number| {
        let consumer = stream.consumer(group.number, number, &mut buffer)?;
        Some((number, consumer.pending))
    });
    let Some((number, count)) = its else {
        context.reply.integer(0);
        return Ok(Next::Done);
    };
    if lacks(stream, |stream| {
        leaves_of_pending(stream, group.number, count)
    }) {
        return Ok(Next::Retry);
    }
    let own = |pending: &keyspace::collection::stream::Pending| pending.consumer == number;
    let gone: Vec<_> = match count {
        0 => Vec::new(),
        _ => stream
            .pending_from(group.number, Id::MIN)
            .filter(own)
            .collect(),
    };
    found.edit(Event::XGROUP_DELCONSUMER, Packed::NONE, |edit| {
        edit.is_of_groups(false);
        for pending in &gone {
            edit.take_pending(group.number, pending, &mut buffer);
        }
        edit.take_consumer(group.number, number, consumer);
        group.pending = group.pending.saturating_sub(gone.len() as u64);
        edit.put_group(name, &group);
        edit.note_change();
    });
    context.reply.integer(gone.len() as i64);
    Ok(Next::Done)
}

const HELP: &[&str] = &[
    "CREATE <key> <groupname> <id|$> [option]",
    "    Create a new consumer group. Options are:",
    "    * MKSTREAM",
    "      Create the empty stream if it does not exist.",
    "    * ENTRIESREAD entries_read",
    "      Set the group's entries_read counter (internal use).",
    "CREATECONSUMER <key> <groupname> <consumer>",
    "    Create a new consumer in the specified group.",
    "DELCONSUMER <key> <groupname> <consumer>",
    "    Remove the specified consumer.",
    "DESTROY <key> <groupname>",
    "    Remove the specified group.",
    "SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]",
    "    Set the current group ID and entries_read counter.",
];

/// `XGROUP HELP`
pub(super) fn show_help(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    help(context, "XGROUP", HELP);
    Ok(Next::Done)
}

/// `NOGROUP` for a command that needs a key with a group. `end` follows the names.
pub(super) fn no_key_or_group(key: &[u8], group: &[u8], end: &str) -> Failure {
    let text = [
        b"NOGROUP No such key '",
        quoted(key),
        b"' or consumer group '",
        quoted(group),
        b"'",
        end.as_bytes(),
    ];
    Failure(text.concat().into())
}
