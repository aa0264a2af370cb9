//! Effects on the model of the commands about groups of streams: XGROUP XACK XPENDING XCLAIM XAUTOCLAIM,
//! and XINFO.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::streams::{
    Found, Range, change, count, entry, exact, find, make, no_such_key, read, wrong_type,
};
use crate::support::Value;
use crate::torture::model::{Call, Expect};
use crate::torture::streams::{Group, Id, Idempotence, Pending, Stream};

pub(super) fn no_group() -> Expect {
    Expect::Error("NOGROUP")
}

/// An ID that a request gives to a group.
fn start(stream: &Stream, text: &[u8]) -> Id {
    match text {
        b"$" => stream.last,
        _ => exact(text),
    }
}

/// The number after ENTRIESREAD.
fn entries_read(options: &[Vec<u8>]) -> Option<u64> {
    let at = options.iter().position(|word| word == b"ENTRIESREAD")?;
    Some(count(&options[at + 1]) as u64)
}

/// `CREATE key group id [MKSTREAM] [ENTRIESREAD entries-read]`
fn create(stream: &mut Stream, args: &[Vec<u8>]) -> Expect {
    let (name, last) = (&args[2], start(stream, &args[3]));
    if stream.groups.contains_key(name) {
        return Expect::Error("BUSYGROUP");
    }
    let group = Group {
        last,
        read: entries_read(&args[4..]),
        ..Group::default()
    };
    stream.groups.insert(name.clone(), group);
    Expect::ok()
}

/// The subcommands that need a group.
fn change_group(stream: &mut Stream, args: &[Vec<u8>]) -> Expect {
    let last = args.get(3).filter(|_| args[0] == b"SETID");
    let last = last.map(|text| start(stream, text));
    let Some(group) = stream.groups.get_mut(&args[2]) else {
        return no_group();
    };
    match &args[0][..] {
        b"CREATECONSUMER" => Expect::int(u8::from(group.consumers.insert(args[3].clone()))),
        b"DELCONSUMER" => {
            let before = group.pending.len();
            group.consumers.remove(&args[3]);
            group
                .pending
                .retain(|_, pending| pending.consumer != args[3]);
            Expect::int((before - group.pending.len()) as u64)
        }
        _ => {
            group.last = last.expect("it is of SETID");
            group.read = entries_read(&args[4..]);
            Expect::ok()
        }
    }
}

/// A subcommand, then `key group`.
pub(super) fn xgroup(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    if args[0] == b"CREATE" && args.iter().any(|word| word == b"MKSTREAM") {
        make(call, &args[1]);
    }
    let changed = change(call, &args[1], |stream| match &args[0][..] {
        b"CREATE" => create(stream, args),
        b"DESTROY" => Expect::int(u8::from(stream.groups.remove(&args[2]).is_some())),
        _ => change_group(stream, args),
    });
    changed.or(Expect::Error("ERR The XGROUP subcommand requires the key"))
}

/// `key group id ...`
pub(super) fn xack(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    let acknowledged = change(call, &args[0], |stream| {
        let Some(group) = stream.groups.get_mut(&args[1]) else {
            return Expect::int(0);
        };
        let ids = args[2..].iter().map(|text| exact(text));
        let gone = ids.filter(|id| group.pending.remove(id).is_some());
        Expect::int(gone.count() as u64)
    });
    acknowledged.or(Expect::int(0))
}

/// How many pending entries there are, the first and the last of them, and how many each consumer has.
fn summary(group: &Group) -> Expect {
    let ends = group.pending.keys().next().zip(group.pending.keys().last());
    let Some((first, last)) = ends else {
        return Expect::All(vec![
            Expect::int(0),
            Expect::Null,
            Expect::Null,
            Expect::Null,
        ]);
    };
    let mut counts: BTreeMap<&[u8], u64> = BTreeMap::new();
    for pending in group.pending.values() {
        *counts.entry(&pending.consumer).or_default() += 1;
    }
    let counts = counts.into_iter().map(|(name, count)| {
        let count = count.to_string();
        Expect::All(vec![Expect::bulk(name), Expect::bulk(count.as_bytes())])
    });
    Expect::All(vec![
        Expect::int(group.pending.len() as u64),
        Expect::Is(first.value()),
        Expect::Is(last.value()),
        Expect::All(counts.collect()),
    ])
}

