//! The seeds of the fuzz target `payload`: a value of each type, and of each form that a type may have.
//!
//! `UPDATE_SEEDS=1 cargo test -p ferrite-rdb --test seeds` writes them to `fuzz/seeds/payload`.

mod forms;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use forms::{Cell, intset, listpack, stream, text, ziplist, zipmap};
use rdb::{Payload, Typed, dump_string};

/// The types of values that are read.
const TYPES: &[u8] = &[
    0, 1, 2, 3, 4, 5, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
];

/// Version and checksum of a payload.
const FOOTER_BYTES: usize = 10;

/// When a field expires (Unix, ms).
const TIME: i64 = 4_000_000_000_000;

fn string(bytes: &[u8]) -> Vec<u8> {
    let head = match bytes.len() {
        len @ ..64 => vec![len as u8],
        len => vec![0x40 | (len >> 8) as u8, len as u8],
    };
    [&head, bytes].concat()
}

fn strings(all: &[&str]) -> Vec<u8> {
    all.iter().flat_map(|one| string(one.as_bytes())).collect()
}

type Seed = (&'static str, Vec<u8>);

/// A value of the type with which its name begins.
fn seed(name: &'static str, parts: &[&[u8]]) -> Seed {
    let code: u8 = name[..2].parse().expect("a type");
    (name, [&[code], &parts.concat()[..]].concat())
}

/// Cells of several sizes.
fn cells() -> Vec<Cell> {
    let long = Cell::Text(vec![b'l'; 70]);
    vec![
        text("a"),
        Cell::Number(1),
        text("bc"),
        Cell::Number(-300),
        long,
        text("1.5"),
    ]
}

/// Members and scores in order of the scores.
fn scores() -> Vec<Cell> {
    vec![
        text("low"),
        text("-inf"),
        text("a"),
        Cell::Number(1),
        Cell::Number(7),
        text("1.25"),
    ]
}

/// Fields, values and times.
fn timed() -> Vec<Cell> {
    let (first, never) = (Cell::Number(TIME), Cell::Number(0));
    vec![
        text("a"),
        Cell::Number(1),
        first,
        text("b"),
        text("c"),
        never,
    ]
}

fn texts() -> Vec<Seed> {
    let repeated = b"abcabcabcabcabcabcabcabc".repeat(3);
    let mut compressed = dump_string(&repeated, true);
    compressed.truncate(compressed.len() - FOOTER_BYTES);
    assert_eq!(compressed[..2], [0, 0xc3]);
    // A count, and 16384 registers of 0.
    let sparse = b"HYLL\x01\0\0\0\x05\0\0\0\0\0\0\0\x7f\xff";
    let mut dense = b"HYLL\0\0\0\0\0\0\0\0\0\0\0\x80".to_vec();
    dense.resize(16 + 12_288, 0x41);
    vec![
        seed("00-string", &[&strings(&["a value"])]),
        seed("00-int8", &[b"\xc0\x85"]),
        seed("00-int16", &[b"\xc1\x39\x30"]),
        seed("00-int32", &[b"\xc2\x15\xcd\x5b\x07"]),
        ("00-compressed", compressed),
        seed("00-hyperloglog-sparse", &[&string(sparse)]),
        seed("00-hyperloglog-dense", &[&string(&dense)]),
    ]
}

/// Collections of which each element is for itself.
fn plain() -> Vec<Seed> {
    let abc = |score: &str| [strings(&["a", score, "b"]), vec![255], strings(&["c"])].concat();
    let number = |name: &[u8], score: f64| [&string(name)[..], &score.to_le_bytes()].concat();
    let scores = [number(b"a", 1.5), number(b"b", f64::NEG_INFINITY)].concat();
    vec![
        seed("01-list", &[&[3], &strings(&["a", "b", "a"])]),
        seed("02-set", &[&[3], &strings(&["a", "-5", "c"])]),
        seed("03-scores-digits", &[&[3], &abc("1.5"), &[254]]),
        seed("04-hash", &[&[2], &strings(&["f", "v", "g", "12"])]),
        seed("05-scores", &[&[2], &scores]),
    ]
}

/// Collections in one string or several.
fn packed() -> Vec<Seed> {
    let integers = |width: u32| string(&intset(&[-3, 0, 5, 1000], width));
    let ziplist = |cells: &[Cell], is_wide| string(&ziplist(cells, is_wide));
    let listpack = |cells: &[Cell], is_wide| string(&listpack(cells, is_wide));
    let [cells, scores] = [cells(), scores()];
    let ziplists = [ziplist(&cells, false), ziplist(&scores, true)].concat();
    let [first, last] = [listpack(&cells, false), listpack(&scores, true)];
    let large = strings(&["large"]);
    vec![
        seed("09-hash-zipmap", &[&string(&zipmap(&cells, 2))]),
        seed("10-list-ziplist", &[&ziplist(&cells, false)]),
        seed("11-set-intset-16", &[&integers(2)]),
        seed("11-set-intset-32", &[&integers(4)]),
        seed("11-set-intset-64", &[&integers(8)]),
        seed("12-scores-ziplist", &[&ziplist(&scores, false)]),
        seed("13-hash-ziplist", &[&ziplist(&cells, true)]),
        seed("14-list-quicklist", &[&[2], &ziplists]),
        seed("16-hash-listpack", &[&first]),
        seed("16-hash-listpack-wide", &[&listpack(&cells, true)]),
        seed("17-scores-listpack", &[&listpack(&scores, false)]),
        seed(
            "18-list-quicklist-2",
            &[&[3, 2], &first, &[1], &large, &[2], &last],
        ),
        seed("20-set-listpack", &[&first]),
    ]
}

/// Hashes with fields that expire.
fn expiring() -> Vec<Seed> {
    let (first, time) = (TIME.to_le_bytes(), TIME.to_be_bytes());
    let [one, other] = [strings(&["a", "1"]), strings(&["b", "2"])];
    let listpack = string(&listpack(&timed(), false));
    vec![
        seed("22-hash-timed", &[&[2, 0x81], &time, &one, &[0], &other]),
        seed("23-hash-timed-listpack", &[&listpack]),
        seed(
            "24-hash-timed-first",
            &[&first, &[2, 1], &one, &[0], &other],
        ),
        seed("25-hash-timed-listpack-first", &[&first, &listpack]),
    ]
}

/// Streams in each of their forms.
fn streams() -> Vec<Seed> {
    let (whole, empty) = (stream::whole(), stream::without_entries());
    vec![
        seed("15-stream", &[&whole.bytes(1)]),
        seed("15-stream-without-entries", &[&empty.bytes(1)]),
        seed("19-stream", &[&whole.bytes(2)]),
        seed("19-stream-without-entries", &[&empty.bytes(2)]),
        seed("21-stream", &[&whole.bytes(3)]),
        seed("21-stream-without-entries", &[&empty.bytes(3)]),
    ]
}

/// Names and bytes.
fn seeds() -> BTreeMap<&'static str, Vec<u8>> {
    let all = [texts(), plain(), packed(), expiring(), streams()].concat();
    all.into_iter().collect()
}

