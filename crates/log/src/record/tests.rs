//! Every kind survives its encoding; nothing that was damaged, cut or moved does.

use super::layout::*;
use super::*;
use crate::address::{DbId, Lsn};

const AT: Lsn = Lsn(1 << 33 | 4096);
const TAG: Tag = tag(Tag::STRING, 2, false);
const TREE: Tag = tag(Tag::HASH, 2, true);
const SEVEN: &[u8; INSTANCE] = &7_u64.to_le_bytes();
const BLOB: BlobRef = BlobRef {
    id: 77,
    len: 1 << 40,
    checksum: 0xdead_beef,
};

const fn tag(kind: u8, form: u8, is_tree: bool) -> Tag {
    Tag {
        kind,
        form,
        is_tree,
    }
}

/// One draft of each kind and shape.
fn drafts() -> Vec<Draft<'static>> {
    let db = DbId(0x1234);
    vec![
        Draft::set(db, b"key", TAG, None, b"value"),
        Draft::set(db, b"key", TAG, Some(-5), b"value"),
        Draft::set(db, b"", Tag::default(), Some(i64::MAX), b""),
        Draft::set(db, &[7; 300], TAG, None, &[9; 1000]),
        Draft::set_blob(db, b"blob", TAG, None, BLOB),
        Draft::set_blob(db, b"blob", TAG, Some(1), BLOB),
        Draft::delete(db, b"gone"),
        Draft::expire(db, b"k", Some(1 << 41)),
        Draft::expire(db, b"k", None),
        Draft::patch(db, b"k", TAG, 10, 15, b"12345"),
        Draft::patch(db, b"k", TAG, 1 << 40, 1 << 41, b""),
        Draft::set(db, b"tree", TREE, Some(5), SEVEN),
        Draft::edit(db, b"hash", TREE, b"operations"),
        Draft::edit(db, b"", tag(Tag::HASH, 0, false), b""),
        Draft::edit_instance(db, SEVEN, TREE, b"operations"),
        Draft::edit_instance(db, &[0xff; INSTANCE], TREE, b""),
        Draft::leaf(db, SEVEN, TREE, b"a run"),
        Draft::leaf(db, SEVEN, TREE, &[9; 2000]),
        Draft::bind(&[2, 0, 3, 0, 0, 0, 0, 0]),
        Draft::mark(Lsn(8)),
        Draft::retire(Lsn(1 << 50)),
        Draft::void(&[0; 24]),
    ]
}

fn bytes_of(draft: &Draft<'_>, lsn: Lsn) -> Vec<u8> {
    let mut slot = vec![0xff; draft.bytes() as usize];
    write(&mut slot, lsn, draft);
    slot
}

fn u64_of(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("eight"))
}

#[test]
fn what_is_written_is_read() {
    for draft in drafts() {
        let mut bytes = bytes_of(&draft, AT);
        let len = bytes.len();
        assert!(len.is_multiple_of(8) && len as u64 - draft.length() < 8);
        bytes.extend_from_slice(b"behind");
        let found = read(&bytes, AT).expect("it is a record");
        assert_eq!(found.bytes, len, "{draft:?}");
        assert!(!found.is_inner);
        let Entry::Key(record) = found.entry else {
            assert!(draft.key.is_empty());
            continue;
        };
        assert_eq!(
            (record.lsn, record.db, record.key),
            (AT, draft.db, draft.key)
        );
        assert_eq!(record.bytes(), len as u64);
        let expected = match draft.kind {
            Kind::Set => Change::Set {
                tag: draft.tag,
                expiry: draft.expiry,
                value: Value::Bytes(draft.data),
            },
            Kind::SetBlob => Change::Set {
                tag: draft.tag,
                expiry: draft.expiry,
                value: Value::Blob(BLOB),
            },
            Kind::Delete => Change::Delete,
            Kind::Expire => Change::Expire(draft.expiry),
            Kind::Patch if draft.data.is_empty() => Change::Patch {
                tag: TAG,
                offset: 1 << 40,
                total: 1 << 41,
                bytes: Value::Bytes(b""),
            },
            Kind::Patch => Change::Patch {
                tag: TAG,
                offset: 10,
                total: 15,
                bytes: Value::Bytes(b"12345"),
            },
            Kind::Edit => Change::Edit {
                tag: draft.tag,
                bytes: Value::Bytes(draft.data),
            },
            Kind::Leaf => Change::Leaf {
                tag: tag(Tag::HASH, 0, true),
                bytes: Value::Bytes(draft.data),
            },
            _ => unreachable!("it has no key"),
        };
        assert_eq!(record.change, expected);
        let is_of_instance =
            draft.kind == Kind::Leaf || draft.kind == Kind::Edit && draft.tag.is_tree;
        assert_eq!(record.is_of_instance(), is_of_instance);
        let number = is_of_instance.then(|| u64_of(draft.key));
        assert_eq!(record.instance(), number);
        if let Some(address) = record.address() {
            assert_eq!(
                base_bytes(address, record.key.len() as u64, draft.data.len() as u64),
                len as u64
            );
            assert_eq!(address.lsn(), AT);
        }
    }
}

