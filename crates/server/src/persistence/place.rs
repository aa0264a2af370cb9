//! Where data is, told in the first lines of the server's log: somebody who started it in another directory
//! than the last time should see that at once, and so should somebody whose files are passed over.

use std::fs;

use ferrite_log::{Lsn, Recovery};

use super::{directory, redis_files};
use crate::config::Setting;
use crate::persistence::Durable;
use crate::persistence::snapshot;

/// Says where data is and what was found there, of the log if there is one.
pub(crate) fn tell(server: &Durable, log: Option<&Recovery>) {
    let settings = &server.settings;
    let dir = settings.text(Setting::Dir);
    let existing_log = log.filter(|log| log.end() != Lsn::FIRST);
    // What is wrong with it is told when it is loaded.
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

/// Says what becomes of an append-only file of redis-server, unless it is about to be taken over.
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

/// Says that a snapshot is passed over.
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

/// Whether there is a log though the server keeps none.
fn has_unread_log(server: &Durable) -> bool {
    // Where segments are (docs/format.md).
    let segments = directory(server).join("log");
    !server.settings.flag(Setting::AppendOnly)
        && fs::read_dir(segments).is_ok_and(|mut entries| entries.next().is_some())
}

/// The size of the snapshot that a start loads, if there is one.
fn snapshot_bytes(server: &Durable) -> Option<u64> {
    let is_there = snapshot::is_there(server).unwrap_or(false);
    let name = server.settings.text(Setting::DbFilename);
    let metadata = is_there.then(|| fs::metadata(&*name))?;
    Some(metadata.ok()?.len())
}
