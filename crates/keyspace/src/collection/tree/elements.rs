//! Elements of a list: they are found by their place, and have numbers that the log knows.
//!
//! ```text
//!  numbers   0 ...      first leaf           next leaf                     last leaf           ...  2^64
//!                 <- a b c d e f g h |  i j k l m n o        |  p q r s ->
//!                                    a leaf begins at a multiple of BLOCK, if it was begun at an end
//! ```
//!
//! A leaf has the number of its first element, and the others count up from it. The first element of a new
//! list has the number [`MIDDLE`]. What is pushed has the next number at that end. When the leaf at the end
//! is full, a new one begins at the next multiple of [`BLOCK`], so that each leaf has room for numbers.
//!
//! What comes into the middle, or goes from there, lets the elements of its leaf have other numbers: the log
//! is told that those of before are gone, and which are there. If the leaf has no room for more numbers,
//! those of the next leaves change, too, until there is room. The changes in memory are made by the
//! functions that a replay calls ([`Tree::put_number`], [`Tree::cut_numbers`]), so a replay gives the same
//! list.

use super::base::Tree;
use super::shape::Shares;
use crate::collection::cell::{Cell, DECIMAL_MAX};
use crate::collection::kind::{Edge, Elements, LeafKind};
use crate::collection::log::numbered::{MIDDLE, NumberedEdits};
use crate::collection::node::Child;
use crate::collection::path::Path;
use crate::collection::run::{End, Item, Run};

/// Numbers from the beginning of a leaf to that of the next, if both were begun at an end. A leaf has at most
/// some 1500 elements. After 2^43 new leaves at one end the numbers of that end are used up.
pub(in crate::collection) const BLOCK: u64 = 1 << 20;
/// So many times as many numbers as elements are left to leaves whose elements get other numbers.
const SPARE: u64 = 2;
/// The same where the leaf had no room.
const SPARE_MORE: u64 = 64;

/// Bytes of the run for which a leaf at an end of a list has room, with its second element.
const END_ROOM: usize = 512;

/// Elements that get other numbers are in leaves of at most one part in so many of the longest: to insert
/// there once more costs less.
const PARTS: usize = 2;

/// The edge before an element.
fn edge(number: u64) -> Edge<'static> {
    Edge::before(Elements::order_of(number))
}

/// Whether the numbers beyond a leaf at an end are used up.
pub(super) fn is_used_up(first: u64, count: usize) -> bool {
    first < 2 * BLOCK || first + count as u64 > u64::MAX - 2 * BLOCK
}

/// Elements of some leaves, which get other numbers.
struct Window {
    /// The order key at which the first leaf begins, and that at which the leaf behind the last does.
    from: u128,
    to: Option<u128>,
    /// The first number that an element has, and the one behind the last.
    first: u64,
    end: u64,
    /// Texts, one behind the other, and their lengths.
    texts: Vec<u8>,
    lengths: Vec<usize>,
}

impl Window {
    fn add(&mut self, element: Cell<'_>) {
        let mut scratch = [0; DECIMAL_MAX];
        let text = element.text(&mut scratch);
        self.texts.extend_from_slice(text);
        self.lengths.push(text.len());
    }

    /// How many elements the leaves have, of at most so many bytes.
    fn groups(&self, flags: u8, most: usize) -> Vec<usize> {
        let (mut groups, mut count, mut bytes, mut at) = (Vec::new(), 0, 0, 0);
        for &length in &self.lengths {
            let size = Item::single(Cell::of(&self.texts[at..at + length])).size();
            at += length;
            if count > 0 && Run::size_of(flags, count + 1, bytes + size) > most {
                groups.push(count);
                (count, bytes) = (0, 0);
            }
            count += 1;
            bytes += size;
        }
        groups.push(count);
        groups
    }
}

impl<K: LeafKind> Tree<K> {
    /// The number of the element of a rank.
    fn number_at(&self, rank: u64) -> u64 {
        let (path, index) = self.view().seek_rank(rank);
        path.leaf().run().number() + index as u64
    }

    /// Puts an element at an end.
    ///
    /// Touches a child in each inner node and the leaf at the end.
    pub fn push(&mut self, end: End, element: Cell<'_>, log: &mut NumberedEdits) {
        let item = Item::single(element);
        if self.count == 0 {
            log.put(MIDDLE, element);
            return self.put_number(MIDDLE, element);
        }
        let is_back = end == End::Back;
        let (mut path, _) = self
            .view()
            .seek_rank(if is_back { self.count - 1 } else { 0 });
        let run = path.leaf().run();
        let (first, count) = (run.number(), run.count());
        let len = run.filled_with(&item);
        let has_room = len <= self.leaf_max();
        if is_used_up(first, count) {
            self.number_from_middle(log);
            return self.push(end, element, log);
        }
        let number = match (end, has_room) {
            (End::Front, true) => first - 1,
            (End::Front, false) => first / BLOCK * BLOCK - 1,
            (End::Back, true) => first + count as u64,
            (End::Back, false) => (first + count as u64).next_multiple_of(BLOCK),
        };
        log.put(number, element);
        match has_room && path.is_outermost(is_back) {
            true => self.push_into(&mut path, end, &item, len),
            false => self.put_number(number, element),
        }
    }

