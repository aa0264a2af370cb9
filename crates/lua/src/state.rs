//! A state of Lua: texts are compiled in it, and their functions run, one at a time.
//!
//! ```text
//!   stack of the main coroutine, outside of calls
//!     1  the handler of errors: finds the place of an error and its text
//!     2  the runner: KEYS, ARGV, the function, its result; upvalues: globals, names, the lists that
//!        texts share which only read them
//!     3  the loader: runs the text of a library, which registers functions; see `loader`
//! ```
//!
//! Invariants:
//! 1. All that may allocate in Lua stands inside a protected call: the state's making, a compilation, or a
//!    run.
//! 2. A state belongs to one thread at a time: it may move while nothing runs.

use std::ffi::CString;
use std::fmt;
use std::os::raw::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use mlua_sys as ffi;
use mlua_sys::lua_State;
use resp::reply::Protocol;

use crate::alloc;
use crate::api::Api;
use crate::fault;
use crate::function::{Function, Takes};
use crate::host::{Arguments, Host, KNOWN_KEYS};
use crate::libraries;
use crate::loader;
use crate::machine::Machine;
use crate::raise::{NO_MEMORY, Returned, callback};
use crate::result;
use crate::stack::Lua;
use crate::stop;

/// The least limit of a state, bytes: it exists, and small scripts run.
pub const MEMORY_MIN: usize = 1 << 20;
/// A collection begins at so many percent of the memory that the one before has left. Nearly all objects of
/// scripts are garbage at once, so a collection costs as much as the rest.
const COLLECTOR_PAUSE: c_int = 400;
/// Garbage that a state may keep between runs, bytes.
const GARBAGE_MAX: usize = 1 << 20;
/// Memory that a state may keep between runs, bytes, beside that of its functions.
const LIVE_MAX: usize = 8 << 20;
/// Memory that a function may take for each byte of its text.
const FUNCTION_RATIO: usize = 16;
/// Items of a list that is shared.
const SHARED_MOST: usize = KNOWN_KEYS;
const HANDLER: c_int = 1;
const RUNNER: c_int = 2;
pub(crate) const LOADER: c_int = 3;
/// The runner's upvalues: globals, the names of KEYS and ARGV, [`result::NAMES`], the shared lists of both.
const GLOBALS: c_int = 1;
const LIST_NAMES: c_int = 2;
const SHARED_LISTS: c_int = LIST_NAMES + 2 + result::NAMES.len() as c_int;
const KEYS: usize = 0;
const ARGV: usize = 1;

/// The number of states so far.
static STATES: AtomicU64 = AtomicU64::new(0);

/// A state of Lua with its globals.
pub struct State {
    raw: *mut lua_State,
    /// Made by `Box`, freed with the state.
    machine: NonNull<Machine>,
    /// Memory that is live after a full collection, bytes.
    live_at_rest: usize,
    /// Bytes of the texts of its functions.
    texts: usize,
    /// Tells states apart, so that no function runs in another one.
    id: u64,
}

// SAFETY: the state and its memory are used by the thread alone that has it, and refer to no other thread.
unsafe impl Send for State {}

/// How a protected call ended.
pub(crate) enum Entered {
    Done,
    Failed,
    Stopped,
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// The reply is the script's result.
    Done,
    /// The reply is an error.
    Failed {
        /// Whether the error is an inner command's, so that statistics of errors have it already.
        is_counted: bool,
    },
    /// The host has stopped the run. There is no reply.
    Stopped,
}

/// Memory of a state, bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryUse {
    /// Bytes that Lua holds, garbage included.
    pub live: usize,
    /// Bytes that the process has given.
    pub taken: usize,
}

/// One run.
struct Task<'t> {
    function: &'t Function,
    keys: Arguments<'t>,
    argv: Arguments<'t>,
    protocol: Protocol,
    reply: &'t mut Vec<u8>,
}

