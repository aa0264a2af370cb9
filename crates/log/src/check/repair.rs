//! Mending a log: as little as makes it open again.
//!
//! - Bytes that are no record are replaced by a `Void` record of the same length.
//! - A header that cannot be read is written anew, from what the file's name and its neighbours say.
//! - A segment that is missing is struck off: a new, empty segment at the end lists only what is there.
//! - Keys whose large values are gone are deleted, in a new segment at the end.
//! - A new segment at the end says that instances are gone which have lost records: what is left of one is
//!   not what it was. The next start deletes their keys. Which instances these are is a guess from damaged
//!   bytes. The segment is written before these are replaced, unless they hide the end of the log.
//! - The same is said of instances that a start has found to lack records, though all records are whole.
//! - What a backup, or a clean stop, says of the end of the log counts no more, if the log ends before it.
//!
//! A log with records of another version is left as it is: what they mean is not known, so nothing is mended
//! around them.
//!
//! A segment is never changed in place: a mended copy takes its name when it is on the disk, and what was
//! taken out is in `DIR/lost` before that. So a repair may be interrupted anywhere and done again.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sys::file::{File, Files};

use super::blobs;
use super::guesses::{Guesses, Instances};
use super::look::{Hole, damage, is_zero, look, open_log, scan};
use super::report::Report;
use crate::address::Lsn;
use crate::bindings::Bindings;
use crate::closed;
use crate::directory::{copy_range, free_name};
use crate::error::{Error, Result};
use crate::lacking;
use crate::manifest;
use crate::paths::Paths;
use crate::record::{Draft, HEADER, write_in_parts};
use crate::recover::chain;
use crate::recover::parts::{Candidate, Chain};
use crate::segment::{Extent, Header, HeaderFlaw, Name, shortest_header};
use crate::sums;
use crate::version::Version;

/// How often a repair looks again, at most.
const PASSES: usize = 8;

/// Mends the log in `directory` so that it opens again. What is taken out is kept in `DIR/lost`.
///
/// # Errors
/// A server uses the directory, or the disk refuses.
pub fn repair(files: Arc<dyn Files>, directory: &Path) -> Result<Report> {
    let (paths, _lock) = open_log(&*files, directory)?;
    let (mut report, mut repairs) = (look(&*files, &paths)?, Vec::new());
    let mut broken = lacking(&*files, &paths)?;
    let mender = Mender {
        files: &*files,
        paths: &paths,
    };
    // What is mended can let other damage be seen.
    for _ in 0..PASSES {
        let is_done = report.damage.is_empty() && broken.is_empty();
        if is_done || !report.unknown.is_empty() {
            break;
        }
        files
            .create_directory(&paths.lost)
            .map_err(|error| Error::io("cannot make", &paths.lost, error))?;
        let before = repairs.len();
        mender.write_headers(&mut repairs)?;
        mender.fill_holes(&report, &mut broken, &mut repairs)?;
        mender.strike_off(&mut repairs)?;
        mender.delete_keys(&mut repairs)?;
        mender.end_instances(&mut broken, &mut repairs)?;
        if broken.is_empty() {
            lacking::remove(&*files, &paths)?;
        }
        mender.end_backup(&mut repairs)?;
        mender.end_proof(&mut repairs)?;
        report = look(&*files, &paths)?;
        if repairs.len() == before {
            break;
        }
    }
    Ok(Report { repairs, ..report })
}

