//! The estimate, from how many registers have which number: Otmar Ertl, "New cardinality estimation
//! algorithms for HyperLogLog sketches", arXiv:1702.01284. Its operations have the order of those of Redis.

use super::layout::{INDEX_BITS, REGISTER_MAX, REGISTERS};

/// Bits of a hash beside those that choose the register.
const BITS: usize = 64 - INDEX_BITS;
/// 1 / (2 ln 2).
const ALPHA: f64 = 0.721_347_520_444_481_7;

/// How many registers have each number.
pub(super) struct Histogram([u32; REGISTER_MAX as usize + 1]);

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram([0; REGISTER_MAX as usize + 1])
    }
}

impl Histogram {
    #[inline]
    pub(super) fn add(&mut self, number: u8, registers: u32) {
        self.0[usize::from(number)] += registers;
    }

    pub(super) fn estimate(&self) -> u64 {
        let all = REGISTERS as f64;
        let full = f64::from(self.0[BITS + 1]);
        let mut sum = all * tau((all - full) / all);
        for &registers in self.0[1..=BITS].iter().rev() {
            sum += f64::from(registers);
            sum *= 0.5;
        }
        sum += all * sigma(f64::from(self.0[0]) / all);
        (ALPHA * all * all / sum).round() as u64
    }
}

fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut sum) = (1.0, x);
    loop {
        x *= x;
        let before = sum;
        sum += x * y;
        y += y;
        if before == sum {
            return sum;
        }
    }
}

fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut y, mut sum) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = sum;
        y *= 0.5;
        sum -= (1.0 - x) * (1.0 - x) * y;
        if before == sum {
            return sum / 3.0;
        }
    }
}
