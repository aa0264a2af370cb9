//! All that a state has beside Lua's own: its memory, the host of the current run, buffers that are used
//! again. Every callback reaches it by the allocator's data, which all coroutines of a state share.
//!
//! Invariants:
//! 1. `memory` is the first field: the allocator's data is the address of both.
//! 2. No reference into a buffer lives while Lua runs: buffers are reached by methods that return before.
//! 3. Nothing here is locked or owned across a call that Lua may leave by a jump.

use std::cell::{Cell, RefCell, UnsafeCell};
use std::ptr::NonNull;

use mlua_sys::lua_Hook;
use resp::reply::Protocol;
use resp::request::Span;

use crate::alloc::Memory;
use crate::host::{BUFFER_KEPT, Captured, Host, Interrupt};

/// Options of cjson that a script may change; they end with its run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JsonOptions {
    /// Sparse arrays become objects; otherwise they are an error.
    pub(crate) sparse_as_object: bool,
    pub(crate) sparse_ratio: i32,
    pub(crate) sparse_safe: i32,
    pub(crate) encode_depth: i32,
    pub(crate) decode_depth: i32,
    pub(crate) encode_invalid: Invalid,
    pub(crate) decode_invalid: bool,
    pub(crate) precision: i32,
    pub(crate) keeps_buffer: bool,
}

/// The way of cjson with a NaN and the infinities.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Invalid {
    Refuse,
    Write,
    Null,
}

impl JsonOptions {
    pub(crate) const INITIAL: JsonOptions = JsonOptions {
        sparse_as_object: false,
        sparse_ratio: 2,
        sparse_safe: 10,
        encode_depth: 1000,
        decode_depth: 1000,
        encode_invalid: Invalid::Refuse,
        decode_invalid: true,
        precision: 14,
        keeps_buffer: true,
    };
}

/// The arguments of an inner command, and its reply.
#[derive(Default)]
pub(crate) struct Command {
    pub(crate) input: Vec<u8>,
    pub(crate) spans: Vec<Span>,
    /// For each argument its place among the keys of the run, if it is one.
    pub(crate) known: Vec<Option<u32>>,
    pub(crate) reply: Captured,
}

/// A table of a result that is being written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Open {
    Array {
        next: i32,
        count: i32,
    },
    /// A map. `has_value`: the value of the key that was written last is on the stack.
    Pairs {
        has_value: bool,
    },
    /// A set.
    Members,
}

/// A function that a library has registered.
pub(crate) struct Registration {
    pub(crate) name: Vec<u8>,
    pub(crate) description: Option<Vec<u8>>,
    pub(crate) flags: u32,
    /// Of its function.
    pub(crate) reference: i32,
}

/// The error that ends a run, as the handler has met it.
#[derive(Default)]
pub(crate) struct Fault {
    /// Whether there is one.
    pub(crate) is_noted: bool,
    pub(crate) text: Vec<u8>,
    /// Whether it is an inner command's, which statistics of errors have already.
    pub(crate) is_counted: bool,
    pub(crate) source: Vec<u8>,
    /// The line, if there is a place.
    pub(crate) line: Option<i32>,
}

/// A list that stays from run to run.
#[derive(Default)]
pub(crate) struct SharedList {
    pub(crate) len: Cell<usize>,
    /// Whether the global has it.
    pub(crate) is_global: Cell<bool>,
}

