//! Appending: what a worker does while it holds a shard's lock.
//!
//! Budget of [`Appender::set`]: one atomic addition, one copy of key and value, one checksum over them; no
//! allocation, no system call, no lock. What can wait is done before, by [`Appender::ensure`].

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::address::{Address, DbId, Lsn};
use crate::bindings::{Rebind, encode_changes};
use crate::blob::Blob;
use crate::claims::Claims;
use crate::core::{NOBODY, Wake};
use crate::engine::Engine;
use crate::error::Refusal;
use crate::gathered::Scratch;
use crate::limits::{BRAKE_WAIT_MAX, BRAKE_WAIT_MIN, LEAVES_BYTES};
use crate::liveness::Liveness;
use crate::lock::lock;
use crate::options::SyncPolicy;
use crate::record::{self, Change, Draft, INSTANCE, Record, Tag, Value};
use crate::series::Series;
use crate::store::BlobStore;

/// What room in the ring is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Change,
    Removal,
    Compaction,
}

/// One thread's way into the log.
pub struct Appender {
    pub(crate) claims: Claims,
    liveness: Liveness,
    /// How long it has yet to wait for what it was given, in nanoseconds.
    owes_wait: u64,
    /// The log thread was not told of the last commit.
    owes_nudge: bool,
    /// What batches gather in, kept for the next one.
    pub(crate) scratch: Scratch,
    /// The series that is being filled.
    pub(crate) series: Series,
}

impl Appender {
    /// `None` when there are as many as the options allow.
    pub(crate) fn new(engine: Arc<Engine>, wake: Option<Wake>) -> Option<Appender> {
        let producer = engine.ring.producer()?;
        *lock(&engine.members[producer.number()].0.waker) = wake;
        Some(Appender {
            liveness: Liveness::new(
                engine.segments.clone(),
                engine.blobs.clone(),
                Some(engine.ring.clone()),
            ),
            claims: Claims::new(engine, producer),
            owes_wait: 0,
            owes_nudge: false,
            scratch: Scratch::default(),
            series: Series::default(),
        })
    }

    /// The most that [`Appender::ensure`] can give in one piece.
    pub fn window(&self) -> u64 {
        self.claims.engine.credit.window
    }

    /// Gets room for records of `bytes` bytes together (see [`Appender::bytes_of`]), [`Appender::window`] at
    /// most. Called before a window of requests and outside of any lock, because it waits for the log thread
    /// when the ring is full. What is left from before counts. Whatever was appended is committed if it has
    /// to wait.
    ///
    /// # Errors
    /// Nothing may be appended: the disk is full, or a write has failed.
    #[inline]
    pub fn ensure(&mut self, bytes: u64) -> Result<(), Refusal> {
        if self.claims.credit >= bytes && self.claims.engine.is_healthy() {
            return Ok(());
        }
        self.ensure_slowly(bytes.min(self.window()), Purpose::Change)
    }

    /// The same for records that remove keys, which may use part of what is kept in reserve on a full disk.
    ///
    /// # Errors
    /// Even that is used up, or a write has failed.
    pub fn ensure_for_removal(&mut self, bytes: u64) -> Result<(), Refusal> {
        let bytes = bytes.min(self.window());
        if self.claims.credit >= bytes && self.claims.engine.takes_removals() {
            return Ok(());
        }
        self.ensure_slowly(bytes, Purpose::Removal)
    }

    /// The same for compaction, which may use what is left of a full disk to make space.
    pub(crate) fn ensure_for_compaction(&mut self, bytes: u64) -> Result<(), Refusal> {
        let bytes = bytes.min(self.window());
        // Nearly every record of a segment that is emptied is dead, and takes none of the room that there is.
        if self.claims.credit >= bytes && self.claims.engine.is_healthy() {
            return Ok(());
        }
        self.ensure_slowly(bytes, Purpose::Compaction)
    }

    /// Room that compaction gets before a record is handed over: what is written again can be larger than the
    /// record, because patches have come together, or an edit is about several leaves.
    pub(crate) fn relocation_bytes(&self, record: &Record<'_>) -> u64 {
        let most = Appender::bytes_of(
            record.key.len(),
            self.claims.engine.options.blob_min as usize,
        );
        let most = most.max(record.bytes());
        match record.change {
            Change::Edit { .. } | Change::Leaf { .. } => most.max(LEAVES_BYTES),
            _ => most,
        }
    }

    /// Whether there is room for whatever compaction has to write in place of this record.
    #[inline]
    pub fn may_relocate(&self, record: &Record<'_>) -> bool {
        self.claims.credit >= self.relocation_bytes(record).min(self.window())
    }

