//! The shards that a turn wants to hold, or holds: a set for each database.

use crate::shard_set::{ShardId, ShardSet};

/// What a turn wants to hold, or holds.
#[derive(Default)]
pub(crate) struct Holding {
    /// Sets of shards by database, ascending. Only the first `used` mean something; the others are empty and
    /// kept for later.
    sets: Vec<(usize, ShardSet)>,
    used: usize,
}

impl Holding {
    pub(crate) fn add(&mut self, database: usize, shard: ShardId) {
        let used = &self.sets[..self.used];
        let at = match used.iter().position(|&(number, _)| number >= database) {
            Some(at) if used[at].0 == database => at,
            place => {
                let at = place.unwrap_or(self.used);
                if self.used == self.sets.len() {
                    self.sets.push((0, ShardSet::default()));
                }
                self.sets[self.used].0 = database;
                self.sets[at..=self.used].rotate_right(1);
                self.used += 1;
                at
            }
        };
        self.sets[at].1.add(shard);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &(usize, ShardSet)> {
        self.sets[..self.used].iter()
    }

    pub(crate) fn contains(&self, database: usize, shard: ShardId) -> bool {
        self.iter()
            .any(|(number, set)| *number == database && set.contains(shard))
    }

    pub(crate) fn clear(&mut self) {
        for (_, set) in &mut self.sets[..self.used] {
            set.clear();
        }
        self.used = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wanted_is_kept_in_order() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut holding = Holding::default();
        for _ in 0..200 {
            let mut model = std::collections::BTreeSet::new();
            for _ in 0..random.usize(..40) {
                let (database, shard) = (random.usize(..9), ShardId(random.usize(..200)));
                holding.add(database, shard);
                model.insert((database, shard));
            }
            let kept: Vec<(usize, ShardId)> = holding
                .iter()
                .flat_map(|(database, set)| set.iter().map(|shard| (*database, shard)))
                .collect();
            assert!(kept.iter().eq(model.iter()), "{kept:?} {model:?}");
            for database in 0..9 {
                for shard in (0..200).map(ShardId) {
                    let wanted = model.contains(&(database, shard));
                    assert_eq!(holding.contains(database, shard), wanted);
                }
            }
            holding.clear();
        }
    }
}
