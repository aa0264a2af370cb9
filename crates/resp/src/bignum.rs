//! Natural numbers of any size: just what converting between decimal and binary needs.
//!
//! Here live the few operations of school arithmetic that `extended` is built on. They serve
//! numbers of at most some 20,000 bits, and only where machine words do not suffice, so they are
//! written for clarity.
//!
//! Layout: `limbs` of 64 bits, the least significant first. Invariant: the last limb is not zero;
//! zero has no limbs.

use std::cmp::Ordering;

use crate::literal::Scaled;
use crate::number::{INTEGER_TEXT_LEN, format_u64, write_digits};

/// The largest power of ten that is a limb, and its number of zeros.
const LIMB_POWER_OF_TEN: u64 = 10_000_000_000_000_000_000;
const LIMB_DIGITS: usize = 19;
/// The largest power of five that is a limb, and its exponent.
const LIMB_POWER_OF_FIVE: u64 = 5u64.pow(LIMB_FIVES);
const LIMB_FIVES: u32 = 27;

#[derive(Clone, Debug)]
pub(crate) struct Natural {
    limbs: Vec<u64>,
}

impl Natural {
    pub(crate) fn new(value: u64) -> Natural {
        let mut natural = Natural { limbs: vec![value] };
        natural.trim();
        natural
    }

