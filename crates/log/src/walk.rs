//! Reading a segment from one record to the next, with everything checked.

use std::io;
use std::path::Path;

use crate::address::Lsn;
use crate::error::Error;
use crate::record::{Entry, Flaw, Found, HEADER, Unknown, looks_like_a_mark, parse, read};
use crate::segment;
use sys::file::File;

/// Bytes read with one call.
const CHUNK: usize = 1 << 20;

/// A walk through the records of a segment. Records inside of batches come one by one, behind their batch.
pub(crate) struct Walk<'f> {
    file: &'f dyn File,
    path: &'f Path,
    /// The position of the first record, and its place in the file, which wraps if records have moved to the
    /// front.
    first: Lsn,
    header_bytes: u64,
    /// Where the segment ends, or at most can.
    end: Lsn,
    buffer: Vec<u8>,
    /// The position of the buffer's first byte.
    buffer_at: u64,
    at: u64,
    batch: Option<Inside>,
}

/// The batch that the walk is inside of.
#[derive(Clone, Copy)]
struct Inside {
    start: Lsn,
    end: u64,
    left: u32,
}

/// A record on the way.
pub(crate) struct Step<'a> {
    pub(crate) lsn: Lsn,
    pub(crate) found: Found<'a>,
}

/// Why the walk goes no further.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The record here is none. If it is inside of a batch, this is where the batch begins.
    Flaw(Lsn, Flaw),
    /// The record here is of another version, inside of a batch or not.
    Unknown(Lsn, Unknown),
    Io(io::Error),
}

