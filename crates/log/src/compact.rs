//! Compaction: writing again what still counts in a segment, then dropping the segment.
//!
//! Invariants, which make a replay give the state of memory at any moment, whatever has been dropped
//! (docs/format.md has the proof):
//!
//! 1. A record is judged under the lock of its key's shard, and what is written again is the state of that
//!    moment. So the order of the log stays the order of execution for every key.
//! 2. A segment goes only when everything below the end of the log, as it was after its last record had been
//!    judged, is durable: what made its records superfluous cannot be lost any more.
//! 3. Before it goes, a `Retire` record that says so is durable. So a file that is missing without one is
//!    damage, and a file that is there in spite of one is no part of the log.
//! 4. The last word about a key that is *not* there (a tombstone, or an expiry that has passed) is only
//!    dropped from the oldest segment: everywhere else an older record could come back to life.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::address::Address;
use crate::appender::Appender;
use crate::core::Core;
use crate::engine::Engine;
use crate::error::Refusal;
use crate::hint::Hints;
use crate::limits::{
    COMPACTION_SLICE, SMALL_SEGMENTS, SPARSE_SHARE, STRETCH_GAP, THOROUGH_SHARE, TOMBSTONE_PERCENT,
};
use crate::lock::lock;
use crate::pace::{Balance, Pace, needed, sealed};
use crate::piece::Replayed;
use crate::portion::Portion;
use crate::record::{Change, Record};
use crate::segments::{Map, Segment};

/// What has to happen with a record before its segment goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing: later records say more, or there is nothing to say.
    Drop,
    /// The entry's whole state is appended again ([`Appender::set`]), and the entry keeps the new address; or
    /// leaves of an instance.
    Rewrite,
    /// The entry's expiry is appended again ([`Appender::expire`]).
    Expire,
    /// A tombstone is appended ([`Appender::delete`]).
    Tombstone,
}

/// What there is of a key in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Current {
    /// Its entry's address.
    pub address: Address,
    /// Its expiry.
    pub expiry: Option<i64>,
}

