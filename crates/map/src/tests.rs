//! Maps that are right, every mistake with its line, and texts that are no maps.

use super::*;

const THREE: &str = r#"# A comment.
name = "shop"
epoch = 7

[[nodes]]
id = "a"
host = "10.0.0.1"
port = 6379
slots = ["0-5460", 16383]

[[nodes]]
id = "07c37dfeb235213a872192d90877d0cd55635b91"
host = "10.0.0.2"
port = 6379
hostname = "two.example"
slots = "5461-10922"

[[nodes]]
id = "c"
host = "::1"
port = 7000
slots = ["10923-16000", "16001-16382"]
"#;

/// The text of three nodes that is right.
fn three() -> String {
    THREE.to_owned()
}

/// A map of up to nine nodes, with slots in pieces and some that no node has.
pub(crate) fn any_map(random: &mut fastrand::Rng) -> Map {
    let names = ["shop", "a \"b\" \\ c", "Größe", "x/y", "'"];
    let nodes = random.usize(1..10);
    let node = |number: usize| DraftNode {
        id: match number % 3 {
            0 => format!("{number:040x}"),
            1 => format!("node-{number}"),
            _ => format!("{number}"),
        },
        host: ["10.0.0.1", "::1", "one.example"][number % 3].to_owned(),
        port: 7000 + number as u16,
        hostname: ["", "two.example"][number % 2].to_owned(),
        ..DraftNode::default()
    };
    let mut draft = Draft {
        name: names[random.usize(..names.len())].to_owned(),
        epoch: random.u64(1..=i64::MAX as u64),
        nodes: (0..nodes).map(node).collect(),
    };
    let mut slot = 0;
    while slot < SLOTS {
        let last = (slot + random.u16(..2000)).min(SLOTS - 1);
        if random.u8(..8) > 0 {
            let owner = random.usize(..nodes);
            draft.nodes[owner].slots.push((slot..=last, 0));
        }
        slot = last + 1;
    }
    draft.check().expect("nothing is given twice")
}

/// What is said about a text, a line each.
fn said(text: &str) -> Vec<String> {
    let problems = Map::parse(text).err().unwrap_or_default();
    problems.iter().map(Problem::to_string).collect()
}

#[test]
fn a_map_says_who_has_which_slots() {
    let map = Map::parse(&three()).expect("it is right");
    assert_eq!(
        (map.name.as_str(), map.epoch, map.nodes.len()),
        ("shop", 7, 3)
    );
    for (slot, owner) in [
        (0, 0),
        (5460, 0),
        (5461, 1),
        (10922, 1),
        (10923, 2),
        (16382, 2),
        (16383, 0),
    ] {
        assert_eq!(map.owner(slot), Some(owner), "{slot}");
    }
    assert_eq!((map.gaps(), map.assigned()), (vec![], 16384));
    assert_eq!(ranges_text(&map.nodes[0].slots), "0-5460 16383");
    assert_eq!(ranges_text(&map.nodes[2].slots), "10923-16382");
    assert_eq!(map.nodes[1].id, "07c37dfeb235213a872192d90877d0cd55635b91");
    assert_eq!(map.nodes[1].hostname, "two.example");
    let short = &map.nodes[0].id;
    assert_eq!(short, &sha1_smol::Sha1::from("shop/a").digest().to_string());
    assert_eq!(
        (map.find("a"), map.find(&short.to_uppercase())),
        (Some(0), Some(0))
    );
    assert_eq!(map.find("b"), None);
}

#[test]
fn slots_that_nobody_has_are_named() {
    let map = Map::parse(&three().replace("0-5460", "1-10 12-5459")).expect("a gap is no mistake");
    assert_eq!(ranges_text(&map.gaps()), "0 11 5460");
    assert_eq!(
        (map.owner(0), map.owner(11), map.owner(12)),
        (None, None, Some(0))
    );
    let map = Map::parse(&three().replace("[\"0-5460\", 16383]", "[]")).expect("none is allowed");
    assert_eq!(
        (map.assigned(), map.nodes[0].slots.len()),
        (16384 - 5462, 0)
    );
}

/// What stands in the map, what stands there instead, and what is told.
const MISTAKES: &[(&str, &str, &str)] = &[
    (
        "name = \"shop\"\n",
        "\n",
        "1: 'name' is missing: what the cluster is called",
    ),
    ("\"shop\"", "7", "2: 'name' takes a text in quotes"),
    ("\"shop\"", "\"\"", "2: 'name' is empty"),
    (
        "epoch = 7",
        "",
        "1: 'epoch' is missing: a number that grows with each change of the map",
    ),
    (
        "epoch = 7",
        "epoch = 0",
        "3: 'epoch' takes a number from 1 to 9223372036854775807",
    ),
    (
        "epoch = 7",
        "epoch = \"7\"",
        "3: 'epoch' takes a number from 1 to 9223372036854775807",
    ),
    (
        "epoch = 7",
        "epoch = 7\nepoc = 8",
        "4: unknown name 'epoc'; did you mean 'epoch'?",
    ),
    (
        "epoch = 7",
        "epoch = 7\ncolour = 8",
        "4: unknown name 'colour'; a map has name, epoch, nodes",
    ),
    ("id = \"a\"\n", "", "5: a node without 'id'"),
    ("port = 7000\n", "", "18: a node without 'port'"),
    ("host = \"10.0.0.2\"\n", "", "11: a node without 'host'"),
    (
        "slots = \"5461-10922\"\n",
        "",
        "11: a node without 'slots' (slots = [] for none)",
    ),
    (
        "port = 7000",
        "prot = 7000\nport = 7000",
        "21: unknown name 'prot'; did you mean 'port'?",
    ),
    (
        "port = 7000",
        "port = 70000",
        "21: 'port' takes a number from 1 to 65535",
    ),
    (
        "port = 7000",
        "port = 0",
        "21: 'port' takes a number from 1 to 65535",
    ),
    (
        "\"::1\"",
        "\"a b\"",
        "20: 'host' takes an address or the name of a host",
    ),
    (
        "\"a\"",
        "\"a,b\"",
        "6: 'id' takes 40 hexadecimal digits, or a shorter name of letters, digits and -._",
    ),
    (
        "\"c\"",
        "\"a\"",
        "19: the id a has another node too, in line 6",
    ),
    (
        "10.0.0.2",
        "10.0.0.1",
        "13: the address 10.0.0.1:6379 has another node too, in line 7",
    ),
    (
        "5461-10922",
        "5460-10922",
        "16: slot 5460 is given twice, also in line 9",
    ),
    (
        "5461-10922",
        "5461-10930",
        "22: slots 10923-10930 are given twice, also in line 16",
    ),
];

