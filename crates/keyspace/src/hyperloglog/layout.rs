//! The parts of a value, and what an element is.

use std::ops::Range;

/// Registers of a value.
pub const REGISTERS: usize = 1 << INDEX_BITS;
/// Bytes of a dense value.
pub const DENSE_BYTES: usize = HEADER + REGISTERS * REGISTER_BITS / 8;
/// Where the count is.
pub const COUNT: Range<usize> = 8..HEADER;

pub(super) const HEADER: usize = 16;
pub(super) const MAGIC: &[u8] = b"HYLL";
/// Bits of a hash that choose the register.
pub(super) const INDEX_BITS: usize = 14;
pub(super) const REGISTER_BITS: usize = 6;
pub(super) const REGISTER_MAX: u8 = (1 << REGISTER_BITS) - 1;
/// The bit of the count's last byte that says that it is out of date.
pub(super) const OUT_OF_DATE: u8 = 1 << 7;
pub(super) const SEED: u64 = 0xadc8_3b19;

/// The runs of a sparse value do not add up to all registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupted;

/// What an element is: a register and the number that it has at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    pub(super) index: usize,
    pub(super) number: u8,
}

impl Element {
    /// The element of these bytes.
    #[inline]
    pub fn of(bytes: &[u8]) -> Element {
        let hash = murmur(bytes);
        // A bit behind the last ends the run of zeroes.
        let rest = hash >> INDEX_BITS | 1 << (64 - INDEX_BITS);
        Element {
            index: hash as usize & (REGISTERS - 1),
            number: rest.trailing_zeros() as u8 + 1,
        }
    }
}

/// MurmurHash64A, little endian on every processor.
fn murmur(bytes: &[u8]) -> u64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    const R: u32 = 47;
    let mut hash = SEED ^ (bytes.len() as u64).wrapping_mul(M);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let mut word = u64::from_le_bytes(*word).wrapping_mul(M);
        word ^= word >> R;
        hash = (hash ^ word.wrapping_mul(M)).wrapping_mul(M);
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u64::from_le_bytes(last)).wrapping_mul(M);
    }
    hash ^= hash >> R;
    hash = hash.wrapping_mul(M);
    hash ^ hash >> R
}

/// Where a register is in a dense value: its first byte, and the bit at which it begins.
#[inline]
pub(super) fn place(index: usize) -> (usize, usize) {
    let bit = index * REGISTER_BITS;
    (HEADER + bit / 8, bit % 8)
}

/// A register of a dense value.
#[inline]
pub fn register(value: &[u8], index: usize) -> u8 {
    let (at, bit) = place(index);
    let next = value.get(at + 1).copied().unwrap_or(0);
    let both = u16::from_le_bytes([value[at], next]);
    (both >> bit) as u8 & REGISTER_MAX
}

pub(super) fn set_register(value: &mut [u8], index: usize, number: u8) {
    let (at, bit) = place(index);
    let mask = u16::from(REGISTER_MAX) << bit;
    let next = value.get(at + 1).copied().unwrap_or(0);
    let both = u16::from_le_bytes([value[at], next]) & !mask | u16::from(number) << bit;
    let [first, second] = both.to_le_bytes();
    value[at] = first;
    if let Some(next) = value.get_mut(at + 1) {
        *next = second;
    }
}
