//! The memory of a state: blocks of up to 512 bytes from chunks, in classes of 16 bytes; larger ones from the
//! process' allocator. All of it is counted, and there is a limit.
//!
//! ```text
//!   class   0      1      2    ..   31          larger
//!   bytes  1-16  17-32  33-48     497-512    std::alloc, aligned to 16
//!          free list of each class; chunks of 64 KiB below them, freed with the state
//! ```
//!
//! Invariants:
//! 1. `taken` counts chunks and larger blocks, bytes that the process has given; `live` the part that Lua
//!    holds.
//! 2. A block is freed with the size it was asked with; Lua keeps that promise.
//! 3. After each [`LOOK_EVERY`] bytes the hook of the running coroutine is set to its next instruction: a
//!    loop of few instructions with much memory is asked as often as others.

use std::alloc::{Layout, alloc, dealloc, realloc};
use std::cell::{Cell, RefCell};
use std::os::raw::c_void;
use std::ptr;

use mlua_sys::{LUA_MASKCOUNT, lua_Hook, lua_State, lua_sethook};

/// The largest block of the classes. None with the feature `plain-memory`: valgrind then sees every block.
const SMALL_MAX: usize = if cfg!(feature = "plain-memory") {
    0
} else {
    512
};
const CLASS_STEP: usize = 16;
const CLASSES: usize = 512 / CLASS_STEP;
const CHUNK: usize = 64 << 10;
/// Bytes between two looks at the clock, beside those that instructions cause.
const LOOK_EVERY: usize = 8 << 20;

/// A free block: the next of its class.
struct Free {
    next: *mut Free,
}

/// Starts loading the cache line at an address, of a block or not.
#[inline]
fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint, and does not fault at any address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// The memory of one state.
pub(crate) struct Memory {
    free: [Cell<*mut Free>; CLASSES],
    /// The rest of the newest chunk.
    rest: Cell<*mut u8>,
    rest_len: Cell<usize>,
    chunks: RefCell<Vec<*mut u8>>,
    taken: Cell<usize>,
    live: Cell<usize>,
    limit: usize,
    /// The limit during a run.
    run_limit: Cell<usize>,
    is_short: Cell<bool>,
    until_look: Cell<usize>,
    running: Cell<*mut lua_State>,
    hook: lua_Hook,
}

impl Memory {
    pub(crate) fn new(limit: usize, hook: lua_Hook) -> Memory {
        Memory {
            free: [const { Cell::new(ptr::null_mut()) }; CLASSES],
            rest: Cell::new(ptr::null_mut()),
            rest_len: Cell::new(0),
            chunks: RefCell::new(Vec::new()),
            taken: Cell::new(0),
            live: Cell::new(0),
            limit,
            run_limit: Cell::new(limit),
            is_short: Cell::new(false),
            until_look: Cell::new(LOOK_EVERY),
            running: Cell::new(ptr::null_mut()),
            hook,
        }
    }

    /// Bytes that the process has given.
    pub(crate) fn taken(&self) -> usize {
        self.taken.get()
    }

    /// Bytes that Lua holds, garbage included.
    pub(crate) fn live(&self) -> usize {
        self.live.get()
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Lets a run take so many bytes, within the limit.
    pub(crate) fn begin_run(&self, most: usize) {
        let most = self.taken.get().saturating_add(most);
        self.run_limit.set(most.min(self.limit));
    }

    /// Sets the limit of a run back to that of the state.
    pub(crate) fn end_run(&self) {
        self.run_limit.set(self.limit);
    }

    /// Whether a block was refused since the state began.
    pub(crate) fn is_short(&self) -> bool {
        self.is_short.get()
    }

    /// Records that memory beside Lua's own was refused.
    pub(crate) fn set_short(&self) {
        self.is_short.set(true);
    }

    /// The coroutine that runs.
    pub(crate) fn running(&self) -> *mut lua_State {
        self.running.get()
    }

    /// Sets the coroutine that runs. It is alive as long as it is set, or null.
    pub(crate) fn set_running(&self, coroutine: *mut lua_State) {
        self.running.set(coroutine);
    }

    /// Whether so many bytes more are within the limit.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        bytes <= self.run_limit.get().saturating_sub(self.taken.get())
    }

    /// Counts the changed capacity of a buffer of the state.
    pub(crate) fn recount(&self, before: usize, after: usize) {
        self.taken.set(self.taken.get() - before + after);
    }

