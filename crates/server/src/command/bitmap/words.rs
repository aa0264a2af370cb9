//! Bits of byte strings, many at a time: counting, finding, combining.
//!
//! Everything here goes through its input in words of 64 bits or in blocks that the compiler turns into
//! vector instructions, without a copy and without an assumption about alignment. A range of bits is given by
//! its first and last one; bit 0 is the highest of the first byte.

use std::ops::RangeInclusive;

/// Ones in `bytes`.
///
/// Budget: 1.1 instructions per byte.
pub(super) fn count_ones(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let whole: u64 = words
        .iter()
        .map(|&word| u64::from(u64::from_ne_bytes(word).count_ones()))
        .sum();
    whole
        + rest
            .iter()
            .map(|byte| u64::from(byte.count_ones()))
            .sum::<u64>()
}

/// Ones among the bits of a range that lies inside `bytes`.
pub(super) fn count_range(bytes: &[u8], bits: RangeInclusive<usize>) -> u64 {
    let (first, last) = (*bits.start(), *bits.end());
    let bytes = &bytes[first / 8..=last / 8];
    // Whole bytes are counted, then what lies before and behind the range in the outer ones is taken back.
    let before = bytes[0] & !(0xff >> (first % 8));
    let behind = bytes[bytes.len() - 1] & ((0x80 >> (last % 8)) - 1);
    count_ones(bytes) - u64::from(before.count_ones()) - u64::from(behind.count_ones())
}

/// The first bit of a range inside `bytes` that is `wanted`.
///
/// Budget: 0.3 instructions per byte that is skipped.
pub(super) fn find(bytes: &[u8], wanted: bool, bits: RangeInclusive<usize>) -> Option<usize> {
    let (first, last) = (*bits.start(), *bits.end());
    // A byte without any wanted bit.
    let dull = if wanted { 0x00 } else { 0xff };
    let position = |at: usize, byte: u8| at * 8 + (byte ^ dull).leading_zeros() as usize;
    // The bits before the range count as dull.
    let head = 0xff >> (first % 8);
    let byte = bytes[first / 8] & head | dull & !head;
    let found = if byte != dull {
        position(first / 8, byte)
    } else {
        let from = first / 8 + 1;
        let at = from + first_other(&bytes[from..=last / 8], dull)?;
        position(at, bytes[at])
    };
    // The search was for bytes; the last of them may go on behind the range.
    (found <= last).then_some(found)
}

/// The first byte that is not `dull`.
fn first_other(bytes: &[u8], dull: u8) -> Option<usize> {
    const BLOCK: usize = 64;
    let same = |block: &[u8; BLOCK]| block.iter().fold(0, |other, byte| other | (byte ^ dull)) == 0;
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    let skipped = blocks.iter().take_while(|&block| same(block)).count() * BLOCK;
    let within = bytes[skipped..].iter().position(|&byte| byte != dull)?;
    Some(skipped + within)
}

/// An operation on the bits of several strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    And,
    Or,
    Xor,
    /// Of one string.
    Not,
    /// Bits of the first that no other has.
    Diff,
    /// Bits that the first lacks and another has.
    Diff1,
    /// Bits of the first that another has, too.
    AndOr,
    /// Bits that exactly one has.
    One,
}

impl Operation {
    /// The operation of a name in any case.
    pub(super) fn of_name(name: &[u8]) -> Option<Operation> {
        let operations = [
            ("AND", Operation::And),
            ("OR", Operation::Or),
            ("XOR", Operation::Xor),
            ("NOT", Operation::Not),
            ("DIFF", Operation::Diff),
            ("DIFF1", Operation::Diff1),
            ("ANDOR", Operation::AndOr),
            ("ONE", Operation::One),
        ];
        let found = operations
            .into_iter()
            .find(|(word, _)| name.eq_ignore_ascii_case(word.as_bytes()));
        found.map(|(_, operation)| operation)
    }
}

/// Bytes of the result that are finished before the next ones are begun: few enough to stay in the nearest
/// cache.
const COMBINED_BYTES: usize = 8 * 1024;

