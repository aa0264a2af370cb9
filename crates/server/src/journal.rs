//! A worker's way into the log: what [`crate::store`] tells it of changes becomes records.
//!
//! A record is appended while the shard of its key is locked, so the order of the log is the order of execution for every
//! key. A change is logged as what it leads to: the whole value, a new expiry, or that the key is gone. Records of a
//! command over several keys, which must not be torn apart by a crash, are a *batch*: while its shards are locked it is only
//! noted which keys change, and at its end what has become of each goes into the log together. So is a transaction, with
//! the databases that it empties or exchanges: these go first into its batch, the keys as they are at its end behind them.
//!
//! Keys that expire are not logged; the keyspace tells of them ([`crate::persistence`]).
//!
//! Invariants, whenever a shard is unlocked:
//! 1. Every entry has the address of the record that holds its value; none is [`LogAddress::PENDING`].
//! 2. Every record that an entry had an address of and has no more was told to the log as dead, once.

use std::cell::RefCell;
use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};

use ferrite_log::{Address, Appender, Batch, DbId, Liveness, Lsn, Rebind, Refusal, Tag};
use keyspace::{EntryMut, Form, Guard, Key, LogAddress};

use crate::limits::{JOURNAL_BATCH_BYTES, JOURNAL_KEEP_BYTES};

/// See the module.
pub(crate) struct Journal {
    inner: RefCell<Inner>,
    /// What the number of a database means in the log.
    ids: &'static [AtomicU16],
}

struct Inner {
    appender: Appender,
    /// Where the records end that earlier turns have appended.
    answered: Lsn,
    /// Whether a transaction runs: the batches of its commands are part of its own.
    in_transaction: bool,
    /// What the current batch has changed so far, and the keys of that.
    changes: Vec<Change>,
    keys: Vec<u8>,
    /// Databases that the transaction has emptied or exchanged.
    rebinds: Vec<Rebind>,
}

/// A key that a batch has changed.
struct Change {
    /// Its database, which keeps this name when it is exchanged with another.
    id: DbId,
    hash: u64,
    key: Range<usize>,
    replaced: Option<Replaced>,
}

/// The record of an entry that is about to be replaced: where it is, and bytes of the value.
#[derive(Clone, Copy)]
pub(crate) struct Replaced {
    address: Address,
    value: usize,
}

impl Replaced {
    /// The record of an entry, before it changes.
    pub(crate) fn of(entry: &EntryMut<'_, '_>) -> Option<Replaced> {
        Some(Replaced {
            address: address_of(entry)?,
            value: entry.value_len(),
        })
    }

    /// Tells that it is dead. `key` is how many bytes the key has.
    pub(crate) fn bury(self, key: usize, liveness: &mut Liveness) {
        liveness.dead(self.address, key, self.value);
    }
}

/// The shards that a batch holds.
pub(crate) trait Held {
    /// Calls `visit` with the shard of a key, by its hash, in one of its databases.
    fn with(&mut self, db: usize, hash: u64, visit: &mut dyn FnMut(&mut Guard<'_>));
}

/// The journal as one command uses it, on one database.
#[derive(Clone, Copy)]
pub(crate) struct Writing<'a> {
    pub(crate) journal: &'a Journal,
    pub(crate) db: usize,
    /// Whether changes are noted for the end of a batch.
    pub(crate) is_batch: bool,
}

impl Writing<'_> {
    /// An entry was made or has another value.
    pub(crate) fn wrote(self, entry: &mut EntryMut<'_, '_>, replaced: Option<Replaced>) {
        let mut inner = self.journal.inner.borrow_mut();
        if self.is_batch {
            inner.note(self.journal.id(self.db), entry.key(), replaced);
            entry.set_log_address(LogAddress::PENDING);
            return;
        }
        let (id, key) = (self.journal.id(self.db), entry.key());
        let (appender, value) = (&mut inner.appender, entry.value());
        let address = appender.set(id, key.bytes, tag_of(entry), entry.expiry(), value.bytes());
        let key = key.bytes.len();
        entry.set_log_address(stored(address));
        inner.bury(key, replaced);
    }

    /// An entry has another expiry.
    pub(crate) fn rescheduled(self, entry: &mut EntryMut<'_, '_>) {
        if self.is_batch {
            return self.wrote(entry, Replaced::of(entry));
        }
        let id = self.journal.id(self.db);
        let mut inner = self.journal.inner.borrow_mut();
        inner.appender.expire(id, entry.key().bytes, entry.expiry());
    }

