//! Where the knowledge of a damaged log ends.
//!
//! A hole may hide a record of any key. An edit behind it says nothing of a value that is in front of it. So
//! holes divide the positions of a log into *runs*, and a value is known from the records of one run alone:
//! from a `Set`, and the edits behind it in the same run.
//!
//! In front of the first hole the log is whole, and gives the state of that moment, if it still has all
//! segments that it had then. If compaction has removed one of them since, what it wrote in its place may be
//! in the hole. Then the gaps that removed segments have left in front of the hole count as holes, too.

use std::collections::BTreeSet;

use sys::file::Files;

use super::report::Report;
use super::stretches::{Hole, Stretches, scan};
use crate::address::Lsn;
use crate::bindings::{Bindings, decode_changes};
use crate::error::{Damage, Result};
use crate::paths::Paths;
use crate::record::{Entry, Found};
use crate::recover::chain;
use crate::recover::parts::Candidate;
use crate::segment::Extent;
use crate::version::Version;

/// A segment that is there.
pub(super) struct Part {
    pub(super) candidate: Candidate,
    /// What the newest header says of it; `None` of the newest, and of segments that are no part of the log.
    pub(super) extent: Option<Extent>,
    pub(super) stretches: Stretches,
}

impl Part {
    /// The segments of a directory. Holes behind the end of a log that opens are left out, if a check has not
    /// found `before` that they are damage.
    pub(super) fn all(files: &dyn Files, paths: &Paths, before: &Report) -> Result<Vec<Part>> {
        let (candidates, _) = chain::list(files, paths)?;
        let newest = candidates.last();
        let expected = newest.map_or_else(Vec::new, |newest| newest.header.segments.clone());
        let mut parts = Vec::new();
        for candidate in candidates {
            let first = candidate.header.first;
            let extent = expected.iter().find(|its| its.first == first).copied();
            let mut stretches = scan(&candidate, extent, &mut Report::default())?;
            if extent.is_none() {
                let end = stretches.end;
                let holes = &mut stretches.holes;
                holes.retain(|hole| before.damage.iter().any(|its| is_hole(its, hole, end)));
            }
            parts.push(Part {
                candidate,
                extent,
                stretches,
            });
        }
        Ok(parts)
    }

    fn first(&self) -> Lsn {
        self.candidate.header.first
    }

    /// Shows all whole records, with where they are and how far behind their places.
    pub(super) fn each(
        &self,
        mut visit: impl FnMut(Lsn, i64, &Found<'_>) -> Result<()>,
    ) -> Result<()> {
        for &stretch in &self.stretches.whole {
            let mut walk = self.candidate.walk(stretch);
            loop {
                match walk.next() {
                    Ok(None) => break,
                    Ok(Some(step)) => visit(step.lsn, stretch.shift, &step.found)?,
                    Err(stop) => return Err(walk.error(stop)),
                }
            }
        }
        Ok(())
    }

    /// The segments that records of this one say are gone, up to a position.
    fn retired(&self, before: Lsn) -> Result<BTreeSet<Lsn>> {
        let mut retired = BTreeSet::new();
        self.each(|lsn, _, found| {
            if let Entry::Retire(first) = found.entry
                && lsn < before
            {
                retired.insert(first);
            }
            Ok(())
        })?;
        Ok(retired)
    }
}

/// Whether damage of the newest segment, whose records end at `end`, is a hole that has to be mended. Where
/// no record follows, a log that was closed ends before the hole, and the reason is another.
fn is_hole(damage: &Damage, hole: &Hole, end: Lsn) -> bool {
    let is_there = damage.file == hole.damage.file && damage.offset == hole.damage.offset;
    is_there && (hole.end < end || damage.reason == hole.damage.reason)
}

/// Divides the positions of a log into runs.
#[derive(Debug, Default)]
pub(super) struct Barriers(BTreeSet<Lsn>);

impl Barriers {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The run of a position, from 0 on.
    pub(super) fn run_of(&self, lsn: Lsn) -> usize {
        self.0.range(..=lsn).count()
    }

    /// Adds those of a log, and leaves the segments that the log consists of. What a repair has mended is
    /// no hole any more, so those of earlier looks stay.
    pub(super) fn add(&mut self, parts: &mut Vec<Part>) -> Result<()> {
        let Some(newest) = parts.last() else {
            return Ok(());
        };
        let retired = newest.retired(Lsn(u64::MAX))?;
        let listed = newest.candidate.header.segments.iter().map(|its| its.first);
        let wanted: BTreeSet<Lsn> = listed.filter(|first| !retired.contains(first)).collect();
        let last = newest.first();
        parts.retain(|part| part.first() == last || wanted.contains(&part.first()));
        let there: BTreeSet<Lsn> = parts.iter().map(Part::first).collect();
        let holes = parts.iter().flat_map(|part| &part.stretches.holes);
        let holes = holes
            .filter(|hole| hole.first < hole.end)
            .map(|hole| hole.first);
        let holes: BTreeSet<Lsn> = holes.chain(wanted.difference(&there).copied()).collect();
        let ends = parts.iter().map(|part| (part.end(), part));
        let gaps: Vec<Lsn> = ends
            .zip(parts.iter().skip(1))
            .filter_map(|((end, _), next)| (end < next.first()).then_some(end))
            .collect();
        for &hole in &holes {
            if !has_all(parts, &there, &gaps, hole)? {
                self.0.extend(gaps.iter().filter(|gap| **gap <= hole));
            }
        }
        self.0.extend(holes);
        Ok(())
    }
}

impl Part {
    /// Where its positions end.
    fn end(&self) -> Lsn {
        self.extent.map_or(self.stretches.end, Extent::end)
    }
}

/// Whether all segments are still there that the log had when it went on at a position.
fn has_all(parts: &[Part], there: &BTreeSet<Lsn>, gaps: &[Lsn], at: Lsn) -> Result<bool> {
    let Some(part) = parts.iter().rfind(|part| part.first() <= at) else {
        return Ok(true);
    };
    let header = &part.candidate.header;
    // A header that a repair has made does not say what there was.
    if header.writer == Version::NONE || part.end() < at {
        return Ok(gaps.iter().all(|gap| *gap > at));
    }
    let retired = part.retired(at)?;
    let mut listed = header.segments.iter().map(|its| its.first);
    Ok(listed.all(|first| there.contains(&first) || retired.contains(&first)))
}

/// What the databases' numbers mean at the end, as far as that is known.
pub(super) fn bindings(parts: &[Part]) -> Result<Bindings> {
    let Some(newest) = parts.last() else {
        return Ok(Bindings::default());
    };
    let mut bindings = newest.candidate.header.bindings.clone();
    newest.each(|lsn, _, found| {
        if let Entry::Bind(changes) = found.entry {
            bindings.apply(&decode_changes(changes).unwrap_or_default(), lsn);
        }
        Ok(())
    })?;
    Ok(bindings)
}
