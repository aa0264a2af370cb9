//! Crashes: eight connections write, served by one thread of the test; the server is killed at a random
//! moment and started again, and what is there is compared with what was acknowledged.
//!
//! A kill leaves what the system was given, so it would not show an acknowledgement that came before the
//! sync. In most lives under `always` and `everysec` the server therefore keeps what it has not synced to
//! itself (`DEBUG DISK VOLATILE`): then a kill is a loss of power.
//!
//! What must hold after every crash, for each connection:
//!
//! 1. The data is what it was after some number of its requests, whole transactions and MSETs among them.
//! 2. Nothing that was acknowledged is missing (`always`, and any policy if the process alone died), or
//!    nothing that was acknowledged longer ago than the sync interval (`everysec` and a loss of power).
//! 3. If a request is there, so is everything that was acknowledged before it was sent, by any connection.
//!
//! Some lives end in good order: then nothing at all is missing. Before every start `--check-log` has to find
//! the log whole.
//!
//! `FERRITE_CRASHES=300` makes it thorough (`make crash ROUNDS=300`), `FERRITE_SEED` repeats a run as far as
//! threads allow, `FERRITE_CRASH_BOUND_MS` is how old what a loss of power loses may be under `everysec`.

use std::time::{Duration, Instant};

use crate::torture::plan::{Crash, Plan};
use crate::torture::{report, run_lives, setting};

/// Lives in one directory.
const LIVES: u64 = 6;

const CRASH: Crash = Crash {
    appendfsync: "always",
    blob_size: "16kb",
    power_percent: 66,
    pauses_ms: 0,
    storm: 4000,
    is_small: true,
};

/// Runs as many lives as were asked for, or the usual number. Each test has a number, and plans of its own.
fn rounds(test: u64, crash: Crash, usual: u64) {
    let seed = setting("FERRITE_SEED").unwrap_or_else(|| std::process::id().into());
    let seed = seed.wrapping_mul(8) + test;
    let asked = setting("FERRITE_CRASHES").unwrap_or(usual);
    let began = Instant::now();
    let ends = began + Duration::from_secs(1 << 20);
    let mut rounds = 0;
    while rounds < asked {
        // Each directory has a seed of its own, so that a find does not need the rounds before.
        let seed = seed.wrapping_mul(1000) + rounds / LIVES;
        let mut plan = Plan::crash(seed, crash);
        let lives = LIVES.min(asked - rounds) as usize;
        let mut lines = Vec::new();
        match run_lives(&mut plan, lives, ends, &mut lines, &mut rounds) {
            Ok(totals) => println!("seed {seed}, {crash:?}: {totals}"),
            Err(find) => report(&find, lines, seed, rounds, began),
        }
    }
}

#[test]
fn with_always_nothing_acknowledged_is_lost() {
    rounds(0, CRASH, 4);
}

#[test]
fn with_everysec_only_the_last_moment_is_lost() {
    let crash = Crash {
        appendfsync: "everysec",
        pauses_ms: 1000,
        storm: 20_000,
        ..CRASH
    };
    rounds(1, crash, 3);
}

/// Large values are logged in part when they change, and some are in files of their own.
#[test]
fn large_values_come_back_as_they_were() {
    let crash = Crash {
        appendfsync: "everysec",
        blob_size: "256kb",
        pauses_ms: 1000,
        storm: 400,
        is_small: false,
        ..CRASH
    };
    rounds(2, crash, 3);
}

#[test]
fn with_everysec_a_kill_loses_nothing() {
    let crash = Crash {
        appendfsync: "everysec",
        power_percent: 0,
        ..CRASH
    };
    rounds(3, crash, 4);
}

#[test]
fn with_no_a_kill_loses_nothing() {
    let crash = Crash {
        appendfsync: "no",
        power_percent: 0,
        ..CRASH
    };
    rounds(4, crash, 4);
}
