//! A segment as it is: stretches of whole records, and holes between them.
//!
//! Bytes that were put into a file, or are missing in it, move all records behind them. Such records are
//! found again (`resync`): a stretch has its place in the log, and its place in the file.

use std::ops::Range;

use super::guesses::{Guesses, guesses};
use super::report::Report;
use super::resync::{next_record, resync};
use super::stretch::{Stretch, damage, is_zero};
use crate::address::Lsn;
use crate::error::{Damage, Error, Result};
use crate::record::{self, Entry};
use crate::recover::parts::Candidate;
use crate::segment::Extent;
use crate::walk::Stop;

/// Bytes of a segment that are no record.
pub(super) struct Hole {
    pub(super) damage: Damage,
    /// Where they are in the file.
    pub(super) range: Range<u64>,
    /// The positions that have no records.
    pub(super) first: Lsn,
    pub(super) end: Lsn,
    pub(super) guesses: Guesses,
}

/// What a segment consists of.
pub(super) struct Stretches {
    pub(super) whole: Vec<Stretch>,
    pub(super) holes: Vec<Hole>,
    /// Where the records end.
    pub(super) end: Lsn,
}

/// The hole at the end of a file that is shorter than it was.
fn missing_end(candidate: &Candidate, extent: Option<Extent>, file_end: Lsn) -> Option<Hole> {
    let end = extent?.end();
    let missing = end.get().checked_sub(file_end.get());
    let missing = missing.filter(|&bytes| bytes > 0)?;
    let reason = format!("the file ends {missing} bytes too early");
    Some(Hole {
        damage: damage(&candidate.path, candidate.size, reason),
        range: candidate.size..candidate.size,
        first: file_end,
        end,
        guesses: Guesses::default(),
    })
}

/// Reads a segment from beginning to end, going on behind whatever is no record.
pub(super) fn scan(
    candidate: &Candidate,
    extent: Option<Extent>,
    report: &mut Report,
) -> Result<Stretches> {
    let first = candidate.header.first;
    let limit = |shift| {
        let file_end = candidate.file_end(shift);
        extent.map_or(file_end, |extent| extent.end().min(file_end))
    };
    let mut holes = Vec::from_iter(missing_end(candidate, extent, candidate.file_end(0)));
    let missing = holes.len();
    let mut stretch = Stretch {
        first,
        end: limit(0),
        shift: 0,
    };
    let mut whole = Vec::new();
    report.segments += 1;
    let end = loop {
        let (at, flaw) = match read_stretch(candidate, stretch, report)? {
            None => {
                whole.push(stretch);
                break stretch.end;
            }
            Some(stop) => stop,
        };
        if at > stretch.first {
            whole.push(Stretch { end: at, ..stretch });
        }
        let start = candidate.offset(at, stretch.shift);
        let hole = |range: Range<u64>, end| Hole {
            damage: damage(&candidate.path, start, flaw),
            guesses: guesses(&*candidate.file, &range, at, &candidate.header.bindings),
            range,
            first: at,
            end,
        };
        match resync(
            candidate,
            Stretch {
                first: at,
                ..stretch
            },
            extent.map(Extent::end),
        )? {
            Some((next, shift)) => {
                holes.push(hole(start..candidate.offset(next, shift).max(start), next));
                stretch = Stretch {
                    first: next,
                    end: limit(shift),
                    shift,
                };
            }
            None if extent.is_some() => {
                let end = stretch.end;
                holes.push(hole(start..candidate.offset(end, stretch.shift), end));
                break end;
            }
            // The rest of the last segment: it ends here.
            None => {
                let range = start..candidate.size;
                let is_said = holes.is_empty() || flaw != record::Flaw::Nothing;
                if is_said && !range.is_empty() && !is_zero(&*candidate.file, range.clone())? {
                    let bytes = (range.end - range.start) & !7;
                    holes.push(hole(range, at.offset(bytes)));
                }
                break at;
            }
        }
    };
    // What seemed to be missing has moved.
    if missing > 0 && extent.is_some_and(|extent| end >= extent.end()) {
        holes.remove(0);
    }
    report.bytes += end.get() - first.get();
    Ok(Stretches { whole, holes, end })
}

/// Reads on to the first position that has no record; `None` if there is none.
fn read_stretch(
    candidate: &Candidate,
    stretch: Stretch,
    report: &mut Report,
) -> Result<Option<(Lsn, record::Flaw)>> {
    let mut walk = candidate.walk(stretch);
    loop {
        match walk.next() {
            Ok(Some(step)) => match step.found.entry {
                Entry::Batch(_) => report.batches += 1,
                Entry::Key(_) | Entry::Bind(_) => report.records += 1,
                Entry::Mark(_) | Entry::Retire(_) | Entry::Void => {}
            },
            Ok(None) => return Ok(None),
            Err(Stop::Io(error)) => return Err(walk.error(Stop::Io(error))),
            Err(Stop::Unknown(at, what)) => {
                if let Error::Version(what) = walk.error(Stop::Unknown(at, what)) {
                    report.push_unknown(what);
                }
                // It is whole, whatever it says.
                match next_record(
                    candidate,
                    Stretch {
                        first: at,
                        ..stretch
                    },
                )? {
                    Some(next) => walk.go_to(next),
                    None => return Ok(None),
                }
            }
            Err(Stop::Flaw(at, flaw)) => return Ok(Some((at, flaw))),
        }
    }
}
