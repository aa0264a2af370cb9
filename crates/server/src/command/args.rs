//! The arguments of one request, as slices of the buffer it was read into.

use keyspace::{Key, Keyspace};
use resp::{number, request::Span};

use super::failure::{self, Failure};

/// See the module. Index 0 is the command's name.
#[derive(Clone, Copy)]
pub(crate) struct Args<'a> {
    pub(crate) input: &'a [u8],
    pub(crate) spans: &'a [Span],
    /// Hashes of the first keys, made while the batch was parsed.
    pub(crate) hashes: &'a [u64],
    pub(crate) first_key: usize,
    pub(crate) key_step: usize,
    pub(crate) keyspace: &'a Keyspace,
}

impl<'a> Args<'a> {
    /// The number of arguments, name included.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    /// The argument at `at`, which the arity (or a check of [`Args::len`]) says is there.
    #[inline]
    pub(crate) fn get(&self, at: usize) -> &'a [u8] {
        self.spans[at].of(self.input)
    }

    /// The argument at `at`, if there is one.
    pub(crate) fn optional(&self, at: usize) -> Option<&'a [u8]> {
        self.spans.get(at).map(|span| span.of(self.input))
    }

    /// The arguments from `at` on.
    pub(crate) fn from(&self, at: usize) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone + use<'a> {
        let input = self.input;
        self.spans[at.min(self.spans.len())..].iter().map(move |span| span.of(input))
    }

    /// The argument at `at` as a key. Its hash is there already if it is one of the command's first keys.
    #[inline]
    pub(crate) fn key(&self, at: usize) -> Key<'a> {
        let bytes = self.get(at);
        let hash = if at == self.first_key && !self.hashes.is_empty() {
            self.hashes[0]
        } else {
            self.later_hash(at, bytes)
        };
        Key { bytes, hash }
    }

    #[inline]
    fn later_hash(&self, at: usize, bytes: &[u8]) -> u64 {
        let behind = at.wrapping_sub(self.first_key);
        let known = if behind.is_multiple_of(self.key_step.max(1)) {
            self.hashes.get(behind / self.key_step.max(1)).copied()
        } else {
            None
        };
        known.unwrap_or_else(|| self.keyspace.hash(bytes))
    }

    /// Whether the argument at `at` is this word, in any case.
    pub(crate) fn is(&self, at: usize, word: &str) -> bool {
        self.get(at).eq_ignore_ascii_case(word.as_bytes())
    }

    /// The argument at `at` as an integer.
    pub(crate) fn integer(&self, at: usize) -> Result<i64, Failure> {
        number::parse_i64(self.get(at)).ok_or(failure::NOT_AN_INTEGER)
    }

    /// The argument at `at` as text for an error message: bytes that are no UTF-8 are replaced.
    pub(crate) fn text(&self, at: usize) -> String {
        String::from_utf8_lossy(self.get(at)).into_owned()
    }
}