    /// A key is gone, or goes under the same lock.
    pub(crate) fn removed(self, key: Key<'_>, replaced: Option<Replaced>) {
        let mut inner = self.journal.inner.borrow_mut();
        if self.is_batch {
            return inner.note(self.journal.id(self.db), key, replaced);
        }
        inner.appender.delete(self.journal.id(self.db), key.bytes);
        inner.bury(key.bytes.len(), replaced);
    }
}

impl Journal {
    pub(crate) fn new(mut appender: Appender, ids: &'static [AtomicU16]) -> Journal {
        Journal {
            inner: RefCell::new(Inner {
                answered: appender.commit(),
                appender,
                in_transaction: false,
                changes: Vec::new(),
                keys: Vec::new(),
                rebinds: Vec::new(),
            }),
            ids,
        }
    }

    fn id(&self, db: usize) -> DbId {
        DbId(self.ids[db].load(Relaxed))
    }

    /// The number that a database has now.
    fn number(&self, id: DbId) -> usize {
        let is_it = |own: &AtomicU16| own.load(Relaxed) == id.0;
        let same = usize::from(id.0);
        if self.ids.get(same).is_some_and(is_it) {
            return same;
        }
        let number = self.ids.iter().position(is_it);
        number.expect("numbers and names of databases are one to one")
    }

    /// Gets room for what requests of so many bytes will append; see [`Appender::ensure`].
    pub(crate) fn ensure(&self, bytes: u64) -> Result<(), Refusal> {
        let mut inner = self.inner.borrow_mut();
        let most = inner.appender.window();
        inner.appender.ensure(bytes.min(most))
    }

    /// Hands over what was appended. Returns the position below which everything must be durable before replies leave;
    /// `None` if they may leave now.
    pub(crate) fn commit(&self) -> Option<Lsn> {
        let mut inner = self.inner.borrow_mut();
        let end = inner.appender.commit();
        let before = std::mem::replace(&mut inner.answered, end);
        if !inner.appender.is_synchronous() {
            return None;
        }
        // Reads go on when nothing can become durable; they may see what was written last and nobody was told of.
        if end == before && inner.appender.is_refused() {
            return None;
        }
        // What was read may have been written by another worker that has not committed it yet.
        let tail = inner.appender.tail();
        (tail > inner.appender.durable()).then_some(tail)
    }

    /// Hands over what was appended, before the end of a turn.
    pub(crate) fn flush(&self) {
        self.inner.borrow_mut().appender.commit();
    }

    /// See [`Appender::wake_when_durable`].
    pub(crate) fn wake_when_durable(&self, lsn: Lsn) -> Result<bool, Refusal> {
        self.inner.borrow_mut().appender.wake_when_durable(lsn)
    }

    /// Everything below is durable.
    pub(crate) fn durable(&self) -> Lsn {
        self.inner.borrow().appender.durable()
    }

    /// These databases, of so many, are empty from here on. Nobody else is inside a turn.
    pub(crate) fn clear(&self, databases: &Range<usize>, of: usize) {
        if databases.len() == of {
            self.bind(&[Rebind::ClearAll]);
        } else {
            databases
                .clone()
                .for_each(|db| self.bind(&[Rebind::Clear(self.id(db))]));
        }
    }

    /// Two databases have changed places. Nobody else is inside a turn.
    pub(crate) fn swap(&self, first: usize, second: usize) {
        let (one, two) = (self.id(first), self.id(second));
        self.bind(&[(first, two), (second, one)].map(|(db, id)| Rebind::Name {
            number: u16::try_from(db).expect("there are at most 65536 databases"),
            id,
        }));
        self.ids[first].store(two.0, Relaxed);
        self.ids[second].store(one.0, Relaxed);
    }

    fn bind(&self, changes: &[Rebind]) {
        let mut inner = self.inner.borrow_mut();
        if inner.in_transaction {
            inner.rebinds.extend_from_slice(changes);
        } else {
            inner.appender.bind(changes);
        }
    }

    /// What changes from here to [`Journal::end_transaction`] is one batch.
    pub(crate) fn begin_transaction(&self) {
        self.inner.borrow_mut().in_transaction = true;
    }

    /// Logs what a transaction has led to. Its shards are still locked, or nobody else is inside a turn.
    pub(crate) fn end_transaction(&self, held: &mut dyn Held) {
        self.inner.borrow_mut().in_transaction = false;
        self.finish(held);
    }

    /// Whether a transaction runs.
    #[inline]
    pub(crate) fn is_in_transaction(&self) -> bool {
        self.inner.borrow().in_transaction
    }

