use super::*;
use crate::error::Problem;
use crate::format::HASH_LISTPACK;
use crate::kinds::{Collection, Element};
use crate::packed::ListpackBuilder;
use crate::reader::Item;
use crate::typed::Typed;

/// Payloads that redis-server 7.0.15 makes of strings.
fn recorded() -> Vec<(Vec<u8>, &'static str)> {
    vec![
        (b"".into(), "00000a005d9b5c400f7fa2da"),
        (b"hello".into(), "000568656c6c6f0a006372df766534200a"),
        (b"-1".into(), "00c0ff0a000c937e2485089dc5"),
        (b"128".into(), "00c180000a00eb7ab3b510cf4b65"),
        (b"2147483647".into(), "00c2ffffff7f0a002c74e59ee02eada1"),
        (
            b"2147483648".into(),
            "000a323134373438333634380a00e7b129a34c1d76ee",
        ),
        (b"00".into(), "000230300a00d2e5848f3d1d6f50"),
        (b"x".repeat(21), "00c30615017878e00a000a00941a83676017192f"),
        (
            b"abc".repeat(30),
            "00c30b405a0361626361e04b020162630a00238036f9e2d0c780",
        ),
    ]
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    digits.map(|pair| byte(pair).expect("hex digits")).collect()
}

/// A value with the right end.
fn sealed(value: &[u8], version: u16) -> Vec<u8> {
    let mut payload = [value, &version.to_le_bytes()].concat();
    let checksum = CHECKSUM.checksum(&payload);
    payload.extend(checksum.to_le_bytes());
    payload
}

/// The string in a payload that is one to its end.
fn string(payload: &[u8]) -> Option<Vec<u8>> {
    let mut reader = Payload::check(payload)?.read();
    let Ok(Some(Typed::Item(Item::Entry(entry)))) = reader.next() else {
        return None;
    };
    assert_eq!(entry.key, b"");
    let value = std::mem::take(entry.value);
    matches!(reader.next(), Ok(None)).then_some(value)
}

#[test]
fn payloads_of_redis_are_read() {
    for (value, hex) in recorded() {
        let payload = bytes(hex);
        assert_eq!(string(&payload), Some(value.clone()), "{hex}");
        let claimed = Payload::check(&payload).and_then(|payload| payload.claimed_string_len());
        assert!(claimed >= Some(value.len() as u64), "{hex}");
    }
}

#[test]
fn payloads_are_those_of_redis() {
    for (value, hex) in recorded() {
        // Only the compressed form is one of several.
        if value.len() <= 20 {
            assert_eq!(dump_string(&value, true), bytes(hex));
        }
        assert_eq!(string(&dump_string(&value, true)), Some(value));
    }
}

#[test]
fn strings_of_all_lengths_survive() {
    for len in [0, 63, 64, 16_383, 16_384, 65_535, 65_536, 300_000] {
        let noise: Vec<u8> = (0..len as u32)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        for value in [noise, b"y".repeat(len)] {
            for compresses in [false, true] {
                let payload = dump_string(&value, compresses);
                let is_shorter = payload.len() < value.len();
                assert!(compresses || !is_shorter);
                assert_eq!(string(&payload), Some(value.clone()));
            }
        }
    }
}

#[test]
fn any_other_byte_is_found_out() {
    for (_, hex) in recorded() {
        let payload = bytes(hex);
        for at in 0..payload.len() {
            for bit in 0..8 {
                let mut other = payload.clone();
                other[at] ^= 1 << bit;
                assert!(Payload::check(&other).is_none(), "{hex} at {at}");
            }
        }
        for len in 0..payload.len() {
            assert!(
                Payload::check(&payload[..len]).is_none(),
                "{hex} cut at {len}"
            );
        }
    }
}

#[test]
fn a_version_that_is_not_known_is_refused() {
    for version in [0, 1, 10, 12] {
        assert!(string(&sealed(b"\x00\x01a", version)).is_some());
    }
    for version in [13, 255, u16::MAX] {
        assert!(Payload::check(&sealed(b"\x00\x01a", version)).is_none());
    }
}

#[test]
fn a_value_ends_where_the_payload_ends() {
    let wrong = [
        &b""[..],
        b"\x00",
        b"\x00\x05hell",
        b"\x00\x05hello!",
        b"\x00\xc4",
        b"\x00\xc3\x06\x15\x01xx\xe0\x0a",
        // A length that no memory has.
        b"\x00\x81\x7f\xff\xff\xff\xff\xff\xff\xffhello",
        // What may stand in a file is no value.
        b"\xfa\x01a\x01b",
        b"\xfc\0\0\0\0\0\0\0\0\x00\x01a",
        b"\xff",
        b"\x1a\x01a",
        b"\x06\x01a",
    ];
    for value in wrong {
        let payload = sealed(value, 10);
        assert!(
            Payload::check(&payload).is_some(),
            "{}",
            value.escape_ascii()
        );
        assert_eq!(string(&payload), None, "{}", value.escape_ascii());
    }
}

