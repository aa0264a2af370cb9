//! Journal: a worker's access to the log. Changes reported by [`crate::store`] become records.
//!
//! A record is appended while the shard of its key is locked, so for every key the order of the log is the
//! order of execution. A change is logged as its result: the whole value, a new expiry, or the deletion.
//! Records of a command on several keys, which a crash must not separate, are a *batch*: while its shards are
//! locked only the changed keys are collected, and at its end the state of each goes into the log together. A
//! transaction is a batch too. The databases that it empties or exchanges come first, then its keys with
//! their final state.
//!
//! Expiry of a key is not logged; the keyspace reports it ([`crate::persistence`]).
//!
//! Invariants, whenever a shard is unlocked:
//! 1. Every entry has the address of the record that holds its value; none is [`LogAddress::PENDING`]. Except
//!    while a log is begun on a server that has data ([`crate::persistence`]), none is
//!    [`LogAddress::NOWHERE`].
//! 2. Every record whose address an entry has lost was reported to the log as dead, once.

mod batches;
mod libraries;
mod offloading;
mod replaced;
mod trees;

pub(super) use libraries::{LIBRARY_TAG, log_libraries, place, replaced};
pub(crate) use replaced::Replaced;
pub(crate) use trees::with_value;

use std::cell::{Cell, RefCell};
use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};

use ferrite_log::{Address, Appender, Blob, DbId, Lsn, Rebind, Refusal, Tag};
use keyspace::collection::log::edits::Edits;
use keyspace::{
    ColdValue, EntryMut, EntryRef, Form, Guard, Key, Kind, LogAddress, Overwritten, Type,
};

use super::instances::Instances;
use super::state::Persistence;
use crate::limits::{JOURNAL_BATCH_BYTES, PATCH_MIN_BYTES, PATCH_SHARE};
use crate::script::{Libraries, Recorded};
use batches::Noted;
use libraries::ChangedLibrary;

/// A worker's access to the log.
pub(crate) struct Journal {
    inner: RefCell<Inner>,
    /// On a nearly full disk: whether there is room for the records of requests that remove keys.
    may_remove: Cell<bool>,
    /// Log ids of the databases, by number.
    ids: &'static [AtomicU16],
    instances: Arc<Instances>,
    libraries: &'static Libraries,
    /// Memory for the edits of a command.
    edits: Cell<Edits>,
}

struct Inner {
    appender: Appender,
    /// End of the records that earlier turns have appended.
    answered: Lsn,
    /// Whether a transaction runs. The batches of its commands join its own.
    in_transaction: bool,
    mode: Mode,
    /// Changes of the current batch, and the bytes of their keys and edits.
    changes: Vec<Noted>,
    keys: Vec<u8>,
    /// Whether the batch has changed a tree whose leaves may not be in the log.
    has_trees: bool,
    /// Databases that the transaction has emptied or exchanged.
    rebinds: Vec<Rebind>,
    /// Libraries that the batch has changed.
    libraries: Vec<ChangedLibrary>,
    /// Bytes left for writing values whole before they leave memory, and bytes that the next such value
    /// needs.
    relog_left: u64,
    relog_bytes: u64,
}

/// How changes are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// As records.
    Single,
    /// At the end of a batch.
    Batch,
    /// As the next record of a batch with known sizes; all are sets.
    Series,
}

