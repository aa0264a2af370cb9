//! Starts that are refused, each with its reason: a map with mistakes, a node that is not in it, a directory
//! of another node.

use super::{CACHE, IDS, THIRDS, addresses, map_text, start_node};
use crate::support;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use support::{Server, Target, fresh_dir};

/// What a server says that does not start with this text as its map.
fn refusal(address: SocketAddr, text: &str, options: &[&str]) -> String {
    let dir = fresh_dir();
    let map = dir.join("map.toml");
    fs::write(&map, text).expect("the directory is the test's own");
    let started = start_node(CACHE, address, dir.clone(), &map, options);
    support::remove_data(&dir);
    let Err(failure) = started else {
        panic!("it has started with {text}");
    };
    assert_eq!(
        failure.status.and_then(|status| status.code()),
        Some(1),
        "{failure}"
    );
    failure.output
}

#[test]
fn a_map_with_mistakes_stops_the_start() {
    let addresses = addresses();
    let right = map_text(1, &addresses, &THIRDS);
    let wrong = right
        .replace("epoch = 1", "epoch = 0")
        .replace("5461-10922", "5460-10922");
    let said = refusal(addresses[0], &wrong, &[]);
    assert!(
        said.contains("map.toml:2: 'epoch' takes a number"),
        "{said}"
    );
    assert!(
        said.contains("map.toml:14: slot 5460 is given twice, also in line 8"),
        "{said}"
    );
    let said = refusal(addresses[0], &"x = 1\n".repeat(5000), &[]);
    assert!(said.lines().count() < 60, "{said}");
}

#[test]
fn a_node_that_cannot_tell_which_it_is_does_not_start() {
    let addresses = addresses();
    let right = map_text(1, &addresses, &THIRDS);
    let other = super::addresses();
    let said = refusal(other[0], &right, &[]);
    assert!(
        said.contains("this node is missing: none has port"),
        "{said}"
    );
    let said = refusal(addresses[0], &right, &["--cluster-node", "x"]);
    assert!(
        said.contains("this node, x (cluster-node), is missing; the nodes are"),
        "{said}"
    );
    // The port of somebody else.
    let said = refusal(addresses[0], &right, &["--cluster-node", IDS[1]]);
    assert!(
        said.contains(&format!("has the port {} there", addresses[1].port())),
        "{said}"
    );
    let same = SocketAddr::from(([127, 0, 0, 3], addresses[0].port()));
    let two = [super::elsewhere(addresses[0]), same, addresses[2]];
    let said = refusal(addresses[0], &map_text(1, &two, &THIRDS), &[]);
    assert!(
        said.contains("may be this node; cluster-node says which it is"),
        "{said}"
    );
    let failure = Server::try_start(CACHE, &[], &["--cluster-enabled", "yes"]).err();
    let said = failure.expect("there is no map").output;
    assert!(said.contains("cluster-enabled needs cluster-map"), "{said}");
    let missing = ["--cluster-enabled", "yes", "--cluster-map", "nosuch.toml"];
    let failure = Server::try_start(CACHE, &[], &missing).err();
    let said = failure.expect("there is no map").output;
    assert!(said.contains("cannot read nosuch.toml"), "{said}");
}

#[test]
fn the_directory_of_another_node_is_refused() {
    const LOGGED: Target = Target::Logged { threads: 1 };
    let (addresses, maps) = (addresses(), fresh_dir());
    let map = maps.join("map.toml");
    fs::write(&map, map_text(1, &addresses, &THIRDS)).expect("the directory is the test's own");
    let start = |at: usize, dir: PathBuf| start_node(LOGGED, addresses[at], dir, &map, &[]);
    let dir = fresh_dir();
    let mut first = start(0, dir.clone()).unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(first.client().ask("SET bar 1").text(), "OK");
    first.signal(Signal::TERM);
    assert!(first.wait_for_exit().is_some_and(|status| status.success()));
    let port = addresses[1].port().to_string();
    let output = Command::new(env!("CARGO_BIN_EXE_ferrite-server"))
        .args(["--port", &port, "--cluster-enabled", "yes", "--cluster-map"])
        .arg(&map)
        .arg("--dir")
        .arg(&dir)
        .output()
        .expect("the server can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for part in ["belongs to the node", IDS[0], IDS[1]] {
        assert!(said.contains(part), "{said}");
    }
    // Nothing is lost: the first goes on.
    let again = start(0, dir).unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(again.client().ask("GET bar").text(), "1");
    support::remove_data(&maps);
}

