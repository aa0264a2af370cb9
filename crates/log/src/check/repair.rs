//! Mending a log: as little as makes it open again.
//!
//! - Bytes that are no record are replaced by a `Void` record of the same length.
//! - A header that cannot be read is written anew, from what the file's name and its neighbours say.
//! - A segment that is missing is struck off: a new, empty segment at the end lists only what is there.
//! - Keys whose large values are gone are deleted, in a new segment at the end.
//! - What a backup says of its end counts no more.
//!
//! A segment is never changed in place: a mended copy takes its name when it is on the disk, and what was taken out is in
//! `DIR/lost` before that. So a repair may be interrupted anywhere and done again.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sys::file::{File, Files};

use super::{Hole, Report, blobs, damage, is_zero, look, open_log, scan};
use crate::address::Lsn;
use crate::bindings::Bindings;
use crate::error::{Error, Result};
use crate::manifest;
use crate::paths::Paths;
use crate::record::{Draft, HEADER, write_in_parts};
use crate::recover::chain::{self, Candidate};
use crate::recover::{copy_range, free_name};
use crate::segment::{Extent, Header, HeaderFlaw, Name, shortest_header};
use crate::sums;

/// Mends the log in `directory` so that it opens again. What is taken out is kept in `DIR/lost`.
///
/// # Errors
/// A server uses the directory, or the disk refuses.
pub fn repair(files: Arc<dyn Files>, directory: &Path) -> Result<Report> {
    let (paths, _lock) = open_log(&*files, directory)?;
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
        mender.delete_keys(&mut repairs)?;
        mender.end_backup(&mut repairs)?;
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
            let shortest = shortest_header(bad.first);
            if header.len() > shortest {
                repairs.push(format!(
                    "{}: its header cannot be made again",
                    bad.path.display()
                ));
                continue;
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
        let Some((newest, older)) = candidates.split_last() else {
            return Ok(());
        };
        let tail = chain::read_tail(newest, None)?;
        let listed = newest.header.segments.iter();
        let (segments, missing): (Vec<Extent>, Vec<Extent>) = listed
            .filter(|extent| !tail.retired.contains(&extent.first))
            .partition(|extent| {
                let is_it = |older: &Candidate| older.header.first == extent.first;
                older.iter().any(is_it)
            });
        if missing.is_empty() {
            return Ok(());
        }
        self.append(newest, &tail.bindings, tail.end, segments, &[])?;
        repairs.push(format!("{} missing segments are struck off", missing.len()));
        Ok(())
    }

    /// Deletes the keys whose values were in files that are damaged. Without their records, older values would be back.
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
        if chain.cut.is_some_and(|cut| !cut.files.is_empty()) {
            // A segment at the end of the log would be behind what is to be put aside.
            return Ok(());
        }
        let mut records = Vec::new();
        for bad in &damaged {
            let lsn = chain.end.offset(records.len() as u64);
            write_in_parts(lsn, &Draft::delete(bad.db, &bad.key), |part| {
                records.extend_from_slice(part);
            });
        }
        let older = chain.segments.iter().map(|&(_, extent)| extent);
        let older = older.filter(|extent| extent.first < newest.header.first);
        self.append(
            newest,
            &chain.bindings,
            chain.end,
            older.collect(),
            &records,
        )?;
        for bad in &damaged {
            let key = bad.key.escape_ascii();
            let mut line = format!("the key \"{key}\" is deleted");
            if let Some(aside) = self.put_aside(&bad.damage.file)? {
                line += &format!("; what was left of its value is in {}", aside.display());
            }
            repairs.push(line);
        }
        Ok(())
    }

    /// What is left of a backup is none: its end is where it ends.
    fn end_backup(&self, repairs: &mut Vec<String>) -> Result<()> {
        let aside = free_name(self.files, &self.paths.lost, "MANIFEST")?;
        if manifest::put_aside(self.files, self.paths, &aside)? {
            let aside = aside.display();
            repairs.push(format!(
                "the backup is a log now: its MANIFEST is in {aside}"
            ));
        }
        Ok(())
    }

    /// Moves a file to what is kept of the lost, if there is one.
    fn put_aside(&self, path: &Path) -> Result<Option<PathBuf>> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let aside = free_name(self.files, &self.paths.lost, &format!("{name}.value"))?;
        match self.files.rename(path, &aside) {
            Ok(()) => Ok(Some(aside)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("cannot rename", path, error)),
        }
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
