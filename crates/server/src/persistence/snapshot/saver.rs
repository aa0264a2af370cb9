//! Snapshot thread: loads the snapshot at the start, then writes snapshots, one at a time.

use super::beside::save_beside;
use super::file;
use super::load::{Duplicates, load};

use super::state::Outcome;
use crate::persistence;
use crate::persistence::durable::Durable;
use crate::persistence::relief::Relief;
use crate::script::Existing;
use crate::shared::gate::Closed;

/// Loads the snapshot if `loads`, then writes snapshots until the server stops.
pub(crate) fn run(server: &'static Durable, loads: bool) {
    if !loads {
        sys::process::work_in_background();
    }
    let mut turn = server.keyspace.turns().register();
    if loads {
        match load_at_start(server) {
            Ok(()) => {
                server.snapshots.note_loaded(server);
                server.gate.set(Closed::Loading, false);
            }
            Err(_) if server.is_shutting_down() => return,
            Err(problem) => return persistence::fail(server, problem),
        }
        sys::process::work_in_background();
        log::info!("Ready to accept connections");
    }
    while let Some(mut job) = server.snapshots.next_job(server) {
        let outcome = save_beside(server, &mut turn, &mut job);
        match &outcome {
            Outcome::Saved => log::info!("DB saved on disk"),
            Outcome::Failed(problem) => log::error!("Saving a snapshot failed: {problem}"),
            Outcome::Cancelled => log::warn!("Saving a snapshot was broken off"),
        }
        server.snapshots.finish(server, job, outcome);
    }
}

/// Loads the configured file.
///
/// # Errors
/// A text for the operator.
pub(crate) fn load_at_start(server: &Durable) -> Result<(), String> {
    let Some(path) = file::path(&server.settings) else {
        return Ok(());
    };
    let relief = Relief::new(server);
    load(server, &path, Duplicates::Refused, Existing::Refused, relief).map_err(|problem| {
        format!(
            "the snapshot {} cannot be loaded: {problem}\n\
             Nothing was changed. Repair or replace the file, or move it away to start without its data",
            path.display()
        )
    })
}

/// Whether there is a file to load at the start.
///
/// # Errors
/// The system call fails.
pub(crate) fn is_there(server: &Durable) -> Result<bool, String> {
    let Some(path) = file::path(&server.settings) else {
        return Ok(false);
    };
    path.try_exists()
        .map_err(|error| format!("cannot look for the snapshot {}: {error}", path.display()))
}
