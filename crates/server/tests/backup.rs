//! BACKUP: links to the files of the log, from which a server starts with the state of one moment.

use crate::support;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use rustix::process::Signal;
use support::{Client, Server, Target, Value};

const LOGGED: Target = Target::Logged { threads: 2 };

fn digest(client: &mut Client) -> String {
    client.ask("DEBUG DIGEST").text()
}

#[test]
fn a_server_that_starts_from_a_backup_has_the_state_of_its_moment() {
    for options in [
        &["--appendfsync", "always", "--log-segment-size", "2mb"][..],
        &["--appendfsync", "everysec"],
    ] {
        let server = Server::start(LOGGED, options);
        let mut client = server.client();
        let mut made = Vec::new();
        for round in 0..3 {
            for db in [0, 7] {
                client.ask(&format!("SELECT {db}"));
                for number in 0..300 {
                    let value = "v".repeat(number * 20);
                    client.ask(&format!("SET key:{number} {round}{value} EX 100000"));
                }
            }
            client.ask("SWAPDB 0 7");
            let name = format!("round {round}");
            // What was sent before in one go is part of it.
            client.send(&["SET", "last", &name]).expect("a connection");
            client.send(&["BACKUP", &name]).expect("a connection");
            client.send(&["DEBUG", "DIGEST"]).expect("a connection");
            let replies: Vec<Value> = (0..3)
                .map(|_| client.read(support::PATIENCE).expect("a reply"))
                .collect();
            let Value::Array(facts) = &replies[1] else {
                panic!("BACKUP answered {:?}", replies[1]);
            };
            assert_eq!(facts.len(), 8);
            made.push((name, replies[2].text()));
        }
        client.ask("FLUSHALL");
        for (name, expected) in made {
            let directory = server.dir().join("backups").join(&name);
            assert!(directory.join("appendonlydir/MANIFEST").is_file());
            let directory = directory.to_str().expect("a path of UTF-8");
            let mut copy = Server::start(LOGGED, &["--dir", directory]);
            assert_eq!(digest(&mut copy.client()), expected, "{name}");
            // It goes on from there, and the original does not notice.
            copy.client().ask("SET new value");
            copy.signal(Signal::TERM);
            assert!(copy.wait_for_exit().is_some());
        }
        assert_eq!(client.ask("DBSIZE"), Value::Int(0));
    }
}

#[test]
fn a_backup_beside_writers_has_whole_commands_in_their_order() {
    let server = Server::start(LOGGED, &["--log-segment-size", "2mb"]);
    let (stop, counted) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut bounds = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = server.client();
            while !stop.load(Ordering::SeqCst) {
                let number = (counted.load(Ordering::SeqCst) + 1).to_string();
                let request: Vec<String> = ["MSET".to_owned()]
                    .into_iter()
                    .chain((0..10).flat_map(|part| [format!("part:{part}"), number.clone()]))
                    .collect();
                let reply = client.call(&request).expect("a reply");
                assert_eq!(reply, Value::Simple(b"OK".to_vec()));
                counted.fetch_add(1, Ordering::SeqCst);
            }
        });
        let mut client = server.client();
        for round in 0..4 {
            while counted.load(Ordering::SeqCst) < 200 * (round + 1) {
                thread::sleep(std::time::Duration::from_millis(1));
            }
            let before = counted.load(Ordering::SeqCst);
            let reply = client.ask(&format!("BACKUP {round}"));
            assert!(matches!(reply, Value::Array(_)), "{reply:?}");
            bounds.push((before, counted.load(Ordering::SeqCst)));
        }
        stop.store(true, Ordering::SeqCst);
    });
    for (round, (before, after)) in bounds.into_iter().enumerate() {
        let directory = server.dir().join("backups").join(round.to_string());
        let copy = Server::start(LOGGED, &["--dir", directory.to_str().expect("UTF-8")]);
        let mut client = copy.client();
        let part = |client: &mut Client, part: usize| -> u64 {
            let text = client.ask(&format!("GET part:{part}")).text();
            text.parse().expect("a number")
        };
        let number = part(&mut client, 0);
        assert!(
            (before..=after + 1).contains(&number),
            "{number}: {before} {after}"
        );
        assert!((1..10).all(|other| part(&mut client, other) == number));
    }
}

