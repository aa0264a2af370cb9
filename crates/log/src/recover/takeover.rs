//! What a dead process had in its ring and not in the segments: taken over before the log is read.
//!
//! The ring's file ([`sys::ring::file`]) has three kinds of positions behind the end of the segments:
//!
//! ```text
//!            end of the segments   passed                             tail
//!  segments  ====================--|
//!  ring                            |####|....|##########|....|########|
//!                                   whole gap  whole      gap  whole
//! ```
//!
//! - Below *passed* everything is in the newest segment's file, though its last record may go on in the ring.
//! - A whole record has its own checksum, which begins with its position: bytes of another lap of the ring do
//!   not pass.
//! - A gap was claimed and never filled: its writer died in between, holding the locks of its shards. Nobody
//!   has seen it, and nobody was told of it. The writer's words say where it ends. It becomes a `Void`
//!   record, so that positions stay what they are, and what is behind it, which may have been acknowledged,
//!   is kept. A batch is one claim: it is whole, or all of it is a gap.
//!
//! All of it is written where the log thread would have written it: behind what the newest segment has. So
//! every byte goes where the same byte goes again if this is interrupted, anywhere, any number of times. The
//! ring's file is removed when the segment is on the disk.
//!
//! A ring that is from another boot, of another log or directory, damaged in its header, or beside a backup,
//! is removed, with a line that says why. One of another format, or with a record of another version, stays,
//! and the start ends. If bytes in it are damaged, what comes before them is taken. So it is if the log had
//! failed and has thrown away what came, more than the ring holds.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sys::file::{File, Files};
use sys::ring::survivor::{Claim, Survivor};
use sys::ring::{Consumer, Ring};

use super::chain;
use super::parts::{Candidate, Chain};
use crate::address::Lsn;
use crate::error::{Error, Result};
use crate::limits::TAKEOVER_ATTEMPTS;
use crate::options::Options;
use crate::paths::Paths;
use crate::record;
use crate::segment::Name;
use crate::version;
use crate::walk::{Stop, Walk};

/// Bytes written with one call.
const PIECE: u64 = 1 << 20;

/// Makes the ring of a log that begins to take writes at `start`, in a file that outlives the process, where
/// there can be one.
///
/// # Errors
/// The system has no memory for it.
pub(crate) fn make_ring(
    files: &dyn Files,
    paths: &Paths,
    options: &Options,
    name: Name,
    start: Lsn,
) -> Result<(Arc<Ring>, Consumer)> {
    let (capacity, producers) = (options.ring_bytes, options.appenders + 1);
    let failed = |error| Error::io("cannot map the ring for", &paths.log, error);
    let places = match files.ring_places(&paths.root) {
        Ok(places) => places,
        Err(error) => {
            if error.kind() != std::io::ErrorKind::Unsupported {
                log::warn!("{}: {error}", LOSES);
            }
            return Ring::new(capacity, start.get(), producers).map_err(failed);
        }
    };
    let orphans = places.remove_orphans();
    if orphans > 0 {
        log::info!("{orphans} rings of killed servers are removed whose directories are gone");
    }
    let placed = places.make(name, capacity, start.get(), producers);
    let placed = placed.map_err(failed)?;
    match &placed.path {
        None => log::warn!("{LOSES}: {}", placed.refused.join("; ")),
        Some(path) if placed.refused.is_empty() => {
            log::debug!(
                "what has yet to be written to the log is in {}",
                path.display()
            );
        }
        Some(path) => log::info!(
            "what has yet to be written to the log is kept in {}, not in memory: {}",
            path.display(),
            placed.refused.join("; ")
        ),
    }
    Ok((placed.ring, placed.consumer))
}

const LOSES: &str =
    "the log's last few milliseconds have no place that outlives the process, should it be killed";

