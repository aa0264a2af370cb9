//! Commands that add elements: PFADD PFMERGE.

use keyspace::hyperloglog::{self, Density, Element, Union};
use keyspace::{Form, Key, New};

use super::super::{Args, Context, Failure, Handled, Next};
use super::{corrupted, density_of, most_sparse};
use crate::observe::notify::Event;
use crate::store::{Shard, Text};

/// `PFADD key [element [element ...]]`
///
/// Budget for a key that is there: one lookup, one hash of each element, no allocation if none changes a
/// register, or if the value is dense. The log gets the bytes of registers that change.
pub(super) fn pfadd(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let (key, most) = (args.key(1), most_sparse(&context.server.settings));
    let elements = args.from(2).map(Element::of);
    let mut shard = context.store.lock(key);
    let is_changed = match shard.find_string(key)? {
        Some(mut entry) => add(&mut entry, elements, most)?,
        None => {
            let mut value = hyperloglog::empty();
            for element in elements {
                hyperloglog::add(&mut value, element, most).map_err(corrupted)?;
            }
            hyperloglog::forget_count(&mut value);
            shard.write(key, New::bytes(&value).of(Form::Part));
            true
        }
    };
    if is_changed {
        shard.tell(Event::PFADD, key);
    }
    context.reply.integer(i64::from(is_changed));
    Ok(Next::Done)
}

/// Adds elements to a value. Whether that has changed it.
///
/// # Errors
/// It is no HyperLogLog, or corrupted. Nothing has changed.
fn add(
    entry: &mut Text<'_, '_>,
    mut elements: impl Iterator<Item = Element> + Clone,
    most: usize,
) -> Result<bool, Failure> {
    let value = entry.value();
    let bytes = value.bytes();
    if density_of(bytes)? == Density::Dense {
        let Some(part) = hyperloglog::changes(bytes, elements.clone()) else {
            return Ok(false);
        };
        let parts = match hyperloglog::known_count(bytes) {
            Some(_) => [hyperloglog::COUNT, part],
            None => [part, 0..0],
        };
        entry.update_parts(parts, Form::Part, |value| {
            hyperloglog::forget_count(value);
            hyperloglog::add_to_dense(value, elements);
        });
        return Ok(true);
    }
    let changes = |element| hyperloglog::changes_sparse(bytes, element).map_err(corrupted);
    // An error ends the search as well, and is met again below.
    let mut rest = elements.clone();
    if !rest.any(|element| !matches!(changes(element), Ok(false))) {
        return Ok(false);
    }
    let mut value = bytes.to_vec();
    elements
        .try_for_each(|element| hyperloglog::add(&mut value, element, most).map(drop))
        .map_err(corrupted)?;
    put(entry, &value);
    Ok(true)
}

fn put(entry: &mut Text<'_, '_>, new: &[u8]) {
    entry.update(new.len(), 0..new.len(), Form::Part, |value| {
        value.copy_from_slice(new);
    });
}

/// `PFMERGE destkey [sourcekey [sourcekey ...]]`
pub(super) fn pfmerge(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let (to, most) = (args.key(1), most_sparse(&context.server.settings));
    let keys = (1..args.len()).map(|at| args.key(at));
    let mut shards = context.store.lock_keys(keys.clone());
    let (mut union, mut is_dense) = (Union::default(), false);
    for key in keys {
        if let Some(entry) = shards.of(key).read_string(key)? {
            let value = entry.value();
            is_dense |= density_of(value.bytes())? == Density::Dense;
            union.add(value.bytes()).map_err(corrupted)?;
        }
    }
    let mut shard = shards.of(to);
    let merged = merged(&mut shard, to, &union, (is_dense, most))?;
    match shard.find_string(to)? {
        Some(mut entry) => put(&mut entry, &merged),
        None => shard.write(to, New::bytes(&merged).of(Form::Part)),
    }
    shard.tell(Event::PFADD, to);
    drop(shard);
    drop(shards);
    context.reply.ok();
    Ok(Next::Done)
}

/// The value of a key with the elements of a union.
fn merged(
    shard: &mut Shard<'_>,
    key: Key<'_>,
    union: &Union,
    (is_dense, most): (bool, usize),
) -> Result<Vec<u8>, Failure> {
    let own = shard.find_string(key)?;
    let mut value = match &own {
        Some(entry) => entry.value().bytes().to_vec(),
        None => hyperloglog::empty(),
    };
    if is_dense {
        hyperloglog::make_dense(&mut value).map_err(corrupted)?;
    }
    for element in union.elements() {
        hyperloglog::add(&mut value, element, most).map_err(corrupted)?;
    }
    hyperloglog::forget_count(&mut value);
    Ok(value)
}
