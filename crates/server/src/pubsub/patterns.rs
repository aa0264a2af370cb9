//! Patterns with listeners, ordered by their literal beginning: the part before the first `*`, `?`, `[` or
//! `\`.
//!
//! A channel matches only patterns with whose literal it begins. So a message is compared only with the
//! patterns of its channel's prefixes. Patterns that begin with a wildcard are compared with every message,
//! as in Redis.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::registry::Audience;
use crate::names::glob::{self, Case};
use crate::names::{longest_first, steps};

/// Bytes of a pattern before its first wildcard.
fn literal(pattern: &[u8]) -> &[u8] {
    let is_special = |byte: &u8| matches!(byte, b'*' | b'?' | b'[' | b'\\');
    let end = pattern.iter().position(is_special);
    &pattern[..end.unwrap_or(pattern.len())]
}

/// Position among the patterns of a literal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rest<'p> {
    First,
    Pattern(&'p [u8]),
    Last,
}

/// Order of patterns.
trait Place {
    fn place(&self) -> (&[u8], Rest<'_>);
}

struct Pattern(Arc<[u8]>);

/// Position before or behind all patterns of a literal, or of one pattern.
struct At<'p>(&'p [u8], Rest<'p>);

impl Place for Pattern {
    fn place(&self) -> (&[u8], Rest<'_>) {
        (literal(&self.0), Rest::Pattern(&self.0))
    }
}

impl Place for At<'_> {
    fn place(&self) -> (&[u8], Rest<'_>) {
        (self.0, self.1)
    }
}

impl<'p> At<'p> {
    fn pattern(pattern: &'p [u8]) -> At<'p> {
        At(literal(pattern), Rest::Pattern(pattern))
    }
}

impl<'p> Borrow<dyn Place + 'p> for Pattern {
    fn borrow(&self) -> &(dyn Place + 'p) {
        self
    }
}

impl PartialEq for dyn Place + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl Eq for dyn Place + '_ {}

impl PartialOrd for dyn Place + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for dyn Place + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place().cmp(&other.place())
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl Eq for Pattern {}

impl PartialOrd for Pattern {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Pattern {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place().cmp(&other.place())
    }
}

/// Patterns and their listeners.
#[derive(Default)]
pub(super) struct Patterns(BTreeMap<Pattern, Audience>);

impl Patterns {
    /// Listeners of a pattern; empty for a new one.
    pub(super) fn entry(&mut self, pattern: &Arc<[u8]>) -> &mut Audience {
        steps::add(1);
        self.0.entry(Pattern(Arc::clone(pattern))).or_default()
    }

    pub(super) fn get_mut(&mut self, pattern: &[u8]) -> Option<&mut Audience> {
        steps::add(1);
        self.0.get_mut(&At::pattern(pattern) as &dyn Place)
    }

    pub(super) fn remove(&mut self, pattern: &[u8]) {
        self.0.remove(&At::pattern(pattern) as &dyn Place);
    }

    /// Calls `visit` with all patterns that match a channel.
    pub(super) fn matching<'p>(
        &'p self,
        channel: &[u8],
        mut visit: impl FnMut(&'p [u8], &'p Audience),
    ) {
        let last = |bound: Bound<&[u8]>| {
            let until = match bound {
                Bound::Included(text) => At(text, Rest::Last),
                Bound::Excluded(text) => At(text, Rest::First),
                Bound::Unbounded => unreachable!("a walk begins at a text"),
            };
            let range = (Bound::Unbounded, Bound::Excluded(&until as &dyn Place));
            let (pattern, _) = self.0.range::<dyn Place, _>(range).next_back()?;
            Some(literal(&pattern.0))
        };
        longest_first(channel, last, |beginning| {
            let (first, last) = (At(beginning, Rest::First), At(beginning, Rest::Last));
            let range = (
                Bound::Excluded(&first as &dyn Place),
                Bound::Excluded(&last as &dyn Place),
            );
            for (Pattern(pattern), audience) in self.0.range::<dyn Place, _>(range) {
                steps::add(1);
                if glob::matches(pattern, channel, Case::Sensitive) {
                    visit(pattern, audience);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(patterns: impl Iterator<Item = Vec<u8>>) -> Patterns {
        let mut all = Patterns::default();
        patterns.for_each(|pattern| {
            all.entry(&pattern.into()).add(0);
        });
        all
    }

    #[test]
    fn the_patterns_found_are_those_that_match() {
        fastrand::seed(9);
        let random = |from: &[u8], most: usize| -> Vec<u8> {
            let count = fastrand::usize(..=most);
            (0..count)
                .map(|_| from[fastrand::usize(..from.len())])
                .collect()
        };
        for _ in 0..2000 {
            let patterns: Vec<Vec<u8>> = (0..12).map(|_| random(b"aab*?[]\\", 6)).collect();
            let mut all = of(patterns.iter().cloned());
            let channel = random(b"aab[", 5);
            let mut found = Vec::new();
            all.matching(&channel, |pattern, _| found.push(pattern.to_vec()));
            let mut expected = patterns.clone();
            expected.retain(|pattern| glob::matches(pattern, &channel, Case::Sensitive));
            found.sort();
            expected.sort();
            expected.dedup();
            assert_eq!(found, expected, "{patterns:?} {channel:?}");
            for pattern in &patterns {
                all.remove(pattern);
                assert!(all.get_mut(pattern).is_none());
            }
            assert!(all.0.is_empty());
        }
    }

    #[test]
    fn a_message_is_compared_with_few_of_many_patterns() {
        let all = of((0..20_000).map(|at| format!("p:{at}:*").into_bytes()));
        let mut found = 0;
        let taken = steps::counted(|| all.matching(b"p:777:x", |_, _| found += 1));
        assert_eq!(found, 1);
        assert!(taken < 20, "{taken} steps");
    }

    #[test]
    fn twice_as_many_patterns_take_twice_the_steps() {
        steps::assert_linear(2_000, |n| {
            // All patterns begin with a wildcard: the worst case stays linear.
            let all = of((0..n).map(|at| format!("*{at}").into_bytes()));
            all.matching(b"x", |_, _| {});
        });
    }
}
