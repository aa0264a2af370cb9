//! The hash slot of a key in a cluster: CRC16 (XMODEM) of the key, or of its hash tag, modulo 16384.
//!
//! A key that is routed pays for this on every request, so where the processor multiplies polynomials
//! (PCLMULQDQ) eight bytes are folded at a time. The checksum begins at zero, so zeros in front of a key
//! change nothing: its first bytes, if they are no whole word, are one with zeros in front.
//!
//! ```text
//! message of words w0 w1 .. wn, 64 bits each:  t = w0; t = t * x^64 + w1 (mod P); ...
//! the checksum:                                t * x^16 mod P, by Barrett's reduction
//! ```

pub use resp::slot::SLOTS;

/// `x^16 + x^12 + x^5 + 1` without its first term.
const POLYNOMIAL: u16 = 0x1021;

/// The hash slot of a key. If there is something between its first `{` and the next `}`, only that counts.
#[inline]
pub fn slot(key: &[u8]) -> u16 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("pclmulqdq") {
        // SAFETY: the processor has the instruction.
        let (sum, may_have_tag) = unsafe { folded::checksum(key) };
        return if may_have_tag {
            slot_with_tag(key)
        } else {
            sum % SLOTS
        };
    }
    slot_with_tag(key)
}

/// Whether something holds for the slots of all keys in a text. Each is given by its position and length.
/// What stands before a short key is read with it, which saves looking at its bytes one by one.
///
/// # Panics
/// If a key is not within the text.
#[inline]
pub fn all_slots(
    text: &[u8],
    keys: impl Iterator<Item = Option<(usize, usize)>>,
    holds: impl Fn(u16) -> bool,
) -> bool {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("pclmulqdq")
        && std::arch::is_x86_feature_detected!("avx")
    {
        // SAFETY: the processor has the instructions.
        return unsafe { folded::all_slots(text, keys, holds) };
    }
    keys.flatten()
        .all(|(start, len)| holds(slot(&text[start..start + len])))
}

/// The same for a key that may have a hash tag.
#[cold]
#[inline(never)]
fn slot_with_tag(key: &[u8]) -> u16 {
    resp::slot::slot(key)
}

/// The checksum by multiplication of polynomials.
#[cfg(target_arch = "x86_64")]
mod folded {
    use std::arch::x86_64::{
        __m128i, _mm_clmulepi64_si128, _mm_cmpeq_epi8, _mm_cvtsi64_si128, _mm_cvtsi128_si64,
        _mm_loadu_si128, _mm_set_epi64x, _mm_set1_epi8, _mm_shuffle_epi8, _mm_srli_si128,
        _mm_testz_si128, _mm_unpackhi_epi64, _mm_xor_si128,
    };

    use super::{POLYNOMIAL, SLOTS};

    /// `x^64 mod P`.
    const FOLD: i64 = {
        let (mut rest, mut at) = (1u16, 0);
        while at < 64 {
            rest = (rest << 1) ^ if rest & 0x8000 != 0 { POLYNOMIAL } else { 0 };
            at += 1;
        }
        rest as i64
    };

    /// `x^80 / P`, rounded down, without its first term, which is `x^64`.
    const QUOTIENT: i64 = {
        let divisor = 0x1_0000 | POLYNOMIAL as u128;
        let (mut rest, mut quotient, mut at) = (1u128 << 80, 0u128, 64i32);
        while at >= 0 {
            if rest >> (at + 16) & 1 != 0 {
                rest ^= divisor << at;
                quotient |= 1 << at;
            }
            at -= 1;
        }
        quotient as u64 as i64
    };

    const LOWS: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = LOWS << 7;
    const OPEN: u64 = LOWS * b'{' as u64;

    /// Something whose highest bits of bytes are set if a byte of a word is `{`; they may be set without one,
    /// too.
    #[inline(always)]
    fn opens(word: u64) -> u64 {
        (word ^ OPEN).wrapping_sub(LOWS)
    }

