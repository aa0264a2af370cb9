//! Large values in files of their own, which no compaction has to move.
//!
//! A blob is complete before a record that names it is appended, and durable, with its name, before anything
//! says that the record is: either at once (`always`), or with the log's next sync, which comes to files
//! before it comes to segments. So a record whose blob is missing was replaced by a later one, or it is the
//! end of a log that nobody had called durable (`recover/torn`).
//!
//! ```text
//!  BlobStore::begin -- BlobDraft::write, often -- BlobDraft::finish -- Blob -- Appender::set_blob
//!                           \- dropped: the file goes   |             \- dropped without a record: it goes
//!                                                       \- synced at once, or by the next sync
//! ```
//!
//! Several records may name the same blob: a key that is copied takes no second file. A file goes with its
//! last record, or a little later: who holds the [`Blob`] can read it. Blobs are numbered as they are begun.
//! One that no record names is an orphan, and goes at the next start.
//!
//! Invariants:
//! 1. A blob's file is durable, with its name, or waits for the log's next sync ([`Waiting`]), before a
//!    record names it.
//! 2. A blob is removed only after everything below the end of the log, as it was when its last record died,
//!    is durable; and not while somebody has it, or holds the log ([`crate::Hold`]).
//!
//! Not here: writing one (`store`, `draft`), reading one as a whole (`fetch`), checking all of them
//! (`check`).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use sys::file::{File, Files};

use crate::address::Lsn;
use crate::error::{Error, Result};
use crate::limits::{UNSYNCED_MANY, UNSYNCED_MAX};
use crate::lock::lock;
use crate::paths::{BLOB_DIRECTORIES, Paths};
use crate::record::BlobRef;

/// Which blobs are needed, and by which record.
#[derive(Default)]
pub(crate) struct Blobs {
    registry: Mutex<Registry>,
    /// How many records name one, to be asked without the lock. The lock of a key's shard makes the key's own
    /// visible.
    live: AtomicUsize,
    /// Complete files that are not durable yet.
    waiting: Mutex<Vec<Waiting>>,
    /// The number of the next blob. A multiple of 8, as positions are.
    next: AtomicU64,
    /// Directories that are there, durably, by number.
    made: Mutex<Vec<bool>>,
}

#[derive(Default)]
struct Registry {
    /// By the position of the record that names it.
    live: HashMap<Lsn, Arc<Blob>>,
    /// Bytes of these; of one that several records name, for each.
    bytes: u64,
    /// Blobs that go as soon as everything below a position is durable: the record that replaced them.
    doomed: Vec<(Lsn, Arc<Blob>)>,
    /// Blobs that nobody has named, and nobody will.
    orphans: Vec<u64>,
}

/// A complete file that the log's next sync makes durable, if it is still needed then.
pub(crate) struct Waiting {
    blob: Weak<Blob>,
    path: PathBuf,
    file: Box<dyn File>,
}

/// A value in a file of its own.
pub struct Blob {
    reference: BlobRef,
    /// How many records name it.
    records: AtomicUsize,
    /// Whether one ever has.
    is_named: AtomicBool,
    /// How often somebody has begun to read it.
    reads: AtomicU32,
    /// Its file, open, from when the log was closed while somebody had the blob
    /// ([`crate::BlobStore::keep_open`]).
    kept: OnceLock<Arc<dyn File>>,
    registry: Weak<Blobs>,
}

impl Blob {
    pub(crate) fn new(reference: BlobRef, is_named: bool, registry: Weak<Blobs>) -> Arc<Blob> {
        Arc::new(Blob {
            reference,
            records: AtomicUsize::new(0),
            is_named: AtomicBool::new(is_named),
            reads: AtomicU32::new(0),
            kept: OnceLock::new(),
            registry,
        })
    }

    /// What a record says of it.
    pub fn reference(&self) -> BlobRef {
        self.reference
    }

    /// Its file, if it is kept open.
    pub(crate) fn kept(&self) -> Option<&Arc<dyn File>> {
        self.kept.get()
    }

    /// Keeps its file open as long as somebody has the blob.
    pub(crate) fn keep(&self, file: Box<dyn File>) {
        drop(self.kept.set(file.into()));
    }

    /// Notes that somebody begins to read it. Returns how often that was done before, since the start.
    pub fn note_read(&self) -> u32 {
        self.reads.fetch_add(1, Ordering::Relaxed)
    }
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Blob({:?})", self.reference)
    }
}

impl Drop for Blob {
    fn drop(&mut self) {
        if !*self.is_named.get_mut()
            && let Some(blobs) = self.registry.upgrade()
        {
            lock(&blobs.registry).orphans.push(self.reference.id);
        }
    }
}

impl fmt::Debug for Blobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (blobs, bytes) = self.totals();
        write!(f, "Blobs({blobs}, {bytes} bytes)")
    }
}

impl Blobs {
    /// How many records have their value in a file, and bytes of these values.
    pub(crate) fn totals(&self) -> (usize, u64) {
        let registry = lock(&self.registry);
        (registry.live.len(), registry.bytes)
    }

