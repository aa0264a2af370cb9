//! Loading all values that are only in the log, because the log is to end.
//!
//! Values that a start has left in the log are being loaded already ([`super::warming`]); that is sped up. If
//! many values are missing then, the log is read from end to end. The rest is loaded key by key: values with
//! files of their own, and those outside of full segments. No value leaves memory meanwhile, because the log
//! is ending.

use ferrite_log::{DbId, Log};
use keyspace::{ColdValue, Database, Key, ShardId, Turn};

use super::warming::give_back;
use crate::limits::{
    BEGIN_BUCKETS, BRING_BACK_SWEEP, BRING_LEAVES, READ_LOOKS, READ_NAP, WARMING_LOOK,
};
use crate::persistence::durable::Durable;
use crate::persistence::instances::instance_key;
use crate::persistence::reading::Sought;
use crate::request::Failure;

const LOST: &str = "a value is not where the log is said to have it";

/// Key of a shard whose value is only in the log.
type Missing = (Vec<u8>, ColdValue);

/// Checks that memory has room for all values.
///
/// # Errors
/// It has not; the text is for people.
pub(crate) fn check_room(server: &Durable, turn: &Turn<'_>) -> Result<(), String> {
    let databases = (0..server.keyspace.databases())
        .filter_map(|number| server.keyspace.existing(turn, number));
    let bytes: usize = databases.map(|database| database.cold().1).sum();
    let bytes = bytes + server.offload.leaves.bytes() as usize;
    if bytes == 0 || server.memory.has_room(bytes as u64) {
        return Ok(());
    }
    Err(no_room(bytes))
}

fn no_room(bytes: usize) -> String {
    format!(
        "{bytes} bytes of values are in the log alone and do not fit into memory; \
             raise 'maxmemory' by as much, or remove keys"
    )
}

/// Loads all values. A later exclusive task finds all values in memory, unless others were written meanwhile.
///
/// # Errors
/// A value can't be loaded; the text is for people.
pub(super) fn bring_back(server: &Durable) -> Result<(), String> {
    let own = &server.persistence;
    own.warming.hurry();
    while own.warming.progress().is_some() {
        if server.is_shutting_down() {
            return Err("the server ends".into());
        }
        std::thread::sleep(WARMING_LOOK);
    }
    let mut turn = server.keyspace.turns().register();
    if cold_keys(server, &mut turn) > BRING_BACK_SWEEP {
        sweep(server, &mut turn)?;
    }
    for id in 0..server.keyspace.databases() {
        let id = DbId(u16::try_from(id).map_err(|_| "too many databases")?);
        for shard in 0..server.keyspace.shards() {
            let mut position = Some(0);
            while let Some(at) = position {
                let mut missing = Vec::new();
                position = look(server, &mut turn, id, ShardId(shard), at, &mut missing);
                for (key, cold) in missing {
                    bring_one(server, &mut turn, id, &key, cold)?;
                }
            }
            bring_leaves(server, &mut turn, id, ShardId(shard))?;
        }
    }
    Ok(())
}

/// Loads the leaves of the trees of a shard.
fn bring_leaves(
    server: &Durable,
    turn: &mut Turn<'_>,
    id: DbId,
    shard: ShardId,
) -> Result<(), String> {
    let mut position = Some(0);
    while let Some(at) = position {
        if server.offload.leaves.count() == 0 {
            return Ok(());
        }
        let mut keys = Vec::new();
        turn.enter();
        position = database_of(server, turn, id).and_then(|database| {
            let mut guard = database.lock_shard(shard, 0);
            (0..BEGIN_BUCKETS).try_fold(at, |at, _| {
                guard.visit_cold_trees(at, &mut |key| keys.push(key.to_vec()))
            })
        });
        turn.leave();
        for key in keys {
            bring_tree(server, turn, id, &key)?;
        }
    }
    Ok(())
}

