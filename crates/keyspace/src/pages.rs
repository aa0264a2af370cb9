//! Pages for the heaps of many shards: blocks of 4, 16 or 32 KiB, cut from chunks of 2 MiB of the operating
//! system.
//!
//! ```text
//!  chunk   2 MiB, aligned: 64 spans                      mapped once, kept
//!  span    32 KiB: eight blocks of 4 KiB, two of 16 KiB, or one of 32 KiB
//!  block   what a heap asks for
//! ```
//!
//! A span holds blocks of one size; when all of them are free it can become a span of another size. The
//! lowest address is given out first, which keeps use dense and lets the end of memory run empty. The memory
//! of free spans, and of free blocks in the others, is given back to the system beyond a reserve (their
//! addresses stay).
//!
//! A heap comes here once for every hundred entries or so, so a lock and a tree will do. Index tables, which
//! are large and few, are mapped directly ([`map`]). These are the crate's only calls of the operating
//! system.
//!
//! What heaps hold is *charged* as memory in use (see [`crate::Options::charge`]), and so is the most that
//! free memory may take before it is given back: the physical memory behind all chunks is never more than
//! what is charged.

use std::collections::{BTreeMap, BTreeSet};
use std::ptr::NonNull;

use parking_lot::Mutex;

const CHUNK: usize = 2 << 20;
const SPAN: usize = 32 << 10;
/// Free spans that stay resident whatever happens, and the share of all spans that does.
const RESERVE_SPANS: usize = 1;
const RESERVE_SHARE: usize = 64;

#[cfg(target_os = "linux")]
const HUGE_PAGES: i32 = libc::MADV_HUGEPAGE;
#[cfg(target_os = "linux")]
const NO_HUGE_PAGES: i32 = libc::MADV_NOHUGEPAGE;
#[cfg(not(target_os = "linux"))]
const HUGE_PAGES: i32 = 0;
#[cfg(not(target_os = "linux"))]
const NO_HUGE_PAGES: i32 = 0;

/// The size of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum BlockSize {
    K4 = 0,
    K16 = 1,
    K32 = 2,
}

impl BlockSize {
    pub(crate) const fn bytes(self) -> usize {
        match self {
            BlockSize::K4 => 4 << 10,
            BlockSize::K16 => 16 << 10,
            BlockSize::K32 => 32 << 10,
        }
    }

    /// The blocks of a span, as bits.
    const fn whole_span(self) -> u8 {
        ((1u32 << (SPAN / self.bytes())) - 1) as u8
    }
}

/// A span of which some blocks are free.
#[derive(Clone, Copy, Default)]
struct Partial {
    /// The free blocks, as bits.
    free: u8,
    /// Those of them that take no memory.
    returned: u8,
}

#[derive(Default)]
struct State {
    chunks: Vec<usize>,
    /// Chunks are backed by huge pages from the first touch on.
    is_filling: bool,
    /// Spans with free blocks of each size.
    partial: [BTreeMap<usize, Partial>; 3],
    /// Partial spans with free blocks that take memory, and whose they are.
    returnable: BTreeMap<usize, BlockSize>,
    /// Bytes of free blocks in partial spans that take memory.
    loose_bytes: usize,
    /// Free spans that take memory, and those that do not.
    free: BTreeSet<usize>,
    returned: BTreeSet<usize>,
}

/// See the module.
pub(crate) struct Pages {
    state: Mutex<State>,
    charge: Charge,
}

/// Is told of memory that is in use from now on, or no more (negative), in bytes.
pub(crate) type Charge = fn(i64);

impl Default for Pages {
    /// Pages that nobody counts.
    fn default() -> Pages {
        Pages::new(|_| ())
    }
}

impl Pages {
    pub(crate) fn new(charge: Charge) -> Pages {
        Pages {
            state: Mutex::default(),
            charge,
        }
    }

    /// A block, aligned to its size. Its bytes are whatever they were.
    pub(crate) fn take(&self, size: BlockSize) -> NonNull<u8> {
        (self.charge)(size.bytes() as i64);
        let mut state = self.state.lock();
        let first = state.partial[size as usize].first_key_value();
        let (span, partial) = match first {
            Some((&span, &partial)) => (span, partial),
            None => {
                let (span, returned) = state.take_span(self.charge);
                let free = size.whole_span();
                let partial = Partial {
                    free,
                    returned: if returned { free } else { 0 },
                };
                state.loose_bytes +=
                    size.bytes() * (free & !partial.returned).count_ones() as usize;
                (span, partial)
            }
        };
        let block = partial.free.trailing_zeros();
        let bit = 1u8 << block;
        if partial.returned & bit == 0 {
            state.loose_bytes -= size.bytes();
        }
        let left = Partial {
            free: partial.free & !bit,
            returned: partial.returned & !bit,
        };
        state.set_partial(span, size, left);
        NonNull::new((span + block as usize * size.bytes()) as *mut u8)
            .expect("spans are not at address 0")
    }

