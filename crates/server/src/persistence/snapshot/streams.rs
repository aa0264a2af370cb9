//! Streams in RDB files, and in the payloads of DUMP.
//!
//! A leaf of a stream becomes a node of at most [`NODE_ENTRIES`] entries. The fields of a node are those
//! of its first entry. In a file a stream has its entries first, then its groups; here the entries are
//! the last. So the leaves of pending entries are read after those of the entries.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Place;
use std::io::{self, Read, Write};

use keyspace::collection::cell::{Cell, DECIMAL_MAX, TEXT_MAX};
use keyspace::collection::run::{Damage, Item};
use keyspace::collection::stream::content::{SHAPE_BYTES_MAX, SHAPES_MAX};
use keyspace::collection::stream::group::NUMBERS_END;
use keyspace::collection::stream::head::HeadBuffer;
use keyspace::collection::stream::{
    Consumer, Content, EntryBuffer, EntryFields, Group, Head, Id, ItemBuffer, Pending, StreamEntry,
};
use keyspace::{Kind, StreamRef};
use rdb::packed::ListpackBuilder;
use rdb::{
    Attributes, Element, StreamId, StreamPart, StreamState, Texts, Typed, TypedReader, Writer,
};

use super::making::{Destination, Making, OnPause, READ_PAUSE_BYTES, ReadItems, ReadLeaf};
use crate::limits::SNAPSHOT_FIELDS;
use crate::persistence::durable::Durable;

/// Entries of a node.
const NODE_ENTRIES: u64 = 100;

fn id_of(id: Id) -> StreamId {
    StreamId {
        ms: id.ms,
        seq: id.seq,
    }
}

fn id_from(id: StreamId) -> Id {
    Id {
        ms: id.ms,
        seq: id.seq,
    }
}

/// Writes a stream.
pub(super) struct StreamWriter<'w, 'e> {
    stream: StreamRef<'e>,
    listpack: &'w mut ListpackBuilder,
    shapes: Vec<&'e [u8]>,
    head: Head,
    /// The names of the fields of the node.
    names: Vec<u8>,
}

/// The node that is being written.
struct Node {
    id: Id,
    /// Entries that it lacks.
    left: u64,
}

impl<'w, 'e> StreamWriter<'w, 'e> {
    pub(super) fn new(stream: StreamRef<'e>, listpack: &'w mut ListpackBuilder) -> Self {
        StreamWriter {
            stream,
            listpack,
            shapes: stream.shapes(),
            head: stream.head().unwrap_or_default(),
            names: Vec::new(),
        }
    }

    /// The numbers of entries of the nodes.
    fn nodes(&self) -> Vec<u64> {
        let mut from = self.stream.first_rank();
        let mut nodes = Vec::new();
        if self.head.len == 0 {
            return nodes;
        }
        for end in self.stream.items().leaf_ends(from) {
            while from < end {
                let count = (end - from).min(NODE_ENTRIES);
                nodes.push(count);
                from += count;
            }
        }
        nodes
    }

    /// Writes all of it. `read` and `pause` as of [`super::items::ItemsWriter::write`].
    pub(super) fn write<W: Write, E: From<io::Error> + From<Damage>>(
        mut self,
        writer: &mut Writer<W>,
        key: &[u8],
        attributes: Attributes,
        read: ReadLeaf<'_, E>,
        pause: OnPause<'_, E>,
    ) -> Result<(), E> {
        let nodes = self.nodes();
        writer.begin_stream(key, nodes.len() as u64, attributes)?;
        let (items, base, first_rank) = (
            self.stream.items(),
            self.stream.base(),
            self.stream.first_rank(),
        );
        let (mut nodes, mut node, mut first) = (nodes.into_iter(), None, None);
        let mut number = 0;
        items.try_ranks(first_rank..items.len(), read, &mut |item| {
            number += 1;
            if number % SNAPSHOT_FIELDS == 0 {
                pause()?;
            }
            let entry = StreamEntry::of(base, &item).ok_or(Damage::Kind)?;
            first.get_or_insert(entry.id);
            let own = match &mut node {
                Some(own) => own,
                none => {
                    let left = nodes.next().ok_or(Damage::Kind)?;
                    self.begin_node(&entry, left);
                    none.insert(Node { id: entry.id, left })
                }
            };
            self.push_entry(own.id, &entry);
            own.left -= 1;
            if own.left == 0 {
                writer.stream_node(id_of(own.id), self.listpack.listpack())?;
                node = None;
            }
            Ok(())
        })?;
        if node.is_some() || nodes.next().is_some() {
            return Err(Damage::Kind.into());
        }
        self.write_groups(writer, first.unwrap_or(Id::MIN), read, pause)
    }

