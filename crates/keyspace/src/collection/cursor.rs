//! Cursors of scans of hashes and sets: places in the order of their order keys, in 48 bits.
//!
//! Clients keep cursors as doubles or as signed integers, so a cursor has to be smaller than the 64 bits of
//! an order key. A set of integers is in the order of its integers, and they are often close to one another:
//! the upper 48 bits of 64 would be the same for 65,536 of them. So the cursor is exact near 0 and coarse far
//! from it, as a floating-point number is. It keeps the order, and 43 bits of the distance from 0.
//!
//! ```text
//!  high half of the order key:  0 ........ 2^63 - 2^43 .. 2^63 .. 2^63 + 2^43 ........ 2^64
//!  integer                     -2^63 ........ -2^43 ...... 0 ....... 2^43 ........... 2^63
//!  cursor                       0 .......................MIDDLE .................. 2 * MIDDLE < 2^48
//! ```
//!
//! Integers below 2^43 (8.8e12) have a cursor each. 128 share one at 2^50, 131,072 at 2^60. Hashes are spread
//! over 64 bits: some 2^44 of the cursors are theirs, so items hardly ever share one.

/// Bits of a distance below its first bit.
const BITS: u32 = 42;
/// The cursor of the integer 0.
const MIDDLE: u64 = 22 << BITS;
/// The high half of the order key of the integer 0.
const ZERO: u64 = 1 << 63;

/// The code of a distance below 2^63: ascending, below `MIDDLE`.
fn code(distance: u64) -> u64 {
    let shift = (u64::BITS - distance.leading_zeros()).saturating_sub(BITS + 1);
    (u64::from(shift) << BITS) + (distance >> shift)
}

/// The smallest distance with this code or one above it; 2^63 for `MIDDLE`.
fn first_distance(code: u64) -> u64 {
    let shift = (code >> BITS).saturating_sub(1);
    (code - (shift << BITS)) << shift
}

/// The cursor of the high half of an order key.
pub(super) fn cursor_of(high: u64) -> u64 {
    match high.checked_sub(ZERO) {
        Some(distance) => MIDDLE + code(distance),
        None => MIDDLE - 1 - code(ZERO - 1 - high),
    }
}

/// The first high half of an order key that has this cursor; `None` behind all.
pub(super) fn first_of(cursor: u64) -> Option<u64> {
    match cursor.checked_sub(MIDDLE) {
        Some(code) if code < MIDDLE => Some(ZERO + first_distance(code)),
        Some(_) => None,
        None => Some(ZERO - first_distance(MIDDLE - cursor)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_in_the_order_of_keys_and_below_two_to_the_48() {
        let mut highs = vec![0, 1, u64::MAX - 1, u64::MAX];
        for bit in 0..64 {
            let distance = 1_u64 << bit;
            for near in [distance.wrapping_sub(1), distance, distance + 1] {
                highs.extend([ZERO.wrapping_add(near), ZERO.wrapping_sub(near), near]);
            }
        }
        let mut random = fastrand::Rng::with_seed(3);
        highs.extend((0..10_000).map(|_| random.u64(..) >> random.u32(..64)));
        highs.extend((0..10_000).map(|_| ZERO.wrapping_sub(random.u64(..) >> random.u32(..64))));
        highs.sort_unstable();
        let cursors: Vec<u64> = highs.iter().map(|&high| cursor_of(high)).collect();
        assert!(cursors.is_sorted());
        for (&high, &cursor) in highs.iter().zip(&cursors) {
            assert!(cursor < 1 << 48, "{high}");
            let first = first_of(cursor).expect("it has a key");
            assert!(first <= high, "{high}: {first}");
            assert_eq!(cursor_of(first), cursor, "{high}");
            assert!(first == 0 || cursor_of(first - 1) < cursor, "{high}");
        }
        assert_eq!((cursor_of(0), first_of(0)), (0, Some(0)));
        assert_eq!(first_of(2 * MIDDLE), None);
        assert_eq!(first_of(u64::MAX), None);
    }

    #[test]
    fn small_integers_have_a_cursor_each() {
        for integer in [-8_796_093_022_207_i64, -1, 0, 1, 8_796_093_022_206] {
            let high = |integer: i64| integer as u64 ^ ZERO;
            assert_eq!(cursor_of(high(integer)) + 1, cursor_of(high(integer + 1)));
        }
    }
}
