//! DEBUG LOADAOF: all data goes, and comes back from the log, on a running server.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use ferrite_log::{Error, Log, Recovery};

use super::switch::alone_with_log;
use super::{Imports, Persistence, Phase, directory, load, log_options};
use crate::limits::{AGAIN_PATIENCE, AGAIN_RETRY};
use crate::observe::Alone;
use crate::persistence::Durable;
use crate::shared::gate::Closed;

/// Why it was not done.
pub(crate) enum AgainError {
    /// Data is being loaded already.
    Loading,
    /// There is no log, or it is being begun or ended. Data is as before.
    NoLog,
    /// Data is gone. The server ends.
    Failed,
}

impl Persistence {
    /// Does it. Called outside of any turn; takes as long as a start does, and is one to everybody else.
    ///
    /// # Errors
    /// Why not.
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

/// Lets all entries go, and waits until they are gone: an address that one of them tells of afterwards would
/// be taken for a newer one's.
fn empty(server: &Durable) -> Result<(), String> {
    let alone = server.keyspace.turns().exclusive();
    let taken = server.keyspace.take_all(&alone);
    drop(alone);
    drop(taken);
    server.wait_for_reclaims()
}

impl Durable {
    /// Waits until what was let go of is gone, and its memory is the system's.
    ///
    /// # Errors
    /// The server ends.
    pub(crate) fn wait_for_reclaims(&self) -> Result<(), String> {
        while self.keyspace.pending_reclaims() > 0 {
            if self.is_shutting_down() {
                return Err("the server ends".into());
            }
            std::thread::sleep(AGAIN_RETRY);
        }
        // What is loaded now is not made by the threads that had this.
        self.memory.purge_if_much();
        Ok(())
    }
}

/// Opens the log. It is locked until the last worker has noticed that it was closed.
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

/// Who observes keys does so from here on as well.
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
