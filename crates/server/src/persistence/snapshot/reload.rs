//! Saving and loading again in one go, for tests.

use std::path::Path;

use keyspace::Turn;

use super::file;
use super::load::{Duplicates, check, load};
use super::save::save_alone;
use crate::persistence::Durable;
use crate::persistence::{Persistence, Relief};
use crate::shared::gate::Closed;

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

/// Does it. Data is as before if the file is wrong.
///
/// # Errors
/// What went wrong.
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

/// Whether what is there and what comes have room in memory together.
fn has_room_for_both(server: &Durable, turn: &mut Turn<'_>) -> bool {
    let bytes = turn.exclusive(|alone| {
        let databases = server.keyspace.all(alone);
        let bytes = databases.map(|(_, database)| database.memory() + database.cold().1);
        bytes.sum::<usize>()
    });
    server.memory.has_room(bytes as u64)
}

/// Loads the file beside what is there.
fn add(
    server: &Durable,
    turn: &mut Turn<'_>,
    path: &Path,
    duplicates: Duplicates,
) -> Result<(), String> {
    turn.pause(|| {
        Persistence::begin_anew(server, false)?;
        let loaded = load(server, path, duplicates, Relief::new(server));
        // What was loaded stays, whatever follows.
        loaded.and(Persistence::complete_anew(server))
    })
}

/// Loads the file, and lets go of what is there when all of it is loaded.
fn exchange(
    server: &Durable,
    turn: &mut Turn<'_>,
    path: &Path,
    duplicates: Duplicates,
) -> Result<(), String> {
    let taken = turn.exclusive(|alone| server.keyspace.take_all(alone));
    if let Err(problem) = turn.pause(|| load(server, path, duplicates, None)) {
        // The log still has what is there.
        turn.exclusive(|alone| server.keyspace.put_back(alone, taken));
        return Err(problem);
    }
    turn.pause(|| {
        Persistence::begin_anew(server, true)?;
        Persistence::complete_anew(server)
    })
}

/// Lets go of what is there, and loads the file: one that was read to its end before.
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
        let loaded = load(server, path, duplicates, Relief::new(server));
        loaded.and(Persistence::complete_anew(server))
    })
}
