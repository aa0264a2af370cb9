//! The memory of a tree's nodes: one allocation each, for a leaf's run or for the children of an inner
//! node.
//!
//! ```text
//!  0       8      12     16     24      28    32
//!  +-------+------+------+------+-------+-----+---------------------------------------
//!  | birth | room | used | base | share |flags| leaf:  fence length (4 B, if fenced), fence, run, room
//!  |       |      |      |      |       |     | inner: children of 32 bytes each, room
//!  +-------+------+------+------+-------+-----+---------------------------------------
//!
//!  birth  the version of the tree in which the node was made (see `clones`)
//!  room   bytes after the header, a multiple of 16; the lowest bit says that the leaf is fenced, the next
//!         that it is cold: its run is in the log alone, and there is none here
//!  used   those that hold something
//!  base   position of the record in the log that the leaf rests on; 0: none
//!  share  bytes of that record that are accounted to this leaf
//!  flags  of a leaf, a byte each: whether the record is all that it is, and whether it was used lately
//!
//!  child   0      16     24      32
//!          +------+------+-------+
//!          | order| node | count |      an address has 48 bits: 16 are left for what is not in memory
//!          +------+------+-------+
//! ```
//!
//! Sizes are those of jemalloc's classes (16 bytes apart up to 128, then a quarter of the power of two
//! below), which the server allocates with: what a node takes is what is counted, and the rest of its
//! class is the room in which a run grows.
//!
//! Why pointers and no `Arc`: a node that a clone shares is copied before it is changed, and the copy of an
//! inner node would have to count up in each of 63 children, which are elsewhere in memory (`tree` has the
//! figures).
//!
//! Invariants:
//! 1. A node is freed by its owner alone (the tree, or `clones` when the last clone that shares it
//!    ends), who takes it out of its parent, or of the list of owners, before.
//! 2. Only the tree writes, through `&mut`, and only to nodes that no living clone shares. Base, share and
//!    flags are atomic: they change in shared leaves, too, and no clone reads them.
//! 3. A leaf that is `WHOLE` has the range and the items of the record that it rests on, and is the only one
//!    on it. A cold leaf is.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use super::cell::TEXT_MAX;
use super::run::{Run, RunMut};
use crate::prefetch::{LINE, prefetch};

/// Children of an inner node: with the header they take at most 2048 bytes.
pub(super) const CHILDREN_MAX: usize = 63;

const HEADER: usize = size_of::<Head>();
const FENCED: u32 = 1;
const COLD: u32 = 2;
const ROOM: u32 = !15;
const FENCE_LEN: usize = 4;
/// Cache lines of a leaf that are loaded before it is looked at, at most.
const HEAD_LINES: usize = 4;

#[repr(C, align(16))]
struct Head {
    birth: u64,
    room: u32,
    used: u32,
    base: AtomicU64,
    share: AtomicU32,
    is_whole: AtomicBool,
    is_used: AtomicBool,
}

/// What a leaf rests on in the log: the position of a record, and bytes of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Base {
    /// Position of the record; 0 if there is none.
    pub at: u64,
    /// Bytes of the record that are accounted to the leaf. Those of all leaves on it are the record's.
    pub share: u32,
}

/// A child of an inner node.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Child {
    /// The order key from which on items are in this child; 0 in the first of all.
    pub(super) order: u128,
    pub(super) node: Node,
    /// Items below it.
    pub(super) count: u64,
}

/// A fence, and the name and the value of one item.
const _: () = assert!(class(HEADER + 3 * (TEXT_MAX + 64)) <= u32::MAX as usize);
const _: () = assert!(HEADER == 32 && size_of::<Child>() == 32 && align_of::<Child>() == 16);
const _: () = assert!(HEADER + CHILDREN_MAX * size_of::<Child>() <= 2048);

/// The address of a node. Whether it is a leaf follows from its depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub(super) struct Node(NonNull<Head>);

// SAFETY: an address; what is at it is shared as the module's invariants say.
unsafe impl Send for Node {}
// SAFETY: as above.
unsafe impl Sync for Node {}

/// The bytes that jemalloc takes for so many.
pub(super) const fn class(bytes: usize) -> usize {
    if bytes <= 128 {
        bytes.next_multiple_of(16)
    } else {
        let step = 1usize << (usize::BITS - 1 - (bytes - 1).leading_zeros() - 2);
        bytes.next_multiple_of(step)
    }
}

fn layout(room: usize) -> Layout {
    Layout::from_size_align(HEADER + room, align_of::<Head>()).expect("room has 32 bits")
}

impl Node {
    /// A node with at least so much room.
    fn allocate(room: usize, birth: u64) -> Node {
        let room = class(HEADER + room) - HEADER;
        let narrow =
            u32::try_from(room).expect("a fence and an item have at most three texts of TEXT_MAX");
        // SAFETY: the size is not zero.
        let memory = unsafe { alloc_zeroed(layout(room)) };
        let head =
            NonNull::new(memory.cast::<Head>()).unwrap_or_else(|| handle_alloc_error(layout(room)));
        // SAFETY: the memory is ours, aligned, and longer than a header.
        unsafe {
            head.write(Head {
                birth,
                room: narrow,
                used: 0,
                base: AtomicU64::new(0),
                share: AtomicU32::new(0),
                is_whole: AtomicBool::new(false),
                is_used: AtomicBool::new(false),
            })
        };
        Node(head)
    }

