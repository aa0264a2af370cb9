//! Crashes: eight connections write and note what they were told, the server is killed at a random moment and
//! started again, and what is there is compared with what was acknowledged.
//!
//! | file | what |
//! |---|---|
//! | `change` | what a connection does, how it is asked for, and what it leads to |
//! | `process` | a server that is killed and started again in its directory |
//! | `life` | connections at work until the server dies |
//! | `verdict` | whether what is there after that can be |
//!
//! A kill leaves what the system was given, so it would not show an acknowledgement that came before the
//! sync. In most lives under `always` and `everysec` the server therefore keeps what it has not synced to
//! itself (`DEBUG DISK VOLATILE`): then a kill is a loss of power.
//!
//! What must hold after every crash, for each connection: the data is what it was after some number of its
//! changes, whole transactions and MSETs among them; nothing that was acknowledged is missing (`always`, and
//! any policy if the process alone died), or nothing that was acknowledged longer ago than the sync interval
//! (`everysec` and a loss of power); and if a change is there, so is everything that was acknowledged before
//! it was sent, by whomever.
//!
//! Some lives end in good order: then nothing at all is missing. Before every start `--check-log` has to find
//! the log whole.
//!
//! `FERRITE_CRASHES=300` makes it thorough (`make crash ROUNDS=300`), `FERRITE_SEED` repeats a run as far as
//! threads allow. `FERRITE_SERVER` is the server that is tested, if it is another than the one that was just
//! built.

mod change;
mod life;
mod process;
mod verdict;

use std::time::Duration;

use change::Sizes;
use life::Life;
use process::Process;
use verdict::Totals;

/// So many lives one directory has.
const LIVES: u64 = 6;

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().expect("a number"))
}

/// How much older than a change that is lost everything must be there, in milliseconds: the sync interval and
/// what a sync takes. Where nobody measures, a machine that does other things as well is given time.
fn everysec_bound() -> Duration {
    Duration::from_millis(number("FERRITE_CRASH_BOUND_MS", 10_000))
}

/// What a test is about.
struct Plan {
    policy: &'static str,
    sizes: Sizes,
    /// How old what a loss of power loses may be. A kill loses nothing.
    bound: Duration,
    /// The share of the lives that end with a loss of power; the others end with a kill.
    power_percent: u8,
    longest_life_ms: u64,
    /// Rounds, unless somebody asks for more.
    usual: u64,
}

fn rounds(plan: &Plan) {
    let seed = number("FERRITE_SEED", u64::from(std::process::id()));
    let rounds = number("FERRITE_CRASHES", plan.usual);
    let mut totals = Totals::default();
    let mut random = fastrand::Rng::with_seed(seed);
    let mut process = None;
    let mut base = Vec::new();
    let (policy, sizes) = (plan.policy, plan.sizes);
    for round in 0..rounds {
        if round % LIVES == 0 {
            process = Some(Process::new(policy, 1 + random.usize(..2), sizes));
            base = Vec::new();
        }
        let process = process.as_mut().expect("the first round makes one");
        let life = Life {
            is_volatile: random.u8(..100) < plan.power_percent,
            has_snapshots: sizes == Sizes::Large || random.u8(..3) == 0,
            is_stopped: random.u8(..5) == 0,
            sizes,
            lasts: Duration::from_millis(random.u64(20..plan.longest_life_ms)),
            seed: random.u64(..),
        };
        let what = format!("{policy}, round {round} of seed {seed}: {life:?}");
        eprintln!("{what}");
        let end = life.run(process, &base);
        // A server that dies while it starts, and again.
        while random.u8(..4) == 0 {
            process.start_and_kill(Duration::from_millis(random.u64(..150)));
        }
        process.check_log();
        process.start();
        let found = life::read_everything(process);
        // Only a loss of power loses anything.
        let bound = match life.is_stopped || !life.is_volatile {
            true => Duration::ZERO,
            false => plan.bound,
        };
        base = totals.judge(&end, &base, found, bound, &what, process);
    }
    println!("{policy}: {totals}");
}

#[test]
fn with_always_nothing_acknowledged_is_lost() {
    rounds(&Plan {
        policy: "always",
        sizes: Sizes::Small,
        bound: Duration::ZERO,
        power_percent: 66,
        longest_life_ms: 600,
        usual: 4,
    });
}

#[test]
fn with_everysec_only_the_last_moment_is_lost() {
    rounds(&Plan {
        policy: "everysec",
        sizes: Sizes::Small,
        bound: everysec_bound(),
        power_percent: 66,
        longest_life_ms: 2500,
        usual: 3,
    });
}

/// Values of up to 5 MB, and many that are logged in part, while compaction moves them.
#[test]
fn large_values_come_back_as_they_were() {
    rounds(&Plan {
        policy: "everysec",
        sizes: Sizes::Large,
        bound: everysec_bound(),
        power_percent: 66,
        longest_life_ms: 1500,
        usual: 3,
    });
}

/// Kills alone: nothing that was acknowledged is lost, whatever `appendfsync` says.
fn kills(policy: &'static str) {
    rounds(&Plan {
        policy,
        sizes: Sizes::Small,
        bound: Duration::ZERO,
        power_percent: 0,
        longest_life_ms: 600,
        usual: 4,
    });
}

#[test]
fn with_everysec_a_kill_loses_nothing() {
    kills("everysec");
}

#[test]
fn with_no_a_kill_loses_nothing() {
    kills("no");
}
