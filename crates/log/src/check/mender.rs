//! Writing files of a log anew, and keeping what is taken out of them.

use std::ops::Range;
use std::path::{Path, PathBuf};

use sys::file::{File, Files};

use super::barriers::{Barriers, Part};
use super::cover::LeafRange;
use super::dependents::{self, Lost, Sink};
use crate::address::Lsn;
use crate::directory::{copy_range, free_name};
use crate::error::{Error, Result};
use crate::paths::Paths;
use crate::record::{Draft, HEADER, void_header, write_in_parts};

/// Keys that are named one by one, at most; a file has the others.
const MOST_NAMED: usize = 10_000;
/// Bytes that are copied at once.
const PIECE: u64 = 1 << 20;
/// The longest record that takes the place of a hole; a longer hole gets several.
const VOID_MAX: u64 = 1 << 30;

pub(super) struct Mender<'m> {
    pub(super) files: &'m dyn Files,
    pub(super) paths: &'m Paths,
}

impl Mender<'_> {
    pub(super) fn open(&self, path: &Path) -> Result<Box<dyn File>> {
        let file = self.files.open(path);
        file.map_err(|error| Error::io("cannot open", path, error))
    }

    /// A name for what is taken out of a file.
    fn aside(&self, path: &Path, suffix: &str) -> Result<PathBuf> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        free_name(self.files, &self.paths.lost, &format!("{name}-{suffix}"))
    }

    /// Keeps bytes of a file that are about to be lost.
    fn keep(&self, path: &Path, file: &dyn File, lost: Range<u64>) -> Result<PathBuf> {
        let aside = self.aside(path, &format!("{}.cut", lost.start))?;
        copy_range(self.files, file, lost, &aside)
            .map_err(|error| Error::io("cannot write", &aside, error))?;
        Ok(aside)
    }

    /// Puts a file that `write` makes in place of another.
    fn exchange(
        &self,
        path: &Path,
        write: impl FnOnce(&dyn File) -> std::io::Result<()>,
    ) -> Result<()> {
        let io = |what, error| Error::io(what, path, error);
        let mended = self.paths.temporary("mended");
        let _ = self.files.unlink(&mended);
        let copy = self.files.create(&mended);
        let copy = copy.map_err(|error| io("cannot mend", error))?;
        write(&*copy)
            .and_then(|()| copy.sync_data())
            .map_err(|error| io("cannot mend", error))?;
        // What was taken out is there before anything is missing.
        let sync = |directory: &Path| {
            let synced = self.files.sync_dir(directory);
            synced.map_err(|error| Error::io("cannot sync", directory, error))
        };
        sync(&self.paths.lost)?;
        self.files
            .rename(&mended, path)
            .map_err(|error| io("cannot replace", error))?;
        sync(&self.paths.log)?;
        let hint = path.with_extension("hint");
        let _ = self.files.unlink(&hint);
        Ok(())
    }

    /// Puts a copy of a file, changed by `change`, in its place, and keeps `lost` bytes of it.
    pub(super) fn replace(
        &self,
        path: &Path,
        file: &dyn File,
        lost: Range<u64>,
        change: impl FnOnce(&dyn File) -> std::io::Result<()>,
    ) -> Result<PathBuf> {
        let aside = self.keep(path, file, lost)?;
        self.exchange(path, |copy| {
            copy_to(file, 0..file.size()?, copy, 0)?;
            change(copy)
        })?;
        Ok(aside)
    }

    /// Takes records out that depend on what is in a hole.
    pub(super) fn take_out_dependents(
        &self,
        parts: &[Part],
        barriers: &Barriers,
        range_of: LeafRange,
        repairs: &mut Vec<String>,
    ) -> Result<()> {
        let mut out = Out {
            mender: self,
            repairs,
            named: 0,
            others: None,
        };
        dependents::settle(parts, barriers, range_of, &mut out)?;
        let Some((path, _, file)) = out.others else {
            return Ok(());
        };
        file.sync_data()
            .map_err(|error| Error::io("cannot write", &path, error))?;
        let (more, path) = (out.named - MOST_NAMED, path.display());
        repairs.push(format!(
            "{more} other keys are gone or have an older value: {path} names them"
        ));
        Ok(())
    }

    /// Puts the whole records of segments into their places, and records that mean nothing where there are
    /// none.
    pub(super) fn fill_holes(&self, parts: &[Part], repairs: &mut Vec<String>) -> Result<()> {
        for part in parts.iter().filter(|part| !part.stretches.holes.is_empty()) {
            let (candidate, path) = (&part.candidate, &part.candidate.path);
            let first = candidate.header.first;
            let mut lines = Vec::new();
            for hole in &part.stretches.holes {
                let name = path.display();
                let bytes = hole.range.end - hole.range.start;
                if bytes == 0 {
                    let missing = hole.end.get() - hole.first.get();
                    lines.push(format!(
                        "{name}: {missing} bytes are missing at {}",
                        hole.range.start
                    ));
                    continue;
                }
                let aside = self.keep(path, &*candidate.file, hole.range.clone())?;
                lines.push(format!(
                    "{name}: {bytes} bytes at {}{} are taken out and kept in {}",
                    hole.range.start,
                    hole.guesses.about,
                    aside.display()
                ));
            }
            let ends = part.stretches.holes.iter().map(|hole| hole.end);
            let end = ends
                .chain([part.stretches.end])
                .max()
                .expect("there is one");
            let end = part.extent.map_or(end, |extent| extent.end());
            self.exchange(path, |copy| {
                copy_to(&*candidate.file, 0..candidate.header_bytes, copy, 0)?;
                copy.set_size(candidate.offset(end, 0))?;
                let mut at = first;
                for stretch in &part.stretches.whole {
                    void(copy, candidate.offset(at, 0), at..stretch.first)?;
                    let from = candidate.offset(stretch.first, stretch.shift);
                    let bytes = stretch.end.get() - stretch.first.get();
                    let place = candidate.offset(stretch.first, 0);
                    copy_to(&*candidate.file, from..from + bytes, copy, place)?;
                    at = stretch.end;
                }
                void(copy, candidate.offset(at, 0), at..end)
            })?;
            repairs.append(&mut lines);
        }
        Ok(())
    }

    /// Moves a file to what is kept of the lost, if there is one.
    pub(super) fn put_aside(&self, path: &Path, name: &str) -> Result<Option<PathBuf>> {
        let aside = free_name(self.files, &self.paths.lost, name)?;
        match self.files.rename(path, &aside) {
            Ok(()) => Ok(Some(aside)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("cannot rename", path, error)),
        }
    }
}

