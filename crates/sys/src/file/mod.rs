//! Files for databases: positioned reads and writes, and explicit durability.
//!
//! [`Files`] and [`File`] are the one seam between the log and a disk. [`Disk`] is the real disk. `Faulty`
//! adds failures on demand; builds for production lack it. The log's tests have a disk that forgets unsynced
//! bytes. A caller may rely on this:
//!
//! 1. Bytes are durable after [`File::sync_data`] returned well, not before, and in no order.
//! 2. A name (after `create`, `rename`, `link`, `unlink`) is durable after [`Files::sync_dir`] of its
//!    directory, not before. A rename replaces its target as one step.
//! 3. After a failed sync nothing is known about what was not synced before, whatever a later sync
//!    says.
//! 4. What [`File::allocate`] granted can be written without running out of space.

mod cached;
mod direct;
mod disk;
#[cfg(any(debug_assertions, feature = "faults"))]
mod faulty;
mod files;
mod scan;

pub use cached::is_cached;
pub use disk::{Disk, file_system_bytes};
#[cfg(any(debug_assertions, feature = "faults"))]
pub use faulty::{Faulty, Trouble};
pub use files::{DIRECT_BLOCK, File, Files, Lock};

/// Disk of a server's log; in builds for tests with failures on demand.
#[cfg(any(debug_assertions, feature = "faults"))]
pub type ServerDisk = Faulty;
/// Disk of a server's log.
#[cfg(not(any(debug_assertions, feature = "faults")))]
pub type ServerDisk = Disk;
