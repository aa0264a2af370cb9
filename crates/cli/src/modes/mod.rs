//! What the program does instead of running commands: one file per mode.
//!
//! | file | flags |
//! |---|---|
//! | `stat` | `--stat` |
//! | `latency`, `spectrum`, `intrinsic` | `--latency`, `--latency-history`; `--latency-dist`; `--intrinsic-latency` |
//! | `scan` | `--scan` |
//! | `big_keys`, `hot_keys`, `key_stats` | `--bigkeys` and `--memkeys`; `--hotkeys`; `--keystats` |
//! | `walk`, `types` | what these share: going through all keys, what types of values there are |
//! | `pipe` | `--pipe` |
//! | `cache_test` | `--lru-test` |
//! | `script` | `--eval` |
//! | `peek` | the command `peek` |
//! | `check` | the command `check` |
//! | `import`, `export`, `replicate` | the commands `import` and `export`, `--rdb`, `--functions-rdb` and `--replica` |
//! | `file` | what these share: the file that is being written, the bar of progress |

mod big_keys;
mod cache_test;
pub(crate) mod check;
mod export;
mod file;
mod hot_keys;
mod import;
mod intrinsic;
mod key_stats;
mod latency;
pub(crate) mod peek;
mod pipe;
mod replicate;
mod scan;
mod script;
mod spectrum;
pub(crate) mod stat;
mod types;
mod walk;

pub(crate) use file::count;

use std::time::Duration;

use crate::cluster;
use crate::failure::{Failure, Result};
use crate::flags::{Mode, Options};
use crate::session::Session;

/// Runs the mode that was asked for; `arguments` stand behind the flags.
pub(crate) fn run(options: &Options, arguments: &[Vec<u8>]) -> Result {
    match &options.mode {
        Mode::Missing(why) => return Err(Failure::other(*why)),
        Mode::IntrinsicLatency(limit) => return intrinsic::run(*limit),
        // The server is not needed before the file is found well.
        Mode::Import(path) => return import::run(options, path),
        Mode::Cluster(given) => return cluster::run(given, options),
        _ => {}
    }
    let mut session = Session::new(options.access.clone(), false, options.is_verbose);
    session.connect()?;
    match &options.mode {
        Mode::Stat => stat::run(&mut session, options),
        Mode::Latency { is_history } => latency::run(&mut session, options, *is_history),
        Mode::LatencyDistribution => spectrum::run(&mut session, options),
        Mode::BigKeys => big_keys::run(session, options, big_keys::Measure::Elements),
        Mode::MemoryKeys => big_keys::run(session, options, big_keys::Measure::Memory),
        Mode::HotKeys => hot_keys::run(session, options),
        Mode::KeyStats => key_stats::run(session, options),
        Mode::Scan => scan::run(session, options),
        Mode::LruTest(keys) => cache_test::run(&mut session, options, *keys),
        Mode::Pipe => pipe::run(session, options),
        Mode::Script(path) => script::run(&mut session, options, path, arguments),
        Mode::Export(path) => export::run(session, options, path),
        Mode::Replicate {
            path,
            has_functions_only,
        } => replicate::run(session, path, *has_functions_only),
        Mode::Replica => replicate::follow(session, options),
        Mode::Commands
        | Mode::Missing(_)
        | Mode::IntrinsicLatency(_)
        | Mode::Import(_)
        | Mode::Cluster(_) => Ok(()),
    }
}

/// The pause that was asked for, or the usual one.
pub(crate) fn interval_or(options: &Options, usual: Duration) -> Duration {
    if options.interval.is_zero() {
        usual
    } else {
        options.interval
    }
}

/// Counts lines down to the end that was asked for, if one was.
pub(crate) struct Countdown {
    left: Option<u64>,
}

impl Countdown {
    pub(crate) fn new(options: &Options) -> Countdown {
        let left = options.repeat.and_then(|count| u64::try_from(count).ok());
        Countdown { left }
    }

    /// Counts one; whether it was the last.
    pub(crate) fn is_last(&mut self) -> bool {
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(1);
        }
        self.left == Some(0)
    }
}
