//! Space on the disk: what is free, what the log keeps for itself, and what segments take.

use std::sync::atomic::Ordering;

use sys::file::File;

use crate::core::Core;
use crate::error::{Error, Result};
use crate::limits::{LEFT_SHARE, TIGHT_MIN, TIGHT_SHARE};
use crate::lock::lock;
use crate::segment::BLOCK;

/// Whether an error means that there is no space.
pub(crate) fn is_full(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded
    )
}

/// Whether an error of the log means that there is no space.
pub(crate) fn is_lack(error: &Error) -> bool {
    matches!(error, Error::Io { error, .. } if is_full(error))
}

/// Whether there is space for so many bytes beside the reserve.
pub(crate) fn is_there(core: &Core, bytes: u64) -> Result<bool> {
    Ok(look(core)? >= bytes.saturating_add(core.options.reserve_bytes))
}

/// Bytes that are free now. Notes them for those who append.
pub(crate) fn look(core: &Core) -> Result<u64> {
    let log = &core.paths.log;
    let free = core.files.free_bytes(log);
    let free = free.map_err(|error| Error::io("cannot ask for free space of", log, error))?;
    core.free_bytes.store(free, Ordering::Relaxed);
    Ok(free)
}

pub(crate) fn too_little(core: &Core, free: u64, wanted: u64) -> Error {
    let text = format!("{free} bytes are free and {wanted} are kept in reserve");
    let error = std::io::Error::new(std::io::ErrorKind::StorageFull, text);
    Error::io("not enough space in", &core.paths.log, error)
}

/// Looks whether a file of so many bytes leaves the reserve alone.
///
/// # Errors
/// It does not.
pub(crate) fn check(core: &Core, bytes: u64) -> Result<()> {
    if is_there(core, bytes)? {
        return Ok(());
    }
    let free = core.free_bytes.load(Ordering::Relaxed);
    let wanted = core.options.reserve_bytes.saturating_add(bytes);
    Err(too_little(core, free, wanted))
}

/// Takes space for a segment: all that it may need, or part of what there is where the disk would be nearly
/// full then. Returns the bytes of the file that have space, and the bytes of records after which the segment
/// ends.
pub(crate) fn take(
    core: &Core,
    file: &dyn File,
    header_bytes: u64,
    is_start: bool,
) -> std::io::Result<(u64, u64)> {
    let full = header_bytes + room(core);
    // What an earlier run has left for this one.
    let left = file.size()?;
    let has_space = left >= full;
    // A disk that does not tell what is free says it when space is taken.
    let free = core.files.free_bytes(&core.paths.log).unwrap_or(u64::MAX);
    if has_space || free >= full.saturating_add(core.options.reserve_bytes) {
        match file.allocate(full) {
            Ok(()) => {
                note_low(core);
                return Ok((full, core.options.segment_bytes));
            }
            Err(error) if !is_full(&error) => return Err(error),
            // What a call has taken that failed is given back.
            Err(_) => file.set_size(left)?,
        }
    }
    let bytes = free.min(core.options.segment_bytes) / TIGHT_SHARE;
    let header_blocks = header_bytes.next_multiple_of(BLOCK as u64);
    let bytes = bytes.max(TIGHT_MIN).max(left.saturating_sub(header_blocks));
    let bytes = bytes.min(core.options.segment_bytes);
    let mut bytes = bytes.next_multiple_of(BLOCK as u64);
    let mut allocated = header_blocks + bytes;
    while let Err(error) = file.allocate(allocated) {
        // A start takes whatever there is: what is in the log can be read then.
        if !is_full(&error) || !is_start || bytes <= BLOCK as u64 {
            return Err(error);
        }
        file.set_size(left)?;
        bytes = (bytes / 2).next_multiple_of(BLOCK as u64);
        allocated = header_blocks + bytes;
    }
    note_low(core);
    Ok((allocated, bytes))
}

/// Refuses writes from here on if the reserve is not free, not when the keeper looks the next time: what is
/// accepted until then may be more than the reserve.
fn note_low(core: &Core) {
    if let Err(error) = check(core, 0) {
        core.set_low(error.to_string());
    }
}

/// Bytes of space that a segment takes: its limit, and room for the record that reaches it.
pub(crate) fn room(core: &Core) -> u64 {
    core.options.segment_bytes + core.credit.window
}

/// Takes space for the next run before this one ends: another program may fill the disk in between. The next
/// run then starts, and deletes keys. As much as there is, where that is less than it should be.
pub(crate) fn leave(core: &Core) {
    let _one = lock(&core.spare_lock);
    let spare = core.paths.temporary("next");
    let file = match core.files.open(&spare) {
        Ok(file) => Ok(file),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => core.files.create(&spare),
        Err(error) => Err(error),
    };
    let mut bytes = core.options.reserve_bytes / LEFT_SHARE;
    while let Ok(file) = &file
        && bytes >= BLOCK as u64
    {
        let wanted = 2 * BLOCK as u64 + bytes;
        let taken = file.allocate(wanted).and_then(|()| file.set_size(wanted));
        if taken.and_then(|()| file.sync_data()).is_ok() {
            return;
        }
        let _ = file.set_size(0);
        bytes /= 2;
    }
    let _ = core.files.unlink(&spare);
}

/// Takes space for the next segment, if that has not been done.
pub(crate) fn prepare(core: &Core) -> Result<()> {
    let _one = lock(&core.spare_lock);
    let spare = core.paths.temporary("next");
    let file = match core.files.create(&spare) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Ok(()),
        Err(error) => return Err(Error::io("cannot make", &spare, error)),
    };
    let wanted = 2 * BLOCK as u64 + room(core);
    if let Err(error) = file.allocate(wanted) {
        let _ = core.files.unlink(&spare);
        return Err(Error::io("cannot take space for", &spare, error));
    }
    core.spare_bytes.store(room(core), Ordering::Relaxed);
    Ok(())
}