/// `key group [[IDLE 0] first last count [consumer]]`
pub(super) fn xpending(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    let shown = read(call, &args[0], |stream| {
        let Some(group) = stream.groups.get(&args[1]) else {
            return no_group();
        };
        let at = match args.get(2).map(|word| &word[..]) {
            None => return summary(group),
            Some(b"IDLE") => 4,
            Some(_) => 2,
        };
        let range = Range::parse(&args[at], &args[at + 1]);
        let consumer = args.get(at + 3);
        let wanted = group.pending.iter().filter(|(id, pending)| {
            range.has(**id) && consumer.is_none_or(|consumer| pending.consumer == *consumer)
        });
        let shown = wanted.take(count(&args[at + 2])).map(|(id, pending)| {
            Expect::All(vec![
                Expect::Is(id.value()),
                Expect::bulk(&pending.consumer),
                Expect::Between(0, i64::MAX),
                Expect::int(pending.deliveries),
            ])
        });
        Expect::All(shown.collect())
    });
    shown.or(no_group())
}

/// The parts of a claim beside the IDs.
#[derive(Default)]
struct Claim<'a> {
    group: &'a [u8],
    consumer: &'a [u8],
    is_forced: bool,
    just_ids: bool,
    deliveries: Option<u64>,
    last: Id,
}

