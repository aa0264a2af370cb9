//! Collections in RDB files, and in the payloads of DUMP.
//!
//! A hash or a set of integers that redis-server would keep packed by default is written as it would write
//! it, so that it loads it fast; any other an item at a time. A hash with fields that expire is of a type of
//! its own, which redis-server reads since 7.4: a file that has one is of version 12, any other of version
//! 10.

use std::io::{self, Read, Write};

use keyspace::collection::cell::{Cell, DECIMAL_MAX, TEXT_MAX};
use keyspace::collection::run::{Damage, Item};
use keyspace::collection::sorted::{score_of, scored};
use keyspace::{AnyItems, HashRef, Kind, SetRef, StreamRef};
use rdb::packed::ListpackBuilder;
use rdb::{Attributes, Collection, Element, Typed, TypedReader, Writer};

use super::making::{Destination, Making, OnPause, READ_PAUSE_BYTES, ReadItems, ReadLeaf};
use super::streams::{StreamWriter, read_stream};
use crate::limits::{PACKED_ENTRIES, PACKED_INTEGERS, PACKED_VALUE_BYTES, SNAPSHOT_FIELDS};
use crate::persistence::durable::Durable;

/// The kinds of collections that are read.
pub(crate) const KINDS: &[Collection] = &[
    Collection::Hash,
    Collection::Set,
    Collection::SortedSet,
    Collection::List,
    Collection::Stream,
];

/// Writes collections; keeps its memory from one to the next.
#[derive(Default)]
pub(super) struct ItemsWriter {
    listpack: ListpackBuilder,
    integers: Vec<i64>,
}

impl ItemsWriter {
    /// Writes a key whose value is a collection. `read` reads leaves that are in the log alone; `pause` is
    /// called after some items, again and again.
    ///
    /// # Errors
    /// Those of the writer, of `read` and of `pause`; or a leaf makes no sense.
    pub(super) fn write<W: Write, E: From<io::Error> + From<Damage>>(
        &mut self,
        writer: &mut Writer<W>,
        key: &[u8],
        items: AnyItems<'_>,
        attributes: Attributes,
        (read, pause): (ReadLeaf<'_, E>, OnPause<'_, E>),
    ) -> Result<(), E> {
        match items {
            AnyItems::Hash(fields) => match fields.earliest() {
                Some(first) => writer.begin_timed(key, fields.len(), first, attributes)?,
                None if self.pack(fields) => {
                    return Ok(writer.hash(key, &mut self.listpack, attributes)?);
                }
                None => writer.begin(key, Collection::Hash, fields.len(), attributes)?,
            },
            AnyItems::Set(members) if self.pack_integers(members) => {
                return Ok(writer.integers(key, &self.integers, attributes)?);
            }
            AnyItems::Set(members) => {
                writer.begin(key, Collection::Set, members.len(), attributes)?;
            }
            AnyItems::SortedSet(scores) => {
                writer.begin(key, Collection::SortedSet, scores.len(), attributes)?;
            }
            AnyItems::Stream(items) => {
                let stream = StreamWriter::new(StreamRef::of(items), &mut self.listpack);
                return stream.write(writer, key, attributes, read, pause);
            }
            AnyItems::List(elements) => {
                writer.begin(key, Collection::List, elements.len(), attributes)?;
            }
        }
        let mut scratch = ([0; DECIMAL_MAX], [0; DECIMAL_MAX]);
        let mut number = 0;
        items.try_each(read, &mut |item| {
            number += 1;
            if number % SNAPSHOT_FIELDS == 0 {
                pause()?;
            }
            let name = item.name.text(&mut scratch.0);
            writer.element(match (item.value, items) {
                (None, _) => Element::String(name),
                (Some(_), AnyItems::SortedSet(_)) => Element::Member {
                    member: name,
                    score: score_of(&item),
                },
                (Some(value), _) => Element::Field {
                    field: name,
                    value: value.text(&mut scratch.1),
                    expiry_ms: item.expiry,
                },
            })?;
            Ok(())
        })?;
        Ok(writer.end()?)
    }

