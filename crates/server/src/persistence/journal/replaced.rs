//! Records that have lost their entry.

use ferrite_log::{Address, Liveness};
use keyspace::Overwritten;

/// Record of a replaced entry: its address, and the length of the value in bytes.
#[derive(Clone, Copy)]
pub(crate) struct Replaced {
    pub(super) address: Address,
    value: usize,
}

impl Replaced {
    /// A value of so many bytes, with its record.
    pub(crate) fn at(address: Address, value: usize) -> Replaced {
        Replaced { address, value }
    }

    /// Record of the old entry, if it was in the log.
    #[inline]
    pub(crate) fn of(old: Option<Overwritten>) -> Option<Replaced> {
        let old = old.filter(|old| old.address.is_known())?;
        Some(Replaced {
            address: Address::from_bits(old.address.0.get())?,
            value: old.value_len,
        })
    }

    /// Reports the record as dead. `key`: length of the key in bytes.
    #[inline]
    pub(crate) fn mark_dead(self, key: usize, liveness: &mut Liveness) {
        liveness.dead(self.address, key, self.value);
    }
}
