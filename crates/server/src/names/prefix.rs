//! Prefixes: the names in a set that are prefixes of a text, and sets of names that are no prefixes of each
//! other.
//!
//! Both use the order of bytes. A prefix of a text is not after the text in that order, and all names between
//! the two have the same prefix. So the last name that is not after the text bounds the length of the longest
//! prefix.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use super::steps;

/// Length of the common prefix of two texts.
fn common(one: &[u8], other: &[u8]) -> usize {
    one.iter()
        .zip(other)
        .take_while(|(one, other)| one == other)
        .count()
}

/// Visits all names that are prefixes of `text`, the longest first. `last` finds the last name within a
/// bound. Steps: one for each visited name, and one for each length that names have in common with the text.
pub(crate) fn longest_first<'n>(
    text: &[u8],
    mut last: impl FnMut(Bound<&[u8]>) -> Option<&'n [u8]>,
    mut visit: impl FnMut(&'n [u8]),
) {
    let mut bound = Bound::Included(text);
    while let Some(name) = last(bound) {
        steps::add(1);
        let len = common(name, text);
        bound = if len == name.len() {
            visit(name);
            Bound::Excluded(&text[..len])
        } else {
            Bound::Included(&text[..len])
        };
    }
}

/// Set of names of which none is a prefix of another.
#[derive(Default)]
pub(crate) struct Disjoint(BTreeSet<Arc<[u8]>>);

impl Disjoint {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn contains(&self, name: &[u8]) -> bool {
        self.0.contains(name)
    }

    /// The names in order.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<[u8]>> {
        self.0.iter()
    }

    /// Adds a name for which [`Disjoint::meeting`] finds nothing.
    pub(crate) fn insert(&mut self, name: Arc<[u8]>) {
        steps::add(1);
        self.0.insert(name);
    }

    /// Removes an arbitrary name.
    pub(crate) fn pop(&mut self) -> Option<Arc<[u8]>> {
        self.0.pop_first()
    }

    /// The first name that overlaps `name`: one of the two is a prefix of the other.
    pub(crate) fn meeting(&self, name: &[u8]) -> Option<&Arc<[u8]>> {
        steps::add(1);
        // The empty one may stand beside others, and is a prefix of all.
        if let Some(empty) = self.0.first().filter(|first| first.is_empty()) {
            return Some(empty);
        }
        let before = (Bound::Unbounded, Bound::Included(name));
        let before = self.0.range::<[u8], _>(before).next_back();
        if let Some(before) = before.filter(|before| name.starts_with(before)) {
            return Some(before);
        }
        let behind = (Bound::Included(name), Bound::Unbounded);
        let behind = self.0.range::<[u8], _>(behind).next();
        behind.filter(|behind| behind.starts_with(name))
    }

    /// Removes all names with the prefix `name`.
    fn remove_beginning_with(&mut self, name: &[u8]) {
        while let Some(behind) = self.meeting(name).filter(|one| one.starts_with(name)) {
            let behind = Arc::clone(behind);
            self.0.remove(&behind);
        }
    }
}

