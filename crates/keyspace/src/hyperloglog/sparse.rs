//! Sparse registers: runs of equal ones.
//!
//! ```text
//!  00llllll            l + 1 registers of 0
//!  01llllll llllllll   l + 1 registers of 0
//!  1vvvvvll            l + 1 registers of v + 1
//! ```
//!
//! A number is at most 32: a value that needs a higher one is dense.

use std::ops::Range;

use super::layout::{Corrupted, Element, HEADER, REGISTERS};

/// The most registers of a run of each form.
const SHORT_ZEROES: usize = 64;
const NUMBERS: usize = 4;
/// The highest number.
const NUMBER_MAX: u8 = 32;
/// Runs that are looked at for equal neighbours behind a change, the one before it included.
const MERGE_RUNS: usize = 5;

/// Equal registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// What they have.
    pub number: u8,
    /// How many there are.
    pub len: usize,
    /// Bytes that say so: 2 for the long form of zeroes, otherwise 1.
    pub bytes: usize,
}

impl Stretch {
    /// The run at an offset. The second byte of the last may be missing, and is 0 then, as in Redis.
    fn at(value: &[u8], at: usize) -> Option<Stretch> {
        let first = *value.get(at)?;
        let low = usize::from(first & 0x3f);
        let (number, len, bytes) = match first >> 6 {
            0 => (0, low + 1, 1),
            1 => {
                let second = value.get(at + 1).copied().unwrap_or(0);
                (0, (low << 8 | usize::from(second)) + 1, 2)
            }
            _ => ((first >> 2 & 0x1f) + 1, usize::from(first & 3) + 1, 1),
        };
        Some(Stretch { number, len, bytes })
    }
}

/// Appends a run in its shortest form; of numbers at most 4 registers.
pub(super) fn push_run(bytes: &mut Vec<u8>, number: u8, len: usize) {
    let less = len - 1;
    match number {
        0 if len <= SHORT_ZEROES => bytes.push(less as u8),
        0 => bytes.extend([0x40 | (less >> 8) as u8, less as u8]),
        _ => bytes.push(numbers(number, len)),
    }
}

/// The byte of a run of a number.
fn numbers(number: u8, len: usize) -> u8 {
    0x80 | (number - 1) << 2 | (len - 1) as u8
}

/// The runs of a value.
pub(super) fn stretches(value: &[u8]) -> impl Iterator<Item = Stretch> {
    let mut at = HEADER;
    std::iter::from_fn(move || {
        let run = Stretch::at(value, at)?;
        at += run.bytes;
        Some(run)
    })
}

/// Shows all runs: their registers and what these have.
///
/// # Errors
/// They do not add up.
pub(super) fn each(value: &[u8], mut show: impl FnMut(Range<usize>, u8)) -> Result<(), Corrupted> {
    let mut from = 0;
    for run in stretches(value) {
        let to = from + run.len;
        if to > REGISTERS {
            return Err(Corrupted);
        }
        show(from..to, run.number);
        from = to;
    }
    if from == REGISTERS {
        Ok(())
    } else {
        Err(Corrupted)
    }
}

/// Where a register is.
struct Found {
    run: Stretch,
    /// Its offset.
    at: usize,
    /// That of the run before it.
    before: Option<usize>,
    /// Its first register.
    first: usize,
}

fn find(value: &[u8], index: usize) -> Result<Found, Corrupted> {
    let (mut at, mut before, mut first) = (HEADER, None, 0);
    loop {
        let run = Stretch::at(value, at).ok_or(Corrupted)?;
        if index < first + run.len {
            return Ok(Found {
                run,
                at,
                before,
                first,
            });
        }
        (before, first) = (Some(at), first + run.len);
        at += run.bytes;
    }
}

/// Whether an element changes a value.
///
/// # Errors
/// The value has not enough registers.
pub(super) fn raises(value: &[u8], element: Element) -> Result<bool, Corrupted> {
    let found = find(value, element.index)?;
    Ok(found.run.number < element.number)
}

/// What became of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Raised {
    No,
    Yes,
    /// Nothing has changed: the value has to be dense.
    TooLong,
}

/// Adds an element, unless the value would become longer than it is and than `most` bytes. A last run without
/// its second byte gets that.
///
/// # Errors
/// The value has not enough registers.
pub(super) fn raise(
    value: &mut Vec<u8>,
    element: Element,
    most: usize,
) -> Result<Raised, Corrupted> {
    if element.number > NUMBER_MAX {
        return Ok(Raised::TooLong);
    }
    let Found {
        run,
        at,
        before,
        first,
    } = find(value, element.index)?;
    if run.number >= element.number {
        return Ok(Raised::No);
    }
    if at + run.bytes > value.len() {
        // The second byte of the last run is missing: see `Stretch::at`.
        value.push(0);
    }
    let mut new = Vec::with_capacity(5);
    let (left, right) = (element.index - first, first + run.len - element.index - 1);
    if left > 0 {
        push_run(&mut new, run.number, left);
    }
    push_run(&mut new, element.number, 1);
    if right > 0 {
        push_run(&mut new, run.number, right);
    }
    if new.len() > run.bytes && value.len() + new.len() - run.bytes > most {
        return Ok(Raised::TooLong);
    }
    value.splice(at..at + run.bytes, new);
    merge(value, before.unwrap_or(HEADER));
    Ok(Raised::Yes)
}

/// Makes one run of neighbours that have the same number, among the first from an offset on.
fn merge(value: &mut Vec<u8>, mut at: usize) {
    for _ in 0..MERGE_RUNS {
        let Some(run) = Stretch::at(value, at) else {
            return;
        };
        let next = Stretch::at(value, at + run.bytes).filter(|_| run.number > 0);
        match next {
            Some(next) if next.number == run.number && run.len + next.len <= NUMBERS => {
                value[at + 1] = numbers(run.number, run.len + next.len);
                value.remove(at);
            }
            _ => at += run.bytes,
        }
    }
}
