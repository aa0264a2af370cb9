//! Options of SET and GETEX: conditions, GET, and expiry.

use keyspace::Expiry;

use super::super::{Args, Context, Failure, failure};
use super::compare::Condition;

/// The options of SET.
#[derive(Default)]
pub(super) struct SetOptions<'a> {
    pub(super) condition: Option<Condition<'a>>,
    /// The old value is returned.
    pub(super) get: bool,
    pub(super) expiry: ExpiryOption,
}

/// The one option of SET or GETEX that says what happens to the expiry.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum ExpiryOption {
    /// Not given: SET clears it, GETEX leaves it.
    #[default]
    None,
    /// KEEPTTL.
    Keep,
    /// PERSIST.
    Persist,
    /// EX, PX, EXAT or PXAT, with the time in an argument that has not been looked at yet.
    At { unit: TimeUnit, argument: usize },
}

/// How a time of expiry is given.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TimeUnit {
    /// EX: seconds from now.
    Seconds,
    /// PX: milliseconds from now.
    Milliseconds,
    /// EXAT: seconds since the epoch.
    UnixSeconds,
    /// PXAT: milliseconds since the epoch.
    UnixMilliseconds,
}

/// Whether a SET needs the value that its key has.
pub(super) fn set_needs(args: &Args<'_>, at: usize) -> bool {
    const WORDS: [&str; 5] = ["GET", "IFEQ", "IFNE", "IFDEQ", "IFDNE"];
    at == 1 && (3..args.len()).any(|word| WORDS.iter().any(|needs| args.is(word, needs)))
}

/// Whether a SET leaves it at sending the value that its key has.
pub(super) fn set_sends(args: &Args<'_>) -> bool {
    const WORDS: [&str; 4] = ["IFEQ", "IFNE", "IFDEQ", "IFDNE"];
    !(3..args.len()).any(|word| WORDS.iter().any(|needs| args.is(word, needs)))
}

impl TimeUnit {
    fn of_word(word: &[u8]) -> Option<TimeUnit> {
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        Some(match () {
            () if is("EX") => TimeUnit::Seconds,
            () if is("PX") => TimeUnit::Milliseconds,
            () if is("EXAT") => TimeUnit::UnixSeconds,
            () if is("PXAT") => TimeUnit::UnixMilliseconds,
            () => return None,
        })
    }

    fn is_absolute(self) -> bool {
        matches!(self, TimeUnit::UnixSeconds | TimeUnit::UnixMilliseconds)
    }

    /// The moment (Unix, ms) that `value` means at `now`. `None` if it is not positive or too far away to be
    /// represented.
    pub(super) fn moment(self, value: i64, now: i64) -> Option<i64> {
        if value <= 0 {
            return None;
        }
        let milliseconds = match self {
            TimeUnit::Seconds | TimeUnit::UnixSeconds => value.checked_mul(1000)?,
            TimeUnit::Milliseconds | TimeUnit::UnixMilliseconds => value,
        };
        if self.is_absolute() {
            Some(milliseconds)
        } else {
            milliseconds.checked_add(now)
        }
    }
}

impl ExpiryOption {
    /// Takes the option at `at`, if it is one of expiry; returns how many arguments it has behind it. Giving
    /// the same one again is allowed, and then the last counts; two different ones are not.
    fn take(&mut self, args: &Args<'_>, at: usize) -> Option<usize> {
        let unit = TimeUnit::of_word(args.get(at))?;
        let fits = match *self {
            ExpiryOption::None => true,
            ExpiryOption::At { unit: before, .. } => before == unit,
            ExpiryOption::Keep | ExpiryOption::Persist => false,
        };
        if !fits || at + 1 == args.len() {
            return None;
        }
        *self = ExpiryOption::At {
            unit,
            argument: at + 1,
        };
        Some(1)
    }

    /// Takes a word without arguments, unless another option was given before it.
    fn take_word(&mut self, word: ExpiryOption) -> Option<usize> {
        let fits = matches!(self, ExpiryOption::None) || *self == word;
        fits.then(|| {
            *self = word;
            0
        })
    }

    /// The moment (Unix, ms) of EX, PX, EXAT or PXAT; `None` for the others.
    pub(super) fn moment(
        self,
        context: &Context<'_>,
        args: &Args<'_>,
    ) -> Result<Option<i64>, Failure> {
        let ExpiryOption::At { unit, argument } = self else {
            return Ok(None);
        };
        moment_of(context, args, unit, argument).map(Some)
    }

