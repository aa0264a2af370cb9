//! Which positions of a ring are filled: one word per producer instead of a flag per record.
//!
//! A producer stores a position at or below its next claim before it claims ([`Mark::begin`]) and
//! [`NEVER`] when everything it has claimed is filled ([`Mark::end`]). The consumer reads the tail
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
//!
//! The words lie in memory that can outlive the process ([`super::file`]). Each thread's stores up to the
//! moment of its death are there then, in the order of its program: that is what [`Words::decode`] relies on.
//! A producer says how much it is about to claim, claims it, and says where the claim ends. So of every claim
//! that was never filled the length is known, and the position too, unless the thread died between the second
//! step and the third.

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

/// A producer's words, on one line of its own.
///
/// The claim is what a reader of the memory of a dead process needs: where the record ends that was never
/// completed. Its words say nothing about what is filled, and nobody reads them while producers are at work.
///
/// | words | means |
/// |---|---|
/// | `filling_from` is [`NEVER`] | all its claims are filled |
/// | `claim_end` above `filling_from` | the latest claim has `claim_bytes` bytes and ends at `claim_end` |
/// | otherwise | it was about to claim `claim_bytes` bytes at `filling_from` or above, and has or has not |
#[derive(Debug)]
#[repr(C)]
pub struct Mark<W> {
    filling_from: W,
    claim_bytes: W,
    claim_end: W,
}

impl<W: Word> Mark<W> {
    fn new() -> Mark<W> {
        Mark {
            filling_from: W::new(NEVER),
            claim_bytes: W::new(0),
            claim_end: W::new(0),
        }
    }

    /// Before a claim of `bytes` bytes, which will be at `from` or above: the end of the producer's last
    /// claim, say.
    #[inline]
    pub fn begin(&self, from: u64, bytes: u64) {
        // Release, because whoever sees this word must see what was filled before (a Relaxed store fails
        // `tests/ring_model.rs`).
        self.filling_from.store(from, Ordering::Release);
        // Ordered by the claim, which is an addition with Release and Acquire between this store and that of
        // `claim_end`.
        self.claim_bytes.store(bytes, Ordering::Relaxed);
    }

    /// After the claim, which ends at `end`.
    #[inline]
    pub fn claimed(&self, end: u64) {
        self.claim_end.store(end, Ordering::Relaxed);
    }

    /// Everything that was claimed below `position` is filled.
    #[inline]
    pub fn publish(&self, position: u64) {
        self.filling_from.store(position, Ordering::Release);
    }

    /// Everything that was claimed is filled.
    #[inline]
    pub fn end(&self) {
        self.filling_from.store(NEVER, Ordering::Release);
    }
}

/// How far the consumer is.
#[derive(Debug)]
#[repr(C)]
pub struct Progress<W> {
    /// Everything below was released: producers may fill its place again.
    pub(super) head: W,
    /// Everything below was passed on whole. At or below `head`; less only if bytes were thrown away.
    pub(super) passed: W,
}

/// The tail, the consumer's words and the producers' words, as they are in memory.
#[derive(Debug)]
#[repr(C)]
pub struct Watermarks<W, P: ?Sized = [Line<Mark<W>>]> {
    tail: Line<W>,
    progress: Line<Progress<W>>,
    producers: P,
}
impl<W: Word, const N: usize> Watermarks<W, [Line<Mark<W>>; N]> {
    /// For `N` producers, with the first claim at `start`.
    pub fn new(start: u64) -> Watermarks<W, [Line<Mark<W>>; N]> {
        Watermarks {
            tail: Line(W::new(start)),
            progress: Line(Progress {
                head: W::new(start),
                passed: W::new(start),
            }),
            producers: std::array::from_fn(|_| Line(Mark::new())),
        }
    }
}

impl<W: Word> Watermarks<W> {
    /// The position that the next claim gets, or one that it has passed.
    #[inline]
    pub fn tail(&self) -> u64 {
        // Sequentially consistent, so that a consumer that is about to sleep and a producer that is
        // about to look whether it does cannot miss each other.
        self.tail.0.load(Ordering::SeqCst)
    }

    /// How many producers have words.
    pub(super) fn producers(&self) -> usize {
        self.producers.len()
    }

    /// The words of a producer.
    #[inline]
    pub fn producer(&self, number: usize) -> &Mark<W> {
        &self.producers[number].0
    }

    /// The consumer's words.
    #[inline]
    pub(super) fn progress(&self) -> &Progress<W> {
        &self.progress.0
    }

    /// Claims the next `bytes` positions and returns the first. The producer has called [`Mark::begin`].
    #[inline]
    pub fn reserve(&self, bytes: u64) -> u64 {
        self.tail.0.fetch_add(bytes, Ordering::SeqCst)
    }

    /// Everything below the returned position is filled.
    pub fn complete(&self) -> u64 {
        let tail = self.tail.0.load(Ordering::Acquire);
        self.producers.iter().fold(tail, |least, line| {
            least.min(line.0.filling_from.load(Ordering::Acquire))
        })
    }
}

impl Watermarks<AtomicU64> {
    /// Bytes that the words of so many producers take.
    pub(super) const fn bytes(producers: usize) -> usize {
        (2 + producers) * size_of::<Line<Mark<AtomicU64>>>()
    }

    /// Sets the words of memory that nobody else uses yet, so that the first claim is at `start`.
    pub(super) fn reset(&self, start: u64) {
        for line in &self.producers {
            line.0.end();
        }
        self.progress.0.head.store(start, Ordering::Relaxed);
        self.progress.0.passed.store(start, Ordering::Relaxed);
        self.tail.0.store(start, Ordering::SeqCst);
    }
}

/// What a dead process' words say of one of its producers that was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// These positions were claimed, and not all of them are known to be filled.
    Made {
        /// The first.
        start: u64,
        /// Behind the last.
        end: u64,
    },
    /// So many positions at `from` or above were about to be claimed: they were, or they were not.
    Begun {
        /// No position below was claimed.
        from: u64,
        /// Positions.
        bytes: u64,
    },
}

/// The words of a dead process, as they were found in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) tail: u64,
    pub(super) passed: u64,
    pub(super) claims: Vec<Claim>,
}

impl Words {
    /// Takes the words of `producers` producers apart.
    ///
    /// # Panics
    /// If there are fewer than [`Watermarks::bytes`] bytes.
    pub(super) fn decode(bytes: &[u8], producers: usize) -> Words {
        const LINE: usize = size_of::<Line<Mark<AtomicU64>>>();
        let word = |line: usize, word: usize| {
            let at = line * LINE + word * 8;
            u64::from_ne_bytes(*bytes[at..].first_chunk().expect("the caller gave enough"))
        };
        let claim = |line: usize| {
            let (from, bytes, end) = (word(line, 0), word(line, 1), word(line, 2));
            if from == NEVER {
                None
            } else if end > from {
                let start = end.saturating_sub(bytes);
                Some(Claim::Made { start, end })
            } else {
                Some(Claim::Begun { from, bytes })
            }
        };
        Words {
            tail: word(0, 0),
            passed: word(1, 1),
            claims: (2..2 + producers).filter_map(claim).collect(),
        }
    }
}

const _: () = {
    assert!(size_of::<Line<Mark<AtomicU64>>>() == 128 && size_of::<Line<AtomicU64>>() == 128);
    assert!(size_of::<Line<Progress<AtomicU64>>>() == 128);
};
