//! HRANDFIELD: fields by chance.

use keyspace::collection::kind::Fields;

use super::super::items::draw;
use super::super::{Args, Context, Failure, Handled, failure};

const OUT_OF_RANGE: Failure = Failure::of("ERR value is out of range");

/// `HRANDFIELD key [count [WITHVALUES]]`
pub(super) fn hrandfield(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    if args.len() == 2 {
        return draw::one::<Fields>(context, args);
    }
    let count = draw::parse_count(args)?;
    let with_values = args.len() > 3;
    if args.len() > 4 || with_values && !args.is(3, "WITHVALUES") {
        return Err(failure::SYNTAX);
    }
    if with_values && count.unsigned_abs() > i64::MAX as u64 / 2 {
        return Err(OUT_OF_RANGE);
    }
    draw::several::<Fields>(context, args, count, with_values)
}
