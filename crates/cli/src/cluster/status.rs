//! `cluster status`: what the nodes are and have, and whether all agree on the map.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write as _};
use std::time::Duration;

use resp::Value;
use sys::signal::Interrupts;

use super::columns::table;
use super::fleet::{Fleet, Member, PORT_FLAG};
use super::given::Given;
use super::probe::{self, Facts, Report};
use super::subcommand::{Rest, Subcommand, SubcommandFlag};
use crate::amounts::bytes_text;
use crate::failure::{Failure, Result};
use crate::flags::Options;
use crate::format::{Format, Style};
use crate::modes::Countdown;

pub(super) const SUBCOMMAND: Subcommand = Subcommand {
    name: "status",
    words: &["NODES|DIR"],
    summary: "Which nodes are up, their slots, keys, memory, requests a second, version and epoch, and \
              whether all agree on the map. Exit status 1 if one is down or they disagree.",
    flags: &[
        PORT_FLAG,
        SubcommandFlag {
            long: "watch",
            value: "",
            summary: "Looks again every second (or -i before `cluster`), until Ctrl-C.",
        },
        SubcommandFlag {
            long: "json",
            value: "",
            summary: "The same as JSON, a line each time.",
        },
    ],
    rest: Rest::Nothing,
    run,
};

/// Ranges of slots of which all are shown.
const RANGES: usize = 3;

/// To the first column of the first line, and everything behind it away.
const CLEAR: &str = "\x1b[H\x1b[J";

/// A look at all nodes.
struct Look<'a> {
    fleet: &'a Fleet,
    reports: Vec<Report>,
    expected: Expected,
    /// What is not as it should be, in sentences.
    problems: Vec<String>,
}

fn run(given: &Given, options: &Options) -> Result {
    let is_json = given.has("json") || matches!(options.format, Some(Format::Json));
    let is_live = given.has("watch") && !is_json && io::stdout().is_terminal();
    let interrupts = if given.has("watch") {
        let caught = Interrupts::catch();
        Some(caught.map_err(|error| Failure::Other(error.to_string()))?)
    } else {
        None
    };
    let mut countdown = Countdown::new(options);
    loop {
        // The map may be another by now.
        let fleet = Fleet::of_given(given)?;
        let look = Look::at(&fleet, options);
        let text = if is_json { look.json() } else { look.text() };
        let mut out = io::stdout().lock();
        if is_live {
            out.write_all(CLEAR.as_bytes())?;
        }
        out.write_all(text.as_bytes())?;
        out.flush()?;
        drop(out);
        let pause = options.interval_or(Duration::from_secs(1));
        let goes_on = interrupts.as_ref();
        let goes_on = !countdown.is_last() && goes_on.is_some_and(|heard| !heard.sleep(pause));
        if !goes_on {
            let is_right = look.problems.is_empty();
            return if is_right { Ok(()) } else { Err(Failure::Told) };
        }
    }
}

impl Look<'_> {
    fn at<'a>(fleet: &'a Fleet, options: &Options) -> Look<'a> {
        let reports = probe::ask_all(&fleet.members, &options.access);
        let expected = Expected::of(fleet, &reports);
        let problems = problems(&fleet.members, &reports, &expected);
        Look {
            fleet,
            reports,
            expected,
            problems,
        }
    }

    fn rows(&self) -> impl Iterator<Item = (&Member, &Report)> {
        self.fleet.members.iter().zip(&self.reports)
    }

    fn text(&self) -> String {
        let rows: Vec<Vec<String>> = self
            .rows()
            .map(|(member, report)| row(member, report))
            .collect();
        let heading = [
            "id", "address", "state", "slots", "keys", "memory", "ops/s", "version", "epoch",
        ];
        let mut text = table(&heading, &rows, &["keys", "memory", "ops/s", "epoch"]);
        for problem in &self.problems {
            text += problem;
            text.push('\n');
        }
        if self.problems.is_empty() {
            let of = match self.expected.name.as_str() {
                // Redis has no name for a cluster.
                "" => String::new(),
                name => format!(" of {name}"),
            };
            let count = rows.len();
            text += &format!("All {count} nodes{of} are up and agree on the map.\n");
        }
        text
    }

    fn json(&self) -> String {
        let up = self
            .reports
            .iter()
            .filter(|report| report.facts().is_some());
        let nodes = self
            .rows()
            .map(|(member, report)| node_value(member, report));
        let problems = self.problems.iter().map(|problem| word(problem));
        let value = object(vec![
            ("name", word(&self.expected.name)),
            ("epoch", number(self.expected.epoch)),
            ("up", number(up.count() as u64)),
            ("agree", Value::Boolean(self.problems.is_empty())),
            ("problems", Value::Array(problems.collect())),
            ("nodes", Value::Array(nodes.collect())),
        ]);
        let mut text = Vec::new();
        Style::of(Format::Json).append(&mut text, &value);
        String::from_utf8_lossy(&text).into_owned()
    }
}

/// The map that all nodes should have: that of the file, else that of the first node which is up.
pub(super) struct Expected {
    pub(super) name: String,
    pub(super) epoch: u64,
    pub(super) view: BTreeMap<String, Vec<String>>,
    /// Whose it is.
    owner: String,
}

