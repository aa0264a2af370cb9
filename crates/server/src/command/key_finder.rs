//! Keys among the arguments of a request, and their use: COMMAND GETKEYS.
//!
//! A transaction asks it too, for commands whose keys are not where a plain range says.
//!
//! The rules of the command's row say it, in their order. A rule with `variable_flags` has the place of the
//! key but not its use, which depends on the other arguments; those commands are named here.
//!
//! Not here: the fixed range of keys by which a batch prefetches (`row`).

use resp::number;

use super::spec::{Begin, Find, KeySpec, Spec, access};

/// A key of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FoundKey {
    /// Its argument, counted from the command's name.
    pub(crate) at: usize,
    /// Its use: bits of [`access`].
    pub(crate) access: u16,
}

/// The keys of a request, whose arguments begin with the command's name; `None` if it cannot have as many as
/// it claims.
pub(crate) fn find(spec: &Spec, args: &[&[u8]]) -> Option<Vec<FoundKey>> {
    if spec.name == "migrate" {
        let access = spec.keys.first().map_or(0, |rule| rule.access);
        let positions = sent_at(args)?;
        return Some(positions.map(|at| FoundKey { at, access }).collect());
    }
    let mut found = Vec::new();
    for rule in spec.keys {
        // A word that is not there has no keys.
        let Some(begin) = begin(rule, args) else {
            continue;
        };
        let (first, last, step) = range(rule, args, begin)?;
        if last >= args.len() || last < first {
            return None;
        }
        let access = if rule.access & access::VARIABLE_FLAGS != 0 {
            access_by_arguments(spec, args)
        } else {
            rule.access
        };
        let positions = (first..=last).step_by(step);
        found.extend(positions.map(|at| FoundKey { at, access }));
    }
    if spec.name == "sort"
        && let Some(at) = stored_at(args)
    {
        let access = spec.keys.last().map_or(0, |rule| rule.access);
        found.push(FoundKey { at, access });
    }
    (!found.is_empty() || spec.keys.is_empty()).then_some(found)
}

/// Whether a request may use keys that its arguments do not name: SORT with patterns.
pub(crate) fn has_untold(spec: &Spec, args: &[&[u8]]) -> bool {
    let is_untold = |rule: &KeySpec| matches!(rule.begin, Begin::Unknown);
    let is_pattern = |at| is(args, at, "by") || is(args, at, "get");
    spec.keys.iter().any(is_untold) && (2..args.len()).any(is_pattern)
}

/// The argument of SORT that is its destination: the last of several, found as Redis finds it.
fn stored_at(args: &[&[u8]]) -> Option<usize> {
    let (mut stored, mut at) = (None, 2);
    while at < args.len() {
        at += match () {
            () if is(args, at, "limit") => 3,
            () if is(args, at, "get") || is(args, at, "by") => 2,
            () if is(args, at, "store") && at + 1 < args.len() => {
                stored = Some(at + 1);
                1
            }
            () => 1,
        };
    }
    stored
}

/// The arguments of MIGRATE that are keys, found as Redis finds them: those behind `KEYS`, or the third.
fn sent_at(args: &[&[u8]]) -> Option<std::ops::Range<usize>> {
    let mut at = 6;
    while at < args.len() {
        at += match () {
            () if is(args, at, "keys") => match args[3] {
                b"" if at + 1 < args.len() => return Some(at + 1..args.len()),
                b"" => break,
                _ => return None,
            },
            () if is(args, at, "auth") => 2,
            () if is(args, at, "auth2") => 3,
            () => 1,
        };
    }
    (args.len() > 3).then_some(3..4)
}

/// Whether there is an argument and it is this word, in any case.
fn is(args: &[&[u8]], at: usize, word: &str) -> bool {
    args.get(at)
        .is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()))
}

