//! Looking at a log that nobody uses, and mending it.
//!
//! [`check`] reads everything and changes nothing. [`repair`] does as little as makes the log open again, and keeps
//! whatever it takes out:
//!
//! - Bytes that are no record are replaced by a `Void` record of the same length.
//! - A header that cannot be read is written anew, from what the file's name and its neighbours say.
//! - A segment that is missing is struck off: a new, empty segment at the end lists only what is there.
//!
//! What was in the damaged place is lost, and so may be what a later record amended: repair says so and decides nothing
//! about meaning. A damaged batch loses all of its records.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sys::file::{File, Files};

use crate::address::Lsn;
use crate::bindings::Bindings;
use crate::error::{Damage, Error, Result};
use crate::paths::Paths;
use crate::record::{self, Draft, Entry, HEADER, write_in_parts};
use crate::recover::chain::{self, Candidate};
use crate::recover::{copy_range, free_name, lock_directory};
use crate::segment::{BLOCK, Extent, Header, HeaderFlaw, Name};
use crate::walk::{Stop, Walk};

/// What a log consists of, and what is wrong with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Segments, and their bytes of records.
    pub segments: usize,
    /// Bytes of records.
    pub bytes: u64,
    /// Records, those inside of batches included.
    pub records: u64,
    /// Batches.
    pub batches: u64,
    /// Where the log ends.
    pub end: u64,
    /// A torn tail: not damage, the next start puts it aside.
    pub tail: Option<String>,
    /// What is wrong.
    pub damage: Vec<Damage>,
    /// What was done about it.
    pub repairs: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} segments, {} bytes, {} records, {} batches, end at {:#x}",
            self.segments, self.bytes, self.records, self.batches, self.end
        )?;
        if let Some(line) = &self.tail {
            writeln!(f, "tail: {line}")?;
        }
        for damage in &self.damage {
            writeln!(f, "damage: {damage}")?;
        }
        for line in &self.repairs {
            writeln!(f, "repaired: {line}")?;
        }
        if self.damage.is_empty() {
            f.write_str("the log is whole")
        } else {
            f.write_str("the log is damaged")
        }
    }
}

/// A stretch of a segment that is no record.
struct Hole {
    damage: Damage,
    range: std::ops::Range<u64>,
    first: Lsn,
}

/// Reads the whole log in `directory` and says what is wrong with it. Changes nothing.
///
/// # Errors
/// A server uses the directory, or it cannot be read.
pub fn check(files: Arc<dyn Files>, directory: &Path) -> Result<Report> {
    let paths = Paths::new(directory);
    let _lock = lock_directory(&*files, &paths)?;
    look(&*files, &paths)
}

