//! One locked shard, and an entry of it: the operations of commands on keys. Every change ends in `changed`.

use std::sync::Arc;

use ferrite_log::Blob;
use keyspace::collection::any::{Collection, Moment};
use keyspace::collection::copy::Original;
use keyspace::{
    ChangeKind, Detached, EntryMut, EntryRef, Expiry, Guard, Key, Kind, LargeValue, New, Stored,
};

use super::Store;
use crate::metrics::WorkerStats;
use crate::metrics::key_scan::Size;
use crate::observe::notify::{Event, Notifier};
use crate::request::Failure;
use crate::values::blobs::is_blob;

/// One locked shard.
pub(crate) struct Shard<'a> {
    pub(super) guard: Guard<'a>,
    pub(super) store: &'a Store<'a>,
    /// The database it is in.
    pub(super) db: usize,
}

impl<'a> Shard<'a> {
    /// Publishes an event of a key.
    #[inline]
    pub(crate) fn tell(&self, event: Event, key: Key<'_>) {
        self.store.notifier.tell(event, self.db, key.bytes);
    }

    /// Publishes the event of a new key if the key does not exist yet.
    #[inline]
    fn tell_if_new(&mut self, key: Key<'_>) {
        if self.store.notifier.wants(Event::NEW) && !self.guard.contains(key) {
            self.tell(Event::NEW, key);
        }
    }

    /// End of every change of a key.
    #[inline]
    pub(super) fn changed(&mut self, key: Key<'_>, kind: ChangeKind) {
        self.store.stats.dirty.add(1);
        self.guard.note_change(key, kind);
    }

    /// Looks a key up for a reading command: counts a hit or a miss and notes the access.
    #[inline(always)]
    pub(crate) fn read(&mut self, key: Key<'_>) -> Option<Entry<'_, 'a>> {
        match self.guard.find(key) {
            Some(mut inner) => {
                self.store.stats.hits.add(1);
                if self.store.touch {
                    inner.touch();
                }
                Some(Entry {
                    inner,
                    store: self.store,
                })
            }
            None => {
                miss(self.store.stats, &self.store.notifier, self.db, key);
                None
            }
        }
    }

    /// Looks a key up for a command that reports on it: counts a hit or a miss, but it is no access.
    pub(crate) fn peek(&mut self, key: Key<'_>) -> Option<Entry<'_, 'a>> {
        if self.store.notifier.wants(Event::MISSED) && !self.guard.contains(key) {
            self.tell(Event::MISSED, key);
        }
        self.peek_quietly(key)
    }

    /// [`Shard::peek`] without an event for a missing key.
    pub(crate) fn peek_quietly(&mut self, key: Key<'_>) -> Option<Entry<'_, 'a>> {
        match self.guard.find(key) {
            Some(inner) => {
                self.store.stats.hits.add(1);
                Some(Entry {
                    inner,
                    store: self.store,
                })
            }
            None => {
                self.store.stats.misses.add(1);
                None
            }
        }
    }

    /// Looks a key up for a command that changes it: notes the access, but counts neither hit nor miss.
    pub(crate) fn find_to_change(&mut self, key: Key<'_>) -> Option<Entry<'_, 'a>> {
        let mut inner = self.guard.find(key)?;
        if self.store.touch {
            inner.touch();
        }
        Some(Entry {
            inner,
            store: self.store,
        })
    }

    /// Looks a key up without counting and without noting the access.
    #[inline(always)]
    pub(crate) fn find(&mut self, key: Key<'_>) -> Option<Entry<'_, 'a>> {
        self.guard.find(key).map(|inner| Entry {
            inner,
            store: self.store,
        })
    }

    /// Lets the observers hear of every change to a key from here on, for some of the reasons in
    /// [`keyspace::reason`]. If its time has come it goes before, which is no change that they hear of.
    pub(crate) fn observe(&mut self, key: Key<'_>, reasons: u8) {
        self.guard.contains(key);
        self.guard.observe(reasons);
    }

    /// Lets the observers hear of every change to any key of the shard from here on.
    pub(crate) fn observe_all(&mut self, reasons: u8) {
        self.guard.observe(reasons);
    }

    /// Whether a key is there.
    pub(crate) fn contains(&mut self, key: Key<'_>) -> bool {
        self.guard.contains(key)
    }

    /// Sets a key to a string and replaces any old value: the common case of [`Shard::write`].
    #[inline]
    pub(crate) fn set(&mut self, key: Key<'_>, value: &[u8], expiry: Expiry) {
        self.tell_if_new(key);
        match self.store.journal {
            None => self.guard.set(key, value, expiry),
            Some(_) => self.put_logged(key, New::bytes(value).expiry(expiry)),
        }
        self.store.stats.sets.add(1);
        self.changed(key, ChangeKind::Written);
    }

