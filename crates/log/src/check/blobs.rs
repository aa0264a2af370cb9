//! Large values: which of them the log needs, and whether their files are what was written.

use std::collections::HashMap;
use std::path::Path;

use sys::file::{File, Files};

use super::damage;
use crate::address::DbId;
use crate::bindings::Bindings;
use crate::error::{Damage, Error, Result};
use crate::paths::Paths;
use crate::record::{BlobRef, Change, Entry, Value};
use crate::recover::chain::Chain;
use crate::walk::{Stop, Walk};

/// Bytes read with one call.
const PIECE: usize = 1 << 20;

/// A key whose value is in a file of its own.
pub(super) type Needed = HashMap<(DbId, Vec<u8>), BlobRef>;

/// A large value that is not what was written.
pub(super) struct Bad {
    pub(super) db: DbId,
    pub(super) key: Vec<u8>,
    pub(super) len: u64,
    pub(super) damage: Damage,
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
                Err(Stop::Flaw(..)) => return Ok(Needed::new()),
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
        if let Some(damage) = verify(files, &path, blob)? {
            let len = blob.len;
            bad.push(Bad {
                db,
                key,
                len,
                damage,
            });
        }
    }
    bad.sort_by(|one, other| one.damage.file.cmp(&other.damage.file));
    Ok(bad)
}

/// Reads a large value; what is wrong with its file, if anything is.
pub(crate) fn verify(files: &dyn Files, path: &Path, blob: BlobRef) -> Result<Option<Damage>> {
    let file = match files.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let reason = "the file of a large value is missing";
            return Ok(Some(damage(path, 0, reason)));
        }
        Err(error) => return Err(Error::io("cannot open", path, error)),
    };
    let io = |error| Error::io("cannot read", path, error);
    let size = file.size().map_err(io)?;
    if size < blob.len {
        return Ok(Some(damage(path, size, "the file ends too early")));
    }
    let checksum = checksum(&*file, blob.len).map_err(io)?;
    let is_right = checksum == blob.checksum;
    Ok((!is_right).then(|| damage(path, 0, "the checksum does not match")))
}

fn checksum(file: &dyn File, len: u64) -> std::io::Result<u32> {
    let mut piece = vec![0; PIECE];
    let (mut at, mut checksum) = (0, 0);
    while at < len {
        let wanted = piece.len().min((len - at) as usize);
        file.read_exact_at(&mut piece[..wanted], at)?;
        checksum = crc32c::crc32c_append(checksum, &piece[..wanted]);
        at += wanted as u64;
    }
    Ok(checksum)
}