    /// Whether an absolute time was given: one that may have passed already.
    pub(super) fn is_absolute(self) -> bool {
        matches!(self, ExpiryOption::At { unit, .. } if unit.is_absolute())
    }
}

/// The moment (Unix, ms) that the argument at `argument` means.
pub(super) fn moment_of(
    context: &Context<'_>,
    args: &Args<'_>,
    unit: TimeUnit,
    argument: usize,
) -> Result<i64, Failure> {
    let value = args.integer(argument)?;
    unit.moment(value, context.store.now)
        .ok_or_else(|| Failure::invalid_expire(context.command.spec.name))
}

impl<'a> SetOptions<'a> {
    /// Reads the options from an argument on.
    pub(super) fn parse(args: &Args<'a>, mut at: usize) -> Result<SetOptions<'a>, Failure> {
        let mut options = SetOptions::default();
        while at < args.len() {
            at += 1 + options.take(args, at).ok_or(failure::SYNTAX)?;
        }
        Ok(options)
    }

    /// Takes the option at `at`; returns how many arguments it has behind it. `None` is a syntax error.
    fn take(&mut self, args: &Args<'a>, at: usize) -> Option<usize> {
        if args.is(at, "GET") {
            self.get = true;
            return Some(0);
        }
        if args.is(at, "KEEPTTL") {
            return self.expiry.take_word(ExpiryOption::Keep);
        }
        for (word, condition) in [("NX", Condition::Missing), ("XX", Condition::Present)] {
            if args.is(at, word) {
                let fits = self.condition.is_none_or(|before| before == condition);
                self.condition = Some(condition);
                return fits.then_some(0);
            }
        }
        if let Some(operand) = args.optional(at + 1)
            && let Some(condition) = Condition::of_word(args.get(at), operand)
        {
            return self.condition.replace(condition).is_none().then_some(1);
        }
        self.expiry.take(args, at)
    }

    /// New expiry of the key.
    pub(super) fn expiry(&self, context: &Context<'_>, args: &Args<'_>) -> Result<Expiry, Failure> {
        Ok(match self.expiry.moment(context, args)? {
            Some(at) => Expiry::At(at),
            None if self.expiry == ExpiryOption::Keep => Expiry::Keep,
            None => Expiry::Clear,
        })
    }
}

/// Reads the options of GETEX, from the third argument on.
pub(super) fn parse_getex(args: &Args<'_>) -> Result<ExpiryOption, Failure> {
    let mut option = ExpiryOption::None;
    let mut at = 2;
    while at < args.len() {
        let taken = if args.is(at, "PERSIST") {
            option.take_word(ExpiryOption::Persist)
        } else {
            option.take(args, at)
        };
        at += 1 + taken.ok_or(failure::SYNTAX)?;
    }
    Ok(option)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_positive_and_fits() {
        use TimeUnit::*;
        let now = 1_700_000_000_000;
        for unit in [Seconds, Milliseconds, UnixSeconds, UnixMilliseconds] {
            assert_eq!(unit.moment(0, now), None);
            assert_eq!(unit.moment(-1, now), None);
            assert_eq!(unit.moment(i64::MIN, now), None);
        }
        assert_eq!(Seconds.moment(1, now), Some(now + 1000));
        assert_eq!(Milliseconds.moment(1, now), Some(now + 1));
        assert_eq!(UnixSeconds.moment(1, now), Some(1000));
        assert_eq!(UnixMilliseconds.moment(1, now), Some(1));
    }

    #[test]
    fn a_moment_too_far_away_is_none() {
        use TimeUnit::*;
        let now = 1_700_000_000_000;
        let most = i64::MAX / 1000;
        assert_eq!(UnixSeconds.moment(most, now), Some(most * 1000));
        assert_eq!(UnixSeconds.moment(most + 1, now), None);
        assert_eq!(UnixMilliseconds.moment(i64::MAX, now), Some(i64::MAX));
        assert_eq!(Seconds.moment(most, now), None);
        assert_eq!(Seconds.moment(most + 1, now), None);
        assert_eq!(Milliseconds.moment(i64::MAX - now, now), Some(i64::MAX));
        assert_eq!(Milliseconds.moment(i64::MAX - now + 1, now), None);
    }
}