/// The other side of compaction: knows what is in memory.
pub trait Relocate: Send + Sync {
    /// The hash of the key that a record is about, or to which its instance belongs: records are handed over
    /// in the order of these hashes, some thousand at a time. Those of one hash stay in their order, whatever
    /// it is.
    fn hash(&self, record: &Record<'_>) -> u64;

    /// For each record, locks the shard of its key, asks [`judge`] what has to happen, and does it with
    /// `appender`. In place of a record of an instance, leaves are written that rest on it, or that it amends
    /// while their bases are older ([`Appender::leaf`]). The address that an entry or a leaf had before is
    /// reported as dead, as always; a large value whose entry is not patched goes on in its file
    /// ([`Appender::keep_blob`]). Returns how many records it was done for: the first of them, and more as
    /// long as the appender has room for them ([`Appender::may_relocate`]). It ends where what an entry has
    /// become has no room on a full disk ([`Appender::may_append`]), be it the first.
    fn relocate(&self, appender: &mut Appender, records: &[Replayed<'_>], is_oldest: bool)
    -> usize;

    /// Tells what would have to happen with each record now ([`judge`]). One that may be dropped may be
    /// dropped ever after. Values, leaves and edits are on the disk: [`Stored`](crate::Value::Stored).
    fn judge(
        &self,
        records: &[Replayed<'_>],
        is_oldest: bool,
        tell: &mut dyn FnMut(&Record<'_>, Verdict),
    );

    /// Called between two segments, and several times a second as long as none has to be emptied: time for
    /// other things that are to be done now and then.
    fn pause(&self) {}
}

/// What has to happen with `record`, whose key's entry is `current`, before its segment goes. `is_oldest`
/// says that there is no older segment. A record of an instance is dropped here: it has no entry, and whoever
/// knows the instances judges it.
pub fn judge(record: &Record<'_>, current: Option<Current>, is_oldest: bool) -> Verdict {
    if record.is_of_instance() {
        return Verdict::Drop;
    }
    let lsn = record.lsn;
    let Some(current) = current else {
        // Whatever older records say, this one said that the key goes, now or when its time comes.
        let removes = match record.change {
            Change::Delete => true,
            Change::Set { expiry, .. } | Change::Expire(expiry) => expiry.is_some(),
            Change::Patch { .. } | Change::Edit { .. } | Change::Leaf { .. } => false,
        };
        return if removes && !is_oldest {
            Verdict::Tombstone
        } else {
            Verdict::Drop
        };
    };
    let base = current.address.lsn();
    match record.change {
        Change::Set { .. } if base == lsn => Verdict::Rewrite,
        // Of the base that is there: a patch cannot be told from its predecessors, so the whole is written.
        Change::Patch { .. } | Change::Edit { .. }
            if base < lsn && current.address.is_patched() =>
        {
            Verdict::Rewrite
        }
        // The last expiry is the one that the entry has; earlier ones with the same value do no harm.
        Change::Expire(expiry) if base < lsn && current.expiry == expiry => Verdict::Expire,
        // A key that is there has a base behind any of its tombstones, and behind all that is not about it.
        Change::Set { .. }
        | Change::Patch { .. }
        | Change::Edit { .. }
        | Change::Leaf { .. }
        | Change::Expire(_)
        | Change::Delete => Verdict::Drop,
    }
}

/// Empties segments.
pub struct Compactor {
    engine: Arc<Engine>,
    appender: Appender,
    pace: Pace,
}

impl Compactor {
    pub(crate) fn new(engine: Arc<Engine>) -> Option<Compactor> {
        let appender = Appender::new(engine.clone(), None)?;
        Some(Compactor {
            engine,
            appender,
            pace: Pace::default(),
        })
    }

    /// Empties one segment, if there is one that should be. Returns whether there was.
    ///
    /// # Errors
    /// Nothing can be appended, or made durable. The segment stays; nothing is lost.
    pub fn step(&mut self, relocate: &dyn Relocate) -> Result<bool, Refusal> {
        let map = self.engine.segments.map();
        if self.engine.holds.load(Ordering::SeqCst) > 0 {
            return Ok(false);
        }
        let Some(victim) = choose(&map, &self.engine) else {
            return Ok(false);
        };
        let is_oldest = map
            .segments
            .first()
            .is_some_and(|oldest| oldest.first == victim.first);
        match self.move_records(&victim, is_oldest, relocate) {
            Ok(true) => self.drop_segment(&victim).map(|()| true),
            Ok(false) => Ok(true),
            Err(refusal) => {
                self.appender.commit();
                Err(refusal)
            }
        }
    }

    /// The parts of a segment that have to be read: all of it, unless little is needed and its hints say
    /// what. In bytes behind its first record.
    fn stretches(
        &mut self,
        victim: &Segment,
        is_oldest: bool,
        relocate: &dyn Relocate,
    ) -> Result<Vec<Range<u64>>, Refusal> {
        let core = self.engine.clone();
        let all = || Ok(std::iter::once(0..victim.bytes()).collect());
        if (victim.live() + victim.tombstones()).saturating_mul(SPARSE_SHARE) > victim.bytes() {
            return all();
        }
        let hints = Hints::open(&*core.files, &core.paths, &core.name, victim, |_| true);
        let Some(mut hints) = hints else {
            return all();
        };
        let bindings = lock(&core.bindings).now();
        let (mut portion, mut needed) = (Portion::new(), Vec::new());
        loop {
            // What cannot be read any more says nothing of what is needed.
            let Some(block) = hints.next() else {
                return all();
            };
            let bytes = block.len() as u64;
            if bytes == 0 {
                break;
            }
            let is_whole = portion.read_hints(block, |record| {
                let is_alive = bindings.is_alive(record.db, record.lsn);
                is_alive.then(|| relocate.hash(record))
            });
            if !is_whole {
                return all();
            }
            let mut slice = Vec::new();
            let mut next = portion.fill(0, &mut slice);
            while !slice.is_empty() {
                relocate.judge(&slice, is_oldest, &mut |record, verdict| {
                    if verdict != Verdict::Drop {
                        let at = record.lsn.0 - victim.first.0;
                        needed.push(at..at + record.bytes());
                    }
                });
                next = portion.fill(next, &mut slice);
            }
            self.rest(bytes)?;
        }
        Ok(join(needed))
    }

    /// Whether all records were read and judged.
    fn move_records(
        &mut self,
        victim: &Segment,
        is_oldest: bool,
        relocate: &dyn Relocate,
    ) -> Result<bool, Refusal> {
        let bindings = lock(&self.engine.bindings).now();
        let mut portion = Portion::new();
        for Range { start, end } in self.stretches(victim, is_oldest, relocate)? {
            let mut at = start;
            while at < end {
                let read = portion.read(victim, at, end, |record| {
                    let is_alive = bindings.is_alive(record.db, record.lsn);
                    is_alive.then(|| relocate.hash(record))
                });
                let bytes = match read {
                    Ok(bytes) => bytes,
                    Err(error) => {
                        // Not touched again: whoever starts next is told, and nothing of it is thrown away.
                        log::error!("{error}");
                        victim.set_damaged();
                        self.appender.commit();
                        return Ok(false);
                    }
                };
                let moved = self.move_portion(&portion, is_oldest, relocate)?;
                at += bytes;
                self.rest(bytes.saturating_sub(moved))?;
            }
        }
        Ok(true)
    }

    /// What [`Compactor::move_records`] does with a portion. Returns how many bytes of it have been told to
    /// the pace.
    fn move_portion(
        &mut self,
        portion: &Portion,
        is_oldest: bool,
        relocate: &dyn Relocate,
    ) -> Result<u64, Refusal> {
        let (mut told, mut passed, mut slice) = (0, 0, Vec::new());
        let mut next = portion.fill(0, &mut slice);
        while !slice.is_empty() {
            let mut left = &slice[..];
            while let Some(first) = left.first() {
                let most: u64 = left.iter().map(|its| its.record.bytes()).sum();
                let room = self.appender.relocation_bytes(&first.record) + most;
                self.appender.ensure_for_compaction(room)?;
                let before = self.appender.appended();
                let done = relocate.relocate(&mut self.appender, left, is_oldest);
                if done == 0 {
                    // What the first has become is larger than the room, and the disk has no space.
                    return Err(self.engine.refusal().unwrap_or(Refusal::Closed));
                }
                let moved = self.appender.appended() - before;
                let counter = &self.engine.counters.moved_bytes;
                counter.fetch_add(moved, Ordering::Relaxed);
                let read: u64 = left[..done].iter().map(|its| its.record.bytes()).sum();
                told += read;
                passed += read + moved;
                left = &left[done..];
            }
            if passed >= COMPACTION_SLICE {
                self.rest(std::mem::take(&mut passed))?;
            }
            next = portion.fill(next, &mut slice);
        }
        self.rest(passed)?;
        Ok(told)
    }

    /// Hands over what was appended, and waits as long as the pace for so many bytes says.
    fn rest(&mut self, bytes: u64) -> Result<(), Refusal> {
        self.appender.commit();
        self.pace.passed(bytes, &self.engine);
        if self.engine.is_closing.load(Ordering::SeqCst) {
            return Err(Refusal::Closed);
        }
        Ok(())
    }

    /// Takes the segment out of the log, durably, and then its file away.
    fn drop_segment(&mut self, victim: &Arc<Segment>) -> Result<(), Refusal> {
        self.appender.ensure_for_compaction(64)?;
        let lsn = self.appender.retire(victim.first);
        // Before the log thread can begin another segment behind it, whose header must not name this one.
        victim.retire(lsn);
        let end = self.appender.commit();
        self.engine.force(end)?;
        let _one = lock(&self.engine.deletion);
        self.engine.segments.remove(victim.first);
        for path in [&victim.path, &self.engine.paths.hint(victim.first)] {
            match self.engine.files.unlink(path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    // It is no part of the log any more, and goes at the next start.
                    log::warn!("cannot remove {}: {error}", path.display());
                }
                _ => {}
            }
        }
        self.engine
            .counters
            .compacted_segments
            .fetch_add(1, Ordering::Relaxed);
        self.engine
            .counters
            .compacted_bytes
            .fetch_add(victim.bytes(), Ordering::Relaxed);
        Ok(())
    }

    /// What the compaction thread does until the log is closed.
    pub(crate) fn run(mut self, relocate: &dyn Relocate) {
        let core = self.engine.clone();
        while !core.is_closing.load(Ordering::SeqCst) {
            relocate.pause();
            self.pace.begin();
            let wait = match self.step(relocate) {
                Ok(true) => continue,
                Ok(false) => Duration::from_millis(200),
                Err(Refusal::Failed(_)) => Duration::from_secs(3600),
                Err(Refusal::Full(_) | Refusal::Closed) => Duration::from_secs(1),
            };
            // Room that it has asked for and not used.
            self.appender.commit();
            self.pace.rest(&core);
            core.chores.wait_for(wait, || {
                core.is_closing.load(Ordering::SeqCst) || core.is_thorough.load(Ordering::SeqCst)
            });
        }
    }
}

/// Puts those together that are near each other.
fn join(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end + STRETCH_GAP => last.end = range.end,
            _ => joined.push(range),
        }
    }
    joined
}

/// The segment that should be emptied next.
fn choose(map: &Map, core: &Core) -> Option<Arc<Segment>> {
    let oldest = map.segments.first()?.first;
    let needed = |segment: &Segment| needed(segment, oldest);
    let share_needed = |segment: &&Arc<Segment>| needed(segment) * 1000 / segment.bytes().max(1);
    if let Some(empty) = sealed(map).find(|its| needed(its) == 0 && its.edits() == 0) {
        return Some(empty.clone());
    }
    // Of equals it is the oldest: the longer edits wait, the more of them are about a leaf that was written
    // since, or is written once for many.
    let Some(emptiest) = sealed(map).min_by_key(share_needed) else {
        core.is_thorough.store(false, Ordering::SeqCst);
        return None;
    };
    if core.is_full() {
        // Whatever gives space back and has room for what it writes again.
        let room = core.free_or_taken() / 2;
        let has_room = |its: &&Arc<Segment>| needed(its) + its.edits() <= room;
        let garbage = |its: &Segment| its.bytes().saturating_sub(needed(its));
        let is_worth_it = |its: &&Arc<Segment>| garbage(its) * THOROUGH_SHARE > its.bytes();
        let fitting = sealed(map).filter(has_room).filter(is_worth_it);
        return fitting.min_by_key(share_needed).cloned();
    }
    let balance = Balance::of(map, &core.options);
    let tolerated = balance.live * TOMBSTONE_PERCENT / 100 + core.options.segment_bytes / 4;
    if balance.tombstones > tolerated {
        return sealed(map).find(|segment| segment.first == oldest).cloned();
    }
    if core.is_thorough.load(Ordering::SeqCst) {
        let garbage = emptiest.bytes().saturating_sub(needed(emptiest));
        if garbage * THOROUGH_SHARE > emptiest.bytes() {
            return Some(emptiest.clone());
        }
        core.is_thorough.store(false, Ordering::SeqCst);
    }
    if balance.is_due() {
        return Some(emptiest.clone());
    }
    // Every start leaves a segment behind, however short it is.
    let is_small = |segment: &&Arc<Segment>| segment.bytes() < core.options.segment_bytes / 4;
    let mut small = sealed(map).filter(is_small);
    let first = small.next()?;
    (small.count() + 1 >= SMALL_SEGMENTS).then(|| first.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{DbId, Lsn};
    use crate::record::{Tag, Value};

    const LSN: Lsn = Lsn(8000);

    fn verdict(change: Change<'_>, current: Option<(u64, bool, Option<i64>)>) -> [Verdict; 2] {
        let record = Record {
            lsn: LSN,
            db: DbId(0),
            key: b"k",
            change,
        };
        let current = current.map(|(base, is_patched, expiry)| {
            let address = Address::new(Lsn(base), false, false);
            Current {
                address: if is_patched {
                    address.patched()
                } else {
                    address
                },
                expiry,
            }
        });
        [false, true].map(|is_oldest| judge(&record, current, is_oldest))
    }

    fn set(expiry: Option<i64>) -> Change<'static> {
        Change::Set {
            tag: Tag::default(),
            expiry,
            value: Value::Bytes(b"v"),
        }
    }

    const PATCH: Change<'static> = Change::Patch {
        tag: Tag::new(Tag::STRING, 0),
        offset: 0,
        total: 1,
        bytes: Value::Bytes(b"x"),
    };

    const EDIT: Change<'static> = Change::Edit {
        tag: Tag::new(Tag::HASH, 2),
        bytes: Value::Bytes(b"x"),
    };

