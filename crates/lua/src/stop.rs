//! How a run is stopped, and everything that catches errors: it raises again while the run is being stopped.
//!
//! The hook comes after every [`INSTRUCTIONS`] instructions, and at once where much memory has been asked
//! for. It asks the host. Coroutines inherit it, and each `resume` asks, because a coroutine counts for
//! itself.

use std::os::raw::c_int;

use mlua_sys as ffi;
use mlua_sys::{lua_Debug, lua_State};

use crate::raise::{Raise, Returned, abort_on_panic, callback};
use crate::stack::Lua;

/// Instructions of Lua between two questions to the host.
const INSTRUCTIONS: c_int = 1000;

/// Sets the hook of the main coroutine.
pub(crate) fn watch(lua: Lua<'_>) {
    // SAFETY: the agreement of `stack`; the call allocates nothing.
    unsafe { ffi::lua_sethook(lua.raw, Some(hook), ffi::LUA_MASKCOUNT, INSTRUCTIONS) };
}

/// The hook of every coroutine.
///
/// # Safety
///
/// Lua calls it with a state that [`crate::state::State`] has made.
pub(crate) unsafe extern "C-unwind" fn hook(raw: *mut lua_State, _: *mut lua_Debug) {
    // SAFETY: the caller's promise; nothing in this frame needs `Drop`.
    let lua = unsafe { Lua::of(raw) };
    if abort_on_panic(|| look(lua)) {
        lua.push_light(std::ptr::null_mut());
        lua.raise_top();
    }
}

/// Asks the host, and collects garbage where memory is short: Lua itself begins too late for a limit. Returns
/// whether the run has to stop.
fn look(lua: Lua<'_>) -> bool {
    // The allocator may have set it to one instruction.
    watch(lua);
    let machine = lua.machine();
    let (live, limit) = (machine.memory.live(), machine.memory.limit());
    let is_short = live > limit / 4 * 3 || machine.memory.taken() > limit / 8 * 7;
    if is_short && live > machine.collected_at.get() + limit / 16 {
        lua.collect(ffi::LUA_GCCOLLECT, 0);
        machine.collected_at.set(machine.memory.live());
    }
    machine.ask()
}

/// Asks the host at one step of a loop that may be long.
#[inline]
pub(crate) fn step(lua: Lua<'_>) -> Result<(), Raise> {
    if lua.machine().step() {
        return Err(Raise::Stop);
    }
    Ok(())
}

/// `pcall`. An error that is a table with a text in `err` becomes that text, as in Redis.
pub(crate) fn pcall(lua: Lua<'_>) -> Returned {
    lua.expect_any(1);
    let machine = lua.machine();
    let scratch = machine.scratch_len();
    let arguments = lua.top() - 1;
    lua.push_boolean(true);
    lua.insert(1);
    let status = lua.protected_call(arguments, ffi::LUA_MULTRET, 0);
    if machine.is_stopping() {
        return Err(Raise::Stop);
    }
    if status != ffi::LUA_OK {
        machine.truncate_scratch(scratch);
        lua.push_boolean(false);
        lua.replace(1);
        if lua.is(2, ffi::LUA_TTABLE) {
            lua.push_field(2, b"err");
            if lua.is_string(3) {
                lua.remove(2);
            }
        }
    }
    Ok(lua.top())
}

/// `xpcall`. The handler asks first whether the run is being stopped: hooks are off inside of it when the
/// error is the hook's.
pub(crate) fn xpcall(lua: Lua<'_>) -> Returned {
    lua.expect_any(2);
    lua.set_top(2);
    let machine = lua.machine();
    let scratch = machine.scratch_len();
    if lua.is(2, ffi::LUA_TFUNCTION) {
        lua.push_closure(callback!(handle), 1);
    }
    lua.insert(1);
    let status = lua.protected_call(0, ffi::LUA_MULTRET, 1);
    if machine.is_stopping() {
        return Err(Raise::Stop);
    }
    if status != ffi::LUA_OK {
        machine.truncate_scratch(scratch);
    }
    if !lua.has_room(4) {
        // Room for the message.
        lua.set_top(1);
        return Err(Raise::Text(c"stack overflow"));
    }
    lua.push_boolean(status == ffi::LUA_OK);
    lua.replace(1);
    Ok(lua.top())
}

