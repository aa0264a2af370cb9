//! The file that holds a ring's memory, so that what is in the ring outlives its process.
//!
//! It lies in the system's memory ([`MEMORY`]) where that outlives the process too, else beside the log. All
//! of its space is taken when it is made, so that no store into the mapping can fail. A power loss ends it:
//! the boot in its header is another one then.
//!
//! Its header is drawn in `header`; watermarks and bytes follow: see `memory`. The header tells other
//! processes when the file is an orphan: killed servers whose directories were removed would fill the memory
//! else.
//!
//! Invariants:
//! 1. A file has its name when it is complete, its header included. Until then it has no
//!    name, or that of a draft ([`Draft`]).
//! 2. Mode 0600, made by this process under a name that did not exist, never through a symbolic link.
//! 3. Whoever makes or removes a file of an owner holds the lock of the directory that the owner is.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::bytes::{Consumer, Name, Ring};
use super::header::{Header, Identity, maker_of};
use super::memory::{HEADER, control_bytes};
#[cfg(target_os = "linux")]
use crate::syscall::retry;
#[cfg(target_os = "linux")]
use rustix::fs::{AtFlags, CWD, FallocateFlags, fallocate, fstatfs, linkat};

/// Files in memory that belong to the system, not to a process.
pub const MEMORY: &str = "/dev/shm";
/// The file's name beside the log.
pub const BESIDE: &str = "RING";

/// What the names of all rings in memory begin with.
const PREFIX: &str = "ferrite-";
/// What they end with, and what those end with that are not complete.
const END: &str = ".ring";
const DRAFT_END: &str = ".ring.tmp";

/// The part of the free space of the system's memory that a ring may take, so that others find some.
const FREE_SHARE: u64 = 2;
/// Where a ring's file can be.
#[derive(Clone, Debug)]
pub struct Places {
    /// The log's directory, from the root.
    pub directory: PathBuf,
    /// The namespace in which the directory has this path; 0 if that is not known.
    pub mounts: u64,
    /// The system's boot.
    pub boot: [u8; 16],
    /// The log's directory.
    pub owner: [u8; 16],
    /// A directory in memory that outlives the process, or why there is none.
    pub memory: Result<PathBuf, String>,
    /// The log's directory, or why a mapped file cannot be there.
    pub beside: Result<PathBuf, String>,
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
        Ok(Places {
            directory: directory.to_owned(),
            mounts: mounts(),
            boot: boot()?,
            owner: owner_of(directory)?,
            memory: system_memory(),
            beside: beside(directory),
        })
    }

    /// The rings that earlier processes have left for this directory, whatever is in them.
    pub fn left(&self) -> Vec<PathBuf> {
        let mut left = Vec::new();
        if let Ok(memory) = &self.memory {
            left = named(memory, &prefix(&self.owner), END);
        }
        if let Ok(beside) = &self.beside {
            let path = beside.join(BESIDE);
            left.extend(path.symlink_metadata().is_ok().then_some(path));
        }
        left
    }

    /// Removes rings of killed processes whose logs' directories are gone, and returns how many.
    pub fn remove_orphans(&self) -> usize {
        let Ok(memory) = &self.memory else { return 0 };
        let is_orphan = |path: &PathBuf| is_orphan(path, self.mounts).unwrap_or(false);
        let orphans = named(memory, PREFIX, END).into_iter().filter(is_orphan);
        orphans.filter(|path| fs::remove_file(path).is_ok()).count()
    }

    /// Makes a ring as [`Ring::new`] does, in the first place that has room; if none has, it ends with the
    /// process. No other ring is left for this directory.
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
        let mut refused = Vec::new();
        let in_memory = self.memory.as_ref().map(|directory| {
            let name = format!("{}{}{END}", prefix(&self.owner), hexadecimal(&log));
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
            match self.make_at(&path, in_memory, log, capacity, start, producers) {
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

    fn make_at(
        &self,
        path: &Path,
        in_memory: bool,
        log: [u8; 16],
        capacity: usize,
        start: u64,
        producers: usize,
    ) -> io::Result<(Arc<Ring>, Consumer)> {
        let bytes = (control_bytes(producers) + capacity) as u64;
        let directory = path.parent().unwrap_or(Path::new("."));
        if in_memory && facts_of(directory)?.free < bytes.saturating_mul(FREE_SHARE) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let draft = Draft::create(path)?;
        let file = &draft.file;
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
        reserve(file, bytes)?;
        let name = Some(Name(path.to_owned()));
        let made = Ring::of_file(file, name, capacity, start, producers)?;
        let header = Header {
            identity: Identity {
                log,
                owner: self.owner,
                boot: self.boot,
            },
            mounts: self.mounts,
            directory: &self.directory,
            capacity: capacity as u64,
            start,
            producers: producers as u32,
        };
        file.write_all_at(&header.encode(), 0)?;
        draft.publish(path)?;
        Ok(made)
    }

    /// Removes what killed processes had not finished. The directory's lock is held.
    pub fn remove_drafts(&self) {
        let mut drafts = Vec::new();
        if let Ok(memory) = &self.memory {
            drafts = named(memory, &prefix(&self.owner), DRAFT_END);
        }
        drafts.extend(
            self.beside
                .as_ref()
                .map(|beside| aside(&beside.join(BESIDE))),
        );
        for draft in drafts {
            let _ = fs::remove_file(draft);
        }
    }
}

/// A ring's file before it has its name.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) file: fs::File,
    /// The name that it has meanwhile, where the file system makes no file without one.
    aside: Option<PathBuf>,
}

impl Draft {
    /// A file without a name goes with its process, one with a name at the next start of its log.
    fn create(path: &Path) -> io::Result<Draft> {
        match nameless(path.parent().unwrap_or(Path::new("."))) {
            Ok(file) => Ok(Draft { file, aside: None }),
            Err(_) => Draft::create_aside(path),
        }
    }

    pub(super) fn create_aside(path: &Path) -> io::Result<Draft> {
        let aside = aside(path);
        let _ = fs::remove_file(&aside);
        let file = private().create_new(true).open(&aside)?;
        let aside = Some(aside);
        Ok(Draft { file, aside })
    }

    /// Gives it its name, unless there is a file of that name.
    pub(super) fn publish(mut self, path: &Path) -> io::Result<()> {
        match &self.aside {
            None => link(&self.file, path)?,
            Some(aside) if path.symlink_metadata().is_err() => fs::rename(aside, path)?,
            Some(_) => return Err(io::ErrorKind::AlreadyExists.into()),
        }
        self.aside = None;
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(aside) = &self.aside {
            let _ = fs::remove_file(aside);
        }
    }
}

/// The name of a ring's file while it is not complete, where it has to have one.
fn aside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    name.into()
}

