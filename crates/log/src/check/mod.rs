//! Looking at a log that nobody uses, and mending it.
//!
//! [`check`] reads everything and changes nothing. [`repair()`] does as little as makes the log open again, and keeps
//! whatever it takes out.
//!
//! What was in the damaged place is lost, and so may be what a later record amended: repair says so and decides nothing
//! about meaning. A damaged batch loses all of its records.

mod blobs;
mod repair;

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use sys::file::{File, Files, Lock};

use crate::address::Lsn;
use crate::error::{Damage, Error, Result};
use crate::manifest;
use crate::paths::Paths;
use crate::record::{self, Entry, HEADER};
use crate::recover::chain::{self, Candidate};
use crate::recover::{lock_directory, takeover};
use crate::segment::Extent;
use crate::walk::{Stop, Walk};

pub(crate) use blobs::verify as verify_blob;
pub use repair::repair;

/// What a log consists of, and what is wrong with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Segments, the one that was written last included.
    pub segments: usize,
    /// Bytes of records.
    pub bytes: u64,
    /// Records that change data, those inside of batches included.
    pub records: u64,
    /// Batches.
    pub batches: u64,
    /// Values in files of their own that are needed.
    pub blobs: usize,
    /// Where the log ends; 0 if that is not known, because it is damaged.
    pub end: u64,
    /// A torn tail: not damage, the next start puts it aside.
    pub tail: Option<String>,
    /// What processes that were killed have left in memory for the next start: a line for each.
    pub rings: Vec<String>,
    /// What is wrong.
    pub damage: Vec<Damage>,
    /// What a repair does about each of them, as in "takes out 24 bytes".
    pub remedies: Vec<String>,
    /// What was done about it.
    pub repairs: Vec<String>,
}

impl Report {
    /// Whether a server can start with the log as it is.
    pub fn is_whole(&self) -> bool {
        self.damage.is_empty()
    }

    fn push(&mut self, damage: Damage, remedy: impl Into<String>) {
        self.damage.push(damage);
        self.remedies.push(remedy.into());
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "segments: {}, bytes: {}, records: {}, batches: {}, large values: {}",
            self.segments, self.bytes, self.records, self.batches, self.blobs
        )?;
        match self.end {
            0 => writeln!(f)?,
            end => writeln!(f, ", end: {end:#x}")?,
        }
        if let Some(line) = &self.tail {
            writeln!(f, "torn: {line}")?;
        }
        for line in &self.rings {
            writeln!(f, "ring: {line}")?;
        }
        for line in &self.repairs {
            writeln!(f, "repaired: {line}")?;
        }
        for (damage, remedy) in self.damage.iter().zip(&self.remedies) {
            writeln!(f, "damage: {damage}")?;
            if !remedy.is_empty() {
                writeln!(f, "        a repair {remedy}")?;
            }
        }
        f.write_str(if self.is_whole() {
            "the log is whole"
        } else {
            "the log is damaged"
        })
    }
}

/// A stretch of a segment that is no record.
struct Hole {
    damage: Damage,
    range: Range<u64>,
    first: Lsn,
}

/// Reads the whole log in `directory` and says what is wrong with it. Changes nothing.
///
/// # Errors
/// A server uses the directory, or it cannot be read.
pub fn check(files: Arc<dyn Files>, directory: &Path) -> Result<Report> {
    let (paths, _lock) = open_log(&*files, directory)?;
    look(&*files, &paths)
}

/// Takes the directory of a log for this process, if it is one.
fn open_log(files: &dyn Files, directory: &Path) -> Result<(Paths, Box<dyn Lock>)> {
    let paths = Paths::new(directory);
    match files.list(&paths.log) {
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(Error::Missing(directory.to_owned()));
        }
        Err(error) => return Err(Error::io("cannot list", &paths.log, error)),
    }
    let lock = lock_directory(files, &paths)?;
    Ok((paths, lock))
}

