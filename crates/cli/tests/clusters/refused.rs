//! What `cluster local` refuses: nothing is started then, or what was started is stopped again, and nothing
//! is lost.

use std::fs;
use std::net::TcpListener;

use super::{Local, cluster};

/// What is told when `cluster local` refuses.
fn refusal(arguments: &[&str]) -> String {
    let (text, told, code) = cluster(&[&["local"], arguments].concat());
    assert_eq!((text.as_str(), code), ("", 1), "{told}");
    told
}

#[test]
fn what_was_typed_wrongly_is_named() {
    for (arguments, expected) in [
        (
            &[][..],
            "Usage: ferrite-cli cluster local N [-- SERVER OPTION...]",
        ),
        (
            &["0"],
            "cluster local: N takes a number from 1 to 256, not '0'",
        ),
        (
            &["3", "--port", "x"],
            "cluster local: --port takes a number from 1 to 65535, not 'x'",
        ),
        (
            &["3", "--prot", "7"],
            "cluster local: there is no flag '--prot' (did you mean --port?)",
        ),
        (
            &["3", "--port", "65534"],
            "cluster local: there are no 3 ports from 65534 on",
        ),
        (
            &["3", "--", "--dir", "/x"],
            "cluster local: --dir of a server is set by this command itself",
        ),
    ] {
        assert_eq!(refusal(arguments).trim_end(), expected, "{arguments:?}");
    }
}

#[test]
fn the_directory_of_another_cluster_stays_what_it_is() {
    let local = Local::start(2, &[]);
    let path = local.path();
    let (pids, map) = (local.pids(), fs::read(local.map()).expect("it is there"));
    let (first, other) = (local.first.to_string(), (local.first + 2).to_string());
    for arguments in [
        &["3", "--dir", path][..],
        &["2", "--port", &other, "--dir", path],
        &["1", "--port", &first, "--dir", path],
    ] {
        let told = refusal(arguments);
        let expected = format!("has a cluster of 2 servers from port {first} on");
        assert!(told.contains(&expected), "{told}");
    }
    assert_eq!(
        (local.pids(), fs::read(local.map()).expect("it is there")),
        (pids, map)
    );

    let text = fs::read_to_string(local.map()).expect("it is there");
    fs::write(local.map(), text.replace("id = \"node-", "id = \"n-")).expect("it is ours");
    let told = refusal(&["2", "--dir", path]);
    assert!(told.contains("which is none of `cluster local`"), "{told}");
    fs::write(local.map(), text.replace("epoch = 1", "epoch = x")).expect("it is ours");
    let told = refusal(&["2", "--dir", path]);
    assert!(told.contains("map.toml:2: "), "{told}");
    fs::write(local.map(), text).expect("it is ours");

    // A directory with other things in it.
    let home = local.home.join("home");
    fs::create_dir(&home).expect("it is ours");
    fs::write(home.join("letter"), "").expect("it is ours");
    let told = refusal(&["2", "--dir", home.to_str().expect("it is text")]);
    assert!(
        told.contains("a cluster wants a directory of its own"),
        "{told}"
    );
    assert_eq!(fs::read_dir(&home).expect("it is ours").count(), 1);
}

#[test]
fn ports_of_others_are_named_with_their_process() {
    let local = Local::new(3);
    let taken = local.first + 1;
    let listener = TcpListener::bind(("127.0.0.1", taken)).expect("it was free a moment ago");
    let (text, told, code) = local.call(&[]);
    assert_eq!((text.as_str(), code), ("", 1));
    let owner = format!("(pid {})", std::process::id());
    assert!(
        told.starts_with(&format!("Nothing was started: port {taken} is in use by ")),
        "{told}"
    );
    assert!(told.contains(&owner), "{told}");
    assert!(!local.directory.exists());
    drop(listener);
}

#[test]
fn two_clusters_do_not_share_a_port() {
    let one = Local::start(3, &[]);
    let other = Local {
        home: crate::support::fresh_directory("local"),
        directory: one.home.join("other"),
        first: one.first + 2,
        count: 3,
    };
    let (text, told, code) = other.call(&[]);
    assert_eq!((text.as_str(), code), ("", 1));
    let (port, pid) = (one.first + 2, one.pid(2).expect("it runs"));
    let expected =
        format!("Nothing was started: port {port} is in use by ferrite-server (pid {pid})");
    assert_eq!(told.trim_end(), expected);
    assert!(!other.directory.exists());
    assert_eq!(cluster(&["status", one.path()]).2, 0);
}

#[test]
fn a_server_that_does_not_start_ends_all_that_were_started() {
    let local = Local::new(3);
    let (text, told, code) = local.call(&["--", "--maxmemory", "much"]);
    assert_eq!((text.as_str(), code), ("", 1));
    assert!(told.contains(" did not start (exit status: 1)"), "{told}");
    assert!(told.contains("maxmemory"), "{told}");
    assert_eq!(local.pids(), [None, None, None]);
    // The data of one node in the place of another.
    let (text, told, code) = local.call(&["--", "--save", ""]);
    assert_eq!((told.as_str(), code), ("", 0), "{text}");
    assert_eq!(cluster(&["stop", local.path()]).2, 0);
    let aside = local.directory.join("aside");
    for (from, to) in [
        (local.node(0), aside.clone()),
        (local.node(1), local.node(0)),
        (aside, local.node(1)),
    ] {
        fs::rename(from, to).expect("they are ours");
    }
    let (text, told, code) = local.call(&[]);
    assert_eq!((text.as_str(), code), ("", 1));
    assert!(told.contains("belongs to the node"), "{told}");
    assert_eq!(local.pids(), [None, None, None]);
}

#[test]
fn a_map_that_is_older_than_that_of_the_nodes_starts_nothing() {
    let local = Local::start(2, &[]);
    let old = fs::read_to_string(local.map()).expect("it is there");
    fs::write(local.map(), old.replace("epoch = 1", "epoch = 2")).expect("it is ours");
    for node in 0..2 {
        assert_eq!(local.ask(node, &["CLUSTER", "RELOAD"]), "OK");
    }
    fs::write(local.map(), old).expect("it is ours");
    local.end(1);
    let (text, told, code) = local.call(&[]);
    assert_eq!((text.as_str(), code), ("", 1));
    let node = local.name(0);
    assert_eq!(
        told.trim_end(),
        format!(
            "Nothing was started: map.toml has the epoch 1, and {node} runs with a map of the epoch 2"
        )
    );
    assert_eq!(local.pid(1), None);
}