    /// A record that was read names this blob.
    pub(crate) fn add(self: &Arc<Self>, lsn: Lsn, reference: BlobRef) {
        let blob = Blob::new(reference, true, Arc::downgrade(self));
        self.name(lsn, &blob);
    }

    /// The record at `lsn` names this blob.
    pub(crate) fn name(&self, lsn: Lsn, blob: &Arc<Blob>) {
        blob.is_named.store(true, Ordering::Relaxed);
        blob.records.fetch_add(1, Ordering::Relaxed);
        let mut registry = lock(&self.registry);
        registry.bytes += blob.reference.len;
        registry.live.insert(lsn, Arc::clone(blob));
        self.live.store(registry.live.len(), Ordering::Relaxed);
    }

    /// The blob that the record at `lsn` names.
    pub(crate) fn named_by(&self, lsn: Lsn) -> Option<Arc<Blob>> {
        lock(&self.registry).live.get(&lsn).cloned()
    }

    /// Whether a blob was begun here.
    pub(crate) fn has_made(self: &Arc<Self>, blob: &Blob) -> bool {
        std::ptr::eq(Arc::as_ptr(self), blob.registry.as_ptr())
    }

    /// The record at `to` names the blob that the one at `from` named.
    pub(crate) fn moved(&self, from: Lsn, to: Lsn) {
        let live = &mut lock(&self.registry).live;
        if let Some(blob) = live.remove(&from) {
            live.insert(to, blob);
        }
    }

    /// The records at these positions need their blobs no more. The files stay until everything below `after`
    /// is durable.
    pub(crate) fn died(&self, lsns: &[Lsn], after: Option<Lsn>) {
        let mut registry = lock(&self.registry);
        for lsn in lsns {
            let Some(blob) = registry.live.remove(lsn) else {
                continue;
            };
            registry.bytes -= blob.reference.len;
            let is_last = blob.records.fetch_sub(1, Ordering::Relaxed) == 1;
            if let Some(after) = after.filter(|_| is_last) {
                registry.doomed.push((after, blob));
            }
        }
        self.live.store(registry.live.len(), Ordering::Relaxed);
    }

    /// Whether a record names a blob.
    pub(crate) fn are_there(&self) -> bool {
        self.live.load(Ordering::Relaxed) > 0
    }

    /// All blobs that are needed, and those that are on their way out, by number. With each whether the state
    /// at `end` needs it, as far as is known: of those on their way out it does not need those that were
    /// replaced before.
    pub(crate) fn all_there_are(&self, end: Lsn) -> BTreeMap<u64, (BlobRef, bool)> {
        let registry = lock(&self.registry);
        let live = registry.live.values().map(|blob| (blob, true));
        let doomed = registry.doomed.iter();
        let doomed = doomed.map(|(after, blob)| (blob, *after > end));
        // What is live counts more.
        let all = doomed.chain(live);
        all.map(|(blob, is_needed)| (blob.reference.id, (blob.reference, is_needed)))
            .collect()
    }

    /// Lets records that name the same file share one blob, from what a replay has noted. All that are
    /// needed, by number.
    fn share(&self) -> HashMap<u64, Arc<Blob>> {
        let mut needed: HashMap<u64, Arc<Blob>> = HashMap::new();
        for blob in lock(&self.registry).live.values_mut() {
            let shared = needed
                .entry(blob.reference.id)
                .or_insert_with(|| Arc::clone(blob));
            if !Arc::ptr_eq(shared, blob) {
                shared.records.fetch_add(1, Ordering::Relaxed);
                *blob = Arc::clone(shared);
            }
        }
        needed
    }

    /// The blobs that somebody has beside the registry.
    pub(crate) fn held(&self) -> Vec<Arc<Blob>> {
        let registry = lock(&self.registry);
        let doomed = registry.doomed.iter().map(|(_, blob)| blob);
        let mut own: HashMap<*const Blob, (&Arc<Blob>, usize)> = HashMap::new();
        for blob in registry.live.values().chain(doomed) {
            own.entry(Arc::as_ptr(blob)).or_insert((blob, 0)).1 += 1;
        }
        let held = own.into_values();
        let held = held.filter(|(blob, own)| Arc::strong_count(blob) > *own);
        held.map(|(blob, _)| Arc::clone(blob)).collect()
    }

    /// Takes what can be removed now, with everything below `durable` on the disk.
    pub(crate) fn take_removable(&self, durable: Lsn) -> Vec<u64> {
        let mut registry = lock(&self.registry);
        let mut removable = std::mem::take(&mut registry.orphans);
        registry.doomed.retain(|(after, blob)| {
            let goes = *after <= durable && Arc::strong_count(blob) == 1;
            if goes {
                removable.push(blob.reference.id);
            }
            !goes
        });
        removable
    }

