//! Many keys and values, one behind the other in one buffer: what is carried between the keyspace and a file.
//!
//! ```text
//!  word: key length (38 bits) | value length (16) | form (2) | kind (4) | flags (4)
//!  [expiry, 8 B]  key  value, unless it is the next of `large` or of `trees`
//!                      of a cold one its address and its length, 8 B each
//! ```
//!
//! A buffer that is cleared and filled again takes no memory for the second time.

use std::sync::Arc;

use crate::collection::any::Moment;
use crate::entry::cold::ColdValue;
use crate::entry::{Form, INLINE_VALUE_MAX, Kind, Type};
use crate::large::LargeValue;

const VOLATILE: u64 = 1;
const LARGE: u64 = 1 << 1;
const COLD: u64 = 1 << 2;
/// Both bits: a collection.
const TREE: u64 = LARGE | COLD;
const KIND_SHIFT: u32 = 4;
const FORM_SHIFT: u32 = 8;
const VALUE_LENGTH_SHIFT: u32 = 10;
const KEY_LENGTH_SHIFT: u32 = 26;
const WORD: usize = 8;

/// See the module.
#[derive(Debug, Default)]
pub struct Records {
    bytes: Vec<u8>,
    large: Vec<LargeValue>,
    trees: Vec<Arc<Moment>>,
    len: usize,
}

/// One key.
#[derive(Debug)]
pub struct Record<'a> {
    /// The key.
    pub key: &'a [u8],
    /// What the value is, and how it counts as written.
    pub of: Type,
    /// The value.
    pub value: RecordValue<'a>,
    /// When it expires (Unix, ms).
    pub expiry: Option<i64>,
}

/// The value of a record.
#[derive(Clone, Debug)]
pub enum RecordValue<'a> {
    /// At most [`INLINE_VALUE_MAX`] bytes.
    Inline(&'a [u8]),
    /// A value with a buffer of its own.
    Large(LargeValue),
    /// A value that is in the log alone.
    Cold(ColdValue),
    /// A collection, as it was when the record was made.
    Tree(Arc<Moment>),
}

impl RecordValue<'_> {
    /// The value's bytes; of one that is in the log alone where it is.
    ///
    /// # Errors
    /// The value is in the log alone.
    ///
    /// # Panics
    /// It is a collection.
    pub fn bytes(&self) -> Result<&[u8], ColdValue> {
        match self {
            RecordValue::Inline(bytes) => Ok(bytes),
            RecordValue::Large(large) => Ok(large),
            RecordValue::Cold(cold) => Err(*cold),
            RecordValue::Tree(_) => unreachable!("a snapshot writes trees an item at a time"),
        }
    }
}

impl Records {
    /// Appends a key whose value is a string that was set as a whole.
    #[inline]
    pub fn push(&mut self, key: &[u8], value: RecordValue<'_>, expiry: Option<i64>) {
        self.push_typed(key, (Type::STRING, value), expiry);
    }

