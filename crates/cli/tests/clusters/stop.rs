//! `cluster stop`.

use std::fs;
use std::path::Path;

use super::{Local, cluster, eventually, signal};

#[test]
fn all_end_and_may_save_before() {
    let local = Local::start(3, &[]);
    local.end(1);
    let (text, told, code) = cluster(&["stop", local.path(), "--save"]);
    assert_eq!((told.as_str(), code), ("", 0), "{text}");
    let expected = ["ended", "did not run", "ended"];
    for ((node, line), what) in (0..3).zip(text.lines()).zip(expected) {
        assert_eq!(line, format!("{}  {what}", local.name(node)));
        assert_eq!(local.node(node).join("dump.rdb").exists(), what == "ended");
    }
    assert_eq!(local.pids(), [None, None, None]);
    // The map alone: the servers are asked at their ports.
    assert_eq!(local.call(&[]).2, 0);
    let map = local.map();
    let (text, told, code) = cluster(&["stop", map.to_str().expect("it is text")]);
    assert_eq!((told.as_str(), code), ("", 0), "{text}");
    assert!(text.lines().all(|line| line.ends_with("  ended")), "{text}");
    eventually("the pid files go", || local.pids() == [None, None, None]);
}

#[test]
fn who_does_not_end_is_named() {
    let local = Local::start(2, &[]);
    local.end(0);
    let stopped = local.pid(1).expect("it runs");
    signal("STOP", stopped);
    let (text, told, code) = cluster(&["stop", local.path(), "--timeout", "1"]);
    signal("CONT", stopped);
    assert_eq!((told.as_str(), code), ("", 1));
    let (one, other) = (local.name(0), local.name(1));
    assert_eq!(
        text,
        format!("{one}  did not run\n{other}  did not end within 1 s (pid {stopped})\n")
    );
    // It was asked, and does so when it can.
    eventually("it ends", || local.pid(1).is_none());
}

#[test]
fn a_number_of_another_process_is_left_alone() {
    let local = Local::start(1, &[]);
    let (own, file) = (std::process::id(), local.node(0).join("ferrite.pid"));
    let pid = local.pid(0).expect("it runs");
    // The file names this test; the server is found at its port all the same.
    fs::write(&file, format!("{own}\n")).expect("it is ours");
    let (text, told, code) = cluster(&["stop", local.path()]);
    assert_eq!((told.as_str(), code), ("", 0));
    assert_eq!(text, format!("{}  ended\n", local.name(0)));
    eventually("the server ends", || {
        !Path::new(&format!("/proc/{pid}")).exists()
    });
    let (text, _, code) = cluster(&["stop", local.path()]);
    assert_eq!(
        (text, code),
        (format!("{}  did not run\n", local.name(0)), 0)
    );
    fs::remove_file(&file).expect("it is ours");
}
