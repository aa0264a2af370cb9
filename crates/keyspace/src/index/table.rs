//! Tables, and where the entries of a place are: in one table, or while one is replaced by another, in one of
//! two.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::bucket::{Bucket, SLOTS};
use crate::hash::Place;
use crate::heap::ALIGN;
use crate::pages::{discard, map, unmap};
use crate::prefetch::prefetch;

/// Buckets a search may look at: the home and those behind it.
pub(super) const REACH: usize = 8;

/// How many home buckets before their turn entries are asked for.
const MOVE_AHEAD: usize = 3;
/// How far into an entry a short key reaches.
const KEY_READ_BYTES: usize = 24;

/// Tables of at least this many bytes are mappings of their own.
const MAPPED_BYTES: usize = 32 * 1024;
/// Memory of a mapped table is given back in blocks of this many bytes while it drains.
const DISCARD_BYTES: usize = 64 * 1024;

/// The bits of a reference that hold tag, not address.
pub(super) const TAG_LOW: u64 = ALIGN as u64 - 1;

/// The number of buckets for a size code: 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, ...
pub(super) fn bucket_count(code: u64) -> usize {
    ((4 + (code & 3)) as usize) << (code >> 2)
}

/// A table in one word: its address, which is a multiple of 64, the mantissa of its size code (4 to 7) in the
/// low bits and the exponent in the top bits. Zero is no table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Table(pub(super) u64);

const EXPONENT_SHIFT: u32 = 58;
const ADDRESS: u64 = 0xffff_ffff_ffc0;

impl Table {
    pub(super) const NONE: Table = Table(0);

    fn layout(code: u64) -> Layout {
        Layout::array::<Bucket>(bucket_count(code) + REACH - 1)
            .expect("tables are far below isize::MAX")
    }

    /// A table of zeroes. Large ones are mapped: their pages take memory one by one as entries move in, and
    /// the pages of an old table can be given back one by one as entries move out.
    pub(super) fn allocate(code: u64) -> Table {
        let layout = Table::layout(code);
        let pointer = if layout.size() >= MAPPED_BYTES {
            map(layout.size())
        } else {
            // SAFETY: the layout has at least eleven buckets.
            let pointer = unsafe { alloc_zeroed(layout) };
            NonNull::new(pointer).unwrap_or_else(|| handle_alloc_error(layout))
        };
        Table(pointer.as_ptr() as u64 | (4 + (code & 3)) | (code >> 2) << EXPONENT_SHIFT)
    }

    pub(super) fn pointer(self) -> *mut u8 {
        (self.0 & ADDRESS) as *mut u8
    }

    /// # Safety
    /// Nobody looks at the table any more.
    pub(super) unsafe fn free(self) {
        let layout = Table::layout(self.code());
        // SAFETY: made by `allocate` in the same way; unused by the caller's contract.
        unsafe {
            if layout.size() >= MAPPED_BYTES {
                unmap(self.pointer(), layout.size());
            } else {
                dealloc(self.pointer(), layout);
            }
        }
    }

    /// Gives the memory of the bucket block that ends before `bucket` back, when one does. Whoever looks
    /// there without the lock sees empty buckets.
    pub(super) fn discard_before(self, bucket: usize) {
        let end = bucket * size_of::<Bucket>();
        if end.is_multiple_of(DISCARD_BYTES) && Table::layout(self.code()).size() >= MAPPED_BYTES {
            // SAFETY: the table is mapped, and all entries of these buckets have moved.
            unsafe { discard(self.pointer().add(end - DISCARD_BYTES), DISCARD_BYTES) };
        }
    }

    /// Starts loading what will be needed soon after `home` moves: a bucket, and of one that was asked for
    /// earlier, the entries, whose keys have to be read for their hashes.
    #[inline]
    pub(super) fn prefetch_ahead_of(self, home: usize) {
        prefetch(self.address(home + MOVE_AHEAD + 4).cast());
        if home + MOVE_AHEAD < self.buckets() {
            let ahead = self.bucket(home + MOVE_AHEAD);
            for slot in ahead.occupied() {
                let entry = (ahead.reference(slot) & !TAG_LOW) as *const u8;
                prefetch(entry);
                prefetch(entry.wrapping_add(KEY_READ_BYTES));
            }
        }
    }

    pub(super) fn exists(self) -> bool {
        self.0 != 0
    }

