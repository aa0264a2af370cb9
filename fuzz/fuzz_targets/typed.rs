//! No file makes the reader of collections panic or take memory that its length does not justify, and what it reads from a
//! file survives writing and reading.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rdb::{Attributes, Collection, Element, Item, Options, Typed, TypedReader, Writer, lzf};

/// An element: what it is, what belongs to it, and when it expires.
type Part = (Vec<u8>, Vec<u8>, Option<u64>);

/// A collection of a file: key, kind, elements, attributes.
type Key = (Vec<u8>, Collection, Vec<Part>, Attributes);

fn part_of(element: Element<'_>) -> Part {
    match element {
        Element::String(string) => (string.to_vec(), Vec::new(), None),
        Element::Member { member, score } => (member.to_vec(), score.to_le_bytes().to_vec(), None),
        Element::Field { field, value, expiry_ms } => (field.to_vec(), value.to_vec(), expiry_ms),
        Element::Stream(_) => (Vec::new(), Vec::new(), None),
    }
}

/// The collections up to where the file is none, and whether all of it is one.
fn read(file: &[u8], checksum: bool) -> (Vec<Key>, bool) {
    let Ok(mut reader) = TypedReader::new(file, checksum) else {
        return (Vec::new(), false);
    };
    reader.pass_unsupported();
    let (mut keys, mut open): (Vec<Key>, Option<Key>) = (Vec::new(), None);
    let most = lzf::expanded_max(file.len());
    loop {
        match reader.next() {
            Err(_) => return (keys, false),
            Ok(None) => {
                assert!(open.is_none());
                return (keys, true);
            }
            Ok(Some(Typed::Begin { key, kind, attributes, .. })) => {
                assert!(open.is_none());
                open = Some((key.to_vec(), kind, Vec::new(), attributes));
            }
            Ok(Some(Typed::Element(element))) => {
                let (_, _, elements, _) = open.as_mut().expect("it was begun");
                let part = part_of(element);
                assert!(part.0.len() + part.1.len() <= 2 * most + 20 && elements.len() <= most);
                elements.push(part);
            }
            Ok(Some(Typed::End)) => {
                let key = open.take().expect("it was begun");
                // The writer of streams wants the whole of one; tests of the crate have it.
                if !key.2.is_empty() && key.1 != Collection::Stream {
                    keys.push(key);
                }
            }
            Ok(Some(Typed::Item(Item::Entry(_)))) => assert!(open.is_none()),
            Ok(Some(Typed::Item(_))) => {}
        }
    }
}

fn write(keys: &[Key], options: Options) -> std::io::Result<Vec<u8>> {
    let mut writer = Writer::new(Vec::new(), options)?;
    for (key, kind, elements, attributes) in keys {
        let count = elements.len() as u64;
        match elements.iter().filter_map(|(_, _, time)| *time).min() {
            Some(first) => writer.begin_timed(key, count, first, *attributes)?,
            None => writer.begin(key, *kind, count, *attributes)?,
        }
        for (one, other, expiry_ms) in elements {
            writer.element(match kind {
                Collection::List | Collection::Set => Element::String(one),
                Collection::Hash => Element::Field { field: one, value: other, expiry_ms: *expiry_ms },
                Collection::SortedSet => Element::Member {
                    member: one,
                    score: f64::from_le_bytes(other[..].try_into().expect("eight bytes")),
                },
                Collection::Stream => unreachable!("streams are left out"),
            })?;
        }
        writer.end()?;
    }
    writer.finish()
}

fuzz_target!(|data: &[u8]| {
    // Nearly no input begins right by itself.
    let file = [b"REDIS0010", data].concat();
    for (keys, _) in [read(&file, false), read(data, true)] {
        let options = Options {
            compression: data.len() % 2 == 0,
            checksum: data.len() % 3 > 0,
            timed: true,
        };
        let written = write(&keys, options).expect("a vector takes everything");
        assert_eq!(read(&written, true), (keys, true));
    }
});
