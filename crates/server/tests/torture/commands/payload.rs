//! Payloads: what DUMP gives and RESTORE takes. Those of hashes and streams are made from a seed; any is
//! read back.

mod streams;

use std::sync::Arc;

use rdb::packed::ListpackBuilder;
use rdb::{Attributes, Collection, Element, Item, Payload, Typed, Writer};

use crate::torture::script::Arg;
use crate::torture::streams::Parts;
use crate::torture::values::{Data, Elements, Fields, Members, Scores};

/// The payload of a short string.
const STRING: &[u8] = b"\x00\x0brestored170\x0a\x00\x1f\x0a<qr;6Q";
/// The most fields of a listpack.
const PACKED_FIELDS: usize = 64;
/// Bytes of a value, of few fields and of many.
const VALUE_BYTES: usize = 60;
const MANY_VALUE_BYTES: usize = 200;

/// What stands in the place of a word of a shape, if it is a payload.
pub(crate) fn word(random: &mut fastrand::Rng, token: &str) -> Option<Arg> {
    let seed = random.u32(..);
    match token {
        "payload" => Some(Arg::word(STRING)),
        "hash" => Some(Arg::Payload {
            fields: random.usize(1..24),
            seed,
        }),
        "hashmany" => Some(Arg::Payload {
            fields: random.usize(24..400),
            seed,
        }),
        _ => None,
    }
}

/// The payload of a hash with so many fields, which follow from a seed. Up to [`PACKED_FIELDS`] fields may be
/// a listpack.
pub(crate) fn of_hash(fields: usize, seed: u32) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed.into());
    let longest = match fields {
        ..=PACKED_FIELDS => VALUE_BYTES,
        _ => MANY_VALUE_BYTES,
    };
    let pairs: Vec<(String, Vec<u8>)> = (0..fields)
        .map(|number| {
            let value = match random.u8(..4) {
                0 => random.i32(..).to_string().into_bytes(),
                1 => vec![b'r'; random.usize(..longest)],
                _ => (0..random.usize(..longest))
                    .map(|_| random.u8(..))
                    .collect(),
            };
            (format!("f{number}"), value)
        })
        .collect();
    let mut writer = Writer::payload(fields * longest, random.bool());
    let attributes = Attributes::default();
    let put = if fields <= PACKED_FIELDS && random.bool() {
        let mut listpack = ListpackBuilder::default();
        for (field, value) in &pairs {
            listpack.push(field.as_bytes());
            listpack.push(value);
        }
        writer.hash(b"", &mut listpack, attributes)
    } else {
        let begun = writer.begin(b"", Collection::Hash, fields as u64, attributes);
        let put = pairs.iter().fold(begun, |put, (field, value)| {
            let field = field.as_bytes();
            put.and_then(|()| {
                writer.element(Element::Field {
                    field,
                    value,
                    expiry_ms: None,
                })
            })
        });
        put.and_then(|()| writer.end())
    };
    put.expect("a vector takes everything");
    writer.end_payload()
}

/// The payload of a stream with so many entries up to a time, which follow from a seed.
pub(crate) fn of_stream(entries: usize, ms: u64, seed: u32) -> Vec<u8> {
    streams::written(&streams::made(entries, ms, seed), seed)
}

/// The value that a payload is, if it is one.
pub(crate) fn decode(bytes: &[u8]) -> Option<Data> {
    let payload = Payload::check(bytes)?;
    let mut reader = payload.read();
    let mut fields = Fields::new();
    let (mut string, mut members, mut scores) = (None, Members::new(), Scores::new());
    let (mut elements, mut is_list) = (Elements::new(), false);
    let mut stream: Option<Parts> = None;
    while let Some(part) = reader.next().ok()? {
        match part {
            Typed::Item(Item::Entry(entry)) => string = Some(Data::string(entry.value.to_vec())),
            Typed::Element(Element::Field { field, value, .. }) => {
                // No field comes twice.
                if fields.insert(field.to_vec(), value.to_vec()).is_some() {
                    return None;
                }
            }
            Typed::Element(Element::String(element)) if is_list => {
                elements.push_back(element.to_vec());
            }
            // Nor does a member.
            Typed::Element(Element::String(member)) => {
                if !members.insert(member.to_vec()) {
                    return None;
                }
            }
            Typed::Element(Element::Member { member, score }) => {
                if scores
                    .insert(member.to_vec(), (score * 2.0) as i64)
                    .is_some()
                {
                    return None;
                }
            }
            Typed::Begin {
                kind: Collection::List,
                ..
            } => is_list = true,
            Typed::Begin {
                kind: Collection::Stream,
                ..
            } => stream = Some(Parts::default()),
            Typed::Element(Element::Stream(part)) => stream.as_mut()?.add(part)?,
            Typed::Begin {
                kind: Collection::Hash | Collection::Set | Collection::SortedSet,
                ..
            }
            | Typed::End => {}
            _ => return None,
        }
    }
    let set = (!members.is_empty()).then(|| Data::Set(Arc::new(members)));
    let hash = (!fields.is_empty()).then(|| Data::Hash(Arc::new(fields)));
    let sorted = (!scores.is_empty()).then(|| Data::SortedSet(Arc::new(scores)));
    let list = (!elements.is_empty()).then(|| Data::List(Arc::new(elements)));
    let stream = stream.map(|parts| Data::Stream(Arc::new(parts.stream)));
    string.or(hash).or(set).or(sorted).or(list).or(stream)
}

#[test]
fn payloads_are_what_they_are_made_of() {
    let hash = |fields, seed| decode(&of_hash(fields, seed));
    for seed in 0..50 {
        for fields in [1, 24, 300] {
            let Some(Data::Hash(found)) = hash(fields, seed) else {
                panic!("{fields} fields of seed {seed} are no hash");
            };
            assert_eq!(found.len(), fields);
        }
    }
    assert_eq!(hash(30, 7), hash(30, 7));
    assert_ne!(hash(30, 7), hash(30, 8));
    for seed in 0..300 {
        for entries in [0, 1, 10, 200] {
            let made = Data::Stream(Arc::new(streams::made(entries, 7, seed)));
            assert_eq!(decode(&of_stream(entries, 7, seed)), Some(made));
        }
    }
    assert_eq!(decode(STRING), Some(Data::string(b"restored170".to_vec())));
    assert_eq!(decode(&STRING[1..]), None);
}
