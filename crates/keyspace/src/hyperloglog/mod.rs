//! HyperLogLogs: strings from which the number of different elements can be estimated, with the bytes that
//! Redis gives them.
//!
//! ```text
//!  HYLL | encoding | 3 unused | count, 8 bytes, little endian | registers
//!  0      4          5          8                               16
//! ```
//!
//! The encoding is 0 where registers are *dense*, 6 bits each, and 1 where they are *sparse*, in runs
//! ([`mod@sparse`]). A register has the longest run of zero bits, plus one, of the hashes that belong to it.
//! The count is what was estimated last; the highest bit of its last byte says that it is out of date.
//!
//! Invariants:
//!
//! 1. A dense value has [`DENSE_BYTES`] bytes.
//! 2. Bytes come from clients. No bytes make a function panic: runs that do not add up are [`Corrupted`].

mod estimate;
mod layout;
mod sparse;

use std::ops::Range;

use estimate::Histogram;
pub use layout::{COUNT, Corrupted, DENSE_BYTES, Element, REGISTERS, register};
use layout::{HEADER, MAGIC, OUT_OF_DATE, place, set_register};
pub use sparse::Stretch;
use sparse::{Raised, stretches};

/// How registers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Density {
    /// 6 bits each.
    Dense,
    /// In runs of equal ones.
    Sparse,
}

/// How the registers of a value are written; `None` if it is no HyperLogLog.
pub fn density(value: &[u8]) -> Option<Density> {
    if value.len() < HEADER || !value.starts_with(MAGIC) {
        return None;
    }
    match value[MAGIC.len()] {
        0 if value.len() == DENSE_BYTES => Some(Density::Dense),
        1 => Some(Density::Sparse),
        _ => None,
    }
}

/// A value without elements.
pub fn empty() -> Vec<u8> {
    let mut value = vec![0; HEADER];
    value[..MAGIC.len()].copy_from_slice(MAGIC);
    value[MAGIC.len()] = 1;
    sparse::push_run(&mut value, 0, REGISTERS);
    value
}

/// What was estimated last, if nothing has changed since.
pub fn known_count(value: &[u8]) -> Option<u64> {
    let count = value.get(COUNT)?.first_chunk()?;
    let is_known = count[7] & OUT_OF_DATE == 0;
    is_known.then(|| u64::from_le_bytes(*count))
}

/// Notes what was estimated.
pub fn set_count(value: &mut [u8], count: u64) {
    value[COUNT].copy_from_slice(&count.to_le_bytes());
}

/// Notes that the count is out of date.
pub fn forget_count(value: &mut [u8]) {
    value[COUNT.end - 1] |= OUT_OF_DATE;
}

/// The bytes of a dense value that change when elements are added to it; `None` if none do.
#[inline]
pub fn changes(value: &[u8], elements: impl Iterator<Item = Element>) -> Option<Range<usize>> {
    let raises = |element: &Element| register(value, element.index) < element.number;
    let mut range: Option<Range<usize>> = None;
    for element in elements.filter(raises) {
        let (at, _) = place(element.index);
        let own = at..(at + 2).min(DENSE_BYTES);
        range = Some(match range {
            Some(all) => all.start.min(own.start)..all.end.max(own.end),
            None => own,
        });
    }
    range
}

/// Adds elements to a dense value. The count stays.
pub fn add_to_dense(value: &mut [u8], elements: impl Iterator<Item = Element>) {
    for element in elements {
        raise_dense(value, element);
    }
}

fn raise_dense(value: &mut [u8], element: Element) -> bool {
    let is_raised = register(value, element.index) < element.number;
    if is_raised {
        set_register(value, element.index, element.number);
    }
    is_raised
}

/// Whether an element changes a sparse value.
///
/// # Errors
/// The value is corrupted.
pub fn changes_sparse(value: &[u8], element: Element) -> Result<bool, Corrupted> {
    sparse::raises(value, element)
}

/// Adds an element to a value of either encoding, which becomes dense if it would be sparse with more than
/// `most` bytes. Whether that has changed it; then its count is out of date.
///
/// # Errors
/// The value is corrupted.
pub fn add(value: &mut Vec<u8>, element: Element, most: usize) -> Result<bool, Corrupted> {
    let is_raised = match value[MAGIC.len()] {
        0 => raise_dense(value, element),
        _ => match sparse::raise(value, element, most)? {
            Raised::No => false,
            Raised::Yes => true,
            Raised::TooLong => {
                make_dense(value)?;
                raise_dense(value, element)
            }
        },
    };
    if is_raised {
        forget_count(value);
    }
    Ok(is_raised)
}

/// Makes a value dense; whether it was sparse.
///
/// # Errors
/// The value is corrupted.
pub fn make_dense(value: &mut Vec<u8>) -> Result<bool, Corrupted> {
    if value[MAGIC.len()] == 0 {
        return Ok(false);
    }
    let mut dense = vec![0; DENSE_BYTES];
    dense[..HEADER].copy_from_slice(&value[..HEADER]);
    dense[MAGIC.len()] = 0;
    sparse::each(value, |registers, number| {
        for index in registers {
            set_register(&mut dense, index, number);
        }
    })?;
    *value = dense;
    Ok(true)
}

/// The runs of a sparse value, whatever they add up to.
pub fn stretches_of(value: &[u8]) -> impl Iterator<Item = Stretch> {
    stretches(value)
}

/// Estimates the number of different elements of a value.
///
/// # Errors
/// The value is corrupted.
pub fn count(value: &[u8]) -> Result<u64, Corrupted> {
    let mut histogram = Histogram::default();
    match value[MAGIC.len()] {
        0 => (0..REGISTERS).for_each(|index| histogram.add(register(value, index), 1)),
        _ => sparse::each(value, |registers, number| {
            histogram.add(number, registers.len() as u32);
        })?,
    }
    Ok(histogram.estimate())
}

/// The registers of several values: of each the highest.
pub struct Union(Box<[u8; REGISTERS]>);

impl Default for Union {
    fn default() -> Union {
        Union(Box::new([0; REGISTERS]))
    }
}

impl Union {
    /// Adds a value.
    ///
    /// # Errors
    /// The value is corrupted.
    pub fn add(&mut self, value: &[u8]) -> Result<(), Corrupted> {
        let raise = |own: &mut u8, number: u8| *own = number.max(*own);
        if value[MAGIC.len()] == 0 {
            for (index, own) in self.0.iter_mut().enumerate() {
                raise(own, register(value, index));
            }
            return Ok(());
        }
        sparse::each(value, |registers, number| {
            self.0[registers]
                .iter_mut()
                .for_each(|own| raise(own, number));
        })
    }

    /// The elements that together make these registers.
    pub fn elements(&self) -> impl Iterator<Item = Element> {
        let all = self.0.iter().enumerate();
        all.filter(|&(_, &number)| number > 0)
            .map(|(index, &number)| Element { index, number })
    }

    /// Estimates the number of different elements.
    pub fn count(&self) -> u64 {
        let mut histogram = Histogram::default();
        self.0.iter().for_each(|&number| histogram.add(number, 1));
        histogram.estimate()
    }
}

#[cfg(test)]
mod tests;
