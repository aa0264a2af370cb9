//! The map of a cluster: which node has which hash slots, as a file says that all nodes share.
//!
//! ```toml
//! name = "shop"
//! epoch = 1
//!
//! [[nodes]]
//! id = "a"
//! host = "10.0.0.1"
//! port = 6379
//! slots = ["0-5460", 16383]
//! ```
//!
//! The text is checked as a whole. Each mistake is told with its line, and a map with mistakes is no map
//! ([`Map::parse`]). A program that makes a map fills a [`Draft`]: [`Draft::check`] makes a [`Map`] of it,
//! and [`Map::to_text`] the text for the nodes. A source that is no file makes a [`Map`] from a [`Draft`] as
//! well.
//!
//! Not here: which node of the map a server is, where the file is, and when it is read again.

#![forbid(unsafe_code)]

mod check;
mod draft;
mod file;
mod model;
mod read;
mod share;
mod write;

pub use draft::{Draft, DraftNode, Problem};
pub use file::MAX_MAP_BYTES;
pub use model::{ID_DIGITS, Map, Node, ranges_text};
pub use resp::slot::SLOTS;
pub use share::{Move, even_ranges};

#[cfg(test)]
mod tests;
