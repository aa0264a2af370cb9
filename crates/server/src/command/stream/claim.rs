//! XCLAIM and XAUTOCLAIM: a consumer takes over pending entries of others.

use std::collections::BTreeMap;

use keyspace::StreamRef;
use keyspace::collection::Base;
use keyspace::collection::stream::{
    Consumer, Group, Id, ItemBuffer, Pending, Section, StreamItems,
};
use resp::number::parse_i64;

use super::super::prepare::leaves::AskedLeaves;
use super::super::{Args, Context, Failure, Handled, Next, failure};
use super::ack::idle;
use super::group::{find_or_make, no_key_or_group};
use super::id::{self, End, IdText};
use super::leaves::{self, lacks};
use super::read::{BAD_START, write_entry};
use super::room;
use crate::config::Packed;
use crate::observe::notify::Event;
use crate::request::Reply;
use crate::store::Stream;

/// Pending entries that XAUTOCLAIM looks at for each that it may claim.
const ATTEMPTS: u64 = 10;
/// Entries that XAUTOCLAIM claims at most, if it does not say it, and in any case.
const CLAIMED_DEFAULT: u64 = 100;
const CLAIMED_MAX: u64 = i64::MAX as u64 / 16;

const BAD_COUNT: Failure = Failure::of("ERR COUNT must be > 0");

fn number(args: &Args<'_>, at: usize, option: &str, command: &str) -> Result<i64, Failure> {
    let number = parse_i64(args.get(at));
    number.ok_or_else(|| Failure::new(format!("ERR Invalid {option} argument for {command}")))
}

/// The new state of a pending entry that is claimed.
struct Claim<'a> {
    group: &'a [u8],
    consumer: &'a [u8],
    /// It was delivered at least so long ago (ms).
    idle: i64,
    /// When it counts as delivered (Unix, ms), and how often; `None`: once more.
    delivered: u64,
    deliveries: Option<u64>,
    /// The answer has IDs alone, and the entries do not count as delivered once more.
    just_ids: bool,
    /// Unix, ms.
    now: u64,
}

impl Claim<'_> {
    fn apply(&self, pending: &Pending) -> Pending {
        let more = u64::from(!self.just_ids);
        Pending {
            delivered: self.delivered,
            deliveries: self
                .deliveries
                .unwrap_or_else(|| pending.deliveries.wrapping_add(more)),
            ..*pending
        }
    }

    fn is_idle(&self, pending: &Pending) -> bool {
        self.idle <= 0 || idle(pending, self.now) >= self.idle
    }
}

/// Changes of pending entries that a claim makes.
#[derive(Default)]
struct Changes {
    /// Those that are claimed, in their new state.
    claimed: Vec<Pending>,
    /// Those of entries that are gone.
    gone: Vec<Pending>,
    /// The group has been set to this ID.
    last: Option<Id>,
}

impl Changes {
    fn is_empty(&self) -> bool {
        self.claimed.is_empty() && self.gone.is_empty() && self.last.is_none()
    }

    /// Makes the changes.
    fn make(
        self,
        found: Stream<'_, '_>,
        claim: &Claim<'_>,
        mut group: Group,
    ) -> Result<(), Failure> {
        if self.is_empty() {
            return Ok(());
        }
        let mut buffer = ItemBuffer::default();
        found.edit(Event::NONE, Packed::NONE, |edit| {
            edit.is_of_groups(false);
            let mut counts: BTreeMap<u32, i64> = BTreeMap::new();
            for pending in &self.gone {
                if edit.take_pending(group.number, pending, &mut buffer) {
                    *counts.entry(pending.consumer).or_default() -= 1;
                    group.pending = group.pending.saturating_sub(1);
                }
                edit.note_change();
            }
            if !self.claimed.is_empty() {
                let (number, is_new) = find_or_make(edit, group.number, claim.consumer, claim.now)?;
                if is_new {
                    edit.tell_also(Event::XGROUP_CREATECONSUMER);
                }
                for pending in &self.claimed {
                    // The ID may have come twice.
                    let before = edit.stream().pending(group.number, pending.id, &mut buffer);
                    match before {
                        Some(before) => *counts.entry(before.consumer).or_default() -= 1,
                        None => group.pending += 1,
                    }
                    let pending = Pending {
                        consumer: number,
                        ..*pending
                    };
                    edit.put_pending(group.number, &pending, &mut buffer);
                    *counts.entry(number).or_default() += 1;
                    edit.note_change();
                }
                edit.change_consumer(group.number, number, |consumer| Consumer {
                    seen: claim.now,
                    active: Some(claim.now),
                    ..consumer
                });
            }
            for (consumer, count) in counts {
                edit.count_pending(group.number, consumer, count);
            }
            if let Some(last) = self.last {
                group.last = last;
                edit.note_change();
            }
            edit.put_group(claim.group, &group);
            Ok(())
        })
    }
}

