//! Effects on the model of the commands that change and read entries of streams.

use std::ops::Bound;
use std::sync::Arc;

use crate::support::Value;
use crate::torture::model::{Call, Chosen, Expect, number};
use crate::torture::script::Arg;
use crate::torture::streams::{Group, Id, Idempotent, Stream, Texts};
use crate::torture::values::{Data, Span};

/// Consumers that requests name.
const CONSUMERS: u32 = 4;
/// Fields of entries: the same ones come again and again.
const FIELDS: [&[&str]; 4] = [
    &["f"],
    &["temperature", "humidity"],
    &["1", "two", "3"],
    &["a", "b", "c", "d", "e", "f", "g"],
];
/// The most sequence numbers of a time that requests name.
const SEQUENCES: u64 = 300;

/// An ID that may be there: of a time that is not long ago.
fn id(random: &mut fastrand::Rng, now: u64) -> Id {
    let most = [4, 16, SEQUENCES][random.usize(..3)];
    Id {
        ms: now.saturating_sub(random.u64(..5) / 3),
        seq: random.u64(..most),
    }
}

/// Fields and values of an entry.
fn fields(random: &mut fastrand::Rng) -> Vec<Arg> {
    let value = |random: &mut fastrand::Rng| match random.u8(..8) {
        0..3 => Arg::word(random.i32(-2000..2000).to_string()),
        3 => Arg::word(random.i64(..).to_string()),
        longer => Arg::Text {
            len: random.usize(..if longer < 7 { 40 } else { 600 }),
            seed: random.u32(..),
        },
    };
    let shape = random.usize(..FIELDS.len() + 1);
    match FIELDS.get(shape) {
        Some(names) => names
            .iter()
            .flat_map(|name| [Arg::word(*name), value(random)])
            .collect(),
        None => (0..random.usize(1..20))
            .flat_map(|_| {
                let name = Arg::word(random.u32(..200).to_string());
                [name, value(random)]
            })
            .collect(),
    }
}

/// The arguments in the place of a word of a shape, if it is one about streams, at a time of the IDs of
/// entries.
pub(crate) fn words(random: &mut fastrand::Rng, now: u64, token: &str) -> Option<Vec<Arg>> {
    let word = |text: String| vec![Arg::word(text)];
    Some(match token {
        "add" => word(match random.u16(..400) {
            0..10 => format!("{}-*", now.saturating_sub(1)),
            10..20 => format!("{now}-{}", random.u64(..4)),
            20..30 => now.to_string(),
            _ => format!("{now}-*"),
        }),
        "id" => word(id(random, now).text()),
        "ids" => (0..random.usize(1..6))
            .map(|_| Arg::word(id(random, now).text()))
            .collect(),
        "idmany" => {
            let Id { ms, seq } = id(random, now);
            (seq..seq + random.u64(20..200))
                .map(|seq| Arg::word(Id { ms, seq }.text()))
                .collect()
        }
        "idnext" => {
            let (ms, seq) = (now + random.u64(..16) / 15, random.u64(..SEQUENCES));
            word(Id { ms, seq }.text())
        }
        "from" | "to" => word(match random.u8(..8) {
            0..4 if token == "from" => "-".to_owned(),
            0..4 => "+".to_owned(),
            4 => format!("({}", id(random, now).text()),
            5 => id(random, now).ms.to_string(),
            _ => id(random, now).text(),
        }),
        "entry" => fields(random),
        "stream" => {
            let most = [1, 20, 200][random.usize(..3)];
            vec![Arg::Entries {
                count: random.usize(..=most),
                ms: now,
                seed: random.u32(..),
            }]
        }
        "pid" => word(format!("producer {}", random.u32(..3))),
        "iid" => word(random.u32(..12).to_string()),
        "known" => vec![Arg::Known([0, random.usize(..8)][random.usize(..2)])],
        "entries" => word(match random.u8(..4) {
            0 => random.u32(..5).to_string(),
            1 => random.u32(..50).to_string(),
            _ => random.u32(50..400).to_string(),
        }),
        "g" => word(format!("g{}", random.u32(..8) / 6)),
        "c" => word(format!("consumer {}", random.u32(..CONSUMERS))),
        _ => return None,
    })
}

