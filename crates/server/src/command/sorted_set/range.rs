//! Ranges: ZRANGE in all its forms, the commands that came before it, and ZRANGESTORE.
//!
//! Every range is one of ranks: its ends are found first, in O(log n), then the members are given out.

use keyspace::collection::Base;
use keyspace::collection::any::Collection;
use keyspace::collection::cell::{Cell, DECIMAL_MAX};
use keyspace::collection::kind;
use keyspace::collection::run::Item;
use keyspace::collection::sorted::score_of;
use keyspace::{Detached, ItemsRef, Key, Kind, SortedRef};
use resp::number::{DOUBLE_TEXT_LEN, format_shortest};
use resp::reply::{Protocol, Writer};

use super::super::combining::{self, Combination, Made};
use super::super::items::cells::{write_cell, write_value};
use super::super::items::moment::{Look, leave_or_retry, look_on};
use super::super::{Args, Context, Failure, Handled, Next, failure};
use super::bounds::{Lex, Ranks, Scores};
use crate::config::Packed;
use crate::observe::notify::Event;
use crate::server::Server;
use crate::shared::memory::Growing;
use crate::store::{Shards, Still};

const LIMIT_OF_RANKS: Failure = Failure::of(
    "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
);
const SCORES_BY_LEX: Failure =
    Failure::of("ERR syntax error, WITHSCORES not supported in combination with BYLEX");

/// What the ends of a range are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Rank,
    Score,
    Lex,
}

/// The form of a command.
#[derive(Clone, Copy)]
pub(super) struct Form {
    /// `None`: the request says it.
    by: Option<By>,
    is_reverse: Option<bool>,
    /// The members go to another key: its argument is the first.
    stores: bool,
}

/// The ends of a range.
#[derive(Clone, Copy)]
enum Ends<'a> {
    Ranks(Ranks),
    Scores(Scores),
    Lex(Lex<'a>),
}

/// A range as a request writes it.
struct Range<'a> {
    ends: Ends<'a>,
    is_reverse: bool,
    with_scores: bool,
    offset: i64,
    limit: i64,
}