/// What `--check-config` says of a file with these lines, and whether a server would start with it.
fn checked(dir: &Path, lines: &str) -> (String, bool) {
    let file = dir.join("ferrite.conf");
    fs::write(&file, lines).expect("the directory is the test's own");
    let output = Command::new(env!("CARGO_BIN_EXE_ferrite-server"))
        .arg("--check-config")
        .arg(&file)
        .output()
        .expect("it is built");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.stderr.is_empty());
    (text, output.status.success())
}

#[test]
fn a_check_of_the_configuration_reads_the_map() {
    let addresses = addresses();
    let dir = fresh_dir();
    let port = addresses[1].port();
    let place = dir.display();
    let lines = format!("port {port}\ndir {place}\ncluster-enabled yes\ncluster-map map.toml\n");
    let write = |text: &str| fs::write(dir.join("map.toml"), text).expect("it is the test's own");
    let right = map_text(1, &addresses, &THIRDS);

    let (said, is_right) = checked(&dir, &lines);
    assert!(
        !is_right && said.contains("refused: cannot read "),
        "{said}"
    );
    write(&right);
    let (said, is_right) = checked(&dir, &lines);
    assert!(is_right, "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    // Nothing was written: the directory belongs to nobody yet.
    assert!(!dir.join("cluster-node").exists());

    // All mistakes, each with its line.
    write(
        &right
            .replace("epoch = 1", "epoch = 0")
            .replace("5461-10922", "5460-10922"),
    );
    let (said, is_right) = checked(&dir, &lines);
    assert!(!is_right);
    for line in [
        "map.toml:2: 'epoch' takes a number",
        "map.toml:14: slot 5460 is given twice, also in line 8",
    ] {
        assert!(said.contains(&format!("refused: {place}/{line}")), "{said}");
    }

    // Slots that nobody has are no mistake.
    write(&right.replace("5461-10922", "5461-10000"));
    let (said, is_right) = checked(&dir, &lines);
    assert!(is_right, "{said}");
    assert!(
        said.contains("map.toml: No node of the cluster has the slots 10001-10922"),
        "{said}"
    );

    // A node that is not there, which settings with mistakes cannot tell.
    write(&right);
    let stranger = format!("{lines}cluster-node x\n");
    let (said, is_right) = checked(&dir, &stranger);
    assert!(!is_right);
    assert!(
        said.contains("map.toml: this node, x (cluster-node), is missing; the nodes are"),
        "{said}"
    );
    let (said, is_right) = checked(&dir, &format!("{stranger}prot 1\n"));
    assert!(!is_right && !said.contains("is missing"), "{said}");
    let (said, is_right) = checked(&dir, &format!("port {port}\ncluster-enabled yes\n"));
    assert!(
        !is_right && said.contains("refused: cluster-enabled needs cluster-map"),
        "{said}"
    );
    // A map that nobody reads.
    write("nonsense");
    let (said, is_right) = checked(&dir, &format!("dir {place}\ncluster-map map.toml\n"));
    assert!(is_right, "{said}");

    // The directory of another node.
    write(&right);
    fs::write(dir.join("cluster-node"), format!("{} x test\n", IDS[0])).expect("it is ours");
    let (said, is_right) = checked(&dir, &lines);
    assert!(!is_right && said.contains("belongs to the node"), "{said}");
    support::remove_data(&dir);
}
