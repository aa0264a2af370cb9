//! XINFO: facts about a stream, its groups and their consumers.

use std::collections::BTreeMap;

use keyspace::StreamRef;
use keyspace::collection::Base;
use keyspace::collection::stream::{
    Consumer, Group, Id, ItemBuffer, Section, StreamEntry, StreamItems,
};

use super::super::prepare::leaves::AskedLeaves;
use super::super::{Args, Context, Failure, Handled, Next, failure, help};
use super::group::no_group;
use super::id::IdText;
use super::leaves::{self, lacks};
use super::progress::GroupProgress;
use super::read::write_entry;
use crate::request::Reply;

/// Entries and pending entries that XINFO STREAM FULL shows, if it does not say it.
const SHOWN_DEFAULT: u64 = 10;
/// Entries of a node of a radix tree in Redis.
const NODE_ENTRIES: u64 = 100;

fn write_name(reply: &mut Reply<'_>, name: &str) {
    reply.bulk(name.as_bytes());
}

fn write_id(reply: &mut Reply<'_>, name: &str, id: Id) {
    write_name(reply, name);
    reply.bulk(IdText::of(id).bytes());
}

fn write_number(reply: &mut Reply<'_>, name: &str, number: u64) {
    write_name(reply, name);
    reply.integer(number as i64);
}

fn write_known(reply: &mut Reply<'_>, name: &str, number: Option<i64>) {
    write_name(reply, name);
    match number {
        Some(number) => reply.integer(number),
        None => reply.null(),
    }
}

/// The facts that XINFO STREAM says first, in either form.
fn write_facts(reply: &mut Reply<'_>, stream: StreamRef<'_>, progress: &GroupProgress) {
    let head = stream.head().unwrap_or_default();
    let nodes = head.len.div_ceil(NODE_ENTRIES);
    write_number(reply, "length", head.len);
    write_number(reply, "radix-tree-keys", nodes);
    write_number(reply, "radix-tree-nodes", nodes + 1);
    write_id(reply, "last-generated-id", head.last);
    write_id(reply, "max-deleted-entry-id", head.deleted);
    write_number(reply, "entries-added", head.added);
    write_id(reply, "recorded-first-entry-id", progress.first());
    if let Some(settings) = stream.idempotence() {
        write_number(reply, "idmp-duration", settings.duration);
        write_number(reply, "idmp-maxsize", settings.most);
        write_number(reply, "pids-tracked", settings.producers);
        write_number(reply, "iids-tracked", stream.idempotent_len());
        write_number(reply, "iids-added", settings.added);
        write_number(reply, "iids-duplicates", settings.duplicates);
    }
}

/// Facts about idempotent IDs, where there are any.
const IDEMPOTENCE_FACTS: usize = 6;

/// How much XINFO STREAM shows.
#[derive(Clone, Copy)]
enum Shown {
    Ends,
    /// So many entries, and pending ones of each group and consumer.
    Full(u64),
}

impl Shown {
    fn parse(args: &Args<'_>) -> Result<Shown, Failure> {
        match args.len() {
            3 => Ok(Shown::Ends),
            4 | 6 if args.is(3, "FULL") => {
                if args.len() == 4 {
                    return Ok(Shown::Full(SHOWN_DEFAULT));
                }
                if !args.is(4, "COUNT") {
                    return Err(syntax(args));
                }
                Ok(Shown::Full(match args.integer(5)? {
                    ..0 => SHOWN_DEFAULT,
                    0 => u64::MAX,
                    count => count as u64,
                }))
            }
            _ => Err(syntax(args)),
        }
    }
}

fn syntax(args: &Args<'_>) -> Failure {
    Failure::wrong_subcommand("XINFO", args.get(1))
}

/// The leaves that XINFO STREAM needs.
pub(super) fn leaves_of_stream(stream: StreamRef<'_>, asked: &AskedLeaves<'_>) -> Vec<Base> {
    let shown = Shown::parse(asked.args);
    shown.map_or(Vec::new(), |shown| leaves_to_show(stream, shown))
}