/// The result of an operation: as long as the longest operand, where the others count as continued by zeros.
pub(super) fn combine(operation: Operation, operands: &[&[u8]]) -> Vec<u8> {
    let len = operands
        .iter()
        .map(|operand| operand.len())
        .max()
        .unwrap_or(0);
    let mut result = Vec::with_capacity(len);
    // Bits of a block that more than one operand has.
    let mut several = Vec::new();
    while result.len() < len {
        let (from, until) = (result.len(), (result.len() + COMBINED_BYTES).min(len));
        let part = |operand: &&[u8]| -> usize { operand.len().min(until) };
        let mut operands = operands
            .iter()
            .map(|operand| operand.get(from..part(operand)).unwrap_or(&[]));
        let first: &[u8] = operands.next().unwrap_or(&[]);
        // These begin with what the others have.
        if !matches!(operation, Operation::Diff1 | Operation::AndOr) {
            result.extend_from_slice(first);
        }
        result.resize(until, 0);
        let block = &mut result[from..];
        match operation {
            Operation::Diff => {
                operands.for_each(|operand| apply(block, operand, |byte, other| byte & !other));
            }
            Operation::Diff1 => {
                operands.for_each(|operand| apply(block, operand, |byte, other| byte | other));
                apply(block, first, |byte, first| byte & !first);
            }
            Operation::AndOr => {
                operands.for_each(|operand| apply(block, operand, |byte, other| byte | other));
                apply(block, first, |byte, first| byte & first);
                block[first.len()..].fill(0);
            }
            Operation::One => {
                several.clear();
                several.resize(block.len(), 0);
                operands.for_each(|operand| {
                    let both = block.iter().zip(operand).map(|(byte, other)| byte & other);
                    several
                        .iter_mut()
                        .zip(both)
                        .for_each(|(several, both)| *several |= both);
                    apply(block, operand, |byte, other| byte ^ other);
                });
                apply(block, &several, |byte, several| byte & !several);
            }
            Operation::Not => block.iter_mut().for_each(|byte| *byte = !*byte),
            Operation::Or => {
                operands.for_each(|operand| apply(block, operand, |byte, other| byte | other))
            }
            Operation::Xor => {
                operands.for_each(|operand| apply(block, operand, |byte, other| byte ^ other))
            }
            Operation::And => operands.for_each(|operand| {
                apply(block, operand, |byte, other| byte & other);
                block[operand.len()..].fill(0);
            }),
        }
    }
    result
}

