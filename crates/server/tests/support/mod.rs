//! What every integration test of the server shares: starting a real server process and talking to it.
//!
//! Lives here: the process under test ([`Server`], Ferrite or a real redis-server), a small blocking client
//! ([`Client`]) and the decoded replies ([`Value`]). Does not live here: anything that knows golden scripts,
//! and the `resp` crate: the decoder in `value.rs` is written apart on purpose, so that a mistake in the
//! server's own encoder cannot hide behind the same mistake in its decoder.

// Each test program uses its own part of this module; the rest would be reported as dead code there.
#![allow(dead_code, unused_imports)]

use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

mod client;
mod disk;
mod group;
mod ports;
mod programs;
mod server;
mod value;

pub(crate) use client::{Client, Link, PATIENCE, encode_request};
pub(crate) use disk::SmallDisk;
pub(crate) use group::MemoryGroup;
pub(crate) use ports::free_port;
pub(crate) use server::{Server, StartFailure, Target, fresh_dir};
pub(crate) use value::{Proto, Value, bulk, integer, items, ok, parse_value, texts};

/// Asks until the answer is right; the wait between two questions grows from 5 to 50 ms.
///
/// # Panics
/// After [`PATIENCE`]; the message names what was waited for.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    let mut pause = Duration::from_millis(5);
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "never came true: {what}");
        sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// Removes the directory of a server that has ended, and the rings that it has left in the system's memory: a
/// killed server leaves them for the next start of its log.
pub(crate) fn remove_data(directory: &Path) {
    // One without a directory has given it to another.
    let Ok(path) = directory.canonicalize() else {
        return;
    };
    let rings = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    for ring in rings.filter(|entry| entry.file_name().as_bytes().starts_with(b"ferrite-")) {
        // Its header names the log's directory. Another test may remove its own at the same time.
        let mut header = Vec::new();
        let read =
            fs::File::open(ring.path()).and_then(|file| file.take(4096).read_to_end(&mut header));
        let inside = [path.as_os_str().as_bytes(), b"/"].concat();
        if read.is_ok() && header.windows(inside.len()).any(|part| part == inside) {
            let _ = fs::remove_file(ring.path());
        }
    }
    // A directory left behind harms no later run: no name is used twice.
    let _ = fs::remove_dir_all(directory);
}

/// Output and exit code of the program with `--check-log` or `--repair-log`.
pub(crate) fn check_log(flag: &str, directory: &Path) -> (String, Option<i32>) {
    let output = Command::new(env!("CARGO_BIN_EXE_ferrite-server"))
        .arg(flag)
        .arg(directory)
        .output()
        .expect("cargo has built it");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).expect("it writes UTF-8");
    (text, output.status.code())
}

/// A field of INFO.
pub(crate) fn info_text(client: &mut Client, field: &str) -> String {
    let text = client.ask("INFO everything").text();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("INFO has no {field}: {text}"))
        .to_owned()
}

/// A figure of INFO.
pub(crate) fn info(client: &mut Client, field: &str) -> u64 {
    let text = info_text(client, field);
    let figure = text.parse();
    figure.unwrap_or_else(|_| panic!("{field} of INFO is no figure: {text}"))
}
