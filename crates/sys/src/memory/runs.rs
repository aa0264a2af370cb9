//! Large allocations: runs of pages from a few wide ranges of addresses, shared by all threads.
//!
//! Allocators made for small objects keep large ones in classes of sizes, by thread. A cache whose values
//! change their sizes leaves each class half empty, and the process takes far more memory than its data. Here
//! an allocation takes its pages and no more, any hole that is wide enough serves any size, and what is free
//! goes back to the system at once, but for a little that is kept for who comes next.
//!
//! ```text
//!  range   1 GiB of addresses, mapped once; takes memory page by page as it is touched
//!  run     pages beside each other that are free; neighbours are one run
//! ```
//!
//! Budget: a lock and a few steps in two trees, for something that takes microseconds to fill.
//!
//! Invariants:
//! 1. Two free runs never touch.
//! 2. `by_size` has exactly the runs of `by_address`.
//! 3. `dirty` of a run is at least the bytes of it that take memory, and `State::dirty` is the sum over all
//!    runs.

use std::collections::{BTreeMap, BTreeSet};
use std::ptr::{NonNull, null_mut};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes of a page.
pub(super) const PAGE: usize = 4096;

/// Bytes of addresses that are mapped at once; more if one allocation needs more.
const RANGE: usize = 1 << 30;

/// Bytes of free memory that are kept while nobody says otherwise.
const KEPT: usize = 32 << 20;

/// A free run.
#[derive(Clone, Copy)]
struct Run {
    bytes: usize,
    dirty: usize,
}

#[derive(Default)]
struct State {
    by_address: BTreeMap<usize, Run>,
    by_size: BTreeSet<(usize, usize)>,
    dirty: usize,
}

/// See the module.
pub(super) struct Runs {
    state: Mutex<State>,
    kept: AtomicUsize,
}

/// What an allocation of `size` bytes takes.
pub(super) const fn rounded(size: usize) -> usize {
    (size + PAGE - 1) & !(PAGE - 1)
}

impl Runs {
    pub(super) const fn new() -> Runs {
        Runs {
            state: Mutex::new(State {
                by_address: BTreeMap::new(),
                by_size: BTreeSet::new(),
                dirty: 0,
            }),
            kept: AtomicUsize::new(KEPT),
        }
    }

    /// Says how many bytes of free memory are kept for who comes next.
    pub(super) fn keep(&self, bytes: usize) {
        self.kept.store(bytes, Relaxed);
        let mut state = self.lock();
        if state.dirty > bytes {
            state.give_back(bytes);
        }
    }

    /// Gives all free memory back.
    pub(super) fn purge(&self) {
        self.lock().give_back(0);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // Nothing in here panics half-way; a poisoned lock would only hide the first panic.
        self.state
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Pages for `size` bytes, at a page's boundary; `None` if the system has no more.
    pub(super) fn allocate(&self, size: usize) -> Option<NonNull<u8>> {
        let bytes = rounded(size);
        let mut state = self.lock();
        let fitting = state.by_size.range((bytes, 0)..).next().copied();
        let (address, run) = match fitting {
            Some((_, address)) => (address, state.take_out(address)),
            None => {
                let (address, bytes) = map_range(bytes)?;
                (address, Run { bytes, dirty: 0 })
            }
        };
        if run.bytes > bytes {
            // What is dirty may all be behind.
            let left = run.bytes - bytes;
            let dirty = run.dirty.min(left);
            state.put_in(address + bytes, Run { bytes: left, dirty });
        }
        NonNull::new(address as *mut u8)
    }

    /// Gives an allocation back.
    ///
    /// # Safety
    /// It came from [`Runs::allocate`] with the same size, and nothing uses it any more.
    pub(super) unsafe fn free(&self, start: NonNull<u8>, size: usize) {
        let mut run = Run {
            bytes: rounded(size),
            dirty: rounded(size),
        };
        let mut address = start.as_ptr() as usize;
        let mut state = self.lock();
        let kept = self.kept.load(Relaxed);
        if run.dirty > kept {
            // SAFETY: nobody uses it, as the caller says.
            unsafe { discard(address, run.bytes) };
            run.dirty = 0;
        }
        let before = state.by_address.range(..address).next_back();
        if let Some((&first, other)) = before
            && first + other.bytes == address
        {
            let other = state.take_out(first);
            address = first;
            run = run.and(other);
        }
        let behind = address + run.bytes;
        if state.by_address.contains_key(&behind) {
            run = run.and(state.take_out(behind));
        }
        state.put_in(address, run);
        if state.dirty > kept {
            state.give_back(kept / 2);
        }
    }

    /// Grows or shrinks an allocation where it is. Whether it did.
    ///
    /// # Safety
    /// As [`Runs::free`], for what it loses.
    pub(super) unsafe fn resize(&self, start: NonNull<u8>, size: usize, new_size: usize) -> bool {
        let (bytes, wanted) = (rounded(size), rounded(new_size));
        let behind = start.as_ptr() as usize + bytes;
        if wanted < bytes {
            let kept = start.as_ptr() as usize + wanted;
            let tail = NonNull::new(kept as *mut u8).expect("allocations are not at address 0");
            // SAFETY: the tail is pages of this allocation that nobody uses any more; any part of one can be
            // given back.
            unsafe { self.free(tail, bytes - wanted) };
            return true;
        }
        let more = wanted - bytes;
        let mut state = self.lock();
        let room = state.by_address.get(&behind).map_or(0, |run| run.bytes);
        if more == 0 || room < more {
            return more == 0;
        }
        let run = state.take_out(behind);
        if run.bytes > more {
            let left = run.bytes - more;
            let dirty = run.dirty.min(left);
            state.put_in(behind + more, Run { bytes: left, dirty });
        }
        true
    }

    /// Bytes of free memory that were not given back, at most.
    pub(super) fn dirty(&self) -> usize {
        self.lock().dirty
    }
}

impl Run {
    /// Two that touch, as one.
    fn and(self, other: Run) -> Run {
        Run {
            bytes: self.bytes + other.bytes,
            dirty: self.dirty + other.dirty,
        }
    }
}

impl State {
    fn put_in(&mut self, address: usize, run: Run) {
        self.dirty += run.dirty;
        self.by_size.insert((run.bytes, address));
        self.by_address.insert(address, run);
    }

