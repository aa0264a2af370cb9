//! The real file system.

use std::fs::{self, OpenOptions, TryLockError};
use std::io::{self, Write};
#[cfg(not(target_os = "freebsd"))]
use std::os::fd::AsRawFd;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::statvfs;
#[cfg(not(target_os = "macos"))]
use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate};

use super::cached;
use super::direct::Direct;
use super::files::{File, Files, Lock};
use super::scan::Scan;
use crate::ring::file::Places;
#[cfg(target_os = "macos")]
use crate::syscall::check;
use crate::syscall::retry;

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

/// An open file of the disk.
#[derive(Debug)]
struct OnDisk {
    file: fs::File,
    direct: Direct,
    scan: Scan,
}

impl OnDisk {
    fn new(file: fs::File) -> OnDisk {
        OnDisk {
            file,
            direct: Direct::default(),
            scan: Scan::default(),
        }
    }
}

/// A locked file; the lock ends with its descriptor.
#[derive(Debug)]
struct Locked {
    _file: fs::File,
}

impl Lock for Locked {}

/// Bytes of the file system that holds `path`, in use or not.
///
/// # Errors
/// What the system says.
pub fn file_system_bytes(path: &Path) -> io::Result<u64> {
    let facts = statvfs(path)?;
    Ok(facts.f_blocks.saturating_mul(facts.f_frsize))
}

impl Files for Disk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)?;
        Ok(Box::new(OnDisk::new(file)))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        Ok(Box::new(OnDisk::new(file)))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(directory)? {
            names.extend(entry?.file_name().into_string().ok());
        }
        Ok(names)
    }

    fn create_directory(&self, directory: &Path) -> io::Result<()> {
        fs::create_dir_all(directory)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        retry(|| fs::File::open(directory)?.sync_all())
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        // Needs no descriptor: a process that has none left must not take its disk for full.
        let facts = statvfs(path)?;
        Ok(facts.f_bavail.saturating_mul(facts.f_frsize))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        file.set_len(0)?;
        writeln!(file, "{}", std::process::id())?;
        Ok(Box::new(Locked { _file: file }))
    }

    fn ring_places(&self, directory: &Path) -> io::Result<Places> {
        Places::of(directory)
    }
}

impl File for OnDisk {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn write_direct_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let done = self.direct.write_at(&self.file, bytes, offset)?;
        self.write_at(&bytes[done..], offset + done as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        retry(|| self.file.read_at(buffer, offset))
    }

    fn scan_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.scan.read_at(&self.file, buffer, offset)
    }

    fn read_cached_at(&self, buffer: &mut [u8], offset: u64) -> bool {
        let read = retry(|| cached::read_now(self.file.as_fd(), buffer, offset));
        read.is_ok_and(|count| count == buffer.len())
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn set_size(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        match allocate(&self.file, bytes) {
            // A file system that cannot promise space: the best there is, is to see that it has some.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                let size = self.size()?;
                if size < bytes {
                    self.set_size(bytes)?;
                }
                Ok(())
            }
            result => result,
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        // Not repeated after anything but a signal: what a second sync says means nothing.
        self.file.sync_data()
    }

    fn will_need(&self, offset: u64, bytes: u64) {
        will_need(&self.file, offset, bytes);
    }

    fn write_back(&self, offset: u64, bytes: u64) {
        write_back(&self.file, offset, bytes);
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }
}

#[cfg(not(target_os = "macos"))]
fn allocate(file: &fs::File, bytes: u64) -> io::Result<()> {
    match retry(|| Ok(fallocate(file, FallocateFlags::empty(), 0, bytes)?)) {
        // A file system of FreeBSD that cannot do that.
        Err(error) if cfg!(target_os = "freebsd") && is_invalid(&error) => {
            Err(io::ErrorKind::Unsupported.into())
        }
        result => result,
    }
}

#[cfg(not(target_os = "macos"))]
fn is_invalid(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidInput
}

#[cfg(target_os = "macos")]
fn allocate(file: &fs::File, bytes: u64) -> io::Result<()> {
    let size = file.metadata()?.len();
    if size >= bytes {
        return Ok(());
    }
    let missing = libc::off_t::try_from(bytes - size).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut wish = libc::fstore_t {
        fst_flags: libc::F_ALLOCATEALL,
        fst_posmode: libc::F_PEOFPOSMODE,
        fst_offset: 0,
        fst_length: missing,
        fst_bytesalloc: 0,
    };
    // SAFETY: the call reads and writes `wish`, which outlives it.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_PREALLOCATE, &mut wish) })?;
    file.set_len(bytes)
}

