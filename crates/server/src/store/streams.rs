//! Streams of a locked shard: operations beyond those of other collections ([`super::items`]).

use keyspace::collection::run::Item;
use keyspace::collection::stream::head::HeadBuffer;
use keyspace::collection::stream::{
    Consumer, EntryBuffer, Group, Head, Id, IdRange, Idempotence, Idempotent, ItemBuffer, Pending,
    StreamEntry, StreamItems,
};
use keyspace::{ChangeKind, EMPTY_STREAM, Form, STREAM, StreamRef, Type};

use super::items::{Kept, Stream, StreamEdit};
use crate::config::Packed;

impl Kept for StreamItems {
    const EMPTY: &'static [u8] = &EMPTY_STREAM;
    const TYPE: Type = STREAM;

    fn form(form: Form, _: &Item<'_>, _: u64, _: &Packed) -> Form {
        form
    }
}

impl Stream<'_, '_> {
    /// The stream.
    #[inline]
    pub(crate) fn stream(&self) -> StreamRef<'_> {
        StreamRef::of(self.items())
    }
}

impl StreamEdit<'_, '_> {
    /// The stream as it is now.
    #[inline]
    pub(crate) fn stream(&self) -> StreamRef<'_> {
        StreamRef::of(self.items())
    }

    /// Sets an item that is no change for itself.
    fn put(&mut self, item: &Item<'_>) {
        self.entry.inner.set_item(item);
        if let Some(edits) = &mut self.log.edits {
            edits.set(item);
        }
    }

    /// The same of an item that is probably there, and one of the first.
    fn put_early(&mut self, item: &Item<'_>) {
        match self.stream().rank_of_item(item) {
            Some(rank) => self.entry.inner.replace_item_at(rank, item),
            None => drop(self.entry.inner.set_item(item)),
        }
        if let Some(edits) = &mut self.log.edits {
            edits.set(item);
        }
    }

    /// Gives the stream another head, or its first.
    #[inline]
    pub(crate) fn put_head(&mut self, head: &Head) {
        let mut buffer = HeadBuffer::default();
        let item = head.item(&mut buffer);
        match self.stream().has_head() {
            true => self.entry.inner.replace_item_at(0, &item),
            false => drop(self.entry.inner.set_item(&item)),
        }
        if let Some(edits) = &mut self.log.edits {
            edits.set(&item);
        }
    }

    /// Adds a shape.
    pub(crate) fn put_shape(&mut self, number: u8, names: &[u8]) {
        self.put(&StreamRef::shape_item(number, names, &mut [0; 2]));
    }

    /// Adds an entry, which probably comes after all others.
    #[inline]
    pub(crate) fn add(&mut self, base: u64, entry: StreamEntry<'_>, buffer: &mut EntryBuffer) {
        let item = entry.item(base, buffer);
        self.entry.inner.set_last_item(&item);
        if let Some(edits) = &mut self.log.edits {
            edits.set(&item);
        }
        self.changes += 1;
    }

    /// Removes the entry of an ID; whether it was there.
    pub(crate) fn take_entry(&mut self, id: Id) -> bool {
        let (base, mut buffer) = (self.stream().base(), EntryBuffer::default());
        let entry = StreamEntry { id, content: b"" };
        let item = entry.item(base, &mut buffer);
        let is_taken = self.take(&item);
        self.changes += u64::from(is_taken);
        is_taken
    }

    /// Removes so many items from a rank on, which are all that there is of a range of IDs.
    pub(crate) fn cut_ranks(&mut self, range: &IdRange, rank: u64, count: u64) {
        self.entry.inner.cut_ranks(range, rank, count);
        self.changes += count;
        if let Some(edits) = &mut self.log.edits {
            edits.cut_ids(range);
        }
    }

    /// Removes the items of a range of IDs; how many there were.
    pub(crate) fn cut_ids(&mut self, range: &IdRange) -> u64 {
        let gone = self.entry.inner.cut_ids(range);
        if gone > 0 {
            self.changes += gone;
            if let Some(edits) = &mut self.log.edits {
                edits.cut_ids(range);
            }
        }
        gone
    }

    /// Removes an item; whether it was there.
    fn take(&mut self, item: &Item<'_>) -> bool {
        let is_taken = self.entry.inner.take_stream_item(item);
        if let Some(edits) = &mut self.log.edits
            && is_taken
        {
            edits.take(item);
        }
        is_taken
    }

    /// Sets a group.
    pub(crate) fn put_group(&mut self, name: &[u8], group: &Group) {
        self.put_early(&ItemBuffer::default().group(name, Some(group)));
    }

    /// Sets a consumer.
    pub(crate) fn put_consumer(&mut self, group: u32, number: u32, consumer: &Consumer<'_>) {
        self.put_early(&ItemBuffer::default().consumer(group, number, Some(consumer)));
    }

    /// Makes a consumer.
    pub(crate) fn new_consumer(&mut self, group: u32, number: u32, consumer: &Consumer<'_>) {
        self.put_consumer(group, number, consumer);
        self.put(&ItemBuffer::default().consumer_name(group, consumer.name, number));
    }

    /// Sets a pending entry.
    #[inline]
    pub(crate) fn put_pending(&mut self, group: u32, pending: &Pending, buffer: &mut ItemBuffer) {
        let base = self.stream().base();
        self.put(&buffer.pending(base, group, pending));
    }

    /// Adds pending entries, in the order of their IDs. The group has none of these, and none between them.
    pub(crate) fn add_pending(&mut self, group: u32, pending: &[Pending]) {
        let edits = &mut self.log.edits;
        self.entry.inner.add_pending(group, pending, |item| {
            if let Some(edits) = edits {
                edits.set(item);
            }
        });
    }

    /// Changes a consumer that is there.
    pub(crate) fn change_consumer(
        &mut self,
        group: u32,
        number: u32,
        change: impl FnOnce(Consumer<'_>) -> Consumer<'_>,
    ) {
        let mut buffer = ItemBuffer::default();
        let rank = self
            .stream()
            .rank_of_item(&buffer.consumer(group, number, None));
        let item = rank.and_then(|rank| self.items().at(rank));
        if let (Some(rank), Some((.., consumer))) = (rank, item.as_ref().and_then(Consumer::of)) {
            let item = buffer.consumer(group, number, Some(&change(consumer)));
            self.entry.inner.replace_item_at(rank, &item);
            if let Some(edits) = &mut self.log.edits {
                edits.set(&item);
            }
        }
    }

    /// Notes that a consumer has more pending entries, or less.
    pub(crate) fn count_pending(&mut self, group: u32, number: u32, more: i64) {
        self.change_consumer(group, number, |consumer| Consumer {
            pending: consumer.pending.saturating_add_signed(more),
            ..consumer
        });
    }

    /// Removes a group, which has neither consumers nor pending entries.
    pub(crate) fn take_group(&mut self, name: &[u8]) {
        self.take(&ItemBuffer::default().group(name, None));
    }

    /// Removes a consumer, which has no pending entries.
    pub(crate) fn take_consumer(&mut self, group: u32, number: u32, name: &[u8]) {
        let mut buffer = ItemBuffer::default();
        self.take(&buffer.consumer(group, number, None));
        self.take(&buffer.consumer_name(group, name, number));
    }

    /// Removes a pending entry; whether it was there.
    pub(crate) fn take_pending(
        &mut self,
        group: u32,
        pending: &Pending,
        buffer: &mut ItemBuffer,
    ) -> bool {
        let base = self.stream().base();
        self.take(&buffer.pending(base, group, pending))
    }

    /// Sets the settings of idempotent IDs.
    pub(crate) fn put_idempotence(&mut self, settings: &Idempotence) {
        self.put_early(&ItemBuffer::default().idempotence(settings));
    }

    /// Notes an idempotent ID, and its entry.
    pub(crate) fn put_idempotent(&mut self, idempotent: &Idempotent<'_>, entry: Id) {
        let mut buffer = ItemBuffer::default();
        self.put(&buffer.known(idempotent, entry));
        self.put(&buffer.age(idempotent));
    }

    /// Forgets an idempotent ID.
    pub(crate) fn take_idempotent(&mut self, idempotent: &Idempotent<'_>) {
        let mut buffer = ItemBuffer::default();
        self.take(&buffer.known(idempotent, Id::MIN));
        self.take(&buffer.age(idempotent));
    }

    /// Counts an entry that was not added, as it was there: no change that anybody is told of.
    pub(crate) fn count_duplicate(&mut self, settings: &Idempotence) {
        self.put_idempotence(settings);
        self.is_of_groups(false);
        self.is_silent = true;
        self.only_change();
    }

    /// Only groups change. `concerns_readers`: those that wait for entries have to look again.
    pub(crate) fn is_of_groups(&mut self, concerns_readers: bool) {
        self.kind_of_change = ChangeKind::Groups { concerns_readers };
    }

    /// Notes a change that is none of entries.
    pub(crate) fn note_change(&mut self) {
        self.changes += 1;
    }

    /// Notes that all changes count as one.
    pub(crate) fn only_change(&mut self) {
        self.changes = 1;
    }
}
