//! The log thread: writes what the ring holds to segments, and begins a new segment where a record ends.
//!
//! Every turn it writes everything that is complete, with one call of the system for each megabyte. A segment
//! ends with the record that reaches its limit, so which segment a position belongs to is known when the
//! position is claimed. Where records end the [`Scan`] knows.
//!
//! When there is much to write whole blocks go to the disk as they are in the ring, past the page cache,
//! which costs several times what the rest of a write does. What is less than a block waits for the rest of
//! it, in the ring, as long as that goes on. When there is little to write, or more than the disk takes, the
//! page cache can be the better way ([`Ways`]). No block is written both ways, and no byte twice, so neither
//! way has to wait for the other.
//!
//! A file system notes in its journal that space which a file has taken is used for the first time, and a
//! sync waits for that, too. So when every turn is synced and little is written, zeroes are written ahead:
//! most syncs then wait for data alone.
//!
//! Invariants:
//! 1. Bytes are released (their room in the ring is free) only after they are written, or after the log has
//!    failed.
//! 2. A record is in one segment; so is a batch.
//! 3. A block that is written past the page cache is written once, as a whole, unless it was zeroed before.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use sys::ring::{Consumer, Producer};

use crate::address::Lsn;
use crate::core::Core;
use crate::error::{Error, Result};
use crate::limits::{MARK_INTERVAL, PAVE, PIECE_SHARE};
use crate::lock::lock;
use crate::options::SyncPolicy;
use crate::record::{self, Draft};
use crate::scan::Scan;
use crate::segment::{BLOCK, Header};
use crate::segments::Segment;
use crate::space;
use crate::sync::make_durable;
use crate::version::Version;
use crate::ways::{Way, Ways};

/// The most that is written with one call, so that room in the ring comes back early; no more than the
/// [`PIECE_SHARE`]th of the ring.
pub(crate) const PIECE: u64 = 1 << 20;

/// What a turn did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Turn {
    /// Bytes written.
    pub(crate) written: u64,
    /// The disk had no space: what is left is tried again.
    pub(crate) is_stuck: bool,
}

/// See the module.
pub(crate) struct Writer {
    consumer: Consumer,
    /// For the log's own records.
    producer: Producer,
    segment: Arc<Segment>,
    /// The segment ends with the record that reaches this.
    limit: u64,
    /// Bytes of the file that have space.
    allocated: u64,
    /// The file is zeroes from its last block up to here, written as such.
    paved: u64,
    zeroes: Vec<u8>,
    scan: Scan,
    ways: Ways,
    /// The position up to which a mark says that all is durable.
    marked: u64,
    /// A mark that has its place but found no room yet.
    unfilled: Option<(u64, Lsn)>,
    /// Somebody wants the segment to end with the record that reaches this.
    pub(crate) seal_at: Option<Lsn>,
}

/// Why no more is written now.
enum Stop {
    Full,
    Failed,
}

impl Writer {
    /// Goes on with the first segment of this run, which begins at the ring's start.
    pub(crate) fn new(core: &Core, begun: Begun, consumer: Consumer, producer: Producer) -> Writer {
        let first = Lsn(consumer.head());
        let Begun {
            segment,
            allocated,
            limit,
        } = begun;
        core.segments.push(segment.clone(), limit);
        Writer {
            limit,
            segment,
            allocated,
            paved: 0,
            zeroes: Vec::new(),
            scan: Scan::new(first.0, &core.options),
            ways: Ways::default(),
            marked: first.0,
            unfilled: None,
            consumer,
            producer,
            seal_at: None,
        }
    }

    /// See the module.
    pub(crate) fn turn(&mut self, core: &Core) -> Turn {
        let start = self.consumer.head();
        self.append_mark(core);
        let mut turn = Turn::default();
        loop {
            if core.has_failed() {
                self.discard(core);
                break;
            }
            let complete = self.consumer.complete();
            match self.write_out(core, complete) {
                Ok(()) => {}
                Err(Stop::Full) => turn.is_stuck = true,
                Err(Stop::Failed) => continue,
            }
            // What was released may be the room that a mark waits for.
            if self.unfilled.is_none() || !self.fill_mark() {
                break;
            }
        }
        turn.written = self.consumer.head() - start;
        core.is_stuck.store(turn.is_stuck, Ordering::Relaxed);
        if core.policy() == SyncPolicy::Always && core.whole() > core.durable() {
            self.pave(turn.written);
            // A failure is latched where it happens.
            let _ = make_durable(core);
        }
        turn
    }

    /// Writes zeroes ahead; see the module. `turn` is how much this turn has written.
    fn pave(&mut self, turn: u64) {
        let next = self.segment.offset_of(Lsn(self.consumer.head()));
        let from = self.paved.max(next.next_multiple_of(BLOCK as u64));
        let end = (from + PAVE).min(self.allocated);
        // What is written in large pieces would be written twice, for syncs that are few.
        if turn > PAVE / 64 || next + PAVE / 2 < self.paved || from >= end {
            return;
        }
        self.zeroes.resize(PAVE as usize, 0);
        let zeroes = &self.zeroes[..(end - from) as usize];
        match self.segment.file.write_at(zeroes, from) {
            Ok(()) => self.paved = end,
            // The space is taken, so it is not that. What is wrong with the file the next write or sync will
            // say.
            Err(_) => self.paved = self.allocated,
        }
    }

