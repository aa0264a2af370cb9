//! Limits that the system sets to the process: a server that cannot work within them says so at its start and
//! ends in order.

use crate::support;

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use support::{Client, PATIENCE, Value};

/// A directory of the test's own.
fn directory(name: &str) -> std::path::PathBuf {
    let path = std::env::temp_dir().join(format!("ferrite-limits-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path).expect("the directory for temporary files is writable");
    path
}

/// The server by a shell that sets a limit first.
fn command(ulimit: &str, options: &str, directory: &std::path::Path) -> Command {
    let mut command = Command::new("sh");
    let line =
        format!("ulimit {ulimit} && exec \"$0\" --threads 2 --port 0 --dir \"$1\" {options}");
    command
        .args(["-c", &line, env!("CARGO_BIN_EXE_ferrite-server")])
        .arg(directory)
        .stdin(Stdio::null());
    command
}

#[test]
fn too_few_addresses_are_an_error_that_says_what_to_do() {
    let directory = directory("few");
    let socket = "--unixsocket socket";
    for limit in [
        "-v 100000",
        "-v 204800",
        "-v 500000",
        "-v 1200000",
        "-v 2000000",
        "-d 204800",
    ] {
        let started: Output = command(limit, socket, &directory)
            .output()
            .expect("there is a shell");
        let said = String::from_utf8_lossy(&started.stderr);
        assert_eq!(started.status.code(), Some(1), "{limit}: {started:?}");
        for part in ["may map", &limit[..2], "kB", "ulimit"] {
            assert!(said.contains(part), "{limit}: {said}");
        }
    }
    let options = format!("{socket} --maxmemory 100gb");
    let started = command("-v 4000000", &options, &directory).output();
    let started = started.expect("there is a shell");
    let said = String::from_utf8_lossy(&started.stderr);
    assert_eq!(started.status.code(), Some(1), "{started:?}");
    assert!(said.contains("'maxmemory' to "), "{said}");
    std::fs::remove_dir_all(&directory).expect("it is ours");
}

/// The default of `maxmemory` is a part of what the process may use, and that much data fits.
#[test]
fn a_limit_of_addresses_bounds_the_memory_that_is_used() {
    fill("enough", "-v 2600000", "");
}

/// The default leaves to each worker what it needs, however few processors there are.
#[test]
fn the_default_memory_leaves_room_for_more_workers_than_processors() {
    fill("workers", "-v 4400000", "--threads 16");
}

/// A server within a limit of less than 400 MiB for data takes more than that.
fn fill(name: &str, ulimit: &str, options: &str) {
    let directory = directory(name);
    let socket = directory.join("socket");
    let mut child = command(
        ulimit,
        &format!("--unixsocket socket {options}"),
        &directory,
    )
    .spawn()
    .expect("there is a shell");
    let began = Instant::now();
    let mut client = loop {
        if let Ok(client) = Client::connect_unix(&socket) {
            break client;
        }
        assert!(began.elapsed() < PATIENCE, "it does not listen");
        std::thread::sleep(Duration::from_millis(10));
    };
    while client.ask("PING").text() != "PONG" {
        std::thread::sleep(Duration::from_millis(10));
    }
    let Value::Array(items) = client.ask("CONFIG GET maxmemory") else {
        panic!("it is a pair");
    };
    let most: u64 = items[1].text().parse().expect("a number");
    assert!((1..400 << 20).contains(&most), "{most}");
    // Beyond the limit of memory values are left in the log, or writes are refused; the process goes on.
    let value = "v".repeat(10_000);
    for number in 0..20_000 {
        let key = format!("key:{number}");
        let reply = client.call(&["SET", &key, &value]).expect("a reply").text();
        assert!(reply == "OK" || reply.starts_with("OOM"), "{reply}");
    }
    assert_eq!(client.ask("PING").text(), "PONG");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    std::fs::remove_dir_all(&directory).expect("it is ours");
}
