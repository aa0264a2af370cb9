//! Making large values and opening them.

use std::fmt;
use std::sync::Arc;

use crate::blob::Blob;
use crate::draft::{BlobDraft, Place};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::space;
use crate::sums::BlobFile;

/// Where blobs are made. Can be cloned and used by any thread.
#[derive(Clone)]
pub struct BlobStore {
    place: Place,
}

impl BlobStore {
    pub(crate) fn new(engine: &Arc<Engine>) -> BlobStore {
        BlobStore {
            place: Place::new(engine),
        }
    }

    /// Begins a file for a value of `len` bytes, and takes the space for it.
    ///
    /// # Errors
    /// The log takes nothing now, or the disk refuses.
    pub fn begin(&self, len: u64) -> Result<BlobDraft> {
        let Place {
            files,
            paths,
            blobs,
            ..
        } = &self.place;
        space::check(&*self.place.check()?, len)?;
        let id = blobs.take_number();
        blobs.make_directory(&**files, paths, id)?;
        let path = paths.blob(id);
        let file = files.create(&path);
        let file = file.map_err(|error| Error::io("cannot make", &path, error))?;
        BlobDraft::new(self.place.clone(), file, id, len)
    }

    /// Whether a record names a blob, or somebody has one.
    pub fn is_used(&self) -> bool {
        // Every blob refers to the registry.
        Arc::weak_count(&self.place.blobs) > 0 || self.place.blobs.totals().0 > 0
    }

    /// Opens a blob to read it, as long as somebody has it.
    ///
    /// # Errors
    /// The disk refuses, or the file is too short.
    pub fn open(&self, blob: &Blob) -> Result<BlobFile> {
        let path = self.place.paths.blob(blob.reference().id);
        match blob.kept() {
            Some(file) => BlobFile::of(Arc::clone(file), &path, blob.reference()),
            None => BlobFile::open(&*self.place.files, &path, blob.reference()),
        }
    }

    /// Opens the files of all blobs that somebody has, and leaves them open as long as that is so. For the
    /// end of a log whose files may go: what is being sent to a client stays readable.
    ///
    /// A file that cannot be opened is told of in the messages.
    pub fn keep_open(&self) {
        for blob in self.place.blobs.held() {
            let path = self.place.paths.blob(blob.reference().id);
            match self.place.files.open(&path) {
                Ok(file) => blob.keep(file),
                Err(error) => log::warn!("cannot open {}: {error}", path.display()),
            }
        }
    }
}

impl fmt::Debug for BlobStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlobStore({})", self.place.paths.blobs.display())
    }
}
