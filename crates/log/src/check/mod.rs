//! Looking at a log that nobody uses, and mending it.
//!
//! [`check`] reads everything and changes nothing. [`repair()`] does as little as makes the log open again,
//! and keeps whatever it takes out.
//!
//! What was in the damaged place is lost. A later record that amends something is lost, too, if what it
//! amends may be in the damaged place: so each key has a value that it had once, or is gone. A damaged batch
//! loses all of its records.

mod barriers;
mod blobs;
mod cover;
mod dependents;
mod guesses;
mod instances;
mod look;
mod mender;
mod names;
mod repair;
mod report;
mod resync;
mod stretch;
mod stretches;

pub use cover::LeafRange;
pub use look::check;
pub use repair::repair;
pub use report::Report;
