//! Streams in the model, and how they are read back. Times are left out: nobody can compare them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rdb::{StreamId, StreamPart};

use crate::support::Value;

/// The ID of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id {
    pub(crate) ms: u64,
    pub(crate) seq: u64,
}

impl Id {
    pub(crate) const MAX: Id = Id {
        ms: u64::MAX,
        seq: u64::MAX,
    };

    /// IDs of this time or later ones stand for others.
    const UNKNOWN: u64 = 1 << 60;

    /// One that stands for the ID that a server may have chosen from a time on: above all known IDs, and
    /// above those with smaller numbers.
    pub(crate) fn unknown(number: u64, from_ms: u64) -> Id {
        Id {
            ms: Id::UNKNOWN + number,
            seq: from_ms,
        }
    }

    pub(crate) fn is_unknown(self) -> bool {
        (Id::UNKNOWN..u64::MAX).contains(&self.ms)
    }

    /// The ID in a text; `missing`: the sequence number of one that has none.
    pub(crate) fn parse(text: &[u8], missing: u64) -> Option<Id> {
        let text = str::from_utf8(text).ok()?;
        let (ms, seq) = match text.split_once('-') {
            Some((ms, seq)) => (ms, seq.parse().ok()?),
            None => (text, missing),
        };
        let ms = ms.parse().ok()?;
        Some(Id { ms, seq })
    }

    pub(crate) fn text(self) -> String {
        format!("{}-{}", self.ms, self.seq)
    }

    /// As a reply.
    pub(crate) fn value(self) -> Value {
        Value::Bulk(self.text().into_bytes())
    }

    pub(crate) fn of(reply: &Value) -> Option<Id> {
        Id::parse(reply.bytes()?, 0)
            .filter(|id| id.text().as_bytes() == reply.bytes().unwrap_or(b""))
    }
}

impl From<StreamId> for Id {
    fn from(id: StreamId) -> Id {
        Id {
            ms: id.ms,
            seq: id.seq,
        }
    }
}

/// Fields of an entry and their values, in turn.
pub(crate) type Texts = Arc<Vec<Vec<u8>>>;

/// A stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stream {
    pub(crate) entries: BTreeMap<Id, Texts>,
    pub(crate) last: Id,
    /// The greatest ID that XDEL has removed.
    pub(crate) deleted: Id,
    /// Entries that were ever added.
    pub(crate) added: u64,
    pub(crate) groups: BTreeMap<Vec<u8>, Group>,
    pub(crate) idempotence: Option<Idempotence>,
    /// Facts of idempotent IDs that a server has told, in the order of [`Idempotence::facts`].
    told: Option<[u64; 6]>,
}

/// Idempotent IDs of producers, and how many are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Idempotence {
    pub(crate) seconds: u64,
    pub(crate) most: u64,
    pub(crate) added: u64,
    pub(crate) duplicates: u64,
    /// Those of each producer, the oldest first.
    pub(crate) producers: BTreeMap<Vec<u8>, Vec<Idempotent>>,
}

/// An idempotent ID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Idempotent {
    pub(crate) name: Vec<u8>,
    /// The ID of the entry that was added with it; `None`: it was gone before it was seen.
    pub(crate) entry: Option<Id>,
}

impl Default for Idempotence {
    fn default() -> Idempotence {
        Idempotence {
            seconds: 100,
            most: 100,
            added: 0,
            duplicates: 0,
            producers: BTreeMap::new(),
        }
    }
}

impl Idempotence {
    /// Names of the facts that XINFO STREAM tells.
    pub(crate) const FACTS: [&str; 6] = [
        "idmp-duration",
        "idmp-maxsize",
        "pids-tracked",
        "iids-tracked",
        "iids-added",
        "iids-duplicates",
    ];

    pub(crate) fn facts(&self) -> [u64; 6] {
        let tracked: usize = self.producers.values().map(Vec::len).sum();
        [
            self.seconds,
            self.most,
            self.producers.len() as u64,
            tracked as u64,
            self.added,
            self.duplicates,
        ]
    }

