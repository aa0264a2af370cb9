//! Streams of a locked shard: a run inside the entry while they are small, else a tree (see `fields`).
//!
//! Items are set as those of other collections ([`EntryMut::set_item`]). They are removed by ID and name,
//! not by name alone. A stream without entries stays.

use std::sync::atomic::Ordering::Relaxed;

use super::fields::run_of;
use super::view::{EntryMut, EntryRef};
use crate::collection::any::{Collection, is_last_in_stream, place_in_stream};
use crate::collection::kind::LeafKind;
use crate::collection::run::{BARE, Item, Run};
use crate::collection::stream::{IdRange, ItemBuffer, Pending, Section, StreamItems, StreamRef};
use crate::collection::tree::{Finger, Tree};
use crate::entry::{Kind, Type};

/// The type of a stream.
pub const STREAM: Type = Type::whole(Kind::Stream);

/// The value of a stream without a head, for [`crate::New::bytes`]: it gets one under the same lock.
pub const EMPTY_STREAM: [u8; Run::EMPTY] = [0, 0, StreamItems::FLAGS | BARE, 0];

/// The tree of a stream.
fn stream_of(tree: &mut Collection) -> &mut Tree<StreamItems> {
    match tree {
        Collection::Stream(tree) => tree,
        _ => unreachable!("the command has found a stream"),
    }
}

impl<'a> EntryRef<'a> {
    /// The stream.
    ///
    /// # Panics
    /// It is none, or in the log alone.
    #[inline]
    pub fn stream(self) -> StreamRef<'a> {
        StreamRef::of(self.items())
    }
}

impl EntryMut<'_, '_> {
    /// The stream.
    ///
    /// # Panics
    /// It is none, or in the log alone.
    #[inline]
    pub fn stream(&self) -> StreamRef<'_> {
        StreamRef::of(self.items())
    }

    /// Sets an item of a stream that probably comes after all others. The last leaf is in memory.
    ///
    /// # Panics
    /// As [`EntryMut::stream`].
    pub fn set_last_item(&mut self, item: &Item<'_>) {
        let entry = self.entry();
        if entry.is_tree() {
            return self.edit_tree(|tree| {
                stream_of(tree).set_last(item);
            });
        }
        let run = run_of(entry);
        let most = self.guard.shared.small_bytes.load(Relaxed);
        if !is_last_in_stream(run, item) || self.set_at(run.count(), false, item, most).is_none() {
            self.set_item(item);
        }
    }

    /// Gives a stream another item in the place of the one of a rank, which has its name.
    ///
    /// # Panics
    /// As [`EntryMut::stream`].
    pub fn replace_item_at(&mut self, rank: u64, item: &Item<'_>) {
        let entry = self.entry();
        if entry.is_tree() {
            return self.edit_tree(|tree| {
                stream_of(tree).replace_at(rank, item);
            });
        }
        let most = self.guard.shared.small_bytes.load(Relaxed);
        if self.set_at(rank as usize, true, item, most).is_none() {
            self.set_item(item);
        }
    }

    /// Adds pending entries of a group, in the order of their IDs. It has none of these, and none between
    /// them. Shows each as an item.
    ///
    /// # Panics
    /// As [`EntryMut::stream`].
    pub fn add_pending(
        &mut self,
        group: u32,
        pending: &[Pending],
        mut visit: impl FnMut(&Item<'_>),
    ) {
        let (base, mut buffer, mut left) = (self.stream().base(), ItemBuffer::default(), pending);
        while let Some((first, rest)) = left.split_first()
            && !self.entry().is_tree()
        {
            let item = buffer.pending(base, group, first);
            self.set_item(&item);
            visit(&item);
            left = rest;
        }
        if left.is_empty() {
            return;
        }
        self.edit_tree(|tree| {
            let (tree, mut finger) = (stream_of(tree), Finger::default());
            let section = Section::of_pending(group);
            for pending in left {
                let item = buffer.pending(base, group, pending);
                tree.add_next(&mut finger, section.order(pending.id), &item);
                visit(&item);
            }
        });
    }

    /// Removes an item of a stream; whether it was there.
    ///
    /// # Panics
    /// As [`EntryMut::stream`].
    pub fn take_stream_item(&mut self, item: &Item<'_>) -> bool {
        let entry = self.entry();
        if entry.is_tree() {
            return self.edit_tree(|tree| stream_of(tree).remove_item(item));
        }
        let (index, is_there) = place_in_stream(run_of(entry), item);
        if is_there {
            self.cut_run(index, index + 1);
        }
        is_there
    }

    /// Removes so many items from a rank on, which are all that there is of a range of IDs.
    ///
    /// # Panics
    /// As [`EntryMut::stream`].
    pub fn cut_ranks(&mut self, range: &IdRange, rank: u64, count: u64) {
        let is_tree = self.entry().is_tree();
        if !is_tree || !self.edit_tree(|tree| stream_of(tree).take_ranks(rank, count)) {
            self.cut_ids(range);
        }
    }

    /// Removes the items of a range of IDs; how many there were.
    ///
    /// # Panics
    /// As [`EntryMut::stream`].
    pub fn cut_ids(&mut self, range: &IdRange) -> u64 {
        range.with_edges(|from, to| {
            if self.entry().is_tree() {
                return self.edit_tree(|tree| stream_of(tree).cut(from, Some(to)));
            }
            let stream = self.stream();
            let (from, to) = (stream.rank(from), stream.rank(to));
            if from < to {
                self.cut_run(from as usize, to as usize);
            }
            to.saturating_sub(from)
        })
    }
}
