//! Large values in files of their own, which no compaction has to move.
//!
//! A blob is written and synced by a thread of its own *before* the record that names it may be written: the log thread
//! waits at that record, and nothing in front of it waits. So a record in the log whose blob is missing was replaced by
//! a later one; a blob without a record is an orphan and goes at the next start.
//!
//! A blob is named by the position of the record that was first made for it. Compaction writes the small record again,
//! under another position; the name stays.
//!
//! Invariants:
//! 1. A blob's file is durable, with its name, before `written` passes its record.
//! 2. A blob is removed only after everything below the end of the log, as it was when its record died, is durable.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use crate::address::Lsn;
use crate::bell::Bell;
use crate::core::{Core, lock};
use crate::error::{Error, Result};
use crate::limits::FULL_RETRY;
use crate::paths::Paths;
use crate::record::BlobRef;
use crate::writer::is_full;
use sys::file::Files;

/// Which blobs are needed, and by which record.
#[derive(Debug, Default)]
pub(crate) struct Blobs {
    live: Mutex<HashMap<Lsn, BlobRef>>,
    /// Blobs that go as soon as everything below a position is durable: the record that replaced them.
    doomed: Mutex<Vec<(Lsn, BlobRef)>>,
    /// Values that are not in their files yet, by the position that may not be written before (of the record, or of
    /// the batch it is in) and their blob's name.
    waiting: Mutex<BTreeMap<Ticket, Option<Arc<Vec<u8>>>>>,
    /// Rings when a value waits, and when it has been written.
    pub(crate) bell: Bell,
}

/// The position that waits for a blob, and the blob's name.
type Ticket = (Lsn, u64);

/// A value that is to go to a file of its own, with its checksum: made before any lock is taken.
#[derive(Clone, Debug)]
pub struct Blob {
    pub(crate) value: Arc<Vec<u8>>,
    pub(crate) checksum: u32,
}

impl Blob {
    /// Computes the checksum of `value`.
    pub fn new(value: Arc<Vec<u8>>) -> Blob {
        Blob {
            checksum: crc32c::crc32c(&value),
            value,
        }
    }

    pub(crate) fn named(&self, id: u64) -> BlobRef {
        BlobRef {
            id,
            len: self.value.len() as u64,
            checksum: self.checksum,
        }
    }
}

impl Blobs {
    /// How many blobs are needed, and their bytes.
    pub(crate) fn totals(&self) -> (usize, u64) {
        let live = lock(&self.live);
        (live.len(), live.values().map(|blob| blob.len).sum())
    }

    /// The record at `lsn` needs this blob.
    pub(crate) fn add(&self, lsn: Lsn, blob: BlobRef) {
        lock(&self.live).insert(lsn, blob);
    }

    /// The record at `to` names the blob that the one at `from` named.
    pub(crate) fn moved(&self, from: Lsn, to: Lsn) {
        let mut live = lock(&self.live);
        if let Some(blob) = live.remove(&from) {
            live.insert(to, blob);
        }
    }

    /// The records at these positions need their blobs no more. The files stay until everything below `after` is
    /// durable.
    pub(crate) fn died(&self, lsns: &[Lsn], after: Option<Lsn>) {
        let mut live = lock(&self.live);
        let died = lsns.iter().filter_map(|lsn| live.remove(lsn));
        match after {
            Some(after) => lock(&self.doomed).extend(died.map(|blob| (after, blob))),
            None => died.for_each(drop),
        }
    }

    /// The value is to be written to blob `id` before anything from `gate` on is written.
    pub(crate) fn submit(&self, gate: Lsn, id: u64, value: Arc<Vec<u8>>) {
        lock(&self.waiting).insert((gate, id), Some(value));
        self.bell.ring();
    }

    /// Nothing from here on may be written yet.
    pub(crate) fn gate(&self) -> Option<Lsn> {
        lock(&self.waiting)
            .first_key_value()
            .map(|(&(gate, _), _)| gate)
    }

    /// Whether a value waits for somebody to write it.
    fn has_work(&self) -> bool {
        lock(&self.waiting).values().any(|value| value.is_some())
    }

    fn take_work(&self) -> Option<(Ticket, Arc<Vec<u8>>)> {
        let mut waiting = lock(&self.waiting);
        let (&name, value) = waiting.iter_mut().find(|(_, value)| value.is_some())?;
        Some((name, value.take()?))
    }

    fn put_back(&self, name: Ticket, value: Arc<Vec<u8>>) {
        lock(&self.waiting).insert(name, Some(value));
    }

    fn done(&self, name: Ticket) {
        lock(&self.waiting).remove(&name);
        self.bell.ring();
    }

    /// All blobs that are needed.
    fn all(&self) -> Vec<BlobRef> {
        lock(&self.live).values().copied().collect()
    }

    /// The same, and those that are on their way out.
    fn all_there_are(&self) -> Vec<BlobRef> {
        // Blobs go from the first to the second, so none is missed in this order.
        let mut all = self.all();
        all.extend(lock(&self.doomed).iter().map(|&(_, blob)| blob));
        all
    }
}

