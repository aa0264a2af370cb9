//! Where data is, told in the first lines of the server's log: somebody who started it in another directory
//! than the last time should see that at once.

use std::fs;
use std::path::{Path, PathBuf};

use ferrite_log::{Lsn, Recovery};

use super::directory;
use crate::config::{Foreign, Setting};
use crate::server::Server;
use crate::snapshot;

/// Says where data is and what was found there, of the log if there is one.
pub(crate) fn tell(server: &Server, log: Option<&Recovery>) {
    let settings = &server.settings;
    let dir = settings.text(Setting::Dir);
    let existing_log = log.filter(|log| log.end() != Lsn::FIRST);
    let found = match (existing_log, snapshot_bytes(server)) {
        (Some(log), _) => format!(
            "existing log, {} segments, {} bytes",
            log.segments(),
            log.log_bytes()
        ),
        (None, Some(bytes)) => format!("existing snapshot, {bytes} bytes"),
        (None, None) if has_unread_log(server) => "nothing that is read".to_owned(),
        (None, None) => "new ('dir' or -d chooses another)".to_owned(),
    };
    log::info!("Data directory {dir}: {found}");
    if has_unread_log(server) {
        log::warn!(
            "The log in {} is not read, because appendonly is no: its data is not served",
            directory(settings).display()
        );
    }
    if existing_log.is_none()
        && let Some(path) = append_only_file(server)
    {
        log::warn!(
            "{} is an append-only file of redis-server, which is not read here. To take its data over, let redis-server \
             write a snapshot (BGSAVE) and put that file here",
            path.display()
        );
    }
}

/// Whether there is a log though the server keeps none.
fn has_unread_log(server: &Server) -> bool {
    let settings = &server.settings;
    // Where segments are (docs/format.md).
    let segments = directory(settings).join("log");
    !settings.flag(Setting::AppendOnly)
        && fs::read_dir(segments).is_ok_and(|mut entries| entries.next().is_some())
}

/// The size of the snapshot that a start loads, if there is one.
fn snapshot_bytes(server: &Server) -> Option<u64> {
    let is_there = snapshot::is_there(server).unwrap_or(false);
    let name = server.settings.text(Setting::DbFilename);
    let metadata = is_there.then(|| fs::metadata(&*name))?;
    Some(metadata.ok()?.len())
}

/// The append-only file that a redis-server has left where this server looks for its own log.
fn append_only_file(server: &Server) -> Option<PathBuf> {
    let settings = &server.settings;
    let row = Foreign::find(b"appendfilename")?;
    let name = settings.foreign_text(row)?;
    [
        directory(settings).join(format!("{name}.manifest")),
        // Before Redis 7.
        Path::new(".").join(&*name),
    ]
    .into_iter()
    .find(|path| path.exists())
}
