//! The file that holds a ring's memory, so that what is in the ring outlives its process.
//!
//! It lies in the system's memory ([`MEMORY`]) where that outlives the process too, else beside the log. All of its space is taken
//! when it is made, so that no store into the mapping can fail. A power loss ends it: the boot in its header is another one then.
//!
//! ```text
//!  0         8         12          16         24      32      48      64      80         88     4096
//!  +---------+---------+-----------+----------+-------+-------+-------+-------+----------+- - -+
//!  | magic 8 | version | producers | capacity | start | log   | owner | boot  | checksum | 0   | words, bytes: see `memory`
//!  |         | u32     | u32       | u64      | u64   | 16    | 16    | 16    | u64      |     |
//!  +---------+---------+-----------+----------+-------+-------+-------+-------+----------+- - -+
//! ```
//!
//! Invariants:
//! 1. The header is written last: a file that has one is complete.
//! 2. Mode 0600, made by this process under a name that did not exist, never through a symbolic link.
//! 3. Whoever makes or removes a file of an owner holds the lock of the directory that the owner is.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::memory::{HEADER, control_bytes};
use super::{Consumer, Ring};
use crate::syscall::{check, retry};

/// Files in memory that belong to the system, not to a process.
pub const MEMORY: &str = "/dev/shm";
/// The file's name beside the log.
pub const BESIDE: &str = "RING";

const MAGIC: [u8; 8] = *b"ferrring";
const VERSION: u32 = 1;
const CHECKSUM_AT: usize = 80;
/// The part of the free space of the system's memory that a ring may take, so that others find some.
const FREE_SHARE: u64 = 2;
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

/// Where a ring's file can be.
#[derive(Clone, Debug)]
pub struct Places {
    /// The system's boot.
    pub boot: [u8; 16],
    /// The log's directory.
    pub owner: [u8; 16],
    /// A directory in memory that outlives the process, or why there is none.
    pub memory: Result<PathBuf, String>,
    /// The log's directory, or why a mapped file cannot be there.
    pub beside: Result<PathBuf, String>,
}

/// The name of a ring's file.
#[derive(Debug)]
pub(super) struct Name(PathBuf);

impl Name {
    pub(super) fn remove(self) -> io::Result<()> {
        fs::remove_file(self.0)
    }
}

/// A ring, and where its file is.
#[derive(Debug)]
pub struct Placed {
    /// The ring.
    pub ring: Arc<Ring>,
    /// Its consumer.
    pub consumer: Consumer,
    /// Its file; `None` if it ends with the process.
    pub path: Option<PathBuf>,
    /// Why it is not where it should be, for each place that comes before the one it is in.
    pub refused: Vec<String>,
}

impl Places {
    /// The places for a log in a directory, which exists.
    ///
    /// # Errors
    /// The system has no boots, or the directory cannot be looked at.
    pub fn of(directory: &Path) -> io::Result<Places> {
        // The process may work in another directory when it removes the file.
        let directory = &directory.canonicalize()?;
        let facts = fs::metadata(directory)?;
        let mut owner = [0; 16];
        owner[..8].copy_from_slice(&facts.dev().to_le_bytes());
        owner[8..].copy_from_slice(&facts.ino().to_le_bytes());
        Ok(Places {
            boot: boot()?,
            owner,
            memory: system_memory(),
            beside: beside(directory),
        })
    }

    fn identity(&self, log: [u8; 16]) -> Identity {
        Identity {
            log,
            owner: self.owner,
            boot: self.boot,
        }
    }

    /// The rings that earlier processes have left for this directory, whatever is in them.
    pub fn left(&self) -> Vec<PathBuf> {
        let mut left = Vec::new();
        if let Ok(memory) = &self.memory {
            let prefix = prefix(&self.owner);
            let entries = fs::read_dir(memory).into_iter().flatten().flatten();
            let is_ours = |path: &PathBuf| {
                let name = path.file_name().and_then(|name| name.to_str());
                name.is_some_and(|name| name.starts_with(&prefix) && name.ends_with(".ring"))
            };
            left.extend(entries.map(|entry| entry.path()).filter(is_ours));
            left.sort();
        }
        if let Ok(beside) = &self.beside {
            let path = beside.join(BESIDE);
            left.extend(path.symlink_metadata().is_ok().then_some(path));
        }
        left
    }