    /// Begins a node with its first entry.
    fn begin_node(&mut self, entry: &StreamEntry<'_>, count: u64) {
        self.listpack.clear();
        self.listpack.push_number(count as i64);
        self.listpack.push_number(0);
        let fields = EntryFields::of(entry.content, &self.shapes);
        self.listpack.push_number(fields.len() as i64);
        self.names.clear();
        for (name, _) in fields {
            push(self.listpack, name);
            note_name(&mut self.names, name);
        }
        self.listpack.push_number(0);
    }

    fn push_entry(&mut self, node: Id, entry: &StreamEntry<'_>) {
        let fields = EntryFields::of(entry.content, &self.shapes);
        let mut names = Vec::new();
        fields.for_each(|(name, _)| note_name(&mut names, name));
        let has_same = names == self.names;
        self.listpack.push_number(if has_same { 2 } else { 0 });
        let later = |own: u64, before: u64| own.wrapping_sub(before) as i64;
        self.listpack.push_number(later(entry.id.ms, node.ms));
        self.listpack.push_number(later(entry.id.seq, node.seq));
        let mut cells = 3;
        if !has_same {
            self.listpack.push_number(fields.len() as i64);
            cells += 1;
        }
        for (name, value) in fields {
            if !has_same {
                push(self.listpack, name);
                cells += 1;
            }
            push(self.listpack, value);
            cells += 1;
        }
        self.listpack.push_number(cells);
    }

    /// Writes the groups, which follow the entries.
    fn write_groups<W: Write, E: From<io::Error> + From<Damage>>(
        &self,
        writer: &mut Writer<W>,
        first: Id,
        read: ReadLeaf<'_, E>,
        pause: OnPause<'_, E>,
    ) -> Result<(), E> {
        let groups: Vec<(&[u8], Group)> = self.stream.groups().collect();
        let state = StreamState {
            len: self.head.len,
            last: id_of(self.head.last),
            first: id_of(first),
            deleted: id_of(self.head.deleted),
            added: self.head.added,
        };
        writer.stream_state(&state, groups.len() as u64)?;
        // Pending entries are in the order of the numbers of their groups, before the entries.
        let all: u64 = groups.iter().map(|(_, group)| group.pending).sum();
        let from = self.stream.first_rank().saturating_sub(all);
        for (name, group) in &groups {
            pause()?;
            let before = groups.iter().map(|(_, other)| other);
            let before = before.filter(|other| other.number < group.number);
            let from = from + before.map(|other| other.pending).sum::<u64>();
            let ranks = from..from + group.pending;
            writer.stream_group(name, id_of(group.last), group.read, group.pending)?;
            let mut owners: Vec<(u32, Id)> = Vec::new();
            let (base, mut number) = (self.stream.base(), 0);
            self.stream.items().try_ranks(ranks, read, &mut |item| {
                number += 1;
                if number % SNAPSHOT_FIELDS == 0 {
                    pause()?;
                }
                let (of, pending) = Pending::of(base, &item).ok_or(Damage::Kind)?;
                if of != group.number {
                    return Err(Damage::Kind.into());
                }
                owners.push((pending.consumer, pending.id));
                let id = id_of(pending.id);
                Ok(writer.stream_pending(id, pending.delivered, pending.deliveries)?)
            })?;
            owners.sort_unstable();
            self.write_consumers::<_, E>(writer, group.number, &owners)?;
        }
        Ok(())
    }

    /// Writes the consumers of a group. `owners`: its pending entries, by consumer.
    fn write_consumers<W: Write, E: From<io::Error> + From<Damage>>(
        &self,
        writer: &mut Writer<W>,
        group: u32,
        owners: &[(u32, Id)],
    ) -> Result<(), E> {
        let names: Vec<(&[u8], u32)> = self.stream.consumer_names(group).collect();
        writer.stream_consumers(names.len() as u64)?;
        let (mut buffer, mut written) = (ItemBuffer::default(), 0);
        for (name, number) in names {
            let consumer = self.stream.consumer(group, number, &mut buffer);
            let consumer = consumer.ok_or(Damage::Kind)?;
            let from = owners.partition_point(|&(owner, _)| owner < number);
            let to = owners.partition_point(|&(owner, _)| owner <= number);
            writer.stream_consumer(name, consumer.seen, (to - from) as u64)?;
            for &(_, id) in &owners[from..to] {
                writer.stream_owned(id_of(id))?;
            }
            written += to - from;
        }
        match written == owners.len() {
            true => Ok(()),
            false => Err(Damage::Kind.into()),
        }
    }
}

fn push(listpack: &mut ListpackBuilder, cell: Cell<'_>) {
    match cell {
        Cell::Bytes(bytes) => listpack.push(bytes),
        Cell::Int(integer) => listpack.push_number(integer),
    }
}

