//! Conditions on a value, for SET, DELEX and DELIFEQ: so that a client changes a key only if no other client
//! has.
//!
//! A value is compared as a whole or by its digest: XXH3 of 64 bits as 16 hexadecimal digits, which DIGEST
//! returns. The names come from Valkey 8.1 (SET IFEQ), Valkey 9.0 (DELIFEQ) and Redis 8.4 (the rest).

use xxhash_rust::xxh3::xxh3_64;

use super::super::{Args, Context, Failure, Handled, Next, failure};
use crate::observe::notify::Event;
use crate::store::Text;

/// Condition for setting or removing a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition<'a> {
    /// NX: there is no such key.
    Missing,
    /// XX: there is one.
    Present,
    /// IFEQ: its value is this.
    Equal(&'a [u8]),
    /// IFNE: its value is not this, or there is none.
    NotEqual(&'a [u8]),
    /// IFDEQ: the digest of its value is this.
    DigestEqual(&'a [u8]),
    /// IFDNE: the digest of its value is not this, or there is none.
    DigestNotEqual(&'a [u8]),
}

impl<'a> Condition<'a> {
    /// The condition that `word` makes of `operand`, if it is one of those with an operand.
    pub(super) fn of_word(word: &[u8], operand: &'a [u8]) -> Option<Condition<'a>> {
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        Some(match () {
            () if is("IFEQ") => Condition::Equal(operand),
            () if is("IFNE") => Condition::NotEqual(operand),
            () if is("IFDEQ") => Condition::DigestEqual(operand),
            () if is("IFDNE") => Condition::DigestNotEqual(operand),
            () => return None,
        })
    }

    /// Whether the condition looks at the value.
    pub(super) fn compares(self) -> bool {
        !matches!(self, Condition::Missing | Condition::Present)
    }

    /// Whether the condition holds for a key's value.
    pub(super) fn admits(self, current: Option<&Text<'_, '_>>) -> Result<bool, Failure> {
        match self {
            // The value makes no difference, and need not be in memory.
            Condition::Missing => Ok(current.is_none()),
            Condition::Present => Ok(current.is_some()),
            _ => self.holds_for(current.map(|entry| entry.value().bytes())),
        }
    }

    /// Whether the condition holds for a value. A digest of the wrong length is an error, but only where
    /// there is a value to compare it with; this is how Redis does it.
    fn holds_for(self, value: Option<&[u8]>) -> Result<bool, Failure> {
        let Some(value) = value else {
            return Ok(match self {
                Condition::Missing | Condition::NotEqual(_) | Condition::DigestNotEqual(_) => true,
                Condition::Present | Condition::Equal(_) | Condition::DigestEqual(_) => false,
            });
        };
        Ok(match self {
            Condition::Missing => false,
            Condition::Present => true,
            Condition::Equal(operand) => value == operand,
            Condition::NotEqual(operand) => value != operand,
            Condition::DigestEqual(operand) => has_digest(value, operand)?,
            Condition::DigestNotEqual(operand) => !has_digest(value, operand)?,
        })
    }
}

/// Digits of a digest.
const DIGITS: usize = 16;
const DIGEST_LENGTH: Failure = Failure::of("ERR must be exactly 16 hexadecimal characters");
const NOT_COMPARABLE: Failure =
    Failure::of("ERR Key should be of string type if conditions are specified");
const UNKNOWN_CONDITION: Failure =
    Failure::of("ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE");

/// The digest of a value.
fn digest_of(value: &[u8]) -> [u8; DIGITS] {
    let hash = xxh3_64(value);
    std::array::from_fn(|at| b"0123456789abcdef"[(hash >> (60 - 4 * at)) as usize & 0xf])
}

/// Whether `digest`, in digits of any case, is the digest of a value.
fn has_digest(value: &[u8], digest: &[u8]) -> Result<bool, Failure> {
    if digest.len() != DIGITS {
        return Err(DIGEST_LENGTH);
    }
    Ok(digest_of(value).eq_ignore_ascii_case(digest))
}

/// `DIGEST key`
pub(super) fn digest(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let key = args.key(1);
    match context.store.lock(key).read_string(key)? {
        Some(entry) => context.reply.bulk(&digest_of(entry.value().bytes())),
        None => context.reply.null(),
    }
    Ok(Next::Done)
}

/// `DELEX key [IFEQ value | IFNE value | IFDEQ digest | IFDNE digest]`
pub(super) fn delex(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let condition = match args.len() {
        2 => Condition::Present,
        4 => Condition::of_word(args.get(2), args.get(3)).ok_or(UNKNOWN_CONDITION)?,
        _ => return Err(Failure::wrong_arity(context.command.spec.name)),
    };
    remove_if(context, args, condition, NOT_COMPARABLE)
}

/// `DELIFEQ key value`
pub(super) fn delifeq(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    remove_if(
        context,
        args,
        Condition::Equal(args.get(2)),
        failure::WRONG_TYPE,
    )
}

/// Removes a key that is there and meets the condition; answers how many that were. `not_a_string` is the
/// error for a key whose value can't be compared.
fn remove_if(
    context: &mut Context<'_>,
    args: &Args<'_>,
    condition: Condition<'_>,
    not_a_string: Failure,
) -> Handled {
    let key = args.key(1);
    let mut shard = context.store.lock(key);
    let is_met = match shard.find(key) {
        None => false,
        Some(_) if !condition.compares() => condition == Condition::Present,
        Some(entry) => condition.admits(Some(&entry.string().map_err(|_| not_a_string)?))?,
    };
    let removed = is_met && shard.remove(key);
    if removed {
        shard.tell(Event::DEL, key);
    }
    context.reply.integer(i64::from(removed));
    Ok(Next::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_that_redis_documents() {
        for (value, digest) in [
            (&b""[..], b"2d06800538d394c2"),
            (b"Hello world", b"b6acb9d84a38ff74"),
            (b"test", b"9ec9f7918d7dfc40"),
            // One with zeros in front.
            (
                b"v8lf0c11xh8ymlqztfd3eeq16kfn4sspw7fqmnuuq3k3t75em5wdizgcdw7uc26nnf961u2jkfzkjytls2kwlj7626sd",
                b"00006c38adf31777",
            ),
        ] {
            assert_eq!(&digest_of(value), digest, "{}", value.escape_ascii());
        }
    }

    #[test]
    fn a_missing_value_differs_from_every_other() {
        let digest = digest_of(b"v");
        for (condition, holds) in [
            (Condition::Missing, true),
            (Condition::Present, false),
            (Condition::Equal(b""), false),
            (Condition::NotEqual(b""), true),
            (Condition::DigestEqual(&digest), false),
            (Condition::DigestNotEqual(&digest), true),
            // Not looked at, so its length does not matter.
            (Condition::DigestEqual(b"1"), false),
            (Condition::DigestNotEqual(b"1"), true),
        ] {
            assert_eq!(condition.holds_for(None), Ok(holds), "{condition:?}");
        }
    }

    #[test]
    fn a_value_is_compared_as_a_whole_or_by_its_digest() {
        let (same, other) = (digest_of(b"value"), digest_of(b"other"));
        let upper = same.to_ascii_uppercase();
        for (condition, holds) in [
            (Condition::Missing, false),
            (Condition::Present, true),
            (Condition::Equal(b"value"), true),
            (Condition::Equal(b"valu"), false),
            (Condition::Equal(b"Value"), false),
            (Condition::NotEqual(b"value"), false),
            (Condition::NotEqual(b""), true),
            (Condition::DigestEqual(&same), true),
            (Condition::DigestEqual(&upper), true),
            (Condition::DigestEqual(&other), false),
            (Condition::DigestEqual(b"no hex at all..."), false),
            (Condition::DigestNotEqual(&same), false),
            (Condition::DigestNotEqual(&other), true),
        ] {
            assert_eq!(
                condition.holds_for(Some(b"value")),
                Ok(holds),
                "{condition:?}"
            );
        }
        for digest in [&same[1..], &[&same[..], b"0"].concat(), b""] {
            assert_eq!(
                Condition::DigestEqual(digest).holds_for(Some(b"value")),
                Err(DIGEST_LENGTH)
            );
            assert_eq!(
                Condition::DigestNotEqual(digest).holds_for(Some(b"value")),
                Err(DIGEST_LENGTH)
            );
        }
    }

    #[test]
    fn words_are_known_in_any_case() {
        assert_eq!(
            Condition::of_word(b"ifeq", b"x"),
            Some(Condition::Equal(b"x"))
        );
        assert_eq!(
            Condition::of_word(b"IfNe", b"x"),
            Some(Condition::NotEqual(b"x"))
        );
        assert_eq!(
            Condition::of_word(b"IFDEQ", b"x"),
            Some(Condition::DigestEqual(b"x"))
        );
        assert_eq!(
            Condition::of_word(b"IFDNE", b"x"),
            Some(Condition::DigestNotEqual(b"x"))
        );
        for word in [&b"NX"[..], b"IF", b"IFEQ ", b""] {
            assert_eq!(Condition::of_word(word, b"x"), None);
        }
    }
}
