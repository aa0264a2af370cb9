//! Where an argument lies in the input.

/// One argument: `len` bytes of the input given to [`super::parse`], from the absolute position `start`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Span {
    /// The position of the first byte in the input.
    pub start: usize,
    /// The number of bytes.
    pub len: usize,
}

impl Span {
    /// The argument's bytes.
    ///
    /// # Panics
    ///
    /// If `input` is not the input that the span was parsed from and is too short for it.
    #[inline]
    pub fn of<'a>(&self, input: &'a [u8]) -> &'a [u8] {
        &input[self.start..][..self.len]
    }

    /// The span of a request at `at`, its position counted from there so far.
    pub(super) fn counted_from_input(self, at: usize) -> Span {
        let start = self.start + at;
        Span { start, ..self }
    }

    /// The same the other way round.
    pub(super) fn counted_from_request(self, at: usize) -> Span {
        let start = self.start - at;
        Span { start, ..self }
    }
}
