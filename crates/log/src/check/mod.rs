//! Looking at a log that nobody uses, and mending it.
//!
//! [`check`] reads everything and changes nothing. [`repair()`] does as little as makes the log open again,
//! and keeps whatever it takes out.
//!
//! What was in the damaged place is lost, and so may be what a later record amended: repair says so and
//! decides nothing about meaning. A damaged batch loses all of its records.

mod blobs;
mod guesses;
mod look;
mod repair;
mod report;

pub use look::check;
pub use repair::repair;
pub use report::Report;
