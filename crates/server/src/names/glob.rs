//! Glob patterns of keys, channels and settings, matched as in Redis. Pure functions over bytes.
//!
//! | in a pattern | matches |
//! |---|---|
//! | `*` | any bytes, or none |
//! | `?` | any one byte |
//! | `[abc]`, `[a-z]`, `[^abc]` | one byte of the set, one byte outside of it |
//! | `\x` | `x` literally; in a set as well |
//! | any other byte | itself |
//!
//! Corner cases, which are part of the protocol because clients depend on them:
//!
//! - Empty text matches only the empty pattern, not even `*`. Commands treat `*` as "all" before they call
//!   this.
//! - A set that is not closed ends with the pattern. `[]` matches nothing, `[^]` matches any byte.
//! - A range may be written from either end. Its ends are unsigned bytes, as in Redis on arm64; on x86-64
//!   Redis orders bytes from 0x80 on before all others.
//! - Case folding is ASCII. An escaped byte in a set is not folded.
//!
//! Time is bounded by the product of the two lengths, whatever the pattern: after a mismatch only the last
//! `*` takes one byte more. An earlier `*` need not, because that would only leave less text for the rest,
//! which was tried at every later position already.

/// Case sensitivity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    /// For names of keys.
    Sensitive,
    /// For names of settings.
    Insensitive,
}

impl Case {
    fn fold(self, byte: u8) -> u8 {
        match self {
            Case::Sensitive => byte,
            Case::Insensitive => byte.to_ascii_lowercase(),
        }
    }

    fn same(self, one: u8, other: u8) -> bool {
        self.fold(one) == self.fold(other)
    }
}

/// Whether all of `text` matches `pattern`.
pub(crate) fn matches(pattern: &[u8], text: &[u8], case: Case) -> bool {
    if text.is_empty() {
        return pattern.is_empty();
    }
    let (mut at, mut taken) = (0, 0);
    // Position behind the last `*`, and the text that it takes at the next try.
    let mut retry: Option<(usize, usize)> = None;
    while taken < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                at += 1;
                if at == pattern.len() {
                    return true;
                }
                retry = Some((at, taken));
                continue;
            }
            Some(_) => {
                let (takes, next) = element(pattern, at, text[taken], case);
                if takes {
                    (at, taken) = (next, taken + 1);
                    continue;
                }
            }
            None => {}
        }
        let Some((behind, from)) = &mut retry else {
            return false;
        };
        *from += 1;
        (at, taken) = (*behind, *from);
    }
    pattern[at..].iter().all(|&byte| byte == b'*')
}

/// Matches the element at `at`, which is not `*`. Returns whether it matches `byte`, and the start of the
/// next element.
fn element(pattern: &[u8], at: usize, byte: u8, case: Case) -> (bool, usize) {
    match pattern[at..] {
        [b'?', ..] => (true, at + 1),
        [b'[', ..] => set(pattern, at + 1, byte, case),
        [b'\\', escaped, ..] => (case.same(escaped, byte), at + 2),
        [literal, ..] => (case.same(literal, byte), at + 1),
        [] => (false, at),
    }
}

