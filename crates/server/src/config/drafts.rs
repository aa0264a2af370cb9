//! Drafts of files that a killed process has left behind: removed at the start.
//!
//! A draft carries the number of the process that writes it in its name, and is locked while that process
//! lives. A draft is removed if no process or this process has the number (processes in containers have few
//! numbers), and if its lock is free: a server in another container may write to the same directory under a
//! number of another process here.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// Removes all drafts in a directory. `writer_of` tells the process from the name of a draft, and `None` for
/// any other name.
pub(crate) fn remove(directory: &Path, writer_of: impl Fn(&str) -> Option<u32>) {
    let Ok(entries) = fs::read_dir(directory) else {
        // The user of the directory reports the error.
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(&writer_of) else {
            continue;
        };
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        let is_gone = pid == sys::process::pid() || !sys::process::is_alive(pid);
        let path = entry.path();
        if !is_file || !is_gone || is_locked(&path) {
            continue;
        }
        let bytes = entry.metadata().map_or(0, |facts| facts.len());
        match fs::remove_file(&path) {
            Ok(()) => log::info!(
                "removed {} ({bytes} bytes), which process {pid} did not finish",
                path.display()
            ),
            Err(error) => log::warn!("cannot remove {}: {error}", path.display()),
        }
    }
}

/// The name of the draft of a file that this process writes, beside the file.
pub(crate) fn draft_of(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{}.tmp", sys::process::pid()));
    name.into()
}

/// Removes all drafts of a file that killed processes have left beside it.
pub(crate) fn remove_drafts_of(file: &Path) {
    let directory = match file.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return,
    };
    let Some(own) = file.file_name().and_then(OsStr::to_str) else {
        return;
    };
    remove(directory, |name| {
        let pid = name.strip_prefix(own)?.strip_prefix('.')?;
        pid.strip_suffix(".tmp")?.parse().ok()
    });
}

/// Locks a draft for as long as the returned file is open.
///
/// # Errors
/// It cannot be opened. A file system without locks is none: there the process number alone decides.
pub(crate) fn lock(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    let _ = file.try_lock();
    Ok(file)
}

fn is_locked(path: &Path) -> bool {
    let tried = File::open(path).map(|file| file.try_lock());
    matches!(tried, Ok(Err(TryLockError::WouldBlock)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_no_process_writes_goes() {
        let name = format!("ferrite-leftover-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).expect("the directory for temporary files is writable");
        let make = |name: &str| {
            let path = directory.join(name);
            fs::write(&path, b"part").expect("the directory is writable");
            path
        };
        // The parent of this test lives; numbers that large are never given.
        let parent = std::os::unix::process::parent_id();
        let (own, alive) = (sys::process::pid().to_string(), parent.to_string());
        let gone = [own.as_str(), "2147483646"].map(make);
        let kept = [alive.as_str(), "other", "2147483645"].map(make);
        let _writer = lock(&kept[2]).expect("it is there");
        fs::create_dir(directory.join("2147483644")).expect("the directory is writable");
        remove(&directory, |name| name.parse().ok());
        assert!(gone.iter().all(|path| !path.exists()));
        assert!(kept.iter().all(|path| path.exists()));
        assert!(directory.join("2147483644").is_dir());
        fs::remove_dir_all(&directory).expect("it is ours");
    }
}
