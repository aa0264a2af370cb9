//! A file system in memory that keeps after a power loss only what it must.
//!
//! Every file has its contents as they are seen, and for each sector that was written since the last sync all
//! versions it had. Losing power picks one version of each such sector, independently: writes are lost,
//! reordered and torn. Names are changed by operations that are durable when their directory is synced;
//! losing power keeps a beginning of the others, directory by directory.
//!
//! The ring's memory is a real file in a directory of the disk's own, which a power loss leaves there, too,
//! but with another boot: nobody may read it then. A process that is killed leaves it as it is.
//!
//! Every call is counted, and one of them can be made to fail.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use sys::file::{DIRECT_BLOCK, File, Files, Lock};
use sys::ring::file::Places;

const SECTOR: usize = 512;

#[derive(Clone, Debug)]
pub(crate) struct Simulator {
    disk: Arc<Mutex<Disk>>,
}

#[derive(Debug, Default)]
struct Disk {
    inodes: Vec<Inode>,
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    pending: Vec<Change>,
    is_locked: bool,
    capacity: u64,
    calls: u64,
    fault: Option<Fault>,
    /// The next call of this name fails.
    failing: Option<(&'static str, ErrorKind)>,
    is_off: bool,
    /// Bytes written past the page cache.
    direct_bytes: u64,
    /// What was done, for a person who looks at a failure.
    history: Vec<String>,
    memory: Arc<Memory>,
    boot: u8,
}

/// A directory for rings, gone with the last disk that has it. A log that a test forgets, as a kill would,
/// keeps its disk for ever: the directory goes with the test's thread then.
#[derive(Debug)]
struct Memory(PathBuf);

/// Directories of one thread's disks.
#[derive(Default)]
struct Made(Vec<PathBuf>);

thread_local! {
    static MADE: RefCell<Made> = RefCell::default();
}

impl Drop for Made {
    fn drop(&mut self) {
        for path in &self.0 {
            let _ = std::fs::remove_dir_all(path);
        }
    }
}

impl Default for Memory {
    fn default() -> Memory {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("ferrite-simulator-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("the directory for temporary files is writable");
        MADE.with_borrow_mut(|made| made.0.push(path.clone()));
        Memory(path)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What one call of all does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    /// The number of the call, from 0.
    pub(crate) call: u64,
    pub(crate) kind: FaultKind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum FaultKind {
    /// This call fails, the next ones work.
    Error(ErrorKind),
    /// This and all later calls fail.
    PowerLoss,
}

#[derive(Clone, Debug, Default)]
struct Inode {
    bytes: Vec<u8>,
    /// Versions of sectors since the last sync, the durable one first.
    versions: BTreeMap<usize, Vec<Vec<u8>>>,
    /// Sizes since the last sync, the durable one first.
    sizes: Vec<usize>,
}

#[derive(Clone, Debug)]
enum Change {
    Add(PathBuf, usize),
    Remove(PathBuf),
    Rename(PathBuf, PathBuf),
}

impl Change {
    fn touches(&self, directory: &Path) -> bool {
        let is_in = |path: &Path| path.parent() == Some(directory);
        match self {
            Change::Add(path, _) | Change::Remove(path) => is_in(path),
            Change::Rename(from, to) => is_in(from) || is_in(to),
        }
    }

    fn directory(&self) -> PathBuf {
        match self {
            Change::Add(path, _) | Change::Remove(path) | Change::Rename(_, path) => {
                path.parent().expect("it is in a directory").to_owned()
            }
        }
    }

    fn apply(&self, names: &mut BTreeMap<PathBuf, usize>) {
        match self {
            Change::Add(path, inode) => drop(names.insert(path.clone(), *inode)),
            Change::Remove(path) => drop(names.remove(path)),
            Change::Rename(from, to) => {
                if let Some(inode) = names.remove(from) {
                    names.insert(to.clone(), inode);
                }
            }
        }
    }
}

impl Inode {
    fn write(&mut self, bytes: &[u8], offset: usize) {
        let end = offset + bytes.len();
        if end > self.bytes.len() {
            self.resize(end);
        }
        let sectors = offset / SECTOR..end.div_ceil(SECTOR);
        for sector in sectors.clone() {
            let old = self.sector(sector);
            self.versions.entry(sector).or_insert_with(|| vec![old]);
        }
        self.bytes[offset..end].copy_from_slice(bytes);
        for sector in sectors {
            let new = self.sector(sector);
            self.versions.entry(sector).or_default().push(new);
        }
    }

    fn sector(&self, number: usize) -> Vec<u8> {
        let start = (number * SECTOR).min(self.bytes.len());
        let mut sector = self.bytes[start..(start + SECTOR).min(self.bytes.len())].to_vec();
        sector.resize(SECTOR, 0);
        sector
    }

    fn resize(&mut self, size: usize) {
        if self.sizes.is_empty() {
            self.sizes.push(self.bytes.len());
        }
        // What is cut off may come back with the old size, and must not if the file grows again.
        for sector in size / SECTOR..self.bytes.len().div_ceil(SECTOR) {
            let old = self.sector(sector);
            let mut kept = old.clone();
            kept[size.saturating_sub(sector * SECTOR)..].fill(0);
            self.versions
                .entry(sector)
                .or_insert_with(|| vec![old])
                .push(kept);
        }
        self.bytes.resize(size, 0);
        self.sizes.push(size);
    }

    fn sync(&mut self) {
        self.versions.clear();
        self.sizes.clear();
    }

    fn lose_power(&mut self, random: &mut fastrand::Rng) {
        if let Some(&size) = pick(&self.sizes, random) {
            self.bytes.resize(size, 0);
        }
        for (sector, versions) in std::mem::take(&mut self.versions) {
            let start = sector * SECTOR;
            if start < self.bytes.len() {
                let end = self.bytes.len().min(start + SECTOR);
                let version = pick(&versions, random).expect("the durable one is always there");
                self.bytes[start..end].copy_from_slice(&version[..end - start]);
            }
        }
        self.sizes.clear();
    }
}

/// Mostly the first or the last, sometimes one in between.
fn pick<'a, T>(of: &'a [T], random: &mut fastrand::Rng) -> Option<&'a T> {
    match random.u8(..5) {
        0 | 1 => of.first(),
        2 | 3 => of.last(),
        _ if of.is_empty() => None,
        _ => Some(&of[random.usize(..of.len())]),
    }
}

impl Default for Simulator {
    fn default() -> Simulator {
        Simulator::new()
    }
}

impl Simulator {
    pub(crate) fn new() -> Simulator {
        let disk = Disk {
            capacity: u64::MAX,
            ..Disk::default()
        };
        Simulator {
            disk: Arc::new(Mutex::new(disk)),
        }
    }