impl<'a> Range<'a> {
    /// `start`: the argument at which the range begins.
    fn parse(args: &Args<'a>, form: Form, start: usize) -> Result<Range<'a>, Failure> {
        let (mut by, mut is_reverse) = (form.by, form.is_reverse);
        let (mut with_scores, mut offset, mut limit) = (false, 0, -1);
        let mut at = start + 2;
        while at < args.len() {
            if !form.stores && args.is(at, "WITHSCORES") {
                with_scores = true;
            } else if args.is(at, "LIMIT") && at + 2 < args.len() {
                (offset, limit) = (args.integer(at + 1)?, args.integer(at + 2)?);
                at += 2;
            } else if is_reverse.is_none() && args.is(at, "REV") {
                is_reverse = Some(true);
            } else if by.is_none() && args.is(at, "BYLEX") {
                by = Some(By::Lex);
            } else if by.is_none() && args.is(at, "BYSCORE") {
                by = Some(By::Score);
            } else {
                return Err(failure::SYNTAX);
            }
            at += 1;
        }
        let (by, is_reverse) = (by.unwrap_or(By::Rank), is_reverse.unwrap_or(false));
        if limit != -1 && by == By::Rank {
            return Err(LIMIT_OF_RANKS);
        }
        if with_scores && by == By::Lex {
            return Err(SCORES_BY_LEX);
        }
        let (min, max) = match is_reverse && by != By::Rank {
            true => (start + 1, start),
            false => (start, start + 1),
        };
        let ends = match by {
            By::Rank => Ends::Ranks(Ranks::parse(args, min, max)?),
            By::Score => Ends::Scores(Scores::parse(args, min, max)?),
            By::Lex => Ends::Lex(Lex::parse(args, min, max)?),
        };
        Ok(Range {
            ends,
            is_reverse,
            with_scores,
            offset,
            limit,
        })
    }

    /// The ranks of the members; `None` as long as leaves of its ends are in the log alone.
    fn ranks(&self, members: SortedRef<'_>) -> Option<(u64, u64)> {
        let len = members.len();
        let (from, to) = match self.ends {
            Ends::Ranks(ranks) => {
                let (from, to) = ranks.ranks(len);
                match self.is_reverse {
                    true => (len - to, len - from),
                    false => (from, to),
                }
            }
            Ends::Scores(scores) => scores.ranks(members)?,
            Ends::Lex(lex) => lex.ranks(members)?,
        };
        let Ok(offset) = u64::try_from(self.offset) else {
            return Some((0, 0));
        };
        let offset = offset.min(to - from);
        let count = (to - from - offset).min(u64::try_from(self.limit).unwrap_or(u64::MAX));
        Some(match self.is_reverse {
            true => (to - offset - count, to - offset),
            false => (from + offset, from + offset + count),
        })
    }
}

/// Leaves of a range that come back into memory for it; more are read by the walk that shows them.
const BACK_MOST: usize = 4;

/// The leaves that a range needs: first those of its ends.
fn leaves(args: &Args<'_>, tree: &Collection, walks: bool, form: Form) -> Vec<Base> {
    let start = if form.stores { 3 } else { 2 };
    let (Ok(range), Some(members)) = (Range::parse(args, form, start), SortedRef::of(tree)) else {
        return Vec::new();
    };
    let ends = match range.ends {
        Ends::Ranks(_) => Vec::new(),
        Ends::Scores(scores) => scores.cold(members),
        Ends::Lex(lex) => lex.cold(members),
    };
    if !ends.is_empty() {
        return ends;
    }
    let Some((from, to)) = range.ranks(members) else {
        return Vec::new();
    };
    let leaves = members.items().cold_between(from, to);
    match walks && !form.stores && leaves.len() > BACK_MOST {
        true => Vec::new(),
        false => leaves,
    }
}

/// Members of some ranks, a leaf at a time.
struct Walk {
    from: u64,
    to: u64,
    is_reverse: bool,
    with_scores: bool,
}

impl Walk {
    /// Shows the next members, of one leaf.
    #[inline]
    fn show<'e>(&mut self, items: ItemsRef<'e, kind::Scores>, visit: impl FnMut(Item<'e>)) {
        match self.is_reverse {
            true => self.to = items.items_before(self.from, self.to, visit),
            false => self.from = items.items_behind(self.from, self.to, visit),
        }
    }

    fn head(&self, writer: &mut Writer<'_>) {
        let is_flat = self.with_scores && writer.protocol == Protocol::Resp2;
        let count = (self.to - self.from) as usize;
        writer.array(count * if is_flat { 2 } else { 1 });
    }
}

impl Look<kind::Scores> for Walk {
    const STREAMS: bool = true;

    fn step(&mut self, items: ItemsRef<'_, kind::Scores>, writer: &mut Writer<'_>) -> bool {
        if self.with_scores && writer.protocol == Protocol::Resp3 {
            self.show(items, |item| write_scored(writer, &item, true));
            return self.from < self.to;
        }
        let mut bulks = writer.bulks();
        if self.with_scores || self.is_reverse {
            let with_scores = self.with_scores;
            self.show(items, |item| {
                bulks.put(item.name.text(&mut [0; DECIMAL_MAX]));
                if with_scores {
                    bulks.put(format_shortest(score_of(&item), &mut [0; DOUBLE_TEXT_LEN]));
                }
            });
        } else {
            let put = |name: Cell<'_>| bulks.put(name.text(&mut [0; DECIMAL_MAX]));
            self.from = items.names_behind(self.from, self.to, put);
        }
        bulks.finish();
        self.from < self.to
    }