    /// Gives a key a value and replaces any old one.
    pub(crate) fn write(&mut self, key: Key<'_>, new: New<'_>) {
        self.tell_if_new(key);
        self.put(key, new, None);
        self.store.stats.sets.add(1);
        self.changed(key, ChangeKind::Written);
    }

    /// Gives a key a restored value and replaces any old one. Observers see a new key. It counts as used now
    /// unless its last use is known.
    pub(crate) fn restore(&mut self, key: Key<'_>, new: New<'_>, used: Option<LastUse>) {
        self.tell(Event::NEW, key);
        self.put(key, new.used(self.store.now), None);
        if let (Some(used), Some(mut entry)) = (used, self.guard.find(key)) {
            match used {
                LastUse::Before(seconds) => entry.note_idle(seconds),
                LastUse::Frequency(count) => entry.note_frequency(count),
            }
        }
        self.store.stats.sets.add(1);
        self.changed(key, ChangeKind::Written);
    }

    /// [`Shard::write`] of a value in a file of its own, which the log has made. No transaction or other
    /// command needs the shard's values.
    pub(crate) fn write_blob(&mut self, key: Key<'_>, blob: &Arc<Blob>, expiry: Expiry) {
        self.tell_if_new(key);
        let new = New::cold(blob.reference().len).expiry(expiry);
        self.put(key, new, Some(blob));
        self.store.stats.sets.add(1);
        self.changed(key, ChangeKind::Written);
    }

    #[inline(never)]
    fn put_logged(&mut self, key: Key<'_>, new: New<'_>) {
        self.put(key, new, None);
    }

    /// Writes a value, and logs it if there is a log. `blob`: the file that the value is in.
    #[inline(always)]
    fn put(&mut self, key: Key<'_>, new: New<'_>, blob: Option<&Arc<Blob>>) {
        let (journal, db) = (self.store.journal, self.db);
        self.guard.write(key, new, |entry, old| {
            Some(match blob {
                Some(blob) => journal?.wrote_blob(db, key, entry, old, blob),
                None => journal?.wrote(db, key, entry, old),
            })
        });
    }

    /// [`Store::check_log`] for the string of a key, of which a copy is to be written under another. Any
    /// other kind is written in small records.
    ///
    /// # Errors
    /// There is no space on the disk.
    pub(crate) fn check_log_of_copy(&mut self, from: Key<'_>, to: Key<'_>) -> Result<(), Failure> {
        let is_string = |entry: &EntryMut<'_, '_>| entry.as_ref().value_type().kind == Kind::String;
        let entry = self.guard.find(from).filter(is_string);
        let len = entry.map_or(0, |entry| entry.value_len());
        self.store.check_log(to, len)
    }

    /// Whether the value of a key is in a file of its own, and not in memory.
    pub(crate) fn holds_file(&mut self, key: Key<'_>) -> bool {
        let cold = self.guard.find(key).and_then(|entry| entry.cold());
        cold.is_some_and(is_blob)
    }

    /// Bytes of memory that a copy of a key's value takes, if it is a large one.
    pub(crate) fn bytes_of_copy(&mut self, key: Key<'_>) -> usize {
        match self.guard.find(key) {
            Some(entry) if entry.cold().is_none() => match entry.tree() {
                Some(tree) => tree.bytes(),
                None => entry.value_len(),
            },
            _ => 0,
        }
    }

    /// Whether others than the `own` pins rely on values of the shard: then no key of it may get a value that
    /// is in the log alone.
    pub(crate) fn is_relied_on(&self, own: u32) -> bool {
        self.guard.pins() > own
    }

    /// Removes a key; whether it was there.
    pub(crate) fn remove(&mut self, key: Key<'_>) -> bool {
        let Some(inner) = self.guard.find(key) else {
            return false;
        };
        if let Some(journal) = self.store.journal {
            journal.removed(&inner);
        }
        inner.remove();
        self.store.stats.dels.add(1);
        self.changed(key, ChangeKind::Removed);
        true
    }

    /// Takes a key's value away, to put it elsewhere with [`Shard::attach`]; both together count as one
    /// change.
    pub(crate) fn detach(&mut self, key: Key<'_>) -> Option<Detached> {
        let inner = self.guard.find(key)?;
        if let Some(journal) = self.store.journal {
            journal.removed(&inner);
        }
        let detached = self.guard.detach(key)?;
        self.guard.note_change(key, ChangeKind::Removed);
        Some(detached)
    }

    /// Gives a key a value that was taken or copied from another, expiry included. Observers see a new key.
    pub(crate) fn attach(&mut self, key: Key<'_>, mut value: Detached) {
        self.tell(Event::NEW, key);
        let journal = self.store.journal;
        // The source's record may be dead, but that is not told before the end of the turn.
        let blob = value.cold().and_then(|cold| journal?.blob_of(cold));
        self.put(key, New::detached(&mut value), blob.as_ref());
        self.changed(key, ChangeKind::Written);
    }
}

