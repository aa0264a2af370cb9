//! The groups of a stream, all of them in memory: to check them against each other, and to write them before
//! the entries.
//!
//! Invariants:
//! 1. No two groups have one name, and no two consumers of a group.
//! 2. The IDs of the pending entries of a group ascend.
//! 3. A consumer has pending entries of its group alone, each of them one consumer.
//!
//! That each pending entry has a consumer is checked at the end of its group, the last by
//! [`StreamGroups::end`].

use std::collections::HashSet;
use std::io::{self, Read, Seek, SeekFrom, Write};

use super::parts::{StreamId, StreamPart};
use super::read::Reading;
use crate::error::{Error, Problem};
use crate::format::NEWEST_VERSION;
use crate::reader::Reader;
use crate::writer::Writer;

/// A group of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamGroup {
    /// Its name.
    pub name: Vec<u8>,
    /// The last ID that it got.
    pub last: StreamId,
    /// How many entries it has read, if it is known.
    pub read: Option<u64>,
    /// Entries that were delivered and not acknowledged, in the order of their IDs.
    pub pending: Vec<StreamPending>,
    /// Its consumers.
    pub consumers: Vec<StreamConsumer>,
}

/// An entry that was delivered to a group. The stream may have it no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamPending {
    /// Its ID.
    pub id: StreamId,
    /// When it was delivered last (Unix, ms).
    pub delivered_ms: u64,
    /// How often it was delivered.
    pub deliveries: u64,
    /// It is one of a consumer.
    is_owned: bool,
}

/// A consumer of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamConsumer {
    /// Its name.
    pub name: Vec<u8>,
    /// When it last asked (Unix, ms).
    pub seen_ms: u64,
    /// IDs of its pending entries.
    pub owned: Vec<StreamId>,
}

/// See the module.
#[derive(Debug, Default)]
pub struct StreamGroups {
    groups: Vec<StreamGroup>,
    names: HashSet<Vec<u8>>,
    /// Names of consumers of the last group, and how many of its pending entries have one.
    consumers: HashSet<Vec<u8>>,
    owned: usize,
}

fn corrupt(expected: &'static str, found: String) -> Problem {
    Problem::Corrupt { expected, found }
}

fn quoted(name: &[u8]) -> String {
    format!("\"{}\"", name.escape_ascii())
}

impl StreamGroups {
    /// All of them, in the order of the file.
    pub fn groups(&self) -> &[StreamGroup] {
        &self.groups
    }

    /// Takes the next part of a stream. Parts that are not about groups are passed over.
    ///
    /// # Errors
    /// It does not go with those before it.
    pub fn take(&mut self, part: &StreamPart<'_>) -> Result<(), Problem> {
        match *part {
            StreamPart::Entry { .. } | StreamPart::State(_) => Ok(()),
            StreamPart::Group { name, last, read } => {
                self.end()?;
                self.consumers.clear();
                self.owned = 0;
                if !self.names.insert(name.to_vec()) {
                    return Err(corrupt("a group of another name", quoted(name)));
                }
                self.groups.push(StreamGroup {
                    name: name.to_vec(),
                    last,
                    read,
                    pending: Vec::new(),
                    consumers: Vec::new(),
                });
                Ok(())
            }
            StreamPart::Pending {
                id,
                delivered_ms,
                deliveries,
            } => {
                let pending = &mut self.last()?.pending;
                if pending.last().is_some_and(|last| last.id >= id) {
                    let expected = "a pending entry above the one before";
                    return Err(corrupt(expected, id.to_string()));
                }
                pending.push(StreamPending {
                    id,
                    delivered_ms,
                    deliveries,
                    is_owned: false,
                });
                Ok(())
            }
            StreamPart::Consumer { name, seen_ms, .. } => {
                if !self.consumers.insert(name.to_vec()) {
                    return Err(corrupt("a consumer of another name", quoted(name)));
                }
                self.last()?.consumers.push(StreamConsumer {
                    name: name.to_vec(),
                    seen_ms,
                    owned: Vec::new(),
                });
                Ok(())
            }
            StreamPart::Owned { id } => self.own(id),
        }
    }

    fn last(&mut self) -> Result<&mut StreamGroup, Problem> {
        let none = || corrupt("a group", "none".to_owned());
        self.groups.last_mut().ok_or_else(none)
    }

    /// The last consumer has this pending entry.
    fn own(&mut self, id: StreamId) -> Result<(), Problem> {
        let group = self.last()?;
        let found = group.pending.binary_search_by_key(&id, |its| its.id);
        let free = found.ok().map(|at| &mut group.pending[at]);
        let free = free.filter(|pending| !pending.is_owned);
        let (Some(pending), Some(consumer)) = (free, group.consumers.last_mut()) else {
            let expected = "a pending entry of the group that no other consumer has";
            return Err(corrupt(expected, id.to_string()));
        };
        pending.is_owned = true;
        consumer.owned.push(id);
        self.owned += 1;
        Ok(())
    }

    /// Ends the last group.
    ///
    /// # Errors
    /// A pending entry of it has no consumer.
    pub fn end(&self) -> Result<(), Problem> {
        let pending = self.groups.last().map_or(0, |group| group.pending.len());
        match pending - self.owned {
            0 => Ok(()),
            lost => Err(corrupt(
                "a consumer for each pending entry of a group",
                format!("none for {lost} of {pending}"),
            )),
        }
    }
}

impl<W: Write> Writer<W> {
    /// The groups of a stream, after its state.
    ///
    /// # Errors
    /// See [`Writer::new`].
    pub fn stream_groups(&mut self, groups: &[StreamGroup]) -> io::Result<()> {
        for group in groups {
            let pending = group.pending.len() as u64;
            self.stream_group(&group.name, group.last, group.read, pending)?;
            for its in &group.pending {
                self.stream_pending(its.id, its.delivered_ms, its.deliveries)?;
            }
            self.stream_consumers(group.consumers.len() as u64)?;
            for consumer in &group.consumers {
                let owned = consumer.owned.len() as u64;
                self.stream_consumer(&consumer.name, consumer.seen_ms, owned)?;
                for &id in &consumer.owned {
                    self.stream_owned(id)?;
                }
            }
        }
        Ok(())
    }
}

/// Where the groups of a stream are in a file, so that they can be read before its entries are read again.
#[derive(Clone, Copy, Debug)]
pub struct GroupsPlace {
    offset: u64,
    version: u8,
    groups: u64,
}

impl GroupsPlace {
    /// So many groups, in this version of streams, that many bytes from the beginning of the file.
    pub(crate) fn new(offset: u64, version: u8, groups: u64) -> GroupsPlace {
        GroupsPlace {
            offset,
            version,
            groups,
        }
    }

    /// Reads them from the file.
    ///
    /// # Errors
    /// As of [`Reader::next`], and those of [`StreamGroups::take`].
    pub fn read<R: Read + Seek>(&self, mut input: R) -> Result<StreamGroups, Error> {
        let sought = input.seek(SeekFrom::Start(self.offset));
        sought.map_err(Problem::Io)?;
        let mut reader = Reader::of_value(input, usize::MAX, NEWEST_VERSION);
        let mut reading = Reading::of_groups(self.version, self.groups);
        let (mut groups, mut packed) = (StreamGroups::default(), Vec::new());
        let mut read = || -> Result<(), Problem> {
            while reading.next(&mut reader, &mut packed)? {
                groups.take(&reading.part())?;
            }
            groups.end()
        };
        let done = read();
        done.map_err(|problem| Error {
            offset: self.offset + reader.offset(),
            key: None,
            problem,
        })?;
        Ok(groups)
    }
}
