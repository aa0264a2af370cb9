//! Patterns of Lua 5.1, as functions over bytes: they know no state. Results are those of Lua's own, and
//! beyond them a match is bounded.
//!
//! Invariants:
//! 1. Every step counts; each [`STEPS`] of them a question is asked, and the match may end there.
//! 2. Calls nest to [`DEPTH`] at most; beyond that the pattern is too complex.
//! 3. A pattern ends at its first zero, as it does in C. Reading at its end or beyond gives zeros.

use std::ffi::CStr;

/// Captures of a pattern at most.
pub(crate) const CAPTURES: usize = 32;
/// How deep calls nest.
const DEPTH: u32 = 200;
/// Steps between two questions.
const STEPS: u32 = 50_000;
const ESCAPE: u8 = b'%';

/// Why a match ends without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unmatched {
    /// The answer to the question was to stop.
    Stopped,
    Text(&'static CStr),
}

/// A part of the subject that a pattern has put in parentheses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Capture {
    /// From `start` on; its end has not been met.
    Open {
        start: usize,
    },
    /// `()`: a place.
    Place {
        at: usize,
    },
    Bytes {
        start: usize,
        len: usize,
    },
}

/// One pattern on one subject.
pub(crate) struct Matcher<'m, A> {
    subject: &'m [u8],
    pattern: &'m [u8],
    captures: [Capture; CAPTURES],
    level: usize,
    depth: u32,
    steps: u32,
    /// The question: whether to stop.
    ask: A,
}

type Matched = Result<Option<usize>, Unmatched>;