fn look(files: &dyn Files, paths: &Paths) -> Result<Report> {
    let mut report = Report::default();
    let (candidates, unreadable) = chain::list(files, paths)?;
    let newest = candidates.last().map(|newest| &newest.header);
    let (name, expected) = (
        newest.map(|header| header.name),
        newest.map_or(&[][..], |header| &header.segments),
    );
    let lost = paths.lost.display();
    for candidate in &candidates {
        let path = &candidate.path;
        if Some(candidate.header.name) != name {
            report.push(damage(path, 0, "the segment belongs to another log"), "");
        }
        let extent = expected
            .iter()
            .find(|extent| extent.first == candidate.header.first);
        let (holes, _) = scan(candidate, extent.copied(), &mut report)?;
        for hole in holes {
            let missing = extent.map_or(0, |extent| extent.bytes + candidate.header_bytes);
            let remedy = match hole.range.end - hole.range.start {
                0 => format!(
                    "fills {} bytes with nothing",
                    missing.saturating_sub(hole.range.start)
                ),
                bytes => format!("takes out {bytes} bytes and keeps them in {lost}"),
            };
            report.push(hole.damage, remedy);
        }
    }
    match chain::find(files, paths) {
        Ok(chain) => {
            report.end = chain.end.get();
            report.tail = chain.cut.as_ref().map(|cut| cut.line(chain.end, paths));
            report.rings = takeover::look(files, paths, &chain)?;
            // What is behind the end is no damage: the next start puts it aside.
            let found = std::mem::take(&mut report.damage).into_iter();
            let remedies = std::mem::take(&mut report.remedies);
            let (damage, remedies) = found
                .zip(remedies)
                .filter(|(damage, _)| !is_behind(damage, chain.end, &candidates))
                .unzip();
            (report.damage, report.remedies) = (damage, remedies);
            let needed = blobs::needed(&chain)?;
            report.blobs = needed.len();
            for bad in blobs::damaged(files, paths, needed)? {
                let key = bad.key.escape_ascii();
                report.push(
                    bad.damage,
                    format!("deletes the key \"{key}\", whose value it is"),
                );
            }
        }
        // More than one thing may be wrong with a file, and a start names the first.
        Err(Error::Damage(damage)) if report.damage.iter().any(|its| its.file == damage.file) => {}
        Err(Error::Damage(damage)) => {
            let remedy = if files.open(&damage.file).is_err() {
                "strikes the segment off: what was in it is lost"
            } else if !matches!(manifest::end(files, paths), Ok(None)) {
                "makes a log of the backup that ends where it does"
            } else {
                ""
            };
            report.push(damage, remedy);
        }
        Err(error) => return Err(error),
    }
    for bad in unreadable {
        let place = report
            .damage
            .iter()
            .position(|damage| damage.file == bad.path);
        let remedy = format!("writes a new header and keeps the old one in {lost}");
        match place {
            Some(place) => report.remedies[place] = remedy,
            None if bad.first.get() < report.end => {
                report.push(damage(&bad.path, 0, bad.reason), remedy);
            }
            None => {}
        }
    }
    Ok(report)
}

fn damage(path: &Path, offset: u64, reason: impl fmt::Display) -> Damage {
    Damage {
        file: path.to_owned(),
        offset,
        reason: reason.to_string(),
    }
}

fn is_behind(damage: &Damage, end: Lsn, candidates: &[Candidate]) -> bool {
    candidates.iter().any(|candidate| {
        let offset = damage.offset.saturating_sub(candidate.header_bytes);
        candidate.path == damage.file && candidate.header.first.get() + offset >= end.get()
    })
}

