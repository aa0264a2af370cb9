//! A snapshot in place of a log: what it holds becomes the log that the server starts from.
//!
//! ```text
//!  DIR/import/log/...   --filled, synced-->   --rename-->   DIR/log/...
//! ```
//!
//! The snapshot is loaded if nothing was ever written to the log. It goes into a log of its own first, which takes its place as one
//! step: whoever dies before that finds no log at the next start, and begins again; after that, the log says more than any
//! snapshot. So nothing of it is lost, whenever the server is killed.

use std::fs;
use std::path::Path;

use ferrite_log::{Appender, DbId, Log, Lsn, Recovery, Refusal, Tag};

use super::{directory, log_options, open_log};
use crate::limits::IMPORT_COMMIT_BYTES;
use crate::server::Server;
use crate::snapshot;

/// Puts the snapshot that the settings name into the log, if there is one and nothing was ever written to the log.
///
/// # Errors
/// What to tell the operator; nothing has changed then.
pub(super) fn import(server: &Server, recovery: Recovery) -> Result<Recovery, String> {
    let root = directory(&server.settings);
    let draft = root.join("import");
    // Of one that was interrupted.
    remove(&draft)?;
    if recovery.end() > Lsn::FIRST || !snapshot::is_there(server)? {
        return Ok(recovery);
    }
    log::info!("There is no log yet: it begins with what the snapshot holds");
    fill(server, &draft)?;
    // Segments of a log in which nothing is.
    let (old, new) = (root.join("log"), draft.join("log"));
    drop(recovery);
    remove(&old)?;
    let moved = fs::rename(&new, &old).and_then(|()| fs::File::open(&root)?.sync_all());
    moved.map_err(|error| format!("cannot rename {}: {error}", new.display()))?;
    remove(&draft)?;
    open_log(server)
}

fn remove(directory: &Path) -> Result<(), String> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {error}", directory.display()))
        }
        _ => Ok(()),
    }
}

/// Makes a log of the snapshot.
fn fill(server: &Server, draft: &Path) -> Result<(), String> {
    let failed = |error: ferrite_log::Error| format!("cannot make a log of the snapshot: {error}");
    let files = server.persistence.disk.clone();
    let recovery = Log::open(files, draft, log_options(server)).map_err(failed)?;
    let log = recovery.start().map_err(failed)?;
    let mut appender = log.appender(None).expect("it has one for each worker");
    let mut uncommitted = 0;
    snapshot::read_at_start(server, &mut |db, key, value, expiry| {
        let bytes = Appender::bytes_of(key.len(), value.len());
        let ensured = appender.ensure(bytes);
        ensured.map_err(|refusal: Refusal| format!("the log refuses it: {refusal}"))?;
        let db = DbId(u16::try_from(db).map_err(|_| "a database that the log cannot name")?);
        appender.set(db, key, Tag::default(), expiry, value);
        uncommitted += bytes;
        if uncommitted > IMPORT_COMMIT_BYTES {
            appender.commit();
            uncommitted = 0;
        }
        Ok(())
    })?;
    drop(appender);
    log.close().map_err(failed)
}
