//! Finding records again behind bytes that are none.
//!
//! The checksum of a record continues from a number that is made of its position and its length. A checksum
//! can be undone: from its value and the bytes it covers follows the number that it began with, and from that
//! the position of the record. So records are found also if bytes were put into the file, or are missing, and
//! nobody knows how many. Any bytes give some position. A record that is not in its place counts only if
//! another one follows it, or if it ends where it must.

use super::stretch::Stretch;
use crate::address::Lsn;
use crate::error::{Error, Result};
use crate::record::{Entry, HEADER, Peeked, peek, position_of};
use crate::recover::parts::Candidate;
use crate::walk::{Stop, Walk};

/// Bytes that are read at once.
const WINDOW: usize = 1 << 20;
/// The longest record that is looked for at another place than its own.
const LONGEST: u64 = 64 << 20;

/// The next whole record at the top level behind the position at which `stretch` begins, and how far behind
/// its place it is. `end` is where the records of the segment end, if that is known.
pub(super) fn resync(
    candidate: &Candidate,
    stretch: Stretch,
    end: Option<Lsn>,
) -> Result<Option<(Lsn, i64)>> {
    let in_place = next_record(candidate, stretch)?;
    let moved = moved_record(candidate, stretch, in_place, end)?;
    Ok(moved.or(in_place.map(|next| (next, stretch.shift))))
}

/// The first position behind the beginning of `stretch` where there is a whole record at the top level, or
/// one of another version.
pub(super) fn next_record(candidate: &Candidate, stretch: Stretch) -> Result<Option<Lsn>> {
    let mut at = stretch.first.offset(8);
    let mut walk = candidate.walk(stretch);
    while at.offset(HEADER as u64) <= stretch.end {
        at = match walk
            .search(at)
            .map_err(|error| Error::io("cannot read", &candidate.path, error))?
        {
            Some(found) => found,
            None => return Ok(None),
        };
        walk.go_to(at);
        if pass_one(&mut walk)? {
            return Ok(Some(at));
        }
        at = at.offset(8);
    }
    Ok(None)
}

/// Goes past a record at the top level. Whether there is one; a batch counts if all of it is there.
fn pass_one(walk: &mut Walk<'_>) -> Result<bool> {
    loop {
        match walk.next() {
            Ok(Some(step)) if step.found.is_inner => {}
            Ok(Some(step)) if matches!(step.found.entry, Entry::Batch(_)) => {}
            Ok(Some(_)) | Err(Stop::Unknown(..)) => return Ok(true),
            Ok(None) | Err(Stop::Flaw(..)) => return Ok(false),
            Err(Stop::Io(error)) => return Err(walk.error(Stop::Io(error))),
        }
        if walk.is_between() {
            return Ok(true);
        }
    }
}

/// The first record that is not in its place, if there is one before the one that is.
fn moved_record(
    candidate: &Candidate,
    stretch: Stretch,
    in_place: Option<Lsn>,
    end: Option<Lsn>,
) -> Result<Option<(Lsn, i64)>> {
    let io = |error| Error::io("cannot read", &candidate.path, error);
    // More than that is not missing of a segment of which nobody knows where it ends.
    let most = stretch.first.0.saturating_add(candidate.size + LONGEST);
    let last = in_place.or(end);
    let mut at = candidate.offset(stretch.first, stretch.shift);
    let end = in_place.map_or(candidate.size, |next| candidate.offset(next, stretch.shift));
    let mut window = Vec::new();
    while at + (HEADER as u64) <= end {
        window.resize((end - at).min(WINDOW as u64) as usize, 0);
        candidate.file.read_exact_at(&mut window, at).map_err(io)?;
        for (index, header) in window.windows(HEADER).enumerate() {
            let place = at + index as u64;
            let header = header.first_chunk().expect("a window has so many bytes");
            let Some(peeked) = peek(header).filter(|its| its.bytes <= (end - place).min(LONGEST))
            else {
                continue;
            };
            let Some(lsn) = position_at(candidate, place, &peeked, stretch.first)? else {
                continue;
            };
            let shift = place.cast_signed() - candidate.offset(lsn, 0).cast_signed();
            let behind = lsn.0.saturating_add(peeked.bytes);
            let fits = lsn >= stretch.first && behind <= last.map_or(most, |last| last.0);
            if fits && shift != stretch.shift && is_one(candidate, lsn, shift, last)? {
                return Ok(Some((lsn, shift)));
            }
        }
        at += (window.len() - HEADER + 1) as u64;
    }
    Ok(None)
}

/// The position that the record at a place of the file has, if it is one, near `near`.
fn position_at(
    candidate: &Candidate,
    place: u64,
    peeked: &Peeked,
    near: Lsn,
) -> Result<Option<Lsn>> {
    let io = |error| Error::io("cannot read", &candidate.path, error);
    // What follows a record looks like one, or is nothing. This costs less than a checksum of garbage.
    let behind = place + peeked.bytes;
    if candidate.size.saturating_sub(behind) >= HEADER as u64 {
        let mut next = [0; HEADER];
        candidate
            .file
            .read_exact_at(&mut next, behind)
            .map_err(io)?;
        if next != [0; HEADER] && peek(&next).is_none() {
            return Ok(None);
        }
    }
    let mut bytes = vec![0; peeked.covered as usize];
    candidate
        .file
        .read_exact_at(&mut bytes, place)
        .map_err(io)?;
    Ok(Some(position_of(&bytes, near)))
}

/// Whether there is a record at `lsn`, which is `shift` bytes behind its place, and another one behind it, or
/// the end that is known.
fn is_one(candidate: &Candidate, lsn: Lsn, shift: i64, last: Option<Lsn>) -> Result<bool> {
    let file_end = candidate.file_end(shift);
    let mut walk = candidate.walk(Stretch {
        first: lsn,
        end: last.unwrap_or(file_end).min(file_end),
        shift,
    });
    // Any bytes have the checksum of some position, so the first has to make sense.
    if !pass_one(&mut walk)? || walk.position() == lsn {
        return Ok(false);
    }
    Ok(Some(walk.position()) == last || pass_one(&mut walk)?)
}
