//! Strings.

use keyspace::Expiry;

use super::{Args, Context, Failure, Group, KeySpec, Spec, flag::*};

/// The table of this family.
pub(crate) const COMMANDS: &[Spec] = &[
    Spec {
        name: "get",
        arity: 2,
        flags: READONLY | FAST,
        keys: &[KeySpec::one(1, &["RO", "access"])],
        group: Group::String,
        summary: "Gets the value of a key",
        handler: get,
        ..Spec::BASE
    },
    Spec {
        name: "set",
        arity: -3,
        flags: WRITE | DENYOOM | BOUNDED,
        keys: &[KeySpec::one(1, &["OW", "update"])],
        group: Group::String,
        summary: "Sets the value of a key",
        handler: set,
        ..Spec::BASE
    },
];

fn get(context: &mut Context<'_>, args: &Args<'_>) -> Result<(), Failure> {
    match context.store.lock(args.key(1)).read(args.key(1)) {
        Some(entry) => context.reply.value(entry.value()),
        None => context.reply.null(),
    }
    Ok(())
}

fn set(context: &mut Context<'_>, args: &Args<'_>) -> Result<(), Failure> {
    context.store.lock(args.key(1)).set(args.key(1), args.get(2), Expiry::Clear);
    context.reply.ok();
    Ok(())
}
