//! A disk with failures on demand, for tests of running programs: the files of [`Disk`], until a failure is
//! switched on. Builds for production lack it.
//!
//! Its failures: a write or a sync fails, there is no space, or the end of the process is a loss of power
//! ([`Trouble::Volatile`]). Names are not held back: they are durable at once.
//!
//! Invariant: bytes that are held back belong to a file, not to its writer: every reader of the file sees
//! them.

use std::collections::HashMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::disk::Disk;
use super::files::{File, Files, Lock};
use crate::ring::file::Places;

/// What is wrong with the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Trouble {
    /// Nothing.
    None = 0,
    /// Unsynced bytes are lost at any end of the process.
    Volatile = 1,
    /// Writes fail.
    Writes = 2,
    /// Syncs fail.
    Syncs = 3,
    /// There is no space left.
    Full = 4,
    /// There is no space left but what files have taken already.
    Taken = 5,
}

impl Trouble {
    /// All, with the words that choose them.
    pub const ALL: [(&'static str, Trouble); 6] = [
        ("none", Trouble::None),
        ("volatile", Trouble::Volatile),
        ("writes", Trouble::Writes),
        ("syncs", Trouble::Syncs),
        ("full", Trouble::Full),
        ("taken", Trouble::Taken),
    ];
}

/// See the module.
#[derive(Debug, Default)]
pub struct Faulty {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    trouble: AtomicU8,
    /// What is held back, by the names of files.
    held: Mutex<HashMap<PathBuf, Arc<Held>>>,
}

/// Writes that are held back from a file, oldest first: where, and what.
type Held = Mutex<Vec<(u64, Vec<u8>)>>;

#[derive(Debug)]
struct FaultyFile {
    file: Box<dyn File>,
    shared: Arc<Shared>,
    held: Arc<Held>,
}

/// Nothing that is locked here is left half done by a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn has(&self, trouble: Trouble) -> bool {
        self.trouble.load(Ordering::Relaxed) == trouble as u8
    }

    fn check_space(&self) -> io::Result<()> {
        if self.has(Trouble::Full) {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        Ok(())
    }
}

impl Faulty {
    /// What is wrong from here on.
    pub fn set_trouble(&self, trouble: Trouble) {
        self.shared.trouble.store(trouble as u8, Ordering::Relaxed);
    }

    /// Ends this trouble, if it is what is wrong.
    pub fn end_trouble(&self, trouble: Trouble) {
        let (now, none) = (trouble as u8, Trouble::None as u8);
        let at = &self.shared.trouble;
        let _ = at.compare_exchange(now, none, Ordering::Relaxed, Ordering::Relaxed);
    }

    fn file(&self, path: &Path, file: Box<dyn File>) -> Box<dyn File> {
        let held = lock(&self.shared.held)
            .entry(path.to_owned())
            .or_default()
            .clone();
        Box::new(FaultyFile {
            file,
            shared: self.shared.clone(),
            held,
        })
    }
}