    /// Nothing is kept any more: makes room, so that nobody waits for ever.
    fn discard(&mut self, core: &Core) {
        self.fill_mark();
        let complete = self.consumer.complete();
        self.make_room(core, complete, Consumer::discard);
    }

    /// Gives back the room of what was written below a position.
    fn release(&mut self, core: &Core, position: u64) {
        self.make_room(core, position, Consumer::release);
    }

    fn make_room(&mut self, core: &Core, position: u64, give_back: fn(&mut Consumer, u64)) {
        core.filled.note(position);
        core.credit.released(position - self.consumer.head());
        give_back(&mut self.consumer, position);
        core.room.ring();
    }

    fn write_out(&mut self, core: &Core, complete: u64) -> std::result::Result<(), Stop> {
        let waiting = complete - self.consumer.head();
        let way = self.ways.choose(waiting, core.ring.capacity() as u64);
        let most = PIECE.min(core.ring.capacity() as u64 / PIECE_SHARE);
        let mut wrote_blocks = false;
        loop {
            let limit = self
                .seal_at
                .map_or(self.limit, |seal_at| self.limit.min(seal_at.0));
            let until = self.scan.advance(&self.consumer, complete, limit);
            let head = self.consumer.head();
            if head < until {
                let end = until.min(head + most);
                let (end, way) = next_piece(head, end, way);
                let is_tail = way == Way::Cached && wrote_blocks && until == complete;
                if is_tail && core.may_leave_tail() {
                    // The rest of its block follows.
                    return Ok(());
                }
                wrote_blocks |= way == Way::Direct;
                self.write(core, head, end, way)?;
                continue;
            }
            let is_full = head >= limit && head == self.scan.position() && self.scan.is_between();
            if !is_full || head == complete && !self.is_to_be_sealed() {
                return Ok(());
            }
            self.change_segment(core, Lsn(head))?;
        }
    }

    fn is_to_be_sealed(&self) -> bool {
        self.seal_at
            .is_some_and(|seal_at| self.consumer.head() >= seal_at.0)
    }

    /// Writes the bytes from `head` to `end` and releases them.
    fn write(
        &mut self,
        core: &Core,
        head: u64,
        end: u64,
        way: Way,
    ) -> std::result::Result<(), Stop> {
        let offset = self.segment.offset_of(Lsn(head));
        let file_end = self.segment.offset_of(Lsn(end));
        let mut result = Ok(());
        if file_end > self.allocated {
            // Only behind a record that is larger than the room a segment has for its last one.
            result = self.segment.file.allocate(file_end);
            if result.is_ok() {
                self.allocated = file_end;
            }
        }
        let start = sys::clock::monotonic_ns();
        let result = result.and_then(|()| {
            core.counters.writes.fetch_add(1, Ordering::Relaxed);
            let (file, bytes) = (&self.segment.file, self.consumer.bytes(head..end));
            match way {
                Way::Cached => file.write_at(bytes, offset),
                Way::Direct => file.write_direct_at(bytes, offset),
            }
        });
        if let Err(error) = result {
            return Err(stop(
                core,
                &Error::io("cannot write to", &self.segment.path, error),
            ));
        }
        let ns = sys::clock::monotonic_ns() - start;
        self.ways.note(way, end - head, ns);
        let us = ns / 1000;
        core.counters.slow_write_us.fetch_max(us, Ordering::Relaxed);
        let bytes = end - self.segment.first.0;
        self.segment.set_bytes(bytes);
        // A small log does not take space for a second segment before the first is well on its way.
        if bytes >= core.options.segment_bytes / 2
            && !core.spare_wanted.swap(true, Ordering::Relaxed)
        {
            core.chores.ring();
        }
        core.set_written(end);
        if end >= self.scan.boundary() {
            core.set_whole(self.scan.boundary());
        }
        self.release(core, end);
        Ok(())
    }

    /// Ends the segment and begins the next one at `first`.
    fn change_segment(&mut self, core: &Core, first: Lsn) -> std::result::Result<(), Stop> {
        if first == self.segment.first {
            // Nothing is in it yet.
            self.seal_at = None;
            return Ok(());
        }
        let Begun {
            segment,
            allocated,
            limit,
        } = begin(core, first, false).map_err(|error| stop(core, &error))?;
        self.segment.set_tally(self.scan.take_tally());
        self.segment.seal();
        self.limit = limit;
        self.allocated = allocated;
        self.paved = 0;
        self.segment = segment.clone();
        core.segments.push(segment, self.limit);
        // The segment may have been full before it came to where it was to be sealed.
        self.seal_at = self.seal_at.filter(|&seal_at| seal_at > first);
        core.chores.ring();
        core.room.ring();
        Ok(())
    }

