//! A large value on its way to its file.
//!
//! Pieces that begin with a block, in memory and in the file, go to the disk past the page cache, which costs
//! a processor several times less than what goes through it: so does all of a value whose pieces are whole
//! blocks. The last of them is filled up with zeroes, which are no part of the value: the file is whole
//! blocks, and the record says how much of it is the value. The checksums of its pieces follow (`sums`).
//!
//! Not here: what becomes of the file (`blob`), and when it is synced if not here (`sync`).

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use sys::file::{DIRECT_BLOCK, File, Files};

use crate::blob::{Blob, Blobs, remove};
use crate::engine::Engine;
use crate::error::{Error, Refusal, Result};
use crate::limits::WRITE_BACK_BYTES;
use crate::options::SyncPolicy;
use crate::paths::Paths;
use crate::record::BlobRef;
use crate::sums::{self, Sums};

/// Where blobs are made.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) files: Arc<dyn Files>,
    pub(crate) paths: Paths,
    pub(crate) blobs: Arc<Blobs>,
    /// Not held: a log that is closed is closed.
    engine: Weak<Engine>,
}

impl Place {
    pub(crate) fn new(engine: &Arc<Engine>) -> Place {
        Place {
            files: engine.files.clone(),
            paths: engine.paths.clone(),
            blobs: engine.blobs.clone(),
            engine: Arc::downgrade(engine),
        }
    }

    /// The log, if it takes anything: what is written beside it must not take the space that it keeps for
    /// itself.
    pub(crate) fn check(&self) -> Result<Arc<Engine>> {
        let engine = self.engine.upgrade();
        let Some(engine) = engine.filter(|engine| !engine.is_closing.load(Ordering::Relaxed))
        else {
            return Err(Error::Refused(Refusal::Closed));
        };
        match engine.refusal() {
            None => Ok(engine),
            Some(why) => Err(Error::Refused(why)),
        }
    }
}

/// A blob on its way. Dropping it removes the file.
#[derive(Debug)]
pub struct BlobDraft {
    place: Place,
    /// None once it is finished.
    file: Option<Box<dyn File>>,
    id: u64,
    len: u64,
    sums: Sums,
    /// Bytes that the disk was asked to begin with.
    written_back: u64,
}

impl BlobDraft {
    /// Takes space for a value of `len` bytes.
    pub(crate) fn new(place: Place, file: Box<dyn File>, id: u64, len: u64) -> Result<BlobDraft> {
        let draft = BlobDraft {
            place,
            file: Some(file),
            id,
            len: 0,
            sums: Sums::new(id),
            written_back: 0,
        };
        draft
            .file()
            .allocate(sums::file_bytes(len))
            .map_err(|error| {
                let path = draft.place.paths.blob(id);
                Error::io("cannot take space for", &path, error)
            })?;
        Ok(draft)
    }

    fn file(&self) -> &dyn File {
        &**self.file.as_ref().expect("it is not finished")
    }

    /// Writes what comes next. Waits for the disk. What is best: memory that begins with a block, and whole
    /// blocks ([`DIRECT_BLOCK`]) of it.
    ///
    /// # Errors
    /// The log takes nothing now, or the disk refuses. The draft is of no use then.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.write_last(bytes, 0)
    }

    /// As [`BlobDraft::write`], for the end of the value: the last `padding` bytes are zeroes that do not
    /// belong to it, up to the end of a block.
    ///
    /// # Errors
    /// As [`BlobDraft::write`].
    ///
    /// # Panics
    /// If there are not as many bytes.
    pub fn write_last(&mut self, bytes: &[u8], padding: usize) -> Result<()> {
        self.place.check()?;
        let value = &bytes[..bytes.len() - padding];
        let is_at_block = bytes.as_ptr().addr().is_multiple_of(DIRECT_BLOCK)
            && self.len.is_multiple_of(DIRECT_BLOCK as u64);
        let blocks = if is_at_block { bytes.len() } else { 0 };
        let (blocks, rest) = bytes.split_at(blocks - blocks % DIRECT_BLOCK);
        let file = self.file();
        let written = match blocks {
            [] => Ok(()),
            _ => file.write_direct_at(blocks, self.len),
        };
        let written = written.and_then(|()| match rest {
            [] => Ok(()),
            _ => file.write_at(rest, self.len + blocks.len() as u64),
        });
        written.map_err(|error| {
            let path = self.place.paths.blob(self.id);
            Error::io("cannot write", &path, error)
        })?;
        self.sums.add(value);
        self.len += value.len() as u64;
        let waiting = self.len - self.written_back;
        if waiting >= WRITE_BACK_BYTES {
            // Where nothing goes past the page cache, or not these bytes.
            self.file().write_back(self.written_back, waiting);
            self.written_back = self.len;
        }
        Ok(())
    }

    /// Completes the file. It is durable then, if the log syncs always; otherwise it will be with the log's
    /// next sync.
    ///
    /// # Errors
    /// The log takes nothing now, or the disk refuses. The file goes then.
    pub fn finish(mut self) -> Result<Arc<Blob>> {
        let engine = self.place.check()?;
        let reference = BlobRef {
            id: self.id,
            len: self.len,
            checksum: self.sums.whole(),
        };
        let path = self.place.paths.blob(self.id);
        let (at, table) = self.sums.table(self.len);
        if !table.is_empty() {
            let written = match table.as_ptr().addr().is_multiple_of(DIRECT_BLOCK) {
                true => self.file().write_direct_at(&table, at),
                false => self.file().write_at(&table, at),
            };
            written.map_err(|error| Error::io("cannot write", &path, error))?;
        }
        let blobs = &self.place.blobs;
        if engine.policy() != SyncPolicy::Always {
            let file = self.file.take().expect("it is not finished");
            let blob = Blob::new(reference, false, Arc::downgrade(blobs));
            match blobs.wait(&blob, path.clone(), file) {
                Ok(should_be_soon) => {
                    if should_be_soon {
                        engine.chores.ring();
                    }
                    return Ok(blob);
                }
                // The disk does not keep up: who brings more waits for it.
                Err(file) => self.sync(&*file, &path)?,
            }
            return Ok(blob);
        }
        self.sync(self.file(), &path)?;
        self.file = None;
        Ok(Blob::new(reference, false, Arc::downgrade(blobs)))
    }

    /// Makes the file durable, with its name.
    fn sync(&self, file: &dyn File, path: &std::path::Path) -> Result<()> {
        file.sync_data()
            .map_err(|error| Error::io("cannot sync", path, error))?;
        let directory = self.place.paths.blob_directory(self.id);
        self.place
            .files
            .sync_dir(&directory)
            .map_err(|error| Error::io("cannot sync", &directory, error))
    }
}

impl Drop for BlobDraft {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            remove(&*self.place.files, &self.place.paths, self.id);
        }
    }
}
