//! How many keys there were: a note beside the log, so that the next start makes its tables in the right size
//! at once.
//!
//! It is a guess about the future and no part of the log: one that is missing or wrong costs time or memory
//! for a while, nothing else. A line for each database that has keys: what the log calls it, and how many.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

use keyspace::Turn;

use super::directory;
use crate::limits::{SIZES_CHANGE_SHARE, SIZES_MIN_KEYS};
use crate::persistence::Durable;

/// The bytes that a key takes in the log at least.
const KEY_BYTES: u64 = 24;

fn path(directory: &Path) -> PathBuf {
    directory.join("SIZES")
}

/// Writes the note when what it would say has changed by enough.
#[derive(Default)]
pub(super) struct Sizes {
    noted: u64,
}

impl Sizes {
    /// Call it now and then, inside a turn.
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
        // Whether it can be written or not: it is not worth another try before there is something new to say.
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

/// Makes room for as many keys as there were, if the log can have as many. `number_of` says where a database
/// of the log is now.
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