    /// Notes the members, in order; whether they are integers, as many as Redis would keep packed.
    fn pack_integers(&mut self, members: SetRef<'_>) -> bool {
        if members.len() > PACKED_INTEGERS || members.has_cold_leaves() {
            return false;
        }
        self.integers.clear();
        let is_packed = members.iter().all(|item| match item.name {
            Cell::Int(integer) => {
                self.integers.push(integer);
                true
            }
            Cell::Bytes(_) => false,
        });
        self.integers.sort_unstable();
        is_packed
    }

    /// Makes a listpack of the fields; whether that is how Redis would keep them.
    fn pack(&mut self, fields: HashRef<'_>) -> bool {
        if fields.len() > PACKED_ENTRIES || fields.has_cold_leaves() {
            return false;
        }
        self.listpack.clear();
        fields.iter().all(|item| {
            let cells = [item.name, value_of(&item)];
            let is_short = |cell: &Cell<'_>| cell.text_len() <= PACKED_VALUE_BYTES;
            let is_packed = cells.iter().all(is_short);
            if is_packed {
                cells.into_iter().for_each(|cell| match cell {
                    Cell::Bytes(bytes) => self.listpack.push(bytes),
                    Cell::Int(integer) => self.listpack.push_number(integer),
                });
            }
            is_packed
        })
    }
}

fn value_of<'a>(item: &Item<'a>) -> Cell<'a> {
    item.value.expect("a field has a value")
}

/// The payload of a collection, which is in memory.
pub(crate) fn dump_items(items: AnyItems<'_>, bytes: usize, compresses: bool) -> Vec<u8> {
    let mut writer = Writer::payload(bytes, compresses);
    let attributes = Attributes::default();
    ItemsWriter::default()
        .write::<_, io::Error>(
            &mut writer,
            b"",
            items,
            attributes,
            (&mut |_, _| Err(io::ErrorKind::NotFound.into()), &mut || {
                Ok(())
            }),
        )
        .expect("all is there, and a vector takes everything");
    writer.end_payload()
}

/// Reads the items of a collection that a reader has begun. `pause` is called after some items, again and
/// again, with the bytes of the file so far.
///
/// # Errors
/// The file is damaged, an item is there twice, the log refuses a leaf, or an error of `pause`.
pub(crate) fn read_items<R: Read>(
    server: &Durable,
    (reader, kind): (&mut TypedReader<R>, Collection),
    destination: &Destination<'_>,
    pause: &mut dyn FnMut(u64) -> Result<(), String>,
) -> Result<ReadItems, String> {
    let kind = match kind {
        Collection::Set => Kind::Set,
        Collection::SortedSet => Kind::SortedSet,
        Collection::List => Kind::List,
        Collection::Hash => Kind::Hash,
        Collection::Stream => return read_stream(server, reader, destination, pause),
    };
    let mut making = Making::InMemory(server.keyspace.builder(kind, destination.key));
    let (mut items, mut bytes, mut read) = (0, 0, 0);
    loop {
        items += 1;
        if items == SNAPSHOT_FIELDS || bytes >= READ_PAUSE_BYTES {
            pause(reader.offset())?;
            read += bytes;
            (items, bytes) = (0, 0);
            making = destination.moved(server, making, read)?;
        }
        let mut score_bytes = [0; 8];
        let item = match reader.next().map_err(|error| error.to_string())? {
            Some(Typed::Element(Element::Field {
                field,
                value,
                expiry_ms,
            })) => Item::pair(Cell::of(field), Cell::of(value)).with_expiry(expiry_ms),
            Some(Typed::Element(Element::String(member))) => Item::single(Cell::of(member)),
            Some(Typed::Element(Element::Member { member, score })) => {
                scored(Cell::of(member), score, &mut score_bytes)
            }
            Some(Typed::End) => return destination.finish(server, making),
            _ => unreachable!("a collection has items of its kind until it ends"),
        };
        let lengths = [Some(item.name), item.value].map(|cell| cell.map_or(0, Cell::text_len));
        if lengths.iter().any(|&length| length > TEXT_MAX) {
            let problem = format!("an item has more than {TEXT_MAX} bytes");
            return Err(destination.named(&problem));
        }
        bytes += lengths.iter().sum::<usize>();
        destination.add(&mut making, &item)?;
    }
}
