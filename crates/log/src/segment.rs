//! A segment: a file with a stretch of the log, and the header in front of it.
//!
//! ```text
//!  0                                                             64
//!  +---------+---------+-------+-------+-------+-------+----------+ - - - +
//!  | magic 8 | version | header| epoch | first | dur-  | log's    | table | segments |
//!  |         | u32     | u32   | u64   | u64   | able  | name 16  |       |          |
//!  +---------+---------+-------+-------+-------+-------+----------+ - - - +
//!    ... counts (u32, u32) of lines in the table and of segments, checksum (u32), writer's version (u32)
//! ```
//!
//! The header lists all segments that the log consists of when this one begins, with their lengths. So the
//! newest header (and the `Retire` records behind it) says what must be in the directory, and a file that is
//! lost is missed.
//!
//! A header is as long as it takes, so that a record's offset in the file and its position in the log are the
//! same distance behind a block of 4096 bytes: so they are in the log's ring, too, and whole blocks go from
//! there to the disk as they are.
//!
//! What is not here: where the files are and who writes them (`space`, `writer`), and whether they fit
//! together (`recover`).

use std::path::Path;

use sys::file::File;

use crate::address::Lsn;
use crate::bindings::{Bindings, LINE};
use crate::error::Error;
use crate::record::{Flaw, Unknown};
use crate::version::{self, Version};

/// The beginning of every segment.
const MAGIC: [u8; 8] = *b"ferrite\x1a";
/// The format of headers and records.
pub(crate) const VERSION: u32 = 1;
/// What offsets and positions agree in.
pub(crate) const BLOCK: usize = sys::file::DIRECT_BLOCK;
/// The longest header: room for a table of all numbers and half a million segments.
const LONGEST: usize = 16 << 20;

const VERSION_AT: usize = 8;
const LENGTH_AT: usize = 12;
const EPOCH_AT: usize = 16;
const FIRST_AT: usize = 24;
const DURABLE_AT: usize = 32;
const NAME_AT: usize = 40;
const LINES_AT: usize = 56;
const SEGMENTS_AT: usize = 60;
const CHECKSUM_AT: usize = 64;
const WRITER_AT: usize = 68;
const LISTS_AT: usize = 72;
const _: () = assert!(BLOCK == 4096);
const _: () = assert!(WRITER_AT + 4 == LISTS_AT && LINE == 16 && EXTENT == 16);

/// Bytes of one segment in the list.
const EXTENT: usize = 16;

/// The identity of a log: random, the same in all of its segments, and in no other log's.
pub(crate) type Name = [u8; 16];

/// A segment as part of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Extent {
    pub(crate) first: Lsn,
    /// Bytes of records.
    pub(crate) bytes: u64,
}

impl Extent {
    pub(crate) fn end(self) -> Lsn {
        self.first.offset(self.bytes)
    }
}

/// What a header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) epoch: u64,
    /// The position of the first record.
    pub(crate) first: Lsn,
    /// Everything below was durable when this segment began.
    pub(crate) durable: Lsn,
    pub(crate) name: Name,
    /// The server that wrote this segment.
    pub(crate) writer: Version,
    pub(crate) bindings: Bindings,
    /// All segments of the log before this one, ascending.
    pub(crate) segments: Vec<Extent>,
}

/// Why a header is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderFlaw {
    /// All zeroes, or not there at all: it was never written.
    Nothing,
    /// It goes on for so many bytes.
    Incomplete(usize),
    NoSegment,
    /// It has this format, and this server wrote it.
    Format(u32, Version),
    /// The table of databases has lines that this version does not know; this server wrote them.
    Table(Version),
    Damaged,
}

impl std::fmt::Display for HeaderFlaw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            HeaderFlaw::Nothing => f.write_str("the header is missing"),
            HeaderFlaw::Incomplete(_) => f.write_str("the header is not all there"),
            HeaderFlaw::NoSegment => f.write_str("this is not a segment of a log"),
            HeaderFlaw::Format(format, writer) => write!(
                f,
                "it has format {format}, and this version ({}) reads format {VERSION}; {}",
                Version::THIS,
                version::other(*writer)
            ),
            HeaderFlaw::Table(writer) => write!(
                f,
                "its table of databases says what this version ({}) does not know; {}",
                Version::THIS,
                version::other(*writer)
            ),
            HeaderFlaw::Damaged => f.write_str("the header's checksum does not match"),
        }
    }
}