    fn take_out(&mut self, address: usize) -> Run {
        let run = self
            .by_address
            .remove(&address)
            .expect("the caller saw the run");
        self.by_size.remove(&(run.bytes, address));
        self.dirty -= run.dirty;
        run
    }

    /// Gives memory of free runs back to the system, from the highest addresses down, until no more than
    /// `kept` bytes are left.
    fn give_back(&mut self, kept: usize) {
        for (&address, run) in self.by_address.iter_mut().rev() {
            if self.dirty <= kept {
                return;
            }
            if run.dirty > 0 {
                // SAFETY: the run is free and mapped; it reads as zeroes next, which nobody minds.
                unsafe { discard(address, run.bytes) };
                self.dirty -= run.dirty;
                run.dirty = 0;
            }
        }
    }
}

/// Maps room for `bytes` and more; no more than that where addresses are scarce.
fn map_range(bytes: usize) -> Option<(usize, usize)> {
    let wide = bytes.next_multiple_of(RANGE);
    [wide, bytes]
        .into_iter()
        .find_map(|bytes| Some((map(bytes)?, bytes)))
}

/// Maps addresses that take memory when they are touched.
fn map(bytes: usize) -> Option<usize> {
    let (protection, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_NORESERVE,
    );
    // SAFETY: a fresh anonymous mapping touches nothing that exists.
    let start = unsafe { libc::mmap(null_mut(), bytes, protection, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return None;
    }
    // A huge page would take memory that nobody asked for.
    #[cfg(target_os = "linux")]
    // SAFETY: the range was just mapped. If the system refuses, nothing changes.
    unsafe {
        libc::madvise(start, bytes, libc::MADV_NOHUGEPAGE)
    };
    Some(start as usize)
}

/// # Safety
/// The range is mapped by [`map`], and nobody needs what it holds.
unsafe fn discard(address: usize, bytes: usize) {
    // SAFETY: as the caller says. If the system refuses, the memory merely stays.
    unsafe { libc::madvise(address as *mut libc::c_void, bytes, libc::MADV_DONTNEED) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small generator: no other crate is needed for this.
    fn random(state: &mut u64) -> usize {
        *state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (*state >> 33) as usize
    }

    #[test]
    fn runs_do_not_overlap_keep_their_bytes_and_join_again() {
        let runs = Runs::new();
        runs.keep(1 << 20);
        let mut seed = 7;
        let mut held: Vec<(NonNull<u8>, usize, u8)> = Vec::new();
        // SAFETY: everything is used as long as it is held, and freed once with its size.
        unsafe {
            for round in 0..20_000 {
                let growing = round / 4_000 % 2 == 0;
                if held.is_empty() || random(&mut seed) % 10 < if growing { 6 } else { 4 } {
                    let size = 1 + random(&mut seed) % 300_000;
                    let start = runs.allocate(size).expect("memory");
                    let mark = round as u8;
                    start.as_ptr().write(mark);
                    start.as_ptr().add(size - 1).write(mark);
                    held.push((start, size, mark));
                } else {
                    let at = random(&mut seed) % held.len();
                    let (start, size, mark) = held[at];
                    let ends = (*start.as_ptr(), *start.as_ptr().add(size - 1));
                    assert_eq!(ends, (mark, mark));
                    let new_size = 1 + random(&mut seed) % 300_000;
                    if round % 3 == 0 && runs.resize(start, size, new_size) {
                        assert_eq!(*start.as_ptr(), mark);
                        start.as_ptr().write(mark);
                        start.as_ptr().add(new_size - 1).write(mark);
                        held[at].1 = new_size;
                    } else {
                        runs.free(start, size);
                        held.swap_remove(at);
                    }
                }
                assert!(runs.dirty() <= 1 << 20);
            }
            let mut ranges: Vec<(usize, usize)> = held
                .iter()
                .map(|&(start, size, _)| (start.as_ptr() as usize, rounded(size)))
                .collect();
            ranges.sort_unstable();
            assert!(ranges.windows(2).all(|two| two[0].0 + two[0].1 <= two[1].0));
            for (start, size, _) in held {
                runs.free(start, size);
            }
        }
        let state = runs.lock();
        assert_eq!(state.by_address.len(), 1, "all is one run again");
        assert_eq!(state.by_size.len(), 1);
    }

    #[test]
    fn no_more_is_kept_than_was_said() {
        let runs = Runs::new();
        runs.keep(10 * PAGE);
        let all: Vec<NonNull<u8>> = (0..50)
            .map(|_| runs.allocate(PAGE).expect("memory"))
            .collect();
        for start in all {
            // SAFETY: each is freed once, with its size.
            unsafe { runs.free(start, PAGE) };
            assert!(runs.dirty() <= 10 * PAGE);
        }
        runs.keep(0);
        assert_eq!(runs.dirty(), 0);
    }

    #[test]
    fn nothing_free_is_left_behind_a_purge() {
        let runs = Runs::new();
        let start = runs.allocate(10 * PAGE).expect("memory");
        // SAFETY: it is freed once, with its size.
        unsafe { runs.free(start, 10 * PAGE) };
        assert!(runs.dirty() > 0);
        runs.purge();
        assert_eq!(runs.dirty(), 0);
    }
}
