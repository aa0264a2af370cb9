//! Which files make up the log, and where it ends.
//!
//! What a crash can leave: everything below some position is there (the *durable* part), behind it any part
//! of what was written may be missing, in any order, and files too. So the log ends at the first record that
//! is not whole, and everything behind it goes, unless there is *evidence* that this place was durable once:
//! then the disk has lost what it had promised, which nobody may pass over in silence. Evidence is in every
//! segment's header, in the marks, and beside a backup or a log that was closed in good order. A record whose
//! large value is not in its file counts as not whole, too ([`torn`]). A record whose checksum is right and
//! which this version does not know is whole: the start ends there ([`crate::version`]).
//!
//! The newest header that is left, with the `Retire` records behind it, says which segments there must be.

use std::collections::BTreeMap;
use std::path::PathBuf;

use sys::file::Files;

use super::parts::{Candidate, Chain, Cut, Unreadable};
use super::torn::{self, Torn};
use crate::address::{Address, Lsn};
use crate::bindings::{Bindings, decode_changes};
use crate::closed::{self, Closed};
use crate::error::{Damage, Error, Result};
use crate::manifest;
use crate::paths::Paths;
use crate::record::{Entry, Flaw};
use crate::segment::{self, Extent, Header, HeaderFlaw, read_header, shortest_header};
use crate::walk::{Stop, Walk};

/// All segments in the directory.
pub(crate) fn list(files: &dyn Files, paths: &Paths) -> Result<(Vec<Candidate>, Vec<Unreadable>)> {
    let names = files
        .list(&paths.log)
        .map_err(|error| Error::io("cannot list", &paths.log, error))?;
    let mut firsts: Vec<Lsn> = names
        .iter()
        .filter_map(|name| segment::first_of(name))
        .collect();
    firsts.sort_unstable();
    let (mut candidates, mut unreadable) = (Vec::new(), Vec::new());
    for first in firsts {
        let path = paths.segment(first);
        let file = files
            .open(&path)
            .map_err(|error| Error::io("cannot open", &path, error))?;
        let size = file
            .size()
            .map_err(|error| Error::io("cannot read", &path, error))?;
        match read_header(&*file).map_err(|error| Error::io("cannot read", &path, error))? {
            Ok((header, header_bytes)) if header.first == first => candidates.push(Candidate {
                path,
                file,
                header,
                header_bytes: header_bytes as u64,
                size,
            }),
            // What is of another version was written on purpose, whatever else is there.
            Err(reason @ (HeaderFlaw::Format(..) | HeaderFlaw::Table(_))) => {
                return Err(Error::version(&path, 0, reason));
            }
            Ok(_) => unreadable.push(Unreadable {
                first,
                path,
                reason: HeaderFlaw::Damaged,
                size,
            }),
            Err(reason) => unreadable.push(Unreadable {
                first,
                path,
                reason,
                size,
            }),
        }
    }
    Ok((candidates, unreadable))
}

/// Segments that are no part of the log any more, and where the records end that say so.
pub(crate) type Retired = BTreeMap<Lsn, Lsn>;

/// A segment's file goes when the record that says so is durable: what is durable because files have gone.
fn evidence_of_removals(retired: &Retired, older: &[Candidate], unreadable: &[Unreadable]) -> Lsn {
    let is_there = |first: Lsn| {
        older.iter().any(|its| its.header.first == first)
            || unreadable.iter().any(|its| its.first == first)
    };
    let gone = retired.iter().filter(|(first, _)| !is_there(**first));
    gone.map(|(_, end)| *end).max().unwrap_or(Lsn(0))
}

