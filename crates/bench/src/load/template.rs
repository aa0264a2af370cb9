//! Requests in their encoded form, of which only what changes is written anew.
//!
//! A [`Template`] is made once of the words of a command. Where nothing changes its length it is one
//! run of bytes in which twelve digits are overwritten per key:
//!
//! ```text
//! *3\r\n$3\r\nSET\r\n$16\r\nkey:000000000000\r\n$3\r\nVXK\r\n
//!                               ^ slot: the next number goes here
//! ```
//!
//! A key without leading zeros, a value of varying size or an expiry changes length, and is a part of
//! its own between such runs.
//!
//! Placeholders in words, a word being an argument of the command: `__rand_int__` anywhere in a word is
//! a number of twelve digits; a word `__key__` is a key, `__data__` a value, `__expiry__` a number of
//! seconds, `__score__` a number that is 0 without a range. In a cluster `{tag}` is replaced by a tag of the
//! node's, the same one in all of a request.

use super::data::Data;
use super::home::{Home, TAG};
use super::numbers::Numbers;
use super::outgoing::Outgoing;
use super::sizes::Sizes;
use crate::limits::INLINE_BYTES;
use fastrand::Rng;
use resp::number::{INTEGER_TEXT_LEN, format_u64};

/// The digits of a number in a slot.
pub(crate) const SLOT_DIGITS: usize = 12;

/// What redis-benchmark's users write where a number goes.
const RANDOM: &[u8] = b"__rand_int__";

/// How keys look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyForm {
    /// What stands before the number.
    pub(crate) prefix: Vec<u8>,
    /// How many digits the number is filled up to with zeros; 0 for none.
    pub(crate) digits: usize,
    /// There is a range of numbers. Without one every placeholder stays as it is, so that all
    /// requests name the same key, as redis-benchmark does it.
    pub(crate) is_random: bool,
}

impl KeyForm {
    /// The keys that these numbers stand for, as requests have them.
    pub(crate) fn names(&self, first: u64, count: u64) -> Vec<Vec<u8>> {
        if !self.is_random {
            return vec![[&self.prefix, RANDOM].concat()];
        }
        let digits = self.digits;
        let name = |number: u64| {
            let mut name = self.prefix.clone();
            name.extend_from_slice(format!("{number:0digits$}").as_bytes());
            name
        };
        (first..first.saturating_add(count)).map(name).collect()
    }
}

/// The values of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ValueForm {
    pub(crate) sizes: Sizes,
    /// Each value is another piece of the data; otherwise all begin with the same bytes.
    pub(crate) is_varied: bool,
}

/// An encoded request, or several that are sent and answered together.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    parts: Vec<Part>,
    values: ValueForm,
    expiry_s: (u64, u64),
    /// In a cluster: a key has a number, from which its tag follows.
    has_numbered_key: bool,
}

#[derive(Clone, Debug)]
enum Part {
    /// Bytes, and where in them numbers of [`SLOT_DIGITS`] digits go.
    Fixed {
        bytes: Vec<u8>,
        slots: Vec<usize>,
        /// Where tags go in a cluster.
        tags: Vec<usize>,
    },
    /// A bulk string: a prefix and a number filled up to so many digits.
    Key { prefix: Vec<u8>, digits: usize },
    /// A bulk string of a drawn size.
    Value,
    /// A bulk string with a number of seconds.
    Expiry,
}

/// What a template draws from when it is written.
#[derive(Debug)]
pub(crate) struct Draw<'a> {
    pub(crate) rng: &'a mut Rng,
    pub(crate) numbers: &'a mut Numbers,
    pub(crate) data: &'a Data,
    /// The connection's number in its thread.
    pub(crate) connection: usize,
}

impl Template {
    /// A template of raw bytes, for the inline form.
    pub(crate) fn raw(bytes: &[u8]) -> Template {
        Template {
            parts: vec![Part::Fixed {
                bytes: bytes.to_vec(),
                slots: Vec::new(),
                tags: Vec::new(),
            }],
            values: ValueForm {
                sizes: Sizes::Fixed(0),
                is_varied: false,
            },
            expiry_s: (0, 0),
            has_numbered_key: false,
        }
    }

    /// A template of commands, each a list of words.
    pub(crate) fn new(
        commands: &[Vec<Vec<u8>>],
        keys: &KeyForm,
        values: &ValueForm,
        expiry_s: (u64, u64),
        data: &Data,
    ) -> Template {
        let mut template = Template {
            parts: Vec::new(),
            values: values.clone(),
            expiry_s,
            has_numbered_key: false,
        };
        for words in commands {
            template.fixed(format!("*{}\r\n", words.len()).as_bytes());
            for word in words {
                template.word(word, keys, data);
            }
        }
        template
    }

