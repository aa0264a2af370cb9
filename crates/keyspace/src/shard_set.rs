//! Numbers of shards, and sets of them in ascending order: the order in which they are locked.

/// The most shards a database may have.
pub const MAX_SHARDS: usize = 4096;

/// The number of a shard in its database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShardId(pub usize);

/// A set of shards, kept as bits so that going through it is going through it in ascending order.
#[derive(Clone)]
pub struct ShardSet {
    words: [u64; MAX_SHARDS / 64],
    used: usize,
}

impl Default for ShardSet {
    fn default() -> ShardSet {
        ShardSet {
            words: [0; MAX_SHARDS / 64],
            used: 0,
        }
    }
}

impl ShardSet {
    /// Adds a shard.
    #[inline]
    pub fn add(&mut self, shard: ShardId) {
        let word = shard.0 / 64;
        self.words[word] |= 1 << (shard.0 % 64);
        self.used = self.used.max(word + 1);
    }

    /// Takes all shards out.
    pub fn clear(&mut self) {
        self.words[..self.used].fill(0);
        self.used = 0;
    }

    /// Whether a shard is in the set.
    #[inline]
    pub fn contains(&self, shard: ShardId) -> bool {
        self.words[shard.0 / 64] >> (shard.0 % 64) & 1 == 1
    }

    /// The shards, ascending.
    pub fn iter(&self) -> impl Iterator<Item = ShardId> + '_ {
        self.words[..self.used]
            .iter()
            .enumerate()
            .flat_map(|(at, &word)| {
                let mut rest = word;
                std::iter::from_fn(move || {
                    if rest == 0 {
                        return None;
                    }
                    let bit = rest.trailing_zeros() as usize;
                    rest &= rest - 1;
                    Some(ShardId(64 * at + bit))
                })
            })
    }
}
