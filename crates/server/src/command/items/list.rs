//! HGETALL, HKEYS, HVALS and SMEMBERS: all items of a collection.

use keyspace::collection::Base;
use keyspace::collection::any::Held;
use keyspace::collection::cell::DECIMAL_MAX;
use keyspace::{ItemsRef, LeafPlace};
use resp::reply::Writer;

use super::super::deferred::Slice;
use super::super::{Args, Context, Handled, Next};
use super::moment::{Look, leave_or_retry, look_on};
use crate::request::Reply;
use crate::store::{Items, Kept};

/// Names of items, values, or both.
struct List<const NAMES: bool, const VALUES: bool> {
    /// The leaf that comes next.
    from: LeafPlace,
}

impl<K: Held, const NAMES: bool, const VALUES: bool> Look<K> for List<NAMES, VALUES> {
    const STREAMS: bool = true;

    #[inline]
    fn step(&mut self, items: ItemsRef<'_, K>, writer: &mut Writer<'_>) -> bool {
        let mut bulks = writer.bulks();
        let next = items.cells_from(&self.from, |cell, is_name| {
            if if is_name { NAMES } else { VALUES } {
                bulks.put(cell.text(&mut [0; DECIMAL_MAX]));
            }
        });
        bulks.finish();
        let has_more = next.is_some();
        self.from = next.unwrap_or_default();
        has_more
    }

    fn cold(&mut self, items: ItemsRef<'_, K>, ahead: Option<usize>) -> Vec<Base> {
        items.cold_from(&self.from, ahead.unwrap_or(1))
    }
}

/// Answers with a head for the number of items, and then with their names, their values, or both.
#[inline]
pub(in crate::command) fn list<K: Kept + Send, const NAMES: bool, const VALUES: bool>(
    context: &mut Context<'_>,
    args: &Args<'_>,
    head: impl FnOnce(&mut Reply<'_>, usize),
) -> Handled {
    let (key, may_defer) = (args.key(1), context.may_defer());
    let mut shard = context.store.lock(key);
    let mut found = shard.read_items::<K>(key)?;
    let (reply, items) = (&mut context.reply, found.as_ref().map(Items::items));
    let (start, len) = (
        reply.position(),
        items.map_or(0, |items| items.len() as usize),
    );
    head(reply, len);
    let Some(items) = items else {
        return Ok(Next::Done);
    };
    let from = LeafPlace::default();
    let mut look = List::<NAMES, VALUES> { from };
    let has_cold = items.is_tree() && found.as_ref().is_some_and(|items| items.has_cold_leaves());
    // A small one needs no clock.
    let has_more = (has_cold || look.step(items, reply)) && {
        let slice = Slice::if_any(may_defer);
        look_on(&mut look, items, has_cold, reply, &slice)
    };
    if !has_more {
        return Ok(Next::Done);
    }
    let moment = found.as_mut().and_then(Items::moment);
    drop(shard);
    Ok(leave_or_retry::<K>(context, args, start, moment, look))
}