    pub(crate) fn find(&self, producer: &[u8], name: &[u8]) -> Option<&Idempotent> {
        let mut its = self.producers.get(producer)?.iter();
        its.find(|idempotent| idempotent.name == name)
    }

    /// Notes an idempotent ID; the oldest of its producer go if they are too many.
    pub(crate) fn note(&mut self, producer: &[u8], idempotent: Idempotent) {
        let its = self.producers.entry(producer.to_vec()).or_default();
        let too_many = (its.len() as u64 + 1).saturating_sub(self.most);
        its.drain(..too_many as usize);
        its.push(idempotent);
        self.added += 1;
    }
}

/// A group of consumers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Group {
    /// The last ID that it got.
    pub(crate) last: Id,
    /// How many entries it has read, if that is known.
    pub(crate) read: Option<u64>,
    pub(crate) consumers: BTreeSet<Vec<u8>>,
    pub(crate) pending: BTreeMap<Id, Pending>,
}

/// An entry that was delivered to a consumer and not acknowledged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pending {
    pub(crate) consumer: Vec<u8>,
    pub(crate) deliveries: u64,
}

impl Group {
    /// The pending entries of a consumer.
    pub(crate) fn pending_of<'g>(
        &'g self,
        consumer: &'g [u8],
    ) -> impl Iterator<Item = (Id, &'g Pending)> {
        let own = self.pending.iter();
        own.filter(move |(_, pending)| pending.consumer == consumer)
            .map(|(&id, pending)| (id, pending))
    }
}

impl Stream {
    /// The ID of the first entry; 0-0 without entries.
    pub(crate) fn first(&self) -> Id {
        let first = self.entries.first_key_value();
        first.map_or(Id::default(), |(&id, _)| id)
    }

    /// Whether an entry may have been deleted from an ID on.
    fn has_gaps_from(&self, id: Id) -> bool {
        let has_some = !self.entries.is_empty() && self.deleted != Id::default();
        has_some && self.first() <= self.deleted && id <= self.deleted
    }

    /// How many entries were added up to an ID, if that is known.
    fn added_up_to(&self, id: Id) -> Option<u64> {
        let len = self.entries.len() as u64;
        if self.added == 0 || len == 0 && id <= self.last || id == self.last {
            return Some(self.added);
        }
        let has_no_gaps = self.deleted == Id::default() || self.deleted < self.first();
        if id > self.last || !has_no_gaps {
            return None;
        }
        match id.cmp(&self.first()) {
            std::cmp::Ordering::Less => Some(self.added - len),
            std::cmp::Ordering::Equal => Some(self.added - len + 1),
            std::cmp::Ordering::Greater => None,
        }
    }

    /// How many entries a group has read that gets the entry of an ID.
    pub(crate) fn read_with(&self, read: Option<u64>, id: Id) -> Option<u64> {
        match read {
            Some(read) if !self.has_gaps_from(id) => Some(read + 1),
            _ if self.added > 0 => self.added_up_to(id),
            read => read,
        }
    }

    /// How many entries a group has not read, if that is known.
    pub(crate) fn lag(&self, group: &Group) -> Option<i64> {
        if self.added == 0 {
            return Some(0);
        }
        let read = group.read.filter(|_| !self.has_gaps_from(group.last));
        let read = read.or_else(|| self.added_up_to(group.last))?;
        Some(self.added.wrapping_sub(read) as i64)
    }

    /// The facts of idempotent IDs that XINFO STREAM tells.
    pub(crate) fn idempotence_facts(&self) -> Option<[u64; 6]> {
        let own = self.idempotence.as_ref().map(Idempotence::facts);
        own.or(self.told)
    }

