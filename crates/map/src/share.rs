//! Even shares of the slots.

use std::ops::RangeInclusive;

use resp::slot::SLOTS;

/// All slots in as many ranges, in order, whose sizes differ by 1 at most. `nodes` is from 1 to [`SLOTS`]; for others there are
/// no ranges.
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
