//! Stop of the server: the final snapshot, and the signal to all threads.
//!
//! The final snapshot is written while no worker is inside a turn. Workers are told to end before they enter
//! another turn, so every acknowledged write is in the snapshot.

use keyspace::Exclusive;

use super::state::Phase;
use crate::persistence::durable::Durable;
use crate::persistence::snapshot::save_alone;

/// Options of a stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ending {
    /// Whether a snapshot is written. The default: if there are save points.
    pub(crate) save: Option<bool>,
    /// Whether the server stops even if the snapshot fails.
    pub(crate) force: bool,
}

/// Writes the final snapshot and asks all threads to end.
///
/// # Errors
/// The snapshot failed. The server continues.
pub(crate) fn end(server: &Durable, alone: &Exclusive<'_>, ending: Ending) -> Result<(), String> {
    if server.persistence.phase() == Phase::Beginning && !ending.force {
        log::warn!("Writing initial AOF. Can't exit.");
        return Err("the log is being begun".into());
    }
    // A snapshot in progress is older, and must not replace the final one.
    server.snapshots.cancel();
    let saves = ending
        .save
        .unwrap_or_else(|| !server.save_points().is_empty());
    // A snapshot of half of the data must not replace a complete one.
    if saves && !server.is_loading() {
        log::info!("Saving the final RDB snapshot before exiting.");
        match save_alone(server, alone, sys::clock::realtime_ms()) {
            Ok(()) => log::info!("DB saved on disk"),
            Err(error) if ending.force => {
                log::warn!("Saving the DB failed ({error}); exiting all the same");
            }
            Err(error) => {
                log::error!("Saving the DB failed, can't exit: {error}");
                return Err(error.to_string());
            }
        }
    }
    server.begin_shutdown();
    Ok(())
}

/// Stops the server after a fatal error. The program prints the text at its end.
pub(crate) fn fail(server: &Durable, problem: String) {
    log::error!("{problem}");
    // The first error is kept.
    let _ = server.failure.set(problem);
    server.begin_shutdown();
}
