//! The handlers of SORT and SORT_RO.

use std::cmp::Ordering;
use std::ops::Range;

use keyspace::collection::cell::{Cell, DECIMAL_MAX, TEXT_MAX};
use keyspace::collection::kind::{Elements, Members};
use keyspace::collection::run::Item;
use keyspace::{Detached, Key, Kind, New};
use resp::number::parse_f64;

use super::super::{Args, Context, Failure, Handled, Next, failure};
use super::pattern::{self, Cold, until_zero};
use super::plan::Plan;
use crate::config::Packed;
use crate::observe::notify::Event;
use crate::server::Server;
use crate::shared::memory::Growing;
use crate::store::{Shard, Shards, Store};

const NOT_NUMBERS: Failure = Failure::of("ERR One or more scores can't be converted into double");
const STILL_COLD: Failure = Failure::of("ERR values leave memory faster than they are read");
/// How often fields are read back that others let leave memory again.
const WARM_TRIES: usize = 20;

/// `SORT key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC | DESC] [ALPHA]
/// [STORE destination]`
pub(super) fn sort(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    run(context, args, false)
}

/// `SORT_RO key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC | DESC] [ALPHA]`
pub(super) fn sort_ro(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    run(context, args, true)
}

fn run(context: &mut Context<'_>, args: &Args<'_>, is_readonly: bool) -> Handled {
    let is_cluster = context.server.cluster.is_some();
    let mut plan = Plan::parse(args, is_readonly, is_cluster)?;
    let key = args.key(1);
    let mut had_room = true;
    for _ in 0..WARM_TRIES {
        let mut shards = lock(&context.store, key, &plan);
        let mut cold = Cold::new();
        let mut growing = Growing::new(context.server);
        let mut sorting = Sorting::read(&mut shards, key, &mut plan, &mut growing)?;
        if plan.store.is_none() && !plan.has_patterns() && growing.refused().is_none() {
            drop(shards);
            let order = sorting.order(&plan)?;
            let chosen = order
                .iter()
                .map(|&at| &sorting.texts[sorting.elements[at].clone()]);
            context.reply.array(order.len() * plan.gets.len().max(1));
            for element in chosen {
                answer_alone(context, &plan, element);
            }
            return Ok(Next::Done);
        }
        sorting.weigh(&mut shards, &plan, (&mut cold, &mut growing))?;
        if cold.is_empty() && growing.refused().is_none() {
            let order = sorting.order(&plan)?;
            let notes = (&mut cold, &mut growing);
            let found = sorting.found(&mut shards, &plan, &order, notes)?;
            if cold.is_empty() && growing.refused().is_none() {
                match plan.store {
                    Some(to) => {
                        found.check_lengths()?;
                        let stored = store(context.server, &mut shards, to, &found);
                        drop(shards);
                        context.reply.integer(stored as i64);
                    }
                    None => {
                        drop(shards);
                        answer(context, &found);
                    }
                }
                return Ok(Next::Done);
            }
        }
        drop((shards, sorting));
        had_room = growing.refused().is_none();
        if let Some(bytes) = growing.refused() {
            context.make_room_beyond(bytes)?;
        }
        pattern::bring_back(&context.store, &cold)?;
    }
    Err(match had_room {
        true => STILL_COLD,
        false => failure::OUT_OF_MEMORY,
    })
}

/// Locks what a request uses.
fn lock<'s>(store: &'s Store<'_>, key: Key<'_>, plan: &Plan<'_>) -> Shards<'s> {
    match plan.has_patterns() {
        true => store.lock_all(),
        false => store.lock_keys(std::iter::once(key).chain(plan.store)),
    }
}

/// Answers with an element, or with what its patterns say without other keys.
fn answer_alone(context: &mut Context<'_>, plan: &Plan<'_>, element: &[u8]) {
    if plan.gets.is_empty() {
        context.reply.bulk(element);
    }
    for pattern in &plan.gets {
        match pattern {
            pattern::Pattern::Element => context.reply.bulk(element),
            _ => context.reply.null(),
        }
    }
}

fn answer(context: &mut Context<'_>, found: &Found) {
    context.reply.array(found.parts.len());
    for part in &found.parts {
        match part {
            Some(part) => context.reply.bulk(&found.texts[part.clone()]),
            None => context.reply.null(),
        }
    }
}

