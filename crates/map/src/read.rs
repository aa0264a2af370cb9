//! The text of a map: TOML whose values know their lines.

use std::ops::{Range, RangeInclusive};

use resp::slot::SLOTS;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::draft::{Draft, DraftNode, Problem};
use crate::model::Map;

/// The names that a map may have at its top, and those of a node.
const MAP_NAMES: &[&str] = &["name", "epoch", "nodes"];
const NODE_NAMES: &[&str] = &["id", "host", "port", "hostname", "slots"];

type Value<'a> = Spanned<DeValue<'a>>;

impl Map {
    /// The map that a text describes.
    ///
    /// # Errors
    /// All that is wrong with it, in the order of the lines.
    pub fn parse(text: &str) -> Result<Map, Vec<Problem>> {
        let mut problems = Vec::new();
        let draft = read(text, &mut problems);
        draft.check_after(problems)
    }
}

/// What a text says. What cannot be read is told and left out.
fn read(text: &str, problems: &mut Vec<Problem>) -> Draft {
    let ends = text.bytes().zip(0..).filter(|(byte, _)| *byte == b'\n');
    let line_ends = ends.map(|(_, at)| at).collect();
    let mut reader = Reader {
        line_ends,
        problems,
    };
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let message = error.message().trim_end().replace('\n', ", ");
        reader.tell(error.span().unwrap_or_default(), message);
    }
    // What is missing may be what could not be read.
    if !reader.problems.is_empty() {
        return Draft::default();
    }
    reader.map(&table)
}

struct Reader<'t> {
    /// Where lines end, in order: a map may have very many values.
    line_ends: Vec<usize>,
    problems: &'t mut Vec<Problem>,
}

