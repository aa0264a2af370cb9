//! DEBUG DIGEST: one number for all keys and values, the same as that of a Redis which holds the same.
//!
//! A digest is 20 bytes. Data is *added* to it by xor of the data's SHA-1, so that order makes no difference,
//! or *mixed* into it by taking the SHA-1 of what adding gave, so that order does.
//!
//! ```text
//! value:   mix(type), then of a string mix(value), of a hash for each field add(mix(field), mix(value)), of
//!          a set for each member add(member), of a sorted set for each add(mix(member), mix(score)), of a
//!          stream for each entry mix(ID), and mix(field), mix(value) of each field;
//!          add("!!expire!!") if it expires
//! keys:    for each database in order that has keys: mix(number), for each key: add(mix(key), value)
//! ```
//! Numbers are four bytes, the highest first.

use std::fmt;

use keyspace::collection::Base;
use keyspace::collection::cell::DECIMAL_MAX;
use keyspace::collection::sorted::score_of;
use keyspace::collection::stream::{EntryFields, StreamEntry, StreamItems};
use keyspace::{AnyItems, Database, EntryRef, ItemsRef, Kind, LargeValue, StreamRef};
use resp::number::{DOUBLE_TEXT_LEN, format_f64};
use sha1_smol::Sha1;

use crate::command::Failure;
use crate::persistence::Persistence;

/// The types in digests.
const STRING: u32 = 0;
const LIST: u32 = 1;
const SET: u32 = 2;
const SORTED_SET: u32 = 3;
const HASH: u32 = 4;
const STREAM: u32 = 6;

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Digest([u8; 20]);

impl Digest {
    /// The digest of the value of an entry.
    ///
    /// # Errors
    /// The value is in the log alone and cannot be read.
    pub(super) fn of_value(
        entry: EntryRef<'_>,
        persistence: &Persistence,
    ) -> Result<Digest, Failure> {
        let mut digest = Digest::default();
        digest.mix_value(entry, persistence)?;
        Ok(digest)
    }

    /// Mixes all keys of a database into the digest. Not a point in time when others write meanwhile.
    ///
    /// # Errors
    /// A value is in the log alone and cannot be read.
    pub(super) fn mix_database(
        &mut self,
        number: u32,
        database: &Database,
        now: i64,
        persistence: &Persistence,
    ) -> Result<(), Failure> {
        let mut result = Ok(());
        if database.is_empty() {
            return result;
        }
        self.mix(&number.to_be_bytes());
        database.for_each(now, |entry| {
            let mut digest = Digest::default();
            digest.mix(entry.key());
            if let Err(failure) = digest.mix_value(entry, persistence) {
                result = Err(failure);
            }
            self.add(&digest.0);
        });
        result
    }

    fn mix_value(&mut self, entry: EntryRef<'_>, persistence: &Persistence) -> Result<(), Failure> {
        match entry.kind() {
            Kind::String => {
                self.mix(&STRING.to_be_bytes());
                self.mix(&persistence.bytes_now(entry)?);
            }
            Kind::Hash | Kind::Set | Kind::SortedSet | Kind::List | Kind::Stream => {
                match entry.cold() {
                    None => {
                        let items = entry
                            .all_items()
                            .expect("each of these kinds is a collection");
                        self.add_items(items, persistence)?;
                    }
                    Some(_) => {
                        let run = persistence.bytes_now(entry)?;
                        self.add_items(AnyItems::of_run(entry.kind(), &run), persistence)?;
                    }
                }
            }
        }
        if entry.expiry().is_some() {
            self.add(b"!!expire!!");
        }
        Ok(())
    }

    fn add_items(&mut self, items: AnyItems<'_>, persistence: &Persistence) -> Result<(), Failure> {
        let read = &mut |instance, base| persistence.leaf_now(instance, base, None);
        let fields = match items {
            AnyItems::Hash(fields) => fields,
            AnyItems::List(elements) => {
                self.mix(&LIST.to_be_bytes());
                return elements.try_each(read, &mut |element| {
                    self.mix(element.name.text(&mut [0; DECIMAL_MAX]));
                    Ok(())
                });
            }
            AnyItems::Set(members) => {
                self.mix(&SET.to_be_bytes());
                return members.try_each(read, &mut |member| {
                    self.add(member.name.text(&mut [0; DECIMAL_MAX]));
                    Ok(())
                });
            }
            AnyItems::Stream(items) => return self.add_entries(items, read),
            AnyItems::SortedSet(scores) => {
                self.mix(&SORTED_SET.to_be_bytes());
                return scores.try_each(read, &mut |item| {
                    let mut member = Digest::default();
                    member.mix(item.name.text(&mut [0; DECIMAL_MAX]));
                    // The digits of Redis 7.0.
                    member.mix(format_f64(score_of(&item), &mut [0; DOUBLE_TEXT_LEN]));
                    self.add(&member.0);
                    Ok(())
                });
            }
        };
        self.mix(&HASH.to_be_bytes());
        fields.try_each(read, &mut |item| {
            let mut field = Digest::default();
            for cell in std::iter::once(item.name).chain(item.value) {
                field.mix(cell.text(&mut [0; DECIMAL_MAX]));
            }
            if item.expiry.is_some() {
                field.add(b"!!hexpire!!");
            }
            self.add(&field.0);
            Ok(())
        })
    }

    /// Entries, each with its ID, its fields and their values.
    fn add_entries(
        &mut self,
        items: ItemsRef<'_, StreamItems>,
        read: &mut dyn FnMut(u64, Base) -> Result<LargeValue, Failure>,
    ) -> Result<(), Failure> {
        self.mix(&STREAM.to_be_bytes());
        let stream = StreamRef::of(items);
        let (base, shapes) = (stream.base(), stream.shapes());
        items.try_each(read, &mut |item| {
            if let Some(entry) = StreamEntry::of(base, &item) {
                self.mix(format!("{}.{}", entry.id.ms, entry.id.seq).as_bytes());
                for (name, value) in EntryFields::of(entry.content, &shapes) {
                    self.mix(name.text(&mut [0; DECIMAL_MAX]));
                    self.mix(value.text(&mut [0; DECIMAL_MAX]));
                }
            }
            Ok(())
        })
    }

    fn add(&mut self, data: &[u8]) {
        self.xor(Sha1::from(data).digest().bytes());
    }

    fn mix(&mut self, data: &[u8]) {
        self.add(data);
        self.0 = Sha1::from(self.0).digest().bytes();
    }

    fn xor(&mut self, other: [u8; 20]) {
        for (byte, other) in self.0.iter_mut().zip(other) {
            *byte ^= other;
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}