impl Core {
    /// Writes one value that waits; whether there was one and it went well.
    pub(crate) fn write_blob(&self) -> bool {
        let Some((name, value)) = self.blobs.take_work() else {
            return false;
        };
        if !self.has_failed()
            && let Err(error) = self.write_blob_file(name.1, &value)
        {
            // The record that names it is in the log's order already, so there is no way around it.
            if let Error::Io { error: cause, .. } = &error
                && is_full(cause)
            {
                self.set_full(error.to_string());
                self.blobs.put_back(name, value);
                return false;
            }
            self.fail(error.to_string());
        }
        self.blobs.done(name);
        self.wake_writer();
        true
    }

    fn write_blob_file(&self, id: u64, value: &[u8]) -> Result<()> {
        const PIECE: usize = 1 << 20;
        let (path, directory) = (self.paths.blob(id), self.paths.blob_directory(id));
        let io = |error| Error::io("cannot write", &path, error);
        self.files
            .create_directory(&directory)
            .map_err(|error| Error::io("cannot make", &directory, error))?;
        // There is one if the disk was full before.
        match self.files.unlink(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(io(error)),
            _ => {}
        }
        let file = self.files.create(&path).map_err(io)?;
        file.allocate(value.len() as u64).map_err(io)?;
        for (number, piece) in value.chunks(PIECE).enumerate() {
            file.write_at(piece, (number * PIECE) as u64).map_err(io)?;
        }
        file.sync_data().map_err(io)?;
        for directory in [&directory, &self.paths.blobs] {
            self.files
                .sync_dir(directory)
                .map_err(|error| Error::io("cannot sync", directory, error))?;
        }
        Ok(())
    }

    /// What a thread that writes blobs does until the log is closed.
    pub(crate) fn run_blob_thread(&self) {
        let is_closing = || self.is_closing.load(std::sync::atomic::Ordering::SeqCst);
        loop {
            while self.write_blob() {}
            if is_closing() {
                return;
            }
            if self.is_full() {
                self.chores.wait_for(FULL_RETRY, is_closing);
            } else {
                self.blobs
                    .bell
                    .wait(|| self.blobs.has_work() || is_closing());
            }
        }
    }

    /// Removes blobs that nothing can need any more.
    pub(crate) fn remove_doomed(&self) {
        let durable = self.durable();
        let _one = lock(&self.deletion);
        let due: Vec<BlobRef> = {
            let mut doomed = lock(&self.blobs.doomed);
            let (due, later) = doomed.drain(..).partition(|&(after, _)| after <= durable);
            *doomed = later;
            let due: Vec<(Lsn, BlobRef)> = due;
            due.into_iter().map(|(_, blob)| blob).collect()
        };
        for blob in due {
            let path = self.paths.blob(blob.id);
            if let Err(error) = self.files.unlink(&path) {
                // An orphan: the next start removes it.
                log::warn!("cannot remove {}: {error}", path.display());
            }
        }
    }

    /// Whether blobs wait for a sync to be removed.
    pub(crate) fn has_doomed(&self) -> bool {
        !lock(&self.blobs.doomed).is_empty()
    }

    /// Links all blobs that are needed into a backup. How many there are.
    pub(crate) fn backup_blobs(&self, to: &Paths) -> Result<usize> {
        let blobs = self.blobs.all_there_are();
        for blob in &blobs {
            let (from, directory) = (self.paths.blob(blob.id), to.blob_directory(blob.id));
            self.files
                .create_directory(&directory)
                .map_err(|error| Error::io("cannot make", &directory, error))?;
            match self.files.open(&from) {
                Ok(file) => self.link(&from, &*file, blob.len, &to.blob(blob.id))?,
                // It was made after the backup's position and waits to be written.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(Error::io("cannot open", &from, error)),
            }
            self.files
                .sync_dir(&directory)
                .map_err(|error| Error::io("cannot sync", &directory, error))?;
        }
        self.files
            .sync_dir(&to.blobs)
            .map_err(|error| Error::io("cannot sync", &to.blobs, error))?;
        Ok(blobs.len())
    }
}

/// At the start, when `blobs` is what the log needs: sees that all of it is there and removes what nothing needs.
pub(crate) fn settle(files: &dyn Files, paths: &Paths, blobs: &Blobs) -> Result<()> {
    let needed: HashMap<u64, BlobRef> = blobs
        .all()
        .into_iter()
        .map(|blob| (blob.id, blob))
        .collect();
    for blob in needed.values() {
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
    for number in 0..=0xff_u64 {
        let directory = paths.blob_directory(number << 3);
        let names = match files.list(&directory) {
            Ok(names) => names,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(Error::io("cannot list", &directory, error)),
        };
        for name in names {
            let id = u64::from_str_radix(&name, 16).ok();
            if id.is_some_and(|id| {
                !needed.contains_key(&id) && paths.blob(id) == directory.join(&name)
            }) {
                let path = directory.join(&name);
                files
                    .unlink(&path)
                    .map_err(|error| Error::io("cannot remove", &path, error))?;
            }
        }
    }
    Ok(())
}