    /// The same where tags stand for what makes the keys those of a node.
    pub(crate) fn with_tags(mut self) -> Template {
        for part in &mut self.parts {
            match part {
                Part::Fixed { bytes, slots, tags } => {
                    let mut from = 0;
                    while let Some(at) = find(&bytes[from..], TAG) {
                        tags.push(from + at + 1);
                        from += at + TAG.len();
                        // Between the two is a colon.
                        self.has_numbered_key |= slots.contains(&(from + 1));
                    }
                }
                Part::Key { .. } => self.has_numbered_key = true,
                Part::Value | Part::Expiry => {}
            }
        }
        self
    }

    fn word(&mut self, word: &[u8], keys: &KeyForm, data: &Data) {
        match word {
            b"__key__" => self.key(keys),
            b"__data__" => self.value(data),
            b"__expiry__" => self.parts.push(Part::Expiry),
            b"__score__" if keys.is_random => self.bulk(RANDOM, true),
            b"__score__" => self.bulk(b"0", false),
            _ => self.bulk(word, keys.is_random),
        }
    }

    fn key(&mut self, keys: &KeyForm) {
        let mut word = keys.prefix.clone();
        if keys.is_random && keys.digits != SLOT_DIGITS {
            let digits = keys.digits;
            self.parts.push(Part::Key {
                prefix: word,
                digits,
            });
            return;
        }
        word.extend_from_slice(RANDOM);
        self.bulk(&word, keys.is_random);
    }

    fn value(&mut self, data: &Data) {
        match self.values.sizes {
            Sizes::Fixed(size) if size <= INLINE_BYTES && !self.values.is_varied => {
                let mut value = Vec::new();
                data.copy(0, size, &mut value);
                self.bulk(&value, false);
            }
            _ => self.parts.push(Part::Value),
        }
    }

    /// A word that keeps its length. With `has_numbers`, the placeholders in it become slots.
    fn bulk(&mut self, word: &[u8], has_numbers: bool) {
        self.fixed(format!("${}\r\n", word.len()).as_bytes());
        let mut rest = word;
        while has_numbers && let Some(at) = find(rest, RANDOM) {
            self.fixed(&rest[..at]);
            self.slot();
            rest = &rest[at + RANDOM.len()..];
        }
        self.fixed(rest);
        self.fixed(b"\r\n");
    }

    fn fixed(&mut self, more: &[u8]) {
        let (bytes, _) = self.last_fixed();
        bytes.extend_from_slice(more);
    }

    fn slot(&mut self) {
        let (bytes, slots) = self.last_fixed();
        slots.push(bytes.len());
        bytes.extend_from_slice(&[b'0'; SLOT_DIGITS]);
    }

    /// The run of bytes at the end, a new one behind anything else.
    fn last_fixed(&mut self) -> (&mut Vec<u8>, &mut Vec<usize>) {
        if !matches!(self.parts.last(), Some(Part::Fixed { .. })) {
            self.parts.push(Part::Fixed {
                bytes: Vec::new(),
                slots: Vec::new(),
                tags: Vec::new(),
            });
        }
        match self.parts.last_mut() {
            Some(Part::Fixed { bytes, slots, .. }) => (bytes, slots),
            _ => unreachable!("a run of bytes was just put there"),
        }
    }

    /// Appends the next request.
    ///
    /// Budget: a copy of the bytes and some twenty instructions per key, no allocation once `out` has
    /// grown; the generator may not be slower than the server.
    #[inline]
    pub(crate) fn write(&self, out: &mut Outgoing, draw: &mut Draw<'_>) {
        for part in &self.parts {
            let Part::Fixed { bytes, slots, .. } = part else {
                self.write_other(part, out, draw);
                continue;
            };
            let start = out.bytes.len();
            out.bytes.extend_from_slice(bytes);
            for slot in slots {
                let number = draw.numbers.draw(draw.rng, draw.connection);
                let at = start + slot;
                write_slot(&mut out.bytes[at..at + SLOT_DIGITS], number);
            }
        }
    }

