//! `cjson`: its functions, and their options. A script may change options; they end with its run.

mod decode;
mod encode;
mod text;

use std::os::raw::c_int;

use mlua_sys as ffi;

use crate::machine::{Invalid, JsonOptions};
use crate::raise::{Functions, Raise, Returned, callback};
use crate::stack::Lua;

pub(crate) const FUNCTIONS: Functions = &[
    (c"decode", callback!(decode::decode)),
    (c"decode_invalid_numbers", callback!(decode_invalid)),
    (c"decode_max_depth", callback!(decode_depth)),
    (c"encode", callback!(encode::encode)),
    (c"encode_invalid_numbers", callback!(encode_invalid)),
    (c"encode_keep_buffer", callback!(keep_buffer)),
    (c"encode_max_depth", callback!(encode_depth)),
    (c"encode_number_precision", callback!(precision)),
    (c"encode_sparse_array", callback!(sparse)),
    (c"new", callback!(new)),
];

/// Fields of the library that are no functions, for the table on top of the stack.
pub(crate) fn fill(lua: Lua<'_>) {
    lua.push(b"cjson");
    lua.set_field(-2, c"_NAME");
    lua.push(b"2.1.0");
    lua.set_field(-2, c"_VERSION");
    lua.push_light(std::ptr::null_mut());
    lua.set_field(-2, c"null");
}

/// The library again: there is one set of options in each run.
fn new(lua: Lua<'_>) -> Returned {
    lua.copy(ffi::LUA_GLOBALSINDEX);
    lua.push(b"cjson");
    lua.get(-2);
    Ok(1)
}

/// Makes the arguments so many, with nil for those that are missing.
fn expect_arguments(lua: Lua<'_>, count: c_int) -> Result<(), Raise> {
    if lua.top() > count {
        return Err(Raise::Argument(count + 1, c"found too many arguments"));
    }
    lua.set_top(count);
    Ok(())
}

/// An option that is an integer: sets it if there is an argument, and pushes it.
fn integer(
    lua: Lua<'_>,
    index: c_int,
    setting: &mut i32,
    least: i32,
    most: i32,
) -> Result<(), Raise> {
    if !lua.is(index, ffi::LUA_TNIL) {
        let value = lua.expect_integer(index) as i32;
        if !(least..=most).contains(&value) {
            lua.push(b"expected integer between ");
            lua.push_number(least.into());
            lua.push(b" and ");
            lua.push_number(most.into());
            lua.concat(4);
            return Err(Raise::ArgumentTop(1));
        }
        *setting = value;
    }
    lua.push_number((*setting).into());
    Ok(())
}

/// An option that is one of some names, or a truth value for the first two. Sets it if there is an argument,
/// and pushes it.
fn choice(lua: Lua<'_>, index: c_int, setting: &mut usize, names: &[&[u8]]) -> Result<(), Raise> {
    if lua.is(index, ffi::LUA_TBOOLEAN) {
        *setting = usize::from(lua.truth(index));
    } else if !lua.is(index, ffi::LUA_TNIL) {
        let name = lua.expect_bytes(index);
        let Some(at) = names.iter().position(|known| *known == name) else {
            lua.push(b"invalid option '");
            lua.copy(index);
            lua.push(b"'");
            lua.concat(3);
            return Err(Raise::ArgumentTop(index));
        };
        *setting = at;
    }
    match *setting {
        0 => lua.push_boolean(false),
        1 => lua.push_boolean(true),
        other => lua.push(names[other]),
    }
    Ok(())
}

const SWITCH: [&[u8]; 2] = [b"off", b"on"];

/// One option of the run, changed by a function.
fn set(
    lua: Lua<'_>,
    count: c_int,
    change: impl FnOnce(&mut JsonOptions) -> Result<(), Raise>,
) -> Returned {
    expect_arguments(lua, count)?;
    let machine = lua.machine();
    let mut options = machine.json.get();
    change(&mut options)?;
    machine.json.set(options);
    Ok(count)
}

fn switch(lua: Lua<'_>, index: c_int, setting: &mut bool) -> Result<(), Raise> {
    let mut at = usize::from(*setting);
    choice(lua, index, &mut at, &SWITCH)?;
    *setting = at == 1;
    Ok(())
}

fn decode_invalid(lua: Lua<'_>) -> Returned {
    set(lua, 1, |options| {
        switch(lua, 1, &mut options.decode_invalid)
    })
}

fn keep_buffer(lua: Lua<'_>) -> Returned {
    set(lua, 1, |options| switch(lua, 1, &mut options.keeps_buffer))
}

fn encode_invalid(lua: Lua<'_>) -> Returned {
    const NAMES: [&[u8]; 3] = [b"off", b"on", b"null"];
    const VALUES: [Invalid; 3] = [Invalid::Refuse, Invalid::Write, Invalid::Null];
    set(lua, 1, |options| {
        let known = VALUES
            .iter()
            .position(|&value| value == options.encode_invalid);
        let mut at = known.unwrap_or(0);
        choice(lua, 1, &mut at, &NAMES)?;
        options.encode_invalid = VALUES[at];
        Ok(())
    })
}

fn decode_depth(lua: Lua<'_>) -> Returned {
    set(lua, 1, |options| {
        integer(lua, 1, &mut options.decode_depth, 1, i32::MAX)
    })
}

fn encode_depth(lua: Lua<'_>) -> Returned {
    set(lua, 1, |options| {
        integer(lua, 1, &mut options.encode_depth, 1, i32::MAX)
    })
}

fn precision(lua: Lua<'_>) -> Returned {
    set(lua, 1, |options| {
        integer(lua, 1, &mut options.precision, 1, 14)
    })
}

fn sparse(lua: Lua<'_>) -> Returned {
    set(lua, 3, |options| {
        switch(lua, 1, &mut options.sparse_as_object)?;
        integer(lua, 2, &mut options.sparse_ratio, 0, i32::MAX)?;
        integer(lua, 3, &mut options.sparse_safe, 0, i32::MAX)
    })
}