    /// Appends a key.
    ///
    /// # Panics
    /// An inline value is too long for one, or the key has 2^38 bytes.
    pub fn push_typed(
        &mut self,
        key: &[u8],
        (of, value): (Type, RecordValue<'_>),
        expiry: Option<i64>,
    ) {
        let at;
        let inline: &[u8] = match &value {
            RecordValue::Inline(bytes) => bytes,
            RecordValue::Large(_) | RecordValue::Tree(_) => b"",
            RecordValue::Cold(cold) => {
                at = cold.to_bytes();
                &at
            }
        };
        assert!(inline.len() <= INLINE_VALUE_MAX && key.len() < 1 << 38);
        let mut word = (key.len() as u64) << KEY_LENGTH_SHIFT
            | (inline.len() as u64) << VALUE_LENGTH_SHIFT
            | (of.form as u64) << FORM_SHIFT
            | (of.kind as u64) << KIND_SHIFT;
        self.bytes.reserve(2 * WORD + key.len() + inline.len());
        if expiry.is_some() {
            word |= VOLATILE;
        }
        match value {
            RecordValue::Inline(_) => {}
            RecordValue::Large(_) => word |= LARGE,
            RecordValue::Cold(_) => word |= COLD,
            RecordValue::Tree(_) => word |= TREE,
        }
        self.bytes.extend_from_slice(&word.to_ne_bytes());
        if let Some(expiry) = expiry {
            self.bytes.extend_from_slice(&expiry.to_ne_bytes());
        }
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(inline);
        match value {
            RecordValue::Large(large) => self.large.push(large),
            RecordValue::Tree(tree) => self.trees.push(tree),
            RecordValue::Inline(_) | RecordValue::Cold(_) => {}
        }
        self.len += 1;
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of the buffer that are used. Large values are not in it.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Forgets all, and keeps the buffer.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.large.clear();
        self.trees.clear();
        self.len = 0;
    }

    /// All, in order.
    pub fn iter(&self) -> impl Iterator<Item = Record<'_>> {
        let mut rest = &self.bytes[..];
        let (mut large, mut trees) = (self.large.iter(), self.trees.iter());
        std::iter::from_fn(move || {
            let (word, behind) = rest.split_first_chunk::<WORD>()?;
            let word = u64::from_ne_bytes(*word);
            rest = behind;
            let expiry = if word & VOLATILE == 0 {
                None
            } else {
                Some(i64::from_ne_bytes(*take(&mut rest, WORD).first_chunk()?))
            };
            let key = take(&mut rest, (word >> KEY_LENGTH_SHIFT) as usize);
            let inline = take(&mut rest, (word >> VALUE_LENGTH_SHIFT) as usize & 0xffff);
            let value = match word & (LARGE | COLD) {
                0 => RecordValue::Inline(inline),
                COLD => RecordValue::Cold(ColdValue::from_bytes(inline)?),
                TREE => RecordValue::Tree(trees.next()?.clone()),
                _ => RecordValue::Large(large.next()?.clone()),
            };
            let kind = Kind::from_bits((word >> KIND_SHIFT) as u8 & 0xf);
            let of = Type {
                kind: kind.expect("a word has the kind that was pushed"),
                form: Form::from_bits((word >> FORM_SHIFT) as u8 & 0b11),
            };
            Some(Record {
                key,
                of,
                value,
                expiry,
            })
        })
    }
}

/// Takes the first `len` bytes of what `push` has written.
#[inline]
fn take<'a>(rest: &mut &'a [u8], len: usize) -> &'a [u8] {
    let (taken, behind) = rest.split_at(len);
    *rest = behind;
    taken
}

const _: () = assert!(INLINE_VALUE_MAX <= 0xffff);

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;
    use crate::entry::LogAddress;

    #[test]
    fn records_come_back_in_order() {
        let mut records = Records::default();
        for round in 0..2 {
            let large = LargeValue::new(vec![round; 100_000].into());
            let (key, value) = ([b'k'; 300], [b'v'; INLINE_VALUE_MAX]);
            let cold = ColdValue {
                address: LogAddress(NonZeroU64::MAX),
                len: 1 << 40,
            };
            let all = [
                (&b""[..], RecordValue::Inline(b""), None),
                (b"a", RecordValue::Inline(b"1"), Some(i64::MIN)),
                (b"large", RecordValue::Large(large.clone()), Some(i64::MAX)),
                (&key, RecordValue::Inline(&value), Some(0)),
                (b"again", RecordValue::Large(large), None),
                (b"cold", RecordValue::Cold(cold), Some(5)),
            ];
            let types = || {
                Kind::ALL
                    .into_iter()
                    .zip([Form::Whole, Form::Part].into_iter().cycle())
            };
            let of = |(kind, form)| Type { kind, form };
            for ((key, value, expiry), of) in all.iter().zip(types().map(of)) {
                records.push_typed(key, (of, value.clone()), *expiry);
            }
            records.push(&key, RecordValue::Inline(&value), None);
            let mut read = records.iter();
            for ((key, value, expiry), of) in all.iter().zip(types().map(of)) {
                let record = read.next().expect("they are as many");
                assert_eq!((record.key, record.expiry), (*key, *expiry));
                assert_eq!(record.of, of);
                match (record.value, value) {
                    (RecordValue::Cold(read), RecordValue::Cold(cold)) => assert_eq!(read, *cold),
                    (read, value) => assert_eq!(read.bytes(), value.bytes()),
                }
            }
            let last = read.next().map(|record| (record.key.len(), record.of));
            assert_eq!(last, Some((300, Type::STRING)));
            assert!(read.next().is_none() && records.len() == all.len() + 1);
            drop(read);
            records.clear();
            assert!(records.is_empty() && records.bytes() == 0);
            assert!(records.iter().next().is_none());
        }
    }
}
