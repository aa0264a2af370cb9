//! Streams made by hand: whole and damaged ones, read and written anew.

use std::io::Cursor;

use super::copy::StreamValue;
use super::groups::StreamGroups;
use super::parts::{StreamId, StreamPart, StreamState};
use crate::forms::stream::{Stream, whole, without_entries};
use crate::forms::{Cell, text};
use crate::payload::Payload;
use crate::writer::{Attributes, Options, Writer};
use crate::{Element, Typed, TypedReader};

const FORMS: [(u8, u8); 3] = [(15, 1), (19, 2), (21, 3)];

/// The value of a stream in a form, with its type.
fn value(stream: &Stream, code: u8, form: u8) -> Vec<u8> {
    [&[code], &stream.bytes(form)[..]].concat()
}

/// The entries of a value, a line each.
fn entries(value: &[u8]) -> Vec<String> {
    let payload = Payload::of_value(value, 12);
    let mut reader = payload.read();
    let mut lines = Vec::new();
    while let Some(part) = reader.next().expect("it is whole") {
        if let Typed::Element(Element::Stream(StreamPart::Entry { id, fields })) = part {
            let fields = fields.iter().map(|text| text.escape_ascii().to_string());
            let fields: Vec<String> = fields.collect();
            lines.push(format!("{id} {}", fields.join(" ")));
        }
    }
    lines
}

fn id(ms: u64, seq: u64) -> StreamId {
    StreamId { ms, seq }
}

#[test]
fn each_form_is_read() {
    for (code, form) in FORMS {
        let value = value(&whole(), code, form);
        let long = "l".repeat(70);
        let expected = [
            "1000-1 f a g -5".to_owned(),
            "1000-3 other b".to_owned(),
            format!("1007-0 f {long} g "),
            "2000-0 f 12".to_owned(),
        ];
        assert_eq!(entries(&value), expected, "{form}");
        let stream = StreamValue::read(Payload::of_value(&value, 12)).expect("it is whole");
        let (deleted, added) = match form {
            1 => (id(0, 0), 4),
            _ => (id(2000, 9), 6),
        };
        let state = StreamState {
            len: 4,
            last: id(2000, 9),
            first: id(1000, 1),
            deleted,
            added,
        };
        assert_eq!(*stream.state(), state, "{form}");
        let [group, idle] = stream.groups().groups() else {
            panic!("there are two groups");
        };
        assert_eq!(
            (&group.name[..], &idle.name[..]),
            (&b"group"[..], &b"idle"[..])
        );
        assert_eq!(group.read, (form > 1).then_some(4));
        assert_eq!((idle.read, idle.pending.len()), (None, 0));
        let pending: Vec<_> = group
            .pending
            .iter()
            .map(|its| (its.id, its.deliveries))
            .collect();
        assert_eq!(
            pending,
            [(id(1000, 1), 1), (id(1000, 2), 300), (id(1007, 0), 2)]
        );
        let owned: Vec<usize> = group.consumers.iter().map(|its| its.owned.len()).collect();
        assert_eq!(owned, [2, 1, 0]);
    }
}

#[test]
fn a_stream_is_written_anew() {
    let mut many = whole();
    // More entries than a node takes.
    let entry = |number: i64| {
        [2, number, 0]
            .map(Cell::Number)
            .into_iter()
            .chain([text("v"), Cell::Number(4)])
    };
    let head = [text("f"), Cell::Number(0)];
    let cells = [350, 0, 1].map(Cell::Number).into_iter().chain(head);
    many.nodes.truncate(1);
    many.nodes[0].cells = cells.chain((0..350).flat_map(entry)).collect();
    (many.len, many.added) = (350, 350);
    for stream in [whole(), without_entries(), many] {
        for (code, form) in FORMS {
            let value = value(&stream, code, form);
            let before = StreamValue::read(Payload::of_value(&value, 12)).expect("it is whole");
            let mut writer = Writer::payload(0, true);
            writer
                .stream(b"", &before, Attributes::default())
                .expect("a vector takes everything");
            let payload = writer.end_payload();
            assert_eq!(payload[0], 19);
            let after = Payload::check(&payload).expect("it was just made");
            let after = StreamValue::read(after).expect("it was just made");
            assert_eq!(after.state(), before.state());
            assert_eq!(after.groups().groups(), before.groups().groups());
            assert_eq!(entries(&payload[..payload.len() - 10]), entries(&value));
        }
    }
}