/// Gives a key the list of what was found, and returns its length; without anything the key goes.
fn store(server: &'static Server, shards: &mut Shards<'_>, to: Key<'_>, found: &Found) -> u64 {
    let mut builder = server.keyspace.builder(Kind::List, to.bytes);
    for part in &found.parts {
        let text = part.clone().map_or(&b""[..], |part| &found.texts[part]);
        let added = builder.push(&Item::single(Cell::of(text)));
        debug_assert!(added.is_ok(), "elements may be equal");
    }
    let len = builder.len();
    let mut shard = shards.of(to);
    if len == 0 {
        if shard.remove(to) {
            shard.tell(Event::DEL, to);
        }
    } else {
        let form = Packed::form_of(&server.settings, &builder);
        let mut made = Detached::built(builder, form, None);
        shard.write(to, New::detached(&mut made));
        shard.tell(Event::SORTSTORE, to);
    }
    len
}

/// What the patterns of a request give for the chosen elements, in their order.
struct Found {
    texts: Vec<u8>,
    parts: Vec<Option<Range<usize>>>,
}

impl Found {
    /// Whether all of them can be elements of a list.
    ///
    /// # Errors
    /// One is too long: a string may be longer than an element.
    fn check_lengths(&self) -> Result<(), Failure> {
        let mut parts = self.parts.iter().flatten();
        match parts.any(|part| part.len() > TEXT_MAX) {
            true => Err(failure::TOO_LONG),
            false => Ok(()),
        }
    }
}

/// Bytes of an element beside its text: the range of the text, a number, and its place in the order, which is
/// there twice while elements are sorted.
const ELEMENT_BYTES: usize = size_of::<Range<usize>>() + size_of::<f64>() + 2 * size_of::<usize>();

/// Elements that are sorted.
struct Sorting {
    texts: Vec<u8>,
    elements: Vec<Range<usize>>,
    weights: Weights,
}

/// What elements are compared by.
enum Weights {
    /// Themselves.
    None,
    Numbers(Vec<f64>),
    /// Texts; a missing one is before all others.
    Texts(Vec<u8>, Vec<Option<Range<usize>>>),
}

impl Sorting {
    /// Copies the elements of a key; not all of them if `growing` is refused.
    ///
    /// # Errors
    /// It is of a kind that is not sorted.
    fn read(
        shards: &mut Shards<'_>,
        key: Key<'_>,
        plan: &mut Plan<'_>,
        growing: &mut Growing<'_>,
    ) -> Result<Sorting, Failure> {
        let mut sorting = Sorting {
            texts: Vec::new(),
            elements: Vec::new(),
            weights: Weights::None,
        };
        let mut shard = shards.of(key);
        match shard.find(key).map(|entry| entry.kind()) {
            None | Some(Kind::List) => sorting.read_list(&mut shard, key, growing)?,
            Some(Kind::Set) => {
                // The members of a set have no order that could be stored.
                if plan.is_unsorted && plan.store.is_some() {
                    (plan.is_unsorted, plan.is_alpha, plan.by) = (false, true, None);
                }
                if let Some(set) = shard.read_items::<Members>(key)? {
                    let items = set.items();
                    sorting.push_all(items.iter().map(|item| item.name), items.len(), growing);
                }
            }
            Some(Kind::SortedSet) => {
                if let Some(set) = shard.read_sorted_set(key)? {
                    let items = set.items();
                    sorting.push_all(items.iter().map(|item| item.name), items.len(), growing);
                }
            }
            Some(_) => return Err(failure::WRONG_TYPE),
        }
        Ok(sorting)
    }

    fn read_list(
        &mut self,
        shard: &mut Shard<'_>,
        key: Key<'_>,
        growing: &mut Growing<'_>,
    ) -> Result<(), Failure> {
        if let Some(list) = shard.read_items::<Elements>(key)? {
            let items = list.items();
            if self.begin(items.len(), growing) {
                items.visit(0, items.len(), |element| self.push(element, growing));
            }
        }
        Ok(())
    }