/// Puts a name after others, so that no others look the same.
fn note_name(names: &mut Vec<u8>, name: Cell<'_>) {
    let mut scratch = [0; DECIMAL_MAX];
    let text = name.text(&mut scratch);
    names.extend_from_slice(&(text.len() as u64).to_le_bytes());
    names.extend_from_slice(text);
}

/// A consumer that is being read: its number, its name, and the facts about it.
struct Reading {
    number: u32,
    name: Vec<u8>,
    seen: u64,
    active: Option<u64>,
    pending: u64,
}

/// A stream that is being read.
struct StreamMaker<'m, 's, 'd> {
    making: &'m mut Making<'s>,
    destination: &'d Destination<'d>,
    /// The head, once it has its base.
    head: Option<Head>,
    /// The shapes by their names, and bytes of them.
    shapes: HashMap<Vec<u8>, u8>,
    shape_bytes: usize,
    names: Content,
    content: Content,
    group: Option<(Vec<u8>, Group)>,
    /// The pending entries of the group, in order, and whether each has a consumer.
    pending: Vec<(Pending, bool)>,
    consumer: Option<Reading>,
}

impl StreamMaker<'_, '_, '_> {
    fn refuse(&self, problem: &str) -> String {
        self.destination.named(problem)
    }

    fn add(&mut self, item: &Item<'_>) -> Result<(), String> {
        self.destination.add(self.making, item)
    }

    /// The head; it is the first item.
    fn head(&mut self, ms: u64) -> Result<&mut Head, String> {
        if self.head.is_none() {
            let head = Head::new(ms);
            self.add(&head.item(&mut HeadBuffer::default()))?;
            self.head = Some(head);
        }
        Ok(self.head.as_mut().expect("it was just set"))
    }

    fn number(&mut self) -> Result<u32, String> {
        let head = self.head.as_mut().expect("its state was read");
        let number = head.numbers;
        head.numbers += 1;
        match number < NUMBERS_END {
            true => Ok(number as u32),
            false => Err(self.refuse("it has too many groups and consumers")),
        }
    }

    fn base(&self) -> u64 {
        self.head.map_or(0, |head| head.base)
    }

    fn part(&mut self, part: StreamPart<'_>) -> Result<(), String> {
        match part {
            StreamPart::Entry { id, fields } => self.entry(id_from(id), fields),
            StreamPart::State(state) => {
                let head = self.head(state.last.ms)?;
                head.len = state.len;
                head.last = id_from(state.last);
                head.deleted = id_from(state.deleted);
                head.added = state.added;
                Ok(())
            }
            StreamPart::Group { name, last, read } => {
                self.end_group()?;
                let group = Group {
                    number: self.number()?,
                    last: id_from(last),
                    read,
                    pending: 0,
                };
                self.group = Some((name.to_vec(), group));
                Ok(())
            }
            StreamPart::Pending {
                id,
                delivered_ms,
                deliveries,
            } => {
                let pending = Pending {
                    id: id_from(id),
                    consumer: 0,
                    delivered: delivered_ms,
                    deliveries,
                };
                let last = self.pending.last();
                if last.is_some_and(|(last, _)| last.id >= pending.id) {
                    return Err(self.refuse("the IDs of pending entries do not ascend"));
                }
                self.pending.push((pending, false));
                Ok(())
            }
            StreamPart::Consumer {
                name,
                seen_ms,
                active_ms,
            } => {
                self.end_consumer()?;
                self.consumer = Some(Reading {
                    number: self.number()?,
                    name: name.to_vec(),
                    seen: seen_ms,
                    active: active_ms,
                    pending: 0,
                });
                Ok(())
            }
            StreamPart::Owned { id } => self.owned(id_from(id)),
        }
    }

    fn entry(&mut self, id: Id, fields: &Texts) -> Result<(), String> {
        self.head(id.ms)?;
        self.names.begin_shape();
        fields
            .iter()
            .step_by(2)
            .for_each(|name| self.names.push(Cell::of(name)));
        let may_be_added = self.shapes.len() < SHAPES_MAX
            && self.shape_bytes + self.names.bytes().len() <= SHAPE_BYTES_MAX;
        let next = self.shapes.len() as u8;
        let (shape, is_new) = match self.shapes.entry(self.names.bytes().to_vec()) {
            Place::Occupied(known) => (Some(*known.get()), false),
            Place::Vacant(place) if may_be_added => (Some(*place.insert(next)), true),
            Place::Vacant(_) => (None, false),
        };
        if is_new {
            self.shape_bytes += self.names.bytes().len();
            let mut name = [0; 2];
            let item = StreamRef::shape_item(next, self.names.bytes(), &mut name);
            self.destination.add(self.making, &item)?;
        }
        self.content.begin(shape);
        for (at, text) in fields.iter().enumerate() {
            if shape.is_none() || at % 2 == 1 {
                self.content.push(Cell::of(text));
            }
        }
        if self.content.bytes().len() > TEXT_MAX {
            return Err(self.refuse(&format!("an entry has more than {TEXT_MAX} bytes")));
        }
        let content = self.content.bytes();
        let mut buffer = EntryBuffer::default();
        let item = StreamEntry { id, content }.item(self.base(), &mut buffer);
        self.destination.add(self.making, &item)
    }

    /// A pending entry of the group is one of the consumer.
    fn owned(&mut self, id: Id) -> Result<(), String> {
        let found = self
            .pending
            .binary_search_by_key(&id, |(pending, _)| pending.id);
        let is_free = |at: &usize| !self.pending[*at].1;
        let (Some(at), Some(consumer), Some((_, group))) = (
            found.ok().filter(is_free),
            &mut self.consumer,
            &mut self.group,
        ) else {
            return Err(
                self.refuse("a pending entry of a consumer is none of its group, or of two")
            );
        };
        self.pending[at].1 = true;
        consumer.pending += 1;
        group.pending += 1;
        let pending = Pending {
            consumer: consumer.number,
            ..self.pending[at].0
        };
        let (number, base) = (group.number, self.base());
        self.add(&ItemBuffer::default().pending(base, number, &pending))
    }

    fn end_consumer(&mut self) -> Result<(), String> {
        let (Some(its), Some((_, group))) = (self.consumer.take(), &self.group) else {
            return Ok(());
        };
        let (number, mut buffer) = (group.number, ItemBuffer::default());
        let consumer = Consumer {
            seen: its.seen,
            active: its.active,
            pending: its.pending,
            name: &its.name,
        };
        self.add(&buffer.consumer(number, its.number, Some(&consumer)))?;
        self.add(&buffer.consumer_name(number, &its.name, its.number))
    }

    fn end_group(&mut self) -> Result<(), String> {
        self.end_consumer()?;
        let Some((name, group)) = self.group.take() else {
            return Ok(());
        };
        if self
            .pending
            .drain(..)
            .any(|(_, has_consumer)| !has_consumer)
        {
            return Err(self.refuse("a pending entry has no consumer"));
        }
        self.add(&ItemBuffer::default().group(&name, Some(&group)))
    }

    fn end(mut self) -> Result<(), String> {
        self.end_group()?;
        let head = self.head.expect("its state was read");
        self.making.replace(&head.item(&mut HeadBuffer::default()));
        Ok(())
    }
}

