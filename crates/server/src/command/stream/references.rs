//! References of groups to entries: an entry is referenced by each group that has not been delivered it, or
//! has it pending. XDELEX and XACKDEL, and the same options of XADD and XTRIM, keep entries that are
//! referenced, or remove the pending entries with them.

use keyspace::StreamRef;
use keyspace::collection::Base;
use keyspace::collection::stream::{Group, Id, IdRange, ItemBuffer, Pending, Section, StreamItems};

use super::super::prepare::leaves::AskedLeaves;
use super::super::{Args, Context, Failure, Handled, Next, failure};
use super::ack::{by_consumer, leaves_to_ack};
use super::id;
use super::leaves::{self, lacks};
use super::trim::{References, Trim};
use crate::config::Packed;
use crate::observe::notify::Event;
use crate::store::StreamEdit;

const NO_COUNT: Failure = Failure::of("ERR Number of IDs must be a positive integer");
const OTHER_COUNT: Failure =
    Failure::of("ERR The `numids` parameter must match the number of arguments");

/// The groups of a stream, while entries are removed.
#[derive(Default)]
struct Groups {
    all: Vec<(Vec<u8>, Group)>,
    buffer: ItemBuffer,
}

impl Groups {
    /// Those of a stream that are wanted.
    fn of(stream: StreamRef<'_>, is_wanted: impl Fn(&[u8]) -> bool) -> Groups {
        let wanted = stream.groups().filter(|(name, _)| is_wanted(name));
        Groups {
            all: wanted.map(|(name, group)| (name.to_vec(), group)).collect(),
            buffer: ItemBuffer::default(),
        }
    }

    /// Whether a group has not acknowledged an entry.
    fn refer_to(&mut self, stream: StreamRef<'_>, id: Id) -> bool {
        let buffer = &mut self.buffer;
        let mut groups = self.all.iter();
        groups
            .any(|(_, group)| id > group.last || stream.pending(group.number, id, buffer).is_some())
    }

    /// Removes the pending entries of an ID from all groups; whether there were some.
    fn forget(&mut self, edit: &mut StreamEdit<'_, '_>, id: Id) -> bool {
        let mut is_any = false;
        for at in 0..self.all.len() {
            let group = self.all[at].1.number;
            if let Some(pending) = edit.stream().pending(group, id, &mut self.buffer) {
                self.take(edit, at, &[pending]);
                is_any = true;
            }
        }
        is_any
    }

    /// Removes pending entries of a group.
    fn take(&mut self, edit: &mut StreamEdit<'_, '_>, at: usize, pending: &[Pending]) {
        if pending.is_empty() {
            return;
        }
        let (name, group) = &mut self.all[at];
        for its in pending {
            edit.take_pending(group.number, its, &mut self.buffer);
        }
        for (consumer, count) in by_consumer(pending) {
            edit.count_pending(group.number, consumer, -count);
        }
        group.pending = group.pending.saturating_sub(pending.len() as u64);
        edit.put_group(name, group);
    }
}

/// Removes an entry, if it is there and may go.
fn remove(
    edit: &mut StreamEdit<'_, '_>,
    groups: &mut Groups,
    references: References,
    id: Id,
) -> Removed {
    if references == References::Acked && groups.refer_to(edit.stream(), id) {
        return Removed::Kept;
    }
    let is_forgotten = references == References::Remove && groups.forget(edit, id);
    if edit.take_entry(id) {
        return Removed::Entry;
    }
    if is_forgotten {
        // The entry was removed before. Its pending entries are changes of the key all the same.
        edit.note_change();
    }
    Removed::Missing
}

/// The result of the removal of an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Removed {
    Missing,
    Entry,
    Kept,
}

/// The arguments of XDELEX and XACKDEL after the names.
struct Asked {
    references: References,
    /// The arguments that are IDs.
    ids: std::ops::Range<usize>,
}

impl Asked {
    fn parse(args: &Args<'_>, from: usize) -> Result<Asked, Failure> {
        let (mut references, mut ids, mut at) = (None, None, from);
        while at < args.len() {
            match References::at(args, at) {
                Some(word) if references.is_none() => references = Some(word),
                None if args.is(at, "IDS") && at + 1 < args.len() => {
                    let count = usize::try_from(args.integer(at + 1).map_err(|_| NO_COUNT)?);
                    let count = count.ok().filter(|&count| count > 0).ok_or(NO_COUNT)?;
                    let first = at + 2;
                    if count > args.len() - first {
                        return Err(OTHER_COUNT);
                    }
                    ids = Some(first..first + count);
                    at += 1 + count;
                }
                _ => return Err(failure::SYNTAX),
            }
            at += 1;
        }
        Ok(Asked {
            references: references.unwrap_or_default(),
            ids: ids.ok_or(failure::SYNTAX)?,
        })
    }

    fn ids(&self, args: &Args<'_>) -> Result<Vec<Id>, Failure> {
        let ids = self.ids.clone();
        ids.map(|at| id::exact(args.get(at), 0)).collect()
    }
}

