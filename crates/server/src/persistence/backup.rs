//! Backups of the log, while the server goes on.

use std::path::{Component, Path, PathBuf};

use ferrite_log::Backup;

use super::Persistence;
use crate::config::{Setting, Settings};

/// Where a backup called `name` goes: a directory in `dir`, so that its files are links, and a client can make none elsewhere.
/// `None` if the name is of another place.
pub(crate) fn backup_directory(settings: &Settings, name: &str) -> Option<PathBuf> {
    let path = Path::new(name);
    let is_inside = |part: Component<'_>| matches!(part, Component::Normal(_));
    if name.is_empty() || !path.components().all(is_inside) {
        return None;
    }
    // A server starts there with `--dir` alone.
    Some(path.join(&*settings.text(Setting::AppendDirName)))
}

impl Persistence {
    /// Makes a backup of everything that was committed. Takes as long as the disk does.
    ///
    /// # Errors
    /// There is no log, there is something in the directory, or the disk refuses.
    pub(crate) fn back_up(&self, directory: &Path) -> Result<Backup, String> {
        match &*self.log.read() {
            Some(log) => log.backup(directory).map_err(|error| error.to_string()),
            None => Err("there is no log: 'appendonly' is no".into()),
        }
    }
}
