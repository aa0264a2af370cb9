//! BITOP: bits of several values combined into another.

use keyspace::{Form, LargeValue, New};

use super::super::string::operand::Operand;
use super::super::{Args, Context, Failure, Handled, Next, failure};
use super::words::{Operation, combine};
use crate::observe::notify::Event;

/// `BITOP AND | OR | XOR | NOT | DIFF | DIFF1 | ANDOR | ONE destkey key [key ...]`
pub(super) fn bitop(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let operation = Operation::of_name(args.get(1)).ok_or(failure::SYNTAX)?;
    let refusal = match (operation, args.len() - 3) {
        (Operation::Not, 2..) => "ERR BITOP NOT must be called with a single source key.",
        (Operation::Diff, 1) => "ERR BITOP DIFF must be called with at least two source keys.",
        (Operation::Diff1, 1) => "ERR BITOP DIFF1 must be called with at least two source keys.",
        (Operation::AndOr, 1) => "ERR BITOP ANDOR must be called with at least two source keys.",
        _ => "",
    };
    if !refusal.is_empty() {
        return Err(Failure::of(refusal));
    }
    let mut longest = 0;
    for key in args.keys().skip(1) {
        let mut shard = context.store.lock(key);
        if shard.find_string(key).is_err() {
            // It is refused below, behind the events of keys that are missing.
            longest = 0;
            break;
        }
        longest = longest.max(shard.bytes_of_copy(key));
    }
    context.foresee_gathered(longest)?;
    let mut shards = context.store.lock_keys(args.keys());
    let operands: Vec<Operand> = args
        .keys()
        .skip(1)
        .map(|key| Operand::read(&mut shards, key))
        .collect::<Result<_, _>>()?;
    let result = combine(
        operation,
        &operands.iter().map(Operand::bytes).collect::<Vec<_>>(),
    );
    let len = result.len();
    let target = args.key(2);
    if len > 0 {
        let result = LargeValue::new(result.into());
        let new = New::large(&result).of(Form::Part);
        shards.of(target).write(target, new);
        shards.of(target).tell(Event::SET, target);
    } else if shards.of(target).remove(target) {
        shards.of(target).tell(Event::DEL, target);
    }
    context.reply.integer(len as i64);
    Ok(Next::Done)
}