impl<'a> Claim<'a> {
    /// `group consumer 0 ...`, and the options among the rest.
    fn parse(args: &'a [Vec<u8>]) -> Claim<'a> {
        let mut claim = Claim {
            group: &args[1],
            consumer: &args[2],
            ..Claim::default()
        };
        for (word, next) in args.iter().zip(args[1..].iter().map(Some).chain([None])) {
            let operand = || next.expect("shapes have operands");
            match &word[..] {
                b"FORCE" => claim.is_forced = true,
                b"JUSTID" => claim.just_ids = true,
                b"RETRYCOUNT" => claim.deliveries = Some(count(operand()) as u64),
                b"LASTID" => claim.last = exact(operand()),
                _ => {}
            }
        }
        claim
    }

    /// A consumer takes over an entry, which is answered.
    fn take(&self, group: &mut Group, id: Id) {
        let pending = group.pending.entry(id).or_insert_with(|| Pending {
            consumer: Vec::new(),
            deliveries: 1,
        });
        self.consumer.clone_into(&mut pending.consumer);
        let more = u64::from(!self.just_ids);
        pending.deliveries = self.deliveries.unwrap_or(pending.deliveries + more);
        group.consumers.insert(self.consumer.to_vec());
    }

    fn reply(&self, stream: &Stream, ids: &[Id]) -> Value {
        let reply = ids.iter().map(|id| match stream.entries.get(id) {
            Some(texts) if !self.just_ids => entry(*id, texts),
            _ => id.value(),
        });
        Value::Array(reply.collect())
    }
}

/// `key group consumer 0 id ... [FORCE] [JUSTID] [RETRYCOUNT count] [LASTID id]`
pub(super) fn xclaim(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    let claim = Claim::parse(args);
    let claimed = change(call, &args[0], |stream| {
        let Some(mut group) = stream.groups.remove(claim.group) else {
            return no_group();
        };
        let mut claimed = Vec::new();
        for id in args[4..].iter().map_while(|text| Id::parse(text, 0)) {
            if !stream.entries.contains_key(&id) {
                group.pending.remove(&id);
            } else if claim.is_forced || group.pending.contains_key(&id) {
                claim.take(&mut group, id);
                claimed.push(id);
            }
        }
        group.last = group.last.max(claim.last);
        stream.groups.insert(claim.group.to_vec(), group);
        Expect::Is(claim.reply(stream, &claimed))
    });
    claimed.or(no_group())
}

/// `key group consumer 0 first [COUNT count] [JUSTID]`
pub(super) fn xautoclaim(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    let claim = Claim::parse(args);
    let range = Range::parse(&args[4], b"+");
    let most = match args.get(5).map(|word| &word[..]) {
        Some(b"COUNT") => count(&args[6]),
        _ => 100,
    };
    let claimed = change(call, &args[0], |stream| {
        let Some(mut group) = stream.groups.remove(claim.group) else {
            return no_group();
        };
        let pending = group.pending.keys().copied();
        let mut pending = pending.filter(|&id| range.has(id));
        let looked_at: Vec<Id> = pending.by_ref().take(most).collect();
        let next = pending.next().unwrap_or_default();
        drop(pending);
        let has = |id: &Id| stream.entries.contains_key(id);
        let (claimed, gone): (Vec<Id>, Vec<Id>) = looked_at.into_iter().partition(has);
        for id in &gone {
            group.pending.remove(id);
        }
        for &id in &claimed {
            claim.take(&mut group, id);
        }
        stream.groups.insert(claim.group.to_vec(), group);
        let gone: BTreeSet<Id> = gone.into_iter().collect();
        let gone = gone.into_iter().map(Id::value);
        Expect::Is(Value::Array(vec![
            next.value(),
            claim.reply(stream, &claimed),
            Value::Array(gone.collect()),
        ]))
    });
    claimed.or(no_group())
}

/// A fact and its name.
fn fact(name: &str, expect: Expect) -> (Expect, Expect) {
    (Expect::bulk(name.as_bytes()), expect)
}

fn known(number: Option<i64>) -> Expect {
    number.map_or(Expect::Null, Expect::int)
}

fn facts(stream: &Stream) -> Expect {
    let id = |id: Id| Expect::Is(id.value());
    let end = |end: Option<(&Id, &crate::torture::streams::Texts)>| {
        end.map_or(Expect::Null, |(&id, texts)| Expect::Is(entry(id, texts)))
    };
    let mut facts = vec![
        fact("length", Expect::int(stream.entries.len() as u64)),
        fact("radix-tree-keys", Expect::Any),
        fact("radix-tree-nodes", Expect::Any),
        fact("last-generated-id", id(stream.last)),
        fact("max-deleted-entry-id", id(stream.deleted)),
        fact("entries-added", Expect::int(stream.added)),
        fact("recorded-first-entry-id", id(stream.first())),
    ];
    if let Some(idempotence) = &stream.idempotence {
        let named = Idempotence::FACTS.iter().zip(idempotence.facts());
        facts.extend(named.map(|(name, number)| fact(name, Expect::int(number))));
    }
    facts.extend([
        fact("groups", Expect::int(stream.groups.len() as u64)),
        fact("first-entry", end(stream.entries.first_key_value())),
        fact("last-entry", end(stream.entries.last_key_value())),
    ]);
    Expect::Pairs(facts)
}

fn facts_of_groups(stream: &Stream) -> Expect {
    let groups = stream.groups.iter().map(|(name, group)| {
        Expect::Pairs(vec![
            fact("name", Expect::bulk(name)),
            fact("consumers", Expect::int(group.consumers.len() as u64)),
            fact("pending", Expect::int(group.pending.len() as u64)),
            fact("last-delivered-id", Expect::Is(group.last.value())),
            fact("entries-read", known(group.read.map(|read| read as i64))),
            fact("lag", known(stream.lag(group))),
        ])
    });
    Expect::All(groups.collect())
}

fn facts_of_consumers(group: &Group) -> Expect {
    let consumers = group.consumers.iter().map(|name| {
        let pending = group.pending_of(name).count();
        Expect::Pairs(vec![
            fact("name", Expect::bulk(name)),
            fact("pending", Expect::int(pending as u64)),
            fact("idle", Expect::Between(0, i64::MAX)),
        ])
    });
    Expect::All(consumers.collect())
}

/// `STREAM key [FULL COUNT 0]`, `GROUPS key`, `CONSUMERS key group`
pub(super) fn xinfo(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    let stream = match find(call, &args[1]) {
        Found::Stream(stream) => stream,
        Found::Missing => return no_such_key(),
        Found::OtherType => return wrong_type(),
    };
    match (&args[0][..], args.get(2)) {
        (b"STREAM", None) => facts(stream),
        (b"STREAM", Some(_)) => Expect::Stream(Arc::new(stream.clone())),
        (b"GROUPS", _) => facts_of_groups(stream),
        (_, name) => {
            let name = name.expect("shapes name a group");
            stream
                .groups
                .get(name)
                .map_or_else(no_group, facts_of_consumers)
        }
    }
}