    fn disk(&self) -> std::sync::MutexGuard<'_, Disk> {
        self.disk.lock().expect("no test panics inside")
    }

    /// The disk as it is after power was lost now.
    pub(crate) fn after_power_loss(&self, seed: u64) -> Simulator {
        let mut random = fastrand::Rng::with_seed(seed);
        let disk = self.disk();
        let mut inodes = disk.inodes.clone();
        for inode in &mut inodes {
            inode.lose_power(&mut random);
        }
        let mut names = disk.durable_names.clone();
        let mut left: BTreeMap<PathBuf, usize> = BTreeMap::new();
        for change in &disk.pending {
            *left.entry(change.directory()).or_default() += 1;
        }
        for count in left.values_mut() {
            *count = random.usize(..=*count);
        }
        for change in &disk.pending {
            let left = left.get_mut(&change.directory()).expect("it was counted");
            if *left > 0 {
                *left -= 1;
                change.apply(&mut names);
            }
        }
        let after = Simulator::with(inodes, names, &disk);
        after.disk().history = disk.history.clone();
        after.disk().boot += 1;
        after
    }

    /// The disk as another process finds it after this one was killed: nothing is lost yet, and nothing is
    /// more durable than it was.
    pub(crate) fn after_kill(&self) -> Simulator {
        let disk = self.disk();
        let after = Simulator::with(disk.inodes.clone(), disk.durable_names.clone(), &disk);
        {
            let mut new = after.disk();
            new.history = disk.history.clone();
            new.names = disk.names.clone();
            new.pending = disk.pending.clone();
        }
        after
    }

    fn with(inodes: Vec<Inode>, names: BTreeMap<PathBuf, usize>, before: &Disk) -> Simulator {
        let disk = Disk {
            inodes,
            durable_names: names.clone(),
            names,
            capacity: before.capacity,
            memory: before.memory.clone(),
            boot: before.boot,
            ..Disk::default()
        };
        Simulator {
            disk: Arc::new(Mutex::new(disk)),
        }
    }

    pub(crate) fn set_fault(&self, fault: Option<Fault>) {
        self.disk().fault = fault;
    }

