//! What is behind the end of the log, and is moved out of the way before the log takes records.

use super::parts::Cut;
use crate::address::Lsn;
use crate::directory::{copy_range, free_name};
use crate::error::{Error, Result};
use crate::paths::Paths;
use crate::segments::Segments;
use sys::file::Files;

/// What is to be moved.
#[derive(Debug)]
pub(crate) struct Aside {
    pub(crate) cut: Cut,
    /// Where the log ends.
    pub(crate) end: Lsn,
}

impl Aside {
    /// Moves it. May be interrupted anywhere and done again.
    ///
    /// # Errors
    /// The disk refuses.
    pub(crate) fn put(&self, files: &dyn Files, paths: &Paths, segments: &Segments) -> Result<()> {
        let (cut, lost) = (&self.cut, &paths.lost);
        files
            .create_directory(lost)
            .map_err(|error| Error::io("cannot make", lost, error))?;
        // The newest first: what is left is always the beginning of what there was.
        for path in cut.files.iter().rev() {
            let name = path.file_name().unwrap_or_default();
            let aside = free_name(files, lost, &name.to_string_lossy())?;
            match files.rename(path, &aside) {
                // It was moved before the disk had no space for the tail.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                renamed => renamed.map_err(|error| Error::io("cannot rename", path, error))?,
            }
        }
        let map = segments.map();
        if let (Some(tail), Some(segment)) = (&cut.tail, map.last()) {
            let name = format!("{:016x}.tail", self.end.get());
            let aside = free_name(files, lost, &name)?;
            // Space that was taken behind it and not used may be all that a full disk has.
            let _ = segment.file.set_size(tail.end);
            if let Err(error) = copy_range(files, &*segment.file, tail.clone(), &aside) {
                let _ = files.unlink(&aside);
                return Err(Error::io("cannot copy the tail to", &aside, error));
            }
            segment
                .file
                .set_size(tail.start)
                .map_err(|error| Error::io("cannot cut", &segment.path, error))?;
        }
        files
            .sync_dir(lost)
            .map_err(|error| Error::io("cannot sync", lost, error))
    }
}
