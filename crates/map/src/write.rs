//! The text of a map that a program has made.

use std::fmt::Write as _;

use crate::model::{Map, ranges_text};

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
    use crate::tests::any_map;
    use crate::{Draft, DraftNode};

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
        let expected = "name = \"shop\"\nepoch = 1\n\n[[nodes]]\nid = \"a\"\nhost = \"127.0.0.1\"\n\
            port = 7000\nslots = \"0-9 12\"\n";
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