impl State {
    /// A state with a limit of memory, at least [`MEMORY_MIN`]. `version`: the server's, for scripts.
    ///
    /// # Panics
    ///
    /// If the limit is too small, or the process has no memory.
    pub fn new(limit: usize, version: [u8; 3]) -> State {
        State::with(limit, Api::Scripts(version))
    }

    /// The same for libraries.
    ///
    /// # Panics
    ///
    /// As [`State::new`].
    pub fn for_libraries(limit: usize, version: [u8; 3]) -> State {
        State::with(limit, Api::Libraries(version))
    }

    fn with(limit: usize, api: Api) -> State {
        assert!(limit >= MEMORY_MIN, "a state needs a megabyte");
        let machine = NonNull::from(Box::leak(Box::new(Machine::new(limit, stop::hook))));
        let data: *mut c_void = machine.as_ptr().cast();
        // SAFETY: the machine begins with its memory, and lives until the state is closed.
        let raw = unsafe { ffi::lua_newstate(alloc::allocate, data) };
        assert!(!raw.is_null(), "there is memory for a state");
        let mut api = api;
        let api: *mut c_void = (&raw mut api).cast();
        // SAFETY: the state is alive; `api` lives until the call ends.
        let status = unsafe { ffi::lua_cpcall(raw, callback!(build), api) };
        assert_eq!(status, ffi::LUA_OK, "the globals fit the least memory");
        let mut state = State {
            raw,
            machine,
            live_at_rest: 0,
            texts: 0,
            id: STATES.fetch_add(1, Ordering::Relaxed),
        };
        let lua = state.lua();
        // `build` has left a table in the registry. The stack has room for it.
        lua.push_light(machine.as_ptr().cast());
        lua.raw_get(ffi::LUA_REGISTRYINDEX);
        let list = lua.top();
        for place in [HANDLER, RUNNER, LOADER] {
            lua.raw_get_at(list, place);
        }
        lua.remove(list);
        stop::watch(lua);
        lua.collect(ffi::LUA_GCSETPAUSE, COLLECTOR_PAUSE);
        state.collect();
        state
    }

