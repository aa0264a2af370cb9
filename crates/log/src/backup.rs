//! Backup: sealed segments never change, so a copy of the log is a second name for each of its files.
//!
//! ```text
//!  DEST/log/FIRST.log ...   the segments, linked (copied, where a link cannot be made)
//!  DEST/blobs/XX/ID         the large values, linked
//!  DEST/MANIFEST            says that all of it is there (`manifest`)
//! ```
//!
//! A server that starts with DEST as its directory has exactly the state of the backup's position. What is
//! later in the log is in no linked file, because the segment ended there.

use std::path::Path;
use std::sync::Arc;

use sys::file::File;

use crate::address::Lsn;
use crate::core::Core;
use crate::directory::copy_range;
use crate::error::{Error, Result, absolute};
use crate::lock::lock;
use crate::manifest;
use crate::paths::Paths;
use crate::segments::Segment;

/// What a backup holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    /// Everything below this position is in it, and nothing else.
    pub end: Lsn,
    /// Segments.
    pub segments: usize,
    /// Bytes of the segments.
    pub bytes: u64,
    /// Values in files of their own.
    pub blobs: usize,
}

impl Core {
    /// See [`Log::backup`](crate::Log::backup).
    pub(crate) fn backup(&self, destination: &Path) -> Result<Backup> {
        // Nothing is taken away while it is copied.
        let deletion = lock(&self.deletion);
        let end = self.seal()?;
        let map = self.segments.map();
        let segments: Vec<&Arc<Segment>> = map
            .segments
            .iter()
            .filter(|segment| segment.end() <= end && segment.is_sealed())
            .filter(|segment| segment.is_named_at(end))
            .collect();
        let paths = Paths::new(destination);
        match self.files.list(&paths.log) {
            Ok(names) if !names.is_empty() => {
                return Err(Error::Taken(absolute(&paths.root)));
            }
            _ => {}
        }
        for path in [&paths.root, &paths.log, &paths.blobs] {
            self.files
                .create_directory(path)
                .map_err(|error| Error::io("cannot make", path, error))?;
        }
        let mut listed = Vec::with_capacity(segments.len());
        for segment in &segments {
            let to = paths.segment(segment.first);
            self.link(
                &segment.path,
                &*segment.file,
                segment.header_bytes + segment.bytes(),
                &to,
            )?;
            let name = to.file_name().unwrap_or_default().to_string_lossy();
            listed.push((name.into_owned(), segment.bytes()));
        }
        let blobs = self.backup_blobs(&paths, end)?;
        // The backup has files of its own by now.
        drop(deletion);
        self.verify_backup(&paths, &blobs)?;
        self.files
            .sync_dir(&paths.log)
            .map_err(|error| Error::io("cannot sync", &paths.log, error))?;
        let text = manifest::text(end, listed.into_iter());
        manifest::write(&*self.files, &paths, &text)?;
        Ok(Backup {
            end,
            segments: segments.len(),
            bytes: segments.iter().map(|segment| segment.bytes()).sum(),
            blobs: blobs.len(),
        })
    }

    /// Ends the running segment with what has been committed, and makes it durable. Where it ends.
    fn seal(&self) -> Result<Lsn> {
        let tail = self.tail();
        let ends_before = || {
            self.segments
                .map()
                .last()
                .map_or(Lsn::FIRST, |last| last.first)
        };
        if let Some(writer) = lock(&self.writer).as_mut() {
            writer.seal_at = Some(tail);
        }
        // A full disk has no space for the next segment, and nobody knows when it will.
        self.wait_for_room(|| !self.is_healthy() || ends_before() >= tail);
        if let Some(refusal) = self.refusal().filter(|_| ends_before() < tail) {
            return Err(Error::Refused(refusal));
        }
        // The segment that runs now may have begun later than the tail that was asked for.
        let end = ends_before();
        self.force(end).map_err(Error::Refused)?;
        Ok(end)
    }

    pub(crate) fn link(&self, from: &Path, file: &dyn File, size: u64, to: &Path) -> Result<()> {
        match self.files.link(from, to) {
            Ok(()) => Ok(()),
            // Another file system, or one without links.
            Err(_) => copy_range(&*self.files, file, 0..size, to)
                .map_err(|error| Error::io("cannot write", to, error)),
        }
    }
}