impl<'m, A: Fn() -> bool> Matcher<'m, A> {
    /// `ask` says whether to stop.
    pub(crate) fn new(subject: &'m [u8], pattern: &'m [u8], ask: A) -> Matcher<'m, A> {
        Matcher {
            subject,
            pattern: until_zero(pattern),
            captures: [Capture::Open { start: 0 }; CAPTURES],
            level: 0,
            depth: 0,
            steps: STEPS,
            ask,
        }
    }

    /// Whether the pattern begins with `^`. It is then without it.
    pub(crate) fn take_anchor(&mut self) -> bool {
        let rest = self.pattern.strip_prefix(b"^");
        self.pattern = rest.unwrap_or(self.pattern);
        rest.is_some()
    }

    /// Matches the pattern at a place of the subject. Returns the end of the match.
    #[inline]
    pub(crate) fn match_at(&mut self, at: usize) -> Matched {
        self.level = 0;
        self.match_from(at, 0)
    }

    /// The first match at or after a place: its start and end.
    pub(crate) fn search(&mut self, from: usize) -> Result<Option<(usize, usize)>, Unmatched> {
        let first = self.literal();
        let mut at = from;
        while at <= self.subject.len() {
            if let Some(first) = first {
                let rest = &self.subject[at..];
                let Some(next) = rest.iter().position(|&byte| byte == first) else {
                    return Ok(None);
                };
                at += next;
                self.count(next as u32 / 16)?;
            }
            self.count(1)?;
            if let Some(end) = self.match_at(at)? {
                return Ok(Some((at, end)));
            }
            at += 1;
        }
        Ok(None)
    }

    /// The byte that every match begins with, if the pattern begins with one.
    fn literal(&self) -> Option<u8> {
        let first = *self.pattern.first()?;
        let is_literal = !SPECIALS.contains(&first) && first != b')';
        let is_repeated = matches!(self.byte(1), b'*' | b'?' | b'-');
        (is_literal && !is_repeated).then_some(first)
    }

    /// Captures of the last match.
    pub(crate) fn captures(&self) -> usize {
        self.level
    }

    /// A capture of the last match, or the whole of it if there are none.
    pub(crate) fn capture(
        &self,
        index: usize,
        start: usize,
        end: usize,
    ) -> Result<Capture, Unmatched> {
        if index < self.level {
            return match self.captures[index] {
                Capture::Open { .. } => Err(Unmatched::Text(c"unfinished capture")),
                capture => Ok(capture),
            };
        }
        if index > 0 {
            return Err(Unmatched::Text(c"invalid capture index"));
        }
        let len = end - start;
        Ok(Capture::Bytes { start, len })
    }

    /// The byte of the pattern at a place, 0 at the end.
    #[inline]
    fn byte(&self, at: usize) -> u8 {
        self.pattern.get(at).copied().unwrap_or(0)
    }

    #[inline]
    fn count(&mut self, steps: u32) -> Result<(), Unmatched> {
        if self.steps > steps {
            self.steps -= steps;
            return Ok(());
        }
        self.steps = STEPS;
        if (self.ask)() {
            return Err(Unmatched::Stopped);
        }
        Ok(())
    }

    fn match_from(&mut self, at: usize, pattern_at: usize) -> Matched {
        if self.depth == DEPTH {
            return Err(Unmatched::Text(c"pattern too complex"));
        }
        self.depth += 1;
        let matched = self.match_here(at, pattern_at);
        self.depth -= 1;
        matched
    }

    /// `s` is the place in the subject, `p` the one in the pattern.
    fn match_here(&mut self, mut s: usize, mut p: usize) -> Matched {
        loop {
            self.count(1)?;
            match self.byte(p) {
                0 => return Ok(Some(s)),
                b'(' if self.byte(p + 1) == b')' => {
                    return self.start_capture(Capture::Place { at: s }, s, p + 2);
                }
                b'(' => return self.start_capture(Capture::Open { start: s }, s, p + 1),
                b')' => return self.end_capture(s, p + 1),
                b'$' if self.byte(p + 1) == 0 => {
                    return Ok((s == self.subject.len()).then_some(s));
                }
                ESCAPE => match self.byte(p + 1) {
                    b'b' => match self.match_balance(s, p + 2)? {
                        Some(end) => (s, p) = (end, p + 4),
                        None => return Ok(None),
                    },
                    b'f' => {
                        let end = self.frontier(p + 2)?;
                        if !self.is_frontier(s, p + 2, end) {
                            return Ok(None);
                        }
                        p = end;
                    }
                    digit @ b'0'..=b'9' => match self.match_capture(s, digit)? {
                        Some(end) => (s, p) = (end, p + 2),
                        None => return Ok(None),
                    },
                    _ => match self.match_item(s, p)? {
                        Step::On(to) => (s, p) = to,
                        Step::Done(matched) => return Ok(matched),
                    },
                },
                _ => match self.match_item(s, p)? {
                    Step::On(to) => (s, p) = to,
                    Step::Done(matched) => return Ok(matched),
                },
            }
        }
    }

    /// One class, and the sign of repetition after it.
    #[inline]
    fn match_item(&mut self, s: usize, p: usize) -> Result<Step, Unmatched> {
        let end = self.class_end(p)?;
        let is_match = self.is_single_at(s, p, end);
        match self.byte(end) {
            b'?' => {
                if is_match && let Some(matched) = self.match_from(s + 1, end + 1)? {
                    return Ok(Step::Done(Some(matched)));
                }
                Ok(Step::On((s, end + 1)))
            }
            b'*' => Ok(Step::Done(self.expand_most(s, p, end)?)),
            b'+' if is_match => Ok(Step::Done(self.expand_most(s + 1, p, end)?)),
            b'+' => Ok(Step::Done(None)),
            b'-' => Ok(Step::Done(self.expand_least(s, p, end)?)),
            _ if is_match => Ok(Step::On((s + 1, end))),
            _ => Ok(Step::Done(None)),
        }
    }

    fn expand_most(&mut self, s: usize, p: usize, end: usize) -> Matched {
        let mut count = 0;
        while self.is_single_at(s + count, p, end) {
            count += 1;
        }
        self.count(count.min(STEPS as usize) as u32)?;
        loop {
            if let Some(matched) = self.match_from(s + count, end + 1)? {
                return Ok(Some(matched));
            }
            if count == 0 {
                return Ok(None);
            }
            count -= 1;
        }
    }

    fn expand_least(&mut self, mut s: usize, p: usize, end: usize) -> Matched {
        loop {
            if let Some(matched) = self.match_from(s, end + 1)? {
                return Ok(Some(matched));
            }
            if !self.is_single_at(s, p, end) {
                return Ok(None);
            }
            s += 1;
        }
    }

    fn start_capture(&mut self, capture: Capture, s: usize, p: usize) -> Matched {
        if self.level >= CAPTURES {
            return Err(Unmatched::Text(c"too many captures"));
        }
        self.captures[self.level] = capture;
        self.level += 1;
        let matched = self.match_from(s, p)?;
        if matched.is_none() {
            self.level -= 1;
        }
        Ok(matched)
    }

    fn end_capture(&mut self, s: usize, p: usize) -> Matched {
        let open = self.captures[..self.level]
            .iter()
            .rposition(|capture| matches!(capture, Capture::Open { .. }));
        let Some(at) = open else {
            return Err(Unmatched::Text(c"invalid pattern capture"));
        };
        let before = self.captures[at];
        if let Capture::Open { start } = before {
            let len = s - start;
            self.captures[at] = Capture::Bytes { start, len };
        }
        let matched = self.match_from(s, p)?;
        if matched.is_none() {
            self.captures[at] = before;
        }
        Ok(matched)
    }

    /// `%1`: the bytes of a capture again.
    fn match_capture(&mut self, s: usize, digit: u8) -> Matched {
        let at = usize::from(digit).wrapping_sub(usize::from(b'1'));
        let captures = &self.captures[..self.level];
        match captures.get(at) {
            None | Some(Capture::Open { .. }) => Err(Unmatched::Text(c"invalid capture index")),
            Some(Capture::Place { .. }) => Ok(None),
            Some(&Capture::Bytes { start, len }) => {
                let bytes = &self.subject[start..start + len];
                let is_there = self.subject[s..].starts_with(bytes);
                self.count((len.min(1 << 20) / 16) as u32)?;
                Ok(is_there.then_some(s + len))
            }
        }
    }

    /// `%bxy`.
    fn match_balance(&mut self, s: usize, p: usize) -> Matched {
        let (open, close) = (self.byte(p), self.byte(p + 1));
        if open == 0 || close == 0 {
            return Err(Unmatched::Text(c"unbalanced pattern"));
        }
        if self.subject.get(s) != Some(&open) {
            return Ok(None);
        }
        let mut depth = 1_usize;
        for (at, &byte) in self.subject.iter().enumerate().skip(s + 1) {
            self.count(1)?;
            if byte == close {
                depth -= 1;
                if depth == 0 {
                    return Ok(Some(at + 1));
                }
            } else if byte == open {
                depth += 1;
            }
        }
        Ok(None)
    }

    /// The end of the set of `%f`.
    fn frontier(&self, p: usize) -> Result<usize, Unmatched> {
        if self.byte(p) != b'[' {
            return Err(Unmatched::Text(c"missing '[' after '%f' in pattern"));
        }
        self.class_end(p)
    }

    /// Whether the set begins at a place: the byte before is not of it, the one there is.
    fn is_frontier(&self, s: usize, p: usize, end: usize) -> bool {
        let before = s.checked_sub(1).map_or(0, |at| self.subject[at]);
        let here = self.subject.get(s).copied().unwrap_or(0);
        !self.is_in_set(before, p, end - 1) && self.is_in_set(here, p, end - 1)
    }

    /// The end of the class that begins at `p`.
    #[inline]
    fn class_end(&self, p: usize) -> Result<usize, Unmatched> {
        match self.byte(p) {
            ESCAPE if self.byte(p + 1) == 0 => {
                Err(Unmatched::Text(c"malformed pattern (ends with '%')"))
            }
            ESCAPE => Ok(p + 2),
            b'[' => {
                let mut at = p + 1;
                if self.byte(at) == b'^' {
                    at += 1;
                }
                loop {
                    let byte = self.byte(at);
                    if byte == 0 {
                        return Err(Unmatched::Text(c"malformed pattern (missing ']')"));
                    }
                    at += 1;
                    if byte == ESCAPE && self.byte(at) != 0 {
                        at += 1;
                    }
                    if self.byte(at) == b']' {
                        return Ok(at + 1);
                    }
                }
            }
            _ => Ok(p + 1),
        }
    }

    #[inline]
    fn is_single_at(&self, s: usize, p: usize, end: usize) -> bool {
        let Some(&byte) = self.subject.get(s) else {
            return false;
        };
        match self.byte(p) {
            b'.' => true,
            ESCAPE => is_of_class(byte, self.byte(p + 1)),
            b'[' => self.is_in_set(byte, p, end - 1),
            literal => literal == byte,
        }
    }

    /// Whether a byte is in the set between the brackets at `p` and `end`.
    fn is_in_set(&self, byte: u8, p: usize, end: usize) -> bool {
        let is_negated = self.byte(p + 1) == b'^';
        let mut at = p + 1 + usize::from(is_negated);
        while at < end {
            let item = self.byte(at);
            let is_in = if item == ESCAPE {
                at += 1;
                is_of_class(byte, self.byte(at))
            } else if self.byte(at + 1) == b'-' && at + 2 < end {
                at += 2;
                (item..=self.byte(at)).contains(&byte)
            } else {
                item == byte
            };
            if is_in {
                return !is_negated;
            }
            at += 1;
        }
        is_negated
    }
}