    /// Takes over the idempotent IDs of a stream that may show this one.
    pub(crate) fn learn_idempotence(&mut self, known: &Stream) {
        let bound = known.bind(self).unwrap_or_default();
        self.told = None;
        self.idempotence.clone_from(&known.idempotence);
        let producers = self.idempotence.iter_mut();
        let all = producers.flat_map(|its| its.producers.values_mut().flatten());
        for idempotent in all {
            idempotent.entry = match idempotent.entry {
                Some(id) if id.is_unknown() => bound.get(&id).copied(),
                entry => entry,
            };
        }
    }

    /// Whether a server that has this may show that. IDs that stand for others are any.
    pub(crate) fn may_show(&self, found: &Stream) -> bool {
        self == found || self.bind(found).is_some()
    }

    /// The IDs of another stream that those of this one stand for, if it can be this one.
    pub(crate) fn bind(&self, found: &Stream) -> Option<BTreeMap<Id, Id>> {
        let mut pairs = vec![(self.last, found.last), (self.deleted, found.deleted)];
        let mut is_same = self.added == found.added
            && self.entries.values().eq(found.entries.values())
            && self.idempotence_facts() == found.idempotence_facts()
            && self.groups.keys().eq(found.groups.keys());
        pairs.extend(zip_keys(&self.entries, &found.entries)?);
        for (own, its) in self.groups.values().zip(found.groups.values()) {
            is_same &= own.read == its.read && own.consumers == its.consumers;
            is_same &= own.pending.values().eq(its.pending.values());
            pairs.push((own.last, its.last));
            pairs.extend(zip_keys(&own.pending, &its.pending)?);
        }
        let mut bound = BTreeMap::new();
        for (own, its) in pairs {
            is_same &= match own.is_unknown() {
                true => *bound.entry(own).or_insert(its) == its && its.ms >= own.seq,
                false => own == its,
            };
        }
        (is_same && bound.values().is_sorted_by(|one, next| one < next)).then_some(bound)
    }

    /// Its facts for a message.
    pub(crate) fn summary(&self) -> String {
        let groups = self.groups.iter().map(|(name, group)| {
            format!(
                "; group {} at {}, {:?} read, {} consumers, {} pending",
                name.escape_ascii(),
                group.last.text(),
                group.read,
                group.consumers.len(),
                group.pending.len()
            )
        });
        format!(
            "stream of {} entries from {} on, last {}, deleted {}, {} added, idempotent IDs {:?}{}",
            self.entries.len(),
            self.first().text(),
            self.last.text(),
            self.deleted.text(),
            self.added,
            self.idempotence_facts(),
            groups.collect::<String>()
        )
    }
}

fn zip_keys<T>(own: &BTreeMap<Id, T>, found: &BTreeMap<Id, T>) -> Option<Vec<(Id, Id)>> {
    let pairs = own.keys().copied().zip(found.keys().copied());
    (own.len() == found.len()).then(|| pairs.collect())
}

/// The names of a reply with their values: a map, or in turn.
fn facts_of(reply: &Value) -> Option<Vec<(String, &Value)>> {
    match reply {
        Value::Map(pairs) => {
            let pairs = pairs.iter().map(|(name, value)| (name.text(), value));
            Some(pairs.collect())
        }
        Value::Array(words) => {
            let (pairs, rest) = words.as_chunks::<2>();
            let pairs = pairs.iter().map(|[name, value]| (name.text(), value));
            rest.is_empty().then(|| pairs.collect())
        }
        _ => None,
    }
}

/// One of the facts.
fn fact<'v>(facts: &[(String, &'v Value)], name: &str) -> Result<&'v Value, String> {
    let found = facts.iter().find(|(found, _)| found == name);
    let (_, value) = found.ok_or_else(|| format!("there is no {name}"))?;
    Ok(value)
}

fn items<'v>(facts: &[(String, &'v Value)], name: &str) -> Result<&'v [Value], String> {
    match fact(facts, name)? {
        Value::Array(items) => Ok(items),
        other => Err(format!("{name} is {other:?}")),
    }
}