    pub(crate) fn lua(&mut self) -> Lua<'_> {
        // SAFETY: the state is alive, and borrowed mutably.
        unsafe { Lua::of(self.raw) }
    }

    pub(crate) fn machine(&self) -> &Machine {
        // SAFETY: the machine lives as long as the state, and is only shared.
        unsafe { self.machine.as_ref() }
    }

    /// Compiles a text. `name`: `@user_script`; errors show it without the first character.
    ///
    /// # Errors
    ///
    /// The message of Lua, with the name and the line, if the text is no chunk or there is no memory.
    pub fn compile(&mut self, name: &str, text: &[u8]) -> Result<Function, Vec<u8>> {
        let name = CString::new(name.replace('\0', "")).expect("zeros are removed");
        let reference = match self.compile_once(&name, text) {
            Err(message) if message == NO_MEMORY => {
                self.collect();
                self.compile_once(&name, text)
            }
            reference => reference,
        };
        let reference = reference?;
        self.texts += text.len();
        let sees = |word: &str| has_any(text, &[word, "_G", "load"]);
        Ok(Function {
            reference,
            state: self.id,
            text_len: text.len(),
            takes: Takes::Globals,
            sees: ["KEYS", "ARGV"].map(sees),
            only_reads: [false; 2],
        })
    }

    fn compile_once(&mut self, name: &CString, text: &[u8]) -> Result<c_int, Vec<u8>> {
        let mut unit = Unit {
            name,
            text,
            reference: Err(Vec::new()),
        };
        let data: *mut c_void = (&raw mut unit).cast();
        // SAFETY: the state is alive; `unit` lives until the call ends.
        let status = unsafe { ffi::lua_cpcall(self.raw, callback!(compile), data) };
        if status != ffi::LUA_OK {
            self.lua().pop(1);
            return Err(NO_MEMORY.to_vec());
        }
        unit.reference
    }

    /// Frees a function of this state.
    ///
    /// # Panics
    ///
    /// If it is another state's.
    pub fn forget(&mut self, function: Function) {
        assert_eq!(function.state, self.id, "the function of another state");
        self.texts -= function.text_len;
        self.release(function.reference);
    }

    pub(crate) fn release(&mut self, reference: c_int) {
        self.lua().release(ffi::LUA_REGISTRYINDEX, reference);
    }

    /// Runs a function of this state, and appends its reply to `reply`. `name`: the text's SHA, or the name
    /// of a library's function, for errors.
    ///
    /// # Panics
    ///
    /// If the function is another state's.
    pub fn run(
        &mut self,
        host: &mut dyn Host,
        function: &Function,
        call: Call<'_>,
        reply: &mut Vec<u8>,
    ) -> Ended {
        assert_eq!(function.state, self.id, "the function of another state");
        let from = reply.len();
        let mut task = Task {
            function,
            keys: call.keys,
            argv: call.argv,
            protocol: call.protocol,
            reply,
        };
        let data: *mut c_void = (&raw mut task).cast();
        self.machine()
            .reply_end
            .set(from.saturating_add(call.reply_most));
        match self.enter(host, RUNNER, data, call.memory_most) {
            Entered::Done => Ended::Done,
            Entered::Stopped => {
                reply.truncate(from);
                Ended::Stopped
            }
            Entered::Failed => {
                reply.truncate(from);
                let fault = self.machine().fault.borrow();
                fault::write(reply, &fault, call.name);
                Ended::Failed {
                    is_counted: fault.is_counted,
                }
            }
        }
    }

    /// Calls the runner or the loader with its task, for a host. After an error `fault` of the machine says
    /// which.
    pub(crate) fn enter(
        &mut self,
        host: &mut dyn Host,
        function: c_int,
        task: *mut c_void,
        memory_most: usize,
    ) -> Entered {
        let machine = self.machine;
        // SAFETY: the machine lives as long as the state.
        let machine = unsafe { machine.as_ref() };
        // SAFETY: only the lifetime changes; `end` forgets the host before this call returns.
        machine.begin(unsafe {
            std::mem::transmute::<NonNull<dyn Host + '_>, NonNull<dyn Host + 'static>>(
                NonNull::from(host),
            )
        });
        machine.memory.begin_run(memory_most);
        machine.memory.set_running(self.raw);
        let lua = self.lua();
        lua.copy(function);
        lua.push_light(task);
        let status = lua.protected_call(1, 0, HANDLER);
        machine.memory.set_running(std::ptr::null_mut());
        machine.memory.end_run();
        machine.end();
        let entered = if machine.is_stopping() {
            Entered::Stopped
        } else if status == ffi::LUA_OK {
            Entered::Done
        } else {
            let mut fault = machine.fault.borrow_mut();
            if !fault.is_noted {
                // Lua's own, of a text that it keeps: no memory, or too many errors in each other.
                fault.line = None;
                fault.is_counted = false;
                fault::put_text(lua, -1, &mut fault.text);
            }
            Entered::Failed
        };
        lua.set_top(LOADER);
        entered
    }

    /// A function that a library has registered.
    pub(crate) fn function(&mut self, reference: c_int, text_len: usize) -> Function {
        self.texts += text_len;
        Function {
            reference,
            state: self.id,
            text_len,
            takes: Takes::Parameters,
            sees: [true; 2],
            only_reads: [false; 2],
        }
    }

    /// The line at which the last run was stopped; 0 if it was in no line.
    #[must_use]
    pub fn stopped_at(&self) -> i32 {
        self.machine().stopped_at.get()
    }

    /// Memory of the state.
    pub fn memory(&self) -> MemoryUse {
        let memory = &self.machine().memory;
        MemoryUse {
            live: memory.live(),
            taken: memory.taken(),
        }
    }

    /// Between two runs: collects garbage if there is much. Returns whether the state may be used again; if
    /// not, it has met its limit, or holds too much, and a new one takes its place.
    #[must_use]
    pub fn rest(&mut self) -> bool {
        let memory = &self.machine().memory;
        if memory.is_short() {
            return false;
        }
        if memory.live() > self.live_at_rest + GARBAGE_MAX.max(self.live_at_rest) {
            self.collect();
        }
        let live_max = LIVE_MAX.saturating_add(self.texts.saturating_mul(FUNCTION_RATIO));
        self.memory().live <= live_max && self.memory().taken <= self.machine().memory.limit() / 2
    }

    /// Frees all that no function holds, the last KEYS and ARGV among it.
    pub fn collect(&mut self) {
        let lua = self.lua();
        // The runner without a task takes KEYS and ARGV away. It allocates nothing.
        lua.copy(RUNNER);
        lua.push_light(std::ptr::null_mut());
        let status = lua.protected_call(1, 0, 0);
        debug_assert_eq!(status, ffi::LUA_OK);
        lua.set_top(LOADER);
        lua.collect(ffi::LUA_GCCOLLECT, 0);
        self.live_at_rest = self.machine().memory.live();
    }
}

