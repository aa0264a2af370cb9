//! Sorted sets of a locked shard: operations beyond those of other collections ([`super::items`]).

use keyspace::collection::cell::Cell;
use keyspace::collection::kind::Scores;
use keyspace::collection::sorted::scored;
use keyspace::{Form, Key, ScanStep, SortedRef};

use super::Shard;
use super::items::{Items, ItemsEdit};
use crate::config::Packed;
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

    /// What a call of a scan shows. See [`keyspace::collection::sorted_scan`].
    pub(crate) fn begin_scan(&mut self, cursor: u64, count: usize) -> ScanStep {
        self.0.inner.begin_scan(cursor, count, fastrand::u64(..))
    }
}

impl SortedSetEdit<'_, '_> {
    /// The members and their scores as they are now.
    #[inline]
    pub(crate) fn sorted(&self) -> SortedRef<'_> {
        self.entry.inner.sorted()
    }

    /// Gives a member the score that `decide` says for the one that it has, if it says one.
    ///
    /// A score says where the log has a member. So it is told of the one that is gone, too.
    pub(crate) fn change(
        &mut self,
        member: Cell<'_>,
        decide: impl FnOnce(Option<f64>) -> Option<f64>,
    ) {
        let (form, len) = (self.entry.inner.value_type().form, self.sorted().len());
        let packed = self.packed;
        let changed = self.entry.inner.change_score(member, |before| {
            let is_packed = |len| form == Form::Whole && stays_packed(packed, len, member);
            match decide(before)? {
                0.0 if is_packed(len + u64::from(before.is_none())) => Some(0.0),
                score => Some(score),
            }
        });
        let Some((before, score)) = changed else {
            return;
        };
        let (mut scratch, mut old) = ([0; 8], [0; 8]);
        if let (Some(edits), Some(before)) = (&mut self.log.edits, before) {
            edits.take(&scored(member, before, &mut old));
        }
        self.note_set(&scored(member, score, &mut scratch));
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

/// Whether Redis would hold a set of so many members packed, with this one. There it has no -0.
#[cold]
fn stays_packed(packed: Packed, len: u64, member: Cell<'_>) -> bool {
    len <= packed.entries as u64 && member.text_len() <= packed.value
}
