//! A collection of an RDB file that takes more memory than there is beside it. Its leaves are written to the
//! log before a key gets it, and most of them leave memory.
//!
//! Nobody owns the leaves until then, so compaction is held off while a file is loaded.

use std::sync::Arc;

use ferrite_log::{Appender, DbId};
use keyspace::collection::any::Collection;
use keyspace::collection::build::Builder;
use keyspace::collection::log::arriving::Arriving;
use keyspace::collection::log::ledger::Ledger;
use keyspace::collection::run::{Damage, Item};
use keyspace::{Detached, Form, Type};

use crate::config::{Packed, Setting};
use crate::persistence::Durable;
use crate::persistence::directory;
use crate::persistence::instances::write_leaf;
use crate::persistence::journal::tag_as;
use crate::persistence::replay::LoadMemory;
use crate::persistence::switch::ensure_bytes;
use crate::persistence::tile_store::{InstanceStore, ReplayStore};
use crate::persistence::tree_replay::waiting_bytes;

/// See the module.
pub(super) struct InLog<'s> {
    server: &'s Durable,
    arriving: Arriving,
    store: ReplayStore<'s>,
    of: Type,
    /// Bytes of the longest name or value; whether all names are integers; how many items came.
    longest: usize,
    is_numeric: bool,
    items: u64,
}

/// Bytes of items from which on a collection goes to the log.
pub(super) fn least_bytes(server: &Durable) -> usize {
    let limit = server.settings.int(Setting::MaxMemory).unsigned_abs();
    usize::try_from(waiting_bytes(limit)).unwrap_or(usize::MAX)
}

/// The message about items that make no sense.
fn message(damage: Damage) -> String {
    format!("a collection makes no sense ({damage:?})")
}

impl<'s> InLog<'s> {
    /// Goes on with what a builder has of the collection of a key.
    pub(super) fn new(
        server: &'s Durable,
        key: &[u8],
        builder: Builder,
    ) -> Result<InLog<'s>, String> {
        let most = least_bytes(server);
        let memory = LoadMemory {
            server,
            may_leave: true,
        };
        let store = ReplayStore::new(directory(server), None, most as u64, Box::new(memory));
        let (longest, is_numeric) = (builder.longest(), builder.is_numeric());
        let (kind, items) = (builder.kind(), builder.len());
        let keyspace = &server.keyspace;
        let arriving = keyspace.arriving(builder, key, most, &mut store.of(0));
        Ok(InLog {
            server,
            arriving: arriving.map_err(message)?,
            store,
            of: Type {
                kind,
                form: Form::Part,
            },
            longest,
            is_numeric,
            items,
        })
    }

    pub(super) fn push(&mut self, item: &Item<'_>) -> Result<(), String> {
        let value = item.value.filter(|_| !self.is_sorted_set());
        let lengths = [Some(item.name), value].into_iter().flatten();
        let longest = lengths.map(|cell| cell.text_len()).max();
        self.longest = self.longest.max(longest.unwrap_or(0));
        self.is_numeric &= matches!(item.name, keyspace::collection::cell::Cell::Int(_));
        self.items += 1;
        let mut store: InstanceStore<'_> = self.store.of(0);
        self.arriving.push(item, &mut store).map_err(message)?;
        self.store.problem().map_or(Ok(()), Err)
    }

    fn is_sorted_set(&self) -> bool {
        self.of.kind == keyspace::Kind::SortedSet
    }

    /// The collection, for a key of a database; none if it has no items.
    pub(super) fn finish(self, db: DbId, expiry: Option<i64>) -> Result<Option<Detached>, String> {
        let (server, kind) = (self.server, self.of.kind);
        let mut appender = server.persistence.appender()?;
        let instance = server.persistence.instances.fresh();
        let tag = tag_as(self.of, false, true);
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
        let finished = self
            .arriving
            .finish(&mut self.store.of(instance), &mut write);
        let finished = finished.map_err(message)?;
        if let Some(problem) = refusal.or_else(|| self.store.problem()) {
            return Err(problem);
        }
        let collection = finished.ok_or("the log has refused a leaf")?;
        if collection.count() != self.items {
            return Err("an item is there twice".into());
        }
        own(server, &collection, db, instance);
        let (items, longest) = (self.items, self.longest);
        let form = Packed::form_of_items(&server.settings, kind, (items, longest), self.is_numeric);
        let of = Type { form, kind };
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
