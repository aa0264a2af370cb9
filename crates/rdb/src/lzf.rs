//! The compression of long strings, in the format of LibLZF.
//!
//! ```text
//! 000nnnnn bytes              n + 1 bytes as they are
//! nnnooooo oooooooo           n + 2 bytes (n from 1 to 6) that stand offset + 1 bytes before
//! 111ooooo nnnnnnnn oooooooo  n + 9 bytes that stand offset + 1 bytes before
//! ```
//!
//! It is ours because a snapshot compresses millions of short values: the crates that there are (lzf,
//! lzf-rust) set up a table of half a megabyte for each, which takes longer than the compression. The one
//! here is kept, and knows what is from another value.
//!
//! The compressor gives its output piece by piece and gives the same pieces every time, so whoever has no
//! memory for the compressed form of a long value can have it twice: once to learn its length, once to write
//! it.

use std::ops::ControlFlow;

/// Bits of a hash of three bytes.
const HASH_BITS: u32 = 14;
/// How far back a repetition may lie.
const FARTHEST: usize = 1 << 13;
/// The longest repetition that one instruction stands for.
const LONGEST: usize = 264;
/// The shortest repetition worth an instruction.
const SHORTEST: usize = 3;
/// The most bytes that one instruction takes over as they are.
const MOST_LITERALS: usize = 32;

/// The longest input that is compressed; longer ones are kept as they are.
pub const INPUT_MAX: usize = 1 << 30;

/// A compressor, which is only a memory of where three bytes were last seen.
pub struct Compressor {
    /// For each hash, `base` plus the position after the last three bytes that had it.
    seen: Box<[u32; 1 << HASH_BITS]>,
    /// What positions of this input are counted from; anything below is of an earlier input.
    base: u32,
}

impl Default for Compressor {
    fn default() -> Compressor {
        Compressor {
            seen: vec![0; 1 << HASH_BITS]
                .try_into()
                .expect("the vector has this length"),
            base: 0,
        }
    }
}

/// A hash of the three bytes at `at`.
#[inline]
fn hash(input: &[u8], at: usize) -> usize {
    let three = u32::from_le_bytes([input[at], input[at + 1], input[at + 2], 0]);
    (three.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS)) as usize
}

/// How many bytes are the same from two positions on, the first three of which are known to be.
#[inline]
fn common(input: &[u8], earlier: usize, at: usize) -> usize {
    let most = (input.len() - at).min(LONGEST);
    let same = input[earlier + SHORTEST..]
        .iter()
        .zip(&input[at + SHORTEST..at + most])
        .take_while(|(one, other)| one == other);
    SHORTEST + same.count()
}

impl Compressor {
    /// Gives the compressed form of `input` to `sink` in pieces, until the sink breaks off or all is done.
    ///
    /// # Panics
    /// The input is longer than [`INPUT_MAX`].
    pub fn compress(
        &mut self,
        input: &[u8],
        mut sink: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        assert!(input.len() <= INPUT_MAX, "too long to be compressed");
        let base = self.begin(input.len());
        let (mut at, mut literals_from) = (0, 0);
        while at + SHORTEST <= input.len() {
            let slot = &mut self.seen[hash(input, at)];
            let earlier = (*slot)
                .checked_sub(base + 1)
                .map(|earlier| earlier as usize);
            *slot = base + at as u32 + 1;
            let found = earlier.filter(|&earlier| {
                at - earlier <= FARTHEST
                    && input[earlier..earlier + SHORTEST] == input[at..at + SHORTEST]
            });
            let Some(earlier) = found else {
                at += 1;
                continue;
            };
            put_literals(&input[literals_from..at], &mut sink)?;
            let length = common(input, earlier, at);
            put_repetition(at - earlier - 1, length, &mut sink)?;
            at += length;
            literals_from = at;
            // Of what is inside a repetition, its end is worth remembering: the next one often begins there.
            if at < input.len() {
                self.seen[hash(input, at - 2)] = base + at as u32 - 1;
            }
        }
        put_literals(&input[literals_from..], &mut sink)
    }

    /// Forgets earlier inputs by counting from behind them. Returns what positions are counted from.
    fn begin(&mut self, len: usize) -> u32 {
        let len = len as u32 + 1;
        let base = match self.base.checked_add(len) {
            Some(_) => self.base,
            None => {
                self.seen.fill(0);
                0
            }
        };
        self.base = base + len;
        base
    }
}

fn put_literals(
    literals: &[u8],
    sink: &mut impl FnMut(&[u8]) -> ControlFlow<()>,
) -> ControlFlow<()> {
    for run in literals.chunks(MOST_LITERALS) {
        sink(&[run.len() as u8 - 1])?;
        sink(run)?;
    }
    ControlFlow::Continue(())
}

fn put_repetition(
    offset: usize,
    length: usize,
    sink: &mut impl FnMut(&[u8]) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let (high, low) = ((offset >> 8) as u8, offset as u8);
    match length - 2 {
        short @ ..7 => sink(&[(short as u8) << 5 | high, low]),
        long => sink(&[7 << 5 | high, (long - 7) as u8, low]),
    }
}

/// The most bytes that `compressed` bytes can stand for.
pub fn expanded_max(compressed: usize) -> usize {
    compressed.saturating_mul(LONGEST.div_ceil(SHORTEST))
}