/// Loads the leaves of the tree of a key, some at a time.
fn bring_tree(server: &Durable, turn: &mut Turn<'_>, id: DbId, key: &[u8]) -> Result<(), String> {
    let text = |failure: Failure| String::from_utf8_lossy(&failure.0).into_owned();
    let hash = server.keyspace.hash(key);
    let key = Key { bytes: key, hash };
    let mut misses = 0;
    while misses < READ_LOOKS {
        turn.enter();
        let missing = database_of(server, turn, id).and_then(|database| {
            let mut guard = database.lock(hash, 0);
            let entry = guard.find(key)?;
            let tree = entry.tree()?;
            let (instance, _) = tree.logged().place()?;
            let bases: Vec<_> = tree.cold_records().take(BRING_LEAVES).collect();
            Some((instance, bases))
        });
        turn.leave();
        let Some((instance, bases)) = missing.filter(|(_, bases)| !bases.is_empty()) else {
            return Ok(());
        };
        for base in bases {
            check(server, base.share.into())?;
            let sought = &instance_key(instance);
            let read = server.persistence.read_cold(Sought::leaf(sought, base));
            let Some(contents) = read.map_err(text)? else {
                // Its record is about to be written.
                misses += 1;
                std::thread::sleep(READ_NAP);
                break;
            };
            turn.enter();
            let warmed = database_of(server, turn, id).map_or(Ok(false), |database| {
                let mut guard = database.lock(hash, 0);
                let entry = guard.find(key);
                entry.map_or(Ok(false), |mut entry| {
                    entry.warm_leaf(instance, base.at, &contents)
                })
            });
            turn.leave();
            warmed.map_err(|damage| text(damage.into()))?;
        }
    }
    Err(LOST.into())
}

fn cold_keys(server: &Durable, turn: &mut Turn<'_>) -> usize {
    turn.enter();
    let databases = (0..server.keyspace.databases())
        .filter_map(|number| server.keyspace.existing(turn, number));
    let keys = databases.map(|database| database.cold().0).sum();
    turn.leave();
    keys
}

/// Reads the log from end to end.
fn sweep(server: &Durable, turn: &mut Turn<'_>) -> Result<(), String> {
    let sweep = server.persistence.log.read().as_ref().map(Log::sweep);
    let mut sweep = sweep.ok_or("the log has been closed")?;
    let hash = |_: DbId, key: &[u8]| server.keyspace.hash(key);
    loop {
        check(server, 0)?;
        let read = sweep.next(hash, |records| give_back(server, turn, records));
        match read.map_err(|error| error.to_string())? {
            Some(_) => {}
            None => return Ok(()),
        }
    }
}

/// Checks that there is room for `bytes` more and that the server is not stopping.
fn check(server: &Durable, bytes: u64) -> Result<(), String> {
    if server.is_shutting_down() {
        return Err("the server ends".into());
    }
    if !server.memory.has_room(bytes) {
        return Err(no_room(bytes as usize));
    }
    Ok(())
}

/// Collects the missing values of some buckets of a shard. Returns the next position.
fn look(
    server: &Durable,
    turn: &mut Turn<'_>,
    id: DbId,
    shard: ShardId,
    at: u64,
    missing: &mut Vec<Missing>,
) -> Option<u64> {
    turn.enter();
    let next = database_of(server, turn, id).and_then(|database| {
        let mut guard = database.lock_shard(shard, 0);
        if !guard.has_cold() {
            return None;
        }
        (0..BEGIN_BUCKETS).try_fold(at, |at, _| {
            guard.visit_cold(at, &mut |key, cold| missing.push((key.to_vec(), cold)))
        })
    });
    turn.leave();
    next
}

fn database_of<'t>(server: &'t Durable, turn: &'t Turn<'_>, id: DbId) -> Option<&'t Database> {
    let number = server.persistence.number_of(id)?;
    server.keyspace.existing(turn, number)
}

/// Loads the value of one key.
fn bring_one(
    server: &Durable,
    turn: &mut Turn<'_>,
    id: DbId,
    key: &[u8],
    mut cold: ColdValue,
) -> Result<(), String> {
    let hash = server.keyspace.hash(key);
    let key = Key { bytes: key, hash };
    for _ in 0..READ_LOOKS {
        check(server, cold.len)?;
        let read = server.persistence.read_cold(Sought::value(key.bytes, cold));
        let read = read.map_err(|failure| String::from_utf8_lossy(&failure.0).into_owned())?;
        let is_there = read.is_some();
        turn.enter();
        let left = database_of(server, turn, id).and_then(|database| {
            let mut guard = database.lock(hash, 0);
            if let (Some(value), Some(entry)) = (read, guard.find(key)) {
                entry.warm(cold.address, value);
            }
            guard.find(key)?.cold()
        });
        turn.leave();
        match left {
            None => return Ok(()),
            Some(left) => cold = left,
        }
        if !is_there {
            // Its record is about to be written.
            std::thread::sleep(READ_NAP);
        }
    }
    Err(LOST.into())
}
