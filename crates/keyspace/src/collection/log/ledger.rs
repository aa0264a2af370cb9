//! Which tree of the log a tree in memory is.

use std::cell::{Cell, OnceCell};
use std::fmt;
use std::sync::Arc;

use crate::collection::node::Base;

/// Bytes of a descriptor.
pub const DESCRIPTOR_LEN: usize = 16;

/// What the record of a key has in place of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// The number of the instance; never 0.
    pub instance: u64,
    /// The seed of its order keys.
    pub seed: u64,
}

impl Descriptor {
    /// Its bytes.
    pub fn bytes(self) -> [u8; DESCRIPTOR_LEN] {
        let mut bytes = [0; DESCRIPTOR_LEN];
        bytes[..8].copy_from_slice(&self.instance.to_le_bytes());
        bytes[8..].copy_from_slice(&self.seed.to_le_bytes());
        bytes
    }

    /// The descriptor in bytes of which nothing is known.
    pub fn read(bytes: &[u8]) -> Option<Descriptor> {
        let bytes: &[u8; DESCRIPTOR_LEN] = bytes.try_into().ok()?;
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"));
        let (instance, seed) = (word(0), word(8));
        (instance != 0).then_some(Descriptor { instance, seed })
    }
}

/// Hears of trees of the log that are gone, and of records on which nothing rests any more.
pub trait Ledger: Send + Sync {
    /// No leaf rests on these any more. Called while a shard is locked: it is quick.
    fn lost(&self, bases: &mut dyn Iterator<Item = Base>);

    /// The tree of an instance is gone. [`Ledger::lost`] with all that its leaves rested on follows.
    fn gone(&self, instance: u64);

    /// So many leaves more, or fewer, are in the log alone; so many bytes of records.
    fn cold(&self, leaves: i64, bytes: i64);
}

/// The part of a tree that its log knows. It is read and changed while the shard of the tree is locked.
#[derive(Default)]
pub struct Logged {
    /// The number of its instance; 0 as long as its leaves are not in the log.
    instance: Cell<u64>,
    /// The log's number of the database of its records.
    database: Cell<u16>,
    ledger: OnceCell<Arc<dyn Ledger>>,
}

impl fmt::Debug for Logged {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Logged({})", self.instance.get())
    }
}

impl Logged {
    /// The number of the instance, and the log's number of its database, if the leaves are in the log.
    #[inline]
    pub fn place(&self) -> Option<(u64, u16)> {
        let instance = self.instance.get();
        (instance != 0).then(|| (instance, self.database.get()))
    }

    /// The number of the instance; 0 as long as the leaves are not in the log.
    #[inline]
    pub(crate) fn instance(&self) -> u64 {
        self.instance.get()
    }

    /// The leaves are in the log from here on, or are about to be.
    pub fn begin(&self, instance: u64, database: u16, ledger: &Arc<dyn Ledger>) {
        assert!(instance != 0, "instances are counted from 1");
        self.instance.set(instance);
        self.database.set(database);
        self.ledger.get_or_init(|| Arc::clone(ledger));
    }

    /// The leaves will be in the log when it is read: nobody is told if the tree goes before.
    pub(crate) fn expect(&self, instance: u64, database: u16) {
        self.instance.set(instance);
        self.database.set(database);
    }

    /// The leaves are not in the log any more.
    pub(crate) fn forget(&self) {
        self.instance.set(0);
    }

    /// The ledger of a tree whose leaves are in the log.
    pub(crate) fn ledger(&self) -> Option<&dyn Ledger> {
        self.place()?;
        Some(&**self.ledger.get()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_come_back() {
        let (instance, seed) = (7, u64::MAX);
        let descriptor = Descriptor { instance, seed };
        let bytes = descriptor.bytes();
        assert_eq!(Descriptor::read(&bytes), Some(descriptor));
        assert_eq!(Descriptor::read(&bytes[..15]), None);
        assert_eq!(Descriptor::read(&[0; 16]), None);
    }
}