/// [`element`] for a set; `at` is behind its bracket.
fn set(pattern: &[u8], mut at: usize, byte: u8, case: Case) -> (bool, usize) {
    let negated = pattern.get(at) == Some(&b'^');
    at += usize::from(negated);
    let mut contains = false;
    loop {
        match pattern[at..] {
            [] => break,
            [b'\\', escaped, ..] => {
                contains |= escaped == byte;
                at += 2;
            }
            [b']', ..] => {
                at += 1;
                break;
            }
            [first, b'-', last, ..] => {
                let (low, high) = (first.min(last), first.max(last));
                contains |= (case.fold(low)..=case.fold(high)).contains(&case.fold(byte));
                at += 3;
            }
            [single, ..] => {
                contains |= case.same(single, byte);
                at += 1;
            }
        }
    }
    (contains != negated, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sensitive(pattern: &str, text: &str) -> bool {
        matches(pattern.as_bytes(), text.as_bytes(), Case::Sensitive)
    }

    fn insensitive(pattern: &str, text: &str) -> bool {
        matches(pattern.as_bytes(), text.as_bytes(), Case::Insensitive)
    }

    #[test]
    fn each_element_takes_what_it_should() {
        for (pattern, fits, fails) in [
            ("h?llo", "hello hallo hxllo", "hllo heello hell"),
            ("h*llo", "hllo heeeello hello", "hell hlloo ello"),
            ("h[ae]llo", "hello hallo", "hillo hllo h[ae]llo"),
            ("h[^e]llo", "hallo hbllo h^llo", "hello hllo"),
            ("h[a-b]llo", "hallo hbllo", "hcllo h-llo"),
            ("h[b-a]llo", "hallo hbllo", "hcllo"),
            ("h\\*llo", "h*llo", "hello h\\*llo"),
            ("h[\\]-]llo", "h]llo h-llo", "h\\llo hello"),
            ("a[^x", "ab", "ax a a[^x"),
            ("a[b", "ab", "a a[b ac"),
            ("a[^", "ab a^", "a abc"),
            ("a[]", "", "a ab a] a[]"),
            ("a[^]", "ab a]", "a abc"),
            ("a[b-", "ab a-", "ac a["),
            ("a[b-]", "ab a] a^", "a- ac aA"),
            ("a\\", "a\\", "a ab"),
            ("*ab*ab", "abab ababab xabxab", "ab aba ababx"),
            ("a**", "a ab", "b"),
            ("?*", "a ab", ""),
            ("*[0-9]?", "00 a5b 5555", "a5 5"),
        ] {
            for text in fits.split_whitespace() {
                assert!(sensitive(pattern, text), "{pattern} fits {text}");
            }
            for text in fails.split_whitespace() {
                assert!(!sensitive(pattern, text), "{pattern} does not fit {text}");
            }
        }
    }

    #[test]
    fn empty_text_matches_the_empty_pattern_alone() {
        assert!(sensitive("", ""));
        for pattern in ["*", "**", "?", "a", "[", "[^]", "\\"] {
            assert!(!sensitive(pattern, ""), "{pattern}");
        }
        assert!(!sensitive("", "a"));
    }

    #[test]
    fn case_is_folded_only_when_asked_for() {
        assert!(!sensitive("MAX*", "maxmemory") && insensitive("MAX*", "maxmemory"));
        assert!(!sensitive("m[A-C]x", "max") && insensitive("m[A-C]x", "max"));
        assert!(insensitive("m[Aa]X", "mAx") && insensitive("\\M", "m"));
        assert!(insensitive("[\\M]", "M") && !insensitive("[\\M]", "m"));
    }

    #[test]
    fn bytes_have_no_sign_and_zero_is_one_of_them() {
        assert!(matches(b"[\x80-\xff]", b"\xfe", Case::Sensitive));
        assert!(matches(b"[a-\xff]", b"b", Case::Sensitive));
        assert!(!matches(b"[a-\xff]", b"A", Case::Sensitive));
        assert!(matches(b"a\0?", b"a\0\0", Case::Sensitive));
        assert!(!matches(b"a", b"a\0", Case::Sensitive));
    }

    /// Reference implementation: recursion over elements with full backtracking.
    fn slow(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern, text) {
            ([], _) => text.is_empty(),
            ([b'*', rest @ ..], _) => (0..=text.len()).any(|skipped| slow(rest, &text[skipped..])),
            (_, []) => false,
            (_, [byte, behind @ ..]) => {
                let (takes, next) = element(pattern, 0, *byte, Case::Sensitive);
                takes && slow(&pattern[next..], behind)
            }
        }
    }

    #[test]
    fn all_short_patterns_match_what_trying_everything_matches() {
        let texts: Vec<Vec<u8>> = (1..=5).flat_map(|len| words(b"ab-", len)).collect();
        for len in 0..=5 {
            for pattern in words(b"ab*?[]^-\\", len) {
                for text in texts.iter().filter(|text| text.len() <= 8 - len) {
                    assert_eq!(
                        matches(&pattern, text, Case::Sensitive),
                        slow(&pattern, text),
                        "{:?} on {:?}",
                        String::from_utf8_lossy(&pattern),
                        String::from_utf8_lossy(text)
                    );
                }
            }
        }
    }

    fn words(alphabet: &[u8], len: usize) -> Vec<Vec<u8>> {
        let mut words = vec![Vec::new()];
        for _ in 0..len {
            let longer = |word: &Vec<u8>| {
                let word = word.clone();
                alphabet
                    .iter()
                    .map(move |&byte| [&word[..], &[byte]].concat())
            };
            words = words.iter().flat_map(longer).collect();
        }
        words
    }

    #[test]
    fn many_stars_do_not_blow_up() {
        // Backtracking over thirty stars would outlast the test run.
        let pattern = "a*".repeat(30) + "b";
        assert!(!sensitive(&pattern, &"a".repeat(3000)));
        assert!(sensitive(&pattern, &("a".repeat(3000) + "b")));
    }
}