    /// Puts an element at the end of the outermost leaf, which has at most `len` bytes with it.
    fn push_into(&mut self, path: &mut Path, end: End, item: &Item<'_>, len: usize) {
        self.own_inner(path);
        path.leaf().set_used();
        // More will come.
        let room = match path.leaf().run_room() {
            room if room >= len => len,
            room => len.max((2 * room).max(END_ROOM).min(self.leaf_max())),
        };
        let leaf = self.own_leaf(path, room);
        leaf.edit(|run| run.push(end, item));
        self.count_up(path, 1);
    }

    /// Lets the element of a number be this, whether there is one or not.
    pub fn put_number(&mut self, number: u64, element: Cell<'_>) {
        let item = Item::single(element);
        let mut path = self.view().seek(&edge(number));
        let run = path.leaf().run();
        let (first, count) = (run.number(), run.count());
        let end = first.wrapping_add(count as u64);
        if count == 0 {
            self.own_inner(&mut path);
            let leaf = self.own_leaf(&mut path, run.bytes().len());
            leaf.edit(|run| run.set_number(number));
            self.put(&mut path, 0, false, &item);
        } else if (first..end).contains(&number) {
            self.put(&mut path, (number - first) as usize, true, &item);
        } else if number == end {
            self.put(&mut path, count, false, &item);
        } else if number.wrapping_add(1) == first {
            self.put(&mut path, 0, false, &item);
        } else {
            match number < first {
                true => self.break_leaf(&mut path, 0, first),
                false => self.break_leaf(&mut path, count, number),
            }
            self.put_number(number, element);
        }
    }

    /// Makes two leaves of that of a path: the second has the elements from an index on, and begins at a
    /// number. The path is of no use afterwards.
    fn break_leaf(&mut self, path: &mut Path, index: usize, number: u64) {
        self.own_inner(path);
        let (leaf, order) = (path.leaf(), self.child_order(path));
        let run = leaf.run();
        let count = run.count();
        let mut shares = Shares::new(leaf.base(), count);
        let bases = [shares.next(index), shares.next(count - index)];
        let (left, right) = match index {
            0 => (self.new_leaf(b"", Run::EMPTY), leaf),
            _ if index == count => (leaf, self.new_leaf(b"", Run::EMPTY)),
            _ => {
                let left = self.new_leaf_of(leaf, run.filled());
                let right = self.new_leaf_of(leaf, run.filled());
                left.edit(|run| run.truncate(index));
                right.edit(|run| run.remove_range(0, index));
                (left, right)
            }
        };
        left.set_base(bases[0]);
        right.set_base(bases[1]);
        let children = [
            Child {
                order,
                node: left,
                count: index as u64,
            },
            Child {
                order: Elements::order_of(number),
                node: right,
                count: (count - index) as u64,
            },
        ];
        let at = path
            .height
            .checked_sub(1)
            .map_or(0, |above| usize::from(path.taken[above]));
        self.replace_children(path, path.height, at..at + 1, &children, false);
        if left != leaf && right != leaf {
            self.give_up(leaf);
        }
    }

    /// Removes the elements of the numbers `from..to`; how many there were.
    pub fn cut_numbers(&mut self, from: u64, to: u64) -> u64 {
        if from >= to || self.count == 0 {
            return 0;
        }
        let mut path = self.view().seek(&edge(from));
        let run = path.leaf().run();
        let (first, count) = (run.number(), run.count());
        let end = first.wrapping_add(count as u64);
        if count > 0 && to - from == 1 && (from == first || to == end) && from < end {
            let index = if from == first { 0 } else { count - 1 };
            self.take_out(&mut path, index);
            return 1;
        }
        if count > 0 && from > first && to < end {
            self.break_leaf(&mut path, (to - first) as usize, to);
        }
        self.cut(&edge(from), Some(&edge(to)))
    }

    /// Removes the elements of the ranks `from..to`.
    pub fn cut_ranks(&mut self, from: u64, to: u64, log: &mut NumberedEdits) {
        if from >= to {
            return;
        }
        if to - from == 1 && (from == 0 || to == self.count) {
            return self.pop(from, log);
        }
        let (from, to) = (self.number_at(from), self.number_at(to - 1) + 1);
        log.cut(from, to);
        self.cut_numbers(from, to);
    }

    /// Removes the first element, or the last: that of a rank, which is there.
    ///
    /// Touches a child in each inner node and the leaf at the end, no item but its own.
    fn pop(&mut self, rank: u64, log: &mut NumberedEdits) {
        let (mut path, index) = self.view().seek_rank(rank);
        let number = path.leaf().run().number() + index as u64;
        log.cut(number, number + 1);
        path.leaf().set_used();
        self.take_out(&mut path, index);
    }

