//! Commands that give scores and remove members: ZADD ZINCRBY ZREM.

use keyspace::collection::Base;
use keyspace::collection::any::Collection;
use keyspace::collection::cell::Cell;
use keyspace::{Key, SortedRef};
use resp::number::parse_f64;

use super::super::items::cells::cell;
use super::super::{Args, Context, Failure, Handled, Next, failure};
use crate::config::Packed;
use crate::observe::notify::Event;
use crate::store::SortedSetEdit;

const XX_AND_NX: Failure = Failure::of("ERR XX and NX options at the same time are not compatible");
const GT_LT_AND_NX: Failure =
    Failure::of("ERR GT, LT, and/or NX options at the same time are not compatible");
const ONE_PAIR: Failure = Failure::of("ERR INCR option supports a single increment-element pair");
const SUM_NOT_A_NUMBER: Failure = Failure::of("ERR resulting score is not a number (NaN)");

/// The options of ZADD.
#[derive(Clone, Copy, Default)]
pub(in crate::command) struct ScoreOptions {
    /// Members that are there stay as they are.
    pub(in crate::command) only_new: bool,
    /// Members that are not there are not added.
    pub(in crate::command) only_present: bool,
    only_greater: bool,
    only_less: bool,
    pub(in crate::command) counts_changes: bool,
    /// The score is added to the one that the member has.
    adds: bool,
}

impl ScoreOptions {
    /// The options, and where scores and members begin.
    fn parse(args: &Args<'_>) -> Result<(ScoreOptions, usize), Failure> {
        let (mut options, mut at) = (ScoreOptions::default(), 2);
        // A score that is a number needs no look at the names of options.
        let is_word = |at: usize| args.get(at).first().is_some_and(u8::is_ascii_alphabetic);
        while at < args.len() && is_word(at) {
            let option = match () {
                () if args.is(at, "NX") => &mut options.only_new,
                () if args.is(at, "XX") => &mut options.only_present,
                () if args.is(at, "GT") => &mut options.only_greater,
                () if args.is(at, "LT") => &mut options.only_less,
                () if args.is(at, "CH") => &mut options.counts_changes,
                () if args.is(at, "INCR") => &mut options.adds,
                () => break,
            };
            *option = true;
            at += 1;
        }
        let left = args.len() - at;
        if left == 0 || !left.is_multiple_of(2) {
            return Err(failure::SYNTAX);
        }
        let ScoreOptions {
            only_new,
            only_greater,
            only_less,
            ..
        } = options;
        if only_new && options.only_present {
            return Err(XX_AND_NX);
        }
        if only_new && (only_greater || only_less) || only_greater && only_less {
            return Err(GT_LT_AND_NX);
        }
        if options.adds && left > 2 {
            return Err(ONE_PAIR);
        }
        Ok((options, at))
    }
}

/// What became of a member.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Done {
    Added,
    Changed,
    /// It has the score already.
    Same,
    /// An option says that it stays as it is.
    Left,
}

/// Gives a member a score, or adds to it. Returns the score that the member has then.
fn put(
    edit: &mut SortedSetEdit<'_, '_>,
    options: ScoreOptions,
    member: Cell<'_>,
    score: f64,
) -> Result<(Done, f64), Failure> {
    let mut decided = Ok((Done::Left, score));
    edit.change(member, |before| {
        decided = decide(options, before, score);
        match decided {
            Ok((Done::Added | Done::Changed, after)) => Some(after),
            Ok((Done::Same | Done::Left, _)) | Err(_) => None,
        }
    });
    decided
}

/// What becomes of a member that has a score, or is not there; and the score that it has then.
fn decide(options: ScoreOptions, before: Option<f64>, score: f64) -> Result<(Done, f64), Failure> {
    let Some(before) = before else {
        let done = match options.only_present {
            true => Done::Left,
            false => Done::Added,
        };
        return Ok((done, score));
    };
    if options.only_new {
        return Ok((Done::Left, before));
    }
    let after = if options.adds { before + score } else { score };
    if after.is_nan() {
        return Err(SUM_NOT_A_NUMBER);
    }
    if options.only_less && after >= before || options.only_greater && after <= before {
        return Ok((Done::Left, before));
    }
    match after == before {
        true => Ok((Done::Same, before)),
        false => Ok((Done::Changed, after)),
    }
}

fn score(args: &Args<'_>, at: usize) -> Result<f64, Failure> {
    parse_f64(args.get(at)).ok_or(failure::NOT_A_FLOAT)
}

/// `ZADD key [NX | XX] [GT | LT] [CH] [INCR] score member [score member ...]`
///
/// Budget: one lookup of the key, two of each member, no allocation while the set keeps its size class.
pub(super) fn zadd(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let (options, from) = ScoreOptions::parse(args)?;
    add(context, args, options, from)
}