/// The handler that `xpcall` passes; the script's is its upvalue.
fn handle(lua: Lua<'_>) -> Returned {
    if lua.machine().is_stopping() {
        return Ok(1);
    }
    lua.set_top(1);
    lua.copy(ffi::lua_upvalueindex(1));
    lua.insert(1);
    lua.call(1, 1);
    Ok(1)
}

/// `coroutine.create`.
pub(crate) fn create(lua: Lua<'_>) -> Returned {
    if !lua.is(1, ffi::LUA_TFUNCTION) || lua.is_c_function(1) {
        return Err(Raise::Argument(1, c"Lua function expected"));
    }
    let coroutine = lua.new_thread();
    lua.copy(1);
    // SAFETY: the coroutine has just been made, and is on the stack.
    lua.move_to(unsafe { Lua::of(coroutine) }, 1);
    Ok(1)
}

/// `coroutine.wrap`.
pub(crate) fn wrap(lua: Lua<'_>) -> Returned {
    create(lua)?;
    lua.push_closure(callback!(resume_wrapped), 1);
    Ok(1)
}

fn resume_wrapped(lua: Lua<'_>) -> Returned {
    let coroutine = lua.thread(ffi::lua_upvalueindex(1));
    match resume_at(lua, coroutine, lua.top())? {
        Resumed::Results(count) => Ok(count),
        Resumed::Failed => {
            if lua.is_string(-1) {
                lua.push_place(1);
                lua.insert(-2);
                lua.concat(2);
            }
            Err(Raise::Top)
        }
    }
}

/// `coroutine.resume`.
pub(crate) fn resume(lua: Lua<'_>) -> Returned {
    let coroutine = lua.thread(1);
    if coroutine.is_null() {
        return Err(Raise::Argument(1, c"coroutine expected"));
    }
    match resume_at(lua, coroutine, lua.top() - 1)? {
        Resumed::Results(count) => {
            lua.push_boolean(true);
            lua.insert(-(count + 1));
            Ok(count + 1)
        }
        Resumed::Failed => {
            lua.push_boolean(false);
            lua.insert(-2);
            Ok(2)
        }
    }
}

enum Resumed {
    /// So many values on top of the stack.
    Results(c_int),
    /// The error is on top of the stack.
    Failed,
}

/// Resumes a coroutine with so many arguments on top of the stack.
fn resume_at(lua: Lua<'_>, raw: *mut lua_State, arguments: c_int) -> Result<Resumed, Raise> {
    let machine = lua.machine();
    if machine.ask() {
        return Err(Raise::Stop);
    }
    // SAFETY: the coroutine is an argument or an upvalue of the running callback.
    let coroutine = unsafe { Lua::of(raw) };
    if !coroutine.has_room(arguments) {
        return Err(Raise::Text(c"too many arguments to resume"));
    }
    if let Some(refusal) = refusal(lua, coroutine) {
        lua.push(refusal);
        return Ok(Resumed::Failed);
    }
    lua.move_to(coroutine, arguments);
    let (scratch, running) = (machine.scratch_len(), machine.memory.running());
    machine.memory.set_running(raw);
    let status = coroutine.resume_from(lua, arguments);
    machine.memory.set_running(running);
    if machine.is_stopping() {
        return Err(Raise::Stop);
    }
    if status != ffi::LUA_OK && status != ffi::LUA_YIELD {
        machine.truncate_scratch(scratch);
        coroutine.move_to(lua, 1);
        return Ok(Resumed::Failed);
    }
    let results = coroutine.top();
    if !lua.has_room(results + 1) {
        return Err(Raise::Text(c"too many results to resume"));
    }
    coroutine.move_to(lua, results);
    Ok(Resumed::Results(results))
}

/// Why a coroutine can't be resumed.
fn refusal(lua: Lua<'_>, coroutine: Lua<'_>) -> Option<&'static [u8]> {
    if lua.raw == coroutine.raw {
        return Some(b"cannot resume running coroutine");
    }
    match coroutine.status() {
        ffi::LUA_YIELD => None,
        ffi::LUA_OK if coroutine.has_level(0) => Some(b"cannot resume normal coroutine"),
        ffi::LUA_OK if coroutine.top() > 0 => None,
        _ => Some(b"cannot resume dead coroutine"),
    }
}
