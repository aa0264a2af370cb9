//! When items of a tree expire, and in which leaves they are.
//!
//! A *deadline* is a time and the upper half of an order key, 16 bytes. The deadlines of a tree are an
//! ordered set; a tree without items that expire has none, and no set. There is about one deadline for each
//! leaf with such items: that of the first of them to expire.
//!
//! ```text
//!  deadlines        (t1, k7)   (t2, k3)   (t5, k9) ...        the earliest first
//!                       |          |
//!  leaves    [0, k5)    |      [k2, k4)      ...
//!                   [k5, k8)
//! ```
//!
//! Invariant: for each leaf with items that expire there is a deadline in its range that is not later than
//! the first of them. Splits note a deadline for each new leaf; merges leave those of both. A deadline may be
//! out of date: its item has got another time, or is gone. It does no harm: at its time the leaf is looked
//! at, and the right deadline takes its place.

use std::collections::BTreeSet;

/// When, and where: the upper half of an order key.
pub(super) type Deadline = (u64, u64);

/// Bytes of memory for a deadline: nodes of the set are about two thirds full.
const DEADLINE_BYTES: usize = 24;

/// The deadlines of a tree.
#[derive(Debug, Default)]
pub(super) struct Deadlines(pub(super) BTreeSet<Deadline>);

impl Deadlines {
    pub(super) fn bytes(&self) -> usize {
        size_of::<Deadlines>() + self.0.len() * DEADLINE_BYTES
    }
}