impl Reader<'_> {
    /// The number of the line that a place is in.
    fn line(&self, place: &Range<usize>) -> usize {
        self.line_ends.partition_point(|&end| end < place.start) + 1
    }

    fn tell(&mut self, place: Range<usize>, text: impl Into<String>) {
        let (line, text) = (self.line(&place), text.into());
        self.problems.push(Problem { line, text });
    }

    fn map(&mut self, table: &Spanned<DeTable<'_>>) -> Draft {
        let mut draft = Draft::default();
        self.check_names(table.get_ref(), MAP_NAMES, "a map");
        let top = table.get_ref();
        match top.get("name") {
            Some(value) => draft.name = self.text_of("name", value).unwrap_or_default(),
            None => self.tell(0..0, "'name' is missing: what the cluster is called"),
        }
        match top.get("epoch") {
            Some(value) => {
                draft.epoch = self.number("epoch", value, 1..=i64::MAX).unwrap_or(1) as u64;
            }
            None => self.tell(
                0..0,
                "'epoch' is missing: a number that grows with each change of the map",
            ),
        }
        match top
            .get("nodes")
            .map(|nodes| (nodes.span(), nodes.get_ref()))
        {
            Some((_, DeValue::Array(nodes))) if !nodes.is_empty() => {
                draft.nodes = nodes.iter().filter_map(|node| self.node(node)).collect();
            }
            Some((place, _)) => self.tell(place, "each node is a table '[[nodes]]' of its own"),
            None => self.tell(0..0, "there is no node: each is a table '[[nodes]]'"),
        }
        draft
    }

    fn node(&mut self, value: &Value<'_>) -> Option<DraftNode> {
        let Some(table) = value.get_ref().as_table() else {
            self.tell(value.span(), "each node is a table '[[nodes]]' of its own");
            return None;
        };
        self.check_names(table, NODE_NAMES, "a node");
        let mut node = DraftNode {
            line: self.line(&value.span()),
            ..DraftNode::default()
        };
        (node.id_line, node.host_line) = (node.line, node.line);
        let mut is_whole = true;
        for name in ["id", "host", "port"] {
            if table.get(name).is_none() {
                is_whole = false;
                self.tell(value.span(), format!("a node without '{name}'"));
            }
        }
        if let Some(id) = table.get("id") {
            node.id_line = self.line(&id.span());
            node.id = self.text_of("id", id).unwrap_or_default();
        }
        if let Some(host) = table.get("host") {
            node.host_line = self.line(&host.span());
            node.host = self.text_of("host", host).unwrap_or_default();
        }
        if let Some(port) = table.get("port") {
            node.port = self.number("port", port, 1..=65535).unwrap_or(1) as u16;
        }
        if let Some(hostname) = table.get("hostname") {
            node.hostname = self.text_of("hostname", hostname).unwrap_or_default();
        }
        match table.get("slots") {
            Some(slots) => self.slots(slots, &mut node.slots),
            None => self.tell(value.span(), "a node without 'slots' (slots = [] for none)"),
        }
        is_whole.then_some(node)
    }

    fn check_names(&mut self, table: &DeTable<'_>, known: &[&str], of: &str) {
        for (name, _) in table.iter() {
            let word = name.get_ref().as_ref();
            if known.contains(&word) {
                continue;
            }
            let distance = |other: &&&str| strsim::damerau_levenshtein(word, other);
            let closest = known.iter().min_by_key(distance);
            let hint = match closest {
                Some(other) if strsim::damerau_levenshtein(word, other) <= 2 => {
                    format!("did you mean '{other}'?")
                }
                _ => format!("{of} has {}", known.join(", ")),
            };
            self.tell(
                name.span(),
                format!("unknown name '{}'; {hint}", word.escape_debug()),
            );
        }
    }

    fn text_of(&mut self, name: &str, value: &Value<'_>) -> Option<String> {
        match value.get_ref().as_str() {
            Some(text) if !text.is_empty() => return Some(text.to_owned()),
            Some(_) => self.tell(value.span(), format!("'{name}' is empty")),
            None => self.tell(value.span(), format!("'{name}' takes a text in quotes")),
        }
        None
    }

    fn number(&mut self, name: &str, value: &Value<'_>, range: RangeInclusive<i64>) -> Option<i64> {
        let number = match value.get_ref() {
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            let (least, most) = range.into_inner();
            self.tell(
                value.span(),
                format!("'{name}' takes a number from {least} to {most}"),
            );
        }
        number
    }

    /// The ranges that `"0-5460"`, `"0-5460 7000"`, `7` or an array of these mean.
    fn slots(&mut self, value: &Value<'_>, ranges: &mut Vec<(RangeInclusive<u16>, usize)>) {
        let line = self.line(&value.span());
        match value.get_ref() {
            DeValue::Array(values) => {
                for value in values.iter() {
                    if value.get_ref().is_array() {
                        self.wrong_slots(value);
                    } else {
                        self.slots(value, ranges);
                    }
                }
            }
            DeValue::Integer(_) => {
                if let Some(slot) = self.number("slots", value, 0..=i64::from(SLOTS - 1)) {
                    ranges.push((slot as u16..=slot as u16, line));
                }
            }
            DeValue::String(words) => {
                let words = words.split([',', ' ']).filter(|word| !word.is_empty());
                for word in words {
                    match range(word) {
                        Some(range) => ranges.push((range, line)),
                        None => self.wrong_slots(value),
                    }
                }
            }
            _ => self.wrong_slots(value),
        }
    }

    fn wrong_slots(&mut self, value: &Value<'_>) {
        let last = SLOTS - 1;
        let text = format!(
            "'slots' takes ranges of slots from 0 to {last}, for example [\"0-5460\", 7000]"
        );
        self.tell(value.span(), text);
    }
}

/// The range that `0-5460` or `7` means.
fn range(word: &str) -> Option<RangeInclusive<u16>> {
    let slot = |text: &str| {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
        let slot = text.parse::<u16>().ok().filter(|_| is_plain);
        slot.filter(|&slot| slot < SLOTS)
    };
    let (first, last) = match word.split_once('-') {
        Some((first, last)) => (slot(first)?, slot(last)?),
        None => (slot(word)?, slot(word)?),
    };
    (first <= last).then_some(first..=last)
}
