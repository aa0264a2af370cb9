//! Spill file: parts of collections that have changed since their record in the log, and for which there is
//! no memory while the log is replayed. The log takes no records at that time.
//!
//! ```text
//!  slots of 512 bytes    | length (4 B) | hash (8 B) | bytes ...  |  the next part begins with a slot
//! ```
//!
//! The file has no name, so it goes with the process. It is as large as what was in it at one time: slots are
//! used again.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use parking_lot::Mutex;
use xxhash_rust::xxh3::xxh3_64;

/// Bytes of a slot.
const SLOT: usize = 512;
/// Bytes before a part: its length and its hash.
const HEAD: usize = 12;
/// A position has the number of slots in its lowest bits.
const COUNT_BITS: u32 = 16;

/// See the module.
pub(super) struct Spill {
    path: PathBuf,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    file: Option<File>,
    /// Whether the disk has refused to take something. That is reported once.
    has_failed: bool,
    /// Slots of the file.
    end: u64,
    /// First slots of parts that were taken, by the number of their slots.
    free: HashMap<u64, Vec<u64>>,
}

impl Spill {
    /// The file will be made at `path`, when something is put into it.
    pub(super) fn new(path: PathBuf) -> Spill {
        let inner = Mutex::default();
        Spill { path, inner }
    }

    /// Puts bytes into the file. Returns where they are; `None` if the disk takes nothing, or if there are
    /// very many.
    pub(super) fn put(&self, bytes: &[u8]) -> Option<u64> {
        let slots = (HEAD + bytes.len()).div_ceil(SLOT) as u64;
        if slots >> COUNT_BITS > 0 {
            return None;
        }
        let mut part = Vec::with_capacity(HEAD + bytes.len());
        part.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        part.extend_from_slice(&xxh3_64(bytes).to_le_bytes());
        part.extend_from_slice(bytes);
        let mut inner = self.inner.lock();
        let written = self.write(&mut inner, slots, &part);
        match written {
            Ok(first) => Some(first << COUNT_BITS | slots),
            Err(error) => {
                if !std::mem::replace(&mut inner.has_failed, true) {
                    log::warn!(
                        "cannot write {}, so more memory is used while the log is loaded: {error}",
                        self.path.display()
                    );
                }
                None
            }
        }
    }

    fn write(&self, inner: &mut Inner, slots: u64, part: &[u8]) -> io::Result<u64> {
        let file = match &mut inner.file {
            Some(file) => file,
            none => {
                let mut options = OpenOptions::new();
                let file = options.read(true).write(true).create(true).truncate(true);
                let file = file.open(&self.path)?;
                std::fs::remove_file(&self.path)?;
                none.insert(file)
            }
        };
        let used_again = inner.free.get_mut(&slots).and_then(Vec::pop);
        let first = used_again.unwrap_or(inner.end);
        if let Err(error) = file.write_all_at(part, first * SLOT as u64) {
            if used_again.is_some() {
                inner.free.entry(slots).or_default().push(first);
            }
            return Err(error);
        }
        if used_again.is_none() {
            inner.end += slots;
        }
        Ok(first)
    }

    /// Takes bytes out of the file, whose place is used again.
    ///
    /// # Errors
    /// They cannot be read, or are not what was put there.
    pub(super) fn take(&self, at: u64) -> Result<Vec<u8>, String> {
        let (first, slots) = (at >> COUNT_BITS, at & ((1 << COUNT_BITS) - 1));
        let mut inner = self.inner.lock();
        let read = inner.file.as_ref().map(|file| read(file, first));
        inner.free.entry(slots).or_default().push(first);
        let path = self.path.display();
        match read {
            Some(Ok(Some(bytes))) => Ok(bytes),
            Some(Err(error)) => Err(format!("cannot read {path}: {error}")),
            Some(Ok(None)) | None => Err(format!("{path} has other bytes than were written")),
        }
    }
}

/// The part at a slot; `None` if it is damaged.
fn read(file: &File, first: u64) -> io::Result<Option<Vec<u8>>> {
    let mut head = [0; HEAD];
    file.read_exact_at(&mut head, first * SLOT as u64)?;
    let [a, b, c, d, hash @ ..] = head;
    let length = u32::from_le_bytes([a, b, c, d]) as usize;
    if length >> COUNT_BITS >= SLOT {
        return Ok(None);
    }
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, first * SLOT as u64 + HEAD as u64)?;
    let is_it = xxh3_64(&bytes) == u64::from_le_bytes(hash);
    Ok(is_it.then_some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back_and_places_are_used_again() {
        let path = std::env::temp_dir().join(format!("ferrite-spill-{}", std::process::id()));
        let spill = Spill::new(path.clone());
        let part = |number: usize| vec![number as u8; 1 + number * 37];
        let mut random = fastrand::Rng::with_seed(3);
        let mut there = Vec::new();
        for round in 0..2_000 {
            if there.len() < 50 {
                let at = spill.put(&part(round % 200)).expect("there is room");
                there.push((at, round % 200));
            } else {
                let (at, number) = there.swap_remove(random.usize(..there.len()));
                assert_eq!(spill.take(at), Ok(part(number)));
            }
        }
        assert!(!path.exists(), "the file has no name");
        // 50 parts of 15 slots on average, and what is free of each size.
        assert!(spill.inner.lock().end < 3_000);
        assert_eq!(spill.put(&vec![0; SLOT << COUNT_BITS]), None);
    }

    #[test]
    fn changed_bytes_are_found_out() {
        let path = std::env::temp_dir().join(format!("ferrite-spilled-{}", std::process::id()));
        let spill = Spill::new(path);
        let at = spill.put(b"some bytes").expect("there is room");
        let inner = spill.inner.lock();
        let file = inner.file.as_ref().expect("it was made");
        file.write_all_at(b"x", HEAD as u64).expect("it is written");
        drop(inner);
        let taken = spill.take(at);
        assert!(taken.is_err_and(|reason| reason.contains("other bytes")));
    }

    #[test]
    fn without_a_directory_nothing_is_put_anywhere() {
        let spill = Spill::new("/there is no such directory/spill".into());
        assert_eq!(spill.put(b"bytes"), None);
    }
}