pub(super) fn wrong_type() -> Expect {
    Expect::Error("WRONGTYPE")
}

pub(super) fn no_such_key() -> Expect {
    Expect::Error("ERR no such key")
}

/// The result of a step with the stream of a key.
pub(super) enum Found<T> {
    Stream(T),
    Missing,
    OtherType,
}

impl Found<Expect> {
    /// The reply, with that for a missing key.
    pub(super) fn or(self, missing: Expect) -> Expect {
        match self {
            Found::Stream(expect) => expect,
            Found::Missing => missing,
            Found::OtherType => wrong_type(),
        }
    }
}

/// The stream of a key.
pub(super) fn find<'k>(call: &'k Call<'_>, name: &[u8]) -> Found<&'k Stream> {
    match call.get(name).map(|entry| &entry.data) {
        Some(Data::Stream(stream)) => Found::Stream(stream),
        Some(_) => Found::OtherType,
        None => Found::Missing,
    }
}

/// Reads the stream of a key.
pub(super) fn read<T>(call: &Call<'_>, name: &[u8], read: impl FnOnce(&Stream) -> T) -> Found<T> {
    match find(call, name) {
        Found::Stream(stream) => Found::Stream(read(stream)),
        Found::Missing => Found::Missing,
        Found::OtherType => Found::OtherType,
    }
}

/// Changes the stream of a key; its expiry stays.
pub(super) fn change<T>(
    call: &mut Call<'_>,
    name: &[u8],
    change: impl FnOnce(&mut Stream) -> T,
) -> Found<T> {
    match find(call, name) {
        Found::Stream(_) => {}
        Found::Missing => return Found::Missing,
        Found::OtherType => return Found::OtherType,
    }
    let key = call.key(name);
    let entry = call.keys.remove(&key).expect("it was found");
    let Data::Stream(mut stream) = entry.data else {
        unreachable!("it was found as a stream");
    };
    let result = change(Arc::make_mut(&mut stream));
    call.put(key, Data::Stream(stream), entry.expiry);
    Found::Stream(result)
}

/// Makes the stream of a key that is missing.
pub(super) fn make(call: &mut Call<'_>, name: &[u8]) {
    if matches!(find(call, name), Found::Missing) {
        let key = call.key(name);
        call.put(key, Data::Stream(Arc::default()), None);
    }
}

/// The ID in an argument.
pub(super) fn exact(text: &[u8]) -> Id {
    Id::parse(text, 0).expect("shapes have IDs here")
}

/// A number in an argument.
pub(super) fn count(text: &[u8]) -> usize {
    number(text).expect("shapes have numbers here")
}

/// An entry as a reply.
pub(super) fn entry(id: Id, texts: &Texts) -> Value {
    let texts = texts.iter().cloned().map(Value::Bulk);
    Value::Array(vec![id.value(), Value::Array(texts.collect())])
}

/// Which entries stay.
enum Keeps {
    Len(usize),
    From(Id),
}

/// The treatment of references of groups to an entry that is to be removed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum References {
    Keep,
    Remove,
    Acked,
}

impl References {
    pub(super) fn of(word: &[u8]) -> Option<References> {
        match word {
            b"KEEPREF" => Some(References::Keep),
            b"DELREF" => Some(References::Remove),
            b"ACKED" => Some(References::Acked),
            _ => None,
        }
    }

    /// Removes an entry of a stream; `None`: it stays, because groups refer to it.
    pub(super) fn remove(self, stream: &mut Stream, id: Id) -> Option<bool> {
        let mut groups = stream.groups.values();
        let refers = |group: &Group| id > group.last || group.pending.contains_key(&id);
        if self == References::Acked && groups.any(refers) {
            return None;
        }
        if self == References::Remove {
            for group in stream.groups.values_mut() {
                group.pending.remove(&id);
            }
        }
        Some(stream.entries.remove(&id).is_some())
    }
}

