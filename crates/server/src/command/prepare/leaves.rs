//! Leaves of trees that a command needs and that are in the log alone.

use keyspace::collection::Base;
use keyspace::collection::any::Collection;
use keyspace::collection::cell::Cell;
use keyspace::{Key, Kind};

use crate::command::cursor;
use crate::limits::LEAVES_PER_FETCH;
use crate::request::Args;
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
    /// Those that these arguments name: `from` and every `step`th behind it. It does no harm if some of them
    /// are no names.
    Named {
        from: usize,
        step: usize,
    },
    /// Those that HSCAN and its kin show, for a cursor at 2 and options behind it.
    Scan,
    /// Those in leaves of which this shows the records.
    By(fn(&Args<'_>, &Collection) -> Vec<Base>),
}

/// Kinds of collections.
#[derive(Clone, Copy)]
pub(crate) enum Collections {
    None,
    All,
    Of(Kind),
}

impl Collections {
    fn have(self, kind: Kind) -> bool {
        match self {
            Collections::None => false,
            Collections::All => true,
            Collections::Of(own) => own == kind,
        }
    }
}

fn each_once(mut records: Vec<Base>) -> Vec<Base> {
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
    pub(super) in_transaction: bool,
}

impl Needs<'_> {
    /// The records of the leaves of a tree that it needs and that are in the log alone, each once.
    pub(super) fn records(self, tree: &Collection) -> Vec<Base> {
        if tree.cold_leaves() == 0 || !self.of.have(tree.kind()) {
            return Vec::new();
        }
        let args = self.args;
        match self.items {
            ItemsNeeded::None => Vec::new(),
            ItemsNeeded::Moved if !self.in_transaction => Vec::new(),
            ItemsNeeded::All | ItemsNeeded::Moved => {
                tree.cold_records().take(LEAVES_PER_FETCH).collect()
            }
            ItemsNeeded::Named { from, step } => {
                let names = (from..args.len()).step_by(step);
                let records = names.filter_map(|at| tree.cold_record(Cell::of(args.get(at))));
                each_once(records.collect())
            }
            ItemsNeeded::By(records) => each_once(records(args, tree)),
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

    /// Bytes of the leaves of a tree that come back for it, if it needs all of them: they stay until it has
    /// run.
    pub(super) fn bytes_of_all(self, tree: &Collection) -> usize {
        let needs_all = match self.items {
            ItemsNeeded::All => self.of.have(tree.kind()),
            ItemsNeeded::Moved => self.in_transaction,
            _ => false,
        };
        if needs_all {
            tree.cold_bytes() as usize
        } else {
            0
        }
    }
}
