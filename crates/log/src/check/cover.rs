//! Which part of an instance its leaves have.

use std::collections::BTreeMap;

/// Where the range of a leaf begins and ends, from the data of its record: bytes whose order is that of the
/// elements. The range that begins with the first element begins with no bytes; one without an end has the
/// last. `None` if the data make no sense.
pub type LeafRange = fn(&[u8]) -> Option<(Vec<u8>, Option<Vec<u8>>)>;

/// Ranges that do not touch, by their starts. As many leaves are neighbours, these are few.
#[derive(Debug, Default)]
pub(super) struct Cover(BTreeMap<Vec<u8>, Option<Vec<u8>>>);

impl Cover {
    /// Adds a range.
    pub(super) fn add(&mut self, mut start: Vec<u8>, mut end: Option<Vec<u8>>) {
        // What begins in front of it or at its start, and goes on at least up to there.
        let before = self.0.range(..=start.clone()).next_back();
        if let Some((from, to)) = before
            && to.as_ref().is_none_or(|to| *to >= start)
        {
            (start, end) = (from.clone(), later(end, to.clone()));
        }
        loop {
            let behind = self.0.range(start.clone()..).next();
            let Some((from, to)) = behind else { break };
            if end.as_ref().is_some_and(|end| from > end) {
                break;
            }
            let from = from.clone();
            end = later(end, to.clone());
            self.0.remove(&from);
        }
        self.0.insert(start, end);
    }

    /// Whether nothing is missing.
    pub(super) fn is_whole(&self) -> bool {
        self.0.get(&[][..]) == Some(&None)
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// The later of two ends.
fn later(one: Option<Vec<u8>>, other: Option<Vec<u8>>) -> Option<Vec<u8>> {
    Some(one?.max(other?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cover_is_whole_when_no_range_is_missing() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..2000 {
            let (mut cover, mut covered) = (Cover::default(), [false; 8]);
            for _ in 0..random.usize(1..12) {
                let from = random.usize(..8);
                let to = random.usize(from + 1..=8);
                covered[from..to].fill(true);
                let start = if from == 0 {
                    Vec::new()
                } else {
                    vec![from as u8]
                };
                cover.add(start, (to < 8).then(|| vec![to as u8]));
                assert_eq!(
                    cover.is_whole(),
                    covered == [true; 8],
                    "{covered:?} {cover:?}"
                );
            }
        }
    }
}