    #[test]
    fn the_last_word_about_a_missing_key_stays_unless_it_is_the_oldest() {
        use Verdict::{Drop, Tombstone};
        assert_eq!(verdict(Change::Delete, None), [Tombstone, Drop]);
        assert_eq!(verdict(set(Some(5)), None), [Tombstone, Drop]);
        assert_eq!(verdict(Change::Expire(Some(5)), None), [Tombstone, Drop]);
        assert_eq!(verdict(set(None), None), [Drop, Drop]);
        assert_eq!(verdict(Change::Expire(None), None), [Drop, Drop]);
        assert_eq!(verdict(PATCH, None), [Drop, Drop]);
        assert_eq!(verdict(EDIT, None), [Drop, Drop]);
    }

    #[test]
    fn what_an_entry_rests_on_is_written_again() {
        use Verdict::{Drop, Expire, Rewrite};
        let same = LSN.0;
        let (older, newer) = (same - 8, same + 8);
        assert_eq!(verdict(set(None), Some((same, false, None))), [Rewrite; 2]);
        assert_eq!(
            verdict(set(None), Some((same, true, Some(1)))),
            [Rewrite; 2]
        );
        assert_eq!(verdict(set(Some(1)), Some((newer, false, None))), [Drop; 2]);
        for change in [PATCH, EDIT] {
            assert_eq!(verdict(change, Some((older, true, None))), [Rewrite; 2]);
            assert_eq!(verdict(change, Some((older, false, None))), [Drop; 2]);
            assert_eq!(verdict(change, Some((newer, true, None))), [Drop; 2]);
        }
        assert_eq!(
            verdict(Change::Expire(Some(3)), Some((older, false, Some(3)))),
            [Expire; 2]
        );
        assert_eq!(
            verdict(Change::Expire(None), Some((older, true, None))),
            [Expire; 2]
        );
        assert_eq!(
            verdict(Change::Expire(Some(3)), Some((older, false, Some(4)))),
            [Drop; 2]
        );
        assert_eq!(
            verdict(Change::Expire(Some(3)), Some((newer, false, Some(3)))),
            [Drop; 2]
        );
        assert_eq!(
            verdict(Change::Delete, Some((newer, false, None))),
            [Drop; 2]
        );
    }

    /// Whatever the key that has the number of an instance for a name has.
    #[test]
    fn a_record_of_an_instance_is_for_others_to_judge() {
        let tag = Tag {
            kind: Tag::HASH,
            form: 0,
            is_tree: true,
        };
        let bytes = Value::Bytes(b"x");
        for change in [Change::Leaf { tag, bytes }, Change::Edit { tag, bytes }] {
            for current in [
                None,
                Some((LSN.0 - 8, true, None)),
                Some((LSN.0, false, None)),
            ] {
                assert_eq!(verdict(change, current), [Verdict::Drop; 2]);
            }
        }
    }
}
