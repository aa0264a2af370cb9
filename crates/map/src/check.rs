//! What has to hold for all nodes of a map together.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use resp::slot::SLOTS;

use crate::draft::{Draft, DraftNode, Problem};
use crate::model::{ID_DIGITS, Map, Node, no_owners};

/// The most nodes, one for each slot.
const MAX_NODES: usize = SLOTS as usize;

/// The most characters of a name or a host.
const MAX_NAME: usize = 255;

/// Mistakes after which no more slots are looked at: every one of them costs as much as a map that is right.
const MOST_PROBLEMS: usize = 1000;

impl Draft {
    /// The map that this is.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn check(self) -> Result<Map, Vec<Problem>> {
        self.check_after(Vec::new())
    }

    /// The same, with what was found wrong before.
    pub(crate) fn check_after(self, mut problems: Vec<Problem>) -> Result<Map, Vec<Problem>> {
        let map = checked(self, &mut problems);
        problems.sort();
        problems.dedup();
        if problems.is_empty() {
            Ok(map)
        } else {
            Err(problems)
        }
    }
}

/// Makes a map of a draft. If there are problems afterwards the map is to be thrown away.
fn checked(draft: Draft, problems: &mut Vec<Problem>) -> Map {
    let mut map = Map {
        name: draft.name,
        epoch: draft.epoch,
        nodes: Vec::new(),
        owners: no_owners(),
    };
    if !map.name.is_empty() && (map.name.len() > MAX_NAME || map.name.chars().any(char::is_control))
    {
        let text = format!("'name' takes up to {MAX_NAME} characters that can be printed");
        problems.push(Problem { line: 1, text });
    }
    if draft.nodes.len() > MAX_NODES {
        let (line, text) = (
            draft.nodes[MAX_NODES].line,
            format!("there are more than {MAX_NODES} nodes"),
        );
        problems.push(Problem { line, text });
        return map;
    }
    let mut lines = vec![0; usize::from(SLOTS)];
    for (at, node) in draft.nodes.iter().enumerate() {
        check_words(node, problems);
        take_slots(&mut map, &mut lines, (at, node), problems);
    }
    check_unique(&map.name, &draft.nodes, problems);
    map.nodes = draft
        .nodes
        .into_iter()
        .map(|node| finished(&map.name, node))
        .collect();
    let ranges: Vec<_> = map.ranges().collect();
    for (range, owner) in ranges {
        if let Some(owner) = owner {
            map.nodes[owner].slots.push(range);
        }
    }
    map
}

fn finished(cluster: &str, node: DraftNode) -> Node {
    Node {
        id: digits(cluster, &node.id),
        name: node.id,
        host: node.host,
        port: node.port,
        hostname: node.hostname,
        slots: Vec::new(),
    }
}

/// The forty digits of an id: itself, or those that a short one stands for.
fn digits(cluster: &str, id: &str) -> String {
    if is_forty_digits(id) {
        return id.to_ascii_lowercase();
    }
    sha1_smol::Sha1::from(format!("{cluster}/{id}"))
        .digest()
        .to_string()
}

fn is_forty_digits(id: &str) -> bool {
    id.len() == ID_DIGITS && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether a text can be part of an address, in the lines that clients take apart.
fn is_word(text: &str, more: &[u8]) -> bool {
    let may_be =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte) || more.contains(&byte);
    text.len() <= MAX_NAME && text.bytes().all(may_be)
}

fn check_words(node: &DraftNode, problems: &mut Vec<Problem>) {
    let mut tell = |line, text| problems.push(Problem { line, text });
    if !is_forty_digits(&node.id) && (node.id.len() >= ID_DIGITS || !is_word(&node.id, b"")) {
        let text = format!(
            "'id' takes {ID_DIGITS} hexadecimal digits, or a shorter name of letters, digits and -._"
        );
        tell(node.id_line, text);
    }
    if !is_word(&node.host, b":") {
        tell(
            node.host_line,
            "'host' takes an address or the name of a host".to_owned(),
        );
    }
    if !is_word(&node.hostname, b"") {
        tell(node.line, "'hostname' takes the name of a host".to_owned());
    }
}

/// Gives the slots of a node to it, unless another has them.
fn take_slots(
    map: &mut Map,
    lines: &mut [usize],
    (at, node): (usize, &DraftNode),
    problems: &mut Vec<Problem>,
) {
    for (range, line) in &node.slots {
        if problems.len() >= MOST_PROBLEMS {
            return;
        }
        let taken: Vec<u16> = range
            .clone()
            .filter(|&slot| map.owners[usize::from(slot)] != 0)
            .collect();
        if let (Some(&first), Some(&last)) = (taken.first(), taken.last()) {
            let text = format!(
                "{} given twice, also in line {}",
                slots_text(&(first..=last)),
                lines[usize::from(first)]
            );
            problems.push(Problem { line: *line, text });
            continue;
        }
        for slot in range.clone().map(usize::from) {
            (map.owners[slot], lines[slot]) = (at as u16 + 1, *line);
        }
    }
}

/// `slot 5 is`, `slots 5-9 are`.
fn slots_text(range: &RangeInclusive<u16>) -> String {
    match (range.start(), range.end()) {
        (first, last) if first == last => format!("slot {first} is"),
        (first, last) => format!("slots {first}-{last} are"),
    }
}

fn check_unique(cluster: &str, nodes: &[DraftNode], problems: &mut Vec<Problem>) {
    let mut ids: HashMap<String, usize> = HashMap::new();
    let mut addresses: HashMap<(String, u16), usize> = HashMap::new();
    for node in nodes {
        let address = (node.host.to_ascii_lowercase(), node.port);
        if let Some(earlier) = ids.insert(digits(cluster, &node.id), node.id_line) {
            let text = format!("the id {} has another node too, in line {earlier}", node.id);
            problems.push(Problem {
                line: node.id_line,
                text,
            });
        }
        if let Some(earlier) = addresses.insert(address, node.host_line) {
            let (host, port) = (&node.host, node.port);
            let text = format!("the address {host}:{port} has another node too, in line {earlier}");
            problems.push(Problem {
                line: node.host_line,
                text,
            });
        }
    }
}
