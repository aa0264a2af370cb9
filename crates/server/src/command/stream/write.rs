//! Commands that change entries: XADD XDEL XTRIM XSETID.

use keyspace::StreamRef;
use keyspace::collection::Base;
use keyspace::collection::cell::{Cell, TEXT_MAX};
use keyspace::collection::stream::{
    EntryScratch, Head, Id, IdRange, Section, StreamEntry, StreamItems,
};

use super::super::prepare::leaves::AskedLeaves;
use super::super::{Args, Context, Failure, Handled, Next, failure};
use super::deliver::top;
use super::id::{self, AskedId, IdText};
use super::leaves::{self, lacks};
use super::references::{self, leaves_to_trim};
use super::trim::{References, Trim, TrimOptions};
use crate::config::Packed;
use crate::observe::notify::Event;
use crate::store::StreamEdit;

const ZERO_ID: Failure = Failure::of("ERR The ID specified in XADD must be greater than 0-0");
const NO_MORE_IDS: Failure =
    Failure::of("ERR The stream has exhausted the last possible ID, unable to add more items");
const SMALLER_ID: Failure =
    Failure::of("ERR The ID specified in XADD is equal or smaller than the target stream top item");
const TOO_LARGE: Failure = Failure::of("ERR Elements are too large to be stored");

/// The ID of the next entry of a stream that has this head, at a time (Unix, ms).
fn next_id(head: &Head, asked: Option<AskedId>, now: i64) -> Result<Id, Failure> {
    let last = head.last;
    if last == Id::MAX {
        return Err(NO_MORE_IDS);
    }
    let after_last = last.next().ok_or(NO_MORE_IDS)?;
    match asked {
        None => {
            let now = Id {
                ms: now.max(0) as u64,
                seq: 0,
            };
            Ok(if now.ms > last.ms { now } else { after_last })
        }
        Some(AskedId::Whole(id)) if id > last => Ok(id),
        Some(AskedId::OfTime(ms)) if ms > last.ms => Ok(Id { ms, seq: 0 }),
        Some(AskedId::OfTime(ms)) if ms == last.ms && after_last.ms == ms => Ok(after_last),
        // So does Redis call it that there is no such number.
        Some(AskedId::OfTime(ms)) if ms == last.ms => Err(TOO_LARGE),
        Some(_) => Err(SMALLER_ID),
    }
}

/// Writes the content of an entry of these fields, and adds their shape if it is new.
fn write_content(
    edit: &mut StreamEdit<'_, '_>,
    args: &Args<'_>,
    from: usize,
    scratch: &mut EntryScratch,
) {
    let EntryScratch { names, content, .. } = scratch;
    names.begin_shape();
    let fields = (from..args.len()).step_by(2);
    fields
        .clone()
        .for_each(|at| names.push(Cell::of(args.get(at))));
    let shape = match edit.stream().shape_of(names.bytes()) {
        Ok(number) => Some(number),
        Err(number) => {
            if let Some(number) = number {
                edit.put_shape(number, names.bytes());
            }
            number
        }
    };
    content.begin(shape);
    for at in fields {
        if shape.is_none() {
            content.push(Cell::of(args.get(at)));
        }
        content.push(Cell::of(args.get(at + 1)));
    }
}

/// Removes the entries that a trim says; how many there were. The head is written by the caller.
fn trim_entries(edit: &mut StreamEdit<'_, '_>, trim: &Trim, head: &mut Head) -> u64 {
    let stream = edit.stream();
    let (first, gone) = (
        stream.first_rank_of(head.len),
        trim.gone(stream, head.len, 0),
    );
    let gone = if trim.references == References::Acked {
        let ranges = references::acknowledged(stream, trim, gone);
        ranges.iter().map(|range| edit.cut_ids(range)).sum()
    } else {
        let id = |rank| stream.entry_at(rank).map(|entry| entry.id);
        let Some((from, last)) = gone
            .checked_sub(1)
            .and_then(|last| Some((id(first)?, id(first + last)?)))
        else {
            return 0;
        };
        if trim.references == References::Remove {
            references::forget_range(edit, from, last);
        }
        edit.cut_ids(&IdRange {
            section: Section::ENTRIES,
            from,
            last,
        })
    };
    head.len = head.len.saturating_sub(gone);
    gone
}

