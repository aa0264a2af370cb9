//! Saving and loading again in one go, for tests.

use keyspace::Turn;

use super::file;
use super::load::{Duplicates, load};
use super::save::save_alone;
use crate::gate::Closed;
use crate::persistence::Persistence;
use crate::server::Server;

/// What is to be done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reload {
    /// Whether data is saved before.
    pub(crate) saves: bool,
    /// Whether data is thrown away before the file is loaded.
    pub(crate) flushes: bool,
    pub(crate) duplicates: Duplicates,
}

/// Why it was not done; the log says more.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ReloadError {
    /// Data is being loaded already.
    Loading,
    Save,
    Load,
}

/// Does it. Data is as before if it cannot be loaded.
///
/// # Errors
/// What went wrong.
pub(crate) fn reload(
    server: &Server,
    turn: &mut Turn<'_>,
    reload: Reload,
) -> Result<(), ReloadError> {
    let taken = turn.exclusive(|alone| {
        if server.is_loading() {
            return Err(ReloadError::Loading);
        }
        if reload.saves {
            server.snapshots.cancel();
            save_alone(server, alone, sys::clock::realtime_ms()).map_err(|error| {
                log::error!("DEBUG RELOAD cannot save: {error}");
                ReloadError::Save
            })?;
            server.snapshots.note_saved_alone(server);
        }
        server.gate.set(Closed::Loading, true);
        server.observers.tracking.flushed(server);
        Ok(reload.flushes.then(|| server.keyspace.take_all(alone)))
    })?;
    let loaded = turn.pause(|| match file::path(&server.settings) {
        Some(path) => load(server, &path, reload.duplicates),
        None => Err("'dbfilename' is empty".into()),
    });
    if loaded.is_err()
        && let Some(taken) = taken
    {
        turn.exclusive(|alone| server.keyspace.put_back(alone, taken));
    }
    let logged = turn.pause(|| Persistence::log_anew(server, reload.flushes));
    server.gate.set(Closed::Loading, false);
    loaded.and(logged).map_err(|problem| {
        log::error!("DEBUG RELOAD cannot load: {problem}");
        ReloadError::Load
    })
}