/// Where the keys of a rule begin.
fn begin(rule: &KeySpec, args: &[&[u8]]) -> Option<usize> {
    let (word, from) = match rule.begin {
        Begin::Index(index) => return usize::try_from(index).ok(),
        Begin::Keyword(word, from) => (word, from),
        Begin::Unknown => return None,
    };
    // Looked for from an argument on, or, if it is counted from the end, from there backwards.
    let distance = from.unsigned_abs() as usize;
    let at = if from > 0 {
        (distance..args.len()).find(|&at| is(args, at, word))
    } else {
        let start = args.len().checked_sub(distance)?;
        (1..=start).rev().find(|&at| is(args, at, word))
    };
    Some(at? + 1)
}

/// The first key, the last one and the step between keys, for a rule whose keys begin at `first`.
fn range(rule: &KeySpec, args: &[&[u8]], first: usize) -> Option<(usize, usize, usize)> {
    let positive = |number: i32| usize::try_from(number).ok();
    match rule.find {
        Find::Range { last, step, limit } => {
            let behind = args.len().checked_sub(first)?;
            let last = match (positive(last), positive(limit)?) {
                (Some(last), _) => first + last,
                // From the end of all arguments, or of the part of them that the keys take.
                (None, 0) => args.len().checked_sub(last.unsigned_abs() as usize)?,
                (None, limit) => {
                    (first + behind / limit).checked_sub(last.unsigned_abs() as usize)?
                }
            };
            Some((first, last, positive(step)?.max(1)))
        }
        Find::Count {
            count,
            first: behind,
            step,
        } => {
            let keys = number::parse_i64(args.get(first + positive(count)?)?)?;
            let keys = usize::try_from(keys).ok()?;
            let (first, step) = (first + positive(behind)?, positive(step)?.max(1));
            // More keys than arguments are refused here, so nothing overflows.
            if keys == 0 || keys > args.len() {
                return None;
            }
            Some((first, first + (keys - 1) * step, step))
        }
        Find::Unknown => None,
    }
}

/// Use of the key of a command that reads or writes by its arguments.
fn access_by_arguments(spec: &Spec, args: &[&[u8]]) -> u16 {
    const READS: u16 = access::RO | access::ACCESS;
    const WRITES: u16 = access::OW | access::UPDATE;
    const BOTH: u16 = access::RW | access::ACCESS | access::UPDATE;
    match spec.name {
        "set" if !(3..args.len()).any(|at| is(args, at, "get")) => WRITES,
        "bitfield" if only_reads_bits(args) => READS,
        _ => BOTH,
    }
}

