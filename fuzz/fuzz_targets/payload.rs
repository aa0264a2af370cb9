//! Any bytes as the value of a RESTORE: nothing panics or takes memory that their length does not justify.
//! A value of any type that is accepted survives DUMP and RESTORE.

#![no_main]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use keyspace::collection::cell::Cell;
use keyspace::collection::run::Item;
use keyspace::collection::sorted::scored;
use keyspace::{Keyspace, Kind, Options};
use libfuzzer_sys::fuzz_target;
use rdb::packed::ListpackBuilder;
use rdb::{Attributes, Collection, Element, Payload, Typed, Writer, dump_string, lzf};

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
    reader.only(&[Collection::Hash, Collection::Set, Collection::SortedSet, Collection::List]);
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
        Typed::Begin { .. } => {
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

/// The payload of a value; `packs` a hash if that can be.
fn dump(value: &Value, packs: bool) -> std::io::Result<Vec<u8>> {
    let fields = match value {
        Value::String(bytes) => return Ok(dump_string(bytes, packs)),
        Value::Hash(fields) => fields,
        Value::List(elements) => return dump_list(elements, packs),
        Value::Set(members) => return dump_set(members, packs),
        Value::SortedSet(scores) => return dump_scores(scores, packs),
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

fuzz_target!(|data: &[u8]| {
    let most = lzf::expanded_max(data.len()).max(20);
    // Nearly no input ends with the right checksum.
    let payload = Payload::of_value(data, 12);
    let claimed = payload.claimed_string_len();
    assert!(claimed.is_none_or(|len| len <= most as u64));
    let Some(value) = read(&payload, most) else {
        return;
    };
    if let Value::String(bytes) = &value {
        assert!(claimed >= Some(bytes.len() as u64));
    }
    for packs in [false, true] {
        let bytes = dump(&value, packs).expect("a vector takes everything");
        let payload = Payload::check(&bytes).expect("it was just made");
        assert_eq!(read(&payload, usize::MAX).as_ref(), Some(&value));
    }
});