#[cfg(any(target_os = "linux", target_os = "freebsd"))]
fn will_need(file: &fs::File, offset: u64, bytes: u64) {
    // Its answer is of no consequence.
    let _ = fadvise(file, offset, bytes.try_into().ok(), Advice::WillNeed);
}

#[cfg(target_os = "macos")]
fn will_need(_file: &fs::File, _offset: u64, _bytes: u64) {}

#[cfg(target_os = "linux")]
fn write_back(file: &fs::File, offset: u64, bytes: u64) {
    if let (Ok(offset), Ok(bytes)) = (offset.try_into(), bytes.try_into()) {
        let flags = libc::SYNC_FILE_RANGE_WRITE;
        // SAFETY: the call takes integers; the descriptor is open. Its answer is of no consequence: a sync
        // follows.
        unsafe { libc::sync_file_range(file.as_raw_fd(), offset, bytes, flags) };
    }
}

#[cfg(not(target_os = "linux"))]
fn write_back(_file: &fs::File, _offset: u64, _bytes: u64) {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::DIRECT_BLOCK;
    use std::path::PathBuf;

    /// A directory of its own, gone at the end.
    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Directory {
            let path = std::env::temp_dir().join(format!("ferrite-{}-{name}", std::process::id()));
            Disk.create_directory(&path.join("sub"))
                .expect("a directory");
            Directory(path)
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn bytes_go_where_they_are_put() {
        let directory = Directory::new("bytes");
        let file = Disk.create(&directory.path("a")).expect("it is new");
        file.write_at(b"world", 6).expect("it is open");
        file.write_at(b"hello ", 0).expect("it is open");
        assert_eq!(file.size().expect("it is open"), 11);
        let mut buffer = [0; 16];
        assert_eq!(file.read_at(&mut buffer, 6).expect("it is open"), 5);
        assert_eq!(buffer[..5], *b"world");
        assert_eq!(file.read_at(&mut buffer, 11).expect("it is the end"), 0);
        let error = file
            .read_exact_at(&mut buffer, 0)
            .expect_err("it is shorter");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        file.set_size(5).expect("it is open");
        file.sync_data().expect("it is open");
        file.will_need(0, 5);
        drop(file);
        let again = Disk.open(&directory.path("a")).expect("it is there");
        let mut buffer = [0; 5];
        again.read_exact_at(&mut buffer, 0).expect("it is so long");
        assert_eq!(buffer, *b"hello");
        let error = Disk.create(&directory.path("a")).expect_err("it is there");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn bytes_that_pass_by_the_page_cache_are_seen_through_it() {
        let directory = Directory::new("direct");
        let file = Disk.create(&directory.path("a")).expect("it is new");
        // Memory that begins at a block, as the ring's does.
        let memory: Vec<u8> = (0..5 * DIRECT_BLOCK).map(|at| (at % 251) as u8).collect();
        let skew = memory.as_ptr().align_offset(DIRECT_BLOCK);
        let bytes = &memory[skew..skew + 3 * DIRECT_BLOCK];
        file.allocate(8 * DIRECT_BLOCK as u64)
            .expect("there is space");
        file.write_at(b"before", DIRECT_BLOCK as u64 - 6)
            .expect("it is open");
        let mut seen = vec![0; DIRECT_BLOCK];
        file.read_exact_at(&mut seen, DIRECT_BLOCK as u64)
            .expect("it is so long");
        let at = DIRECT_BLOCK as u64;
        Disk.rename(&directory.path("a"), &directory.path("b"))
            .expect("it is there");
        file.write_direct_at(bytes, at).expect("it is open");
        file.write_at(b"behind", at + bytes.len() as u64)
            .expect("it is open");
        file.sync_data().expect("it is open");
        let mut all = vec![0; bytes.len() + 12];
        let other = Disk.open(&directory.path("b")).expect("it is there");
        for file in [&file, &other] {
            file.read_exact_at(&mut all, at - 6).expect("it is so long");
            assert!(all.starts_with(b"before") && all.ends_with(b"behind"));
            assert_eq!(all[6..6 + bytes.len()], *bytes);
        }
        // Memory that begins anywhere goes there all the same, by the other way if need be.
        file.write_direct_at(&memory[skew + 1..skew + 1 + DIRECT_BLOCK], at)
            .expect("it is open");
        file.read_exact_at(&mut seen, at).expect("it is so long");
        assert_eq!(seen, memory[skew + 1..skew + 1 + DIRECT_BLOCK]);
    }

    #[test]
    fn what_is_read_once_is_the_same() {
        let directory = Directory::new("scan");
        let file = Disk.create(&directory.path("a")).expect("it is new");
        let content: Vec<u8> = (0..3 * DIRECT_BLOCK + 100)
            .map(|at| (at % 251) as u8)
            .collect();
        file.write_at(&content, 0).expect("it is open");
        let mut memory = vec![0; 6 * DIRECT_BLOCK];
        let skew = memory.as_ptr().align_offset(DIRECT_BLOCK);
        // From the cache, which has it; past it, after the disk has it and the cache may not; and whatever
        // does not fit blocks.
        for (skew, len, offset) in [
            (skew, 4 * DIRECT_BLOCK, 0),
            (skew, 2 * DIRECT_BLOCK, DIRECT_BLOCK),
            (skew, 4 * DIRECT_BLOCK, 3 * DIRECT_BLOCK),
            (skew, DIRECT_BLOCK, 4 * DIRECT_BLOCK),
            (skew + 1, 4 * DIRECT_BLOCK, 0),
            (skew, 1000, 0),
            (skew, DIRECT_BLOCK, 5),
        ] {
            let buffer = &mut memory[skew..skew + len];
            let count = file.scan_at(buffer, offset as u64).expect("it is open");
            let wanted = &content[offset.min(content.len())..content.len().min(offset + len)];
            assert_eq!(buffer[..count], *wanted, "{len} bytes at {offset}");
        }
        file.sync_data().expect("it is open");
        forget(&directory.path("a"));
        let other = Disk.open(&directory.path("a")).expect("it is there");
        let buffer = &mut memory[skew..skew + 4 * DIRECT_BLOCK];
        assert_eq!(other.scan_at(buffer, 0).expect("it is open"), content.len());
        assert_eq!(buffer[..content.len()], content);
    }

    /// Takes a file out of the page cache, if the system likes to.
    #[cfg(target_os = "linux")]
    fn forget(path: &Path) {
        let file = fs::File::open(path).expect("it is there");
        fadvise(&file, 0, None, Advice::DontNeed).expect("it is a file");
    }

    #[cfg(not(target_os = "linux"))]
    fn forget(_: &Path) {}

    #[test]
    fn allocated_space_reads_as_zeroes_and_stays() {
        let directory = Directory::new("allocate");
        let file = Disk.create(&directory.path("a")).expect("it is new");
        file.write_at(b"x", 0).expect("it is open");
        file.allocate(1 << 16).expect("there is space");
        assert_eq!(file.size().expect("it is open"), 1 << 16);
        file.allocate(100).expect("it has more");
        assert_eq!(file.size().expect("it is open"), 1 << 16);
        let mut buffer = [1; 4];
        file.read_exact_at(&mut buffer, 0).expect("it is so long");
        assert_eq!(buffer, *b"x\0\0\0");
        let error = file.allocate(1 << 60).expect_err("nobody has as much");
        assert_ne!(error.kind(), io::ErrorKind::Unsupported);
    }

    #[test]
    fn names_are_moved_doubled_and_taken_away() {
        let directory = Directory::new("names");
        drop(Disk.create(&directory.path("a")).expect("it is new"));
        Disk.rename(&directory.path("a"), &directory.path("sub/b"))
            .expect("it is there");
        Disk.link(&directory.path("sub/b"), &directory.path("c"))
            .expect("it is there");
        let error = Disk
            .link(&directory.path("sub/b"), &directory.path("c"))
            .expect_err("there is one");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        Disk.unlink(&directory.path("sub/b")).expect("it is there");
        Disk.sync_dir(&directory.0).expect("it is a directory");
        let mut names = Disk.list(&directory.0).expect("it is a directory");
        names.sort();
        assert_eq!(names, ["c", "sub"]);
        assert!(
            Disk.list(&directory.path("sub"))
                .expect("it is one")
                .is_empty()
        );
        let error = Disk.list(&directory.path("x")).expect_err("there is none");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_lock_is_had_by_one_and_names_its_holder() {
        let directory = Directory::new("lock");
        let path = directory.path("LOCK");
        let held = Disk.lock(&path).expect("it is free");
        let error = Disk.lock(&path).expect_err("it is held");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        let holder = fs::read_to_string(&path).expect("it was written");
        assert_eq!(holder.trim(), std::process::id().to_string());
        drop(held);
        Disk.lock(&path).expect("it is free again");
    }

    #[test]
    fn free_space_is_told() {
        let directory = Directory::new("space");
        assert!(Disk.free_bytes(&directory.0).expect("it is there") > 0);
        assert!(Disk.free_bytes(&directory.path("none")).is_err());
    }
}
