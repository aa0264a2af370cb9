//! `cluster rebalance`: which slots would move for even shares. Nothing is moved.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use map::{Draft, DraftNode, Map, Move, SLOTS, ranges_text};

use super::fleet::{Fleet, PORT_FLAG};
use super::given::Given;
use super::probe;
use super::status::{Expected, problems};
use super::subcommand::{Rest, Subcommand, SubcommandFlag};
use crate::failure::{Failure, Result};
use crate::flags::Options;

pub(super) const SUBCOMMAND: Subcommand = Subcommand {
    name: "rebalance",
    words: &["NODES|DIR"],
    summary: "Says which slots would move so that all nodes have as many, with the fewest moves.",
    flags: &[
        PORT_FLAG,
        SubcommandFlag {
            long: "plan",
            value: "",
            summary: "Nothing is moved. Required, as slots cannot be moved yet.",
        },
    ],
    rest: Rest::Nothing,
    run,
};

fn run(given: &Given, options: &Options) -> Result {
    if !given.has("plan") {
        return Err(given.wrong("slots cannot be moved yet; --plan says which would move"));
    }
    let fleet = Fleet::of_given(given)?;
    let names: Vec<&str> = fleet
        .members
        .iter()
        .map(|member| member.name.as_str())
        .collect();
    let text = match &fleet.map {
        Some(map) => plan(map, &names),
        None => plan(&map_of(&fleet, options)?, &names),
    };
    Ok(io::stdout().write_all(text.as_bytes())?)
}

/// The map that the nodes of a file of hosts have, in their order.
///
/// # Errors
/// They do not agree on one.
fn map_of(fleet: &Fleet, options: &Options) -> Result<Map> {
    let reports = probe::ask_all(&fleet.members, &options.access);
    let expected = Expected::of(fleet, &reports);
    let problems = problems(&fleet.members, &reports, &expected);
    if !problems.is_empty() {
        return Err(Failure::Other(problems.join("\n")));
    }
    let both = fleet.members.iter().zip(&reports);
    let nodes: Vec<DraftNode> = both
        .filter_map(|(member, report)| {
            let facts = report.facts()?;
            let range = |words: &String| (range(words), 0);
            Some(DraftNode {
                id: facts.id.clone(),
                host: member.host.clone(),
                port: member.port,
                slots: facts.slots.iter().map(range).collect(),
                ..DraftNode::default()
            })
        })
        .collect();
    if nodes.len() != expected.view.len() {
        let (some, all) = (nodes.len(), expected.view.len());
        let text = format!("the file names {some} of the {all} nodes of the cluster");
        return Err(Failure::Other(text));
    }
    let draft = Draft {
        name: expected.name,
        epoch: expected.epoch,
        nodes,
    };
    draft.check().map_err(|problems| {
        let lines: Vec<String> = problems.into_iter().map(|problem| problem.text).collect();
        Failure::Other(lines.join("\n"))
    })
}

/// A range of slots as nodes write it.
fn range(text: &str) -> std::ops::RangeInclusive<u16> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let slot = |text: &str| text.parse::<u16>().unwrap_or(0).min(SLOTS - 1);
    slot(first)..=slot(last)
}

/// What would move, as text.
fn plan(map: &Map, names: &[&str]) -> String {
    let moves = map.moves_to_even_shares();
    let mut text = format!(
        "Cluster {}, epoch {}: {} nodes\n",
        map.name,
        map.epoch,
        map.nodes.len()
    );
    let width = names.iter().map(|name| name.chars().count()).max();
    let width = width.unwrap_or(0).max(4);
    let _ = writeln!(text, "{:<width$}  {:>6}  {:>6}", "node", "slots", "then");
    for (at, node) in map.nodes.iter().enumerate() {
        let now: usize = node.slots.iter().map(|range| range.len()).sum();
        let count = |is_it: &dyn Fn(&Move) -> bool| -> usize {
            let its = moves.iter().filter(|one| is_it(one));
            its.map(|one| one.slots.len()).sum()
        };
        let then = now + count(&|one| one.to == at) - count(&|one| one.from == Some(at));
        let _ = writeln!(text, "{:<width$}  {now:>6}  {then:>6}", names[at]);
    }
    let total: usize = moves.iter().map(|one| one.slots.len()).sum();
    if total == 0 {
        text.push_str("The shares are even: nothing would move.\n");
        return text;
    }
    let _ = writeln!(text, "{total} slots would move:");
    for one in &moves {
        let from = one.from.map_or("no node", |from| names[from]);
        let to = names[one.to];
        let _ = writeln!(
            text,
            "{}  {from} -> {to}",
            ranges_text(std::slice::from_ref(&one.slots))
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(slots: [&str; 2]) -> String {
        let mut text = String::from("name = \"shop\"\nepoch = 3\n");
        for (id, slots) in ["a", "long-name"].iter().zip(slots) {
            text += &format!(
                "[[nodes]]\nid = \"{id}\"\nhost = \"{id}\"\nport = 1\nslots = {slots:?}\n"
            );
        }
        plan(
            &Map::parse(&text).expect("it is right"),
            &["a", "long-name"],
        )
    }

    #[test]
    fn the_plan_is_for_people() {
        let expected = "\
Cluster shop, epoch 3: 2 nodes
node        slots    then
a            8200    8192
long-name    8181    8192
11 slots would move:
8192-8199  a -> long-name
9000-9002  no node -> long-name
";
        assert_eq!(text_of(["0-8199", "8200-8999 9003-16383"]), expected);
    }

    #[test]
    fn even_shares_stay() {
        let text = text_of(["0-8191", "8192-16383"]);
        assert!(
            text.ends_with("The shares are even: nothing would move.\n"),
            "{text}"
        );
    }
}