impl Keeps {
    /// `MAXLEN | MINID [= | ~] threshold [LIMIT 0] [KEEPREF | DELREF | ACKED]`, and how many arguments that
    /// is. Of `~` shapes have thresholds that remove all or nothing.
    fn parse(args: &[Vec<u8>]) -> (Keeps, References, usize) {
        let has_sign = matches!(&args[1][..], b"=" | b"~");
        let at = 1 + usize::from(has_sign);
        let keeps = match &args[0][..] {
            b"MAXLEN" => Keeps::Len(count(&args[at])),
            _ => Keeps::From(exact(&args[at])),
        };
        let has_limit = args.get(at + 1).is_some_and(|word| word == b"LIMIT");
        let at = at + 1 + 2 * usize::from(has_limit);
        match args.get(at).and_then(|word| References::of(word)) {
            Some(references) => (keeps, references, at + 1),
            None => (keeps, References::Keep, at),
        }
    }

    /// Removes the others, as far as they may go; how many.
    fn trim(&self, stream: &mut Stream, references: References) -> usize {
        let before = stream.entries.len();
        let ids: Vec<Id> = match *self {
            Keeps::Len(most) if before > most => stream.entries.keys().copied().collect(),
            Keeps::Len(_) => Vec::new(),
            Keeps::From(id) => stream.entries.range(..id).map(|(&id, _)| id).collect(),
        };
        for id in ids {
            if matches!(*self, Keeps::Len(most) if stream.entries.len() <= most) {
                break;
            }
            references.remove(stream, id);
        }
        before - stream.entries.len()
    }
}

/// The ID of the next entry, which a reply tells if the server chooses it; `None`: it would not be above the
/// last one.
fn next_id(last: Id, asked: &[u8], at: Span, chosen: &mut Chosen) -> Option<Id> {
    if asked == b"*" {
        return chosen.next(last, at);
    }
    match asked.strip_suffix(b"-*") {
        None => Some(exact(asked)).filter(|&id| id > last),
        Some(ms) => {
            let ms = exact(ms).ms;
            let seq = if ms == last.ms { last.seq + 1 } else { 0 };
            (ms >= last.ms).then_some(Id { ms, seq })
        }
    }
}

/// The idempotent ID that XADD is given.
struct Given<'a> {
    producer: &'a [u8],
    name: Vec<u8>,
}

impl Given<'_> {
    /// The reply, if an entry was added with it.
    fn known(&self, stream: &mut Stream, chosen: &mut Chosen) -> Option<Expect> {
        let idempotence = stream.idempotence.as_mut()?;
        let entry = idempotence.find(self.producer, &self.name)?.entry;
        idempotence.duplicates += 1;
        let told = chosen.duplicate(entry);
        let id = entry.or(told);
        Some(id.map_or(Expect::Any, |id| Expect::Is(id.value())))
    }
}

/// Arguments of `[IDMP producer ID | IDMPAUTO producer]`.
fn idempotence_len(args: &[Vec<u8>]) -> usize {
    match &args[0][..] {
        b"IDMP" => 3,
        b"IDMPAUTO" => 2,
        _ => 0,
    }
}

/// The idempotent ID that fields and values are: the same in any order of the fields.
fn name_of_fields(texts: &[Vec<u8>]) -> Vec<u8> {
    let mut pairs: Vec<&[Vec<u8>]> = texts.chunks(2).collect();
    pairs.sort_unstable();
    format!("{pairs:?}").into_bytes()
}