#[test]
fn every_mistake_is_told_with_its_line() {
    for (right, wrong, expected) in MISTAKES {
        let text = three().replacen(right, wrong, 1);
        assert_ne!(text, three(), "{right}");
        assert_eq!(said(&text), [*expected], "{wrong}");
    }
    let range = "16: 'slots' takes ranges of slots from 0 to 16383, for example [\"0-5460\", 7000]";
    for wrong in [
        "5461-16384",
        "5461-",
        "-5",
        "5-4",
        "a",
        "5461 - 10922",
        "+5",
        "5461--10922",
    ] {
        assert_eq!(
            said(&three().replace("5461-10922", wrong)),
            [range],
            "{wrong}"
        );
    }
    for wrong in ["16384", "-1"] {
        let text = three().replace("16383", wrong);
        assert_eq!(
            said(&text),
            ["9: 'slots' takes a number from 0 to 16383"],
            "{wrong}"
        );
    }
}

#[test]
fn broken_toml_is_told_with_its_line() {
    for (right, wrong, line) in [
        ("\"shop\"", "\"shop", 2),
        ("port = 7000", "port 7000", 21),
        ("epoch = 7", "epoch = 7\nepoch = 8", 4),
        ("[[nodes]]\nid = \"c\"", "[[nodes]\nid = \"c\"", 18),
    ] {
        let said = said(&three().replacen(right, wrong, 1));
        let is_right = said
            .iter()
            .any(|text| text.starts_with(&format!("{line}: ")));
        assert!(is_right, "{wrong}: {said:?}");
    }
    assert_eq!(said("").len(), 3);
    assert_eq!(
        said("name = \"x\"\nepoch = 1\nnodes = 5"),
        ["3: each node is a table '[[nodes]]' of its own"]
    );
}

#[test]
fn several_mistakes_are_told_in_the_order_of_their_lines() {
    let text = three()
        .replace("5461-10922", "x")
        .replace("epoch = 7", "epoch = -7");
    let lines: Vec<String> = said(&text)
        .iter()
        .map(|text| text.split(':').next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(lines, ["3", "16"]);
}

#[test]
fn texts_that_were_damaged_are_maps_or_have_mistakes() {
    let mut random = fastrand::Rng::with_seed(5);
    let whole = three().into_bytes();
    let (mut maps, mut refused) = (0, 0);
    for _ in 0..3000 {
        let mut text = whole.clone();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..text.len());
            match random.u8(..4) {
                0 => text[at] = random.u8(..),
                1 if text.len() > 9 => drop(text.remove(at)),
                2 => text.insert(at, b"\"[]-=\n0{}#x"[random.usize(..11)]),
                _ => text.truncate(at.max(9)),
            }
        }
        match Map::parse(&String::from_utf8_lossy(&text)) {
            Ok(map) => {
                maps += 1;
                let own: usize = map
                    .nodes
                    .iter()
                    .flat_map(|node| &node.slots)
                    .map(|range| range.len())
                    .sum();
                assert_eq!(own, map.assigned());
            }
            Err(problems) => {
                refused += 1;
                let lines = text.iter().filter(|&&byte| byte == b'\n').count() + 1;
                assert!(
                    problems.iter().all(|one| (1..=lines).contains(&one.line)),
                    "{problems:?}"
                );
                assert!(!problems.is_empty());
            }
        }
    }
    assert!(maps > 100 && refused > 100, "{maps} {refused}");
    for _ in 0..500 {
        let noise: Vec<u8> = (0..random.usize(..300)).map(|_| random.u8(..)).collect();
        assert!(Map::parse(&String::from_utf8_lossy(&noise)).is_err());
    }
}

#[test]
fn a_text_of_very_many_values_is_read_to_its_end() {
    let head =
        "name = \"x\"\nepoch = 1\n[[nodes]]\nid = \"a\"\nhost = \"h\"\nport = 1\nslots = [\n";
    // Each slot in a line of its own is right.
    let all: String = (0..SLOTS).map(|slot| format!("{slot},\n")).collect();
    let map = Map::parse(&format!("{head}{all}]\n")).expect("it is right");
    assert_eq!(map.nodes[0].slots, [0..=SLOTS - 1]);
    // A mistake is found in its line, wherever that is.
    let problems = Map::parse(&format!("{head}{all}16384]\n")).expect_err("it is wrong");
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].line, 8 + usize::from(SLOTS));
    // Nobody reads a million mistakes.
    let same = "\"0-16383\",\n".repeat(300_000);
    let problems = Map::parse(&format!("{head}{same}]\n")).expect_err("it is wrong");
    assert!((1000..2000).contains(&problems.len()));
    assert_eq!(problems[0].line, 9);
    assert!(problems[0].text.ends_with("also in line 8"));
}
