//! The end of the server: what is saved before, and how everybody hears of it.
//!
//! The last snapshot is written while no worker is inside a turn, and they are told to end before they are
//! let in again: what was acknowledged is in the snapshot.

use keyspace::Exclusive;

use super::Phase;
use crate::persistence::Durable;
use crate::persistence::snapshot::save_alone;

/// How the server shall end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ending {
    /// Whether a snapshot is written; if nothing is said, it is if there are save points.
    pub(crate) save: Option<bool>,
    /// Whether it ends even though the snapshot could not be written.
    pub(crate) force: bool,
}

/// Saves what is to be saved and asks all threads to end.
///
/// # Errors
/// The snapshot could not be written. The server goes on.
pub(crate) fn end(server: &Durable, alone: &Exclusive<'_>, ending: Ending) -> Result<(), String> {
    if server.persistence.phase() == Phase::Beginning && !ending.force {
        log::warn!("Writing initial AOF. Can't exit.");
        return Err("the log is being begun".into());
    }
    // What was being written is older, and must not take the place of what is written now.
    server.snapshots.cancel();
    let saves = ending
        .save
        .unwrap_or_else(|| !server.save_points().is_empty());
    // Half of the data would take the place of all of it.
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

/// Ends the server because it cannot go on. The text is what the program says at its end.
pub(crate) fn fail(server: &Durable, problem: String) {
    log::error!("{problem}");
    // The first problem is the one that counts.
    let _ = server.failure.set(problem);
    server.begin_shutdown();
}