    /// Logs what has become of the keys that a batch has changed, unless it is part of a transaction. Their shards are still
    /// locked.
    #[inline]
    pub(crate) fn finish(&self, held: &mut dyn Held) {
        let mut inner = self.inner.borrow_mut();
        let is_empty = inner.changes.is_empty() && inner.rebinds.is_empty();
        if !is_empty && !inner.in_transaction {
            self.finish_changes(&mut inner, held);
        }
    }

    #[inline(never)]
    fn finish_changes(&self, inner: &mut Inner, held: &mut dyn Held) {
        let Inner {
            appender,
            changes,
            keys,
            rebinds,
            ..
        } = inner;
        let mut rest = &changes[..];
        while !rest.is_empty() || !rebinds.is_empty() {
            let mut batch = appender.batch();
            if !rebinds.is_empty() {
                batch.bind(rebinds);
                rebinds.clear();
            }
            let mut count = 0;
            for change in rest {
                let key = change.key(keys);
                let mut fits = true;
                held.with(self.number(change.id), change.hash, &mut |guard| {
                    fits = gather(&mut batch, change.id, guard, key);
                });
                if !fits {
                    break;
                }
                count += 1;
            }
            let (now, later) = rest.split_at(count);
            let mut now = now.iter();
            batch.finish(|appender, _, address| {
                let change = now.next().expect("one record was gathered for each");
                let (key, liveness) = (change.key(keys), appender.liveness());
                if let Some(old) = change.replaced {
                    old.bury(key.bytes.len(), liveness);
                }
                let Some(address) = address else { return };
                held.with(self.number(change.id), change.hash, &mut |guard| {
                    let Some(mut entry) = guard.find(key) else {
                        return;
                    };
                    // A key that was changed twice is in the batch twice.
                    if let Some(old) = Replaced::of(&entry) {
                        old.bury(key.bytes.len(), liveness);
                    }
                    entry.set_log_address(stored(address));
                });
            });
            rest = later;
        }
        changes.clear();
        keys.clear();
        changes.shrink_to(JOURNAL_KEEP_BYTES / size_of::<Change>());
        keys.shrink_to(JOURNAL_KEEP_BYTES);
    }
}

/// Adds what there is of a key to a batch. Whether it fits.
fn gather(batch: &mut Batch<'_>, id: DbId, guard: &mut Guard<'_>, key: Key<'_>) -> bool {
    let entry = guard.find(key);
    let value = entry.as_ref().map_or(0, EntryMut::value_len);
    let bytes = batch.log_bytes() + Appender::bytes_of(key.bytes.len(), value);
    if bytes > JOURNAL_BATCH_BYTES && !batch.is_empty() {
        return false;
    }
    match entry {
        Some(entry) => {
            let (tag, expiry) = (tag_of(&entry), entry.expiry());
            batch.set(id, key.bytes, tag, expiry, entry.value().bytes());
        }
        None => batch.delete(id, key.bytes),
    }
    true
}

impl Change {
    fn key<'k>(&self, keys: &'k [u8]) -> Key<'k> {
        Key {
            bytes: &keys[self.key.clone()],
            hash: self.hash,
        }
    }
}

impl Inner {
    fn note(&mut self, id: DbId, key: Key<'_>, replaced: Option<Replaced>) {
        let from = self.keys.len();
        self.keys.extend_from_slice(key.bytes);
        self.changes.push(Change {
            id,
            hash: key.hash,
            key: from..self.keys.len(),
            replaced,
        });
    }

    fn bury(&mut self, key: usize, replaced: Option<Replaced>) {
        if let Some(old) = replaced {
            old.bury(key, self.appender.liveness());
        }
    }
}

/// Where the record of an entry is; `None` if it has none yet.
pub(crate) fn address_of(entry: &EntryMut<'_, '_>) -> Option<Address> {
    Address::from_bits(entry.log_address()?.0.get())
}

/// An address as an entry keeps it.
pub(crate) fn stored(address: Address) -> LogAddress {
    LogAddress(NonZeroU64::new(address.to_bits()).expect("addresses are never 0"))
}

/// How the log knows type and form of a value.
pub(crate) fn tag_of(entry: &EntryMut<'_, '_>) -> Tag {
    Tag {
        kind: entry.kind() as u8,
        form: entry.form() as u8,
    }
}

/// The form that a tag tells of.
pub(crate) fn form_of(tag: Tag) -> Form {
    match tag.form {
        0 => Form::Whole,
        1 => Form::Decimal,
        _ => Form::Part,
    }
}