fn leaves_to_show(stream: StreamRef<'_>, shown: Shown) -> Vec<Base> {
    let (items, first) = (stream.items(), stream.first_rank());
    let mut records = items.cold_between(first, first + 1);
    let Shown::Full(most) = shown else {
        records.extend(items.cold_between(items.len().saturating_sub(1), items.len()));
        return records;
    };
    records.extend(items.cold_between(first, first.saturating_add(most)));
    for (_, group) in stream.groups() {
        let section = Section::of_pending(group.number);
        records.extend(leaves::of_range(stream, section, Id::MIN, Id::MAX));
    }
    records
}

/// `XINFO STREAM key [FULL [COUNT count]]`
pub(super) fn stream(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let key = args.key(2);
    let mut shard = context.store.lock(key);
    let found = shard.read_items::<StreamItems>(key)?;
    let found = found.ok_or(failure::NO_SUCH_KEY)?;
    let shown = Shown::parse(args)?;
    let stream = found.stream();
    if lacks(stream, |stream| leaves_to_show(stream, shown)) {
        return Ok(Next::Retry);
    }
    let (reply, progress) = (&mut context.reply, GroupProgress::of(stream));
    let shapes = stream.shapes();
    let more = stream.idempotence().map_or(0, |_| IDEMPOTENCE_FACTS);
    let entry = |reply: &mut Reply<'_>, entry: Option<StreamEntry<'_>>| match entry {
        Some(entry) => write_entry(reply, entry, &shapes),
        None => reply.null(),
    };
    match shown {
        Shown::Ends => {
            reply.map(10 + more);
            write_facts(reply, stream, &progress);
            write_number(reply, "groups", stream.groups().count() as u64);
            let ends = stream.ends();
            write_name(reply, "first-entry");
            entry(reply, ends.map(|(first, _)| first));
            write_name(reply, "last-entry");
            entry(reply, ends.map(|(_, last)| last));
        }
        Shown::Full(most) => {
            reply.map(9 + more);
            write_facts(reply, stream, &progress);
            write_name(reply, "entries");
            let first = stream.first_rank();
            let count = most.min(stream.len());
            reply.array(count as usize);
            (first..first + count).for_each(|rank| entry(reply, stream.entry_at(rank)));
            write_name(reply, "groups");
            let groups: Vec<(&[u8], Group)> = stream.groups().collect();
            reply.array(groups.len());
            for (name, group) in groups {
                write_group(reply, stream, name, &group, most, &progress);
            }
        }
    }
    Ok(Next::Done)
}

/// A group as XINFO STREAM FULL shows it.
fn write_group(
    reply: &mut Reply<'_>,
    stream: StreamRef<'_>,
    name: &[u8],
    group: &Group,
    most: u64,
    progress: &GroupProgress,
) {
    let mut buffer = ItemBuffer::default();
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    reply.map(7);
    write_name(reply, "name");
    reply.bulk(name);
    write_id(reply, "last-delivered-id", group.last);
    write_known(reply, "entries-read", group.read.map(|read| read as i64));
    write_known(reply, "lag", progress.lag(group));
    write_number(reply, "pel-count", group.pending);
    write_name(reply, "pending");
    let (start, mut count) = (reply.position(), 0);
    for pending in stream.pending_from(group.number, Id::MIN).take(most) {
        count += 1;
        reply.array(4);
        reply.bulk(IdText::of(pending.id).bytes());
        let consumer = stream.consumer(group.number, pending.consumer, &mut buffer);
        reply.bulk(consumer.map_or(b"", |consumer| consumer.name));
        reply.integer(pending.delivered as i64);
        reply.integer(pending.deliveries as i64);
    }
    reply.put_before(start, |writer| writer.array(count));
    write_name(reply, "consumers");
    let consumers = consumers(stream, group.number);
    let pending = pending_by_consumer(stream, group.number, &consumers, most);
    let first = stream.rank_of(Section::of_pending(group.number), Id::MIN);
    reply.array(consumers.len());
    for (number, consumer) in consumers {
        reply.map(4);
        write_name(reply, "name");
        reply.bulk(consumer.name);
        write_number(reply, "seen-time", consumer.seen);
        write_number(reply, "pel-count", consumer.pending);
        write_name(reply, "pending");
        let own = pending.get(&number).map_or(&[][..], Vec::as_slice);
        reply.array(own.len());
        for &rank in own {
            let rank = first + u64::from(rank);
            let pending = stream.pending_from_rank(group.number, rank).next();
            let pending = pending.expect("it was there under the same lock");
            reply.array(3);
            reply.bulk(IdText::of(pending.id).bytes());
            reply.integer(pending.delivered as i64);
            reply.integer(pending.deliveries as i64);
        }
    }
}

