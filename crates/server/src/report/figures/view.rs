//! The state of a server at one moment, as far as finding it out is worth doing once for all figures.

use std::collections::HashMap;

use keyspace::Turn;

use crate::command::server::info;
use crate::command::server::overview::Overview;
use crate::server::Server;

/// See the module.
pub(crate) struct View<'v> {
    pub(super) server: &'static Server,
    pub(super) overview: Overview<'v>,
    /// Fields of INFO.
    pub(super) info: HashMap<String, f64>,
    pub(super) databases: Vec<DatabaseView>,
    /// The log, if there is one that takes writes.
    pub(super) log: Option<ferrite_log::Status>,
}

/// A database that was ever used.
pub(super) struct DatabaseView {
    pub(super) db: usize,
    pub(super) keys: usize,
    pub(super) expires: usize,
    /// Keys whose value is on the disk alone, and bytes of these values.
    pub(super) cold_keys: usize,
    pub(super) cold_bytes: usize,
}

impl<'v> View<'v> {
    /// Looks at everything; the turn was entered.
    pub(crate) fn gather(server: &'static Server, turn: &'v Turn<'static>) -> View<'v> {
        let overview = Overview::of(server, turn, sys::clock::realtime_ms());
        let databases = overview.databases().map(|(db, database)| {
            let (cold_keys, cold_bytes) = database.cold();
            DatabaseView {
                db,
                keys: database.len(),
                expires: database.volatile(),
                cold_keys,
                cold_bytes,
            }
        });
        View {
            server,
            databases: databases.collect(),
            info: info::numbers(&overview),
            log: server.persistence.status(),
            overview,
        }
    }
}
