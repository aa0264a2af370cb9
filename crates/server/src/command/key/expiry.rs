//! When keys expire.
//!
//! Times are Unix milliseconds from where they are read to where they are told. A key that is given a time
//! that is over is removed at once, which counts as done. While data is loaded it stays, because a later
//! change may give it another.

use crate::command::{Args, Context, Failure, Handled, Next};
use crate::observe::notify::Event;

const SECOND_MS: i64 = 1000;

pub(super) fn expire(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let now = context.store.now;
    expire_at(context, args, SECOND_MS, now)
}

pub(super) fn pexpire(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let now = context.store.now;
    expire_at(context, args, 1, now)
}

pub(super) fn expireat(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    expire_at(context, args, SECOND_MS, 0)
}

pub(super) fn pexpireat(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    expire_at(context, args, 1, 0)
}

/// Lets a key expire at the time in the second argument, in units of `unit_ms` from `base_ms` on.
fn expire_at(context: &mut Context<'_>, args: &Args<'_>, unit_ms: i64, base_ms: i64) -> Handled {
    let condition = Condition::parse(args, 3)?;
    let at = args
        .integer(2)?
        .checked_mul(unit_ms)
        .and_then(|ms| ms.checked_add(base_ms))
        .ok_or_else(|| Failure::invalid_expire(&context.command.full_name))?;
    let (key, now) = (args.key(1), context.store.now);
    let mut shard = context.store.lock(key);
    let done = match shard.find_to_change(key) {
        Some(mut entry) if condition.holds(entry.expiry(), at) => {
            let event = if at <= now && !context.server.is_loading() {
                entry.remove();
                Event::DEL
            } else {
                entry.set_expiry(Some(at));
                Event::EXPIRE
            };
            shard.tell(event, key);
            true
        }
        _ => false,
    };
    context.reply.integer(i64::from(done));
    Ok(Next::Done)
}

/// Condition on the present expiry of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Condition {
    nx: bool,
    xx: bool,
    gt: bool,
    lt: bool,
}

impl Condition {
    /// Reads the words from argument `from` on; one may be there twice.
    fn parse(args: &Args<'_>, from: usize) -> Result<Condition, Failure> {
        let mut condition = Condition::default();
        for at in from..args.len() {
            let word = match args.get(at) {
                word if word.eq_ignore_ascii_case(b"NX") => &mut condition.nx,
                word if word.eq_ignore_ascii_case(b"XX") => &mut condition.xx,
                word if word.eq_ignore_ascii_case(b"GT") => &mut condition.gt,
                word if word.eq_ignore_ascii_case(b"LT") => &mut condition.lt,
                word => return Err(Failure::about("ERR Unsupported option ", word, "")),
            };
            *word = true;
        }
        if condition.nx && (condition.xx || condition.gt || condition.lt) {
            return Err(NX_AND_OTHERS);
        }
        if condition.gt && condition.lt {
            return Err(GT_AND_LT);
        }
        Ok(condition)
    }

    /// Whether a key that expires at `old` may expire at `new`. No expiry is later than any time.
    fn holds(self, old: Option<i64>, new: i64) -> bool {
        match old {
            None => !self.xx && !self.gt,
            Some(old) => !self.nx && (!self.gt || new > old) && (!self.lt || new < old),
        }
    }
}

const NX_AND_OTHERS: Failure =
    Failure::of("ERR NX and XX, GT or LT options at the same time are not compatible");
const GT_AND_LT: Failure = Failure::of("ERR GT and LT options at the same time are not compatible");

pub(super) fn ttl(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let now = context.store.now;
    tell(context, args, |at| whole_seconds(left(at, now)))
}

pub(super) fn pttl(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let now = context.store.now;
    tell(context, args, |at| left(at, now))
}

pub(super) fn expiretime(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    tell(context, args, whole_seconds)
}

pub(super) fn pexpiretime(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    tell(context, args, |at| at)
}

/// Answers what `told` makes of a key's expiry: -1 if it has none, -2 if there is no such key.
fn tell(context: &mut Context<'_>, args: &Args<'_>, told: impl FnOnce(i64) -> i64) -> Handled {
    let key = args.key(1);
    let answer = match context.store.lock(key).peek(key) {
        None => -2,
        Some(entry) => entry.expiry().map_or(-1, told),
    };
    context.reply.integer(answer);
    Ok(Next::Done)
}

/// Milliseconds until `at`; 0 in the last one.
fn left(at: i64, now: i64) -> i64 {
    at.saturating_sub(now).max(0)
}

/// Seconds of a time that is not negative, half a second rounded up.
fn whole_seconds(ms: i64) -> i64 {
    ms / SECOND_MS + i64::from(ms % SECOND_MS >= SECOND_MS / 2)
}

pub(super) fn persist(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let key = args.key(1);
    let mut shard = context.store.lock(key);
    let done = match shard.find_to_change(key) {
        Some(mut entry) if entry.expiry().is_some() => {
            entry.set_expiry(None);
            shard.tell(Event::PERSIST, key);
            true
        }
        _ => false,
    };
    context.reply.integer(i64::from(done));
    Ok(Next::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_compare_with_no_expiry_as_with_the_latest_of_all() {
        let none = Condition::default();
        let nx = Condition { nx: true, ..none };
        let xx = Condition { xx: true, ..none };
        let gt = Condition { gt: true, ..none };
        let lt = Condition { lt: true, ..none };
        let xx_lt = Condition { xx: true, ..lt };
        for (condition, without, earlier, same, later) in [
            (none, true, true, true, true),
            (nx, true, false, false, false),
            (xx, false, true, true, true),
            (gt, false, false, false, true),
            (lt, true, true, false, false),
            (xx_lt, false, true, false, false),
        ] {
            assert_eq!(condition.holds(None, 5), without, "{condition:?}");
            assert_eq!(condition.holds(Some(5), 4), earlier, "{condition:?}");
            assert_eq!(condition.holds(Some(5), 5), same, "{condition:?}");
            assert_eq!(condition.holds(Some(5), 6), later, "{condition:?}");
        }
    }

    #[test]
    fn seconds_are_rounded_and_never_overflow() {
        for (ms, seconds) in [(0, 0), (499, 0), (500, 1), (1499, 1), (1500, 2)] {
            assert_eq!(whole_seconds(ms), seconds, "{ms}");
        }
        assert_eq!(whole_seconds(i64::MAX), 9_223_372_036_854_776);
        assert_eq!(left(i64::MAX, -5), i64::MAX);
        assert_eq!(left(5, 7), 0);
    }
}
