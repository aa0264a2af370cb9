//! File of a snapshot: written beside the old one, and durable before it replaces it.
//!
//! ```text
//! temp-PID-N.rdb  --write, sync-->  --rename-->  dump.rdb  --sync the directory-->
//! ```
//!
//! Bytes are collected in a buffer first. They are written past the page cache if the file system supports
//! it: the page cache has better uses, and there is no later write-back that delays other users of the disk.
//! Without that support the disk begins to write at once.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sys::file::{DIRECT_BLOCK, Disk, Files};

use crate::config::drafts;
use crate::config::{Setting, Settings};
use crate::limits::SNAPSHOT_WRITE_BYTES;

/// The file of `dir` and `dbfilename`. `None` if the name is empty.
pub(super) fn path(settings: &Settings) -> Option<PathBuf> {
    let name = settings.text(Setting::DbFilename);
    if name.is_empty() {
        return None;
    }
    Some(Path::new(&*settings.text(Setting::Dir)).join(&*name))
}

/// Removes temporary files that killed processes have left in `dir`.
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

/// Temporary file. It is removed unless it replaces the old one.
pub(super) struct Draft {
    path: PathBuf,
    target: PathBuf,
    kept: bool,
    /// Locked, so that another server that starts does not remove it.
    _lock: File,
}

/// Writer of a draft.
pub(super) struct DraftFile {
    file: Box<dyn sys::file::File>,
    /// Whether write-back starts at once, so that the final sync is short.
    goes_along: bool,
    buffer: Buffer,
    /// Offset of the buffer in the file: a multiple of the block size.
    at: u64,
}

/// Buffer that is aligned to blocks, as writing past the page cache requires.
struct Buffer {
    memory: Vec<u8>,
    skew: usize,
    len: usize,
}

impl Draft {
    /// Creates a temporary file beside the one to be replaced.
    ///
    /// # Errors
    /// The configured name is empty, or the system call fails.
    pub(super) fn create(settings: &Settings) -> io::Result<(Draft, DraftFile)> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let target = path(settings).ok_or_else(|| io::Error::other("'dbfilename' is empty"))?;
        let number = NUMBER.fetch_add(1, Relaxed);
        let name = format!("temp-{}-{number}.rdb", sys::process::pid());
        let path = target.with_file_name(name);
        // Process ids in containers are small: a killed process may have left a file of this name.
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

    /// Replaces the old file. The bytes are durable already.
    ///
    /// # Errors
    /// The system call fails; the old file is still there.
    pub(super) fn keep(&mut self) -> io::Result<()> {
        fs::rename(&self.path, &self.target)?;
        self.kept = true;
        Ok(())
    }

    /// Makes the replacement durable.
    ///
    /// # Errors
    /// The system call fails.
    pub(super) fn sync_directory(&self) -> io::Result<()> {
        let directory = self.target.parent().unwrap_or(Path::new("."));
        File::open(directory)?.sync_all()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.kept {
            // A file that can't be removed stays; its name is never loaded.
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

    /// Takes bytes as far as there is room. Returns their number.
    fn put(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(SNAPSHOT_WRITE_BYTES - self.len);
        let at = self.skew + self.len;
        self.memory[at..at + count].copy_from_slice(&bytes[..count]);
        self.len += count;
        count
    }
}

impl DraftFile {
    /// Waits until all bytes are on disk.
    ///
    /// # Errors
    /// Errors of the system calls.
    pub(super) fn sync(mut self) -> io::Result<()> {
        self.spill()?;
        self.file.sync_data()
    }

    /// Writes the buffer, which is full or the end of the file.
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
