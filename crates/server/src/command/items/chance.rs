//! Ranks by chance, as a seed says: a command that removes items by chance knows before it runs in which
//! leaves they are.

use fastrand::Rng;

/// Items that are drawn by a seed. Of more, all leaves are needed.
const DRAWN_MOST: u64 = 64;

/// The ranks, in a collection of `len` items, of `count` items that are drawn one after the other of those
/// that are left, by [`draw`] with this generator. `None` if they are many.
pub(crate) fn ranks_of(mut rng: Rng, count: u64, len: u64) -> Option<Vec<u64>> {
    if count > DRAWN_MOST || count >= len {
        return None;
    }
    let mut ranks: Vec<u64> = Vec::new();
    for left in (len - count + 1..=len).rev() {
        // Those before it that were drawn are not counted among those that are left.
        let mut rank = draw(&mut rng, left);
        let mut at = 0;
        while at < ranks.len() && ranks[at] <= rank {
            (rank, at) = (rank + 1, at + 1);
        }
        ranks.insert(at, rank);
    }
    Some(ranks)
}

/// The rank of the item that is drawn of so many.
pub(crate) fn draw(rng: &mut Rng, left: u64) -> u64 {
    rng.u64(..left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_that_are_removed_one_after_the_other() {
        for seed in 0..200 {
            let count = seed % 12 + 1;
            let mut left: Vec<u64> = (0..count + 1 + seed % 50).collect();
            let ranks = ranks_of(Rng::with_seed(seed), count, left.len() as u64).expect("few");
            let mut rng = Rng::with_seed(seed);
            let mut removed: Vec<u64> = (0..count)
                .map(|_| left.remove(draw(&mut rng, left.len() as u64) as usize))
                .collect();
            removed.sort_unstable();
            assert_eq!(ranks, removed);
        }
        assert_eq!(ranks_of(Rng::with_seed(1), 5, 5), None);
        assert_eq!(ranks_of(Rng::with_seed(1), DRAWN_MOST + 1, 1000), None);
        assert_eq!(ranks_of(Rng::with_seed(1), 0, 1), Some(Vec::new()));
    }
}