/// Last use of a restored key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LastUse {
    /// Seconds since the last access.
    Before(u64),
    /// How often it was used, on the logarithmic scale.
    Frequency(u8),
}

/// End of every read without a result. A function of its own keeps [`Shard::read`] small.
#[inline(never)]
fn miss(stats: &WorkerStats, notifier: &Notifier, db: usize, key: Key<'_>) {
    stats.misses.add(1);
    notifier.tell(Event::MISSED, db, key.bytes);
}

/// A value as it was at one moment, to be read without a lock.
pub(crate) enum Still {
    String(LargeValue),
    /// A collection that is a run, and its kind.
    Run(Kind, Vec<u8>),
    /// A collection, and its bytes in memory.
    Tree(Moment, usize),
}

impl Still {
    /// Bytes of the value, about.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Still::String(value) => value.len(),
            Still::Run(_, run) => run.len(),
            Still::Tree(_, bytes) => *bytes,
        }
    }
}

/// One entry of a locked shard.
pub(crate) struct Entry<'g, 'a> {
    pub(super) inner: EntryMut<'g, 'a>,
    pub(super) store: &'a Store<'a>,
}

impl Entry<'_, '_> {
    /// End of every change of an entry; called before the entry is removed.
    #[inline]
    pub(super) fn changed(&mut self, kind: ChangeKind) {
        self.store.stats.dirty.add(1);
        self.inner.note_change(kind);
    }

    /// The entry to be looked at.
    pub(crate) fn as_ref(&self) -> EntryRef<'_> {
        self.inner.as_ref()
    }

    /// Bytes of the value as it is stored.
    #[inline]
    pub(crate) fn value_len(&self) -> usize {
        self.inner.value_len()
    }

    /// Whether the value is a string.
    #[inline(always)]
    pub(crate) fn is_string(&self) -> bool {
        self.inner.is_string()
    }

    /// The type of the value.
    pub(crate) fn kind(&self) -> Kind {
        self.inner.kind()
    }

    /// When the key expires (Unix, ms).
    #[inline]
    pub(crate) fn expiry(&self) -> Option<i64> {
        self.inner.expiry()
    }

    /// Seconds since the last access.
    pub(crate) fn idle_seconds(&self) -> u32 {
        self.inner.idle_seconds()
    }

    /// How often it is used, on a logarithmic scale.
    pub(crate) fn frequency(&self) -> u8 {
        self.inner.frequency()
    }

    /// Bytes the key takes in all.
    pub(crate) fn memory(&self) -> usize {
        self.inner.memory()
    }

    /// Bytes of the key in memory and on the disk alone.
    pub(crate) fn size(&self) -> Size {
        Size {
            memory: self.memory() as u64,
            ..Size::of(self.as_ref())
        }
    }

    /// Notes an access.
    pub(crate) fn touch(&mut self) {
        self.inner.touch();
    }

    /// The value at this moment. Large values are shared, not copied.
    pub(crate) fn still(&mut self) -> Still {
        let bytes = self.tree_bytes();
        if let Some(moment) = self.inner.moment() {
            return Still::Tree(moment, bytes);
        }
        match self.inner.value() {
            Stored::Large(large) => Still::String(large.share()),
            Stored::Inline(bytes) if self.inner.is_string() => {
                Still::String(LargeValue::new(bytes.to_vec().into()))
            }
            Stored::Inline(run) => Still::Run(self.inner.kind(), run.to_vec()),
        }
    }

    /// Bytes of a collection that is a tree; 0 if it is none.
    pub(crate) fn tree_bytes(&self) -> usize {
        self.inner.tree().map_or(0, Collection::bytes)
    }

    /// A tree as it is now, to be copied later; `None` if it is none.
    pub(crate) fn original(&mut self) -> Option<Original> {
        self.inner.original()
    }

    /// A copy of value and expiry.
    pub(crate) fn copy(&self) -> Detached {
        self.inner.copy()
    }

    /// Sets or removes the expiry.
    pub(crate) fn set_expiry(&mut self, expiry: Option<i64>) {
        self.inner.set_expiry(expiry);
        if let Some(journal) = self.store.journal {
            journal.rescheduled(&mut self.inner);
        }
        self.changed(ChangeKind::Written);
    }

    /// Removes the key.
    pub(crate) fn remove(mut self) {
        self.changed(ChangeKind::Removed);
        if let Some(journal) = self.store.journal {
            journal.removed(&self.inner);
        }
        self.inner.remove();
        self.store.stats.dels.add(1);
    }
}