/// The name of the file whose first record is at `first`.
pub(crate) fn file_name(first: Lsn) -> String {
    format!("{:016x}.log", first.0)
}

/// Whether all bytes are zero, many at a time: whole segments are looked at.
pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    let (chunks, rest) = bytes.as_chunks::<64>();
    let any = |bytes: &[u8]| bytes.iter().fold(0, |all, byte| all | byte);
    chunks.iter().all(|chunk| any(chunk) == 0) && any(rest) == 0
}

/// The first position of the segment with this file name; `None` if it is no segment's name.
pub(crate) fn first_of(file_name: &str) -> Option<Lsn> {
    let digits = file_name.strip_suffix(".log")?;
    let is_plain = digits.len() == 16
        && digits
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let first = u64::from_str_radix(digits, 16).ok().filter(|_| is_plain)?;
    (first >= Lsn::FIRST.0 && first.is_multiple_of(8)).then_some(Lsn(first))
}

/// The length of a header of a segment that begins at `first`, if it has not much to say. Longer ones have
/// whole blocks more.
pub(crate) const fn shortest_header(first: Lsn) -> usize {
    BLOCK + (first.0 % BLOCK as u64) as usize
}

/// Reads the header of a segment's file.
pub(crate) fn read_header(file: &dyn File) -> std::io::Result<Result<(Header, usize), HeaderFlaw>> {
    let mut bytes = vec![0; 2 * BLOCK];
    loop {
        let mut filled = 0;
        while filled < bytes.len() {
            match file.read_at(&mut bytes[filled..], filled as u64)? {
                0 => break,
                count => filled += count,
            }
        }
        match Header::decode(&bytes[..filled]) {
            Err(HeaderFlaw::Incomplete(wanted)) if wanted > bytes.len() => bytes.resize(wanted, 0),
            result => return Ok(result),
        }
    }
}

/// Why a start ends: something in a segment's file, at this offset, that this version does not know.
pub(crate) fn refusal(file: &dyn File, path: &Path, offset: u64, what: Unknown) -> Error {
    let writer = match read_header(file) {
        Ok(Ok((header, _))) => header.writer,
        _ => Version::NONE,
    };
    version::refused_at(path, offset, what, writer)
}

/// A flaw at an offset of a segment's file: damage, unless another version wrote it.
pub(crate) fn flawed(file: &dyn File, path: &Path, offset: u64, flaw: Flaw) -> Error {
    match flaw {
        Flaw::Unknown(what) => refusal(file, path, offset, what),
        flaw => Error::damage(path, offset, flaw),
    }
}