/// The leaves that XADD needs: that of the last entry, and those of the ends of the entries that it removes.
pub(super) fn leaves_of_xadd(stream: StreamRef<'_>, asked: &AskedLeaves<'_>) -> Vec<Base> {
    let options = TrimOptions::parse(asked.args, true, asked.settings);
    options.map_or(Vec::new(), |options| {
        leaves_to_add(stream, options.trim.as_ref())
    })
}

fn leaves_to_add(stream: StreamRef<'_>, trim: Option<&Trim>) -> Vec<Base> {
    let len = stream.items().len();
    let mut records = stream.items().cold_between(len.saturating_sub(1), len);
    if let Some(trim) = trim {
        records.extend(leaves_to_trim(stream, trim, 1));
    }
    records
}

/// `XADD key [NOMKSTREAM] [KEEPREF | DELREF | ACKED] [IDMP producer id | IDMPAUTO producer]
/// [MAXLEN | MINID [= | ~] threshold [LIMIT count]]
/// * | id field value [field value ...]`
pub(super) fn xadd(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let settings = &context.server.settings;
    let options = TrimOptions::parse(args, true, settings)?;
    let from = options.end + 1;
    if args.len() < from + 2 || !(args.len() - from).is_multiple_of(2) {
        return Err(Failure::wrong_arity("xadd"));
    }
    if options.id == Some(AskedId::Whole(Id::MIN)) {
        return Err(ZERO_ID);
    }
    let (key, now) = (args.key(1), context.store.now);
    let mut shard = context.store.lock(key);
    if options.only_present && shard.find_items::<StreamItems>(key)?.is_none() {
        context.reply.null();
        return Ok(Next::Done);
    }
    let given = options.idempotence.map(|asked| asked.of(args, from));
    let scratch = &mut context.extras.entry;
    let packed = Packed::NONE;
    let added = shard.edit_items(key, Event::XADD, packed, |edit: &mut StreamEdit<'_, '_>| {
        if lacks(edit.stream(), |stream| {
            leaves_to_add(stream, options.trim.as_ref())
        }) {
            return Ok(None);
        }
        let at = now.max(0) as u64;
        if let Some(id) = given.as_ref().and_then(|given| given.entry(edit, at)) {
            return Ok(Some(id));
        }
        let head = edit.stream().head();
        let id = next_id(&head.unwrap_or_default(), options.id, now)?;
        // A limit for each is one for all.
        if args.size() > TEXT_MAX {
            return Err(TOO_LARGE);
        }
        // The head has the base of distances, and the number of entries for a look at references of groups.
        let trim = options.trim.as_ref();
        let is_early = head.is_none() || trim.is_some_and(Trim::has_references);
        let mut head = head.unwrap_or_else(|| Head::new(id.ms));
        head.last = id;
        head.len += 1;
        head.added = head.added.saturating_add(1);
        if is_early {
            edit.put_head(&head);
        }
        write_content(edit, args, from, scratch);
        let content = scratch.content.bytes();
        let entry = StreamEntry { id, content };
        edit.add(head.base, entry, &mut scratch.item);
        if let Some(given) = &given {
            given.note(edit, id, at);
        }
        let gone = trim.map_or(0, |trim| trim_entries(edit, trim, &mut head));
        if gone > 0 {
            edit.tell_also(Event::XTRIM);
        }
        if gone > 0 || !is_early {
            edit.put_head(&head);
        }
        Ok(Some(id))
    })?;
    context.extras.entry.slim();
    let Some(id) = added else {
        return Ok(Next::Retry);
    };
    context.reply.bulk(IdText::of(id).bytes());
    Ok(Next::Done)
}

/// The leaves that XDEL needs: those of its IDs.
pub(super) fn leaves_of_xdel(stream: StreamRef<'_>, asked: &AskedLeaves<'_>) -> Vec<Base> {
    let ids = id::all(asked.args, 2).unwrap_or_default();
    leaves::of_ids(stream, &ids)
}

/// `XDEL key id [id ...]`
pub(super) fn xdel(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let key = args.key(1);
    let mut shard = context.store.lock(key);
    let Some(stream) = shard.find_items::<StreamItems>(key)? else {
        context.reply.integer(0);
        return Ok(Next::Done);
    };
    let ids = id::all(args, 2)?;
    if lacks(stream.stream(), |stream| leaves::of_ids(stream, &ids)) {
        return Ok(Next::Retry);
    }
    let removed = stream.edit(Event::XDEL, Packed::NONE, |edit| {
        let mut head = edit.stream().head().unwrap_or_default();
        let mut removed = 0;
        for &id in &ids {
            if edit.take_entry(id) {
                head.deleted = head.deleted.max(id);
                removed += 1;
            }
        }
        if removed > 0 {
            head.len = head.len.saturating_sub(removed);
            edit.put_head(&head);
        }
        removed
    });
    context.reply.integer(removed as i64);
    Ok(Next::Done)
}