    /// Makes a ring as [`Ring::new`] does, in the first place that has room; if none has, it ends with the process. No other
    /// ring is left for this directory.
    ///
    /// # Errors
    /// The system has no memory or no address space for it.
    pub fn make(
        &self,
        log: [u8; 16],
        capacity: usize,
        start: u64,
        producers: usize,
    ) -> io::Result<Placed> {
        let identity = self.identity(log);
        let mut refused = Vec::new();
        let in_memory = self.memory.as_ref().map(|directory| {
            let name = format!("{}{}.ring", prefix(&self.owner), hexadecimal(&log));
            (directory.join(name), true)
        });
        let beside = self.beside.as_ref();
        let beside = beside.map(|directory| (directory.join(BESIDE), false));
        for place in [in_memory, beside] {
            let (path, in_memory) = match place {
                Ok(place) => place,
                Err(reason) => {
                    refused.push(reason.clone());
                    continue;
                }
            };
            match make_at(&path, in_memory, &identity, capacity, start, producers) {
                Ok((ring, consumer)) => {
                    return Ok(Placed {
                        ring,
                        consumer,
                        path: Some(path),
                        refused,
                    });
                }
                Err(error) => refused.push(format!("{}: {error}", path.display())),
            }
        }
        let (ring, consumer) = Ring::new(capacity, start, producers)?;
        Ok(Placed {
            ring,
            consumer,
            path: None,
            refused,
        })
    }
}

/// What the names of all rings of a directory begin with.
fn prefix(owner: &[u8; 16]) -> String {
    format!("ferrite-{}-", hexadecimal(owner))
}

fn hexadecimal(bytes: &[u8; 16]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn make_at(
    path: &Path,
    in_memory: bool,
    identity: &Identity,
    capacity: usize,
    start: u64,
    producers: usize,
) -> io::Result<(Arc<Ring>, Consumer)> {
    let bytes = (control_bytes(producers) + capacity) as u64;
    let directory = path.parent().unwrap_or(Path::new("."));
    if in_memory && facts_of(directory)?.free < bytes.saturating_mul(FREE_SHARE) {
        return Err(io::ErrorKind::StorageFull.into());
    }
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)?;
    let made = file
        .set_permissions(fs::Permissions::from_mode(0o600))
        .and_then(|()| reserve(&file, bytes))
        .and_then(|()| {
            let name = Some(Name(path.to_owned()));
            Ring::of_file(&file, name, capacity, start, producers)
        })
        .and_then(|made| {
            let header = header(identity, capacity as u64, start, producers as u32);
            file.write_all_at(&header, 0).map(|()| made)
        });
    if made.is_err() {
        // It has no header, so nobody would take it for a ring.
        let _ = fs::remove_file(path);
    }
    made
}

/// Takes space for all of the file.
#[cfg(target_os = "linux")]
fn reserve(file: &fs::File, bytes: u64) -> io::Result<()> {
    let bytes = libc::off_t::try_from(bytes).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the call takes integers; the descriptor is open.
    retry(|| check(unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, bytes) })).map(drop)
}

#[cfg(not(target_os = "linux"))]
fn reserve(_file: &fs::File, _bytes: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// What a header says beside whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) capacity: u64,
    pub(super) producers: usize,
}

fn header(identity: &Identity, capacity: u64, start: u64, producers: u32) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..16].copy_from_slice(&producers.to_le_bytes());
    bytes[16..24].copy_from_slice(&capacity.to_le_bytes());
    bytes[24..32].copy_from_slice(&start.to_le_bytes());
    bytes[32..48].copy_from_slice(&identity.log);
    bytes[48..64].copy_from_slice(&identity.owner);
    bytes[64..80].copy_from_slice(&identity.boot);
    let checksum = checksum(&bytes[..CHECKSUM_AT]);
    bytes[CHECKSUM_AT..CHECKSUM_AT + 8].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// FNV-1a with 64 bits.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Takes a header apart. `Err` says why it is none of this identity's.
pub(super) fn read_header(bytes: &[u8; HEADER], identity: &Identity) -> Result<Shape, String> {
    let u32_at = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().expect("it is longer"));
    let u64_at = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().expect("it is longer"));
    if bytes[..8] != MAGIC {
        return Err("it has no header of a ring".into());
    }
    if u64_at(CHECKSUM_AT) != checksum(&bytes[..CHECKSUM_AT]) {
        return Err("the header's checksum does not match".into());
    }
    let version = u32_at(8);
    if version != VERSION {
        return Err(format!(
            "it has format {version}, and this version of the server reads format {VERSION}"
        ));
    }
    let is = |at: usize, wanted: &[u8; 16]| bytes[at..at + 16] == *wanted;
    if !is(64, &identity.boot) {
        return Err("it is from before the system was started".into());
    }
    if !is(32, &identity.log) {
        return Err("it belongs to another log".into());
    }
    if !is(48, &identity.owner) {
        return Err("it belongs to a log in another directory".into());
    }
    let (capacity, producers) = (u64_at(16), u32_at(12));
    if !capacity.is_power_of_two() || capacity > LARGEST || producers > MOST_PRODUCERS {
        return Err("no ring has such a size".into());
    }
    Ok(Shape {
        capacity,
        producers: producers as usize,
    })
}