    fn cold(&mut self, items: ItemsRef<'_, kind::Scores>, ahead: Option<usize>) -> Vec<Base> {
        let rank = match self.is_reverse {
            true => self.to.saturating_sub(1),
            false => self.from,
        };
        items.cold_from_rank(rank, ahead.unwrap_or(1), self.is_reverse)
    }
}

/// Answers with a member, and with its score if that is wanted: as a pair in RESP3.
pub(super) fn write_scored(writer: &mut Writer<'_>, item: &Item<'_>, with_score: bool) {
    if with_score && writer.protocol == Protocol::Resp3 {
        writer.array(2);
    }
    write_cell(writer, item.name);
    if with_score {
        write_value::<kind::Scores>(writer, item);
    }
}

fn answer(context: &mut Context<'_>, args: &Args<'_>, form: Form) -> Handled {
    let range = Range::parse(args, form, 2)?;
    let (key, slice) = (args.key(1), context.slice());
    let mut shard = context.store.lock(key);
    let Some(mut set) = shard.read_sorted_set(key)? else {
        context.reply.empty_array();
        return Ok(Next::Done);
    };
    let members = set.sorted();
    let Some((from, to)) = range.ranks(members) else {
        // Members came or went since the leaves were found.
        return Ok(Next::Retry);
    };
    let mut walk = Walk {
        from,
        to,
        is_reverse: range.is_reverse,
        with_scores: range.with_scores,
    };
    let reply = &mut context.reply;
    let start = reply.position();
    walk.head(reply);
    let items = members.items();
    let has_cold = set.has_cold_leaves();
    // Nothing to show needs no leaf.
    let has_more = walk.from < walk.to
        && (has_cold || walk.step(items, reply))
        && look_on(&mut walk, items, has_cold, reply, &slice);
    if !has_more {
        return Ok(Next::Done);
    }
    let moment = set.moment();
    drop(shard);
    Ok(leave_or_retry::<kind::Scores>(
        context, args, start, moment, walk,
    ))
}

/// What the request says.
const ANY: Form = Form {
    by: None,
    is_reverse: None,
    stores: false,
};
/// Of ZRANGESTORE.
const STORED: Form = Form {
    stores: true,
    ..ANY
};
const BY_RANK_REVERSE: Form = fixed(By::Rank, true);
const BY_SCORE: Form = fixed(By::Score, false);
const BY_SCORE_REVERSE: Form = fixed(By::Score, true);
const BY_LEX: Form = fixed(By::Lex, false);
const BY_LEX_REVERSE: Form = fixed(By::Lex, true);

const fn fixed(by: By, is_reverse: bool) -> Form {
    Form {
        by: Some(by),
        is_reverse: Some(is_reverse),
        stores: false,
    }
}

/// Functions for [`ItemsNeeded::By`](super::super::spec::ItemsNeeded).
macro_rules! leaves_of {
    ($($name:ident: $form:ident)*) => {
        $(pub(super) fn $name(args: &Args<'_>, tree: &Collection, walks: bool) -> Vec<Base> {
            leaves(args, tree, walks, $form)
        })*
    };
}

leaves_of! {
    leaves_of_zrange: ANY
    leaves_of_zrangestore: STORED
    leaves_of_zrevrange: BY_RANK_REVERSE
    leaves_of_zrangebyscore: BY_SCORE
    leaves_of_zrevrangebyscore: BY_SCORE_REVERSE
    leaves_of_zrangebylex: BY_LEX
    leaves_of_zrevrangebylex: BY_LEX_REVERSE
}

/// `ZRANGE key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]`
pub(super) fn zrange(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    answer(context, args, ANY)
}

/// `ZREVRANGE key start stop [WITHSCORES]`
pub(super) fn zrevrange(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    answer(context, args, BY_RANK_REVERSE)
}

/// `ZRANGEBYSCORE key min max [WITHSCORES] [LIMIT offset count]`
pub(super) fn zrangebyscore(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    answer(context, args, BY_SCORE)
}

/// `ZREVRANGEBYSCORE key max min [WITHSCORES] [LIMIT offset count]`
pub(super) fn zrevrangebyscore(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    answer(context, args, BY_SCORE_REVERSE)
}

/// `ZRANGEBYLEX key min max [LIMIT offset count]`
pub(super) fn zrangebylex(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    answer(context, args, BY_LEX)
}

/// `ZREVRANGEBYLEX key max min [LIMIT offset count]`
pub(super) fn zrevrangebylex(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    answer(context, args, BY_LEX_REVERSE)
}

/// An item of a set that is made as a whole. Where Redis holds few members there is no -0.
fn stored<'a>(item: &Item<'a>, is_packed: bool) -> Item<'a> {
    match is_packed && score_of(item) == 0.0 {
        true => Item::pair(item.name, Cell::Int(0)),
        false => *item,
    }
}