    /// Gives the memory back.
    ///
    /// # Safety
    /// Nobody has the node any more (invariant 1).
    pub(super) unsafe fn free(self) {
        let layout = layout(self.room());
        // SAFETY: made by `allocate` with this layout, and not used after.
        unsafe { dealloc(self.0.as_ptr().cast(), layout) }
    }

    fn head<'a>(self) -> &'a Head {
        // SAFETY: nodes are alive while anybody has them (invariant 1).
        unsafe { self.0.as_ref() }
    }

    #[inline]
    fn set_len(self, used: usize) {
        // SAFETY: as in `head`; only the tree writes (invariant 2).
        unsafe { (*self.0.as_ptr()).used = used as u32 };
    }

    #[inline]
    pub(super) fn birth(self) -> u64 {
        self.head().birth
    }

    /// Of a leaf: what it rests on.
    #[inline]
    pub(super) fn base(self) -> Base {
        let head = self.head();
        Base {
            at: head.base.load(Relaxed),
            share: head.share.load(Relaxed),
        }
    }

    /// Of a leaf: notes what it rests on. It is not [`Node::is_whole`] from here on.
    #[inline]
    pub(super) fn set_base(self, base: Base) {
        let head = self.head();
        head.base.store(base.at, Relaxed);
        head.share.store(base.share, Relaxed);
        head.is_whole.store(false, Relaxed);
    }

    /// Of a leaf: notes a record that is all that it is.
    pub(super) fn set_whole_base(self, base: Base) {
        self.set_base(base);
        self.head().is_whole.store(true, Relaxed);
    }

    /// Of a leaf: whether the record that it rests on is all that it is.
    pub(super) fn is_whole(self) -> bool {
        self.head().is_whole.load(Relaxed)
    }

    /// Of a leaf: notes that it is about to change.
    #[inline]
    pub(super) fn set_changed(self) {
        self.head().is_whole.store(false, Relaxed);
    }

    /// Of a leaf: notes that it was used. Clones may do that, too.
    #[inline]
    pub(super) fn set_used(self) {
        let is_used = &self.head().is_used;
        if !is_used.load(Relaxed) {
            is_used.store(true, Relaxed);
        }
    }

    /// Of a leaf: whether it was used since somebody asked.
    pub(super) fn take_used(self) -> bool {
        self.head().is_used.swap(false, Relaxed)
    }

    /// Of a leaf: whether its run is in the log alone.
    #[inline]
    pub(super) fn is_cold(self) -> bool {
        self.head().room & COLD != 0
    }

    #[inline]
    fn room(self) -> usize {
        (self.head().room & ROOM) as usize
    }

    #[inline]
    fn used(self) -> usize {
        self.head().used as usize
    }

    /// Bytes of memory taken.
    #[inline]
    pub(super) fn bytes(self) -> usize {
        HEADER + self.room()
    }

    #[inline]
    fn data<'a>(self) -> &'a [u8] {
        // SAFETY: so many bytes are behind the header, and all were written, by `allocate` at the latest.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().add(1).cast(), self.room()) }
    }

    #[inline]
    fn data_mut<'a>(self) -> &'a mut [u8] {
        // SAFETY: as in `data`; only the tree writes (invariant 2), and keeps no other reference meanwhile.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_ptr().add(1).cast(), self.room()) }
    }

    /// A leaf with this fence, a run of no items of these flags, and room for a run of `room` bytes.
    pub(super) fn leaf(fence: &[u8], flags: u8, room: usize, birth: u64) -> Node {
        let empty = Run::empty_len(flags);
        let (node, prefix) = Node::fenced(fence, room.max(empty), birth);
        node.data_mut()[prefix..prefix + Run::EMPTY].copy_from_slice(&Run::empty(flags));
        // The rest is zero as it was allocated.
        node.set_len(prefix + empty);
        node
    }

    /// A cold leaf with this fence, which is the record `base`.
    pub(super) fn cold_leaf(fence: &[u8], base: Base, birth: u64) -> Node {
        let (node, prefix) = Node::fenced(fence, 0, birth);
        // SAFETY: the node is ours alone.
        unsafe { (*node.0.as_ptr()).room |= COLD };
        node.set_len(prefix);
        node.set_whole_base(base);
        node
    }

    /// Bytes of memory that a cold leaf with this fence takes.
    pub(super) const fn cold_bytes(fence: &[u8]) -> usize {
        class(
            HEADER
                + if fence.is_empty() {
                    0
                } else {
                    FENCE_LEN + fence.len()
                },
        )
    }

