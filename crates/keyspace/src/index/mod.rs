//! The index of one shard: from a hash to an entry, at one cache line a step.
//!
//! A table is an array of [`Bucket`]s. An entry belongs to the *home* bucket its place gives it and lives
//! there or in one of the next seven; the home bucket knows how far (its *extent*), so a search
//! that finds nothing looks at one bucket nearly always. What fits nowhere goes to a small *stash*.
//!
//! Growing and shrinking move one home bucket after the other, in order of place, from the `draining`
//! table to the `active` one, a few with each change. Every place is in exactly one of the two: places whose
//! old home is below `migrated` have moved. Because homes are in order of place in every table, a scan
//! position stays meaningful however often the table is resized.
//!
//! Invariants:
//! 1. An entry is in the table that [`Tables::locate`] names, at most 7 buckets behind its home, or in
//!    the stash with its home marked `stashed`.
//! 2. The home's extent is the largest displacement of an entry that belongs to it.
//! 3. A slot's displacement is its distance from its entry's home, so homes are known without hashing.
//! 4. A replaced table is freed when all workers that may look at it have ended their turn.

mod change;
mod lookup;
mod moving;
mod reserve;
mod table;
mod visit;

pub(crate) use lookup::{Index, IndexState, Slot, Surroundings};
pub(crate) use table::Tables;
pub(crate) use visit::{Candidates, Passed};
