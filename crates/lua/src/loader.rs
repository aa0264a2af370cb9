//! The loader: the function of a state that runs the text of a library.
//!
//! While it runs, its globals are others than those of its functions: `redis.register_function` and little
//! more. The globals are one proxy, and only its base changes, so functions see theirs later.

use mlua_sys as ffi;

use crate::api::Api;
use crate::libraries::push_load_base;
use crate::raise::{Returned, callback};
use crate::stack::Lua;

/// Upvalues of the loader: the metatable of the globals' proxy, the base of functions, and that of the load.
const METATABLE: i32 = 1;
const BASE: i32 = 2;
const LOAD_BASE: i32 = 3;

/// A library to load.
pub(crate) struct Loading<'l> {
    pub(crate) text: &'l [u8],
    /// The message of Lua, if the text is no chunk.
    pub(crate) message: Option<Vec<u8>>,
}

/// Pushes the loader.
pub(crate) fn push_loader(lua: Lua<'_>, api: Api) {
    lua.copy(ffi::LUA_GLOBALSINDEX);
    lua.push_metatable(-1);
    lua.remove(-2);
    lua.push_field(-1, b"__index");
    push_load_base(lua, api);
    lua.push_closure(callback!(load), LOAD_BASE);
}

fn load(lua: Lua<'_>) -> Returned {
    let loading = lua.light(1).cast::<Loading<'_>>();
    let base = if loading.is_null() { BASE } else { LOAD_BASE };
    lua.copy(ffi::lua_upvalueindex(METATABLE));
    lua.copy(ffi::lua_upvalueindex(base));
    lua.set_field(-2, c"__index");
    if loading.is_null() {
        return Ok(0);
    }
    // SAFETY: `State::load_library` gives it and waits; nothing of it is read after an error.
    let loading = unsafe { &mut *loading };
    if lua.load(c"@user_function", loading.text) {
        lua.call(0, 0);
    } else {
        loading.message = Some(lua.bytes(-1).unwrap_or_default().to_vec());
    }
    Ok(0)
}