/// Takes over what earlier processes have left for this log, and removes their rings. Returns what the log is
/// then. The directory is locked.
///
/// # Errors
/// The disk refuses, or the log is damaged, or of another version. The rings stay.
pub(crate) fn take_over(files: &dyn Files, paths: &Paths, mut chain: Chain) -> Result<Chain> {
    if let Ok(places) = files.ring_places(&paths.root) {
        places.remove_drafts();
    }
    for left in left(files, paths, &chain)? {
        let path = left.path.display();
        match &left.found {
            Err(reason) => log::warn!("the ring in {path} is left out: {reason}"),
            Ok(plan) => {
                if let Some(flaw) = &plan.flaw {
                    log::warn!("the ring in {path} {flaw}");
                }
                if plan.end > chain.end.get() {
                    log::info!("{}", plan.line(&left.path, chain.end));
                    write(&chain, plan)?;
                    chain = chain::find(files, paths)?;
                }
            }
        }
        // If it stays, the next start finds nothing in it that the segments lack.
        if let Err(error) = std::fs::remove_file(&left.path) {
            log::warn!("cannot remove the ring in {path}: {error}");
        }
    }
    Ok(chain)
}

/// What a start would do about the rings that are there: a line for each. Changes nothing.
///
/// # Errors
/// The disk refuses.
pub(crate) fn look(files: &dyn Files, paths: &Paths, chain: &Chain) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for left in left(files, paths, chain)? {
        let path = left.path.display();
        lines.push(match &left.found {
            Err(reason) => format!("{path} is left out by the next start: {reason}"),
            Ok(plan) => {
                let takes = match plan.end.saturating_sub(chain.end.get()) {
                    0 => "has nothing that the log lacks".to_owned(),
                    bytes => format!("has {bytes} bytes more, which the next start takes over"),
                };
                let flaw = plan.flaw.as_ref();
                let flaw = flaw.map_or_else(String::new, |flaw| format!("; it {flaw}"));
                format!("{path} {takes}{flaw}")
            }
        });
    }
    Ok(lines)
}

/// A ring that an earlier process has left.
struct Left {
    path: PathBuf,
    /// What is taken from it; or why nothing.
    found: std::result::Result<Plan, String>,
}

fn left(files: &dyn Files, paths: &Paths, chain: &Chain) -> Result<Vec<Left>> {
    let Ok(places) = files.ring_places(&paths.root) else {
        return Ok(Vec::new());
    };
    let mut all = Vec::new();
    for path in places.left() {
        let name = chain.name.unwrap_or_default();
        let found = match Survivor::read(&path, &places, name) {
            Ok(_) if chain.is_backup => Err("beside it is a backup".into()),
            Ok(survivor) => plan(&path, survivor, chain)?,
            // A process that died before its first segment was there has written nothing.
            Err(_) if chain.name.is_none() => Err("the log has no segment".into()),
            Err(reason) => match Survivor::other_format(&path, &places, name) {
                Some(format) => return Err(version::other_format(&path, &format)),
                None => Err(reason),
            },
        };
        all.push(Left { path, found });
    }
    Ok(all)
}

/// What is taken from a ring.
struct Plan {
    survivor: Survivor,
    /// Where the log ends then.
    end: u64,
    /// Gaps below, ascending.
    voids: Vec<Range<u64>>,
    /// What is said of the ring, if the end is not where the ring ends.
    flaw: Option<String>,
}

impl Plan {
    fn line(&self, path: &Path, end: Lsn) -> String {
        let bytes = self.end - end.get();
        let mut line = format!(
            "the last process did not end by itself: {bytes} bytes of changes that it had not written are \
             taken from {}",
            path.display()
        );
        if !self.voids.is_empty() {
            line += &format!(", without {} that were never completed", self.voids.len());
        }
        line
    }
}

