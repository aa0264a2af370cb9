//! Backups of the log of a running server.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use ferrite_log::Backup;

use super::redis_files;
use super::state::Persistence;
use crate::config::{Setting, Settings};

/// Longest name of a backup, bytes; a limit of file systems.
const NAME_BYTES: usize = 255;

/// Directory of the backup `name`, below `backup-dir`. No name leads to a file that the server uses itself. A
/// server with `--dir` of that directory starts from the backup.
///
/// # Errors
/// The name is not allowed; the text is for the client.
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

/// Whether `name` is allowed.
fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= NAME_BYTES
        && !name.starts_with(['.', '-'])
        && !name.contains(|letter: char| matches!(letter, '/' | '\\') || letter.is_control())
}

/// Checks that `backup-dir` is a place of its own.
///
/// # Errors
/// It is inside the log, or inside the directory to which an earlier log is moved. Or there are two logs.
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
    /// Makes a backup of all committed data, in a directory that need not exist. Blocks on the disk.
    ///
    /// # Errors
    /// There is no log, the directory is not empty, or the disk fails.
    pub(crate) fn back_up(&self, directory: &Path, settings: &Settings) -> Result<Backup, String> {
        let log = self.log.read();
        let Some(log) = &*log else {
            return Err("there is no log: 'appendonly' is no".into());
        };
        let own = directory.join(&*settings.text(Setting::AppendDirName));
        let made = log.backup(&own).map_err(|error| error.to_string())?;
        // The directory of the backup, `backup-dir`, and the parent of that.
        for directory in directory.ancestors().take(3) {
            let directory = match directory {
                path if path.as_os_str().is_empty() => Path::new("."),
                path => path,
            };
            let synced = File::open(directory).and_then(|directory| directory.sync_all());
            match synced {
                // A directory that this process can't read has no new entries of it.
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
