//! `table.sort`: the quicksort of Lua 5.1, comparison by comparison, so that a comparator that is no order
//! gives the same result as there. It asks the host at each comparison.

use std::os::raw::c_int;

use mlua_sys as ffi;

use crate::raise::{Raise, Returned};
use crate::stack::Lua;
use crate::stop;

/// Values that the levels of the sort need on the stack: it goes down into the smaller half.
const ROOM: c_int = 160;
const NO_ORDER: Raise = Raise::Text(c"invalid order function for sorting");

/// A proxy has no items, so nothing of it is changed.
pub(crate) fn sort(lua: Lua<'_>) -> Returned {
    lua.expect(1, ffi::LUA_TTABLE);
    let len = lua.raw_len(1) as c_int;
    if !lua.has_room(ROOM) {
        return Err(Raise::Text(c"stack overflow"));
    }
    if !lua.is_none_or_nil(2) {
        lua.expect(2, ffi::LUA_TFUNCTION);
    }
    lua.set_top(2);
    sort_range(lua, 1, len)?;
    Ok(0)
}

/// Whether the value at `a` comes before the one at `b`; both count from the top.
fn is_before(lua: Lua<'_>, a: c_int, b: c_int) -> Result<bool, Raise> {
    stop::step(lua)?;
    if lua.is(2, ffi::LUA_TNIL) {
        return Ok(lua.is_less(a, b));
    }
    lua.copy(2);
    lua.copy(a - 1);
    lua.copy(b - 2);
    lua.call(2, 1);
    let is_before = lua.truth(-1);
    lua.pop(1);
    Ok(is_before)
}

/// Pops the top into one place, and the value below it into another.
fn set_both(lua: Lua<'_>, top_at: c_int, below_at: c_int) {
    lua.raw_set_at(1, top_at);
    lua.raw_set_at(1, below_at);
}

fn sort_range(lua: Lua<'_>, mut low: c_int, mut high: c_int) -> Result<(), Raise> {
    while low < high {
        lua.raw_get_at(1, low);
        lua.raw_get_at(1, high);
        if is_before(lua, -1, -2)? {
            set_both(lua, low, high);
        } else {
            lua.pop(2);
        }
        if high - low == 1 {
            return Ok(());
        }
        let middle = low + (high - low) / 2;
        order_middle(lua, low, middle, high)?;
        if high - low == 2 {
            return Ok(());
        }
        // The pivot goes to the place before the last.
        lua.raw_get_at(1, middle);
        lua.copy(-1);
        lua.raw_get_at(1, high - 1);
        set_both(lua, middle, high - 1);
        let pivot = partition(lua, low, high)?;
        // The smaller half first, so that the depth is a logarithm.
        if pivot - low < high - pivot {
            sort_range(lua, low, pivot - 1)?;
            low = pivot + 1;
        } else {
            sort_range(lua, pivot + 1, high)?;
            high = pivot - 1;
        }
    }
    Ok(())
}

/// Puts the value in the middle between the outer two, which are in order.
fn order_middle(lua: Lua<'_>, low: c_int, middle: c_int, high: c_int) -> Result<(), Raise> {
    lua.raw_get_at(1, middle);
    lua.raw_get_at(1, low);
    if is_before(lua, -2, -1)? {
        set_both(lua, middle, low);
        return Ok(());
    }
    lua.pop(1);
    lua.raw_get_at(1, high);
    if is_before(lua, -1, -2)? {
        set_both(lua, middle, high);
    } else {
        lua.pop(2);
    }
    Ok(())
}

/// Parts the range by the pivot, which is on top of the stack and in the place before the last. Pops it, and
/// returns its place.
fn partition(lua: Lua<'_>, low: c_int, high: c_int) -> Result<c_int, Raise> {
    let (mut i, mut j) = (low, high - 1);
    loop {
        i += 1;
        lua.raw_get_at(1, i);
        while is_before(lua, -1, -2)? {
            if i > high {
                return Err(NO_ORDER);
            }
            lua.pop(1);
            i += 1;
            lua.raw_get_at(1, i);
        }
        j -= 1;
        lua.raw_get_at(1, j);
        while is_before(lua, -3, -1)? {
            if j < low {
                return Err(NO_ORDER);
            }
            lua.pop(1);
            j -= 1;
            lua.raw_get_at(1, j);
        }
        if j < i {
            lua.pop(3);
            break;
        }
        set_both(lua, i, j);
    }
    lua.raw_get_at(1, high - 1);
    lua.raw_get_at(1, i);
    set_both(lua, high - 1, i);
    Ok(i)
}
