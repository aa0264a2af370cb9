//! Streams in files.
//!
//! ```text
//! 15, 19, 21   count node..., entries, last ID, [first ID, greatest deleted ID, entries added,]
//!              count group...
//! node         a string of 16 bytes: the ID of the node; a string: a listpack
//! listpack     entries deleted count name... 0, entry...
//! entry        flags, time and sequence number less those of the node,
//!              value... (flag 2: its fields are those of the node), or count (name value)...,
//!              cells of the entry                         flag 1: the entry is deleted
//! group        name, last ID delivered, [entries read,] count pending..., count consumer...
//! pending      ID16, time8, deliveries
//! consumer     name, seen8, [active8,] count ID16...      21 has active, 19 and 21 have all else
//! ```
//!
//! An ID is a time (ms) and a sequence number, lengths both. ID16 has 8 bytes of each, the highest first.
//! Times are Unix milliseconds, the lowest byte first. Active is -1 for never. Entries read is -1 if not
//! known.
//!
//! The reading checks that IDs of entries ascend, that there are as many entries as the stream says, and that
//! none is above its last ID. It does not check that pending entries of consumers are those of their group,
//! each once: only a reader that keeps all of them can see that, as `groups` does.
//!
//! `parts` are the parts of a stream, `read` reads them, `write` writes them, `groups` holds those that are
//! about groups, `copy` writes a stream that is in a payload.

pub(crate) mod copy;
pub(crate) mod groups;
pub(crate) mod parts;
pub(crate) mod read;
mod write;

#[cfg(test)]
mod tests;
