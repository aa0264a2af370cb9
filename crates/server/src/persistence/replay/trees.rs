//! Records of instances, and the trees that keys get after the last record.

use std::sync::Arc;

use ferrite_log::{Appender, Change, DbId, Record, Value};
use keyspace::collection::log::ledger::{Descriptor, Ledger};
use keyspace::collection::run::Damage;
use keyspace::{Guard, Key, New};
use parking_lot::Mutex;

use super::{BEFORE_ALL, Loader, note};
use crate::limits::NAMED_KEYS;
use crate::persistence::instances::write_leaf;
use crate::persistence::journal::type_of;
use crate::persistence::tree_replay::{Claim, InInbox, Rebuilt, message};

/// Values of a shard that are looked at for each tree that comes into it.
const FILL_LOOKS: usize = 4;

impl Loader {
    /// Applies a record of an instance.
    pub(super) fn apply_to_instance(&self, record: &Record<'_>) {
        let instance = record.instance().expect("the record is of an instance");
        self.server.persistence.instances.see(instance);
        let (Change::Leaf { bytes, tag, .. } | Change::Edit { bytes, tag, .. }) = record.change
        else {
            unreachable!("a record of an instance is a leaf or an edit");
        };
        let read;
        let bytes = match bytes {
            Value::Bytes(bytes) => bytes,
            Value::Stored(len) => {
                match self.reader.read(record.lsn, record.key, len) {
                    Ok(Some(bytes)) => read = bytes,
                    Ok(None) | Err(_) => {
                        let lsn = record.lsn;
                        return self.give_up(format!(
                            "cannot load the log: the record at {lsn} cannot be read"
                        ));
                    }
                }
                &read
            }
            Value::Blob(_) => unreachable!("a record of an instance has no file"),
        };
        self.trees.put(record, instance, tag, bytes);
    }

    /// Notes a record of an instance that makes no sense.
    fn note_damage(&self, record: InInbox, damage: Damage) {
        let its = (record.db, record.instance, record.tag);
        self.lacking.lock().push(its);
        self.give_up(message(record.lsn, damage));
    }

    /// Applies some of the records of instances that wait.
    pub(super) fn apply_some_to_instances(&self) {
        let damage = &mut |record, damage| self.note_damage(record, damage);
        self.trees.apply_some(&self.server.keyspace, damage);
    }

    /// Does something on as many threads as there are workers.
    fn on_all_threads(&self, work: impl Fn() + Sync) {
        std::thread::scope(|scope| {
            for _ in 1..self.server.workers.len() {
                scope.spawn(&work);
            }
            work();
        });
    }

    /// Applies all records of instances that wait: there are no others. Whether all of them make sense.
    pub(super) fn settle_instances(&self) -> bool {
        self.on_all_threads(|| {
            let damage = &mut |record, damage| self.note_damage(record, damage);
            self.trees.apply_all(&self.server.keyspace, damage);
        });
        self.problem.lock().is_none()
    }

