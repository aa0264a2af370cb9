//! Entries of streams for XREAD and XREADGROUP: which of them are there, the leaves that have them, and how
//! they are given.

use std::ops::Range;

use keyspace::StreamRef;
use keyspace::collection::Base;
use keyspace::collection::stream::{
    Consumer, Group, Id, ItemBuffer, Pending, Section, StreamEntry,
};
use resp::reply::{Protocol, Writer};

use super::super::Failure;
use super::group::find_or_make;
use super::leaves;
use super::progress::GroupProgress;
use super::read::write_entry;
use crate::config::Packed;
use crate::observe::notify::Event;
use crate::store::{Stream, StreamEdit};

/// A consumer of a group, as a request names it.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    pub(super) group: &'a [u8],
    pub(super) consumer: &'a [u8],
    pub(super) no_ack: bool,
    /// Unix, ms.
    pub(super) now: u64,
}

/// The wish of a request for a stream.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    /// Entries after an ID.
    After(Id),
    /// Entries that the group has not got.
    New,
    /// Pending entries of the consumer after an ID.
    History(Id),
}

/// The ID of the last entry of a stream; `None` if there is none. The last leaf is in memory.
pub(super) fn top(stream: StreamRef<'_>) -> Option<Id> {
    let last = stream.items().len().checked_sub(1)?;
    stream.entry_at(last).map(|entry| entry.id)
}

/// The ID after which the last entry comes; without entries, the last ID that there was. It is that also
/// while the last leaf is not in memory: `leaves_of` asks for the leaf then.
pub(super) fn before_last(stream: StreamRef<'_>) -> Id {
    let len = stream.items().len();
    let is_cold = !stream
        .items()
        .cold_between(len.saturating_sub(1), len)
        .is_empty();
    let last = if is_cold { None } else { top(stream) };
    let there_was = stream.head().map_or(Id::MIN, |head| head.last);
    last.map_or(there_was, |last| last.previous().unwrap_or(Id::MIN))
}

/// Whether a stream has entries after an ID. Its last leaf is in memory.
pub(super) fn has_behind(stream: StreamRef<'_>, id: Id) -> bool {
    top(stream).is_some_and(|top| top > id)
}

/// The ranks of at most so many entries after an ID. The leaf of the ID is in memory.
fn ranks_behind(stream: StreamRef<'_>, id: Id, most: u64) -> Range<u64> {
    let from = stream
        .rank_behind(Section::ENTRIES, id)
        .max(stream.first_rank());
    let left = stream.items().len().saturating_sub(from);
    from..from + left.min(most)
}

/// How many entries there are after an ID. The leaf of the ID is in memory.
pub(super) fn count_behind(stream: StreamRef<'_>, id: Id) -> u64 {
    let ranks = ranks_behind(stream, id, u64::MAX);
    ranks.end - ranks.start
}

/// The leaves that are needed of a stream.
pub(super) fn leaves_of(
    stream: StreamRef<'_>,
    from: From,
    most: u64,
    reader: Option<&Reader<'_>>,
) -> Vec<Base> {
    let items = stream.items();
    let mut buffer = ItemBuffer::default();
    let group = reader.and_then(|reader| stream.group(reader.group, &mut buffer));
    let after = match (from, group) {
        (From::After(id), _) => id,
        (From::New, Some(group)) => group.last,
        (From::History(id), Some(group)) => {
            return leaves_of_history(stream, group.number, id, most, reader);
        }
        _ => return Vec::new(),
    };
    let len = items.len();
    let mut records = items.cold_between(len.saturating_sub(1), len);
    records.extend(stream.cold_at(Section::ENTRIES, after));
    if from == From::New {
        records.extend(items.cold_between(stream.first_rank(), stream.first_rank() + 1));
    }
    if !records.is_empty() || !has_behind(stream, after) {
        return records;
    }
    let ranks = ranks_behind(stream, after, most);
    records.extend(items.cold_between(ranks.start, ranks.end));
    if let (From::New, Some(group), true) = (from, group, records.is_empty())
        && let (Some(first), Some(last)) = (
            stream.entry_at(ranks.start),
            stream.entry_at(ranks.end.saturating_sub(1)),
        )
    {
        let section = Section::of_pending(group.number);
        records.extend(leaves::of_range(stream, section, first.id, last.id));
        records.extend(leaves::of_range(stream, section, Id::MAX, Id::MAX));
    }
    records
}