/// What happens to records that do not count, and where keys are named.
struct Out<'o, 'm> {
    mender: &'o Mender<'m>,
    repairs: &'o mut Vec<String>,
    named: usize,
    /// The file that has the names of further keys, and its length.
    others: Option<(PathBuf, u64, Box<dyn File>)>,
}

impl Sink for Out<'_, '_> {
    fn take_out(&mut self, part: &Part, lost: &[Lost]) -> Result<()> {
        let (candidate, path) = (&part.candidate, &part.candidate.path);
        let place = |lost: &Lost| candidate.offset(lost.lsn, lost.shift);
        // Earlier rounds may have written it anew.
        let file = self.mender.open(path)?;
        let aside = self.mender.aside(path, "later.cut")?;
        let keep = || {
            let (kept, mut at) = (self.mender.files.create(&aside)?, 0);
            for lost in lost {
                let from = place(lost);
                copy_to(&*file, from..from + lost.bytes, &*kept, at)?;
                at += lost.bytes;
            }
            kept.sync_data()
        };
        keep().map_err(|error| Error::io("cannot write", &aside, error))?;
        self.mender.exchange(path, |copy| {
            copy_to(&*file, 0..file.size()?, copy, 0)?;
            lost.iter()
                .try_for_each(|lost| void_one(copy, place(lost), lost))
        })?;
        let records = match lost.len() {
            1 => "1 record that depends".to_owned(),
            count => format!("{count} records that depend"),
        };
        self.repairs.push(format!(
            "{}: {records} on what is damaged or missing, taken out and kept in {}",
            path.display(),
            aside.display()
        ));
        Ok(())
    }

    fn tell(&mut self, line: String) -> Result<()> {
        self.named += 1;
        if self.named <= MOST_NAMED {
            self.repairs.push(line);
            return Ok(());
        }
        let files = self.mender.files;
        if self.others.is_none() {
            let path = free_name(files, &self.mender.paths.lost, "keys")?;
            let file = files.create(&path);
            let file = file.map_err(|error| Error::io("cannot write", &path, error))?;
            self.others = Some((path, 0, file));
        }
        let (path, len, file) = self.others.as_mut().expect("it was made");
        let line = line + "\n";
        file.write_at(line.as_bytes(), *len)
            .map_err(|error| Error::io("cannot write", path, error))?;
        *len += line.len() as u64;
        Ok(())
    }
}

/// Copies part of a file to a place in another.
fn copy_to(
    from: &dyn File,
    range: Range<u64>,
    to: &dyn File,
    mut place: u64,
) -> std::io::Result<()> {
    let mut at = range.start;
    while at < range.end {
        let mut piece = vec![0; (range.end - at).min(PIECE) as usize];
        from.read_exact_at(&mut piece, at)?;
        to.write_at(&piece, place)?;
        at += piece.len() as u64;
        place += piece.len() as u64;
    }
    Ok(())
}

/// Writes records that mean nothing for these positions, at `place` of a file that has zeroes there.
fn void(file: &dyn File, mut place: u64, positions: Range<Lsn>) -> std::io::Result<()> {
    let mut lsn = positions.start;
    loop {
        let left = positions.end.get().saturating_sub(lsn.get());
        if left < HEADER as u64 {
            return Ok(());
        }
        let bytes = if left > VOID_MAX { VOID_MAX / 2 } else { left };
        file.write_at(&void_header(lsn, bytes), place)?;
        (lsn, place) = (lsn.offset(bytes), place + bytes);
    }
}

/// Writes a record that means nothing in place of one that does not count.
fn void_one(file: &dyn File, mut place: u64, lost: &Lost) -> std::io::Result<()> {
    let zeroes = vec![0; lost.bytes as usize - HEADER];
    let draft = Draft::void(&zeroes);
    let draft = if lost.is_inner { draft.inner() } else { draft };
    let mut result = Ok(());
    write_in_parts(lost.lsn, &draft, |part| {
        if result.is_ok() {
            result = file.write_at(part, place);
        }
        place += part.len() as u64;
    });
    result
}