#[test]
fn control_records_say_what_they_said() {
    let entry = |draft: Draft<'_>| match read(&bytes_of(&draft, AT), AT)
        .expect("it is a record")
        .entry
    {
        Entry::Bind(changes) => format!("{changes:?}"),
        entry => format!("{entry:?}"),
    };
    let clear = [2, 0, 1, 1, 0, 0, 0, 0];
    assert_eq!(entry(Draft::bind(&clear)), "[2, 0, 1, 1, 0, 0, 0, 0]");
    assert_eq!(entry(Draft::mark(Lsn(16))), "Mark(Lsn(16))");
    assert_eq!(entry(Draft::retire(Lsn(24))), "Retire(Lsn(24))");
    assert_eq!(entry(Draft::void(&[])), "Void");
    assert!(looks_like_a_mark(&bytes_of(&Draft::mark(Lsn(16)), AT)));
    assert!(!looks_like_a_mark(&bytes_of(&Draft::retire(Lsn(16)), AT)));
}

#[test]
fn parts_make_the_same_record() {
    for draft in drafts() {
        let mut parts = Vec::new();
        write_in_parts(AT, &draft, |part| parts.extend_from_slice(part));
        assert_eq!(parts, bytes_of(&draft, AT), "{draft:?}");
    }
}

#[test]
fn no_flipped_bit_passes() {
    for draft in drafts() {
        let bytes = bytes_of(&draft, AT);
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            // A longer record than there are bytes is one way to be refused.
            assert!(read(&damaged, AT).is_err(), "bit {bit} of {draft:?}");
        }
    }
}

#[test]
fn no_other_place_passes() {
    for draft in drafts() {
        let bytes = bytes_of(&draft, AT);
        for other in [8, 4096, AT.0 + 8, AT.0 - 8, AT.0 ^ 1 << 40, !7] {
            assert_eq!(read(&bytes, Lsn(other)), Err(Flaw::Checksum));
        }
    }
}

#[test]
fn a_cut_record_is_incomplete() {
    for draft in drafts() {
        let bytes = bytes_of(&draft, AT);
        for len in 1..bytes.len() {
            let wanted = if len < HEADER { HEADER } else { bytes.len() };
            assert_eq!(
                read(&bytes[..len], AT),
                Err(Flaw::Incomplete(wanted as u64)),
                "{len} of {draft:?}"
            );
        }
    }
    assert_eq!(read(&[], AT), Err(Flaw::Nothing));
    assert_eq!(read(&[0; 5], AT), Err(Flaw::Nothing));
    assert_eq!(read(&[0; 100], AT), Err(Flaw::Nothing));
    assert_eq!(
        read(&[8, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], AT),
        Err(Flaw::Length(8))
    );
}

#[test]
fn a_batch_is_a_header_and_what_is_inside() {
    let inner = drafts()[0].inner();
    let inside = bytes_of(&inner, AT.offset(16));
    let mut bytes = batch_header(AT, 1, inside.len() as u64).to_vec();
    bytes.extend_from_slice(&inside);
    let found = read(&bytes, AT).expect("it is a batch");
    assert_eq!((found.entry, found.bytes), (Entry::Batch(1), bytes.len()));
    let found = read(&bytes[16..], AT.offset(16)).expect("it is inside");
    assert!(found.is_inner);
    // Its header can be read without the rest.
    assert!(read(&bytes[..16], AT).is_ok());
    for bit in 0..16 * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(read(&damaged, AT).is_err(), "bit {bit}");
    }
}

