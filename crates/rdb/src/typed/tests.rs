//! Collections in both directions, and against files made by hand.

use std::io::Read;

use crate::format::CHECKSUM;
use crate::{
    Attributes, Collection, Element, Error, Item, Options, Reader, Typed, TypedReader, Writer,
};

use crate::forms::{self, intset, listpack, text, ziplist, zipmap};

/// What a file holds, a line for each part.
fn read(file: impl Read) -> Result<Vec<String>, Error> {
    let mut reader = TypedReader::new(file, true)?;
    let mut lines = Vec::new();
    while let Some(part) = reader.next()? {
        lines.push(match part {
            Typed::Begin {
                key,
                kind,
                claimed,
                attributes,
            } => {
                let expiry = attributes.expiry_ms;
                format!("{} {kind:?} {claimed:?} {expiry:?}", key.escape_ascii())
            }
            Typed::Element(element) => line_of(element),
            Typed::End => "end".to_owned(),
            Typed::Item(Item::Entry(entry)) => {
                format!(
                    "{}={}",
                    entry.key.escape_ascii(),
                    entry.value.escape_ascii()
                )
            }
            Typed::Item(item) => format!("{item:?}"),
        });
    }
    assert!(matches!(reader.next(), Ok(None)), "the end stays the end");
    Ok(lines)
}

fn line_of(element: Element<'_>) -> String {
    match element {
        Element::String(string) => string.escape_ascii().to_string(),
        Element::Member { member, score } => format!("{} {score}", member.escape_ascii()),
        Element::Field {
            field,
            value,
            expiry_ms,
        } => {
            let until = expiry_ms.map_or(String::new(), |at| format!(" until {at}"));
            format!("{}: {}{until}", field.escape_ascii(), value.escape_ascii())
        }
        Element::Stream(part) => format!("{part:?}"),
    }
}

/// A file of version 12 of a key "k" with values of these types, and a string behind each.
fn file(values: &[(u8, &[u8])]) -> Vec<u8> {
    let mut file = b"REDIS0012".to_vec();
    for (code, value) in values {
        file.push(*code);
        file.extend(b"\x01k");
        file.extend_from_slice(value);
        file.extend(b"\x00\x01s\x01v");
    }
    file.push(255);
    let checksum = CHECKSUM.checksum(&file);
    file.extend(checksum.to_le_bytes());
    file
}

/// A string of a file, with a length of 32 bits.
fn string(bytes: &[u8]) -> Vec<u8> {
    let len = (bytes.len() as u32).to_be_bytes();
    [&[0x80][..], &len, bytes].concat()
}

const STRINGS: [&[u8]; 5] = [b"", b"a", b"-12", b"\xff\0", &[b'r'; 300]];

/// A file of a collection of each kind, and of a string.
fn written(count: usize, options: Options) -> Vec<u8> {
    let written = || {
        let mut writer = Writer::new(Vec::new(), options)?;
        let expiring = Attributes {
            expiry_ms: Some(77),
            ..Attributes::default()
        };
        for (kind, attributes) in [
            (Collection::List, Attributes::default()),
            (Collection::Set, expiring),
            (Collection::SortedSet, Attributes::default()),
            (Collection::Hash, expiring),
        ] {
            writer.begin(b"key", kind, count as u64, attributes)?;
            for number in 0..count {
                let (one, other) = (STRINGS[number % 5], STRINGS[(number + 1) % 5]);
                writer.element(match kind {
                    Collection::List | Collection::Set => Element::String(one),
                    Collection::SortedSet => Element::Member {
                        member: one,
                        score: [0.1, f64::NEG_INFINITY, -0.0, f64::MAX, 7.0][number % 5],
                    },
                    Collection::Hash => Element::Field {
                        field: one,
                        value: other,
                        expiry_ms: None,
                    },
                    Collection::Stream => unreachable!("there are none"),
                })?;
            }
            writer.end()?;
        }
        writer.key(b"s", b"v", Attributes::default())?;
        writer.finish()
    };
    written().expect("a vector takes everything")
}

