//! What all collection types stand on: packed runs of items, and trees whose leaves are runs.
//!
//! Nothing here knows commands, keys, the log or the server. Reading order: [`cell`] is a name or a value,
//! [`run`] packs items of one or two cells.

pub mod cell;
pub mod run;