/// How a file is opened that this user alone may read and write.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options.custom_flags(libc::O_NOFOLLOW);
    options
}

/// A file of a directory's file system that has no name yet.
#[cfg(target_os = "linux")]
fn nameless(directory: &Path) -> io::Result<fs::File> {
    private().custom_flags(libc::O_TMPFILE).open(directory)
}

#[cfg(not(target_os = "linux"))]
fn nameless(_directory: &Path) -> io::Result<fs::File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Gives a file without a name one that no other file has.
#[cfg(target_os = "linux")]
fn link(file: &fs::File, path: &Path) -> io::Result<()> {
    // The call by descriptor alone is for privileged users.
    let from = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, from, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(not(target_os = "linux"))]
fn link(_file: &fs::File, _path: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// What the names of all rings of a directory begin with.
fn prefix(owner: &[u8; 16]) -> String {
    format!("{PREFIX}{}-", hexadecimal(owner))
}

/// The files in a directory whose names begin and end with this.
fn named(directory: &Path, prefix: &str, end: &str) -> Vec<PathBuf> {
    let is_one = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(prefix) && name.ends_with(end))
    };
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut named: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_one).collect();
    named.sort();
    named
}

fn hexadecimal(bytes: &[u8; 16]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Takes space for all of the file.
#[cfg(target_os = "linux")]
fn reserve(file: &fs::File, bytes: u64) -> io::Result<()> {
    retry(|| Ok(fallocate(file, FallocateFlags::empty(), 0, bytes)?))
}

#[cfg(not(target_os = "linux"))]
fn reserve(_file: &fs::File, _bytes: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether nobody can ever take over what is in a ring: its log's directory, seen from here, is gone.
fn is_orphan(path: &Path, mounts: u64) -> io::Result<bool> {
    let file = open_private(path).map_err(io::Error::other)?;
    let mut bytes = [0; HEADER];
    file.read_exact_at(&mut bytes, 0)?;
    let Some((directory, maker)) = maker_of(&bytes, mounts).map_err(io::Error::other)? else {
        return Ok(false);
    };
    match owner_of(directory) {
        Ok(owner) => Ok(maker != owner),
        Err(error) => Ok(error.kind() == io::ErrorKind::NotFound),
    }
}

/// Opens a file to read it, if nobody else could have written it.
pub(super) fn open_private(path: &Path) -> Result<fs::File, String> {
    let failed = |error: io::Error| error.to_string();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)
        .map_err(failed)?;
    let facts = file.metadata().map_err(failed)?;
    let own = rustix::process::geteuid().as_raw();
    if !facts.is_file() || facts.nlink() != 1 {
        Err("it is no file of its own".into())
    } else if facts.uid() != own {
        Err(format!("it belongs to user {}", facts.uid()))
    } else if facts.mode() & 0o077 != 0 {
        Err("others may write or read it".into())
    } else {
        Ok(file)
    }
}

/// What tells a directory from all others of the system.
fn owner_of(directory: &Path) -> io::Result<[u8; 16]> {
    let facts = fs::metadata(directory)?;
    let mut owner = [0; 16];
    owner[..8].copy_from_slice(&facts.dev().to_le_bytes());
    owner[8..].copy_from_slice(&facts.ino().to_le_bytes());
    Ok(owner)
}

/// The namespace of mounts that the process is in; 0 if that is not known.
fn mounts() -> u64 {
    fs::metadata("/proc/self/ns/mnt").map_or(0, |facts| facts.ino())
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
    let facts = fstatfs(&file)?;
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

/// The log's directory, if its file system keeps space that was taken for a file: else a store into a mapping
/// could fail.
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

/// Whether the process is in a container: in a namespace of processes that is not the system's first one.
/// What such a container has in [`MEMORY`] usually goes when its first process ends.
fn is_in_container() -> bool {
    const FIRST: &str = "pid:[4026531836]";
    fs::read_link("/proc/self/ns/pid").is_ok_and(|name| name.as_os_str() != FIRST)
}