/// What reading a segment from its beginning to its end found.
pub(crate) struct Tail {
    /// Where what is whole ends.
    pub(crate) end: Lsn,
    /// Why, if not with zeroes or the end of the file.
    flaw: Option<Flaw>,
    /// What the databases' numbers mean at the end.
    pub(crate) bindings: Bindings,
    /// Segments that are no part of the log any more.
    pub(crate) retired: Retired,
    /// The last record that names a large value.
    last_blob: Lsn,
    /// The greatest position that a mark, before or behind the end, says was durable.
    durable: Lsn,
    /// The end of the last byte that is not zero, as an offset.
    dirty_end: u64,
}

impl Tail {
    /// Why it ends.
    fn why(&self) -> String {
        let flaw = self.flaw.map(|flaw| flaw.to_string());
        flaw.unwrap_or_else(|| "the file ends too early".to_owned())
    }
}

/// Reads a segment, up to `limit` or to where it ends by itself.
pub(crate) fn read_tail(candidate: &Candidate, limit: Option<Lsn>) -> Result<Tail> {
    let Candidate {
        path,
        file,
        header,
        header_bytes,
        size,
    } = candidate;
    let file_end = header.first.offset(size.saturating_sub(*header_bytes));
    let mut walk = Walk::new(
        &**file,
        path,
        header.first,
        *header_bytes,
        limit.unwrap_or(file_end).min(file_end),
    );
    let mut tail = Tail {
        end: header.first,
        flaw: None,
        bindings: header.bindings.clone(),
        retired: Retired::new(),
        last_blob: Lsn(0),
        durable: header.durable,
        dirty_end: 0,
    };
    // What a batch says counts when all of it was seen.
    let mut held: Vec<(Lsn, Vec<crate::bindings::Rebind>)> = Vec::new();
    loop {
        let step = walk.next();
        let stop = match step {
            Ok(None) => break,
            Ok(Some(step)) => {
                let (lsn, inner) = (step.lsn, step.found.is_inner);
                match step.found.entry {
                    Entry::Bind(changes) => {
                        held.push((lsn, decode_changes(changes).unwrap_or_default()));
                    }
                    Entry::Mark(durable) => tail.durable = tail.durable.max(durable),
                    Entry::Retire(first) => {
                        let end = lsn.offset(step.found.bytes as u64);
                        tail.retired.insert(first, end);
                    }
                    Entry::Key(record) if record.address().is_some_and(Address::is_blob) => {
                        tail.last_blob = lsn;
                    }
                    Entry::Key(_) | Entry::Batch(_) | Entry::Void => {}
                }
                let is_container = matches!(step.found.entry, Entry::Batch(_));
                if !inner && !is_container || walk.is_between() {
                    tail.end = walk.position();
                    for (lsn, changes) in held.drain(..) {
                        tail.bindings.apply(&changes, lsn);
                    }
                }
                continue;
            }
            Err(stop) => stop,
        };
        match stop {
            // What is of another version is no torn end.
            Stop::Io(_) | Stop::Unknown(..) => return Err(walk.error(stop)),
            Stop::Flaw(_, flaw) => tail.flaw = Some(flaw),
        }
        break;
    }
    // Marks behind the end are evidence too.
    let mut behind = Walk::new(&**file, path, header.first, *header_bytes, file_end);
    let (evidence, dirty_end) = behind
        .evidence_behind(tail.end)
        .map_err(|error| Error::io("cannot read", path, error))?;
    tail.durable = tail.durable.max(evidence.unwrap_or(Lsn(0)));
    tail.dirty_end = dirty_end;
    if tail.flaw == Some(Flaw::Nothing) && dirty_end <= behind.offset(tail.end) {
        tail.flaw = None;
    }
    Ok(tail)
}

