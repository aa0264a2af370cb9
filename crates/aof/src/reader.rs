//! The commands of a file, one after the other.
//!
//! Invariants:
//! 1. `buffer[at..]` was read and not yet given out; `buffer[from..at]` is the command that was given out
//!    last.
//! 2. The buffer grows with what has arrived, not with what a length claims.

use std::io::{ErrorKind, Read};

use resp::request::Span;

use crate::error::{Error, Problem};

/// Bytes that are read at once, at least.
const READ_BYTES: usize = 64 * 1024;

/// See the module.
pub struct Reader<R> {
    input: R,
    buffer: Vec<u8>,
    from: usize,
    at: usize,
    /// Bytes of the file before the buffer.
    before: u64,
    /// The arguments of the command, from its first byte on.
    spans: Vec<Span>,
    limit: u64,
}

impl<R: Read> Reader<R> {
    /// Reads what is behind the first `offset` bytes of a file. A command takes `limit` bytes at most.
    pub fn new(input: R, offset: u64, limit: u64) -> Reader<R> {
        Reader {
            input,
            buffer: Vec::new(),
            from: 0,
            at: 0,
            before: offset,
            spans: Vec::new(),
            limit,
        }
    }

    /// Reads the next command. Returns where it begins, in bytes of the file; `None` at the end. Notes that
    /// stand in front of it are passed over, and so is one at the end of the file that is not whole.
    ///
    /// # Errors
    /// What is there is no command, or not all of one. Nothing behind it is known.
    pub fn advance(&mut self) -> Result<Option<u64>, Error> {
        self.let_go();
        loop {
            if !self.has(1)? {
                return Ok(None);
            }
            if self.buffer[self.at] != b'#' {
                break;
            }
            if !self.pass_line()? {
                return Ok(None);
            }
        }
        let count = self.number(b'*', "the '*' of a command")?;
        if count == 0 {
            // The last byte of the number.
            return Err(self.corrupt(self.at - 3, "the number of arguments"));
        }
        for _ in 0..count {
            let len = self.number(b'$', "the '$' of an argument")?;
            self.argument(len)?;
        }
        Ok(Some(self.command()))
    }

    /// Bytes of the file in front of what comes next.
    pub fn offset(&self) -> u64 {
        self.before + self.at as u64
    }

    /// The bytes of the command that was read last.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.from..self.at]
    }

    /// The arguments of the command that was read last: spans of [`Reader::bytes`].
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Gives [`Reader::bytes`] away, without a copy.
    pub fn take_bytes(&mut self) -> Vec<u8> {
        let rest = self.buffer.split_off(self.at);
        let mut bytes = std::mem::replace(&mut self.buffer, rest);
        bytes.drain(..self.from);
        self.before += self.at as u64;
        (self.from, self.at) = (0, 0);
        bytes
    }

    /// Where the command begins, in bytes of the file.
    fn command(&self) -> u64 {
        self.before + self.from as u64
    }

    /// Forgets what was given out.
    fn let_go(&mut self) {
        self.from = self.at;
        self.spans.clear();
        if self.at >= READ_BYTES {
            self.buffer.drain(..self.at);
            // What only a large command needs goes.
            self.buffer.shrink_to(4 * READ_BYTES);
            self.before += self.at as u64;
            (self.from, self.at) = (0, 0);
        }
    }

    /// Passes over a line in front of a command. Whether it has an end.
    fn pass_line(&mut self) -> Result<bool, Error> {
        while self.has(1)? {
            let byte = self.buffer[self.at];
            self.at += 1;
            // A long one takes no memory.
            self.let_go();
            if byte == b'\n' {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes a number of a line of its own, behind the byte that says what it is.
    fn number(&mut self, sign: u8, expected: &'static str) -> Result<u64, Error> {
        self.byte(|byte| byte == sign, expected)?;
        let first = self.byte(|byte| byte.is_ascii_digit(), "a digit")?;
        let mut number = u64::from(first - b'0');
        loop {
            let byte = self.byte(|byte| byte.is_ascii_digit() || byte == b'\r', "a digit")?;
            if byte == b'\r' {
                break;
            }
            let digit = u64::from(byte - b'0');
            let grown = number
                .checked_mul(10)
                .and_then(|tens| tens.checked_add(digit));
            // Everything that is counted takes memory.
            number = grown
                .filter(|&number| number <= isize::MAX as u64)
                .ok_or_else(|| {
                    self.error(
                        self.at - 1,
                        Problem::TooLarge {
                            what: "the count or the length",
                        },
                    )
                })?;
        }
        self.byte(|byte| byte == b'\n', "the end of the line")?;
        Ok(number)
    }

    /// Takes an argument of so many bytes, and the end of its line.
    fn argument(&mut self, len: u64) -> Result<(), Error> {
        let taken = (self.at - self.from) as u64;
        if taken.saturating_add(len) > self.limit {
            let limit = self.limit;
            return Err(self.error(self.at, Problem::TooLong { limit }));
        }
        let len = usize::try_from(len)
            .map_err(|_| self.error(self.at, Problem::TooLarge { what: "the length" }))?;
        if !self.has(len)? {
            return Err(self.error(self.buffer.len(), Problem::Torn));
        }
        self.spans.push(Span {
            start: self.at - self.from,
            len,
        });
        self.at += len;
        self.byte(|byte| byte == b'\r', "the end of an argument")?;
        self.byte(|byte| byte == b'\n', "the end of an argument")?;
        Ok(())
    }

    /// Takes a byte that is as it should be.
    fn byte(&mut self, is_right: impl Fn(u8) -> bool, expected: &'static str) -> Result<u8, Error> {
        if !self.has(1)? {
            return Err(self.error(self.at, Problem::Torn));
        }
        let byte = self.buffer[self.at];
        if !is_right(byte) {
            return Err(self.corrupt(self.at, expected));
        }
        self.at += 1;
        Ok(byte)
    }

    /// Reads on until so many bytes are there that were not given out. Whether the file has as many.
    fn has(&mut self, count: usize) -> Result<bool, Error> {
        while self.buffer.len() - self.at < count {
            let have = self.buffer.len();
            let missing = count - (have - self.at);
            // As much again as there is, at most.
            let most = missing.max(READ_BYTES).min(have.max(READ_BYTES));
            self.buffer.resize(have + most, 0);
            let read = loop {
                match self.input.read(&mut self.buffer[have..]) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    read => break read,
                }
            };
            let read = match read {
                Ok(read) => read,
                Err(error) => {
                    self.buffer.truncate(have);
                    return Err(self.error(have, Problem::Io(error)));
                }
            };
            self.buffer.truncate(have + read);
            if read == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A byte is not what should be there.
    fn corrupt(&self, at: usize, expected: &'static str) -> Error {
        let found = self.buffer[at];
        self.error(at, Problem::Corrupt { expected, found })
    }

    /// Something is wrong at a place of the buffer.
    fn error(&self, at: usize, problem: Problem) -> Error {
        Error {
            offset: self.before + at as u64,
            command: self.command(),
            problem,
        }
    }
}