#[test]
fn what_is_written_is_read() {
    for compression in [false, true] {
        let options = Options {
            compression,
            ..Options::default()
        };
        let lines = read(&written(2, options)[..]).expect("it is whole");
        let wanted = [
            "key List Some(2) None",
            "",
            "a",
            "end",
            "key Set Some(2) Some(77)",
            "",
            "a",
            "end",
            "key SortedSet Some(2) None",
            " 0.1",
            "a -inf",
            "end",
            "key Hash Some(2) Some(77)",
            ": a",
            "a: -12",
            "end",
            "s=v",
        ];
        assert_eq!(lines, wanted);
        let lines = read(&written(5, options)[..]).expect("it is whole");
        assert_eq!(lines.len(), 4 * 7 + 1);
        assert!(lines.contains(&"-12 -0".to_owned()));
        // A byte at a time.
        struct Slow<'f>(&'f [u8]);
        impl Read for Slow<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
                let most = buffer.len().min(1);
                self.0.read(&mut buffer[..most])
            }
        }
        assert_eq!(
            read(Slow(&written(5, options))).expect("it is whole"),
            lines
        );
    }
}

const LIST: [&str; 4] = ["a", "1.5", "-300", "4"];

/// When a field expires.
const TIME: u64 = 1_700_000_000_123;

/// Two fields, of which the first expires.
fn timed_listpack() -> Vec<u8> {
    let number = forms::Cell::Number;
    let first = [text("a"), text("1.5"), number(TIME as i64)];
    let second = [number(-300), number(4), number(0)];
    string(&listpack(&[first, second].concat(), false))
}

/// Four strings as a file holds them in this way; in a sorted set they are two members and their scores.
fn value_of(code: u8) -> Vec<u8> {
    let number = forms::Cell::Number;
    let cells = [text("a"), text("1.5"), number(-300), number(4)];
    let ziplist = string(&ziplist(&cells, false));
    let listpack = string(&listpack(&cells, false));
    let strings = b"\x01a\x031.5\xc1\xd4\xfe\xc0\x04";
    let score = |score: f64| score.to_le_bytes();
    match code {
        1 | 2 => [&b"\x04"[..], strings].concat(),
        3 => b"\x02\x01a\x031.5\x04-300\x014".to_vec(),
        4 => [&b"\x02"[..], strings].concat(),
        5 => [&b"\x02\x01a"[..], &score(1.5), b"\x04-300", &score(4.0)].concat(),
        9 => string(&zipmap(&cells, 1)),
        10 | 12 | 13 => ziplist,
        11 => string(&intset(&[-7, 9], 2)),
        14 => [&b"\x02"[..], &ziplist, &ziplist].concat(),
        18 => [&b"\x03\x02"[..], &listpack, b"\x01\x01b\x02", &listpack].concat(),
        22 => [
            &b"\x02\x81"[..],
            &TIME.to_be_bytes(),
            b"\x01a\x031.5\x00\xc1\xd4\xfe\xc0\x04",
        ]
        .concat(),
        24 => [
            &TIME.to_le_bytes()[..],
            b"\x02\x01\x01a\x031.5\x00\xc1\xd4\xfe\xc0\x04",
        ]
        .concat(),
        23 => timed_listpack(),
        25 => [&TIME.to_le_bytes()[..], &timed_listpack()].concat(),
        _ => listpack,
    }
}

/// What is read of it.
fn lines_of(code: u8) -> Vec<String> {
    let (kind, claimed, elements) = match code {
        1 | 10 => ("List", "Some(4)", LIST.to_vec()),
        2 | 20 => ("Set", "Some(4)", LIST.to_vec()),
        3 | 5 | 12 | 17 => ("SortedSet", "Some(2)", vec!["a 1.5", "-300 4"]),
        11 => ("Set", "Some(2)", vec!["-7", "9"]),
        14 => ("List", "None", [LIST, LIST].concat()),
        18 => ("List", "None", [&LIST[..], &["b"], &LIST].concat()),
        22..=25 => (
            "Hash",
            "Some(2)",
            vec!["a: 1.5 until 1700000000123", "-300: 4"],
        ),
        _ => ("Hash", "Some(2)", vec!["a: 1.5", "-300: 4"]),
    };
    let mut lines = vec![format!("k {kind} {claimed} None")];
    lines.extend(elements.iter().map(ToString::to_string));
    lines.extend(["end".to_owned(), "s=v".to_owned()]);
    lines
}