/// Finds out what the log is. Changes nothing.
pub(crate) fn find(files: &dyn Files, paths: &Paths) -> Result<Chain> {
    let closed = closed::read(files, paths)?;
    let assured = closed.as_ref().map_or(Lsn(0), |closed| closed.end);
    let found = match manifest::end(files, paths)? {
        None => find_durable_to(files, paths, assured),
        Some(end) => find_durable_to(files, paths, end.max(assured))
            .map_err(manifest::explain)
            .map(|chain| Chain {
                is_backup: true,
                ..chain
            }),
    };
    let Some(closed) = closed else {
        return found;
    };
    match found {
        Err(Error::Damage(damage)) => Err(after_a_clean_stop(files, paths, &closed, damage)?),
        Ok(chain) if chain.name.is_some_and(|name| name != closed.name) => {
            let path = closed::path(paths);
            Err(Error::damage(&path, 0, "it belongs to another log"))
        }
        found => found,
    }
}

/// [`find`], as if nothing but the log itself said where it ends.
pub(crate) fn find_without_proof(files: &dyn Files, paths: &Paths) -> Result<Chain> {
    find_durable_to(files, paths, Lsn(0))
}

/// Damage of a log that was closed in good order: if nothing but the proof of that tells of the damage, with
/// what the proof says.
fn after_a_clean_stop(
    files: &dyn Files,
    paths: &Paths,
    closed: &Closed,
    damage: Damage,
) -> Result<Error> {
    let without = match find_without_proof(files, paths) {
        Ok(chain) => chain,
        Err(Error::Damage(_)) => return Ok(Error::Damage(damage)),
        Err(error) => return Err(error),
    };
    if without.name.is_some_and(|name| name != closed.name) {
        let path = closed::path(paths);
        return Ok(Error::damage(&path, 0, "it belongs to another log"));
    }
    let newest = paths.segment(closed.newest);
    let is_missing = match files.open(&newest) {
        Ok(_) => false,
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    };
    let (file, offset, reason) = if is_missing {
        (newest, 0, "the file is missing")
    } else {
        (damage.file, damage.offset, &*damage.reason)
    };
    let missing = closed.end.get().saturating_sub(without.end.get());
    let reason = reason.to_owned() + &closed.explain(missing);
    Ok(Error::damage(&file, offset, reason))
}

/// Finds out what a log is of which everything below a position was durable.
fn find_durable_to(files: &dyn Files, paths: &Paths, assured: Lsn) -> Result<Chain> {
    let chain = find_before(files, paths, None, assured)?;
    match torn::find(files, paths, &chain)? {
        None => Ok(chain),
        Some(torn) => {
            let durable = chain.durable;
            let mut chain = find_before(files, paths, Some(torn), assured)?;
            chain.durable = chain.durable.max(durable);
            Ok(chain)
        }
    }
}

/// Finds out what the log is in front of a position, where a record begins and nothing is durable.
fn find_before(
    files: &dyn Files,
    paths: &Paths,
    torn: Option<Torn>,
    assured: Lsn,
) -> Result<Chain> {
    let (mut candidates, unreadable) = list(files, paths)?;
    let mut chain = Chain::empty();
    // The evidence of all headers, and the newest as the first guess of what the log consists of.
    let mut durable = candidates
        .iter()
        .map(|candidate| candidate.header.durable)
        .max()
        .unwrap_or(Lsn(0))
        .max(assured);
    let mut behind: Vec<PathBuf> = Vec::new();
    let (limit, mut reason) =
        torn.map_or_else(Default::default, |torn| (Some(torn.end), torn.reason));
    let (last, tail) = loop {
        let Some(last) = candidates.pop() else {
            if assured > Lsn::FIRST && unreadable.is_empty() {
                return Err(Error::damage(&paths.log, 0, "there is no segment"));
            }
            return nothing_left(chain, unreadable, behind, durable);
        };
        if limit.is_some_and(|limit| last.header.first > limit) {
            behind.push(last.path);
            continue;
        }
        let tail = read_tail(&last, limit)?;
        durable = durable.max(tail.durable);
        durable = durable.max(evidence_of_removals(
            &tail.retired,
            &candidates,
            &unreadable,
        ));
        chain.last_blob = tail.last_blob;
        // Older segments that may not have been synced have to be whole, too.
        let last_blob = &mut chain.last_blob;
        match first_hole(&last, &tail.retired, &candidates, &mut durable, last_blob)? {
            None => break (last, tail),
            Some((at, why, path, offset)) => {
                if at < durable {
                    return Err(Error::damage(&path, offset, why));
                }
                reason = why;
                behind.push(last.path);
            }
        }
    };
    for bad in &unreadable {
        durable = durable.max(evidence_in(files, bad)?);
    }
    let leftovers = &mut chain.leftovers;
    put_aside(&unreadable, (&last, &tail), durable, &mut behind, leftovers)?;
    if tail.end < durable {
        let offset = last.header_bytes + (tail.end.0 - last.header.first.0);
        return Err(Error::damage(&last.path, offset, tail.why()));
    }
    chain.cut = cut_of(&last, &tail, behind, reason);
    gather(&mut chain, candidates, &last.header, &tail.retired, paths)?;
    chain.end = tail.end;
    chain.durable = durable;
    chain.name = Some(last.header.name);
    chain.epoch = last.header.epoch;
    chain.bindings = tail.bindings;
    let extent = Extent {
        first: last.header.first,
        bytes: tail.end.0 - last.header.first.0,
    };
    chain.segments.push((last, extent));
    Ok(chain)
}