/// Shards that a batch holds.
pub(crate) trait Held {
    /// Calls `visit` with the shard of a key (by its hash) in a database.
    fn with(&mut self, db: usize, hash: u64, visit: &mut dyn FnMut(&mut Guard<'_>));
}

/// Changes of one key. Out of line, so that they cost a server without a log one comparison.
impl Journal {
    /// Logs a new entry, or a new value in place of `old`. Returns the address for the entry.
    #[inline]
    pub(crate) fn wrote(
        &self,
        db: usize,
        key: Key<'_>,
        entry: EntryRef<'_>,
        old: Option<Overwritten>,
    ) -> LogAddress {
        if entry.is_tree() {
            return self.wrote_tree(db, key, entry, old);
        }
        let mut inner = self.inner.borrow_mut();
        let id = self.id(db);
        let (tag, value) = (tag_of(entry), entry.value());
        let address = match inner.mode {
            Mode::Single => {
                let expiry = entry.expiry();
                inner
                    .appender
                    .set(id, key.bytes, tag, expiry, value.bytes())
            }
            Mode::Series => inner
                .appender
                .set_in_series(id, key.bytes, tag, value.bytes()),
            Mode::Batch => {
                inner.note(id, key, old);
                return LogAddress::PENDING;
            }
        };
        inner.mark_dead(key.bytes.len(), Replaced::of(old));
        stored(address)
    }

    /// Logs a new entry, or a new value in place of `old`, with a file of its own.
    pub(crate) fn wrote_blob(
        &self,
        db: usize,
        key: Key<'_>,
        entry: EntryRef<'_>,
        old: Option<Overwritten>,
        blob: &Arc<Blob>,
    ) -> LogAddress {
        let mut inner = self.inner.borrow_mut();
        let id = self.id(db);
        if inner.is_batching() {
            assert!(
                old.is_none_or(|old| old.address != LogAddress::PENDING),
                "a key gets one large value in a batch"
            );
            inner.note_with(id, key, old, Some(Arc::clone(blob)));
            return LogAddress::PENDING;
        }
        let (tag, expiry) = (tag_of(entry), entry.expiry());
        let address = inner.appender.set_blob(id, key.bytes, tag, expiry, blob);
        inner.mark_dead(key.bytes.len(), Replaced::of(old));
        stored(address)
    }

    /// The file of a value, if it has one.
    pub(crate) fn blob_of(&self, value: ColdValue) -> Option<Arc<Blob>> {
        let address = Address::from_bits(value.address.0.get())?;
        self.inner.borrow().appender.blob_at(address)
    }

    /// Whether the file of a value belongs to this log.
    pub(crate) fn has_made(&self, blob: &Blob) -> bool {
        self.inner.borrow().appender.has_made(blob)
    }

    /// Logs a change of a part of a value, or its growth.
    #[inline(never)]
    pub(crate) fn patched(
        &self,
        entry: &mut EntryMut<'_, '_>,
        old: Option<Overwritten>,
        part: Range<usize>,
    ) {
        let (key, view, db) = (entry.key(), entry.as_ref(), entry.database());
        let total = entry.value_len();
        let base = Replaced::of(old).map(|old| old.address);
        let is_worth_it = total >= PATCH_MIN_BYTES && part.len() < total / PATCH_SHARE;
        let mut inner = self.inner.borrow_mut();
        let address = match base {
            // A file can't be patched: the rest of the record would be as long as the whole.
            Some(base) if is_worth_it && !base.is_blob() && !inner.is_batching() => {
                let (tag, bytes) = (tag_of(view), &view.value().bytes()[part.clone()]);
                let (offset, total) = (part.start as u64, total as u64);
                let id = self.id(db);
                inner
                    .appender
                    .patch(id, key.bytes, tag, offset, total, bytes);
                stored(base.patched())
            }
            _ => {
                drop(inner);
                self.wrote(db, key, view, old)
            }
        };
        entry.set_log_address(address);
    }

    /// Logs a new expiry.
    #[inline(never)]
    pub(crate) fn rescheduled(&self, entry: &mut EntryMut<'_, '_>) {
        let db = entry.database();
        let mut inner = self.inner.borrow_mut();
        let id = self.id(db);
        if inner.is_batching() {
            if entry.cold().is_some() {
                // The value keeps its record. Only the expiry is logged, at the end of the batch.
                return inner.note(id, entry.key(), None);
            }
            drop(inner);
            let address = self.wrote(db, entry.key(), entry.as_ref(), entry.overwritten());
            return entry.set_log_address(address);
        }
        inner.appender.expire(id, entry.key().bytes, entry.expiry());
    }

    /// Logs the deletion of an entry, under the lock that removes it.
    #[inline(never)]
    pub(crate) fn removed(&self, entry: &EntryMut<'_, '_>) {
        self.removed_after(entry, entry.overwritten());
    }

    /// [`Journal::removed`] of an entry that has changed since the log had `old` of it.
    pub(crate) fn removed_after(&self, entry: &EntryMut<'_, '_>, old: Option<Overwritten>) {
        let key = entry.key();
        let mut inner = self.inner.borrow_mut();
        let id = self.id(entry.database());
        if inner.is_batching() {
            return inner.note(id, key, old);
        }
        inner.appender.delete(id, key.bytes);
        inner.mark_dead(key.bytes.len(), Replaced::of(old));
    }
}

impl Journal {
    pub(crate) fn new(mut appender: Appender, persistence: &'static Persistence) -> Journal {
        Journal {
            inner: RefCell::new(Inner {
                answered: appender.commit(),
                appender,
                in_transaction: false,
                mode: Mode::Single,
                changes: Vec::new(),
                keys: Vec::new(),
                has_trees: false,
                rebinds: Vec::new(),
                libraries: Vec::new(),
                relog_left: 0,
                relog_bytes: 0,
            }),
            may_remove: Cell::new(false),
            ids: &persistence.ids,
            instances: Arc::clone(&persistence.instances),
            libraries: &persistence.libraries,
            edits: Cell::default(),
        }
    }

    fn id(&self, db: usize) -> DbId {
        DbId(self.ids[db].load(Relaxed))
    }

    /// Current number of a database.
    fn number(&self, id: DbId) -> usize {
        let is_it = |own: &AtomicU16| own.load(Relaxed) == id.0;
        let same = usize::from(id.0);
        if self.ids.get(same).is_some_and(is_it) {
            return same;
        }
        let number = self.ids.iter().position(is_it);
        number.expect("numbers and names of databases are one to one")
    }

    /// Reserves space for the records of requests with `bytes` bytes; see [`Appender::ensure`].
    pub(crate) fn ensure(&self, bytes: u64) -> Result<(), Refusal> {
        let mut inner = self.inner.borrow_mut();
        let most = inner.appender.window();
        inner.appender.ensure(bytes.min(most))
    }

    /// Whether a record of a key and a value of these lengths finds room without waiting for a disk that has
    /// no space; see [`Appender::may_append`].
    pub(crate) fn may_append(&self, key: usize, value: usize) -> bool {
        let inner = self.inner.borrow();
        inner.appender.may_append(Appender::bytes_of(key, value))
    }

    /// Reserves space for the records of requests that remove keys, on a nearly full disk. Called for each
    /// window of requests; [`Journal::may_remove`] is the result.
    #[cold]
    pub(crate) fn ensure_for_removal(&self, bytes: u64) {
        let room = self.inner.borrow_mut().appender.ensure_for_removal(bytes);
        self.may_remove.set(room.is_ok());
    }

    /// Whether requests of this window may remove keys although the log refuses other records.
    pub(crate) fn may_remove(&self) -> bool {
        self.may_remove.get()
    }

    /// Commits the appended records. Returns the position below which everything must be durable before
    /// replies are sent; `None` if they may be sent now. Before the thread sleeps it calls
    /// [`Journal::wake_when_durable`] or [`Journal::nudge`].
    pub(crate) fn commit(&self) -> Option<Lsn> {
        let mut inner = self.inner.borrow_mut();
        let end = inner.appender.commit_and_wait();
        let before = std::mem::replace(&mut inner.answered, end);
        if !inner.appender.is_synchronous() {
            return None;
        }
        // Reads continue when nothing can become durable. They may see the last writes, which were not
        // acknowledged.
        if end == before && inner.appender.is_refused() {
            return None;
        }
        // A value that was read may be another worker's, which has not committed it yet.
        let tail = inner.appender.tail();
        (tail > inner.appender.durable()).then_some(tail)
    }

    /// Commits the appended records before the end of a turn.
    pub(crate) fn flush(&self) {
        self.inner.borrow_mut().appender.commit();
    }

    /// See [`Appender::sync_here`].
    pub(crate) fn sync_here(&self) {
        self.inner.borrow_mut().appender.sync_here();
    }

    /// See [`Appender::nudge`].
    pub(crate) fn nudge(&self) {
        self.inner.borrow_mut().appender.nudge();
    }

    /// See [`Appender::wake_when_durable`].
    pub(crate) fn wake_when_durable(&self, lsn: Lsn) -> Result<bool, Refusal> {
        self.inner.borrow_mut().appender.wake_when_durable(lsn)
    }

    /// Position of the next record of any appender.
    pub(crate) fn tail(&self) -> Lsn {
        self.inner.borrow().appender.tail()
    }

    /// See [`Appender::want_sync`].
    pub(crate) fn want_sync(&self) {
        self.inner.borrow().appender.want_sync();
    }

    /// Position below which everything is durable.
    pub(crate) fn durable(&self) -> Lsn {
        self.inner.borrow().appender.durable()
    }

    /// Logs that databases were emptied, of `of` in all. No other worker is inside a turn.
    pub(crate) fn clear(&self, databases: &Range<usize>, of: usize) {
        if databases.len() == of {
            self.bind(&[Rebind::ClearAll]);
        } else {
            databases
                .clone()
                .for_each(|db| self.bind(&[Rebind::Clear(self.id(db))]));
        }
    }

    /// Logs that two databases were exchanged. No other worker is inside a turn.
    pub(crate) fn swap(&self, first: usize, second: usize) {
        let (one, two) = (self.id(first), self.id(second));
        self.bind(&[(first, two), (second, one)].map(|(db, id)| Rebind::Name {
            number: u16::try_from(db).expect("there are at most 65535 databases"),
            id,
        }));
    }

    fn bind(&self, changes: &[Rebind]) {
        let mut inner = self.inner.borrow_mut();
        if inner.in_transaction {
            inner.rebinds.extend_from_slice(changes);
        } else {
            inner.appender.bind(changes);
        }
    }

    /// Begins a transaction: changes up to [`Journal::end_transaction`] are one batch.
    pub(crate) fn begin_transaction(&self) {
        let mut inner = self.inner.borrow_mut();
        inner.in_transaction = true;
        inner.mode = Mode::Batch;
    }

    /// Logs the batch of a transaction. Its shards are still locked, or no other worker is inside a turn.
    pub(crate) fn end_transaction(&self, held: &mut dyn Held) {
        self.inner.borrow_mut().in_transaction = false;
        self.finish(held);
    }

    /// Begins a batch of the changes up to [`Journal::finish`].
    #[inline]
    pub(crate) fn begin_batch(&self) {
        self.inner.borrow_mut().mode = Mode::Batch;
    }

    /// Whether any value has a file of its own.
    #[inline]
    pub(crate) fn has_blobs(&self) -> bool {
        self.inner.borrow().appender.has_blobs()
    }

    /// Begins a batch of `records` sets of keys without expiry, of `bytes` bytes in the log
    /// ([`Appender::set_bytes`]). No other change follows before [`Journal::finish`].
    #[inline]
    pub(crate) fn begin_series(&self, records: usize, bytes: u64) {
        let mut inner = self.inner.borrow_mut();
        // A single record needs no batch.
        match u32::try_from(records) {
            Ok(records @ 2..) if !inner.in_transaction && bytes <= JOURNAL_BATCH_BYTES => {
                inner.mode = Mode::Series;
                inner.appender.begin_series(records, bytes);
            }
            _ => inner.mode = Mode::Batch,
        }
    }
}

impl Inner {
    /// Whether changes are collected for the end of a batch.
    #[inline]
    fn is_batching(&self) -> bool {
        self.mode != Mode::Single
    }

    fn mark_dead(&mut self, key: usize, replaced: Option<Replaced>) {
        if let Some(old) = replaced {
            old.mark_dead(key, self.appender.liveness());
        }
    }
}

impl Journal {
    /// Notes that a library has changed, for the batch that runs.
    pub(crate) fn library_changed(&self, name: &str, before: Option<Recorded>) {
        let mut inner = self.inner.borrow_mut();
        match inner.libraries.iter_mut().find(|its| its.name == name) {
            // A text of the batch itself has no record yet.
            Some(own) => own.before = own.before.or(before),
            None => inner.libraries.push(ChangedLibrary {
                name: name.to_owned(),
                before,
            }),
        }
    }

    /// Logs the libraries that have changed since, unless it is part of a transaction. No other worker is
    /// inside a turn.
    pub(crate) fn finish_libraries(&self) {
        struct Nothing;
        impl Held for Nothing {
            fn with(&mut self, _: usize, _: u64, _: &mut dyn FnMut(&mut Guard<'_>)) {
                unreachable!("a library is no key");
            }
        }
        self.finish(&mut Nothing);
    }
}

/// Address of the record of an entry; `None` without one.
pub(crate) fn address_of(entry: &EntryMut<'_, '_>) -> Option<Address> {
    Address::from_bits(entry.log_address()?.0.get())
}

/// Address in the form that entries store.
#[inline]
pub(crate) fn stored(address: Address) -> LogAddress {
    LogAddress(NonZeroU64::new(address.to_bits()).expect("addresses are never 0"))
}

/// Tag of a value for the log: its type and encoding, and whether items of it expire.
#[inline]
pub(crate) fn tag_of(entry: EntryRef<'_>) -> Tag {
    tag_as(entry.value_type(), entry.is_expiring(), entry.is_tree())
}

/// [`tag_of`] by its parts.
#[inline]
pub(super) fn tag_as(of: Type, is_expiring: bool, is_tree: bool) -> Tag {
    let expiring = if is_expiring { EXPIRING } else { 0 };
    Tag {
        kind: of.kind as u8,
        form: of.form as u8 | expiring,
        is_tree,
    }
}

/// Bit of the form of a hash whose fields expire.
const EXPIRING: u8 = 1;

/// Whether items of the value of a tag expire.
pub(crate) fn is_expiring(tag: Tag) -> bool {
    tag.kind == Tag::HASH && tag.form & EXPIRING != 0
}

/// Type of a tag. The log never passes on a record with an unknown tag.
#[inline]
pub(crate) fn type_of(tag: Tag) -> Type {
    let kind = Kind::from_bits(tag.kind).expect("the log knows the kind");
    let form = match tag.form {
        0 => Form::Whole,
        EXPIRING if is_expiring(tag) => Form::Whole,
        1 => Form::Decimal,
        _ => Form::Part,
    };
    Type { kind, form }
}
