//! `--check-log` and `--repair-log`: what they say, their exit codes, and that a server starts with what was
//! mended.

use crate::support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use support::{Server, Target, check_log};

const LOGGED: Target = Target::Logged { threads: 1 };

/// What the program says about a log, with its exit code. Names of directories and numbers that depend on the
/// machine are replaced.
fn tell(flag: &str, directory: &Path) -> String {
    let (text, code) = check_log(flag, directory);
    let text = text.replace(&directory.display().to_string(), "DIR");
    let mut result = String::new();
    for (pattern, name) in [
        (r"process \d+", "process N"),
        (r"\b[0-9a-f]{16}\b", "FIRST"),
        (r"0x[0-9a-f]+", "LSN"),
    ] {
        let pattern = regex_lite::Regex::new(pattern).expect("it is an expression");
        let before = if result.is_empty() { &text } else { &result };
        result = pattern.replace_all(before, name).into_owned();
    }
    let code = code.expect("it ended by itself");
    format!("{result}code {code}\n")
}

fn segments(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory.join("log")).expect("it is there");
    let paths = entries.map(|entry| entry.expect("it can be listed").path());
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
        .collect();
    paths.sort();
    paths
}

#[test]
fn a_log_is_checked_and_mended() {
    let mut server = Server::start(LOGGED, &["--appendfsync", "always"]);
    let directory = server.dir().join("appendonlydir");
    let mut client = server.client();
    for number in 0..20 {
        client.ask(&format!("SET key:{number} value"));
    }
    let used = "DIR is in use by another server (process N)";
    assert_eq!(
        tell("--check-log", &directory),
        format!("ferrite-server: {used}\ncode 2\n")
    );
    assert_eq!(
        tell("--repair-log", &directory),
        format!("ferrite-server: {used}\ncode 2\n")
    );
    server.signal(Signal::TERM);
    assert!(server.wait_for_exit().is_some());
    let whole = tell("--check-log", &directory);
    assert!(whole.starts_with("segments: 1, bytes: "), "{whole}");
    assert!(
        whole.contains(", records: 20, batches: 0, large values: 0, end: LSN\n"),
        "{whole}"
    );
    assert!(whole.ends_with("\nthe log is whole\ncode 0\n"), "{whole}");

    // A bit of the third record's value.
    let path = &segments(&directory)[0];
    let mut bytes = fs::read(path).expect("it was written");
    let at = 4096 + 2 * 32 + 20;
    bytes[at] ^= 1;
    fs::write(path, &bytes).expect("it is ours");
    let damage = "damage: DIR/log/FIRST.log is damaged at byte 4160: the checksum does not match\n        \
                  a repair takes out 32 bytes, which seem to be of the key \"key:3\" in database 0, and keeps them in DIR/lost\n\
                  the log is damaged\ncode 1\n";
    let told = tell("--check-log", &directory);
    assert!(told.ends_with(damage), "{told}");
    let root = server.dir().to_str().expect("a path of UTF-8").to_owned();
    let Err(failure) = Server::try_start(LOGGED, &[], &["--dir", &root]) else {
        panic!("it started with a damaged log");
    };
    assert!(
        failure.output.contains("is damaged at byte 4160: the checksum does not match; \
                                 ferrite-server --repair-log takes out what is damaged and keeps it aside"),
        "{failure}"
    );
    assert_eq!(tell("--check-log", &directory), told, "it changes nothing");

    let mended = tell("--repair-log", &directory);
    let repair = "repaired: DIR/log/FIRST.log: 32 bytes at 4160, which seem to be of the key \"key:3\" in database 0, are taken out and kept in DIR/lost/FIRST-4160.cut\n\
                  the log is whole\ncode 0\n";
    assert!(mended.ends_with(repair), "{mended}");
    assert!(tell("--check-log", &directory).ends_with("the log is whole\ncode 0\n"));
    let kept = fs::read_dir(directory.join("lost")).expect("it was made");
    assert_eq!(kept.count(), 1);
    let server = Server::start(LOGGED, &["--dir", &root]);
    let mut client = server.client();
    assert_eq!(client.ask("DBSIZE"), support::Value::Int(19));
    assert_eq!(client.ask("GET key:3").text(), "value");
}