/// Says of files without a header whether they are behind the end of the log, or no part of it any more.
fn put_aside(
    unreadable: &[Unreadable],
    (last, tail): (&Candidate, &Tail),
    durable: Lsn,
    behind: &mut Vec<PathBuf>,
    leftovers: &mut Vec<PathBuf>,
) -> Result<()> {
    for bad in unreadable {
        let mut listed = last.header.segments.iter();
        let is_listed = listed.any(|extent| extent.first == bad.first);
        // What begins inside of the newest segment is no part of the log, whatever it is.
        let is_behind = bad.first > last.header.first && bad.first >= tail.end;
        let is_missing = is_listed && !tail.retired.contains_key(&bad.first);
        if bad.first < durable && (is_missing || is_behind) {
            return Err(Error::damage(&bad.path, 0, bad.reason));
        }
        if bad.first > last.header.first {
            behind.push(bad.path.clone());
        } else if !is_listed {
            leftovers.push(bad.path.clone());
        }
    }
    Ok(())
}

/// What is behind the end of the log, if something is: of the last segment, and files.
fn cut_of(last: &Candidate, tail: &Tail, behind: Vec<PathBuf>, mut reason: String) -> Option<Cut> {
    let offset = last.header_bytes + (tail.end.0 - last.header.first.0);
    let rest = (tail.dirty_end > offset).then_some(offset..tail.dirty_end);
    if rest.is_none() && behind.is_empty() {
        return None;
    }
    if let Some(flaw) = tail.flaw.filter(|_| reason.is_empty()) {
        reason = flaw.to_string();
    }
    if reason.is_empty() {
        reason = "there are files that are no part of it".to_owned();
    }
    Some(Cut {
        reason,
        tail: rest,
        files: behind,
    })
}

/// What marks in a file without a header say. Its records are taken to be where
/// a short header puts them.
fn evidence_in(files: &dyn Files, bad: &Unreadable) -> Result<Lsn> {
    let header_bytes = shortest_header(bad.first) as u64;
    if bad.reason == HeaderFlaw::Nothing || bad.size <= header_bytes {
        return Ok(Lsn(0));
    }
    let file = files
        .open(&bad.path)
        .map_err(|error| Error::io("cannot open", &bad.path, error))?;
    let file_end = bad.first.offset(bad.size - header_bytes);
    let mut walk = Walk::new(&*file, &bad.path, bad.first, header_bytes, file_end);
    let evidence = walk
        .evidence_behind(bad.first)
        .map_err(|error| Error::io("cannot read", &bad.path, error))?;
    Ok(evidence.0.unwrap_or(Lsn(0)))
}