#[test]
fn every_way_to_hold_a_collection_is_read() {
    for code in [
        1, 2, 3, 4, 5, 9, 10, 11, 12, 13, 14, 16, 17, 18, 20, 22, 23, 24, 25,
    ] {
        let value = value_of(code);
        let bytes = file(&[(code, &value), (code, &value)]);
        let wanted = [lines_of(code), lines_of(code)].concat();
        assert_eq!(
            read(&bytes[..]).expect("it is whole"),
            wanted,
            "type {code}"
        );
        ends_early(code, &bytes);
        // Whoever does not ask for collections is told of the first, or of none, as ever.
        let mut reader = Reader::new(&bytes[..], true).expect("it is a file");
        let error = reader.next().expect_err("it is no string").to_string();
        assert!(error.contains("which is not supported"), "{error}");
        let mut reader = Reader::new(&bytes[..], true).expect("it is a file");
        reader.pass_unsupported();
        for _ in 0..2 {
            assert!(matches!(reader.next(), Ok(Some(Item::Unsupported(_)))));
            assert!(matches!(reader.next(), Ok(Some(Item::Entry(_)))));
        }
        assert!(matches!(reader.next(), Ok(None)));
    }
}

/// No beginning of a file is a whole, and the key is named.
fn ends_early(code: u8, bytes: &[u8]) {
    for len in 0..bytes.len() {
        let error = read(&bytes[..len]).expect_err("the end is missing");
        let is_in_value = (13..20).contains(&len);
        assert!(
            !is_in_value || error.key.as_deref() == Some(b"k"),
            "type {code}: {error}"
        );
    }
}

#[test]
fn what_is_wrong_is_named_with_its_key() {
    let odd = listpack(&[text("a"), text("b"), text("c")], false);
    let no_score = ziplist(&[text("a"), text("b")], false);
    let nan = ziplist(&[text("a"), text("nan")], false);
    let long = ziplist(&[text("a"), text(&"1".repeat(200))], false);
    let mut damaged = odd.clone();
    damaged[6] = 0xf5;
    for (code, value, problem) in [
        (
            16,
            string(&odd),
            "the second half of an element should be here, but it is the end",
        ),
        (17, string(&odd), "a score should be here, but it is \"b\""),
        (
            12,
            string(&no_score),
            "a score should be here, but it is \"b\"",
        ),
        (
            12,
            string(&nan),
            "a score should be here, but it is \"nan\"",
        ),
        (
            12,
            string(&long),
            "a score should be here, but it is \"11111",
        ),
        (
            20,
            string(&damaged),
            "a listpack should be here, but it is 16 bytes that are none: at byte",
        ),
        (
            20,
            string(b""),
            "a listpack should be here, but it is 0 bytes that are none: at byte 0",
        ),
        (10, string(&odd), "a ziplist should be here"),
        (11, string(&odd), "an intset should be here"),
        (9, string(&odd), "a zipmap should be here"),
        (
            14,
            [&b"\x01"[..], &string(&odd)].concat(),
            "a ziplist should be here",
        ),
        (
            18,
            b"\x01\x03\x01a".to_vec(),
            "the form of a list's node should be here, but it is the number 3",
        ),
        (3, b"\x01\x01a\xfd".to_vec(), "a score should be here"),
        (
            3,
            b"\x01\x01a\x02xy".to_vec(),
            "a score should be here, but it is \"xy\"",
        ),
        (
            5,
            [&b"\x01\x01a"[..], &f64::NAN.to_le_bytes()].concat(),
            "a score should be here",
        ),
        (
            4,
            b"\x01\x01a\xc4".to_vec(),
            "the value of a field should be here",
        ),
        (
            1,
            b"\xc0".to_vec(),
            "the number of parts of a value should be here",
        ),
    ] {
        let error = read(&file(&[(code, &value)])[..]).expect_err("it is damaged");
        assert!(error.key.as_deref() == Some(b"k"), "{error}");
        assert!(error.to_string().contains(problem), "type {code}: {error}");
    }
}