    /// The number with these decimal digits.
    pub(crate) fn from_digits<'a>(digits: impl Iterator<Item = &'a u8>) -> Natural {
        let mut natural = Natural::new(0);
        let (mut chunk, mut power) = (0, 1);
        for digit in digits {
            chunk = chunk * 10 + u64::from(digit - b'0');
            power *= 10;
            if power == LIMB_POWER_OF_TEN {
                natural.multiply_add(power, chunk);
                (chunk, power) = (0, 1);
            }
        }
        natural.multiply_add(power, chunk);
        natural
    }

    pub(crate) fn multiply_by_power_of_five(&mut self, mut exponent: u32) {
        while exponent >= LIMB_FIVES {
            self.multiply_add(LIMB_POWER_OF_FIVE, 0);
            exponent -= LIMB_FIVES;
        }
        self.multiply_add(5u64.pow(exponent), 0);
    }

    fn multiply_add(&mut self, factor: u64, summand: u64) {
        let mut carry = summand;
        for limb in &mut self.limbs {
            let product = u128::from(*limb) * u128::from(factor) + u128::from(carry);
            *limb = product as u64;
            carry = (product >> 64) as u64;
        }
        if carry != 0 {
            self.limbs.push(carry);
        }
    }

    pub(crate) fn shift_left(&mut self, bits: usize) {
        let (limbs, bits) = (bits / 64, bits % 64);
        if bits != 0 {
            let mut carry = 0;
            for limb in &mut self.limbs {
                let shifted_out = *limb >> (64 - bits);
                *limb = *limb << bits | carry;
                carry = shifted_out;
            }
            if carry != 0 {
                self.limbs.push(carry);
            }
        }
        if !self.limbs.is_empty() {
            self.limbs.splice(0..0, std::iter::repeat_n(0, limbs));
        }
    }

    fn bit_len(&self) -> usize {
        self.limbs.len() * 64
            - self
                .limbs
                .last()
                .map_or(0, |limb| limb.leading_zeros() as usize)
    }

    fn cmp(&self, other: &Natural) -> Ordering {
        let by_len = self.limbs.len().cmp(&other.limbs.len());
        by_len.then_with(|| self.limbs.iter().rev().cmp(other.limbs.iter().rev()))
    }

    /// Subtracts a number that is not larger.
    fn subtract(&mut self, other: &Natural) {
        let mut borrow = false;
        let others = other.limbs.iter().copied().chain(std::iter::repeat(0));
        for (limb, other) in self.limbs.iter_mut().zip(others) {
            let (difference, borrow_one) = limb.overflowing_sub(other);
            let (difference, borrow_two) = difference.overflowing_sub(u64::from(borrow));
            *limb = difference;
            borrow = borrow_one || borrow_two;
        }
        debug_assert!(!borrow, "the subtrahend is not larger");
        self.trim();
    }

    /// Divides in place and returns the remainder.
    fn divide(&mut self, divisor: u64) -> u64 {
        let mut remainder = 0;
        for limb in self.limbs.iter_mut().rev() {
            let dividend = u128::from(remainder) << 64 | u128::from(*limb);
            *limb = (dividend / u128::from(divisor)) as u64;
            remainder = (dividend % u128::from(divisor)) as u64;
        }
        self.trim();
        remainder
    }

    fn trim(&mut self) {
        while self.limbs.last() == Some(&0) {
            self.limbs.pop();
        }
    }

    /// The upper 128 bits, the last one sticky.
    pub(crate) fn to_scaled(&self) -> Scaled {
        let low_limbs = self.limbs.len().saturating_sub(2);
        let (low, high) = self.limbs.split_at(low_limbs);
        let top = high
            .iter()
            .rev()
            .fold(0, |top, &limb| top << 64 | u128::from(limb));
        let Some((&next, rest)) = low.split_last() else {
            return Scaled {
                significand: top,
                exponent: 0,
            };
        };
        // The upper two limbs hold 65 to 128 bits; the limb below fills them up.
        let free = top.leading_zeros();
        let significand = if free == 0 {
            top
        } else {
            top << free | u128::from(next >> (64 - free))
        };
        let left_out = next << free;
        let sticky = left_out != 0 || rest.iter().any(|&limb| limb != 0);
        Scaled {
            significand: significand | u128::from(sticky),
            exponent: low_limbs as i64 * 64 - i64::from(free),
        }
    }

    /// `self / divisor` to 67 bits at least, and a sticky one below them. Neither may be zero.
    pub(crate) fn divided_by(mut self, mut divisor: Natural) -> Scaled {
        // Bit by bit, as at school, from two numbers of the same length on.
        let scale = self.bit_len() as i64 - divisor.bit_len() as i64;
        if scale < 0 {
            self.shift_left(scale.unsigned_abs() as usize);
        } else {
            divisor.shift_left(scale as usize);
        }
        let mut quotient = 0u128;
        for _ in 0..68 {
            quotient <<= 1;
            if self.cmp(&divisor).is_ge() {
                self.subtract(&divisor);
                quotient |= 1;
            }
            self.shift_left(1);
        }
        let sticky = !self.limbs.is_empty();
        Scaled {
            significand: quotient << 1 | u128::from(sticky),
            exponent: scale - 68,
        }
    }

    /// Appends the decimal digits.
    pub(crate) fn write_decimal(mut self, out: &mut Vec<u8>) {
        let mut chunks = Vec::new();
        while self.limbs.len() > 1 {
            chunks.push(self.divide(LIMB_POWER_OF_TEN));
        }
        let first = self.limbs.first().copied().unwrap_or(0);
        out.extend_from_slice(format_u64(first, &mut [0; INTEGER_TEXT_LEN]));
        for &chunk in chunks.iter().rev() {
            let mut digits = [b'0'; LIMB_DIGITS];
            write_digits(chunk, &mut digits, LIMB_DIGITS);
            out.extend_from_slice(&digits);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(natural: &Natural) -> String {
        let mut out = Vec::new();
        natural.clone().write_decimal(&mut out);
        String::from_utf8(out).expect("digits are text")
    }

    #[test]
    fn digits_survive_both_conversions() {
        fastrand::seed(1);
        for len in 1..200 {
            let mut digits: Vec<u8> = (0..len).map(|_| fastrand::u8(b'0'..=b'9')).collect();
            digits[0] = fastrand::u8(b'1'..=b'9');
            assert_eq!(
                decimal(&Natural::from_digits(digits.iter())).as_bytes(),
                digits
            );
        }
        for text in [
            "0",
            "1",
            "9999999999999999999",
            "10000000000000000000",
            "18446744073709551616",
        ] {
            assert_eq!(decimal(&Natural::from_digits(text.as_bytes().iter())), text);
        }
        assert_eq!(
            decimal(&Natural::from_digits(b"00000000000000000000000000".iter())),
            "0"
        );
    }

    #[test]
    fn powers_and_shifts_agree_with_known_numbers() {
        let mut natural = Natural::new(1);
        natural.multiply_by_power_of_five(60);
        assert_eq!(
            decimal(&natural),
            "867361737988403547205962240695953369140625"
        );
        natural.shift_left(60);
        assert_eq!(decimal(&natural), format!("1{}", "0".repeat(60)));
        let mut two = Natural::new(1);
        two.shift_left(128);
        assert_eq!(decimal(&two), "340282366920938463463374607431768211456");
        let mut zero = Natural::new(0);
        zero.shift_left(200);
        assert_eq!(decimal(&zero), "0");
    }

    #[test]
    fn scaled_values_carry_a_sticky_bit() {
        let exact = Natural::from_digits(b"18446744073709551617".iter()).to_scaled();
        assert_eq!((exact.significand, exact.exponent), ((1 << 64) + 1, 0));
        let mut long = Natural::new(1);
        long.shift_left(200);
        assert_eq!(long.to_scaled().significand, 1 << 127);
        assert_eq!(long.to_scaled().exponent, 73);
        long.multiply_add(1, 1);
        assert_eq!(long.to_scaled().significand, 1 << 127 | 1);
    }

    #[test]
    fn quotients_match_machine_division() {
        fastrand::seed(2);
        for _ in 0..10_000 {
            let dividend = (fastrand::u64(..) >> fastrand::u32(4..64)).max(1);
            let divisor = (fastrand::u64(..) >> fastrand::u32(4..64)).max(1);
            let scaled = Natural::new(dividend).divided_by(Natural::new(divisor));
            // The last bit is the sticky one, so the quotient's unit is twice the result's.
            let shifted = u128::from(dividend) << -(scaled.exponent + 1);
            let (quotient, remainder) =
                (shifted / u128::from(divisor), shifted % u128::from(divisor));
            assert_eq!(
                scaled.significand,
                quotient << 1 | u128::from(remainder != 0),
                "{dividend} / {divisor}"
            );
            assert!(quotient >> 66 != 0);
        }
    }
}