/// No segment can be read: fine if there has been none, or none was ever synced.
fn nothing_left(
    mut chain: Chain,
    unreadable: Vec<Unreadable>,
    mut behind: Vec<PathBuf>,
    durable: Lsn,
) -> Result<Chain> {
    // A first segment that was synced once has more in it than zeroes.
    let mut bad = unreadable.iter();
    let has_something = bad.find(|bad| bad.reason != HeaderFlaw::Nothing);
    let is_durable = || unreadable.iter().find(|bad| bad.first < durable);
    if let Some(bad) = has_something.or_else(is_durable) {
        return Err(Error::damage(&bad.path, 0, bad.reason));
    }
    behind.extend(unreadable.into_iter().map(|bad| bad.path));
    if !behind.is_empty() {
        chain.cut = Some(Cut {
            reason: HeaderFlaw::Nothing.to_string(),
            tail: None,
            files: behind,
        });
    }
    Ok(chain)
}

/// The first place in the segments before `last`, at or above `durable`, that is not whole: position, reason,
/// file, offset. Evidence found on the way counts.
fn first_hole(
    last: &Candidate,
    retired: &Retired,
    older: &[Candidate],
    durable: &mut Lsn,
    last_blob: &mut Lsn,
) -> Result<Option<(Lsn, String, PathBuf, u64)>> {
    for extent in &last.header.segments {
        // What is below is checked when it is read, and a file that is missing is found by `gather`. What was
        // retired may be gone already: everything up to there was durable then, whatever the marks say.
        if extent.end() <= *durable || retired.contains_key(&extent.first) {
            continue;
        }
        let Some(candidate) = older
            .iter()
            .find(|older| older.header.first == extent.first)
        else {
            let path = last.path.with_file_name(segment::file_name(extent.first));
            return Ok(Some((
                extent.first,
                "the file is missing or has no header".to_owned(),
                path,
                0,
            )));
        };
        let tail = read_tail(candidate, Some(extent.end()))?;
        *durable = tail.durable.max(*durable);
        *last_blob = tail.last_blob.max(*last_blob);
        if tail.end < extent.end() {
            let offset = candidate.header_bytes + (tail.end.0 - extent.first.0);
            return Ok(Some((tail.end, tail.why(), candidate.path.clone(), offset)));
        }
    }
    Ok(None)
}

/// Takes the segments that the newest header names, and sees that none is missing.
fn gather(
    chain: &mut Chain,
    candidates: Vec<Candidate>,
    newest: &Header,
    retired: &Retired,
    paths: &Paths,
) -> Result<()> {
    let mut wanted = newest
        .segments
        .iter()
        .filter(|extent| !retired.contains_key(&extent.first))
        .peekable();
    for candidate in candidates {
        let first = candidate.header.first;
        if let Some(missing) = wanted.next_if(|extent| extent.first < first) {
            return Err(Error::damage(
                &paths.segment(missing.first),
                0,
                "the file is missing",
            ));
        }
        let Some(&extent) = wanted.next_if(|extent| extent.first == first) else {
            chain.leftovers.push(candidate.path);
            continue;
        };
        if candidate.header.name != newest.name {
            return Err(Error::damage(
                &candidate.path,
                0,
                "the segment belongs to another log",
            ));
        }
        if candidate.header.epoch > newest.epoch {
            return Err(Error::damage(
                &candidate.path,
                0,
                "the segment has a later epoch than a newer one",
            ));
        }
        if candidate.size < candidate.header_bytes + extent.bytes {
            return Err(Error::damage(
                &candidate.path,
                candidate.size,
                "the file ends too early",
            ));
        }
        chain.segments.push((candidate, extent));
    }
    match wanted.next() {
        Some(missing) => Err(Error::damage(
            &paths.segment(missing.first),
            0,
            "the file is missing",
        )),
        None => Ok(()),
    }
}