    /// Whether a record of so many bytes finds room without waiting for a disk that has no space. Who holds a
    /// lock may wait for the disk, and not for the space: nobody knows when there is some.
    #[inline]
    pub fn may_append(&self, bytes: u64) -> bool {
        self.claims.credit >= bytes || self.claims.engine.has_space(bytes)
    }

    #[cold]
    fn ensure_slowly(&mut self, bytes: u64, purpose: Purpose) -> Result<(), Refusal> {
        let core = self.claims.engine.clone();
        let accepts = || match purpose {
            Purpose::Change => core.is_healthy(),
            Purpose::Removal => core.takes_removals(),
            Purpose::Compaction => core.is_healthy() || core.is_full() && core.has_begun(),
        };
        if !accepts() {
            return Err(core.refusal().unwrap_or(Refusal::Closed));
        }
        let brake = core.brake.load(Ordering::Relaxed);
        let is_held_back = brake > 0 && purpose == Purpose::Change && core.options.background;
        if is_held_back {
            self.wait_for_compaction(brake, bytes);
        }
        // Who is held back comes again soon.
        let lease = if is_held_back { 0 } else { core.credit.lease };
        while self.claims.credit < bytes {
            let needed = bytes - self.claims.credit;
            let taken = core.credit.take(needed.max(lease), needed);
            self.claims.credit += taken;
            if taken == 0 {
                // The room may be taken by what this appender has not committed.
                self.commit();
                let mut given = 0;
                core.wait_for_room(|| {
                    given = core.credit.take(needed, needed);
                    given > 0 || !accepts()
                });
                self.claims.credit += given;
                if given == 0 {
                    return Err(core.refusal().unwrap_or(Refusal::Closed));
                }
            }
        }
        Ok(())
    }

    /// Waits a little, for `bytes` bytes of the log: there is more garbage than there may be.
    fn wait_for_compaction(&mut self, brake_ns: u64, bytes: u64) {
        self.owes_wait += ((u128::from(brake_ns) * u128::from(bytes)) >> 20) as u64;
        let wait = Duration::from_nanos(self.owes_wait).min(BRAKE_WAIT_MAX);
        if wait >= BRAKE_WAIT_MIN {
            // Others may need what this one has written.
            self.commit();
            std::thread::sleep(wait);
            self.owes_wait = 0;
        }
    }

    /// Bytes that a record takes at most, with so many bytes of key and value.
    pub const fn bytes_of(key: usize, value: usize) -> u64 {
        record::record_bytes(key as u64, value as u64 + 16, true)
    }

    /// The key has this value from here on. Returns what the entry keeps.
    #[inline]
    pub fn set(
        &mut self,
        db: DbId,
        key: &[u8],
        tag: Tag,
        expiry: Option<i64>,
        value: &[u8],
    ) -> Address {
        let lsn = self.claims.append(&Draft::set(db, key, tag, expiry, value));
        Address::new(lsn, false, expiry.is_some())
    }

    /// As [`Appender::set`], for a value in a file of its own, which this log has made.
    ///
    /// # Panics
    /// If another log has made it.
    pub fn set_blob(
        &mut self,
        db: DbId,
        key: &[u8],
        tag: Tag,
        expiry: Option<i64>,
        blob: &Arc<Blob>,
    ) -> Address {
        assert!(self.has_made(blob), "a blob is named in its own log");
        let lsn = self
            .claims
            .append(&Draft::set_blob(db, key, tag, expiry, blob.reference()));
        self.claims.engine.blobs.name(lsn, blob);
        Address::new(lsn, true, expiry.is_some())
    }

    /// Whether this log has made a blob.
    pub fn has_made(&self, blob: &Blob) -> bool {
        self.claims.engine.blobs.has_made(blob)
    }

    /// Whether any record has its value in a file. Takes no lock.
    pub fn has_blobs(&self) -> bool {
        self.claims.engine.blobs.are_there()
    }

    /// The blob that the base record of an entry names.
    pub fn blob_at(&self, address: Address) -> Option<Arc<Blob>> {
        self.claims.engine.blobs.named_by(address.lsn())
    }

    /// Makes files for large values.
    pub fn blob_store(&self) -> BlobStore {
        BlobStore::new(&self.claims.engine)
    }

    /// Compaction's way to write an entry again whose value is in a file: the record is new, the file stays.
    /// `record` is the `Set` that the entry rests on; nothing is reported as dead for it.
    ///
    /// # Panics
    /// If `record` is no `Set` of such a value.
    pub fn keep_blob(&mut self, record: &Record<'_>, tag: Tag, expiry: Option<i64>) -> Address {
        let Change::Set {
            value: Value::Blob(blob),
            ..
        } = record.change
        else {
            panic!("only a large value is in a file");
        };
        let lsn = self
            .claims
            .append(&Draft::set_blob(record.db, record.key, tag, expiry, blob));
        self.claims.engine.blobs.moved(record.lsn, lsn);
        self.liveness.moved(record.lsn, record.bytes());
        Address::new(lsn, true, expiry.is_some())
    }

