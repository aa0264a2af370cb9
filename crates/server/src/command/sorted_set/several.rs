//! Commands on several sets, sorted or not: ZUNION ZINTER ZDIFF, ZUNIONSTORE ZINTERSTORE ZDIFFSTORE,
//! ZINTERCARD.
//!
//! Of each set its moment is taken, or a copy if it is small. All shards stay locked, but for large sets that
//! are walked through ([`super::super::combining`]). Where few members are looked for in a large set, they
//! are looked up one by one.

use std::collections::HashMap;

use keyspace::collection::cell::{Cell, DECIMAL_MAX};
use keyspace::collection::kind::Members;
use keyspace::collection::sorted::{score_of, scored};
use keyspace::{AnyItems, Detached, Key, Kind};
use resp::number::parse_f64;
use resp::reply::{Protocol, Writer};

use super::super::combining::{self, Combination, Made};
use super::super::items::cells::write_cell;
use super::super::{Args, Context, Failure, Handled, Next, failure};
use crate::config::Packed;
use crate::observe::notify::Event;
use crate::request::Pieces;
use crate::server::Server;
use crate::shared::memory::Growing;
use crate::store::{Shards, Still};

const WEIGHT_NOT_A_FLOAT: Failure = Failure::of("ERR weight value is not a float");
const NEGATIVE_LIMIT: Failure = Failure::of("ERR LIMIT can't be negative");
/// How many times as many members a set may have as are looked for in it, so that it is walked through.
const WALK_RATIO: u64 = 8;

/// What is made of several sets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Combine {
    Union,
    Intersection,
    Difference,
}

/// How one score is made of two.
#[derive(Clone, Copy)]
enum Aggregate {
    Sum,
    Min,
    Max,
}

impl Aggregate {
    fn of(self, one: f64, other: f64) -> f64 {
        match self {
            // Infinities of both signs make zero.
            Aggregate::Sum => zero_if_nan(one + other),
            Aggregate::Min => one.min(other),
            Aggregate::Max => one.max(other),
        }
    }
}

fn zero_if_nan(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

/// A request: its keys and options.
struct Plan<'a> {
    rule: Rule,
    form: Form,
    /// The argument at which the options begin.
    options_at: usize,
    keys: Vec<Key<'a>>,
    with_scores: bool,
    limit: usize,
}

/// How scores are made of those in several sets.
#[derive(Clone)]
struct Rule {
    combine: Combine,
    weights: Vec<f64>,
    aggregate: Aggregate,
}

/// Which options a command takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Returns,
    Stores,
    Counts,
}

impl<'a> Plan<'a> {
    /// The keys. `at`: the argument with their number.
    fn parse(
        args: &Args<'a>,
        name: &str,
        (combine, form): (Combine, Form),
        mut at: usize,
    ) -> Result<Plan<'a>, Failure> {
        let count = args.integer(at)?;
        if count < 1 {
            let text = format!("ERR at least 1 input key is needed for '{name}' command");
            return Err(Failure::new(text));
        }
        at += 1;
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if count > args.len() - at {
            return Err(failure::SYNTAX);
        }
        let keys: Vec<Key<'a>> = (at..at + count).map(|at| args.key(at)).collect();
        at += count;
        let rule = Rule {
            combine,
            weights: vec![1.0; keys.len()],
            aggregate: Aggregate::Sum,
        };
        Ok(Plan {
            rule,
            form,
            options_at: at,
            keys,
            with_scores: false,
            limit: usize::MAX,
        })
    }

    /// Reads the options, which Redis looks at when it has seen the types of the keys.
    fn take_options(&mut self, args: &Args<'a>) -> Result<(), Failure> {
        let (form, mut at) = (self.form, self.options_at);
        let has_scores = form != Form::Counts && self.rule.combine != Combine::Difference;
        while at < args.len() {
            let left = args.len() - at - 1;
            if has_scores && left >= self.keys.len() && args.is(at, "WEIGHTS") {
                for (number, weight) in self.rule.weights.iter_mut().enumerate() {
                    let found = parse_f64(args.get(at + 1 + number));
                    *weight = found.ok_or(WEIGHT_NOT_A_FLOAT)?;
                }
                at += self.keys.len();
            } else if has_scores && left >= 1 && args.is(at, "AGGREGATE") {
                at += 1;
                self.rule.aggregate = match () {
                    () if args.is(at, "SUM") => Aggregate::Sum,
                    () if args.is(at, "MIN") => Aggregate::Min,
                    () if args.is(at, "MAX") => Aggregate::Max,
                    () => return Err(failure::SYNTAX),
                };
            } else if form == Form::Returns && args.is(at, "WITHSCORES") {
                self.with_scores = true;
            } else if form == Form::Counts && left >= 1 && args.is(at, "LIMIT") {
                at += 1;
                let limit = args.integer(at).ok();
                let limit = limit.and_then(|limit| usize::try_from(limit).ok());
                self.limit = match limit.ok_or(NEGATIVE_LIMIT)? {
                    0 => usize::MAX,
                    limit => limit,
                };
            } else {
                return Err(failure::SYNTAX);
            }
            at += 1;
        }
        Ok(())
    }
}