/// Answers with entries, or with their IDs alone.
fn write_claimed(reply: &mut Reply<'_>, stream: StreamRef<'_>, ids: &[Id], just_ids: bool) {
    let shapes = stream.shapes();
    reply.array(ids.len());
    for &id in ids {
        match stream.entry(id).filter(|_| !just_ids) {
            Some(entry) => write_entry(reply, entry, &shapes),
            None => reply.bulk(IdText::of(id).bytes()),
        }
    }
}

/// The options of XCLAIM.
struct Options {
    ids: Vec<Id>,
    delivered: Option<i64>,
    deliveries: Option<u64>,
    forces: bool,
    just_ids: bool,
    last: Id,
}

impl Options {
    fn parse(args: &Args<'_>, now: i64) -> Result<Options, Failure> {
        let ids: Vec<Id> = args
            .from(5)
            .map_while(|text| id::exact(text, 0).ok())
            .collect();
        let mut at = 5 + ids.len();
        let mut options = Options {
            ids,
            delivered: None,
            deliveries: None,
            forces: false,
            just_ids: false,
            last: Id::MIN,
        };
        while at < args.len() {
            let has_more = at + 1 < args.len();
            let option = |option: &str| number(args, at + 1, option, "XCLAIM");
            if args.is(at, "FORCE") {
                options.forces = true;
            } else if args.is(at, "JUSTID") {
                options.just_ids = true;
            } else if has_more && args.is(at, "IDLE") {
                options.delivered = Some(now.wrapping_sub(option("IDLE option")?));
                at += 1;
            } else if has_more && args.is(at, "TIME") {
                options.delivered = Some(option("TIME option")?);
                at += 1;
            } else if has_more && args.is(at, "RETRYCOUNT") {
                options.deliveries = u64::try_from(option("RETRYCOUNT option")?).ok();
                at += 1;
            } else if has_more && args.is(at, "LASTID") {
                options.last = id::exact(args.get(at + 1), 0)?;
                at += 1;
            } else {
                let text = args.get(at);
                return Err(Failure::about(
                    "ERR Unrecognized XCLAIM option '",
                    text,
                    "'",
                ));
            }
            at += 1;
        }
        Ok(options)
    }
}

/// The leaves that XCLAIM needs: those of its IDs, of the entries and of the pending ones.
pub(super) fn leaves_of_xclaim(stream: StreamRef<'_>, asked: &AskedLeaves<'_>) -> Vec<Base> {
    let args = asked.args;
    let group = stream.group(args.get(2), &mut ItemBuffer::default());
    match (group, Options::parse(args, 0)) {
        (Some(group), Ok(options)) => leaves_to_claim(stream, group.number, &options.ids),
        _ => Vec::new(),
    }
}

fn leaves_to_claim(stream: StreamRef<'_>, group: u32, ids: &[Id]) -> Vec<Base> {
    let section = Section::of_pending(group);
    let cold = ids.iter().filter_map(|&id| stream.cold_at(section, id));
    let mut records: Vec<Base> = cold.collect();
    records.extend(leaves::of_ids(stream, ids));
    records
}

/// `XCLAIM key group consumer min-idle-time id [id ...] [IDLE ms] [TIME unix-time-milliseconds]
/// [RETRYCOUNT count] [FORCE] [JUSTID] [LASTID lastid]`
pub(super) fn xclaim(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let most = args.len().saturating_sub(5) as u64;
    if let Some(next) = room::foresee(context, args, 1..2, most, |_, _| most)? {
        return Ok(next);
    }
    let (key, name, now) = (args.key(1), args.get(2), context.store.now);
    let (mut shard, mut buffer) = (context.store.lock(key), ItemBuffer::default());
    let found = shard.read_items::<StreamItems>(key)?;
    let group = found
        .as_ref()
        .and_then(|found| found.stream().group(name, &mut buffer));
    let (Some(found), Some(group)) = (found, group) else {
        return Err(no_key_or_group(key.bytes, name, ""));
    };
    let least_idle = number(args, 4, "min-idle-time", "XCLAIM")?;
    let options = Options::parse(args, now)?;
    let stream = found.stream();
    if lacks(stream, |stream| {
        leaves_to_claim(stream, group.number, &options.ids)
    }) {
        return Ok(Next::Retry);
    }
    let delivered = options.delivered.filter(|&time| time != -1).unwrap_or(now);
    let claim = Claim {
        group: name,
        consumer: args.get(3),
        idle: least_idle,
        delivered: if (0..=now).contains(&delivered) {
            delivered
        } else {
            now
        } as u64,
        deliveries: options.deliveries,
        just_ids: options.just_ids,
        now: now.max(0) as u64,
    };
    let mut changes = Changes {
        last: Some(options.last).filter(|&last| last > group.last),
        ..Changes::default()
    };
    let mut claimed: Vec<Id> = Vec::new();
    // As the changes so far leave them, if an ID comes twice.
    let mut seen: BTreeMap<Id, Option<Pending>> = BTreeMap::new();
    for &id in &options.ids {
        let pending = match seen.get(&id) {
            Some(pending) => *pending,
            None => stream.pending(group.number, id, &mut buffer),
        };
        if stream.entry(id).is_none() {
            changes.gone.extend(pending);
            seen.insert(id, None);
            continue;
        }
        let (pending, is_new) = match pending {
            Some(pending) => (pending, false),
            None if options.forces => (
                Pending {
                    id,
                    consumer: 0,
                    delivered: claim.now,
                    deliveries: 1,
                },
                true,
            ),
            None => continue,
        };
        if !is_new && !claim.is_idle(&pending) {
            continue;
        }
        let after = claim.apply(&pending);
        changes.claimed.push(after);
        seen.insert(id, Some(after));
        claimed.push(id);
    }
    write_claimed(&mut context.reply, stream, &claimed, claim.just_ids);
    changes.make(found, &claim, group)?;
    Ok(Next::Done)
}

