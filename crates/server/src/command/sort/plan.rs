//! The options of SORT, and the order that they ask for.

use std::cmp::Ordering;

use keyspace::Key;

use super::super::{Args, Failure, failure};
use super::pattern::Pattern;

const BY_IN_CLUSTER: Failure = Failure::of("ERR BY option of SORT denied in Cluster mode.");
const GET_IN_CLUSTER: Failure = Failure::of("ERR GET option of SORT denied in Cluster mode.");

/// A request.
pub(super) struct Plan<'a> {
    pub(super) by: Option<Pattern<'a>>,
    /// Elements stay in the order of their collection.
    pub(super) is_unsorted: bool,
    pub(super) is_alpha: bool,
    pub(super) is_descending: bool,
    start: i64,
    count: i64,
    pub(super) gets: Vec<Pattern<'a>>,
    pub(super) store: Option<Key<'a>>,
}

impl<'a> Plan<'a> {
    /// Reads the options, in the order in which Redis finds mistakes.
    pub(super) fn parse(
        args: &Args<'a>,
        is_readonly: bool,
        is_cluster: bool,
    ) -> Result<Plan<'a>, Failure> {
        let mut plan = Plan {
            by: None,
            is_unsorted: false,
            is_alpha: false,
            is_descending: false,
            start: 0,
            count: -1,
            gets: Vec::new(),
            store: None,
        };
        let mut at = 2;
        while at < args.len() {
            let left = args.len() - at - 1;
            at += 1 + match () {
                () if args.is(at, "ASC") => {
                    plan.is_descending = false;
                    0
                }
                () if args.is(at, "DESC") => {
                    plan.is_descending = true;
                    0
                }
                () if args.is(at, "ALPHA") => {
                    plan.is_alpha = true;
                    0
                }
                () if args.is(at, "LIMIT") && left >= 2 => {
                    plan.start = args.integer(at + 1)?;
                    plan.count = args.integer(at + 2)?;
                    2
                }
                () if args.is(at, "STORE") && left >= 1 && !is_readonly => {
                    plan.store = Some(args.key(at + 1));
                    1
                }
                () if args.is(at, "BY") && left >= 1 => {
                    let pattern = Pattern::parse(args.get(at + 1));
                    let is_constant = Pattern::is_constant(args.get(at + 1));
                    if is_cluster && !is_constant {
                        return Err(BY_IN_CLUSTER);
                    }
                    plan.is_unsorted |= is_constant;
                    plan.by = Some(pattern);
                    1
                }
                () if args.is(at, "GET") && left >= 1 => {
                    if is_cluster {
                        return Err(GET_IN_CLUSTER);
                    }
                    plan.gets.push(Pattern::parse(args.get(at + 1)));
                    1
                }
                () => return Err(failure::SYNTAX),
            };
        }
        Ok(plan)
    }

    /// Whether keys are read that elements tell.
    pub(super) fn has_patterns(&self) -> bool {
        let is_key = |pattern: &Pattern<'_>| matches!(pattern, Pattern::Key { .. });
        self.gets.iter().any(is_key) || !self.is_unsorted && self.by.as_ref().is_some_and(is_key)
    }

    /// Which of `len` elements in order are wanted.
    pub(super) fn range(&self, len: usize) -> std::ops::Range<usize> {
        let within = |number: i64| usize::try_from(number).unwrap_or(usize::MAX).min(len);
        let start = within(self.start.max(0));
        let end = match self.count {
            ..0 => len,
            count => start.saturating_add(within(count)).min(len),
        };
        start..end
    }

    /// The order of two elements that differ in nothing but what is compared.
    pub(super) fn ordered(&self, order: Ordering) -> Ordering {
        match self.is_descending {
            true => order.reverse(),
            false => order,
        }
    }
}
