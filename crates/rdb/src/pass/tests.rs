//! Files made by hand, with types that today's servers don't write. What redis-server writes is in
//! `tests/redis.rs`.

use crate::{Error, Item, Options, Problem, Reader, Unsupported, Writer};

/// What is passed over in a file of the latest version, each followed by a key that has to be found.
fn passed(parts: &[&[u8]]) -> Result<Vec<String>, Error> {
    let mut file = b"REDIS0012".to_vec();
    for part in parts {
        file.extend_from_slice(part);
        file.extend_from_slice(b"\0\x01s\x01v");
    }
    file.push(255);
    file.extend_from_slice(&[0; 8]);
    let mut reader = Reader::new(&file[..], false)?;
    reader.pass_unsupported();
    let (mut passed, mut strings) = (Vec::new(), 0);
    while let Some(item) = reader.next()? {
        match item {
            Item::Entry(entry) => {
                assert_eq!((entry.key, &entry.value[..]), (&b"s"[..], &b"v"[..]));
                assert_eq!(entry.attributes, crate::Attributes::default());
                strings += 1;
            }
            Item::Unsupported(Unsupported::Value { key, kind }) => {
                passed.push(format!("{kind} {}", String::from_utf8_lossy(key)));
            }
            Item::Library(text) => passed.push(format!("l {}", text.escape_ascii())),
            Item::Unsupported(Unsupported::Module(name)) => passed.push(format!("m {name}")),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(strings, parts.len());
    Ok(passed)
}

/// A value of each type, in all shapes that the type has; with its name.
const VALUES: &[(&[u8], &str)] = &[
    (b"\x01\x01k\x02\x01a\xc0\x05", "list"),
    (b"\x02\x01k\x00", "set"),
    (b"\x03\x01k\x04\x01a\xfd\x01b\xfe\x01c\xff\x01d\x033.5", "sorted set"),
    (b"\x04\x01k\x01\x01f\x01v", "hash"),
    (b"\x05\x01k\x01\x01a\0\0\0\0\0\0\xf0\x3f", "sorted set"),
    (b"\x07\x01k\x05\x01\x05\x02\x05\x03abcd\x04abcdefgh\x05\x02xy\x00", "value of a module"),
    (b"\x09\x01k\x03zip", "hash (zipmap)"),
    (b"\x0e\x01k\x01\x03zip", "list (quicklist)"),
    (
        b"\x0f\x01k\x01\x02id\x02lp\x01\x02\x03\x01\x01g\x02\x03\x01iiiiiiiiiiiiiiiitttttttt\x05\x01\x01c\
          ssssssss\x01iiiiiiiiiiiiiiii",
        "stream",
    ),
    (b"\x10\x01k\x02lp", "hash (listpack)"),
    (b"\x12\x01k\x02\x01\x01a\x02\x02lp", "list (quicklist)"),
    (
        b"\x13\x01k\0\0\0\0\0\0\0\0\0\x01\x01g\x02\x03\x04\x00\x01\x01cssssssss\x00",
        "stream",
    ),
    (
        b"\x15\x01k\0\0\0\0\0\0\0\0\0\x01\x01g\x02\x03\x04\x00\x01\x01cssssssssaaaaaaaa\x00",
        "stream",
    ),
    (b"\x16\x01k\x01\x05\x01f\x01v", "hash with expiring fields"),
    (b"\x17\x01k\x02lp", "hash with expiring fields"),
    (b"\x18\x01ktttttttt\x02\x00\x01f\x01v\x05\x01g\x01w", "hash with expiring fields"),
    (b"\x19\x01ktttttttt\x02lp", "hash with expiring fields"),
];

#[test]
fn values_of_every_type_are_passed_over() {
    for (bytes, kind) in VALUES {
        let found = passed(&[bytes]).unwrap_or_else(|error| panic!("{kind}: {error}"));
        assert_eq!(found, [format!("{kind} k")]);
    }
    let all: Vec<&[u8]> = VALUES.iter().map(|(bytes, _)| *bytes).collect();
    assert_eq!(passed(&all).expect("each can be").len(), VALUES.len());
    // What was said about the key is not said about the next one.
    let expiring = [b"\xfcttttttttv\x05"[..9].to_vec(), VALUES[0].0.to_vec()].concat();
    assert_eq!(passed(&[&expiring]).expect("it can be"), ["list k"]);
}

#[test]
fn libraries_are_read_and_data_of_modules_is_passed_over() {
    let function = b"\xf5\x12#!lua name=mine \nx";
    let aux = b"\xf7\x81\x0a\xc6\x9e\x2f\x4c\x71\xc4\x01\x02\x05\x02\x07\x00";
    let found = passed(&[function, aux]).expect("they can be");
    assert_eq!(found[0], "l #!lua name=mine \\nx");
    assert!(found[1].starts_with("m "), "{found:?}");
}

#[test]
fn a_file_that_ends_or_lies_is_an_error() {
    for (bytes, kind) in VALUES {
        for len in 1..bytes.len() {
            let file = [b"REDIS0012", &bytes[..len]].concat();
            let mut reader = Reader::new(&file[..], false).expect("it begins well");
            reader.pass_unsupported();
            let error = reader.next().expect_err(kind);
            assert!(
                matches!(error.problem, Problem::Truncated { .. }),
                "{error}"
            );
            assert!(
                (9..=file.len() as u64).contains(&error.offset),
                "{kind} {len}"
            );
        }
    }
    for (bytes, expected) in [
        (&b"\x06\x01k\x05"[..], "modules are not supported"),
        (b"\x07\x01k\x05\x09\x00", "the number 9"),
        (b"\xf6\x01a\x01b", "release candidate"),
        (b"\x1b\x01k", "byte 27"),
    ] {
        let error = passed(&[bytes]).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn strings_are_read_as_ever() {
    let mut writer = Writer::new(Vec::new(), Options::default()).expect("there is room");
    let put = writer.key(b"key", b"value", crate::Attributes::default());
    put.expect("there is room");
    let file = writer.finish().expect("there is room");
    let mut reader = Reader::new(&file[..], true).expect("it begins well");
    reader.pass_unsupported();
    assert!(matches!(reader.next(), Ok(Some(Item::Entry(_)))));
    assert!(matches!(reader.next(), Ok(None)));
}