impl<'f> Walk<'f> {
    pub(crate) fn new(
        file: &'f dyn File,
        path: &'f Path,
        first: Lsn,
        header_bytes: u64,
        end: Lsn,
    ) -> Walk<'f> {
        Walk {
            file,
            path,
            first,
            header_bytes,
            end,
            buffer: Vec::new(),
            buffer_at: first.0,
            at: first.0,
            batch: None,
        }
    }

    /// The same walk over records that are `shift` bytes behind their places, up to `end`.
    pub(crate) fn shifted(self, shift: i64, end: Lsn) -> Walk<'f> {
        let header_bytes = self.header_bytes.wrapping_add_signed(shift);
        Walk::new(self.file, self.path, self.first, header_bytes, end)
    }

    /// The position of the next record.
    pub(crate) fn position(&self) -> Lsn {
        Lsn(self.at)
    }

    /// Whether the next record is at the top: not inside of a batch.
    pub(crate) fn is_between(&self) -> bool {
        self.batch
            .is_none_or(|inside| inside.left == 0 && self.at == inside.end)
    }

    /// Where a position is in the file.
    pub(crate) fn offset(&self, lsn: Lsn) -> u64 {
        self.header_bytes.wrapping_add(lsn.0 - self.first.0)
    }

    /// A stop as an error.
    pub(crate) fn error(&self, stop: Stop) -> Error {
        match stop {
            Stop::Flaw(lsn, flaw) => Error::damage(self.path, self.offset(lsn), flaw),
            Stop::Unknown(lsn, what) => {
                segment::refusal(self.file, self.path, self.offset(lsn), what)
            }
            Stop::Io(error) => Error::io("cannot read", self.path, error),
        }
    }

    /// The next record; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Step<'_>>, Stop> {
        if let Some(inside) = self.batch
            && (self.at == inside.end || inside.left == 0)
        {
            if self.at != inside.end || inside.left != 0 {
                return Err(Stop::Flaw(inside.start, Flaw::Batch));
            }
            self.batch = None;
        }
        if self.at >= self.end.0 {
            return Ok(None);
        }
        let mut wanted = HEADER as u64;
        loop {
            self.fill(wanted).map_err(Stop::Io)?;
            let index = (self.at - self.buffer_at) as usize;
            // The borrow checker wants the question asked apart from the answer that is returned.
            match read(&self.buffer[index..], Lsn(self.at)) {
                Err(Flaw::Incomplete(bytes)) if bytes > wanted && bytes <= self.end.0 - self.at => {
                    wanted = bytes
                }
                Err(Flaw::Unknown(what)) => return Err(Stop::Unknown(Lsn(self.at), what)),
                Err(flaw) => {
                    let at = self.batch.map_or(Lsn(self.at), |inside| inside.start);
                    return Err(Stop::Flaw(at, flaw));
                }
                Ok(_) => break,
            }
        }
        self.step().map(Some)
    }

    /// Goes past the record that was found.
    fn step(&mut self) -> Result<Step<'_>, Stop> {
        let lsn = Lsn(self.at);
        let index = (self.at - self.buffer_at) as usize;
        let found = match parse(&self.buffer[index..], lsn) {
            Ok(found) => found,
            Err(Flaw::Unknown(what)) => return Err(Stop::Unknown(lsn, what)),
            Err(flaw) => return Err(Stop::Flaw(lsn, flaw)),
        };
        let end = self.at + found.bytes as u64;
        let start = self.batch.map_or(lsn, |inside| inside.start);
        let outer_end = self.batch.map_or(self.end.0, |inside| inside.end);
        if end > outer_end || found.is_inner != self.batch.is_some() {
            return Err(Stop::Flaw(start, Flaw::Batch));
        }
        let mut bytes = found.bytes;
        match (found.entry, &mut self.batch) {
            (Entry::Batch(_), Some(_)) => return Err(Stop::Flaw(start, Flaw::Batch)),
            (Entry::Batch(left), None) => {
                self.batch = Some(Inside {
                    start: lsn,
                    end,
                    left,
                });
                bytes = HEADER;
            }
            (_, Some(inside)) => inside.left -= 1,
            (_, None) => {}
        }
        self.at += bytes as u64;
        Ok(Step { lsn, found })
    }

    /// Sees to it that the buffer has `wanted` bytes from the next record on, or all there are.
    fn fill(&mut self, wanted: u64) -> io::Result<()> {
        let have = self.buffer_at + self.buffer.len() as u64 - self.at;
        let left = self.end.0 - self.at;
        if have >= wanted.min(left) {
            return Ok(());
        }
        self.buffer.drain(..(self.at - self.buffer_at) as usize);
        self.buffer_at = self.at;
        let size = (wanted.max(CHUNK as u64)).min(left);
        let size = usize::try_from(size).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let mut filled = self.buffer.len();
        self.buffer.resize(size.max(filled), 0);
        let offset = self.offset(Lsn(self.at));
        while filled < self.buffer.len() {
            match self
                .file
                .read_at(&mut self.buffer[filled..], offset + filled as u64)?
            {
                0 => break,
                count => filled += count,
            }
        }
        self.buffer.truncate(filled);
        Ok(())
    }

    /// Goes on at a position where a record at the top begins.
    pub(crate) fn go_to(&mut self, lsn: Lsn) {
        self.at = lsn.0;
        self.batch = None;
        self.buffer.clear();
        self.buffer_at = self.at;
    }

    /// The first position from `from` on where a record that is not inside of a batch can be read, or one
    /// that is of another version.
    pub(crate) fn search(&mut self, from: Lsn) -> io::Result<Option<Lsn>> {
        self.go_to(from);
        while self.at < self.end.0 {
            let mut wanted = HEADER as u64;
            loop {
                self.fill(wanted)?;
                let index = (self.at - self.buffer_at) as usize;
                match read(&self.buffer[index..], Lsn(self.at)) {
                    Ok(found) if !found.is_inner => return Ok(Some(Lsn(self.at))),
                    Err(Flaw::Unknown(_)) => return Ok(Some(Lsn(self.at))),
                    // Lengths found in garbage are not worth reading much for.
                    Err(Flaw::Incomplete(bytes))
                        if bytes > wanted
                            && bytes <= (self.end.0 - self.at).min(64 * CHUNK as u64) =>
                    {
                        wanted = bytes;
                    }
                    _ => break,
                }
            }
            self.at += 8;
        }
        Ok(None)
    }

    /// Looks for marks behind the position `from`, whatever is in between: the greatest position that one
    /// says was durable, and the offset behind the last byte that is not zero.
    pub(crate) fn evidence_behind(&mut self, from: Lsn) -> io::Result<(Option<Lsn>, u64)> {
        const MARK: usize = 24;
        self.go_to(from);
        let (mut best, mut dirty_end) = (None, 0);
        loop {
            self.fill(CHUNK as u64)?;
            let bytes = &self.buffer[(self.at - self.buffer_at) as usize..];
            if !segment::is_zero(bytes)
                && let Some(last) = bytes.iter().rposition(|&byte| byte != 0)
            {
                dirty_end = self.offset(Lsn(self.at)) + last as u64 + 1;
                let mut index = 0;
                while index + MARK <= bytes.len() {
                    if looks_like_a_mark(&bytes[index..])
                        && let Ok(found) = read(&bytes[index..], Lsn(self.at + index as u64))
                        && let Entry::Mark(durable) = found.entry
                    {
                        best = best.max(Some(durable));
                    }
                    index += 8;
                }
            }
            // A mark that passes the end of the chunk is looked at again with the next one.
            let done = bytes.len().saturating_sub(MARK - 8) & !7;
            if done == 0 {
                return Ok((best, dirty_end));
            }
            self.at += done as u64;
        }
    }
}
