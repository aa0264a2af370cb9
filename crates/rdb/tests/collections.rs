//! Collections against the distribution's redis-server: what it saves is read here, what is written here it
//! loads as the same, and of what no server writes any more, or nobody should, it reads what is read here.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use crc::{CRC_64_REDIS, Crc};
use rdb::{Attributes, Collection, Element, Item, Options, Typed, TypedReader, Writer};
use server::{Redis, Scratch};

mod forms;
mod server;

/// An element as text: what tells it from others, and what belongs to it.
type Pair = (Vec<u8>, Vec<u8>);

/// A value of a key.
#[derive(Clone, Debug, PartialEq)]
struct Value {
    kind: Collection,
    elements: Vec<Pair>,
    expiry: Option<i64>,
}

type Keys = BTreeMap<Vec<u8>, Value>;

fn pair_of(element: Element<'_>) -> Pair {
    match element {
        Element::String(string) => (string.to_vec(), Vec::new()),
        Element::Member { member, score } => {
            (member.to_vec(), score.to_bits().to_be_bytes().into())
        }
        Element::Field { field, value, .. } => (field.to_vec(), value.to_vec()),
        Element::Stream(part) => (format!("{part:?}").into_bytes(), Vec::new()),
    }
}

fn element_of(kind: Collection, (one, other): &Pair) -> Element<'_> {
    match kind {
        Collection::List | Collection::Set => Element::String(one),
        Collection::SortedSet => Element::Member {
            member: one,
            score: f64::from_bits(u64::from_be_bytes(
                other[..].try_into().expect("eight bytes"),
            )),
        },
        Collection::Hash => Element::Field {
            field: one,
            value: other,
            expiry_ms: None,
        },
        Collection::Stream => unreachable!("streams are written in their own way"),
    }
}

fn try_read(input: impl std::io::Read) -> Result<Keys, rdb::Error> {
    try_read_until(input, false)
}

/// The same; up to the end of the first collection, if `is_alone`.
fn try_read_until(input: impl std::io::Read, is_alone: bool) -> Result<Keys, rdb::Error> {
    let mut reader = TypedReader::new(input, true)?;
    let (mut keys, mut open) = (Keys::new(), None);
    while let Some(part) = reader.next()? {
        match part {
            Typed::Begin {
                key,
                kind,
                attributes,
                ..
            } => {
                let value = Value {
                    kind,
                    elements: Vec::new(),
                    expiry: attributes.expiry_ms,
                };
                open = Some((key.to_vec(), value));
            }
            Typed::Element(element) => {
                let (_, value) = open.as_mut().expect("it was begun");
                value.elements.push(pair_of(element));
            }
            Typed::End => {
                let (key, mut value) = open.take().expect("it was begun");
                if value.kind != Collection::List {
                    value.elements.sort_unstable();
                }
                assert!(keys.insert(key, value).is_none());
                if is_alone {
                    return Ok(keys);
                }
            }
            Typed::Item(Item::Entry(_) | Item::Unsupported(_)) => {
                panic!("there are only collections")
            }
            Typed::Item(_) => {}
        }
    }
    Ok(keys)
}

fn read(path: &Path) -> Keys {
    let file = BufReader::new(File::open(path).expect("it was saved"));
    try_read(file).unwrap_or_else(|error| panic!("{error}"))
}

fn write(path: &Path, keys: &Keys) {
    let save = || -> std::io::Result<()> {
        let mut writer = Writer::new(File::create(path)?, Options::default())?;
        writer.database(0)?;
        writer.sizes(keys.len() as u64, 0)?;
        for (key, value) in keys {
            let attributes = Attributes {
                expiry_ms: value.expiry,
                ..Attributes::default()
            };
            writer.begin(key, value.kind, value.elements.len() as u64, attributes)?;
            for pair in &value.elements {
                writer.element(element_of(value.kind, pair))?;
            }
            writer.end()?;
        }
        writer.finish()?.sync_all()
    };
    save().expect("there is room");
}

/// A time that no test lives to see.
const LATER: i64 = 4_000_000_000_000;

/// A score, the more digits the better.
fn score(number: usize) -> f64 {
    match number % 7 {
        0 => number as f64,
        1 => -(number as f64) / 3.0,
        2 => f64::INFINITY,
        3 => f64::NEG_INFINITY,
        4 => 1e300 * number as f64,
        5 => 5e-324 * number as f64,
        _ => 0.1 + number as f64,
    }
}

