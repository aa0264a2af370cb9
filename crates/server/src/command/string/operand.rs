//! A value that is looked at together with others.

use keyspace::{Key, LargeValue, Stored};

use crate::request::Failure;
use crate::store::Shards;

/// The value of a key, independent of its shard: a copy of a small one, a reference to a large one.
pub(crate) enum Operand {
    /// A small value.
    Copy(Vec<u8>),
    /// A large value.
    Shared(LargeValue),
}

impl Operand {
    /// Reads the value of one of the keys that were locked; a missing one is empty.
    ///
    /// # Errors
    /// It is no string.
    pub(crate) fn read(shards: &mut Shards<'_>, key: Key<'_>) -> Result<Operand, Failure> {
        let mut shard = shards.of(key);
        let Some(text) = shard.read_string(key)? else {
            return Ok(Operand::Copy(Vec::new()));
        };
        Ok(match text.value() {
            Stored::Inline(bytes) => Operand::Copy(bytes.to_vec()),
            Stored::Large(large) => Operand::Shared(large.share()),
        })
    }

    /// The value's bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Operand::Copy(bytes) => bytes,
            Operand::Shared(value) => value,
        }
    }
}