/// Appends what `input` is the compressed form of, which has to be `len` bytes, to `output`. Returns whether
/// it was.
///
/// Memory is taken for `len` bytes at once, so the caller compares it with [`expanded_max`] first.
pub fn decompress(mut input: &[u8], len: usize, output: &mut Vec<u8>) -> bool {
    output.reserve_exact(len);
    let start = output.len();
    while let Some((&control, rest)) = input.split_first() {
        let room = len - (output.len() - start);
        if control < MOST_LITERALS as u8 {
            let Some((literals, rest)) = rest.split_at_checked(usize::from(control) + 1) else {
                return false;
            };
            if literals.len() > room {
                return false;
            }
            output.extend_from_slice(literals);
            input = rest;
            continue;
        }
        let high = usize::from(control & 0x1f) << 8;
        let (length, low, rest) = match (control >> 5, rest) {
            (7, &[length, low, ref rest @ ..]) => (usize::from(length) + 9, low, rest),
            (short @ ..7, &[low, ref rest @ ..]) => (usize::from(short) + 2, low, rest),
            _ => return false,
        };
        let offset = high + usize::from(low) + 1;
        if length > room || offset > output.len() - start {
            return false;
        }
        repeat(output, offset, length);
        input = rest;
    }
    output.len() - start == len
}

/// Appends `length` bytes that begin `offset` bytes before the end, which may be among those appended.
#[inline]
fn repeat(output: &mut Vec<u8>, offset: usize, length: usize) {
    let from = output.len() - offset;
    let mut left = length;
    while left > 0 {
        // Every round doubles what there is to take.
        let piece = left.min(output.len() - from);
        output.extend_from_within(from..from + piece);
        left -= piece;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compress(compressor: &mut Compressor, input: &[u8]) -> Vec<u8> {
        let mut output = Vec::new();
        let flow = compressor.compress(input, |piece| {
            output.extend_from_slice(piece);
            ControlFlow::Continue(())
        });
        assert_eq!(flow, ControlFlow::Continue(()));
        output
    }

    fn expand(input: &[u8], len: usize) -> Option<Vec<u8>> {
        let mut output = b"before".to_vec();
        decompress(input, len, &mut output).then(|| output.split_off(6))
    }

    /// Inputs of many shapes: nothing, noise, text, runs, repetitions at every distance that matters.
    fn inputs() -> Vec<Vec<u8>> {
        let mut random = fastrand::Rng::with_seed(3);
        let mut noise = |len: usize| (0..len).map(|_| random.u8(..)).collect::<Vec<u8>>();
        let mut inputs: Vec<Vec<u8>> = (0..40).map(|len| vec![b'x'; len]).collect();
        inputs.extend((0..40).map(&mut noise));
        for distance in [1, 2, 3, 4, 255, 256, 257, 8190, 8191, 8192, 8193, 10_000] {
            let pattern = noise(distance);
            for length in [3, 4, 8, 9, 10, 263, 264, 265, 266, 600] {
                let tail = pattern.iter().cycle().take(length).copied();
                inputs.push(pattern.iter().copied().chain(tail).collect());
            }
        }
        for alphabet in [2, 4, 16] {
            let mut random = fastrand::Rng::with_seed(alphabet);
            let letters = (0..50_000).map(|_| random.u8(..alphabet as u8));
            inputs.push(letters.collect());
        }
        inputs.push(b"the quick brown fox jumps over the lazy dog; ".repeat(1000));
        inputs
    }

    #[test]
    fn what_is_compressed_comes_back() {
        let mut compressor = Compressor::default();
        for input in inputs() {
            let compressed = compress(&mut compressor, &input);
            assert_eq!(expand(&compressed, input.len()).as_ref(), Some(&input));
            assert_eq!(compress(&mut compressor, &input), compressed);
            assert!(input.len() <= expanded_max(compressed.len()));
            assert!(expand(&compressed, input.len() + 1).is_none());
            if let Some(shorter) = input.len().checked_sub(1) {
                assert!(expand(&compressed, shorter).is_none());
                assert!(expand(&compressed[..compressed.len() - 1], input.len()).is_none());
            }
        }
    }

    #[test]
    fn another_implementation_reads_ours_and_ours_reads_it() {
        let mut compressor = Compressor::default();
        for input in inputs().into_iter().filter(|input| !input.is_empty()) {
            let compressed = compress(&mut compressor, &input);
            let mut expanded = vec![0; input.len()];
            lzf_rust::decompress(&compressed, &mut expanded).expect("it reads ours");
            assert_eq!(expanded, input);
            let mut theirs = vec![0; lzf_rust::max_compressed_size(input.len())];
            let len = lzf_rust::compress(&input, &mut theirs).expect("there is room");
            theirs.truncate(len);
            assert_eq!(expand(&theirs, input.len()).as_ref(), Some(&input));
            assert!(compressed.len() <= theirs.len() + theirs.len() / 10 + 8);
        }
    }

    #[test]
    fn a_sink_may_break_off() {
        let input = b"abcabcabc".repeat(100);
        let mut pieces = 0;
        let flow = Compressor::default().compress(&input, |_| {
            pieces += 1;
            ControlFlow::Break(())
        });
        assert_eq!((flow, pieces), (ControlFlow::Break(()), 1));
    }

    #[test]
    fn positions_of_earlier_inputs_mean_nothing() {
        let mut compressor = Compressor::default();
        let input = b"abcdefgh".repeat(4);
        let compressed = compress(&mut compressor, &input);
        for base in [u32::MAX - 34, u32::MAX - 33, u32::MAX - 1, u32::MAX] {
            let mut compressor = Compressor::default();
            for base in [base - 1000, base] {
                compressor.base = base;
                assert_eq!(compress(&mut compressor, &input), compressed);
            }
        }
    }

    #[test]
    fn no_input_makes_it_panic_or_write_too_much() {
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..100_000 {
            let input: Vec<u8> = (0..random.usize(..24)).map(|_| random.u8(..)).collect();
            let len = random.usize(..600);
            if let Some(output) = expand(&input, len) {
                assert_eq!(output.len(), len);
            }
        }
    }
}
