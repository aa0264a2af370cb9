//! Positions that count from either end, as GETRANGE, BITCOUNT and BITPOS take them.

use std::ops::RangeInclusive;

/// The positions from `start` to `end`, both included, of something `len` long. Negative ones count from the
/// end, -1 being the last; what lies outside is cut off, but a start behind the end is an empty range:
/// `None`.
///
/// A negative position before the beginning means the beginning, so that `0 ..= -100` holds the first
/// position. That is an oddity of long standing which clients may rely on.
pub(crate) fn resolve(start: i64, end: i64, len: usize) -> Option<RangeInclusive<usize>> {
    let last = i64::try_from(len).ok()?.checked_sub(1)?;
    let from_either_end = |at: i64| if at < 0 { (last + 1 + at).max(0) } else { at };
    let (start, end) = (from_either_end(start), from_either_end(end).min(last));
    (start <= end).then_some(start as usize..=end as usize)
}

/// Whether two positions both count from the end and are in the wrong order. GETRANGE and BITCOUNT take that
/// for an empty range even where [`resolve`] would cut it to the first position; BITPOS doesn't.
pub(crate) fn is_backward(start: i64, end: i64) -> bool {
    start < 0 && end < 0 && start > end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_from_either_end() {
        assert_eq!(resolve(0, -1, 5), Some(0..=4));
        assert_eq!(resolve(-3, -2, 5), Some(2..=3));
        assert_eq!(resolve(1, 3, 5), Some(1..=3));
        assert_eq!(resolve(4, 4, 5), Some(4..=4));
    }

    #[test]
    fn what_lies_outside_is_cut_off() {
        assert_eq!(resolve(-100, 100, 5), Some(0..=4));
        assert_eq!(resolve(i64::MIN, i64::MAX, 5), Some(0..=4));
        assert_eq!(resolve(3, i64::MAX, 5), Some(3..=4));
        assert_eq!(resolve(0, -100, 5), Some(0..=0));
        assert_eq!(resolve(i64::MIN, i64::MIN, 5), Some(0..=0));
    }

    #[test]
    fn nothing_is_in_an_empty_range() {
        assert_eq!(resolve(0, -1, 0), None);
        assert_eq!(resolve(0, 0, 0), None);
        assert_eq!(resolve(5, 9, 5), None);
        assert_eq!(resolve(3, 1, 5), None);
        assert_eq!(resolve(-1, -2, 5), None);
        assert_eq!(resolve(i64::MAX, i64::MIN, 5), None);
    }

    #[test]
    fn only_negative_positions_are_backward() {
        assert!(is_backward(-7, -9) && is_backward(-1, i64::MIN));
        assert!(
            !is_backward(-9, -7)
                && !is_backward(-7, -7)
                && !is_backward(3, 1)
                && !is_backward(0, -1)
        );
        assert_eq!(resolve(-7, -9, 5), Some(0..=0));
    }
}