#[test]
fn what_a_later_version_writes_is_unknown() {
    let delete = Draft::delete(DbId(1), b"12345678");
    let with =
        |change: fn(&mut Vec<u8>)| read(&changed(&delete, change), AT).map(|found| found.bytes);
    assert_eq!(with(|_| {}), Ok(24));
    let is_unknown = |change, what| assert_eq!(with(change), Err(Flaw::Unknown(what)));
    is_unknown(|bytes| bytes[8] = 0, Unknown::Kind(0));
    is_unknown(|bytes| bytes[8] = 15, Unknown::Kind(15));
    is_unknown(|bytes| bytes[8] |= 0x30, Unknown::Value(tag(3, 0, false)));
    is_unknown(|bytes| bytes[9] = 0x80, Unknown::Flags(0x80));
    for change in [
        |bytes: &mut Vec<u8>| bytes[9] = 1,
        |bytes: &mut Vec<u8>| bytes[12] = 9,
        |bytes: &mut Vec<u8>| bytes[12] = 7,
        |bytes: &mut Vec<u8>| bytes[0] = 23,
    ] {
        is_unknown(change, Unknown::Content(2));
    }
}

/// A record as `draft`, changed and with the checksum of what it is then.
fn changed(draft: &Draft<'_>, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = bytes_of(draft, AT);
    change(&mut bytes);
    let length = u32::from_le_bytes(bytes[..4].try_into().expect("four"));
    let checksum = crc32c::crc32c_append(seed(AT, length), &bytes[8..]);
    bytes[4..8].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

#[test]
fn a_record_of_an_instance_has_its_number_and_no_expiry() {
    let db = DbId(1);
    let data = b"eight or more";
    let drafts = [
        (Draft::leaf(db, SEVEN, TREE, data), true),
        (Draft::edit_instance(db, SEVEN, TREE, data), true),
        (Draft::edit(db, SEVEN, TREE, data), false),
    ];
    for (draft, is_of_instance) in drafts {
        let kind = draft.kind as u8;
        for len in 0..16 {
            let bytes = changed(&draft, |bytes| bytes[12] = len);
            let is_known = !is_of_instance || len == 8;
            let flaw = (!is_known).then_some(Flaw::Unknown(Unknown::Content(kind)));
            assert_eq!(read(&bytes, AT).err(), flaw, "{len} {draft:?}");
        }
        let bytes = changed(&draft, |bytes| bytes[9] |= FLAG_EXPIRY);
        let unknown = Flaw::Unknown(Unknown::Content(kind));
        assert_eq!(read(&bytes, AT), Err(unknown), "{draft:?}");
        // Where there is no instance, the flag that says so is unknown.
        let other = if draft.kind == Kind::Edit {
            None
        } else {
            Some(TREE)
        };
        let bytes = changed(&draft, |bytes| bytes[9] ^= FLAG_TREE);
        let flaw = other.map(|tree| {
            let is_tree = false;
            Flaw::Unknown(Unknown::Value(Tag {
                form: 0,
                is_tree,
                ..tree
            }))
        });
        assert_eq!(read(&bytes, AT).err(), flaw, "{draft:?}");
    }
    for draft in [
        Draft::delete(db, b"key"),
        Draft::expire(db, b"key", None),
        Draft::mark(Lsn(16)),
        Draft::void(&[]),
    ] {
        let bytes = changed(&draft, |bytes| bytes[9] |= FLAG_TREE);
        let unknown = Flaw::Unknown(Unknown::Flags(FLAG_TREE));
        assert_eq!(read(&bytes, AT), Err(unknown), "{draft:?}");
    }
}

#[test]
#[should_panic(expected = "only collections have leaves")]
fn a_string_has_no_leaves() {
    Draft::leaf(DbId(0), SEVEN, TAG, b"");
}

#[test]
#[should_panic(expected = "only collections change by operations")]
fn a_string_has_no_edits() {
    Draft::edit(DbId(0), b"key", TAG, b"");
}

#[test]
fn a_value_is_of_a_kind_and_in_a_form_that_are_known() {
    let db = DbId(0);
    for bits in 0..128 {
        let tag = tag(bits / 8, bits % 4, bits & 4 != 0);
        let is_string = tag.kind == Tag::STRING && tag.form < 3 && !tag.is_tree;
        let is_hash = tag.kind == Tag::HASH;
        let is_set = matches!(tag.kind, Tag::SET | Tag::SORTED_SET) && tag.form < 3;
        let is_list = tag.kind == Tag::LIST && matches!(tag.form, 0 | 2);
        let is_stream = tag.kind == Tag::STREAM;
        let is_collection =
            is_hash || is_stream || matches!(tag.kind, Tag::LIST | Tag::SET | Tag::SORTED_SET);
        let are_elements = is_hash || is_set || is_list || is_stream && tag.form == 0;
        assert_eq!(tag.is_known(), is_string || are_elements);
        let with = |mut draft: Draft<'static>| {
            draft.tag = tag;
            draft
        };
        let known = [
            (Draft::set(db, b"key", tag, None, b"value"), tag.is_known()),
            (
                Draft::set_blob(db, b"key", tag, None, BLOB),
                tag.is_known() && !tag.is_tree,
            ),
            (Draft::patch(db, b"key", tag, 0, 5, b"value"), is_string),
            (
                with(Draft::edit_instance(db, SEVEN, TREE, b"")),
                are_elements,
            ),
            (
                with(Draft::leaf(db, SEVEN, TREE, b"")),
                is_collection && tag.is_tree && tag.form == 0,
            ),
        ];
        for (draft, is_known) in known {
            let bytes = bytes_of(&draft, AT);
            let unknown = if tag.is_tree && matches!(draft.kind, Kind::SetBlob | Kind::Patch) {
                Unknown::Flags(bytes[9])
            } else {
                Unknown::Value(tag)
            };
            let flaw = read(&bytes, AT).err();
            assert_eq!(
                flaw,
                (!is_known).then_some(Flaw::Unknown(unknown)),
                "{draft:?}"
            );
        }
    }
}

