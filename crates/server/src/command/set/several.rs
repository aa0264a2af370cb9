//! Commands on several sets: SINTER SUNION SDIFF, SINTERSTORE SUNIONSTORE SDIFFSTORE, SINTERCARD.
//!
//! All shards are locked before the first set is looked at. Of each set its moment is taken, or a copy if it
//! is small. What returns members reads these without a lock; what stores members keeps the shards locked, if
//! the sets are small ([`super::super::combining`]).

use std::cell::RefCell;

use keyspace::collection::any::Moment;
use keyspace::collection::cell::DECIMAL_MAX;
use keyspace::collection::run::Item;
use keyspace::{Detached, Key, Kind, SetRef};
use resp::reply::Writer;

use super::super::combining::{self, Combination, Made};
use super::super::{Args, Context, Failure, Handled, Next, failure};
use super::combine::{Combined, MayTake, difference, intersection, union};
use crate::config::Packed;
use crate::observe::notify::Event;
use crate::request::Pieces;
use crate::server::Server;
use crate::shared::memory::Growing;
use crate::store::{Shards, Still};

const NO_KEYS: Failure = Failure::of("ERR numkeys should be greater than 0");
const TOO_MANY_KEYS: Failure =
    Failure::of("ERR Number of keys can't be greater than number of args");
const NEGATIVE_LIMIT: Failure = Failure::of("ERR LIMIT can't be negative");

/// Sets as they were at one moment, those of missing keys without members.
struct Sources {
    server: &'static Server,
    sets: Vec<Option<Still>>,
}

impl Sources {
    /// The sets of these keys, whose shards are locked.
    ///
    /// # Errors
    /// A key is of another kind.
    fn read<'k>(
        server: &'static Server,
        shards: &mut Shards<'_>,
        keys: impl Iterator<Item = Key<'k>>,
    ) -> Result<Sources, Failure> {
        let mut sources = Sources {
            server,
            sets: Vec::new(),
        };
        for key in keys {
            let mut shard = shards.of(key);
            let set = shard.read_set(key)?;
            sources.sets.push(set.map(|mut set| set.still()));
        }
        Ok(sources)
    }

    /// The sets that are there.
    fn present(&self) -> impl Iterator<Item = SetRef<'_>> {
        self.sets.iter().flatten().map(members)
    }
}

impl Drop for Sources {
    fn drop(&mut self) {
        for still in self.sets.drain(..).flatten() {
            if let Still::Tree(moment, _) = still {
                self.server.keyspace.discard(moment);
            }
        }
    }
}

fn members(still: &Still) -> SetRef<'_> {
    match still {
        Still::Run(_, run) => SetRef::of_run(run),
        Still::Tree(moment, _) => Moment::items(moment),
        Still::String(_) => unreachable!("keys of other kinds were refused"),
    }
}

/// What is made of several sets.
#[derive(Clone, Copy)]
enum Combine {
    Intersection,
    Union,
    Difference,
}

impl Combine {
    fn of<'s>(self, sources: &'s Sources, room: MayTake<'s>) -> Combined<'s> {
        match self {
            Combine::Intersection => all_of(sources),
            Combine::Union => union(sources.present().collect(), room),
            Combine::Difference => first_alone(sources, room),
        }
    }

    /// How many members are looked at, about.
    fn steps(self, sources: &Sources) -> u64 {
        let lens = || {
            sources
                .sets
                .iter()
                .map(|set| set.as_ref().map_or(0, |set| members(set).len()))
        };
        match self {
            Combine::Intersection => lens().min().unwrap_or(0) * sources.sets.len() as u64,
            Combine::Union => lens().sum(),
            Combine::Difference => lens().next().unwrap_or(0) * sources.sets.len() as u64,
        }
    }
}

fn all_of(sources: &Sources) -> Combined<'_> {
    let is_missing = sources.sets.iter().any(Option::is_none);
    match is_missing {
        true => Box::new(std::iter::empty()),
        false => intersection(sources.present().collect()),
    }
}

fn first_alone<'s>(sources: &'s Sources, room: MayTake<'s>) -> Combined<'s> {
    let others = sources.sets[1..].iter().flatten().map(members);
    match &sources.sets[0] {
        None => Box::new(std::iter::empty()),
        Some(first) => difference(members(first), others.collect(), room),
    }
}

