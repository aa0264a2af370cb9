//! Numbers of keys: a note beside the log, from which the next start sizes its tables.
//!
//! The note is only a hint and no part of the log. A missing or wrong one costs time or memory for a while.
//! It has a line for each database with keys: its log id, and the number of keys.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

use keyspace::Turn;

use super::options::directory;
use crate::limits::{SIZES_CHANGE_SHARE, SIZES_MIN_KEYS};
use crate::persistence::durable::Durable;

/// Least bytes of a key in the log.
const KEY_BYTES: u64 = 24;

fn path(directory: &Path) -> PathBuf {
    directory.join("SIZES")
}

/// Writes the note when its numbers have changed enough.
#[derive(Default)]
pub(super) struct Sizes {
    noted: u64,
}

impl Sizes {
    /// Writes the note if it is due. Call it now and then, inside a turn.
    pub(super) fn note(&mut self, server: &Durable, turn: &Turn<'_>) {
        let sizes: Vec<(u16, usize)> = (server.persistence.ids.iter().enumerate())
            .filter_map(|(db, id)| {
                let keys = server.keyspace.existing(turn, db)?.len();
                (keys > 0).then_some((id.load(Relaxed), keys))
            })
            .collect();
        let keys = sizes.iter().map(|&(_, keys)| keys as u64).sum::<u64>();
        let change = keys.abs_diff(self.noted);
        if change < SIZES_MIN_KEYS || change < self.noted / SIZES_CHANGE_SHARE {
            return;
        }
        // Also after an error: another attempt waits for the next change.
        self.noted = keys;
        let text: String = sizes
            .iter()
            .map(|(id, keys)| format!("{id} {keys}\n"))
            .collect();
        let directory = directory(server);
        let temporary = directory.join("SIZES.tmp");
        let written =
            fs::write(&temporary, text).and_then(|()| fs::rename(&temporary, path(&directory)));
        if let Err(error) = written {
            log::debug!("cannot note how many keys there are: {error}");
        }
    }
}

/// Reserves tables for the noted numbers of keys, as far as the log can have as many. `number_of`: current
/// number of a database of the log.
pub(super) fn reserve(
    server: &Durable,
    turn: &Turn<'_>,
    log_bytes: u64,
    number_of: impl Fn(u16) -> usize,
) {
    let text = fs::read_to_string(path(&directory(server))).unwrap_or_default();
    let mut left = log_bytes / KEY_BYTES;
    for line in text.lines() {
        let Some((id, keys)) = line.split_once(' ') else {
            return;
        };
        let (Ok(id), Ok(keys)) = (id.parse(), keys.parse::<u64>()) else {
            return;
        };
        let (number, keys) = (number_of(id), keys.min(left));
        left -= keys;
        if keys >= SIZES_MIN_KEYS && number < server.keyspace.databases() {
            (server.keyspace.database(turn, number)).reserve(keys as usize);
        }
    }
}