/// Finds out what of a ring follows the end of the segments; or why nothing can.
fn plan(
    path: &Path,
    survivor: Survivor,
    chain: &Chain,
) -> Result<std::result::Result<Plan, String>> {
    let Some((candidate, _)) = chain.segments.last() else {
        return Ok(Err("the log has no segment".into()));
    };
    // From the segment's beginning, not from its end: what an interrupted takeover has written must not
    // change what the claims mean.
    let first = candidate.header.first.get();
    let mut search = Search {
        overlay: Overlay {
            file: &*candidate.file,
            survivor: &survivor,
            begin: first.wrapping_sub(candidate.header_bytes),
        },
        path,
        candidate,
        used: vec![false; survivor.claims().len()],
        voids: Vec::new(),
        best: (first, Vec::new()),
        attempts: 0,
    };
    // Whatever the ring had is in the segments if its tail is in front of the newest.
    let reaches_tail = first >= survivor.tail() || search.follow(first)?;
    let (end, voids) = search.best;
    if !reaches_tail && end < survivor.passed() {
        return Ok(Err(format!(
            "the log ends at {}, and had been written up to {}",
            Lsn(end),
            Lsn(survivor.passed())
        )));
    }
    let flaw = (!reaches_tail).then(|| {
        let (at, bytes) = (Lsn(end), survivor.tail() - end);
        // A log that has failed throws away what comes, and the ring goes on without what was passed on.
        if survivor.tail() - survivor.passed() > survivor.capacity() {
            return format!(
                "is of a log that had failed: {bytes} bytes behind {at} were thrown away"
            );
        }
        format!("is damaged: there is no record at {at}; {bytes} bytes are left out")
    });
    Ok(Ok(Plan {
        survivor,
        end,
        voids,
        flaw,
    }))
}

/// The way from the end of the segments to the ring's tail, through records and gaps.
struct Search<'s> {
    overlay: Overlay<'s>,
    /// The ring's file.
    path: &'s Path,
    candidate: &'s Candidate,
    /// Which claims are gaps already.
    used: Vec<bool>,
    voids: Vec<Range<u64>>,
    /// Where records end at the furthest, and the gaps in front.
    best: (u64, Vec<Range<u64>>),
    attempts: u32,
}

impl Search<'_> {
    /// Whether there is a way on from a position. A gap whose writer had not noted its place is tried
    /// wherever it can be: what follows tells whether it was there.
    fn follow(&mut self, from: u64) -> Result<bool> {
        let tail = self.overlay.survivor.tail();
        let at = self.whole_until(from)?;
        // A gap is left behind only where a record follows.
        if at > from && at > self.best.0 {
            self.best = (at, self.voids.clone());
        }
        if at == tail {
            return Ok(true);
        }
        self.attempts += 1;
        if self.attempts > TAKEOVER_ATTEMPTS {
            return Ok(false);
        }
        let claims = self.overlay.survivor.claims();
        let is_here = |claim: &Claim| matches!(*claim, Claim::Made { start, .. } if start == at);
        let is_noted = claims.iter().any(is_here);
        for (number, claim) in claims.iter().enumerate() {
            let end = match *claim {
                Claim::Made { start, end } if start == at => end,
                Claim::Begun { from, bytes } if from <= at && !is_noted => at.saturating_add(bytes),
                _ => continue,
            };
            let is_sound = end > at && end <= tail && end.is_multiple_of(8);
            if self.used[number] || !is_sound {
                continue;
            }
            self.used[number] = true;
            self.voids.push(at..end);
            if self.follow(end)? {
                return Ok(true);
            }
            self.voids.pop();
            self.used[number] = false;
        }
        Ok(false)
    }

    /// Where whole records end that begin at a position, and whole batches.
    fn whole_until(&self, from: u64) -> Result<u64> {
        let Candidate {
            path,
            header,
            header_bytes,
            ..
        } = self.candidate;
        let tail = Lsn(self.overlay.survivor.tail());
        let mut walk = Walk::new(&self.overlay, path, header.first, *header_bytes, tail);
        walk.go_to(Lsn(from));
        let mut end = from;
        loop {
            match walk.next() {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(end),
                Err(Stop::Flaw(..)) => return Ok(end),
                // Its checksum is right, so it was written here.
                Err(Stop::Unknown(lsn, what)) => {
                    let (path, offset) = match &self.overlay.survivor {
                        its if lsn.get() >= its.passed() => (self.path, its.offset_of(lsn.get())),
                        _ => (&**path, walk.offset(lsn)),
                    };
                    return Err(version::refused_at(path, offset, what, header.writer));
                }
                Err(stop @ Stop::Io(_)) => return Err(walk.error(stop)),
            }
            if walk.is_between() {
                end = walk.position().get();
            }
        }
    }
}

