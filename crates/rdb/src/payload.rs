//! A value by itself, as DUMP gives it and RESTORE takes it.
//!
//! ```text
//! type value version2 checksum8       the numbers at the end have the lowest byte first
//! ```
//!
//! The type and the value are as in a file. The checksum is that of all bytes before it.

use std::io;

use crate::decoder::Decoder;
use crate::format::{CHECKSUM, NEWEST_VERSION, STRING, WRITTEN_VERSION};
use crate::reader::Reader;
use crate::sink::{BUFFER_BYTES, Sink};
use crate::source::Source;
use crate::typed::TypedReader;
use crate::writer::Writer;

/// Bytes of version and checksum.
const FOOTER_BYTES: usize = 10;
/// Bytes of the type and of the length of a string.
const STRING_HEADER_BYTES: usize = 10;

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
        let is_right =
            version <= NEWEST_VERSION && CHECKSUM.checksum(rest) == u64::from_le_bytes(*checksum);
        is_right.then_some(Payload { value, version })
    }

    /// The length that the value says it has, if it says that it is a string. Not to be believed.
    pub fn claimed_string_len(&self) -> Option<u64> {
        let (&STRING, string) = self.value.split_first()? else {
            return None;
        };
        let source = Source::short(string, STRING_HEADER_BYTES);
        Decoder::new(source).claimed_len().ok()
    }

    /// A reader of the value: it gives a string or a collection, with an empty key, and then the end. All of
    /// the payload is checked only when the reader has come to the end.
    pub fn read(&self) -> TypedReader<&'p [u8]> {
        TypedReader::of(Reader::of_value(self.value, self.value.len(), self.version))
    }
}

/// The payload of a string, which is compressed if that makes it shorter and `compresses` says so.
pub fn dump_string(value: &[u8], compresses: bool) -> Vec<u8> {
    let most = STRING_HEADER_BYTES + value.len() + FOOTER_BYTES;
    let dump = || {
        // A long value goes by the buffer, to room for all of it.
        let out = Vec::with_capacity(if most > BUFFER_BYTES { most } else { 0 });
        let sink = Sink::with_buffer(out, true, most);
        let mut writer = Writer::of_sink(sink, compresses);
        writer.sink.put(&[STRING])?;
        writer.string(value)?;
        end(writer)
    };
    dump().expect("a vector takes everything")
}

/// Writes what stands behind a value.
fn end(mut writer: Writer<Vec<u8>>) -> io::Result<Vec<u8>> {
    let version = WRITTEN_VERSION as u16;
    writer.sink.put(&version.to_le_bytes())?;
    let checksum = writer.sink.checksum()?;
    writer.sink.put(&checksum.to_le_bytes())?;
    writer.sink.finish()
}

#[cfg(test)]
mod tests;
