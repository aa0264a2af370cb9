//! Common parts of commands on hashes and sets: items as cells, random items, and work in slices.
//!
//! `cells` turns arguments into cells, which fields, values and members are, and cells into replies. `moment`
//! lets commands that look at many items of a large collection go on in slices. `list` gives out all items,
//! `draw` some by chance, `chance` says of
//! removals by chance which items they take, `scan` is HSCAN and SSCAN.

pub(super) mod cells;
pub(super) mod chance;
pub(super) mod draw;
pub(super) mod list;
pub(super) mod moment;
pub(super) mod scan;