/// Answers with the members that there are.
fn answer(context: &mut Context<'_>, args: &Args<'_>, combine: Combine) -> Handled {
    let mut shards = context.store.lock_keys(args.keys());
    let sources = Sources::read(context.server, &mut shards, args.keys());
    drop(shards);
    let sources = sources?;
    if combining::is_apart(context, combine.steps(&sources)) {
        let protocol = context.reply.protocol();
        return combining::answer(context, args, move |growing| {
            let (mut pieces, mut count) = (Pieces::default(), 0);
            let growing = RefCell::new(growing);
            let room = |bytes: usize| growing.borrow_mut().may_take(bytes);
            for name in combine.of(&sources, &room) {
                let mut scratch = [0; DECIMAL_MAX];
                let name = name.text(&mut scratch);
                if !growing.borrow_mut().may_go_on(name.len()) {
                    break;
                }
                pieces.write(protocol, |reply| reply.bulk(name));
                count += 1;
            }
            let mut head = Vec::new();
            let out = &mut head;
            Writer::new(out, protocol).set(count);
            pieces.put_before(head);
            pieces
        });
    }
    let (start, mut count) = (context.reply.position(), 0);
    let mut bulks = context.reply.bulks();
    let growing = RefCell::new(Growing::new(context.server));
    let room = |bytes: usize| growing.borrow_mut().may_take(bytes);
    for name in combine.of(&sources, &room) {
        bulks.put(name.text(&mut [0; DECIMAL_MAX]));
        count += 1;
    }
    bulks.finish();
    if growing.borrow().refused().is_some() {
        return Err(failure::OUT_OF_MEMORY);
    }
    context.reply.put_before(start, |writer| writer.set(count));
    Ok(Next::Done)
}

/// Sets of which a set is made.
struct Making {
    sources: Sources,
    combine: Combine,
}

impl Combination for Making {
    fn steps(&self) -> u64 {
        self.combine.steps(&self.sources)
    }

    fn make(&self, target: &[u8], _: Option<(&mut Shards<'_>, &[Key<'_>])>) -> Made {
        let server = self.sources.server;
        let mut builder = server.keyspace.builder(Kind::Set, target).distinct();
        let growing = RefCell::new(Growing::doubled(server));
        let room = |bytes: usize| growing.borrow_mut().may_take(bytes);
        for name in self.combine.of(&self.sources, &room) {
            let added = builder.push(&Item::single(name));
            debug_assert!(added.is_ok(), "each member comes once");
            if !growing.borrow_mut().may_go_on(name.text_len()) {
                break;
            }
        }
        if let Some(bytes) = growing.borrow().refused() {
            return Made::refused(server, bytes);
        }
        let len = builder.len();
        let value = (len > 0).then(|| {
            let form = Packed::form_of(&server.settings, &builder);
            Detached::built(builder, form, None)
        });
        Made::new(server, len, value)
    }
}

/// Gives the key in the first argument the members that `combine` finds in those that follow.
fn store(context: &mut Context<'_>, args: &Args<'_>, combine: Combine, event: Event) -> Handled {
    let server = context.server;
    let keys: Vec<Key<'_>> = args.keys().skip(1).collect();
    combining::store(context, args, (args.key(1), &keys), event, |shards| {
        let sources = Sources::read(server, shards, keys.iter().copied())?;
        Ok(Some(Making { sources, combine }))
    })
}

/// `SINTER key [key ...]`
pub(super) fn sinter(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    answer(context, args, Combine::Intersection)
}

/// `SUNION key [key ...]`
pub(super) fn sunion(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    answer(context, args, Combine::Union)
}

/// `SDIFF key [key ...]`
pub(super) fn sdiff(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    answer(context, args, Combine::Difference)
}

/// `SINTERSTORE destination key [key ...]`
pub(super) fn sinterstore(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    store(context, args, Combine::Intersection, Event::SINTERSTORE)
}

/// `SUNIONSTORE destination key [key ...]`
pub(super) fn sunionstore(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    store(context, args, Combine::Union, Event::SUNIONSTORE)
}

/// `SDIFFSTORE destination key [key ...]`
pub(super) fn sdiffstore(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    store(context, args, Combine::Difference, Event::SDIFFSTORE)
}

/// `SINTERCARD numkeys key [key ...] [LIMIT limit]`
pub(super) fn sintercard(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let count = args
        .integer(1)
        .ok()
        .and_then(|count| usize::try_from(count).ok());
    let count = count.filter(|&count| count > 0).ok_or(NO_KEYS)?;
    if count > args.len() - 2 {
        return Err(TOO_MANY_KEYS);
    }
    let (mut at, mut limit) = (2 + count, 0);
    while at < args.len() {
        if !args.is(at, "LIMIT") || at + 1 == args.len() {
            return Err(failure::SYNTAX);
        }
        let value = args
            .integer(at + 1)
            .ok()
            .and_then(|limit| usize::try_from(limit).ok());
        limit = value.ok_or(NEGATIVE_LIMIT)?;
        at += 2;
    }
    let keys = (2..2 + count).map(|at| args.key(at));
    let mut shards = context.store.lock_keys(keys.clone());
    let sources = Sources::read(context.server, &mut shards, keys);
    drop(shards);
    let sources = sources?;
    let most = if limit == 0 { usize::MAX } else { limit };
    let combine = Combine::Intersection;
    if combining::is_apart(context, combine.steps(&sources).min(most as u64)) {
        let protocol = context.reply.protocol();
        return combining::answer(context, args, move |_| {
            let found = all_of(&sources).take(most).count();
            let mut pieces = Pieces::default();
            pieces.write(protocol, |reply| reply.integer(found as i64));
            pieces
        });
    }
    let found = all_of(&sources).take(most).count();
    context.reply.integer(found as i64);
    Ok(Next::Done)
}