/// The leaves that XTRIM needs.
pub(super) fn leaves_of_xtrim(stream: StreamRef<'_>, asked: &AskedLeaves<'_>) -> Vec<Base> {
    let options = TrimOptions::parse(asked.args, false, asked.settings).ok();
    let trim = options.and_then(|options| options.trim);
    trim.map_or(Vec::new(), |trim| leaves_to_trim(stream, &trim, 0))
}

/// `XTRIM key MAXLEN | MINID [= | ~] threshold [LIMIT count] [KEEPREF | DELREF | ACKED]`
pub(super) fn xtrim(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let options = TrimOptions::parse(args, false, &context.server.settings)?;
    let trim = options.trim.expect("XTRIM has a strategy");
    let key = args.key(1);
    let mut shard = context.store.lock(key);
    let Some(stream) = shard.find_items::<StreamItems>(key)? else {
        context.reply.integer(0);
        return Ok(Next::Done);
    };
    if lacks(stream.stream(), |stream| leaves_to_trim(stream, &trim, 0)) {
        return Ok(Next::Retry);
    }
    let gone = stream.edit(Event::XTRIM, Packed::NONE, |edit| {
        let mut head = edit.stream().head().unwrap_or_default();
        let gone = trim_entries(edit, &trim, &mut head);
        if gone > 0 {
            edit.put_head(&head);
        }
        gone
    });
    context.reply.integer(gone as i64);
    Ok(Next::Done)
}

const NEGATIVE_ADDED: Failure = Failure::of("ERR entries_added must be positive");
const BELOW_GIVEN_DELETED: Failure =
    Failure::of("ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id");
const BELOW_TOP: Failure =
    Failure::of("ERR The ID specified in XSETID is smaller than the target stream top item");
const BELOW_LENGTH: Failure = Failure::of(
    "ERR The entries_added specified in XSETID is smaller than the target stream length",
);

/// The leaves that XSETID needs: that of the last entry.
pub(super) fn leaves_of_xsetid(stream: StreamRef<'_>, _: &AskedLeaves<'_>) -> Vec<Base> {
    leaves_to_add(stream, None)
}

/// `XSETID key last-id [ENTRIESADDED entries-added] [MAXDELETEDID max-deleted-id]`
pub(super) fn xsetid(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let last = id::exact(args.get(2), 0)?;
    let (mut added, mut deleted) = (None, Id::MIN);
    for at in (3..args.len()).step_by(2) {
        if at + 1 == args.len() {
            return Err(failure::SYNTAX);
        } else if args.is(at, "ENTRIESADDED") {
            let number = u64::try_from(args.integer(at + 1)?);
            added = Some(number.map_err(|_| NEGATIVE_ADDED)?);
        } else if args.is(at, "MAXDELETEDID") {
            deleted = id::exact(args.get(at + 1), 0)?;
            if last < deleted {
                return Err(BELOW_GIVEN_DELETED);
            }
        } else {
            return Err(failure::SYNTAX);
        }
    }
    let key = args.key(1);
    let mut shard = context.store.lock(key);
    let Some(found) = shard.find_items::<StreamItems>(key)? else {
        return Err(failure::NO_SUCH_KEY);
    };
    let stream = found.stream();
    let mut head = stream.head().unwrap_or_default();
    if lacks(stream, |stream| leaves_to_add(stream, None)) {
        return Ok(Next::Retry);
    }
    if let Some(top) = top(stream) {
        if last < top {
            return Err(BELOW_TOP);
        }
        if added.is_some_and(|added| added < head.len) {
            return Err(BELOW_LENGTH);
        }
    }
    head.last = last;
    head.added = added.unwrap_or(head.added);
    if deleted != Id::MIN {
        head.deleted = deleted;
    }
    found.edit(Event::XSETID, Packed::NONE, |edit| {
        edit.is_of_groups(false);
        edit.put_head(&head);
        edit.note_change();
    });
    context.reply.ok();
    Ok(Next::Done)
}
