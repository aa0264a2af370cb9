//! The way out: gathers small writes, counts and checksums what passes.
//!
//! What is large goes by the buffer, from where it is.

use std::io::{self, Write};

use crc::{Digest, Table};

use crate::format::CHECKSUM;

/// Bytes gathered before they are written.
pub(crate) const BUFFER_BYTES: usize = 64 * 1024;

/// See the module.
pub(crate) struct Sink<W> {
    out: W,
    buffer: Vec<u8>,
    /// `None` if nobody wants a checksum.
    digest: Option<Digest<'static, u64, Table<16>>>,
    /// Bytes that left the buffer.
    written: u64,
}

impl<W: Write> Sink<W> {
    pub(crate) fn new(out: W, checksum: bool) -> Sink<W> {
        Sink::with_buffer(out, checksum, BUFFER_BYTES)
    }

    /// [`Sink::new`] for something short: it gathers `bytes` at first.
    pub(crate) fn with_buffer(out: W, checksum: bool, bytes: usize) -> Sink<W> {
        Sink {
            out,
            buffer: Vec::with_capacity(bytes.min(BUFFER_BYTES)),
            digest: checksum.then(|| CHECKSUM.digest()),
            written: 0,
        }
    }

    /// Bytes put so far.
    pub(crate) fn len(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    #[inline]
    pub(crate) fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() > self.buffer.capacity() - self.buffer.len() {
            return self.put_behind_full(bytes);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    #[cold]
    fn put_behind_full(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.empty()?;
        if bytes.len() < BUFFER_BYTES / 2 {
            self.buffer.extend_from_slice(bytes);
            return Ok(());
        }
        if let Some(digest) = &mut self.digest {
            digest.update(bytes);
        }
        self.out.write_all(bytes)?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Writes what was gathered.
    fn empty(&mut self) -> io::Result<()> {
        if let Some(digest) = &mut self.digest {
            digest.update(&self.buffer);
        }
        self.out.write_all(&self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// The checksum of everything so far; 0 if there is none.
    pub(crate) fn checksum(&mut self) -> io::Result<u64> {
        self.empty()?;
        Ok(self.digest.take().map_or(0, |digest| digest.finalize()))
    }

    /// Writes what is left and gives back what it was written to.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.empty()?;
        self.out.flush()?;
        Ok(self.out)
    }
}