/// Where a match goes on: a place in the subject and one in the pattern; or its end.
enum Step {
    On((usize, usize)),
    Done(Option<usize>),
}

/// Bytes with a meaning in patterns.
const SPECIALS: &[u8] = b"^$*+?.([%-";

/// Whether a pattern is a text without a meaning. Only the part before its first zero is looked at.
pub(crate) fn is_plain(pattern: &[u8]) -> bool {
    !until_zero(pattern)
        .iter()
        .any(|byte| SPECIALS.contains(byte))
}

fn until_zero(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|&byte| byte == 0);
    &bytes[..end.unwrap_or(bytes.len())]
}

/// `%a` and others, in the C locale.
#[inline]
fn is_of_class(byte: u8, class: u8) -> bool {
    let is_of = match class.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        b's' => matches!(byte, b' ' | 9..=13),
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        b'z' => byte == 0,
        _ => return class == byte,
    };
    is_of != class.is_ascii_uppercase()
}

/// The first place of a text in a subject, from a place on. Candidates count as steps do.
pub(crate) fn find_plain(
    subject: &[u8],
    text: &[u8],
    from: usize,
    ask: impl Fn() -> bool,
) -> Matched {
    let Some((&first, rest)) = text.split_first() else {
        return Ok(Some(from));
    };
    let mut steps = 0;
    let mut at = from;
    while let Some(next) = subject[at..].iter().position(|&byte| byte == first) {
        at += next + 1;
        if subject[at..].starts_with(rest) {
            return Ok(Some(at - 1));
        }
        steps += 16 + next + rest.len();
        if steps >= 16 * STEPS as usize {
            steps = 0;
            if ask() {
                return Err(Unmatched::Stopped);
            }
        }
    }
    Ok(None)
}
