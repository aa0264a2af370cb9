//! SETBIT and GETBIT: one bit.

use super::super::{Args, Context, Failure, Handled, Next};
use super::bit_offset;
use crate::observe::notify::Event;

const BIT: Failure = Failure::of("ERR bit is not an integer or out of range");

/// `SETBIT key offset value`
pub(super) fn setbit(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let offset = bit_offset(context.server, args.get(2), None)?;
    let bit = match args.get(3) {
        b"0" => false,
        b"1" => true,
        _ => return Err(BIT),
    };
    let key = args.key(1);
    context.foresee(key, offset / 8 + 1)?;
    let mut shard = context.store.lock(key);
    let (before, is_changed) = shard.grow(key, offset / 8..offset / 8 + 1, |value| {
        let byte = &mut value[offset / 8];
        let mask = 0x80 >> (offset % 8);
        let before = *byte & mask != 0;
        *byte = if bit { *byte | mask } else { *byte & !mask };
        (before, before != bit)
    })?;
    if is_changed {
        shard.tell(Event::SETBIT, key);
    }
    context.reply.integer(i64::from(before));
    Ok(Next::Done)
}

/// `GETBIT key offset`
pub(super) fn getbit(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let offset = bit_offset(context.server, args.get(2), None)?;
    let key = args.key(1);
    let bit = match context.store.lock(key).read_string(key)? {
        Some(entry) => {
            let byte = entry.value().bytes().get(offset / 8).copied().unwrap_or(0);
            byte & 0x80 >> (offset % 8) != 0
        }
        None => false,
    };
    context.reply.integer(i64::from(bit));
    Ok(Next::Done)
}