/// The ranks of pending entries among those of their group, of each consumer at most so many.
fn pending_by_consumer(
    stream: StreamRef<'_>,
    group: u32,
    consumers: &[(u32, Consumer<'_>)],
    most: usize,
) -> BTreeMap<u32, Vec<u32>> {
    let mut ranks: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let wanted = |consumer: &Consumer<'_>| consumer.pending.min(most as u64);
    let mut left: u64 = consumers.iter().map(|(_, its)| wanted(its)).sum();
    for (rank, pending) in (0..u32::MAX).zip(stream.pending_from(group, Id::MIN)) {
        if left == 0 {
            break;
        }
        let its = ranks.entry(pending.consumer).or_default();
        if its.len() < most {
            its.push(rank);
            left -= 1;
        }
    }
    ranks
}

/// The consumers of a group, in the order of their names.
fn consumers<'e>(stream: StreamRef<'e>, group: u32) -> Vec<(u32, Consumer<'e>)> {
    let mut buffer = ItemBuffer::default();
    let named = stream.consumer_names(group);
    named
        .filter_map(|(_, number)| Some((number, stream.consumer(group, number, &mut buffer)?)))
        .collect()
}

/// The leaves that XINFO GROUPS needs: that of the first entry.
pub(super) fn leaves_of_groups(stream: StreamRef<'_>, _: &AskedLeaves<'_>) -> Vec<Base> {
    let first = stream.first_rank();
    stream.items().cold_between(first, first + 1)
}

/// `XINFO GROUPS key`
pub(super) fn groups(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let key = args.key(2);
    let mut shard = context.store.lock(key);
    let found = shard.read_items::<StreamItems>(key)?;
    let found = found.ok_or(failure::NO_SUCH_KEY)?;
    let stream = found.stream();
    let first = stream.first_rank();
    if lacks(stream, |stream| {
        stream.items().cold_between(first, first + 1)
    }) {
        return Ok(Next::Retry);
    }
    let (reply, progress) = (&mut context.reply, GroupProgress::of(stream));
    let groups: Vec<(&[u8], Group)> = stream.groups().collect();
    reply.array(groups.len());
    for (name, group) in groups {
        reply.map(6);
        write_name(reply, "name");
        reply.bulk(name);
        let consumers = stream.consumer_names(group.number).count();
        write_number(reply, "consumers", consumers as u64);
        write_number(reply, "pending", group.pending);
        write_id(reply, "last-delivered-id", group.last);
        write_known(reply, "entries-read", group.read.map(|read| read as i64));
        write_known(reply, "lag", progress.lag(&group));
    }
    Ok(Next::Done)
}

/// `XINFO CONSUMERS key group`
pub(super) fn list_consumers(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let (key, name, now) = (args.key(2), args.get(3), context.store.now);
    let mut shard = context.store.lock(key);
    let found = shard.read_items::<StreamItems>(key)?;
    let found = found.ok_or(failure::NO_SUCH_KEY)?;
    let stream = found.stream();
    let group = stream.group(name, &mut ItemBuffer::default());
    let group = group.ok_or_else(|| no_group(name, key.bytes))?;
    let reply = &mut context.reply;
    let consumers = consumers(stream, group.number);
    reply.array(consumers.len());
    for (_, consumer) in consumers {
        reply.map(3);
        write_name(reply, "name");
        reply.bulk(consumer.name);
        write_number(reply, "pending", consumer.pending);
        write_name(reply, "idle");
        reply.integer(now.saturating_sub(consumer.seen as i64).max(0));
    }
    Ok(Next::Done)
}

const HELP: &[&str] = &[
    "CONSUMERS <key> <groupname>",
    "    Show consumers of <groupname>.",
    "GROUPS <key>",
    "    Show the stream consumer groups.",
    "STREAM <key> [FULL [COUNT <count>]",
    "    Show information about the stream.",
];

/// `XINFO HELP`
pub(super) fn show_help(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    help(context, "XINFO", HELP);
    Ok(Next::Done)
}
