//! The state of a server at one moment, as far as finding it out is worth doing once for all figures.

use std::sync::atomic::Ordering::Relaxed;

use keyspace::Turn;

use crate::command::server::info_sections::databases_of;
use crate::command::server::memory_figures::MemoryFigures;
use crate::server::Server;
use crate::shared::clients::status;

/// See the module.
pub(crate) struct View<'v> {
    pub(super) server: &'static Server,
    /// When it was looked at (Unix, ms).
    pub(super) now: i64,
    pub(super) memory: MemoryFigures,
    pub(super) databases: Vec<DatabaseView>,
    pub(super) clients: ClientsView,
    /// The log, if there is one that takes writes.
    pub(super) log: Option<ferrite_log::Status>,
    /// The turn it was gathered in has not ended.
    _turn: std::marker::PhantomData<&'v ()>,
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

/// What the connected clients do.
#[derive(Default)]
pub(super) struct ClientsView {
    pub(super) connected: u64,
    pub(super) blocked: u64,
    pub(super) watching: u64,
    pub(super) subscribed: u64,
}

impl<'v> View<'v> {
    /// Looks at everything; the turn was entered.
    pub(crate) fn gather(server: &'static Server, turn: &'v Turn<'static>) -> View<'v> {
        let now = sys::clock::realtime_ms();
        let databases = databases_of(&server.keyspace, turn).map(|(db, database)| {
            let (cold_keys, cold_bytes) = database.cold();
            DatabaseView {
                db,
                keys: database.len(),
                expires: database.volatile(),
                cold_keys,
                cold_bytes,
            }
        });
        let mut clients = ClientsView::default();
        server.clients.for_each(|client| {
            clients.connected += 1;
            clients.blocked += u64::from(client.has_status(status::BLOCKED));
            clients.watching += u64::from(client.watched.load(Relaxed) > 0);
            clients.subscribed += u64::from(client.has_status(status::PUBSUB));
        });
        View {
            server,
            now,
            memory: MemoryFigures::of(server, turn, now),
            databases: databases.collect(),
            clients,
            log: server.persistence.status(),
            _turn: std::marker::PhantomData,
        }
    }
}
