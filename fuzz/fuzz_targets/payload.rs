//! Any bytes as the value of a RESTORE: nothing panics or takes memory that their length does not justify.
//! A value of any type that is accepted survives DUMP and RESTORE.

#![no_main]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use keyspace::collection::cell::Cell;
use keyspace::collection::run::Item;
use keyspace::collection::sorted::scored;
use keyspace::collection::stream::head::HeadBuffer;
use keyspace::collection::stream::{Content, EntryBuffer, Head, Id, StreamEntry};
use keyspace::{Keyspace, Kind, Options};
use libfuzzer_sys::fuzz_target;
use rdb::packed::ListpackBuilder;
use rdb::{
    Attributes, Collection, Element, Payload, StreamGroup, StreamGroups, StreamId, StreamPart, StreamState,
    StreamValue, Typed, TypedReader, Writer, dump_string, lzf,
};

/// Values of fields, and when they expire.
type Fields = BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>;

#[derive(Debug, PartialEq)]
enum Value {
    String(Vec<u8>),
    Hash(Fields),
    List(Vec<Vec<u8>>),
    Set(BTreeSet<Vec<u8>>),
    /// Members and the bits of their scores.
    SortedSet(BTreeMap<Vec<u8>, u64>),
    Stream(Stream),
}

#[derive(Debug, PartialEq)]
struct Stream {
    entries: BTreeMap<StreamId, Vec<Vec<u8>>>,
    state: StreamState,
    groups: Vec<StreamGroup>,
}

/// Makes collections; those beyond 64 bytes are trees.
fn keyspace() -> &'static Keyspace {
    static KEYSPACE: OnceLock<Keyspace> = OnceLock::new();
    KEYSPACE.get_or_init(|| {
        let keyspace = Keyspace::new(&Options {
            databases: 1,
            workers: 1,
            shards: 1,
            seed: 1,
            ticks: || 0,
            charge: |_| (),
        });
        keyspace.set_small_bytes(64);
        keyspace
    })
}

/// The value of a payload, as the server reads it.
fn read(payload: &Payload<'_>, most: usize) -> Option<Value> {
    let mut reader = payload.read();
    let value = match reader.next().ok()?? {
        Typed::Item(rdb::Item::Entry(entry)) => {
            assert!(entry.value.len() <= most);
            Value::String(std::mem::take(entry.value))
        }
        Typed::Begin { kind: Collection::Set, .. } => {
            let (mut builder, mut members) = (keyspace().builder(Kind::Set, b"key"), BTreeSet::new());
            while let Typed::Element(Element::String(member)) = reader.next().ok()?? {
                assert!(member.len() <= most && members.len() <= most);
                let is_new = builder.push(&Item::single(Cell::of(member))).is_ok();
                assert_eq!(is_new, members.insert(member.to_vec()));
                if !is_new {
                    return None;
                }
            }
            assert_eq!(builder.len(), members.len() as u64);
            Value::Set(members)
        }
        Typed::Begin { kind: Collection::List, .. } => {
            let (mut builder, mut elements) = (keyspace().builder(Kind::List, b"key"), Vec::new());
            while let Typed::Element(Element::String(element)) = reader.next().ok()?? {
                assert!(element.len() <= most && elements.len() <= most);
                assert!(builder.push(&Item::single(Cell::of(element))).is_ok());
                elements.push(element.to_vec());
            }
            assert_eq!(builder.len(), elements.len() as u64);
            if elements.is_empty() {
                return None;
            }
            Value::List(elements)
        }
        Typed::Begin { kind: Collection::SortedSet, .. } => {
            let (mut builder, mut scores) = (keyspace().builder(Kind::SortedSet, b"key"), BTreeMap::new());
            while let Typed::Element(Element::Member { member, score }) = reader.next().ok()?? {
                assert!(member.len() <= most && scores.len() <= most);
                let is_new = builder.push(&scored(Cell::of(member), score, &mut [0; 8])).is_ok();
                assert_eq!(is_new, scores.insert(member.to_vec(), score.to_bits()).is_none());
                if !is_new {
                    return None;
                }
            }
            assert_eq!(builder.len(), scores.len() as u64);
            if scores.is_empty() {
                return None;
            }
            Value::SortedSet(scores)
        }
        Typed::Begin { kind: Collection::Stream, .. } => Value::Stream(read_stream(&mut reader, most)?),
        Typed::Begin { kind: Collection::Hash, .. } => {
            let (mut builder, mut fields) = (keyspace().builder(Kind::Hash, b"key"), Fields::new());
            while let Typed::Element(Element::Field { field, value, expiry_ms }) = reader.next().ok()?? {
                assert!(field.len() <= most && value.len() <= most && fields.len() <= most);
                let item = Item::pair(Cell::of(field), Cell::of(value)).with_expiry(expiry_ms);
                let is_new = builder.push(&item).is_ok();
                let before = fields.insert(field.to_vec(), (value.to_vec(), expiry_ms));
                assert_eq!(is_new, before.is_none());
                if !is_new {
                    return None;
                }
            }
            assert_eq!(builder.len(), fields.len() as u64);
            Value::Hash(fields)
        }
        _ => return None,
    };
    matches!(reader.next(), Ok(None)).then_some(value)
}