    /// The key is gone.
    #[inline]
    pub fn delete(&mut self, db: DbId, key: &[u8]) -> Lsn {
        self.claims.append(&Draft::delete(db, key))
    }

    /// The key, which exists, has this expiry from here on. The entry's address stays.
    #[inline]
    pub fn expire(&mut self, db: DbId, key: &[u8], expiry: Option<i64>) -> Lsn {
        self.claims.append(&Draft::expire(db, key, expiry))
    }

    /// Part of the value of the key, which exists and is on disk, changes: `bytes` go to `offset`, and the
    /// value is `total` bytes long from here on. The entry's address becomes [`Address::patched`].
    ///
    /// # Panics
    /// If `bytes` do not fit into `total`.
    #[inline]
    pub fn patch(
        &mut self,
        db: DbId,
        key: &[u8],
        tag: Tag,
        offset: u64,
        total: u64,
        bytes: &[u8],
    ) -> Lsn {
        assert!(
            offset + bytes.len() as u64 <= total,
            "a patch is part of the value"
        );
        self.claims
            .append(&Draft::patch(db, key, tag, offset, total, bytes))
    }

    /// Elements of the collection of the key change, whose value is in its entry. `bytes` say what happens to
    /// which. The entry's address becomes [`Address::patched`], as after a patch.
    ///
    /// # Panics
    /// If the value is no collection.
    #[inline]
    pub fn edit(&mut self, db: DbId, key: &[u8], tag: Tag, bytes: &[u8]) -> Lsn {
        self.claims.append(&Draft::edit(db, key, tag, bytes))
    }

    /// Elements of an instance change. Without `bytes`, none is left of the instance.
    ///
    /// # Panics
    /// If the value is no collection.
    #[inline]
    pub fn edit_instance(&mut self, db: DbId, instance: u64, tag: Tag, bytes: &[u8]) -> Lsn {
        let instance = instance.to_le_bytes();
        self.claims
            .append(&Draft::edit_instance(db, &instance, tag, bytes))
    }

    /// A part of an instance is exactly what `bytes` say. What it was before is dead
    /// ([`Liveness::dead_leaf`]).
    ///
    /// # Panics
    /// If the value is no collection.
    #[inline]
    pub fn leaf(&mut self, db: DbId, instance: u64, tag: Tag, bytes: &[u8]) -> Lsn {
        let instance = instance.to_le_bytes();
        self.claims.append(&Draft::leaf(db, &instance, tag, bytes))
    }

    /// Changes what database numbers mean, or empties databases. Nobody else appends to these databases
    /// meanwhile.
    pub fn bind(&mut self, changes: &[Rebind]) -> Lsn {
        let lsn = self.claims.append(&Draft::bind(&encode_changes(changes)));
        lock(&self.claims.engine.bindings).push(lsn, changes);
        lsn
    }

    /// Bytes that a plain set takes in the log, with so many bytes of key and value.
    #[inline]
    pub const fn set_bytes(key: usize, value: usize) -> u64 {
        record::record_bytes(key as u64, value as u64, false)
    }

    /// Bytes that a leaf, or an edit of an instance, takes in the log, with so many bytes of its own.
    #[inline]
    pub const fn leaf_bytes(bytes: usize) -> u64 {
        record::record_bytes(INSTANCE as u64, bytes as u64, false)
    }

    /// Begins a batch of `records` sets without expiry, two at least, that take `bytes` bytes together (the
    /// sum of [`Appender::set_bytes`]). All of them follow, through [`Appender::set_in_series`], before
    /// anything else is appended. As for any batch, locks of all shards it touches are held until its end.
    ///
    /// # Panics
    /// If the last series was not ended, or it takes [`MAX_RECORD`] bytes or more.
    pub fn begin_series(&mut self, records: u32, bytes: u64) {
        self.series.begin(&mut self.claims, records, bytes);
    }

    /// [`Appender::set`] as the next record of the series.
    ///
    /// # Panics
    /// If there is no room for it in the series.
    #[inline]
    pub fn set_in_series(&mut self, db: DbId, key: &[u8], tag: Tag, value: &[u8]) -> Address {
        let draft = Draft::set(db, key, tag, None, value).inner();
        let lsn = self.series.fill(&mut self.claims, &draft);
        Address::new(lsn, false, false)
    }

    /// Ends the series.
    ///
    /// # Panics
    /// If records are missing.
    pub fn end_series(&mut self) {
        self.series.end(&mut self.claims);
    }

    /// Notes about dead records.
    #[inline]
    pub fn liveness(&mut self) -> &mut Liveness {
        &mut self.liveness
    }

