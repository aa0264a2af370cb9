//! Save points: after how many changes, and how long after the last snapshot, another one is due.

/// "After `seconds`, if there were at least so many changes."
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SavePoint {
    pub(crate) seconds: i64,
    pub(crate) changes: i64,
}

impl SavePoint {
    /// Reads any number of points: `3600 1 300 100`. `None` if that is not what it is.
    pub(crate) fn parse_all(text: &str) -> Option<Vec<SavePoint>> {
        let numbers = text
            .split_ascii_whitespace()
            .map(|word| resp::parse_i64(word.as_bytes()))
            .collect::<Option<Vec<i64>>>()?;
        let (pairs, []) = numbers.as_chunks::<2>() else {
            return None;
        };
        let point = |&[seconds, changes]: &[i64; 2]| {
            let is_right = seconds >= 1 && (0..=i64::from(i32::MAX)).contains(&changes);
            is_right.then_some(SavePoint { seconds, changes })
        };
        pairs.iter().map(point).collect()
    }

    /// Whether it is met `elapsed_s` after the last snapshot and with so many changes since.
    pub(crate) fn is_met(self, elapsed_s: i64, changes: u64) -> bool {
        elapsed_s > self.seconds && changes >= self.changes.unsigned_abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_pairs_of_numbers() {
        let point = |seconds, changes| SavePoint { seconds, changes };
        for (text, points) in [
            ("", Some(vec![])),
            ("900 1", Some(vec![point(900, 1)])),
            (" 900  1\t1 0 ", Some(vec![point(900, 1), point(1, 0)])),
            ("900", None),
            ("900 1 300", None),
            ("0 1", None),
            ("-1 1", None),
            ("1 -1", None),
            ("a 1", None),
            ("1 99999999999", None),
        ] {
            assert_eq!(SavePoint::parse_all(text), points, "{text}");
        }
    }

    #[test]
    fn a_point_is_met_when_both_numbers_are() {
        let point = SavePoint {
            seconds: 10,
            changes: 3,
        };
        assert!(!point.is_met(10, 3));
        assert!(point.is_met(11, 3));
        assert!(!point.is_met(1000, 2));
    }
}
