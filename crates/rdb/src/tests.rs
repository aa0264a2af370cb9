//! The two directions against each other, and the reader against files made by hand: every encoding, every
//! version, every truncation, every flipped bit. What real servers write and read is in `tests/redis.rs`.

use std::io::{self, Read, Write};

use crate::format::{CHECKSUM, MAGIC};
use crate::{Attributes, Error, Item, Options, Problem, Reader, Writer};

/// A key of a file: database, key, value, attributes.
type Key = (u64, Vec<u8>, Vec<u8>, Attributes);

/// All keys of a file, and the facts in it.
fn read(file: impl Read, checksum: bool) -> Result<(Vec<Key>, Vec<String>), Error> {
    let mut reader = Reader::new(file, checksum)?;
    let (mut db, mut keys, mut facts) = (0, vec![], vec![]);
    while let Some(item) = reader.next()? {
        match item {
            Item::Fact { name, value } => facts.push(format!(
                "{}={}",
                String::from_utf8_lossy(name),
                String::from_utf8_lossy(value)
            )),
            Item::Database(number) => db = number,
            Item::Sizes { keys, volatile } => facts.push(format!("{keys}/{volatile}")),
            Item::Entry(entry) => keys.push((
                db,
                entry.key.to_vec(),
                std::mem::take(entry.value),
                entry.attributes,
            )),
            Item::Library(text) => facts.push(String::from_utf8_lossy(text).into_owned()),
            Item::Unsupported(_) => panic!("nobody asked for it"),
        }
    }
    assert!(matches!(reader.next(), Ok(None)), "the end stays the end");
    Ok((keys, facts))
}

fn write(keys: &[Key], options: Options) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), options).expect("a vector takes everything");
    let mut current = None;
    for (db, key, value, attributes) in keys {
        if current != Some(*db) {
            writer.database(*db).expect("a vector takes everything");
            current = Some(*db);
        }
        writer
            .key(key, value, *attributes)
            .expect("a vector takes everything");
    }
    let written = writer.written();
    let file = writer.finish().expect("a vector takes everything");
    assert_eq!(file.len() as u64, written + 9);
    file
}

fn expiring(at: i64) -> Attributes {
    Attributes {
        expiry_ms: Some(at),
        ..Attributes::default()
    }
}

/// Keys with values of every shape.
fn sample() -> Vec<Key> {
    let mut random = fastrand::Rng::with_seed(1);
    let mut noise = |len: usize| (0..len).map(|_| random.u8(..)).collect::<Vec<u8>>();
    let mut values: Vec<Vec<u8>> = vec![vec![], b"\0\xff\r\n".to_vec()];
    for number in [
        0i64, 1, -1, 127, 128, -128, -129, 32767, 32768, -32768, -32769,
    ] {
        values.push(number.to_string().into_bytes());
    }
    for text in [
        "2147483647",
        "2147483648",
        "-2147483648",
        "-2147483649",
        "01",
        "-0",
        "+1",
        "1 ",
        " 1",
        "-",
        "99999999999",
    ] {
        values.push(text.as_bytes().to_vec());
    }
    for len in [
        1, 20, 21, 24, 25, 63, 64, 255, 16_383, 16_384, 70_000, 300_000,
    ] {
        values.push(vec![b'a'; len]);
        values.push(noise(len));
    }
    values.push(b"a little text that repeats a little text ".repeat(40_000));
    let attributes = [
        Attributes::default(),
        expiring(1),
        expiring(i64::MAX),
        expiring(-1),
        Attributes {
            idle_s: Some(100_000),
            ..Attributes::default()
        },
        Attributes {
            frequency: Some(255),
            expiry_ms: Some(5_000_000_000_000),
            ..Attributes::default()
        },
    ];
    let mut keys: Vec<Key> = Vec::new();
    for (at, value) in values.into_iter().enumerate() {
        let attributes = attributes[at % attributes.len()];
        keys.push(((at as u64) / 20 * 70, noise(at), value, attributes));
    }
    keys.push((u64::MAX, vec![b'k'; 5000], b"v".to_vec(), expiring(0)));
    keys.push((
        u64::MAX,
        b"12345".to_vec(),
        b"a key that is a number".to_vec(),
        expiring(7),
    ));
    keys
}

/// Options in all combinations: compression, then checksum.
const EVERY_OPTION: [Options; 4] = [
    options(true, true),
    options(true, false),
    options(false, true),
    options(false, false),
];

const fn options(compression: bool, checksum: bool) -> Options {
    Options {
        compression,
        checksum,
        timed: false,
    }
}