/// The arguments of a run.
#[derive(Clone, Copy, Debug)]
pub struct Call<'c> {
    /// The text's SHA-1 in digits, or the name of a library's function: for errors.
    pub name: &'c str,
    /// KEYS.
    pub keys: Arguments<'c>,
    /// ARGV.
    pub argv: Arguments<'c>,
    /// The version of the protocol of the reply.
    pub protocol: Protocol,
    /// Bytes of the longest reply. A longer one is the error that there is not enough memory.
    pub reply_most: usize,
    /// Bytes that the run may take from the process, within the limit of the state.
    pub memory_most: usize,
}

impl Drop for State {
    fn drop(&mut self) {
        // SAFETY: nothing runs; the machine was made by `Box`, and nothing uses it after the state.
        unsafe {
            ffi::lua_close(self.raw);
            drop(Box::from_raw(self.machine.as_ptr()));
        }
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State")
            .field("memory", &self.memory())
            .finish_non_exhaustive()
    }
}

/// Makes the globals, and leaves handler and runner in the registry below the machine's address.
fn build(lua: Lua<'_>) -> Returned {
    // SAFETY: `State::with` gives it and waits.
    let api = unsafe { *lua.light(1).cast::<Api>() };
    let machine: *const Machine = lua.machine();
    lua.push_light(machine.cast_mut().cast());
    lua.new_table(LOADER, 0);
    lua.push_function(callback!(fault::handle));
    lua.raw_set_at(-2, HANDLER);
    libraries::build(lua, api);
    lua.push(b"KEYS");
    lua.push(b"ARGV");
    for name in result::NAMES {
        lua.push(name);
    }
    lua.new_table(SHARED_MOST as c_int, 0);
    lua.new_table(SHARED_MOST as c_int, 0);
    lua.push_closure(callback!(run), SHARED_LISTS + 1);
    lua.raw_set_at(-2, RUNNER);
    loader::push_loader(lua, api);
    lua.raw_set_at(-2, LOADER);
    lua.raw_set(ffi::LUA_REGISTRYINDEX);
    // The list of free references: `forget` has a place for it then, and needs no memory.
    lua.push_boolean(true);
    let reference = lua.reference(ffi::LUA_REGISTRYINDEX);
    lua.release(ffi::LUA_REGISTRYINDEX, reference);
    Ok(0)
}

/// A text to compile.
struct Unit<'u> {
    name: &'u CString,
    text: &'u [u8],
    reference: Result<c_int, Vec<u8>>,
}

