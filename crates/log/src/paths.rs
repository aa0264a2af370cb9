//! Where everything is.
//!
//! ```text
//!  DIR/LOCK              held while a server runs; its process number
//!  DIR/log/FIRST.log     a segment, named by the position of its first record
//!  DIR/log/FIRST.hint    what is in it, without values
//!  DIR/log/next.tmp      space taken for the segment to come
//!  DIR/blobs/XX/ID       a large value; XX spreads them over 256 directories
//!  DIR/CLOSED            where the log ended at a clean stop
//!  DIR/LACKING           instances that lack records, as a start has found
//!  DIR/RING              the ring, where it cannot be in memory (sys::ring::file)
//!  DIR/RING.tmp          a ring that is not complete; removed at the start
//!  DIR/lost/             what was cut out, kept aside
//! ```

use std::path::{Path, PathBuf};

use crate::address::Lsn;
use crate::segment;

/// Directories that blobs are spread over.
pub(crate) const BLOB_DIRECTORIES: usize = 256;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    pub(crate) root: PathBuf,
    pub(crate) log: PathBuf,
    pub(crate) blobs: PathBuf,
    pub(crate) lost: PathBuf,
    pub(crate) lock: PathBuf,
}

impl Paths {
    pub(crate) fn new(root: &Path) -> Paths {
        Paths {
            root: root.to_owned(),
            log: root.join("log"),
            blobs: root.join("blobs"),
            lost: root.join("lost"),
            lock: root.join("LOCK"),
        }
    }

    pub(crate) fn segment(&self, first: Lsn) -> PathBuf {
        self.log.join(segment::file_name(first))
    }

    pub(crate) fn hint(&self, first: Lsn) -> PathBuf {
        self.log.join(format!("{:016x}.hint", first.get()))
    }

    /// A file that is not part of the log yet, or no more: whatever ends in `.tmp` is removed at the start.
    pub(crate) fn temporary(&self, what: &str) -> PathBuf {
        self.log.join(format!("{what}.tmp"))
    }

    /// Which of the directories of blobs one is in.
    pub(crate) fn blob_directory_number(id: u64) -> usize {
        // Numbers are multiples of 8, so their low three bits say nothing.
        (id >> 3) as usize % BLOB_DIRECTORIES
    }

    pub(crate) fn blob_directory(&self, id: u64) -> PathBuf {
        let number = Paths::blob_directory_number(id);
        self.blobs.join(format!("{number:02x}"))
    }

    pub(crate) fn blob(&self, id: u64) -> PathBuf {
        self.blob_directory(id).join(format!("{id:016x}"))
    }
}
