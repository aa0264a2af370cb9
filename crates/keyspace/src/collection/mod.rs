//! What all collection types stand on: packed runs of items, and trees whose leaves are runs.
//!
//! Nothing here knows commands, keys, the log or the server. Reading order: [`cell`] is a name or a value,
//! [`run`] packs items of one or two cells, [`kind`] gives items their order, `node` is the memory of one
//! node, [`view`] reads a tree, [`clones`] keeps what clones see, [`tree`] changes it, [`log`] has the
//! contents of its records. [`ahead`] loads what searches will need.
//!
//! # How a tree is logged
//!
//! The rules were tried in a model (`tests/collection_log_model.rs`: random edits, cuts, splits, merges,
//! compaction of any segment, a crash at every point, replay). Each leaf knows its *base*, the leaf record
//! it rests on.
//!
//! 1. An edit is one record and amends the leaves that cover its keys. Splits write nothing: both halves
//!    keep the base. **Merges need not write either**, if the merged leaf keeps the older base of the two.
//! 2. A cut is one record. At replay it is a leaf record without items for its range, so a leaf whose range
//!    grows over it keeps its base. A leaf that a cut empties, but whose range ends behind the cut's, is
//!    merged.
//! 3. A leaf record is dropped when no leaf in its range has a base that is **not newer** (with merges
//!    that are written: when none rests on it); an edit or a cut, when no leaf that covers it has an
//!    older base. The leaves that stand against it are written before. Cold leaves do not stand against an
//!    edit: a cold leaf is its record, and edits after that record are not of its items. So an edit that is
//!    replaced skips them.
//! 4. **Fences are stable**: a leaf begins where it was split off, not at its first item. Leaves that
//!    begin at their first item lose edits, whatever the other rules, as their ranges grow without a
//!    record.
//! 5. Ranges in records are edges (order key and name): order keys alone do not tell leaves apart.
//!
//! The model fails with merges that keep the left base, with older bases where only the exact base is
//! judged, and with floating fences; tests keep those failures. Bytes written per byte of edits are 1 +
//! 1 / garbage, uniform or skewed (3.00, 2.00, 1.50 at garbage of half, once and twice what lives;
//! leaves of 1400, edits of 56 bytes).

pub mod ahead;
pub mod any;
pub mod build;
pub mod cell;
pub mod clones;
mod cold_view;
pub mod copy;
mod cursor;
pub mod items;
pub mod kind;
mod leaving;
pub mod log;
pub mod members;
mod node;
mod path;
pub mod pieces;
pub mod run;
mod scans;
mod score_table;
pub mod sorted;
pub mod sorted_ref;
pub mod sorted_scan;
pub mod stream;
pub mod thawed;
pub mod tree;
pub mod view;

pub use node::Base;
