//! Streams of a locked shard: a run inside the entry while they are small, else a tree (see `fields`).
//!
//! Items are set as those of other collections ([`EntryMut::set_item`]). They are removed by ID and name,
//! not by name alone. A stream without entries stays.

use super::fields::run_of;
use super::view::{EntryMut, EntryRef};
use crate::collection::any::{Collection, place_in_stream};
use crate::collection::kind::LeafKind;
use crate::collection::run::{BARE, Item, Run};
use crate::collection::stream::{IdRange, StreamItems, StreamRef};
use crate::entry::{Kind, Type};

/// The type of a stream.
pub const STREAM: Type = Type::whole(Kind::Stream);

/// The value of a stream without a head, for [`crate::New::bytes`]: it gets one under the same lock.
pub const EMPTY_STREAM: [u8; Run::EMPTY] = [0, 0, StreamItems::FLAGS | BARE, 0];

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

    /// Removes an item of a stream; whether it was there.
    ///
    /// # Panics
    /// As [`EntryMut::stream`].
    pub fn take_stream_item(&mut self, item: &Item<'_>) -> bool {
        let entry = self.entry();
        if entry.is_tree() {
            return self.edit_tree(|tree| match tree {
                Collection::Stream(tree) => tree.remove_item(item),
                _ => unreachable!("the command has found a stream"),
            });
        }
        let (index, is_there) = place_in_stream(run_of(entry), item);
        if is_there {
            self.cut_run(index, index + 1);
        }
        is_there
    }

    /// Removes the items of a range of IDs; how many there were.
    ///
    /// # Panics
    /// As [`EntryMut::stream`].
    pub fn cut_ids(&mut self, range: &IdRange) -> u64 {
        range.with_edges(|from, to| {
            if self.entry().is_tree() {
                return self.edit_tree(|tree| match tree {
                    Collection::Stream(tree) => tree.cut(from, Some(to)),
                    _ => unreachable!("the command has found a stream"),
                });
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
