//! Collections in RDB files, and in the payloads of DUMP.
//!
//! A hash or a set of integers that redis-server would keep packed by default is written as it would write
//! it, so that it loads it fast; any other an item at a time. A hash with fields that expire is of a type of
//! its own, which redis-server reads since 7.4: a file that has one is of version 12, any other of version
//! 10.

use std::io::{self, Read, Write};

use ferrite_log::DbId;
use keyspace::collection::Base;
use keyspace::collection::build::{Builder, DuplicateItem};
use keyspace::collection::cell::{Cell, DECIMAL_MAX, TEXT_MAX};
use keyspace::collection::run::{Damage, Item};
use keyspace::collection::sorted::{score_of, scored};
use keyspace::{AnyItems, Detached, HashRef, Kind, LargeValue, SetRef};
use rdb::packed::ListpackBuilder;
use rdb::{Attributes, Collection, Element, Typed, TypedReader, Writer};

use super::in_log::{self, InLog};
use crate::config::Packed;
use crate::limits::{PACKED_ENTRIES, PACKED_INTEGERS, PACKED_VALUE_BYTES, SNAPSHOT_FIELDS};
use crate::persistence::durable::Durable;

/// Bytes of items that are read between two looks at whether to go on, if they are not [`SNAPSHOT_FIELDS`].
const READ_PAUSE_BYTES: usize = 1 << 20;

/// The kinds of collections that are read.
pub(crate) const KINDS: &[Collection] = &[
    Collection::Hash,
    Collection::Set,
    Collection::SortedSet,
    Collection::List,
];

/// Writes collections; keeps its memory from one to the next.
#[derive(Default)]
pub(super) struct ItemsWriter {
    listpack: ListpackBuilder,
    integers: Vec<i64>,
}

/// Called after some items, again and again.
type Pause<'p, E> = &'p mut dyn FnMut() -> Result<(), E>;

/// Reads the record on which a leaf of an instance rests.
type ReadLeaf<'p, E> = &'p mut dyn FnMut(u64, Base) -> Result<LargeValue, E>;

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
        (read, pause): (ReadLeaf<'_, E>, Pause<'_, E>),
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

/// A collection that was read.
pub(crate) enum ReadItems {
    /// With all of its items that have not expired.
    Items(Detached),
    /// All of its items have expired.
    Over,
    /// It has no items.
    Empty,
}

/// What the items of a collection are read for.
pub(crate) struct Destination<'k> {
    /// The key, and when it expires (Unix, ms).
    pub(crate) key: &'k [u8],
    pub(crate) expiry: Option<i64>,
    /// Items that have expired at this time (Unix, ms) are left out.
    pub(crate) now: Option<i64>,
    /// What becomes of very many items.
    pub(crate) beyond: Beyond<'k>,
}

/// Makes room for so many bytes.
type MakeRoom<'k> = &'k dyn Fn(usize) -> Result<(), String>;

/// What becomes of a collection with many items.
#[derive(Clone, Copy)]
pub(crate) enum Beyond<'k> {
    /// It is made in memory.
    InMemory,
    /// When memory is short, its leaves are written to the log for this database. Those in memory take more
    /// while they go there.
    InLog(DbId, MakeRoom<'k>),
    /// Its items are dropped now and then, so some that come twice are not found.
    Dropped,
}

/// The items so far.
enum Making<'s> {
    InMemory(Builder),
    InLog(Box<InLog<'s>>),
}

impl Destination<'_> {
    fn is_due(&self, item: &Item<'_>) -> bool {
        let now = self.now.map(|now| now.max(0) as u64);
        now.is_some_and(|now| item.is_due(now))
    }

    fn twice(&self, item: &Item<'_>, kind: Kind) -> String {
        let mut scratch = [0; DECIMAL_MAX];
        let name = item.name.text(&mut scratch).escape_ascii();
        let item = match kind {
            Kind::Set | Kind::SortedSet => "member",
            Kind::Hash => "field",
            Kind::String | Kind::List | Kind::Stream => "element",
        };
        self.named(&format!("the {item} \"{name}\" is there twice"))
    }

    fn add(&self, making: &mut Making<'_>, item: &Item<'_>) -> Result<(), String> {
        match making {
            Making::InLog(_) if self.is_due(item) => Ok(()),
            Making::InLog(large) => large.push(item).map_err(|problem| self.named(&problem)),
            Making::InMemory(builder) => {
                let added = builder.push(item);
                added.map_err(|DuplicateItem| self.twice(item, builder.kind()))
            }
        }
    }

    /// Goes on when the items, of `read` bytes, may be many.
    fn moved<'s>(
        &self,
        server: &'s Durable,
        making: Making<'s>,
        read: usize,
    ) -> Result<Making<'s>, String> {
        let mut builder = match making {
            Making::InMemory(builder) if read >= in_log::least_bytes(server) => builder,
            making => return Ok(making),
        };
        match self.beyond {
            Beyond::InMemory => return Ok(Making::InMemory(builder)),
            Beyond::Dropped => {
                let none = server.keyspace.builder(builder.kind(), self.key);
                return Ok(Making::InMemory(none));
            }
            Beyond::InLog(_, make_room) if in_log::is_needed(server) => {
                make_room(in_log::moving_bytes(server))?;
            }
            Beyond::InLog(..) => return Ok(Making::InMemory(builder)),
        }
        if let Some(now) = self.now {
            builder.remove_due(now.max(0) as u64);
        }
        let large = InLog::new(server, self.key, builder);
        let large = large.map_err(|problem| self.named(&problem))?;
        Ok(Making::InLog(Box::new(large)))
    }

    /// A problem of the collection, with its key.
    fn named(&self, problem: &str) -> String {
        format!("key \"{}\": {problem}", self.key.escape_ascii())
    }

    fn finish(&self, server: &Durable, making: Making<'_>) -> Result<ReadItems, String> {
        let mut builder = match (making, self.beyond) {
            (Making::InLog(large), Beyond::InLog(db, _)) => {
                let made = large.finish(db, self.expiry);
                let made = made.map_err(|problem| self.named(&problem))?;
                return Ok(made.map_or(ReadItems::Over, ReadItems::Items));
            }
            (Making::InLog(_), _) => return Err(self.named("there is no log")),
            (Making::InMemory(builder), _) => builder,
        };
        if builder.is_empty() {
            return Ok(ReadItems::Empty);
        }
        if let Some(now) = self.now {
            builder.remove_due(now.max(0) as u64);
        }
        if builder.is_empty() {
            return Ok(ReadItems::Over);
        }
        let form = Packed::form_of(&server.settings, &builder);
        Ok(ReadItems::Items(Detached::built(
            builder,
            form,
            self.expiry,
        )))
    }
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
