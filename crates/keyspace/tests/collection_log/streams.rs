//! Changes of a stream, and the items that should be in it: entries, pending entries of two groups, and the
//! head.

use keyspace::StreamRef;
use keyspace::collection::Base;
use keyspace::collection::any::Collection;
use keyspace::collection::log::edits::Edits;
use keyspace::collection::run::Item;
use keyspace::collection::stream::head::HeadBuffer;
use keyspace::collection::stream::{
    EntryBuffer, Head, Id, IdRange, ItemBuffer, Pending, Section, StreamEntry, StreamItems,
};
use keyspace::collection::tree::Tree;

use super::{Model, Record, SEED, World, verify};

/// The name in the model of an item with an ID; that of a head has none.
fn name_of(section: Option<u32>, id: Id) -> Vec<u8> {
    let section = section.map_or(u64::MAX, u64::from);
    [&section.to_be_bytes()[..], &id.bits().to_be_bytes()].concat()
}

fn section_of(group: Option<u32>) -> Section {
    group.map_or(Section::ENTRIES, Section::of_pending)
}

/// The items of a stream.
pub(super) fn items(tree: &Tree<StreamItems>) -> Model {
    tree.verify();
    let view = tree.view();
    let items = view.iter().map(|item| {
        if let Some(entry) = StreamEntry::of(SEED, &item) {
            return (name_of(None, entry.id), (entry.content.to_vec(), None));
        }
        if let Some((group, pending)) = Pending::of(SEED, &item) {
            let value = pending.deliveries.to_string().into_bytes();
            return (name_of(Some(group), pending.id), (value, None));
        }
        let head = Head::of(&item).expect("there is nothing else");
        (Vec::new(), (head.added.to_string().into_bytes(), None))
    });
    let items: Model = items.collect();
    assert_eq!(items.len() as u64, view.count());
    items
}

fn pending(id: Id, deliveries: u64) -> Pending {
    Pending {
        id,
        consumer: 1,
        delivered: id.ms.wrapping_add(7),
        deliveries,
    }
}

/// Gives out an item of a section: an entry, or a pending entry of a group.
fn with_item<R>(group: Option<u32>, id: Id, number: u64, with: impl FnOnce(&Item<'_>) -> R) -> R {
    let content = vec![b'v'; number as usize];
    match group {
        None => {
            let mut buffer = EntryBuffer::default();
            let content = &content[..];
            with(&StreamEntry { id, content }.item(SEED, &mut buffer))
        }
        Some(group) => with(&ItemBuffer::default().pending(SEED, group, &pending(id, number))),
    }
}

impl World {
    fn random_id(&mut self) -> Id {
        let far = u64::MAX - self.random.below(3);
        let ms = match self.random.below(12) {
            0 => far,
            _ => SEED - 5 + self.random.below(15),
        };
        let seq = match self.random.below(12) {
            0 => far,
            _ => self.random.below(4),
        };
        Id { ms, seq }
    }

    /// Brings leaves back until `cold` finds none.
    fn warm_while(&mut self, cold: impl Fn(StreamRef<'_>) -> Vec<Base>) {
        loop {
            let stream = StreamRef::in_tree(&self.tree).expect("it is a stream");
            let Some(base) = cold(stream).pop() else {
                return;
            };
            self.warm_from(base);
        }
    }

    fn warm_id(&mut self, group: Option<u32>, id: Id) {
        let section = section_of(group);
        self.warm_while(|stream| stream.cold_at(section, id).into_iter().collect());
    }

    fn warm_cut(&mut self, range: &IdRange) {
        self.warm_id_of(range.section, range.from);
        self.warm_id_of(range.section, range.last);
        let range = *range;
        self.warm_while(|stream| {
            let from = stream.rank_of(range.section, range.from);
            let to = stream.rank_behind(range.section, range.last);
            let items = stream.items();
            let mut records = items.cold_between(from.saturating_sub(1), from + 1);
            records.extend(items.cold_between(to.saturating_sub(1), to + 1));
            records
        });
    }

    fn warm_id_of(&mut self, section: Section, id: Id) {
        self.warm_while(|stream| stream.cold_at(section, id).into_iter().collect());
    }

    fn stream_mut(&mut self) -> &mut Tree<StreamItems> {
        match &mut self.tree {
            Collection::Stream(tree) => tree,
            _ => panic!("it is a stream"),
        }
    }

    /// One record of changes of a stream; of four, so many are removals.
    pub(super) fn edit_stream(&mut self, removals: u64) {
        let mut edits = Edits::default();
        for _ in 0..=self.random.below(3) {
            if self.random.below(6) == 0 {
                self.edit_head(&mut edits);
                continue;
            }
            let group = [None, None, Some(0), Some(70)][self.random.below(4) as usize];
            let id = self.random_id();
            match self.random.below(4) < removals {
                false => {
                    self.warm_id(group, id);
                    let number = self.random.below(9);
                    let tree = self.stream_mut();
                    with_item(group, id, number, |item| {
                        tree.set(item);
                        edits.set(item);
                    });
                    let value = match group {
                        None => vec![b'v'; number as usize],
                        Some(_) => number.to_string().into_bytes(),
                    };
                    self.model.insert(name_of(group, id), (value, None));
                }
                true if self.random.below(3) > 0 => {
                    self.warm_id(group, id);
                    let tree = self.stream_mut();
                    let is_gone = with_item(group, id, 0, |item| {
                        let is_gone = tree.remove_item(item);
                        if is_gone {
                            edits.take(item);
                        }
                        is_gone
                    });
                    let name = name_of(group, id);
                    assert_eq!(self.model.remove(&name).is_some(), is_gone);
                }
                true => self.cut(&mut edits, group, id),
            }
        }
        if !edits.is_empty() {
            self.log.append(Record::Edit(edits.bytes().to_vec()));
        }
        self.tree.tell_lost();
        verify(&self.tree);
    }

    fn cut(&mut self, edits: &mut Edits, group: Option<u32>, from: Id) {
        let last = match self.random.below(3) {
            0 => Id::MAX,
            _ => self.random_id().max(from),
        };
        let range = IdRange {
            section: section_of(group),
            from,
            last,
        };
        self.warm_cut(&range);
        let tree = self.stream_mut();
        let before = tree.count();
        let (mut first, mut second) = Default::default();
        let start = range.section.edge(from, &mut first);
        let end = range.section.edge_behind(last, &mut second);
        let gone = tree.cut(&start, Some(&end));
        assert_eq!(before - tree.count(), gone);
        edits.cut_ids(&range);
        let names = name_of(group, from)..=name_of(group, last);
        let named: Vec<_> = self
            .model
            .range(names)
            .map(|(name, _)| name.clone())
            .collect();
        assert_eq!(named.len() as u64, gone);
        named.iter().for_each(|name| drop(self.model.remove(name)));
    }

    fn edit_head(&mut self, edits: &mut Edits) {
        let added = self.random.below(1 << 20);
        let head = Head {
            added,
            ..Head::new(SEED)
        };
        let mut buffer = HeadBuffer::default();
        let item = head.item(&mut buffer);
        // The first leaf does not leave memory.
        self.stream_mut().set(&item);
        edits.set(&item);
        let value = added.to_string().into_bytes();
        self.model.insert(Vec::new(), (value, None));
    }
}
