//! Patterns of SORT: the key whose value stands for an element.

use keyspace::collection::any::Collection;
use keyspace::collection::cell::{Cell, DECIMAL_MAX};
use keyspace::{Key, Kind};

use super::super::Failure;
use crate::store::{Shards, Store};

/// What stands for an element. A zero byte ends what is looked at in a pattern, as in Redis.
#[derive(Clone, Copy)]
pub(super) enum Pattern<'a> {
    /// The element itself: `#`.
    Element,
    /// Nothing: the pattern has no `*`.
    Nothing,
    /// The value of a key, or of a field of it.
    Key {
        before: &'a [u8],
        behind: &'a [u8],
        field: Option<&'a [u8]>,
    },
}

/// A text up to its first zero byte.
pub(super) fn until_zero(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|&byte| byte == 0);
    &text[..end.unwrap_or(text.len())]
}

impl<'a> Pattern<'a> {
    pub(super) fn parse(text: &'a [u8]) -> Pattern<'a> {
        let seen = until_zero(text);
        if seen == b"#" {
            return Pattern::Element;
        }
        let Some(star) = seen.iter().position(|&byte| byte == b'*') else {
            return Pattern::Nothing;
        };
        let (before, behind) = (&text[..star], star + 1);
        let arrow = seen[behind..].windows(2).position(|pair| pair == b"->");
        // Without a field the arrow is a part of the key.
        let arrow = arrow.map(|at| behind + at).filter(|at| at + 2 < seen.len());
        match arrow {
            Some(at) => Pattern::Key {
                before,
                behind: &text[behind..at],
                field: Some(&text[at + 2..]),
            },
            None => Pattern::Key {
                before,
                behind: &text[behind..],
                field: None,
            },
        }
    }

    /// Whether a pattern is the same for all elements.
    pub(super) fn is_constant(text: &[u8]) -> bool {
        !until_zero(text).contains(&b'*')
    }
}

/// Keys whose fields are in the log alone, with these fields.
pub(super) type Cold<'a> = Vec<(Box<[u8]>, &'a [u8])>;

/// Appends what stands for an element; whether there is anything. What is in the log alone is noted.
///
/// # Errors
/// A string cannot be read.
pub(super) fn find<'a>(
    shards: &mut Shards<'_>,
    pattern: Pattern<'a>,
    element: &[u8],
    found: &mut Vec<u8>,
    cold: &mut Cold<'a>,
) -> Result<bool, Failure> {
    let (before, behind, field) = match pattern {
        Pattern::Element => {
            found.extend_from_slice(element);
            return Ok(true);
        }
        Pattern::Nothing => return Ok(false),
        Pattern::Key {
            before,
            behind,
            field,
        } => (before, behind, field),
    };
    let name = [before, element, behind].concat();
    let key = Key {
        bytes: &name,
        hash: shards.hash_of(&name),
    };
    let mut shard = shards.of(key);
    let Some(entry) = shard.read(key) else {
        return Ok(false);
    };
    let Some(field) = field else {
        if entry.kind() != Kind::String {
            return Ok(false);
        }
        found.extend_from_slice(&entry.string()?.bytes_now()?);
        return Ok(true);
    };
    if entry.kind() != Kind::Hash || u32::try_from(field.len()).is_err() {
        return Ok(false);
    }
    let is_cold_in = |tree: &Collection| tree.cold_record(Cell::of(field)).is_some();
    if entry.cold().is_some() || entry.tree().is_some_and(is_cold_in) {
        cold.push((name.into(), field));
        return Ok(false);
    }
    let hash = shard.find_hash(key)?;
    let item = hash
        .as_ref()
        .and_then(|hash| hash.items().get(Cell::of(field)));
    let Some(value) = item.and_then(|item| item.value) else {
        return Ok(false);
    };
    found.extend_from_slice(value.text(&mut [0; DECIMAL_MAX]));
    Ok(true)
}

/// Brings fields back into memory that are in the log alone. Nothing is locked, or the transaction has all.
///
/// # Errors
/// They cannot be read.
pub(super) fn bring_back(store: &Store<'_>, cold: &Cold<'_>) -> Result<(), Failure> {
    for (name, field) in cold {
        let key = Key {
            bytes: name,
            hash: store.keyspace.hash(name),
        };
        store.bring_back(store.db, key)?;
        store.bring_leaves_back(store.db, key, |tree| {
            tree.cold_record(Cell::of(field)).into_iter().collect()
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Option<(&str, &str, Option<&str>)> {
        let word = |bytes| std::str::from_utf8(bytes).expect("it is text");
        match Pattern::parse(text.as_bytes()) {
            Pattern::Key {
                before,
                behind,
                field,
            } => Some((word(before), word(behind), field.map(word))),
            _ => None,
        }
    }

    #[test]
    fn the_first_star_stands_for_the_element_and_an_arrow_behind_it_for_a_field() {
        assert_eq!(parts("w_*"), Some(("w_", "", None)));
        assert_eq!(parts("*:*"), Some(("", ":*", None)));
        assert_eq!(parts("a->*x->f->g"), Some(("a->", "x", Some("f->g"))));
        assert_eq!(parts("a*->"), Some(("a", "->", None)));
        assert_eq!(parts("fixed->f"), None);
        assert!(matches!(Pattern::parse(b"#"), Pattern::Element));
        assert!(matches!(Pattern::parse(b"#x"), Pattern::Nothing));
        assert!(matches!(Pattern::parse(b"a\0*"), Pattern::Nothing));
    }
}