    /// The value of a key that names an instance: a tree without items.
    pub(super) fn unfilled(&self, record: &Record<'_>, hash: u64) -> Option<New<'static>> {
        let Change::Set { tag, value, .. } = record.change else {
            return None;
        };
        let descriptor = match value {
            Value::Bytes(bytes) => Descriptor::read(bytes),
            Value::Stored(len) => {
                let read = self.reader.read(record.lsn, record.key, len);
                let bytes = read.ok().flatten();
                bytes.and_then(|bytes| Descriptor::read(&bytes))
            }
            Value::Blob(_) => None,
        };
        let Some(descriptor) = descriptor else {
            self.give_up(message(record.lsn, Damage::Length));
            return None;
        };
        let instance = descriptor.instance;
        self.server.persistence.instances.see(instance);
        self.trees.claim(Claim {
            instance,
            tag,
            id: record.db,
            db: self.number(record.db)?,
            hash,
            name: record.key.into(),
        });
        Some(New::unfilled(type_of(tag).kind, descriptor, record.db.0))
    }

    /// Gives the trees to their keys, after the last record.
    pub(super) fn fill_trees(&self) -> Unfilled {
        let claims = Mutex::new(self.trees.claims().into_iter());
        let outcome = Mutex::new(Unfilled::default());
        self.on_all_threads(|| self.fill_some(&claims, &outcome, None));
        let mut outcome = outcome.into_inner();
        for claims in [&mut outcome.lacking, &mut outcome.gone] {
            claims.sort_by(|one: &Claim, other| (one.db, &one.name).cmp(&(other.db, &other.name)));
        }
        let Unfilled { lacking, gone, .. } = &outcome;
        if !gone.is_empty() {
            log::warn!(
                "a repair of the log has found damaged parts of these keys, which are gone: {}",
                names(gone)
            );
        }
        if !lacking.is_empty() {
            self.give_up(format!(
                "cannot load the log: these keys lack parts: {}; ferrite-server --repair-log deletes them",
                names(lacking)
            ));
            let noted = lacking.iter().map(|its| (its.id, its.instance, its.tag));
            self.lacking.lock().extend(noted);
        }
        outcome
    }

    /// Gives trees to their keys. With `appender` the leaves that were spilled are written to the log.
    pub(super) fn fill_some(
        &self,
        claims: &Mutex<impl Iterator<Item = Claim>>,
        outcome: &Mutex<Unfilled>,
        mut appender: Option<&mut Appender>,
    ) {
        let keyspace = &self.server.keyspace;
        let mut turn = keyspace.turns().register();
        loop {
            let claim = claims.lock().next();
            let Some(claim) = claim else { return };
            self.trees.make_room();
            turn.enter();
            let database = keyspace.database(&turn, claim.db);
            let mut guard = database.lock(claim.hash, BEFORE_ALL);
            let whole = self.fill(&mut guard, &claim, appender.as_deref_mut());
            self.relieve(&mut guard, FILL_LOOKS);
            drop(guard);
            turn.leave();
            match whole {
                Some(Rebuilt::Lacking) => outcome.lock().lacking.push(claim),
                Some(Rebuilt::Gone) => outcome.lock().gone.push(claim),
                Some(Rebuilt::Large) => outcome.lock().large.push(claim),
                Some(Rebuilt::Tree(_)) | None => {}
            }
        }
    }

    /// Gives a tree to the key that names it, if it still does. Returns what was there of the tree otherwise.
    fn fill(
        &self,
        guard: &mut Guard<'_>,
        claim: &Claim,
        appender: Option<&mut Appender>,
    ) -> Option<Rebuilt> {
        let key = Key {
            bytes: &claim.name,
            hash: claim.hash,
        };
        let instances = &self.server.persistence.instances;
        let mut entry = guard.find(key)?;
        let unfilled = entry.tree()?;
        let descriptor = unfilled.descriptor()?;
        if descriptor.instance != claim.instance || unfilled.count() > 0 {
            return None;
        }
        let (_, db) = unfilled.logged().place()?;
        let (instance, kind, seed) = (claim.instance, unfilled.kind(), descriptor.seed);
        let rebuilt = match appender {
            None => self.trees.take(instance, kind, seed, None),
            Some(appender) => {
                let write = &mut |contents: &[u8]| {
                    let bytes = Appender::leaf_bytes(contents.len());
                    appender.ensure(bytes).ok()?;
                    let base = write_leaf(appender, DbId(db), instance, claim.tag, contents);
                    appender.commit();
                    Some(base)
                };
                self.trees.take(instance, kind, seed, Some(write))
            }
        };
        match rebuilt {
            Rebuilt::Tree(tree) => {
                let ledger: Arc<dyn Ledger> = instances.clone();
                tree.logged().begin(instance, db, &ledger);
                instances.own(instance, key);
                if tree.cold_leaves() > 0 {
                    ledger.cold(tree.cold_leaves() as i64, tree.cold_bytes().cast_signed());
                    note(&self.has_left);
                }
                entry.fill_tree(*tree);
                None
            }
            Rebuilt::Gone => {
                entry.remove();
                Some(Rebuilt::Gone)
            }
            other => Some(other),
        }
    }
}

/// Keys that have not got their tree.
#[derive(Default)]
pub(super) struct Unfilled {
    /// Their tree lacks something.
    lacking: Vec<Claim>,
    /// A repair has taken their tree. They are gone.
    pub(super) gone: Vec<Claim>,
    /// Parts of their tree are in the spill file, until the log takes records.
    pub(super) large: Vec<Claim>,
}

/// The names of some keys, for a message.
fn names(claims: &[Claim]) -> String {
    let name = |its: &Claim| format!("\"{}\" in database {}", its.name.escape_ascii(), its.db);
    let mut names: Vec<String> = claims.iter().take(NAMED_KEYS).map(name).collect();
    if claims.len() > NAMED_KEYS {
        names.push(format!("and {} others", claims.len() - NAMED_KEYS));
    }
    names.join(", ")
}
