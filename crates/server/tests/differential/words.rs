//! The vocabulary of the stream: keys, values, numbers, patterns and times, each from a small pool so that
//! commands meet.
//!
//! Invariants:
//! 1. A command stays within one [`Arena`]: only the keys of `Large` ever hold long values, so that no
//!    command with a quadratic cost, such as LCS, sees one.
//! 2. A time to live is either far away or already over. Two far ones never come so close that the
//!    milliseconds between the two servers could change their order.

use super::stream::Generator;

/// Which keys, and what sizes of value, a command uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arena {
    Small,
    Large,
}

/// Seconds since 1970 from which absolute times count: in the year 2100, later than any relative one reaches.
const FAR_FUTURE_S: u64 = 4_102_444_800;
/// Lengths around which a representation may change: redis-server's embedded strings end at 44 bytes, and
/// Ferrite keeps values from 16 KiB apart.
const EDGE_LENGTHS: [usize; 10] = [0, 1, 7, 8, 9, 43, 44, 45, 255, 256];
const LARGE_LENGTHS: [usize; 6] = [4096, 16_383, 16_384, 16_385, 65_536, 70_000];
/// The longest value of the large arena.
const HUGE_LENGTH: usize = 1 << 20;

/// Keys that are hard to carry: a text and how often it is repeated.
const ODD_KEYS: &[(&[u8], usize)] = &[
    (b"", 1),
    (b"\0\r\n\xff", 1),
    (b"k", 300),
    (b"K", 5000),
    (b"s[1]", 1),
    (b"user:{1}", 1),
    (b"a b", 1),
    (b"*", 1),
    ("s\u{2603}".as_bytes(), 1),
];

const EDGE_INTEGERS: &[&str] = &[
    "127",
    "128",
    "255",
    "256",
    "32767",
    "65535",
    "65536",
    "2147483647",
    "-2147483648",
    "2147483648",
    "4294967295",
    "4294967296",
    "536870911",
    "536870912",
    "9223372036854775",
    "9223372036854776",
    "9007199254740993",
    "9223372036854775806",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775807",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999",
];
/// What looks like an integer but is not one, or is not written as the protocol wants it.
const ODD_INTEGERS: &[&str] = &[
    "", " ", "+1", "-0", "00", "01", "-01", " 1", "1 ", "1\n", "1\0", "1.0", "1e2", "0x10",
    "1_000", "--1", "-", "abc", "nan", "inf", "١",
];
const FLOATS: &[&str] = &[
    "0",
    "0.0",
    "-0.0",
    "1.5",
    "-1.5",
    "3.14159265358979",
    ".5",
    "5.",
    "+2.25",
    "1e3",
    "1E3",
    "1e-3",
    "-2.5e-7",
    "3.0e5",
    "1e17",
    "1e18",
    "123456789012345678",
    "0.1",
    "0.2",
    "0.3",
    "1.1",
    "0.00000000000000001",
    "0.000000000000000001",
    "9007199254740993",
    "1e22",
    "1e-22",
    "1.7976931348623157e308",
    "1e4931",
    "1e4933",
    "1e-4960",
    "0x1p4",
    "0x1.8p1",
];
const ODD_FLOATS: &[&str] = &[
    "",
    " ",
    " 1.5",
    "1.5 ",
    "1.5x",
    "1,5",
    "e5",
    "1e",
    "1e+",
    ".",
    "-",
    "nan",
    "NaN",
    "-nan",
    "inf",
    "+inf",
    "-inf",
    "Infinity",
    "-infinity",
    "1e5000",
    "--1.5",
    "1.5\0",
    "abc",
];
const PATTERNS: &[&str] = &[
    "*", "s*", "*1", "s?", "s[0-4]", "s[^0-4]", "s[4-0]", "[st]*", "s\\1", "s[1", "s[", "[", "\\",
    "s\\", "?", "??", "**", "*?*", "s1*", "", "s[\\1]", "s[a-]", "[]", "[^]", "s[0-", "*:*",
    "user:{*}", "b?", "S1", "[\\-]",
];
const TEXTS: &[&str] = &[
    "hello",
    "Hello, World",
    "ohmytext",
    "mynewtext",
    "foo\r\nbar",
    "\r\n",
    "OK",
    "$-1\r\n",
    "a b  c",
    "café ✓",
    "\u{0}",
    "-ERR no",
];
/// Words that mean something as an option, where they are not expected.
const SYNTAX: &[&str] = &[
    "NX",
    "XX",
    "GET",
    "EX",
    "PX",
    "EXAT",
    "PXAT",
    "KEEPTTL",
    "PERSIST",
    "LIMIT",
    "MATCH",
    "COUNT",
    "TYPE",
    "string",
    "DB",
    "REPLACE",
    "LEN",
    "IDX",
    "BYTE",
    "BIT",
    "AND",
    "NOT",
    "ASYNC",
    "SYNC",
    "GT",
    "LT",
    "AUTH",
    "SETNAME",
    "*",
    "WITHVALUES",
];

