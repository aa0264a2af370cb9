//! DEBUG LOADAOF: drops all data of a running server and loads it from the log.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use ferrite_log::{Error, Log, Recovery};

use super::durable::Durable;
use super::options::{directory, log_options};
use super::start::{Imports, load};
use super::state::{Persistence, Phase};
use super::switch::alone_with_log;
use crate::limits::{AGAIN_PATIENCE, AGAIN_RETRY};
use crate::observe::Alone;
use crate::shared::gate::Closed;

/// Reason why the data was not loaded.
pub(crate) enum AgainError {
    /// Data is being loaded already.
    Loading,
    /// There is no log, or it is being switched on or off. Data is unchanged.
    NoLog,
    /// Data is lost. The server stops.
    Failed,
}

impl Persistence {
    /// Drops all data and loads it from the log. Called outside of any turn. Takes as long as a start;
    /// commands get `LOADING` meanwhile.
    ///
    /// # Errors
    /// See [`AgainError`].
    pub(crate) fn load_again(server: &'static Durable) -> Result<(), AgainError> {
        let own = &server.persistence;
        own.enter_phase(Phase::Ending)
            .map_err(|_| AgainError::NoLog)?;
        let done = if own.is_open() {
            again(server)
        } else {
            Err(AgainError::NoLog)
        };
        own.settle();
        done
    }
}

fn again(server: &'static Durable) -> Result<(), AgainError> {
    let alone = alone_with_log(server, || Some(server.keyspace.turns().exclusive()))
        .map_err(|_| AgainError::NoLog)?;
    if server.is_loading() {
        return Err(AgainError::Loading);
    }
    server.gate.set(Closed::Loading, true);
    server.observers.tracking.flushed(server);
    server.persistence.current.store(0, Relaxed);
    drop(alone);
    server.wake_workers();
    let loaded = server
        .persistence
        .close()
        .and_then(|()| empty(server))
        .and_then(|()| open_again(server))
        .and_then(|recovery| load(server, recovery, Imports::Nothing));
    if let Err(problem) = loaded {
        super::ending::fail(server, problem);
        return Err(AgainError::Failed);
    }
    watch_over_all(server);
    log::warn!("Append Only File loaded by DEBUG LOADAOF");
    Ok(())
}

/// Drops all entries and waits until they are freed: an address reported dead by one of them later would be
/// taken for an address of the new log.
fn empty(server: &Durable) -> Result<(), String> {
    let alone = server.keyspace.turns().exclusive();
    let taken = server.keyspace.take_all(&alone);
    server.persistence.libraries.clear(&mut |_, _| {});
    drop(alone);
    drop(taken);
    server.wait_for_reclaims()
}

impl Durable {
    /// Waits until dropped data is freed and its memory returned to the system.
    ///
    /// # Errors
    /// The server is stopping.
    pub(crate) fn wait_for_reclaims(&self) -> Result<(), String> {
        while self.keyspace.pending_reclaims() > 0 {
            if self.is_shutting_down() {
                return Err("the server ends".into());
            }
            std::thread::sleep(AGAIN_RETRY);
        }
        // Other threads load the data: their allocations don't reuse all of this memory.
        self.memory.purge_if_much();
        Ok(())
    }
}

/// Opens the log. Its lock is held until the last worker has noticed that it was closed.
fn open_again(server: &Durable) -> Result<Recovery, String> {
    let (mut waited, directory) = (Duration::ZERO, directory(server));
    loop {
        let disk = server.persistence.disk.clone();
        match Log::open(disk, &directory, log_options(server)) {
            Err(Error::Locked { .. }) if waited < AGAIN_PATIENCE && !server.is_shutting_down() => {
                server.wake_workers();
                std::thread::sleep(AGAIN_RETRY);
                waited += AGAIN_RETRY;
            }
            opened => return opened.map_err(|error| format!("cannot open the log: {error}")),
        }
    }
}

/// Marks the observed shards again.
fn watch_over_all(server: &'static Durable) {
    let mut turn = server.keyspace.turns().register();
    turn.enter();
    turn.begin_alone();
    let alone = Alone {
        keyspace: &server.keyspace,
        turn: &turn,
        now: sys::clock::realtime_ms(),
    };
    for db in 0..server.keyspace.databases() {
        server.observers.after_replacement(alone, db);
    }
    turn.end_alone();
    turn.leave();
}