/// Members of some ranks of a sorted set at one moment, which another key gets.
struct Stored {
    server: &'static Server,
    /// None: there is no such key.
    set: Option<Still>,
    from: u64,
    to: u64,
}

impl Stored {
    /// Shows the members.
    fn visit(&self, mut visit: impl FnMut(Item<'_>)) {
        let items = match &self.set {
            Some(Still::Run(_, run)) => ItemsRef::<kind::Scores>::of_run(run),
            Some(Still::Tree(moment, _)) => moment.items(),
            Some(Still::String(_)) | None => return,
        };
        let mut from = self.from;
        while from < self.to {
            from = items.items_behind(from, self.to, &mut visit);
        }
    }
}

impl Drop for Stored {
    fn drop(&mut self) {
        if let Some(Still::Tree(moment, _)) = self.set.take() {
            self.server.keyspace.discard(moment);
        }
    }
}

impl Combination for Stored {
    fn steps(&self) -> u64 {
        match self.set {
            Some(Still::Tree(..)) => self.to - self.from,
            _ => 0,
        }
    }

    fn make(&self, target: &[u8], _: Option<(&mut Shards<'_>, &[Key<'_>])>) -> Made {
        let (settings, keyspace) = (&self.server.settings, &self.server.keyspace);
        let mut builder = keyspace.builder(Kind::SortedSet, target);
        let is_packed = self.to - self.from <= Packed::sorted_set(settings).entries as u64;
        let mut growing = Growing::new(self.server);
        self.visit(|item| {
            if growing.may_go_on(size_of::<f64>() + item.name.text_len()) {
                let added = builder.push(&stored(&item, is_packed));
                debug_assert!(added.is_ok(), "each member comes once");
            }
        });
        if let Some(bytes) = growing.refused() {
            return Made::refused(self.server, bytes);
        }
        let len = self.to - self.from;
        let value = (len > 0).then(|| {
            let form = Packed::form_of(settings, &builder);
            Detached::built(builder, form, None)
        });
        Made::new(self.server, len, value)
    }
}

/// `ZRANGESTORE destination source min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]`
pub(super) fn zrangestore(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let range = Range::parse(args, STORED, 3)?;
    let (server, target, source) = (context.server, args.key(1), args.key(2));
    let keys = (target, &[source][..]);
    combining::store(context, args, keys, Event::ZRANGESTORE, |shards| {
        let (mut shard, mut stored) = (
            shards.of(source),
            Stored {
                server,
                set: None,
                from: 0,
                to: 0,
            },
        );
        if let Some(mut set) = shard.read_sorted_set(source)? {
            let members = set.sorted();
            let is_there = |&(from, to): &(u64, u64)| {
                from >= to
                    || !members.has_cold_leaves()
                    || members.items().cold_between(from, to).is_empty()
            };
            let Some((from, to)) = range.ranks(members).filter(is_there) else {
                // Members came or went since the leaves were found.
                return Ok(None);
            };
            (stored.from, stored.to) = (from, to.max(from));
            stored.set = Some(set.still());
        }
        Ok(Some(stored))
    })
}
