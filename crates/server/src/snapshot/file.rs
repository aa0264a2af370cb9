//! How a snapshot gets its name: written beside the old file, on disk before it takes its place.
//!
//! ```text
//! temp-PID-N.rdb  --write, sync-->  --rename-->  dump.rdb  --sync the directory-->
//! ```

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::config::{Setting, Settings};
use crate::limits::SNAPSHOT_SYNC_BYTES;

/// The file that `dir` and `dbfilename` name. `None` if the name is empty.
pub(super) fn path(settings: &Settings) -> Option<PathBuf> {
    let name = settings.text(Setting::DbFilename);
    if name.is_empty() {
        return None;
    }
    Some(Path::new(&*settings.text(Setting::Dir)).join(&*name))
}

/// A file that has no name yet; it is removed unless it gets one.
pub(super) struct Draft {
    path: PathBuf,
    target: PathBuf,
    kept: bool,
}

/// What writes to a draft. Syncs as it goes, if it shall, so that the end does not have to wait for all of it.
pub(super) struct DraftFile {
    file: File,
    syncs: bool,
    unsynced: usize,
}

impl Draft {
    /// Makes a file beside the one it shall replace.
    ///
    /// # Errors
    /// There is no name for it, or the system refuses.
    pub(super) fn create(settings: &Settings) -> io::Result<(Draft, DraftFile)> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let target = path(settings).ok_or_else(|| io::Error::other("'dbfilename' is empty"))?;
        let number = NUMBER.fetch_add(1, Relaxed);
        let name = format!("temp-{}-{number}.rdb", sys::process::pid());
        let path = target.with_file_name(name);
        let file = DraftFile {
            file: File::create(&path)?,
            syncs: settings.flag(Setting::RdbSaveIncrementalFsync),
            unsynced: 0,
        };
        let draft = Draft {
            path,
            target,
            kept: false,
        };
        Ok((draft, file))
    }

    /// Puts it in the place of the file it replaces. Its bytes are on disk already.
    ///
    /// # Errors
    /// The system refuses; the old file is still there.
    pub(super) fn keep(&mut self) -> io::Result<()> {
        fs::rename(&self.path, &self.target)?;
        self.kept = true;
        Ok(())
    }

    /// Makes sure that a crash does not bring the old file back.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn sync_directory(&self) -> io::Result<()> {
        let directory = self.target.parent().unwrap_or(Path::new("."));
        File::open(directory)?.sync_all()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.kept {
            // Nothing can be done about a file that cannot be removed; it has a name that nobody loads.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl DraftFile {
    /// Waits until all of it is on disk.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn sync(self) -> io::Result<()> {
        self.file.sync_all()
    }
}

impl Write for DraftFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.unsynced += count;
        if self.syncs && self.unsynced >= SNAPSHOT_SYNC_BYTES {
            self.file.sync_data()?;
            self.unsynced = 0;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