fn id(facts: &[(String, &Value)], name: &str) -> Result<Id, String> {
    let value = fact(facts, name)?;
    Id::of(value).ok_or_else(|| format!("{name} is {value:?}"))
}

fn number(facts: &[(String, &Value)], name: &str) -> Result<Option<i64>, String> {
    match fact(facts, name)? {
        Value::Int(number) => Ok(Some(*number)),
        Value::Null | Value::NullBulk => Ok(None),
        other => Err(format!("{name} is {other:?}")),
    }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, one: T, other: T) -> Result<(), String> {
    match one == other {
        true => Ok(()),
        false => Err(format!("{what}: {one:?}, but {other:?}")),
    }
}

pub(crate) fn entry_of(reply: &Value) -> Option<(Id, Texts)> {
    let Value::Array(parts) = reply else {
        return None;
    };
    let [id, Value::Array(texts)] = &parts[..] else {
        return None;
    };
    let texts = texts.iter().map(|text| Some(text.bytes()?.to_vec()));
    let texts: Option<Vec<Vec<u8>>> = texts.collect();
    Some((Id::of(id)?, Arc::new(texts?)))
}

/// `[id, consumer, time, deliveries]`.
fn pending_of(reply: &Value) -> Option<(Id, Pending)> {
    let Value::Array(parts) = reply else {
        return None;
    };
    let [id, consumer, Value::Int(_), Value::Int(deliveries)] = &parts[..] else {
        return None;
    };
    let pending = Pending {
        consumer: consumer.bytes()?.to_vec(),
        deliveries: *deliveries as u64,
    };
    Some((Id::of(id)?, pending))
}

/// Notes a consumer of a group, and compares the pending entries that it has with those of the group.
fn add_consumer(group: &mut Group, reply: &Value) -> Result<(), String> {
    let facts = facts_of(reply).ok_or("a consumer has no facts")?;
    let name = fact(&facts, "name")?.bytes().unwrap_or_default().to_vec();
    let own: Vec<Value> = group
        .pending_of(&name)
        .map(|(id, pending)| Value::Array(vec![id.value(), Value::Int(pending.deliveries as i64)]))
        .collect();
    let told: Vec<Value> = items(&facts, "pending")?
        .iter()
        .map(|reply| match reply {
            Value::Array(parts) if parts.len() == 3 => {
                Value::Array(vec![parts[0].clone(), parts[2].clone()])
            }
            other => other.clone(),
        })
        .collect();
    let count = number(&facts, "pel-count")?;
    same(
        "pending entries of a consumer",
        count,
        Some(own.len() as i64),
    )?;
    same("pending entries of a consumer", told, own)?;
    match group.consumers.insert(name) {
        true => Ok(()),
        false => Err("a consumer comes twice".to_owned()),
    }
}

fn add_group(stream: &mut Stream, reply: &Value) -> Result<(), String> {
    let facts = facts_of(reply).ok_or("a group has no facts")?;
    let name = fact(&facts, "name")?.bytes().unwrap_or_default().to_vec();
    let mut group = Group {
        last: id(&facts, "last-delivered-id")?,
        read: number(&facts, "entries-read")?.map(|read| read as u64),
        ..Group::default()
    };
    let mut before = None;
    for reply in items(&facts, "pending")? {
        let (id, pending) = pending_of(reply).ok_or_else(|| format!("pending is {reply:?}"))?;
        if before >= Some(id) {
            return Err(format!("pending entry {id:?} is behind {before:?}"));
        }
        before = Some(id);
        group.pending.insert(id, pending);
    }
    for reply in items(&facts, "consumers")? {
        add_consumer(&mut group, reply)?;
    }
    let mut owners = group.pending.values().map(|pending| &pending.consumer);
    if let Some(stranger) = owners.find(|&consumer| !group.consumers.contains(consumer)) {
        return Err(format!("there is no consumer {}", stranger.escape_ascii()));
    }
    let count = number(&facts, "pel-count")?;
    same("pending entries", count, Some(group.pending.len() as i64))?;
    same("lag", number(&facts, "lag")?, stream.lag(&group))?;
    match stream.groups.insert(name, group) {
        None => Ok(()),
        Some(_) => Err("a group comes twice".to_owned()),
    }
}

