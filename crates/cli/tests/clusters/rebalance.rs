//! `cluster rebalance`.

use std::fs;

use super::cluster;
use crate::support::fresh_directory;

const MAP: &str = "name = \"shop\"\nepoch = 4\n\n[[nodes]]\nid = \"a\"\nhost = \"h\"\nport = 1\n\
    slots = \"0-16383\"\n\n\
    [[nodes]]\nid = \"b\"\nhost = \"h\"\nport = 2\nslots = []\n";

#[test]
fn a_plan_names_the_slots_that_would_move() {
    let directory = fresh_directory("rebalance");
    let (map, path) = (directory.join("map.toml"), directory.display().to_string());
    fs::write(&map, MAP).expect("it is ours");
    let (text, told, code) = cluster(&["rebalance", &path, "--plan"]);
    assert_eq!((told.as_str(), code), ("", 0));
    assert_eq!(text.lines().last(), Some("8192-16383  a -> b"), "{text}");
    // The map itself will do.
    let of_map = cluster(&["rebalance", &map.display().to_string(), "--plan"]);
    assert_eq!(of_map, (text, told, code));
    let (text, told, code) = cluster(&["rebalance", &path]);
    assert_eq!((text.as_str(), code), ("", 1));
    assert!(told.contains("slots cannot be moved yet"), "{told}");

    fs::write(&map, MAP.replace("epoch = 4", "epoch = 0\ncolour = 1")).expect("it is ours");
    let (text, told, code) = cluster(&["rebalance", &path, "--plan"]);
    assert_eq!((text.as_str(), code), ("", 1));
    assert_eq!(told.lines().count(), 2, "{told}");
    for (line, beginning) in told.lines().zip([":2: 'epoch'", ":3: unknown name"]) {
        assert!(
            line.starts_with(&format!("{}{beginning}", map.display())),
            "{told}"
        );
    }
    fs::remove_file(&map).expect("it is ours");
    let (text, told, code) = cluster(&["rebalance", &path, "--plan"]);
    assert_eq!((text.as_str(), code), ("", 1));
    assert!(told.contains("it has no map.toml"), "{told}");
    fs::remove_dir_all(&directory).expect("it is ours");
}