/// Whether a word is one of the keys, and not a number or an option.
pub(crate) fn is_key(word: &[u8]) -> bool {
    let is_numbered = |rest: &[u8]| !rest.is_empty() && rest.iter().all(u8::is_ascii_digit);
    match word {
        [b's' | b'b' | b'n' | b'h' | b'g', rest @ ..] if is_numbered(rest) => true,
        _ => ODD_KEYS
            .iter()
            .any(|(key, times)| key.repeat(*times) == word),
    }
}

impl Generator {
    /// True in `percent` of 100 cases.
    pub(crate) fn chance(&mut self, percent: u32) -> bool {
        self.rng.u32(0..100) < percent
    }

    pub(crate) fn pick<T: Copy>(&mut self, pool: &[T]) -> T {
        pool[self.rng.usize(0..pool.len())]
    }

    /// A key of the current arena.
    pub(crate) fn key(&mut self) -> Vec<u8> {
        if self.arena == Arena::Large {
            return match self.chance(15) {
                true => format!("g{}", self.rng.u8(0..3)).into_bytes(),
                false => format!("b{}", self.rng.u8(0..4)).into_bytes(),
            };
        }
        if self.chance(12) {
            return format!("h{}", self.rng.u8(0..6)).into_bytes();
        }
        if self.chance(3) {
            return format!("n{}", self.rng.u8(0..4)).into_bytes();
        }
        if self.chance(90) {
            return format!("s{}", self.rng.u8(0..10)).into_bytes();
        }
        let (key, times) = self.pick(ODD_KEYS);
        key.repeat(times)
    }

    /// A key to count with: mostly one that little else is stored in, so that numbers add up.
    pub(crate) fn counter(&mut self) -> Vec<u8> {
        if self.chance(50) {
            return self.key();
        }
        format!("n{}", self.rng.u8(0..4)).into_bytes()
    }

    /// Between `low` and `high` keys.
    pub(crate) fn keys(&mut self, low: usize, high: usize) -> Vec<Vec<u8>> {
        let count = self.rng.usize(low..=high);
        (0..count).map(|_| self.key()).collect()
    }

    /// A value to store.
    pub(crate) fn value(&mut self) -> Vec<u8> {
        if self.arena == Arena::Large {
            let length = self.large_length();
            return self.bytes(length);
        }
        match self.rng.u8(0..20) {
            0..=5 => self.rng.i64(-20..20_000).to_string().into_bytes(),
            6 => self.pick(EDGE_INTEGERS).into(),
            7 => self.pick(ODD_INTEGERS).into(),
            8 | 9 => self.pick(FLOATS).into(),
            10 => self.pick(ODD_FLOATS).into(),
            11..=14 => self.pick(TEXTS).into(),
            15 => self.pick(SYNTAX).into(),
            16..=18 => {
                let length = self.pick(&EDGE_LENGTHS);
                self.bytes(length)
            }
            _ => {
                let length = self.rng.usize(0..40);
                std::iter::repeat_with(|| self.rng.u8(b'a'..=b'd'))
                    .take(length)
                    .collect()
            }
        }
    }

    fn large_length(&mut self) -> usize {
        match self.rng.u8(0..100) {
            0 => HUGE_LENGTH,
            1..=40 => self.rng.usize(0..200),
            _ => self.pick(&LARGE_LENGTHS),
        }
    }

    /// `length` bytes of every kind, with runs of zero and all-one bytes that bit commands have to pass.
    fn bytes(&mut self, length: usize) -> Vec<u8> {
        let fill = self.pick(&[0x00, 0xff, b'x', 0x80]);
        let mut bytes = vec![fill; length];
        for _ in 0..self.rng.usize(0..4).min(length) {
            let at = self.rng.usize(0..length);
            bytes[at] = self.rng.u8(..);
        }
        bytes
    }

