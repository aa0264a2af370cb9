//! Zipf's distribution: rank k of n comes up in proportion to 1 / k^exponent.
//!
//! Sampled by rejection-inversion (Hörmann and Derflinger, 1996): the area under the hat function is
//! inverted in closed form, and the rare point between hat and histogram is thrown away. No table, so
//! ten keys and ten billion cost the same, and any exponent from 0 (uniform) on is allowed, 1
//! included.

use fastrand::Rng;

/// A sampler of ranks.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    count: f64,
    exponent: f64,
    /// The integral of the hat over the first rank, shifted so that the histogram's first bar fits.
    area_first: f64,
    /// The integral of the hat up to the last rank.
    area_last: f64,
    /// Points this near to the right of their rank need no comparison.
    squeeze: f64,
}

impl Zipf {
    /// Ranks 1 to `count`.
    pub(crate) fn new(count: u64, exponent: f64) -> Zipf {
        assert!(count > 0 && exponent >= 0.0);
        // Ranks beyond 2^53 lose their last bits, which no run is long enough to notice.
        let mut zipf = Zipf {
            count: count as f64,
            exponent,
            area_first: 0.0,
            area_last: 0.0,
            squeeze: 0.0,
        };
        zipf.area_first = zipf.area(1.5) - 1.0;
        zipf.area_last = zipf.area(zipf.count + 0.5);
        zipf.squeeze = 2.0 - zipf.inverse(zipf.area(2.5) - zipf.height(2.0));
        zipf
    }

    /// A rank from 1 on.
    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        loop {
            let area = self.area_last + rng.f64() * (self.area_first - self.area_last);
            let point = self.inverse(area);
            let rank = (point + 0.5).floor().clamp(1.0, self.count);
            if rank - point <= self.squeeze || area >= self.area(rank + 0.5) - self.height(rank) {
                return rank as u64;
            }
        }
    }

    /// The height of the histogram, x^-exponent.
    fn height(&self, x: f64) -> f64 {
        (-self.exponent * x.ln()).exp()
    }

    /// The integral of the height, (x^(1-e) - 1) / (1-e), in a form that goes over into the logarithm
    /// at e = 1.
    fn area(&self, x: f64) -> f64 {
        let log = x.ln();
        expm1_over((1.0 - self.exponent) * log) * log
    }

    /// Where the integral has a value.
    fn inverse(&self, area: f64) -> f64 {
        // Rounding may carry the argument below the pole of the logarithm.
        let scaled = (area * (1.0 - self.exponent)).max(-1.0);
        (ln1p_over(scaled) * area).exp()
    }
}

/// (e^x - 1) / x, which is 1 at 0.
fn expm1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 {
        x.exp_m1() / x
    } else {
        1.0 + x / 2.0
    }
}

/// ln(1 + x) / x, which is 1 at 0.
fn ln1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 {
        x.ln_1p() / x
    } else {
        1.0 - x / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares how often each rank comes up with theory, in standard deviations.
    fn check(count: u64, exponent: f64) {
        const DRAWS: u64 = 200_000;
        let zipf = Zipf::new(count, exponent);
        let mut rng = Rng::with_seed(count ^ exponent.to_bits());
        let mut seen = vec![0_u64; count as usize + 1];
        for _ in 0..DRAWS {
            seen[zipf.draw(&mut rng) as usize] += 1;
        }
        assert_eq!(seen[0], 0);
        let total: f64 = (1..=count).map(|k| (k as f64).powf(-exponent)).sum();
        let mut tail = (0.0, 0);
        for rank in 1..=count {
            let share = (rank as f64).powf(-exponent) / total;
            // Rare ranks are compared together.
            if rank > 50 {
                tail = (tail.0 + share, tail.1 + seen[rank as usize]);
            } else {
                near(share, seen[rank as usize], DRAWS, count, exponent, rank);
            }
        }
        near(tail.0, tail.1, DRAWS, count, exponent, u64::MAX);
    }

    fn near(share: f64, seen: u64, draws: u64, count: u64, exponent: f64, rank: u64) {
        let expected = share * draws as f64;
        let deviation = (draws as f64 * share * (1.0 - share)).max(0.0).sqrt();
        let difference = (seen as f64 - expected).abs();
        assert!(
            difference <= 5.0 * deviation + 1e-6,
            "n {count} e {exponent} rank {rank}: {seen} of {expected}"
        );
    }

    #[test]
    fn ranks_come_up_as_often_as_theory_says() {
        for count in [1, 2, 3, 10, 1_000, 100_000] {
            for exponent in [0.0, 0.5, 0.99, 1.0, 1.000_000_001, 1.2, 3.0] {
                check(count, exponent);
            }
        }
    }

    #[test]
    fn huge_ranges_stay_in_range() {
        let mut rng = Rng::with_seed(1);
        for exponent in [0.0, 0.7, 0.99, 1.0, 2.0] {
            let zipf = Zipf::new(1 << 40, exponent);
            for _ in 0..10_000 {
                assert!((1..=1 << 40).contains(&zipf.draw(&mut rng)));
            }
        }
    }
}