/// `key [NOMKSTREAM] [IDMP | IDMPAUTO ...] [MAXLEN | MINID ...] id field value ...`
pub(super) fn xadd(call: &mut Call<'_>) -> Expect {
    let (args, mut at, mut trim) = (call.args, 1, None);
    let is_only_present = args[at] == b"NOMKSTREAM";
    at += usize::from(is_only_present);
    let asked = &args[at..at + idempotence_len(&args[at..])];
    at += asked.len();
    if matches!(&args[at][..], b"MAXLEN" | b"MINID") {
        let (keeps, references, len) = Keeps::parse(&args[at..]);
        (trim, at) = (Some((keeps, references)), at + len);
    }
    if !is_only_present {
        make(call, &args[0]);
    }
    let mut chosen = std::mem::take(call.chosen);
    let span = call.at;
    let given = asked.get(1).map(|producer| Given {
        producer,
        name: match asked.get(2) {
            Some(name) => name.clone(),
            None => name_of_fields(&args[at + 1..]),
        },
    });
    let added = change(call, &args[0], |stream| {
        if let Some(expect) = given
            .as_ref()
            .and_then(|given| given.known(stream, &mut chosen))
        {
            return expect;
        }
        let is_known = chosen.is_next_known();
        let Some(id) = next_id(stream.last, &args[at], span, &mut chosen) else {
            return Expect::Error(
                "ERR The ID specified in XADD is equal or smaller than the target",
            );
        };
        stream.entries.insert(id, Arc::new(args[at + 1..].to_vec()));
        (stream.last, stream.added) = (id, stream.added + 1);
        if let Some(Given { producer, name }) = &given {
            let (name, entry) = (name.clone(), is_known.then_some(id));
            let idempotence = stream.idempotence.get_or_insert_default();
            idempotence.note(producer, Idempotent { name, entry });
        }
        if let Some((keeps, references)) = &trim {
            keeps.trim(stream, *references);
        }
        Expect::Is(id.value())
    });
    *call.chosen = chosen;
    added.or(Expect::Null)
}

pub(super) fn xdel(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    let removed = change(call, &args[0], |stream| {
        let mut removed = 0;
        for id in args[1..].iter().map(|text| exact(text)) {
            if stream.entries.remove(&id).is_some() {
                stream.deleted = stream.deleted.max(id);
                removed += 1;
            }
        }
        Expect::int(removed)
    });
    removed.or(Expect::int(0))
}

/// `key [KEEPREF | DELREF | ACKED] IDS count id ...`, of XACKDEL with a group after the key.
fn remove_asked(call: &mut Call<'_>, group: Option<&[u8]>) -> Expect {
    let (args, from) = (call.args, 1 + usize::from(group.is_some()));
    let references = References::of(&args[from]);
    let ids = &args[from + 2 + usize::from(references.is_some())..];
    let references = references.unwrap_or(References::Keep);
    let missing = || Expect::All(ids.iter().map(|_| Expect::Is(Value::Int(-1))).collect());
    let removed = change(call, &args[0], |stream| {
        if group.is_some_and(|name| !stream.groups.contains_key(name)) {
            return missing();
        }
        let mut remove = |id: Id| {
            if let Some(name) = group {
                let group = stream.groups.get_mut(name).expect("it was found");
                if group.pending.remove(&id).is_none() {
                    return -1;
                }
            }
            match references.remove(stream, id) {
                None => 2,
                Some(false) if group.is_none() => -1,
                Some(false) => 1,
                Some(true) => {
                    stream.deleted = stream.deleted.max(id);
                    1
                }
            }
        };
        let outcomes = ids.iter().map(|text| remove(exact(text)));
        Expect::All(
            outcomes
                .map(|outcome| Expect::Is(Value::Int(outcome)))
                .collect(),
        )
    });
    removed.or(missing())
}

pub(super) fn xdelex(call: &mut Call<'_>) -> Expect {
    remove_asked(call, None)
}

pub(super) fn xackdel(call: &mut Call<'_>) -> Expect {
    remove_asked(call, Some(&call.args[1]))
}

pub(super) fn xtrim(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    let (keeps, references, _) = Keeps::parse(&args[1..]);
    let gone = change(call, &args[0], |stream| {
        Expect::int(keeps.trim(stream, references) as u64)
    });
    gone.or(Expect::int(0))
}

