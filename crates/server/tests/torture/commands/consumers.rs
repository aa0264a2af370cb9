//! Effects on the model of the commands that read new entries of several streams: XREAD and XREADGROUP.

use std::ops::Bound;

use super::groups::no_group;
use super::streams::{Found, change, count, entry, exact, find, wrong_type};
use crate::torture::model::{Call, Expect};
use crate::torture::streams::{Id, Pending, Stream};

/// `[GROUP group consumer] [COUNT count] [BLOCK 1] [NOACK] STREAMS key ... id ...`
struct Reading<'a> {
    group: &'a [u8],
    consumer: &'a [u8],
    most: usize,
    has_no_ack: bool,
    /// Keys, then as many IDs.
    streams: &'a [Vec<u8>],
}

impl<'a> Reading<'a> {
    fn parse(args: &'a [Vec<u8>]) -> Reading<'a> {
        let mut reading = Reading {
            group: b"",
            consumer: b"",
            most: usize::MAX,
            has_no_ack: false,
            streams: &[],
        };
        let mut at = 0;
        while reading.streams.is_empty() {
            at += match &args[at][..] {
                b"GROUP" => {
                    (reading.group, reading.consumer) = (&args[at + 1], &args[at + 2]);
                    3
                }
                b"COUNT" => {
                    // None at all is no limit.
                    reading.most = Some(count(&args[at + 1]))
                        .filter(|&most| most > 0)
                        .unwrap_or(usize::MAX);
                    2
                }
                b"BLOCK" => 2,
                b"NOACK" => {
                    reading.has_no_ack = true;
                    1
                }
                _ => {
                    reading.streams = &args[at + 1..];
                    0
                }
            };
        }
        reading
    }

    /// The keys and their IDs.
    fn pairs(&self) -> impl Iterator<Item = (&'a Vec<u8>, &'a Vec<u8>)> + use<'a> {
        let (keys, ids) = self.streams.split_at(self.streams.len() / 2);
        keys.iter().zip(ids)
    }

    /// The entries after an ID.
    fn behind(&self, stream: &Stream, id: Id) -> Vec<Expect> {
        let behind = (Bound::Excluded(id), Bound::Unbounded);
        let entries = stream.entries.range(behind).take(self.most);
        entries
            .map(|(&id, texts)| Expect::Is(entry(id, texts)))
            .collect()
    }

    /// Gives new entries to the consumer; none: nothing is done.
    fn deliver(&self, stream: &mut Stream) -> Vec<Expect> {
        let mut group = stream.groups.remove(self.group).expect("it was found");
        let reply = self.behind(stream, group.last);
        let behind = (Bound::Excluded(group.last), Bound::Unbounded);
        for &id in stream
            .entries
            .range(behind)
            .take(self.most)
            .map(|(id, _)| id)
        {
            group.last = id;
            group.read = stream.read_with(group.read, id);
            group.consumers.insert(self.consumer.to_vec());
            if !self.has_no_ack {
                let pending = Pending {
                    consumer: self.consumer.to_vec(),
                    deliveries: 1,
                };
                group.pending.insert(id, pending);
            }
        }
        stream.groups.insert(self.group.to_vec(), group);
        reply
    }

    /// Shows the consumer its pending entries after an ID once more.
    fn repeat(&self, stream: &mut Stream, after: Id) -> Vec<Expect> {
        let group = stream.groups.get_mut(self.group).expect("it was found");
        group.consumers.insert(self.consumer.to_vec());
        let behind = (Bound::Excluded(after), Bound::Unbounded);
        let pending = group.pending.range_mut(behind);
        let own = pending.filter(|(_, pending)| pending.consumer == self.consumer);
        own.take(self.most)
            .map(|(&id, pending)| match stream.entries.get(&id) {
                Some(texts) => {
                    pending.deliveries += 1;
                    Expect::Is(entry(id, texts))
                }
                None => Expect::All(vec![Expect::Is(id.value()), Expect::Null]),
            })
            .collect()
    }
}

/// The reply with the streams that were found, by key; none is null.
fn answer(found: Vec<(Expect, Expect)>) -> Expect {
    match found.is_empty() {
        true => Expect::Null,
        false => Expect::Pairs(found),
    }
}

pub(super) fn xread(call: &mut Call<'_>) -> Expect {
    let reading = Reading::parse(call.args);
    let mut found = Vec::new();
    for (key, id) in reading.pairs() {
        let entries = match find(call, key) {
            Found::OtherType => return wrong_type(),
            Found::Missing => continue,
            Found::Stream(_) if id == b"$" => continue,
            Found::Stream(stream) => reading.behind(stream, exact(id)),
        };
        if !entries.is_empty() {
            found.push((Expect::bulk(key), Expect::All(entries)));
        }
    }
    answer(found)
}

pub(super) fn xreadgroup(call: &mut Call<'_>) -> Expect {
    let reading = Reading::parse(call.args);
    for (key, _) in reading.pairs() {
        match find(call, key) {
            Found::Stream(stream) if stream.groups.contains_key(reading.group) => {}
            Found::Stream(_) | Found::Missing => return no_group(),
            Found::OtherType => return wrong_type(),
        }
    }
    let mut found = Vec::new();
    for (key, id) in reading.pairs() {
        let is_new = id == b">";
        let entries = change(call, key, |stream| match is_new {
            true => reading.deliver(stream),
            false => reading.repeat(stream, exact(id)),
        });
        if let Found::Stream(entries) = entries
            && !(is_new && entries.is_empty())
        {
            found.push((Expect::bulk(key), Expect::All(entries)));
        }
    }
    answer(found)
}
