//! Other expiries for many items at once.
//!
//! The items are met in the order of the tree. So each leaf is found once, however many of its items get
//! another expiry, and its deadline is made once behind them.

use super::base::Tree;
use crate::collection::cell::{Cell, DECIMAL_MAX};
use crate::collection::kind::{Edge, LeafKind};
use crate::collection::run::Item;

/// Says for the item that is the `at`th of those asked for whether it gets another expiry, and which: a time
/// (Unix, ms), or none. It hears the expiry that the item has.
pub type Decide<'d> = &'d mut dyn FnMut(usize, Option<u64>) -> Option<Option<u64>>;

/// An item that is asked for: its order key, and which one it is.
type Place = (u128, usize);

impl<K: LeafKind> Tree<K> {
    /// Gives the items of these names the expiries that `decide` says, where the order key follows from the
    /// name. Of a name without an item it hears nothing. Of a name that is there more than once it hears in
    /// their order.
    pub fn reschedule_each(&mut self, names: &[Cell<'_>], decide: Decide<'_>) {
        let orders = names
            .iter()
            .map(|&name| self.kind.order(&Item::single(name)));
        let mut places: Vec<Place> = orders.zip(0..).collect();
        places.sort_unstable();
        let mut left = &places[..];
        while !left.is_empty() {
            let done = self.reschedule_in_leaf(names, left, decide);
            left = &left[done..];
        }
    }

    /// The same for the first of these places, of which there is one at least, and for those behind it that
    /// are in the same leaf, up to one for which the leaf is too small. Returns how many these were.
    fn reschedule_in_leaf(
        &mut self,
        names: &[Cell<'_>],
        places: &[Place],
        decide: Decide<'_>,
    ) -> usize {
        let (mut scratch, mut fence) = ([0; DECIMAL_MAX], Vec::new());
        let first = Edge::of(&self.kind, &Item::single(names[places[0].1]), &mut scratch);
        let end = self.view().leaves(&first).nth(1).map(|next| {
            fence.extend_from_slice(next.fence);
            next.order
        });
        let end = end.map(|order| Edge {
            order,
            name: &fence,
        });
        let mut path = self.view().seek(&first);
        let deadline = self.deadline_of(path.leaf().run());
        let (mut done, mut is_changed, mut is_shorter) = (0, false, false);
        let mut buffer = Vec::new();
        for &(_, at) in places {
            let (item, mut scratch) = (Item::single(names[at]), [0; DECIMAL_MAX]);
            let edge = Edge::of(&self.kind, &item, &mut scratch);
            if done > 0 && end.as_ref().is_some_and(|end| edge >= *end) {
                break;
            }
            done += 1;
            let (index, found) = self.view().locate(&path, &item, &edge);
            let Some(found) = found else {
                continue;
            };
            let Some(expiry) = decide(at, found.expiry).filter(|&expiry| expiry != found.expiry)
            else {
                continue;
            };
            let item = found.moved_to(&mut buffer).with_expiry(expiry);
            let run = path.leaf().run();
            let growth = run.growth(&item, Some(index));
            let len = growth.map(|growth| run.filled().saturating_add_signed(growth));
            let Some(len) = len.filter(|&len| len <= self.leaf_max() || run.count() == 1) else {
                if is_changed {
                    self.settle_leaf(path.leaf(), deadline);
                }
                // It splits the leaf: what follows is sought anew.
                self.put(&mut path, index, true, &item);
                return done;
            };
            is_shorter |= len < run.filled();
            is_changed = true;
            let room = len + run.gap();
            self.own_inner(&mut path);
            let leaf = self.own_leaf(&mut path, room);
            leaf.edit(|run| run.replace(index, &item));
        }
        if is_changed {
            self.settle_leaf(path.leaf(), deadline);
        }
        if is_shorter {
            self.slim_now(&mut path);
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collection::kind::Fields;
    use crate::collection::tree::LEAF_MAX;
    use crate::hash::Seed;

    /// As one after the other, also of names that are there twice or not at all, and of a tree that has a
    /// clone, which stays as it is.
    #[test]
    fn many_at_once_are_as_one_after_the_other() {
        let mut random = fastrand::Rng::with_seed(8);
        for leaf_max in [64, 200, LEAF_MAX] {
            for count in [0, 1, 40, 2_000] {
                let tree = || Tree::new(Fields { seed: Seed::new(5) }, leaf_max);
                let (mut one, mut other) = (tree(), tree());
                let texts: Vec<String> = (0..count + 3).map(|at| format!("field {at}")).collect();
                for text in &texts[..count] {
                    let name = Cell::of(text.as_bytes());
                    let item = Item::pair(name, Cell::Int(random.i64(..)));
                    let item = item.with_expiry(random.bool().then(|| random.u64(..100)));
                    one.set(&item);
                    other.set(&item);
                }
                for round in 0..20 {
                    let frozen = (round % 3 == 0).then(|| other.freeze());
                    let before: Vec<_> = items_of(&one);
                    let names: Vec<Cell<'_>> = (0..random.usize(..count + 9))
                        .map(|_| Cell::of(texts[random.usize(..texts.len())].as_bytes()))
                        .collect();
                    let (share, salt) = (random.u64(1..4), random.u64(..));
                    let decide = |at: usize, old: Option<u64>| {
                        let drawn = (at as u64 * 7 + salt % 100 + old.unwrap_or(5)) % 16;
                        drawn
                            .is_multiple_of(share)
                            .then_some((drawn > 3 * share).then_some(drawn + 1))
                    };
                    let mut heard = Vec::new();
                    for (at, &name) in names.iter().enumerate() {
                        if let Some(old) = one.view().get(name).map(|item| item.expiry) {
                            heard.push((at, old));
                            if let Some(expiry) = decide(at, old) {
                                one.reschedule(name, expiry);
                            }
                        }
                    }
                    let mut heard_too = Vec::new();
                    other.reschedule_each(&names, &mut |at, old| {
                        heard_too.push((at, old));
                        decide(at, old)
                    });
                    heard_too.sort_unstable();
                    assert_eq!(heard, heard_too);
                    other.verify();
                    assert_eq!(items_of(&one), items_of(&other));
                    if let Some(frozen) = frozen {
                        let items = frozen.view().iter();
                        let mut items: Vec<_> = items.map(|item| format!("{item:?}")).collect();
                        items.sort_unstable();
                        assert_eq!(before, items);
                    }
                }
            }
        }
    }

    fn items_of(tree: &Tree<Fields>) -> Vec<String> {
        let mut items: Vec<_> = tree.view().iter().map(|item| format!("{item:?}")).collect();
        items.sort_unstable();
        items
    }
}