/// The data of a state.
#[repr(C)]
pub(crate) struct Machine {
    pub(crate) memory: Memory,
    host: Cell<Option<NonNull<dyn Host>>>,
    stopping: Cell<bool>,
    /// The line at which the run was stopped.
    pub(crate) stopped_at: Cell<i32>,
    /// Bytes that `gsub`, `rep`, `concat` and others gather; a stack.
    scratch: UnsafeCell<Vec<u8>>,
    pub(crate) command: UnsafeCell<Command>,
    /// Addresses of the strings of KEYS: a string has one address as long as it is alive.
    pub(crate) key_addresses: RefCell<Vec<usize>>,
    /// The lists that functions share which only read them: of KEYS, and of ARGV.
    pub(crate) shared: [SharedList; 2],
    pub(crate) fault: RefCell<Fault>,
    /// Addresses of the metatables of proxies.
    pub(crate) proxies: Cell<[usize; PROXIES]>,
    pub(crate) random: Cell<u64>,
    pub(crate) protocol: Cell<Protocol>,
    /// The reply of a run ends before this byte of its buffer.
    pub(crate) reply_end: Cell<usize>,
    pub(crate) json: Cell<JsonOptions>,
    /// Memory in use after the last collection that the hook has made.
    pub(crate) collected_at: Cell<usize>,
    open_tables: RefCell<Vec<Open>>,
    /// The functions that the library which is being loaded has registered; `None` at all other times.
    pub(crate) registered: RefCell<Option<Vec<Registration>>>,
    /// Steps of slow loops until the host is asked.
    steps: Cell<u32>,
}

/// The most proxies of a state.
pub(crate) const PROXIES: usize = 16;
/// Steps of slow loops between two questions to the host.
pub(crate) const STEPS: u32 = 10_000;

impl Machine {
    pub(crate) fn new(limit: usize, hook: lua_Hook) -> Machine {
        Machine {
            memory: Memory::new(limit, hook),
            host: Cell::new(None),
            stopping: Cell::new(false),
            stopped_at: Cell::new(0),
            scratch: UnsafeCell::default(),
            command: UnsafeCell::default(),
            key_addresses: RefCell::default(),
            shared: Default::default(),
            fault: RefCell::default(),
            proxies: Cell::new([0; PROXIES]),
            random: Cell::new(0),
            protocol: Cell::new(Protocol::Resp2),
            reply_end: Cell::new(0),
            json: Cell::new(JsonOptions::INITIAL),
            collected_at: Cell::new(0),
            open_tables: RefCell::default(),
            registered: RefCell::default(),
            steps: Cell::new(STEPS),
        }
    }

    /// Notes the string of a key, which is alive until the run ends.
    pub(crate) fn note_key(&self, key: &[u8]) {
        self.key_addresses.borrow_mut().push(key.as_ptr() as usize);
    }

    /// Begins a run, with all that the one before may have left taken back.
    pub(crate) fn begin(&self, host: NonNull<dyn Host>) {
        self.host.set(Some(host));
        self.stopping.set(false);
        self.stopped_at.set(0);
        self.random.set(FIRST_RANDOM);
        self.protocol.set(Protocol::Resp2);
        self.json.set(JsonOptions::INITIAL);
        self.collected_at.set(0);
        self.steps.set(STEPS);
        self.truncate_scratch(0);
        self.fault.borrow_mut().is_noted = false;
    }

    /// Ends a run: there is no host any more.
    pub(crate) fn end(&self) {
        self.host.set(None);
        self.truncate_scratch(0);
        // SAFETY: no reference to the command lives: nothing of the run is active.
        let command = unsafe { &mut *self.command.get() };
        command.reply.clear();
        command.input.shrink_to(BUFFER_KEPT);
    }