/// A stream to its end.
fn read_stream(reader: &mut TypedReader<&[u8]>, most: usize) -> Option<Stream> {
    let (mut builder, mut entries) = (keyspace().builder(Kind::Stream, b"key"), BTreeMap::new());
    let (mut groups, mut state) = (StreamGroups::default(), None);
    let (mut content, mut base, mut bytes) = (Content::default(), None, 0);
    while let Typed::Element(Element::Stream(part)) = reader.next().ok()?? {
        groups.take(&part).ok()?;
        match part {
            StreamPart::Entry { id, fields } => {
                let base = *base.get_or_insert_with(|| {
                    let head = Head::new(id.ms);
                    assert!(builder.push(&head.item(&mut HeadBuffer::default())).is_ok());
                    head.base
                });
                content.begin(None);
                fields.iter().for_each(|text| content.push(Cell::of(text)));
                let entry = StreamEntry { id: Id { ms: id.ms, seq: id.seq }, content: content.bytes() };
                assert!(builder.push(&entry.item(base, &mut EntryBuffer::default())).is_ok());
                bytes += fields.iter().map(<[u8]>::len).sum::<usize>();
                let texts = fields.iter().map(<[u8]>::to_vec).collect();
                assert_eq!(entries.insert(id, texts), None);
                assert!(entries.len() <= most);
            }
            StreamPart::State(its) => {
                assert_eq!(its.len, entries.len() as u64);
                state = Some(its);
            }
            _ => {}
        }
    }
    groups.end().ok()?;
    // Names of a node count for each of its entries.
    assert!(bytes <= most.saturating_mul(most));
    Some(Stream { entries, state: state?, groups: groups.groups().to_vec() })
}

/// The payload of a value; `packs` a hash if that can be.
fn dump(value: &Value, packs: bool) -> std::io::Result<Vec<u8>> {
    let fields = match value {
        Value::String(bytes) => return Ok(dump_string(bytes, packs)),
        Value::Hash(fields) => fields,
        Value::List(elements) => return dump_list(elements, packs),
        Value::Set(members) => return dump_set(members, packs),
        Value::SortedSet(scores) => return dump_scores(scores, packs),
        Value::Stream(_) => unreachable!("it is written from its payload"),
    };
    let mut writer = Writer::payload(0, packs);
    let (attributes, count) = (Attributes::default(), fields.len() as u64);
    let first = fields.values().filter_map(|&(_, expiry)| expiry).min();
    if first.is_none() && (packs || fields.is_empty()) {
        let mut listpack = ListpackBuilder::default();
        for (field, (value, _)) in fields {
            listpack.push(field);
            listpack.push(value);
        }
        writer.hash(b"", &mut listpack, attributes)?;
        return Ok(writer.end_payload());
    }
    match first {
        Some(first) => writer.begin_timed(b"", count, first, attributes)?,
        None => writer.begin(b"", Collection::Hash, count, attributes)?,
    }
    for (field, &(ref value, expiry_ms)) in fields {
        writer.element(Element::Field { field, value, expiry_ms })?;
    }
    writer.end()?;
    Ok(writer.end_payload())
}

