//! How a snapshot gets its name: written beside the old file, on disk before it takes its place.
//!
//! ```text
//! temp-PID-N.rdb  --write, sync-->  --rename-->  dump.rdb  --sync the directory-->
//! ```
//!
//! What is written comes together in a buffer first. It goes past the page cache where the file system can do
//! that: who serves from memory has better use for it, and nothing has to be written back later, when
//! somebody may wait for the disk. Where it cannot, the disk begins to write at once.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sys::file::{DIRECT_BLOCK, Disk, Files};

use crate::config::drafts;
use crate::config::{Setting, Settings};
use crate::limits::SNAPSHOT_WRITE_BYTES;

/// The file that `dir` and `dbfilename` name. `None` if the name is empty.
pub(super) fn path(settings: &Settings) -> Option<PathBuf> {
    let name = settings.text(Setting::DbFilename);
    if name.is_empty() {
        return None;
    }
    Some(Path::new(&*settings.text(Setting::Dir)).join(&*name))
}

/// Removes what killed processes have left of snapshots in `dir`.
pub(crate) fn remove_leftovers(settings: &Settings) {
    let snapshot = settings.text(Setting::DbFilename);
    drafts::remove(Path::new(&*settings.text(Setting::Dir)), |name| {
        let numbers = name.strip_prefix("temp-")?.strip_suffix(".rdb")?;
        let (pid, number) = numbers.split_once('-')?;
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let is_draft = is_number(pid) && is_number(number) && !number.is_empty();
        (is_draft && *name != *snapshot).then(|| pid.parse().ok())?
    });
}

/// A file that has no name yet; it is removed unless it gets one.
pub(super) struct Draft {
    path: PathBuf,
    target: PathBuf,
    kept: bool,
    /// Locked, so that no server that starts takes it for a leftover.
    _lock: File,
}

/// What writes to a draft.
pub(super) struct DraftFile {
    file: Box<dyn sys::file::File>,
    /// Whether the disk is to write as it goes, so that the end does not have to wait for all of it.
    goes_along: bool,
    buffer: Buffer,
    /// Where in the file the buffer begins: at a block.
    at: u64,
}

/// Bytes that begin with a block of memory, as writing past the page cache wants it.
struct Buffer {
    memory: Vec<u8>,
    skew: usize,
    len: usize,
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
        // Processes in containers have few numbers: one that was killed may have left a file of this name.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = DraftFile {
            file: Disk.create(&path)?,
            goes_along: settings.flag(Setting::RdbSaveIncrementalFsync),
            buffer: Buffer::new(),
            at: 0,
        };
        let draft = Draft {
            _lock: drafts::lock(&path)?,
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

impl Buffer {
    fn new() -> Buffer {
        let memory = vec![0; SNAPSHOT_WRITE_BYTES + DIRECT_BLOCK];
        let skew = memory.as_ptr().align_offset(DIRECT_BLOCK) % DIRECT_BLOCK;
        Buffer {
            memory,
            skew,
            len: 0,
        }
    }

    fn bytes(&self) -> &[u8] {
        &self.memory[self.skew..self.skew + self.len]
    }

    /// Takes as many bytes as there is room for, and says how many.
    fn put(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(SNAPSHOT_WRITE_BYTES - self.len);
        let at = self.skew + self.len;
        self.memory[at..at + count].copy_from_slice(&bytes[..count]);
        self.len += count;
        count
    }
}

impl DraftFile {
    /// Waits until all of it is on disk.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn sync(mut self) -> io::Result<()> {
        self.spill()?;
        self.file.sync_data()
    }

    /// Writes all that waits, which is a whole buffer or the end of the file.
    fn spill(&mut self) -> io::Result<()> {
        let bytes = self.buffer.bytes();
        if self.goes_along {
            self.file.write_direct_at(bytes, self.at)?;
            self.file.write_back(self.at, bytes.len() as u64);
        } else {
            self.file.write_at(bytes, self.at)?;
        }
        self.at += self.buffer.len as u64;
        self.buffer.len = 0;
        Ok(())
    }
}

impl Write for DraftFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len == SNAPSHOT_WRITE_BYTES {
            self.spill()?;
        }
        Ok(self.buffer.put(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const _: () = assert!(SNAPSHOT_WRITE_BYTES.is_multiple_of(DIRECT_BLOCK));