fn look(files: &dyn Files, paths: &Paths) -> Result<Report> {
    let mut report = Report::default();
    let (candidates, unreadable) = chain::list(files, paths)?;
    let name = candidates.last().map(|newest| newest.header.name);
    let expected = candidates
        .last()
        .map_or(&[][..], |newest| &newest.header.segments);
    for candidate in &candidates {
        if Some(candidate.header.name) != name {
            report.damage.push(damage(
                &candidate.path,
                0,
                "the segment belongs to another log",
            ));
        }
        let extent = expected
            .iter()
            .find(|extent| extent.first == candidate.header.first);
        let (holes, _) = scan(candidate, extent.copied(), &mut report)?;
        report
            .damage
            .extend(holes.into_iter().map(|hole| hole.damage));
    }
    match chain::find(files, paths) {
        Ok(chain) => {
            report.end = chain.end.get();
            report.tail = chain.cut.map(|cut| cut.reason);
            // What is behind the end is no damage: the next start puts it aside.
            let end = chain.end;
            report
                .damage
                .retain(|damage| !is_behind(damage, end, &candidates));
        }
        Err(Error::Damage(damage)) if report.damage.contains(&damage) => {}
        Err(Error::Damage(damage)) => report.damage.push(damage),
        Err(error) => return Err(error),
    }
    for bad in unreadable {
        let is_named = report.damage.iter().any(|damage| damage.file == bad.path);
        if !is_named && bad.first.get() < report.end {
            report.damage.push(damage(&bad.path, 0, bad.reason));
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
    let mut walk = Walk::of_file(&**file, path, first, *header_bytes, end);
    report.segments += 1;
    loop {
        match walk.next() {
            Ok(Some(step)) => match step.found.entry {
                Entry::Batch(_) => report.batches += 1,
                _ => report.records += 1,
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
        let mut walk = Walk::of_file(
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

/// Mends the log in `directory` so that it opens again. What is taken out is kept in `DIR/lost`.
///
/// # Errors
/// A server uses the directory, or the disk refuses.
pub fn repair(files: Arc<dyn Files>, directory: &Path) -> Result<Report> {
    let paths = Paths::new(directory);
    let _lock = lock_directory(&*files, &paths)?;
    let before = look(&*files, &paths)?;
    let mut repairs = Vec::new();
    if !before.damage.is_empty() {
        files
            .create_directory(&paths.lost)
            .map_err(|error| Error::io("cannot make", &paths.lost, error))?;
        let mender = Mender {
            files: &*files,
            paths: &paths,
        };
        mender.write_headers(&mut repairs)?;
        mender.fill_holes(&before, &mut repairs)?;
        mender.strike_off(&mut repairs)?;
    }
    let after = look(&*files, &paths)?;
    Ok(Report {
        damage: after.damage.clone(),
        repairs,
        ..after
    })
}

struct Mender<'m> {
    files: &'m dyn Files,
    paths: &'m Paths,
}

impl Mender<'_> {
    /// Puts a copy of a file, changed by `change`, in its place, and keeps `lost` bytes of it.
    fn replace(
        &self,
        path: &Path,
        file: &dyn File,
        lost: std::ops::Range<u64>,
        change: impl FnOnce(&dyn File) -> std::io::Result<()>,
    ) -> Result<PathBuf> {
        let io = |what, error| Error::io(what, path, error);
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let aside = free_name(
            self.files,
            &self.paths.lost,
            &format!("{name}-{}.cut", lost.start),
        )?;
        copy_range(self.files, file, lost, &aside)
            .map_err(|error| Error::io("cannot write", &aside, error))?;
        let mended = self.paths.temporary("mended");
        let _ = self.files.unlink(&mended);
        let size = file.size().map_err(|error| io("cannot read", error))?;
        copy_range(self.files, file, 0..size, &mended).map_err(|error| io("cannot copy", error))?;
        let copy = self
            .files
            .open(&mended)
            .map_err(|error| io("cannot open", error))?;
        change(&*copy)
            .and_then(|()| copy.sync_data())
            .map_err(|error| io("cannot mend", error))?;
        self.files
            .rename(&mended, path)
            .map_err(|error| io("cannot replace", error))?;
        for directory in [&self.paths.lost, &self.paths.log] {
            self.files
                .sync_dir(directory)
                .map_err(|error| Error::io("cannot sync", directory, error))?;
        }
        let hint = path.with_extension("hint");
        let _ = self.files.unlink(&hint);
        Ok(aside)
    }

    /// Gives segments whose header cannot be read a new one.
    fn write_headers(&self, repairs: &mut Vec<String>) -> Result<()> {
        let (candidates, unreadable) = chain::list(self.files, self.paths)?;
        for bad in unreadable {
            let file = self
                .files
                .open(&bad.path)
                .map_err(|error| Error::io("cannot open", &bad.path, error))?;
            if bad.reason == HeaderFlaw::Nothing && is_zero(&*file, 0..bad.size)? {
                continue;
            }
            let before = candidates
                .iter()
                .rfind(|candidate| candidate.header.first < bad.first);
            let after = candidates
                .iter()
                .find(|candidate| candidate.header.first > bad.first);
            let known = after.or(before).map(|neighbour| &neighbour.header);
            let listed = |first: Lsn| {
                known
                    .is_none_or(|header| header.segments.iter().any(|extent| extent.first == first))
            };
            let mut segments =
                before.map_or_else(Vec::new, |before| before.header.segments.clone());
            if let Some(before) =
                before.filter(|before| listed(before.header.first) || after.is_none())
            {
                let (_, end) = scan(before, None, &mut Report::default())?;
                let end = end.min(bad.first);
                segments.push(Extent {
                    first: before.header.first,
                    bytes: end.get() - before.header.first.get(),
                });
            }
            let header = Header {
                epoch: known.map_or(0, |header| header.epoch),
                first: bad.first,
                durable: bad.first,
                name: known.map_or(Name::default(), |header| header.name),
                bindings: known.map_or_else(Bindings::default, |header| header.bindings.clone()),
                segments,
            }
            .encode();
            if header.len() > BLOCK {
                repairs.push(format!(
                    "{}: its header cannot be made again",
                    bad.path.display()
                ));
                continue;
            }
            let aside =
                self.replace(&bad.path, &*file, 0..(BLOCK as u64).min(bad.size), |copy| {
                    copy.write_at(&header, 0)
                })?;
            repairs.push(format!(
                "{}: a new header; the old one is in {}",
                bad.path.display(),
                aside.display()
            ));
        }
        Ok(())
    }

    /// Replaces what is no record by a record that means nothing.
    fn fill_holes(&self, before: &Report, repairs: &mut Vec<String>) -> Result<()> {
        let (candidates, _) = chain::list(self.files, self.paths)?;
        let expected: Vec<Extent> = candidates
            .last()
            .map_or_else(Vec::new, |newest| newest.header.segments.clone());
        for candidate in &candidates {
            let extent = expected
                .iter()
                .find(|extent| extent.first == candidate.header.first)
                .copied();
            let (holes, _) = scan(candidate, extent, &mut Report::default())?;
            let is_torn = |hole: &Hole| !before.damage.contains(&hole.damage);
            for hole in holes
                .iter()
                .filter(|hole| !hole.range.is_empty() && (extent.is_some() || !is_torn(hole)))
            {
                let file = self
                    .files
                    .open(&candidate.path)
                    .map_err(|error| Error::io("cannot open", &candidate.path, error))?;
                let bytes = (hole.range.end - hole.range.start) & !7;
                let aside = self.replace(&candidate.path, &*file, hole.range.clone(), |copy| {
                    void(copy, hole, bytes)
                })?;
                repairs.push(format!(
                    "{}: {bytes} bytes at {} are taken out and kept in {}",
                    candidate.path.display(),
                    hole.range.start,
                    aside.display()
                ));
            }
            if let Some(extent) = extent
                && candidate.size < candidate.header_bytes + extent.bytes
            {
                self.extend(candidate, extent, repairs)?;
            }
        }
        Ok(())
    }

    /// Makes a file that is too short as long as it was, with nothing in the part that was lost.
    fn extend(
        &self,
        candidate: &Candidate,
        extent: Extent,
        repairs: &mut Vec<String>,
    ) -> Result<()> {
        let file = self
            .files
            .open(&candidate.path)
            .map_err(|error| Error::io("cannot open", &candidate.path, error))?;
        let size = file
            .size()
            .map_err(|error| Error::io("cannot read", &candidate.path, error))?;
        let wanted = candidate.header_bytes + extent.bytes;
        // From the end of the last whole record on: `fill_holes` has put a void in front of it, if it had to.
        let (_, end) = scan(candidate, None, &mut Report::default())?;
        let start = candidate.header_bytes + (end.get() - candidate.header.first.get());
        let hole = Hole {
            damage: damage(&candidate.path, start, ""),
            range: start..wanted,
            first: end,
        };
        let aside = self.replace(&candidate.path, &*file, start.min(size)..size, |copy| {
            copy.set_size(wanted)?;
            void(copy, &hole, wanted - start)
        })?;
        repairs.push(format!(
            "{}: the last {} bytes are missing; what was left of them is in {}",
            candidate.path.display(),
            wanted - start,
            aside.display()
        ));
        Ok(())
    }

    /// Begins an empty segment at the end whose header names only what is there.
    fn strike_off(&self, repairs: &mut Vec<String>) -> Result<()> {
        match chain::find(self.files, self.paths) {
            Err(Error::Damage(_)) => {}
            result => return result.map(drop),
        }
        let (candidates, _) = chain::list(self.files, self.paths)?;
        let Some(newest) = candidates.last() else {
            return Ok(());
        };
        let (_, end) = scan(newest, None, &mut Report::default())?;
        let mut segments: Vec<Extent> = Vec::new();
        for candidate in &candidates {
            let first = candidate.header.first;
            let listed = newest
                .header
                .segments
                .iter()
                .find(|extent| extent.first == first);
            if first == newest.header.first {
                segments.push(Extent {
                    first,
                    bytes: end.get() - first.get(),
                });
            } else if let Some(&extent) = listed {
                segments.push(extent);
            }
        }
        let lost = newest.header.segments.len() + 1 - segments.len();
        if lost == 0 || end == newest.header.first {
            return Ok(());
        }
        let header = Header {
            first: end,
            durable: end,
            segments,
            ..newest.header.clone()
        }
        .encode();
        let path = self.paths.segment(end);
        let io = |error| Error::io("cannot write", &path, error);
        let file = self.files.create(&path).map_err(io)?;
        file.write_at(&header, 0)
            .and_then(|()| file.sync_data())
            .map_err(io)?;
        self.files.sync_dir(&self.paths.log).map_err(io)?;
        repairs.push(format!("{lost} missing segments are struck off"));
        Ok(())
    }
}

/// Writes a record that means nothing over a hole.
fn void(file: &dyn File, hole: &Hole, bytes: u64) -> std::io::Result<()> {
    let Some(data) = bytes.checked_sub(HEADER as u64) else {
        return Ok(());
    };
    let zeroes = vec![0; data as usize];
    let mut at = hole.range.start;
    let mut result = Ok(());
    write_in_parts(hole.first, &Draft::void(&zeroes), |part| {
        if result.is_ok() {
            result = file.write_at(part, at);
        }
        at += part.len() as u64;
    });
    result
}