fn compile(lua: Lua<'_>) -> Returned {
    // SAFETY: `State::compile` gives the unit and waits.
    let unit = unsafe { &mut *lua.light(1).cast::<Unit<'_>>() };
    let is_function = lua.load(unit.name, unit.text);
    unit.reference = if is_function {
        Ok(lua.reference(ffi::LUA_REGISTRYINDEX))
    } else {
        Err(lua.bytes(-1).unwrap_or_default().to_vec())
    };
    Ok(0)
}

/// The runner: sets KEYS and ARGV, calls the function and writes its result.
fn run(lua: Lua<'_>) -> Returned {
    let task = lua.light(1).cast::<Task<'_>>();
    let machine = lua.machine();
    if task.is_null() {
        for list in [KEYS, ARGV] {
            lua.push_nil();
            set_global(lua, list);
            machine.shared[list].is_global.set(false);
            share(lua, machine, list, Arguments::new(&[], &[]));
        }
        return Ok(0);
    }
    // SAFETY: `State::run` gives the task and waits; the handler, which uses it, too, runs only meanwhile
    // calls below, and nothing of the task is read after an error.
    let task = unsafe { &mut *task };
    machine.key_addresses.borrow_mut().clear();
    let mut places = [0; 2];
    for (list, items) in [(KEYS, task.keys), (ARGV, task.argv)] {
        if !task.function.sees[list] {
            continue;
        }
        let is_shared = task.function.only_reads[list] && items.len() <= SHARED_MOST;
        match is_shared {
            true => share(lua, machine, list, items),
            false => push_list(lua, items),
        }
        places[list] = lua.top();
        let is_global = task.function.takes == Takes::Globals;
        if is_global && (!machine.shared[list].is_global.replace(is_shared) || !is_shared) {
            set_global(lua, list);
        }
        if list == KEYS && !is_shared {
            keep_keys(lua, machine, items.len());
        }
    }
    lua.raw_get_at(ffi::LUA_REGISTRYINDEX, task.function.reference);
    match task.function.takes {
        Takes::Globals => lua.call(0, 1),
        Takes::Parameters => {
            places.into_iter().for_each(|place| lua.copy(place));
            lua.call(2, 1);
        }
    }
    let script = machine.protocol.get();
    result::write(lua, task.reply, task.protocol, script)?;
    Ok(0)
}

/// Pushes a new list of strings.
fn push_list(lua: Lua<'_>, list: Arguments<'_>) {
    lua.new_table(list.len() as c_int, 0);
    for (at, span) in list.spans.iter().enumerate() {
        lua.push(span.of(list.input));
        lua.raw_set_at(-2, at as c_int + 1);
    }
}

/// Sets KEYS or ARGV to the top of the stack, and leaves it there.
fn set_global(lua: Lua<'_>, list: usize) {
    lua.copy(ffi::lua_upvalueindex(LIST_NAMES + list as c_int));
    lua.copy(-2);
    lua.raw_set(ffi::lua_upvalueindex(GLOBALS));
}

/// Pushes a shared list, with at most [`SHARED_MOST`] items in it, and notes the addresses of keys, which
/// stay in it during the run. Nothing is allocated in Lua but the strings.
fn share(lua: Lua<'_>, machine: &Machine, list: usize, items: Arguments<'_>) {
    lua.copy(ffi::lua_upvalueindex(SHARED_LISTS + list as c_int));
    let len = &machine.shared[list].len;
    let (count, before) = (items.len(), len.get());
    // An error leaves as many at most.
    len.set(count.max(before));
    for (at, span) in items.spans.iter().enumerate() {
        lua.push(span.of(items.input));
        if list == KEYS {
            machine.note_key(lua.bytes(-1).unwrap_or_default());
        }
        lua.raw_set_at(-2, at as c_int + 1);
    }
    for at in count..before {
        lua.push_nil();
        lua.raw_set_at(-2, at as c_int + 1);
    }
    len.set(count);
}

/// Notes the addresses of the first keys. The strings stay on the stack of the runner: an address belongs to
/// one string during the run.
fn keep_keys(lua: Lua<'_>, machine: &Machine, count: usize) {
    let count = count.min(KNOWN_KEYS);
    if !lua.has_room(count as c_int + 8) {
        return;
    }
    let list = lua.top();
    for at in 1..=count {
        lua.raw_get_at(list, at as c_int);
        machine.note_key(lua.bytes(-1).unwrap_or_default());
    }
}

/// Whether one of some words is in a text.
fn has_any(text: &[u8], words: &[&str]) -> bool {
    words
        .iter()
        .any(|word| text.windows(word.len()).any(|part| part == word.as_bytes()))
}