    /// Ends a turn: the log thread may write what was appended. Returns the position below which everything
    /// of this appender is; when it is durable, replies may leave.
    #[inline]
    pub fn commit(&mut self) -> Lsn {
        self.commit_and_wait();
        self.nudge();
        self.claims.end
    }

    /// The same for a thread that will ask [`Appender::wake_when_durable`], or [`Appender::nudge`], before it
    /// sleeps: if every turn is synced the log thread is not woken yet, because this thread may do its work.
    #[inline]
    pub fn commit_and_wait(&mut self) -> Lsn {
        let has_appended = std::mem::take(&mut self.claims.has_appended);
        let lease = self.claims.engine.credit.lease;
        let spare = self.claims.credit.saturating_sub(lease);
        if spare > lease {
            self.claims.engine.credit.give_back(spare);
            self.claims.credit -= spare;
            // Those who wait for room look again when something is written.
            if !has_appended {
                self.claims.engine.room.ring();
            }
        }
        if has_appended {
            self.owes_nudge = true;
            if !self.is_synchronous() {
                self.nudge();
            }
        }
        if self.liveness.is_due() {
            self.liveness.publish();
        }
        self.claims.end
    }

    /// If every turn is synced, the disk is quick and nobody else is about it, does the log thread's work on
    /// this thread: that takes less than waking it and being woken.
    pub fn sync_here(&mut self) {
        if self.claims.engine.turn_here() && self.claims.engine.durable() >= self.claims.end {
            self.owes_nudge = false;
        }
    }

    /// Tells the log thread of what [`Appender::commit_and_wait`] did not.
    #[inline]
    pub fn nudge(&mut self) {
        if self.owes_nudge {
            self.owes_nudge = false;
            self.claims.engine.nudge(self.claims.end.0);
        }
    }

    /// Whether everything below `lsn`, which was committed, is durable. If not, the appender's waker is
    /// called once when it is, or when the log fails; only the latest question is answered.
    ///
    /// # Errors
    /// The log has failed: it will never be.
    pub fn wake_when_durable(&mut self, lsn: Lsn) -> Result<bool, Refusal> {
        if self.claims.engine.durable() >= lsn {
            self.owes_nudge = false;
            return Ok(true);
        }
        self.nudge();
        let member = &self.claims.engine.members[self.claims.producer.number()].0;
        member.waits_for.store(lsn.0, Ordering::SeqCst);
        // Whoever makes it durable looks at `waits_for` after it has said so; this looks after it has set it.
        if self.claims.engine.durable() >= lsn {
            member.waits_for.store(NOBODY, Ordering::SeqCst);
            return Ok(true);
        }
        if self.claims.engine.has_failed() {
            member.waits_for.store(NOBODY, Ordering::SeqCst);
            return Err(self.claims.engine.refusal().unwrap_or(Refusal::Closed));
        }
        Ok(false)
    }

    /// Asks for everything that is committed to become durable soon, whatever the policy.
    pub fn want_sync(&self) {
        self.claims.engine.wake_writer();
        self.claims.engine.sync_wanted.store(true, Ordering::SeqCst);
        self.claims.engine.chores.ring();
    }

    /// Everything below is durable.
    #[inline]
    pub fn durable(&self) -> Lsn {
        self.claims.engine.durable()
    }

    /// Whether the base record of an entry, with so many bytes of key and value, is in a file: whether it can
    /// be read.
    #[inline]
    pub fn is_written(&self, address: Address, key: usize, value: usize) -> bool {
        let bytes = record::base_bytes(address, key as u64, value as u64);
        address.lsn().offset(bytes) <= self.claims.engine.written()
    }

    /// The position of the next record of any appender: what was read under a lock was logged below it.
    #[inline]
    pub fn tail(&self) -> Lsn {
        self.claims.engine.tail()
    }

    /// Whether replies to writes wait until they are durable.
    #[inline]
    pub fn is_synchronous(&self) -> bool {
        self.claims.engine.policy() == SyncPolicy::Always
    }

    /// Whether nothing is accepted now: the disk is full or has failed.
    #[inline]
    pub fn is_refused(&self) -> bool {
        !self.claims.engine.is_healthy()
    }

    /// The segment that begins at `first` is no part of the log any more.
    pub(crate) fn retire(&mut self, first: Lsn) -> Lsn {
        self.claims.append(&Draft::retire(first))
    }

    /// Bytes that it has appended since it was made.
    pub(crate) fn appended(&self) -> u64 {
        self.claims.appended
    }
}

impl Drop for Appender {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        self.commit();
        self.claims.engine.credit.give_back(self.claims.credit);
        *lock(
            &self.claims.engine.members[self.claims.producer.number()]
                .0
                .waker,
        ) = None;
    }
}
