//! Leaves of trees that a command needs and that are in the log alone.

use fastrand::Rng;
use keyspace::collection::Base;
use keyspace::collection::ahead::Goes;
use keyspace::collection::any::Collection;
use keyspace::collection::cell::Cell;
use keyspace::{Key, Kind, ListRef, StreamRef};
use resp::number::parse_f64;

use crate::command::cursor;
use crate::command::items::chance;
use crate::config::{Packed, Settings};
use crate::limits::LEAVES_PER_FETCH;
use crate::request::Args;
use crate::server::Server;
use crate::store::Entry;
use crate::values::cold::Wanted;

/// Items of a collection that a command needs ([`Spec::items`](crate::command::Spec::items)).
#[derive(Clone, Copy)]
pub(crate) enum ItemsNeeded {
    /// None: how many there are is enough.
    None,
    /// None: the value goes to another key as it is. In a transaction all.
    Moved,
    All,
    /// All, one leaf after the other: where there is no room for all of them at once, the command reads them
    /// itself as it comes to them ([`Walks`]).
    Walked,
    /// Any, by chance: the command reads leaves itself as it draws items, unless nothing of it may be done
    /// later.
    Any,
    /// So many by chance, as the seed of the request says
    /// ([`Context::chance`](crate::command::Context::chance)).
    Drawn(fn(&Args<'_>) -> u64),
    /// Those that these arguments name: `from` and every `step`th behind it. It does no harm if some of them
    /// are no names.
    Named {
        from: usize,
        step: usize,
    },
    /// Those that HSCAN and its kin show, for a cursor at 2 and options behind it.
    Scan,
    /// Those in leaves of which this shows the records. The last argument says whether the command can read
    /// leaves itself as it comes to them.
    By(LeavesOf),
    /// The same; mostly they are those of members that arguments name, as of [`ItemsNeeded::Named`]. The
    /// argument before one is the score that it gets, or that its score grows by.
    Scored {
        from: usize,
        step: usize,
        adds: bool,
        records: LeavesOf,
    },
    /// The same of a list, with the limits within which Redis packs it.
    Elements(LeavesOfList),
    /// The same of a stream.
    Entries(LeavesOfStream),
}

impl ItemsNeeded {
    /// The first argument that names an item, and the step to the next, of a command that looks for items by
    /// their names.
    pub(crate) fn names(self) -> Option<(usize, usize)> {
        match self {
            ItemsNeeded::Named { from, step } | ItemsNeeded::Scored { from, step, .. } => {
                Some((from, step))
            }
            _ => None,
        }
    }

    /// Where the item goes that is named at an index; `argument` gives an argument.
    pub(crate) fn goes<'a>(self, at: usize, argument: impl Fn(usize) -> &'a [u8]) -> Goes {
        match self {
            ItemsNeeded::Scored { adds, .. } => match parse_f64(argument(at - 1)) {
                Some(score) if adds => Goes::By(score),
                Some(score) => Goes::To(score),
                None => Goes::Nowhere,
            },
            _ => Goes::Nowhere,
        }
    }
}

/// The records of the leaves that a command needs.
pub(crate) type LeavesOf = fn(&Args<'_>, &Collection, bool) -> Vec<Base>;

/// The records of the leaves of a list that a command needs.
pub(crate) type LeavesOfList = fn(&Args<'_>, ListRef<'_>, bool, Packed) -> Vec<Base>;

/// The records of the leaves of a stream that a command needs.
pub(crate) type LeavesOfStream = fn(StreamRef<'_>, &AskedLeaves<'_>) -> Vec<Base>;

/// A question for the leaves of a stream that a request needs.
#[derive(Clone, Copy)]
pub(crate) struct AskedLeaves<'a> {
    pub(crate) args: &'a Args<'a>,
    /// The key of the stream.
    pub(crate) key: &'a [u8],
    /// The command can read leaves itself as it comes to them.
    pub(crate) walks: bool,
    pub(crate) settings: &'a Settings,
}

/// Whether a command that looks at leaves one after the other reads those that are cold from the log, and
/// leaves them cold.
#[derive(Clone, Copy)]
pub(super) enum Walks {
    /// No: nothing of it may be done later, or the leaves are to come back.
    No,
    /// If there is no room in memory for all cold leaves of the collection.
    BeyondRoom(&'static Server),
    /// By chance, for tests.
    Perhaps,
}

/// Kinds of collections.
#[derive(Clone, Copy)]
pub(crate) enum Collections {
    None,
    All,
    Of(Kind),
    /// Sets, sorted ones, too.
    Sets,
}

impl Collections {
    fn have(self, kind: Kind) -> bool {
        match self {
            Collections::None => false,
            Collections::All => true,
            Collections::Of(own) => own == kind,
            Collections::Sets => matches!(kind, Kind::Set | Kind::SortedSet),
        }
    }
}

/// The same records, each once.
pub(crate) fn each_once(mut records: Vec<Base>) -> Vec<Base> {
    records.sort_unstable_by_key(|base| base.at);
    records.dedup();
    records
}

/// Needs of a request on collections.
#[derive(Clone, Copy)]
pub(super) struct Needs<'a> {
    pub(super) items: ItemsNeeded,
    /// Of collections of other kinds it needs nothing.
    pub(super) of: Collections,
    pub(super) args: &'a Args<'a>,
    /// The key of the value.
    pub(super) key: &'a [u8],
    pub(super) settings: &'a Settings,
    pub(super) in_transaction: bool,
    pub(super) walks: Walks,
    pub(super) seed: u64,
}

impl<'a> Needs<'a> {
    /// The same of the value of a key.
    pub(super) fn of_key(self, key: Key<'a>) -> Needs<'a> {
        let key = key.bytes;
        Needs { key, ..self }
    }

    fn walks(self, tree: &Collection) -> bool {
        match self.walks {
            Walks::No => false,
            Walks::BeyondRoom(server) => server.memory.is_near_with(tree.cold_bytes() as usize),
            Walks::Perhaps => fastrand::bool(),
        }
    }

    /// The records of the leaves of a tree that it needs and that are in the log alone, each once.
    pub(super) fn records(self, tree: &Collection) -> Vec<Base> {
        let mut records = self.up_to(LEAVES_PER_FETCH, tree);
        records.truncate(LEAVES_PER_FETCH);
        records
    }

    /// The same, `most` of them or more.
    fn up_to(self, most: usize, tree: &Collection) -> Vec<Base> {
        if tree.cold_leaves() == 0 || !self.of.have(tree.kind()) {
            return Vec::new();
        }
        let args = self.args;
        match self.items {
            ItemsNeeded::None => Vec::new(),
            ItemsNeeded::Moved if !self.in_transaction => Vec::new(),
            ItemsNeeded::Walked if self.walks(tree) => Vec::new(),
            ItemsNeeded::Any if !matches!(self.walks, Walks::No) => Vec::new(),
            ItemsNeeded::Drawn(count) if !self.in_transaction => {
                match chance::ranks_of(Rng::with_seed(self.seed), count(args), tree.count()) {
                    Some(ranks) => each_once(tree.cold_records_of_ranks(&ranks)),
                    None => tree.cold_records().take(most).collect(),
                }
            }
            ItemsNeeded::All
            | ItemsNeeded::Moved
            | ItemsNeeded::Walked
            | ItemsNeeded::Any
            | ItemsNeeded::Drawn(_) => tree.cold_records().take(most).collect(),
            ItemsNeeded::Named { from, step } => {
                let names = (from..args.len()).step_by(step);
                let records = names.filter_map(|at| tree.cold_record(Cell::of(args.get(at))));
                each_once(records.collect())
            }
            ItemsNeeded::By(records) | ItemsNeeded::Scored { records, .. } => {
                each_once(records(args, tree, self.walks(tree)))
            }
            ItemsNeeded::Elements(records) => ListRef::of(tree).map_or(Vec::new(), |elements| {
                let packed = Packed::list(self.settings);
                each_once(records(args, elements, self.walks(tree), packed))
            }),
            ItemsNeeded::Entries(records) => {
                StreamRef::in_tree(tree).map_or(Vec::new(), |stream| {
                    each_once(records(
                        stream,
                        &AskedLeaves {
                            args,
                            key: self.key,
                            walks: self.walks(tree),
                            settings: self.settings,
                        },
                    ))
                })
            }
            ItemsNeeded::Scan => match cursor::of_scan(args) {
                Some((cursor, count)) => tree.cold_records_of_scan(cursor, count),
                None => Vec::new(),
            },
        }
    }

    /// The leaves of the value of a key that it needs and that are in the log alone.
    pub(super) fn wanted(self, (db, key): (usize, Key<'_>), entry: &Entry<'_, '_>) -> Vec<Wanted> {
        let Some(tree) = entry.tree() else {
            return Vec::new();
        };
        let Some((instance, _)) = tree.logged().place() else {
            return Vec::new();
        };
        let records = self.records(tree).into_iter();
        records
            .map(|base| Wanted::leaf(db, key, instance, base))
            .collect()
    }

    /// Bytes of the leaves of a tree that come back for it, if these may be many: they stay until it has run.
    pub(super) fn bytes_of_all(self, tree: &Collection) -> usize {
        let needs_all = match self.items {
            ItemsNeeded::None | ItemsNeeded::Named { .. } | ItemsNeeded::Scan => false,
            ItemsNeeded::Moved => self.in_transaction,
            ItemsNeeded::All => self.of.have(tree.kind()),
            ItemsNeeded::Any => self.of.have(tree.kind()) && matches!(self.walks, Walks::No),
            ItemsNeeded::Walked => self.of.have(tree.kind()) && !self.walks(tree),
            ItemsNeeded::Drawn(_)
            | ItemsNeeded::By(_)
            | ItemsNeeded::Scored { .. }
            | ItemsNeeded::Elements(_)
            | ItemsNeeded::Entries(_) => {
                let records = self.up_to(usize::MAX, tree).into_iter();
                return records.map(|base| base.share as usize).sum();
            }
        };
        if needs_all {
            tree.cold_bytes() as usize
        } else {
            0
        }
    }
}
