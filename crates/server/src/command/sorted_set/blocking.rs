//! Commands that wait for members: BZPOPMIN BZPOPMAX BZMPOP. [`super::super::blocking`] has what they share
//! with those of lists.

use keyspace::collection::Base;
use keyspace::collection::any::Collection;
use keyspace::collection::tree::End;
use keyspace::{Key, Kind, SortedRef};
use resp::reply::Writer;

use super::super::blocking::{Taker, take_or_wait};
use super::super::park::{self, Unit};
use super::super::spec::{Begin, Find, ItemsNeeded};
use super::super::{
    Arg, ArgKind, Args, Context, Failure, Handled, KeySpec, Makes, Spec, access, flag::*,
};
use super::READS;
use super::pop::{self, Choice, cold_at_end, leaves_of_choice, take, take_named};
use crate::config::{Packed, Settings};
use crate::observe::waits::Asks;
use crate::store::Shards;

const TIMEOUT: Arg = Arg::of("timeout", ArgKind::Double);

/// Takes members, and the key with the last of them.
const POPPED: u16 = access::RW | access::ACCESS | access::DELETE;

/// A row of the commands that wait for a member of several sorted sets.
const WAITS: Spec = Spec {
    arity: -3,
    flags: WRITE | NOSCRIPT | BLOCKING | FAST,
    taker: Some(&TAKER),
    keys: &[KeySpec {
        access: POPPED,
        begin: Begin::Index(1),
        find: Find::Range {
            last: -2,
            step: 1,
            limit: 0,
        },
        notes: None,
    }],
    since: "5.0.0",
    args: &[Arg::key("key").multiple(), TIMEOUT],
    history: &[("6.0.0", "The timeout may have a fraction.")],
    ..READS
};

/// The table of what waits for members.
pub(crate) const COMMANDS: &[Spec] = &[
    Spec {
        name: "bzpopmin",
        makes: Makes::Taken,
        summary: "Removes the member with the lowest score of the first sorted set that has any, waits for \
                  one if none has",
        items: ItemsNeeded::By(leaves_of_bzpopmin),
        handler: bzpopmin,
        ..WAITS
    },
    Spec {
        name: "bzpopmax",
        makes: Makes::Taken,
        summary: "Removes the member with the highest score of the first sorted set that has any, waits for \
                  one if none has",
        items: ItemsNeeded::By(leaves_of_bzpopmax),
        handler: bzpopmax,
        ..WAITS
    },
    Spec {
        name: "bzmpop",
        makes: Makes::Taken,
        arity: -5,
        flags: WRITE | BLOCKING | MOVABLE_KEYS,
        taker: Some(&TAKER),
        keys: &[KeySpec {
            access: POPPED,
            begin: Begin::Index(2),
            find: Find::Count {
                count: 0,
                first: 1,
                step: 1,
            },
            notes: None,
        }],
        since: "7.0.0",
        summary: "Removes members of the first sorted set that has any, waits for some if none has",
        complexity: "O(K + M log N) for K keys and M members that are removed",
        args: &[
            TIMEOUT,
            Arg::of("numkeys", ArgKind::Integer),
            Arg::key("key").multiple(),
            Arg::one_of("where", &[Arg::word("min", "MIN"), Arg::word("max", "MAX")]),
            Arg::of("count", ArgKind::Integer).token("COUNT").optional(),
        ],
        items: ItemsNeeded::By(leaves_of_bzmpop),
        handler: bzmpop,
        ..READS
    },
];

static TAKER: Taker = Taker {
    kind: Kind::SortedSet,
    lacks,
    has: |_, _, _| true,
    give,
    gone: |_| None,
    leaves: |tree, _, _| tree.cold_records().collect(),
};

/// Whether members are cold that are asked for: others came or went since the leaves were found.
fn lacks(shards: &mut Shards<'_>, key: Key<'_>, asks: &Asks, _: &Settings) -> bool {
    let taken = match *asks {
        Asks::Members(end, most) => (end, most),
        Asks::Member(end) => (end, 1),
        _ => return false,
    };
    let mut shard = shards.of(key);
    let set = shard.find_sorted_set(key).ok().flatten();
    set.is_some_and(|set| pop::lacks(&set, taken))
}

fn leaves_of_bzpopmin(_: &Args<'_>, tree: &Collection, _: bool) -> Vec<Base> {
    SortedRef::of(tree).map_or(Vec::new(), |members| cold_at_end((End::Front, 1), members))
}

fn leaves_of_bzpopmax(_: &Args<'_>, tree: &Collection, _: bool) -> Vec<Base> {
    SortedRef::of(tree).map_or(Vec::new(), |members| cold_at_end((End::Back, 1), members))
}

fn leaves_of_bzmpop(args: &Args<'_>, tree: &Collection, _: bool) -> Vec<Base> {
    leaves_of_choice(Choice::parse(args, 2), tree)
}

/// Does what is asked for with a sorted set that has members.
fn give(
    shards: &mut Shards<'_>,
    key: Key<'_>,
    asks: &Asks,
    settings: &Settings,
    writer: &mut Writer<'_>,
) -> Result<(), Failure> {
    let packed = Packed::sorted_set(settings);
    let mut shard = shards.of(key);
    let Some(set) = shard.find_sorted_set(key)? else {
        return Ok(());
    };
    match *asks {
        Asks::Members(end, most) => take_named(writer, (key.bytes, set), (end, most), packed),
        Asks::Member(end) => {
            writer.array(3);
            writer.bulk(key.bytes);
            take(writer, set, (end, 1), packed, false);
        }
        _ => {}
    }
    Ok(())
}

fn pop(context: &mut Context<'_>, args: &Args<'_>, end: End) -> Handled {
    let last = args.len() - 1;
    let until_ms = park::deadline(context.store.now, args, last, Unit::Seconds)?;
    let keys = (1..last).map(|at| args.key(at));
    take_or_wait(context, keys.clone(), (until_ms, Asks::Member(end)), keys)
}

/// `BZPOPMIN key [key ...] timeout`
fn bzpopmin(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    pop(context, args, End::Front)
}

/// `BZPOPMAX key [key ...] timeout`
fn bzpopmax(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    pop(context, args, End::Back)
}

/// `BZMPOP timeout numkeys key [key ...] MIN|MAX [COUNT count]`
fn bzmpop(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let Choice { keys, end, most } = Choice::parse(args, 2)?;
    let until_ms = park::deadline(context.store.now, args, 1, Unit::Seconds)?;
    let keys = keys.map(|at| args.key(at));
    let asks = Asks::Members(end, most);
    take_or_wait(context, keys.clone(), (until_ms, asks), keys)
}
