//! The server at one moment, as INFO, /metrics and the dashboard read it.

use std::cell::OnceCell;

use keyspace::{Database, Keyspace, Turn};

use super::memory_figures::MemoryFigures;
use crate::server::Server;

/// See the module.
pub(crate) struct Overview<'v> {
    pub(crate) server: &'static Server,
    /// The turn was entered.
    turn: &'v Turn<'static>,
    /// Unix, ms.
    pub(crate) now: i64,
    memory: OnceCell<MemoryFigures>,
}

impl<'v> Overview<'v> {
    pub(crate) fn of(server: &'static Server, turn: &'v Turn<'static>, now: i64) -> Overview<'v> {
        Overview {
            server,
            turn,
            now,
            memory: OnceCell::new(),
        }
    }

    /// Figures of memory, all of one moment: their parts add up.
    pub(crate) fn memory(&self) -> &MemoryFigures {
        let gather = || MemoryFigures::of(self.server, self.turn, self.now);
        self.memory.get_or_init(gather)
    }

    /// Databases that were ever used.
    pub(crate) fn databases(
        &self,
    ) -> impl Iterator<Item = (usize, &'v Database)> + Clone + use<'v> {
        databases_of(&self.server.keyspace, self.turn)
    }
}

/// Databases of a keyspace that were ever used.
pub(crate) fn databases_of<'a>(
    keyspace: &'a Keyspace,
    turn: &'a Turn<'_>,
) -> impl Iterator<Item = (usize, &'a Database)> + Clone + use<'a> {
    (0..keyspace.databases()).filter_map(move |db| Some((db, keyspace.existing(turn, db)?)))
}
