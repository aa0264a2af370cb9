//! Files and payloads of Valkey 9, which have a version and types of their own.

use rdb::{Element, Item, Payload, Problem, Reader, Typed, TypedReader};

/// A file that Valkey 9.1.2 has written: strings, a list, sets, a sorted set and hashes in database 0, and in
/// database 3 a string and a hash with a field that expires as late as Valkey allows.
const FILE: &str = "
    56414c4b4559303830fa0a76616c6b65792d76657205392e312e32fa0a72656469732d62697473c040fa056374696d65c29d
    530a6bfa08757365642d6d656dc218331200fa08616f662d62617365c000fe00fb080116026878020161c0017b38d360ba01
    00000162c002ffffffffffffffff0001730568656c6c6f12016c01020f0f00000003008161028162020301ff140273740d0d
    0000000200816102816202ff11017a14140000000400816102010181620283322e3504ff1001681111000000040081610201
    018162020201fffce73bd360ba010000000165c139300b0273690e0200000003000000010002000300fe03fb020000016b01
    761603666172020161c001ffffffffffffff7f0162c002ffffffffffffffffff7d0e7d22b5b3d2eb";

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| {
        let text = str::from_utf8(pair).expect("digits");
        u8::from_str_radix(text, 16).expect("digits")
    };
    digits.chunks(2).map(byte).collect()
}

/// A line for each part of a file but its facts.
fn read(file: &[u8]) -> Result<Vec<String>, rdb::Error> {
    let mut reader = TypedReader::new(file, true)?;
    let mut lines = Vec::new();
    while let Some(part) = reader.next()? {
        lines.extend(line(part));
    }
    Ok(lines)
}

fn line(part: Typed<'_>) -> Option<String> {
    let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
    Some(match part {
        Typed::Begin { key, kind, .. } => format!("{kind:?} {}", text(key)),
        Typed::Element(Element::String(string)) => format!("  {}", text(string)),
        Typed::Element(Element::Member { member, score }) => format!("  {} {score}", text(member)),
        Typed::Element(Element::Field {
            field,
            value,
            expiry_ms,
        }) => {
            let until = expiry_ms.map_or(String::new(), |at| format!(" until {at}"));
            format!("  {}: {}{until}", text(field), text(value))
        }
        Typed::Element(Element::Stream(part)) => format!("  {part:?}"),
        Typed::End => return None,
        Typed::Item(Item::Database(number)) => format!("database {number}"),
        Typed::Item(Item::Entry(entry)) => {
            let until = entry.attributes.expiry_ms;
            let until = until.map_or(String::new(), |at| format!(" until {at}"));
            format!("{}={}{until}", text(entry.key), text(entry.value))
        }
        Typed::Item(_) => return None,
    })
}

/// A file of Valkey of what stands between its version and its end, without a checksum.
fn file(version: &str, body: &[u8]) -> Vec<u8> {
    [version.as_bytes(), body, b"\xff\0\0\0\0\0\0\0\0"].concat()
}

#[test]
fn a_file_of_valkey_is_read_whole() {
    let file = bytes(FILE);
    let mut lines = read(&file).expect("it is whole");
    let split = lines.iter().position(|line| line == "database 3");
    let last = lines.split_off(split.expect("it has two databases"));
    // Valkey writes keys in the order of its table.
    for expected in [
        &["s=hello"][..],
        &["e=12345 until 1900000000999"],
        &["List l", "  a", "  b", "  3"],
        &["Set st", "  a", "  b"],
        &["Set si", "  1", "  2", "  3"],
        &["SortedSet z", "  a 1", "  b 2.5"],
        &["Hash h", "  a: 1", "  b: 2"],
        &["Hash hx", "  a: 1 until 1900000000123", "  b: 2"],
    ] {
        let is_there = lines.windows(expected.len()).any(|lines| lines == expected);
        assert!(is_there, "{expected:?} in {lines:#?}");
    }
    let far = ["Hash far", "  a: 1 until 281474976710655", "  b: 2"];
    assert!(last.windows(3).any(|lines| lines == far), "{last:#?}");
    assert!(last.contains(&"k=v".into()), "{last:#?}");
    for end in 0..file.len() {
        let error = read(&file[..end]).expect_err("it ends early");
        assert!(
            matches!(error.problem, Problem::Truncated { .. }),
            "{error}"
        );
    }
}