    /// An integer argument: mostly small, sometimes at a limit, sometimes not an integer at all.
    pub(crate) fn integer(&mut self) -> Vec<u8> {
        match self.rng.u8(0..20) {
            0..=13 => self.rng.i64(-10..=10).to_string().into_bytes(),
            14 => self.rng.i64(-300..=300).to_string().into_bytes(),
            15 => self.rng.i64(..).to_string().into_bytes(),
            16 | 17 => self.pick(EDGE_INTEGERS).into(),
            _ => self.pick(ODD_INTEGERS).into(),
        }
    }

    /// A floating-point argument.
    pub(crate) fn float(&mut self) -> Vec<u8> {
        match self.rng.u8(0..20) {
            0..=9 => self.pick(FLOATS).into(),
            10 | 11 => self.pick(ODD_FLOATS).into(),
            12 => self.integer(),
            13..=16 => format!("{:.3}", self.rng.f64() * 100.0 - 50.0).into_bytes(),
            _ => format!("{}", self.rng.f64() * 10.0).into_bytes(),
        }
    }

    /// A position in a string, up to the longest value of the arena.
    pub(crate) fn offset(&mut self) -> Vec<u8> {
        let limit = match (self.arena, self.chance(2)) {
            (Arena::Small, _) => 300,
            (Arena::Large, true) => HUGE_LENGTH as u64,
            (Arena::Large, false) => 70_000,
        };
        match self.rng.u8(0..20) {
            0..=15 => self.rng.u64(0..limit).to_string().into_bytes(),
            16 => self.rng.i64(-300..0).to_string().into_bytes(),
            _ => self.integer(),
        }
    }

    /// A position of a bit in a string.
    pub(crate) fn bit_offset(&mut self) -> Vec<u8> {
        let limit = match self.arena {
            Arena::Small => 2_400,
            Arena::Large => 560_000,
        };
        match self.rng.u8(0..20) {
            0..=16 => self.rng.u64(0..limit).to_string().into_bytes(),
            _ => self.integer(),
        }
    }

    pub(crate) fn pattern(&mut self) -> Vec<u8> {
        self.pick(PATTERNS).into()
    }

    /// A database: one of the four in use, rarely another, rarely none at all.
    pub(crate) fn database(&mut self) -> Vec<u8> {
        match self.rng.u8(0..20) {
            0..=16 => self.rng.u8(0..4).to_string().into_bytes(),
            17 => self.pick(&["15", "16", "-1", "1000000"]).into(),
            _ => self.integer(),
        }
    }

    /// A word that may mean something where it does not belong.
    pub(crate) fn stray(&mut self) -> Vec<u8> {
        match self.rng.u8(0..4) {
            0 => self.pick(SYNTAX).into(),
            1 => self.integer(),
            2 => self.key(),
            _ => self.value(),
        }
    }

    /// The word, sometimes in lower or mixed case.
    pub(crate) fn cased(&mut self, word: &str) -> Vec<u8> {
        match self.rng.u8(0..4) {
            0 => word.to_ascii_lowercase().into_bytes(),
            1 => word
                .bytes()
                .map(|byte| {
                    if self.rng.bool() {
                        byte.to_ascii_lowercase()
                    } else {
                        byte.to_ascii_uppercase()
                    }
                })
                .collect(),
            _ => word.as_bytes().to_vec(),
        }
    }

    /// A number of seconds that no other time of this stream comes close to (invariant 2).
    pub(crate) fn distinct_s(&mut self) -> u64 {
        self.times = self.times.wrapping_add(1);
        // An odd factor permutes the numbers below a power of two, so the order of the times is no order of
        // time.
        let number = self.times.wrapping_mul(0x9E37_79B1) & 0xF_FFFF;
        10_000 + 1_000 * u64::from(number)
    }

    /// A time to live, in the unit of `per_second` parts of a second: far away, over, or out of range.
    pub(crate) fn lifetime(&mut self, per_second: u64) -> Vec<u8> {
        match self.rng.u8(0..20) {
            0..=14 => (self.distinct_s() * per_second).to_string().into_bytes(),
            15 => self.pick(&["0", "-1", "-1000"]).into(),
            _ => self.integer(),
        }
    }

    /// A time since 1970, in the unit of `per_second` parts of a second: far away, over, or out of range.
    pub(crate) fn moment(&mut self, per_second: u64) -> Vec<u8> {
        match self.rng.u8(0..20) {
            0..=14 => {
                let moment = FAR_FUTURE_S + self.distinct_s();
                (moment * per_second).to_string().into_bytes()
            }
            15 | 16 => self.rng.u32(1..1_000_000_000).to_string().into_bytes(),
            _ => self.integer(),
        }
    }
}
