//! `cluster status`.

use std::fs;

use super::{Local, client, cluster, eventually};
use crate::support;
use crate::terminal::tmux::Terminal;

#[test]
fn all_are_up_and_agree() {
    let local = Local::start(3, &[]);
    let port = local.first.to_string();
    for key in ["foo", "bar", "baz", "x"] {
        client(&["-c", "-p", &port, "SET", key, key]);
    }
    let (text, told, code) = cluster(&["status", local.path()]);
    assert_eq!((told.as_str(), code), ("", 0), "{text}");
    let lines: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        lines[0],
        [
            "id", "address", "state", "slots", "keys", "memory", "ops/s", "version", "epoch"
        ]
    );
    let mut keys = 0;
    for (node, line) in lines[1..4].iter().enumerate() {
        assert_eq!(line[0], local.name(node as u16));
        assert_eq!((line[2], line[8]), ("up", "1"));
        assert_eq!(line[7], env!("CARGO_PKG_VERSION"));
        keys += line[4].parse::<u64>().expect("a number");
    }
    assert_eq!(keys, 4);
    let last = format!("All 3 nodes of local-{port} are up and agree on the map.");
    assert_eq!(text.lines().last(), Some(last.as_str()));

    // The map alone will do; so will the program's own flag for JSON.
    let map = local.map();
    let (text, told, code) = client(&["--json", "cluster", "status", map.to_str().expect("text")]);
    assert_eq!((told.as_str(), code), ("", 0));
    let beginning =
        format!("{{\"name\":\"local-{port}\",\"epoch\":1,\"up\":3,\"agree\":true,\"problems\":[],");
    assert!(text.starts_with(&beginning), "{text}");
    assert_eq!(text.lines().count(), 1);
    assert!(
        text.contains("\"slots\":[\"0-5460\"],\"slot_count\":5461,"),
        "{text}"
    );

    // In a pipe, look after look.
    let watch = [
        "-r",
        "2",
        "-i",
        "0.01",
        "cluster",
        "status",
        local.path(),
        "--watch",
    ];
    let (text, told, code) = client(&watch);
    assert_eq!((told.as_str(), code), ("", 0));
    assert_eq!(
        text.lines().filter(|line| *line == last).count(),
        2,
        "{text}"
    );
    assert!(!text.contains('\x1b'), "{text}");
}

#[test]
fn a_terminal_shows_one_table_that_changes() {
    let local = Local::start(2, &[]);
    let watch = format!("-i 0.1 -t 60 cluster status {} --watch", local.path());
    let terminal = Terminal::start(&watch);
    let port = local.first;
    let last = format!("All 2 nodes of local-{port} are up and agree on the map.");
    terminal.wait_for_line(&last);
    local.end(1);
    let down = format!("{} is down: connection refused.", local.name(1));
    terminal.wait_for_line(&down);
    let screen = terminal.screen();
    assert!(screen.starts_with("id "), "{screen}");
    assert!(!screen.contains(&last), "{screen}");
    assert_eq!(local.call(&[]).2, 0);
    terminal.wait_for_line(&last);
    terminal.press(&["C-c"]);
    terminal.wait_for("ended with 0");
}

#[test]
fn who_is_down_or_disagrees_is_named() {
    let local = Local::start(3, &[]);
    let old = fs::read_to_string(local.map()).expect("it is there");
    // One node gets a new map, in which others have the slots.
    let new = old
        .replace("epoch = 1", "epoch = 2")
        .replace("0-5460", "10923-16383");
    let new = new.replacen("slots = \"10923-16383\"", "slots = \"0-5460\"", 2);
    let new = new.replacen("slots = \"0-5460\"", "slots = \"10923-16383\"", 1);
    fs::write(local.map(), new).expect("it is ours");
    assert_eq!(local.ask(1, &["CLUSTER", "RELOAD"]), "OK");
    local.end(2);
    let names: Vec<String> = (0..3).map(|node| local.name(node)).collect();
    let (text, told, code) = cluster(&["status", local.path()]);
    assert_eq!((told.as_str(), code), ("", 1));
    let said: Vec<&str> = text.lines().skip(4).collect();
    let other = format!(
        "{} has another map: its epoch is 1, that of the file is 2.",
        names[0]
    );
    let down = format!("{} is down: connection refused.", names[2]);
    assert_eq!(said, [other, down.clone()], "{text}");

    // With the epoch of the file, but other slots.
    fs::write(local.map(), old.replace("epoch = 1", "epoch = 2")).expect("it is ours");
    let (text, _, code) = cluster(&["status", local.path(), "--json"]);
    assert_eq!(code, 1);
    let expected = format!(
        "\"up\":2,\"agree\":false,\"problems\":[\"{} has another map: its epoch is 1, that of the file is \
         2.\",\"{} has another map: its epoch is that of the file, 2, but its slots are others.\",\
         \"{down}\"]",
        names[0], names[1]
    );
    assert!(text.contains(&expected), "{text}");

    // Another node at the port of one of these.
    let others = old.replace(&names[0], "elsewhere");
    fs::write(local.map(), others).expect("it is ours");
    let (text, _, code) = cluster(&["status", local.path()]);
    assert_eq!(code, 1);
    assert!(
        text.contains("elsewhere is another node: at 127.0.0.1:"),
        "{text}"
    );
    fs::write(local.map(), old).expect("it is ours");
}

#[test]
fn nodes_of_redis_are_seen_as_well() {
    let nodes = support::cluster::Cluster::start(support::Kind::Redis);
    let home = support::fresh_directory("redis");
    let (file, lines) = (home.join("nodes"), nodes.nodes.iter());
    let lines: String = lines
        .map(|node| format!("127.0.0.1 {}\n", node.port))
        .collect();
    fs::write(&file, lines).expect("it is ours");
    let path = file.to_str().expect("it is text");
    // They tell each other of the map, which takes a while.
    let last = "All 3 nodes are up and agree on the map.";
    eventually("all agree", || {
        cluster(&["status", path]).0.lines().last() == Some(last)
    });
    let (text, told, code) = cluster(&["rebalance", path, "--plan"]);
    assert_eq!((told.as_str(), code), ("", 0), "{text}");
    assert!(
        text.ends_with("The shares are even: nothing would move.\n"),
        "{text}"
    );
    fs::remove_dir_all(&home).expect("it is ours");
}