    /// A leaf with this fence and so much room after it; where the room begins.
    fn fenced(fence: &[u8], room: usize, birth: u64) -> (Node, usize) {
        let prefix = if fence.is_empty() {
            0
        } else {
            FENCE_LEN + fence.len()
        };
        let node = Node::allocate(prefix + room, birth);
        if !fence.is_empty() {
            // SAFETY: the node is ours alone.
            unsafe { (*node.0.as_ptr()).room |= FENCED };
            let len = u32::try_from(fence.len()).expect("shorter than an item");
            node.data_mut()[..FENCE_LEN].copy_from_slice(&len.to_le_bytes());
            node.data_mut()[FENCE_LEN..prefix].copy_from_slice(fence);
        }
        (node, prefix)
    }

    /// A leaf with the fence, the run and the base of another, and room for a run of `room` bytes.
    pub(super) fn leaf_copy(self, room: usize, birth: u64) -> Node {
        let copy = Node::leaf(self.fence(), self.run().flags(), room, birth);
        let at = copy.run_at();
        let run = self.run().bytes();
        copy.data_mut()[at..at + run.len()].copy_from_slice(run);
        copy.set_len(at + run.len());
        copy.set_base(self.base());
        copy
    }

    /// Where a leaf's run begins.
    ///
    /// # Panics
    /// It is cold.
    #[inline]
    fn run_at(self) -> usize {
        match self.head().room & (FENCED | COLD) {
            0 => 0,
            FENCED => FENCE_LEN + self.fence().len(),
            _ => panic!("a cold leaf is asked for its items"),
        }
    }

    /// Of a leaf: what the names are not below, among those with the leaf's order key; mostly nothing.
    pub(super) fn fence<'a>(self) -> &'a [u8] {
        if self.head().room & FENCED == 0 {
            return &[];
        }
        let len = self.data()[..FENCE_LEN].try_into().expect("four bytes");
        &self.data()[FENCE_LEN..][..u32::from_le_bytes(len) as usize]
    }

    /// Of a leaf: its run.
    #[inline]
    pub(super) fn run<'a>(self) -> Run<'a> {
        Run::trusted(&self.data()[self.run_at()..self.used()])
    }

    /// Of a leaf: the longest run it has room for.
    #[inline]
    pub(super) fn run_room(self) -> usize {
        self.room() - self.run_at()
    }

    /// Edits the run of a leaf.
    #[inline]
    pub(super) fn edit(self, edit: impl FnOnce(&mut RunMut<'_>)) {
        let at = self.run_at();
        let len = self.used() - at;
        let mut run = RunMut::new(&mut self.data_mut()[at..], len);
        edit(&mut run);
        let len = run.len();
        self.set_len(at + len);
    }

    /// An inner node with these children.
    pub(super) fn inner(children: &[Child], birth: u64) -> Node {
        let node = Node::allocate(size_of_val(children), birth);
        let is_written = node.set_children(children);
        debug_assert!(is_written);
        node
    }

    /// Of an inner node: its children.
    #[inline]
    pub(super) fn children<'a>(self) -> &'a [Child] {
        let count = self.used() / size_of::<Child>();
        // SAFETY: an inner node's used bytes are children, and the header keeps their alignment.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().add(1).cast(), count) }
    }

    /// Starts loading the header.
    #[inline]
    pub(super) fn ask_for_head(self) {
        prefetch(self.0.as_ptr().cast());
    }

    /// Of an inner node, whose header is loaded: starts loading the children at which a search looks first.
    #[inline]
    pub(super) fn ask_for_children(self) {
        let children = self.children();
        for quarter in 1..4 {
            prefetch((&raw const children[children.len() * quarter / 4]).cast());
        }
    }

    /// Of a leaf of so many items: starts loading the header, and that of its run.
    #[inline]
    pub(super) fn ask_for_leaf(self, items: u64, flags: u8) {
        let lines = (HEADER + Run::head_len(flags, items)).div_ceil(LINE);
        let start: *const u8 = self.0.as_ptr().cast();
        (0..lines.min(HEAD_LINES)).for_each(|line| prefetch(start.wrapping_add(line * LINE)));
    }

    /// Of an inner node: a child, to be changed.
    #[inline]
    pub(super) fn child_mut<'a>(self, index: usize) -> &'a mut Child {
        assert!(index < self.used() / size_of::<Child>());
        // SAFETY: as in `children`; only the tree writes (invariant 2).
        unsafe { &mut *self.0.as_ptr().add(1).cast::<Child>().add(index) }
    }

    /// Of an inner node: other children in place of its own, if there is room.
    pub(super) fn set_children(self, children: &[Child]) -> bool {
        if size_of_val(children) > self.room() || children.len() > CHILDREN_MAX {
            return false;
        }
        // SAFETY: there is room; `children` is no part of a node that is written; only the tree writes.
        unsafe {
            let to = self.0.as_ptr().add(1).cast::<Child>();
            std::ptr::copy_nonoverlapping(children.as_ptr(), to, children.len());
        }
        self.set_len(size_of_val(children));
        true
    }
}
