//! `check-log DIR` reads a log without any server, and says the same as the library.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use ferrite_log::{DbId, Log, Options, Tag, check};
use sys::file::Disk;

/// A directory of a test's own, removed with it.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let name = format!("ferrite-cli-check-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("the directory for temporary files is writable");
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Exit code, standard output, standard error.
fn run(arguments: &[&str]) -> (i32, String, String) {
    run_as("check-log", arguments)
}

fn run_as(name: &str, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_ferrite-cli"))
        .args(["-p", "1", name])
        .args(arguments)
        .output()
        .expect("cargo has built it");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it writes UTF-8");
    let code = output.status.code().expect("it ended by itself");
    (code, text(output.stdout), text(output.stderr))
}

fn write_log(directory: &Path) {
    let options = Options {
        segment_bytes: 2 << 20,
        ring_bytes: 2 << 20,
        ..Options::default()
    };
    let recovery = Log::open(Arc::new(Disk), directory, options).expect("it is new");
    let log = recovery.start().expect("it is empty");
    let mut appender = log.appender(None).expect("the first");
    for number in 0..10 {
        let key = format!("key:{number}");
        appender.set(DbId(0), key.as_bytes(), Tag::default(), None, b"value");
    }
    drop(appender);
    log.close().expect("all is written");
}

#[test]
fn a_log_is_checked_without_a_server() {
    let directory = Directory::new("log");
    let path = directory.0.to_str().expect("a path of UTF-8");
    let missing = format!("there is no log in {path}: {path}/log is missing\n");
    assert_eq!(run(&[path]), (2, String::new(), missing));
    write_log(&directory.0);
    let report = check(Arc::new(Disk), &directory.0).expect("nobody has it");
    assert_eq!(report.records, 10);
    let whole = (0, format!("{report}\n"), String::new());
    assert_eq!(run(&[path]), whole);
    // Scripts of before have this name.
    assert_eq!(run_as("check", &[path]), whole);
    let segment = directory.0.join("log/0000000000001000.log");
    let mut bytes = fs::read(&segment).expect("it was written");
    bytes[4096 + 20] ^= 1;
    fs::write(&segment, &bytes).expect("it is ours");
    let report = check(Arc::new(Disk), &directory.0).expect("nobody has it");
    let advice = format!("ferrite-server --repair-log {path} mends it");
    let told = format!("{report}\n{advice}\n");
    assert!(told.contains("is damaged at byte 4096"), "{told}");
    assert_eq!(run(&[path]), (1, told, String::new()));
}

#[test]
fn it_takes_one_directory() {
    let wrong = "check-log takes one directory: check-log DIR\n".to_owned();
    assert_eq!(run(&[]), (2, String::new(), wrong.clone()));
    assert_eq!(run(&["a", "b"]), (2, String::new(), wrong));
}