    /// Like [`Memory::has_room`], for a block that is refused otherwise.
    fn admits(&self, bytes: usize) -> bool {
        let has_room = self.has_room(bytes);
        if !has_room {
            self.is_short.set(true);
        }
        has_room
    }

    /// Counts bytes towards the next look at the clock.
    pub(crate) fn count_towards_look(&self, bytes: usize) {
        let left = self.until_look.get();
        if left > bytes {
            self.until_look.set(left - bytes);
            return;
        }
        self.until_look.set(LOOK_EVERY);
        let running = self.running.get();
        if !running.is_null() {
            // SAFETY: the coroutine that runs is alive. The call sets fields of it and allocates nothing.
            unsafe { lua_sethook(running, Some(self.hook), LUA_MASKCOUNT, 1) };
        }
    }

    /// A block of a class that has no free one. Null: there is no memory.
    #[cold]
    fn cut(&self, size: usize) -> *mut u8 {
        if self.rest_len.get() < size {
            // The rest of the chunk before joins the class of its size.
            let (rest, rest_len) = (self.rest.get(), self.rest_len.get());
            if rest_len >= CLASS_STEP {
                self.give_back(rest, rest_len);
            }
            self.rest_len.set(0);
            if !self.admits(CHUNK) {
                return ptr::null_mut();
            }
            // SAFETY: the layout has a size.
            let chunk = unsafe { alloc(layout(CHUNK)) };
            if chunk.is_null() {
                self.is_short.set(true);
                return chunk;
            }
            self.taken.set(self.taken.get() + CHUNK);
            self.chunks.borrow_mut().push(chunk);
            self.rest.set(chunk);
            self.rest_len.set(CHUNK);
        }
        let block = self.rest.get();
        self.rest_len.set(self.rest_len.get() - size);
        // SAFETY: the rest of the chunk has at least `size` bytes.
        self.rest.set(unsafe { block.add(size) });
        block
    }

    fn take_small(&self, class: usize) -> *mut u8 {
        let first = self.free[class].get();
        if first.is_null() {
            return self.cut((class + 1) * CLASS_STEP);
        }
        // SAFETY: a block of a free list is at least 16 bytes, belongs to nobody and begins with `Free`.
        let next = unsafe { (*first).next };
        // Blocks that were swept are long out of the cache.
        prefetch(next.cast());
        self.free[class].set(next);
        first.cast()
    }

    /// Puts a block of whole steps, up to 512 bytes, on the free list of its size.
    fn give_back(&self, block: *mut u8, size: usize) {
        let class = &self.free[size / CLASS_STEP - 1];
        let block: *mut Free = block.cast();
        // SAFETY: the block is no longer used, aligned to 16 bytes, and has room for a pointer.
        unsafe { (*block).next = class.get() };
        class.set(block);
    }

    fn take_large(&self, size: usize) -> *mut u8 {
        if !self.admits(size) {
            return ptr::null_mut();
        }
        // SAFETY: the layout has a size.
        let block = unsafe { alloc(layout(size)) };
        if block.is_null() {
            self.is_short.set(true);
        } else {
            self.taken.set(self.taken.get() + size);
        }
        block
    }

    fn take(&self, size: usize) -> *mut u8 {
        self.count_towards_look(size);
        let block = if size <= SMALL_MAX {
            self.take_small((size - 1) / CLASS_STEP)
        } else {
            self.take_large(size)
        };
        if !block.is_null() {
            self.live.set(self.live.get() + size);
        }
        block
    }

    /// Frees a block.
    ///
    /// # Safety
    ///
    /// The block is one of this memory's, of this size, and no longer used.
    unsafe fn give(&self, block: *mut u8, size: usize) {
        self.live.set(self.live.get() - size);
        if size <= SMALL_MAX {
            self.give_back(block, size.div_ceil(CLASS_STEP) * CLASS_STEP);
        } else {
            self.taken.set(self.taken.get() - size);
            // SAFETY: blocks of this size come from `alloc` with this layout.
            unsafe { dealloc(block, layout(size)) };
        }
    }