/// Reads a value to its end.
fn read(bytes: &[u8]) -> Result<(), rdb::Error> {
    let payload = Payload::of_value(bytes, 12);
    let mut reader = payload.read();
    while let Some(part) = reader.next()? {
        assert!(!matches!(part, Typed::Item(ref item) if !matches!(item, rdb::Item::Entry(_))));
    }
    Ok(())
}

#[test]
fn every_type_has_seeds_that_are_values() {
    let seeds = seeds();
    let codes: BTreeSet<u8> = seeds.values().map(|bytes| bytes[0]).collect();
    assert_eq!(codes, TYPES.iter().copied().collect());
    for (name, bytes) in &seeds {
        read(bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    // What is no type is refused as such, with any bytes behind it.
    for code in (0..=u8::MAX).filter(|code| !TYPES.contains(code)) {
        assert!(read(&[code, 0, 0, 0, 0, 0, 0, 0, 0, 0]).is_err(), "{code}");
    }
}

#[test]
fn seeds_are_in_their_files() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/payload");
    let seeds = seeds();
    if std::env::var_os("UPDATE_SEEDS").is_some() {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("the source is writable");
        for (name, bytes) in &seeds {
            fs::write(folder.join(name), bytes).expect("the source is writable");
        }
    }
    let files = fs::read_dir(&folder).expect("there are seeds");
    let there: BTreeMap<String, Vec<u8>> = files
        .map(|file| {
            let path = file.expect("it is listed").path();
            let name = path.file_name().expect("a file").to_string_lossy().into();
            (name, fs::read(path).expect("a file"))
        })
        .collect();
    let names: Vec<&str> = there.keys().map(String::as_str).collect();
    assert!(
        seeds.keys().copied().eq(names),
        "UPDATE_SEEDS=1 writes them"
    );
    for (name, bytes) in seeds {
        assert_eq!(there[name], bytes, "{name}: UPDATE_SEEDS=1 writes it");
    }
}
