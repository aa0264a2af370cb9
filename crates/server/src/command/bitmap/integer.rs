//! Integers of any width up to 64 bits, at any bit of a string.

/// A type of integer, such as `i5` or `u63`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Type {
    signed: bool,
    /// 1 to 64, or to 63 without a sign: so that every value is an `i64`.
    bits: u32,
}

/// Treatment of a value that its type cannot hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Overflow {
    /// Its lowest bits are kept.
    #[default]
    Wrap,
    /// The nearest value that fits takes its place.
    Saturate,
    /// Nothing is written.
    Fail,
}

impl Type {
    /// Reads a type's name.
    pub(super) fn parse(name: &[u8]) -> Option<Type> {
        let (signed, bits, most) = match name {
            [b'i', bits @ ..] => (true, bits, 64),
            [b'u', bits @ ..] => (false, bits, 63),
            _ => return None,
        };
        let bits = u32::try_from(resp::parse_u64(bits)?).ok()?;
        (1..=most).contains(&bits).then_some(Type { signed, bits })
    }

    pub(super) fn bits(self) -> u32 {
        self.bits
    }

    fn min(self) -> i128 {
        if self.signed {
            -1 << (self.bits - 1)
        } else {
            0
        }
    }

    fn max(self) -> i128 {
        (1 << (self.bits - u32::from(self.signed))) - 1
    }

    /// The value of this type that has the lowest bits of `bits`.
    fn value_of(self, bits: u64) -> i64 {
        let unused = 64 - self.bits;
        if self.signed {
            (bits << unused).cast_signed() >> unused
        } else {
            (bits << unused >> unused).cast_signed()
        }
    }

    /// `value` as this type holds it; `None` if it doesn't fit and nothing is to be written.
    fn fit(self, value: i128, overflow: Overflow) -> Option<i64> {
        if (self.min()..=self.max()).contains(&value) {
            return Some(value as i64);
        }
        match overflow {
            Overflow::Wrap => Some(self.value_of(value as u64)),
            Overflow::Saturate => Some(value.clamp(self.min(), self.max()) as i64),
            Overflow::Fail => None,
        }
    }

    /// Result of SET with a given value.
    pub(super) fn set(self, value: i64, overflow: Overflow) -> Option<i64> {
        if !self.signed {
            // A negative value is what its bits mean without a sign: very large.
            return self.fit(i128::from(value.cast_unsigned()), overflow);
        }
        // So far below zero that the distance to the largest value is more than Redis' arithmetic holds, it
        // takes the value for one too large. This shows where the type saturates.
        let far_below = self.bits < 64 && self.max() - i128::from(value) > i128::from(i64::MAX);
        if far_below && overflow == Overflow::Saturate {
            return Some(self.max() as i64);
        }
        self.fit(i128::from(value), overflow)
    }

    /// Result of INCRBY on a value.
    pub(super) fn increment(self, value: i64, by: i64, overflow: Overflow) -> Option<i64> {
        self.fit(i128::from(value) + i128::from(by), overflow)
    }

    /// Reads the integer at bit `offset`; what lies behind the end is zeros.
    pub(super) fn read(self, bytes: &[u8], offset: usize) -> i64 {
        // An integer of 64 bits touches at most nine bytes.
        let mut window = [0; 16];
        let from = bytes.get(offset / 8..).unwrap_or_default();
        let len = from.len().min(9);
        window[..len].copy_from_slice(&from[..len]);
        let bits = u128::from_be_bytes(window) << (offset % 8) >> (128 - self.bits);
        self.value_of(bits as u64)
    }

