//! The longest common subsequence of two strings, 64 bytes of the second at a time.
//!
//! The textbook's table holds the length `L(i, j)` for the first `i` bytes of one string and the first `j` of
//! the other. From one column to the next it grows by 0 or 1, so a bit per cell is enough, and one addition
//! works on a word of them: Crochemore et al., "A fast and practical bit-vector algorithm for the longest
//! common subsequence problem" (2001). In our form a bit is 0 where the length grows:
//!
//! ```text
//!   V(0)     = all ones
//!   V(i + 1) = (V(i) + (V(i) & M)) | (V(i) & !M)        M: where the second string has the first one's byte i
//! ```
//!
//! The way back needs no more. Where two bytes differ, `L(i, j)` is the larger of its neighbours above and to
//! the left, and the one above is larger exactly if the length grows from the left to here.

use std::ops::RangeInclusive;

/// A stretch of bytes that follow each other in both strings, and belong to the subsequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Match {
    /// Positions in the first string.
    pub(super) first: RangeInclusive<usize>,
    /// Positions in the second string.
    pub(super) second: RangeInclusive<usize>,
}

impl Match {
    /// Bytes of the stretch.
    pub(super) fn len(&self) -> usize {
        self.first.end() - self.first.start() + 1
    }
}

/// The length of the longest common subsequence. Takes a bit per byte of `second`, and that for each distinct
/// byte of `first`.
pub(super) fn length(first: &[u8], second: &[u8]) -> usize {
    let masks = Masks::new(first, second);
    let mut row = vec![u64::MAX; masks.width];
    for &byte in first {
        step(&mut row, masks.of(byte));
    }
    growth(&row)
}

/// A longest common subsequence, as its stretches from the last to the first. Of several it is the one that
/// Redis finds. Takes a bit per pair of bytes.
pub(super) fn matches(first: &[u8], second: &[u8]) -> Vec<Match> {
    let rows = Rows::new(first, second);
    let mut found: Vec<Match> = Vec::new();
    let (mut i, mut j) = (first.len(), second.len());
    while i > 0 && j > 0 {
        if first[i - 1] == second[j - 1] {
            i -= 1;
            j -= 1;
            match found.last_mut() {
                Some(Match { first, second })
                    if *first.start() == i + 1 && *second.start() == j + 1 =>
                {
                    *first = i..=*first.end();
                    *second = j..=*second.end();
                }
                _ => found.push(Match {
                    first: i..=i,
                    second: j..=j,
                }),
            }
        } else if rows.grows(i, j) {
            i -= 1;
        } else {
            j -= 1;
        }
    }
    found
}

/// All rows of the table but the one of no bytes, which is all ones.
struct Rows {
    words: Vec<u64>,
    width: usize,
}

impl Rows {
    fn new(first: &[u8], second: &[u8]) -> Rows {
        let masks = Masks::new(first, second);
        let width = masks.width;
        let mut words = Vec::with_capacity(first.len() * width);
        let mut row = vec![u64::MAX; width];
        for &byte in first {
            step(&mut row, masks.of(byte));
            words.extend_from_slice(&row);
        }
        Rows { words, width }
    }

    /// Whether `L(i, j)` is larger than `L(i, j - 1)`; both count from 1.
    fn grows(&self, i: usize, j: usize) -> bool {
        let word = self.words[(i - 1) * self.width + (j - 1) / 64];
        word >> ((j - 1) % 64) & 1 == 0
    }
}

/// From the row of some bytes to the row of one more.
fn step(row: &mut [u64], mask: &[u64]) {
    let mut carry = false;
    for (bits, &mask) in row.iter_mut().zip(mask) {
        let (sum, over) = bits.overflowing_add(*bits & mask);
        let (sum, over_again) = sum.overflowing_add(u64::from(carry));
        carry = over | over_again;
        *bits = sum | (*bits & !mask);
    }
}

/// How often the length grows along a row. Bits behind the end of the string stay ones.
fn growth(row: &[u64]) -> usize {
    row.iter().map(|bits| bits.count_zeros() as usize).sum()
}

/// Where the second string has each byte that is in the first.
struct Masks {
    /// By byte: which of the masks is its own.
    numbers: [usize; 256],
    words: Vec<u64>,
    width: usize,
}

