//! DEBUG DIGEST: one number for all keys and values, the same as that of a Redis which holds the same.
//!
//! A digest is 20 bytes. Data is *added* to it by xor of the data's SHA-1, so that order makes no difference,
//! or *mixed* into it by taking the SHA-1 of what adding gave, so that order does.
//!
//! ```text
//! value:   mix(type), mix(value), add("!!expire!!") if it expires
//! keys:    for each database in order that has keys: mix(number), for each key: add(mix(key), value)
//! ```
//! Numbers are four bytes, the highest first.

use std::borrow::Cow;
use std::fmt;

use keyspace::{Database, EntryRef};
use sha1_smol::Sha1;

use crate::command::Failure;

/// The type of a string in digests.
const STRING: u32 = 0;

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Digest([u8; 20]);

impl Digest {
    /// The digest of a value.
    pub(super) fn of_value(value: &[u8], expires: bool) -> Digest {
        let mut digest = Digest::default();
        digest.mix_value(value, expires);
        digest
    }

    /// Mixes all keys of a database into the digest. Not a point in time when others write meanwhile.
    ///
    /// # Errors
    /// Those of `value_of`, which gives the value of an entry.
    pub(super) fn mix_database(
        &mut self,
        number: u32,
        database: &Database,
        now: i64,
        value_of: impl Fn(EntryRef<'_>) -> Result<Cow<'_, [u8]>, Failure>,
    ) -> Result<(), Failure> {
        let mut result = Ok(());
        if database.is_empty() {
            return result;
        }
        self.mix(&number.to_be_bytes());
        database.for_each(now, |entry| {
            let mut digest = Digest::default();
            digest.mix(entry.key());
            match value_of(entry) {
                Ok(value) => digest.mix_value(&value, entry.expiry().is_some()),
                Err(failure) => result = Err(failure),
            }
            self.add(&digest.0);
        });
        result
    }

    fn mix_value(&mut self, value: &[u8], expires: bool) {
        self.mix(&STRING.to_be_bytes());
        self.mix(value);
        if expires {
            self.add(b"!!expire!!");
        }
    }

    fn add(&mut self, data: &[u8]) {
        self.xor(Sha1::from(data).digest().bytes());
    }

    fn mix(&mut self, data: &[u8]) {
        self.add(data);
        self.0 = Sha1::from(self.0).digest().bytes();
    }

    fn xor(&mut self, other: [u8; 20]) {
        for (byte, other) in self.0.iter_mut().zip(other) {
            *byte ^= other;
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}