/// The fields of a hash of which redis-server 7.0.15 makes these payloads: in a listpack, and each by itself.
fn recorded_hashes() -> [(Vec<(&'static str, String)>, &'static str); 2] {
    let person = [
        ("name", "Ann"),
        ("age", "41"),
        ("balance", "-123456"),
        ("big", "1234567890123"),
        ("empty", ""),
        ("0", "0"),
    ];
    let packed = "104043430000000c00846e616d650583416e6e04836167650429018762616c616e636508f2c01dfe\
                  048362696704f4cb04fb711f0100000985656d70747906800100010001ff0a00ad93f724034ee947";
    let plain = "04010161c3094041017878e034000178780a00e3496e07cf51c843";
    let person = person.map(|(field, value)| (field, value.to_owned()));
    [
        (person.into(), packed),
        (vec![("a", "x".repeat(65))], plain),
    ]
}

/// The fields of a hash that a payload is to its end.
fn fields(payload: &[u8]) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut reader = Payload::check(payload)?.read();
    let (mut fields, Ok(Some(Typed::Begin { .. }))) = (Vec::new(), reader.next()) else {
        return None;
    };
    loop {
        match reader.next().ok()? {
            Some(Typed::Element(Element::Field { field, value, .. })) => {
                fields.push((field.to_vec(), value.to_vec()));
            }
            Some(Typed::End) => break,
            _ => return None,
        }
    }
    matches!(reader.next(), Ok(None)).then_some(fields)
}

#[test]
fn hashes_are_those_of_redis() {
    for (wanted, hex) in recorded_hashes() {
        let payload = bytes(hex);
        assert_eq!(string(&payload), None);
        let read = fields(&payload).expect("a hash");
        let wanted: Vec<_> = wanted
            .into_iter()
            .map(|(field, value)| (field.as_bytes().to_vec(), value.into_bytes()))
            .collect();
        assert_eq!(read, wanted);
        let mut writer = Writer::payload(100, false);
        let mut written = || match payload[0] {
            HASH_LISTPACK => {
                let mut listpack = ListpackBuilder::default();
                for (field, value) in &wanted {
                    listpack.push(field);
                    listpack.push(value);
                }
                writer.hash(b"", &mut listpack, Attributes::default())
            }
            _ => {
                let count = wanted.len() as u64;
                writer.begin(b"", Collection::Hash, count, Attributes::default())?;
                for (field, value) in &wanted {
                    writer.element(Element::Field {
                        field,
                        value,
                        expiry_ms: None,
                    })?;
                }
                writer.end()
            }
        };
        written().expect("a vector takes everything");
        let written = writer.end_payload();
        assert_eq!(fields(&written), Some(wanted));
        if payload[0] == HASH_LISTPACK {
            assert_eq!(written, payload);
        }
    }
}

#[test]
fn longer_strings_than_wanted_are_refused() {
    let compressed = dump_string(&b"z".repeat(1000), true);
    let plain = dump_string(&b"z".repeat(1000), false);
    for payload in [plain, compressed] {
        for (most, is_read) in [(1000, true), (999, false)] {
            let mut reader = Payload::check(&payload).expect("it is one").read();
            reader.limit_strings(most);
            assert_eq!(reader.next().is_ok(), is_read);
        }
    }
}

#[test]
fn kinds_that_are_not_wanted_are_refused() {
    let [(_, packed), (_, plain)] = recorded_hashes();
    for hex in [packed, plain] {
        let payload = bytes(hex);
        let mut reader = Payload::check(&payload).expect("it is one").read();
        reader.only(&[Collection::List]);
        let error = reader.next().expect_err("it is a hash");
        assert!(matches!(error.problem, Problem::Type(_)), "{error}");
    }
}

#[test]
fn libraries_come_back_from_their_payload() {
    let texts = [
        b"#!lua name=a\n".repeat(100),
        b"#!lua name=b\n".to_vec(),
        Vec::new(),
    ];
    for compresses in [true, false] {
        let payload = dump_libraries(texts.iter().map(Vec::as_slice), compresses);
        let payload = Payload::check(&payload).expect("it is whole");
        assert_eq!(payload.libraries(1 << 20).expect("it has texts"), texts);
        assert_eq!(payload.libraries_len(), 1313);
        assert_eq!(payload.libraries(1310), Err(LibrariesProblem::TooLong));
    }
    // As redis-server 7.0.15 gives it for none, and payloads without a library.
    let none = b"\x0a\x00\x5d\x9b\x5c\x40\x0f\x7f\xa2\xda";
    let payload = Payload::check(none).expect("it is whole");
    assert_eq!(payload.libraries(0), Ok(Vec::new()));
    let wrong = |value: &[u8]| Payload::of_value(value, 10).libraries(100);
    assert_eq!(wrong(b"\x00\x01k"), Err(LibrariesProblem::Other));
    assert_eq!(wrong(b"\xf6\x01k"), Err(LibrariesProblem::Old));
    assert_eq!(wrong(b"\xf5\x05k"), Err(LibrariesProblem::Damaged));
    assert_eq!(wrong(b"\xf5"), Err(LibrariesProblem::Damaged));
    // Lengths that the bytes cannot stand for count for no more than these can.
    let len = |value: &[u8]| Payload::of_value(value, 10).libraries_len();
    assert_eq!(len(b"\x00\x01k"), 0);
    assert_eq!(len(b"\xf5\x02ab\xf5\x05k"), 2 + 5);
    let long = [
        &b"\xf5\xc3\x03\x81\xff\xff\xff\xff\xff\xff\xff\xff"[..],
        b"abc",
    ]
    .concat();
    assert_eq!(len(&long), lzf::expanded_max(3) as u64);
    assert_eq!(len(b"\xf5\xc1\x01\x02"), INTEGER_TEXT_LEN as u64);
}
