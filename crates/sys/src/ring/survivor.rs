//! What a dead process has left in its ring's file: bytes that were filled, and claims that were not.
//!
//! Nothing in the file is trusted beyond its header, which has a checksum: the reader of the bytes has to
//! know by itself what is whole.
//!
//! Each thread's stores up to its death are in the file, in the order of the program. So a position below the
//! tail was claimed; if it was filled its bytes are there, as long as it is at or above [`Survivor::passed`];
//! if not, a [`Claim`] says so.

use std::fmt;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

pub use super::watermarks::Claim;

use super::file::{Places, open_private};
use super::header::{Identity, Shape, other_format, read_header};
use super::memory::{HEADER, control_bytes};
use super::watermarks::{Watermarks, Words};

/// See the module.
pub struct Survivor {
    words: Words,
    /// Where in the file the ring's bytes begin.
    begin: u64,
    bytes: Vec<u8>,
}

impl fmt::Debug for Survivor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Survivor({:?}, {} bytes)", self.words, self.bytes.len())
    }
}

impl Survivor {
    /// Reads a ring's file that an earlier process has left for this log. `Err` says why it is not one, or
    /// not this log's.
    ///
    /// # Errors
    /// The file is not private, damaged, from another boot or another log's, or the system refuses to read
    /// it.
    pub fn read(path: &Path, places: &Places, log: [u8; 16]) -> Result<Survivor, String> {
        let identity = Identity {
            log,
            owner: places.owner,
            boot: places.boot,
        };
        let failed = |error: io::Error| error.to_string();
        let file = open_private(path)?;
        let mut header = [0; HEADER];
        file.read_exact_at(&mut header, 0)
            .map_err(|_| "it is too short for a ring".to_owned())?;
        let Shape {
            capacity,
            producers,
        } = read_header(&header, &identity)?;
        let control = control_bytes(producers);
        let size = file.metadata().map_err(failed)?.len();
        if size != control as u64 + capacity {
            return Err("it has another size than its header says".into());
        }
        let mut words = vec![0; Watermarks::bytes(producers)];
        file.read_exact_at(&mut words, HEADER as u64)
            .map_err(failed)?;
        let mut bytes = vec![0; capacity as usize];
        file.read_exact_at(&mut bytes, control as u64)
            .map_err(failed)?;
        let words = Words::decode(&words, producers);
        if words.passed > words.tail {
            return Err("its positions contradict each other".into());
        }
        Ok(Survivor {
            words,
            begin: control as u64,
            bytes,
        })
    }

    /// The format of a ring's file that an earlier process has left for this log, if it is not the one that
    /// is read: the process was of another version.
    pub fn other_format(path: &Path, places: &Places, log: [u8; 16]) -> Option<u32> {
        let identity = Identity {
            log,
            owner: places.owner,
            boot: places.boot,
        };
        let mut header = [0; HEADER];
        open_private(path)
            .ok()?
            .read_exact_at(&mut header, 0)
            .ok()?;
        other_format(&header, &identity)
    }

    /// Everything that was claimed is below.
    pub fn tail(&self) -> u64 {
        self.words.tail
    }

    /// Everything below was passed on by the consumer, and may have been overwritten.
    pub fn passed(&self) -> u64 {
        self.words.passed
    }

    /// The claims that may not have been filled, at most one for each producer.
    pub fn claims(&self) -> &[Claim] {
        &self.words.claims
    }

    /// Positions that the ring has room for.
    pub fn capacity(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Where in the file the byte at a position is.
    pub fn offset_of(&self, at: u64) -> u64 {
        self.begin + at % self.capacity()
    }

    /// Copies the bytes at `range` out, which is not longer than the capacity. They are whatever they are.
    ///
    /// # Panics
    /// If `out` has another length.
    pub fn copy(&self, range: Range<u64>, out: &mut [u8]) {
        assert!(out.len() as u64 == range.end - range.start && out.len() <= self.bytes.len());
        let at = (range.start % self.capacity()) as usize;
        let first = out.len().min(self.bytes.len() - at);
        let (front, back) = out.split_at_mut(first);
        front.copy_from_slice(&self.bytes[at..at + first]);
        back.copy_from_slice(&self.bytes[..back.len()]);
    }
}
