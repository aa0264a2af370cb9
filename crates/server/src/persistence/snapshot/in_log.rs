//! A large collection of an RDB file for which memory is short. Its leaves are written to the log
//! before a key gets it, and most of them leave memory.
//!
//! Compaction takes leaves without a key for garbage. So it is held off while a file is loaded.

use std::sync::Arc;

use ferrite_log::{Appender, DbId};
use keyspace::collection::any::Collection;
use keyspace::collection::build::Builder;
use keyspace::collection::cell::Cell;
use keyspace::collection::log::arriving::Arriving;
use keyspace::collection::log::ledger::Ledger;
use keyspace::collection::run::{Damage, Item};
use keyspace::{Detached, Kind, Type};

use crate::config::{Packed, Setting};
use crate::persistence::durable::Durable;
use crate::persistence::instances::write_leaf;
use crate::persistence::journal::tag_as;
use crate::persistence::options::directory;
use crate::persistence::replay::LoadMemory;
use crate::persistence::room_in_log::ensure_bytes;
use crate::persistence::tile_store::{ReplayMemory as _, ReplayStore};
use crate::persistence::tree_replay::waiting_bytes;

/// See the module.
pub(super) struct InLog<'s> {
    server: &'s Durable,
    arriving: Arriving,
    store: ReplayStore<'s>,
    kind: Kind,
    /// Bytes of the longest name or value; whether all names are integers.
    longest: usize,
    is_numeric: bool,
}

/// Part of the limit, one in so many, for a collection that moves from memory to the log.
const MOVING_SHARE: usize = 8;

/// Bytes of items from which on a collection counts as large.
pub(super) fn least_bytes(server: &Durable) -> usize {
    let limit = server.settings.int(Setting::MaxMemory).unsigned_abs();
    usize::try_from(waiting_bytes(limit)).unwrap_or(usize::MAX)
}

fn memory_of(server: &Durable) -> LoadMemory<'_> {
    let may_leave = true;
    LoadMemory { server, may_leave }
}

/// Bytes that a collection of [`least_bytes`] takes more while it goes to the log.
pub(super) fn moving_bytes(server: &Durable) -> usize {
    let limit = server.settings.int(Setting::MaxMemory).unsigned_abs();
    usize::try_from(limit).unwrap_or(usize::MAX) / MOVING_SHARE
}

/// Whether memory is short. As long as it is not, a collection is made in memory, which is faster.
pub(super) fn is_needed(server: &Durable) -> bool {
    memory_of(server).is_short(moving_bytes(server))
}

/// The message about items that make no sense.
fn message(damage: Damage) -> String {
    match damage {
        Damage::Twice => "an item is there twice".into(),
        other => format!("its items make no sense ({other:?})"),
    }
}

impl<'s> InLog<'s> {
    /// Goes on with what a builder has of the collection of a key.
    pub(super) fn new(
        server: &'s Durable,
        key: &[u8],
        builder: Builder,
    ) -> Result<InLog<'s>, String> {
        let most = least_bytes(server);
        let memory = Box::new(memory_of(server));
        let store = ReplayStore::new(directory(server), None, most as u64, memory);
        let (kind, longest, is_numeric) = (builder.kind(), builder.longest(), builder.is_numeric());
        let keyspace = &server.keyspace;
        let arriving = keyspace.arriving(builder, key, most, &mut store.of(0));
        Ok(InLog {
            server,
            arriving: arriving.map_err(message)?,
            store,
            kind,
            longest,
            is_numeric,
        })
    }

    pub(super) fn push(&mut self, item: &Item<'_>) -> Result<(), String> {
        let value = item.value.filter(|_| self.kind == Kind::Hash);
        let lengths = [Some(item.name), value].map(|cell| cell.map_or(0, Cell::text_len));
        self.longest = lengths.into_iter().fold(self.longest, usize::max);
        self.is_numeric &= matches!(item.name, Cell::Int(_));
        let pushed = self.arriving.push(item, &mut self.store.of(0));
        pushed.map_err(message)
    }

    /// Sets an item of a stream in the place of the one of its name, which came before.
    pub(super) fn replace(&mut self, item: &Item<'_>) {
        self.arriving.replace(item);
    }

    /// The collection, for a key of a database; none if it has no items.
    pub(super) fn finish(self, db: DbId, expiry: Option<i64>) -> Result<Option<Detached>, String> {
        let (server, kind, items) = (self.server, self.kind, self.arriving.len());
        let form = Packed::form_of_items(
            &server.settings,
            kind,
            (items, self.longest),
            self.is_numeric,
        );
        let of = Type { form, kind };
        let mut appender = server.persistence.appender()?;
        let instance = server.persistence.instances.fresh();
        let tag = tag_as(of, false, true);
        let mut refusal = None;
        let mut write = |contents: &[u8]| {
            let bytes = Appender::leaf_bytes(contents.len());
            match ensure_bytes(server, &mut appender, bytes) {
                Ok(()) => {
                    let base = write_leaf(&mut appender, db, instance, tag, contents);
                    appender.commit();
                    Some(base)
                }
                Err(problem) => {
                    refusal.get_or_insert(problem);
                    None
                }
            }
        };
        let store = &mut self.store.of(instance);
        let finished = self.arriving.finish(store, &mut write);
        // What could not be read is missing, and makes no sense then.
        if let Some(problem) = refusal.or_else(|| self.store.problem()) {
            return Err(problem);
        }
        let finished = finished.map_err(message)?;
        let collection = finished.ok_or("the log has refused a leaf")?;
        own(server, &collection, db, instance);
        Ok((items > 0).then(|| Detached::tree(collection, of, expiry)))
    }
}

/// Makes a collection whose leaves are written an instance of the log.
fn own(server: &Durable, collection: &Collection, db: DbId, instance: u64) {
    let ledger: Arc<dyn Ledger> = server.persistence.instances.clone();
    collection.logged().begin(instance, db.0, &ledger);
    let leaves = collection.cold_leaves();
    if leaves == 0 {
        return;
    }
    ledger.cold(leaves as i64, collection.cold_bytes().cast_signed());
    if !server.offload.is_offloading() {
        let alone = server.keyspace.turns().exclusive();
        server.begin_offloading(&alone);
    }
}
