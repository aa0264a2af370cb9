//! Tables that scripts read and can't change. Lua 5.1 has none: a *proxy* is an empty table with a
//! metatable that leads to the base table.
//!
//! ```text
//!   proxy P = {}      metatable of P                           base
//!     script holds it   __index     = base          --------->  sub = .., rep = ..
//!                       __newindex  = raises
//!                       __metatable = P
//! ```
//!
//! Invariants:
//! 1. No script gets a base or a proxy's metatable: functions that read a table without metamethods look
//!    through a proxy ([`look_through`]), those that change one refuse it ([`refuse`]).
//! 2. A proxy is known by the address of its metatable, which nothing else can have.

use std::ffi::CStr;

use mlua_sys as ffi;

use crate::raise::{Raise, Returned, callback};
use crate::stack::Lua;

/// Makes a proxy of the table on top of the stack, in its place.
pub(crate) fn wrap_top(lua: Lua<'_>) {
    lua.new_table(0, 0);
    lua.new_table(0, 3);
    // base, proxy, metatable
    lua.copy(-3);
    lua.set_field(-2, c"__index");
    lua.push_function(callback!(refuse_new_index));
    lua.set_field(-2, c"__newindex");
    lua.copy(-2);
    lua.set_field(-2, c"__metatable");
    lua.machine().add_proxy(lua.address(-1));
    lua.set_metatable(-2);
    lua.remove(-2);
}

/// Whether a value is a proxy.
#[inline]
pub(crate) fn is_proxy(lua: Lua<'_>, index: i32) -> bool {
    if !lua.push_metatable(index) {
        return false;
    }
    let address = lua.address(-1);
    lua.pop(1);
    lua.machine().is_proxy(address)
}

/// Puts the base of a proxy in its place; leaves all other values.
#[inline]
pub(crate) fn look_through(lua: Lua<'_>, index: i32) {
    if is_proxy(lua, index) {
        lua.push_metatable(index);
        lua.push_field(-1, b"__index");
        lua.replace(index);
        lua.pop(1);
    }
}

/// Refuses a proxy.
#[inline]
pub(crate) fn refuse(lua: Lua<'_>, index: i32) -> Result<(), Raise> {
    if is_proxy(lua, index) {
        // Without a place, as in Redis.
        lua.push(READ_ONLY.to_bytes());
        return Err(Raise::Top);
    }
    Ok(())
}

const READ_ONLY: &CStr = c"Attempt to modify a readonly table";

fn refuse_new_index(_: Lua<'_>) -> Returned {
    Err(Raise::Text(READ_ONLY))
}

/// `__index` of the base of globals: there is no such variable.
pub(crate) fn missing_global(lua: Lua<'_>) -> Returned {
    lua.set_top(2);
    let Some(_) = lua.bytes(2) else {
        return Err(Raise::Text(
            c"Second argument to luaProtectedTableError must be a string or number",
        ));
    };
    lua.push_place(1);
    lua.push(b"Script attempted to access nonexistent global variable '");
    lua.copy(2);
    lua.push(b"'");
    lua.concat(4);
    Err(Raise::Top)
}

/// Sets a metatable of functions on the table on top of the stack: its missing fields are errors.
pub(crate) fn guard_missing(lua: Lua<'_>) {
    lua.new_table(0, 1);
    lua.push_function(callback!(missing_global));
    lua.set_field(-2, c"__index");
    lua.set_metatable(-2);
}

/// Makes the strings' metatable: methods come from the base at `base`, and scripts see the proxy at `proxy`.
pub(crate) fn set_string_metatable(lua: Lua<'_>, base: i32, proxy: i32) {
    lua.push(b"");
    lua.new_table(0, 2);
    lua.copy(base);
    lua.set_field(-2, c"__index");
    lua.new_table(0, 1);
    lua.copy(proxy);
    lua.set_field(-2, c"__index");
    wrap_top(lua);
    lua.set_field(-2, c"__metatable");
    lua.set_metatable(-2);
    lua.pop(1);
}

/// Makes the table on top of the stack the environment of all that is loaded from now on, and pops it.
pub(crate) fn set_globals(lua: Lua<'_>) {
    lua.replace(ffi::LUA_GLOBALSINDEX);
}