/// The stream of which a reply of XINFO STREAM FULL COUNT 0 tells.
///
/// # Errors
/// It contradicts itself.
pub(crate) fn decode(reply: &Value) -> Result<Stream, String> {
    let facts = facts_of(reply).ok_or_else(|| format!("no stream: {reply:.200?}"))?;
    let mut stream = Stream {
        last: id(&facts, "last-generated-id")?,
        deleted: id(&facts, "max-deleted-entry-id")?,
        added: number(&facts, "entries-added")?.unwrap_or(-1) as u64,
        ..Stream::default()
    };
    let mut before = None;
    for reply in items(&facts, "entries")? {
        let (id, texts) = entry_of(reply).ok_or_else(|| format!("an entry is {reply:?}"))?;
        if before >= Some(id) {
            return Err(format!("entry {id:?} is behind {before:?}"));
        }
        before = Some(id);
        stream.entries.insert(id, texts);
    }
    let len = number(&facts, "length")?;
    same("length", len, Some(stream.entries.len() as i64))?;
    let first = id(&facts, "recorded-first-entry-id")?;
    same("first entry", first, stream.first())?;
    if fact(&facts, Idempotence::FACTS[0]).is_ok() {
        let mut told = [0; 6];
        for (told, name) in told.iter_mut().zip(Idempotence::FACTS) {
            *told = number(&facts, name)?.ok_or("a null")? as u64;
        }
        stream.told = Some(told);
    }
    for reply in items(&facts, "groups")? {
        add_group(&mut stream, reply)?;
    }
    Ok(stream)
}

/// A stream of which the parts of a file are read.
#[derive(Default)]
pub(crate) struct Parts {
    pub(crate) stream: Stream,
    /// The names of the last group and of its last consumer.
    group: Vec<u8>,
    consumer: Vec<u8>,
}

impl Parts {
    /// Adds the next part, if it makes sense.
    pub(crate) fn add(&mut self, part: StreamPart<'_>) -> Option<()> {
        let stream = &mut self.stream;
        match part {
            StreamPart::Entry { id, fields } => {
                let texts = fields.iter().map(<[u8]>::to_vec).collect();
                let before = stream.entries.insert(id.into(), Arc::new(texts));
                return before.is_none().then_some(());
            }
            StreamPart::State(state) => {
                stream.last = state.last.into();
                stream.deleted = state.deleted.into();
                stream.added = state.added;
                let is_so = state.len == stream.entries.len() as u64
                    && Id::from(state.first) == stream.first();
                return is_so.then_some(());
            }
            StreamPart::Group { name, last, read } => {
                name.clone_into(&mut self.group);
                let group = Group {
                    last: last.into(),
                    read,
                    ..Group::default()
                };
                stream.groups.insert(name.to_vec(), group);
            }
            StreamPart::Pending { id, deliveries, .. } => {
                let pending = Pending {
                    consumer: Vec::new(),
                    deliveries,
                };
                let group = stream.groups.get_mut(&self.group)?;
                group.pending.insert(id.into(), pending);
            }
            StreamPart::Consumer { name, .. } => {
                name.clone_into(&mut self.consumer);
                let group = stream.groups.get_mut(&self.group)?;
                group.consumers.insert(name.to_vec());
            }
            StreamPart::Owned { id } => {
                let group = stream.groups.get_mut(&self.group)?;
                let pending = group.pending.get_mut(&id.into())?;
                self.consumer.clone_into(&mut pending.consumer);
            }
        }
        Some(())
    }
}