#[test]
fn what_is_written_is_read() {
    let keys = sample();
    for options in EVERY_OPTION {
        let file = write(&keys, options);
        let (read, facts) = read(&file[..], true).expect("it was just written");
        assert!(read == keys, "{options:?}");
        assert!(facts.is_empty());
    }
}

#[test]
fn facts_and_sizes_are_read_where_they_stand() {
    let mut writer = Writer::new(Vec::new(), Options::default()).expect("a vector");
    writer.fact("redis-ver", "7.4.0").expect("a vector");
    writer.fact("redis-bits", "64").expect("a vector");
    writer.database(9).expect("a vector");
    writer.sizes(300, 1 << 32).expect("a vector");
    let file = writer.finish().expect("a vector");
    let (keys, facts) = read(&file[..], true).expect("it was just written");
    assert_eq!(
        facts,
        ["redis-ver=7.4.0", "redis-bits=64", "300/4294967296"]
    );
    assert!(keys.is_empty());
}

/// Gives one byte at a time, and is interrupted before each.
struct Trickle<'a>(&'a [u8], bool);

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.1 = !self.1;
        if self.1 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let most = buffer.len().min(1);
        self.0.read(&mut buffer[..most])
    }
}

#[test]
fn it_makes_no_difference_in_what_pieces_a_file_arrives() {
    let keys = sample();
    let file = write(&keys, Options::default());
    let (read, _) = read(Trickle(&file, false), true).expect("the file is whole");
    assert!(read == keys);
}

/// A small file with one of everything.
fn small_file(options: Options) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), options).expect("a vector");
    writer.fact("ctime", "1700000000").expect("a vector");
    writer.database(0).expect("a vector");
    writer.sizes(5, 2).expect("a vector");
    let key = |writer: &mut Writer<Vec<u8>>, key: &[u8], value: &[u8], attributes| {
        writer.key(key, value, attributes).expect("a vector");
    };
    key(&mut writer, b"a", b"1", expiring(1_700_000_000_000));
    key(&mut writer, b"b", b"1000", Attributes::default());
    key(&mut writer, b"c", b"-100000", Attributes::default());
    key(&mut writer, b"key", &[b'x'; 100], Attributes::default());
    let idle = Attributes {
        idle_s: Some(70),
        frequency: Some(3),
        expiry_ms: Some(3),
    };
    key(&mut writer, b"", b"value", idle);
    writer.finish().expect("a vector")
}

#[test]
fn every_truncation_is_an_error_where_the_file_ends() {
    for options in EVERY_OPTION {
        let file = small_file(options);
        read(&file[..], true).expect("the file is whole");
        for len in 0..file.len() {
            let error = read(&file[..len], true).expect_err("it is cut");
            assert!(
                matches!(error.problem, Problem::Truncated { .. }),
                "{len}: {error}"
            );
            assert!(error.offset <= len as u64, "{len}: {error}");
        }
    }
}

#[test]
fn every_flipped_bit_is_found_by_the_checksum() {
    let file = small_file(Options::default());
    for bit in 0..file.len() * 8 {
        let mut damaged = file.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(read(&damaged[..], true).is_err(), "bit {bit}");
        // Without it, what is read may be wrong, but reading ends.
        let _ = read(&damaged[..], false);
    }
}

#[test]
fn a_checksum_counts_if_it_is_there_and_asked_for() {
    let mut file = small_file(Options::default());
    let at = file.len() - 8;
    file[at] ^= 1;
    let error = read(&file[..], true).expect_err("the checksum is wrong");
    assert!(error.to_string().contains("wrong checksum"), "{error}");
    read(&file[..], false).expect("nobody asked");
    file[at..].fill(0);
    read(&file[..], true).expect("there is none");
    // What stands behind it is none of ours.
    file.extend_from_slice(b"anything");
    read(&file[..], true).expect("the file ends before");
}

/// A file of a version, made of these bytes, with a right end.
fn file(version: u32, body: &[&[u8]]) -> Vec<u8> {
    let mut file = [MAGIC, format!("{version:04}").as_bytes()].concat();
    file.extend(body.concat());
    file.push(255);
    if version >= 5 {
        file.extend(CHECKSUM.checksum(&file).to_le_bytes());
    }
    file
}