#[test]
fn hints_are_records_without_their_data() {
    let mut file = Vec::new();
    for draft in drafts() {
        let bytes = bytes_of(&draft, AT);
        let found = read(&bytes, AT).expect("it is a record");
        write_hint(&mut file, AT, &bytes[..found.before_data]);
        let Entry::Key(record) = found.entry else {
            file.clear();
            continue;
        };
        let hinted = read_hint(&file).expect("it is a hint");
        assert_eq!(hinted.bytes, file.len());
        let expected = match record.change {
            Change::Set {
                value: Value::Blob(_),
                ..
            } => record.change,
            Change::Set { tag, expiry, value } => Change::Set {
                tag,
                expiry,
                value: match value {
                    Value::Bytes(bytes) => Value::Stored(bytes.len() as u64),
                    other => other,
                },
            },
            Change::Patch {
                tag,
                offset,
                total,
                bytes,
            } => Change::Patch {
                tag,
                offset,
                total,
                bytes: match bytes {
                    Value::Bytes(bytes) => Value::Stored(bytes.len() as u64),
                    other => other,
                },
            },
            Change::Edit { tag, bytes } => Change::Edit {
                tag,
                bytes: Value::Stored(bytes.len()),
            },
            Change::Leaf { tag, bytes } => Change::Leaf {
                tag,
                bytes: Value::Stored(bytes.len()),
            },
            change => change,
        };
        assert_eq!(hinted.record.change, expected);
        assert_eq!(
            (hinted.record.lsn, hinted.record.db, hinted.record.key),
            (AT, draft.db, draft.key)
        );
        assert_eq!(hinted.record.bytes(), record.bytes());
        assert_eq!(hinted.record.address(), record.address());
        for len in 0..file.len() {
            let _ = read_hint(&file[..len]);
        }
        file.clear();
    }
}