/// `key last-id [ENTRIESADDED entries-added MAXDELETEDID max-deleted-id]`
pub(super) fn xsetid(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    let last = exact(&args[1]);
    let added = args.get(3).map(|text| count(text) as u64);
    let deleted = args.get(5).map_or(Id::default(), |text| exact(text));
    if last < deleted {
        return Expect::Error("ERR The ID specified in XSETID is smaller than the provided");
    }
    let set = change(call, &args[0], |stream| {
        if let Some((&top, _)) = stream.entries.last_key_value() {
            if last < top {
                return Expect::Error("ERR The ID specified in XSETID is smaller than the target");
            }
            if added.is_some_and(|added| added < stream.entries.len() as u64) {
                return Expect::Error("ERR The entries_added specified in XSETID is smaller");
            }
        }
        stream.last = last;
        stream.added = added.unwrap_or(stream.added);
        if deleted != Id::default() {
            stream.deleted = deleted;
        }
        Expect::ok()
    });
    set.or(no_such_key())
}

/// `key [IDMP-DURATION seconds] [IDMP-MAXSIZE count]`: if a number changes, all idempotent IDs are forgotten.
pub(super) fn xcfgset(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    let number = |name: &[u8]| {
        let at = args.iter().position(|word| word == name)?;
        Some(count(&args[at + 1]) as u64)
    };
    let (seconds, most) = (number(b"IDMP-DURATION"), number(b"IDMP-MAXSIZE"));
    if most.is_some_and(|most| !(1..=10_000).contains(&most)) {
        return Expect::Error("ERR IDMP-MAXSIZE must be between");
    }
    let set = change(call, &args[0], |stream| {
        let before = stream.idempotence.clone();
        let mut after = before.clone().unwrap_or_default();
        after.seconds = seconds.unwrap_or(after.seconds);
        after.most = most.unwrap_or(after.most);
        if before.as_ref() != Some(&after) {
            after.producers.clear();
            stream.idempotence = Some(after);
        }
        Expect::ok()
    });
    set.or(no_such_key())
}

pub(super) fn xlen(call: &mut Call<'_>) -> Expect {
    let len = read(call, &call.args[0], |stream| {
        Expect::int(stream.entries.len() as u64)
    });
    len.or(Expect::int(0))
}

/// The first and the last ID of a range: bounds of a map.
pub(super) struct Range {
    from: Bound<Id>,
    last: Bound<Id>,
}

impl Range {
    pub(super) fn parse(from: &[u8], last: &[u8]) -> Range {
        let bound = |text: &[u8], missing| {
            let is_excluded = text.starts_with(b"(");
            let text = &text[usize::from(is_excluded)..];
            let id = match text {
                b"-" => Id::default(),
                b"+" => Id::MAX,
                _ => Id::parse(text, missing).expect("shapes have IDs here"),
            };
            match is_excluded {
                true => Bound::Excluded(id),
                false => Bound::Included(id),
            }
        };
        Range {
            from: bound(from, 0),
            last: bound(last, u64::MAX),
        }
    }

    pub(super) fn has(&self, id: Id) -> bool {
        let is_behind_first = match self.from {
            Bound::Included(from) => from <= id,
            Bound::Excluded(from) => from < id,
            Bound::Unbounded => true,
        };
        is_behind_first
            && match self.last {
                Bound::Included(last) => id <= last,
                Bound::Excluded(last) => id < last,
                Bound::Unbounded => true,
            }
    }
}

/// `key first last [COUNT count]`, where the last one may be first.
fn range(call: &Call<'_>, is_reverse: bool) -> Expect {
    let args = call.args;
    let (from, last) = match is_reverse {
        false => (&args[1], &args[2]),
        true => (&args[2], &args[1]),
    };
    let range = Range::parse(from, last);
    let most = args.get(4).map_or(usize::MAX, |text| count(text));
    let entries = read(call, &args[0], |stream| {
        let entries = stream.entries.iter().filter(|(id, _)| range.has(**id));
        let entries = entries.map(|(&id, texts)| entry(id, texts));
        let entries: Vec<Value> = match is_reverse {
            false => entries.take(most).collect(),
            true => entries.rev().take(most).collect(),
        };
        Expect::Is(Value::Array(entries))
    });
    entries.or(Expect::All(Vec::new()))
}

pub(super) fn xrange(call: &mut Call<'_>) -> Expect {
    range(call, false)
}

pub(super) fn xrevrange(call: &mut Call<'_>) -> Expect {
    range(call, true)
}
