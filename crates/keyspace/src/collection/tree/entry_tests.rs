//! Entries of streams against a map.

use std::collections::BTreeMap;

use super::base::{LEAF_MAX, Tree};
use super::edit::Put;
use super::neighbours::Finger;
use crate::collection::clones::Frozen;
use crate::collection::kind::{Edge, LeafKind};
use crate::collection::stream::kind::IdName;
use crate::collection::stream::{EntryBuffer, Id, Section, StreamEntry, StreamItems};
use crate::collection::view::View;

/// Changes of a test.
const STEPS: usize = if cfg!(miri) { 300 } else { 20_000 };
const NOW: u64 = 1_700_000_000_000;

type Model = BTreeMap<Id, Vec<u8>>;

fn entries(view: View<'_, StreamItems>) -> Model {
    let base = view.kind.base();
    let entries = view.iter().map(|item| StreamEntry::of(base, &item));
    let entries = entries.map(|entry| entry.expect("all are entries"));
    entries
        .map(|entry| (entry.id, entry.content.to_vec()))
        .collect()
}

fn compare(tree: &Tree<StreamItems>, model: &Model) {
    tree.verify();
    assert_eq!(entries(tree.view()), *model);
    assert_eq!(tree.count(), model.len() as u64);
    // A log may have each leaf.
    let leaves: Vec<_> = tree.view().leaves(&Edge::default()).collect();
    for (at, leaf) in leaves.iter().enumerate() {
        let end = leaves.get(at + 1).map(|next| next.start());
        let bytes = leaf.run().bytes();
        let checked = tree.kind.check_leaf(bytes, &leaf.start(), end.as_ref());
        checked.expect("a leaf can be read back");
    }
}

/// IDs close to each other, and some anywhere.
fn random_id(random: &mut fastrand::Rng, last: Id) -> Id {
    let ms = match random.u8(..20) {
        0 => random.u64(..),
        1 => u64::MAX - random.u64(..3),
        2 => random.u64(..3),
        3..10 => last.ms.saturating_add(random.u64(..40)),
        _ => NOW + random.u64(..3_000),
    };
    let seq = match random.u8(..6) {
        0 => random.u64(..),
        1 => u64::MAX - random.u64(..3),
        2 | 3 => 0,
        _ => random.u64(..60),
    };
    Id { ms, seq }
}

/// Adds some entries from an ID on, up to the next one that there is.
fn add_neighbours(
    tree: &mut Tree<StreamItems>,
    model: &mut Model,
    random: &mut fastrand::Rng,
    from: Id,
) {
    let (base, end) = (tree.kind.base(), model.range(from..).next());
    let end = end.map_or(Id::MAX, |(&id, _)| id);
    let (mut finger, mut buffer, mut id) = (Finger::default(), EntryBuffer::default(), from);
    for _ in 0..random.usize(..60) {
        if id >= end {
            return;
        }
        let content = &[b'y'; 40][..random.usize(..40)];
        let entry = StreamEntry { id, content };
        let order = Section::ENTRIES.order(id);
        tree.add_next(&mut finger, order, &entry.item(base, &mut buffer));
        model.insert(id, content.to_vec());
        let step = [1, 60, 1 << 64, 1 << 80][random.usize(..4)];
        id = Id::of_bits(id.bits().saturating_add(random.u128(1..=step)));
    }
}

#[test]
fn entries_are_like_a_map() {
    for (leaf_max, base) in [(64, NOW), (LEAF_MAX, NOW), (LEAF_MAX, 0), (200, 1 << 47)] {
        let mut random = fastrand::Rng::with_seed(leaf_max as u64 ^ base);
        let mut tree = Tree::new(StreamItems::new(base), leaf_max);
        let mut model = Model::new();
        let mut clones: Vec<(Frozen<StreamItems>, Model)> = Vec::new();
        let mut buffer = EntryBuffer::default();
        let (mut last, mut taken) = (Id::default(), 0);
        for step in 0..STEPS {
            let grows = (step / (STEPS / 5)).is_multiple_of(2);
            let id = random_id(&mut random, last);
            let content = vec![b'x'; random.usize(..40)];
            let item = StreamEntry {
                id,
                content: &content,
            }
            .item(base, &mut buffer);
            let found = tree.view().find(&item);
            let found = found.map(|item| StreamEntry::of(base, &item).expect("an entry").content);
            assert_eq!(found, model.get(&id).map(Vec::as_slice));
            let mut name = IdName::default();
            let edge = Section::ENTRIES.edge(id, &mut name);
            let before = model.range(..id).count() as u64;
            if step % 16 == 0 {
                assert_eq!(tree.view().count_before(&edge), before);
            }
            if grows && random.u8(..20) == 0 {
                add_neighbours(&mut tree, &mut model, &mut random, id);
            } else if random.u8(..10) < if grows { 8 } else { 3 } {
                let put = match random.bool() {
                    true => tree.set(&item),
                    false => tree.set_last(&item),
                };
                let was = model.insert(id, content);
                assert_eq!(put == Put::Added, was.is_none());
                last = id;
            } else if random.u8(..8) == 0 && !model.is_empty() {
                let rank = random.u64(..model.len() as u64);
                let count = random.u64(1..20).min(model.len() as u64 - rank);
                if tree.take_ranks(rank, count) {
                    let keys = model.keys().skip(rank as usize).take(count as usize);
                    let keys: Vec<Id> = keys.copied().collect();
                    keys.iter().for_each(|id| drop(model.remove(id)));
                    taken += 1;
                }
            } else if random.u8(..3) == 0 {
                let to = Id::of_bits(id.bits().saturating_add(random.u128(..1 << 70)));
                let mut end = IdName::default();
                let end = Section::ENTRIES.edge(to, &mut end);
                let gone = tree.cut(&edge, Some(&end));
                let keys: Vec<Id> = model.range(id..to).map(|(&id, _)| id).collect();
                assert_eq!(gone, keys.len() as u64);
                keys.iter().for_each(|id| drop(model.remove(id)));
            } else if let Some((&next, content)) = model.range(id..).next() {
                let content = content.clone();
                let entry = StreamEntry {
                    id: next,
                    content: &content,
                };
                assert!(tree.remove_item(&entry.item(base, &mut buffer)));
                model.remove(&next);
            }
            match random.u8(..200) {
                0 => clones.push((tree.freeze(), model.clone())),
                1 if !clones.is_empty() => {
                    let (clone, then) = clones.swap_remove(random.usize(..clones.len()));
                    assert_eq!(entries(clone.view()), then);
                }
                2 | 3 => compare(&tree, &model),
                _ => {}
            }
        }
        compare(&tree, &model);
        assert!(taken > 0);
    }
}

/// Bytes beyond those of the entries, 100 of a stream that was made at once, and 100,000 over a day.
#[test]
fn a_stream_is_small() {
    const CONTENT: &[u8] = b"25 bytes of fields, value";
    let mut buffer = EntryBuffer::default();
    for (count, ms, most) in [(100, 3, 10.0), (100_000, 864, 9.0)] {
        let mut tree = Tree::new(StreamItems::new(NOW), LEAF_MAX);
        for at in 0..count {
            let id = Id {
                ms: NOW + at * ms,
                seq: 0,
            };
            let entry = StreamEntry {
                id,
                content: CONTENT,
            };
            tree.set(&entry.item(NOW, &mut buffer));
        }
        let each = tree.bytes() as f64 / count as f64 - CONTENT.len() as f64;
        println!("{count} entries: {each:.2} bytes beyond the content of each");
        assert!(each <= most, "{each}");
    }
}
