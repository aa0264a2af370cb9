//! A value by itself, as DUMP gives it and RESTORE takes it.
//!
//! ```text
//! type value version2 checksum8       the numbers at the end have the lowest byte first
//! ```
//!
//! The type and the value are as in a file. The checksum is that of all bytes before it. The payload of
//! libraries has for each of them their opcode and the text in place of type and value.

use resp::number::INTEGER_TEXT_LEN;

use crate::decoder::Decoder;
use crate::format::{CHECKSUM, NEWEST_VERSION, STRING, VALKEY_VERSION, opcode};
use crate::lzf;
use crate::reader::Reader;
use crate::sink::{BUFFER_BYTES, Sink};
use crate::source::Source;
use crate::typed::TypedReader;
use crate::writer::{Attributes, Writer};

/// Bytes of version and checksum.
const FOOTER_BYTES: usize = 10;
/// Bytes of the type and of the length of a string.
const STRING_HEADER_BYTES: usize = 10;
/// Bytes of the lengths of a compressed string, with its encoding.
const TWO_LENGTHS_BYTES: usize = 19;

/// Whether payloads of a version are read.
fn is_read(version: u32) -> bool {
    version <= NEWEST_VERSION || version == VALKEY_VERSION
}

/// A payload of a known version and with the right checksum. The value is not checked yet.
#[derive(Clone, Copy, Debug)]
pub struct Payload<'p> {
    /// Type and value.
    value: &'p [u8],
    version: u32,
}

impl<'p> Payload<'p> {
    /// Checks version and checksum; `None` if one of them is wrong.
    pub fn check(bytes: &'p [u8]) -> Option<Payload<'p>> {
        let (rest, checksum) = bytes.split_last_chunk()?;
        let (value, version) = rest.split_last_chunk()?;
        let version = u32::from(u16::from_le_bytes(*version));
        let is_right = is_read(version) && CHECKSUM.checksum(rest) == u64::from_le_bytes(*checksum);
        is_right.then_some(Payload { value, version })
    }

    /// Type and value of a payload, without version and checksum behind them.
    pub fn of_value(value: &'p [u8], version: u32) -> Payload<'p> {
        Payload { value, version }
    }

    /// The length that the value says it has, if it says that it is a string; at most what its bytes
    /// can stand for.
    pub fn claimed_string_len(&self) -> Option<u64> {
        let (&STRING, string) = self.value.split_first()? else {
            return None;
        };
        let source = Source::short(string, STRING_HEADER_BYTES);
        let claimed = Decoder::new(source).lengths().ok()?.claimed;
        Some(claimed.min(lzf::expanded_max(string.len()).max(INTEGER_TEXT_LEN) as u64))
    }

    /// The bytes that the texts of libraries say they have together, as far as that is possible.
    #[must_use]
    pub fn libraries_len(&self) -> u64 {
        let (mut rest, mut len) = (self.value, 0_u64);
        while let Some((&opcode::FUNCTION, text)) = rest.split_first() {
            let mut decoder = Decoder::new(Source::short(text, TWO_LENGTHS_BYTES));
            let Ok(lengths) = decoder.lengths() else {
                break;
            };
            let text = usize::try_from(decoder.source.offset()).map_or(text, |at| &text[at..]);
            let stored =
                usize::try_from(lengths.stored).map_or(text.len(), |len| len.min(text.len()));
            let most = lzf::expanded_max(stored).max(INTEGER_TEXT_LEN) as u64;
            len = len.saturating_add(lengths.claimed.min(most));
            rest = &text[stored..];
        }
        len
    }

    /// The texts of libraries, of `most` bytes together.
    ///
    /// # Errors
    /// The payload holds something else, is damaged, or there are more bytes.
    pub fn libraries(&self, most: usize) -> Result<Vec<Vec<u8>>, LibrariesProblem> {
        let mut decoder = Decoder::new(Source::short(self.value, self.value.len().max(1)));
        let (mut texts, mut left) = (Vec::new(), most);
        let damaged = |_| LibrariesProblem::Damaged;
        while !decoder.source.is_at_end().map_err(damaged)? {
            match decoder.source.byte("a library").map_err(damaged)? {
                opcode::FUNCTION => {}
                opcode::FUNCTION_PRE_RELEASE => return Err(LibrariesProblem::Old),
                _ => return Err(LibrariesProblem::Other),
            }
            let mut text = Vec::new();
            decoder.longest = left as u64;
            let read = decoder.string(&mut text, "the text of a library");
            read.map_err(|_| match decoder.is_too_long {
                true => LibrariesProblem::TooLong,
                false => LibrariesProblem::Damaged,
            })?;
            left = left.saturating_sub(text.len());
            texts.push(text);
        }
        Ok(texts)
    }

    /// A reader of the value: it gives a string or a collection, with an empty key, and then the end. All of
    /// the payload is checked only when the reader has come to the end.
    pub fn read(&self) -> TypedReader<&'p [u8]> {
        TypedReader::of(Reader::of_value(self.value, self.value.len(), self.version))
    }
}

impl Writer<Vec<u8>> {
    /// Begins the payload of one value of about `bytes` bytes; its key and what that has beside it are left
    /// out. Long strings are compressed if `compresses` says so.
    pub fn payload(bytes: usize, compresses: bool) -> Writer<Vec<u8>> {
        let most = STRING_HEADER_BYTES + bytes + FOOTER_BYTES;
        // A long value goes by the buffer, to room for all of it.
        let out = Vec::with_capacity(if most > BUFFER_BYTES { most } else { 0 });
        Writer::of_payload(Sink::with_buffer(out, true, most), compresses)
    }

    /// Ends the payload.
    pub fn end_payload(mut self) -> Vec<u8> {
        let mut end = || {
            let version = self.version as u16;
            self.sink.put(&version.to_le_bytes())?;
            let checksum = self.sink.checksum()?;
            self.sink.put(&checksum.to_le_bytes())
        };
        end()
            .and_then(|()| self.sink.finish())
            .expect("a vector takes everything")
    }
}

/// A fault of a payload of libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LibrariesProblem {
    /// It ends too early, or makes no sense.
    Damaged,
    /// It holds something else.
    Other,
    /// It holds functions of a release candidate of Redis 7.
    Old,
    /// There are more bytes than may be.
    TooLong,
}

/// The payload of libraries with these texts.
pub fn dump_libraries<'t>(texts: impl Iterator<Item = &'t [u8]>, compresses: bool) -> Vec<u8> {
    let mut writer = Writer::payload(0, compresses);
    for text in texts {
        writer.library(text).expect("a vector takes everything");
    }
    writer.end_payload()
}

/// The payload of a string.
pub fn dump_string(value: &[u8], compresses: bool) -> Vec<u8> {
    let mut writer = Writer::payload(value.len(), compresses);
    writer
        .key(b"", value, Attributes::default())
        .expect("a vector takes everything");
    writer.end_payload()
}

#[cfg(test)]
mod tests;
