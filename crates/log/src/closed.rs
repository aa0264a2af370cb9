//! The proof of a clean stop: where the log ended when it was closed.
//!
//! ```text
//!  ferrite closed 1
//!  log 30313233343536373839616263646566       the log's name, in hexadecimal
//!  end 00000000001e8480                       where the log ends, in hexadecimal
//!  segment 0000000000001000.log 2004096       the newest segment, and bytes of its file up to that end
//!  checksum 1c291ca3                          CRC-32C of the lines before
//! ```
//!
//! The file is written when everything below `end` is durable and nothing more will be written. A log with
//! this file is durable up to `end`: bytes that are missing below were lost later, which is damage, and never
//! the torn end that a crash leaves. The next start that takes writes removes the file, because the header of
//! its first segment says the same. The proof stays true for ever, so a file that comes back after a power
//! loss does no harm.

use std::path::PathBuf;

use sys::file::Files;

use crate::address::Lsn;
use crate::error::{Error, Result};
use crate::manifest;
use crate::paths::Paths;
use crate::segment::{self, Name};

const FIRST_LINE: &str = "ferrite closed 1";
/// More than the file ever has.
const MOST_BYTES: u64 = 4096;

/// What the file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Closed {
    pub(crate) name: Name,
    pub(crate) end: Lsn,
    /// The first position of the newest segment.
    pub(crate) newest: Lsn,
    /// Bytes of the newest segment's file up to the end.
    pub(crate) file_bytes: u64,
}

/// Where the file is.
pub(crate) fn path(paths: &Paths) -> PathBuf {
    paths.root.join("CLOSED")
}

impl Closed {
    fn text(&self) -> String {
        let mut name = String::new();
        for byte in self.name {
            name += &format!("{byte:02x}");
        }
        let lines = format!(
            "{FIRST_LINE}\nlog {name}\nend {:016x}\nsegment {} {}\n",
            self.end.get(),
            segment::file_name(self.newest),
            self.file_bytes
        );
        manifest::with_checksum(lines)
    }

    fn read(text: &str) -> Option<Closed> {
        let mut lines = manifest::checked_lines(text)?.lines();
        (lines.next()? == FIRST_LINE).then_some(())?;
        let digits = lines.next()?.strip_prefix("log ")?;
        let name = u128::from_str_radix(digits, 16).ok()?.to_be_bytes();
        let end = lines.next()?.strip_prefix("end ")?;
        let (newest, bytes) = lines.next()?.strip_prefix("segment ")?.split_once(' ')?;
        Some(Closed {
            name,
            end: Lsn(u64::from_str_radix(end, 16).ok()?),
            newest: segment::first_of(newest)?,
            file_bytes: bytes.parse().ok()?,
        })
    }

    /// Writes the file, durably, in place of an older one.
    pub(crate) fn write(&self, files: &dyn Files, paths: &Paths) -> Result<()> {
        let draft = paths.temporary("closed");
        let _ = files.unlink(&draft);
        let write = || {
            let file = files.create(&draft)?;
            file.write_at(self.text().as_bytes(), 0)?;
            file.sync_data()?;
            files.rename(&draft, &path(paths))?;
            files.sync_dir(&paths.root)
        };
        write().map_err(|error| Error::io("cannot write", &path(paths), error))
    }

    /// Says of bytes that are missing that they were there.
    pub(crate) fn explain(&self, missing: u64) -> String {
        format!(
            "; the log was closed in good order {missing} bytes later, at {} (CLOSED)",
            self.end
        )
    }
}

/// What the file says, if it is there.
///
/// # Errors
/// It is not what was written, or the disk refuses.
pub(crate) fn read(files: &dyn Files, paths: &Paths) -> Result<Option<Closed>> {
    let path = path(paths);
    let Some(text) = manifest::read_text(files, &path, MOST_BYTES)? else {
        return Ok(None);
    };
    manifest::check_format(&path, text.as_deref().unwrap_or_default(), FIRST_LINE)?;
    let broken = || Error::damage(&path, 0, "it is not what a clean stop has written");
    text.as_deref()
        .and_then(Closed::read)
        .map(Some)
        .ok_or_else(broken)
}

/// Removes the file, durably, if it is there.
pub(crate) fn remove(files: &dyn Files, paths: &Paths) -> Result<()> {
    manifest::remove_file(files, paths, &path(paths))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_counts_when_all_of_it_is_as_it_was() {
        let closed = Closed {
            name: *b"0123456789abcdef",
            end: Lsn(0x2000),
            newest: Lsn(0x1000),
            file_bytes: 8192,
        };
        let text = closed.text();
        assert_eq!(Closed::read(&text), Some(closed));
        for length in 0..text.len() {
            assert_eq!(Closed::read(&text[..length]), None, "{length} bytes");
        }
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let changed = String::from_utf8(bytes).expect("ASCII");
            assert_eq!(Closed::read(&changed), None, "byte {at}");
        }
    }
}