/// The number of this boot.
fn boot() -> io::Result<[u8; 16]> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let text = std::str::from_utf8(&digits).unwrap_or_default();
    let number = u128::from_str_radix(text, 16).ok();
    let number = number.filter(|_| digits.len() == 32);
    Ok(number.ok_or(io::ErrorKind::InvalidData)?.to_be_bytes())
}

/// What a directory's file system is.
struct Facts {
    kind: i64,
    free: u64,
}

#[cfg(target_os = "linux")]
fn facts_of(directory: &Path) -> io::Result<Facts> {
    let file = fs::File::open(directory)?;
    // SAFETY: a statfs is made of integers, for which all bits zero is a value.
    let mut facts: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open and the call may write `facts`.
    check(unsafe { libc::fstatfs(file.as_raw_fd(), &mut facts) })?;
    // The widths of the fields differ between systems.
    #[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
    Ok(Facts {
        kind: facts.f_type as i64,
        free: (facts.f_bavail as u64).saturating_mul(facts.f_bsize as u64),
    })
}

#[cfg(not(target_os = "linux"))]
fn facts_of(_directory: &Path) -> io::Result<Facts> {
    Err(io::ErrorKind::Unsupported.into())
}

const TMPFS: i64 = 0x0102_1994;
const EXT: i64 = 0xef53;
const XFS: i64 = 0x5846_5342;
const F2FS: i64 = 0xf2f5_2010;
const OVERLAY: i64 = 0x794c_7630;

/// The system's memory, if it is one that outlives this process.
fn system_memory() -> Result<PathBuf, String> {
    if is_in_container() {
        return Err(format!("the memory of a container ({MEMORY}) ends with it"));
    }
    match facts_of(Path::new(MEMORY)) {
        Ok(Facts { kind: TMPFS, .. }) => Ok(PathBuf::from(MEMORY)),
        Ok(_) => Err(format!("{MEMORY} is not in memory")),
        Err(error) => Err(format!("{MEMORY}: {error}")),
    }
}

/// The log's directory, if its file system keeps space that was taken for a file: else a store into a mapping could fail.
fn beside(directory: &Path) -> Result<PathBuf, String> {
    match facts_of(directory) {
        Ok(Facts {
            kind: TMPFS | EXT | XFS | F2FS | OVERLAY,
            ..
        }) => Ok(directory.to_owned()),
        Ok(Facts { kind, .. }) => Err(format!(
            "{}: a file system of type {kind:#x} does not keep space for a mapped file",
            directory.display()
        )),
        Err(error) => Err(format!("{}: {error}", directory.display())),
    }
}

/// Whether the process is in a container: in a namespace of processes that is not the system's first one. What such a container has in
/// [`MEMORY`] usually goes when its first process ends.
fn is_in_container() -> bool {
    const FIRST: &str = "pid:[4026531836]";
    fs::read_link("/proc/self/ns/pid").is_ok_and(|name| name.as_os_str() != FIRST)
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: Identity = Identity {
        log: [1; 16],
        owner: [2; 16],
        boot: [3; 16],
    };

    #[test]
    fn a_header_is_its_own_and_undamaged() {
        let good = header(&IDENTITY, 1 << 16, 4096, 3);
        let shape = Shape {
            capacity: 1 << 16,
            producers: 3,
        };
        assert_eq!(read_header(&good, &IDENTITY), Ok(shape));
        for at in 0..CHECKSUM_AT + 8 {
            let mut bad = good;
            bad[at] ^= 1;
            assert!(read_header(&bad, &IDENTITY).is_err(), "{at}");
        }
        for (change, words) in [
            (
                Identity {
                    log: [9; 16],
                    ..IDENTITY
                },
                "another log",
            ),
            (
                Identity {
                    owner: [9; 16],
                    ..IDENTITY
                },
                "another directory",
            ),
            (
                Identity {
                    boot: [9; 16],
                    ..IDENTITY
                },
                "system was started",
            ),
        ] {
            let reason = read_header(&good, &change).expect_err("it is not");
            assert!(reason.contains(words), "{reason}");
        }
        for (capacity, producers) in [(100, 3), (1 << 40, 3), (1 << 16, u32::MAX)] {
            let bad = header(&IDENTITY, capacity, 4096, producers);
            assert!(read_header(&bad, &IDENTITY).is_err());
        }
    }
}
