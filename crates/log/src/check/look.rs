//! Reading a whole log, going on behind whatever is wrong with it.

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use sys::file::{File, Files, Lock};

use super::blobs;
use super::guesses::{Guesses, guesses};
use super::report::Report;
use crate::address::Lsn;
use crate::closed;
use crate::directory::lock_directory;
use crate::error::{Damage, Error, Result};
use crate::lacking;
use crate::manifest;
use crate::paths::Paths;
use crate::record::{self, Entry, HEADER};
use crate::recover::parts::{Candidate, Chain};
use crate::recover::{chain, takeover};
use crate::segment::Extent;
use crate::walk::{Stop, Walk};

/// A stretch of a segment that is no record.
pub(super) struct Hole {
    pub(super) damage: Damage,
    pub(super) range: Range<u64>,
    pub(super) first: Lsn,
    pub(super) guesses: Guesses,
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
pub(super) fn open_log(files: &dyn Files, directory: &Path) -> Result<(Paths, Box<dyn Lock>)> {
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

pub(super) fn look(files: &dyn Files, paths: &Paths) -> Result<Report> {
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
                bytes => format!(
                    "takes out {bytes} bytes{} and keeps them in {lost}",
                    hole.guesses.about
                ),
            };
            report.push(hole.damage, remedy);
        }
    }
    match chain::find(files, paths) {
        Ok(chain) => opens(files, paths, &chain, &candidates, &mut report)?,
        Err(Error::Damage(damage)) => refused(files, paths, damage, &mut report)?,
        Err(Error::Version(what)) => report.push_unknown(what),
        Err(error) => return Err(error),
    }
    let lacking = lacking::read(files, paths, name.unwrap_or_default())?.len();
    if lacking > 0 {
        let reason = format!("a start has found {lacking} collections that have lost records");
        let remedy = "says that they are gone: the next start deletes their keys";
        report.push(damage(&lacking::path(paths), 0, reason), remedy);
    }
    // Others are no part of the log: the next start removes them, or puts them aside.
    for bad in unreadable {
        let is_it = |damage: &Damage| damage.file == bad.path;
        let Some(place) = report.damage.iter().position(is_it) else {
            continue;
        };
        let file = files
            .open(&bad.path)
            .map_err(|error| Error::io("cannot open", &bad.path, error))?;
        report.remedies[place] = if is_zero(&*file, 0..bad.size)? {
            "strikes the segment off: what was in it is lost".to_owned()
        } else {
            format!("writes a new header and keeps the old one in {lost}")
        };
    }
    Ok(report)
}

/// Notes what a start finds that accepts the log.
fn opens(
    files: &dyn Files,
    paths: &Paths,
    chain: &Chain,
    candidates: &[Candidate],
    report: &mut Report,
) -> Result<()> {
    report.end = chain.end.get();
    report.tail = chain.cut.as_ref().map(|cut| cut.line(chain.end, paths));
    // What is behind the end is neither damage nor unknown: the next start puts it aside.
    let is_behind = |damage: &Damage| is_behind(damage, chain.end, candidates);
    let is_part = |path: &Path| chain.segments.iter().any(|(its, _)| its.path == path);
    let unknown = &mut report.unknown;
    unknown.retain(|its| is_part(&its.file) && !is_behind(its));
    let found = std::mem::take(&mut report.damage).into_iter();
    let remedies = std::mem::take(&mut report.remedies);
    let found = found.zip(remedies).filter(|(damage, _)| !is_behind(damage));
    (report.damage, report.remedies) = found.unzip();
    match takeover::look(files, paths, chain) {
        Ok(lines) => report.rings = lines,
        Err(Error::Version(what)) => report.push_unknown(what),
        Err(error) => return Err(error),
    }
    let needed = blobs::needed(chain)?;
    report.blobs = needed.len();
    for bad in blobs::damaged(files, paths, needed)? {
        let (name, key) = (bad.name(&chain.bindings), bad.key.escape_ascii());
        let remedy = match bad.whole {
            Some(_) => format!("writes the checksums of the value of \"{key}\" anew"),
            None => format!("deletes {name} which is damaged"),
        };
        report.push(bad.damage, remedy);
    }
    Ok(())
}