#[test]
fn every_version_and_encoding_is_read() {
    let compressed = b"\xc3\x09\x40\x64\x01aa\xe0\x57\x00\x01aa";
    let body: [&[u8]; 13] = [
        b"\xfe\x00\xfb\x01\x00",
        b"\x00\x01a\x01x",
        b"\x00\x01b\x40\x02xy",
        b"\x00\x01c\x80\x00\x00\x00\x02xy",
        b"\x00\x01d\x81\x00\x00\x00\x00\x00\x00\x00\x02xy",
        b"\xfd\x01\x00\x00\x00\x00\xc0\xff\xc0\x80",
        b"\xfd\xff\xff\xff\xff\x00\x01f\xc1\x00\x80",
        b"\xfc\x01\x00\x00\x00\x00\x00\x00\x80\x00\x01g\xc2\x00\x00\x00\x80",
        b"\xf8\x40\x80\xf9\x07\x00\x01h",
        compressed,
        b"\xf4\x05\x01\x00",
        b"\xfe\x41\x00\xfa\x00\x00",
        b"\x00\x01i\x00",
    ];
    let plain =
        |db, key: &[u8], value: &[u8]| (db, key.to_vec(), value.to_vec(), Attributes::default());
    let with = |key: &[u8], value: &[u8], attributes| (0, key.to_vec(), value.to_vec(), attributes);
    let used = Attributes {
        expiry_ms: None,
        idle_s: Some(128),
        frequency: Some(7),
    };
    let expected = [
        plain(0, b"a", b"x"),
        plain(0, b"b", b"xy"),
        plain(0, b"c", b"xy"),
        plain(0, b"d", b"xy"),
        with(b"-1", b"-128", expiring(1000)),
        with(b"f", b"-32768", expiring(-1000)),
        with(b"g", b"-2147483648", expiring(i64::MIN + 1)),
        with(b"h", &[b'a'; 100], used),
        plain(256, b"i", b""),
    ];
    for version in 1..=12 {
        let (keys, facts) = read(&file(version, &body)[..], true).expect("the file is right");
        assert_eq!(keys, expected);
        assert_eq!(facts, ["1/0", "="]);
    }
}

#[test]
fn what_was_said_about_a_key_waits_for_it() {
    let body: [&[u8]; 3] = [
        b"\xfd\x01\x00\x00\x00",
        b"\xfe\x01\xfa\x00\x00",
        b"\x00\x01a\x01x",
    ];
    let (keys, _) = read(&file(10, &body)[..], true).expect("the file is right");
    assert_eq!(keys[0].3, expiring(1000));
}

/// The number of the module that calls itself ReJSON-RL, version 3.
fn number_of_module() -> [u8; 8] {
    let alphabet = || {
        ('A'..='Z')
            .chain('a'..='z')
            .chain('0'..='9')
            .chain(['-', '_'])
    };
    let digit = |letter: char| alphabet().position(|one| one == letter);
    let id = "ReJSON-RL".chars().fold(0u64, |id, letter| {
        id << 6 | digit(letter).expect("a letter") as u64
    });
    (id << 10 | 3).to_be_bytes()
}

/// Files that cannot be read, and what is said of each.
fn unreadable() -> Vec<(Vec<u8>, &'static str)> {
    let id = number_of_module();
    let module = [b"\xf7\x81", &id[..]].concat();
    let value_of_module = [b"\x07\x01j\x81", &id[..]].concat();
    vec![
        (
            b"".to_vec(),
            "at byte 0: the file ends where the magic REDIS or VALKEY and a version should be",
        ),
        (
            b"REDIS00".to_vec(),
            "at byte 0: the file ends where the magic",
        ),
        (b"VALKEYx80x".to_vec(), "at byte 0: this is no RDB file"),
        (b"REDIS 010".to_vec(), "at byte 0: this is no RDB file"),
        (file(0, &[]), "RDB version 0 is not supported, only 1 to 12"),
        (
            file(13, &[]),
            "RDB version 13 is not supported, only 1 to 12",
        ),
        (
            file(10, &[b"\x00\x01a\x82"]),
            "at byte 13, key \"a\": a value should be here, but it is byte 130, which begins no length",
        ),
        (
            file(10, &[b"\x00\x01a\xc4"]),
            "a value should be here, but it is a string of encoding 4, which there is not",
        ),
        (
            file(10, &[b"\xfe\xc0\x01"]),
            "the number of a database should be here, but it is a string of encoding 0",
        ),
        (
            file(10, &[b"\x04\x02\x00\xff\x00"]),
            "at byte 13, key \"\\x00\\xff\": the value is a hash, which is not supported",
        ),
        (
            file(10, &[b"\x13\x01s"]),
            "key \"s\": the value is a stream, which is not",
        ),
        (
            file(10, &[b"\x11\x01z"]),
            "key \"z\": the value is a sorted set (listpack), which",
        ),
        (
            file(10, &[b"\x08\x01z"]),
            "at byte 10: the type of a value should be here, but it is byte 8",
        ),
        (
            file(10, &[b"\xf6\x01x"]),
            "a function of a release candidate of Redis 7, which is not supported",
        ),
        (
            file(10, &[&module]),
            "the file holds data of the module 'ReJSON-RL', and modules",
        ),
        (
            file(10, &[&value_of_module]),
            "key \"j\": the file holds data of the module 'ReJSON-RL'",
        ),
        (
            file(10, &[b"\x00\x01a\xc3\x01\x40\xff\x00x"]),
            "1 compressed bytes, which cannot stand for 255",
        ),
        (
            file(10, &[b"\x00\x01a\xc3\x02\x05\x00x"]),
            "compressed bytes that do not stand for 5 bytes",
        ),
    ]
}

