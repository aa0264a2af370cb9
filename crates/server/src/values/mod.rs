//! Values outside of memory: read back from the log, received into files, sent from files.

pub(crate) mod blobs;
pub(crate) mod cold;
mod pool;

use std::ops::Deref;

use crate::persistence::Durable;

/// Floor of the values outside of memory.
pub(crate) struct Values {
    pub(crate) durable: Durable,
    /// Values that are being read back from the log.
    pub(crate) fetching: cold::Fetching,
    /// Transfers of values with files of their own.
    pub(crate) blobs: blobs::Transfers,
}

impl Deref for Values {
    type Target = Durable;

    #[inline]
    fn deref(&self) -> &Durable {
        &self.durable
    }
}
