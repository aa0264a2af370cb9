//! Which keys a node of a cluster has, as far as they are made here.
//!
//! In a cluster every key has a tag of three letters in braces, which alone decides its slot. The tag
//! follows from the key's number, so
//! a key has the same name in every test, and consecutive numbers are at different nodes. A connection draws
//! numbers until one is at its
//! node. Where the keys of a test have no number, there is one for each node.

use std::sync::LazyLock;

use fastrand::Rng;
use resp::slot::{SLOTS, slot};

/// What stands for the tag in the words of a command, as in redis-benchmark.
pub(crate) const TAG: &[u8] = b"{tag}";

/// A tag, without its braces.
pub(crate) type Tag = [u8; 3];

/// A tag for every slot.
static TAGS: LazyLock<Vec<Tag>> = LazyLock::new(tags);

fn tags() -> Vec<Tag> {
    let letters = (b'0'..=b'9').chain(b'A'..=b'Z').chain(b'a'..=b'z');
    let letters: Vec<u8> = letters.collect();
    let mut tags = vec![[0; 3]; usize::from(SLOTS)];
    for &first in &letters {
        for &second in &letters {
            for &third in &letters {
                let tag = [first, second, third];
                tags[usize::from(slot(&tag))] = tag;
            }
        }
    }
    tags
}

/// The slot of the key with a number.
fn slot_of(number: u64) -> u16 {
    // Odd, so that every slot has its turn; the remainder fits.
    (number.wrapping_mul(10_007) % u64::from(SLOTS)) as u16
}

/// The slots of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Home {
    /// The node's place among all.
    pub(crate) lane: usize,
    slots: Vec<u16>,
    has: Vec<bool>,
}

impl Home {
    /// The home of the node with these ranges of slots.
    pub(crate) fn new(lane: usize, ranges: &[(u16, u16)]) -> Home {
        let slots: Vec<u16> = ranges
            .iter()
            .flat_map(|&(first, last)| first..=last)
            .collect();
        let mut has = vec![false; usize::from(SLOTS)];
        slots.iter().for_each(|&slot| has[usize::from(slot)] = true);
        Home { lane, slots, has }
    }

    /// It has no slots.
    pub(crate) fn is_empty(&self) -> bool {
        self.slots() == 0
    }

    /// How many slots it has.
    pub(crate) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// A number that `draw` gives and that is at home, with its tag. If there is none among many, as of a
    /// range of one number, it gets
    /// a tag that is.
    pub(crate) fn number(
        &self,
        rng: &mut Rng,
        mut draw: impl FnMut(&mut Rng) -> u64,
    ) -> (u64, Tag) {
        // A node with a share of 1 / n misses the nth number in the mean; this many in a row it misses in no
        // run.
        let tries = 32 * usize::from(SLOTS) / self.slots.len().max(1);
        let mut number = 0;
        for _ in 0..tries {
            number = draw(rng);
            let slot = usize::from(slot_of(number));
            if self.has[slot] {
                return (number, TAGS[slot]);
            }
        }
        (number, self.fixed())
    }

    /// The tag of keys without a number, one for each node.
    pub(crate) fn fixed(&self) -> Tag {
        TAGS[usize::from(self.slots.first().copied().unwrap_or(0))]
    }
}

/// The words of a command with a tag in the keys that have a fixed name: those of the tests with names.
pub(crate) fn tagged(words: &mut [Vec<u8>]) {
    const NAMES: [&[u8]; 4] = [b"mylist", b"myset", b"myhash", b"myzset"];
    for word in words {
        if NAMES.contains(&word.as_slice()) {
            word.push(b':');
            word.extend_from_slice(TAG);
        } else if let Some(number) = word.strip_prefix(b"counter:") {
            *word = [b"counter:", TAG, b":", number].concat();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_has_its_tag() {
        for (expected, tag) in TAGS.iter().enumerate() {
            let key = [b"key:{", tag.as_slice(), b"}:1"].concat();
            assert_eq!(usize::from(slot(&key)), expected);
        }
    }

    #[test]
    fn a_number_has_one_home() {
        let homes = [(0, 5460), (5461, 10922), (10923, 16383)];
        let homes = [0, 1, 2].map(|lane| Home::new(lane, &[homes[lane]]));
        assert_eq!(homes[1].slots(), 5462);
        let mut rng = Rng::with_seed(1);
        let mut seen = Vec::new();
        for home in &homes {
            let mut next = 0..;
            while next.start < 9_990 {
                let (number, tag) = home.number(&mut rng, |_| next.next().expect("it has no end"));
                assert!(home.has[usize::from(slot(&tag))]);
                seen.push((number, tag));
            }
        }
        seen.sort_unstable();
        let count = seen.iter().filter(|(number, _)| *number < 9_990).count();
        assert_eq!(count, 9_990);
        seen.dedup_by_key(|(number, _)| *number);
        assert!(seen.len() >= 9_990);
    }

    #[test]
    fn a_node_without_any_of_the_numbers_gets_a_tag_of_its_own() {
        let home = Home::new(0, &[(100, 100)]);
        let mut rng = Rng::with_seed(1);
        let (number, tag) = home.number(&mut rng, |_| 0);
        assert_eq!((number, slot(&tag)), (0, 100));
        assert_eq!(slot(&home.fixed()), 100);
    }

    #[test]
    fn keys_of_the_named_tests_get_tags() {
        let words = |text: &str| -> Vec<Vec<u8>> {
            text.split(' ')
                .map(|word| word.as_bytes().to_vec())
                .collect()
        };
        for (text, expected) in [
            ("LPUSH mylist __data__", "LPUSH mylist:{tag} __data__"),
            (
                "INCR counter:__rand_int__",
                "INCR counter:{tag}:__rand_int__",
            ),
            (
                "SADD myset element:__rand_int__",
                "SADD myset:{tag} element:__rand_int__",
            ),
            ("SET __key__ __data__", "SET __key__ __data__"),
        ] {
            let mut found = words(text);
            tagged(&mut found);
            assert_eq!(found, words(expected));
        }
    }
}