impl Expected {
    pub(super) fn of(fleet: &Fleet, reports: &[Report]) -> Expected {
        if let Some(map) = &fleet.map {
            let nodes = map.nodes.iter();
            let slots = |node: &map::Node| words(&map::ranges_text(&node.slots));
            return Expected {
                name: map.name.clone(),
                epoch: map.epoch,
                view: nodes.map(|node| (node.id.clone(), slots(node))).collect(),
                owner: "the file".to_owned(),
            };
        }
        let both = fleet.members.iter().zip(reports);
        let mut up = both.filter_map(|(member, report)| Some((member, report.facts()?)));
        match up.next() {
            Some((member, facts)) => Expected {
                name: facts.name.clone(),
                epoch: facts.epoch,
                view: facts.view.clone(),
                owner: member.name.clone(),
            },
            None => Expected {
                name: String::new(),
                epoch: 0,
                view: BTreeMap::new(),
                owner: String::new(),
            },
        }
    }
}

/// What is not as it should be.
pub(super) fn problems(members: &[Member], reports: &[Report], expected: &Expected) -> Vec<String> {
    let (epoch, owner) = (expected.epoch, &expected.owner);
    let mut problems = Vec::new();
    for (member, report) in members.iter().zip(reports) {
        let name = &member.name;
        let Some(facts) = report.facts() else {
            problems.push(format!("{name} is down: {}.", report.state()));
            continue;
        };
        if !member.is(&facts.id) {
            problems.push(format!(
                "{name} is another node: at {} answers {}.",
                member.place(),
                shown_id(facts)
            ));
        } else if facts.epoch != epoch {
            problems.push(format!(
                "{name} has another map: its epoch is {}, that of {owner} is {epoch}.",
                facts.epoch
            ));
        } else if facts.view != expected.view {
            problems.push(format!(
                "{name} has another map: its epoch is that of {owner}, {epoch}, but its slots are others."
            ));
        } else if facts.state != "ok" {
            problems.push(format!("{name} serves nothing: slots have no node."));
        }
    }
    problems
}

fn shown_id(facts: &Facts) -> &str {
    match facts.id.as_str() {
        "" => "no node of a cluster",
        id => id,
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn row(member: &Member, report: &Report) -> Vec<String> {
    let mut row = vec![
        member.name.clone(),
        member.place().to_string(),
        report.state().to_owned(),
    ];
    match report.facts() {
        Some(facts) => row.extend([
            slots_text(&facts.slots),
            facts.info.keys().to_string(),
            bytes_text(facts.info.number("used_memory")),
            facts.info.number("instantaneous_ops_per_sec").to_string(),
            version(facts).to_owned(),
            facts.epoch.to_string(),
        ]),
        None => row.extend(std::iter::repeat_n("-".to_owned(), 6)),
    }
    row
}

/// What a node says it is.
fn version(facts: &Facts) -> &str {
    match facts.info.text("ferrite_version") {
        "" => facts.info.text("redis_version"),
        version => version,
    }
}

/// Ranges of slots, or how many there are of both.
fn slots_text(ranges: &[String]) -> String {
    match ranges.len() {
        0 => "-".to_owned(),
        1..=RANGES => ranges.join(" "),
        count => format!("{} in {count} ranges", slot_count(ranges)),
    }
}

fn slot_count(ranges: &[String]) -> u64 {
    let count = |range: &String| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let slot = |text: &str| text.parse::<u64>().unwrap_or(0);
        (slot(last) + 1).saturating_sub(slot(first))
    };
    ranges.iter().map(count).sum()
}

fn node_value(member: &Member, report: &Report) -> Value {
    let mut pairs = vec![
        ("id", word(&member.name)),
        ("host", word(&member.host)),
        ("port", number(member.port.into())),
        ("up", Value::Boolean(report.facts().is_some())),
        ("state", word(report.state())),
    ];
    if let Some(facts) = report.facts() {
        let figure = |name| Value::Integer(facts.info.number(name));
        let ranges = facts.slots.iter().map(|range| word(range)).collect();
        pairs.extend([
            ("node", word(&facts.id)),
            ("slots", Value::Array(ranges)),
            ("slot_count", number(slot_count(&facts.slots))),
            ("keys", number(facts.info.keys())),
            ("memory", figure("used_memory")),
            ("ops_per_sec", figure("instantaneous_ops_per_sec")),
            ("version", word(version(facts))),
            ("epoch", number(facts.epoch)),
            ("pid", figure("process_id")),
        ]);
    }
    object(pairs)
}

fn object(pairs: Vec<(&str, Value)>) -> Value {
    Value::Map(
        pairs
            .into_iter()
            .map(|(name, value)| (word(name), value))
            .collect(),
    )
}

fn word(text: &str) -> Value {
    Value::Bulk(text.as_bytes().to_vec())
}

fn number(number: u64) -> Value {
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_shown_as_ranges_or_counted() {
        let ranges = words("0-9 12 20-29 40 50-59");
        assert_eq!(slots_text(&ranges[..3]), "0-9 12 20-29");
        assert_eq!(slots_text(&ranges), "32 in 5 ranges");
        assert_eq!((slots_text(&[]), slot_count(&[])), ("-".to_owned(), 0));
    }
}