    /// Cuts the power at the call behind so many more, while others call.
    pub(crate) fn cut_power_behind(&self, calls: u64) {
        let mut disk = self.disk();
        disk.fault = Some(Fault {
            call: disk.calls + calls,
            kind: FaultKind::PowerLoss,
        });
    }

    /// Lets the next call of this name fail.
    pub(crate) fn fail_next(&self, what: &'static str, kind: ErrorKind) {
        self.disk().failing = Some((what, kind));
    }

    pub(crate) fn set_capacity(&self, bytes: u64) {
        self.disk().capacity = bytes;
    }

    /// Bytes that files take.
    pub(crate) fn used(&self) -> u64 {
        self.disk().used()
    }

    /// Bytes that were written past the page cache.
    pub(crate) fn direct_bytes(&self) -> u64 {
        self.disk().direct_bytes
    }

    pub(crate) fn calls(&self) -> u64 {
        self.disk().calls
    }

    pub(crate) fn history(&self) -> Vec<String> {
        self.disk().history.clone()
    }

    /// All names of files.
    pub(crate) fn names(&self) -> Vec<PathBuf> {
        self.disk().names.keys().cloned().collect()
    }

    pub(crate) fn contents(&self, path: &Path) -> Vec<u8> {
        let disk = self.disk();
        disk.inodes[disk.names[path]].bytes.clone()
    }

    /// The file of the ring that a process has left, or has now.
    pub(crate) fn ring(&self) -> Option<PathBuf> {
        let left = self
            .ring_places(Path::new("/"))
            .expect("there are some")
            .left();
        assert!(left.len() <= 1, "{left:?}");
        left.first().cloned()
    }

    /// Changes a file behind everybody's back.
    pub(crate) fn damage(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
        let mut disk = self.disk();
        let inode = disk.names[path];
        change(&mut disk.inodes[inode].bytes);
    }

    pub(crate) fn remove(&self, path: &Path) {
        let mut disk = self.disk();
        disk.names.remove(path).expect("it was there");
        disk.durable_names.remove(path);
    }
}

impl Disk {
    /// Counts a call and says whether it fails.
    fn call(&mut self, what: &str, path: &Path) -> io::Result<()> {
        let number = self.calls;
        self.calls += 1;
        if self.history.len() < 20_000 {
            self.history
                .push(format!("{number}: {what} {}", path.display()));
        }
        if self.is_off {
            return Err(io::Error::other("the power is off"));
        }
        if let Some((_, kind)) = self.failing.take_if(|(failing, _)| *failing == what) {
            return Err(kind.into());
        }
        match self.fault {
            Some(fault) if fault.call == number => match fault.kind {
                FaultKind::Error(kind) => Err(kind.into()),
                FaultKind::PowerLoss => {
                    self.is_off = true;
                    Err(io::Error::other("the power is off"))
                }
            },
            _ => Ok(()),
        }
    }

    fn used(&self) -> u64 {
        let mut inodes: Vec<usize> = self.names.values().copied().collect();
        inodes.sort_unstable();
        inodes.dedup();
        inodes
            .iter()
            .map(|&inode| self.inodes[inode].bytes.len() as u64)
            .sum()
    }

    fn find(&self, path: &Path) -> io::Result<usize> {
        self.names
            .get(path)
            .copied()
            .ok_or_else(|| ErrorKind::NotFound.into())
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.names);
        self.pending.push(change);
    }
}

#[derive(Debug)]
struct Handle {
    simulator: Simulator,
    inode: usize,
    path: PathBuf,
}

#[derive(Debug)]
struct Held(Simulator);

impl Lock for Held {}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.disk().is_locked = false;
    }
}

impl Files for Simulator {
    fn create(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let mut disk = self.disk();
        disk.call("create", path)?;
        if disk.names.contains_key(path) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        disk.inodes.push(Inode::default());
        let inode = disk.inodes.len() - 1;
        disk.change(Change::Add(path.to_owned(), inode));
        Ok(Box::new(Handle {
            simulator: self.clone(),
            inode,
            path: path.to_owned(),
        }))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let mut disk = self.disk();
        disk.call("open", path)?;
        let inode = disk.find(path)?;
        Ok(Box::new(Handle {
            simulator: self.clone(),
            inode,
            path: path.to_owned(),
        }))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        let mut disk = self.disk();
        disk.call("list", directory)?;
        let inside = disk
            .names
            .keys()
            .filter(|path| path.parent() == Some(directory));
        Ok(inside
            .map(|path| {
                path.file_name()
                    .expect("a name")
                    .to_string_lossy()
                    .into_owned()
            })
            .collect())
    }