    /// Gives a block back.
    ///
    /// # Safety
    /// The block came from [`Pages::take`] of these pages with the same size, and nothing uses it any more.
    pub(crate) unsafe fn give_back(&self, block: NonNull<u8>, size: BlockSize) {
        (self.charge)(-(size.bytes() as i64));
        let address = block.as_ptr() as usize;
        let span = address & !(SPAN - 1);
        let bit = 1u8 << ((address - span) / size.bytes());
        let mut state = self.state.lock();
        let before = state.partial[size as usize].get(&span).copied();
        let mut partial = before.unwrap_or_default();
        debug_assert_eq!(partial.free & bit, 0, "a block was given back twice");
        partial.free |= bit;
        state.loose_bytes += size.bytes();
        if partial.free == size.whole_span() {
            let loose = (partial.free & !partial.returned).count_ones() as usize;
            state.loose_bytes -= loose * size.bytes();
            state.set_partial(span, size, Partial::default());
            state.free.insert(span);
        } else {
            state.set_partial(span, size, partial);
        }
        let reserve = state.reserve();
        if state.free.len() * SPAN + state.loose_bytes > 2 * reserve {
            state.return_memory(reserve);
        }
    }

    /// Says whether most of what is mapped from here on will be used at once: then it is worth huge pages.
    /// Afterwards no chunk becomes one by itself: what was given back of it would be taken again.
    pub(crate) fn set_filling(&self, is_filling: bool) {
        let mut state = self.state.lock();
        if state.is_filling && !is_filling {
            for &chunk in &state.chunks {
                advise(chunk, CHUNK, NO_HUGE_PAGES);
            }
            // The rest of the last chunk was never used, and has memory behind it all the same.
            for &span in &state.returned {
                // SAFETY: the span is inside a mapping of ours, and free.
                unsafe { discard(span as *mut u8, SPAN) };
            }
        }
        state.is_filling = is_filling;
    }

    /// Bytes mapped and in use or in reserve.
    #[cfg(test)]
    fn resident(&self) -> usize {
        let state = self.state.lock();
        let sizes = [BlockSize::K4, BlockSize::K16, BlockSize::K32];
        let in_partial = |size: &BlockSize| {
            let blocks = state.partial[*size as usize].values();
            let returned: u32 = blocks.map(|partial| partial.returned.count_ones()).sum();
            returned as usize * size.bytes()
        };
        let returned: usize = sizes.iter().map(in_partial).sum();
        state.chunks.len() * CHUNK - state.returned.len() * SPAN - returned
    }
}

impl State {
    /// Bytes of free memory that are kept. Twice as many make that memory goes back.
    fn reserve(&self) -> usize {
        match self.chunks.len() {
            0 => 0,
            chunks => SPAN * RESERVE_SPANS.max(chunks * (CHUNK / SPAN) / RESERVE_SHARE),
        }
    }

    /// A free span, and whether it takes no memory yet.
    fn take_span(&mut self, charge: Charge) -> (usize, bool) {
        if let Some(span) = self.free.pop_first() {
            return (span, false);
        }
        if let Some(span) = self.returned.pop_first() {
            return (span, true);
        }
        let (chunk, before) = (map_chunk(), self.reserve());
        if self.is_filling {
            advise(chunk, CHUNK, HUGE_PAGES);
        }
        self.chunks.push(chunk);
        charge(2 * (self.reserve() - before) as i64);
        // Not touched yet, so they take no memory: the same as returned ones.
        self.returned
            .extend((chunk + SPAN..chunk + CHUNK).step_by(SPAN));
        (chunk, true)
    }

    /// Notes which blocks of a span are free now.
    fn set_partial(&mut self, span: usize, size: BlockSize, partial: Partial) {
        if partial.free == 0 {
            self.partial[size as usize].remove(&span);
        } else {
            self.partial[size as usize].insert(span, partial);
        }
        if partial.free & !partial.returned == 0 {
            self.returnable.remove(&span);
        } else {
            self.returnable.insert(span, size);
        }
    }

    /// Gives memory of free spans, then of free blocks, back to the system, the highest first, until `keep`
    /// bytes are left.
    fn return_memory(&mut self, keep: usize) {
        while self.free.len() * SPAN + self.loose_bytes > keep
            && let Some(span) = self.free.pop_last()
        {
            // SAFETY: the span is inside a mapping of ours, and free: nobody minds that it reads as zeroes
            // next.
            unsafe { discard(span as *mut u8, SPAN) };
            self.returned.insert(span);
        }
        while self.free.len() * SPAN + self.loose_bytes > keep
            && let Some((&span, &size)) = self.returnable.last_key_value()
        {
            let mut partial = self.partial[size as usize][&span];
            for block in 0..SPAN / size.bytes() {
                if (partial.free & !partial.returned) >> block & 1 == 1 {
                    // SAFETY: as above, for a block that is free.
                    unsafe { discard((span + block * size.bytes()) as *mut u8, size.bytes()) };
                    self.loose_bytes -= size.bytes();
                }
            }
            partial.returned = partial.free;
            self.set_partial(span, size, partial);
        }
    }
}