    /// Lets a complete file wait for the log's next sync; whether that should be soon. One more than there
    /// may be is given back.
    pub(crate) fn wait(
        &self,
        blob: &Arc<Blob>,
        path: PathBuf,
        file: Box<dyn File>,
    ) -> std::result::Result<bool, Box<dyn File>> {
        let mut waiting = lock(&self.waiting);
        if waiting.len() >= UNSYNCED_MAX {
            return Err(file);
        }
        let blob = Arc::downgrade(blob);
        waiting.push(Waiting { blob, path, file });
        Ok(waiting.len() >= UNSYNCED_MANY)
    }

    /// Makes durable, with their names, all files that wait for it. Whether there were any.
    pub(crate) fn sync(&self, files: &dyn Files, paths: &Paths) -> Result<bool> {
        let waiting = std::mem::take(&mut *lock(&self.waiting));
        let mut directories = BTreeSet::new();
        for waiting in waiting {
            // What nobody has named, and nobody will, is on its way out.
            let Some(blob) = waiting.blob.upgrade() else {
                continue;
            };
            waiting
                .file
                .sync_data()
                .map_err(|error| Error::io("cannot sync", &waiting.path, error))?;
            directories.insert(paths.blob_directory(blob.reference.id));
        }
        for directory in &directories {
            files
                .sync_dir(directory)
                .map_err(|error| Error::io("cannot sync", directory, error))?;
        }
        Ok(!directories.is_empty())
    }

    /// Whether so many files wait that they should not wait any longer.
    pub(crate) fn are_many_waiting(&self) -> bool {
        lock(&self.waiting).len() >= UNSYNCED_MANY
    }

    /// The blobs that records at or above a position name.
    pub(crate) fn named_from(&self, lsn: Lsn) -> Vec<BlobRef> {
        let registry = lock(&self.registry);
        let named = registry.live.iter().filter(|(at, _)| **at >= lsn);
        named.map(|(_, blob)| blob.reference).collect()
    }

    /// The position of the first record that names a file.
    pub(crate) fn first_naming(&self, id: u64) -> Option<Lsn> {
        let registry = lock(&self.registry);
        let named = registry.live.iter();
        let of_file = named.filter(|(_, blob)| blob.reference.id == id);
        of_file.map(|(lsn, _)| *lsn).min()
    }

    /// Whether blobs wait for a sync to be removed.
    pub(crate) fn has_doomed(&self) -> bool {
        !lock(&self.registry).doomed.is_empty()
    }

    /// The number of a blob that begins now.
    pub(crate) fn take_number(&self) -> u64 {
        self.next.fetch_add(8, Ordering::Relaxed)
    }

    /// Sees that the directory of a blob is there.
    pub(crate) fn make_directory(&self, files: &dyn Files, paths: &Paths, id: u64) -> Result<()> {
        let number = Paths::blob_directory_number(id);
        let mut made = lock(&self.made);
        made.resize(BLOB_DIRECTORIES, false);
        if made[number] {
            return Ok(());
        }
        let directory = paths.blob_directory(id);
        files
            .create_directory(&directory)
            .and_then(|()| files.sync_dir(&paths.blobs))
            .map_err(|error| Error::io("cannot make", &directory, error))?;
        made[number] = true;
        Ok(())
    }
}

pub(crate) fn remove(files: &dyn Files, paths: &Paths, id: u64) {
    let path = paths.blob(id);
    if let Err(error) = files.unlink(&path) {
        // An orphan: the next start removes it.
        log::warn!("cannot remove {}: {error}", path.display());
    }
}

/// At the start, when `blobs` is what the log needs: sees that all of it is there and removes what nothing
/// needs. `end` is where the log ends.
pub(crate) fn settle(files: &dyn Files, paths: &Paths, blobs: &Blobs, end: Lsn) -> Result<()> {
    let needed = blobs.share();
    for blob in needed.values() {
        let blob = blob.reference;
        let path = paths.blob(blob.id);
        let size = match files.open(&path) {
            Ok(file) => file
                .size()
                .map_err(|error| Error::io("cannot read", &path, error))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(Error::damage(
                    &path,
                    0,
                    "the file of a large value is missing",
                ));
            }
            Err(error) => return Err(Error::io("cannot open", &path, error)),
        };
        if size < blob.len {
            return Err(Error::damage(&path, size, "the file ends too early"));
        }
    }
    let (mut removed, mut last) = (0, end.get());
    for number in 0..BLOB_DIRECTORIES as u64 {
        let directory = paths.blob_directory(number << 3);
        let names = match files.list(&directory) {
            Ok(names) => names,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(Error::io("cannot list", &directory, error)),
        };
        for name in names {
            let Ok(id) = u64::from_str_radix(&name, 16) else {
                continue;
            };
            let path = directory.join(&name);
            if paths.blob(id) != path {
                continue;
            }
            last = last.max(id);
            if !needed.contains_key(&id) {
                files
                    .unlink(&path)
                    .map_err(|error| Error::io("cannot remove", &path, error))?;
                removed += 1;
            }
        }
    }
    if removed > 0 {
        log::info!("Removed {removed} files of large values that nothing needs");
    }
    blobs.next.store(last + 8, Ordering::Relaxed);
    Ok(())
}