    fn create_directory(&self, directory: &Path) -> io::Result<()> {
        self.disk().call("create_directory", directory)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut disk = self.disk();
        disk.call("rename", to)?;
        disk.find(from)?;
        disk.change(Change::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut disk = self.disk();
        disk.call("link", to)?;
        let inode = disk.find(from)?;
        if disk.names.contains_key(to) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        disk.change(Change::Add(to.to_owned(), inode));
        Ok(())
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        let mut disk = self.disk();
        disk.call("unlink", path)?;
        disk.find(path)?;
        disk.change(Change::Remove(path.to_owned()));
        Ok(())
    }

    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        let mut disk = self.disk();
        disk.call("sync_dir", directory)?;
        let pending = std::mem::take(&mut disk.pending);
        for change in pending {
            if change.touches(directory) {
                change.apply(&mut disk.durable_names);
            } else {
                disk.pending.push(change);
            }
        }
        Ok(())
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        let mut disk = self.disk();
        disk.call("free_bytes", path)?;
        Ok(disk.capacity.saturating_sub(disk.used()))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        let mut disk = self.disk();
        disk.call("lock", path)?;
        if disk.is_locked {
            return Err(ErrorKind::WouldBlock.into());
        }
        disk.is_locked = true;
        Ok(Box::new(Held(self.clone())))
    }

    fn ring_places(&self, _directory: &Path) -> io::Result<Places> {
        let disk = self.disk();
        Ok(Places {
            directory: "/data".into(),
            mounts: 1,
            boot: [disk.boot; 16],
            owner: [1; 16],
            memory: Ok(disk.memory.0.clone()),
            beside: Err("the disk is not there".into()),
        })
    }
}

impl Handle {
    fn disk(&self) -> std::sync::MutexGuard<'_, Disk> {
        self.simulator.disk()
    }

    /// Whether the file may grow to `size`.
    fn check_space(&self, disk: &Disk, size: usize) -> io::Result<()> {
        let growth = size.saturating_sub(disk.inodes[self.inode].bytes.len()) as u64;
        if disk.used() + growth > disk.capacity {
            return Err(ErrorKind::StorageFull.into());
        }
        Ok(())
    }
}

impl File for Handle {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut disk = self.disk();
        let offset = offset as usize;
        let result = disk.call("write", &self.path);
        if let Err(error) = result {
            // A write that fails may have written something.
            let half = bytes.len() / 2;
            if self.check_space(&disk, offset + half).is_ok() {
                disk.inodes[self.inode].write(&bytes[..half], offset);
            }
            return Err(error);
        }
        self.check_space(&disk, offset + bytes.len())?;
        disk.inodes[self.inode].write(bytes, offset);
        Ok(())
    }

    fn write_direct_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let parts = [bytes.len(), bytes.as_ptr().addr(), offset as usize];
        let is_aligned = |part: usize| part.is_multiple_of(DIRECT_BLOCK);
        assert!(parts.into_iter().all(is_aligned), "{parts:?}");
        self.disk().direct_bytes += bytes.len() as u64;
        self.write_at(bytes, offset)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut disk = self.disk();
        disk.call("read", &self.path)?;
        let bytes = &disk.inodes[self.inode].bytes;
        let start = (offset as usize).min(bytes.len());
        let count = buffer.len().min(bytes.len() - start);
        buffer[..count].copy_from_slice(&bytes[start..start + count]);
        Ok(count)
    }

    fn size(&self) -> io::Result<u64> {
        let mut disk = self.disk();
        disk.call("size", &self.path)?;
        Ok(disk.inodes[self.inode].bytes.len() as u64)
    }

    fn set_size(&self, bytes: u64) -> io::Result<()> {
        let mut disk = self.disk();
        disk.call("set_size", &self.path)?;
        self.check_space(&disk, bytes as usize)?;
        disk.inodes[self.inode].resize(bytes as usize);
        Ok(())
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        let mut disk = self.disk();
        disk.call("allocate", &self.path)?;
        self.check_space(&disk, bytes as usize)?;
        if disk.inodes[self.inode].bytes.len() < bytes as usize {
            disk.inodes[self.inode].resize(bytes as usize);
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut disk = self.disk();
        disk.call("sync", &self.path)?;
        disk.inodes[self.inode].sync();
        Ok(())
    }

    fn will_need(&self, _offset: u64, _bytes: u64) {}
}
