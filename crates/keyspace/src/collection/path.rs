//! The way from the root of a tree to a leaf.

use super::kind::Edge;
use super::node::{Child, Node};
use super::run::Fraction;

/// Levels of inner nodes a tree may have: with 16 children each they would be more than fit into memory.
pub(super) const HEIGHT_MAX: usize = 14;

/// The nodes from the root to a leaf, and which child was taken in each.
#[derive(Clone, Debug)]
pub(super) struct Path {
    pub(super) nodes: [Node; HEIGHT_MAX + 1],
    pub(super) taken: [u16; HEIGHT_MAX],
    pub(super) height: usize,
}

impl Path {
    pub(super) fn new(root: Node, height: u8) -> Path {
        Path {
            nodes: [root; HEIGHT_MAX + 1],
            taken: [0; HEIGHT_MAX],
            height: usize::from(height),
        }
    }

    #[inline]
    pub(super) fn leaf(&self) -> Node {
        self.nodes[self.height]
    }

    #[inline]
    pub(super) fn take(&mut self, depth: usize, child: usize) {
        self.taken[depth] = child as u16;
        self.nodes[depth + 1] = self.nodes[depth].children()[child].node;
    }

    /// About how much of the leaf is before an edge, if its order keys are evenly spread.
    #[inline]
    pub(super) fn part_before(&self, edge: &Edge<'_>) -> Fraction {
        let Some(above) = self.height.checked_sub(1) else {
            return Fraction::HALF;
        };
        part_before(
            self.nodes[above].children(),
            usize::from(self.taken[above]),
            edge.order,
        )
    }

    /// Goes to the next leaf, or to the one before; whether there is one.
    pub(super) fn step(&mut self, is_forward: bool) -> bool {
        for depth in (0..self.height).rev() {
            let (taken, children) = (usize::from(self.taken[depth]), self.nodes[depth].children());
            let next = match is_forward {
                true => Some(taken + 1).filter(|&next| next < children.len()),
                false => taken.checked_sub(1),
            };
            if let Some(next) = next {
                self.take(depth, next);
                self.fall(depth + 1, is_forward);
                return true;
            }
        }
        false
    }

    /// Goes down to the first leaf below, or to the last.
    pub(super) fn fall(&mut self, from: usize, is_first: bool) {
        for depth in from..self.height {
            let last = self.nodes[depth].children().len() - 1;
            self.take(depth, if is_first { 0 } else { last });
        }
    }

    /// The order key at which the next leaf begins; the greatest of all if there is none.
    pub(super) fn end(&self) -> u128 {
        let next = (0..self.height).rev().find_map(|depth| {
            let next = usize::from(self.taken[depth]) + 1;
            self.nodes[depth].children().get(next)
        });
        next.map_or(u128::MAX, |next| next.order)
    }

    /// Whether this is the last leaf, or the first.
    pub(super) fn is_outermost(&self, is_last: bool) -> bool {
        (0..self.height).all(|depth| match is_last {
            true => usize::from(self.taken[depth]) + 1 == self.nodes[depth].children().len(),
            false => self.taken[depth] == 0,
        })
    }
}

/// About how much of a child is before an order key that is in it.
#[inline]
pub(super) fn part_before(children: &[Child], index: usize, order: u128) -> Fraction {
    let from = children[index].order;
    match children.get(index + 1) {
        Some(next) => Fraction::of(order.saturating_sub(from), next.order.saturating_sub(from)),
        None => Fraction::HALF,
    }
}
