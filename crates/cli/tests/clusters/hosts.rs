//! Subcommands with a file of hosts, as `cluster deploy` takes it: all that is known of the cluster is what
//! its nodes say.

use std::fs;

use super::{Local, cluster};

/// A line for each node.
fn file(local: &Local, name: &str, nodes: std::ops::Range<u16>) -> String {
    let lines: String = nodes
        .map(|node| format!("ann@127.0.0.1 {}\n", local.first + node))
        .collect();
    let path = local.home.join(name);
    fs::write(&path, format!("# Nodes.\n{lines}")).expect("it is ours");
    path.display().to_string()
}

#[test]
fn a_file_of_hosts_names_the_nodes() {
    let local = Local::start(3, &[]);
    let nodes = file(&local, "nodes.txt", 0..3);
    let (text, told, code) = cluster(&["status", &nodes]);
    assert_eq!((told.as_str(), code), ("", 0), "{text}");
    let last = format!(
        "All 3 nodes of local-{} are up and agree on the map.",
        local.first
    );
    assert_eq!(text.lines().last(), Some(last.as_str()));
    assert!(
        text.contains(&format!("\n127.0.0.1:{}  ", local.first + 2)),
        "{text}"
    );

    let (text, told, code) = cluster(&["bench", &nodes, "300", "3", "-q"]);
    assert_eq!((told.as_str(), code), ("", 0), "{text}");
    let (text, told, code) = cluster(&["rebalance", &nodes, "--plan"]);
    assert_eq!((told.as_str(), code), ("", 0), "{text}");
    assert!(
        text.ends_with("The shares are even: nothing would move.\n"),
        "{text}"
    );
    let two = file(&local, "two.txt", 0..2);
    let (_, told, code) = cluster(&["rebalance", &two, "--plan"]);
    let expected = "the file names 2 of the 3 nodes of the cluster\n";
    assert_eq!((told.as_str(), code), (expected, 1));

    // One gets a map of its own.
    let map = fs::read_to_string(local.map()).expect("it is there");
    fs::write(local.map(), map.replace("epoch = 1", "epoch = 3")).expect("it is ours");
    assert_eq!(local.ask(1, &["CLUSTER", "RELOAD"]), "OK");
    let (one, other) = (local.first, local.first + 1);
    let disagrees =
        format!("127.0.0.1:{other} has another map: its epoch is 3, that of 127.0.0.1:{one} is 1.");
    let (text, _, code) = cluster(&["status", &nodes]);
    assert_eq!((text.lines().last(), code), (Some(disagrees.as_str()), 1));
    let (_, told, code) = cluster(&["rebalance", &nodes, "--plan"]);
    assert_eq!((told.trim_end(), code), (disagrees.as_str(), 1));

    let (text, told, code) = cluster(&["stop", &nodes, "--save"]);
    assert_eq!((told.as_str(), code), ("", 0), "{text}");
    assert!(text.lines().all(|line| line.ends_with("  ended")), "{text}");
    assert!((0..3).all(|node| local.node(node).join("dump.rdb").exists()));
    let (text, _, code) = cluster(&["stop", &nodes]);
    assert_eq!(code, 0);
    assert!(
        text.lines().all(|line| line.ends_with("  did not run")),
        "{text}"
    );
    assert_eq!(cluster(&["status", &nodes]).2, 1);
}

#[test]
fn a_line_without_a_port_has_the_usual_one_and_a_typo_is_named() {
    let local = Local::start(1, &[]);
    let path = local.home.join("nodes.txt");
    fs::write(&path, "127.0.0.1\n").expect("it is ours");
    let (nodes, port) = (path.display().to_string(), local.first.to_string());
    let (text, told, code) = cluster(&["status", &nodes, "--port", &port]);
    assert_eq!((told.as_str(), code), ("", 0), "{text}");
    fs::write(&path, "127.0.0.1\nann@@host\n").expect("it is ours");
    let (text, told, code) = cluster(&["status", &nodes]);
    assert_eq!((text.as_str(), code), ("", 1));
    assert!(told.contains(&format!("{nodes}:2: ")), "{told}");
}