    /// For each length of a key up to 16: which of the last 16 bytes of its text becomes which of a number,
    /// whose bytes beyond the key are 0.
    const ORDERS: [[u8; 16]; 17] = {
        let mut orders = [[0x80; 16]; 17];
        let mut len = 0;
        while len < orders.len() {
            let mut at = 0;
            while at < len {
                orders[len][at] = 15 - at as u8;
                at += 1;
            }
            len += 1;
        }
        orders
    };

    /// See [`super::all_slots`]. The loop calls nothing, so that its constants stay in registers: the first
    /// key that needs more ends it.
    #[target_feature(enable = "pclmulqdq,avx")]
    pub(super) fn all_slots(
        text: &[u8],
        mut keys: impl Iterator<Item = Option<(usize, usize)>>,
        holds: impl Fn(u16) -> bool,
    ) -> bool {
        let constants = _mm_set_epi64x(QUOTIENT, FOLD);
        let opens = _mm_set1_epi8(b'{' as i8);
        while let Some(key) = keys.next() {
            let Some((start, len)) = key else { continue };
            let from = start.wrapping_add(len).wrapping_sub(16);
            if len >= ORDERS.len() || from > text.len().wrapping_sub(16) || text.len() < 16 {
                return others(text, (start, len), keys, holds);
            }
            // SAFETY: the text has 16 bytes from there on, and there is an order for this length.
            let (last, order) = unsafe {
                (
                    _mm_loadu_si128(text.as_ptr().add(from).cast()),
                    _mm_loadu_si128(ORDERS.as_ptr().add(len).cast()),
                )
            };
            let word = _mm_shuffle_epi8(last, order);
            let found = _mm_cmpeq_epi8(word, opens);
            if _mm_testz_si128(found, found) == 0 {
                return others(text, (start, len), keys, holds);
            }
            if !holds(short(word, constants) % SLOTS) {
                return false;
            }
        }
        true
    }

    /// The same for a key and those behind it, of any length and with hash tags.
    #[inline(never)]
    fn others(
        text: &[u8],
        first: (usize, usize),
        keys: impl Iterator<Item = Option<(usize, usize)>>,
        holds: impl Fn(u16) -> bool,
    ) -> bool {
        let slot = |(start, len)| super::slot(&text[start..start + len]);
        holds(slot(first)) && keys.flatten().map(slot).all(holds)
    }

    /// The checksum of 128 bits.
    #[inline]
    #[target_feature(enable = "pclmulqdq,avx")]
    fn short(word: __m128i, constants: __m128i) -> u16 {
        let product = _mm_clmulepi64_si128(word, constants, 0x01);
        let over = _mm_clmulepi64_si128(product, constants, 0x01);
        let folded = _mm_xor_si128(_mm_xor_si128(word, product), over);
        let high = _mm_clmulepi64_si128(folded, constants, 0x10);
        let quotient = _mm_xor_si128(_mm_srli_si128(high, 8), folded);
        let divisor = _mm_cvtsi64_si128(POLYNOMIAL as i64);
        _mm_cvtsi128_si64(_mm_clmulepi64_si128(quotient, divisor, 0x00)) as u16
    }

    /// The checksum, and whether there may be a `{`.
    #[target_feature(enable = "pclmulqdq")]
    pub(super) fn checksum(bytes: &[u8]) -> (u16, bool) {
        let (whole, rest) = (bytes.len() & !7, bytes.len() & 7);
        let (first, words) = bytes.split_at(bytes.len() - whole);
        let mut word = match bytes.first_chunk::<8>() {
            _ if rest == 0 => 0,
            Some(chunk) => u64::from_be_bytes(*chunk) >> (64 - 8 * rest),
            None => first
                .iter()
                .fold(0, |word, &byte| word << 8 | u64::from(byte)),
        };
        let mut open = opens(word);
        let constants = _mm_set_epi64x(QUOTIENT, FOLD);
        for chunk in words.as_chunks::<8>().0 {
            let next = u64::from_be_bytes(*chunk);
            open |= opens(next);
            // 80 bits at most, and of those the 16 that do not fit once more.
            let product: __m128i =
                _mm_clmulepi64_si128(_mm_cvtsi64_si128(word as i64), constants, 0x00);
            let over = _mm_clmulepi64_si128(product, constants, 0x01);
            word = next ^ _mm_cvtsi128_si64(product) as u64 ^ _mm_cvtsi128_si64(over) as u64;
        }
        let product = _mm_clmulepi64_si128(_mm_cvtsi64_si128(word as i64), constants, 0x10);
        let high = _mm_cvtsi128_si64(_mm_unpackhi_epi64(product, product)) as u64;
        let quotient = (high ^ word) as u16;
        let sum = quotient ^ quotient << 5 ^ quotient << 12;
        (sum, open & HIGHS != 0)
    }
}

