//! What a backup says about itself: what is in it, and that nothing is missing.
//!
//! ```text
//!  ferrite backup 1
//!  end 00000000001e8480                      where its log ends, in hexadecimal
//!  segment 0000000000001000.log 2000000      a file below `log`, and bytes of its records
//!  checksum 1c291ca3                         CRC-32C of the lines before
//! ```
//!
//! It is written when all the rest is on the disk. So a log with such a file beside it was durable up to
//! `end`, and whatever is missing below was lost later: that is damage, and never the end of a log that a
//! crash has left. The first server that takes writes there removes it: then it is a log like any other.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use sys::file::Files;

use crate::address::Lsn;
use crate::error::{Error, Result};
use crate::paths::Paths;
use crate::version;

const FIRST_LINE: &str = "ferrite backup 1";

/// More than the lines of any backup take: a line for each segment, of 4 MiB or more each.
const MOST_BYTES: u64 = 64 << 20;

/// The text for a log that ends at `end` and has these segments: their files' names and bytes.
pub(crate) fn text(end: Lsn, segments: impl Iterator<Item = (String, u64)>) -> String {
    let mut text = format!("{FIRST_LINE}\nend {:016x}\n", end.get());
    for (name, bytes) in segments {
        let _ = writeln!(text, "segment {name} {bytes}");
    }
    with_checksum(text)
}

/// Adds the line that covers the lines before.
pub(crate) fn with_checksum(mut lines: String) -> String {
    let _ = writeln!(lines, "checksum {:08x}", crc32c::crc32c(lines.as_bytes()));
    lines
}

/// The lines of a text in front of its checksum, if that is right.
pub(crate) fn checked_lines(text: &str) -> Option<&str> {
    let (lines, checksum) = text.strip_suffix('\n')?.rsplit_once('\n')?;
    let checksum = checksum.strip_prefix("checksum ")?;
    let covered = &text[..=lines.len()];
    let is_right = checksum == format!("{:08x}", crc32c::crc32c(covered.as_bytes()));
    is_right.then_some(covered)
}

/// Refuses a whole text whose first line says another number than this one.
pub(crate) fn check_format(path: &Path, text: &str, first_line: &str) -> Result<()> {
    let first = checked_lines(text).and_then(|lines| lines.lines().next());
    let (what, _) = first_line.rsplit_once(' ').expect("it ends with a number");
    match first.and_then(|first| first.strip_prefix(what)) {
        Some(format) if first != Some(first_line) => {
            Err(version::other_format(path, &format.trim_start()))
        }
        _ => Ok(()),
    }
}

/// The text of a file, `most` bytes of it at most: `None` if there is no file, `Some(None)` if it is no text.
pub(crate) fn read_text(
    files: &dyn Files,
    path: &Path,
    most: u64,
) -> Result<Option<Option<String>>> {
    let io = |error| Error::io("cannot read", path, error);
    let file = match files.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io(error)),
    };
    let size = file.size().map_err(io)?.min(most);
    let mut bytes = vec![0; size as usize];
    file.read_exact_at(&mut bytes, 0).map_err(io)?;
    Ok(Some(String::from_utf8(bytes).ok()))
}

/// Where it is.
pub(crate) fn path(paths: &Paths) -> PathBuf {
    paths.root.join("MANIFEST")
}

/// Writes it, durably.
pub(crate) fn write(files: &dyn Files, paths: &Paths, text: &str) -> Result<()> {
    let path = path(paths);
    let draft = paths.temporary("manifest");
    let write = || {
        let file = files.create(&draft)?;
        file.write_at(text.as_bytes(), 0)?;
        file.sync_data()?;
        // Half of one would be damage.
        files.rename(&draft, &path)?;
        files.sync_dir(&paths.root)
    };
    write().map_err(|error| Error::io("cannot write", &path, error))
}

/// Where the log ends, if it is a backup that no server has written to.
///
/// # Errors
/// The file is not what was written, or the disk refuses.
pub(crate) fn end(files: &dyn Files, paths: &Paths) -> Result<Option<Lsn>> {
    let path = path(paths);
    let Some(text) = read_text(files, &path, MOST_BYTES)? else {
        return Ok(None);
    };
    check_format(&path, text.as_deref().unwrap_or_default(), FIRST_LINE)?;
    let broken = || Error::damage(&path, 0, "it is not what BACKUP has written");
    text.as_deref().and_then(read).map(Some).ok_or_else(broken)
}

/// The end that a text names, if all of it is there.
fn read(text: &str) -> Option<Lsn> {
    let mut lines = checked_lines(text)?.lines();
    (lines.next()? == FIRST_LINE).then_some(())?;
    let end = lines.next()?.strip_prefix("end ")?;
    u64::from_str_radix(end, 16).ok().map(Lsn)
}

/// Says of what is missing that it was there once.
pub(crate) fn explain(error: Error) -> Error {
    match error {
        Error::Damage(mut damage) => {
            damage.reason += ", in a backup that had all of it (MANIFEST)";
            Error::Damage(damage)
        }
        other => other,
    }
}

/// Removes it, durably, if it is there.
pub(crate) fn remove(files: &dyn Files, paths: &Paths) -> Result<()> {
    remove_file(files, paths, &path(paths))
}

/// Removes a file beside the log, durably, if it is there.
pub(crate) fn remove_file(files: &dyn Files, paths: &Paths, path: &Path) -> Result<()> {
    match files.unlink(path) {
        Ok(()) => files
            .sync_dir(&paths.root)
            .map_err(|error| Error::io("cannot sync", &paths.root, error)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::io("cannot remove", path, error)),
    }
}

/// Moves a file beside the log to `aside`, durably, if it is there. Whether it was.
pub(crate) fn put_aside(
    files: &dyn Files,
    paths: &Paths,
    path: &Path,
    aside: &Path,
) -> Result<bool> {
    match files.rename(path, aside) {
        Ok(()) => {
            for directory in [&paths.lost, &paths.root] {
                files
                    .sync_dir(directory)
                    .map_err(|error| Error::io("cannot sync", directory, error))?;
            }
            Ok(true)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io("cannot rename", path, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_counts_when_all_of_it_is_as_it_was() {
        let segments = [("0000000000001000.log".to_owned(), 4096)];
        let text = text(Lsn(0x2000), segments.into_iter());
        assert_eq!(text.lines().count(), 4);
        assert_eq!(read(&text), Some(Lsn(0x2000)));
        for length in 0..text.len() {
            assert_eq!(read(&text[..length]), None, "{length} bytes");
        }
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let changed = String::from_utf8(bytes).expect("ASCII");
            assert_eq!(read(&changed), None, "byte {at}");
        }
    }
}
