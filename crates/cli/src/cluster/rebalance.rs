//! `cluster rebalance`: which slots would move for even shares. Nothing is moved.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use map::{Map, Move, ranges_text};

use super::Given;
use super::fleet::Fleet;
use super::table::{Flag, Rest, Subcommand};
use crate::failure::Result;
use crate::flags::Options;

pub(super) const SUBCOMMAND: Subcommand = Subcommand {
    name: "rebalance",
    words: &["NODES|DIR"],
    summary: "Says which slots would move so that all nodes have as many, with the fewest moves.",
    flags: &[Flag {
        long: "plan",
        value: "",
        summary: "Nothing is moved. Required, as slots cannot be moved yet.",
    }],
    rest: Rest::Nothing,
    run,
};

fn run(given: &Given, _: &Options) -> Result {
    if !given.has("plan") {
        return Err(given.wrong("slots cannot be moved yet; --plan says which would move"));
    }
    let fleet = Fleet::open(given.path(0))?;
    Ok(io::stdout().write_all(plan(&fleet.map).as_bytes())?)
}

/// What would move, as text.
fn plan(map: &Map) -> String {
    let moves = map.moves_to_even_shares();
    let mut text = format!(
        "Cluster {}, epoch {}: {} nodes\n",
        map.name,
        map.epoch,
        map.nodes.len()
    );
    let width = map.nodes.iter().map(|node| node.name.chars().count()).max();
    let width = width.unwrap_or(0).max(4);
    let _ = writeln!(text, "{:<width$}  {:>6}  {:>6}", "node", "slots", "then");
    for (at, node) in map.nodes.iter().enumerate() {
        let now: usize = node.slots.iter().map(|range| range.len()).sum();
        let count = |is_it: &dyn Fn(&Move) -> bool| -> usize {
            let its = moves.iter().filter(|one| is_it(one));
            its.map(|one| one.slots.len()).sum()
        };
        let then = now + count(&|one| one.to == at) - count(&|one| one.from == Some(at));
        let _ = writeln!(text, "{:<width$}  {now:>6}  {then:>6}", node.name);
    }
    let total: usize = moves.iter().map(|one| one.slots.len()).sum();
    if total == 0 {
        text.push_str("The shares are even: nothing would move.\n");
        return text;
    }
    let _ = writeln!(text, "{total} slots would move:");
    for one in &moves {
        let from = one.from.map_or("no node", |from| &map.nodes[from].name);
        let to = &map.nodes[one.to].name;
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
        plan(&Map::parse(&text).expect("it is right"))
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
