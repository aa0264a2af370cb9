//! The globals of scripts: which functions there are, and their proxies.

use std::ffi::CStr;
use std::os::raw::c_int;

use mlua_sys as ffi;
use mlua_sys::lua_CFunction;

use crate::api::Api;
use crate::proxy;
use crate::raise::Functions;
use crate::stack::Lua;

use super::{base, bit, cjson, math, msgpack, redis, strings, structs, tables};

/// Functions of C's basic library that stay as they are.
const KEPT: [&CStr; 9] = [
    c"assert",
    c"error",
    c"gcinfo",
    c"getmetatable",
    c"ipairs",
    c"rawequal",
    c"select",
    c"type",
    c"_VERSION",
];

const OPENED: [(&CStr, lua_CFunction); 4] = [
    // With an empty name the basic library sets globals of the state.
    (c"", ffi::luaopen_base),
    (c"table", ffi::luaopen_table),
    (c"string", ffi::luaopen_string),
    (c"math", ffi::luaopen_math),
];

/// Libraries of C with functions that ours replace.
const REPLACED: [(&CStr, Functions); 4] = [
    (c"coroutine", base::COROUTINES),
    (c"math", math::FUNCTIONS),
    (c"string", strings::FUNCTIONS),
    (c"table", tables::FUNCTIONS),
];

/// Libraries that are ours altogether.
const OWN: [(&CStr, Functions); 4] = [
    (c"bit", bit::FUNCTIONS),
    (c"cjson", cjson::FUNCTIONS),
    (c"cmsgpack", msgpack::FUNCTIONS),
    (c"struct", structs::FUNCTIONS),
];

/// Makes the globals of a new state, and pushes the base of them.
pub(crate) fn build(lua: Lua<'_>, api: Api) {
    for (name, open) in OPENED {
        lua.push_function(open);
        lua.push(name.to_bytes());
        lua.call(1, 0);
    }
    lua.copy(ffi::LUA_GLOBALSINDEX);
    let original = lua.top();
    lua.new_table(0, 40);
    let base = lua.top();
    for name in KEPT {
        lua.push_field(original, name.to_bytes());
        lua.set_field(base, name);
    }
    register(lua, base, base::FUNCTIONS);
    base::set_pairs(lua, base);
    lua.push_field(original, b"tostring");
    base::set_to_string(lua, base, -1);
    lua.pop(1);
    for (name, functions) in REPLACED {
        lua.push_field(original, name.to_bytes());
        let library = lua.top();
        register(lua, library, functions);
        if name == c"string" {
            set_string_library(lua, base);
        } else {
            proxy::wrap_top(lua);
            lua.set_field(base, name);
        }
    }
    for (name, functions) in OWN {
        lua.new_table(0, functions.len() as c_int);
        let library = lua.top();
        register(lua, library, functions);
        if name == c"cjson" {
            cjson::fill(lua);
        } else if name == c"cmsgpack" {
            msgpack::fill(lua);
        }
        proxy::wrap_top(lua);
        lua.set_field(base, name);
    }
    lua.new_table(0, 32);
    redis::fill(lua, api);
    proxy::wrap_top(lua);
    lua.copy(-1);
    lua.set_field(base, c"redis");
    lua.set_field(base, c"server");
    set_environment(lua, base);
    lua.remove(original);
}

/// Pushes the base of the globals that a library has while it is loaded: the function that registers others,
/// and little more.
pub(crate) fn push_load_base(lua: Lua<'_>, api: Api) {
    lua.new_table(0, 2);
    let base = lua.top();
    lua.new_table(0, 8);
    redis::fill_for_load(lua, api);
    proxy::guard_missing(lua);
    proxy::wrap_top(lua);
    lua.copy(-1);
    lua.set_field(base, c"redis");
    lua.set_field(base, c"server");
    proxy::guard_missing(lua);
}

/// Makes the proxy of the strings' library on top of the stack, and their metatable.
fn set_string_library(lua: Lua<'_>, base: c_int) {
    let library = lua.top();
    lua.copy(library);
    proxy::wrap_top(lua);
    proxy::set_string_metatable(lua, library, library + 1);
    lua.set_field(base, c"string");
    lua.pop(1);
}

/// Makes the proxy of `base` the environment of all texts.
fn set_environment(lua: Lua<'_>, base: c_int) {
    lua.copy(base);
    proxy::wrap_top(lua);
    lua.copy(-1);
    lua.set_field(base, c"_G");
    proxy::set_globals(lua);
    lua.copy(base);
    proxy::guard_missing(lua);
    lua.pop(1);
}

/// Sets functions in a table.
fn register(lua: Lua<'_>, table: c_int, functions: Functions) {
    for &(name, function) in functions {
        lua.push_function(function);
        lua.set_field(table, name);
    }
}
