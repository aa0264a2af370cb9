//! Mending a log: as little as makes it open again.
//!
//! - Bytes that are no record are replaced by a `Void` record of the same length.
//! - A header that cannot be read is written anew, from what the file's name and its neighbours say.
//! - A segment that is missing is struck off: a new, empty segment at the end lists only what is there.
//! - Keys whose large values are gone are deleted, in a new segment at the end.
//! - Whole records that are not in their places, behind bytes that were put in or are missing, go back there.
//! - Records that depend on what is lost are taken out (`dependents`), before the holes are mended.
//! - A new segment at the end says that instances are gone which a start has found to lack records, though
//!   all records are whole. The next start deletes their keys.
//! - What a backup, or a clean stop, says of the end of the log counts no more, if the log ends before it.
//!
//! A log with records of another version is left as it is: what they mean is not known, so nothing is mended
//! around them.
//!
//! A segment is never changed in place: a mended copy takes its name when it is on the disk, and what was
//! taken out is in `DIR/lost` before that. So a repair may be interrupted anywhere and done again.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use sys::file::Files;

use super::barriers::{Barriers, Part};
use super::blobs;
use super::cover::LeafRange;
use super::look::{look, open_log};
use super::mender::Mender;
use super::report::Report;
use super::stretch::is_zero;
use super::stretches::scan;
use crate::address::{DbId, Lsn};
use crate::bindings::Bindings;
use crate::closed;
use crate::directory::free_name;
use crate::error::{Error, Result};
use crate::lacking;
use crate::manifest;
use crate::paths::Paths;
use crate::record::{Draft, Tag, write_in_parts};
use crate::recover::parts::{Candidate, Chain};
use crate::recover::{chain, takeover};
use crate::segment::{Extent, Header, HeaderFlaw, Name, shortest_header};
use crate::sums;
use crate::version::Version;

/// How often a repair looks again, at most.
const PASSES: usize = 8;

/// Mends the log in `directory` so that it opens again. What is taken out is kept in `DIR/lost`. `range_of`
/// says which part of an instance a leaf has.
///
/// # Errors
/// A server uses the directory, or the disk refuses.
pub fn repair(files: Arc<dyn Files>, directory: &Path, range_of: LeafRange) -> Result<Report> {
    let (paths, _lock) = open_log(&*files, directory)?;
    let (mut report, mut repairs) = (look(&*files, &paths)?, Vec::new());
    let mut broken = lacking(&*files, &paths)?;
    let mender = Mender {
        files: &*files,
        paths: &paths,
    };
    let mut barriers = Barriers::default();
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
        mender.take_rings()?;
        mender.settle(&report, &mut barriers, range_of, &mut repairs)?;
        mender.fill_holes(&Part::all(&*files, &paths, &report)?, &mut repairs)?;
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
    // What a killed process has left counts behind all that was damaged. It could not be had before.
    if !barriers.is_empty() && mender.take_rings()? {
        mender.settle(&report, &mut barriers, range_of, &mut repairs)?;
        report = look(&*files, &paths)?;
    }
    Ok(Report { repairs, ..report })
}

/// Instances that lack records, with the tags of some.
type Instances = BTreeMap<(DbId, u64), Tag>;

/// Those that a start has found.
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

impl Mender<'_> {
    /// Takes over what killed processes have left for the log, if it opens. Whether there was something.
    fn take_rings(&self) -> Result<bool> {
        let chain = match chain::find(self.files, self.paths) {
            Err(Error::Damage(_)) => return Ok(false),
            result => result?,
        };
        if takeover::look(self.files, self.paths, &chain)?.is_empty() {
            return Ok(false);
        }
        takeover::take_over(self.files, self.paths, chain).map(|_| true)
    }

    /// Takes records out that depend on what is in a hole.
    fn settle(
        &self,
        before: &Report,
        barriers: &mut Barriers,
        range_of: LeafRange,
        repairs: &mut Vec<String>,
    ) -> Result<()> {
        let mut parts = Part::all(self.files, self.paths, before)?;
        barriers.add(&mut parts)?;
        self.take_out_dependents(&parts, barriers, range_of, repairs)
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
            let end = scan(before, None, &mut Report::default())?.end;
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
