//! Whether a tree is what `tree` says: for tests and fuzzing.

use super::base::Tree;
use crate::collection::kind::{Edge, LeafKind};
use crate::collection::node::{CHILDREN_MAX, Child};
use crate::collection::run::Run;
use crate::collection::view::first_fence;

/// What was counted below a node.
#[derive(Default)]
struct Counted {
    items: u64,
    bytes: usize,
    cold: u32,
}

impl<K: LeafKind> Tree<K> {
    /// Checks every invariant.
    ///
    /// # Panics
    /// If one does not hold.
    pub fn verify(&self) {
        let root = Child {
            order: 0,
            node: self.root,
            count: self.count,
        };
        let mut counted = Counted::default();
        self.verify_node(root, usize::from(self.height), None, &mut counted);
        assert_eq!(counted.items, self.count);
        assert_eq!(counted.bytes, self.bytes);
        assert_eq!(counted.cold, self.cold);
    }

    fn verify_node(
        &self,
        child: Child,
        height: usize,
        end: Option<Edge<'_>>,
        counted: &mut Counted,
    ) {
        let (node, before) = (child.node, counted.items);
        counted.bytes += node.bytes();
        if height == 0 {
            let start = Edge {
                order: child.order,
                name: node.fence(),
            };
            if node.is_cold() {
                assert!(node.base().at != 0 && node.is_whole());
                counted.cold += 1;
                counted.items += child.count;
                return;
            }
            self.verify_leaf(node.run(), start, end);
            counted.items += node.run().count() as u64;
        } else {
            let children = node.children();
            assert!((1..=CHILDREN_MAX).contains(&children.len()));
            assert_eq!(children[0].order, child.order);
            let is_root = height == usize::from(self.height);
            assert!(!is_root || children.len() > 1, "a root has a choice");
            for (at, &inner) in children.iter().enumerate() {
                let next = children.get(at + 1).map(|next| {
                    let name = first_fence(next.node, height - 1);
                    Edge {
                        order: next.order,
                        name,
                    }
                });
                self.verify_node(inner, height - 1, next.or(end), counted);
            }
        }
        assert_eq!(counted.items - before, child.count);
    }

    fn verify_leaf(&self, run: Run<'_>, start: Edge<'_>, end: Option<Edge<'_>>) {
        Run::check(run.bytes()).expect("a leaf is a run");
        let mut buffer = Vec::new();
        let logged = run.logged(&mut buffer);
        let checked = self.kind.check_leaf(logged.bytes(), &start, end.as_ref());
        checked.expect("a leaf has what belongs into it");
        assert!(logged.bytes().len() <= self.leaf_max() || run.count() == 1);
        assert!(
            !K::IS_KEYED || end.is_none_or(|end| start < end),
            "{start:?} {end:?}"
        );
        assert!(self.has_deadline(run, &start, end.as_ref()), "{start:?}");
    }
}
