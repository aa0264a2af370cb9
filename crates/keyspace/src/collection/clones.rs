//! Clones of a tree: one moment of it, had in O(1) and read without a lock.
//!
//! A tree has a version, and each node the version in which it was made. A clone is a root and the
//! version at that moment; taking it raises the tree's. From then on the tree copies a node before it
//! changes it, if the node is not younger than the newest living clone; what was replaced is freed at
//! once if no clone sees it, else it waits here for the last one that does.
//!
//! A clone of version `v` sees a node iff `birth <= v < death`, where `death` is the tree's version when
//! the node was replaced. Nodes have no reference counts: a clone costs the writers the copies (a leaf
//! and the inner nodes above it, once for each), its reader nothing.
//!
//! A tree that is dropped while clones live leaves its nodes here; the last clone frees them. To end a
//! clone costs a look at each replaced node, and to drop a tree (or the last clone of one that is gone)
//! one at each of its nodes: the owner does that in the background, if they are more than a few.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU64, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

use parking_lot::{Mutex, MutexGuard};

use super::kind::LeafKind;
use super::node::Node;
use super::view::View;

/// Replaced nodes that are looked at in less time than it takes to wake a thread that does it.
const FEW_REPLACED: usize = 16;

/// What a tree and its clones share.
#[derive(Debug, Default)]
pub(super) struct Clones {
    /// The version of the newest living clone; 0 if there is none. Stored with `Release` when a clone
    /// has ended, so that a tree that reads it may write where the clone has read.
    newest: AtomicU64,
    /// Bytes of nodes that only clones see.
    held: AtomicUsize,
    register: Mutex<Register>,
}

#[derive(Debug, Default)]
struct Register {
    /// Versions of living clones, in order.
    living: Vec<u64>,
    replaced: Vec<Replaced>,
    /// The root of the dropped tree, and its height.
    orphan: Option<(Node, u8)>,
}

/// A node that is no part of the tree any more.
#[derive(Debug)]
struct Replaced {
    node: Node,
    death: u64,
}

impl Register {
    fn is_seen(&self, node: Node, death: u64) -> bool {
        let from = self
            .living
            .partition_point(|&version| version < node.birth());
        self.living
            .get(from)
            .is_some_and(|&version| version < death)
    }
}

impl Clones {
    #[inline]
    pub(super) fn newest(&self) -> u64 {
        self.newest.load(Acquire)
    }

    pub(super) fn held(&self) -> usize {
        self.held.load(Relaxed)
    }

    fn begin(&self, version: u64) {
        let mut register = self.register.lock();
        register.living.push(version);
        self.newest.store(version, Relaxed);
    }

    /// Frees a node that the tree of this version has replaced, now or when its last clone ends.
    pub(super) fn replace(&self, node: Node, death: u64) {
        let mut register = self.register.lock();
        if register.is_seen(node, death) {
            self.held.fetch_add(node.bytes(), Relaxed);
            register.replaced.push(Replaced { node, death });
            return;
        }
        // SAFETY: the tree has given it up, and no clone sees it.
        unsafe { node.free() }
    }

    /// Takes the nodes of a tree that is dropped, if a clone lives.
    pub(super) fn adopt(&self, root: Node, height: u8, bytes: usize) -> bool {
        let mut register = self.register.lock();
        if register.living.is_empty() {
            return false;
        }
        register.orphan = Some((root, height));
        self.held.fetch_add(bytes, Relaxed);
        true
    }

    fn end(&self, version: u64) {
        self.end_in(self.register.lock(), version);
    }

    /// Ends a clone if that takes few steps: the tree is there, and few of its nodes were replaced.
    fn end_if_light(&self, version: u64) -> bool {
        let register = self.register.lock();
        let is_light = register.orphan.is_none() && register.replaced.len() <= FEW_REPLACED;
        if is_light {
            self.end_in(register, version);
        }
        is_light
    }

    fn end_in(&self, mut register: MutexGuard<'_, Register>, version: u64) {
        register.living.retain(|&other| other != version);
        let newest = register.living.last().copied().unwrap_or(0);
        let mut replaced = std::mem::take(&mut register.replaced);
        replaced.retain(|gone| {
            if register.is_seen(gone.node, gone.death) {
                return true;
            }
            self.held.fetch_sub(gone.node.bytes(), Relaxed);
            // SAFETY: the tree gave it up when it was replaced, and no living clone sees it.
            unsafe { gone.node.free() }
            false
        });
        register.replaced = replaced;
        let orphan = register.orphan.take_if(|_| newest == 0);
        self.newest.store(newest, Release);
        drop(register);
        if let Some((root, height)) = orphan {
            // SAFETY: the tree is gone, and so are its clones.
            unsafe { free_all(root, height) }
            self.held.store(0, Relaxed);
        }
    }
}

/// Frees a node and all below.
///
/// # Safety
/// Nobody has any of them any more.
pub(super) unsafe fn free_all(node: Node, height: u8) {
    if height > 0 {
        for child in node.children() {
            // SAFETY: as the caller says.
            unsafe { free_all(child.node, height - 1) }
        }
    }
    // SAFETY: as the caller says.
    unsafe { node.free() }
}

/// The version of a clone that has ended. No tree has it.
const ENDED: u64 = 0;

/// One moment of a tree.
#[derive(Debug)]
pub struct Frozen<K> {
    kind: K,
    root: Node,
    height: u8,
    count: u64,
    instance: u64,
    version: u64,
    clones: Arc<Clones>,
}

impl<K: LeafKind> Frozen<K> {
    /// The moment `view` of a tree that has this version.
    pub(super) fn new(view: &View<'_, K>, version: u64, clones: Arc<Clones>) -> Frozen<K>
    where
        K: Clone,
    {
        clones.begin(version);
        Frozen {
            kind: view.kind.clone(),
            root: view.root,
            height: view.height,
            count: view.count,
            instance: view.instance,
            version,
            clones,
        }
    }

    /// What was in the tree at that moment.
    pub fn view(&self) -> View<'_, K> {
        View {
            kind: &self.kind,
            root: self.root,
            height: self.height,
            count: self.count,
            instance: self.instance,
            has_cold: None,
            thawed: None,
            alive: PhantomData,
        }
    }
}

impl<K> Frozen<K> {
    /// Drops it, if that takes few steps.
    pub(super) fn drop_if_light(mut self) -> Option<Self> {
        if !self.clones.end_if_light(self.version) {
            return Some(self);
        }
        self.version = ENDED;
        None
    }
}

impl<K> Drop for Frozen<K> {
    fn drop(&mut self) {
        if self.version != ENDED {
            self.clones.end(self.version);
        }
    }
}