/// `ZINCRBY key increment member`
pub(super) fn zincrby(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let options = ScoreOptions {
        adds: true,
        ..ScoreOptions::default()
    };
    add(context, args, options, 2)
}

/// The records of leaves in the log alone in which ZADD finds members, or puts them.
pub(super) fn leaves_of_zadd(args: &Args<'_>, tree: &Collection, _: bool) -> Vec<Base> {
    match ScoreOptions::parse(args) {
        Ok((options, from)) => leaves_of(args, options.adds, from, tree),
        Err(_) => Vec::new(),
    }
}

/// The same of ZINCRBY.
pub(super) fn leaves_of_zincrby(args: &Args<'_>, tree: &Collection, _: bool) -> Vec<Base> {
    leaves_of(args, true, 2, tree)
}

fn leaves_of(args: &Args<'_>, adds: bool, from: usize, tree: &Collection) -> Vec<Base> {
    let Collection::SortedSet(set) = tree else {
        return Vec::new();
    };
    let pairs = (from..args.len().saturating_sub(1)).step_by(2);
    let records = pairs.filter_map(|at| {
        let (score, member) = (score(args, at).ok()?, Cell::of(args.get(at + 1)));
        let to = |before: Option<f64>| match adds {
            true => before.unwrap_or(0.0) + score,
            false => score,
        };
        Some(set.cold_records_of_move(member, &to))
    });
    records.flatten().collect()
}

/// Whether leaves are in the log alone that a sum with the score of a member needs: it got another score
/// since the leaves were found.
fn lacks_leaves(members: SortedRef<'_>, member: Cell<'_>, amount: f64) -> bool {
    let SortedRef::Tree(set) = members else {
        return false;
    };
    let sum = |before: Option<f64>| before.unwrap_or(0.0) + amount;
    set.cold_leaves() > 0 && !set.cold_records_of_move(member, &sum).is_empty()
}

fn add(context: &mut Context<'_>, args: &Args<'_>, options: ScoreOptions, from: usize) -> Handled {
    let pairs = (from..args.len()).step_by(2);
    for at in pairs.clone() {
        score(args, at)?;
        cell(args, at + 1)?;
    }
    add_scores(context, args.key(1), options, pairs, |at| {
        Ok((score(args, at)?, cell(args, at + 1)?))
    })
}

/// Gives members of a key scores, and answers as ZADD does. `pair`: the score and the member that begin at an
/// argument; both are valid.
pub(in crate::command) fn add_scores<'a>(
    context: &mut Context<'_>,
    key: Key<'_>,
    options: ScoreOptions,
    pairs: impl Iterator<Item = usize>,
    pair: impl Fn(usize) -> Result<(f64, Cell<'a>), Failure>,
) -> Handled {
    let packed = Packed::sorted_set(&context.server.settings);
    let event = if options.adds {
        Event::ZINCR
    } else {
        Event::ZADD
    };
    let mut shard = context.store.lock(key);
    let reply = &mut context.reply;
    if options.only_present && shard.find_sorted_set(key)?.is_none() {
        match options.adds {
            true => reply.null(),
            false => reply.integer(0),
        }
        return Ok(Next::Done);
    }
    let (mut added, mut changed) = (0, 0);
    let (mut last, mut lacks) = (None, false);
    shard.edit_items(key, event, packed, |edit: &mut SortedSetEdit<'_, '_>| {
        for at in pairs {
            let (score, member) = pair(at)?;
            if options.adds && lacks_leaves(edit.sorted(), member, score) {
                lacks = true;
                return Ok(());
            }
            let (done, score) = put(edit, options, member, score)?;
            added += i64::from(done == Done::Added);
            changed += i64::from(done == Done::Changed);
            last = (done != Done::Left).then_some(score);
        }
        Ok(())
    })?;
    match (options.adds, last) {
        _ if lacks => return Ok(Next::Retry),
        (true, Some(score)) => reply.score(score),
        (true, None) => reply.null(),
        (false, _) if options.counts_changes => reply.integer(added + changed),
        (false, _) => reply.integer(added),
    }
    Ok(Next::Done)
}

/// `ZREM key member [member ...]`
pub(super) fn zrem(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let (key, packed) = (args.key(1), Packed::sorted_set(&context.server.settings));
    let mut shard = context.store.lock(key);
    let Some(set) = shard.find_sorted_set(key)? else {
        context.reply.integer(0);
        return Ok(Next::Done);
    };
    let removed = set.edit(Event::ZREM, packed, |edit| {
        let mut removed = 0;
        // No set has a member that is longer than a cell can be.
        for member in (2..args.len()).filter_map(|at| cell(args, at).ok()) {
            if let Some(score) = edit.sorted().score(member) {
                edit.take(member, score);
                removed += 1;
            }
        }
        removed
    });
    context.reply.integer(removed);
    Ok(Next::Done)
}