/// The leaves that the removal of entries needs: those of the entries, and of the pending entries of the
/// group that acknowledges them, or of all groups.
fn leaves_to_remove(
    stream: StreamRef<'_>,
    references: References,
    acknowledging: Option<&[u8]>,
    ids: &[Id],
) -> Vec<Base> {
    let mut records = leaves::of_ids(stream, ids);
    for (name, group) in stream.groups() {
        if references != References::Keep || acknowledging == Some(name) {
            records.extend(leaves_to_ack(stream, group.number, ids));
        }
    }
    records
}

fn leaves_of_removal(asked: &AskedLeaves<'_>, stream: StreamRef<'_>, has_group: bool) -> Vec<Base> {
    let args = asked.args;
    let (name, from) = match has_group {
        true => (Some(args.get(2)), 3),
        false => (None, 2),
    };
    let asked = Asked::parse(args, from).and_then(|its| Ok((its.references, its.ids(args)?)));
    asked.map_or(Vec::new(), |(references, ids)| {
        leaves_to_remove(stream, references, name, &ids)
    })
}

/// The leaves that XDELEX needs.
pub(super) fn leaves_of_xdelex(stream: StreamRef<'_>, asked: &AskedLeaves<'_>) -> Vec<Base> {
    leaves_of_removal(asked, stream, false)
}

/// The leaves that XACKDEL needs.
pub(super) fn leaves_of_xackdel(stream: StreamRef<'_>, asked: &AskedLeaves<'_>) -> Vec<Base> {
    leaves_of_removal(asked, stream, true)
}

/// `XDELEX key [KEEPREF | DELREF | ACKED] IDS numids id [id ...]`
pub(super) fn xdelex(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    remove_asked(context, args, None)
}

/// `XACKDEL key group [KEEPREF | DELREF | ACKED] IDS numids id [id ...]`
pub(super) fn xackdel(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    remove_asked(context, args, Some(args.get(2)))
}

/// Removes entries; with a group's name those alone that the group has pending: it has acknowledged them
/// then.
fn remove_asked(context: &mut Context<'_>, args: &Args<'_>, name: Option<&[u8]>) -> Handled {
    let key = args.key(1);
    let mut shard = context.store.lock(key);
    let found = shard.find_items::<StreamItems>(key)?;
    let asked = Asked::parse(args, if name.is_some() { 3 } else { 2 })?;
    let is_wanted =
        |its: &[u8]| asked.references != References::Keep || name.is_some_and(|name| its == name);
    let groups = found.as_ref();
    let mut groups = groups.map_or(Groups::default(), |found| {
        Groups::of(found.stream(), is_wanted)
    });
    let acknowledging = name.map(|name| {
        groups
            .all
            .iter()
            .position(|(its, _)| its.as_slice() == name)
    });
    let (Some(found), None | Some(Some(_))) = (found, acknowledging) else {
        context.reply.array(asked.ids.len());
        asked.ids.for_each(|_| context.reply.integer(-1));
        return Ok(Next::Done);
    };
    let (ids, references) = (asked.ids(args)?, asked.references);
    if lacks(found.stream(), |stream| {
        leaves_to_remove(stream, references, name, &ids)
    }) {
        return Ok(Next::Retry);
    }
    let replies = found.edit(Event::NONE, Packed::NONE, |edit| {
        let mut head = edit.stream().head().unwrap_or_default();
        let len = head.len;
        let mut remove_one = |id: Id| {
            if let Some(Some(at)) = acknowledging {
                let group = groups.all[at].1.number;
                let pending = edit.stream().pending(group, id, &mut groups.buffer);
                let Some(pending) = pending else { return -1 };
                groups.take(edit, at, &[pending]);
                edit.note_change();
            }
            match remove(edit, &mut groups, references, id) {
                Removed::Kept => 2,
                Removed::Missing if acknowledging.is_none() => -1,
                Removed::Missing => 1,
                Removed::Entry => {
                    head.len = head.len.saturating_sub(1);
                    head.deleted = head.deleted.max(id);
                    1
                }
            }
        };
        let replies: Vec<i64> = ids.iter().map(|&id| remove_one(id)).collect();
        if head.len < len {
            edit.put_head(&head);
            edit.tell_also(Event::XDEL);
        } else {
            edit.is_of_groups(false);
        }
        replies
    });
    let reply = &mut context.reply;
    reply.array(replies.len());
    replies.into_iter().for_each(|one| reply.integer(one));
    Ok(Next::Done)
}

/// The leaves that a trim needs, once `more` entries were added.
pub(super) fn leaves_to_trim(stream: StreamRef<'_>, trim: &Trim, more: u64) -> Vec<Base> {
    let records = leaves::of_trim(stream, trim, more);
    if trim.references == References::Keep || !records.is_empty() {
        return records;
    }
    let (first, gone) = (stream.first_rank(), trim.gone(stream, stream.len(), more));
    match trim.references {
        _ if gone == 0 => records,
        References::Acked => leaves_of_acknowledged(stream, trim, gone, more),
        _ => {
            let (from, last) = ids_of(stream, first..first + gone);
            leaves_of_references(stream, from, last)
        }
    }
}

