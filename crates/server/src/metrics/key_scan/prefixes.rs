//! Keys, bytes and expiries by prefix: the part of a key up to a given number of separators.
//!
//! At most [`PREFIXES`] prefixes are counted; keys of further ones count together as the rest.

use std::collections::HashMap;

use crate::limits::PREFIXES;

/// Bytes kept of a prefix; keys of longer ones count as the rest.
const PREFIX_BYTES: usize = 128;

/// Definition of a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    /// Separator at its end.
    pub(crate) separator: Vec<u8>,
    /// Number of separators.
    pub(crate) depth: usize,
}

/// Counts of one prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Prefix {
    pub(crate) keys: u64,
    /// Bytes of its keys, in memory and only on the disk.
    pub(crate) bytes: u64,
    /// Number of its keys with an expiry.
    pub(crate) expiring: u64,
}

/// Counts of all prefixes.
#[derive(Debug)]
pub(crate) struct Prefixes {
    pub(crate) rule: Rule,
    pub(crate) is_done: bool,
    pub(crate) began_ms: i64,
    pub(crate) ended_ms: i64,
    /// All keys.
    pub(crate) total: Prefix,
    /// Keys without a separator.
    pub(crate) without: Prefix,
    /// Keys of prefixes beyond the bound.
    pub(crate) rest: Prefix,
    by_prefix: HashMap<Vec<u8>, Prefix>,
}

impl Prefix {
    fn add(&mut self, bytes: u64, expires: bool) {
        self.keys += 1;
        self.bytes += bytes;
        self.expiring += u64::from(expires);
    }
}

impl Prefixes {
    pub(super) fn new(rule: Rule, now_ms: i64) -> Prefixes {
        Prefixes {
            rule,
            is_done: false,
            began_ms: now_ms,
            ended_ms: 0,
            total: Prefix::default(),
            without: Prefix::default(),
            rest: Prefix::default(),
            by_prefix: HashMap::new(),
        }
    }

    /// Counts a key.
    pub(super) fn count(&mut self, key: &[u8], bytes: u64, expires: bool) {
        self.total.add(bytes, expires);
        let prefix = self.rule.prefix(key);
        let counted = if prefix.is_empty() {
            &mut self.without
        } else if let Some(known) = self.by_prefix.get_mut(prefix) {
            known
        } else if self.by_prefix.len() < PREFIXES && prefix.len() <= PREFIX_BYTES {
            self.by_prefix.entry(prefix.to_vec()).or_default()
        } else {
            &mut self.rest
        };
        counted.add(bytes, expires);
    }

    pub(super) fn finish(&mut self, now_ms: i64) {
        if !self.is_done {
            self.is_done = true;
            self.ended_ms = now_ms;
        }
    }

    /// The prefixes with the most bytes, in descending order.
    pub(crate) fn heaviest(&self, most: usize) -> Vec<(&[u8], Prefix)> {
        let mut all: Vec<(&[u8], Prefix)> = self
            .by_prefix
            .iter()
            .map(|(name, &prefix)| (&name[..], prefix))
            .collect();
        all.sort_by(|one, other| other.1.bytes.cmp(&one.1.bytes).then(one.0.cmp(other.0)));
        all.truncate(most);
        all
    }
}

impl Rule {
    /// Prefix of a key; empty without a separator. A key with fewer separators than asked for has the prefix
    /// up to its last.
    fn prefix<'k>(&self, key: &'k [u8]) -> &'k [u8] {
        let mut end = 0;
        for _ in 0..self.depth {
            let separator = &self.separator[..];
            let found = key[end..]
                .windows(separator.len())
                .position(|part| part == separator);
            match found {
                Some(at) => end += at + separator.len(),
                None => break,
            }
        }
        &key[..end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(separator: &str, depth: usize) -> Rule {
        Rule {
            separator: separator.as_bytes().to_vec(),
            depth,
        }
    }

    #[test]
    fn a_prefix_ends_with_the_separator_that_was_asked_for() {
        let prefix = |key: &str, separator: &str, depth| {
            String::from_utf8(rule(separator, depth).prefix(key.as_bytes()).to_vec())
        };
        for (key, separator, depth, expected) in [
            ("user:1:name", ":", 1, "user:"),
            ("user:1:name", ":", 2, "user:1:"),
            ("user:1", ":", 2, "user:"),
            ("user", ":", 1, ""),
            (":x", ":", 1, ":"),
            ("::x", ":", 2, "::"),
            ("a::b", "::", 1, "a::"),
            ("a:", "::", 1, ""),
            ("", ":", 1, ""),
        ] {
            assert_eq!(
                prefix(key, separator, depth).as_deref(),
                Ok(expected),
                "{key}"
            );
        }
    }

    #[test]
    fn everything_is_counted_once_and_memory_is_bounded() {
        let mut prefixes = Prefixes::new(rule(":", 1), 0);
        for at in 0..PREFIXES + 100 {
            prefixes.count(format!("p{at}:x").as_bytes(), 10, at % 2 == 0);
        }
        prefixes.count(b"p0:y", 1000, false);
        prefixes.count(b"plain", 1, false);
        prefixes.count(&[&[b'x'; 500][..], b":"].concat(), 7, true);
        assert_eq!(prefixes.by_prefix.len(), PREFIXES);
        assert_eq!(prefixes.total.keys, PREFIXES as u64 + 103);
        assert_eq!((prefixes.without.keys, prefixes.rest.keys), (1, 101));
        let heaviest = prefixes.heaviest(1);
        assert_eq!(
            heaviest,
            [(
                &b"p0:"[..],
                Prefix {
                    keys: 2,
                    bytes: 1010,
                    expiring: 1
                }
            )]
        );
        let told: u64 = prefixes
            .heaviest(usize::MAX)
            .iter()
            .map(|one| one.1.keys)
            .sum();
        assert_eq!(told + 102, prefixes.total.keys);
    }
}
