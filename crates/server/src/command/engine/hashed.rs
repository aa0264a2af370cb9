//! Maps by keys that are hashes already.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Takes the first eight bytes of a key that is a hash already.
#[derive(Default)]
pub(super) struct FirstBytes(u64);

impl Hasher for FirstBytes {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(first) = bytes.first_chunk() {
            self.0 = u64::from_le_bytes(*first);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

pub(super) type HashedMap<K, V> = HashMap<K, V, BuildHasherDefault<FirstBytes>>;
