//! What a disk is for whoever keeps data: see [`crate::file`] for what a caller may rely on.

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;

use crate::ring::file::Places;

/// What [`File::write_direct_at`] and [`File::scan_at`] want everything to be a multiple of: no disk has
/// larger blocks.
pub const DIRECT_BLOCK: usize = 4096;

/// A file system.
pub trait Files: Send + Sync + fmt::Debug {
    /// Makes a new, empty file.
    ///
    /// # Errors
    /// `AlreadyExists`, or what the system says.
    fn create(&self, path: &Path) -> io::Result<Box<dyn File>>;

    /// Opens an existing file to read and write it.
    ///
    /// # Errors
    /// `NotFound`, or what the system says.
    fn open(&self, path: &Path) -> io::Result<Box<dyn File>>;

    /// The names in a directory, in no order. Names that are not Unicode are left out.
    ///
    /// # Errors
    /// `NotFound`, or what the system says.
    fn list(&self, directory: &Path) -> io::Result<Vec<String>>;

    /// Makes a directory, and those above it that are missing. One that exists is fine.
    ///
    /// # Errors
    /// What the system says.
    fn create_directory(&self, directory: &Path) -> io::Result<()>;

    /// Gives a file another name, in place of whatever has it.
    ///
    /// # Errors
    /// `NotFound`, or what the system says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives a file a second name.
    ///
    /// # Errors
    /// `AlreadyExists`, `CrossesDevices`, or what the system says.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Takes a name away; the file goes with its last name.
    ///
    /// # Errors
    /// `NotFound`, or what the system says.
    fn unlink(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a directory durable as they are now.
    ///
    /// # Errors
    /// What the system says; see the module.
    fn sync_dir(&self, directory: &Path) -> io::Result<()>;

    /// Bytes that this process may still write to the file system that holds `path`.
    ///
    /// # Errors
    /// What the system says.
    fn free_bytes(&self, path: &Path) -> io::Result<u64>;

    /// Takes a lock that one process can have, on a file that is made if it is missing, and writes
    /// this process' number into it. The lock ends when the value is dropped, or the process ends.
    ///
    /// # Errors
    /// `WouldBlock` if another has it; or what the system says.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>>;

    /// Where the memory of a ring can be for whoever keeps data in a directory, which exists, so that it
    /// outlives the process.
    ///
    /// # Errors
    /// Nowhere.
    fn ring_places(&self, _directory: &Path) -> io::Result<Places> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// An open file.
pub trait File: Send + Sync + fmt::Debug {
    /// Writes all of `bytes` at `offset`.
    ///
    /// # Errors
    /// What the system says; any part may have been written then.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// As [`File::write_at`], past the page cache where the file system can do that: for large writes of what
    /// will hardly be read soon. Offset, length and the address of `bytes` should be multiples of
    /// [`DIRECT_BLOCK`]; else it may take the other way.
    ///
    /// # Errors
    /// As [`File::write_at`].
    fn write_direct_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_at(bytes, offset)
    }

    /// Reads into `buffer` from `offset` on; how many bytes, 0 at the end of the file only.
    ///
    /// # Errors
    /// What the system says.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// [`File::read_at`] for who reads a file once: leaves no trace in the page cache, if offset, length and
    /// memory are whole blocks ([`DIRECT_BLOCK`]) and the file system can do that. The end of the file may be
    /// inside of a block.
    ///
    /// # Errors
    /// What the system says.
    fn scan_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.read_at(buffer, offset)
    }

    /// Fills `buffer` from `offset` on if that takes no waiting for a disk. Whether it did; if not,
    /// [`File::read_at`] says why.
    fn read_cached_at(&self, _buffer: &mut [u8], _offset: u64) -> bool {
        false
    }

    /// Bytes of the file.
    ///
    /// # Errors
    /// What the system says.
    fn size(&self) -> io::Result<u64>;

    /// Cuts the file, or extends it with zeroes.
    ///
    /// # Errors
    /// What the system says.
    fn set_size(&self, bytes: u64) -> io::Result<()>;

    /// Takes space for the first `bytes` bytes, extending the file with zeroes if it is shorter.
    ///
    /// # Errors
    /// `StorageFull`, or what the system says.
    fn allocate(&self, bytes: u64) -> io::Result<()>;

    /// Makes what was written, and the size, durable.
    ///
    /// # Errors
    /// What the system says; see the module.
    fn sync_data(&self) -> io::Result<()>;

    /// Tells that a range will be read soon. A hint: it cannot fail.
    fn will_need(&self, offset: u64, bytes: u64);

    /// Tells that the disk may begin to write a range that was written here, so that a sync has less to wait
    /// for. A hint.
    fn write_back(&self, _offset: u64, _bytes: u64) {}

    /// The system's file, for calls that move its bytes elsewhere. `None` if it is none, or if something is
    /// kept back from it.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Fills `buffer` from `offset` on.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file ends before; or what the system says.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while done < buffer.len() {
            match self.read_at(&mut buffer[done..], offset + done as u64)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => done += count,
            }
        }
        Ok(())
    }
}

/// A lock that is held until it is dropped.
pub trait Lock: Send + Sync + fmt::Debug {}
