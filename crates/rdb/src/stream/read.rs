//! Reading a stream.

use std::io::Read;

use super::parts::{StreamId, StreamPart, StreamState, Texts};
use crate::error::Problem;
use crate::packed::{Cell, Cursor, Form};
use crate::reader::Reader;

/// A part without its strings.
enum Found {
    Entry(StreamId),
    State(StreamState),
    Group(StreamId, Option<u64>),
    Pending(StreamId, u64, u64),
    Consumer(u64, Option<u64>),
    Owned(StreamId),
}

/// How far the reading of a stream has come: so many parts of a kind are left.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Nodes,
    Groups,
    Pending,
    Consumers,
    Owned,
}

/// The node that is being read.
struct Node {
    cursor: Cursor,
    id: StreamId,
    /// Entries that are left, and how many of them are deleted.
    left: u64,
    deleted: u64,
}

/// State of reading a stream.
pub(crate) struct Reading {
    /// 1 to 3: a later version has more fields.
    version: u8,
    stage: Stage,
    /// Parts that are left: nodes, groups, pending entries of the group, its consumers, IDs of the consumer.
    nodes: u64,
    groups: u64,
    pending: u64,
    consumers: u64,
    owned: u64,
    node: Option<Node>,
    /// The names of the fields of the node.
    names: Texts,
    /// The entry's.
    fields: Texts,
    name: Vec<u8>,
    len: u64,
    last: Option<StreamId>,
    found: Option<Found>,
}

const SAME_FIELDS: i64 = 2;
const DELETED: i64 = 1;
const NODE: &str = "a node of a stream";
const PART: &str = "a part of a stream";

fn corrupt(expected: &'static str, found: impl Into<String>) -> Problem {
    Problem::Corrupt {
        expected,
        found: found.into(),
    }
}

impl Reading {
    /// Begins a stream of so many nodes.
    pub(crate) fn new(version: u8, nodes: u64) -> Reading {
        Reading {
            version,
            stage: Stage::Nodes,
            nodes,
            groups: 0,
            pending: 0,
            consumers: 0,
            owned: 0,
            node: None,
            names: Texts::default(),
            fields: Texts::default(),
            name: Vec::new(),
            len: 0,
            last: None,
            found: None,
        }
    }

    /// Begins with the groups of a stream, of which there are so many.
    pub(crate) fn of_groups(version: u8, groups: u64) -> Reading {
        Reading {
            stage: Stage::Groups,
            groups,
            ..Reading::new(version, 0)
        }
    }

    /// How many groups follow, if the part that was read last was the state.
    pub(crate) fn groups_ahead(&self) -> Option<u64> {
        matches!(self.found, Some(Found::State(_))).then_some(self.groups)
    }

    /// Which form of streams it is: 1 to 3.
    pub(crate) fn version(&self) -> u8 {
        self.version
    }

    /// The part that was read last.
    pub(crate) fn part(&self) -> StreamPart<'_> {
        match *self.found.as_ref().expect("a part was read") {
            Found::Entry(id) => StreamPart::Entry {
                id,
                fields: &self.fields,
            },
            Found::State(state) => StreamPart::State(state),
            Found::Group(last, read) => StreamPart::Group {
                name: &self.name,
                last,
                read,
            },
            Found::Pending(id, delivered_ms, deliveries) => StreamPart::Pending {
                id,
                delivered_ms,
                deliveries,
            },
            Found::Consumer(seen_ms, active_ms) => StreamPart::Consumer {
                name: &self.name,
                seen_ms,
                active_ms,
            },
            Found::Owned(id) => StreamPart::Owned { id },
        }
    }

    /// Reads the next part; whether there is one. `packed`: a buffer that stays the same for all parts.
    pub(crate) fn next<R: Read>(
        &mut self,
        reader: &mut Reader<R>,
        packed: &mut Vec<u8>,
    ) -> Result<bool, Problem> {
        Input { reader, packed }.part(self)
    }
}

/// A cell of the node's listpack.
fn cell(node: &mut Node, packed: &[u8]) -> Result<Cell, Problem> {
    let next = node.cursor.next(packed).map_err(|flaw| {
        corrupt(
            NODE,
            format!("{} bytes that are none: {flaw}", packed.len()),
        )
    })?;
    next.ok_or_else(|| corrupt(NODE, "cut off"))
}