    /// Moves a block to another size. Null: there is no memory, and the block is as it was.
    ///
    /// # Safety
    ///
    /// The block is one of this memory's, of the size `before`. It is no longer used if the result is not
    /// null.
    unsafe fn resize(&self, block: *mut u8, before: usize, size: usize) -> *mut u8 {
        let is_small = before <= SMALL_MAX || size <= SMALL_MAX;
        if is_small {
            if before.div_ceil(CLASS_STEP) == size.div_ceil(CLASS_STEP)
                && before.max(size) <= SMALL_MAX
            {
                self.live.set(self.live.get() - before + size);
                return block;
            }
            let new = self.take(size);
            if !new.is_null() {
                // SAFETY: both have so many bytes, and a new block overlaps none. The old one is unused then.
                unsafe {
                    ptr::copy_nonoverlapping(block, new, before.min(size));
                    self.give(block, before);
                }
            }
            return new;
        }
        if size > before {
            self.count_towards_look(size - before);
            if !self.admits(size - before) {
                return ptr::null_mut();
            }
        }
        // SAFETY: blocks of this size come from `alloc` with this layout, and the new size is not zero.
        let new = unsafe { realloc(block, layout(before), size) };
        if !new.is_null() {
            self.taken.set(self.taken.get() - before + size);
            self.live.set(self.live.get() - before + size);
        }
        new
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        for &chunk in self.chunks.borrow().iter() {
            // SAFETY: chunks come from `alloc` with this layout; the state that used them is closed.
            unsafe { dealloc(chunk, layout(CHUNK)) };
        }
    }
}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 16).expect("Lua asks for less than half of the address space")
}

/// The allocator that Lua calls: `data` is the [`Memory`].
///
/// # Safety
///
/// `data` points to a [`Memory`] that is alive; `block` is null, or one of its blocks, of the size `before`.
pub(crate) unsafe extern "C" fn allocate(
    data: *mut c_void,
    block: *mut c_void,
    before: usize,
    size: usize,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    let memory = unsafe { &*data.cast::<Memory>() };
    let block: *mut u8 = block.cast();
    // SAFETY: the caller's promise; an empty block is null.
    let new = unsafe {
        if block.is_null() || before == 0 {
            if size == 0 {
                ptr::null_mut()
            } else {
                memory.take(size)
            }
        } else if size == 0 {
            memory.give(block, before);
            ptr::null_mut()
        } else if size > isize::MAX as usize / 2 {
            memory.set_short();
            ptr::null_mut()
        } else {
            memory.resize(block, before, size)
        }
    };
    new.cast()
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C-unwind" fn hook(_: *mut lua_State, _: *mut mlua_sys::lua_Debug) {}

    #[test]
    fn blocks_keep_their_bytes_and_all_are_counted() {
        let memory = Memory::new(4 << 20, hook);
        let data: *mut c_void = (&raw const memory).cast_mut().cast();
        let mut random = fastrand::Rng::with_seed(7);
        let mut blocks: Vec<(*mut u8, usize, u8)> = Vec::new();
        for step in 0..20_000 {
            let size = match random.u8(..3) {
                0 => random.usize(1..64),
                1 => random.usize(1..600),
                _ => random.usize(1..3000),
            };
            if random.bool() || blocks.is_empty() {
                let fill = step as u8;
                // SAFETY: the memory is alive, and blocks are used with the sizes they were asked with.
                let block: *mut u8 = unsafe { allocate(data, ptr::null_mut(), 0, size) }.cast();
                if !block.is_null() {
                    assert_eq!(block as usize % 16, 0);
                    // SAFETY: it has so many bytes.
                    unsafe { block.write_bytes(fill, size) };
                    blocks.push((block, size, fill));
                }
            } else {
                let at = random.usize(..blocks.len());
                let (block, before, fill) = blocks[at];
                let size = if random.bool() { 0 } else { size };
                // SAFETY: as above.
                let new: *mut u8 = unsafe { allocate(data, block.cast(), before, size) }.cast();
                if size == 0 {
                    blocks.swap_remove(at);
                } else if !new.is_null() {
                    // SAFETY: as above.
                    unsafe {
                        let kept = std::slice::from_raw_parts(new, before.min(size));
                        assert!(kept.iter().all(|&byte| byte == fill));
                        new.write_bytes(fill, size);
                    }
                    blocks[at] = (new, size, fill);
                }
            }
            let live: usize = blocks.iter().map(|&(_, size, _)| size).sum();
            assert_eq!(live, memory.live());
            assert!(memory.taken() <= memory.limit() && live <= memory.taken());
        }
        for (block, size, _) in blocks {
            // SAFETY: as above.
            unsafe { allocate(data, block.cast(), size, 0) };
        }
        assert_eq!(memory.live(), 0);
    }
}
