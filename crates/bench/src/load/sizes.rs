//! How large the next value is.

use fastrand::Rng;

/// A distribution of value sizes, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sizes {
    /// Always the same.
    Fixed(u64),
    /// Any size of a range, both ends included, as often as any other.
    Range(u64, u64),
    /// Sizes with weights.
    List(Vec<(u64, u64)>),
}

impl Default for Sizes {
    /// As redis-benchmark's.
    fn default() -> Sizes {
        Sizes::Fixed(3)
    }
}

impl Sizes {
    /// The next size.
    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        match self {
            Sizes::Fixed(size) => *size,
            Sizes::Range(low, high) => rng.u64(*low..=*high),
            Sizes::List(list) => {
                let total: u64 = list.iter().map(|(_, weight)| weight).sum();
                let mut left = rng.u64(..total.max(1));
                for (size, weight) in list {
                    if left < *weight {
                        return *size;
                    }
                    left -= weight;
                }
                0
            }
        }
    }

    /// The size that the next value has in the mean.
    pub(crate) fn mean(&self) -> f64 {
        match self {
            Sizes::Fixed(size) => *size as f64,
            Sizes::Range(low, high) => (*low as f64 + *high as f64) / 2.0,
            Sizes::List(list) => {
                let total: u64 = list.iter().map(|(_, weight)| weight).sum();
                let sum: f64 = list.iter().map(|&(s, w)| s as f64 * w as f64).sum();
                sum / total.max(1) as f64
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_of(sizes: &Sizes) -> f64 {
        let mut rng = Rng::with_seed(9);
        (0..50_000)
            .map(|_| sizes.draw(&mut rng) as f64)
            .sum::<f64>()
            / 50_000.0
    }

    #[test]
    fn sizes_come_in_their_proportions() {
        for sizes in [
            Sizes::Fixed(64 << 10),
            Sizes::Range(1, 1_024),
            Sizes::Range(5, 5),
            Sizes::List(vec![(32, 9), (1 << 20, 1)]),
            Sizes::List(vec![(0, 1)]),
        ] {
            let (drawn, expected) = (mean_of(&sizes), sizes.mean());
            assert!(
                (drawn - expected).abs() <= 0.05 * expected,
                "{sizes:?}: {drawn}"
            );
        }
    }

    #[test]
    fn both_ends_and_all_sizes_of_a_list_occur() {
        let mut rng = Rng::with_seed(2);
        let seen: std::collections::BTreeSet<_> = (0..1_000)
            .map(|_| Sizes::Range(3, 5).draw(&mut rng))
            .collect();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [3, 4, 5]);
        let list = Sizes::List(vec![(7, 1), (9, 0), (11, 1)]);
        let seen: std::collections::BTreeSet<_> = (0..1_000).map(|_| list.draw(&mut rng)).collect();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [7, 11]);
    }
}
