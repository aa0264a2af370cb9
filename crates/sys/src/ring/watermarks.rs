//! Which positions of a ring are filled: one word per producer instead of a flag per record.
//!
//! A producer stores a position at or below its next claim before it claims ([`Watermarks::begin`]) and
//! [`NEVER`] when everything it has claimed is filled ([`Watermarks::end`]). The consumer reads the tail
//! *first* and the words *then*: everything below the least of them is filled.
//!
//! Why: let `r` be a claimed range below the tail that the consumer read.
//! 1. The claim is an addition with Release, and all later additions continue its release sequence,
//!    so the consumer's Acquire load of the tail synchronizes with it. The producer's store in `begin`
//!    comes before the claim, so the consumer's later load of that word sees this store or a later one.
//! 2. If it sees the store of `begin`, or one of `publish` below `r`, then the least word is at or
//!    below `r`'s start, and `r` is not counted as filled.
//! 3. If it sees anything later (`publish` above `r`, `end`, the next `begin`), that store is a Release
//!    after `r` was filled and the load is an Acquire, so the consumer sees `r`'s bytes.
//!
//! Only Acquire and Release are needed: the consumer's two reads are in the opposite order of the
//! producer's two writes. `tests/ring_model.rs` checks this with every interleaving of small cases
//! in a model of the memory; for that the words are a type parameter.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a word says of a producer that has nothing to fill.
pub const NEVER: u64 = u64::MAX;

/// Something alone on its cache lines (two, because processors fetch them in pairs).
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Line<T>(pub T);

/// An atomic word: the machine's, or a model checker's.
pub trait Word: fmt::Debug {
    /// A word that holds `value`.
    fn new(value: u64) -> Self;
    /// Reads it.
    fn load(&self, ordering: Ordering) -> u64;
    /// Writes it.
    fn store(&self, value: u64, ordering: Ordering);
    /// Adds to it and returns what it was.
    fn fetch_add(&self, value: u64, ordering: Ordering) -> u64;
}

impl Word for AtomicU64 {
    fn new(value: u64) -> AtomicU64 {
        AtomicU64::new(value)
    }

    #[inline]
    fn load(&self, ordering: Ordering) -> u64 {
        self.load(ordering)
    }

    #[inline]
    fn store(&self, value: u64, ordering: Ordering) {
        self.store(value, ordering);
    }

    #[inline]
    fn fetch_add(&self, value: u64, ordering: Ordering) -> u64 {
        self.fetch_add(value, ordering)
    }
}

/// The tail and the producers' words.
#[derive(Debug)]
pub struct Watermarks<W> {
    tail: Line<W>,
    filling_from: Box<[Line<W>]>,
}

impl<W: Word> Watermarks<W> {
    /// For `producers` producers, with the first claim at `start`.
    pub fn new(start: u64, producers: usize) -> Watermarks<W> {
        Watermarks {
            tail: Line(W::new(start)),
            filling_from: (0..producers).map(|_| Line(W::new(NEVER))).collect(),
        }
    }

    /// The position that the next claim gets, or one that it has passed.
    #[inline]
    pub fn tail(&self) -> u64 {
        // Sequentially consistent, so that a consumer that is about to sleep and a producer that is
        // about to look whether it does cannot miss each other.
        self.tail.0.load(Ordering::SeqCst)
    }

    /// Before the first claim of `producer` after [`Watermarks::end`], which will be at `from` or above: the end of its last claim, say.
    #[inline]
    pub fn begin(&self, producer: usize, from: u64) {
        // Release, because whoever sees this word must see what was filled before (a Relaxed store fails `tests/ring_model.rs`).
        self.filling_from[producer].0.store(from, Ordering::Release);
    }

    /// Claims the next `bytes` positions and returns the first.
    #[inline]
    pub fn reserve(&self, bytes: u64) -> u64 {
        self.tail.0.fetch_add(bytes, Ordering::SeqCst)
    }

    /// Everything that `producer` has claimed below `position` is filled.
    pub fn publish(&self, producer: usize, position: u64) {
        self.filling_from[producer]
            .0
            .store(position, Ordering::Release);
    }

    /// Everything that `producer` has claimed is filled.
    #[inline]
    pub fn end(&self, producer: usize) {
        self.filling_from[producer]
            .0
            .store(NEVER, Ordering::Release);
    }

    /// Everything below the returned position is filled.
    pub fn complete(&self) -> u64 {
        let tail = self.tail.0.load(Ordering::Acquire);
        self.filling_from.iter().fold(tail, |least, word| {
            least.min(word.0.load(Ordering::Acquire))
        })
    }
}
