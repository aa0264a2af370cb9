//! `table.concat`, `foreach`, `foreachi`, `insert`, `maxn` and `remove`: they refuse proxies or look
//! through them, and ask the host where a table is long. The length of a table can be any number, with few
//! items in it.

use std::os::raw::c_int;

use mlua_sys as ffi;

use crate::proxy;
use crate::raise::{Functions, Raise, Returned, callback};
use crate::stack::Lua;
use crate::stop;

use super::sort;

pub(crate) const FUNCTIONS: Functions = &[
    (c"concat", callback!(concat)),
    (c"foreach", callback!(for_each)),
    (c"foreachi", callback!(for_each_item)),
    (c"insert", callback!(insert)),
    (c"maxn", callback!(largest)),
    (c"remove", callback!(remove)),
    (c"sort", callback!(sort::sort)),
];

/// The length of the table that is the first argument.
fn expect_len(lua: Lua<'_>) -> c_int {
    lua.expect(1, ffi::LUA_TTABLE);
    lua.raw_len(1) as c_int
}

fn insert(lua: Lua<'_>) -> Returned {
    let end = expect_len(lua).wrapping_add(1);
    proxy::refuse(lua, 1)?;
    let place = match lua.top() {
        2 => end,
        3 => {
            let place = lua.expect_integer(2) as c_int;
            let mut at = end.max(place);
            while at > place {
                lua.raw_get_at(1, at - 1);
                lua.raw_set_at(1, at);
                stop::step(lua)?;
                at -= 1;
            }
            place
        }
        _ => {
            return Err(Raise::Text(c"wrong number of arguments to 'insert'"));
        }
    };
    lua.raw_set_at(1, place);
    Ok(0)
}

/// A proxy has no items, so nothing of it is changed.
fn remove(lua: Lua<'_>) -> Returned {
    let len = expect_len(lua);
    let place = lua.integer_or(2, len.into()) as c_int;
    if !(1..=len).contains(&place) {
        return Ok(0);
    }
    lua.raw_get_at(1, place);
    for at in place..len {
        lua.raw_get_at(1, at + 1);
        lua.raw_set_at(1, at);
        stop::step(lua)?;
    }
    lua.push_nil();
    lua.raw_set_at(1, len);
    Ok(1)
}

fn concat(lua: Lua<'_>) -> Returned {
    let separator = if lua.is_none_or_nil(2) {
        b""
    } else {
        lua.expect_bytes(2)
    };
    lua.expect(1, ffi::LUA_TTABLE);
    let from = i64::from(lua.integer_or(3, 1) as i32);
    let until = if lua.is_none_or_nil(4) {
        lua.raw_len(1) as i64
    } else {
        i64::from(lua.expect_integer(4) as i32)
    };
    let machine = lua.machine();
    let start = machine.scratch_len();
    for at in from..=until {
        lua.raw_get_at(1, at as c_int);
        if !lua.is_string(-1) {
            return Err(refuse_item(lua, at));
        }
        let item = lua.bytes(-1).unwrap_or_default();
        let is_gathered = machine.gather(item) && (at == until || machine.gather(separator));
        if !is_gathered {
            return Err(Raise::Memory);
        }
        lua.pop(1);
        stop::step(lua)?;
    }
    lua.push(machine.gathered(start));
    machine.truncate_scratch(start);
    Ok(1)
}

fn refuse_item(lua: Lua<'_>, at: i64) -> Raise {
    lua.push_place(1);
    lua.push(b"invalid value (");
    lua.push(lua.type_name(-3).to_bytes());
    lua.push(b") at index ");
    lua.push_number(at as f64);
    lua.push(b" in table for 'concat'");
    lua.concat(6);
    Raise::Top
}

fn largest(lua: Lua<'_>) -> Returned {
    lua.expect(1, ffi::LUA_TTABLE);
    lua.set_top(1);
    proxy::look_through(lua, 1);
    let mut largest: f64 = 0.0;
    lua.push_nil();
    while lua.next(1) {
        lua.pop(1);
        if lua.is(-1, ffi::LUA_TNUMBER) && lua.number(-1) > largest {
            largest = lua.number(-1);
        }
        stop::step(lua)?;
    }
    lua.push_number(largest);
    Ok(1)
}

fn for_each(lua: Lua<'_>) -> Returned {
    lua.expect(1, ffi::LUA_TTABLE);
    lua.expect(2, ffi::LUA_TFUNCTION);
    lua.set_top(2);
    proxy::look_through(lua, 1);
    lua.push_nil();
    while lua.next(1) {
        lua.copy(2);
        lua.copy(-3);
        lua.copy(-3);
        lua.call(2, 1);
        if !lua.is(-1, ffi::LUA_TNIL) {
            return Ok(1);
        }
        lua.pop(2);
        stop::step(lua)?;
    }
    Ok(0)
}

fn for_each_item(lua: Lua<'_>) -> Returned {
    let len = expect_len(lua);
    lua.expect(2, ffi::LUA_TFUNCTION);
    for at in 1..=len {
        lua.copy(2);
        lua.push_number(f64::from(at));
        lua.raw_get_at(1, at);
        lua.call(2, 1);
        if !lua.is(-1, ffi::LUA_TNIL) {
            return Ok(1);
        }
        lua.pop(1);
        stop::step(lua)?;
    }
    Ok(0)
}
