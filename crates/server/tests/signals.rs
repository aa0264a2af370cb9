//! Signals, and what a server leaves behind: its log goes on in a new file, orderly ends remove the file of
//! the process, and nothing but a signal that means the end is one.

use crate::support;

use std::fs;
use std::path::Path;

use rustix::process::Signal;
use support::{Server, Target, Value, encode_request, eventually};

const LOGGED: Target = Target::Logged { threads: 2 };
const OPTIONS: [&str; 4] = ["--logfile", "server.log", "--pidfile", "server.pid"];

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn the_log_goes_on_in_a_new_file_when_a_rotation_asks_for_it() {
    for (signal, name) in [(Signal::HUP, "SIGHUP"), (Signal::USR1, "SIGUSR1")] {
        let mut server = Server::start(LOGGED, &OPTIONS);
        let (current, old) = (
            server.dir().join("server.log"),
            server.dir().join("old.log"),
        );
        server.client().ask("SET a 1");
        fs::rename(&current, &old).expect("the server has made it");
        server.signal(signal);
        let said = format!("received {name}: the log file was opened anew");
        eventually("reopening", || text(&current).contains(&said));
        assert!(text(&old).contains("Ready to accept connections"));
        assert!(!text(&old).contains(name));
        // The server has gone on, and ends in order.
        assert_eq!(server.client().ask("GET a").text(), "1");
        server.signal(Signal::TERM);
        assert!(
            server
                .wait_for_exit()
                .is_some_and(|status| status.success())
        );
        assert!(text(&current).contains("ready to exit"));
        assert!(!server.dir().join("server.pid").exists());
    }
}

#[test]
fn a_log_that_cannot_be_opened_anew_is_written_on() {
    let server = Server::start(LOGGED, &OPTIONS);
    let (current, old) = (
        server.dir().join("server.log"),
        server.dir().join("old.log"),
    );
    fs::rename(&current, &old).expect("the server has made it");
    fs::create_dir(&current).expect("the directory is the test's own");
    server.signal(Signal::HUP);
    eventually("saying so", || {
        text(&old).contains("the old file is written on")
    });
    assert_eq!(server.client().ask("PING").text(), "PONG");
}

#[test]
fn signals_that_mean_the_end_leave_nothing_behind() {
    for signal in [Signal::TERM, Signal::INT, Signal::QUIT] {
        let mut server = Server::start(LOGGED, &OPTIONS);
        let pid_file = server.dir().join("server.pid");
        assert_eq!(text(&pid_file), format!("{}\n", server.pid()));
        server.client().ask("SET a 1");
        server.signal(signal);
        let status = server.wait_for_exit().expect("it ends");
        assert!(status.success(), "{signal:?}: {status}");
        assert!(!pid_file.exists(), "{signal:?}");
        server.start_again(LOGGED, signal, &OPTIONS);
        assert_eq!(server.client().ask("GET a").text(), "1");
    }
}

#[test]
fn no_other_signal_ends_a_server() {
    let server = Server::start(LOGGED, &OPTIONS);
    server.client().ask("SET a 1");
    for signal in [Signal::USR2, Signal::PIPE, Signal::XFSZ, Signal::HUP] {
        server.signal(signal);
    }
    let log = server.dir().join("server.log");
    eventually("hearing", || text(&log).contains("received SIGHUP"));
    assert_eq!(server.client().ask("GET a").text(), "1");
}

/// The file names a server that runs: one that does not come up in the same directory neither changes nor
/// removes it.
#[test]
fn the_file_of_a_process_stays_when_another_fails_to_start() {
    let mut server = Server::start(LOGGED, &OPTIONS);
    let pid_file = server.dir().join("server.pid");
    let own = text(&pid_file);
    let dir = server.dir().to_str().expect("a path of UTF-8").to_owned();
    let options = [&OPTIONS[..], &["--dir", &dir]].concat();
    let failure = Server::try_start(LOGGED, &[], &options).err();
    let failure = failure.expect("the log is in use");
    assert!(failure.output.contains("cannot open the log"), "{failure}");
    assert_eq!(text(&pid_file), own);
    // One that fails later takes its own with it.
    server.signal(Signal::TERM);
    assert!(server.wait_for_exit().is_some());
    fs::write(server.dir().join("dump.rdb"), b"no snapshot").expect("the directory is the test's");
    let target = Target::Ferrite { threads: 1 };
    // It may have answered before it has read the snapshot.
    let status = match Server::try_start(target, &[], &options) {
        Ok(mut server) => server.wait_for_exit(),
        Err(failure) => failure.status,
    };
    assert!(status.is_some_and(|status| !status.success()));
    assert!(!pid_file.exists());
}

