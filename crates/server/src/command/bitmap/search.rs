//! BITCOUNT and BITPOS: ones counted, a bit found, in a value as it lies there.

use std::ops::RangeInclusive;

use super::super::string::range;
use super::super::{Args, Context, Failure, Handled, Next, failure};
use super::words;

/// Unit of the positions of a range.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Byte,
    Bit,
}

impl Unit {
    /// The unit that the argument at `at` names; bytes if there is none.
    fn parse(args: &Args<'_>, at: usize) -> Result<Unit, Failure> {
        if at >= args.len() || args.is(at, "BYTE") {
            Ok(Unit::Byte)
        } else if args.is(at, "BIT") {
            Ok(Unit::Bit)
        } else {
            Err(failure::SYNTAX)
        }
    }

    /// How many of it are in `bytes` bytes.
    fn count_in(self, bytes: usize) -> usize {
        match self {
            Unit::Byte => bytes,
            Unit::Bit => bytes * 8,
        }
    }

    /// A range of it as a range of bits.
    fn bits(self, range: RangeInclusive<usize>) -> RangeInclusive<usize> {
        match self {
            Unit::Byte => range.start() * 8..=range.end() * 8 + 7,
            Unit::Bit => range,
        }
    }
}

/// `BITCOUNT key [start [end [BYTE | BIT]]]`; a start alone as in Valkey.
pub(super) fn bitcount(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let key = args.key(1);
    let mut shard = context.store.lock(key);
    // Without the key the range is not checked, as in Redis.
    let Some(entry) = shard.read_string(key)? else {
        context.reply.integer(0);
        return Ok(Next::Done);
    };
    let value = entry.value().bytes();
    let ones = match args.len() {
        2 => words::count_ones(value),
        3..=5 => {
            let start = args.integer(2)?;
            let end = if args.len() > 3 { args.integer(3)? } else { -1 };
            if range::is_backward(start, end) {
                // Empty in any unit; Redis does not check the unit then either.
                0
            } else {
                let unit = Unit::parse(args, 4)?;
                let range = range::resolve(start, end, unit.count_in(value.len()));
                range.map_or(0, |range| words::count_range(value, unit.bits(range)))
            }
        }
        _ => return Err(failure::SYNTAX),
    };
    context.reply.integer(ones as i64);
    Ok(Next::Done)
}

/// `BITPOS key bit [start [end [BYTE | BIT]]]`
pub(super) fn bitpos(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let wanted = match args.integer(2)? {
        0 => false,
        1 => true,
        _ => return Err(Failure::of("ERR The bit argument must be 1 or 0.")),
    };
    let key = args.key(1);
    let mut shard = context.store.lock(key);
    // A missing key is a string of zeros without end, and the range is not checked.
    let Some(entry) = shard.read_string(key)? else {
        context.reply.integer(if wanted { -1 } else { 0 });
        return Ok(Next::Done);
    };
    let value = entry.value().bytes();
    if args.len() > 6 {
        return Err(failure::SYNTAX);
    }
    let start = if args.len() > 3 { args.integer(3)? } else { 0 };
    let unit = Unit::parse(args, 5)?;
    let end = if args.len() > 4 { args.integer(4)? } else { -1 };
    let position = range::resolve(start, end, unit.count_in(value.len())).and_then(|range| {
        let found = words::find(value, wanted, unit.bits(range));
        // A string of ones ends in zeros, unless the client said where to end.
        let zero_behind = !wanted && args.len() <= 4;
        found.or(zero_behind.then_some(value.len() * 8))
    });
    context
        .reply
        .integer(position.map_or(-1, |position| position as i64));
    Ok(Next::Done)
}
