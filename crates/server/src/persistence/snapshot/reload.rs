//! DEBUG RELOAD: saves and loads all data, for tests.

use std::path::Path;

use keyspace::Turn;

use super::file;
use super::load::{Duplicates, check, load};
use super::save::save_alone;
use crate::persistence::durable::Durable;
use crate::persistence::relief::Relief;
use crate::persistence::state::Persistence;
use crate::script::Existing;
use crate::shared::gate::Closed;

/// Options of a reload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reload {
    /// Whether data is saved first.
    pub(crate) saves: bool,
    /// Whether data is dropped before the file is loaded.
    pub(crate) flushes: bool,
    pub(crate) duplicates: Duplicates,
}

/// Reason of a failure; the messages have details.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ReloadError {
    /// Data is being loaded already.
    Loading,
    Save,
    Load,
}

/// Reloads all data. An invalid file leaves it unchanged.
///
/// # Errors
/// See [`ReloadError`].
pub(crate) fn reload(
    server: &Durable,
    turn: &mut Turn<'_>,
    reload: Reload,
) -> Result<(), ReloadError> {
    turn.exclusive(|alone| {
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
        Ok(())
    })?;
    let loaded = match file::path(&server.settings) {
        None => Err("'dbfilename' is empty".into()),
        Some(path) if !reload.flushes => add(server, turn, &path, reload.duplicates),
        Some(path) if has_room_for_both(server, turn) => {
            exchange(server, turn, &path, reload.duplicates)
        }
        Some(path) => replace(server, turn, &path, reload.duplicates),
    };
    server.gate.set(Closed::Loading, false);
    loaded.map_err(|problem| {
        log::error!("DEBUG RELOAD cannot load: {problem}");
        ReloadError::Load
    })
}

/// Whether memory has room for the old and the new data together.
fn has_room_for_both(server: &Durable, turn: &mut Turn<'_>) -> bool {
    let bytes = turn.exclusive(|alone| {
        let databases = server.keyspace.all(alone);
        let bytes = databases.map(|(_, database)| database.memory() + database.cold().1);
        bytes.sum::<usize>()
    });
    server.memory.has_room(bytes as u64)
}

/// Loads the file in addition to the present data.
fn add(
    server: &Durable,
    turn: &mut Turn<'_>,
    path: &Path,
    duplicates: Duplicates,
) -> Result<(), String> {
    turn.pause(|| {
        Persistence::begin_anew(server, false)?;
        let loaded = load(
            server,
            path,
            duplicates,
            Existing::Replaced,
            Relief::new(server),
        );
        // Loaded data stays, whatever follows.
        loaded.and(Persistence::complete_anew(server))
    })
}

/// Loads the file, and drops the old data when it is loaded completely.
fn exchange(
    server: &Durable,
    turn: &mut Turn<'_>,
    path: &Path,
    duplicates: Duplicates,
) -> Result<(), String> {
    let taken = turn.exclusive(|alone| server.keyspace.take_all(alone));
    if let Err(problem) = turn.pause(|| load(server, path, duplicates, Existing::Removed, None)) {
        // The log still has the old data.
        turn.exclusive(|alone| server.keyspace.put_back(alone, taken));
        return Err(problem);
    }
    turn.pause(|| {
        Persistence::begin_anew(server, true)?;
        Persistence::complete_anew(server)
    })
}

/// Drops the old data, then loads the file, which was checked to its end before.
fn replace(
    server: &Durable,
    turn: &mut Turn<'_>,
    path: &Path,
    duplicates: Duplicates,
) -> Result<(), String> {
    turn.pause(|| check(server, path))?;
    drop(turn.exclusive(|alone| server.keyspace.take_all(alone)));
    turn.pause(|| {
        server.wait_for_reclaims()?;
        Persistence::begin_anew(server, true)?;
        let loaded = load(
            server,
            path,
            duplicates,
            Existing::Removed,
            Relief::new(server),
        );
        loaded.and(Persistence::complete_anew(server))
    })
}