/// Reads a segment from beginning to end, going on behind whatever is no record. With where its records end.
fn scan(
    candidate: &Candidate,
    extent: Option<Extent>,
    report: &mut Report,
) -> Result<(Vec<Hole>, Lsn)> {
    let Candidate {
        path,
        file,
        header,
        header_bytes,
        size,
    } = candidate;
    let first = header.first;
    let file_end = first.offset(size.saturating_sub(*header_bytes) & !7);
    let end = extent.map_or(file_end, |extent| extent.end()).min(file_end);
    let mut holes = Vec::new();
    if let Some(extent) = extent.filter(|extent| extent.end() > file_end) {
        let reason = format!(
            "the file ends {} bytes too early",
            extent.end().get() - file_end.get()
        );
        let offset = *size;
        holes.push(Hole {
            damage: damage(path, offset, reason),
            range: offset..offset,
            first,
        });
    }
    let mut walk = Walk::new(&**file, path, first, *header_bytes, end);
    report.segments += 1;
    loop {
        match walk.next() {
            Ok(Some(step)) => match step.found.entry {
                Entry::Batch(_) => report.batches += 1,
                Entry::Key(_) | Entry::Bind(_) => report.records += 1,
                Entry::Mark(_) | Entry::Retire(_) | Entry::Void => {}
            },
            Ok(None) => break,
            Err(Stop::Io(error)) => return Err(walk.error(Stop::Io(error))),
            Err(Stop::Flaw(at, flaw)) => {
                let found = next_record(&**file, candidate, at, end)?;
                let Some(next) = found.or(extent.map(|_| end)) else {
                    // The rest of the last segment: it ends here.
                    report.bytes += at.get() - first.get();
                    if holes.is_empty() || flaw != record::Flaw::Nothing {
                        let offset = walk.offset(at);
                        let rest = size.saturating_sub(offset);
                        let is_empty = is_zero(&**file, offset..*size)?;
                        if !is_empty && rest > 0 {
                            holes.push(Hole {
                                damage: damage(path, offset, flaw),
                                range: offset..*size,
                                first: at,
                            });
                        }
                    }
                    return Ok((holes, at));
                };
                let range = walk.offset(at)..walk.offset(next);
                holes.push(Hole {
                    damage: damage(path, range.start, flaw),
                    range,
                    first: at,
                });
                walk.go_to(next);
            }
        }
    }
    report.bytes += end.get() - first.get();
    Ok((holes, end))
}

fn is_zero(file: &dyn File, range: std::ops::Range<u64>) -> Result<bool> {
    let mut at = range.start;
    let mut piece = vec![0; 1 << 20];
    while at < range.end {
        let wanted = piece.len().min((range.end - at) as usize);
        let count = file
            .read_at(&mut piece[..wanted], at)
            .map_err(|error| Error::io("cannot read", Path::new("a segment"), error))?;
        if count == 0 {
            break;
        }
        if piece[..count].iter().any(|&byte| byte != 0) {
            return Ok(false);
        }
        at += count as u64;
    }
    Ok(true)
}

/// The first position behind `from` where there is a whole record at the top level.
fn next_record(file: &dyn File, candidate: &Candidate, from: Lsn, end: Lsn) -> Result<Option<Lsn>> {
    let mut at = from.offset(8);
    while at.offset(HEADER as u64) <= end {
        let mut walk = Walk::new(
            file,
            &candidate.path,
            candidate.header.first,
            candidate.header_bytes,
            end,
        );
        at = match walk
            .search(at)
            .map_err(|error| Error::io("cannot read", &candidate.path, error))?
        {
            Some(found) => found,
            None => return Ok(None),
        };
        // A batch counts if all of it is there.
        walk.go_to(at);
        loop {
            match walk.next() {
                Ok(Some(step)) if step.found.is_inner => {}
                Ok(Some(step)) if matches!(step.found.entry, Entry::Batch(_)) => {}
                Ok(_) => return Ok(Some(at)),
                Err(Stop::Io(error)) => return Err(walk.error(Stop::Io(error))),
                Err(Stop::Flaw(..)) => break,
            }
            if walk.is_between() {
                return Ok(Some(at));
            }
        }
        at = at.offset(8);
    }
    Ok(None)
}
