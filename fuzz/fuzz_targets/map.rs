//! No text makes the reader of a cluster's map panic, each mistake is in a line of the text, and what is accepted is whole: no slot
//! twice, and the same map again when it is written and read.

#![no_main]

use libfuzzer_sys::fuzz_target;
use map::{Map, SLOTS};

/// What a map says of its slots in its several ways is one thing.
fn check(map: &Map) {
    let mut owners = vec![None; usize::from(SLOTS)];
    for (at, node) in map.nodes.iter().enumerate() {
        assert_eq!(map.find(&node.id), Some(at));
        assert_eq!(map.find(&node.name), Some(at));
        let mut end = None;
        for range in &node.slots {
            // In order, and no two of them touch.
            assert!(end.is_none_or(|end: u16| end + 1 < *range.start()));
            end = Some(*range.end());
            for slot in range.clone() {
                assert_eq!(owners[usize::from(slot)].replace(at), None);
            }
        }
    }
    for (slot, owner) in (0..SLOTS).zip(&owners) {
        assert_eq!(map.owner(slot), *owner);
    }
    let assigned = owners.iter().flatten().count();
    assert_eq!(map.assigned(), assigned);
    let gaps: usize = map.gaps().iter().map(|range| range.len()).sum();
    assert_eq!(gaps + assigned, usize::from(SLOTS));
}

fn read(text: &str) {
    let map = match Map::parse(text) {
        Ok(map) => map,
        Err(problems) => {
            let lines = text.split('\n').count();
            assert!(!problems.is_empty());
            for problem in problems {
                assert!((1..=lines).contains(&problem.line), "{problem}");
                // One line of the messages.
                assert!(!problem.text.contains('\n'), "{problem}");
            }
            return;
        }
    };
    check(&map);
    assert_eq!(Map::parse(&map.to_text()), Ok(map));
}

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    read(text);
    // Few inputs are a map by themselves: as the end of one, as the slots of nodes, as a name and as the words of a node.
    let head = "name = \"x\"\nepoch = 1\n";
    let one = "[[nodes]]\nid = \"a\"\nhost = \"h\"\nport = 1\nslots = ";
    let other = "[[nodes]]\nid = \"b\"\nhost = \"h\"\nport = 2\nslots = ";
    read(&format!("{head}{one}0\n{text}"));
    read(&format!("{head}{one}\"{text}\"\n{other}[]\n"));
    read(&format!("{head}{one}[{text}]\n{other}\"7 10-20\"\n"));
    read(&format!("name = '''{text}'''\nepoch = 1\n{one}\"0-16383\"\n"));
    read(&format!(
        "{head}[[nodes]]\nid = '{text}'\nhost = '{text}'\nhostname = '{text}'\nport = 1\nslots = []\n"
    ));
});