/// Sets as they are at one moment, those of missing keys without members.
struct Sources {
    server: &'static Server,
    sets: Vec<Option<Still>>,
}

impl Sources {
    /// The sets of some keys, whose shards are locked.
    ///
    /// # Errors
    /// A key is of another kind.
    fn read(
        server: &'static Server,
        shards: &mut Shards<'_>,
        keys: &[Key<'_>],
    ) -> Result<Sources, Failure> {
        let mut sources = Sources {
            server,
            sets: Vec::new(),
        };
        for &key in keys {
            let mut shard = shards.of(key);
            let entry = shard.read(key);
            let is_other = |kind: Kind| !matches!(kind, Kind::Set | Kind::SortedSet);
            if entry.as_ref().is_some_and(|entry| is_other(entry.kind())) {
                return Err(failure::WRONG_TYPE);
            }
            sources.sets.push(entry.map(|mut entry| entry.still()));
        }
        Ok(sources)
    }

    /// The items of a set; `None`: there is no such key.
    fn items(&self, number: usize) -> Option<AnyItems<'_>> {
        Some(match self.sets[number].as_ref()? {
            Still::Run(kind, run) => AnyItems::of_run(*kind, run),
            Still::Tree(moment, _) => moment.all_items(),
            Still::String(_) => unreachable!("keys of other kinds were refused"),
        })
    }

    fn len(&self, number: usize) -> u64 {
        self.items(number).map_or(0, AnyItems::len)
    }

