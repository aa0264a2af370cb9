//! The names of places in the log: [`Lsn`], [`Address`], [`DbId`].

use std::fmt;
use std::num::NonZeroU64;

/// A position in the log, which is one sequence of bytes. A record's position is its *log sequence number*:
/// of two records the one with the greater number was made later. Always a multiple of 8, never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Lsn(pub(crate) u64);

impl Lsn {
    /// Where a log begins. Not 0, so that 0 can mean "none".
    pub const FIRST: Lsn = Lsn(4096);

    /// The position as a number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The position that [`Lsn::get`] gave.
    ///
    /// # Panics
    /// If it is not a multiple of 8.
    pub const fn new(position: u64) -> Lsn {
        assert!(
            position.is_multiple_of(8),
            "records begin at multiples of 8"
        );
        Lsn(position)
    }

    pub(crate) const fn offset(self, bytes: u64) -> Lsn {
        Lsn(self.0 + bytes)
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// The identity of a database's contents. The *number* that SELECT chooses is bound to one; SWAPDB exchanges
/// the bindings of two numbers, so no record has to be written again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct DbId(pub u16);

impl DbId {
    /// Of records that belong to no database: no number means it, and no flush touches it.
    pub const APART: DbId = DbId(u16::MAX);
}

/// Where the base record of an entry is, with what one has to know about it: one word that an entry keeps.
///
/// The *base* is the record that holds the whole value (`Set` or `SetBlob`). Later records may amend it:
/// `Expire` replaces its expiry, `Patch` changes part of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Address(NonZeroU64);

const PATCHED: u64 = 1;
const BLOB: u64 = 2;
const VOLATILE: u64 = 4;

impl Address {
    pub(crate) fn new(lsn: Lsn, is_blob: bool, is_volatile: bool) -> Address {
        let word = lsn.0 | if is_blob { BLOB } else { 0 } | if is_volatile { VOLATILE } else { 0 };
        Address(NonZeroU64::new(word).expect("no record is at position 0"))
    }

    /// The address in eight bytes.
    #[inline]
    pub const fn to_bits(self) -> u64 {
        self.0.get()
    }

    /// The address that [`Address::to_bits`] gave; `None` for 0.
    #[inline]
    pub const fn from_bits(bits: u64) -> Option<Address> {
        match NonZeroU64::new(bits) {
            Some(word) => Some(Address(word)),
            None => None,
        }
    }

    /// The position of the base record.
    #[inline]
    pub const fn lsn(self) -> Lsn {
        Lsn(self.0.get() & !7)
    }

    /// The same base, amended by a `Patch`: what an entry keeps after one was appended for it.
    #[inline]
    #[must_use]
    pub const fn patched(self) -> Address {
        Address(self.0.saturating_add(PATCHED & !self.0.get()))
    }

    /// Whether a `Patch` amends the base.
    #[inline]
    pub const fn is_patched(self) -> bool {
        self.0.get() & PATCHED != 0
    }

    /// Whether the base's value is in a file of its own.
    #[inline]
    pub const fn is_blob(self) -> bool {
        self.0.get() & BLOB != 0
    }

    /// Whether the base record itself holds an expiry.
    #[inline]
    pub const fn is_volatile(self) -> bool {
        self.0.get() & VOLATILE != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_keeps_its_facts_apart() {
        for (blob, volatile) in [(false, false), (true, false), (false, true), (true, true)] {
            let address = Address::new(Lsn(4096 + 8), blob, volatile);
            assert!(!address.is_patched());
            let patched = address.patched();
            assert!(patched.is_patched());
            assert_eq!(patched.patched(), patched);
            for address in [address, patched] {
                assert_eq!(address.lsn(), Lsn(4096 + 8));
                assert_eq!(address.is_blob(), blob);
                assert_eq!(address.is_volatile(), volatile);
                assert_eq!(Address::from_bits(address.to_bits()), Some(address));
            }
        }
        assert_eq!(Address::from_bits(0), None);
        assert_eq!(size_of::<Option<Address>>(), 8);
    }
}