/// The newest segment as it would be if the log thread had written everything: what was passed on is read
/// from the file, what was not from the ring.
#[derive(Debug)]
struct Overlay<'s> {
    file: &'s dyn File,
    survivor: &'s Survivor,
    /// The position of the file's first byte, if it had one.
    begin: u64,
}

impl File for Overlay<'_> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> std::io::Result<usize> {
        let at = self.begin.wrapping_add(offset);
        let (passed, tail) = (self.survivor.passed(), self.survivor.tail());
        if at < passed {
            let most = buffer.len().min((passed - at) as usize);
            return self.file.read_at(&mut buffer[..most], offset);
        }
        // Behind that nothing was filled.
        let end = tail.min(passed + self.survivor.capacity());
        let most = buffer.len().min(end.saturating_sub(at) as usize);
        self.survivor
            .copy(at..at + most as u64, &mut buffer[..most]);
        Ok(most)
    }

    fn size(&self) -> std::io::Result<u64> {
        Ok(self.survivor.tail().wrapping_sub(self.begin))
    }

    fn write_at(&self, _bytes: &[u8], _offset: u64) -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    fn set_size(&self, _bytes: u64) -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    fn allocate(&self, _bytes: u64) -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    fn sync_data(&self) -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    fn will_need(&self, _offset: u64, _bytes: u64) {}
}

/// Writes what a plan takes to the newest segment, durably.
fn write(chain: &Chain, plan: &Plan) -> Result<()> {
    let (candidate, _) = chain.segments.last().expect("a plan takes nothing without");
    let Candidate { path, file, .. } = candidate;
    write_to(&**file, candidate, plan)
        .and_then(|()| file.sync_data())
        .map_err(|error| Error::io("cannot write what the last process left to", path, error))
}

fn write_to(file: &dyn File, candidate: &Candidate, plan: &Plan) -> std::io::Result<()> {
    let first = candidate.header.first.get();
    let begin = first.wrapping_sub(candidate.header_bytes);
    let offset = |at: u64| at.wrapping_sub(begin);
    let mut at = first.max(plan.survivor.passed());
    let mut piece = Vec::new();
    let behind = plan.end..plan.end;
    for void in plan.voids.iter().chain([&behind]) {
        while at < void.start {
            let until = void.start.min(at + PIECE.min(plan.survivor.capacity()));
            piece.resize((until - at) as usize, 0);
            plan.survivor.copy(at..until, &mut piece);
            file.write_at(&piece, offset(at))?;
            at = until;
        }
        if !void.is_empty() {
            write_void(file, offset(void.start), void)?;
        }
        at = at.max(void.end);
    }
    Ok(())
}

/// Writes a record that means nothing, at an offset of a file.
fn write_void(file: &dyn File, offset: u64, at: &Range<u64>) -> std::io::Result<()> {
    let zeroes = vec![0; PIECE as usize];
    let header = record::void_header(Lsn(at.start), at.end - at.start);
    file.write_at(&header, offset)?;
    let (mut done, bytes) = (header.len() as u64, at.end - at.start);
    while done < bytes {
        let count = (bytes - done).min(PIECE);
        file.write_at(&zeroes[..count as usize], offset + done)?;
        done += count;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