    /// Before something else is written, says how far the disk was: evidence for the next start.
    fn append_mark(&mut self, core: &Core) {
        if self.unfilled.is_some() {
            self.fill_mark();
            return;
        }
        let durable = core.durable();
        let is_wanted = core.mark_wanted.load(Ordering::Relaxed)
            && core.mark_wanted.swap(false, Ordering::Relaxed);
        let is_due = durable.0 >= self.marked + MARK_INTERVAL && core.ring.tail() > durable.0;
        if is_due || is_wanted && durable.0 > self.marked {
            self.claim_mark(core, durable);
        }
    }

    /// Appends a mark at the end of the log, if the last one says less.
    pub(crate) fn mark(&mut self, core: &Core, durable: Lsn) {
        if self.unfilled.is_none() && durable.0 > self.marked {
            self.claim_mark(core, durable);
        }
    }

    /// Syncs the first segment of this run: from here on the log has it.
    pub(crate) fn sync_segment(&self, core: &Core) -> Result<()> {
        let segment = &self.segment;
        segment
            .file
            .sync_data()
            .map_err(|error| Error::io("cannot sync", &segment.path, error))?;
        core.files
            .sync_dir(&core.paths.log)
            .map_err(|error| Error::io("cannot sync", &core.paths.log, error))
    }

    /// Gives back the space behind the end of the log, which is closed.
    pub(crate) fn trim(&self) {
        // If it fails, the file is only longer than it has to be.
        let _ = self.segment.trim();
    }

    fn claim_mark(&mut self, core: &Core, durable: Lsn) {
        let bytes = Draft::mark(durable).bytes();
        core.credit.owe(bytes);
        let at = self.producer.claim(bytes);
        self.marked = durable.0;
        self.unfilled = Some((at, durable));
        self.fill_mark();
    }

    /// Fills the mark that has its place; whether it did.
    fn fill_mark(&mut self) -> bool {
        let Some((at, durable)) = self.unfilled else {
            return false;
        };
        let draft = Draft::mark(durable);
        let Some(slot) = self.producer.fill(at, draft.bytes() as usize) else {
            return false;
        };
        record::write(slot, Lsn(at), &draft);
        self.producer.commit();
        self.unfilled = None;
        true
    }
}

/// The end of the next piece of `head..end`, and how it goes. A block that was begun through the page cache
/// is finished that way, and so is one of which there is only the beginning.
fn next_piece(head: u64, end: u64, way: Way) -> (u64, Way) {
    let block = BLOCK as u64;
    let whole = end - end % block;
    if way == Way::Cached {
        (end, Way::Cached)
    } else if !head.is_multiple_of(block) {
        (end.min(head.next_multiple_of(block)), Way::Cached)
    } else if whole > head {
        (whole, Way::Direct)
    } else {
        (end, Way::Cached)
    }
}

/// Takes note of an error: a lack of space passes, anything else does not.
fn stop(core: &Core, error: &Error) -> Stop {
    match space::is_lack(error) {
        true => {
            core.set_full(error.to_string());
            Stop::Full
        }
        false => {
            core.fail(error.to_string());
            Stop::Failed
        }
    }
}

/// A segment that has just begun.
pub(crate) struct Begun {
    segment: Arc<Segment>,
    /// Bytes of the file that have space.
    allocated: u64,
    /// See [`Writer::limit`].
    limit: u64,
}

/// Begins the segment at `first`: takes space, writes the header, gives it its name. It is not durable
/// yet.
pub(crate) fn begin(core: &Core, first: Lsn, is_start: bool) -> Result<Begun> {
    let map = core.segments.map();
    let header = Header {
        epoch: core.options.epoch,
        first,
        durable: core.durable(),
        name: core.name,
        writer: Version::THIS,
        bindings: lock(&core.bindings).as_of(first),
        segments: map
            .segments
            .iter()
            .filter(|segment| segment.is_named_at(first))
            .map(|segment| segment.extent())
            .collect(),
    }
    .encode();
    let header_bytes = header.len() as u64;
    let _one = lock(&core.spare_lock);
    let spare = core.paths.temporary("next");
    let path = core.paths.segment(first);
    let file = match core.files.open(&spare) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => core
            .files
            .create(&spare)
            .map_err(|error| Error::io("cannot make", &spare, error))?,
        Err(error) => return Err(Error::io("cannot open", &spare, error)),
    };
    let (allocated, bytes) = space::take(core, &*file, header_bytes, is_start)
        .map_err(|error| Error::io("cannot take space for", &path, error))?;
    core.spare_wanted.store(false, Ordering::Relaxed);
    core.spare_bytes.store(0, Ordering::Relaxed);
    let room_until = first.0 + allocated - header_bytes;
    core.room_until.store(room_until, Ordering::Relaxed);
    file.write_at(&header, 0)
        .map_err(|error| Error::io("cannot write to", &spare, error))?;
    core.files
        .rename(&spare, &path)
        .map_err(|error| Error::io("cannot rename", &spare, error))?;
    core.directory_changed.store(true, Ordering::Release);
    let segment = Arc::new(Segment::new(first, path, file, header_bytes));
    lock(&core.unsynced).push(segment.clone());
    Ok(Begun {
        segment,
        allocated,
        limit: first.0 + bytes,
    })
}