/// Which pending entries XAUTOCLAIM looks at.
struct Scan {
    from: Id,
    most: u64,
    just_ids: bool,
}

impl Scan {
    fn parse(args: &Args<'_>) -> Result<Scan, Failure> {
        let start = End::parse(args.get(5), 0)?;
        let from = match start.is_excluded {
            true => start.id.next().ok_or(BAD_START)?,
            false => start.id,
        };
        let mut scan = Scan {
            from,
            most: CLAIMED_DEFAULT,
            just_ids: false,
        };
        let mut at = 6;
        while at < args.len() {
            if at + 1 < args.len() && args.is(at, "COUNT") {
                at += 1;
                let count = args.integer(at).ok();
                scan.most = count
                    .and_then(|count| u64::try_from(count).ok())
                    .filter(|count| (1..=CLAIMED_MAX).contains(count))
                    .ok_or(BAD_COUNT)?;
            } else if args.is(at, "JUSTID") {
                scan.just_ids = true;
            } else {
                return Err(failure::SYNTAX);
            }
            at += 1;
        }
        Ok(scan)
    }
}

/// The leaves that XAUTOCLAIM needs: those of the pending entries at which it looks, then those of the
/// entries.
pub(super) fn leaves_of_xautoclaim(stream: StreamRef<'_>, asked: &AskedLeaves<'_>) -> Vec<Base> {
    let args = asked.args;
    let group = stream.group(args.get(2), &mut ItemBuffer::default());
    match (group, Scan::parse(args)) {
        (Some(group), Ok(scan)) => leaves_to_scan(stream, group.number, &scan),
        _ => Vec::new(),
    }
}

fn leaves_to_scan(stream: StreamRef<'_>, group: u32, scan: &Scan) -> Vec<Base> {
    let looks = scan.most.saturating_mul(ATTEMPTS);
    leaves::of_pending_entries(stream, group, scan.from, looks, looks, |_| true)
}

/// `XAUTOCLAIM key group consumer min-idle-time start [COUNT count] [JUSTID]`
pub(super) fn xautoclaim(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let most = Scan::parse(args).map_or(0, |scan| scan.most);
    let next = room::foresee(context, args, 1..2, most, |_, stream| {
        room::count_pending(stream, args.get(2))
    })?;
    if let Some(next) = next {
        return Ok(next);
    }
    let (key, name, now) = (args.key(1), args.get(2), context.store.now.max(0) as u64);
    let (mut shard, mut buffer) = (context.store.lock(key), ItemBuffer::default());
    let found = shard.read_items::<StreamItems>(key);
    // As in redis-server the key is looked for first. Its type matters last.
    let least_idle = number(args, 4, "min-idle-time", "XAUTOCLAIM")?;
    let (scan, found) = (Scan::parse(args)?, found?);
    let group = found
        .as_ref()
        .and_then(|found| found.stream().group(name, &mut buffer));
    let (Some(found), Some(group)) = (found, group) else {
        return Err(no_key_or_group(key.bytes, name, ""));
    };
    let stream = found.stream();
    if lacks(stream, |stream| leaves_to_scan(stream, group.number, &scan)) {
        return Ok(Next::Retry);
    }
    let claim = Claim {
        group: name,
        consumer: args.get(3),
        idle: least_idle,
        delivered: now,
        deliveries: None,
        just_ids: scan.just_ids,
        now,
    };
    let mut changes = Changes::default();
    let (mut left, mut attempts) = (scan.most, scan.most.saturating_mul(ATTEMPTS));
    let mut next = None;
    for pending in stream.pending_from(group.number, scan.from) {
        if left == 0 || attempts == 0 {
            next = Some(pending.id);
            break;
        }
        attempts -= 1;
        if stream.entry(pending.id).is_none() {
            changes.gone.push(pending);
            left -= 1;
        } else if claim.is_idle(&pending) {
            changes.claimed.push(claim.apply(&pending));
            left -= 1;
        }
    }
    let claimed: Vec<Id> = changes.claimed.iter().map(|pending| pending.id).collect();
    let reply = &mut context.reply;
    reply.array(3);
    reply.bulk(IdText::of(next.unwrap_or(Id::MIN)).bytes());
    write_claimed(reply, stream, &claimed, claim.just_ids);
    reply.array(changes.gone.len());
    for pending in &changes.gone {
        reply.bulk(IdText::of(pending.id).bytes());
    }
    changes.make(found, &claim, group)?;
    Ok(Next::Done)
}