/// Strings of every shape, all different; in some a number.
fn strings(count: usize, len: usize, random: &mut fastrand::Rng) -> Vec<Vec<u8>> {
    let mut strings: Vec<Vec<u8>> = (0..count)
        .map(|number| match number % 4 {
            0 => (number as i64 - 7).to_string().into_bytes(),
            1 => format!("{number} {}", "text ".repeat(len / 5)).into_bytes(),
            2 => [
                &(number as u32).to_be_bytes()[..],
                &vec![random.u8(..); len],
            ]
            .concat(),
            _ => (random.i64(..).wrapping_shr(number as u32 % 64))
                .to_string()
                .into_bytes(),
        })
        .collect();
    strings.sort_unstable();
    strings.dedup();
    random.shuffle(&mut strings);
    strings
}

/// Collections of every kind, small and large, with short strings and long ones.
fn sample() -> Keys {
    let mut random = fastrand::Rng::with_seed(3);
    let mut keys = Keys::new();
    for (count, len) in [
        (1, 0),
        (4, 3),
        (40, 60),
        (100, 10),
        (100, 70),
        (3, 20_000),
        (3000, 20),
    ] {
        for kind in [
            Collection::List,
            Collection::Set,
            Collection::SortedSet,
            Collection::Hash,
        ] {
            let strings = strings(count, len, &mut random);
            let others = strings.iter().rev().cloned();
            let mut elements: Vec<Pair> = strings.iter().cloned().zip(others).collect();
            for (number, (_, other)) in elements.iter_mut().enumerate() {
                match kind {
                    Collection::List | Collection::Set => other.clear(),
                    Collection::SortedSet => *other = score(number).to_bits().to_be_bytes().into(),
                    Collection::Hash | Collection::Stream => {}
                }
            }
            if kind != Collection::List {
                elements.sort_unstable();
            }
            let key = format!("{kind:?}:{count}:{len}").into_bytes();
            let expiry = (count % 3 == 1).then_some(LATER + count as i64);
            keys.insert(
                key,
                Value {
                    kind,
                    elements,
                    expiry,
                },
            );
        }
    }
    for (count, far) in [(5, 10), (500, 20_000), (400, i64::MAX / 500), (600, 7)] {
        let numbers = (0..count).map(|number| (number * far - 1000).to_string().into_bytes());
        let mut elements: Vec<Pair> = numbers.map(|number| (number, Vec::new())).collect();
        elements.sort_unstable();
        let value = Value {
            kind: Collection::Set,
            elements,
            expiry: None,
        };
        keys.insert(format!("integers:{count}").into_bytes(), value);
    }
    keys
}

/// A score so that the server reads the same.
fn digits(bits: &[u8]) -> Vec<u8> {
    let score = f64::from_bits(u64::from_be_bytes(bits.try_into().expect("eight bytes")));
    format!("{score:e}").into_bytes()
}

fn make(redis: &mut Redis, keys: &Keys) {
    for (key, value) in keys {
        for pairs in value.elements.chunks(100) {
            let mut request: Vec<Vec<u8>> = vec![match value.kind {
                Collection::List => b"RPUSH".to_vec(),
                Collection::Set => b"SADD".to_vec(),
                Collection::SortedSet => b"ZADD".to_vec(),
                Collection::Hash => b"HSET".to_vec(),
                Collection::Stream => unreachable!("there are none"),
            }];
            request.push(key.clone());
            for (one, other) in pairs {
                match value.kind {
                    Collection::List | Collection::Set => request.push(one.clone()),
                    Collection::SortedSet => request.extend([digits(other), one.clone()]),
                    Collection::Hash => request.extend([one.clone(), other.clone()]),
                    Collection::Stream => {}
                }
            }
            let request: Vec<&[u8]> = request.iter().map(Vec::as_slice).collect();
            let reply = redis.call(&request);
            assert!(reply.starts_with(b":"), "{}", reply.escape_ascii());
        }
        if let Some(at) = value.expiry {
            let at = at.to_string();
            assert_eq!(redis.call(&[b"PEXPIREAT", key, at.as_bytes()]), b":1");
        }
    }
}

/// The encodings that a server's keys have.
fn encodings(redis: &mut Redis, keys: &Keys) -> Vec<String> {
    let encodings = keys
        .keys()
        .map(|key| redis.call(&[b"OBJECT", b"ENCODING", key]));
    let mut encodings: Vec<String> = encodings
        .map(|encoding| String::from_utf8(encoding).expect("a word"))
        .collect();
    encodings.sort_unstable();
    encodings.dedup();
    encodings
}

