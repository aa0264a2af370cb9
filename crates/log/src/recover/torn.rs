//! The end of a log whose last large values never reached the disk.
//!
//! A record may name a large value whose file is not durable yet (`blob`). If the log ends behind such a
//! record after a crash, and the file is not what the record says, the record is as torn as one that is not
//! whole itself: the log ends in front of it.
//!
//! Unless nobody misses the file: a record behind it has replaced it. Then it may be gone because that record
//! was durable, and the log must not end before it. So what counts is the state at the end:
//!
//! ```text
//!   end = behind the last whole record
//!   while a file is broken that the state at the end needs:
//!     end = in front of the first record that names such a file
//! ```
//!
//! What was called durable is never lost by that: everything below a durable position has its files, until a
//! record that is durable too replaces it; so no file is broken that the state behind a durable record needs.
//!
//! Only records above the last position are looked at of which there is evidence that it was durable. A file
//! that is missing below is damage, and found by others (`blob::settle`).

use std::collections::HashMap;
use std::collections::hash_map::Entry as MapEntry;

use sys::file::Files;

use super::parts::Chain;
use crate::address::{DbId, Lsn};
use crate::bindings::{Rebind, decode_changes};
use crate::error::Result;
use crate::paths::Paths;
use crate::record::{BlobRef, Change, Entry, Value};
use crate::sums::damage_of;
use crate::walk::{Stop, Walk};

/// Where the log ends instead.
pub(crate) struct Torn {
    pub(crate) end: Lsn,
    pub(crate) reason: String,
}

/// A record that names a file.
struct Named {
    /// Where the record begins, or the batch that it is in.
    at: Lsn,
    /// Where the record, or batch, begins that replaces it.
    until: Option<Lsn>,
    blob: BlobRef,
}

impl Named {
    fn is_needed_at(&self, end: Lsn) -> bool {
        self.at < end && self.until.is_none_or(|until| until >= end)
    }
}

/// Finds out whether the log ends before the end that its records have.
///
/// # Errors
/// The disk refuses.
pub(crate) fn find(files: &dyn Files, paths: &Paths, chain: &Chain) -> Result<Option<Torn>> {
    let named = named(chain)?;
    let (mut torn, mut end) = (None, chain.end);
    // What is known of files: of those of one number, which can be used again, by what each record says of
    // it.
    let mut known: HashMap<(u64, u64, u32), Option<String>> = HashMap::new();
    loop {
        let mut broken = None;
        // In the order of the log, so the first that is found is the first there is.
        for named in named.iter().filter(|named| named.is_needed_at(end)) {
            let BlobRef { id, len, checksum } = named.blob;
            let reason = match known.entry((id, len, checksum)) {
                MapEntry::Occupied(known) => known.into_mut(),
                MapEntry::Vacant(unknown) => {
                    let damage = damage_of(files, &paths.blob(id), named.blob)?;
                    unknown.insert(damage.map(|damage| damage.to_string()))
                }
            };
            if let Some(reason) = reason {
                broken = Some((named.at, reason.clone()));
                break;
            }
        }
        let Some((at, reason)) = broken else {
            return Ok(torn);
        };
        end = at;
        torn = Some(Torn { end, reason });
    }
}

/// The records that name files, of those that may not have been durable, in their order.
fn named(chain: &Chain) -> Result<Vec<Named>> {
    let mut all: Vec<Named> = Vec::new();
    if chain.last_blob < chain.durable {
        return Ok(all);
    }
    // What the last word about a key names.
    let mut open: HashMap<(DbId, Vec<u8>), usize> = HashMap::new();
    for (candidate, extent) in &chain.segments {
        if extent.end() <= chain.durable {
            continue;
        }
        let (file, bytes) = (&*candidate.file, candidate.header_bytes);
        let mut walk = Walk::new(file, &candidate.path, extent.first, bytes, extent.end());
        let mut batch = extent.first;
        loop {
            let step = match walk.next() {
                Ok(Some(step)) => step,
                Ok(None) => break,
                Err(stop @ (Stop::Io(_) | Stop::Unknown(..))) => return Err(walk.error(stop)),
                // Below what is durable, and found by whoever reads it next.
                Err(Stop::Flaw(..)) => return Ok(Vec::new()),
            };
            let at = if step.found.is_inner { batch } else { step.lsn };
            match step.found.entry {
                Entry::Batch(_) => batch = step.lsn,
                Entry::Bind(changes) => {
                    for change in decode_changes(changes).unwrap_or_default() {
                        open.retain(|(db, _), &mut number| {
                            let goes = match change {
                                Rebind::Clear(cleared) => *db == cleared,
                                Rebind::ClearAll => *db != DbId::APART,
                                Rebind::Name { .. } => false,
                            };
                            if goes {
                                all[number].until = Some(at);
                            }
                            !goes
                        });
                    }
                }
                Entry::Key(record) => {
                    let key = || (record.db, record.key.to_vec());
                    let is_last_word = matches!(record.change, Change::Set { .. } | Change::Delete);
                    if is_last_word
                        && !open.is_empty()
                        && let Some(number) = open.remove(&key())
                    {
                        all[number].until = Some(at);
                    }
                    if let Change::Set {
                        value: Value::Blob(blob),
                        ..
                    } = record.change
                        && step.lsn >= chain.durable
                    {
                        open.insert(key(), all.len());
                        all.push(Named {
                            at,
                            until: None,
                            blob,
                        });
                    }
                }
                Entry::Mark(_) | Entry::Retire(_) | Entry::Void => {}
            }
        }
    }
    Ok(all)
}
