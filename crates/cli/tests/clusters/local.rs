//! `cluster local`: what it starts, what it finds, and that no data is lost.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::{Local, client, cluster};

#[test]
fn servers_are_started_once_and_run_on() {
    let (local, text) = Local::start_and_tell(3, &[]);
    let pids = local.pids();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 5, "{text}");
    assert!(lines[0].ends_with(": 3 servers started."), "{text}");
    let heading: Vec<&str> = lines[1].split_whitespace().collect();
    assert_eq!(heading, ["id", "address", "slots", "pid", "memory"]);
    for (node, slots) in ["0-5460", "5461-10922", "10923-16383"].iter().enumerate() {
        let words: Vec<&str> = lines[node + 2].split_whitespace().collect();
        let port = usize::from(local.first) + node;
        let pid = pids[node].expect("it runs");
        let expected = [
            format!("node-{port}"),
            format!("127.0.0.1:{port}"),
            (*slots).to_owned(),
            pid.to_string(),
        ];
        assert_eq!(words[..4], expected);
        // A session of its own: the end of the terminal is not heard.
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
        let (_, fields) = stat.rsplit_once(')').expect("the name is in brackets");
        assert_eq!(
            fields.split_whitespace().nth(3),
            Some(pid.to_string().as_str())
        );
    }
    let port = local.first.to_string();
    for key in ["foo", "bar", "baz", "x"] {
        let done = client(&["-c", "-p", &port, "SET", key, key]);
        assert_eq!(done, ("OK\n".to_owned(), String::new(), 0));
    }

    let (text, told, code) = local.call(&[]);
    assert_eq!((told.as_str(), code), ("", 0));
    assert!(
        text.starts_with(&format!("Cluster local-{port}, epoch 1, in ")),
        "{text}"
    );
    assert!(text.contains(": 3 servers run already.\n"), "{text}");
    assert_eq!(local.pids(), pids);

    // Only what is missing is started, with its data.
    let keys = local.ask(1, &["DBSIZE"]);
    local.end(1);
    let (text, told, code) = local.call(&[]);
    assert_eq!((told.as_str(), code), ("", 0));
    assert!(
        text.contains(": 1 server started, 2 run already.\n"),
        "{text}"
    );
    let now = local.pids();
    assert_eq!((now[0], now[2]), (pids[0], pids[2]));
    assert_ne!(now[1], pids[1]);
    assert_eq!(local.ask(1, &["DBSIZE"]), keys);

    // All together, without the port being said.
    assert_eq!(cluster(&["stop", local.path()]).2, 0);
    assert_eq!(local.pids(), [None, None, None]);
    let (_, told, code) = cluster(&["local", "3", "--dir", local.path()]);
    assert_eq!((told.as_str(), code), ("", 0));
    for key in ["foo", "bar", "baz", "x"] {
        assert_eq!(
            client(&["-c", "-p", &port, "GET", key]).0,
            format!("{key}\n")
        );
    }
}

#[test]
fn who_starts_the_same_at_once_finds_what_the_other_has_started() {
    let local = Local::start(3, &[]);
    assert_eq!(cluster(&["stop", local.path()]).2, 0);
    let texts: Vec<String> = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..3).map(|_| scope.spawn(|| local.call(&[]))).collect();
        let text = |call: std::thread::ScopedJoinHandle<'_, (String, String, i32)>| {
            let (text, told, code) = call.join().expect("it does not panic");
            assert_eq!((told.as_str(), code), ("", 0));
            text
        };
        calls.into_iter().map(text).collect()
    });
    let count = |what: &str| texts.iter().filter(|text| text.contains(what)).count();
    assert_eq!(count(": 3 servers started.\n"), 1, "{texts:?}");
    assert_eq!(count(": 3 servers run already.\n"), 2, "{texts:?}");
}

#[test]
fn options_behind_dashes_are_those_of_the_servers() {
    let local = Local::start(
        2,
        &[
            "--",
            "--maxmemory",
            "64mb",
            "--save",
            "",
            "--requirepass",
            "se cret",
        ],
    );
    let path = local.node(1).join("ferrite.conf");
    let settings = fs::read_to_string(&path).expect("it is there");
    let mode = path.metadata().expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(
        settings.contains("\nmaxmemory \"64mb\"\nsave \"\"\n"),
        "{settings}"
    );
    let (port, maximum) = (local.first.to_string(), 64 << 20);
    let get = [
        "-a",
        "se cret",
        "--no-auth-warning",
        "-p",
        &port,
        "CONFIG",
        "GET",
        "maxmemory",
    ];
    assert_eq!(client(&get).0, format!("maxmemory\n{maximum}\n"));

    // Without the password one sees that they are there.
    let (text, _, code) = cluster(&["status", local.path()]);
    assert_eq!(code, 1);
    assert!(text.contains("wants a password (-a)"), "{text}");
    let status = [
        "-a",
        "se cret",
        "--no-auth-warning",
        "cluster",
        "status",
        local.path(),
    ];
    let (text, told, code) = client(&status);
    assert_eq!((told.as_str(), code), ("", 0), "{text}");

    // The options stay, also for those that start again.
    local.end(1);
    let (text, told, code) = local.call(&[]);
    assert_eq!((told.as_str(), code), ("", 0), "{text}");
    assert_eq!(client(&status).2, 0);
    // Of those that run, none changes.
    let (_, told, code) = local.call(&["--", "--maxmemory", "1gb"]);
    assert_eq!(code, 1);
    assert!(
        told.contains("2 of 2 servers run already, and would not get the options"),
        "{told}"
    );
}