#[test]
fn times_of_fields_are_checked() {
    let odd = listpack(&[text("a"), text("b"), text("c")], false);
    for (code, value, problem) in [
        (
            22,
            [&b"\x01\x81"[..], &(1u64 << 48).to_be_bytes(), b"\x01a\x01b"].concat(),
            "the time of a field should be here, but it is the number 281474976710656",
        ),
        (
            24,
            [
                &TIME.to_le_bytes()[..],
                b"\x01\x81",
                &[0xff; 8],
                b"\x01a\x01b",
            ]
            .concat(),
            "the time of a field should be here, but it is the number 18446744073709551615",
        ),
        (
            24,
            [&u64::MAX.to_le_bytes()[..], b"\x01\x00\x01a\x01b"].concat(),
            "the time of a field should be here",
        ),
        (
            23,
            string(&odd),
            "the time of a field should be here, but it is a string",
        ),
        (
            23,
            string(&listpack(&[text("a"), text("b")], false)),
            "the time of a field should be here, but it is the end of the collection",
        ),
        (
            25,
            [
                &TIME.to_le_bytes()[..],
                &string(&listpack(
                    &[text("a"), text("b"), forms::Cell::Number(-1)],
                    false,
                )),
            ]
            .concat(),
            "the time of a field should be here, but it is the number -1",
        ),
    ] {
        let error = read(&file(&[(code, &value)])[..]).expect_err("it is damaged");
        assert!(error.key.as_deref() == Some(b"k"), "{error}");
        assert!(error.to_string().contains(problem), "type {code}: {error}");
    }
}

#[test]
fn what_is_not_read_is_refused_or_passed_over_as_ever() {
    // The number of a module, and the end of its value.
    let value = [&b"\x81"[..], &[0; 8], b"\x00"].concat();
    let bytes = file(&[(7, &value)]);
    let error = read(&bytes[..]).expect_err("nobody reads it").to_string();
    assert!(error.contains("data of the module 'AAAAAAAAA'"), "{error}");
    let mut reader = TypedReader::new(&bytes[..], true).expect("it is a file");
    reader.pass_unsupported();
    assert!(matches!(
        reader.next(),
        Ok(Some(Typed::Item(Item::Unsupported(_))))
    ));
    assert!(matches!(
        reader.next(),
        Ok(Some(Typed::Item(Item::Entry(_))))
    ));
    assert!(matches!(reader.next(), Ok(None)));
}

#[test]
fn no_elements_are_none() {
    let empty = string(&listpack(&[], false));
    let nodes = [&b"\x02\x02"[..], &empty, b"\x02", &empty].concat();
    for (code, value) in [
        (1, b"\x00".to_vec()),
        (4, b"\x00".to_vec()),
        (16, empty),
        (18, nodes),
        (11, string(&intset(&[], 2))),
        (13, string(&ziplist(&[], false))),
        (9, string(&zipmap(&[], 0))),
    ] {
        let lines = read(&file(&[(code, &value)])[..]).expect("it is whole");
        assert_eq!(lines[1..], ["end", "s=v"], "type {code}");
    }
}

#[test]
fn a_claim_takes_no_memory_and_no_time() {
    let huge = [&b"\x81"[..], &u64::MAX.to_be_bytes()].concat();
    for code in [1, 2, 3, 4, 5, 14, 18, 22] {
        let value = [&huge[..], b"\x01a\x01b"].concat();
        assert!(read(&file(&[(code, &value)])[..]).is_err());
    }
    for code in [9, 10, 11, 12, 13, 16, 17, 20] {
        assert!(read(&file(&[(code, &huge)])[..]).is_err());
    }
    // What is held of a plain collection is an element.
    let options = Options {
        compression: false,
        ..Options::default()
    };
    let bytes = written(100_000, options);
    let mut reader = TypedReader::new(&bytes[..], true).expect("it is a file");
    let mut elements = 0;
    while let Some(part) = reader.next().expect("it is whole") {
        elements += u32::from(matches!(part, Typed::Element(_)));
        let own = &reader.reader;
        let held = own.first.capacity() + own.second.capacity() + reader.second.capacity();
        assert!(held + reader.packed.capacity() < 2000);
    }
    assert_eq!(elements, 400_000);
}

