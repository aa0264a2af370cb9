//! The text of a map that a program has made.

use std::fmt::Write as _;

use super::{Map, ranges_text};

impl Map {
    /// The text that [`Map::parse`] reads as this map.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!("name = {}\nepoch = {}\n", quoted(&self.name), self.epoch);
        for node in &self.nodes {
            let (id, host) = (quoted(&node.name), quoted(&node.host));
            let _ = write!(
                text,
                "\n[[nodes]]\nid = {id}\nhost = {host}\nport = {}\n",
                node.port
            );
            if !node.hostname.is_empty() {
                let _ = writeln!(text, "hostname = {}", quoted(&node.hostname));
            }
            let slots = match &node.slots[..] {
                [] => "[]".to_owned(),
                slots => quoted(&ranges_text(slots)),
            };
            let _ = writeln!(text, "slots = {slots}");
        }
        text
    }
}

/// A text in quotes, as TOML writes it.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Draft, DraftNode, SLOTS};

    /// A map of up to nine nodes, with slots in pieces and some that no node has.
    fn any_map(random: &mut fastrand::Rng) -> Map {
        let names = ["shop", "a \"b\" \\ c", "Größe", "x/y", "'"];
        let nodes = random.usize(1..10);
        let node = |number: usize| DraftNode {
            id: match number % 3 {
                0 => format!("{number:040x}"),
                1 => format!("node-{number}"),
                _ => format!("{number}"),
            },
            host: ["10.0.0.1", "::1", "one.example"][number % 3].to_owned(),
            port: 7000 + number as u16,
            hostname: ["", "two.example"][number % 2].to_owned(),
            ..DraftNode::default()
        };
        let mut draft = Draft {
            name: names[random.usize(..names.len())].to_owned(),
            epoch: random.u64(1..=i64::MAX as u64),
            nodes: (0..nodes).map(node).collect(),
        };
        let mut slot = 0;
        while slot < SLOTS {
            let last = (slot + random.u16(..2000)).min(SLOTS - 1);
            if random.u8(..8) > 0 {
                let owner = random.usize(..nodes);
                draft.nodes[owner].slots.push((slot..=last, 0));
            }
            slot = last + 1;
        }
        draft.check().expect("nothing is given twice")
    }

    #[test]
    fn what_is_written_is_read_as_the_same_map() {
        let mut random = fastrand::Rng::with_seed(11);
        for _ in 0..300 {
            let map = any_map(&mut random);
            let text = map.to_text();
            let read = Map::parse(&text).unwrap_or_else(|problems| panic!("{problems:?}\n{text}"));
            assert_eq!(read, map, "{text}");
        }
    }

    #[test]
    fn the_text_is_for_people() {
        let draft = Draft {
            name: "shop".to_owned(),
            epoch: 1,
            nodes: vec![DraftNode {
                id: "a".to_owned(),
                host: "127.0.0.1".to_owned(),
                port: 7000,
                slots: vec![(0..=9, 0), (12..=12, 0)],
                ..DraftNode::default()
            }],
        };
        let map = draft.check().expect("it is right");
        let expected = "name = \"shop\"\nepoch = 1\n\n[[nodes]]\nid = \"a\"\nhost = \"127.0.0.1\"\nport = 7000\nslots = \"0-9 12\"\n";
        assert_eq!(map.to_text(), expected);
    }

    #[test]
    fn a_draft_without_a_text_is_checked_as_well() {
        let node = |id: &str, slots| DraftNode {
            id: id.to_owned(),
            host: "h".to_owned(),
            port: 1,
            slots: vec![(slots, 0)],
            ..DraftNode::default()
        };
        let draft = Draft {
            name: "x".to_owned(),
            epoch: 1,
            nodes: vec![node("a", 0..=5), node("a", 5..=9)],
        };
        assert_eq!(draft.check().expect_err("all is wrong").len(), 3);
    }
}
