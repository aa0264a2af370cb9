//! What is in a tree, and what its leaves rest on.

use std::collections::HashMap;

use keyspace::collection::any::Collection;
use keyspace::collection::cell::Cell;
use keyspace::collection::kind::LeafKind;
use keyspace::collection::tree::Tree;

use super::{Model, elements, streams};

pub(super) fn contents(tree: &Collection) -> Model {
    match tree {
        Collection::Hash(tree) => items(tree),
        Collection::Set(tree) => items(tree),
        Collection::SortedSet(set) => items(set),
        Collection::List(tree) => elements::elements(tree),
        Collection::Stream(tree) => streams::items(tree),
    }
}

pub(super) fn verify(tree: &Collection) {
    match tree {
        Collection::Hash(tree) => tree.verify(),
        Collection::Set(tree) => tree.verify(),
        Collection::SortedSet(set) => set.verify(),
        Collection::List(tree) => tree.verify(),
        Collection::Stream(tree) => tree.verify(),
    }
}

/// The items of a tree; a member of a set counts as a field without a value.
pub(super) fn items<K: LeafKind>(tree: &Tree<K>) -> Model {
    tree.verify();
    let text = |cell: Cell<'_>| cell.text(&mut [0; 20]).to_vec();
    let view = tree.view();
    let items = view.iter().map(|item| {
        let value = item.value.map_or(Vec::new(), text);
        (text(item.name), (value, item.expiry))
    });
    let items: Model = items.collect();
    assert_eq!(items.len() as u64, view.count());
    items
}

pub(super) fn shares(tree: &Collection) -> HashMap<u64, u64> {
    let leaves = match tree {
        Collection::Hash(tree) => tree.view().leaves(&Default::default()),
        Collection::Set(tree) => tree.view().leaves(&Default::default()),
        Collection::SortedSet(set) => set.view().leaves(&Default::default()),
        Collection::List(tree) => tree.view().leaves(&Default::default()),
        Collection::Stream(tree) => tree.view().leaves(&Default::default()),
    };
    let mut shares = HashMap::new();
    for leaf in leaves {
        *shares.entry(leaf.base().at).or_default() += u64::from(leaf.base().share);
    }
    shares
}
