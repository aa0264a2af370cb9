//! RESTORE of streams that no server makes: damaged ones are refused, and leave no key.

use crate::support;

use rdb::packed::ListpackBuilder;
use rdb::{Attributes, StreamId, StreamState, Writer};
use support::{Server, Target, Value};

const ONE: Target = Target::Ferrite { threads: 1 };

/// A group: its name, the numbers of its pending entries, and of each consumer its name and theirs.
#[derive(Clone)]
struct Group {
    name: &'static str,
    pending: Vec<u64>,
    consumers: Vec<Consumer>,
}

#[derive(Clone)]
struct Consumer {
    name: &'static str,
    owned: Vec<u64>,
}

/// A stream with entries of these numbers, each a node for itself.
#[derive(Clone)]
struct Stream {
    entries: Vec<u64>,
    len: u64,
    last: u64,
    groups: Vec<Group>,
}

fn id(seq: u64) -> StreamId {
    StreamId { ms: 7, seq }
}

impl Stream {
    fn payload(&self) -> Vec<u8> {
        let write = || {
            let mut writer = Writer::payload(0, false);
            let nodes = self.entries.len() as u64;
            writer.begin_stream(b"", nodes, Attributes::default())?;
            for &seq in &self.entries {
                let mut node = ListpackBuilder::default();
                // An entry, none deleted, one name, then flags, two distances, a value and its length.
                for number in [1, 0, 1] {
                    node.push_number(number);
                }
                node.push(b"f");
                for number in [0, 2, 0, 0] {
                    node.push_number(number);
                }
                node.push(b"v");
                node.push_number(4);
                writer.stream_node(id(seq), node.listpack())?;
            }
            let state = StreamState {
                len: self.len,
                last: id(self.last),
                added: self.len,
                ..StreamState::default()
            };
            writer.stream_state(&state, self.groups.len() as u64)?;
            for group in &self.groups {
                let name = group.name.as_bytes();
                writer.stream_group(name, id(3), None, group.pending.len() as u64)?;
                for &seq in &group.pending {
                    writer.stream_pending(id(seq), 1_700_000_000_000, 1)?;
                }
                writer.stream_consumers(group.consumers.len() as u64)?;
                for consumer in &group.consumers {
                    let (name, owned) = (consumer.name.as_bytes(), &consumer.owned);
                    writer.stream_consumer(name, 1_700_000_000_000, owned.len() as u64)?;
                    for &seq in owned {
                        writer.stream_owned(id(seq))?;
                    }
                }
            }
            std::io::Result::Ok(writer.end_payload())
        };
        write().expect("a vector takes everything")
    }
}

fn whole() -> Stream {
    let consumer = |name, owned: &[u64]| Consumer {
        name,
        owned: owned.to_vec(),
    };
    let group = |name| Group {
        name,
        pending: vec![1, 2, 3],
        consumers: vec![consumer("anna", &[1, 3]), consumer("bert", &[2])],
    };
    Stream {
        entries: vec![1, 3, 4],
        len: 3,
        last: 4,
        groups: vec![group("one"), group("other")],
    }
}

/// A change that damages a stream, and its name.
type Damage = (&'static str, fn(&mut Stream));

const DAMAGES: [Damage; 11] = [
    ("IDs that descend", |stream| stream.entries.swap(0, 1)),
    ("an ID twice", |stream| stream.entries[1] = 1),
    ("more entries than it says", |stream| stream.len = 2),
    ("less entries than it says", |stream| stream.len = 4),
    ("an entry above its last ID", |stream| stream.last = 3),
    ("a group twice", |stream| stream.groups[1].name = "one"),
    ("a consumer twice", |stream| {
        stream.groups[1].consumers[1].name = "anna";
    }),
    ("pending IDs that descend", |stream| {
        stream.groups[1].pending.swap(0, 1);
    }),
    ("an ID that is pending in no group", |stream| {
        stream.groups[0].consumers[1].owned.push(4);
    }),
    ("an ID that is pending at two consumers", |stream| {
        stream.groups[0].consumers[1].owned.push(3);
    }),
    ("an ID that is pending at no consumer", |stream| {
        stream.groups[1].consumers[0].owned.pop();
    }),
];

#[test]
fn damaged_streams_are_refused() {
    let server = Server::start(ONE, &[]);
    let mut client = server.client();
    let whole = whole();
    let mut restore = |stream: &Stream| {
        let reply = client.call(&[&b"RESTORE"[..], b"key", b"0", &stream.payload()]);
        let reply = reply.expect("a reply");
        (
            reply,
            client.ask("EXISTS key").text(),
            client.ask("DEL key"),
        )
    };
    let (reply, exists, _) = restore(&whole);
    assert_eq!((&reply, &*exists), (&support::ok(), "1"));
    for (name, damage) in DAMAGES {
        let mut stream = whole.clone();
        damage(&mut stream);
        let (reply, exists, _) = restore(&stream);
        assert!(matches!(reply, Value::Error(_)), "{name}: {reply:?}");
        assert_eq!(exists, "0", "{name}");
    }
}