#[cfg(test)]
mod tests {
    use resp::slot::{crc16, tag};

    use super::*;

    /// The checksum bit by bit, as its definition says.
    fn by_bits(bytes: &[u8]) -> u16 {
        let mut sum = 0u16;
        for &byte in bytes {
            for bit in (0..8).rev() {
                let is_out = (sum >> 15 ^ u16::from(byte >> bit)) & 1 != 0;
                sum = sum << 1 ^ if is_out { POLYNOMIAL } else { 0 };
            }
        }
        sum
    }

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(by_bits(b"123456789"), 0x31c3);
        for (key, expected) in [
            ("123456789", 0x31c3 % SLOTS),
            ("", 0),
            ("foo", 12182),
            ("bar", 5061),
            ("somekey", 11058),
            ("foo{hash_tag}", 2515),
        ] {
            assert_eq!(slot(key.as_bytes()), expected, "{key}");
        }
    }

    #[test]
    fn hash_tags_count_alone_if_they_are_whole_and_not_empty() {
        for (key, counts) in [
            ("{user1000}.following", "user1000"),
            ("foo{}{bar}", "foo{}{bar}"),
            ("foo{{bar}}zap", "{bar"),
            ("foo{bar}{zap}", "bar"),
            ("foo{bar", "foo{bar"),
            ("foo}bar{", "foo}bar{"),
            ("}{a}", "a"),
            ("{}", "{}"),
            ("{a}", "a"),
            ("0123456789abcdef{x}0123456789abcdef", "x"),
        ] {
            assert_eq!(
                slot(key.as_bytes()),
                by_bits(counts.as_bytes()) % SLOTS,
                "{key}"
            );
        }
    }

    #[test]
    fn keys_of_every_length_have_the_slot_that_their_bits_say() {
        let mut random = fastrand::Rng::with_seed(1);
        for len in 0..200 {
            for _ in 0..50 {
                let mut key: Vec<u8> = (0..len).map(|_| random.u8(..)).collect();
                let tagged = tag(&key).to_vec();
                assert_eq!(crc16(&key), by_bits(&key), "{key:?}");
                assert_eq!(slot(&key), by_bits(&tagged) % SLOTS, "{key:?}");
                assert_eq!(one_of_all(&key, len), by_bits(&tagged) % SLOTS, "{key:?}");
                key.iter_mut().for_each(|byte| *byte = b'z' + *byte % 4);
                let tagged = tag(&key).to_vec();
                assert_eq!(slot(&key), by_bits(&tagged) % SLOTS, "{key:?}");
                assert_eq!(one_of_all(&key, len), by_bits(&tagged) % SLOTS, "{key:?}");
            }
        }
    }

    /// The slot that `all_slots` finds for a key with something before it.
    fn one_of_all(key: &[u8], before: usize) -> u16 {
        let text = [vec![b'{'; before], key.to_vec()].concat();
        let seen = std::cell::Cell::new(0);
        let note = |slot| {
            seen.set(slot);
            true
        };
        let keys = [None, Some((before, key.len())), None];
        assert!(all_slots(&text, keys.into_iter(), note));
        seen.get()
    }

    #[test]
    fn one_key_elsewhere_is_enough() {
        let keys = ["a", "b{c}", "{c}", "0123456789abcdef", "0123456789abcdefg"];
        for wrong in keys {
            let text = keys.concat();
            let mut at = 0;
            let places = keys.map(|key| {
                at += key.len();
                Some((at - key.len(), key.len()))
            });
            let others = |found| found != slot(wrong.as_bytes());
            assert!(!all_slots(text.as_bytes(), places.into_iter(), others));
            assert!(all_slots(text.as_bytes(), places.into_iter(), |_| true));
        }
    }
}