/// Changes the first bytes of a block by those of an operand that is no longer.
#[inline]
fn apply(block: &mut [u8], operand: &[u8], change: impl Fn(u8, u8) -> u8) {
    block
        .iter_mut()
        .zip(operand)
        .for_each(|(byte, &other)| *byte = change(*byte, other));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(bytes: &[u8]) -> Vec<bool> {
        bytes
            .iter()
            .flat_map(|byte| (0..8).map(move |at| byte & 0x80 >> at != 0))
            .collect()
    }

    #[test]
    fn counting_and_finding_agree_with_single_bits_for_every_range() {
        let mut random = fastrand::Rng::with_seed(11);
        for len in 1..20 {
            let sparse: Vec<u8> = (0..len)
                .map(|_| [0, 0, 0xff, 0xff, 1, 0x80, random.u8(..)][random.usize(..7)])
                .collect();
            let single = bits(&sparse);
            for first in 0..len * 8 {
                for last in first..len * 8 {
                    let range = &single[first..=last];
                    let ones = range.iter().filter(|bit| **bit).count();
                    assert_eq!(
                        count_range(&sparse, first..=last),
                        ones as u64,
                        "{sparse:?} {first} {last}"
                    );
                    for wanted in [false, true] {
                        let position = range
                            .iter()
                            .position(|bit| *bit == wanted)
                            .map(|at| first + at);
                        assert_eq!(
                            find(&sparse, wanted, first..=last),
                            position,
                            "{sparse:?} {wanted} {first} {last}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn counting_agrees_with_single_bytes_at_every_length_and_alignment() {
        let mut random = fastrand::Rng::with_seed(12);
        let bytes: Vec<u8> = (0..600).map(|_| random.u8(..)).collect();
        for from in 0..16 {
            for until in from..bytes.len() {
                let slice = &bytes[from..until];
                let expected: u64 = slice.iter().map(|byte| u64::from(byte.count_ones())).sum();
                assert_eq!(count_ones(slice), expected);
            }
        }
    }

    #[test]
    fn one_bit_is_found_wherever_it_is() {
        for wanted in [false, true] {
            let mut bytes = vec![if wanted { 0 } else { 0xff }; 200];
            let all = 0..=bytes.len() * 8 - 1;
            assert_eq!(find(&bytes, wanted, all.clone()), None);
            for at in all.clone() {
                bytes[at / 8] ^= 0x80 >> (at % 8);
                assert_eq!(find(&bytes, wanted, all.clone()), Some(at));
                assert_eq!(find(&bytes, wanted, at..=at), Some(at));
                for from in [0, 1, 7, 8, 9, 511, 512, 513] {
                    if from < at {
                        assert_eq!(find(&bytes, wanted, from..=at), Some(at));
                        assert_eq!(find(&bytes, wanted, from..=at - 1), None);
                    }
                }
                bytes[at / 8] ^= 0x80 >> (at % 8);
            }
        }
    }

    /// A byte of the result, from those of all operands, a bit after the other.
    fn expected_byte(operation: Operation, bytes: &[u8]) -> u8 {
        let bit = |mask: u8| {
            let has = |byte: &u8| byte & mask != 0;
            let (first, others) = (has(&bytes[0]), &bytes[1..]);
            let count = bytes.iter().filter(|byte| has(byte)).count();
            let in_others = others.iter().any(has);
            let holds = match operation {
                Operation::And => count == bytes.len(),
                Operation::Or => count > 0,
                Operation::Xor => count % 2 == 1,
                Operation::Not => !first,
                Operation::Diff => first && !in_others,
                Operation::Diff1 => !first && in_others,
                Operation::AndOr => first && in_others,
                Operation::One => count == 1,
            };
            if holds { mask } else { 0 }
        };
        (0..8).map(|at| bit(0x80 >> at)).sum()
    }

    #[test]
    fn combining_agrees_with_single_bytes() {
        let mut random = fastrand::Rng::with_seed(13);
        let lengths = [
            0,
            1,
            7,
            8,
            63,
            COMBINED_BYTES - 1,
            COMBINED_BYTES,
            COMBINED_BYTES + 1,
            3 * COMBINED_BYTES + 5,
        ];
        for _ in 0..300 {
            let strings: Vec<Vec<u8>> = (0..random.usize(1..5))
                .map(|_| {
                    (0..lengths[random.usize(..lengths.len())])
                        .map(|_| random.u8(..))
                        .collect()
                })
                .collect();
            let operands: Vec<&[u8]> = strings.iter().map(Vec::as_slice).collect();
            let len = operands.iter().map(|operand| operand.len()).max().unwrap();
            for operation in [
                Operation::And,
                Operation::Or,
                Operation::Xor,
                Operation::Not,
                Operation::Diff,
                Operation::Diff1,
                Operation::AndOr,
                Operation::One,
            ] {
                let operands = if operation == Operation::Not {
                    &operands[..1]
                } else {
                    &operands[..]
                };
                let len = if operation == Operation::Not {
                    operands[0].len()
                } else {
                    len
                };
                let expected: Vec<u8> = (0..len)
                    .map(|at| {
                        let bytes = operands
                            .iter()
                            .map(|operand| operand.get(at).copied().unwrap_or(0));
                        let bytes: Vec<u8> = bytes.collect();
                        expected_byte(operation, &bytes)
                    })
                    .collect();
                assert_eq!(combine(operation, operands), expected, "{operation:?}");
            }
        }
    }
}
