//! Taking over an append-only file of redis-server or Valkey: its data goes into this server's own log.
//!
//! It happens at a start with a log that was never written to. The log is marked as incomplete before the
//! first byte goes into it, and as complete when all of it is durable: after a kill in between, the next
//! start begins again. A complete log alone counts. redis-server's files are only read.
//!
//! [`crate::persistence`] finds them and says where the log is, `run` runs the commands. The syntax of the
//! files is in the crates `aof` and `rdb`.

mod run;

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use crate::persistence::snapshot;
use crate::persistence::{Found, Relief, find, switch};
use crate::server::Server;

use run::Runner;

/// Takes over the files. The log is open, marked as incomplete, and no other thread changes data.
///
/// # Errors
/// Place of the first mistake: file, byte, command and key.
pub(crate) fn take_over(server: &'static Server, found: &Found) -> Result<(), String> {
    log::info!(
        "Taking over {}: {} files, {} bytes",
        found.name.display(),
        found.files.len(),
        found.bytes
    );
    // A command that comes later may give a key whose time has come another.
    server.keyspace.set_keeps_expired(true);
    let taken = take_all(server, found).map_err(|problem| {
        format!(
            "{problem}\n\
             Nothing was changed. Let the server that wrote it (redis-server or Valkey) start there and \
             remove what this server does not have, or move {} away to start without its data",
            found.whole().display()
        )
    })?;
    server.keyspace.set_keeps_expired(false);
    log::info!(
        "Taken over {}: {} keys of its base and {} commands behind it. The files of redis-server stay as \
         they are, and are not read any more",
        found.name.display(),
        taken.keys,
        taken.commands
    );
    Ok(())
}

/// Counts of a takeover.
#[derive(Default)]
struct Taken {
    keys: u64,
    commands: u64,
}

fn take_all(server: &'static Server, found: &Found) -> Result<Taken, String> {
    let loading = server.snapshots.loading();
    let mut taken = Taken::default();
    let mut before = 0;
    for (number, path) in found.files.iter().enumerate() {
        let named = |problem: String| format!("{} cannot be taken over: {problem}", path.display());
        let mut commands_from = 0;
        if begins_with_rdb(path).map_err(|error| named(error.to_string()))? {
            let relief = Relief::new(server);
            commands_from = snapshot::load_base(server, path, relief).map_err(named)?;
            taken.keys += loading.keys.load(Relaxed);
            switch::log_everything(server)
                .map_err(|problem| format!("cannot begin the log: {problem}"))?;
        }
        loading.total_bytes.store(found.bytes, Relaxed);
        loading.loaded_bytes.store(before + commands_from, Relaxed);
        let mut runner = Runner::new(server, found, before)?;
        let is_last = number + 1 == found.files.len();
        taken.commands += runner.run_file(path, commands_from, is_last)?;
        before += path.metadata().map_or(0, |metadata| metadata.len());
    }
    // A server that still writes there would go on with what is not in the log.
    if find(&server.settings)?.as_ref() != Some(found) {
        return Err(format!(
            "{} cannot be taken over: it has changed meanwhile. Is redis-server still running there?",
            found.name.display()
        ));
    }
    if server.persistence.sync() {
        Ok(taken)
    } else {
        Err("cannot begin the log: it could not be made durable".into())
    }
}

/// Whether an RDB file stands in front of the commands of a file.
fn begins_with_rdb(path: &Path) -> std::io::Result<bool> {
    let longest = aof::RDB_MAGICS.map(<[u8]>::len).into_iter().max();
    let mut begin = Vec::new();
    let mut file = File::open(path)?.take(longest.unwrap_or(0) as u64);
    file.read_to_end(&mut begin)?;
    Ok(aof::RDB_MAGICS.iter().any(|magic| begin.starts_with(magic)))
}