#[test]
fn hashes_of_valkey_are_passed_over() {
    let file = bytes(FILE);
    let mut reader = Reader::new(&file[..], true).expect("it is a file");
    reader.pass_unsupported();
    let (mut entries, mut passed) = (0, 0);
    while let Some(item) = reader.next().expect("it is whole") {
        entries += u32::from(matches!(item, Item::Entry(_)));
        passed += u32::from(matches!(item, Item::Unsupported(_)));
    }
    assert_eq!((entries, passed), (3, 7));
}

#[test]
fn what_is_unknown_is_named_as_valkeys_with_what_to_do() {
    let hash = |time: i64| [b"\x16\x01h\x01\x01f\x01v", &time.to_le_bytes()[..]].concat();
    for (file, problem) in [
        (
            file("VALKEY081", b""),
            "RDB version 81 of Valkey is not supported, only 80 (of Valkey 9.0 and 9.1). Let Valkey write",
        ),
        (file("VALKEY079", b""), "RDB version 79 of Valkey"),
        (
            file("REDIS0080", b""),
            "RDB version 80 is not supported, only 1 to 12, and 80 of Valkey",
        ),
        (file("VALKEY 80", b""), "this is no RDB file"),
        (
            file("VALKEY080", b"\x17\x01k"),
            "a value of type 23 of Valkey, which is not known here. Let Valkey write commands",
        ),
        (
            file("VALKEY080", b"\x19\x01k"),
            "a value of type 25 of Valkey",
        ),
        (
            file("VALKEY080", b"\xf3\x01j"),
            "an import of slots of a cluster of Valkey, which is not supported. Let Valkey save again",
        ),
        (
            file("VALKEY080", &hash(-2)),
            "key \"h\": the time of a field should be here, but it is the number -2",
        ),
        (
            file("REDIS0012", b"\xf3\x01j"),
            "the type of a value should be here, but it is byte 243",
        ),
    ] {
        let error = read(&file).expect_err(problem).to_string();
        assert!(error.contains(problem), "{error}\n  instead of\n{problem}");
    }
    for (time, expected) in [(-1, "  f: v"), (0, "  f: v until 1"), (7, "  f: v until 7")] {
        let lines = read(&file("VALKEY080", &hash(time))).expect("it is whole");
        assert_eq!(lines, ["Hash h", expected]);
    }
    // The type that has the same number in candidates of Redis 7.4.
    let redis = file("REDIS0012", b"\x16\x01h\x01\x07\x01f\x01v");
    assert_eq!(
        read(&redis).expect("it is whole"),
        ["Hash h", "  f: v until 7"]
    );
}

#[test]
fn payloads_of_valkey_are_read() {
    // DUMP of a hash with a field that expires, and of a string.
    let hash = "160201 61 c001 7b38d360ba010000 0162 c002 ffffffffffffffff 5000 d432add5969d303e";
    let string = "0005 68656c6c6f 5000 ac5816e7fb6647fe";
    for (hex, expected) in [
        (hash, &["Hash ", "  a: 1 until 1900000000123", "  b: 2"][..]),
        (string, &["=hello"]),
    ] {
        let bytes = bytes(hex);
        let payload = Payload::check(&bytes).expect("version and checksum are right");
        let (mut reader, mut lines) = (payload.read(), Vec::new());
        while let Some(part) = reader.next().expect("it is whole") {
            lines.extend(line(part));
        }
        assert_eq!(lines, expected);
        let mut wrong = bytes.clone();
        wrong[2] ^= 1;
        assert!(Payload::check(&wrong).is_none());
    }
}
