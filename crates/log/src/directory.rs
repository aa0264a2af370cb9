//! The directory of a log: taking it for this process, and files beside those of the log.

use std::path::{Path, PathBuf};

use sys::file::{File, Files, Lock};

use crate::error::{Error, Result, absolute};
use crate::paths::Paths;

/// Takes the directory for this process.
pub(crate) fn lock_directory(files: &dyn Files, paths: &Paths) -> Result<Box<dyn Lock>> {
    files.lock(&paths.lock).map_err(|error| {
        if error.kind() != std::io::ErrorKind::WouldBlock {
            return Error::io("cannot lock", &paths.lock, error);
        }
        Error::Locked {
            directory: absolute(&paths.root),
            holder: holder(files, &paths.lock),
        }
    })
}

/// The number that the holder of a lock left.
fn holder(files: &dyn Files, path: &Path) -> Option<u32> {
    let mut text = [0; 16];
    let count = files.open(path).ok()?.read_at(&mut text, 0).ok()?;
    std::str::from_utf8(&text[..count])
        .ok()?
        .trim()
        .parse()
        .ok()
}

/// A path in `directory` that is not taken yet.
pub(crate) fn free_name(files: &dyn Files, directory: &Path, name: &str) -> Result<PathBuf> {
    let taken = files
        .list(directory)
        .map_err(|error| Error::io("cannot list", directory, error))?;
    let is_free = |name: &String| !taken.contains(name);
    let numbered = (1u32..).map(|number| format!("{name}.{number}"));
    let free = std::iter::once(name.to_owned())
        .chain(numbered)
        .find(is_free);
    Ok(directory.join(free.expect("there is always a greater number")))
}

/// Copies part of a file to a new one, durably.
pub(crate) fn copy_range(
    files: &dyn Files,
    from: &dyn File,
    range: std::ops::Range<u64>,
    to: &Path,
) -> std::io::Result<()> {
    const PIECE: u64 = 1 << 20;
    let copy = files.create(to)?;
    let mut at = range.start;
    while at < range.end {
        let mut piece = vec![0; (range.end - at).min(PIECE) as usize];
        from.read_exact_at(&mut piece, at)?;
        copy.write_at(&piece, at - range.start)?;
        at += piece.len() as u64;
    }
    copy.sync_data()
}
