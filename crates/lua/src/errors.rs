//! Errors as Redis makes them for scripts: a table with the text in `err`.

use crate::raise::{Raise, Returned};
use crate::stack::Lua;

/// Pushes an error of a function of `redis`: `{err = 'ERR ..'}`.
pub(crate) fn push(lua: Lua<'_>, text: &[u8]) {
    lua.new_table(0, 1);
    lua.push(b"ERR ");
    lua.push(text);
    lua.concat(2);
    lua.set_field(-2, c"err");
}

/// Raises an error of a function of `redis`.
pub(crate) fn fail(lua: Lua<'_>, text: &[u8]) -> Returned {
    Err(raise(lua, text))
}

/// The same, for a function with another result.
pub(crate) fn raise(lua: Lua<'_>, text: &[u8]) -> Raise {
    push(lua, text);
    Raise::Top
}

/// Pushes an error. Its first word is its code, if it has more than one word. `is_counted`: the statistics
/// of errors have it already.
pub(crate) fn push_coded(lua: Lua<'_>, text: &[u8], is_counted: bool) {
    let end = text
        .iter()
        .rposition(|byte| !matches!(byte, b'\r' | b'\n'))
        .map_or(0, |at| at + 1);
    let text = &text[..end];
    if text.contains(&b' ') {
        lua.new_table(0, 2);
        lua.push(text);
        lua.set_field(-2, c"err");
    } else {
        push(lua, text);
    }
    if is_counted {
        lua.push_boolean(true);
        lua.set_field(-2, c"ignore_error_stats_update");
    }
}