/// Overlapping names, if there are any: two new ones, or a new one and an old one. The first new name that
/// overlaps is returned, as in Redis, with its counterpart; the last value says whether the counterpart is an
/// old name.
pub(crate) fn overlap<'p>(
    before: &'p Disjoint,
    new: &'p [Arc<[u8]>],
) -> Option<(&'p [u8], &'p [u8], bool)> {
    // From the last new name to the first, each compared with those behind it. Of these only names without a
    // prefix among the others are kept.
    let mut behind = Disjoint::default();
    let mut first = None;
    for (at, name) in new.iter().enumerate().rev() {
        let meets = behind.meeting(name).is_some();
        if meets || before.meeting(name).is_some() {
            first = Some(at);
        }
        if !behind
            .meeting(name)
            .is_some_and(|known| name.starts_with(known))
        {
            behind.remove_beginning_with(name);
            behind.insert(Arc::clone(name));
        }
    }
    let at = first?;
    let name = &new[at];
    if let Some(known) = before.meeting(name) {
        return Some((name, known, true));
    }
    steps::add(new.len() - at);
    let meet = |other: &&Arc<[u8]>| other.starts_with(name) || name.starts_with(other);
    let other = new[at + 1..].iter().find(meet)?;
    Some((name, other, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(words: &[&str]) -> Vec<Arc<[u8]>> {
        words.iter().map(|word| word.as_bytes().into()).collect()
    }

    fn set(words: &[&str]) -> Disjoint {
        Disjoint(list(words).into_iter().collect())
    }

    #[test]
    fn names_overlap_if_one_begins_with_the_other() {
        let check = |before: &[&str], new: &[&str]| {
            let (before, new) = (set(before), list(new));
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            overlap(&before, &new).map(|(one, other, known)| (text(one), text(other), known))
        };
        assert_eq!(check(&[], &["a", "b", "ca", "cb"]), None);
        assert_eq!(check(&["a"], &["b", "c"]), None);
        let both = |one: &str, other: &str, known| Some((one.into(), other.into(), known));
        assert_eq!(check(&[], &["x", "ab", "a"]), both("ab", "a", false));
        assert_eq!(check(&["ab"], &["x", "a"]), both("a", "ab", true));
        assert_eq!(check(&["a"], &["ab"]), both("ab", "a", true));
        assert_eq!(check(&[""], &["q"]), both("q", "", true));
        assert_eq!(check(&["", "q"], &["q"]), both("q", "", true));
        assert_eq!(check(&[], &["a", "a"]), both("a", "a", false));
        assert_eq!(check(&[], &["b", "ab", "abc", "b"]), both("b", "b", false));
    }

    fn random_name() -> Arc<[u8]> {
        let name = (0..fastrand::usize(..5)).map(|_| fastrand::u8(b'a'..b'c'));
        name.collect::<Vec<u8>>().into()
    }

    #[test]
    fn what_the_order_finds_is_what_comparing_all_finds() {
        fastrand::seed(5);
        let meet = |one: &[u8], other: &[u8]| one.starts_with(other) || other.starts_with(one);
        for _ in 0..5000 {
            let mut before = Disjoint::default();
            for _ in 0..fastrand::usize(..4) {
                let name = random_name();
                if before.meeting(&name).is_none() {
                    before.insert(name);
                }
            }
            let new: Vec<Arc<[u8]>> = (0..fastrand::usize(..5)).map(|_| random_name()).collect();
            let expected = new.iter().enumerate().find_map(|(at, name)| {
                let known = before.iter().find(|known| meet(known, name));
                let other = new[at + 1..].iter().find(|other| meet(other, name));
                match (known, other) {
                    (Some(known), _) => Some((&**name, &**known, true)),
                    (None, Some(other)) => Some((&**name, &**other, false)),
                    (None, None) => None,
                }
            });
            assert_eq!(overlap(&before, &new), expected);
        }
    }

    #[test]
    fn all_names_that_begin_a_text_are_visited() {
        fastrand::seed(6);
        for _ in 0..5000 {
            let names: BTreeSet<Arc<[u8]>> =
                (0..fastrand::usize(..12)).map(|_| random_name()).collect();
            let text = random_name();
            let mut seen = Vec::new();
            let last = |bound: Bound<&[u8]>| {
                let range = (Bound::Unbounded, bound);
                names
                    .range::<[u8], _>(range)
                    .next_back()
                    .map(|name| &**name)
            };
            longest_first(&text, last, |name| seen.push(name));
            let mut expected: Vec<&[u8]> = names.iter().map(|name| &**name).collect();
            expected.retain(|name| text.starts_with(name));
            expected.reverse();
            assert_eq!(seen, expected);
        }
    }

    fn many(n: usize) -> Vec<Arc<[u8]>> {
        (0..n)
            .map(|at| format!("p:{at:08}").into_bytes().into())
            .collect()
    }

    #[test]
    fn twice_as_many_prefixes_take_twice_the_steps() {
        // In batches, and all at once.
        for batch in [100, usize::MAX] {
            steps::assert_linear(2_000, |n| {
                let mut known = Disjoint::default();
                for new in many(n).chunks(batch.min(n)) {
                    assert_eq!(overlap(&known, new), None);
                    new.iter().for_each(|name| known.insert(Arc::clone(name)));
                }
            });
        }
        // The overlapping name is the last, and a prefix of all others.
        steps::assert_linear(2_000, |n| {
            let mut new = many(n);
            new.push((*b"p:").into());
            assert!(overlap(&Disjoint::default(), &new).is_some());
        });
    }

    #[test]
    fn a_key_is_not_compared_with_all_prefixes() {
        let names: BTreeSet<Arc<[u8]>> = many(10_000).into_iter().collect();
        let found = steps::counted(|| {
            let last = |bound: Bound<&[u8]>| {
                let range = (Bound::Unbounded, bound);
                names
                    .range::<[u8], _>(range)
                    .next_back()
                    .map(|name| &**name)
            };
            let mut found = 0;
            longest_first(b"p:00004567:x", last, |_| found += 1);
            assert_eq!(found, 1);
        });
        assert!(found < 20, "{found} steps");
    }
}
