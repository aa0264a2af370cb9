//! `-c` in a cluster of redis-server and in one of Ferrite, beside redis-cli.

mod import;

use crate::support;

use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};

use resp::slot::slot;
use support::cluster::Cluster;
use support::{Kind, Server, fresh_directory};

const KINDS: [Kind; 2] = [Kind::Redis, Kind::Ferrite];

/// Standard output, standard error and exit code of a program.
fn outcome(program: &str, node: &Server, arguments: &[&str], input: &str) -> (String, String, i32) {
    let home = fresh_directory("home");
    let mut child = Command::new(program)
        .args(["-p", &node.port.to_string()])
        .args(arguments)
        .env("HOME", &home)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut stdin = child.stdin.take().expect("it is piped");
    // A program that needs no input may have ended.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().expect("it is ours");
    std::fs::remove_dir_all(home).expect("it is ours");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().expect("no signal ended it");
    (text(&output.stdout), text(&output.stderr), code)
}

fn ours(node: &Server, arguments: &[&str], input: &str) -> (String, String, i32) {
    outcome(env!("CARGO_BIN_EXE_ferrite-cli"), node, arguments, input)
}

fn theirs(node: &Server, arguments: &[&str], input: &str) -> (String, String, i32) {
    outcome("redis-cli", node, arguments, input)
}

#[test]
fn requests_find_their_node_as_with_redis_cli() {
    for kind in KINDS {
        requests_find_their_node_as_with_redis_cli_in(kind);
    }
}

fn requests_find_their_node_as_with_redis_cli_in(kind: Kind) {
    let cluster = Cluster::start(kind);
    for command in [
        "SET foo 1",
        "GET foo",
        "INCR foo",
        "SET bar 2",
        "GET {foo}.x",
        "MSET {a}1 x {a}2 y",
        "MGET {a}1 {a}2 {a}3",
        "MGET foo bar",
        "PING",
        "DEL foo",
        "GET foo",
    ] {
        let mut arguments = vec!["-c"];
        arguments.extend(command.split(' '));
        for node in &cluster.nodes {
            // Each begins from the same value.
            let owner = cluster.owner(slot(b"foo"));
            assert_eq!(owner.tell("SET foo 5"), "+OK\r\n");
            let expected = theirs(node, &arguments, "");
            assert_eq!(owner.tell("SET foo 5"), "+OK\r\n");
            assert_eq!(ours(node, &arguments, ""), expected, "{command}");
        }
    }
    // Without the flag the error is the answer.
    let elsewhere = &cluster.nodes[0];
    assert_ne!(cluster.owner(slot(b"foo")).port, elsewhere.port);
    let (text, ..) = ours(elsewhere, &["GET", "foo"], "");
    assert!(text.starts_with("MOVED 12182 127.0.0.1:"), "{text}");

    // Lines: redis-cli tells of each redirection on standard output, between the replies. Here a pipe holds
    // replies alone.
    let lines =
        "SET foo 1\nGET foo\nSET bar 2\nGET bar\nLPUSH l a b\nLRANGE l 0 -1\nMGET foo bar\nDEL l\n";
    let (text, _, code) = theirs(elsewhere, &["-c"], lines);
    let is_reply = |line: &&str| !line.starts_with("-> Redirected");
    let replies: Vec<&str> = text.lines().filter(is_reply).collect();
    assert!(replies.len() < text.lines().count());
    let (found, told, own_code) = ours(elsewhere, &["-c"], lines);
    assert_eq!(found.lines().collect::<Vec<_>>(), replies);
    assert_eq!((told.as_str(), own_code), ("", code));
}

#[test]
fn a_slot_on_its_way_is_asked_for_once() {
    let cluster = Cluster::start(Kind::Redis);
    let moving = slot(b"foo");
    let (from, to) = (cluster.owner(moving), &cluster.nodes[0]);
    assert_ne!(from.port, to.port);
    let from_id = cluster.id(2);
    let to_id = cluster.id(0);
    let reply = to.tell(&format!("CLUSTER SETSLOT {moving} IMPORTING {from_id}"));
    assert_eq!(reply, "+OK\r\n");
    let reply = from.tell(&format!("CLUSTER SETSLOT {moving} MIGRATING {to_id}"));
    assert_eq!(reply, "+OK\r\n");
    for (arguments, expected) in [
        (["-c", "SET", "foo", "1"].as_slice(), "OK\n"),
        (&["-c", "INCR", "foo"], "2\n"),
        (&["-c", "GET", "foo"], "2\n"),
    ] {
        // From the node that has the slot, and from one that does not.
        for node in [from, &cluster.nodes[1]] {
            let found = ours(node, arguments, "");
            if arguments[1] != "INCR" {
                assert_eq!(found, theirs(node, arguments, ""));
            }
            if node.port == from.port {
                assert_eq!(found.0, expected);
            }
        }
        if arguments[1] == "INCR" {
            ours(from, &["-c", "SET", "foo", "2"], "");
        }
    }
    let count = |node: &Server| node.tell(&format!("CLUSTER COUNTKEYSINSLOT {moving}"));
    assert_eq!(
        (count(to), count(from)),
        (":1\r\n".to_owned(), ":0\r\n".to_owned())
    );
}