    /// Appends the next request for a node of a cluster. The first number and the tag belong together.
    pub(crate) fn write_at(&self, home: &Home, out: &mut Outgoing, draw: &mut Draw<'_>) {
        let Draw {
            rng,
            numbers,
            connection,
            ..
        } = draw;
        let (mut first, tag) = if self.has_numbered_key {
            let (number, tag) = home.number(rng, |rng| numbers.draw(rng, *connection));
            (Some(number), tag)
        } else {
            (None, home.fixed())
        };
        for part in &self.parts {
            let mut next = |draw: &mut Draw<'_>| {
                let first = first.take();
                first.unwrap_or_else(|| draw.numbers.draw(draw.rng, draw.connection))
            };
            let start = out.bytes.len();
            match part {
                Part::Fixed { bytes, slots, tags } => {
                    out.bytes.extend_from_slice(bytes);
                    for at in tags.iter().map(|at| start + at) {
                        out.bytes[at..at + tag.len()].copy_from_slice(&tag);
                    }
                    for at in slots.iter().map(|at| start + at) {
                        write_slot(&mut out.bytes[at..at + SLOT_DIGITS], next(draw));
                    }
                }
                Part::Key { prefix, digits } => {
                    write_key(&mut out.bytes, prefix, *digits, next(draw));
                    if let Some(at) = find(&out.bytes[start..], TAG) {
                        let at = start + at + 1;
                        out.bytes[at..at + tag.len()].copy_from_slice(&tag);
                    }
                }
                _ => self.write_other(part, out, draw),
            }
        }
    }

    /// Parts of varying length, out of the way of the others.
    #[inline(never)]
    fn write_other(&self, part: &Part, out: &mut Outgoing, draw: &mut Draw<'_>) {
        match part {
            Part::Fixed { .. } => {}
            Part::Key { prefix, digits } => {
                let number = draw.numbers.draw(draw.rng, draw.connection);
                write_key(&mut out.bytes, prefix, *digits, number);
            }
            Part::Value => self.write_value(out, draw),
            Part::Expiry => {
                let seconds = draw.rng.u64(self.expiry_s.0..=self.expiry_s.1);
                write_key(&mut out.bytes, b"", 0, seconds);
            }
        }
    }

    fn write_value(&self, out: &mut Outgoing, draw: &mut Draw<'_>) {
        let size = self.values.sizes.draw(draw.rng);
        let start = match self.values.is_varied {
            true => draw.rng.u64(..crate::limits::DATA_BYTES as u64),
            false => 0,
        };
        write_length(&mut out.bytes, size);
        if size <= INLINE_BYTES {
            draw.data.copy(start, size, &mut out.bytes);
        } else {
            out.insert(start, size);
        }
        out.bytes.extend_from_slice(b"\r\n");
    }
}

fn find(text: &[u8], pattern: &[u8]) -> Option<usize> {
    text.windows(pattern.len())
        .position(|window| window == pattern)
}

/// The header of a bulk string.
fn write_length(out: &mut Vec<u8>, len: u64) {
    out.push(b'$');
    out.extend_from_slice(format_u64(len, &mut [0; INTEGER_TEXT_LEN]));
    out.extend_from_slice(b"\r\n");
}

/// A bulk string of a prefix and a number.
fn write_key(out: &mut Vec<u8>, prefix: &[u8], digits: usize, number: u64) {
    let mut buffer = [0; INTEGER_TEXT_LEN];
    let text = format_u64(number, &mut buffer);
    let zeros = digits.saturating_sub(text.len());
    write_length(out, (prefix.len() + zeros + text.len()) as u64);
    out.extend_from_slice(prefix);
    out.resize(out.len() + zeros, b'0');
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

/// Writes a number into a slot, with zeros in front; only its last twelve digits.
#[inline]
fn write_slot(slot: &mut [u8], number: u64) {
    const HALF: u64 = 100_000_000;
    if number < HALF {
        slot[..4].copy_from_slice(b"0000");
        slot[4..].copy_from_slice(&eight_digits(number as u32));
        return;
    }
    // Both are below 10^8.
    let (high, low) = (number / HALF % 10_000, number % HALF);
    slot[..4].copy_from_slice(&eight_digits(high as u32)[4..]);
    slot[4..].copy_from_slice(&eight_digits(low as u32));
}

/// The eight digits of a number below 10^8, all at once: it is split into two halves of four digits,
/// these into pairs and those into digits, each time in all lanes of one word.
#[inline]
fn eight_digits(number: u32) -> [u8; 8] {
    let number = u64::from(number);
    let halves = (number / 10_000) | (number % 10_000) << 32;
    // A division by 100 as a multiplication that is exact below 10^4; likewise by 10 below 100.
    let hundreds = ((halves * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let pairs = hundreds | (halves - 100 * hundreds) << 16;
    let tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    let digits = tens | (pairs - 10 * tens) << 8;
    (digits | 0x3030_3030_3030_3030).to_le_bytes()
}

#[cfg(test)]
mod tests;
