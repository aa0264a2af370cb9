//! Writing past the page cache.
//!
//! What is written once and hardly ever read again does not belong into the page cache: finding, filling and
//! dropping its pages costs more than everything else about a write of many kilobytes. A file that is written
//! this way is opened a second time, because the choice belongs to the opening, and others read the file
//! through the first.
//!
//! Whether a file system can do it shows when it is tried. One that refuses, for whatever reason, is not
//! asked again for this file.

use std::fs;
use std::io;
use std::sync::OnceLock;

/// The second opening of a file, made when it is first needed.
#[derive(Debug, Default)]
pub(super) struct Direct(OnceLock<Option<fs::File>>);

impl Direct {
    /// Writes a beginning of `bytes` at `offset`, both whole blocks, past the page cache. How many bytes; 0
    /// if the file system refuses.
    ///
    /// # Errors
    /// What the system says of the disk.
    pub(super) fn write_at(&self, file: &fs::File, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let Some(direct) = self
            .0
            .get_or_init(|| reopen(file, fs::OpenOptions::new().write(true)))
        else {
            return Ok(0);
        };
        write_whole_blocks(direct, bytes, offset)
    }
}

/// Another opening of a file, to be read or written past the page cache; `None` if that cannot be.
#[cfg(target_os = "linux")]
pub(super) fn reopen(file: &fs::File, access: &mut fs::OpenOptions) -> Option<fs::File> {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::OpenOptionsExt;
    // By way of the descriptor: the file may have another name by now.
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    access.custom_flags(libc::O_DIRECT).open(path).ok()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn reopen(_: &fs::File, _: &mut fs::OpenOptions) -> Option<fs::File> {
    None
}

/// Whether an error says that a file system, or a device, cannot do it this way after all.
pub(super) fn is_refusal(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
    )
}

fn write_whole_blocks(file: &fs::File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    use std::os::unix::fs::FileExt;
    let mut done = 0;
    while done < bytes.len() {
        match file.write_at(&bytes[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(count) => {
                // What does not end with a block cannot go on from there.
                done += count & !(super::files::DIRECT_BLOCK - 1);
                if count % super::files::DIRECT_BLOCK != 0 {
                    break;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if is_refusal(&error) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}