    /// Members with their scores; those of a set that is not sorted have 1.
    fn members(&self, number: usize) -> impl Iterator<Item = (Cell<'_>, f64)> {
        self.items(number).into_iter().flat_map(|items| {
            let is_sorted = matches!(items, AnyItems::SortedSet(_));
            items.iter().map(move |item| {
                let score = if is_sorted { score_of(&item) } else { 1.0 };
                (item.name, score)
            })
        })
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

/// The score of a member in the set of a key.
fn look_up(shards: &mut Shards<'_>, key: Key<'_>, member: Cell<'_>) -> Option<f64> {
    let mut shard = shards.of(key);
    let entry = shard.find(key)?;
    let view = entry.as_ref();
    match entry.kind() {
        Kind::SortedSet => view.sorted().score(member),
        Kind::Set => view.items::<Members>().get(member).map(|_| 1.0),
        Kind::String | Kind::Hash | Kind::List | Kind::Stream => None,
    }
}

/// Members and their scores, in no order.
type Found<'s> = HashMap<Cell<'s>, f64>;

/// Bytes of a member in a table that is as full as tables may be.
const FOUND_BYTES: usize = 40;

/// Whether a table may take one member more: when it is full, another of twice the size takes its place.
fn may_grow(found: &Found<'_>, growing: &mut Growing<'_>) -> bool {
    found.len() < found.capacity() || growing.may_take(2 * (found.len() + 1) * FOUND_BYTES)
}

/// Keeps the members that another set has, or has not, by `keep`. `key`: that of the set, if its shard is
/// locked.
fn narrow<'s>(
    found: &mut Found<'s>,
    (sources, number): (&'s Sources, usize),
    key: Option<(&mut Shards<'_>, Key<'_>)>,
    growing: &mut Growing<'_>,
    mut keep: impl FnMut(f64, Option<f64>) -> Option<f64>,
) {
    let mut decide = |score: &mut f64, other: Option<f64>| {
        let kept = keep(*score, other);
        *score = kept.unwrap_or(*score);
        kept.is_some()
    };
    if let Some((shards, key)) = key
        && sources.len(number) / WALK_RATIO > found.len() as u64
    {
        found.retain(|&member, score| decide(score, look_up(shards, key, member)));
        return;
    }
    let mut others = Found::new();
    for (member, score) in sources.members(number) {
        if found.contains_key(&member) {
            if !may_grow(&others, growing) {
                return;
            }
            others.insert(member, score);
        }
    }
    found.retain(|member, score| decide(score, others.get(member).copied()));
}

impl Rule {
    /// The numbers of the sets in the order in which they are looked at.
    fn order(&self, sources: &Sources) -> Vec<usize> {
        let mut numbers: Vec<usize> = (0..sources.sets.len()).collect();
        if self.combine != Combine::Difference {
            // As Redis adds them up: the smallest first.
            numbers.sort_by_key(|&number| sources.len(number));
        }
        numbers
    }

    /// How many members are looked at, about, if all sets are walked through; `None`: some would rather be
    /// asked for a few members each.
    fn steps(&self, sources: &Sources) -> Option<u64> {
        let numbers = self.order(sources);
        let first = sources.len(numbers[0]);
        let walks = |&number: &usize| sources.len(number) / WALK_RATIO <= first;
        let is_walk = self.combine == Combine::Union || numbers.iter().all(walks);
        is_walk.then(|| numbers.iter().map(|&number| sources.len(number)).sum())
    }

    /// The members, in the order of their scores; not all of them if `growing` is refused. `shards`: those of
    /// the keys, if they are locked.
    fn run<'s>(
        &self,
        sources: &'s Sources,
        mut asked: Option<(&mut Shards<'_>, &[Key<'_>])>,
        growing: &mut Growing<'_>,
    ) -> Vec<(f64, Cell<'s>)> {
        let numbers = self.order(sources);
        let weighted = |number: usize, score: f64| zero_if_nan(self.weights[number] * score);
        let mut found = Found::new();
        let add = |found: &mut Found<'s>, number: usize, growing: &mut Growing<'_>| {
            for (member, score) in sources.members(number) {
                if !may_grow(found, growing) {
                    return;
                }
                let score = weighted(number, score);
                let sum = found.entry(member);
                sum.and_modify(|sum| *sum = self.aggregate.of(*sum, score))
                    .or_insert(score);
            }
        };
        add(&mut found, numbers[0], growing);
        for &number in &numbers[1..] {
            if growing.refused().is_some() {
                return Vec::new();
            }
            let key = asked
                .as_mut()
                .map(|(shards, keys)| (&mut **shards, keys[number]));
            let from = (sources, number);
            match self.combine {
                Combine::Union => add(&mut found, number, growing),
                Combine::Intersection => narrow(&mut found, from, key, growing, |score, other| {
                    // As in Redis, what is no number makes the sum zero, and is no minimum or maximum.
                    Some(self.aggregate.of(score, self.weights[number] * other?))
                }),
                Combine::Difference => narrow(&mut found, from, key, growing, |score, other| {
                    other.is_none().then_some(score)
                }),
            }
        }
        if !growing.may_take(found.len() * size_of::<(f64, Cell<'_>)>()) {
            return Vec::new();
        }
        let mut all: Vec<_> = found
            .into_iter()
            .map(|(member, score)| (score, member))
            .collect();
        all.sort_unstable_by(|one, other| {
            let by_score = (one.0 + 0.0).total_cmp(&(other.0 + 0.0));
            let text = |cell: Cell<'s>| cell.text(&mut [0; DECIMAL_MAX]).to_vec();
            by_score.then_with(|| match (one.1, other.1) {
                (Cell::Bytes(one), Cell::Bytes(other)) => one.cmp(other),
                (one, other) => text(one).cmp(&text(other)),
            })
        });
        all
    }
}

fn answer(context: &mut Context<'_>, args: &Args<'_>, name: &str, combine: Combine) -> Handled {
    let mut plan = Plan::parse(args, name, (combine, Form::Returns), 1)?;
    let mut shards = context.store.lock_keys(plan.keys.iter().copied());
    let sources = Sources::read(context.server, &mut shards, &plan.keys)?;
    plan.take_options(args)?;
    let protocol = context.reply.protocol();
    let (rule, with_scores) = (plan.rule, plan.with_scores);
    let steps = rule.steps(&sources).unwrap_or(0);
    if combining::is_apart(context, steps) {
        drop(shards);
        return combining::answer(context, args, move |growing| {
            let all = rule.run(&sources, None, growing);
            let mut pieces = Pieces::default();
            pieces.write(protocol, |reply| {
                reply.array(array_len(&all, with_scores, protocol))
            });
            for member in &all {
                if !growing.may_go_on(size_of::<f64>() + member.1.text_len()) {
                    break;
                }
                pieces.write(protocol, |reply| write_member(reply, member, with_scores));
            }
            pieces
        });
    }
    let mut growing = Growing::new(context.server);
    let all = rule.run(&sources, Some((&mut shards, &plan.keys)), &mut growing);
    drop(shards);
    if growing.refused().is_some() {
        return Err(failure::OUT_OF_MEMORY);
    }
    let reply = &mut context.reply;
    reply.array(array_len(&all, with_scores, protocol));
    for member in &all {
        write_member(reply, member, with_scores);
    }
    Ok(Next::Done)
}

/// With RESP3 a member and its score are an array.
fn nests(with_scores: bool, protocol: Protocol) -> bool {
    with_scores && protocol == Protocol::Resp3
}

fn array_len(all: &[(f64, Cell<'_>)], with_scores: bool, protocol: Protocol) -> usize {
    let is_flat = with_scores && !nests(with_scores, protocol);
    all.len() * if is_flat { 2 } else { 1 }
}

fn write_member(reply: &mut Writer<'_>, (score, member): &(f64, Cell<'_>), with_scores: bool) {
    if nests(with_scores, reply.protocol) {
        reply.array(2);
    }
    write_cell(reply, *member);
    if with_scores {
        reply.score(*score);
    }
}

/// Sets of which a sorted set is made.
struct Making {
    sources: Sources,
    rule: Rule,
}

impl Combination for Making {
    fn steps(&self) -> u64 {
        self.rule.steps(&self.sources).unwrap_or(0)
    }

    fn make(&self, target: &[u8], shards: Option<(&mut Shards<'_>, &[Key<'_>])>) -> Made {
        let server = self.sources.server;
        let mut growing = Growing::new(server);
        let all = self.rule.run(&self.sources, shards, &mut growing);
        if let Some(bytes) = growing.refused() {
            return Made::refused(server, bytes);
        }
        let packed = Packed::sorted_set(&server.settings);
        let is_packed = all.len() <= packed.entries
            && all
                .iter()
                .all(|(_, member)| member.text_len() <= packed.value);
        let mut builder = server.keyspace.builder(Kind::SortedSet, target);
        let mut growing = Growing::doubled(server);
        for &(score, member) in &all {
            if !growing.may_go_on(size_of::<f64>() + member.text_len()) {
                break;
            }
            // Where Redis holds the set packed there is no -0.
            let score = if is_packed { score + 0.0 } else { score };
            let added = builder.push(&scored(member, score, &mut [0; 8]));
            debug_assert!(added.is_ok(), "each member comes once");
        }
        if let Some(bytes) = growing.refused() {
            return Made::refused(server, bytes);
        }
        let value = (!all.is_empty()).then(|| {
            let form = Packed::form_of(&server.settings, &builder);
            Detached::built(builder, form, None)
        });
        let len = all.len() as u64;
        Made::new(server, len, value)
    }
}

fn store(
    context: &mut Context<'_>,
    args: &Args<'_>,
    name: &str,
    (combine, event): (Combine, Event),
) -> Handled {
    let mut plan = Plan::parse(args, name, (combine, Form::Stores), 2)?;
    let server = context.server;
    let keys = plan.keys.clone();
    combining::store(context, args, (args.key(1), &keys), event, |shards| {
        let sources = Sources::read(server, shards, &plan.keys)?;
        plan.take_options(args)?;
        let rule = plan.rule;
        Ok(Some(Making { sources, rule }))
    })
}

/// `ZUNION numkeys key [key ...] [WEIGHTS weight ...] [AGGREGATE SUM | MIN | MAX] [WITHSCORES]`
pub(super) fn zunion(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    answer(context, args, "zunion", Combine::Union)
}

/// `ZINTER numkeys key [key ...] [WEIGHTS weight ...] [AGGREGATE SUM | MIN | MAX] [WITHSCORES]`
pub(super) fn zinter(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    answer(context, args, "zinter", Combine::Intersection)
}

/// `ZDIFF numkeys key [key ...] [WITHSCORES]`
pub(super) fn zdiff(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    answer(context, args, "zdiff", Combine::Difference)
}

/// `ZUNIONSTORE destination numkeys key [key ...] [WEIGHTS weight ...] [AGGREGATE SUM | MIN | MAX]`
pub(super) fn zunionstore(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let how = (Combine::Union, Event::ZUNIONSTORE);
    store(context, args, "zunionstore", how)
}

/// `ZINTERSTORE destination numkeys key [key ...] [WEIGHTS weight ...] [AGGREGATE SUM | MIN | MAX]`
pub(super) fn zinterstore(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let how = (Combine::Intersection, Event::ZINTERSTORE);
    store(context, args, "zinterstore", how)
}

/// `ZDIFFSTORE destination numkeys key [key ...]`
pub(super) fn zdiffstore(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let how = (Combine::Difference, Event::ZDIFFSTORE);
    store(context, args, "zdiffstore", how)
}

/// `ZINTERCARD numkeys key [key ...] [LIMIT limit]`
pub(super) fn zintercard(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let how = (Combine::Intersection, Form::Counts);
    let mut plan = Plan::parse(args, "zintercard", how, 1)?;
    let mut shards = context.store.lock_keys(plan.keys.iter().copied());
    let sources = Sources::read(context.server, &mut shards, &plan.keys)?;
    plan.take_options(args)?;
    let (rule, limit) = (plan.rule, plan.limit);
    if combining::is_apart(context, rule.steps(&sources).unwrap_or(0)) {
        let protocol = context.reply.protocol();
        drop(shards);
        return combining::answer(context, args, move |growing| {
            let found = rule.run(&sources, None, growing).len().min(limit);
            let mut pieces = Pieces::default();
            pieces.write(protocol, |reply| reply.integer(found as i64));
            pieces
        });
    }
    let mut growing = Growing::new(context.server);
    let found = rule.run(&sources, Some((&mut shards, &plan.keys)), &mut growing);
    let found = found.len().min(limit);
    drop(shards);
    if growing.refused().is_some() {
        return Err(failure::OUT_OF_MEMORY);
    }
    context.reply.integer(found as i64);
    Ok(Next::Done)
}
