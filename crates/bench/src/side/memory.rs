//! What a key costs in memory beyond its own bytes: what the server's resident memory grows by, divided
//! by the keys.
//!
//! Three states of the same keys: freshly written, overwritten three times with values of other sizes
//! and then with the first size again (what fragmentation costs), and written with an expiry.

use super::launch::{Launched, Recipe, Start};
use super::loads::load;
use super::settings::Settings;
use super::steps::Steps;
use std::fmt::Write as _;

/// The length of the keys: `key:` and twelve digits.
const KEY_BYTES: f64 = 16.0;

/// What is weighed: the name, the value's size, and what is done after the first writing.
const STATES: [(&str, u64, State); 5] = [
    ("16 B values", 16, State::Fresh),
    ("100 B values", 100, State::Fresh),
    ("16 B values, after overwriting", 16, State::Overwritten),
    ("100 B values, after overwriting", 100, State::Overwritten),
    ("16 B values with an expiry", 16, State::Expiring),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Fresh,
    Overwritten,
    Expiring,
}

/// What one server's keys weigh.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Weight {
    pub(crate) name: String,
    /// Bytes per key beyond key and value, by state.
    pub(crate) overhead_bytes: Vec<f64>,
}

/// The names of the states.
pub(crate) fn states() -> Vec<&'static str> {
    STATES.iter().map(|(name, ..)| *name).collect()
}

/// How often keys are written before they are weighed with other sizes, in the state that shows what that
/// costs.
const OVERWRITINGS: u64 = 3;

/// How many keys each weighing writes.
pub(crate) fn writings(settings: &Settings) -> Vec<u64> {
    if settings.memory_keys == 0 {
        return Vec::new();
    }
    let times = STATES.map(|(_, _, state)| match state {
        State::Overwritten => 2 + OVERWRITINGS,
        State::Fresh | State::Expiring => 1,
    });
    let servers = settings.recipes.iter().filter(|recipe| !recipe.is_floor());
    servers
        .flat_map(|_| times.map(|times| times * settings.memory_keys))
        .collect()
}

/// Weighs the keys of every server but the floor, which keeps none.
///
/// # Errors
/// A server does not start or does not take the keys.
pub(crate) fn weigh(settings: &Settings, steps: &mut Steps) -> Result<Vec<Weight>, String> {
    if settings.memory_keys == 0 {
        return Ok(Vec::new());
    }
    let servers = settings.recipes.iter().filter(|recipe| !recipe.is_floor());
    servers
        .map(|recipe| {
            let overhead_bytes = STATES
                .iter()
                .map(|&(name, size, state)| {
                    steps.begin(&format!("memory  {}  {name}", recipe.name));
                    weigh_one(settings, recipe, size, state)
                })
                .collect::<Result<_, _>>()?;
            Ok(Weight {
                name: recipe.name.clone(),
                overhead_bytes,
            })
        })
        .collect()
}

fn weigh_one(settings: &Settings, recipe: &Recipe, size: u64, state: State) -> Result<f64, String> {
    let start = Start {
        threads: 1,
        cpus: settings.server_cpus.clone(),
        reply_bytes: None,
    };
    let server = Launched::start(recipe, &start)?;
    let keys = settings.memory_keys;
    let write = |values: &str| {
        let line = format!("-t set --key-pattern S -P 64 -r {keys} -n {keys} {values}");
        load(&line, &settings.load_cpus, &server.target)
    };
    let plain = format!("-d {size}");
    // One connection's buffers and what else a first use allocates are no part of a key.
    load(
        "-t set -r 1000 -n 1000",
        &settings.load_cpus,
        &server.target,
    )?;
    server.asker()?.ask(&[b"FLUSHALL"])?;
    let before = settled(&server);
    match state {
        State::Fresh => write(&plain)?,
        State::Overwritten => {
            write(&plain)?;
            for round in 0..OVERWRITINGS {
                write(&format!("--data-size-range 1-200 --seed {round}"))?;
            }
            write(&plain)?;
        }
        State::Expiring => write(&format!("{plain} --expiry-range 100000-200000"))?,
    }
    let count = server.asker()?.ask(&[b"DBSIZE"])?;
    if count != resp::Value::Integer(keys as i64) {
        return Err(format!(
            "{}: DBSIZE is {count:?} after {keys} keys",
            recipe.name
        ));
    }
    let grown = settled(&server).saturating_sub(before);
    Ok(grown as f64 / keys as f64 - KEY_BYTES - size as f64)
}

/// The resident memory once the server has come to rest: what it does in the background is over.
fn settled(server: &Launched) -> u64 {
    let mut last = server.rss_bytes();
    for _ in 0..20 {
        std::thread::sleep(std::time::Duration::from_millis(150));
        let now = server.rss_bytes();
        if now.abs_diff(last) < 256 << 10 {
            return now;
        }
        last = now;
    }
    last
}

/// The table for people.
pub(crate) fn text(weights: &[Weight]) -> String {
    let mut text = String::from("memory: bytes per key beyond key (16 B) and value\n");
    let _ = write!(text, "{:<16}", "server");
    for state in states() {
        let _ = write!(text, " {state:>30}");
    }
    for weight in weights {
        let _ = write!(text, "\n{:<16}", weight.name);
        for bytes in &weight.overhead_bytes {
            let _ = write!(text, " {bytes:>30.1}");
        }
    }
    text
}