impl Header {
    /// The header's bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let table = self.bindings.encode();
        let needed = LISTS_AT + table.len() + self.segments.len() * EXTENT;
        let shortest = shortest_header(self.first);
        let length = shortest + needed.saturating_sub(shortest).next_multiple_of(BLOCK);
        let mut bytes = Vec::with_capacity(length);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&(length as u32).to_le_bytes());
        bytes.extend_from_slice(&self.epoch.to_le_bytes());
        bytes.extend_from_slice(&self.first.0.to_le_bytes());
        bytes.extend_from_slice(&self.durable.0.to_le_bytes());
        bytes.extend_from_slice(&self.name);
        bytes.extend_from_slice(&((table.len() / LINE) as u32).to_le_bytes());
        bytes.extend_from_slice(&(self.segments.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&self.writer.0.to_le_bytes());
        bytes.extend_from_slice(&table);
        for segment in &self.segments {
            bytes.extend_from_slice(&segment.first.0.to_le_bytes());
            bytes.extend_from_slice(&segment.bytes.to_le_bytes());
        }
        bytes.resize(length, 0);
        let checksum = crc32c::crc32c(&bytes);
        bytes[CHECKSUM_AT..CHECKSUM_AT + 4].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads the header at the beginning of `bytes`; with its length.
    pub(crate) fn decode(bytes: &[u8]) -> Result<(Header, usize), HeaderFlaw> {
        if is_zero(&bytes[..bytes.len().min(BLOCK)]) {
            return Err(HeaderFlaw::Nothing);
        }
        if bytes.len() < LISTS_AT {
            return Err(HeaderFlaw::Incomplete(LISTS_AT));
        }
        if bytes[..8] != MAGIC {
            return Err(HeaderFlaw::NoSegment);
        }
        let u32_at =
            |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().expect("it is longer"));
        let u64_at =
            |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().expect("it is longer"));
        let length = u32_at(LENGTH_AT) as usize;
        let shortest = shortest_header(Lsn(u64_at(FIRST_AT)));
        let is_aligned = length >= shortest && (length - shortest).is_multiple_of(BLOCK);
        if !is_aligned || length > LONGEST {
            return Err(HeaderFlaw::Damaged);
        }
        if bytes.len() < length {
            return Err(HeaderFlaw::Incomplete(length));
        }
        let checksum = crc32c::crc32c(&bytes[..CHECKSUM_AT]);
        let checksum = crc32c::crc32c_append(checksum, &[0; 4]);
        let checksum = crc32c::crc32c_append(checksum, &bytes[CHECKSUM_AT + 4..length]);
        if checksum != u32_at(CHECKSUM_AT) {
            return Err(HeaderFlaw::Damaged);
        }
        // Only now: another version's number means something if it is not damage.
        let writer = Version(u32_at(WRITER_AT));
        if u32_at(VERSION_AT) != VERSION {
            return Err(HeaderFlaw::Format(u32_at(VERSION_AT), writer));
        }
        let (lines, segments) = (u32_at(LINES_AT) as usize, u32_at(SEGMENTS_AT) as usize);
        let table_end = LISTS_AT + lines * LINE;
        let end = table_end + segments * EXTENT;
        if end > length {
            return Err(HeaderFlaw::Damaged);
        }
        let segments: Vec<Extent> = (table_end..end)
            .step_by(EXTENT)
            .map(|at| Extent {
                first: Lsn(u64_at(at)),
                bytes: u64_at(at + 8),
            })
            .collect();
        let header = Header {
            epoch: u64_at(EPOCH_AT),
            first: Lsn(u64_at(FIRST_AT)),
            durable: Lsn(u64_at(DURABLE_AT)),
            name: *bytes[NAME_AT..].first_chunk().expect("it is longer"),
            writer,
            bindings: Bindings::decode(&bytes[LISTS_AT..table_end])
                .ok_or(HeaderFlaw::Table(writer))?,
            segments,
        };
        if header.is_sound() {
            Ok((header, length))
        } else {
            Err(HeaderFlaw::Damaged)
        }
    }

    /// Whether positions are positions, and segments follow one another.
    fn is_sound(&self) -> bool {
        let positions = [self.first.0, self.durable.0];
        let mut end = 0;
        positions.iter().all(|position| position.is_multiple_of(8))
            && self.first >= Lsn::FIRST
            && self.segments.iter().all(|segment| {
                let follows = segment.first.0 >= end && segment.first.0.is_multiple_of(8);
                end = segment.first.0.saturating_add(segment.bytes);
                follows && segment.bytes.is_multiple_of(8)
            })
            && end <= self.first.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::DbId;
    use crate::bindings::Rebind;

    fn header() -> Header {
        let mut bindings = Bindings::default();
        bindings.apply(&[Rebind::Clear(DbId(3))], Lsn(5000));
        Header {
            epoch: 7,
            first: Lsn(1 << 20),
            durable: Lsn(1 << 19),
            name: *b"0123456789abcdef",
            writer: Version(7 << 16),
            bindings,
            segments: vec![
                Extent {
                    first: Lsn::FIRST,
                    bytes: 8000,
                },
                Extent {
                    first: Lsn(1 << 17),
                    bytes: 0,
                },
            ],
        }
    }

    #[test]
    fn a_header_says_what_was_written() {
        let header = header();
        let mut bytes = header.encode();
        assert_eq!(bytes.len(), BLOCK);
        bytes.extend_from_slice(b"records");
        assert_eq!(Header::decode(&bytes), Ok((header, BLOCK)));
    }

    #[test]
    fn a_long_list_makes_a_long_header() {
        let mut header = header();
        header.first = Lsn(1 << 40);
        header.segments = (1..1000)
            .map(|n| Extent {
                first: Lsn(n << 20),
                bytes: 1 << 20,
            })
            .collect();
        let bytes = header.encode();
        assert_eq!(bytes.len(), 4 * BLOCK);
        assert_eq!(
            Header::decode(&bytes[..BLOCK]),
            Err(HeaderFlaw::Incomplete(4 * BLOCK))
        );
        assert_eq!(Header::decode(&bytes), Ok((header, 4 * BLOCK)));
    }

    #[test]
    fn records_are_as_far_behind_a_block_in_the_file_as_in_the_log() {
        let mut header = header();
        for first in [4096, 4104, 8184, (1 << 40) + 512] {
            header.first = Lsn((1 << 20) + first);
            for count in [0, 200, 300, 600] {
                header.segments = (0..count)
                    .map(|n| Extent {
                        first: Lsn(4096 + 8 * n),
                        bytes: 8,
                    })
                    .collect();
                let bytes = header.encode();
                assert_eq!(bytes.len() as u64 % BLOCK as u64, first % BLOCK as u64);
                let bounds = shortest_header(header.first)..=2 * BLOCK + 600 * EXTENT;
                assert!(bounds.contains(&bytes.len()));
                assert_eq!(Header::decode(&bytes), Ok((header.clone(), bytes.len())));
            }
        }
    }

    #[test]
    fn no_flipped_bit_passes() {
        let bytes = header().encode();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            assert!(Header::decode(&damaged).is_err(), "byte {at}");
        }
    }

    #[test]
    fn what_is_not_there_is_told_from_what_is_damaged() {
        let bytes = header().encode();
        assert_eq!(Header::decode(&[]), Err(HeaderFlaw::Nothing));
        assert_eq!(Header::decode(&[0; BLOCK]), Err(HeaderFlaw::Nothing));
        assert_eq!(Header::decode(&[1; BLOCK]), Err(HeaderFlaw::NoSegment));
        assert_eq!(
            Header::decode(&bytes[..50]),
            Err(HeaderFlaw::Incomplete(LISTS_AT))
        );
        let mut other = bytes[..CHECKSUM_AT].to_vec();
        other[VERSION_AT] = 2;
        other.resize(BLOCK, 0);
        other[WRITER_AT..].copy_from_slice(&bytes[WRITER_AT..]);
        let checksum = crc32c::crc32c(&other);
        other[CHECKSUM_AT..CHECKSUM_AT + 4].copy_from_slice(&checksum.to_le_bytes());
        let flaw = HeaderFlaw::Format(2, Version(7 << 16));
        assert_eq!(Header::decode(&other), Err(flaw));
        assert!(flaw.to_string().contains("version 0.7.0 wrote it"));
        // A line of the table with an operation of a later version.
        let mut other = bytes;
        other[LISTS_AT] = 9;
        other[CHECKSUM_AT..CHECKSUM_AT + 4].fill(0);
        let checksum = crc32c::crc32c(&other);
        other[CHECKSUM_AT..CHECKSUM_AT + 4].copy_from_slice(&checksum.to_le_bytes());
        let flaw = HeaderFlaw::Table(Version(7 << 16));
        assert_eq!(Header::decode(&other), Err(flaw));
    }

    #[test]
    fn segments_that_overlap_are_refused() {
        let mut header = header();
        header.segments[1].first = Lsn(8192);
        assert_eq!(Header::decode(&header.encode()), Err(HeaderFlaw::Damaged));
        header.segments = vec![Extent {
            first: Lsn(1 << 20),
            bytes: 8,
        }];
        assert_eq!(Header::decode(&header.encode()), Err(HeaderFlaw::Damaged));
    }

    #[test]
    fn one_byte_that_is_not_zero_is_found_anywhere() {
        for len in [0, 1, 63, 64, 65, 200] {
            let mut bytes = vec![0; len];
            assert!(is_zero(&bytes));
            for at in 0..len {
                bytes[at] = 0x80;
                assert!(!is_zero(&bytes), "{at} of {len}");
                bytes[at] = 0;
            }
        }
    }

    #[test]
    fn file_names_are_positions() {
        assert_eq!(file_name(Lsn(0xabc8)), "000000000000abc8.log");
        assert_eq!(first_of("000000000000abc8.log"), Some(Lsn(0xabc8)));
        for name in [
            "",
            "next.tmp",
            "000000000000abc8",
            "000000000000ABC8.log",
            "000000000000abc9.log",
            "+00000000000abc8.log",
            "0000000000000000.log",
            "00000000000abc8.log",
            "000000000000abc8.hint",
        ] {
            assert_eq!(first_of(name), None, "{name}");
        }
    }
}