    /// Writes the integer at bit `offset` of bytes that reach so far.
    pub(super) fn write(self, bytes: &mut [u8], offset: usize, value: i64) {
        let until = (offset + self.bits as usize).div_ceil(8);
        let touched = &mut bytes[offset / 8..until];
        let mut window = [0; 16];
        window[..touched.len()].copy_from_slice(touched);
        let shift = 128 - self.bits - (offset % 8) as u32;
        let mask = (u128::MAX >> (128 - self.bits)) << shift;
        let value = u128::from(value.cast_unsigned()) << shift;
        let window = (u128::from_be_bytes(window) & !mask | value & mask).to_be_bytes();
        touched.copy_from_slice(&window[..touched.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_types() -> impl Iterator<Item = Type> {
        let signed = (1..=64).map(|bits| Type { signed: true, bits });
        signed.chain((1..=63).map(|bits| Type {
            signed: false,
            bits,
        }))
    }

    fn named(name: &str) -> Type {
        Type::parse(name.as_bytes()).expect("a type")
    }

    #[test]
    fn types_have_one_name() {
        for of_type in all_types() {
            let name = format!("{}{}", if of_type.signed { 'i' } else { 'u' }, of_type.bits);
            assert_eq!(Type::parse(name.as_bytes()), Some(of_type));
        }
        let others = [
            "",
            "i",
            "u",
            "u0",
            "i0",
            "u64",
            "i65",
            "I8",
            "U8",
            "x8",
            "8",
            "u-1",
            "u08",
            "u 8",
            "u8 ",
            "u8a",
            "i+8",
            "u18446744073709551617",
        ];
        for name in others {
            assert_eq!(Type::parse(name.as_bytes()), None, "{name}");
        }
    }

    #[test]
    fn what_is_written_is_read_and_nothing_else_changes() {
        let mut random = fastrand::Rng::with_seed(5);
        for of_type in all_types() {
            let bits = of_type.bits as usize;
            for offset in 0..40 {
                let before: Vec<u8> = (0..16).map(|_| random.u8(..)).collect();
                let value = of_type.value_of(random.u64(..));
                let mut bytes = before.clone();
                of_type.write(&mut bytes, offset, value);
                assert_eq!(
                    of_type.read(&bytes, offset),
                    value,
                    "{of_type:?} at {offset}"
                );
                let bit = |bytes: &[u8], at: usize| bytes[at / 8] >> (7 - at % 8) & 1;
                for at in (0..offset).chain(offset + bits..128) {
                    assert_eq!(
                        bit(&bytes, at),
                        bit(&before, at),
                        "{of_type:?} at {offset} changed bit {at}"
                    );
                }
                for number in 0..bits {
                    let expected = value >> (bits - 1 - number) & 1;
                    assert_eq!(i64::from(bit(&bytes, offset + number)), expected);
                }
            }
        }
    }

    #[test]
    fn behind_the_end_are_zeros() {
        assert_eq!(named("u16").read(b"\xff", 0), 0xff00);
        assert_eq!(named("i16").read(b"\xff", 4), -4096);
        assert_eq!(named("u8").read(b"\xff", 8), 0);
        assert_eq!(named("i64").read(b"", usize::MAX - 64), 0);
        for of_type in all_types() {
            // The last byte that the integer touches is the last there is.
            for offset in 0..8 {
                let mut bytes = vec![0; (offset + of_type.bits as usize).div_ceil(8)];
                of_type.write(&mut bytes, offset, -1);
                assert_eq!(of_type.read(&bytes, offset), of_type.value_of(u64::MAX));
            }
        }
    }

    #[test]
    fn values_that_fit_are_kept_whatever_the_overflow() {
        for of_type in all_types() {
            for value in [of_type.min() as i64, 0, of_type.max() as i64] {
                for overflow in [Overflow::Wrap, Overflow::Saturate, Overflow::Fail] {
                    assert_eq!(
                        of_type.set(value, overflow),
                        Some(value),
                        "{of_type:?} {value}"
                    );
                    assert_eq!(of_type.increment(value, 0, overflow), Some(value));
                }
            }
        }
    }

    #[test]
    fn values_that_do_not_fit_wrap_saturate_or_fail() {
        for of_type in all_types() {
            let (min, max) = (of_type.min() as i64, of_type.max() as i64);
            assert_eq!(of_type.increment(max, 1, Overflow::Wrap), Some(min));
            assert_eq!(of_type.increment(min, -1, Overflow::Wrap), Some(max));
            assert_eq!(
                of_type.increment(max, i64::MAX, Overflow::Saturate),
                Some(max)
            );
            assert_eq!(
                of_type.increment(min, i64::MIN, Overflow::Saturate),
                Some(min)
            );
            assert_eq!(of_type.increment(max, 1, Overflow::Fail), None);
            assert_eq!(of_type.increment(min, -1, Overflow::Fail), None);
        }
    }

    #[test]
    fn a_value_set_without_a_sign_is_its_bits() {
        assert_eq!(named("u8").set(-1, Overflow::Wrap), Some(255));
        assert_eq!(named("u8").set(-5, Overflow::Saturate), Some(255));
        assert_eq!(named("u63").set(-1, Overflow::Wrap), Some(i64::MAX));
        assert_eq!(named("u8").set(-1, Overflow::Fail), None);
        assert_eq!(named("u8").set(256, Overflow::Wrap), Some(0));
    }

    /// The results were taken from redis-server 7.0.15.
    #[test]
    fn far_below_zero_saturates_as_in_redis() {
        let set = |name: &str, value: i64| named(name).set(value, Overflow::Saturate);
        assert_eq!(set("i8", i64::MIN), Some(127));
        assert_eq!(set("i8", -9_223_372_036_854_775_681), Some(127));
        assert_eq!(set("i8", -9_223_372_036_854_775_680), Some(-128));
        assert_eq!(
            set("i63", -5_000_000_000_000_000_000),
            Some(4_611_686_018_427_387_903)
        );
        assert_eq!(set("i64", i64::MIN), Some(i64::MIN));
        assert_eq!(named("i8").set(i64::MIN, Overflow::Fail), None);
    }
}