/// Bytes of a part, about.
fn bytes_of(part: &StreamPart<'_>) -> usize {
    match part {
        StreamPart::Entry { fields, .. } => fields.iter().map(<[u8]>::len).sum(),
        StreamPart::Group { name, .. } | StreamPart::Consumer { name, .. } => name.len(),
        StreamPart::Pending { .. } => size_of::<(Pending, bool)>(),
        StreamPart::State(_) | StreamPart::Owned { .. } => 0,
    }
}

/// Reads a stream that a reader has begun. As [`super::items::read_items`].
///
/// # Errors
/// As there; or the facts of a stream about its groups are wrong.
pub(super) fn read_stream<R: Read>(
    server: &Durable,
    reader: &mut TypedReader<R>,
    destination: &Destination<'_>,
    pause: &mut dyn FnMut(u64) -> Result<(), String>,
) -> Result<ReadItems, String> {
    let builder = server.keyspace.builder(Kind::Stream, destination.key);
    let mut making = Making::InMemory(builder);
    let mut maker = StreamMaker {
        making: &mut making,
        destination,
        head: None,
        shapes: HashMap::new(),
        shape_bytes: 0,
        names: Content::default(),
        content: Content::default(),
        group: None,
        pending: Vec::new(),
        consumer: None,
    };
    let (mut parts, mut bytes, mut read) = (0, 0, 0);
    loop {
        parts += 1;
        if parts == SNAPSHOT_FIELDS || bytes >= READ_PAUSE_BYTES {
            pause(reader.offset())?;
            read += bytes;
            (parts, bytes) = (0, 0);
            let empty = Making::InMemory(server.keyspace.builder(Kind::Stream, destination.key));
            let before = std::mem::replace(maker.making, empty);
            *maker.making = destination.moved(server, before, read)?;
        }
        match reader.next().map_err(|error| error.to_string())? {
            Some(Typed::Element(Element::Stream(part))) => {
                bytes += bytes_of(&part);
                maker.part(part)?;
            }
            Some(Typed::End) => break,
            _ => unreachable!("a stream has parts until it ends"),
        }
    }
    maker.end()?;
    destination.finish(server, making)
}
