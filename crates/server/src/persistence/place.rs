//! Messages at the start about the location of data: for an operator who has started the server in another
//! directory than before, or whose files are ignored.

use std::fs;

use ferrite_log::{Lsn, Recovery};

use super::options::directory;
use super::redis_files;
use crate::config::Setting;
use crate::persistence::durable::Durable;
use crate::persistence::snapshot;

/// Logs where data is and what was found there, with the log if there is one.
pub(crate) fn tell(server: &Durable, log: Option<&Recovery>) {
    let settings = &server.settings;
    let dir = settings.text(Setting::Dir);
    let existing_log = log.filter(|log| log.end() != Lsn::FIRST);
    // Errors in it are reported when it is loaded.
    let redis = redis_files::find(settings).ok().flatten();
    let is_taken_over = settings.flag(Setting::AppendOnly) && existing_log.is_none();
    let found = match (existing_log, &redis, snapshot_bytes(server)) {
        (Some(log), ..) => format!(
            "existing log, {} segments, {} bytes",
            log.segments(),
            log.log_bytes()
        ),
        (None, Some(redis), _) if is_taken_over => {
            format!("append-only file of redis-server, {} bytes", redis.bytes)
        }
        (None, _, Some(bytes)) => format!("existing snapshot, {bytes} bytes"),
        (None, Some(_), None) => "nothing that is read".to_owned(),
        (None, None, None) if has_unread_log(server) => "nothing that is read".to_owned(),
        (None, None, None) => "new ('dir' or -d chooses another)".to_owned(),
    };
    log::info!("Data directory {dir}: {found}");
    if has_unread_log(server) {
        log::warn!(
            "The log in {} is not read, because appendonly is no: its data is not served",
            directory(server).display()
        );
    }
    if let Some(redis) = redis {
        tell_of_redis(server, &redis, existing_log.is_some());
    }
    if existing_log.is_some() {
        tell_of_snapshot(server);
    }
}

/// Logs what happens to an append-only file of redis-server, unless it is taken over.
fn tell_of_redis(server: &Durable, redis: &redis_files::Found, has_log: bool) {
    let (name, own) = (redis.name.display(), directory(server));
    if has_log {
        log::info!(
            "{name} is an append-only file of redis-server and is not read, because the log in {} counts. \
             To take over what it holds now, stop the server, move {} away and start again",
            own.display(),
            own.display()
        );
    } else if !server.settings.flag(Setting::AppendOnly) {
        log::warn!(
            "{name} is an append-only file of redis-server and is not read, because appendonly is no: its \
             data is not served. With 'appendonly yes' it is taken over"
        );
    } else if snapshot_bytes(server).is_some() {
        log::info!(
            "The snapshot {} is not read, because the append-only file counts, as with redis-server",
            server.settings.text(Setting::DbFilename)
        );
    }
}

/// Logs that a snapshot is ignored.
fn tell_of_snapshot(server: &Durable) {
    let Some(bytes) = snapshot_bytes(server) else {
        return;
    };
    let (name, own) = (server.settings.text(Setting::DbFilename), directory(server));
    log::info!(
        "The snapshot {name}, {bytes} bytes, is not read, because the log in {} counts. To begin with \
         what the snapshot holds, stop the server, move {} away and start again; ferrite-cli import \
         {name} adds it to what is there",
        own.display(),
        own.display()
    );
}

/// Whether there is a log although the log is switched off.
fn has_unread_log(server: &Durable) -> bool {
    // Directory of the segments (docs/format.md).
    let segments = directory(server).join("log");
    !server.settings.flag(Setting::AppendOnly)
        && fs::read_dir(segments).is_ok_and(|mut entries| entries.next().is_some())
}

/// Size in bytes of the snapshot that a start loads, if there is one.
fn snapshot_bytes(server: &Durable) -> Option<u64> {
    let is_there = snapshot::is_there(server).unwrap_or(false);
    let name = server.settings.text(Setting::DbFilename);
    let metadata = is_there.then(|| fs::metadata(&*name))?;
    Some(metadata.ok()?.len())
}
