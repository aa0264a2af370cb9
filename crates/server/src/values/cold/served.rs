//! Served values: values for one command whose entries stay cold.

use keyspace::LargeValue;

/// Served values of the running command, in order of their keys' hashes.
#[derive(Default)]
pub(crate) struct Served(Vec<(u64, Box<[u8]>, LargeValue)>);

impl Served {
    pub(crate) fn add(&mut self, key: Box<[u8]>, hash: u64, value: LargeValue) {
        let at = self.0.partition_point(|&(other, ..)| other < hash);
        self.0.insert(at, (hash, key, value));
    }

    /// Served value of a key.
    pub(crate) fn get(&self, key: &[u8], hash: u64) -> Option<&LargeValue> {
        let from = self.0.partition_point(|&(other, ..)| other < hash);
        let same = self.0[from..]
            .iter()
            .take_while(|&&(other, ..)| other == hash);
        same.filter(|(_, its, _)| **its == *key)
            .map(|(.., value)| value)
            .next()
    }

    /// Removes all values after the command.
    #[inline]
    pub(crate) fn clear(&mut self) {
        if !self.0.is_empty() {
            self.0.clear();
        }
    }
}
