//! The header of a ring's file.
//!
//! ```text
//!  0         8          16        20          24         32      40
//!  +---------+----------+---------+-----------+----------+-------+ - - -
//!  | magic 8 | checksum | version | producers | capacity | start |
//!  |         | u64      | u32     | u32       | u64      | u64   |
//!  +---------+----------+---------+-----------+----------+-------+ - - -
//!  40     56      72      88       96      98     4096
//!  +------+-------+-------+--------+-------+- - -+
//!  | log  | owner | boot  | mounts | bytes | path |
//!  | 16   | 16    | 16    | u64    | u16   |      |
//!  +------+-------+-------+--------+-------+- - -+
//! ```

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::memory::HEADER;

const MAGIC: [u8; 8] = *b"ferrring";
const VERSION: u32 = 1;
const CHECKSUM_AT: usize = 8;
/// The checksum covers everything from here on.
const COVERED_FROM: usize = 16;
const VERSION_AT: usize = 16;
const PRODUCERS_AT: usize = 20;
const CAPACITY_AT: usize = 24;
const START_AT: usize = 32;
const LOG_AT: usize = 40;
const OWNER_AT: usize = 56;
const BOOT_AT: usize = 72;
const MOUNTS_AT: usize = 88;
const PATH_BYTES_AT: usize = 96;
const PATH_AT: usize = 98;
/// No ring is larger, and none has more producers: what is read is not trusted.
const LARGEST: u64 = 1 << 30;
const MOST_PRODUCERS: u32 = 1 << 16;

/// Whose ring it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The log's name.
    pub log: [u8; 16],
    /// The log's directory.
    pub owner: [u8; 16],
    /// The system's boot.
    pub boot: [u8; 16],
}

/// What a header says beside whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) capacity: u64,
    pub(super) producers: usize,
}

/// What a header is made of.
pub(super) struct Header<'p> {
    pub(super) identity: Identity,
    /// The namespace in which the directory has its path; 0 if that is not known.
    pub(super) mounts: u64,
    /// The log's directory, from the root.
    pub(super) directory: &'p Path,
    pub(super) capacity: u64,
    pub(super) start: u64,
    pub(super) producers: u32,
}

impl Header<'_> {
    pub(super) fn encode(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        let mut put = |at: usize, part: &[u8]| bytes[at..at + part.len()].copy_from_slice(part);
        put(0, &MAGIC);
        put(VERSION_AT, &VERSION.to_le_bytes());
        put(PRODUCERS_AT, &self.producers.to_le_bytes());
        put(CAPACITY_AT, &self.capacity.to_le_bytes());
        put(START_AT, &self.start.to_le_bytes());
        put(LOG_AT, &self.identity.log);
        put(OWNER_AT, &self.identity.owner);
        put(BOOT_AT, &self.identity.boot);
        put(MOUNTS_AT, &self.mounts.to_le_bytes());
        let path = self.directory.as_os_str().as_bytes();
        // A ring whose path is not known is nobody's orphan.
        if path.len() <= HEADER - PATH_AT {
            put(PATH_BYTES_AT, &(path.len() as u16).to_le_bytes());
            put(PATH_AT, path);
        }
        let checksum = checksum(&bytes[COVERED_FROM..]);
        bytes[CHECKSUM_AT..COVERED_FROM].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }
}

/// FNV-1a with 64 bits.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn u64_at(bytes: &[u8; HEADER], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("it is longer"))
}

/// Whether it is a header that was written, of this format. `Err` says why not.
fn check_header(bytes: &[u8; HEADER]) -> Result<(), String> {
    if bytes[..8] != MAGIC {
        return Err("it has no header of a ring".into());
    }
    if u64_at(bytes, CHECKSUM_AT) != checksum(&bytes[COVERED_FROM..]) {
        return Err("the header's checksum does not match".into());
    }
    let version = u64_at(bytes, VERSION_AT) as u32;
    if version != VERSION {
        return Err(format!(
            "it has format {version}, and this version of the server reads format {VERSION}"
        ));
    }
    Ok(())
}