/// The leaves of the pending entries of a consumer after an ID, and of the entries.
fn leaves_of_history(
    stream: StreamRef<'_>,
    group: u32,
    after: Id,
    most: u64,
    reader: Option<&Reader<'_>>,
) -> Vec<Base> {
    let mut buffer = ItemBuffer::default();
    let number =
        reader.and_then(|reader| stream.consumer_number(group, reader.consumer, &mut buffer));
    let Some(from) = after.next() else {
        return Vec::new();
    };
    let Some(number) = number else {
        // The same stream may be asked for twice. With its new entries the consumer begins.
        return leaves::of_range(stream, Section::of_pending(group), from, Id::MAX);
    };
    let own = |pending: &Pending| pending.consumer == number;
    leaves::of_pending_entries(stream, group, from, u64::MAX, most, own)
}

/// Begins the answer of a stream: its key, before the array of its entries.
pub(super) fn begin_stream(writer: &mut Writer<'_>, key: &[u8]) {
    if writer.protocol == Protocol::Resp2 {
        writer.array(2);
    }
    writer.bulk(key);
}

/// Begins the answer with some streams.
pub(super) fn begin_streams(writer: &mut Writer<'_>, streams: usize) {
    match writer.protocol {
        Protocol::Resp2 => writer.array(streams),
        Protocol::Resp3 => writer.map(streams),
    }
}

/// Answers with at most so many entries after an ID.
pub(super) fn write_behind(stream: StreamRef<'_>, after: Id, most: u64, writer: &mut Writer<'_>) {
    write_ranks(stream, ranks_behind(stream, after, most), writer, |_| ());
}

/// Answers with the entries of some ranks.
fn write_ranks(
    stream: StreamRef<'_>,
    ranks: Range<u64>,
    writer: &mut Writer<'_>,
    mut visit: impl FnMut(Id),
) {
    let (base, shapes) = (stream.base(), stream.shapes());
    writer.array((ranks.end - ranks.start) as usize);
    let mut rank = ranks.start;
    while rank < ranks.end {
        rank = stream.items().items_behind(rank, ranks.end, |item| {
            match StreamEntry::of(base, &item) {
                Some(entry) => {
                    visit(entry.id);
                    write_entry(writer, entry, &shapes);
                }
                // The head counts more entries than there are: the log was damaged.
                None => writer.null(),
            }
        });
    }
}

/// Gives new entries of a stream to a consumer of a group, and answers with them.
///
/// # Errors
/// The stream can have no further consumer.
pub(super) fn deliver(
    found: Stream<'_, '_>,
    reader: &Reader<'_>,
    mut group: Group,
    most: u64,
    writer: &mut Writer<'_>,
) -> Result<(), Failure> {
    let stream = found.stream();
    let progress = GroupProgress::of(stream);
    let ranks = match progress.rank_of_next(stream, &group) {
        Some(from) => from..stream.items().len().min(from.saturating_add(most)),
        None => ranks_behind(stream, group.last, most),
    };
    let mut ids = Vec::with_capacity((ranks.end - ranks.start) as usize);
    write_ranks(stream, ranks, writer, |id| {
        ids.push(id);
        progress.advance(&mut group, id);
    });
    found.edit(Event::NONE, Packed::NONE, |edit| {
        edit.is_of_groups(false);
        let now = reader.now;
        let (number, is_new) = find_or_make(edit, group.number, reader.consumer, now)?;
        if is_new {
            edit.tell_also(Event::XGROUP_CREATECONSUMER);
        }
        let pending = |&id: &Id| Pending {
            id,
            consumer: number,
            delivered: now,
            deliveries: 1,
        };
        let mut added = 0;
        match ids.first() {
            Some(&first) if !reader.no_ack => {
                let all: Vec<Pending> = ids.iter().map(pending).collect();
                // A group has some of them already only if its last ID was set back.
                added = match edit.stream().has_pending_from(group.number, first) {
                    true => put_again(edit, &mut group, &all),
                    false => {
                        edit.add_pending(group.number, &all);
                        group.pending += all.len() as u64;
                        all.len() as u64
                    }
                };
            }
            _ => {}
        }
        edit.put_group(reader.group, &group);
        edit.change_consumer(group.number, number, |consumer| Consumer {
            seen: now,
            active: Some(now),
            pending: consumer.pending + added,
            ..consumer
        });
        edit.only_change();
        Ok(())
    })
}

/// Sets pending entries of a consumer, some of which the group may have already; how many the consumer did
/// not have.
fn put_again(edit: &mut StreamEdit<'_, '_>, group: &mut Group, all: &[Pending]) -> u64 {
    let (mut added, mut buffer) = (0, ItemBuffer::default());
    for pending in all {
        let before = edit.stream().pending(group.number, pending.id, &mut buffer);
        edit.put_pending(group.number, pending, &mut buffer);
        match before {
            Some(before) if before.consumer == pending.consumer => continue,
            Some(before) => edit.count_pending(group.number, before.consumer, -1),
            None => group.pending += 1,
        }
        added += 1;
    }
    added
}
