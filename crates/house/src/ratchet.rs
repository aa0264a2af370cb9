//! Compares numbers with those that are committed.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::measure::Number;

/// How many parts a complaint names.
const NAMED: usize = 20;

/// `name = number`, one a line; `#` begins a comment.
pub fn parse(text: &str) -> BTreeMap<String, usize> {
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'));
    let pairs = lines.filter_map(|line| line.rsplit_once(" = "));
    pairs
        .filter_map(|(name, number)| Some((name.trim().to_owned(), number.trim().parse().ok()?)))
        .collect()
}

/// What is worse than committed, or better; nothing: the numbers are those that are committed. `known` holds
/// the parts of the committed numbers, as [`parts`] wrote them.
pub fn complaints(
    now: &[Number],
    committed: &BTreeMap<String, usize>,
    known: &BTreeMap<String, usize>,
) -> Vec<String> {
    let mut complaints = Vec::new();
    for number in now {
        let (name, value) = (&number.name, number.value);
        match committed.get(name) {
            None => complaints.push(format!(
                "{name} = {value} is not committed yet: UPDATE_HOUSE=1 adds it"
            )),
            Some(&committed) if value > committed => {
                complaints.push(format!(
                    "{name} is worse: {value}, committed is {committed}{}",
                    new_parts(number, known)
                ));
            }
            Some(&committed) if value < committed => {
                complaints.push(format!(
                    "{name} is better: {value}, committed is {committed}: UPDATE_HOUSE=1 lowers it"
                ));
            }
            Some(_) => {}
        }
    }
    let gone = committed
        .keys()
        .filter(|name| now.iter().all(|number| number.name != **name));
    complaints.extend(
        gone.map(|name| format!("{name} is no number any more: UPDATE_HOUSE=1 takes it out")),
    );
    complaints
}

/// The parts that are new or have grown.
fn new_parts(number: &Number, known: &BTreeMap<String, usize>) -> String {
    let is_new = |part: &str, count: usize| {
        known
            .get(&key(number, part))
            .is_none_or(|&known| known < count)
    };
    let new: Vec<_> = number
        .parts
        .iter()
        .filter(|(name, part)| is_new(name, part.count))
        .collect();
    let mut text = String::new();
    for (name, part) in new.iter().take(NAMED) {
        let _ = write!(text, "\n    new: {name} ({})", part.hint);
    }
    if new.len() > NAMED {
        let _ = write!(text, "\n    and {} more", new.len() - NAMED);
    }
    text
}

fn key(number: &Number, part: &str) -> String {
    format!("{}: {part}", number.name)
}

/// The numbers to commit: none is raised.
pub fn lowered(now: &[Number], committed: &BTreeMap<String, usize>) -> String {
    let mut text = String::new();
    for number in now {
        let value = committed
            .get(&number.name)
            .map_or(number.value, |&committed| committed.min(number.value));
        let _ = writeln!(text, "{} = {value}", number.name);
    }
    text
}

/// The parts to commit, so that a later complaint can name what is new. A number that is worse keeps its
/// known parts.
pub fn parts(
    now: &[Number],
    committed: &BTreeMap<String, usize>,
    known: &BTreeMap<String, usize>,
) -> String {
    let mut text = String::new();
    for number in now {
        let is_worse = committed
            .get(&number.name)
            .is_some_and(|&committed| committed < number.value);
        if is_worse {
            let prefix = key(number, "");
            for (name, count) in known.iter().filter(|(name, _)| name.starts_with(&prefix)) {
                let _ = writeln!(text, "{name} = {count}");
            }
        } else {
            for (name, part) in &number.parts {
                let _ = writeln!(text, "{} = {}", key(number, name), part.count);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Part;

    fn number(name: &str, parts: &[(&str, usize)]) -> Number {
        let part = |&(name, count): &(&str, usize)| {
            (
                name.to_owned(),
                Part {
                    count,
                    hint: "here".to_owned(),
                },
            )
        };
        let value = parts.iter().map(|(_, count)| count).sum();
        Number {
            name: name.to_owned(),
            value,
            parts: parts.iter().map(part).collect(),
        }
    }

    #[test]
    fn equal_numbers_are_no_complaint() {
        let now = [number("a", &[("x", 2)]), number("b", &[])];
        assert!(complaints(&now, &parse("# c = 1\na = 2\nb = 0\n"), &BTreeMap::new()).is_empty());
    }

    #[test]
    fn what_is_worse_is_named() {
        let now = [number("a", &[("x y", 1), ("z", 2), ("w", 1)])];
        let complaints = complaints(&now, &parse("a = 2"), &parse("a: x y = 1\na: z = 1"));
        assert_eq!(
            complaints,
            ["a is worse: 4, committed is 2\n    new: w (here)\n    new: z (here)"]
        );
    }

    #[test]
    fn what_is_better_missing_or_gone_asks_for_an_update() {
        let now = [number("a", &[("x", 1)]), number("b", &[])];
        let complaints = complaints(&now, &parse("a = 2\nc = 0"), &BTreeMap::new());
        assert_eq!(complaints.len(), 3, "{complaints:?}");
        assert!(
            complaints
                .iter()
                .all(|complaint| complaint.contains("UPDATE_HOUSE=1"))
        );
    }

    #[test]
    fn an_update_lowers_and_never_raises() {
        let now = [
            number("a", &[("x", 3)]),
            number("b", &[("y", 1)]),
            number("c", &[]),
        ];
        let committed = parse("a = 2\nb = 4\nd = 1");
        assert_eq!(lowered(&now, &committed), "a = 2\nb = 1\nc = 0\n");
        assert_eq!(
            parts(&now, &committed, &parse("a: w = 2\nb: v = 4")),
            "a: w = 2\nb: y = 1\n"
        );
    }
}
