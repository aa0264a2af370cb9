//! Payloads of streams, with groups, consumers and pending entries, also of entries that are gone.

use std::sync::Arc;

use rdb::packed::ListpackBuilder;
use rdb::{Attributes, StreamId, StreamState, Writer};

use crate::torture::streams::{Group, Id, Pending, Stream};

/// The most entries of a node.
const NODE_ENTRIES: usize = 40;
/// A moment of the past (Unix, ms).
const PAST: u64 = 1_700_000_000_000;

/// A text that is an integer, or bytes.
fn text(random: &mut fastrand::Rng) -> Vec<u8> {
    match random.u8(..3) {
        0 => random.i32(..).to_string().into_bytes(),
        _ => (0..random.usize(..80)).map(|_| random.u8(..)).collect(),
    }
}

/// An ID of one of the entries, or one that is none.
fn any_id(random: &mut fastrand::Rng, stream: &Stream, ms: u64) -> Id {
    let at = random.usize(..stream.entries.len().max(1));
    let free = Id {
        ms,
        seq: random.u64(..300),
    };
    let is_its = random.u8(..4) > 0;
    let its = stream.entries.keys().nth(at).filter(|_| is_its);
    its.copied().unwrap_or(free)
}

fn group(random: &mut fastrand::Rng, stream: &Stream, ms: u64) -> Group {
    let mut group = Group {
        last: any_id(random, stream, ms),
        read: random.bool().then(|| random.u64(..=stream.added)),
        ..Group::default()
    };
    let consumers = random.u32(..4);
    let name = |number: u32| format!("consumer {number}").into_bytes();
    group.consumers.extend((0..consumers).map(name));
    for _ in 0..random.usize(..40) * usize::from(consumers > 0) {
        let pending = Pending {
            consumer: name(random.u32(..consumers)),
            deliveries: random.u64(1..5),
        };
        group.pending.insert(any_id(random, stream, ms), pending);
    }
    group
}

/// The stream of a seed, with so many entries up to a time.
pub(super) fn made(entries: usize, ms: u64, seed: u32) -> Stream {
    let mut random = fastrand::Rng::with_seed(seed.into());
    let random = &mut random;
    let mut stream = Stream::default();
    let mut id = Id {
        ms: ms.saturating_sub(random.u64(1..3)).max(1),
        seq: random.u64(..4),
    };
    for _ in 0..entries {
        let names: &[&[u8]] = match random.u8(..4) {
            0 => &[b"f"],
            1 => &[b"1", b"two"],
            _ => &[b"temperature", b"humidity"],
        };
        let texts = names.iter().flat_map(|name| [name.to_vec(), text(random)]);
        stream.entries.insert(id, Arc::new(texts.collect()));
        id.seq += random.u64(1..4);
        if id.ms < ms && random.u8(..30) == 0 {
            (id.ms, id.seq) = (id.ms + 1, 0);
        }
    }
    stream.last = id;
    stream.added = entries as u64 + random.u64(..3) * random.u64(..100);
    if random.bool() {
        stream.deleted = any_id(random, &stream, id.ms).min(id);
    }
    for number in 0..random.u32(..3) {
        let name = format!("g{number}").into_bytes();
        let group = group(random, &stream, ms);
        stream.groups.insert(name, group);
    }
    stream
}

fn file_id(id: Id) -> StreamId {
    StreamId {
        ms: id.ms,
        seq: id.seq,
    }
}

/// The listpack of some entries; a deleted one is among them at times.
fn node(entries: &[(Id, &[Vec<u8>])], has_deleted: bool) -> Vec<u8> {
    let mut listpack = ListpackBuilder::default();
    let (first, texts) = entries[0];
    listpack.push_number(entries.len() as i64);
    listpack.push_number(i64::from(has_deleted));
    let names: Vec<&Vec<u8>> = texts.iter().step_by(2).collect();
    listpack.push_number(names.len() as i64);
    names.iter().for_each(|name| listpack.push(name));
    listpack.push_number(0);
    let mut push = |flags: i64, id: Id, texts: &[Vec<u8>]| {
        let has_same = texts.iter().step_by(2).eq(names.iter().copied());
        let pairs = (texts.len() / 2) as i64;
        listpack.push_number(flags + if has_same { 2 } else { 0 });
        listpack.push_number(id.ms.wrapping_sub(first.ms) as i64);
        listpack.push_number(id.seq.wrapping_sub(first.seq) as i64);
        if has_same {
            let values = texts.iter().skip(1).step_by(2);
            values.for_each(|value| listpack.push(value));
            listpack.push_number(3 + pairs);
        } else {
            listpack.push_number(pairs);
            texts.iter().for_each(|text| listpack.push(text));
            listpack.push_number(4 + 2 * pairs);
        }
    };
    for (id, texts) in entries {
        push(0, *id, texts);
    }
    if has_deleted {
        let (last, texts) = entries[entries.len() - 1];
        let gone = Id {
            seq: last.seq + 1,
            ..last
        };
        push(1, gone, texts);
    }
    listpack.listpack().to_vec()
}

/// Its payload, in which nodes may still have deleted entries.
pub(super) fn written(stream: &Stream, seed: u32) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed.into());
    let entries = stream.entries.iter();
    let entries: Vec<(Id, &[Vec<u8>])> = entries.map(|(&id, texts)| (id, &texts[..])).collect();
    let nodes: Vec<_> = entries.chunks(random.usize(1..=NODE_ENTRIES)).collect();
    let mut writer = Writer::payload(0, random.bool());
    let mut write = || -> std::io::Result<()> {
        writer.begin_stream(b"", nodes.len() as u64, Attributes::default())?;
        for entries in &nodes {
            let listpack = node(entries, random.u8(..4) == 0);
            writer.stream_node(file_id(entries[0].0), &listpack)?;
        }
        let state = StreamState {
            len: stream.entries.len() as u64,
            last: file_id(stream.last),
            first: file_id(stream.first()),
            deleted: file_id(stream.deleted),
            added: stream.added,
        };
        writer.stream_state(&state, stream.groups.len() as u64)?;
        for (name, group) in &stream.groups {
            let pending = group.pending.len() as u64;
            writer.stream_group(name, file_id(group.last), group.read, pending)?;
            for (&id, pending) in &group.pending {
                let ago = random.u64(..PAST);
                writer.stream_pending(file_id(id), PAST - ago, pending.deliveries)?;
            }
            writer.stream_consumers(group.consumers.len() as u64)?;
            for name in &group.consumers {
                let own = group.pending_of(name);
                let own: Vec<StreamId> = own.map(|(id, _)| file_id(id)).collect();
                writer.stream_consumer(name, PAST, own.len() as u64)?;
                own.iter().try_for_each(|&id| writer.stream_owned(id))?;
            }
        }
        Ok(())
    };
    write().expect("a vector takes everything");
    writer.end_payload()
}
