//! Reading all values of the log once, for who has left them there and wants them back.
//!
//! A sweep goes through the segments that are full when it begins, the newest first, because what was written
//! last is likely to be wanted first; in each it reads from the beginning to the end, past the page cache
//! where that does not have the file. A segment that compaction takes away meanwhile can still be read.
//! Records are handed over sorted by the hash of their keys, piece by piece.
//!
//! Invariant: what is handed over was checked as every record is. Whether it still counts, the caller knows
//! alone: by its address.

use std::sync::Arc;

use crate::address::DbId;
use crate::error::Result;
use crate::piece::Replayed;
use crate::portion::Portion;
use crate::record::{Change, Tag, Value};
use crate::segments::{Map, Segment};

/// See the module.
pub struct Sweep {
    map: Arc<Map>,
    /// Segments that were not read to their ends yet.
    left: usize,
    /// How much of the last of them was.
    at: u64,
    done: u64,
    total: u64,
    portion: Portion,
}

impl std::fmt::Debug for Sweep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sweep({} of {} bytes)", self.done, self.total)
    }
}

impl Sweep {
    pub(crate) fn new(map: Arc<Map>) -> Sweep {
        // The one that is written to comes last, and nothing in it was left.
        let left = map
            .segments
            .iter()
            .take_while(|its| its.is_sealed())
            .count();
        let total = map.segments[..left].iter().map(|its| its.bytes()).sum();
        Sweep {
            map,
            left,
            at: 0,
            done: 0,
            total,
            portion: Portion::new(),
        }
    }

    /// Bytes of records that were read, and that there are.
    pub fn progress(&self) -> (u64, u64) {
        (self.done, self.total)
    }

    /// Reads the next piece, and hands its values over to `apply`, some at a time; `hash` gives the hash of a
    /// key. Returns the bytes that it has; `None` at the end. Behind an error the sweep goes on with the next
    /// segment.
    ///
    /// # Errors
    /// A record is damaged, or cannot be read.
    pub fn next(
        &mut self,
        hash: impl Fn(DbId, &[u8]) -> u64,
        apply: impl FnMut(&[Replayed<'_>]),
    ) -> Result<Option<u64>> {
        while let Some(number) = self.left.checked_sub(1) {
            let segment = self.map.segments[number].clone();
            if self.at < segment.bytes() {
                let read = self.read(&segment, hash, apply);
                let passed = match read {
                    Ok(bytes) => bytes,
                    // The rest of it is not worth another try.
                    Err(_) => segment.bytes() - self.at,
                };
                self.at += passed;
                self.done += passed;
                return read.map(Some);
            }
            self.left = number;
            self.at = 0;
        }
        Ok(None)
    }

    fn read(
        &mut self,
        segment: &Segment,
        hash: impl Fn(DbId, &[u8]) -> u64,
        mut apply: impl FnMut(&[Replayed<'_>]),
    ) -> Result<u64> {
        let bytes = self
            .portion
            .read(segment, self.at, segment.bytes(), |record| {
                let is_value = matches!(
                    record.change,
                    Change::Set {
                        tag: Tag { is_tree: false, .. },
                        value: Value::Bytes(_),
                        ..
                    }
                );
                is_value.then(|| hash(record.db, record.key))
            })?;
        let mut slice = Vec::new();
        let mut next = self.portion.fill(0, &mut slice);
        while !slice.is_empty() {
            apply(&slice);
            next = self.portion.fill(next, &mut slice);
        }
        Ok(bytes)
    }
}
