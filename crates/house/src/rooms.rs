//! The table of rooms: the folders of a crate in order. A room imports only from the rooms before its own.
//!
//! A large room may have floors, for which the same holds: its modules are shared out among them.
//!
//! ```text
//! # a comment
//! store
//! command
//!   call: mod session table      modules of the floor; `mod` is the room's own file
//!   families: hash list
//! ```

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{Edge, Tree, room};

/// Rooms, the bottom first.
#[derive(Clone, Debug, Default)]
pub struct Rooms(Vec<Room>);

#[derive(Clone, Debug)]
struct Room {
    name: String,
    /// The lowest first.
    floors: Vec<Floor>,
}

#[derive(Clone, Debug)]
struct Floor {
    name: String,
    modules: BTreeSet<String>,
}

/// Indices of a room and of a floor of it. The lower comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    room: usize,
    floor: Option<usize>,
}

/// The module of a file inside its room.
fn module(path: &str) -> &str {
    let inside = path.split_once('/').map_or("mod", |(_, inside)| inside);
    room(inside)
}

impl Room {
    fn floor(&self, path: &str) -> Option<usize> {
        let module = module(path);
        self.floors
            .iter()
            .position(|floor| floor.modules.contains(module))
    }

    /// Modules that no floor has, and floors with modules that are gone.
    fn misplaced(&self, tree: &Tree) -> Vec<String> {
        let there: BTreeSet<&str> = tree
            .files()
            .filter(|file| room(file) == self.name)
            .map(module)
            .collect();
        let of_floors = || self.floors.iter().flat_map(|floor| &floor.modules);
        let homeless = there
            .iter()
            .filter(|module| of_floors().all(|other| other != *module));
        let gone = of_floors().filter(|module| !there.contains(module.as_str()));
        homeless
            .map(|module| format!("no floor of `{}` has `{module}`", self.name))
            .chain(gone.map(|module| format!("`{module}` of `{}` in rooms.txt is gone", self.name)))
            .collect()
    }
}

impl Rooms {
    /// Reads one room a line, the bottom first; lines that are moved in are its floors. `#` begins a comment.
    pub fn parse(text: &str) -> Self {
        let lines = text
            .lines()
            .map(|line| line.split('#').next().unwrap_or(line).trim_end());
        let mut rooms: Vec<Room> = Vec::new();
        for line in lines.filter(|line| !line.is_empty()) {
            match (line.strip_prefix(' '), rooms.last_mut()) {
                (Some(floor), Some(room)) => {
                    let (name, modules) = floor.split_once(':').unwrap_or((floor, floor));
                    room.floors.push(Floor {
                        name: name.trim().to_owned(),
                        modules: modules.split_whitespace().map(str::to_owned).collect(),
                    });
                }
                _ => rooms.push(Room {
                    name: line.trim().to_owned(),
                    floors: Vec::new(),
                }),
            }
        }
        Self(rooms)
    }

    /// The place of a file.
    fn place(&self, path: &str) -> Option<Place> {
        let at = self.0.iter().position(|other| other.name == room(path))?;
        Some(Place {
            room: at,
            floor: self.0[at].floor(path),
        })
    }

    fn name(&self, place: Place) -> String {
        let room = &self.0[place.room];
        match place.floor {
            None => room.name.clone(),
            Some(floor) => format!("{}/{}", room.name, room.floors[floor].name),
        }
    }

    /// Returns rooms that are missing here or in the tree, and each pair of rooms, or floors of one, of which
    /// the lower imports the higher, with the first place.
    pub fn complaints(&self, tree: &Tree, edges: &[Edge]) -> Vec<String> {
        let there: BTreeSet<&str> = tree.files().map(room).collect();
        let has = |name: &str| self.0.iter().any(|other| other.name == name);
        let unknown = there.iter().filter(|name| !has(name));
        let gone = self
            .0
            .iter()
            .filter(|room| !there.contains(room.name.as_str()));
        let mut complaints: Vec<String> = unknown
            .map(|name| format!("the room `{name}` is not in rooms.txt"))
            .chain(gone.map(|room| format!("the room `{}` of rooms.txt is gone", room.name)))
            .collect();
        let with_floors = self.0.iter().filter(|room| !room.floors.is_empty());
        complaints.extend(with_floors.flat_map(|room| room.misplaced(tree)));
        let mut upward: BTreeMap<_, (&Edge, usize)> = BTreeMap::new();
        for edge in edges {
            if let (Some(from), Some(to)) = (self.place(&edge.from), self.place(&edge.to))
                && from < to
            {
                upward.entry((from, to)).or_insert((edge, 0)).1 += 1;
            }
        }
        complaints.extend(upward.into_iter().map(|((from, to), (edge, count))| {
            let Edge { from: file, line, item, to: other, .. } = edge;
            let (from, to, more) = (self.name(from), self.name(to), count - 1);
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

    #[test]
    fn an_import_of_a_higher_floor_is_named_and_each_module_has_a_floor() {
        let files = [
            ("main.rs", "mod high;"),
            ("high/mod.rs", "pub mod deep; pub mod top; pub mod lost;"),
            ("high/deep.rs", "use crate::high::top::T; pub struct H;"),
            ("high/top.rs", "use crate::high::deep::H; pub struct T;"),
            ("high/lost.rs", ""),
        ];
        let tree = Tree::of_texts(&files);
        let table = "high\n  cellar: mod deep gone\n  roof: top # all\nmain";
        let found = Rooms::parse(table).complaints(&tree, &tree.edges(&BTreeSet::new()));
        let expected = [
            "no floor of `high` has `lost`",
            "`gone` of `high` in rooms.txt is gone",
            "`high/cellar` stands below `high/roof`: high/deep.rs:1 names T of high/top.rs, and 0 more",
        ];
        assert_eq!(found, expected);
    }
}