/// Notes why a start is refused.
fn refused(files: &dyn Files, paths: &Paths, damage: Damage, report: &mut Report) -> Result<()> {
    let proof = proof_remedy(files, paths)?;
    let known = report.damage.iter();
    let known = known.rev().position(|its| its.file == damage.file);
    // More than one thing may be wrong with a file, and a start names the first.
    if let Some(place) = known {
        let place = report.damage.len() - 1 - place;
        if let Some(proof) = proof {
            report.damage[place].reason = damage.reason;
            let remedy = &mut report.remedies[place];
            if !remedy.is_empty() {
                *remedy += ", and ";
            }
            *remedy += &proof;
        }
        return Ok(());
    }
    let remedy = if let Some(proof) = proof {
        proof
    } else if files.open(&damage.file).is_err() {
        "strikes the segment off: what was in it is lost".to_owned()
    } else if !matches!(manifest::end(files, paths), Ok(None)) {
        "makes a log of the backup that ends where it does".to_owned()
    } else {
        String::new()
    };
    report.push(damage, remedy);
    Ok(())
}

/// What a repair does about a proof of a clean stop that is against a log which opens without it.
fn proof_remedy(files: &dyn Files, paths: &Paths) -> Result<Option<String>> {
    let closed = match closed::read(files, paths) {
        Ok(None) => return Ok(None),
        Ok(Some(closed)) => Some(closed),
        Err(Error::Damage(_)) => None,
        Err(error) => return Err(error),
    };
    let chain = match chain::find_without_proof(files, paths) {
        Ok(chain) => chain,
        Err(Error::Damage(_) | Error::Version(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    let missing = closed.map_or(0, |closed| closed.end.get().saturating_sub(chain.end.get()));
    Ok(Some(match missing {
        0 => format!("keeps CLOSED in {}", paths.lost.display()),
        missing => format!("makes a log of what is there: its last {missing} bytes are lost"),
    }))
}

pub(super) fn damage(path: &Path, offset: u64, reason: impl fmt::Display) -> Damage {
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

/// The hole at the end of a file that is shorter than it was.
fn missing_end(candidate: &Candidate, extent: Option<Extent>, file_end: Lsn) -> Option<Hole> {
    let missing = extent?.end().get().checked_sub(file_end.get());
    let missing = missing.filter(|&bytes| bytes > 0)?;
    let reason = format!("the file ends {missing} bytes too early");
    Some(Hole {
        damage: damage(&candidate.path, candidate.size, reason),
        range: candidate.size..candidate.size,
        first: candidate.header.first,
        guesses: Guesses::default(),
    })
}

/// Reads a segment from beginning to end, going on behind whatever is no record. With where its records end.
pub(super) fn scan(
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
    let mut holes = Vec::from_iter(missing_end(candidate, extent, file_end));
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
            Err(Stop::Unknown(at, what)) => {
                if let Error::Version(what) = walk.error(Stop::Unknown(at, what)) {
                    report.push_unknown(what);
                }
                // It is whole, whatever it says.
                match next_record(&**file, candidate, at, end)? {
                    Some(next) => walk.go_to(next),
                    None => {
                        report.bytes += at.get() - first.get();
                        return Ok((holes, at));
                    }
                }
            }
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
                            let range = offset..*size;
                            holes.push(Hole {
                                damage: damage(path, offset, flaw),
                                guesses: guesses(&**file, &range, at, &header.bindings),
                                range,
                                first: at,
                            });
                        }
                    }
                    return Ok((holes, at));
                };
                let range = walk.offset(at)..walk.offset(next);
                holes.push(Hole {
                    damage: damage(path, range.start, flaw),
                    guesses: guesses(&**file, &range, at, &header.bindings),
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

pub(super) fn is_zero(file: &dyn File, range: Range<u64>) -> Result<bool> {
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

/// The first position behind `from` where there is a whole record at the top level, or one of another
/// version.
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
                Ok(_) | Err(Stop::Unknown(..)) => return Ok(Some(at)),
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