#[test]
fn a_torn_end_is_no_damage() {
    let mut server = Server::start(LOGGED, &["--appendfsync", "always"]);
    let directory = server.dir().join("appendonlydir");
    server.client().ask("SET a 1");
    server.signal(Signal::KILL);
    assert!(server.wait_for_exit().is_some());
    let path = &segments(&directory)[0];
    let mut bytes = fs::read(path).expect("it was written");
    // Half a record behind the first.
    let record: Vec<u8> = bytes[4096..4096 + 20].to_vec();
    bytes[4096 + 24..4096 + 24 + 20].copy_from_slice(&record);
    fs::write(path, &bytes).expect("it is ours");
    let told = tell("--check-log", &directory);
    assert!(told.contains("\ntorn: the log ends at LSN: "), "{told}");
    assert!(
        told.contains(" bytes behind it are put aside in DIR/lost\n"),
        "{told}"
    );
    assert!(told.ends_with("the log is whole\ncode 0\n"), "{told}");
    assert_eq!(tell("--repair-log", &directory), told);
    let root = server.dir().to_str().expect("a path of UTF-8").to_owned();
    let again = Server::start(LOGGED, &["--dir", &root]);
    assert_eq!(again.client().ask("GET a").text(), "1");
    assert!(
        again.output().contains("behind it are put aside in"),
        "{}",
        again.output()
    );
}

#[test]
fn a_directory_without_a_log_is_named() {
    let mut server = Server::start(LOGGED, &[]);
    server.signal(Signal::TERM);
    assert!(server.wait_for_exit().is_some());
    assert_eq!(
        tell("--check-log", server.dir()),
        "ferrite-server: there is no log in DIR: DIR/log is missing; there is one in DIR/appendonlydir\ncode 2\n"
    );
    assert_eq!(
        tell("--repair-log", Path::new("/no/such/directory")),
        "ferrite-server: there is no log in DIR: DIR/log is missing\ncode 2\n"
    );
    for flag in ["--check-log", "--repair-log"] {
        let output = Command::new(env!("CARGO_BIN_EXE_ferrite-server"))
            .arg(flag)
            .output();
        let output = output.expect("cargo has built it");
        assert_eq!(output.status.code(), Some(1));
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            text.contains("the directory of a log has to follow"),
            "{text}"
        );
    }
}

/// The bytes of a part of the last dumps in docs/format.md.
fn dump(title: &str) -> Vec<u8> {
    let document = include_str!("../../../docs/format.md");
    let begin = document.find("header of version 9.2.1").expect("the dump");
    let mut lines = document[begin..].lines();
    lines.find(|line| *line == title).expect("it is there");
    let bytes = lines.map_while(|line| {
        let digits = line.split(' ').map(|two| u8::from_str_radix(two, 16));
        digits.collect::<Result<Vec<u8>, _>>().ok()
    });
    bytes.flatten().collect()
}

#[test]
fn a_log_of_a_later_version_is_refused_and_left_as_it_is() {
    for (title, what) in [
        ("Record of kind 13 at 0x1018", "a record of kind 13"),
        ("Set of kind 9 at 0x1018", "a value of kind 9"),
    ] {
        let server = Server::start(LOGGED, &[]);
        let root = server.dir().join("later");
        let directory = root.join("appendonlydir");
        fs::create_dir_all(directory.join("log")).expect("it is ours");
        let mut bytes = dump("header of version 9.2.1");
        bytes.resize(4096, 0);
        bytes.extend(dump("Set at 0x1000"));
        bytes.extend(dump(title));
        let path = directory.join("log/0000000000001000.log");
        fs::write(&path, &bytes).expect("it is ours");

        let version = env!("CARGO_PKG_VERSION");
        let reason = format!(
            "cannot be read at byte 4120: {what}, which this version ({version}) does not know; \
             version 9.2.1 wrote it"
        );
        let root = root.to_str().expect("a path of UTF-8");
        let Err(failure) = Server::try_start(LOGGED, &[], &["--dir", root]) else {
            panic!("it started with a log that it does not know");
        };
        let told = format!(
            "log/0000000000001000.log {reason}; start that version or a later one. Nothing was changed"
        );
        assert!(failure.output.contains(&told), "{failure}");
        for flag in ["--check-log", "--repair-log"] {
            let told = tell(flag, &directory);
            let unknown = format!("unknown: DIR/log/FIRST.log {reason}\n");
            assert!(told.contains(&unknown), "{told}");
            let end = "Nothing was changed, and a repair changes nothing\ncode 1\n";
            assert!(told.ends_with(end), "{told}");
        }
        assert_eq!(fs::read(&path).expect("it is there"), bytes);
        assert_eq!(segments(&directory), [path]);
        assert!(!directory.join("lost").exists());
    }
}
