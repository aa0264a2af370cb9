//! PFCOUNT.

use keyspace::hyperloglog::{self, COUNT, Union};
use keyspace::{Form, Key};

use super::super::{Args, Context, Failure, Handled, Next};
use super::{corrupted, density_of};
use crate::persistence::journal::Journal;

/// `PFCOUNT key [key ...]`
pub(super) fn pfcount(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let count = match args.len() {
        2 => count_one(context, args.key(1))?,
        _ => count_union(context, args)?,
    };
    context.reply.integer(count as i64);
    Ok(Next::Done)
}

/// The estimate of one value, which keeps it if it was out of date. Where nothing can be written, it does
/// not.
fn count_one(context: &Context<'_>, key: Key<'_>) -> Result<u64, Failure> {
    let mut shard = context.store.lock(key);
    let Some(mut entry) = shard.read_string(key)? else {
        return Ok(0);
    };
    let value = entry.value();
    density_of(value.bytes())?;
    if let Some(count) = hyperloglog::known_count(value.bytes()) {
        return Ok(count);
    }
    let (len, count) = (
        value.bytes().len(),
        hyperloglog::count(value.bytes()).map_err(corrupted)?,
    );
    let may_append = |journal: &Journal| journal.may_append(key.bytes.len(), len);
    if context.server.gate.is_open() && context.store.journal.is_none_or(may_append) {
        entry.update(len, COUNT, Form::Part, |value| {
            hyperloglog::set_count(value, count)
        });
    }
    Ok(count)
}

fn count_union(context: &Context<'_>, args: &Args<'_>) -> Result<u64, Failure> {
    let keys = (1..args.len()).map(|at| args.key(at));
    let mut shards = context.store.lock_keys(keys.clone());
    let mut union = Union::default();
    for key in keys {
        if let Some(entry) = shards.of(key).read_string(key)? {
            let value = entry.value();
            density_of(value.bytes())?;
            union.add(value.bytes()).map_err(corrupted)?;
        }
    }
    drop(shards);
    Ok(union.count())
}