/// The records of the dump in docs/format.md.
fn golden() -> Vec<(&'static str, Draft<'static>)> {
    let (db, tag, expiry) = (DbId(2), tag(Tag::STRING, 1, false), Some(1_700_000_000_000));
    vec![
        ("Set", Draft::set(db, b"key", tag, None, b"value")),
        ("Set, expiry", Draft::set(db, b"key", tag, expiry, b"value")),
        ("Delete", Draft::delete(db, b"key")),
        ("Expire", Draft::expire(db, b"key", expiry)),
        ("Patch", Draft::patch(db, b"key", tag, 2, 5, b"LUE")),
        ("Bind", Draft::bind(&[2, 0, 2, 0, 0, 0, 0, 0])),
        (
            "SetBlob",
            Draft::set_blob(
                db,
                b"key",
                tag,
                None,
                BlobRef {
                    id: 4096,
                    len: 1 << 20,
                    checksum: 0x0102_0304,
                },
            ),
        ),
        ("Mark", Draft::mark(Lsn(4096))),
        ("Retire", Draft::retire(Lsn(4096))),
        ("Void", Draft::void(&[0; 8])),
        ("Set, instance 7", Draft::set(db, b"key", TREE, None, SEVEN)),
        ("Leaf of instance 7", Draft::leaf(db, SEVEN, TREE, b"leaf")),
        ("Edit", Draft::edit(db, b"key", TREE, b"edit")),
        (
            "Edit of instance 7",
            Draft::edit_instance(db, SEVEN, TREE, b"edit"),
        ),
        (
            "Edit: instance 7 is gone",
            Draft::edit_instance(db, SEVEN, TREE, b""),
        ),
    ]
}

fn hex(title: &str, bytes: &[u8]) -> String {
    let lines = bytes.chunks(16).map(|line| {
        let digits: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        digits.join(" ")
    });
    format!("{title}\n{}\n", lines.collect::<Vec<_>>().join("\n"))
}

fn header_of(version: u32) -> Vec<u8> {
    let header = crate::segment::Header {
        epoch: 0,
        first: Lsn::FIRST,
        durable: Lsn::FIRST,
        name: *b"0123456789abcdef",
        writer: crate::version::Version(version),
        bindings: crate::bindings::Bindings::default(),
        segments: Vec::new(),
    };
    let header = header.encode();
    assert!(header[72..].iter().all(|&byte| byte == 0));
    header[..72].to_vec()
}

/// FERRITE_UPDATE_DUMP prints the dump that belongs into docs/format.md.
fn is_documented(dump: &str) {
    if std::env::var_os("FERRITE_UPDATE_DUMP").is_some() {
        println!("{dump}");
        return;
    }
    let document = include_str!("../../../../docs/format.md");
    assert!(
        document.contains(dump),
        "docs/format.md has another dump; this is the one of now:\n{dump}"
    );
}

#[test]
fn the_dump_in_the_documentation_is_what_is_written() {
    let mut dump = hex("header", &header_of(1 << 16));
    let mut at = Lsn::FIRST;
    for (title, draft) in golden() {
        let bytes = bytes_of(&draft, at);
        dump += &hex(&format!("{title} at {at}"), &bytes);
        at = at.offset(bytes.len() as u64);
    }
    let inner = Draft::delete(DbId(2), b"key").inner();
    let inner = bytes_of(&inner, at.offset(16));
    dump += &hex(
        &format!("Batch of one Delete at {at}"),
        &[&batch_header(at, 1, 24)[..], &inner].concat(),
    );
    is_documented(&dump);
}

/// A record as `draft`, with another byte at 8: the kinds of the record and of the value.
fn with_kinds(draft: &Draft<'_>, at: Lsn, kinds: u8) -> Vec<u8> {
    let mut bytes = bytes_of(draft, at);
    bytes[8] = kinds;
    let length = u32::from_le_bytes(bytes[..4].try_into().expect("four"));
    let checksum = crc32c::crc32c_append(seed(at, length), &bytes[8..]);
    bytes[4..8].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// The records of another version in docs/format.md: the integration tests make logs of that dump.
#[test]
fn the_dump_of_a_later_version_is_what_it_would_write() {
    let set = Draft::set(DbId(2), b"key", Tag::default(), None, b"value");
    let (first, second) = (Lsn::FIRST, Lsn::FIRST.offset(24));
    let mut dump = hex("header of version 9.2.1", &header_of(9 << 24 | 2 << 16 | 1));
    dump += &hex(&format!("Set at {first}"), &bytes_of(&set, first));
    for (title, kinds) in [("Record of kind 13", 0x0d), ("Set of kind 9", 0x91)] {
        let bytes = with_kinds(&set, second, kinds);
        assert!(matches!(read(&bytes, second), Err(Flaw::Unknown(_))));
        dump += &hex(&format!("{title} at {second}"), &bytes);
    }
    is_documented(&dump);
}
