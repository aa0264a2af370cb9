//! What a start has found that cannot be seen record by record: instances that lack some.
//!
//! ```text
//!  ferrite lacking 1
//!  log 30313233343536373839616263646566       the log's name, in hexadecimal
//!  instance 0 7 2                             identity of the database, number, kind of the value
//!  ...
//!  checksum 1c291ca3                          CRC-32C of the lines before
//! ```
//!
//! All records of such a log may be whole. A start writes the file when it refuses the log. A repair ends the
//! instances that the file names, and removes it. A start that accepts the log removes it, too. A file of
//! another log, or one that is not whole, counts for nothing.

use std::path::PathBuf;

use sys::file::Files;

use crate::address::DbId;
use crate::error::{Error, Result};
use crate::manifest;
use crate::paths::Paths;
use crate::record::Tag;
use crate::segment::Name;

const FIRST_LINE: &str = "ferrite lacking 1";
/// Instances that the file names at most. A start after the repair finds the others.
const MOST: usize = 100_000;
/// More than the file ever has.
const MOST_BYTES: u64 = 64 * MOST as u64;

/// Where the file is.
pub(crate) fn path(paths: &Paths) -> PathBuf {
    paths.root.join("LACKING")
}

fn hexadecimal(name: Name) -> String {
    name.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes the file, durably, in place of an older one.
pub(crate) fn write(
    files: &dyn Files,
    paths: &Paths,
    name: Name,
    instances: &[(DbId, u64, Tag)],
) -> Result<()> {
    let mut lines = format!("{FIRST_LINE}\nlog {}\n", hexadecimal(name));
    for (db, number, tag) in instances.iter().take(MOST) {
        lines += &format!("instance {} {number} {}\n", db.0, tag.kind);
    }
    let text = manifest::with_checksum(lines);
    let draft = paths.temporary("lacking");
    let _ = files.unlink(&draft);
    let write = || {
        let file = files.create(&draft)?;
        file.write_at(text.as_bytes(), 0)?;
        file.sync_data()?;
        files.rename(&draft, &path(paths))?;
        files.sync_dir(&paths.root)
    };
    write().map_err(|error| Error::io("cannot write", &path(paths), error))
}

/// The instances that the file names, if it is of the log of this name.
///
/// # Errors
/// The disk refuses.
pub(crate) fn read(files: &dyn Files, paths: &Paths, name: Name) -> Result<Vec<(DbId, u64, Tag)>> {
    let text = manifest::read_text(files, &path(paths), MOST_BYTES)?.flatten();
    Ok(text.and_then(|text| parse(&text, name)).unwrap_or_default())
}

fn parse(text: &str, name: Name) -> Option<Vec<(DbId, u64, Tag)>> {
    let mut lines = manifest::checked_lines(text)?.lines();
    (lines.next()? == FIRST_LINE).then_some(())?;
    (lines.next()?.strip_prefix("log ")? == hexadecimal(name)).then_some(())?;
    let instance = |line: &str| {
        let mut words = line.strip_prefix("instance ")?.split(' ');
        let (db, number) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let kind = words.next()?.parse().ok().filter(|&kind: &u8| kind < 16)?;
        let tag = Tag {
            kind,
            form: 0,
            is_tree: true,
        };
        Some((DbId(db), number, tag))
    };
    lines.map(instance).collect()
}

/// Removes the file, durably, if it is there.
pub(crate) fn remove(files: &dyn Files, paths: &Paths) -> Result<()> {
    manifest::remove_file(files, paths, &path(paths))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_counts_for_its_log_alone_and_when_it_is_whole() {
        let name = *b"0123456789abcdef";
        let lines = format!(
            "{FIRST_LINE}\nlog {}\ninstance 3 7 2\ninstance 0 18446744073709551615 2\n",
            hexadecimal(name)
        );
        let text = manifest::with_checksum(lines);
        let tag = Tag {
            kind: Tag::HASH,
            form: 0,
            is_tree: true,
        };
        let noted = vec![(DbId(3), 7, tag), (DbId(0), u64::MAX, tag)];
        assert_eq!(parse(&text, name), Some(noted));
        assert_eq!(parse(&text, *b"fedcba9876543210"), None);
        for length in 0..text.len() {
            assert_eq!(parse(&text[..length], name), None, "{length} bytes");
        }
    }
}
