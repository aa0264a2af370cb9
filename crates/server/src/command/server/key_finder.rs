//! Which arguments of a request are keys, and what happens to them: what COMMAND GETKEYS tells.
//!
//! The rules of the command's row say it, in their order. A rule whose flags include `variable_flags` knows where the key is
//! but not what happens to it, which depends on the other arguments; those commands are named here.
//!
//! Not here: the fixed range of keys by which a batch prefetches (`table`).

use resp::number;

use super::{KeySpec, Spec};
use crate::command::Args;
use crate::command::spec::{Begin, Find};

/// A key of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FoundKey {
    /// Its argument, counted from the command's name.
    pub(super) at: usize,
    /// What happens to it, in the words of the rule.
    pub(super) flags: &'static [&'static str],
}

/// The arguments of the request that is asked about.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    args: Args<'a>,
    /// Where its command's name is.
    from: usize,
}

impl<'a> Asked<'a> {
    /// The request that begins at argument `from` of another, which has that argument.
    pub(super) fn new(args: Args<'a>, from: usize) -> Asked<'a> {
        Asked { args, from }
    }

    /// The number of its arguments, name included.
    pub(super) fn len(self) -> usize {
        self.args.len() - self.from
    }

    /// An argument that is there.
    pub(super) fn get(self, at: usize) -> &'a [u8] {
        self.args.get(self.from + at)
    }

    fn is(self, at: usize, word: &str) -> bool {
        self.args.is(self.from + at, word)
    }

    /// The position of the first of these words, at `from` or behind.
    fn has_word(self, from: usize, word: &str) -> bool {
        (from..self.len()).any(|at| self.is(at, word))
    }
}

/// The keys of a request; `None` if it cannot have as many as it claims.
pub(super) fn find(spec: &Spec, asked: Asked<'_>) -> Option<Vec<FoundKey>> {
    let mut found = Vec::new();
    for rule in spec.keys {
        let first = begin(rule, asked)?;
        let (first, last, step) = range(rule, asked, first)?;
        if last >= asked.len() || last < first {
            return None;
        }
        let flags = if rule.flags.contains(&"variable_flags") {
            flags_by_arguments(spec, asked)
        } else {
            rule.flags
        };
        found.extend(
            (first..=last)
                .step_by(step)
                .map(|at| FoundKey { at, flags }),
        );
    }
    Some(found)
}

/// Where the keys of a rule begin.
fn begin(rule: &KeySpec, asked: Asked<'_>) -> Option<usize> {
    match rule.begin {
        Begin::Index(index) => usize::try_from(index).ok(),
        // From an argument on to the end, or from the end backwards.
        Begin::Keyword(word, from) => {
            let at = if from > 0 {
                (from.unsigned_abs() as usize..asked.len()).find(|&at| asked.is(at, word))
            } else {
                let start = asked.len().checked_sub(from.unsigned_abs() as usize)?;
                (1..=start.min(asked.len() - 1))
                    .rev()
                    .find(|&at| asked.is(at, word))
            };
            Some(at? + 1)
        }
    }
}

/// The first key, the last one and the step between keys, for a rule whose keys begin at `first`.
fn range(rule: &KeySpec, asked: Asked<'_>, first: usize) -> Option<(usize, usize, usize)> {
    let positive = |number: i32| usize::try_from(number).ok();
    match rule.find {
        Find::Range { last, step, limit } => {
            let last = match (positive(last), positive(limit)) {
                (Some(last), _) => first + last,
                (None, Some(limit @ 1..)) => {
                    let share = asked.len().checked_sub(first)? / limit;
                    (first + share).checked_sub(last.unsigned_abs() as usize)?
                }
                _ => asked.len().checked_sub(last.unsigned_abs() as usize)?,
            };
            Some((first, last, positive(step)?.max(1)))
        }
        Find::Count {
            count,
            first: behind,
            step,
        } => {
            let count_at = first + positive(count)?;
            if count_at >= asked.len() {
                return None;
            }
            let keys = usize::try_from(number::parse_i64(asked.get(count_at))?).ok()?;
            let (first, step) = (first + positive(behind)?, positive(step)?.max(1));
            // More keys than arguments are refused here, so nothing overflows.
            if keys == 0 || keys > asked.len() {
                return None;
            }
            Some((first, first + (keys - 1) * step, step))
        }
    }
}

/// What happens to the key of a command that reads or writes by its arguments.
fn flags_by_arguments(spec: &Spec, asked: Asked<'_>) -> &'static [&'static str] {
    const READS: &[&str] = &["RO", "access"];
    const WRITES: &[&str] = &["OW", "update"];
    const BOTH: &[&str] = &["RW", "access", "update"];
    match spec.name {
        "set" if !asked.has_word(3, "get") => WRITES,
        "bitfield" if only_reads_bits(asked) => READS,
        _ => BOTH,
    }
}

/// Whether all subcommands of a BITFIELD are whole and read: GET with two arguments, OVERFLOW with one.
fn only_reads_bits(asked: Asked<'_>) -> bool {
    let mut at = 2;
    while at < asked.len() {
        at += match () {
            () if asked.is(at, "get") => 3,
            () if asked.is(at, "overflow") => 2,
            () => return false,
        };
        if at > asked.len() {
            return false;
        }
    }
    true
}
