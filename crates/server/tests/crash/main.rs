//! Crashes: eight connections write and note what they were told, the server is killed at a random moment and started again, and
//! what is there is compared with what was acknowledged.
//!
//! | file | what |
//! |---|---|
//! | `change` | what a connection does, how it is asked for, and what it leads to |
//! | `process` | a server that is killed and started again in its directory |
//! | `life` | connections at work until the server dies |
//! | `verdict` | whether what is there after that can be |
//!
//! A kill leaves what the system was given, so it would not show an acknowledgement that came before the sync. In most lives under
//! `always` and `everysec` the server therefore keeps what it has not synced to itself (`DEBUG DISK VOLATILE`): then a kill is a loss
//! of power.
//!
//! What must hold after every crash, for each connection: the data is what it was after some number of its changes, whole
//! transactions and MSETs among them; nothing that was acknowledged is missing (`always`, and any policy if the process alone died), or
//! nothing that was acknowledged longer ago than the sync interval (`everysec` and a loss of power); and if a change is there, so is
//! everything that was acknowledged before it was sent, by whomever.
//!
//! `FERRITE_CRASHES=300` makes it thorough (`make crash ROUNDS=300`), `FERRITE_SEED` repeats a run as far as threads allow.

#[path = "../support/mod.rs"]
mod support;

mod change;
mod life;
mod process;
mod verdict;

use std::time::Duration;

use life::Life;
use process::Process;
use verdict::Totals;

/// So many lives one directory has.
const LIVES: u64 = 6;

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().expect("a number"))
}

/// How much older than a change that is lost everything must be there, in milliseconds: the sync interval and what a sync takes.
/// Where nobody measures, a machine that does other things as well is given time.
fn everysec_bound() -> Duration {
    Duration::from_millis(number("FERRITE_CRASH_BOUND_MS", 10_000))
}

/// `power_percent` of the lives end with a loss of power, the others with a kill.
fn rounds(
    policy: &'static str,
    bound: Duration,
    power_percent: u8,
    longest_life_ms: u64,
    usual: u64,
) {
    let seed = number("FERRITE_SEED", u64::from(std::process::id()));
    let rounds = number("FERRITE_CRASHES", usual);
    let mut totals = Totals::default();
    let mut random = fastrand::Rng::with_seed(seed);
    let mut process = None;
    let mut base = Vec::new();
    for round in 0..rounds {
        if round % LIVES == 0 {
            process = Some(Process::new(policy, 1 + random.usize(..2)));
            base = Vec::new();
        }
        let process = process.as_mut().expect("the first round makes one");
        let life = Life {
            is_volatile: random.u8(..100) < power_percent,
            has_snapshots: random.u8(..3) == 0,
            lasts: Duration::from_millis(random.u64(20..longest_life_ms)),
            seed: random.u64(..),
        };
        let end = life.run(process, &base);
        // A server that dies while it starts, and again.
        while random.u8(..4) == 0 {
            process.start_and_kill(Duration::from_millis(random.u64(..150)));
        }
        // Only a loss of power loses anything.
        let bound = if life.is_volatile {
            bound
        } else {
            Duration::ZERO
        };
        process.start();
        let found = life::read_everything(process);
        let what = format!("{policy}, round {round} of seed {seed}: {life:?}");
        base = totals.judge(&end, &base, found, bound, &what, process);
    }
    println!("{policy}: {totals}");
}

#[test]
fn with_always_nothing_acknowledged_is_lost() {
    rounds("always", Duration::ZERO, 66, 600, 4);
}

#[test]
fn with_everysec_only_the_last_moment_is_lost() {
    rounds("everysec", everysec_bound(), 66, 2500, 3);
}

#[test]
fn with_everysec_a_kill_loses_nothing() {
    rounds("everysec", Duration::ZERO, 0, 600, 4);
}

#[test]
fn with_no_a_kill_loses_nothing() {
    rounds("no", Duration::ZERO, 0, 600, 4);
}
