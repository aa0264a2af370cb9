//! The table of rooms: the folders of a crate in order. A room imports only from the rooms before its own.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{Edge, Tree, room};

/// Rooms, the bottom first.
#[derive(Clone, Debug, Default)]
pub struct Rooms(Vec<String>);

impl Rooms {
    /// Reads one room a line, the bottom first. `#` begins a comment.
    pub fn parse(text: &str) -> Self {
        let lines = text
            .lines()
            .map(|line| line.split('#').next().unwrap_or(line).trim());
        let names = lines.filter(|line| !line.is_empty());
        Self(names.map(str::to_owned).collect())
    }

    /// What is wrong: rooms that are missing here or in the tree, and each pair of rooms of which the lower
    /// imports the higher, with the first place.
    pub fn complaints(&self, tree: &Tree, edges: &[Edge]) -> Vec<String> {
        let there: BTreeSet<&str> = tree.files().map(room).collect();
        let rank = |name: &str| self.0.iter().position(|other| other == name);
        let unknown = there.iter().filter(|name| rank(name).is_none());
        let gone = self.0.iter().filter(|name| !there.contains(name.as_str()));
        let mut complaints: Vec<String> = unknown
            .map(|name| format!("the room `{name}` is not in rooms.txt"))
            .chain(gone.map(|name| format!("the room `{name}` of rooms.txt is gone")))
            .collect();
        let mut upward: BTreeMap<(&str, &str), (&Edge, usize)> = BTreeMap::new();
        for edge in edges {
            let (from, to) = (room(&edge.from), room(&edge.to));
            if rank(from).is_some() && rank(from) < rank(to) {
                upward.entry((from, to)).or_insert((edge, 0)).1 += 1;
            }
        }
        complaints.extend(upward.into_iter().map(|((from, to), (edge, count))| {
            let Edge { from: file, line, item, to: other, .. } = edge;
            let more = count - 1;
            format!("`{from}` stands below `{to}`: {file}:{line} names {item} of {other}, and {more} more")
        }));
        complaints
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(table: &str) -> Vec<String> {
        let files = [
            ("main.rs", "mod low; mod high;"),
            ("low.rs", "use crate::high::deep::H; pub struct L;"),
            (
                "high/mod.rs",
                "pub mod deep; use crate::low::L; impl L { pub fn m(&self) {} }",
            ),
            ("high/deep.rs", "pub struct H; fn f(l: X) { l.m() }"),
        ];
        let tree = Tree::of_texts(&files);
        Rooms::parse(table).complaints(&tree, &tree.edges(&BTreeSet::new()))
    }

    #[test]
    fn an_import_of_a_higher_room_is_named() {
        let upward = "`low` stands below `high`: low.rs:1 names H of high/deep.rs, and 0 more";
        assert_eq!(complaints("# bottom\nlow\n\nhigh # top\nmain"), [upward]);
        let other_way = complaints("high\nlow\nmain");
        assert_eq!(other_way.len(), 1, "{other_way:?}");
        assert!(
            other_way[0].starts_with("`high` stands below `low`: high/mod.rs:1 names L of low.rs")
        );
    }

    #[test]
    fn the_table_and_the_tree_have_the_same_rooms() {
        let expected = [
            "the room `main` is not in rooms.txt",
            "the room `cellar` of rooms.txt is gone",
            "`low` stands below `high`: low.rs:1 names H of high/deep.rs, and 0 more",
        ];
        assert_eq!(complaints("cellar\nlow\nhigh"), expected);
    }
}
