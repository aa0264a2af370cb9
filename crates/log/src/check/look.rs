//! Reading a whole log, going on behind whatever is wrong with it.

use std::path::Path;
use std::sync::Arc;

use sys::file::{Files, Lock};

use super::blobs;
use super::report::Report;
use super::stretch::{damage, is_zero};
use super::stretches::scan;
use crate::address::Lsn;
use crate::closed;
use crate::directory::lock_directory;
use crate::error::{Damage, Error, Result};
use crate::lacking;
use crate::manifest;
use crate::paths::Paths;
use crate::recover::parts::{Candidate, Chain};
use crate::recover::{chain, takeover};
use crate::segment::Name;

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
    let mut end = Lsn(0);
    for candidate in &candidates {
        let path = &candidate.path;
        if Some(candidate.header.name) != name {
            report.push(damage(path, 0, "the segment belongs to another log"), "");
        }
        let extent = expected
            .iter()
            .find(|extent| extent.first == candidate.header.first);
        let found = scan(candidate, extent.copied(), &mut report)?;
        end = found.end;
        for hole in found.holes {
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
        Err(Error::Damage(damage)) => refused(
            files,
            paths,
            damage,
            name.map(|name| (name, end)),
            &mut report,
        )?,
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

/// Notes why a start is refused. `newest` is the log of the newest segment, and where its records
/// end.
fn refused(
    files: &dyn Files,
    paths: &Paths,
    damage: Damage,
    newest: Option<(Name, Lsn)>,
    report: &mut Report,
) -> Result<()> {
    let proof = proof_remedy(files, paths, newest)?;
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

/// What a repair does about a proof of a clean stop that is against a log which opens without it, and which
/// has no records up to the end that it had then.
fn proof_remedy(
    files: &dyn Files,
    paths: &Paths,
    newest: Option<(Name, Lsn)>,
) -> Result<Option<String>> {
    let closed = match closed::read(files, paths) {
        Ok(None) => return Ok(None),
        Ok(Some(closed))
            if newest.is_some_and(|(name, end)| closed.name == name && closed.end <= end) =>
        {
            return Ok(None);
        }
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

fn is_behind(damage: &Damage, end: Lsn, candidates: &[Candidate]) -> bool {
    candidates.iter().any(|candidate| {
        let offset = damage.offset.saturating_sub(candidate.header_bytes);
        candidate.path == damage.file && candidate.header.first.get() + offset >= end.get()
    })
}