#[test]
fn a_transaction_stays_on_its_node() {
    for kind in KINDS {
        a_transaction_stays_on_its_node_in(kind);
    }
}

fn a_transaction_stays_on_its_node_in(kind: Kind) {
    let cluster = Cluster::start(kind);
    let node = &cluster.nodes[0];
    // `bar` is at this node, `foo` is not; redis-cli would set `foo` outside of the transaction.
    let lines = "MULTI\nSET bar 1\nSET foo 1\nEXEC\nGET foo\n";
    let (text, ..) = ours(node, &["-c"], lines);
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(lines[..2], ["OK", "QUEUED"], "{text}");
    assert!(lines[2].starts_with("MOVED 12182 "), "{text}");
    assert!(lines[3].starts_with("EXECABORT "), "{text}");
    assert_eq!(lines.len(), 4, "{text}");
}

#[test]
fn all_nodes_are_walked_through() {
    for kind in KINDS {
        all_nodes_are_walked_through_in(kind);
    }
}

fn all_nodes_are_walked_through_in(kind: Kind) {
    let cluster = Cluster::start(kind);
    let names: BTreeSet<String> = (0..300).map(|number| format!("key:{number}")).collect();
    let lines: String = names
        .iter()
        .map(|name| format!("SET {name} {name}\n"))
        .collect();
    let node = &cluster.nodes[1];
    // Ferrite has strings alone.
    let has_others = kind == Kind::Redis;
    let others = if has_others {
        "LPUSH list a b c\nSADD set a b\n"
    } else {
        ""
    };
    let (text, told, code) = ours(node, &["-c"], &(lines + others));
    assert_eq!((told.as_str(), code), ("", 0), "{text}");
    let walked = |arguments: &[&str]| {
        let (text, told, code) = ours(node, arguments, "");
        assert_eq!((told.as_str(), code), ("", 0), "{arguments:?}");
        text
    };

    let mut all = names.clone();
    if has_others {
        all.extend(["list".to_owned(), "set".to_owned()]);
    }
    let text = walked(&["-c", "--scan"]);
    assert_eq!(text.lines().count(), all.len());
    assert_eq!(
        text.lines().map(str::to_owned).collect::<BTreeSet<_>>(),
        all
    );
    let text = walked(&["-c", "--scan", "--pattern", "key:1*", "--count", "7"]);
    let matching = names.iter().filter(|name| name.starts_with("key:1"));
    assert_eq!(text.lines().count(), matching.count());
    // Without the flag it is the keys of one node, as with redis-cli.
    let text = walked(&["--scan"]);
    assert!((50..200).contains(&text.lines().count()), "{text}");

    for mode in ["--bigkeys", "--memkeys"] {
        let text = walked(&["-c", mode]);
        let sampled = format!("Sampled {} keys in the keyspace!", all.len());
        assert!(text.contains(&sampled), "{text}");
        assert!(text.contains("\n300 strings with "), "{text}");
        for word in ["lists", "sets"] {
            let line = format!("\n{} {word} with ", u8::from(has_others));
            assert!(text.contains(&line), "{text}");
        }
    }
    let text = walked(&["-c", "--keystats"]);
    assert!(text.contains(&all.len().to_string()), "{text}");

    let directory = fresh_directory("export");
    let file = directory.join("all.rdb");
    let path = file.to_str().expect("it is text");
    let (_, told, code) = ours(node, &["-c", "--skip-unsupported", "export", path], "");
    assert_eq!(code, 0, "{told}");
    let bytes = std::fs::read(&file).expect("it was written");
    std::fs::remove_dir_all(directory).expect("it is ours");
    let has = |name: &String| {
        bytes
            .windows(name.len())
            .any(|part| part == name.as_bytes())
    };
    assert!(names.iter().all(has));
}

#[test]
fn what_does_not_go_with_a_cluster_is_refused() {
    for kind in KINDS {
        what_does_not_go_with_a_cluster_is_refused_in(kind);
    }
}

fn what_does_not_go_with_a_cluster_is_refused_in(kind: Kind) {
    let cluster = Cluster::start(kind);
    let node = &cluster.nodes[0];
    let (text, told, code) = ours(node, &["-c", "--pipe"], "SET foo 1\r\n");
    assert_eq!((text.as_str(), code), ("", 1));
    assert!(
        told.starts_with("--pipe sends what it reads as it is, to one server"),
        "{told}"
    );
    let (_, told, code) = ours(node, &["-c", "--keystats", "--cursor", "7"], "");
    assert!(
        told.starts_with("--cursor is a place on one node"),
        "{told}"
    );
    assert_eq!(code, 1);
    // A server on its own takes both.
    let alone = Server::start(Kind::Redis, &[]);
    let (text, _, code) = ours(&alone, &["-c", "--pipe"], "SET foo 1\r\n");
    assert!(text.ends_with("errors: 0, replies: 1\n"), "{text}");
    assert_eq!(code, 0);
    let (text, _, code) = ours(&alone, &["-c", "--scan"], "");
    assert_eq!((text.as_str(), code), ("foo\n", 0));
}