#[test]
fn what_redis_saves_is_read_and_what_is_written_it_loads_as_the_same() {
    let keys = sample();
    for options in [
        &[][..],
        &["--rdbcompression", "no"],
        &[
            "--list-max-listpack-size",
            "7",
            "--list-compress-depth",
            "1",
        ],
        // Everything small has the form of what is large, and the other way round.
        &[
            "--hash-max-listpack-entries",
            "0",
            "--zset-max-listpack-entries",
            "0",
            "--set-max-intset-entries",
            "0",
            "--list-max-listpack-size",
            "1",
        ],
        &[
            "--hash-max-listpack-entries",
            "9999",
            "--hash-max-listpack-value",
            "99999",
            "--zset-max-listpack-entries",
            "9999",
            "--zset-max-listpack-value",
            "99999",
            "--set-max-intset-entries",
            "9999",
            "--list-max-listpack-size",
            "9999",
        ],
    ] {
        let scratch = Scratch::new();
        let mut redis = Redis::start(&scratch.0, options);
        make(&mut redis, &keys);
        let before = encodings(&mut redis, &keys);
        assert!(!options.is_empty() || before.len() == 5, "{before:?}");
        assert_eq!(redis.ask("SAVE"), "+OK");
        let digest = redis.ask("DEBUG DIGEST");
        drop(redis);
        let found = read(&scratch.file());
        assert!(found == keys, "{options:?}");

        let other = Scratch::new();
        write(&other.file(), &keys);
        assert!(read(&other.file()) == keys);
        let mut redis = Redis::start(&other.0, options);
        assert_eq!(redis.ask("DBSIZE"), format!(":{}", keys.len()));
        assert_eq!(redis.ask("DEBUG DIGEST"), digest, "{options:?}");
        for (key, value) in &keys {
            let expiry = value.expiry.unwrap_or(-1);
            let told = redis.call(&[b"PEXPIRETIME", key]);
            assert_eq!(told, format!(":{expiry}").into_bytes());
        }
    }
}

/// A string of a file.
fn string(bytes: &[u8]) -> Vec<u8> {
    let len = (bytes.len() as u32).to_be_bytes();
    [&[0x80][..], &len, bytes].concat()
}

fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = Crc::<u64>::new(&CRC_64_REDIS).checksum(&bytes);
    bytes.extend(checksum.to_le_bytes());
    bytes
}

/// Collections as older servers wrote them, with their types.
fn old_values() -> Vec<(u8, Vec<u8>)> {
    let some = forms::cells(60);
    let (few, even) = (&some[..12], &some[..some.len() / 2 * 2]);
    let mut scored = Vec::new();
    for (number, cell) in some.iter().take(30).enumerate() {
        scored.push(cell.clone());
        scored.push(match number % 3 {
            0 => forms::Cell::Number(number as i64 - 9),
            1 => forms::text(["inf", "-inf", "1.5", "-0.1"][number % 4]),
            _ => forms::text(&format!("{}.25", number * 7)),
        });
    }
    let mut values = Vec::new();
    for is_wide in [false, true] {
        let ziplist = |cells: &[forms::Cell]| string(&forms::ziplist(cells, is_wide));
        let listpack = |cells: &[forms::Cell]| string(&forms::listpack(cells, is_wide));
        values.extend([
            (10, ziplist(&some)),
            (10, ziplist(few)),
            (12, ziplist(&scored)),
            (13, ziplist(even)),
            (
                14,
                [&b"\x03"[..], &ziplist(few), &ziplist(&some), &ziplist(few)].concat(),
            ),
            (16, listpack(even)),
            (17, listpack(&scored)),
            (
                18,
                [
                    &b"\x03\x02"[..],
                    &listpack(few),
                    b"\x01\x03abc\x02",
                    &listpack(&some),
                ]
                .concat(),
            ),
        ]);
    }
    let pairs: Vec<forms::Cell> = even
        .iter()
        .map(|cell| forms::Cell::Text(cell.text()))
        .collect();
    values.extend([
        (9, string(&forms::zipmap(&pairs, 0))),
        (9, string(&forms::zipmap(&pairs[..20], 4))),
        (11, string(&forms::intset(&[-5, 7, 30_000], 2))),
        (11, string(&forms::intset(&[-5, 7, 2_000_000_000], 4))),
        (11, string(&forms::intset(&[i64::MIN, -5, i64::MAX], 8))),
        (1, b"\x03\x01a\xc0\x07\x01a".to_vec()),
        (
            3,
            b"\x04\x01a\x031.5\x01b\xfe\x01c\xff\x01d\x05-1e30".to_vec(),
        ),
    ]);
    values
}

