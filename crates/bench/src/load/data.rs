//! What values are made of: one block of printable bytes that every value is a piece of.
//!
//! A value of any size is cut from the block, which repeats for as long as it takes, so gigabytes
//! are sent from a megabyte. The bytes are the 64 from `0` to `o`: no line end, and no `*`, by which
//! a server that does not parse counts requests.

use crate::limits::DATA_BYTES;
use fastrand::Rng;

/// The block of data.
#[derive(Debug)]
pub(crate) struct Data {
    block: Box<[u8]>,
}

impl Data {
    /// The block of a seed.
    pub(crate) fn new(seed: u64) -> Data {
        let mut rng = Rng::with_seed(seed);
        let block = (0..DATA_BYTES).map(|_| b'0' + (rng.u8(..) & 63)).collect();
        Data { block }
    }

    /// The first piece of the value that begins at `start` and is `len` bytes long; for what is
    /// missing, ask again from where the piece ends.
    pub(crate) fn piece(&self, start: u64, len: u64) -> &[u8] {
        // The block is a megabyte, so the remainder is a valid index.
        let start = (start % self.block.len() as u64) as usize;
        let rest = &self.block[start..];
        let len = usize::try_from(len).map_or(rest.len(), |len| len.min(rest.len()));
        &rest[..len]
    }

    /// Appends a whole value.
    pub(crate) fn copy(&self, start: u64, len: u64, out: &mut Vec<u8>) {
        let mut done = 0;
        while done < len {
            let piece = self.piece(start + done, len - done);
            out.extend_from_slice(piece);
            done += piece.len() as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_pieces_of_a_block_that_repeats() {
        let data = Data::new(7);
        let block = DATA_BYTES as u64;
        for (start, len) in [
            (0, 0),
            (0, 1),
            (5, 16),
            (block - 3, 10),
            (block - 1, block + 2),
            (3 * block + 1, 2 * block),
        ] {
            let mut value = Vec::new();
            data.copy(start, len, &mut value);
            assert_eq!(value.len() as u64, len);
            for (offset, byte) in value.iter().enumerate() {
                let place = ((start + offset as u64) % block) as usize;
                assert_eq!(*byte, data.block[place]);
            }
        }
    }

    #[test]
    fn the_bytes_are_printable_and_no_star() {
        let data = Data::new(1);
        assert!(data.block.iter().all(|byte| (b'0'..=b'o').contains(byte)));
        assert_ne!(data.block[..64], Data::new(2).block[..64]);
        assert_eq!(data.block[..64], Data::new(1).block[..64]);
    }
}