/// The payload of a list, which has elements.
fn dump_list(elements: &[Vec<u8>], packs: bool) -> std::io::Result<Vec<u8>> {
    let mut writer = Writer::payload(0, packs);
    writer.begin(b"", Collection::List, elements.len() as u64, Attributes::default())?;
    for element in elements {
        writer.element(Element::String(element))?;
    }
    writer.end()?;
    Ok(writer.end_payload())
}

/// The payload of a sorted set, which has members.
fn dump_scores(scores: &BTreeMap<Vec<u8>, u64>, packs: bool) -> std::io::Result<Vec<u8>> {
    let mut writer = Writer::payload(0, packs);
    writer.begin(b"", Collection::SortedSet, scores.len() as u64, Attributes::default())?;
    for (member, &score) in scores {
        writer.element(Element::Member { member, score: f64::from_bits(score) })?;
    }
    writer.end()?;
    Ok(writer.end_payload())
}

/// The payload of a set; `packs` one of integers.
fn dump_set(members: &BTreeSet<Vec<u8>>, packs: bool) -> std::io::Result<Vec<u8>> {
    let mut writer = Writer::payload(0, packs);
    let attributes = Attributes::default();
    let integers = members.iter().map(|member| resp::parse_i64(member));
    match integers.collect::<Option<Vec<_>>>() {
        Some(mut integers) if packs || members.is_empty() => {
            integers.sort_unstable();
            writer.integers(b"", &integers, attributes)?;
        }
        _ => {
            writer.begin(b"", Collection::Set, members.len() as u64, attributes)?;
            for member in members {
                writer.element(Element::String(member))?;
            }
            writer.end()?;
        }
    }
    Ok(writer.end_payload())
}

/// A stream that was read is written anew, from its payload.
fn check_stream(payload: Payload<'_>, mut stream: Stream) {
    let value = StreamValue::read(payload).expect("it was read before");
    // The first form does not say it, and other forms may say anything.
    stream.state.first = stream.entries.keys().next().copied().unwrap_or_default();
    for compresses in [false, true] {
        let mut writer = Writer::payload(0, compresses);
        writer.stream(b"", &value, Attributes::default()).expect("a vector takes everything");
        let bytes = writer.end_payload();
        let payload = Payload::check(&bytes).expect("it was just made");
        let Some(Value::Stream(again)) = read(&payload, usize::MAX) else {
            panic!("it is no stream any more");
        };
        assert_eq!(again, stream);
    }
    let alone = value.groups().payload(value.state());
    let alone = Payload::check(&alone).expect("it was just made");
    let alone = StreamValue::read(alone).expect("it was just made");
    assert_eq!(alone.groups().groups(), stream.groups);
}

/// Texts of libraries are no longer than the payload says, and come back from one that has them.
fn check_libraries(payload: &Payload<'_>) {
    let Ok(texts) = payload.libraries(1 << 20) else {
        return;
    };
    let bytes: usize = texts.iter().map(Vec::len).sum();
    assert!(payload.libraries_len() >= bytes as u64);
    let again = rdb::dump_libraries(texts.iter().map(Vec::as_slice), true);
    let again = Payload::check(&again).expect("it was just made");
    assert_eq!(again.libraries(bytes).as_ref(), Ok(&texts));
}

fuzz_target!(|data: &[u8]| {
    let most = lzf::expanded_max(data.len()).max(20);
    // Nearly no input ends with the right checksum.
    let payload = Payload::of_value(data, 12);
    let claimed = payload.claimed_string_len();
    assert!(claimed.is_none_or(|len| len <= most as u64));
    check_libraries(&payload);
    let Some(value) = read(&payload, most) else {
        return;
    };
    if let Value::Stream(stream) = value {
        return check_stream(payload, stream);
    }
    if let Value::String(bytes) = &value {
        assert!(claimed >= Some(bytes.len() as u64));
    }
    for packs in [false, true] {
        let bytes = dump(&value, packs).expect("a vector takes everything");
        let payload = Payload::check(&bytes).expect("it was just made");
        assert_eq!(read(&payload, usize::MAX).as_ref(), Some(&value));
    }
});