impl Files for Faulty {
    fn create(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.shared.check_space()?;
        Ok(self.file(path, Disk.create(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        Ok(self.file(path, Disk.open(path)?))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        Disk.list(directory)
    }

    fn create_directory(&self, directory: &Path) -> io::Result<()> {
        Disk.create_directory(directory)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Disk.rename(from, to)?;
        let mut held = lock(&self.shared.held);
        match held.remove(from) {
            Some(its) => drop(held.insert(to.to_owned(), its)),
            None => drop(held.remove(to)),
        }
        Ok(())
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        Disk.link(from, to)?;
        let mut held = lock(&self.shared.held);
        if let Some(its) = held.get(from).cloned() {
            held.insert(to.to_owned(), its);
        }
        Ok(())
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        Disk.unlink(path)?;
        lock(&self.shared.held).remove(path);
        Ok(())
    }

    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        if self.shared.has(Trouble::Syncs) {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        Disk.sync_dir(directory)
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        let free = Disk.free_bytes(path)?;
        let is_full = self.shared.has(Trouble::Full) || self.shared.has(Trouble::Taken);
        Ok(if is_full { 0 } else { free })
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        Disk.lock(path)
    }

    fn ring_places(&self, directory: &Path) -> io::Result<Places> {
        Disk.ring_places(directory)
    }
}

impl FaultyFile {
    /// Whether the file may have so many bytes.
    fn check_growth(&self, bytes: u64) -> io::Result<()> {
        if self.shared.has(Trouble::Taken) && bytes > self.file.size()? {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        Ok(())
    }

    /// Writes by `write`, or keeps it back.
    fn write(
        &self,
        bytes: &[u8],
        offset: u64,
        write: fn(&dyn File, &[u8], u64) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.shared.has(Trouble::Writes) {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        self.shared.check_space()?;
        self.check_growth(offset + bytes.len() as u64)?;
        let mut held = lock(&self.held);
        if held.is_empty() && !self.shared.has(Trouble::Volatile) {
            return write(&*self.file, bytes, offset);
        }
        held.push((offset, bytes.to_vec()));
        Ok(())
    }
}

impl File for FaultyFile {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write(bytes, offset, |file, bytes, at| file.write_at(bytes, at))
    }

    fn write_direct_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write(bytes, offset, |file, bytes, at| {
            file.write_direct_at(bytes, at)
        })
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let held = lock(&self.held);
        if held.is_empty() {
            drop(held);
            return self.file.read_at(buffer, offset);
        }
        let size = self.file.size()?.max(end_of(&held));
        let wanted = size.saturating_sub(offset).min(buffer.len() as u64) as usize;
        let buffer = &mut buffer[..wanted];
        let mut filled = 0;
        while filled < buffer.len() {
            match self
                .file
                .read_at(&mut buffer[filled..], offset + filled as u64)?
            {
                0 => break,
                count => filled += count,
            }
        }
        buffer[filled..].fill(0);
        let until = offset + wanted as u64;
        for (at, bytes) in held.iter() {
            let (from, to) = ((*at).max(offset), (at + bytes.len() as u64).min(until));
            if from < to {
                let new = &bytes[(from - at) as usize..(to - at) as usize];
                buffer[(from - offset) as usize..(to - offset) as usize].copy_from_slice(new);
            }
        }
        Ok(wanted)
    }

    fn scan_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        if lock(&self.held).is_empty() {
            return self.file.scan_at(buffer, offset);
        }
        self.read_at(buffer, offset)
    }

    fn read_cached_at(&self, buffer: &mut [u8], offset: u64) -> bool {
        lock(&self.held).is_empty() && self.file.read_cached_at(buffer, offset)
    }

    fn size(&self) -> io::Result<u64> {
        let held = lock(&self.held);
        Ok(self.file.size()?.max(end_of(&held)))
    }

    fn set_size(&self, bytes: u64) -> io::Result<()> {
        let mut held = lock(&self.held);
        for (at, its) in held.iter_mut() {
            its.truncate(bytes.saturating_sub(*at) as usize);
        }
        held.retain(|(_, its)| !its.is_empty());
        self.file.set_size(bytes)
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        self.shared.check_space()?;
        self.check_growth(bytes)?;
        self.file.allocate(bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        if self.shared.has(Trouble::Syncs) {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        {
            let mut held = lock(&self.held);
            for (at, bytes) in held.drain(..) {
                self.file.write_at(&bytes, at)?;
            }
        }
        // Not under the lock: writers do not wait for a sync of a real disk either.
        self.file.sync_data()
    }

    fn will_need(&self, offset: u64, bytes: u64) {
        self.file.will_need(offset, bytes);
    }

    fn write_back(&self, offset: u64, bytes: u64) {
        self.file.write_back(offset, bytes);
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        let is_all_there = lock(&self.held).is_empty();
        is_all_there.then(|| self.file.descriptor())?
    }
}

fn end_of(held: &[(u64, Vec<u8>)]) -> u64 {
    held.iter()
        .map(|(at, bytes)| at + bytes.len() as u64)
        .max()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory of its own, gone at the end.
    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Directory {
            let name = format!("ferrite-faulty-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            Disk.create_directory(&path).expect("a directory");
            Directory(path)
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn contents(file: &dyn File) -> Vec<u8> {
        let mut bytes = vec![9; 64];
        let count = file.read_at(&mut bytes, 0).expect("it is open");
        bytes.truncate(count);
        bytes
    }

    #[test]
    fn what_is_not_synced_is_seen_by_all_and_lost_with_the_process() {
        let directory = Directory::new("volatile");
        let disk = Faulty::default();
        let file = disk.create(&directory.path("a")).expect("it is new");
        file.write_at(b"0123456789", 0).expect("all is well");
        disk.set_trouble(Trouble::Volatile);
        file.write_at(b"abc", 2).expect("all is well");
        file.write_at(b"BC!", 3).expect("all is well");
        file.write_at(b"end", 12).expect("all is well");
        disk.rename(&directory.path("a"), &directory.path("b"))
            .expect("it is there");
        let other = disk.open(&directory.path("b")).expect("it is there");
        for seen in [&file, &other] {
            assert_eq!(contents(&**seen), b"01aBC!6789\0\0end");
            assert_eq!(seen.size().expect("it is open"), 15);
        }
        let mut part = [0; 4];
        other.read_exact_at(&mut part, 4).expect("it is so long");
        assert_eq!(&part, b"C!67");
        let survivor = Disk.open(&directory.path("b")).expect("it is there");
        assert_eq!(contents(&*survivor), b"0123456789");
        other.set_size(13).expect("it is open");
        assert_eq!(contents(&*file), b"01aBC!6789\0\0e");
        disk.set_trouble(Trouble::None);
        file.write_at(b"x", 0).expect("all is well");
        assert_eq!(contents(&*other), b"x1aBC!6789\0\0e");
        assert!(contents(&*survivor).starts_with(b"0123456789"));
        other.sync_data().expect("all is well");
        assert_eq!(contents(&*survivor), b"x1aBC!6789\0\0e");
    }

    #[test]
    fn each_trouble_is_what_its_name_says() {
        let directory = Directory::new("troubles");
        let disk = Faulty::default();
        let file = disk.create(&directory.path("a")).expect("it is new");
        let works = |trouble| {
            disk.set_trouble(trouble);
            let free = disk.free_bytes(&directory.0).expect("it is there") > 0;
            let results = [
                file.write_at(b"x", 0).is_ok(),
                file.allocate(100).is_ok(),
                file.sync_data().is_ok(),
                disk.sync_dir(&directory.0).is_ok(),
                free,
            ];
            results.map(u8::from)
        };
        for (trouble, expected) in [
            (Trouble::None, [1, 1, 1, 1, 1]),
            (Trouble::Volatile, [1, 1, 1, 1, 1]),
            (Trouble::Writes, [0, 1, 1, 1, 1]),
            (Trouble::Syncs, [1, 1, 0, 0, 1]),
            (Trouble::Full, [0, 0, 1, 1, 0]),
            // The file has taken a hundred bytes before.
            (Trouble::Taken, [1, 1, 1, 1, 0]),
            (Trouble::None, [1, 1, 1, 1, 1]),
        ] {
            assert_eq!(works(trouble), expected, "{trouble:?}");
        }
        let error = file.write_at(b"x", 0).err();
        assert!(error.is_none());
        disk.set_trouble(Trouble::Taken);
        for grown in [file.write_at(b"x", 100), file.allocate(101)] {
            let error = grown.expect_err("it grows");
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        }
        disk.set_trouble(Trouble::Full);
        let error = file.write_at(b"x", 0).expect_err("it is full");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
