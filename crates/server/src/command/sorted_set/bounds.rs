//! Ranges of sorted sets as requests write them, and the ranks that they are: each is found in O(log n).

use keyspace::collection::Base;
use keyspace::collection::sorted::score_of;
use keyspace::{Bound, SortedRef};
use resp::number::parse_f64;

use super::super::{Args, Failure};

const NOT_A_SCORE: Failure = Failure::of("ERR min or max is not a float");
const NOT_A_MEMBER: Failure = Failure::of("ERR min or max not valid string range item");

/// The ranks between two, the last excluded; none if they are not in order.
fn between(from: u64, to: u64) -> (u64, u64) {
    (from.min(to), to)
}

/// A range of ranks.
#[derive(Clone, Copy)]
pub(super) struct Ranks {
    start: i64,
    stop: i64,
}

impl Ranks {
    /// From the arguments `start` and `stop`.
    pub(super) fn parse(args: &Args<'_>, start: usize, stop: usize) -> Result<Ranks, Failure> {
        let (start, stop) = (args.integer(start)?, args.integer(stop)?);
        Ok(Ranks { start, stop })
    }

    /// Of so many members. Negative ones count from the end.
    pub(super) fn ranks(self, len: u64) -> (u64, u64) {
        let len = len as i64;
        let absolute = |rank: i64| if rank < 0 { len + rank } else { rank };
        let start = absolute(self.start).clamp(0, len);
        let stop = absolute(self.stop).saturating_add(1).clamp(0, len);
        between(start as u64, stop as u64)
    }
}

/// A range of scores.
#[derive(Clone, Copy)]
pub(super) struct Scores {
    min: f64,
    is_min_excluded: bool,
    max: f64,
    is_max_excluded: bool,
}

/// An end of a range of scores, and whether it is excluded.
fn score(text: &[u8]) -> Result<(f64, bool), Failure> {
    let (text, is_excluded) = match text.strip_prefix(b"(") {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    // As for C's `strtod`, blanks in front do not count, a zero byte is the end, and nothing at all is zero.
    // What is beyond all doubles is infinite.
    let end = text.iter().position(|&byte| byte == 0);
    let text = &text[..end.unwrap_or(text.len())];
    let number = text.trim_ascii_start();
    let beyond = || str::from_utf8(number).ok()?.parse().ok();
    let score = match text {
        [] => Some(0.0),
        _ => parse_f64(number).or_else(beyond),
    };
    let score = score.filter(|score: &f64| !score.is_nan());
    Ok((score.ok_or(NOT_A_SCORE)?, is_excluded))
}

impl Scores {
    /// From the arguments `min` and `max`.
    pub(super) fn parse(args: &Args<'_>, min: usize, max: usize) -> Result<Scores, Failure> {
        let (min, is_min_excluded) = score(args.get(min))?;
        let (max, is_max_excluded) = score(args.get(max))?;
        Ok(Scores {
            min,
            is_min_excluded,
            max,
            is_max_excluded,
        })
    }

    /// Where it begins and ends.
    fn bounds(self) -> [Bound<'static>; 2] {
        let from = match self.is_min_excluded {
            true => Bound::BehindScore(self.min),
            false => Bound::Score(self.min),
        };
        let to = match self.is_max_excluded {
            true => Bound::Score(self.max),
            false => Bound::BehindScore(self.max),
        };
        [from, to]
    }

    /// The ranks; `None` as long as [`Scores::cold`] names leaves.
    pub(super) fn ranks(self, members: SortedRef<'_>) -> Option<(u64, u64)> {
        if members.has_cold_leaves() && !self.cold(members).is_empty() {
            return None;
        }
        let [from, to] = self.bounds().map(|bound| members.count_before(bound));
        Some(between(from, to))
    }

    /// The records of the leaves that have to be in memory for [`Scores::ranks`] and are cold.
    pub(super) fn cold(self, members: SortedRef<'_>) -> Vec<Base> {
        let bounds = self.bounds().into_iter();
        bounds.filter_map(|bound| members.cold_at(bound)).collect()
    }
}

/// An end of a range of members.
#[derive(Clone, Copy)]
enum End<'a> {
    First,
    Last,
    Included(&'a [u8]),
    Excluded(&'a [u8]),
}

impl<'a> End<'a> {
    fn parse(text: &'a [u8]) -> Result<End<'a>, Failure> {
        match text {
            b"-" => Ok(End::First),
            b"+" => Ok(End::Last),
            [b'[', member @ ..] => Ok(End::Included(member)),
            [b'(', member @ ..] => Ok(End::Excluded(member)),
            _ => Err(NOT_A_MEMBER),
        }
    }

    /// Where it is among the members that have this score; `Err` for the rank, if it is an end of them all.
    /// Included, a member is behind the end if the range begins there (`is_start`), else before it.
    fn bound(self, members: SortedRef<'_>, score: f64, is_start: bool) -> Result<Bound<'a>, u64> {
        Ok(match self {
            End::First => return Err(0),
            End::Last => return Err(members.len()),
            End::Included(member) if is_start => Bound::Member(score, member),
            End::Excluded(member) if !is_start => Bound::Member(score, member),
            End::Included(member) | End::Excluded(member) => Bound::BehindMember(score, member),
        })
    }
}

/// A range of members that all have one score; where they do not, what is in it is not said.
#[derive(Clone, Copy)]
pub(super) struct Lex<'a> {
    min: End<'a>,
    max: End<'a>,
}

impl<'a> Lex<'a> {
    /// From the arguments `min` and `max`.
    pub(super) fn parse(args: &Args<'a>, min: usize, max: usize) -> Result<Lex<'a>, Failure> {
        let (min, max) = (End::parse(args.get(min))?, End::parse(args.get(max))?);
        Ok(Lex { min, max })
    }

    /// The ranks; `None` as long as [`Lex::cold`] names leaves. Which these are follows from the score of the
    /// first member, so they may be others when a command has its lock than before.
    pub(super) fn ranks(self, members: SortedRef<'_>) -> Option<(u64, u64)> {
        if members.has_cold_leaves() && !self.cold(members).is_empty() {
            return None;
        }
        let Some(score) = members.items().at(0).map(|item| score_of(&item)) else {
            return Some((0, 0));
        };
        let rank = |bound: Result<Bound<'_>, u64>| match bound {
            Ok(bound) => members.count_before(bound),
            Err(rank) => rank,
        };
        let [from, to] = self.bounds(members, score).map(rank);
        Some(between(from, to))
    }

    fn bounds(self, members: SortedRef<'_>, score: f64) -> [Result<Bound<'a>, u64>; 2] {
        let (min, max) = (self.min, self.max);
        [
            min.bound(members, score, true),
            max.bound(members, score, false),
        ]
    }

    /// The records of the leaves that have to be in memory for [`Lex::ranks`] and are cold: the first alone,
    /// if it is one of them.
    pub(super) fn cold(self, members: SortedRef<'_>) -> Vec<Base> {
        let first = members.items().cold_from_rank(0, 1, false);
        if !first.is_empty() || members.is_empty() {
            return first;
        }
        let score = members.items().at(0).map(|item| score_of(&item));
        let bounds = self.bounds(members, score.unwrap_or_default());
        let cold = bounds
            .into_iter()
            .flatten()
            .filter_map(|bound| members.cold_at(bound));
        cold.collect()
    }
}
