//! Even shares of the slots: dealt anew, or with the fewest moves.

use std::ops::RangeInclusive;

use resp::slot::SLOTS;

use crate::model::Map;

/// Slots that get another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The slots.
    pub slots: RangeInclusive<u16>,
    /// The index of the node that has them; none if no node has.
    pub from: Option<usize>,
    /// The index of the node that shall have them.
    pub to: usize,
}

/// All slots in as many ranges, in order, whose sizes differ by 1 at most. `nodes` is from 1 to [`SLOTS`];
/// for others there are no ranges.
#[must_use]
pub fn even_ranges(nodes: usize) -> Vec<RangeInclusive<u16>> {
    let all = usize::from(SLOTS);
    if nodes > all {
        return Vec::new();
    }
    // The end of a share is the whole number next to its exact end.
    let end = |share: usize| (2 * share * all + nodes) / (2 * nodes);
    (0..nodes)
        .map(|share| end(share) as u16..=(end(share + 1) - 1) as u16)
        .collect()
}

impl Map {
    /// The fewest moves after which every slot has a node and the shares differ by 1 at most, in the order of
    /// the slots. None if that is so already.
    #[must_use]
    pub fn moves_to_even_shares(&self) -> Vec<Move> {
        let shares = self.even_sizes();
        let mut sizes: Vec<usize> = vec![0; self.nodes.len()];
        let mut moving: Vec<u16> = Vec::new();
        // A node keeps its first slots.
        for slot in 0..SLOTS {
            match self.owner(slot) {
                Some(owner) if sizes[owner] < shares[owner] => sizes[owner] += 1,
                _ => moving.push(slot),
            }
        }
        let mut takers = (0..self.nodes.len())
            .flat_map(|node| std::iter::repeat_n(node, shares[node] - sizes[node]));
        let mut moves: Vec<Move> = Vec::new();
        for slot in moving {
            let (from, to) = (self.owner(slot), takers.next());
            let to = to.expect("the shares are all slots together");
            match moves.last_mut() {
                Some(last)
                    if (last.from, last.to) == (from, to) && last.slots.end() + 1 == slot =>
                {
                    last.slots = *last.slots.start()..=slot;
                }
                _ => moves.push(Move {
                    slots: slot..=slot,
                    from,
                    to,
                }),
            }
        }
        moves
    }

    /// How many slots each node shall have. What cannot be divided is left to those that have most: fewer
    /// slots move.
    fn even_sizes(&self) -> Vec<usize> {
        let (all, count) = (usize::from(SLOTS), self.nodes.len());
        let mut shares = vec![all / count; count];
        let mut order: Vec<usize> = (0..count).collect();
        let size = |node: &usize| -> usize {
            let slots = self.nodes[*node].slots.iter();
            slots.map(ExactSizeIterator::len).sum()
        };
        order.sort_by_key(|node| std::cmp::Reverse(size(node)));
        for &node in order.iter().take(all % count) {
            shares[node] += 1;
        }
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::any_map;

    #[test]
    fn every_slot_is_dealt_once_and_evenly() {
        for nodes in (1..40).chain([100, 1000, 16383, 16384]) {
            let ranges = even_ranges(nodes);
            assert_eq!(ranges.len(), nodes);
            let slots: Vec<u16> = ranges.iter().cloned().flatten().collect();
            assert_eq!(slots, (0..SLOTS).collect::<Vec<_>>());
            let (least, most) = (SLOTS / nodes as u16, SLOTS.div_ceil(nodes as u16));
            assert!(
                ranges
                    .iter()
                    .all(|range| (usize::from(least)..=usize::from(most)).contains(&range.len()))
            );
        }
        // As tools of Redis deal them.
        assert_eq!(even_ranges(3), [0..=5460, 5461..=10922, 10923..=16383]);
        assert!(even_ranges(0).is_empty() && even_ranges(16385).is_empty());
    }

    #[test]
    fn after_the_moves_the_shares_are_even_and_fewer_would_not_do() {
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..300 {
            let map = any_map(&mut random);
            let moves = map.moves_to_even_shares();
            let mut owners: Vec<_> = (0..SLOTS).map(|slot| map.owner(slot)).collect();
            let mut moved = 0;
            for one in &moves {
                for slot in one.slots.clone().map(usize::from) {
                    assert_eq!(owners[slot], one.from);
                    assert_ne!(one.from, Some(one.to));
                    owners[slot] = Some(one.to);
                    moved += 1;
                }
            }
            let count = map.nodes.len();
            let (least, extra) = (usize::from(SLOTS) / count, usize::from(SLOTS) % count);
            for node in 0..count {
                let size = owners.iter().filter(|owner| **owner == Some(node)).count();
                assert!(size == least || size == least + 1, "{size}");
            }
            assert!(owners.iter().all(Option::is_some));
            // A node keeps at most its share, and the larger shares are as many as they are.
            let sizes = map.nodes.iter().map(|node| {
                let slots = node.slots.iter();
                slots.map(ExactSizeIterator::len).sum::<usize>()
            });
            let larger = sizes.clone().filter(|size| *size > least).count();
            let kept: usize = sizes.map(|size| size.min(least)).sum();
            assert_eq!(moved, usize::from(SLOTS) - kept - larger.min(extra));
        }
    }

    #[test]
    fn even_shares_stay_as_they_are() {
        for nodes in [1, 2, 3, 7] {
            let mut text = String::from("name = \"x\"\nepoch = 1\n");
            for (at, range) in even_ranges(nodes).iter().enumerate() {
                let slots = format!("{}-{}", range.start(), range.end());
                text += &format!(
                    "[[nodes]]\nid = \"n{at}\"\nhost = \"h{at}\"\nport = 1\nslots = \"{slots}\"\n"
                );
            }
            let map = Map::parse(&text).expect("it is right");
            assert_eq!(map.moves_to_even_shares(), []);
        }
    }
}