/// Maps a chunk at a multiple of its size, so that the system can back it by one huge page.
fn map_chunk() -> usize {
    let start = map(2 * CHUNK).as_ptr() as usize;
    let chunk = (start + CHUNK - 1) & !(CHUNK - 1);
    // SAFETY: the parts of the fresh mapping outside the aligned chunk belong to nobody.
    unsafe {
        if chunk > start {
            unmap(start as *mut u8, chunk - start);
        }
        let end = start + 2 * CHUNK;
        if end > chunk + CHUNK {
            unmap((chunk + CHUNK) as *mut u8, end - (chunk + CHUNK));
        }
    }
    chunk
}

/// Tells the system how a chunk is best backed. It may refuse, or know no such pages.
#[cfg(target_os = "linux")]
fn advise(chunk: usize, bytes: usize, advice: i32) {
    // SAFETY: neither advice changes what the memory holds.
    unsafe { libc::madvise(chunk as *mut libc::c_void, bytes, advice) };
}

#[cfg(not(target_os = "linux"))]
fn advise(_: usize, _: usize, _: i32) {}

/// Maps `bytes` of zeroes, which take memory when they are touched.
pub(crate) fn map(bytes: usize) -> NonNull<u8> {
    let (protection, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANON,
    );
    // SAFETY: a fresh anonymous mapping touches nothing that exists.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        let layout = std::alloc::Layout::array::<u8>(bytes).expect("sizes are below isize::MAX");
        std::alloc::handle_alloc_error(layout);
    }
    NonNull::new(start.cast()).expect("the system doesn't map address 0 unasked")
}

/// Takes the memory for part of a mapping at once, if the system can. Nothing depends on it.
#[cfg(target_os = "linux")]
pub(crate) fn populate(start: *mut u8, bytes: usize) {
    // SAFETY: the advice changes nothing that memory holds, and fails for what is not mapped.
    unsafe { libc::madvise(start.cast(), bytes, libc::MADV_POPULATE_WRITE) };
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn populate(_: *mut u8, _: usize) {}

/// Ends a mapping, or part of one.
///
/// # Safety
/// The range is part of a mapping made by [`map`], at page boundaries, and nothing uses it any more.
pub(crate) unsafe fn unmap(start: *mut u8, bytes: usize) {
    // SAFETY: as the caller says. It cannot fail for a range that is mapped.
    unsafe { libc::munmap(start.cast(), bytes) };
}

/// Gives the memory behind part of a mapping back; it reads as zeroes from here on.
///
/// # Safety
/// The range is part of a mapping made by [`map`], at page boundaries, and nobody needs what it holds.
pub(crate) unsafe fn discard(start: *mut u8, bytes: usize) {
    // SAFETY: as the caller says. If the system refuses, the memory merely stays.
    unsafe { libc::madvise(start.cast(), bytes, libc::MADV_DONTNEED) };
}

impl Drop for Pages {
    fn drop(&mut self) {
        (self.charge)(-2 * self.state.get_mut().reserve() as i64);
        for &chunk in &self.state.get_mut().chunks {
            // SAFETY: mapped by `map_chunk`; heaps hold these pages by reference count, so none is left.
            unsafe { unmap(chunk as *mut u8, CHUNK) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_disjoint_and_reused() {
        let pages = Pages::default();
        let mut random = fastrand::Rng::with_seed(1);
        let mut held: BTreeMap<usize, (BlockSize, u8)> = BTreeMap::new();
        for round in 0..30_000u32 {
            let growing = round / 5_000 % 2 == 0;
            if random.u8(..4) < if growing { 3 } else { 1 } || held.is_empty() {
                let size = [BlockSize::K4, BlockSize::K16, BlockSize::K32][random.usize(..3)];
                let block = pages.take(size);
                let address = block.as_ptr() as usize;
                assert_eq!(address % size.bytes(), 0);
                if let Some((&before, &(its, _))) = held.range(..=address).next_back() {
                    assert!(before + its.bytes() <= address, "blocks overlap");
                }
                if let Some((&after, _)) = held.range(address..).next() {
                    assert!(address + size.bytes() <= after, "blocks overlap");
                }
                let mark = random.u8(..);
                // SAFETY: the block is ours and this long.
                unsafe { block.as_ptr().write_bytes(mark, size.bytes()) };
                held.insert(address, (size, mark));
            } else {
                let at = random.usize(..held.len());
                let (&address, &(size, mark)) = held.iter().nth(at).expect("not empty");
                held.remove(&address);
                let block = NonNull::new(address as *mut u8).expect("not null");
                // SAFETY: taken above, with this size, and not used after.
                unsafe {
                    assert_eq!(block.as_ptr().read(), mark);
                    assert_eq!(block.as_ptr().add(size.bytes() - 1).read(), mark);
                    pages.give_back(block, size);
                }
            }
        }
        for (address, (size, _)) in held {
            // SAFETY: as above.
            unsafe { pages.give_back(NonNull::new(address as *mut u8).expect("not null"), size) };
        }
        assert!(
            pages.resident() <= 4 << 20,
            "free memory is given back, {} bytes are not",
            pages.resident()
        );
    }
}
