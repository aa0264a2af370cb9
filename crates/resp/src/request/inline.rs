//! Splits an inline line into words, in place.
//!
//! Here live the quoting rules: what a person types in a terminal. Finding the line is the parser's
//! part.
//!
//! ```text
//!   set  greeting "two \"words\"\n"  'it\'s'        before
//!   set  greeting  two "words"<LF>    it's          after, with bytes left over
//! ```
//!
//! Invariant: a word is never longer than its text, so it is written over its own beginning and
//! never reaches the bytes still to be read.

use super::error::ProtocolError;
use super::span::Span;

/// Pushes the words of `line` to `spans`, their positions counted from `origin` at the line's
/// start.
pub(super) fn split(
    line: &mut [u8],
    origin: usize,
    spans: &mut Vec<Span>,
) -> Result<(), ProtocolError> {
    let mut read = 0;
    loop {
        while line.get(read).is_some_and(|&byte| is_space(byte)) {
            read += 1;
        }
        if read == line.len() {
            return Ok(());
        }
        let start = read;
        let mut word = Word {
            line,
            read,
            write: start,
        };
        word.unquote()?;
        read = word.read;
        spans.push(Span {
            start: origin + start,
            len: word.write - start,
        });
    }
}

/// The white space of C, which separates words.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// A word being unescaped: the bytes from `read` on move to `write`.
struct Word<'a> {
    line: &'a mut [u8],
    read: usize,
    write: usize,
}

impl Word<'_> {
    /// Moves up to the word's end: a space, or a closing quote.
    fn unquote(&mut self) -> Result<(), ProtocolError> {
        while let Some(&byte) = self.line.get(self.read) {
            match byte {
                // A vertical tab or form feed separates words but does not end one, as in Redis.
                b' ' | b'\t' | b'\n' | b'\r' => return Ok(()),
                b'"' | b'\'' => return self.unquote_to(byte),
                _ => self.put(byte, 1),
            }
        }
        Ok(())
    }

    /// Moves the bytes between the quote here and the next one of its kind.
    fn unquote_to(&mut self, quote: u8) -> Result<(), ProtocolError> {
        self.read += 1;
        loop {
            match self.line[self.read..] {
                [] => return Err(ProtocolError::UnbalancedQuotes),
                [byte, ref rest @ ..] if byte == quote => {
                    if rest.first().is_some_and(|&next| !is_space(next)) {
                        return Err(ProtocolError::UnbalancedQuotes);
                    }
                    self.read += 1;
                    return Ok(());
                }
                [b'\\', b'\'', ..] if quote == b'\'' => self.put(b'\'', 2),
                [b'\\', b'x', high, low, ..] if quote == b'"' => {
                    match (hex_digit(high), hex_digit(low)) {
                        (Some(high), Some(low)) => self.put(high << 4 | low, 4),
                        _ => self.put(b'x', 2),
                    }
                }
                [b'\\', escaped, ..] if quote == b'"' => self.put(unescape(escaped), 2),
                [byte, ..] => self.put(byte, 1),
            }
        }
    }

    /// Writes the byte that `consumed` bytes of text stand for.
    fn put(&mut self, byte: u8, consumed: usize) {
        self.line[self.write] = byte;
        self.write += 1;
        self.read += consumed;
    }
}

/// The byte that a backslash and `escaped` stand for between double quotes.
fn unescape(escaped: u8) -> u8 {
    match escaped {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        other => other,
    }
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}
