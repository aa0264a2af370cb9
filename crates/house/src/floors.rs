//! The table of floors: which rooms of the server stand above which.

use std::collections::{BTreeMap, BTreeSet};

/// Floors from the bottom up, and the rooms of each.
#[derive(Clone, Debug, Default)]
pub struct Floors {
    /// The floor of a room, from 0.
    ranks: BTreeMap<String, usize>,
    /// Rooms that are listed behind the colon: they must be there.
    listed: BTreeSet<String>,
}

impl Floors {
    /// Reads `floor: room room` lines, the bottom first. A floor is a room of its name too, today or one day.
    /// `#` begins a comment.
    pub fn parse(text: &str) -> Self {
        let mut floors = Self::default();
        let lines = text
            .lines()
            .map(|line| line.split('#').next().unwrap_or(line).trim());
        for (rank, line) in lines.filter(|line| !line.is_empty()).enumerate() {
            let (floor, rooms) = line.split_once(':').unwrap_or((line, ""));
            floors.ranks.insert(floor.trim().to_owned(), rank);
            for room in rooms.split_whitespace() {
                floors.ranks.insert(room.to_owned(), rank);
                floors.listed.insert(room.to_owned());
            }
        }
        floors
    }

    /// Whether an import runs from a lower floor to a higher one.
    pub fn is_upward(&self, from: &str, to: &str) -> bool {
        match (self.ranks.get(from), self.ranks.get(to)) {
            (Some(from), Some(to)) => from < to,
            _ => false,
        }
    }

    /// What is wrong between the table and the rooms that there are.
    pub fn complaints(&self, rooms: &BTreeSet<String>) -> Vec<String> {
        let homeless = rooms.iter().filter(|room| !self.ranks.contains_key(*room));
        let gone = self.listed.difference(rooms);
        homeless
            .map(|room| format!("the room `{room}` stands on no floor: add it to floors.txt"))
            .chain(gone.map(|room| format!("the room `{room}` is gone: take it out of floors.txt")))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_upward() {
        let floors = Floors::parse("# bottom\na: b c\n\nd # top\n");
        assert!(floors.is_upward("b", "d"));
        assert!(!floors.is_upward("d", "a"));
        assert!(!floors.is_upward("b", "c"));
    }

    #[test]
    fn rooms_without_floor_and_floors_without_room() {
        let floors = Floors::parse("a: b\nc");
        let rooms = ["a", "e"].map(str::to_owned).into();
        let complaints = floors.complaints(&rooms);
        assert_eq!(complaints.len(), 2, "{complaints:?}");
        assert!(
            complaints[0].contains("`e` stands on no floor")
                && complaints[1].contains("`b` is gone")
        );
    }
}
