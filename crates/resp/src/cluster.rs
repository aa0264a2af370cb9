//! What a node of a cluster says about the others: the reply of CLUSTER SLOTS, and the errors that name
//! another node.
//!
//! Nothing here connects to anything. A node that does not know its own address leaves it out:
//! [`Node::host`] is empty then, and
//! means the host that was asked.

use crate::Value;
use crate::slot::SLOTS;

/// A node that has slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Empty: the host that was asked.
    pub host: String,
    /// Where it takes requests.
    pub port: u16,
    /// As the node names itself; empty if it does not.
    pub id: String,
    /// First and last slot of each range.
    pub ranges: Vec<(u16, u16)>,
}

impl Node {
    /// How many slots it has.
    #[must_use]
    pub fn slots(&self) -> usize {
        let len = |(first, last): &(u16, u16)| usize::from(last - first) + 1;
        self.ranges.iter().map(len).sum()
    }
}

/// The nodes that a reply of CLUSTER SLOTS names, each once, in the order of their first slots. Replicas are
/// left out. `None` if it
/// is no such reply, as from a server that is no cluster's.
#[must_use]
pub fn parse_slots(reply: &Value) -> Option<Vec<Node>> {
    let Value::Array(ranges) = reply else {
        return None;
    };
    let mut found = Vec::new();
    for range in ranges {
        let Value::Array(parts) = range else {
            return None;
        };
        let [
            Value::Integer(first),
            Value::Integer(last),
            Value::Array(master),
            ..,
        ] = &parts[..]
        else {
            return None;
        };
        let (first, last) = (u16::try_from(*first).ok()?, u16::try_from(*last).ok()?);
        if first > last || last >= SLOTS {
            return None;
        }
        found.push((first, last, node(master)?));
    }
    found.sort_by_key(|(first, ..)| *first);
    let mut nodes: Vec<Node> = Vec::new();
    for (first, last, node) in found {
        let known = nodes
            .iter_mut()
            .find(|known| known.host == node.host && known.port == node.port);
        match known {
            Some(known) => known.ranges.push((first, last)),
            None => nodes.push(Node {
                ranges: vec![(first, last)],
                ..node
            }),
        }
    }
    Some(nodes)
}

/// A node from its address and what else there is of it.
fn node(parts: &[Value]) -> Option<Node> {
    let [host, Value::Integer(port), rest @ ..] = parts else {
        return None;
    };
    let host = match host {
        Value::Null => String::new(),
        host => text(host)?,
    };
    Some(Node {
        host,
        port: u16::try_from(*port).ok()?,
        id: rest.first().and_then(text).unwrap_or_default(),
        ranges: Vec::new(),
    })
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::Bulk(bytes) | Value::Simple(bytes) => {
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
        _ => None,
    }
}

/// An error that says which node to ask instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirection {
    /// Only this once (ASK, answered by ASKING before the request); otherwise from now on (MOVED).
    pub is_once: bool,
    /// The slot of the request's keys.
    pub slot: u16,
    /// Empty: the host that was asked.
    pub host: String,
    /// Where the node takes requests.
    pub port: u16,
}

impl Redirection {
    /// Reads the text of an error reply, without its type.
    #[must_use]
    pub fn parse(error: &[u8]) -> Option<Redirection> {
        let mut words = std::str::from_utf8(error).ok()?.split_ascii_whitespace();
        let is_once = match words.next()? {
            "MOVED" => false,
            "ASK" => true,
            _ => return None,
        };
        let slot = words.next()?.parse().ok().filter(|slot| *slot < SLOTS)?;
        // An address of IPv6 has colons of its own, and no brackets.
        let (host, port) = words.next()?.rsplit_once(':')?;
        Some(Redirection {
            is_once,
            slot,
            host: host.to_owned(),
            port: port.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(text: &str) -> Option<Vec<Node>> {
        let bytes = text.replace('\n', "\r\n");
        let (value, _) = crate::parse_value(bytes.as_bytes())
            .expect("a reply")
            .expect("all of it");
        parse_slots(&value)
    }

    #[test]
    fn nodes_are_gathered_from_their_ranges() {
        // As Redis 7.0 writes it: a master with a name, one with a replica, one without an address.
        let nodes = slots(concat!(
            "*3\n*3\n:10\n:16383\n*4\n$-1\n:7002\n$2\nid\n*0\n",
            "*3\n:6\n:9\n*2\n$9\n127.0.0.1\n:7001\n",
            "*4\n:0\n:5\n*4\n$9\n127.0.0.1\n:7001\n$1\na\n*0\n*4\n$9\n127.0.0.1\n:7005\n$1\nr\n*0\n"
        ));
        let nodes = nodes.expect("it is one");
        let found: Vec<_> = nodes
            .iter()
            .map(|node| {
                (
                    node.host.as_str(),
                    node.port,
                    node.id.as_str(),
                    node.slots(),
                )
            })
            .collect();
        assert_eq!(
            found,
            [("127.0.0.1", 7001, "a", 10), ("", 7002, "id", 16374)]
        );
        assert_eq!(nodes[0].ranges, [(0, 5), (6, 9)]);
    }

    #[test]
    fn other_replies_are_no_maps() {
        for text in [
            "-ERR This instance has cluster support disabled\n",
            "*1\n:1\n",
            "*1\n*2\n:0\n:5\n",
            "*1\n*3\n:5\n:0\n*2\n$1\na\n:1\n",
            "*1\n*3\n:0\n:16384\n*2\n$1\na\n:1\n",
            "*1\n*3\n:-1\n:5\n*2\n$1\na\n:1\n",
            "*1\n*3\n:0\n:5\n*2\n$1\na\n:70000\n",
            "*1\n*3\n:0\n:5\n*1\n$1\na\n",
        ] {
            assert_eq!(slots(text), None, "{text:?}");
        }
        assert_eq!(slots("*0\n"), Some(Vec::new()));
    }

    #[test]
    fn redirections_name_a_node() {
        let moved = |host: &str| Redirection {
            is_once: false,
            slot: 12182,
            host: host.to_owned(),
            port: 7002,
        };
        for (text, expected) in [
            ("MOVED 12182 127.0.0.1:7002", Some(moved("127.0.0.1"))),
            ("MOVED 12182 ::1:7002", Some(moved("::1"))),
            ("MOVED 12182 :7002", Some(moved(""))),
            (
                "ASK 12182 h:7002",
                Some(Redirection {
                    is_once: true,
                    ..moved("h")
                }),
            ),
            ("MOVED", None),
            ("MOVED 12182", None),
            ("MOVED x h:1", None),
            ("MOVED 16384 h:1", None),
            ("MOVED 1 h", None),
            ("MOVED 1 h:99999", None),
            ("ERR MOVED 1 h:1", None),
            ("", None),
        ] {
            assert_eq!(Redirection::parse(text.as_bytes()), expected, "{text}");
        }
    }
}