    pub(super) fn code(self) -> u64 {
        (self.0 >> EXPONENT_SHIFT) << 2 | (self.0 & 3)
    }

    #[inline]
    pub(crate) fn buckets(self) -> usize {
        ((self.0 & 7) << (self.0 >> EXPONENT_SHIFT)) as usize
    }

    pub(super) fn memory(self) -> usize {
        if self.exists() {
            Table::layout(self.code()).size()
        } else {
            0
        }
    }

    /// Bytes of a mapping of its own; 0 for a table that the process allocator gave.
    pub(super) fn mapped(self) -> usize {
        match self.memory() {
            bytes if bytes >= MAPPED_BYTES => bytes,
            _ => 0,
        }
    }

    /// [`Table::mapped`] without what was given back because the buckets before `migrated` are empty.
    pub(super) fn mapped_behind(self, migrated: usize) -> usize {
        let empty = migrated * size_of::<Bucket>();
        self.mapped().saturating_sub(empty - empty % DISCARD_BYTES)
    }

    #[inline]
    fn address(self, at: usize) -> *const Bucket {
        self.pointer()
            .cast::<Bucket>()
            .cast_const()
            .wrapping_add(at)
    }

    /// The bucket at `at`, which is below `buckets + REACH - 1`.
    #[inline]
    pub(super) fn bucket<'a>(self, at: usize) -> &'a Bucket {
        debug_assert!(self.exists() && at < self.buckets() + REACH - 1);
        // SAFETY: in bounds by the argument's contract, which `home` and the displacement bound keep;
        // alive because the caller holds the shard's lock or is inside a turn (invariant 4).
        unsafe { &*self.address(at) }
    }
}

/// The words that say where the tables are, readable without the lock from inside a turn.
#[derive(Default)]
pub(crate) struct Tables {
    pub(super) active: AtomicU64,
    pub(super) draining: AtomicU64,
    pub(super) migrated: AtomicUsize,
}

impl Tables {
    #[inline]
    pub(crate) fn active(&self) -> Table {
        Table(self.active.load(Ordering::Acquire))
    }

    #[inline]
    pub(super) fn draining(&self) -> Table {
        Table(self.draining.load(Ordering::Acquire))
    }

    pub(super) fn migrated(&self) -> usize {
        self.migrated.load(Ordering::Relaxed)
    }

    /// The table and home bucket of a place. The table may be none.
    #[inline]
    pub(super) fn locate(&self, place: Place) -> (Table, usize) {
        let draining = self.draining();
        if draining.exists() {
            let home = place.home(draining.buckets());
            if home >= self.migrated() {
                return (draining, home);
            }
        }
        let active = self.active();
        (active, place.home(active.buckets()))
    }

    /// Asks the processor for the home bucket. Computes an address, reads nothing.
    #[inline]
    pub(crate) fn prefetch_bucket(&self, place: Place) {
        let (table, home) = self.locate(place);
        prefetch(table.address(home).cast());
    }

    /// Asks the processor for the volatile entries of a place's home bucket whose tag byte is that of the
    /// place. Under the lock.
    #[inline]
    pub(crate) fn prefetch_tagged(&self, place: Place) {
        let (table, home) = self.locate(place);
        if !table.exists() {
            return;
        }
        let bucket = table.bucket(home);
        for slot in bucket.matches(place.tag()) {
            if bucket.is_volatile(slot) {
                prefetch((bucket.reference(slot) & !TAG_LOW) as *const u8);
            }
        }
    }

    /// Asks the processor for the entry, if the home bucket has one that looks right. The caller is inside
    /// a turn, which keeps the table (not the entry, which is not read) alive.
    #[inline]
    pub(crate) fn prefetch_entry(&self, place: Place) {
        let (table, home) = self.locate(place);
        if !table.exists() {
            return;
        }
        let bucket = table.bucket(home);
        for slot in bucket.matches(place.tag()) {
            let raw = bucket.reference(slot);
            if raw & TAG_LOW == place.tag_low() {
                let address = (raw & !TAG_LOW) as *const u8;
                prefetch(address);
                prefetch(address.wrapping_add(56));
            }
        }
    }
}

/// A table that was replaced, waiting for those who may look at it.
pub(super) struct Retired {
    pub(super) table: Table,
    pub(super) snapshot: Box<[u64]>,
}

const _: () = assert!(SLOTS == 8 && REACH == 8);