#[test]
fn groups_are_read_and_written_without_entries() {
    let stream = [&[19], &b"\x01k"[..], &whole().bytes(2)].concat();
    let mut file = Writer::new(
        Vec::new(),
        Options {
            checksum: false,
            ..Options::default()
        },
    )
    .and_then(Writer::finish)
    .expect("a vector takes everything");
    let end = file.split_off(9);
    file.extend([&stream[..], &stream, &end].concat());
    let mut reader = TypedReader::new(&file[..], false).expect("it is a file");
    let mut places = Vec::new();
    while reader.next().expect("it is whole").is_some() {
        places.extend(reader.groups_place());
    }
    let value = value(&whole(), 19, 2);
    let expected = StreamValue::read(Payload::of_value(&value, 12)).expect("it is whole");
    assert_eq!(places.len(), 2);
    for place in &places {
        let groups = place.read(Cursor::new(&file)).expect("they are there");
        assert_eq!(groups.groups(), expected.groups().groups());
        let state = StreamState {
            last: id(999, 5),
            ..StreamState::default()
        };
        let payload = groups.payload(&state);
        let payload = Payload::check(&payload).expect("it was just made");
        let alone = StreamValue::read(payload).expect("it was just made");
        assert_eq!(*alone.state(), state);
        assert_eq!(alone.groups().groups(), expected.groups().groups());
    }
    let cut = places[1].read(Cursor::new(&file[..file.len() - 20]));
    assert!(cut.is_err());
}

/// A change that makes a stream a damaged one, and a part of the message about it.
type Damage = (&'static str, fn(&mut Stream));

const DAMAGES: [Damage; 18] = [
    ("an ID above that of the entry before", |stream| {
        stream.nodes[1].id = [1000, 0]
    }),
    ("an ID above that of the entry before", |stream| {
        stream.nodes.swap(0, 1)
    }),
    ("an ID above that of the entry before", |stream| {
        stream.nodes[0].id = [0, 0]
    }),
    ("the number of entries of a stream", |stream| stream.len = 5),
    ("the last ID of a stream", |stream| stream.last = [1999, 9]),
    ("with other entries than it says", |stream| {
        stream.nodes[0].cells[0] = Cell::Number(2);
    }),
    ("with more deleted entries than it says", |stream| {
        stream.nodes[0].cells[1] = Cell::Number(0);
        stream.nodes[0].cells[0] = Cell::Number(4);
    }),
    ("a number of a node of a stream", |stream| {
        stream.nodes[1].cells[0] = text("x")
    }),
    ("a number of a node of a stream", |stream| {
        stream.nodes[1].cells[2] = Cell::Number(-1)
    }),
    ("the length of an entry of a stream", |stream| {
        *stream.nodes[1].cells.last_mut().expect("it has cells") = Cell::Number(5);
    }),
    ("a group of another name", |stream| {
        stream.groups[1].name = "group"
    }),
    ("a consumer of another name", |stream| {
        stream.groups[0].consumers[2].name = "anna"
    }),
    ("a pending entry above the one before", |stream| {
        stream.groups[0].pending.swap(0, 1)
    }),
    ("a pending entry above the one before", |stream| {
        stream.groups[0].pending[1] = stream.groups[0].pending[0];
    }),
    ("a pending entry of the group that no other", |stream| {
        stream.groups[0].consumers[2].owned.push([1000, 3]);
    }),
    ("a pending entry of the group that no other", |stream| {
        stream.groups[0].consumers[2].owned.push([1000, 1]);
    }),
    ("a pending entry of the group that no other", |stream| {
        let owned = stream.groups[0].consumers.clone();
        stream.groups[1].consumers = owned;
    }),
    ("a consumer for each pending entry of a group", |stream| {
        stream.groups[0].consumers[0].owned.pop();
    }),
];

#[test]
fn damaged_streams_are_refused() {
    for (expected, damage) in DAMAGES {
        let mut stream = whole();
        damage(&mut stream);
        for (code, form) in FORMS {
            let value = value(&stream, code, form);
            let Err(error) = StreamValue::read(Payload::of_value(&value, 12)) else {
                panic!("form {form} was read: {expected}");
            };
            let error = error.to_string();
            assert!(error.contains(expected), "form {form}: {error}");
        }
    }
}

#[test]
fn a_stream_that_is_cut_off_is_refused() {
    for (code, form) in FORMS {
        let value = value(&whole(), code, form);
        for len in 0..value.len() {
            let cut = Payload::of_value(&value[..len], 12);
            assert!(
                StreamValue::read(cut).is_err(),
                "form {form} of {len} bytes"
            );
        }
        let other = [0, 1, b'a'];
        assert!(StreamValue::read(Payload::of_value(&other, 12)).is_err());
    }
}

#[test]
fn parts_of_groups_without_a_group_are_refused() {
    let mut groups = StreamGroups::default();
    assert!(groups.take(&StreamPart::Owned { id: id(1, 1) }).is_err());
    let consumer = StreamPart::Consumer {
        name: b"anna",
        seen_ms: 0,
        active_ms: None,
    };
    assert!(groups.take(&consumer).is_err());
}

#[test]
fn the_id_before_another() {
    for (before, after) in [
        (id(5, 6), id(5, 7)),
        (id(4, u64::MAX), id(5, 0)),
        (id(0, 0), id(0, 1)),
    ] {
        assert_eq!(after.before(), before);
        assert_eq!(before < after, after.before() < after);
    }
    assert_eq!(id(0, 0).before(), id(0, 0));
}