/// The first and the last ID of entries of some ranks, some of which are to be added.
fn ids_of(stream: StreamRef<'_>, ranks: std::ops::Range<u64>) -> (Id, Id) {
    let id = |rank| stream.entry_at(rank).map(|entry| entry.id);
    (
        id(ranks.start).unwrap_or(Id::MIN),
        id(ranks.end - 1).unwrap_or(Id::MAX),
    )
}

/// Those of the pending entries of all groups in a range, and of the entries: first those of the pending
/// ones.
fn leaves_of_references(stream: StreamRef<'_>, from: Id, last: Id) -> Vec<Base> {
    let mut records = Vec::new();
    for (_, group) in stream.groups() {
        records.extend(leaves::of_range(
            stream,
            Section::of_pending(group.number),
            from,
            last,
        ));
    }
    if !records.is_empty() {
        return records;
    }
    for (_, group) in stream.groups() {
        let pending = stream.pending_from(group.number, from);
        let pending = pending.take_while(|pending| pending.id <= last);
        records.extend(pending.filter_map(|its| stream.cold_at(Section::ENTRIES, its.id)));
    }
    records
}

/// Removes the pending entries of all groups of the entries of a range.
pub(super) fn forget_range(edit: &mut StreamEdit<'_, '_>, from: Id, last: Id) {
    let mut groups = Groups::of(edit.stream(), |_| true);
    for at in 0..groups.all.len() {
        let stream = edit.stream();
        let pending: Vec<Pending> = stream
            .pending_from(groups.all[at].1.number, from)
            .take_while(|pending| pending.id <= last)
            .filter(|pending| stream.entry(pending.id).is_some())
            .collect();
        groups.take(edit, at, &pending);
    }
}

/// The last ID that all groups have been delivered, and the number of all pending entries.
fn reach(stream: StreamRef<'_>) -> (Id, u64) {
    let all = stream
        .groups()
        .map(|(_, group)| (group.last, group.pending));
    all.fold((Id::MAX, 0), |(reach, pending), (last, more)| {
        (reach.min(last), pending.saturating_add(more))
    })
}

/// The leaves of the entries that a trim looks at to find so many that are acknowledged, and of their pending
/// entries, once `more` were added.
fn leaves_of_acknowledged(stream: StreamRef<'_>, trim: &Trim, gone: u64, more: u64) -> Vec<Base> {
    let (items, first) = (stream.items(), stream.first_rank());
    let (reach, pending) = reach(stream);
    if let Some(record) = stream.cold_at(Section::ENTRIES, reach) {
        return vec![record];
    }
    let looks = match trim.skips() {
        true => gone.saturating_add(pending),
        false => gone,
    };
    let end = match stream.rank_behind(Section::ENTRIES, reach) {
        end if end == items.len() => end + more,
        end => end,
    };
    let end = end.min(first.saturating_add(looks));
    if end <= first {
        return Vec::new();
    }
    let records = items.cold_between(first.saturating_sub(1), end + 1);
    if !records.is_empty() {
        return records;
    }
    let (from, last) = ids_of(stream, first..end);
    let sections = stream
        .groups()
        .map(|(_, group)| Section::of_pending(group.number));
    sections
        .flat_map(|section| leaves::of_range(stream, section, from, last))
        .collect()
}

/// The ranges of entries that a trim removes of those that all groups have acknowledged: so many entries in
/// all.
pub(super) fn acknowledged(stream: StreamRef<'_>, trim: &Trim, gone: u64) -> Vec<IdRange> {
    let (reach, _) = reach(stream);
    let looks = if trim.skips() { u64::MAX } else { gone };
    let first = match gone {
        0 => None,
        _ => stream.entry_at(stream.first_rank()),
    };
    let Some(first) = first.filter(|first| first.id <= reach) else {
        return Vec::new();
    };
    let (mut ranges, mut left, mut is_open) = (Vec::<IdRange>::new(), gone, false);
    let mut pending: Vec<_> = stream
        .groups()
        .map(|(_, group)| stream.pending_from(group.number, first.id).peekable())
        .collect();
    let entries = stream.entries_from(stream.first_rank());
    for entry in entries.take(usize::try_from(looks).unwrap_or(usize::MAX)) {
        let id = entry.id;
        if left == 0 || id > reach {
            break;
        }
        let is_pending = pending.iter_mut().any(|its| {
            while its.next_if(|pending| pending.id < id).is_some() {}
            its.peek().is_some_and(|pending| pending.id == id)
        });
        if is_pending {
            is_open = false;
            continue;
        }
        left -= 1;
        match ranges.last_mut() {
            Some(range) if is_open => range.last = id,
            _ => ranges.push(IdRange {
                section: Section::ENTRIES,
                from: id,
                last: id,
            }),
        }
        is_open = true;
    }
    ranges
}
