//! Values that are not in memory: read back from the log, received into files, sent from files.

pub(crate) mod blobs;
pub(crate) mod cold;
mod pool;

use std::ops::Deref;

use crate::persistence::Durable;

/// The floor of values that are not in memory.
pub(crate) struct Values {
    pub(crate) durable: Durable,
    /// Values that are being read back from the log.
    pub(crate) fetching: cold::Fetching,
    /// Values that have files of their own, on their way.
    pub(crate) blobs: blobs::Transfers,
}

impl Deref for Values {
    type Target = Durable;

    #[inline]
    fn deref(&self) -> &Durable {
        &self.durable
    }
}
