//! The start: from what is on the disk to a log that takes writes.
//!
//! [`Log::open`](crate::Log::open) finds out what the log is. It changes nothing, unless a process was killed
//! that had not written everything: that is added to the newest segment (`takeover`). [`Recovery::replay`]
//! hands its records to the caller. [`Recovery::start`] puts aside what is behind the end, and begins a new
//! segment: an old one is never written to again.

pub(crate) mod aside;
pub(crate) mod chain;
pub(crate) mod parts;
mod pieces;
mod recovery;
mod replay;
pub(crate) mod takeover;
mod torn;

pub use recovery::Recovery;
pub use replay::{Progress, ReplayOptions, Replayer};
