//! Backups of the log, while the server goes on.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use ferrite_log::Backup;

use super::{Persistence, redis_files};
use crate::config::{Setting, Settings};

/// Bytes that the name of a backup has at most, as file systems have it.
const NAME_BYTES: usize = 255;

/// The directory of the backup called `name`, below `backup-dir`: no name reaches a file that the server
/// itself uses. A server starts there with `--dir` alone.
///
/// # Errors
/// Why there is none, for the client.
pub(crate) fn backup_directory(settings: &Settings, name: &[u8]) -> Result<PathBuf, &'static str> {
    let backups = settings.text(Setting::BackupDir);
    if backups.is_empty() {
        return Err("ERR BACKUP is turned off: 'backup-dir' is empty");
    }
    let name = std::str::from_utf8(name).ok().filter(|name| is_name(name));
    let name = name.ok_or(
        "ERR the name of a backup is a plain name: no '/', no '.' or '-' at its beginning, no control characters",
    )?;
    Ok(Path::new(&*backups).join(name))
}

/// Whether a backup may be called so.
fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= NAME_BYTES
        && !name.starts_with(['.', '-'])
        && !name.contains(|letter: char| matches!(letter, '/' | '\\') || letter.is_control())
}

/// Looks whether backups have a place of their own.
///
/// # Errors
/// They would be among the files of the log, or of the one that the next takes the place of. Or there are two
/// logs.
pub(crate) fn check_place(settings: &Settings) -> Result<(), String> {
    redis_files::own_directory(settings)?;
    let backups = settings.text(Setting::BackupDir);
    let log = settings.text(Setting::AppendDirName);
    let parts = |path: &str| {
        let parts = Path::new(path).components();
        let parts = parts.filter(|part| *part != Component::CurDir);
        parts
            .map(|part| part.as_os_str().to_owned())
            .collect::<Vec<_>>()
    };
    let is_inside = |log: &str| parts(&backups).starts_with(&parts(log));
    let ends = ["", ".old", ".ferrite", ".ferrite.old"];
    if !backups.is_empty() && ends.iter().any(|end| is_inside(&format!("{log}{end}"))) {
        return Err(format!(
            "'backup-dir' {backups} is inside of the log's directory ({log}): choose another"
        ));
    }
    Ok(())
}

impl Persistence {
    /// Makes a backup of everything that was committed, in a directory that need not exist. Takes as long as
    /// the disk does.
    ///
    /// # Errors
    /// There is no log, there is something in the directory, or the disk refuses.
    pub(crate) fn back_up(&self, directory: &Path, settings: &Settings) -> Result<Backup, String> {
        let log = self.log.read();
        let Some(log) = &*log else {
            return Err("there is no log: 'appendonly' is no".into());
        };
        let own = directory.join(&*settings.text(Setting::AppendDirName));
        let made = log.backup(&own).map_err(|error| error.to_string())?;
        // The names on the way to it: its own, that of `backup-dir`, and those in the directory of that.
        for directory in directory.ancestors().take(3) {
            let directory = match directory {
                path if path.as_os_str().is_empty() => Path::new("."),
                path => path,
            };
            let synced = File::open(directory).and_then(|directory| directory.sync_all());
            match synced {
                // Nothing was made in a directory that this process may not even read.
                Err(error) if error.kind() == ErrorKind::PermissionDenied => {}
                synced => synced
                    .map_err(|error| format!("cannot sync {}: {error}", directory.display()))?,
            }
        }
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        for name in [
            "2026-11-23",
            "a b",
            "dump.rdb",
            "next.tmp",
            "ä",
            "appendonlydir",
        ] {
            assert!(is_name(name), "{name}");
        }
        let long = "n".repeat(256);
        for name in [
            "", ".", "..", ".hidden", "-rf", "a/b", "/a", "a\\b", "a\nb", "a\0", &long,
        ] {
            assert!(!is_name(name), "{name:?}");
        }
    }
}