/// Takes a header apart. `Err` says why it is none of this identity's.
pub(super) fn read_header(bytes: &[u8; HEADER], identity: &Identity) -> Result<Shape, String> {
    check_header(bytes)?;
    let is = |at: usize, wanted: &[u8; 16]| bytes[at..at + 16] == *wanted;
    if !is(BOOT_AT, &identity.boot) {
        return Err("it is from before the system was started".into());
    }
    if !is(LOG_AT, &identity.log) {
        return Err("it belongs to another log".into());
    }
    if !is(OWNER_AT, &identity.owner) {
        return Err("it belongs to a log in another directory".into());
    }
    let capacity = u64_at(bytes, CAPACITY_AT);
    let producers = (u64_at(bytes, VERSION_AT) >> 32) as u32;
    if !capacity.is_power_of_two() || capacity > LARGEST || producers > MOST_PRODUCERS {
        return Err("no ring has such a size".into());
    }
    Ok(Shape {
        capacity,
        producers: producers as usize,
    })
}

/// The format of a whole header of this identity, if it is another one than ours. Magic, checksum and
/// identity are in the same places in every format.
pub(super) fn other_format(bytes: &[u8; HEADER], identity: &Identity) -> Option<u32> {
    let is = |at: usize, wanted: &[u8; 16]| bytes[at..at + 16] == *wanted;
    let is_whole = bytes[..8] == MAGIC
        && u64_at(bytes, CHECKSUM_AT) == checksum(&bytes[COVERED_FROM..])
        && is(BOOT_AT, &identity.boot)
        && is(LOG_AT, &identity.log)
        && is(OWNER_AT, &identity.owner);
    let version = u64_at(bytes, VERSION_AT) as u32;
    (is_whole && version != VERSION).then_some(version)
}

/// The directory of the log that made a file, and which directory that was; `None` if this process does not
/// see it by its path. `Err` says why it is no header.
pub(super) fn maker_of(
    bytes: &[u8; HEADER],
    mounts: u64,
) -> Result<Option<(&Path, [u8; 16])>, String> {
    check_header(bytes)?;
    let count = u64_at(bytes, PATH_BYTES_AT) as u16 as usize;
    if mounts == 0 || u64_at(bytes, MOUNTS_AT) != mounts || count == 0 || count > HEADER - PATH_AT {
        return Ok(None);
    }
    let directory = Path::new(OsStr::from_bytes(&bytes[PATH_AT..PATH_AT + count]));
    let owner = bytes[OWNER_AT..].first_chunk().expect("it is longer");
    Ok(Some((directory, *owner)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: Identity = Identity {
        log: [1; 16],
        owner: [2; 16],
        boot: [3; 16],
    };

    fn header(capacity: u64, producers: u32) -> [u8; HEADER] {
        let header = Header {
            identity: IDENTITY,
            mounts: 4,
            directory: Path::new("/data/log"),
            capacity,
            start: 4096,
            producers,
        };
        header.encode()
    }

    #[test]
    fn a_header_is_its_own_and_undamaged() {
        let good = header(1 << 16, 3);
        let shape = Shape {
            capacity: 1 << 16,
            producers: 3,
        };
        assert_eq!(read_header(&good, &IDENTITY), Ok(shape));
        for at in 0..HEADER {
            let mut bad = good;
            bad[at] ^= 1;
            assert!(read_header(&bad, &IDENTITY).is_err(), "{at}");
        }
        let log = Identity {
            log: [9; 16],
            ..IDENTITY
        };
        let owner = Identity {
            owner: [9; 16],
            ..IDENTITY
        };
        let boot = Identity {
            boot: [9; 16],
            ..IDENTITY
        };
        for (change, words) in [
            (log, "another log"),
            (owner, "another directory"),
            (boot, "system was started"),
        ] {
            let reason = read_header(&good, &change).expect_err("it is not");
            assert!(reason.contains(words), "{reason}");
        }
        let mut later = good;
        later[VERSION_AT] = 7;
        assert_eq!(other_format(&later, &IDENTITY), None, "it is damaged");
        let sum = checksum(&later[COVERED_FROM..]);
        later[CHECKSUM_AT..COVERED_FROM].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(other_format(&later, &IDENTITY), Some(7));
        assert!(read_header(&later, &IDENTITY).is_err());
        assert_eq!(other_format(&later, &log), None, "it is of no use here");
        assert_eq!(other_format(&good, &IDENTITY), None);
        let maker = (Path::new("/data/log"), IDENTITY.owner);
        assert_eq!(maker_of(&good, 4), Ok(Some(maker)));
        assert_eq!(maker_of(&good, 5), Ok(None), "it sees other paths");
        assert_eq!(maker_of(&good, 0), Ok(None));
        assert!(maker_of(&later, 4).is_err());
        for (capacity, producers) in [(100, 3), (1 << 40, 3), (1 << 16, u32::MAX)] {
            let bad = header(capacity, producers);
            assert!(read_header(&bad, &IDENTITY).is_err());
        }
    }
}