/// Whether all subcommands of a BITFIELD are whole and read: GET with two arguments, OVERFLOW with one.
fn only_reads_bits(args: &[&[u8]]) -> bool {
    let mut at = 2;
    while at < args.len() {
        at += match () {
            () if is(args, at, "get") => 3,
            () if is(args, at, "overflow") => 2,
            () => return false,
        };
        if at > args.len() {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: u16 = access::RO | access::ACCESS;
    /// Bits of which a key has one.
    const EXCLUSIVE: u16 = access::RO | access::RW | access::OW | access::RM;
    const VARIABLE: u16 = access::RW | access::ACCESS | access::UPDATE | access::VARIABLE_FLAGS;

    fn spec(name: &'static str, rule: KeySpec) -> Spec {
        Spec {
            name,
            keys: Vec::leak(vec![rule]),
            ..Spec::BASE
        }
    }

    /// The positions of the keys of a request given as text.
    fn positions(spec: &Spec, request: &str) -> Option<Vec<usize>> {
        let args: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
        let found = find(spec, &args)?;
        Some(found.into_iter().map(|key| key.at).collect())
    }

    #[test]
    fn ranges_end_at_an_argument_or_count_from_the_end() {
        let one = spec("get", KeySpec::one(1, READ));
        assert_eq!(positions(&one, "get k"), Some(vec![1]));
        assert_eq!(positions(&one, "get k x"), Some(vec![1]));
        assert_eq!(positions(&one, "get"), None);
        let pairs = spec("mset", KeySpec::rest(1, 2, READ));
        assert_eq!(positions(&pairs, "mset a 1 b 2"), Some(vec![1, 3]));
        assert_eq!(positions(&pairs, "mset a"), Some(vec![1]));
        assert_eq!(positions(&pairs, "mset"), None);
    }

    #[test]
    fn a_limit_leaves_the_last_part_out() {
        let find = Find::Range {
            last: -1,
            step: 1,
            limit: 2,
        };
        let streams = KeySpec {
            begin: Begin::Keyword("STREAMS", 1),
            find,
            ..KeySpec::one(0, READ)
        };
        let xread = spec("xread", streams);
        assert_eq!(
            positions(&xread, "xread count 2 streams a b 0 0"),
            Some(vec![4, 5])
        );
        assert_eq!(positions(&xread, "xread count 2"), None);
        assert_eq!(positions(&xread, "xread streams"), None);
    }

    #[test]
    fn a_word_is_found_from_either_end() {
        let rule = |from| KeySpec {
            begin: Begin::Keyword("KEYS", from),
            ..KeySpec::one(0, READ)
        };
        let (forwards, backwards) = (spec("x", rule(2)), spec("x", rule(-2)));
        assert_eq!(
            positions(&forwards, "x keys a KEYS b keys c"),
            Some(vec![4])
        );
        assert_eq!(
            positions(&backwards, "x keys a KEYS b keys c"),
            Some(vec![6])
        );
        assert_eq!(positions(&backwards, "x"), None);
        assert_eq!(positions(&backwards, "x a keys"), None);
    }

    #[test]
    fn keys_that_are_sent_follow_the_word_or_are_the_third() {
        let migrate = spec("migrate", KeySpec::one(3, READ));
        for (request, keys) in [
            ("migrate h 1 k 0 10", Some(vec![3])),
            ("migrate h 1 k 0 10 copy nonsense", Some(vec![3])),
            ("migrate h 1  0 10 copy", Some(vec![3])),
            ("migrate h 1  0 10 keys", Some(vec![3])),
            ("migrate h 1  0 10 auth", Some(vec![3])),
            ("migrate h 1  0 10 auth keys KEYS keys b", Some(vec![9, 10])),
            ("migrate h 1  0 10 auth2 keys keys keys a", Some(vec![10])),
            ("migrate h 1 k 0 10 keys a", None),
            ("migrate h 1", None),
        ] {
            // No word between two spaces: the empty one.
            assert_eq!(positions(&migrate, request), keys, "{request}");
        }
    }

    #[test]
    fn a_count_says_how_many_keys_follow() {
        let find = Find::Count {
            count: 0,
            first: 1,
            step: 1,
        };
        let eval = spec(
            "eval",
            KeySpec {
                find,
                ..KeySpec::one(2, READ)
            },
        );
        assert_eq!(positions(&eval, "eval s 2 a b c"), Some(vec![3, 4]));
        for request in [
            "eval s 3 a b",
            "eval s 0 a",
            "eval s -1 a",
            "eval s x a",
            "eval s",
            "eval s 9223372036854775807 a",
        ] {
            assert_eq!(positions(&eval, request), None, "{request}");
        }
    }

    #[test]
    fn arguments_decide_what_happens_to_a_variable_key() {
        let access = |name, request: &str| {
            let args: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
            let found = find(&spec(name, KeySpec::one(1, VARIABLE)), &args);
            found.expect("the key is there")[0].access & EXCLUSIVE
        };
        assert_eq!(access("set", "set get get"), access::OW);
        assert_eq!(access("set", "set k v NX Get"), access::RW);
        assert_eq!(access("bitfield", "bitfield k"), access::RO);
        assert_eq!(
            access("bitfield", "bitfield k get u8 0 overflow fail"),
            access::RO
        );
        assert_eq!(access("bitfield", "bitfield k get u8"), access::RW);
        assert_eq!(
            access("bitfield", "bitfield k get u8 0 incrby u8 0 1"),
            access::RW
        );
        assert_eq!(access("other", "other k"), access::RW);
    }
}
