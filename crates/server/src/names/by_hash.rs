//! Map from names to values, in order of the names' hashes.
//!
//! ```text
//!  hash 17  name "a" value ──> another name of the same hash (rare)
//!  hash 90  name "b" value
//! ```
//!
//! The caller computes the hash ([`keyspace::Keyspace::hash`], with a secret seed), because it needs it
//! elsewhere too.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::steps;

/// Map from names to values.
pub(crate) struct ByHash<K, V> {
    entries: BTreeMap<u64, Entry<K, V>>,
    len: usize,
}

struct Entry<K, V> {
    name: K,
    value: V,
    next: Option<Box<Entry<K, V>>>,
}

impl<K, V> Default for ByHash<K, V> {
    fn default() -> ByHash<K, V> {
        ByHash {
            entries: BTreeMap::new(),
            len: 0,
        }
    }
}

impl<K: AsRef<[u8]>, V> ByHash<K, V> {
    /// Number of names.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The name and its value, if present.
    pub(crate) fn find(&self, hash: u64, name: &[u8]) -> Option<(&K, &V)> {
        steps::add(1);
        let mut entry = self.entries.get(&hash)?;
        while entry.name.as_ref() != name {
            entry = entry.next.as_deref()?;
        }
        Some((&entry.name, &entry.value))
    }

    pub(crate) fn get(&self, hash: u64, name: &[u8]) -> Option<&V> {
        self.find(hash, name).map(|(_, value)| value)
    }

    pub(crate) fn contains(&self, hash: u64, name: &[u8]) -> bool {
        self.find(hash, name).is_some()
    }

    pub(crate) fn get_mut(&mut self, hash: u64, name: &[u8]) -> Option<&mut V> {
        steps::add(1);
        let mut entry = self.entries.get_mut(&hash)?;
        while entry.name.as_ref() != name {
            entry = entry.next.as_deref_mut()?;
        }
        Some(&mut entry.value)
    }

    /// Adds a name that is not present.
    pub(crate) fn insert(&mut self, hash: u64, name: K, value: V) {
        debug_assert!(!self.contains(hash, name.as_ref()), "a name is there once");
        steps::add(1);
        let next = self.entries.remove(&hash).map(Box::new);
        self.entries.insert(hash, Entry { name, value, next });
        self.len += 1;
    }

    /// Removes a name.
    pub(crate) fn remove(&mut self, hash: u64, name: &[u8]) -> Option<V> {
        steps::add(1);
        let first = self.entries.get(&hash)?;
        if first.next.is_none() && first.name.as_ref() != name {
            return None;
        }
        let mut first = self.entries.remove(&hash)?;
        if first.name.as_ref() == name {
            if let Some(next) = first.next {
                self.entries.insert(hash, *next);
            }
            self.len -= 1;
            return Some(first.value);
        }
        let mut at = &mut first.next;
        while at.as_ref().is_some_and(|entry| entry.name.as_ref() != name) {
            at = &mut at.as_mut().expect("it was just seen").next;
        }
        let removed = at.take().map(|entry| {
            *at = entry.next;
            entry.value
        });
        self.entries.insert(hash, first);
        self.len -= usize::from(removed.is_some());
        removed
    }

    /// All names and values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries.values().flat_map(|first| {
            let entries = std::iter::successors(Some(first), |entry| entry.next.as_deref());
            entries.map(|entry| (&entry.name, &entry.value))
        })
    }

    /// The name of the lowest hash.
    pub(crate) fn first(&self) -> Option<&K> {
        steps::add(1);
        self.entries.first_key_value().map(|(_, entry)| &entry.name)
    }

    /// The name at a random position, with its hash.
    pub(crate) fn any(&self, random: u64) -> Option<(u64, &K)> {
        steps::add(1);
        let (&first, _) = self.entries.first_key_value()?;
        let (&last, _) = self.entries.last_key_value()?;
        // All hashes may begin with the same bits.
        let width = (last - first).saturating_add(1);
        let (&hash, entry) = self.entries.range(first + random % width..).next()?;
        Some((hash, &entry.name))
    }

    /// Visits about `most` names with hashes above `after`. Returns the last visited hash if there may be
    /// more.
    pub(crate) fn visit(
        &self,
        after: Option<u64>,
        most: usize,
        mut visit: impl FnMut(u64, &K, &V),
    ) -> Option<u64> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut visited = 0;
        for (&hash, first) in self.entries.range((from, Bound::Unbounded)) {
            let mut entry = Some(first);
            while let Some(one) = entry {
                visit(hash, &one.name, &one.value);
                visited += 1;
                steps::add(1);
                entry = one.next.as_deref();
            }
            if visited >= most {
                return Some(hash);
            }
        }
        None
    }

    /// Removes an arbitrary name.
    pub(crate) fn pop(&mut self) -> Option<(u64, K, V)> {
        steps::add(1);
        let (hash, first) = self.entries.pop_first()?;
        if let Some(next) = first.next {
            self.entries.insert(hash, *next);
        }
        self.len -= 1;
        Some((hash, first.name, first.value))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// Few hashes, so that many names share one.
    fn hash_of(name: &[u8], hashes: u64) -> u64 {
        let sum = name.iter().fold(7u64, |sum, &byte| {
            sum.wrapping_mul(31).wrapping_add(byte.into())
        });
        sum % hashes
    }

    #[test]
    fn names_are_found_until_they_are_removed_whatever_their_hashes() {
        for hashes in [1, 3, 50, u64::MAX] {
            let (mut names, mut model) = (ByHash::default(), HashMap::new());
            fastrand::seed(hashes);
            for round in 0..3000 {
                let name = fastrand::u8(..60).to_string().into_bytes();
                let hash = hash_of(&name, hashes);
                assert_eq!(names.get(hash, &name), model.get(&name));
                if fastrand::bool() {
                    assert_eq!(names.remove(hash, &name), model.remove(&name));
                } else if let Some(value) = names.get_mut(hash, &name) {
                    *value = round;
                    model.insert(name, round);
                } else {
                    names.insert(hash, name.clone(), round);
                    model.insert(name, round);
                }
                assert_eq!(
                    (names.len(), names.iter().count()),
                    (model.len(), model.len())
                );
            }
            let (mut seen, mut after) = (0, None);
            loop {
                after = names.visit(after, 7, |hash, name, value| {
                    assert_eq!(
                        (hash, model.get(name)),
                        (hash_of(name, hashes), Some(value))
                    );
                    seen += 1;
                });
                if after.is_none() {
                    break;
                }
            }
            assert_eq!(seen, model.len());
            while let Some((_, name, value)) = names.pop() {
                assert_eq!(model.remove(&name), Some(value));
            }
            assert!(model.is_empty() && names.is_empty());
        }
    }

    #[test]
    fn twice_as_many_names_take_twice_the_steps() {
        steps::assert_linear(2_000, |n| {
            let mut names = ByHash::default();
            let name = |at: usize| at.to_string().into_bytes();
            (0..n).for_each(|at| names.insert(hash_of(&name(at), u64::MAX), name(at), ()));
            while let Some((hash, known)) = names.any(names.len() as u64 * 7919) {
                let known = known.clone();
                assert!(names.remove(hash, &known).is_some());
            }
            assert!(names.is_empty());
        });
    }
}
