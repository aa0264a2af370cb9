//! What a log has of an entry that is about to change or go.

use super::{Entry, LogAddress};

/// What there was of an entry before it was written: what the log had of it.
#[derive(Clone, Copy, Debug)]
pub struct Overwritten {
    /// Where it was; [`LogAddress::PENDING`] if it was noted to be logged later.
    pub address: LogAddress,
    /// Bytes of its value in its record.
    pub value_len: usize,
    /// Whether its value is a tree.
    pub is_tree: bool,
}

impl Overwritten {
    #[inline]
    pub(crate) fn of(entry: Entry) -> Option<Overwritten> {
        let address = entry.log_address()?;
        (address != LogAddress::NOWHERE).then(|| Overwritten {
            address,
            value_len: entry.logged_len(),
            is_tree: entry.is_tree(),
        })
    }
}