/// Files below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths
        .flat_map(|path| {
            if path.is_dir() {
                files(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

/// All of a backup was durable, so what it lacks was lost when it was copied: that is never taken for the end
/// of a log.
#[test]
fn a_backup_that_lacks_something_does_not_start() {
    let server = Server::start(LOGGED, &[]);
    let mut client = server.client();
    client.ask("SET before 1");
    let value = "v".repeat(300_000);
    client.call(&["SET", "large", &value]).expect("a reply");
    client.ask("SET behind 1");
    assert!(matches!(client.ask("BACKUP lacking"), Value::Array(_)));
    assert!(matches!(client.ask("BACKUP whole"), Value::Array(_)));
    let directory = |name: &str| server.dir().join("backups").join(name);
    let values = files(&directory("lacking/appendonlydir/blobs"));
    assert_eq!(values.len(), 1);
    fs::remove_file(&values[0]).expect("it is there");
    let start = |name: &str| {
        let directory = directory(name);
        let directory = directory.to_str().expect("a path of UTF-8");
        Server::try_start(LOGGED, &[], &["--dir", directory])
    };
    let failure = start("lacking").err().expect("a value is missing");
    let name = values[0].file_name().expect("a file").to_string_lossy();
    let said = "the file of a large value is missing, in a backup that had all of it (MANIFEST); it is the value of the key \"large\" in database 0; ferrite-server --repair-log";
    assert!(failure.output.contains(said), "{failure}");
    assert!(failure.output.contains(&*name), "{failure}");
    let copy = start("whole").unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(copy.client().ask("GET behind").text(), "1");
    assert_eq!(copy.client().ask("STRLEN large"), Value::Int(300_000));
}

#[test]
fn what_cannot_be_backed_up_is_refused() {
    let server = Server::start(LOGGED, &[]);
    let mut client = server.client();
    let elsewhere = "ERR the name of a backup is a plain name: no '/', no '.' or '-' at its beginning, no control characters";
    let long = "n".repeat(256);
    for name in ["/tmp/up", "../up", "a/b", ".", "", ".a", "-a", "a\n", &long] {
        let reply = client.call(&["BACKUP", name]).expect("a reply");
        assert_eq!(reply.text(), elsewhere, "{name}");
    }
    client.ask("SET a b");
    assert!(matches!(client.ask("BACKUP once"), Value::Array(_)));
    let reply = client.ask("BACKUP once").text();
    let taken = server.dir().join("backups/once/appendonlydir");
    assert_eq!(
        reply,
        format!(
            "ERR the backup failed: there is a backup in {} already, which is left as it is: choose another name",
            taken.display()
        )
    );
    let wrong = "ERR wrong number of arguments for 'backup' command";
    assert_eq!(client.ask("BACKUP").text(), wrong);
    assert_eq!(client.ask("MULTI").text(), "OK");
    let refused = "ERR Command not allowed inside a transaction";
    assert_eq!(client.ask("BACKUP a").text(), refused);
    client.ask("DISCARD");
    assert_eq!(client.ask("DEBUG DISK FULL").text(), "OK");
    client.ask("SET a b");
    let reply = client.ask("BACKUP full").text();
    assert!(reply.starts_with("ERR the backup failed: "), "{reply}");
    assert!(fs::metadata(server.dir().join("backups/full/appendonlydir/MANIFEST")).is_err());

    let server = Server::start(Target::Ferrite { threads: 1 }, &[]);
    let reply = server.client().ask("BACKUP a").text();
    assert_eq!(
        reply,
        "ERR the backup failed: there is no log: 'appendonly' is no"
    );
}

/// Backups whose names are those of the server's own files.
#[test]
fn no_name_of_a_backup_reaches_what_the_server_itself_uses() {
    let mut server = Server::start(LOGGED, &[]);
    let mut client = server.client();
    client.ask("SET a b");
    let names = [
        "appendonlydir/log/next.tmp",
        "appendonlydir/LOCK",
        "appendonlydir",
        "dump.rdb",
        "next.tmp",
        "backups",
    ];
    for name in names {
        let made = matches!(client.ask(&format!("BACKUP {name}")), Value::Array(_));
        assert_eq!(made, !name.contains('/'), "{name}");
        assert_eq!(server.dir().join("backups").join(name).is_dir(), made);
    }
    // The log goes on to its next segment, a snapshot is written, and the server starts again.
    assert!(matches!(client.ask("BACKUP next"), Value::Array(_)));
    client.ask("SET c d");
    assert_eq!(client.ask("SAVE").text(), "OK");
    server.start_again(LOGGED, Signal::TERM, &[]);
    assert_eq!(server.client().ask("DBSIZE"), Value::Int(2));
}

#[test]
fn backups_go_where_the_settings_say() {
    let mut server = Server::start(LOGGED, &["--backup-dir", "deep/below"]);
    server.client().ask("SET a b");
    assert!(matches!(server.client().ask("BACKUP one"), Value::Array(_)));
    let manifest = "deep/below/one/appendonlydir/MANIFEST";
    assert!(server.dir().join(manifest).is_file());
    server.start_again(LOGGED, Signal::TERM, &["--backup-dir", ""]);
    assert_eq!(
        server.client().ask("BACKUP two").text(),
        "ERR BACKUP is turned off: 'backup-dir' is empty"
    );
    for place in ["appendonlydir", "./appendonlydir/log"] {
        let refused = Server::try_start(LOGGED, &[], &["--backup-dir", place]);
        let failure = refused.err().expect("it is the log's");
        assert!(failure.output.contains("choose another"), "{failure}");
    }
}
