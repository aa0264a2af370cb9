//! The way in: reads ahead, counts and checksums what passes.
//!
//! Invariants:
//! 1. `buffer[at..end]` was read and not yet given out; `buffer[digested..at]` was given out and is not in
//!    the digest yet.
//! 2. Memory grows with what has arrived, not with what a length claims.

use std::io::{ErrorKind, Read};

use crc::{Digest, Table};

use crate::error::Problem;
use crate::format::CHECKSUM;

/// Bytes read ahead.
const BUFFER_BYTES: usize = 64 * 1024;
/// The shortest buffer: it holds every number of the format.
const LEAST_BUFFER_BYTES: usize = 16;

/// The most bytes read to where they belong at once: few enough to be in the cache when they are checksummed.
const DIRECT_BYTES: usize = 256 * 1024;

/// See the module.
pub(crate) struct Source<R> {
    input: R,
    buffer: Box<[u8]>,
    at: usize,
    end: usize,
    digested: usize,
    /// Bytes of the file before the buffer.
    before: u64,
    /// `None` if nobody wants a checksum.
    digest: Option<Digest<'static, u64, Table<16>>>,
}

impl<R: Read> Source<R> {
    pub(crate) fn new(input: R, checksum: bool) -> Source<R> {
        Source::with_buffer(input, checksum, BUFFER_BYTES)
    }

    /// A source of an input of `len` bytes, whose buffer is no longer than that makes sense.
    pub(crate) fn short(input: R, len: usize) -> Source<R> {
        Source::with_buffer(input, false, len.clamp(LEAST_BUFFER_BYTES, BUFFER_BYTES))
    }

    fn with_buffer(input: R, checksum: bool, bytes: usize) -> Source<R> {
        Source {
            input,
            buffer: vec![0; bytes].into_boxed_slice(),
            at: 0,
            end: 0,
            digested: 0,
            before: 0,
            digest: checksum.then(|| CHECKSUM.digest()),
        }
    }

    /// Bytes of the file that were given out.
    pub(crate) fn offset(&self) -> u64 {
        self.before + self.at as u64
    }

    /// The checksum of all that was given out, if there is one.
    pub(crate) fn checksum(&mut self) -> Option<u64> {
        self.digest();
        Some(self.digest.clone()?.finalize())
    }

    fn digest(&mut self) {
        if let Some(digest) = &mut self.digest {
            digest.update(&self.buffer[self.digested..self.at]);
        }
        self.digested = self.at;
    }

    /// The next `N` bytes.
    #[inline]
    pub(crate) fn array<const N: usize>(
        &mut self,
        expected: &'static str,
    ) -> Result<[u8; N], Problem> {
        while self.end - self.at < N {
            self.read_more(expected)?;
        }
        let bytes = self.buffer[self.at..].first_chunk().copied();
        self.at += N;
        Ok(bytes.expect("the buffer holds so many"))
    }

    /// The next byte.
    #[inline]
    pub(crate) fn byte(&mut self, expected: &'static str) -> Result<u8, Problem> {
        self.array::<1>(expected).map(|[byte]| byte)
    }

    /// Whether nothing follows.
    pub(crate) fn is_at_end(&mut self) -> Result<bool, Problem> {
        if self.at < self.end {
            return Ok(false);
        }
        match self.read_more("") {
            Ok(()) => Ok(false),
            Err(Problem::Truncated { .. }) => Ok(true),
            Err(problem) => Err(problem),
        }
    }

    /// Reads what fits behind what the buffer holds.
    #[cold]
    fn read_more(&mut self, expected: &'static str) -> Result<(), Problem> {
        self.digest();
        self.buffer.copy_within(self.at..self.end, 0);
        self.before += self.at as u64;
        self.end -= self.at;
        (self.at, self.digested) = (0, 0);
        let count = read(&mut self.input, &mut self.buffer[self.end..])?;
        if count == 0 {
            return Err(Problem::Truncated { expected });
        }
        self.end += count;
        Ok(())
    }

    /// Appends the next `len` bytes to `output`, which gets no more room than they take.
    pub(crate) fn append(
        &mut self,
        len: u64,
        output: &mut Vec<u8>,
        expected: &'static str,
    ) -> Result<(), Problem> {
        let mut left = usize::try_from(len).map_err(|_| Problem::Truncated { expected })?;
        let buffered = left.min(self.end - self.at);
        output.extend_from_slice(&self.buffer[self.at..self.at + buffered]);
        self.at += buffered;
        left -= buffered;
        while left > 0 {
            if left < BUFFER_BYTES {
                self.read_more(expected)?;
                let piece = left.min(self.end);
                output.reserve_exact(left);
                output.extend_from_slice(&self.buffer[..piece]);
                self.at = piece;
                left -= piece;
                continue;
            }
            left -= self.append_directly(left, output, expected)?;
        }
        Ok(())
    }

    /// Appends some of the next `left` bytes, which are many, by the buffer, which is empty. Returns how
    /// many.
    fn append_directly(
        &mut self,
        left: usize,
        output: &mut Vec<u8>,
        expected: &'static str,
    ) -> Result<usize, Problem> {
        self.digest();
        let from = output.len();
        if output.capacity() - from < BUFFER_BYTES {
            // For as much again as there is: what a length claims is only believed as it arrives.
            output.reserve_exact(left.min(from.max(BUFFER_BYTES)));
        }
        let piece = left.min(output.capacity() - from).min(DIRECT_BYTES);
        let mut input = self.input.by_ref().take(piece as u64);
        let count = input.read_to_end(output).map_err(Problem::Io)?;
        if let Some(digest) = &mut self.digest {
            digest.update(&output[from..]);
        }
        self.before += (self.at + count) as u64;
        (self.at, self.end, self.digested) = (0, 0, 0);
        if count < piece {
            return Err(Problem::Truncated { expected });
        }
        Ok(count)
    }
}

/// Reads once, whatever interrupts it. 0 is the end.
fn read(input: &mut impl Read, buffer: &mut [u8]) -> Result<usize, Problem> {
    loop {
        match input.read(buffer) {
            Ok(count) => return Ok(count),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(Problem::Io(error)),
        }
    }
}