    fn push_all<'s>(
        &mut self,
        mut elements: impl Iterator<Item = Cell<'s>>,
        len: u64,
        growing: &mut Growing<'_>,
    ) {
        if self.begin(len, growing) {
            let _ = elements.all(|element| self.push(element, growing));
        }
    }

    /// Looks whether there is room for so many elements, beside their texts.
    fn begin(&mut self, len: u64, growing: &mut Growing<'_>) -> bool {
        let has_room = growing.may_take(len as usize * ELEMENT_BYTES);
        if has_room {
            self.elements.reserve_exact(len as usize);
        }
        has_room
    }

    /// Copies an element. Returns whether more may come.
    fn push(&mut self, element: Cell<'_>, growing: &mut Growing<'_>) -> bool {
        let from = self.texts.len();
        self.texts
            .extend_from_slice(element.text(&mut [0; DECIMAL_MAX]));
        self.elements.push(from..self.texts.len());
        // Texts that have no place any more are there twice while they move.
        growing.may_go_on(3 * (self.texts.len() - from))
    }

    /// Finds what elements are compared by, where that is in other keys.
    fn weigh<'a>(
        &mut self,
        shards: &mut Shards<'_>,
        plan: &Plan<'a>,
        (cold, growing): (&mut Cold<'a>, &mut Growing<'_>),
    ) -> Result<(), Failure> {
        let Some(by) = plan.by.filter(|_| !plan.is_unsorted) else {
            return Ok(());
        };
        let (mut texts, mut parts) = (Vec::new(), Vec::with_capacity(self.elements.len()));
        for element in &self.elements {
            let from = texts.len();
            let element = &self.texts[element.clone()];
            let is_found = pattern::find(shards, by, element, &mut texts, cold)?;
            parts.push(is_found.then_some(from..texts.len()));
            // What grows may be there twice.
            if !growing.may_go_on(2 * (texts.len() - from)) {
                break;
            }
        }
        self.weights = Weights::Texts(texts, parts);
        Ok(())
    }

    /// The places of the chosen elements, in order.
    ///
    /// # Errors
    /// Something is no number that should be one.
    fn order(&mut self, plan: &Plan<'_>) -> Result<Vec<usize>, Failure> {
        let len = self.elements.len();
        let chosen = plan.range(len);
        let mut order: Vec<usize> = (0..len).collect();
        if plan.is_unsorted {
            if plan.is_descending {
                order.reverse();
            }
        } else {
            if !plan.is_alpha {
                self.weights = Weights::Numbers(self.numbers()?);
            }
            let is_stored = plan.store.is_some();
            order.sort_by(|&one, &other| plan.ordered(self.compare(one, other, is_stored)));
        }
        order.truncate(chosen.end);
        order.drain(..chosen.start);
        Ok(order)
    }

    fn numbers(&self) -> Result<Vec<f64>, Failure> {
        let number = |text: &[u8]| match until_zero(text).trim_ascii_start() {
            b"" if text.first().is_none_or(|&byte| byte == 0) => Some(0.0),
            // strtod reports these as out of range.
            text => parse_f64(text).filter(|number| !number.is_subnormal()),
        };
        let numbers: Option<Vec<f64>> = match &self.weights {
            Weights::Texts(texts, parts) => parts
                .iter()
                .map(|part| part.clone().map_or(Some(0.0), |part| number(&texts[part])))
                .collect(),
            _ => self
                .elements
                .iter()
                .map(|element| number(&self.texts[element.clone()]))
                .collect(),
        };
        numbers.ok_or(NOT_NUMBERS)
    }

    fn compare(&self, one: usize, other: usize, is_stored: bool) -> Ordering {
        let texts = || [one, other].map(|at| &self.texts[self.elements[at].clone()]);
        // What is only shown is compared up to a zero byte.
        let compare = |[one, other]: [&[u8]; 2]| match is_stored {
            true => one.cmp(other),
            false => until_zero(one).cmp(until_zero(other)),
        };
        match &self.weights {
            Weights::None => compare(texts()),
            Weights::Numbers(numbers) => {
                let order = numbers[one].partial_cmp(&numbers[other]);
                let [one, other] = texts();
                order
                    .unwrap_or(Ordering::Equal)
                    .then_with(|| one.cmp(other))
            }
            Weights::Texts(all, parts) => match (&parts[one], &parts[other]) {
                (Some(one), Some(other)) => compare([&all[one.clone()], &all[other.clone()]]),
                (one, other) => one.is_some().cmp(&other.is_some()),
            },
        }
    }

    /// What the patterns give for the chosen elements; without patterns the elements themselves.
    fn found<'a>(
        &self,
        shards: &mut Shards<'_>,
        plan: &Plan<'a>,
        order: &[usize],
        (cold, growing): (&mut Cold<'a>, &mut Growing<'_>),
    ) -> Result<Found, Failure> {
        let mut found = Found {
            texts: Vec::new(),
            parts: Vec::with_capacity(order.len() * plan.gets.len().max(1)),
        };
        let gets = match plan.gets.is_empty() {
            true => &[pattern::Pattern::Element][..],
            false => &plan.gets[..],
        };
        for &at in order {
            let element = &self.texts[self.elements[at].clone()];
            for &get in gets {
                let from = found.texts.len();
                let is_found = pattern::find(shards, get, element, &mut found.texts, cold)?;
                let part = from..found.texts.len();
                found.parts.push(is_found.then_some(part.clone()));
                // What grows may be there twice, and the reply or the list beside it.
                if !growing.may_go_on(3 * part.len()) {
                    return Ok(found);
                }
            }
        }
        Ok(found)
    }
}
