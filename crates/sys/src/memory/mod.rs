//! How much memory the process uses, counted as it is asked for.
//!
//! [`Counted`] wraps the process allocator, so connections' buffers, requests that are being received,
//! replies in flight, large values and registries are all in the sum without a line of their own. What is
//! mapped past the allocator (slabs, index tables, rings) is told with [`charge`].
//!
//! ```text
//!  thread   pending  bytes since it last published      its own cache line, plain loads and stores
//!  process  TOTAL    what all threads have published    one addition for SLACK bytes of change
//! ```
//!
//! Invariants:
//! 1. [`used`] is exact when no thread is inside a call of this module. [`published`] differs from it by less
//!    than [`SLACK`] for each thread.
//! 2. A slot's `pending` is written by one thread; threads beyond `SLOTS` publish every change at once.
//!
//! What does not live here: the limit, and what happens at it.

mod allocator;
mod count;
mod counted;
mod heap;
mod runs;

pub use allocator::{ALLOCATOR, Allocator};
pub use count::{SLACK, charge, published, unpublished_max, used};
pub use counted::{Counted, keep_free, purge, start_giving_back};
pub use heap::Heap;
