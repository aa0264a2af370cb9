//! Large values: which of them the log needs, and whether their files are what was written.

use std::collections::HashMap;

use sys::file::Files;

use crate::address::DbId;
use crate::bindings::Bindings;
use crate::error::{Damage, Result};
use crate::paths::Paths;
use crate::record::{BlobRef, Change, Entry, Value};
use crate::recover::parts::Chain;
use crate::sums::{damage_of, is_whole};
use crate::walk::{Stop, Walk};

/// A key whose value is in a file of its own.
pub(super) type Needed = HashMap<(DbId, Vec<u8>), BlobRef>;

/// A large value that is not what was written.
pub(super) struct Bad {
    pub(super) db: DbId,
    pub(super) key: Vec<u8>,
    pub(super) len: u64,
    pub(super) damage: Damage,
    /// The value is what the record says: nothing but the checksums of its pieces is damaged.
    pub(super) whole: Option<BlobRef>,
}

impl Bad {
    /// Whose value it is, for people.
    pub(super) fn name(&self, bindings: &Bindings) -> String {
        format!(
            "the key \"{}\" in database {}, with its value of {} bytes,",
            self.key.escape_ascii(),
            bindings.number_of(self.db),
            self.len
        )
    }
}

/// The values in files that the last words about their keys name.
pub(super) fn needed(chain: &Chain) -> Result<Needed> {
    let mut needed = Needed::new();
    for (candidate, extent) in &chain.segments {
        let (file, path) = (&*candidate.file, &candidate.path);
        let bytes = candidate.header_bytes;
        let mut walk = Walk::new(file, path, extent.first, bytes, extent.end());
        loop {
            match walk.next() {
                Ok(None) => break,
                Ok(Some(step)) => {
                    let Entry::Key(record) = step.found.entry else {
                        continue;
                    };
                    if !chain.bindings.is_alive(record.db, step.lsn) {
                        continue;
                    }
                    let key = || (record.db, record.key.to_vec());
                    match record.change {
                        Change::Set {
                            value: Value::Blob(blob),
                            ..
                        } => drop(needed.insert(key(), blob)),
                        Change::Set { .. } | Change::Delete if !needed.is_empty() => {
                            needed.remove(&key());
                        }
                        _ => {}
                    }
                }
                Err(Stop::Io(error)) => return Err(walk.error(Stop::Io(error))),
                // Damage has been told of; what else is needed is not known.
                Err(Stop::Flaw(..) | Stop::Unknown(..)) => return Ok(Needed::new()),
            }
        }
    }
    Ok(needed)
}

/// Those of them whose files are missing or changed, in the order of the files.
pub(super) fn damaged(files: &dyn Files, paths: &Paths, needed: Needed) -> Result<Vec<Bad>> {
    let mut bad = Vec::new();
    for ((db, key), blob) in needed {
        let path = paths.blob(blob.id);
        if let Some(damage) = damage_of(files, &path, blob)? {
            let is_whole = is_whole(files, &path, blob)?;
            bad.push(Bad {
                db,
                key,
                len: blob.len,
                damage,
                whole: is_whole.then_some(blob),
            });
        }
    }
    bad.sort_by(|one, other| one.damage.file.cmp(&other.damage.file));
    Ok(bad)
}