    /// Puts an element in the place of that of a rank, which is there.
    pub fn put_rank(&mut self, rank: u64, element: Cell<'_>, log: &mut NumberedEdits) {
        let (mut path, index) = self.view().seek_rank(rank);
        let number = path.leaf().run().number() + index as u64;
        log.put(number, element);
        self.put(&mut path, index, true, &Item::single(element));
    }

    /// Puts an element before that of a rank, or behind all.
    pub fn insert_rank(&mut self, rank: u64, element: Cell<'_>, log: &mut NumberedEdits) {
        if rank == 0 || rank >= self.count {
            let end = if rank == 0 { End::Front } else { End::Back };
            return self.push(end, element, log);
        }
        let (path, index) = self.view().seek_rank(rank);
        let mut window = self.window(self.child_order(&path));
        self.fill(&mut window, |window, at, item| {
            if at == index {
                window.add(element);
            }
            window.add(item.name);
        });
        self.number_again(window, log);
    }

    /// Removes the elements of some ranks, which ascend.
    pub fn remove_ranks(&mut self, ranks: &[u64], log: &mut NumberedEdits) {
        let mut left = ranks;
        while let Some(&last) = left.last() {
            let (path, index) = self.view().seek_rank(last);
            let run = path.leaf().run();
            let (count, base) = (run.count(), last - index as u64);
            let here = left.partition_point(|&rank| rank < base);
            let (others, gone) = left.split_at(here);
            left = others;
            let is_row = gone.len() as u64 == last - gone[0] + 1;
            if is_row && (gone[0] == base || index + 1 == count) {
                self.cut_ranks(gone[0], last + 1, log);
                continue;
            }
            let mut window = self.window(self.child_order(&path));
            self.fill(&mut window, |window, at, item| {
                if gone.binary_search(&(base + at as u64)).is_err() {
                    window.add(item.name);
                }
            });
            if window.texts.len() < self.leaf_max() / 4 {
                self.widen(&mut window);
            }
            self.number_again(window, log);
        }
    }

    /// No elements yet of the leaf that begins at an order key.
    fn window(&self, from: u128) -> Window {
        Window {
            from,
            to: Some(from),
            first: 0,
            end: 0,
            texts: Vec::new(),
            lengths: Vec::new(),
        }
    }

    /// Adds the leaf behind a window to it. `add` is given each element, and its index there.
    fn fill(&self, window: &mut Window, mut add: impl FnMut(&mut Window, usize, Item<'_>)) {
        let Some(from) = window.to else {
            return;
        };
        let mut leaves = self.view().leaves(&Edge::before(from));
        let Some(leaf) = leaves.next() else {
            return;
        };
        let run = leaf.run();
        if !run.is_empty() {
            if window.end == 0 {
                window.first = run.number();
            }
            window.end = run.number() + run.count() as u64;
        }
        for (index, item) in run.iter().enumerate() {
            add(window, index, item);
        }
        window.to = leaves.next().map(|next| next.order);
    }

    /// Adds the leaf behind a window to it; whether there is one.
    fn widen(&self, window: &mut Window) -> bool {
        let is_there = window.to.is_some();
        self.fill(window, |window, _, item| window.add(item.name));
        is_there
    }

    /// Gives the elements of a window other numbers.
    fn number_again(&mut self, mut window: Window, log: &mut NumberedEdits) {
        let mut spare = SPARE;
        let (groups, from, room) = loop {
            let groups = window.groups(K::FLAGS, self.leaf_max() / PARTS);
            // The outermost leaves have all numbers beyond.
            let from = match window.from {
                0 => window.first.saturating_sub(BLOCK),
                from => (from >> 64) as u64,
            };
            let to = match window.to {
                Some(to) => (to >> 64) as u64,
                None => window.end.saturating_add(BLOCK * groups.len() as u64),
            };
            let room = (to - from) / groups.len() as u64;
            let most = groups.iter().copied().max().unwrap_or(0) as u64;
            if room >= most * spare || !self.widen(&mut window) {
                break (groups, from, room);
            }
            spare = SPARE_MORE;
        };
        log.cut(window.first, window.end);
        self.cut_numbers(window.first, window.end);
        let (mut texts, mut lengths) = (&window.texts[..], window.lengths.iter());
        for (group, count) in (0..).zip(groups) {
            let start = from + group * room;
            for (number, &length) in (start..).zip(lengths.by_ref().take(count)) {
                let (text, rest) = texts.split_at(length);
                texts = rest;
                log.put(number, Cell::of(text));
                self.put_number(number, Cell::of(text));
            }
        }
    }

    /// Gives all elements numbers from [`MIDDLE`] on.
    #[cold]
    fn number_from_middle(&mut self, log: &mut NumberedEdits) {
        let mut window = self.window(0);
        while self.widen(&mut window) {}
        log.cut(window.first, window.end);
        self.cut_numbers(window.first, window.end);
        let mut texts = &window.texts[..];
        for &length in &window.lengths {
            let (text, rest) = texts.split_at(length);
            texts = rest;
            self.push(End::Back, Cell::of(text), log);
        }
    }
}