#[test]
fn errors_name_the_place_and_what_is_there() {
    for (file, text) in unreadable() {
        let error = read(&file[..], true).expect_err(text).to_string();
        assert!(error.contains(text), "{error}\n  instead of\n{text}");
    }
}

#[test]
fn a_long_key_is_not_repeated_whole() {
    let body = [&b"\x01\x41\x00"[..], &[b'k'; 256]].concat();
    let error = read(&file(10, &[&body])[..], true).expect_err("it is a list");
    assert!(
        error
            .to_string()
            .contains(&format!("\"{}\"...", "k".repeat(64)))
    );
    assert_eq!(error.key, Some(vec![b'k'; 256]));
}

#[test]
fn no_memory_is_taken_for_what_is_only_claimed() {
    // A value of 2^62 bytes, of which ten are there; a number of databases; a compressed value of 2^62 bytes.
    let claims: [&[u8]; 3] = [
        b"\x00\x01a\x81\x40\x00\x00\x00\x00\x00\x00\x00",
        b"\xfb\x81\x40\x00\x00\x00\x00\x00\x00\x00\x01\x00\x01a\x80\xff\xff\xff\xff",
        b"\x00\x01a\xc3\x81\x40\x00\x00\x00\x00\x00\x00\x00\x01x",
    ];
    for claim in claims {
        let mut reader = Reader::new(&file(10, &[claim])[..], true)
            .map(|_| ())
            .map_err(|error| error.to_string());
        assert_eq!(reader, Ok(()));
        reader = read(&file(10, &[claim])[..], true)
            .map(|_| ())
            .map_err(|error| error.to_string());
        assert!(reader.is_err_and(|text| text.contains("the file ends where")));
    }
}

#[test]
fn a_large_value_has_no_more_room_than_it_needs() {
    let value = vec![b'x'; 3_000_001];
    for options in [options(false, true), Options::default()] {
        let file = write(
            &[(0, vec![], value.clone(), Attributes::default())],
            options,
        );
        let (keys, _) = read(&file[..], true).expect("it was just written");
        assert_eq!(keys[0].2.capacity(), value.len());
    }
}

/// Takes so many bytes, then fails.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn errors_of_the_output_come_out() {
    let value = b"a value that can be compressed a little ".repeat(100_000);
    for options in EVERY_OPTION {
        let len = write(&[(0, vec![], value.clone(), expiring(1))], options).len();
        for room in [0, 9, 100, len / 2, len - 1] {
            let result = Writer::new(Full(room), options).and_then(|mut writer| {
                writer.database(0)?;
                writer.key(b"", &value, expiring(1))?;
                writer.finish()
            });
            assert!(result.is_err(), "{options:?} {room}");
        }
    }
}

#[test]
fn compression_is_for_what_it_makes_shorter() {
    let size = |value: &[u8]| {
        let key = (0, vec![], value.to_vec(), Attributes::default());
        write(&[key], Options::default()).len()
    };
    let empty = size(b"");
    assert_eq!(size(&[b'x'; 20]), empty + 20);
    assert!(size(&[b'x'; 21]) < empty + 12);
    assert_eq!(size(b"abcdefghijklmnopqrstuvwxyz"), empty + 26);
    assert!(size(&[b'x'; 10_000_000]) < empty + 120_000);
}

#[test]
fn what_cannot_be_compressed_does_not_hide_for_long_what_can() {
    let mut random = fastrand::Rng::with_seed(9);
    let key = |value| {
        (
            0,
            b"a key of more than twenty bytes".to_vec(),
            value,
            Attributes::default(),
        )
    };
    let noise = |random: &mut fastrand::Rng| (0..100).map(|_| random.u8(..)).collect();
    let mut keys: Vec<Key> = (0..1000).map(|_| key(noise(&mut random))).collect();
    let before = write(&keys, Options::default()).len();
    keys.extend((0..1000).map(|_| key(vec![b'x'; 100])));
    let all = write(&keys, Options::default());
    assert!(all.len() - before < 1000 * (31 + 20));
    assert_eq!(read(&all[..], true).expect("it is whole").0, keys);
}
