//! Where the items of tiles are while memory is short: in their records of the log, or in a spill file.

use crate::collection::node::Base;

/// Keeps items that are not in memory while a log is replayed. Where a method returns `None` although the
/// items should be there, the caller goes on without them: the implementation notes the problem, and the
/// replay as a whole fails.
pub trait TileStore {
    /// Whether items have to leave memory.
    fn is_short(&self) -> bool;

    /// Whether further items leave memory, once some have to.
    fn is_nearly_short(&self) -> bool;

    /// How many changes may be collected before they are applied. Each takes some 32 bytes.
    fn changes_max(&self) -> usize;

    /// Contents of a leaf record of the log.
    fn record(&mut self, base: Base) -> Option<Vec<u8>>;

    /// Puts bytes into the spill file. Returns where they are; `None` if there is no room on the disk: then
    /// the items stay in memory.
    fn put(&mut self, bytes: &[u8]) -> Option<u64>;

    /// Takes bytes out of the spill file, whose place may be used again then.
    fn take(&mut self, at: u64) -> Option<Vec<u8>>;

    /// Notes that what was read of the record `base`, or of what was spilled of its items, is no leaf.
    fn note_damage(&mut self, base: Base);
}

/// The store of a replay that keeps everything in memory.
#[derive(Clone, Copy, Debug)]
pub struct AllInMemory;

impl TileStore for AllInMemory {
    fn is_short(&self) -> bool {
        false
    }

    fn is_nearly_short(&self) -> bool {
        false
    }

    fn changes_max(&self) -> usize {
        1 << 20
    }

    fn record(&mut self, _: Base) -> Option<Vec<u8>> {
        None
    }

    fn put(&mut self, _: &[u8]) -> Option<u64> {
        None
    }

    fn take(&mut self, _: u64) -> Option<Vec<u8>> {
        None
    }

    fn note_damage(&mut self, _: Base) {}
}
