//! Sorted sets of a locked shard: operations beyond those of other collections ([`super::items`]).

use keyspace::collection::cell::Cell;
use keyspace::collection::kind::Scores;
use keyspace::collection::sorted::scored;
use keyspace::{Form, Key, SortedRef};

use super::Shard;
use super::items::{Items, ItemsEdit};
use crate::request::Failure;

/// An entry of a locked shard that is a sorted set.
pub(crate) type SortedSet<'g, 'a> = Items<'g, 'a, Scores>;
/// One change of a sorted set.
pub(crate) type SortedSetEdit<'g, 'a> = ItemsEdit<'g, 'a, Scores>;

impl<'a> Shard<'a> {
    /// [`Shard::read_items`] of a sorted set.
    ///
    /// # Errors
    /// The key is of another kind.
    #[inline]
    pub(crate) fn read_sorted_set(
        &mut self,
        key: Key<'_>,
    ) -> Result<Option<SortedSet<'_, 'a>>, Failure> {
        self.read_items(key)
    }

    /// [`Shard::find_items`] of a sorted set.
    ///
    /// # Errors
    /// The key is of another kind.
    #[inline]
    pub(crate) fn find_sorted_set(
        &mut self,
        key: Key<'_>,
    ) -> Result<Option<SortedSet<'_, 'a>>, Failure> {
        self.find_items(key)
    }
}

impl SortedSet<'_, '_> {
    /// The members and their scores.
    #[inline]
    pub(crate) fn sorted(&self) -> SortedRef<'_> {
        self.0.inner.sorted()
    }
}

impl SortedSetEdit<'_, '_> {
    /// The members and their scores as they are now.
    #[inline]
    pub(crate) fn sorted(&self) -> SortedRef<'_> {
        self.entry.inner.sorted()
    }

    /// Gives a member a score. `before`: the score that it has, if it is there.
    ///
    /// A score says where the log has a member. So it is told of the one that is gone, too.
    pub(crate) fn put(&mut self, member: Cell<'_>, before: Option<f64>, score: f64) {
        let (mut scratch, mut old) = ([0; 8], [0; 8]);
        let score = match score == 0.0 && self.stays_packed(member, before.is_none()) {
            true => 0.0,
            false => score,
        };
        let item = scored(member, score, &mut scratch);
        self.entry.inner.set_score(&item, before);
        if let (Some(edits), Some(before)) = (&mut self.log.edits, before) {
            edits.take(&scored(member, before, &mut old));
        }
        self.note_set(&item);
    }

    /// Whether Redis would hold the set packed with this member. There it has no -0.
    #[cold]
    fn stays_packed(&self, member: Cell<'_>, is_new: bool) -> bool {
        let form = self.entry.inner.value_type().form;
        let len = self.sorted().len() + u64::from(is_new);
        let (entries, value) = (self.packed.entries as u64, self.packed.value);
        form == Form::Whole && len <= entries && member.text_len() <= value
    }

    /// Removes a member that has this score.
    pub(crate) fn take(&mut self, member: Cell<'_>, score: f64) {
        let mut scratch = [0; 8];
        let item = scored(member, score, &mut scratch);
        if self.entry.inner.take_member(&item) {
            self.changes += 1;
            if let Some(edits) = &mut self.log.edits {
                edits.take(&item);
            }
        }
    }
}