impl Masks {
    fn new(first: &[u8], second: &[u8]) -> Masks {
        const NONE: usize = usize::MAX;
        let width = second.len().div_ceil(64);
        let mut numbers = [NONE; 256];
        let mut count = 0;
        for &byte in first {
            let number = &mut numbers[usize::from(byte)];
            if *number == NONE {
                *number = count;
                count += 1;
            }
        }
        let mut words = vec![0; count * width];
        for (at, &byte) in second.iter().enumerate() {
            let number = numbers[usize::from(byte)];
            if number != NONE {
                words[number * width + at / 64] |= 1 << (at % 64);
            }
        }
        Masks {
            numbers,
            words,
            width,
        }
    }

    /// The mask of a byte that is in the first string.
    fn of(&self, byte: u8) -> &[u64] {
        let from = self.numbers[usize::from(byte)] * self.width;
        &self.words[from..from + self.width]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The textbook's table and walk.
    fn textbook(first: &[u8], second: &[u8]) -> (usize, Vec<Match>) {
        let mut table = vec![vec![0usize; second.len() + 1]; first.len() + 1];
        for (i, a) in first.iter().enumerate() {
            for (j, b) in second.iter().enumerate() {
                table[i + 1][j + 1] = if a == b {
                    table[i][j] + 1
                } else {
                    table[i][j + 1].max(table[i + 1][j])
                };
            }
        }
        let mut pairs = Vec::new();
        let (mut i, mut j) = (first.len(), second.len());
        while i > 0 && j > 0 {
            if first[i - 1] == second[j - 1] {
                (i, j) = (i - 1, j - 1);
                pairs.push((i, j));
            } else if table[i - 1][j] > table[i][j - 1] {
                i -= 1;
            } else {
                j -= 1;
            }
        }
        let stretches =
            pairs.chunk_by(|later, earlier| (later.0, later.1) == (earlier.0 + 1, earlier.1 + 1));
        let matches = stretches.map(|stretch| {
            let ((end, other_end), (start, other_start)) = (stretch[0], stretch[stretch.len() - 1]);
            Match {
                first: start..=end,
                second: other_start..=other_end,
            }
        });
        (table[first.len()][second.len()], matches.collect())
    }

    fn check(first: &[u8], second: &[u8]) {
        let (expected, stretches) = textbook(first, second);
        assert_eq!(length(first, second), expected, "{first:?} {second:?}");
        let found = matches(first, second);
        assert_eq!(found, stretches, "{first:?} {second:?}");
        assert_eq!(found.iter().map(Match::len).sum::<usize>(), expected);
        for Match {
            first: here,
            second: there,
        } in found
        {
            assert_eq!(first[here], second[there]);
        }
    }

    #[test]
    fn strings_without_anything_in_common() {
        check(b"", b"");
        check(b"abc", b"");
        check(b"", b"abc");
        check(b"abc", b"xyz");
    }

    #[test]
    fn the_example_of_the_documentation() {
        check(b"ohmytext", b"mynewtext");
        assert_eq!(length(b"ohmytext", b"mynewtext"), 6);
        assert_eq!(
            matches(b"ohmytext", b"mynewtext"),
            [
                Match {
                    first: 4..=7,
                    second: 5..=8
                },
                Match {
                    first: 2..=3,
                    second: 0..=1
                }
            ]
        );
    }

    #[test]
    fn every_pair_of_short_strings_of_two_letters() {
        let strings: Vec<Vec<u8>> = (0..7)
            .flat_map(|len| {
                (0..1u32 << len)
                    .map(move |bits| (0..len).map(|at| (bits >> at & 1) as u8).collect())
            })
            .collect();
        for first in &strings {
            for second in &strings {
                check(first, second);
            }
        }
    }

    #[test]
    fn lengths_around_the_words_of_a_row() {
        let mut random = fastrand::Rng::with_seed(3);
        for first_len in [1, 5, 63, 64, 65, 130] {
            for second_len in [1, 63, 64, 65, 127, 128, 129, 200] {
                for letters in [1, 2, 4, 255] {
                    let mut text =
                        |len: usize| (0..len).map(|_| random.u8(..letters)).collect::<Vec<u8>>();
                    let (first, second) = (text(first_len), text(second_len));
                    check(&first, &second);
                }
            }
        }
    }
}