fn number(node: &mut Node, packed: &[u8]) -> Result<i64, Problem> {
    match cell(node, packed)? {
        Cell::Number(number) => Ok(number),
        Cell::Bytes(_) => Err(corrupt("a number of a node of a stream", "a string")),
    }
}

fn count(node: &mut Node, packed: &[u8]) -> Result<u64, Problem> {
    let number = number(node, packed)?;
    u64::try_from(number).map_err(|_| {
        corrupt(
            "a number of a node of a stream",
            format!("the number {number}"),
        )
    })
}

/// The input of a stream.
struct Input<'r, R> {
    reader: &'r mut Reader<R>,
    /// The node's listpack.
    packed: &'r mut Vec<u8>,
}

impl<R: Read> Input<'_, R> {
    /// Reads the next part of a stream; whether there is one.
    fn part(&mut self, stream: &mut Reading) -> Result<bool, Problem> {
        stream.found = loop {
            match stream.stage {
                Stage::Nodes => {
                    if let Some(mut node) = stream.node.take() {
                        if let Some(id) = self.entry(stream, &mut node)? {
                            stream.node = Some(node);
                            break Some(Found::Entry(id));
                        }
                    } else if stream.nodes > 0 {
                        stream.nodes -= 1;
                        stream.node = Some(self.stream_node(stream)?);
                    } else {
                        stream.stage = Stage::Groups;
                        break Some(Found::State(self.state(stream)?));
                    }
                }
                Stage::Groups if stream.groups == 0 => break None,
                Stage::Groups => {
                    stream.groups -= 1;
                    stream.stage = Stage::Pending;
                    break Some(self.group(stream)?);
                }
                Stage::Pending if stream.pending == 0 => {
                    stream.consumers = self.length()?;
                    stream.stage = Stage::Consumers;
                }
                Stage::Pending => {
                    stream.pending -= 1;
                    let id = self.id16()?;
                    let delivered = self.time()?;
                    break Some(Found::Pending(id, delivered, self.length()?));
                }
                Stage::Consumers if stream.consumers == 0 => stream.stage = Stage::Groups,
                Stage::Consumers => {
                    stream.consumers -= 1;
                    stream.stage = Stage::Owned;
                    break Some(self.consumer(stream)?);
                }
                Stage::Owned if stream.owned == 0 => stream.stage = Stage::Consumers,
                Stage::Owned => {
                    stream.owned -= 1;
                    break Some(Found::Owned(self.id16()?));
                }
            }
        };
        Ok(stream.found.is_some())
    }

    fn length(&mut self) -> Result<u64, Problem> {
        self.reader.decoder.length(PART)
    }

    fn time(&mut self) -> Result<u64, Problem> {
        let time = self.reader.decoder.source.array(PART)?;
        Ok(u64::from_le_bytes(time))
    }

    fn id(&mut self) -> Result<StreamId, Problem> {
        Ok(StreamId {
            ms: self.length()?,
            seq: self.length()?,
        })
    }

    fn id16(&mut self) -> Result<StreamId, Problem> {
        let source = &mut self.reader.decoder.source;
        Ok(StreamId {
            ms: u64::from_be_bytes(source.array(PART)?),
            seq: u64::from_be_bytes(source.array(PART)?),
        })
    }

    /// Begins a node: its ID, and the names of its fields.
    fn stream_node(&mut self, stream: &mut Reading) -> Result<Node, Problem> {
        self.reader.read_second("the ID of a node of a stream")?;
        let id = match *self.reader.second.as_slice() {
            [ref ms @ .., _, _, _, _, _, _, _, _] if ms.len() == 8 => {
                let (ms, seq) = self.reader.second.split_at(8);
                let word = |bytes: &[u8]| {
                    bytes
                        .iter()
                        .fold(0, |all, &byte| all << 8 | u64::from(byte))
                };
                StreamId {
                    ms: word(ms),
                    seq: word(seq),
                }
            }
            _ => {
                let found = format!("{} bytes", self.reader.second.len());
                return Err(corrupt("the ID of a node of a stream", found));
            }
        };
        let mut node = Node {
            cursor: self.reader.packed(self.packed, Form::Listpack)?,
            id,
            left: 0,
            deleted: 0,
        };
        let packed = &*self.packed;
        let live = count(&mut node, packed)?;
        node.deleted = count(&mut node, packed)?;
        node.left = live.saturating_add(node.deleted);
        let names = count(&mut node, packed)?;
        stream.names.clear();
        for _ in 0..names {
            stream.names.push(cell(&mut node, packed)?, packed);
        }
        match number(&mut node, packed)? {
            0 => Ok(node),
            other => Err(corrupt(NODE, format!("{other} for 0 after its names"))),
        }
    }

    /// The next entry of a node that is not deleted; `None` at its end.
    fn entry(
        &mut self,
        stream: &mut Reading,
        node: &mut Node,
    ) -> Result<Option<StreamId>, Problem> {
        let packed = &*self.packed;
        while node.left > 0 {
            node.left -= 1;
            let flags = number(node, packed)?;
            let (ms, seq) = (number(node, packed)?, number(node, packed)?);
            let id = StreamId {
                ms: node.id.ms.wrapping_add(ms as u64),
                seq: node.id.seq.wrapping_add(seq as u64),
            };
            stream.fields.clear();
            let mut cells = 3;
            if flags & SAME_FIELDS != 0 {
                for name in stream.names.iter() {
                    stream.fields.push_bytes(name);
                    stream.fields.push(cell(node, packed)?, packed);
                    cells += 1;
                }
            } else {
                let fields = count(node, packed)?;
                for _ in 0..fields {
                    stream.fields.push(cell(node, packed)?, packed);
                    stream.fields.push(cell(node, packed)?, packed);
                }
                cells += 1 + 2 * fields;
            }
            if count(node, packed)? != cells {
                return Err(corrupt("the length of an entry of a stream", "another one"));
            }
            if flags & DELETED != 0 {
                let deleted = node.deleted.checked_sub(1);
                node.deleted = deleted
                    .ok_or_else(|| corrupt(NODE, "with more deleted entries than it says"))?;
                continue;
            }
            if stream.last.is_some_and(|last| id <= last) || id == StreamId::default() {
                let found = id.to_string();
                return Err(corrupt("an ID above that of the entry before", found));
            }
            stream.last = Some(id);
            stream.len += 1;
            return Ok(Some(id));
        }
        let rest = node
            .cursor
            .next(packed)
            .map_err(|flaw| corrupt(NODE, flaw.to_string()))?;
        match rest {
            None if node.deleted == 0 => Ok(None),
            _ => Err(corrupt(NODE, "with other entries than it says")),
        }
    }

    fn state(&mut self, stream: &mut Reading) -> Result<StreamState, Problem> {
        let mut state = StreamState {
            len: self.length()?,
            last: self.id()?,
            ..StreamState::default()
        };
        if stream.version > 1 {
            state.first = self.id()?;
            state.deleted = self.id()?;
            state.added = self.length()?;
        } else {
            state.added = state.len;
        }
        stream.groups = self.length()?;
        if state.len != stream.len {
            let found = format!("{}, and {} entries", state.len, stream.len);
            return Err(corrupt("the number of entries of a stream", found));
        }
        match stream.last {
            Some(last) if last > state.last => Err(corrupt(
                "the last ID of a stream",
                "one below that of its last entry",
            )),
            _ => Ok(state),
        }
    }

    fn group(&mut self, stream: &mut Reading) -> Result<Found, Problem> {
        let decoder = &mut self.reader.decoder;
        decoder.string(&mut stream.name, "the name of a group")?;
        let last = self.id()?;
        let read = match stream.version {
            1 => None,
            _ => Some(self.length()?).filter(|&read| read as i64 >= 0),
        };
        stream.pending = self.length()?;
        Ok(Found::Group(last, read))
    }

    fn consumer(&mut self, stream: &mut Reading) -> Result<Found, Problem> {
        let decoder = &mut self.reader.decoder;
        decoder.string(&mut stream.name, "the name of a consumer")?;
        let seen = self.time()?;
        let active = match stream.version {
            3 => Some(self.time()?).filter(|&active| active as i64 >= 0),
            _ => None,
        };
        stream.owned = self.length()?;
        Ok(Found::Consumer(seen, active))
    }
}