/// Instances that lack records, as a start has found.
fn lacking(files: &dyn Files, paths: &Paths) -> Result<Instances> {
    let (candidates, _) = chain::list(files, paths)?;
    let Some(newest) = candidates.last() else {
        return Ok(Instances::new());
    };
    let noted = lacking::read(files, paths, newest.header.name)?;
    let noted = noted
        .into_iter()
        .map(|(db, number, tag)| ((db, number), tag));
    Ok(noted.collect())
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

    /// Gives segments whose header cannot be read a new one, if the log needs them.
    fn write_headers(&self, repairs: &mut Vec<String>) -> Result<()> {
        let mut tried = None;
        loop {
            let damage = match chain::find(self.files, self.paths) {
                Err(Error::Damage(damage)) => damage,
                result => return result.map(drop),
            };
            // What could not be mended once can't be mended.
            if tried.as_ref() == Some(&damage.file) || !self.write_header(&damage.file, repairs)? {
                return Ok(());
            }
            tried = Some(damage.file);
        }
    }

    /// Gives a segment a new header, if it has none that can be read. Whether that was done.
    fn write_header(&self, path: &Path, repairs: &mut Vec<String>) -> Result<bool> {
        let (candidates, unreadable) = chain::list(self.files, self.paths)?;
        let Some(bad) = unreadable.iter().find(|bad| bad.path == path) else {
            return Ok(false);
        };
        let file = self
            .files
            .open(&bad.path)
            .map_err(|error| Error::io("cannot open", &bad.path, error))?;
        if bad.reason == HeaderFlaw::Nothing && is_zero(&*file, 0..bad.size)? {
            return Ok(false);
        }
        let header = self.new_header(bad.first, &candidates)?.encode();
        let shortest = shortest_header(bad.first);
        if header.len() > shortest {
            repairs.push(format!(
                "{}: its header cannot be made again",
                bad.path.display()
            ));
            return Ok(false);
        }
        let aside = self.replace(
            &bad.path,
            &*file,
            0..(shortest as u64).min(bad.size),
            |copy| copy.write_at(&header, 0),
        )?;
        repairs.push(format!(
            "{}: a new header; the old one is in {}",
            bad.path.display(),
            aside.display()
        ));
        Ok(true)
    }

    /// The header of the segment that begins at `first`, from what its neighbours say.
    fn new_header(&self, first: Lsn, candidates: &[Candidate]) -> Result<Header> {
        let mut header = Header {
            epoch: 0,
            first,
            durable: first,
            name: Name::default(),
            writer: Version::NONE,
            bindings: Bindings::default(),
            segments: Vec::new(),
        };
        let mut older = candidates.iter().filter(|its| its.header.first < first);
        let newer = candidates.iter().find(|its| its.header.first > first);
        if let Some(newer) = newer {
            let listed = newer.header.segments.iter();
            header.segments = listed.filter(|its| its.first < first).copied().collect();
            header.name = newer.header.name;
            header.epoch = newer.header.epoch;
            header.bindings = newer.header.bindings.clone();
        } else if let Some(before) = older.next_back() {
            // The newest header says what the log is: also what has changed since the one before was written.
            let tail = chain::read_tail(before, None)?;
            let listed = before.header.segments.iter();
            let stays = listed.filter(|extent| !tail.retired.contains_key(&extent.first));
            let (_, end) = scan(before, None, &mut Report::default())?;
            header.segments = stays
                .copied()
                .chain([before.extent(end.min(first))])
                .collect();
            header.name = before.header.name;
            header.epoch = before.header.epoch;
            header.bindings = tail.bindings;
        } else if let Ok(Some(closed)) = closed::read(self.files, self.paths) {
            header.name = closed.name;
        }
        Ok(header)
    }

    /// Replaces what is no record by a record that means nothing. `broken` are the instances that have lost
    /// records.
    fn fill_holes(
        &self,
        before: &Report,
        broken: &mut Instances,
        repairs: &mut Vec<String>,
    ) -> Result<()> {
        let (candidates, _) = chain::list(self.files, self.paths)?;
        let expected: Vec<Extent> = candidates
            .last()
            .map_or_else(Vec::new, |newest| newest.header.segments.clone());
        let mut found = Vec::new();
        for candidate in &candidates {
            let extent = expected
                .iter()
                .find(|extent| extent.first == candidate.header.first)
                .copied();
            let (mut holes, _) = scan(candidate, extent, &mut Report::default())?;
            let is_torn = |hole: &Hole| !before.damage.contains(&hole.damage);
            holes.retain(|hole| !hole.range.is_empty() && (extent.is_some() || !is_torn(hole)));
            for hole in &mut holes {
                broken.append(&mut hole.guesses.instances);
            }
            found.push((candidate, extent, holes));
        }
        self.end_instances(broken, repairs)?;
        for (candidate, extent, holes) in found {
            for hole in &holes {
                let file = self
                    .files
                    .open(&candidate.path)
                    .map_err(|error| Error::io("cannot open", &candidate.path, error))?;
                let bytes = (hole.range.end - hole.range.start) & !7;
                let aside = self.replace(&candidate.path, &*file, hole.range.clone(), |copy| {
                    void(copy, hole, bytes)
                })?;
                repairs.push(format!(
                    "{}: {bytes} bytes at {}{} are taken out and kept in {}",
                    candidate.path.display(),
                    hole.range.start,
                    hole.guesses.about,
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
            guesses: Guesses::default(),
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
        let Some((newest, older)) = candidates.split_last() else {
            return Ok(());
        };
        let tail = chain::read_tail(newest, None)?;
        let listed = newest.header.segments.iter();
        let (segments, missing): (Vec<Extent>, Vec<Extent>) = listed
            .filter(|extent| !tail.retired.contains_key(&extent.first))
            .partition(|extent| {
                let is_it = |older: &Candidate| older.header.first == extent.first;
                older.iter().any(is_it)
            });
        if missing.is_empty() {
            return Ok(());
        }
        self.append(newest, &tail.bindings, tail.end, segments, &[])?;
        for extent in &missing {
            repairs.push(format!(
                "{} is missing and struck off: {} bytes of records are lost",
                self.paths.segment(extent.first).display(),
                extent.bytes
            ));
        }
        Ok(())
    }

    /// Deletes the keys whose values were in files that are damaged. Without their records, older values
    /// would be back.
    fn delete_keys(&self, repairs: &mut Vec<String>) -> Result<()> {
        let chain = match chain::find(self.files, self.paths) {
            Err(Error::Damage(_)) => return Ok(()),
            result => result?,
        };
        let mut damaged = blobs::damaged(self.files, self.paths, blobs::needed(&chain)?)?;
        for bad in damaged.extract_if(.., |bad| bad.whole.is_some()) {
            let blob = bad.whole.expect("it was looked at");
            let key = bad.key.escape_ascii();
            sums::write_anew(self.files, &self.paths.blob(blob.id), blob)?;
            repairs.push(format!(
                "the checksums of the value of \"{key}\" are written anew: the value is whole"
            ));
        }
        let Some((newest, _)) = chain.segments.last().filter(|_| !damaged.is_empty()) else {
            return Ok(());
        };
        let mut records = Vec::new();
        for bad in &damaged {
            let lsn = chain.end.offset(records.len() as u64);
            write_in_parts(lsn, &Draft::delete(bad.db, &bad.key), |part| {
                records.extend_from_slice(part);
            });
        }
        self.append_to(&chain, newest, &records, repairs)?;
        for bad in &damaged {
            let mut line = format!("{} is deleted", bad.name(&chain.bindings));
            let name = bad.damage.file.file_name().unwrap_or_default();
            match self.put_aside(&bad.damage.file, &format!("{}.value", name.display()))? {
                Some(aside) => {
                    line += &format!("; what was left of its value is in {}", aside.display());
                }
                None => line += &format!("; nothing is left of its value ({})", bad.damage),
            }
            repairs.push(line);
        }
        Ok(())
    }

    /// Says that instances are gone which have lost records.
    fn end_instances(&self, broken: &mut Instances, repairs: &mut Vec<String>) -> Result<()> {
        if broken.is_empty() {
            return Ok(());
        }
        let chain = match chain::find(self.files, self.paths) {
            Err(Error::Damage(_)) => return Ok(()),
            result => result?,
        };
        let Some((newest, _)) = chain.segments.last() else {
            return Ok(());
        };
        let mut records = Vec::new();
        for (&(db, number), &tag) in &*broken {
            let lsn = chain.end.offset(records.len() as u64);
            let number = number.to_le_bytes();
            write_in_parts(lsn, &Draft::edit_instance(db, &number, tag, &[]), |part| {
                records.extend_from_slice(part);
            });
        }
        self.append_to(&chain, newest, &records, repairs)?;
        for (db, number) in std::mem::take(broken).into_keys() {
            repairs.push(format!(
                "the collection {number} in database {} has lost records: the next start deletes its key",
                chain.bindings.number_of(db)
            ));
        }
        Ok(())
    }

    /// What is left of a backup is none: its end is where it ends.
    fn end_backup(&self, repairs: &mut Vec<String>) -> Result<()> {
        let aside = free_name(self.files, &self.paths.lost, "MANIFEST")?;
        let path = manifest::path(self.paths);
        if manifest::put_aside(self.files, self.paths, &path, &aside)? {
            let aside = aside.display();
            repairs.push(format!(
                "the backup is a log now: its MANIFEST is in {aside}"
            ));
        }
        Ok(())
    }

    /// If nothing but the proof of a clean stop is against the log, the proof goes: the log ends where it
    /// does.
    fn end_proof(&self, repairs: &mut Vec<String>) -> Result<()> {
        let Err(Error::Damage(_)) = chain::find(self.files, self.paths) else {
            return Ok(());
        };
        let what = match closed::read(self.files, self.paths) {
            Ok(None) => return Ok(()),
            Err(Error::Damage(_)) => "the proof of a clean stop was damaged".to_owned(),
            Err(error) => return Err(error),
            Ok(Some(closed)) => match chain::find_without_proof(self.files, self.paths) {
                Err(Error::Damage(_)) => return Ok(()),
                Err(error) => return Err(error),
                Ok(chain) => {
                    let missing = closed.end.get().saturating_sub(chain.end.get());
                    format!(
                        "the log ends at {}, {missing} bytes before the end that it had when it was closed",
                        chain.end
                    )
                }
            },
        };
        let aside = free_name(self.files, &self.paths.lost, "CLOSED")?;
        let path = closed::path(self.paths);
        if manifest::put_aside(self.files, self.paths, &path, &aside)? {
            repairs.push(format!("{what}; CLOSED is in {}", aside.display()));
        }
        Ok(())
    }

    /// Moves a file to what is kept of the lost, if there is one.
    fn put_aside(&self, path: &Path, name: &str) -> Result<Option<PathBuf>> {
        let aside = free_name(self.files, &self.paths.lost, name)?;
        match self.files.rename(path, &aside) {
            Ok(()) => Ok(Some(aside)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("cannot rename", path, error)),
        }
    }

    /// Begins a segment of these records at the end of a log that opens, of which `newest` is the last.
    fn append_to(
        &self,
        chain: &Chain,
        newest: &Candidate,
        records: &[u8],
        repairs: &mut Vec<String>,
    ) -> Result<()> {
        // A segment at the end of the log must not be behind what the next start would put aside.
        for path in chain.cut.iter().flat_map(|cut| cut.files.iter().rev()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if let Some(aside) = self.put_aside(path, &name)? {
                let (path, aside) = (path.display(), aside.display());
                repairs.push(format!(
                    "{path} is behind the end of the log, and in {aside} now"
                ));
            }
        }
        let older = chain.segments.iter().map(|&(_, extent)| extent);
        let older = older.filter(|extent| extent.first < newest.header.first);
        self.append(newest, &chain.bindings, chain.end, older.collect(), records)
    }

    /// Begins a segment of these records at the end of the log, behind `segments`.
    fn append(
        &self,
        newest: &Candidate,
        bindings: &Bindings,
        end: Lsn,
        segments: Vec<Extent>,
        records: &[u8],
    ) -> Result<()> {
        let header = Header {
            first: end,
            durable: end,
            writer: Version::THIS,
            bindings: bindings.clone(),
            segments: segments
                .into_iter()
                .chain((end > newest.header.first).then(|| newest.extent(end)))
                .collect(),
            ..newest.header.clone()
        }
        .encode();
        let path = self.paths.segment(end);
        let io = |error| Error::io("cannot write", &path, error);
        // Not under its name at once: the newest header says what the log is, so it has to be whole.
        let draft = self.paths.temporary("mended");
        let _ = self.files.unlink(&draft);
        let file = self.files.create(&draft).map_err(io)?;
        file.write_at(&header, 0)
            .and_then(|()| file.write_at(records, header.len() as u64))
            .and_then(|()| file.sync_data())
            .and_then(|()| self.files.rename(&draft, &path))
            .and_then(|()| self.files.sync_dir(&self.paths.log))
            .map_err(io)
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
