//! What bytes seem to be about that are no records any more.

use std::ops::Range;

use sys::file::File;

use super::names::name_of;
use crate::address::{DbId, Lsn};
use crate::bindings::Bindings;
use crate::record::{self, Entry, Record};

/// Bytes that are read at once.
const WINDOW: u64 = 1 << 20;
/// Names of keys and collections that a person is told, at most.
const MOST_NAMES: usize = 8;

/// What a stretch of bytes seems to be about.
#[derive(Default)]
pub(super) struct Guesses {
    /// For people; empty if nobody can tell.
    pub(super) about: String,
}

/// Guesses what the bytes were, the first of which are the record at `first`.
pub(super) fn guesses(
    file: &dyn File,
    range: &Range<u64>,
    first: Lsn,
    bindings: &Bindings,
) -> Guesses {
    let mut names = Vec::new();
    each_guess(file, range, first, |record| {
        let number = bindings.number_of(record.db);
        let name = match record.instance() {
            Some(instance) => format!("the collection {instance} in database {number}"),
            None if record.db == DbId::APART => name_of(bindings, record.db, record.key),
            None => format!("\"{}\" in database {number}", record.key.escape_ascii()),
        };
        if names.len() <= MOST_NAMES {
            names.push(name);
        }
    });
    if names.is_empty() {
        return Guesses::default();
    }
    let more = if names.len() > MOST_NAMES {
        names.truncate(MOST_NAMES);
        " and more"
    } else {
        ""
    };
    // Keys come by their names alone, behind the word.
    let what = if names[0].starts_with('"') {
        "the key "
    } else {
        ""
    };
    Guesses {
        about: format!(", which seem to be of {what}{}{more},", names.join(", ")),
    }
}

/// Calls `each` for whatever looks like a record of a key or an instance, up to bytes that look like none.
fn each_guess(file: &dyn File, range: &Range<u64>, first: Lsn, mut each: impl FnMut(&Record<'_>)) {
    let mut at = range.start;
    while at < range.end {
        let mut bytes = vec![0; (range.end - at).min(WINDOW) as usize];
        if file.read_exact_at(&mut bytes, at).is_err() {
            return;
        }
        let lsn = first.offset(at - range.start);
        let mut passed = 0;
        while let Some(rest) = bytes.get(passed..)
            && let Some((entry, bytes)) = record::guess(rest, lsn.offset(passed as u64))
        {
            if let Entry::Key(record) = &entry {
                each(record);
            }
            passed = passed.saturating_add(bytes);
        }
        if passed == 0 {
            return;
        }
        at = at.saturating_add(passed as u64);
    }
}
