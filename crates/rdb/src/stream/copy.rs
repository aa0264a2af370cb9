//! A stream from a payload, written anew: in the form that is written, also where the payload has another.
//!
//! The payload is read twice. The first reading checks all of it, and finds out how many nodes the entries
//! need, which a file says before them. Deleted entries that nodes still have are left out.

use std::io::{self, Write};

use super::groups::StreamGroups;
use super::parts::{StreamId, StreamPart, StreamState, Texts};
use crate::error::{Error, Problem};
use crate::kinds::{Collection, Element};
use crate::packed::ListpackBuilder;
use crate::payload::Payload;
use crate::typed::Typed;
use crate::writer::{Attributes, Writer};

/// The most entries of a node, and the bytes of names and values from which on it takes no more.
const NODE_ENTRIES: u64 = 100;
const NODE_BYTES: usize = 64 * 1024;

/// A stream in a payload, which has been read once to its end.
pub struct StreamValue<'p> {
    payload: Payload<'p>,
    /// How many entries each node gets.
    nodes: Vec<u64>,
    state: StreamState,
    groups: StreamGroups,
}

impl<'p> StreamValue<'p> {
    /// Reads and checks all of a payload.
    ///
    /// # Errors
    /// It is no stream, or damaged.
    pub fn read(payload: Payload<'p>) -> Result<StreamValue<'p>, Error> {
        let (mut state, mut groups) = (StreamState::default(), StreamGroups::default());
        let (mut nodes, mut bytes, mut first) = (Vec::new(), 0, None);
        each_part(&payload, |part| {
            groups.take(&part)?;
            match part {
                StreamPart::Entry { id, fields } => {
                    first.get_or_insert(id);
                    match nodes.last_mut() {
                        Some(count) if *count < NODE_ENTRIES && bytes < NODE_BYTES => *count += 1,
                        _ => {
                            nodes.push(1);
                            bytes = 0;
                        }
                    }
                    bytes += fields.iter().map(<[u8]>::len).sum::<usize>();
                }
                StreamPart::State(its) => state = its,
                _ => {}
            }
            Ok(())
        })?;
        groups.end()?;
        // The first form does not say it.
        state.first = first.unwrap_or_default();
        Ok(StreamValue {
            payload,
            nodes,
            state,
            groups,
        })
    }

    /// The facts about it.
    pub fn state(&self) -> &StreamState {
        &self.state
    }

    /// Its groups.
    pub fn groups(&self) -> &StreamGroups {
        &self.groups
    }
}

/// Calls `take` for each part of a stream in a payload.
fn each_part(
    payload: &Payload<'_>,
    mut take: impl FnMut(StreamPart<'_>) -> Result<(), Problem>,
) -> Result<(), Error> {
    let mut reader = payload.read();
    match reader.next()? {
        Some(Typed::Begin {
            kind: Collection::Stream,
            ..
        }) => {}
        _ => {
            let (expected, found) = ("a stream", "another value".to_owned());
            return Err(Problem::Corrupt { expected, found }.into());
        }
    }
    loop {
        match reader.next()? {
            Some(Typed::Element(Element::Stream(part))) => {
                let taken = take(part);
                let offset = reader.offset();
                taken.map_err(|problem| Error {
                    offset,
                    ..problem.into()
                })?;
            }
            Some(_) => {}
            None => return Ok(()),
        }
    }
}

impl StreamGroups {
    /// The payload of a stream without entries that has these groups. `state` says the rest about it.
    pub fn payload(&self, state: &StreamState) -> Vec<u8> {
        let mut writer = Writer::payload(0, false);
        let mut write = || -> io::Result<()> {
            writer.begin_stream(b"", 0, Attributes::default())?;
            let state = StreamState {
                len: 0,
                first: StreamId::default(),
                ..*state
            };
            writer.stream_state(&state, self.groups().len() as u64)?;
            writer.stream_groups(self.groups())
        };
        write().expect("a vector takes everything");
        writer.end_payload()
    }
}

/// A node that is being made.
#[derive(Default)]
struct Node {
    listpack: ListpackBuilder,
    id: StreamId,
    /// The names of its first entry, and those of the entry that is added.
    names: Vec<u8>,
    others: Vec<u8>,
    /// Entries that it lacks.
    left: u64,
}

/// The names of an entry, so that no others look the same.
fn note_names(fields: &Texts, names: &mut Vec<u8>) {
    names.clear();
    for name in fields.iter().step_by(2) {
        names.extend_from_slice(&(name.len() as u64).to_le_bytes());
        names.extend_from_slice(name);
    }
}

impl Node {
    /// Begins a node of so many entries with the first of them.
    fn begin(&mut self, id: StreamId, fields: &Texts, count: u64) {
        self.id = id;
        self.left = count;
        note_names(fields, &mut self.names);
        self.listpack.clear();
        self.listpack.push_number(count as i64);
        self.listpack.push_number(0);
        self.listpack.push_number((fields.len() / 2) as i64);
        let names = fields.iter().step_by(2);
        names.for_each(|name| self.listpack.push(name));
        self.listpack.push_number(0);
    }

    fn push(&mut self, id: StreamId, fields: &Texts) {
        note_names(fields, &mut self.others);
        let has_same = self.names == self.others;
        self.listpack.push_number(if has_same { 2 } else { 0 });
        let later = |own: u64, before: u64| own.wrapping_sub(before) as i64;
        self.listpack.push_number(later(id.ms, self.id.ms));
        self.listpack.push_number(later(id.seq, self.id.seq));
        let pairs = (fields.len() / 2) as i64;
        if has_same {
            let values = fields.iter().skip(1).step_by(2);
            values.for_each(|value| self.listpack.push(value));
            self.listpack.push_number(3 + pairs);
        } else {
            self.listpack.push_number(pairs);
            fields.iter().for_each(|text| self.listpack.push(text));
            self.listpack.push_number(4 + 2 * pairs);
        }
        self.left -= 1;
    }
}

impl<W: Write> Writer<W> {
    /// A key with the stream of a payload.
    ///
    /// # Errors
    /// See [`Writer::new`].
    pub fn stream(
        &mut self,
        key: &[u8],
        stream: &StreamValue<'_>,
        attributes: Attributes,
    ) -> io::Result<()> {
        self.begin_stream(key, stream.nodes.len() as u64, attributes)?;
        let (mut node, mut nodes) = (Node::default(), stream.nodes.iter());
        let written = each_part(&stream.payload, |part| {
            let StreamPart::Entry { id, fields } = part else {
                return Ok(());
            };
            if node.left == 0 {
                let count = nodes.next().expect("the first reading found all entries");
                node.begin(id, fields, *count);
            }
            node.push(id, fields);
            if node.left == 0 {
                let put = self.stream_node(node.id, node.listpack.listpack());
                put.map_err(Problem::Io)?;
            }
            Ok(())
        });
        written.map_err(|error| match error.problem {
            Problem::Io(error) => error,
            _ => io::ErrorKind::InvalidData.into(),
        })?;
        let groups = stream.groups.groups();
        self.stream_state(&stream.state, groups.len() as u64)?;
        self.stream_groups(groups)
    }
}