#[test]
fn what_is_no_file_is_not_written() {
    let begun = |kind, count| {
        let mut writer = Writer::new(Vec::new(), Options::default()).expect("a vector");
        let begin = writer.begin(b"k", kind, count, Attributes::default());
        begin.map(|()| writer)
    };
    assert!(begun(Collection::List, 0).is_err());
    let mut writer = begun(Collection::List, 1).expect("a vector");
    assert!(
        writer
            .begin(b"k", Collection::Set, 1, Attributes::default())
            .is_err()
    );
    assert!(writer.end().is_err(), "it lacks an element");
    let mut writer = begun(Collection::Set, 1).expect("a vector");
    assert!(writer.element(Element::String(b"a")).is_ok());
    assert!(writer.element(Element::String(b"b")).is_err(), "it has all");
    assert!(writer.end().is_ok());
    assert!(writer.end().is_err() && writer.element(Element::String(b"c")).is_err());
    let member = |score| Element::Member {
        member: b"a",
        score,
    };
    let field = Element::Field {
        field: b"a",
        value: b"b",
        expiry_ms: None,
    };
    let timed = Element::Field {
        field: b"a",
        value: b"b",
        expiry_ms: Some(5),
    };
    for (kind, wrong) in [
        (Collection::List, field),
        (Collection::Set, member(1.0)),
        (Collection::Hash, member(1.0)),
        (Collection::Hash, timed),
        (Collection::Hash, Element::String(b"a")),
        (Collection::SortedSet, field),
        (Collection::SortedSet, member(f64::NAN)),
    ] {
        let mut writer = begun(kind, 1).expect("a vector");
        assert!(writer.element(wrong).is_err(), "{kind:?}");
    }
}

/// Some fields of a hash, with their times.
fn timed_hash(writer: &mut Writer<Vec<u8>>) -> std::io::Result<()> {
    writer.begin_timed(b"k", 3, TIME, Attributes::default())?;
    for (field, after) in [(&b"a"[..], Some(500)), (b"b", None), (b"c", Some(0))] {
        writer.element(Element::Field {
            field,
            value: b"v",
            expiry_ms: after.map(|after| TIME + after),
        })?;
    }
    writer.end()
}

#[test]
fn fields_that_expire_are_written_to_files_that_say_so() {
    let options = Options {
        timed: true,
        ..Options::default()
    };
    let mut writer = Writer::new(Vec::new(), options).expect("a vector");
    timed_hash(&mut writer).expect("it is a hash");
    writer
        .begin(b"h", Collection::Hash, 1, Attributes::default())
        .expect("a vector");
    let plain = Element::Field {
        field: b"a",
        value: b"v",
        expiry_ms: None,
    };
    writer.element(plain).expect("it is a field");
    writer.end().expect("it has all");
    let bytes = writer.finish().expect("a vector");
    assert!(bytes.starts_with(b"REDIS0012"));
    let wanted = [
        "k Hash Some(3) None",
        "a: v until 1700000000623",
        "b: v",
        "c: v until 1700000000123",
        "end",
        "h Hash Some(1) None",
        "a: v",
        "end",
    ];
    assert_eq!(read(&bytes[..]).expect("it is whole"), wanted);
    // What Redis before 7.4 reads has no such fields.
    let mut writer = Writer::new(Vec::new(), Options::default()).expect("a vector");
    assert!(timed_hash(&mut writer).is_err());
    // A field that expires before the first.
    let mut writer = Writer::payload(100, false);
    writer
        .begin_timed(b"", 1, TIME, Attributes::default())
        .expect("a vector");
    let early = Element::Field {
        field: b"a",
        value: b"v",
        expiry_ms: Some(TIME - 1),
    };
    assert!(writer.element(early).is_err());
    // The payload of such a hash is of the version that has them.
    let mut writer = Writer::payload(100, false);
    timed_hash(&mut writer).expect("it is a hash");
    let payload = writer.end_payload();
    let version = &payload[payload.len() - 10..][..2];
    assert_eq!((payload[0], version), (24, &[12, 0][..]));
    let mut reader = crate::Payload::check(&payload).expect("it is one").read();
    let mut times = Vec::new();
    while let Some(part) = reader.next().expect("it is whole") {
        if let Typed::Element(Element::Field { expiry_ms, .. }) = part {
            times.push(expiry_ms);
        }
    }
    assert_eq!(times, [Some(TIME + 500), None, Some(TIME)]);
}
