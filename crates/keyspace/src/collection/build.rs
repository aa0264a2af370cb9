//! A collection that is made as a whole, outside of any lock, and given to a key when it is complete.
//!
//! It begins as a run and becomes a tree beyond [`SMALL_BYTES`](super::any::SMALL_BYTES), as one of a key
//! does.

use super::any::{Collection, Held, place_in_run, place_in_stream, run_flags, seed_of};
use super::cell::Cell;
use super::items::ListRef;
use super::kind::{Elements, Members};
use super::run::{BARE, Item, Run, RunMut};
use super::stream::{Head, StreamItems};
use super::tree::{Gathered, Put};
use crate::entry::Kind;
use crate::hash::Seed;

/// Bytes of the buffer of a run at first.
const FIRST_BYTES: usize = 256;

/// See the module.
#[derive(Debug)]
pub struct Builder {
    kind: Kind,
    /// Bytes of the longest run.
    small_bytes: usize,
    /// Bytes of the leaves of a tree.
    leaf_max: usize,
    /// The order of a set; of others its seed alone counts.
    members: Members,
    items: Built,
    /// Of a set whose members come once: all of them, when they do not fit into a run.
    gathered: Option<Gathered>,
    is_distinct: bool,
    /// Bytes of the longest name, or value of a field.
    longest: usize,
    /// Whether all names are integers.
    is_numeric: bool,
}

/// What a builder has made.
#[derive(Debug)]
pub(crate) enum Built {
    /// A run in the first so many bytes of a buffer.
    Run(Vec<u8>, usize),
    /// What does not fit into one.
    Tree(Box<Collection>),
}

/// An item came for a second time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DuplicateItem;

impl Builder {
    pub(crate) fn new(kind: Kind, small_bytes: usize, leaf_max: usize, seed: Seed) -> Builder {
        let mut buffer = vec![0; FIRST_BYTES.min(small_bytes)];
        buffer[..Run::EMPTY].copy_from_slice(&Run::empty(run_flags(kind) | BARE));
        Builder {
            kind,
            small_bytes,
            leaf_max,
            members: Members { seed },
            items: Built::Run(buffer, Run::EMPTY),
            gathered: None,
            is_distinct: false,
            longest: 0,
            is_numeric: true,
        }
    }

    /// Says that each member of a set comes once: a large one is made in one pass.
    pub fn distinct(mut self) -> Builder {
        self.is_distinct = self.kind == Kind::Set;
        self
    }

    /// Adds an item: a field with its value, a member, or an element behind all others.
    ///
    /// # Errors
    /// There is an item of this name. The value that a field has after that is any of both.
    pub fn push(&mut self, item: &Item<'_>) -> Result<(), DuplicateItem> {
        let value = item.value.filter(|_| self.kind == Kind::Hash);
        let cells = [Some(item.name), value];
        let lengths = cells.into_iter().flatten().map(Cell::text_len);
        self.longest = lengths.fold(self.longest, usize::max);
        self.is_numeric &= matches!(item.name, Cell::Int(_));
        if let Some(gathered) = &mut self.gathered {
            gathered.push(&self.members, item.name);
            return Ok(());
        }
        let (buffer, len) = match &mut self.items {
            Built::Run(buffer, len) => (buffer, len),
            Built::Tree(tree) => return added(tree, item),
        };
        let run = Run::trusted(&buffer[..*len]);
        let is_there = match self.kind {
            Kind::List => false,
            Kind::Stream => place_in_stream(run, item).1,
            Kind::Hash | Kind::Set | Kind::SortedSet => run.find(item.name).is_some(),
            Kind::String => unreachable!("a string is no collection"),
        };
        if is_there {
            return Err(DuplicateItem);
        }
        let (place, growth) = (place_in_run(self.kind, run, item), run.growth(item, None));
        let new_len = growth.map(|growth| len.saturating_add_signed(growth));
        let Some(new_len) = new_len.filter(|&new_len| new_len <= self.small_bytes) else {
            if self.is_distinct {
                let mut gathered = Gathered::default();
                let all = run.iter().chain([*item]);
                all.for_each(|item| gathered.push(&self.members, item.name));
                self.gathered = Some(gathered);
                return Ok(());
            }
            // A head that has grown is in no run while it is added again.
            let head = Some(item).filter(|_| self.kind == Kind::Stream);
            let seed = match head.and_then(Head::of) {
                Some(head) => Seed::new(head.base),
                None => seed_of(self.kind, run, self.members.seed.clone()),
            };
            let mut tree = Collection::new(self.kind, seed, self.leaf_max);
            run.iter().try_for_each(|item| added(&mut tree, &item))?;
            added(&mut tree, item)?;
            self.items = Built::Tree(Box::new(tree));
            return Ok(());
        };
        if new_len > buffer.len() {
            buffer.resize(new_len.next_power_of_two().min(self.small_bytes), 0);
        }
        RunMut::new(buffer, *len).insert(place, item);
        *len = new_len;
        Ok(())
    }

