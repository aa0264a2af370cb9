//! Hashes in RDB files, and in the payloads of DUMP.
//!
//! A hash that redis-server would keep packed by default is written as it would write it, so that it loads it
//! fast; any other a field at a time. A hash with fields that expire is of a type of its own, which
//! redis-server reads since 7.4: a file that has one is of version 12, any other of version 10.

use std::io::{self, Read, Write};

use keyspace::collection::build::DuplicateField;
use keyspace::collection::cell::{Cell, DECIMAL_MAX};
use keyspace::collection::run::Item;
use keyspace::{Detached, Form, HashRef};
use rdb::packed::ListpackBuilder;
use rdb::{Attributes, Collection, Element, Typed, TypedReader, Writer};

use crate::config::Setting;
use crate::limits::{PACKED_ENTRIES, PACKED_VALUE_BYTES, SNAPSHOT_FIELDS};
use crate::persistence::Durable;

/// Writes hashes; keeps its memory from one to the next.
#[derive(Default)]
pub(super) struct HashWriter {
    listpack: ListpackBuilder,
}

impl HashWriter {
    /// Writes a key whose value is a hash. `pause` is called after some fields, again and again.
    ///
    /// # Errors
    /// Those of the writer and of `pause`.
    pub(super) fn write<W: Write, E: From<io::Error>>(
        &mut self,
        writer: &mut Writer<W>,
        key: &[u8],
        fields: HashRef<'_>,
        attributes: Attributes,
        pause: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        match fields.earliest() {
            Some(first) => writer.begin_timed(key, fields.len(), first, attributes)?,
            None if self.pack(fields) => {
                return Ok(writer.hash(key, &mut self.listpack, attributes)?);
            }
            None => writer.begin(key, Collection::Hash, fields.len(), attributes)?,
        }
        let mut scratch = ([0; DECIMAL_MAX], [0; DECIMAL_MAX]);
        for (number, item) in fields.iter().enumerate() {
            if number % SNAPSHOT_FIELDS == SNAPSHOT_FIELDS - 1 {
                pause()?;
            }
            let field = item.name.text(&mut scratch.0);
            let value = value_of(&item).text(&mut scratch.1);
            writer.element(Element::Field {
                field,
                value,
                expiry_ms: item.expiry,
            })?;
        }
        Ok(writer.end()?)
    }

    /// Makes a listpack of the fields; whether that is how Redis would keep them.
    fn pack(&mut self, fields: HashRef<'_>) -> bool {
        if fields.len() > PACKED_ENTRIES {
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

/// The payload of a hash.
pub(crate) fn dump_hash(fields: HashRef<'_>, bytes: usize, compresses: bool) -> Vec<u8> {
    let mut writer = Writer::payload(bytes, compresses);
    let (mut hashes, attributes) = (HashWriter::default(), Attributes::default());
    hashes
        .write::<_, io::Error>(&mut writer, b"", fields, attributes, &mut || Ok(()))
        .expect("a vector takes everything");
    writer.end_payload()
}

/// A hash that was read.
pub(crate) enum ReadHash {
    /// With all of its fields that have not expired.
    Fields(Detached),
    /// All of its fields have expired.
    Over,
    /// It has no fields.
    Empty,
}

/// Reads the fields of a hash that a reader has begun. Those that have expired at `now` (Unix, ms) are left
/// out. `pause` is called after some fields, again and again, with the bytes of the file so far.
///
/// # Errors
/// The file is damaged, a field is there twice, or an error of `pause`.
pub(crate) fn read_hash<R: Read>(
    server: &Durable,
    reader: &mut TypedReader<R>,
    key: &[u8],
    (expiry, now): (Option<i64>, Option<i64>),
    pause: &mut dyn FnMut(u64) -> Result<(), String>,
) -> Result<ReadHash, String> {
    let mut builder = server.keyspace.hash_builder(key);
    loop {
        if builder.len() % SNAPSHOT_FIELDS as u64 == SNAPSHOT_FIELDS as u64 - 1 {
            pause(reader.offset())?;
        }
        match reader.next().map_err(|error| error.to_string())? {
            Some(Typed::Element(Element::Field {
                field,
                value,
                expiry_ms,
            })) => {
                let item = Item::pair(Cell::of(field), Cell::of(value)).with_expiry(expiry_ms);
                let added = builder.push(&item);
                added.map_err(|DuplicateField| {
                    let (key, field) = (key.escape_ascii(), field.escape_ascii());
                    format!("key \"{key}\": the field \"{field}\" is there twice")
                })?;
            }
            Some(Typed::End) => break,
            _ => unreachable!("a hash has fields until it ends"),
        }
    }
    if builder.is_empty() {
        return Ok(ReadHash::Empty);
    }
    if let Some(now) = now {
        builder.remove_due(now.max(0) as u64);
    }
    if builder.is_empty() {
        return Ok(ReadHash::Over);
    }
    let limit = |setting| server.settings.int(setting).unsigned_abs();
    let is_packed = builder.len() <= limit(Setting::HashMaxListpackEntries)
        && builder.longest() as u64 <= limit(Setting::HashMaxListpackValue);
    let form = match is_packed {
        true => Form::Whole,
        false => Form::Part,
    };
    Ok(ReadHash::Fields(Detached::hash(builder, form, expiry)))
}