#[test]
fn what_older_servers_wrote_is_read_as_redis_reads_it() {
    let mut file = b"REDIS0010".to_vec();
    for (number, (code, value)) in old_values().into_iter().enumerate() {
        file.push(code);
        file.extend(string(format!("key:{number}").as_bytes()));
        file.extend(value);
    }
    file.push(255);
    let file = with_checksum(file);
    let keys = try_read(&file[..]).unwrap_or_else(|error| panic!("{error}"));
    let (scratch, other) = (Scratch::new(), Scratch::new());
    std::fs::write(scratch.file(), &file).expect("there is room");
    write(&other.file(), &keys);
    let digests = [scratch, other].map(|scratch| {
        let mut redis = Redis::start(&scratch.0, &["--sanitize-dump-payload", "yes"]);
        assert_eq!(redis.ask("DBSIZE"), format!(":{}", keys.len()));
        redis.ask("DEBUG DIGEST")
    });
    assert_eq!(digests[0], digests[1]);
}

/// Whether no element tells the same as another, and there are some: what the reader leaves to whoever has
/// the whole.
fn is_proper(value: &Value) -> bool {
    let mut names: Vec<&Vec<u8>> = value.elements.iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    count > 0 && (value.kind == Collection::List || names.len() == count)
}

fn has_minus_zero(value: &Value) -> bool {
    let zero = (-0.0_f64).to_bits().to_be_bytes();
    value.kind == Collection::SortedSet && value.elements.iter().any(|(_, score)| *score == zero)
}

/// Whether something is wrong that Redis lets pass, and no server writes: of a score it takes the digits in
/// front, whatever follows; a length behind an entry may go on into the entry, if there are zeroes; and the
/// encoding of a string that stands for a length is that length.
fn is_only_here(error: &str) -> bool {
    let score = "a score should be here";
    let length = "is an entry of another length than it says behind";
    let encoding = "but it is a string of encoding";
    [score, length, encoding]
        .iter()
        .any(|known| error.contains(known))
}

/// Values with changed bytes: what is refused here, Redis refuses too or could, and what it takes is taken
/// for the same.
#[test]
fn what_was_changed_is_judged_as_redis_judges_it() {
    let mut random = fastrand::Rng::with_seed(5);
    let scratch = Scratch::new();
    let mut redis = Redis::start(&scratch.0, &["--sanitize-dump-payload", "yes"]);
    let values = old_values();
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..4000 {
        let (code, mut value) = values[random.usize(..values.len())].clone();
        for _ in 0..random.usize(1..3) {
            // Mostly among the lengths at the beginning, and the end.
            let most = value.len();
            let at = match random.u8(..4) {
                0 => random.usize(..most.min(40)),
                1 => most - 1 - random.usize(..most.min(12)),
                _ => random.usize(..most),
            };
            value[at] = match random.u8(..3) {
                0 => random.u8(..),
                1 => value[at].wrapping_add(1),
                _ => value[at] ^ 1 << random.u8(..8),
            };
        }
        let payload = with_checksum([&[code][..], &value, &10_u16.to_le_bytes()].concat());
        redis.ask("FLUSHALL");
        let reply = redis.call(&[b"RESTORE", b"k", b"0", &payload]);
        let theirs = reply == b"+OK";
        // RESTORE reads on where a value ends too late, and does not look at what is left if it ends too
        // soon.
        let file = [&b"REDIS0010"[..], &[code], b"\x01k", &payload[1..]].concat();
        let ours = try_read_until(&file[..], true);
        let what = || {
            format!(
                "type {code}, {}: {reply:?} and {ours:?}",
                value.escape_ascii()
            )
        };
        match &ours {
            // A zero with a sign loses it if it is added anew.
            Ok(keys) if theirs && has_minus_zero(&keys[&b"k"[..]]) => {}
            Ok(keys) if theirs => {
                taken += 1;
                let digest = redis.ask("DEBUG DIGEST");
                redis.ask("FLUSHALL");
                make(&mut redis, keys);
                assert_eq!(redis.ask("DEBUG DIGEST"), digest, "{}", what());
            }
            Ok(keys) => assert!(!is_proper(&keys[&b"k"[..]]), "{}", what()),
            // Of a score Redis takes the digits in front, whatever follows; and a length behind an entry may
            // go on into the entry, if there are zeroes.
            Err(error) if theirs && is_only_here(&error.to_string()) => {}
            Err(_) if theirs => panic!("{}", what()),
            Err(_) => refused += 1,
        }
    }
    assert!(taken > 100 && refused > 100, "{taken} and {refused}");
}
