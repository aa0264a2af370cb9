//! A stream, made by hand.

use super::{Cell, listpack, text};

/// The ID of an entry: its time and its number.
pub(crate) type Id = [u64; 2];

/// A node: its ID and the cells of its listpack.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) id: Id,
    pub(crate) cells: Vec<Cell>,
}

/// A consumer of a group.
#[derive(Clone)]
pub(crate) struct Consumer {
    pub(crate) name: &'static str,
    pub(crate) seen: u64,
    /// All bits set for never.
    pub(crate) active: u64,
    pub(crate) owned: Vec<Id>,
}

/// A group. Its pending entries: the parts of the ID, when it was delivered, how often.
#[derive(Clone)]
pub(crate) struct Group {
    pub(crate) name: &'static str,
    pub(crate) last: Id,
    pub(crate) read: u64,
    pub(crate) pending: Vec<[u64; 4]>,
    pub(crate) consumers: Vec<Consumer>,
}

/// A stream.
#[derive(Clone)]
pub(crate) struct Stream {
    pub(crate) nodes: Vec<Node>,
    pub(crate) len: u64,
    pub(crate) last: Id,
    pub(crate) first: Id,
    pub(crate) deleted: Id,
    pub(crate) added: u64,
    pub(crate) groups: Vec<Group>,
}

fn length(len: u64) -> Vec<u8> {
    match len {
        ..64 => vec![len as u8],
        _ => [&[0x81][..], &len.to_be_bytes()].concat(),
    }
}

fn string(bytes: &[u8]) -> Vec<u8> {
    [length(bytes.len() as u64), bytes.to_vec()].concat()
}

fn id(id: Id) -> Vec<u8> {
    id.into_iter().flat_map(length).collect()
}

fn id16(id: Id) -> Vec<u8> {
    id.into_iter().flat_map(u64::to_be_bytes).collect()
}

impl Stream {
    /// Its value in the first to the third form.
    pub(crate) fn bytes(&self, form: u8) -> Vec<u8> {
        let mut bytes = length(self.nodes.len() as u64);
        for node in &self.nodes {
            bytes.extend(string(&id16(node.id)));
            bytes.extend(string(&listpack(&node.cells, false)));
        }
        bytes.extend(length(self.len));
        bytes.extend(id(self.last));
        if form > 1 {
            bytes.extend(id(self.first));
            bytes.extend(id(self.deleted));
            bytes.extend(length(self.added));
        }
        bytes.extend(length(self.groups.len() as u64));
        for group in &self.groups {
            bytes.extend(group.bytes(form));
        }
        bytes
    }
}

impl Group {
    fn bytes(&self, form: u8) -> Vec<u8> {
        let mut bytes = string(self.name.as_bytes());
        bytes.extend(id(self.last));
        if form > 1 {
            bytes.extend(length(self.read));
        }
        bytes.extend(length(self.pending.len() as u64));
        for &[ms, seq, time, count] in &self.pending {
            bytes.extend(id16([ms, seq]));
            bytes.extend(time.to_le_bytes());
            bytes.extend(length(count));
        }
        bytes.extend(length(self.consumers.len() as u64));
        for consumer in &self.consumers {
            bytes.extend(string(consumer.name.as_bytes()));
            bytes.extend(consumer.seen.to_le_bytes());
            if form > 2 {
                bytes.extend(consumer.active.to_le_bytes());
            }
            bytes.extend(length(consumer.owned.len() as u64));
            bytes.extend(consumer.owned.iter().copied().flat_map(id16));
        }
        bytes
    }
}

fn numbers(numbers: &[i64]) -> Vec<Cell> {
    numbers.iter().copied().map(Cell::Number).collect()
}

/// Two nodes with entries of the node's fields, of others, and deleted ones.
fn nodes() -> Vec<Node> {
    let first = [
        // Three entries and a deleted one, of the fields f and g.
        numbers(&[3, 1, 2]),
        vec![text("f"), text("g"), Cell::Number(0)],
        numbers(&[2, 0, 0]),
        vec![text("a"), Cell::Number(-5), Cell::Number(5)],
        numbers(&[3, 0, 1, 1, 2, 5]),
        // The second has a single other field, the third no field that differs but in its value.
        numbers(&[0, 0, 2, 1]),
        vec![text("other"), text("b"), Cell::Number(6)],
        numbers(&[2, 7, -1]),
        vec![Cell::Text(vec![b'l'; 70]), text(""), Cell::Number(5)],
    ];
    let second = [
        numbers(&[1, 0, 1]),
        vec![text("f"), Cell::Number(0)],
        numbers(&[2, 0, 0, 12, 4]),
    ];
    vec![
        Node {
            id: [1000, 1],
            cells: first.concat(),
        },
        Node {
            id: [2000, 0],
            cells: second.concat(),
        },
    ]
}

/// A stream with four entries and two groups, one of which has pending entries, deleted ones too.
pub(crate) fn whole() -> Stream {
    let consumer = |name, active, owned| Consumer {
        name,
        seen: 1_700_000_000_000,
        active,
        owned,
    };
    let group = Group {
        name: "group",
        last: [1007, 0],
        read: 4,
        pending: vec![
            [1000, 1, 1_700_000_000_001, 1],
            [1000, 2, 1_700_000_000_002, 300],
            [1007, 0, 1_700_000_000_003, 2],
        ],
        consumers: vec![
            consumer("anna", 1_700_000_000_003, vec![[1000, 1], [1007, 0]]),
            consumer("bert", 1_700_000_000_002, vec![[1000, 2]]),
            consumer("cleo", u64::MAX, vec![]),
        ],
    };
    let idle = Group {
        name: "idle",
        last: [0, 0],
        read: u64::MAX,
        pending: vec![],
        consumers: vec![],
    };
    Stream {
        nodes: nodes(),
        len: 4,
        last: [2000, 9],
        first: [1000, 1],
        deleted: [2000, 9],
        added: 6,
        groups: vec![group, idle],
    }
}

/// The same without entries.
pub(crate) fn without_entries() -> Stream {
    Stream {
        nodes: vec![],
        len: 0,
        first: [0, 0],
        ..whole()
    }
}
