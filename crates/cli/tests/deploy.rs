//! `cluster deploy`, to a real sshd on loopback addresses.

mod hosts;
mod refused;
mod ways;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::ferrite_server;
use hosts::{Hosts, Said};

fn text(path: &Path) -> &str {
    path.to_str().expect("it is text")
}

/// The deploy went well.
fn done(said: &Said) -> &str {
    assert_eq!((said.errors.as_str(), said.code), ("", 0), "{}", said.out);
    &said.out
}

/// Keys for all nodes, through the first.
fn write_keys(hosts: &Hosts) {
    let host = &hosts.hosts[0];
    let mut child = Command::new(env!("CARGO_BIN_EXE_ferrite-cli"))
        .args(["-c", "-h", &host.address, "-p", &host.port.to_string()])
        .env("HOME", &hosts.directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let lines: String = (0..KEYS)
        .map(|key| format!("SET key:{key} {key}\n"))
        .collect();
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin.write_all(lines.as_bytes()).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it is ours");
    let replies = String::from_utf8_lossy(&output.stdout);
    assert_eq!(replies.lines().filter(|line| *line == "OK").count(), KEYS);
}

/// How many keys `write_keys` writes.
const KEYS: usize = 300;

/// How many keys the nodes have.
fn keys(hosts: &Hosts) -> usize {
    let counts = hosts.tell("DBSIZE");
    counts
        .iter()
        .map(|count| count.trim().parse::<usize>().expect("a number"))
        .sum()
}

/// The server with something behind it: another file, and the same program.
fn other_server(hosts: &Hosts) -> PathBuf {
    let path = hosts.directory.join("ferrite-server");
    let mut bytes = fs::read(ferrite_server()).expect("it is built");
    bytes.extend_from_slice(b"another build");
    fs::write(&path, bytes).expect("it is ours");
    path
}

#[test]
fn three_hosts_are_deployed_brought_up_to_date_and_left_alone() {
    let hosts = Hosts::start(3);
    let said = hosts.deploy(&[]);
    let out = done(&said);
    for (host, slots) in hosts
        .hosts
        .iter()
        .zip(["0-5460", "5461-10922", "10923-16383"])
    {
        let line = format!(
            "{}:{}  was started: serves slots {slots}\n",
            host.address, host.port
        );
        assert!(out.contains(&line), "{out}");
        assert!(host.tell("CLUSTER INFO").contains("cluster_my_epoch:1"));
        assert_eq!(
            host.tell("CONFIG GET maxmemory").trim().lines().last(),
            Some("104857600")
        );
    }
    write_keys(&hosts);
    let pids = hosts.pids();

    // Nothing has changed.
    let said = hosts.deploy(&[]);
    assert_eq!(
        done(&said)
            .matches("is as it should be, was left alone: serves slots")
            .count(),
        3
    );
    assert_eq!(hosts.pids(), pids);

    // Another build, and another setting.
    let server = other_server(&hosts);
    let said = hosts.deploy(&["--server", text(&server), "--memory", "101mb"]);
    assert_eq!(done(&said).matches("was brought up to date").count(), 3);
    assert_eq!(keys(&hosts), KEYS);
    assert!(hosts.pids().iter().zip(&pids).all(|(new, old)| new != old));
    for host in &hosts.hosts {
        let names = fs::read_dir(host.node()).expect("it is there");
        let mut names: Vec<_> = names
            .map(|entry| entry.expect("ours").file_name())
            .collect();
        names.sort();
        let expected = [
            "built-from",
            "data",
            "ferrite-server",
            "ferrite.conf",
            "ferrite.pid",
            "map.toml",
            "messages.log",
            "start.log",
        ];
        assert_eq!(names, expected);
        assert!(host.tell("CLUSTER INFO").contains("cluster_my_epoch:1"));
        assert_eq!(
            host.tell("CONFIG GET maxmemory").trim().lines().last(),
            Some("105906176")
        );
    }
}

#[test]
fn a_node_more_changes_the_map_and_no_slot() {
    let hosts = Hosts::start(3);
    let said = hosts.deploy(&[]);
    done(&said);
    write_keys(&hosts);
    let pids = hosts.pids();

    // The map has another epoch, and reaches servers that go on running.
    let fourth = hosts.hosts[1].line(hosts::free_port("127.0.0.3"));
    let said = hosts.deploy_to(&hosts.nodes(&fourth), &[]);
    assert_eq!(
        (
            said.code,
            said.out.matches("has the new map: serves slots").count()
        ),
        (0, 3),
        "{said:?}"
    );
    assert!(
        said.out.contains("was started: serves no slots"),
        "{said:?}"
    );
    assert!(said.errors.contains("is new and has no slots"), "{said:?}");
    assert_eq!((hosts.pids(), keys(&hosts)), (pids.clone(), KEYS));
    assert!(
        hosts
            .tell("CLUSTER INFO")
            .iter()
            .all(|info| info.contains("cluster_my_epoch:2"))
    );

    // A host without its slots is not left out by mistake.
    let two: String = hosts.hosts[..2]
        .iter()
        .map(|host| host.line(host.port) + "\n")
        .collect();
    let file = hosts.directory.join("two.txt");
    fs::write(&file, two).expect("it is ours");
    let said = hosts.deploy_to(&file, &[]);
    assert_eq!(said.code, 1);
    assert!(
        said.errors.contains("its keys would be served no more"),
        "{said:?}"
    );
    assert_eq!(hosts.pids(), pids);

    // The file is that of the other subcommands too. What was ended has its keys when it comes back.
    let nodes = hosts.nodes(&fourth);
    let said = hosts.cluster(&["status", text(&nodes)]);
    assert!(done(&said).contains("All 4 nodes of ferrite are up and agree on the map."));
    let said = hosts.cluster(&["stop", text(&nodes)]);
    assert_eq!(done(&said).matches("ended").count(), 4);
    let said = hosts.deploy_to(&nodes, &[]);
    assert_eq!(done(&said).matches("was started: serves").count(), 4);
    assert_eq!(keys(&hosts), KEYS);
}