    /// Sets an item of a stream in the place of the one of its name.
    pub fn replace(&mut self, item: &Item<'_>) {
        match &mut self.items {
            Built::Tree(tree) => drop(tree.set(item)),
            Built::Run(buffer, len) => {
                let run = Run::trusted(&buffer[..*len]);
                let (place, is_there) = place_in_stream(run, item);
                if is_there {
                    let mut run = RunMut::new(buffer, *len);
                    run.remove(place);
                    *len = run.len();
                }
                let pushed = self.push(item);
                debug_assert!(pushed.is_ok(), "it was just removed");
            }
        }
    }

    /// The base of a stream, which is the seed of its order keys.
    pub(crate) fn base(&self) -> Option<u64> {
        if self.kind != Kind::Stream {
            return None;
        }
        Some(match &self.items {
            Built::Run(buffer, len) => StreamItems::of_run(Run::trusted(&buffer[..*len])).base(),
            Built::Tree(tree) => tree.seed(),
        })
    }

    /// What it is made for.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// How many items there are.
    pub fn len(&self) -> u64 {
        if let Some(gathered) = &self.gathered {
            return gathered.len() as u64;
        }
        match &self.items {
            Built::Run(buffer, len) => Run::trusted(&buffer[..*len]).count() as u64,
            Built::Tree(tree) => tree.count(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes the items that have expired at `now` (Unix, ms).
    pub fn remove_due(&mut self, now: u64) {
        match &mut self.items {
            Built::Run(buffer, len) => {
                let mut run = RunMut::new(buffer, *len);
                run.remove_due(now, &mut |_| ());
                *len = run.len();
            }
            Built::Tree(tree) => {
                tree.remove_due(now, usize::MAX, &mut |_| ());
            }
        }
    }

    /// The elements, if it is a list.
    pub fn list(&self) -> Option<ListRef<'_>> {
        match &self.items {
            Built::Run(buffer, len) if self.kind == Kind::List => {
                Some(ListRef::of_run(&buffer[..*len]))
            }
            Built::Run(..) => None,
            Built::Tree(tree) => Elements::tree(tree).map(|tree| ListRef::Tree(tree.view())),
        }
    }

    /// Whether all names are integers.
    pub fn is_numeric(&self) -> bool {
        self.is_numeric
    }

    /// Bytes of the longest name or value.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Shows all items. There are none that wait to be put in order ([`Builder::distinct`]).
    pub(super) fn each(&self, visit: &mut dyn FnMut(&Item<'_>)) {
        match &self.items {
            Built::Run(buffer, len) => Run::trusted(&buffer[..*len])
                .iter()
                .for_each(|item| visit(&item)),
            Built::Tree(tree) => tree.each(visit),
        }
    }

    pub(crate) fn finish(self) -> Built {
        if let Some(gathered) = self.gathered {
            let tree = gathered.finish(self.members, self.leaf_max);
            return Built::Tree(Box::new(Collection::Set(tree)));
        }
        match self.items {
            Built::Run(mut buffer, len) => {
                buffer.truncate(len);
                Built::Run(buffer, len)
            }
            tree => tree,
        }
    }
}

fn added(tree: &mut Collection, item: &Item<'_>) -> Result<(), DuplicateItem> {
    match tree.set(item) {
        Put::Added => Ok(()),
        Put::Replaced => Err(DuplicateItem),
    }
}
