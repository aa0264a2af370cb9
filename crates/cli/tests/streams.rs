//! `import` and `export` of streams: entries, groups, consumers and pending entries, deleted ones too.

use crate::files::{request, run, send};
use crate::support::{Kind, Server, fresh_directory};

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

/// Requests as lines of words.
fn lines(bytes: &mut Vec<u8>, lines: &[&str]) {
    for line in lines {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        bytes.extend(request(&words));
    }
}

/// A stream of many entries, of which some are deleted, with groups that have read some of them.
fn large(bytes: &mut Vec<u8>) {
    for number in 0..5000_u64 {
        let id = format!("{}-{}", 1_700_000_000_000 + number / 3 * 77, number % 3);
        let (value, long) = (number.to_string(), "v".repeat(number as usize % 300));
        let fields = match number % 10 {
            0 => vec!["other", long.as_str(), "", "-5"],
            1 => vec!["a\r\n", "1.5"],
            _ => vec!["field", value.as_str(), "text", long.as_str()],
        };
        let head = [&b"XADD"[..], b"large", id.as_bytes()];
        let fields = fields.into_iter().map(str::as_bytes);
        bytes.extend(request(&head.into_iter().chain(fields).collect::<Vec<_>>()));
        if number % 17 == 3 {
            bytes.extend(request(&[b"XDEL", b"large", id.as_bytes()]));
        }
    }
    lines(
        bytes,
        &[
            "XGROUP CREATE large group 0",
            "XGROUP CREATE large other 1700000000500-0 ENTRIESREAD 12",
            "XGROUP CREATE large unread 0",
            "XGROUP CREATECONSUMER large other nobody",
            "XREADGROUP GROUP group anna COUNT 700 STREAMS large >",
            "XREADGROUP GROUP group bert COUNT 30 STREAMS large >",
            "XREADGROUP GROUP other cleo COUNT 5 STREAMS large >",
            "XACK large group 1700000000077-1 1700000000077-2",
            "XCLAIM large group bert 0 1700000000154-0 TIME 1690000000000 RETRYCOUNT 77 JUSTID",
            // They are deleted, and stay pending.
            "XDEL large 1700000000154-0 1700000000154-1 1700000000231-0",
        ],
    );
}

/// Streams of every shape, by name.
const NAMES: [&str; 8] = [
    "one", "large", "grouped", "emptied", "set", "bare", "long", "trimmed",
];

fn fill(server: &Server) {
    let mut bytes = Vec::new();
    large(&mut bytes);
    let long = "long ".repeat(60_000);
    lines(
        &mut bytes,
        &[
            "XADD one 0-1 f v",
            "XGROUP CREATE grouped group $ MKSTREAM",
            "XGROUP CREATECONSUMER grouped group anna",
            "PEXPIREAT grouped 32503680000000",
            "XADD emptied 5-1 f v",
            "XADD emptied 5-2 f v",
            "XGROUP CREATE emptied group 0",
            "XREADGROUP GROUP group anna STREAMS emptied >",
            "XDEL emptied 5-1 5-2",
            "XADD set 5-1 f v",
            "XSETID set 900-7 ENTRIESADDED 1000 MAXDELETEDID 800-3",
            "XADD bare 7-7 f v",
            "XDEL bare 7-7",
            "PEXPIREAT bare 32503680000000",
        ],
    );
    for number in 1..40 {
        let id = format!("1-{number}");
        let text = &long[..long.len() / number];
        bytes.extend(request(&[
            b"XADD",
            b"long",
            id.as_bytes(),
            b"f",
            text.as_bytes(),
        ]));
        let words = [b"XADD", &b"trimmed"[..], id.as_bytes(), b"f", b"v"];
        bytes.extend(request(&words));
    }
    lines(
        &mut bytes,
        &["XTRIM trimmed MAXLEN 3", "XGROUP CREATE trimmed group 1-38"],
    );
    send(server, bytes);
}

/// All that a server tells about its streams, but how it keeps them.
fn facts(server: &Server) -> Vec<String> {
    let ask = |name: &&str| {
        let mut stream =
            TcpStream::connect(("127.0.0.1", server.port)).expect("the server listens");
        let asked = format!("XINFO STREAM {name} FULL COUNT 0\r\nPEXPIRETIME {name}\r\nQUIT\r\n");
        stream.write_all(asked.as_bytes()).expect("connected");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("text");
        let lines: Vec<&str> = reply.lines().collect();
        let is_kept = |at: &usize| *at == 0 || !lines[at - 1].starts_with("radix-tree-");
        let kept = (0..lines.len())
            .filter(is_kept)
            .map(|at| format!("{}\n", lines[at]));
        format!("{name}:\n{}", kept.collect::<String>())
    };
    NAMES.iter().map(ask).collect()
}

#[test]
fn streams_go_from_server_to_server() {
    let directory = fresh_directory("streams");
    let place = directory.to_str().expect("the path is text").to_owned();
    let load = ["--dir", &place, "--dbfilename", "dump.rdb"];
    for from in [Kind::Redis, Kind::Ferrite] {
        let source = Server::start(from, &[]);
        fill(&source);
        let expected = facts(&source);
        // The large one has its groups, and the emptied one an entry that is pending and deleted.
        assert!(
            expected[1].contains("1700000000154-0\r\n")
                || expected[1].contains("1700000000154-0\n")
        );
        assert!(expected[3].contains("5-2"), "{}", expected[3]);
        let said = run(&source, &directory, &["export", "dump.rdb"]);
        assert!(said.starts_with("8 keys of 1 database saved"), "{said}");
        let checked = Command::new("redis-check-rdb")
            .arg(directory.join("dump.rdb"))
            .output();
        let checked = checked.expect("`make setup` installs redis-tools");
        let text = String::from_utf8_lossy(&checked.stdout);
        assert!(checked.status.success(), "{text}");
        assert!(text.contains("RDB looks OK"), "{text}");
        for to in [Kind::Redis, Kind::Ferrite] {
            let loaded = Server::start(to, &load);
            while loaded.tell("DBSIZE").starts_with("-LOADING") {
                std::thread::yield_now();
            }
            assert_eq!(facts(&loaded), expected, "{from:?}, loaded by {to:?}");
            let target = Server::start(to, &[]);
            let said = run(&target, &directory, &["import", "dump.rdb"]);
            assert_eq!(said, "8 keys written to 1 database\n");
            assert_eq!(facts(&target), expected, "{from:?}, imported into {to:?}");
            // Once more: the same keys are replaced, or left alone.
            run(&target, &directory, &["import", "dump.rdb"]);
            assert_eq!(facts(&target), expected, "{from:?}, again into {to:?}");
            let said = run(
                &target,
                &directory,
                &["--keep-existing", "import", "dump.rdb"],
            );
            assert!(
                said.ends_with("8 left alone that the server had\n"),
                "{said}"
            );
        }
    }
    let _ = fs::remove_dir_all(directory);
}
