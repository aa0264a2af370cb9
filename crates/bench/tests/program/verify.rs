//! Verification: a good server passes, one that loses, cuts or mixes is caught, also across its death.

use super::lossy::{self, Fault};
use super::support::{PATIENCE, Server, bench, bench_words, failed, fresh_dir, printed, words};
use std::process::Output;
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

#[test]
fn good_servers_pass() {
    for server in [Server::redis(&[]), Server::ferrite()] {
        let line = "--verify -n 20000 -r 500 -c 7 -P 5 --data-size-range 1-3000";
        let text = printed(&bench(&server, line));
        assert!(
            text.contains("20,000 writes sent, 20,000 acknowledged"),
            "{text}"
        );
        // 375 groups of one key, 125 of ten.
        assert!(text.contains("verified 1,625 keys in 500 groups"), "{text}");
        assert!(text.ends_with("VERIFY: good\n"), "{text}");
    }
}

fn against(fault: Fault) -> Output {
    let port = lossy::start(fault).to_string();
    bench_words(&words(&format!(
        "-p {port} --verify -n 20000 -r 300 -c 4 -P 3 --multi-keys 3"
    )))
}

#[test]
fn every_kind_of_loss_is_caught() {
    let text = printed(&against(Fault::None));
    assert!(text.ends_with("VERIFY: good\n"), "{text}");
    for (fault, expected) in [
        (Fault::Forgets, "acknowledged writes lost"),
        (Fault::Cuts, "groups torn"),
        (Fault::Splits, "groups torn"),
        (Fault::Mixes, "groups torn"),
    ] {
        let text = failed(&against(fault));
        assert!(text.contains(expected), "{fault:?}: {text}");
        assert!(text.contains("VERIFY: FAILED"), "{fault:?}: {text}");
    }
}

/// Begins to verify, and waits until writes are coming in.
fn begin(server: &Server, options: &'static str) -> JoinHandle<Output> {
    let line = format!(
        "-p {} --verify -r 200 -c 5 --test-time 4 {options}",
        server.port
    );
    let running = std::thread::spawn(move || bench_words(&words(&line)));
    let start = Instant::now();
    while !server.ask("INFO commandstats").contains("cmdstat_mset") {
        assert!(start.elapsed() < PATIENCE, "the load does not begin");
        sleep(Duration::from_millis(10));
    }
    sleep(Duration::from_millis(200));
    running
}

#[test]
fn a_server_that_syncs_every_write_loses_none_when_it_is_killed() {
    let durable = ["--appendonly", "yes", "--appendfsync", "always"];
    let mut server = Server::redis(&durable);
    let running = begin(&server, "--may-lose 0");
    for _ in 0..2 {
        server.kill();
        server.restart();
        sleep(Duration::from_millis(300));
    }
    let text = printed(&running.join().expect("it ends"));
    assert_eq!(text.matches("the server was lost").count(), 2, "{text}");
    assert_eq!(text.matches("verified ").count(), 3, "{text}");
    assert!(text.ends_with("VERIFY: good\n"), "{text}");
}

#[test]
fn a_server_without_persistence_is_caught_when_it_is_killed() {
    let mut server = Server::redis(&[]);
    let running = begin(&server, "--may-lose 10ms");
    server.kill();
    server.restart();
    let text = failed(&running.join().expect("it ends"));
    assert!(text.contains("groups missing"), "{text}");
    assert!(text.contains("VERIFY: FAILED"), "{text}");
}

#[test]
fn what_is_lost_may_be_young_if_that_is_the_class() {
    let mut server = Server::redis(&[]);
    // All writes are younger than the test.
    let running = begin(&server, "--may-lose 1h");
    server.kill();
    server.restart();
    let text = printed(&running.join().expect("it ends"));
    assert!(text.contains("acknowledged writes lost"), "{text}");
    assert!(text.contains("before the loss"), "{text}");
    assert!(text.ends_with("VERIFY: good\n"), "{text}");
}

#[test]
fn notes_are_kept_for_a_later_start() {
    let server = Server::redis(&[]);
    let dir = fresh_dir();
    let notes = dir.join("notes").display().to_string();
    let line = format!("--verify -n 3000 -r 100 -c 3 --verify-file {notes}");
    printed(&bench(&server, &line));
    let check = format!("--verify-check {notes}");
    let text = printed(&bench(&server, &check));
    assert!(text.ends_with("VERIFY: good\n"), "{text}");
    // Some key of the run, whichever is there.
    server.ask("SET verify:1:0 changed");
    let text = failed(&bench(&server, &check));
    assert!(text.contains("what was never written there"), "{text}");
    server.ask("FLUSHALL");
    let text = failed(&bench(&server, &check));
    assert!(text.contains("groups missing"), "{text}");
    std::fs::remove_dir_all(&dir).expect("it is ours");
}