    /// Whether the run is being stopped: every `pcall` raises again.
    #[inline]
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.get()
    }

    /// Stops the run.
    pub(crate) fn stop(&self) {
        self.stopping.set(true);
    }

    /// The host of the run, for one call of it.
    #[inline]
    pub(crate) fn with_host<R>(&self, call: impl FnOnce(&mut dyn Host) -> R) -> Option<R> {
        // Taken out, so that there is no second reference to it.
        let mut host = self.host.take()?;
        // SAFETY: the run holds the host mutably borrowed until `end`, and nothing else uses it meanwhile.
        let result = call(unsafe { host.as_mut() });
        self.host.set(Some(host));
        Some(result)
    }

    /// Asks the host. Returns whether the run has to stop.
    pub(crate) fn ask(&self) -> bool {
        if self.is_stopping() {
            return true;
        }
        self.steps.set(STEPS);
        let answer = self.with_host(|host| host.interrupt());
        if answer == Some(Interrupt::Stop) {
            self.stop();
        }
        self.is_stopping()
    }

    /// The tables of a result that are open, for one look.
    #[inline]
    pub(crate) fn open_tables<R>(&self, look: impl FnOnce(&mut Vec<Open>) -> R) -> R {
        look(&mut self.open_tables.borrow_mut())
    }

    /// One step of a loop that may be long. Returns whether the run has to stop.
    #[inline]
    pub(crate) fn step(&self) -> bool {
        let left = self.steps.get();
        if left > 0 {
            self.steps.set(left - 1);
            return false;
        }
        self.ask()
    }

    /// Steps of a loop, at once. Returns whether the run has to stop.
    pub(crate) fn steps(&self, count: usize) -> bool {
        let left = self.steps.get() as usize;
        if left >= count {
            self.steps.set((left - count) as u32);
            return false;
        }
        self.ask()
    }

    /// Length of the scratch: where the next user of it begins.
    #[inline]
    pub(crate) fn scratch_len(&self) -> usize {
        // SAFETY: the reference ends here.
        unsafe { (*self.scratch.get()).len() }
    }

    /// Appends to the scratch. `false`: there is no memory. The bytes are none of the scratch.
    #[inline]
    #[must_use]
    pub(crate) fn gather(&self, bytes: &[u8]) -> bool {
        // SAFETY: the reference ends here, and `bytes` are another's.
        let scratch = unsafe { &mut *self.scratch.get() };
        if scratch.capacity() - scratch.len() < bytes.len() && !self.grow(scratch, bytes.len()) {
            return false;
        }
        scratch.extend_from_slice(bytes);
        true
    }

    /// Makes room for so many bytes more.
    #[cold]
    fn grow(&self, scratch: &mut Vec<u8>, bytes: usize) -> bool {
        let needed = scratch.len().saturating_add(bytes);
        let wanted = needed.max(2 * scratch.capacity()).max(1024);
        // Twice as much, or as much as needed where that is too much.
        let room = if self.memory.has_room(wanted) {
            wanted
        } else if self.memory.has_room(needed) {
            needed
        } else {
            self.memory.set_short();
            return false;
        };
        let before = scratch.capacity();
        scratch.reserve_exact(room - scratch.len());
        self.memory.recount(before, scratch.capacity());
        self.memory.count_towards_look(bytes);
        true
    }

    /// Makes room for bytes to gather. `false`: there is no memory.
    #[must_use]
    pub(crate) fn reserve(&self, bytes: usize) -> bool {
        // SAFETY: the reference ends here.
        let scratch = unsafe { &mut *self.scratch.get() };
        scratch.capacity() - scratch.len() >= bytes || self.grow(scratch, bytes)
    }

    /// Bytes of the scratch since `from`, until the next use of it.
    #[inline]
    pub(crate) fn gathered(&self, from: usize) -> &[u8] {
        // SAFETY: the caller uses it before the next use of the scratch (invariant 2).
        unsafe { &(&*self.scratch.get())[from..] }
    }

    /// Removes all since `from`.
    pub(crate) fn truncate_scratch(&self, from: usize) {
        // SAFETY: the reference ends here.
        let scratch = unsafe { &mut *self.scratch.get() };
        scratch.truncate(from);
        if from == 0 && scratch.capacity() > BUFFER_KEPT {
            let before = scratch.capacity();
            scratch.shrink_to(BUFFER_KEPT);
            self.memory.recount(before, scratch.capacity());
        }
    }

    /// Whether the metatable at this address is a proxy's.
    pub(crate) fn is_proxy(&self, metatable: usize) -> bool {
        self.proxies.get().contains(&metatable)
    }

    /// Adds a proxy's metatable.
    ///
    /// # Panics
    ///
    /// If there are too many.
    pub(crate) fn add_proxy(&self, metatable: usize) {
        let mut proxies = self.proxies.get();
        let free = proxies.iter_mut().find(|proxy| **proxy == 0);
        *free.expect("there are few libraries") = metatable;
        self.proxies.set(proxies);
    }
}

/// The state of the random numbers that each run begins with: that of a redis-server that has just started.
pub(crate) const FIRST_RANDOM: u64 = 0x1234_ABCD_330E;
