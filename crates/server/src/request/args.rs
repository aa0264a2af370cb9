//! Arguments of one request, as slices of the buffer it was read into.

use keyspace::{Key, Keyspace, LargeValue};
use resp::{number, request::Span};

use super::failure::{self, Failure};

/// Arguments of one request. Index 0 is the command's name.
#[derive(Clone, Copy)]
pub(crate) struct Args<'a> {
    pub(crate) input: &'a [u8],
    pub(crate) spans: &'a [Span],
    /// Hashes of the first keys, computed when the batch was parsed.
    pub(crate) hashes: &'a [u64],
    pub(crate) first_key: usize,
    /// Distance of keys: `1 << key_shift` arguments.
    pub(crate) key_shift: u8,
    pub(crate) keyspace: &'a Keyspace,
    /// The buffer of `input`, if it is large and belongs to the connection alone.
    pub(crate) buffer: Option<&'a LargeValue>,
}

impl<'a> Args<'a> {
    /// Arguments in `input` before a request is parsed. `buffer`: its buffer, if that can be shared.
    #[inline]
    pub(crate) fn of_input(
        input: &'a [u8],
        buffer: Option<&'a LargeValue>,
        keyspace: &'a Keyspace,
    ) -> Args<'a> {
        Args {
            input,
            spans: &[],
            hashes: &[],
            first_key: 0,
            key_shift: 0,
            keyspace,
            buffer,
        }
    }

    /// Number of arguments, the name included.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    /// Bytes from the first argument to the end of the last.
    #[inline]
    pub(crate) fn size(&self) -> usize {
        let (first, last) = (self.spans[0], self.spans[self.spans.len() - 1]);
        last.start + last.len - first.start
    }

    /// The argument at `at`, which exists by the arity or a check of [`Args::len`].
    #[inline]
    pub(crate) fn get(&self, at: usize) -> &'a [u8] {
        self.spans[at].of(self.input)
    }

    /// The argument at `at`, if it exists.
    pub(crate) fn optional(&self, at: usize) -> Option<&'a [u8]> {
        self.spans.get(at).map(|span| span.of(self.input))
    }

    /// The arguments from `at` on.
    pub(crate) fn from(
        &self,
        at: usize,
    ) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone + use<'a> {
        let input = self.input;
        self.spans[at.min(self.spans.len())..]
            .iter()
            .map(move |span| span.of(input))
    }

    /// The argument at `at` as a key. The hashes of the first keys are precomputed.
    #[inline]
    pub(crate) fn key(&self, at: usize) -> Key<'a> {
        let bytes = self.get(at);
        let known = self
            .hashes
            .get(at.wrapping_sub(self.first_key) >> self.key_shift);
        let hash = match known {
            Some(&hash) => hash,
            None => self.keyspace.hash(bytes),
        };
        debug_assert_eq!(
            hash,
            self.keyspace.hash(bytes),
            "the hash of another argument"
        );
        Key { bytes, hash }
    }

    /// All keys of a command whose keys extend to its last argument, or to the last before a value.
    #[inline]
    pub(crate) fn keys(&self) -> impl Iterator<Item = Key<'a>> + Clone + use<'a> {
        let args = *self;
        (args.first_key..args.len())
            .step_by(1 << args.key_shift)
            .map(move |at| args.key(at))
    }

    /// The argument at `at` as a large value: the receive buffer itself if that holds little else, a copy
    /// otherwise.
    pub(crate) fn large(&self, at: usize) -> LargeValue {
        let span = self.spans[at];
        if let Some(buffer) = self.buffer
            && buffer.holds_little_beside(span.len)
            && buffer.adopt(span.start..span.start + span.len)
        {
            return LargeValue::clone(buffer);
        }
        LargeValue::new(self.get(at).to_vec().into())
    }

    /// Whether the argument at `at` is this word, ignoring case.
    pub(crate) fn is(&self, at: usize, word: &str) -> bool {
        self.get(at).eq_ignore_ascii_case(word.as_bytes())
    }

    /// The argument at `at` as an integer.
    pub(crate) fn integer(&self, at: usize) -> Result<i64, Failure> {
        number::parse_i64(self.get(at)).ok_or(failure::NOT_AN_INTEGER)
    }

    /// The argument at `at` as a 32-bit integer, like the number of a database.
    pub(crate) fn integer_i32(&self, at: usize) -> Result<i32, Failure> {
        i32::try_from(self.integer(at)?).map_err(|_| failure::NOT_AN_INT32)
    }

    /// The argument at `at` as text for an error message. Invalid UTF-8 is replaced.
    pub(crate) fn text(&self, at: usize) -> String {
        String::from_utf8_lossy(self.get(at)).into_owned()
    }
}
