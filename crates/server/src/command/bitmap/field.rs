//! BITFIELD and BITFIELD_RO: a list of operations on integers, read as a whole before the first one runs.

use super::super::{Args, Context, Failure, Handled, Next, Reply, failure};
use super::bit_offset;
use super::integer::{Overflow, Type};
use crate::observe::notify::Event;
use crate::server::Server;

const TYPE: Failure = Failure::of(
    "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.",
);
const OVERFLOW: Failure = Failure::of("ERR Invalid OVERFLOW type specified");
const READ_ONLY: Failure = Failure::of("ERR BITFIELD_RO only supports the GET subcommand");

/// One operation.
struct Operation {
    action: Action,
    of_type: Type,
    /// In bits.
    offset: usize,
}

/// Effect of an operation on the bytes, in ascending order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Effect {
    None,
    /// It wrote the earlier bytes again.
    Written,
    Changed,
}

#[derive(Clone, Copy)]
enum Action {
    Get,
    Set { value: i64, overflow: Overflow },
    Increment { by: i64, overflow: Overflow },
}

impl Operation {
    /// The bytes a value must have for the operation to write to it.
    fn reach(&self) -> usize {
        match self.action {
            Action::Get => 0,
            Action::Set { .. } | Action::Increment { .. } => {
                (self.offset + self.of_type.bits() as usize).div_ceil(8)
            }
        }
    }

    /// The first byte it writes to, if it writes.
    fn first(&self) -> usize {
        self.offset / 8
    }

    /// Answers with the value.
    fn get(&self, bytes: &[u8], reply: &mut Reply<'_>) {
        reply.integer(self.of_type.read(bytes, self.offset));
    }

    /// Changes bytes that reach far enough, and answers: SET with the old value, INCRBY with the new one.
    /// Returns what it did to them.
    fn run(&self, bytes: &mut [u8], reply: &mut Reply<'_>) -> Effect {
        let before = self.of_type.read(bytes, self.offset);
        let after = match self.action {
            Action::Get => {
                reply.integer(before);
                return Effect::None;
            }
            Action::Set { value, overflow } => self.of_type.set(value, overflow),
            Action::Increment { by, overflow } => self.of_type.increment(before, by, overflow),
        };
        let Some(after) = after else {
            reply.null();
            return Effect::None;
        };
        self.of_type.write(bytes, self.offset, after);
        let is_set = matches!(self.action, Action::Set { .. });
        reply.integer(if is_set { before } else { after });
        if after == before {
            Effect::Written
        } else {
            Effect::Changed
        }
    }
}

/// Reads all operations.
fn parse(server: &Server, args: &Args<'_>) -> Result<Vec<Operation>, Failure> {
    let mut operations = Vec::new();
    let mut overflow = Overflow::default();
    let mut at = 2;
    while at < args.len() {
        let behind = args.len() - at - 1;
        if args.is(at, "OVERFLOW") && behind >= 1 {
            overflow = parse_overflow(args, at + 1)?;
            at += 2;
            continue;
        }
        let operands = match () {
            () if args.is(at, "GET") => 2,
            () if args.is(at, "SET") || args.is(at, "INCRBY") => 3,
            () => return Err(failure::SYNTAX),
        };
        if behind < operands {
            return Err(failure::SYNTAX);
        }
        let of_type = Type::parse(args.get(at + 1)).ok_or(TYPE)?;
        let offset = bit_offset(server, args.get(at + 2), Some(of_type.bits()))?;
        let action = if operands == 2 {
            Action::Get
        } else if args.is(at, "SET") {
            Action::Set {
                value: args.integer(at + 3)?,
                overflow,
            }
        } else {
            Action::Increment {
                by: args.integer(at + 3)?,
                overflow,
            }
        };
        operations.push(Operation {
            action,
            of_type,
            offset,
        });
        at += 1 + operands;
    }
    Ok(operations)
}

fn parse_overflow(args: &Args<'_>, at: usize) -> Result<Overflow, Failure> {
    Ok(match () {
        () if args.is(at, "WRAP") => Overflow::Wrap,
        () if args.is(at, "SAT") => Overflow::Saturate,
        () if args.is(at, "FAIL") => Overflow::Fail,
        () => return Err(OVERFLOW),
    })
}

/// `BITFIELD key [GET type offset | [OVERFLOW WRAP | SAT | FAIL] (SET type offset value | INCRBY type offset
/// increment)]...`
pub(super) fn bitfield(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let operations = parse(context.server, args)?;
    let reach = operations.iter().map(Operation::reach).max().unwrap_or(0);
    if reach == 0 {
        return get_all(context, args, &operations);
    }
    let key = args.key(1);
    context.foresee(key, reach)?;
    let Context { store, reply, .. } = context;
    reply.array(operations.len());
    let mut shard = store.lock(key);
    let writing = operations.iter().filter(|operation| operation.reach() > 0);
    let first = writing.map(Operation::first).min().unwrap_or(0);
    // Room is made for what is to be written, even if it turns out to overflow.
    let (most, is_changed) = shard.grow(key, first..reach, |bytes| {
        let effects = operations
            .iter()
            .map(|operation| operation.run(bytes, reply));
        let most = effects.max().unwrap_or(Effect::None);
        (most, most == Effect::Changed)
    })?;
    // Where nothing was written because all of it would overflow, there is nothing to tell, though the key
    // may be longer now.
    if is_changed && most > Effect::None {
        shard.tell(Event::SETBIT, key);
    }
    Ok(Next::Done)
}

/// `BITFIELD_RO key [GET type offset]...`
pub(super) fn bitfield_ro(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let operations = parse(context.server, args)?;
    if operations.iter().any(|operation| operation.reach() > 0) {
        return Err(READ_ONLY);
    }
    get_all(context, args, &operations)
}

/// Runs operations of which none writes.
fn get_all(context: &mut Context<'_>, args: &Args<'_>, operations: &[Operation]) -> Handled {
    let key = args.key(1);
    let Context { store, reply, .. } = context;
    let mut shard = store.lock(key);
    let entry = shard.read_string(key)?;
    let bytes = entry
        .as_ref()
        .map_or(&[][..], |entry| entry.value().bytes());
    reply.array(operations.len());
    operations
        .iter()
        .for_each(|operation| operation.get(bytes, reply));
    Ok(Next::Done)
}