/// What a terminal does that is closed: lines of the log go nowhere.
#[test]
fn a_log_that_nobody_can_read_is_no_reason_to_end() {
    let full = Path::new("/dev/full");
    assert!(full.exists(), "a device that takes nothing is needed");
    let mut server = Server::start(LOGGED, &["--logfile", "/dev/full"]);
    let mut client = server.client();
    for level in ["debug", "notice"] {
        client.ask(&format!("CONFIG SET loglevel {level}"));
        server.signal(Signal::HUP);
        assert_eq!(client.ask("SAVE").text(), "OK");
    }
    assert_eq!(client.ask("DBSIZE"), Value::Int(0));
    server.signal(Signal::TERM);
    assert!(
        server
            .wait_for_exit()
            .is_some_and(|status| status.success())
    );
}

/// A snapshot that was being written when its server was killed.
#[test]
fn what_a_killed_server_did_not_finish_is_removed_at_the_start() {
    let options = [
        "--rdb-key-save-delay",
        "100000",
        "--dbfilename",
        "temp-1-0.rdb",
    ];
    for target in [LOGGED, Target::Ferrite { threads: 1 }] {
        let mut server = Server::start(target, &options);
        let mut client = server.client();
        client.ask("SET a 1");
        client.ask("CONFIG SET rdb-key-save-delay 0");
        assert_eq!(client.ask("SAVE").text(), "OK");
        client.ask("CONFIG SET rdb-key-save-delay 100000");
        for number in 0..100 {
            client.ask(&format!("SET key:{number} v"));
        }
        let drafts = |server: &Server| {
            let names = fs::read_dir(server.dir()).expect("it is there");
            let names = names.map(|name| name.expect("it can be listed").file_name());
            let is_draft = |name: &String| name.starts_with("temp-") && name != "temp-1-0.rdb";
            let names = names.map(|name| name.to_string_lossy().into_owned());
            names.filter(is_draft).collect::<Vec<_>>()
        };
        client.ask("BGSAVE");
        eventually("writing", || drafts(&server).len() == 1);
        let left = drafts(&server);
        server.start_again(target, Signal::KILL, &options);
        eventually("loading", || server.client().ask("PING").text() == "PONG");
        assert_eq!(drafts(&server), [""; 0]);
        let output = server.output();
        let tells = |line: &str| line.contains("removed ") && line.contains(&left[0]);
        assert!(output.lines().any(tells), "{output}");
        // A snapshot of such a name is a snapshot.
        assert!(server.dir().join("temp-1-0.rdb").is_file());
        assert_eq!(server.client().ask("GET a").text(), "1");
        // What fails leaves nothing either.
        let mut client = server.client();
        fs::remove_file(server.dir().join("temp-1-0.rdb")).expect("it is there");
        fs::create_dir(server.dir().join("temp-1-0.rdb")).expect("the directory is the test's");
        client.ask("CONFIG SET rdb-key-save-delay 0");
        assert!(matches!(client.ask("SAVE"), Value::Error(_)));
        client.ask("BGSAVE");
        let field = "rdb_last_bgsave_status:err";
        eventually("failing", || {
            client.ask("INFO persistence").text().contains(field)
        });
        assert_eq!(drafts(&server), [""; 0]);
    }
}

/// No worker gets on while a script runs, and the signal is heard all the same.
#[test]
fn a_script_without_end_ends_with_the_server() {
    let mut server = Server::start(LOGGED, &OPTIONS);
    let (mut client, log) = (server.client(), server.dir().join("server.log"));
    assert_eq!(client.ask("SET a 1"), Value::Simple(b"OK".into()));
    let script = "while true do redis.call('get', 'a') end";
    let words = ["EVAL", script, "0"].map(|word| word.as_bytes().to_vec());
    client
        .send_bytes(&encode_request(&words))
        .expect("the server reads");
    // Long enough for a round of the control thread, which must not wait for the script.
    std::thread::sleep(std::time::Duration::from_millis(300));
    server.signal(Signal::TERM);
    assert!(
        server
            .wait_for_exit()
            .is_some_and(|status| status.success())
    );
    assert!(text(&log).contains("ready to exit"));
}
