//! From the mode to its file.

use super::types::Column;
use super::{
    big_keys, cache_test, export, hot_keys, import, intrinsic, key_stats, latency, pipe, replicate,
    scan, script, spectrum, stat,
};
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
        Mode::BigKeys => big_keys::run(session, options, Column::Elements),
        Mode::MemoryKeys => {
            let samples = options.keys.samples;
            big_keys::run(session, options, Column::Memory { samples })
        }
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
