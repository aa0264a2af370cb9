//! The result of a script as a reply: Lua values as RESP.
//!
//! | Lua | RESP |
//! |---|---|
//! | number | integer, truncated |
//! | `true`, `false` | `:1` and null; after `setresp(3)` a boolean: `#t`, or `:1` and `:0` in RESP2 |
//! | table with a field of [`NAMES`] | that type; the first counts |
//! | other table | array up to the first nil |
//! | all else | null |
//!
//! A table can contain itself, and so can a reply: neither the depth nor the size has a bound by itself. The
//! walk has a stack of its own, asks the host, and stops at the length that the caller allows.

use std::os::raw::c_int;

use mlua_sys as ffi;
use resp::reply::{Protocol, Writer};

use crate::machine::{Machine, Open};
use crate::raise::Raise;
use crate::stack::{Lua, truncated};
use crate::stop;

/// The names of the fields that give a table a type. They are upvalues of the function that calls
/// [`write`], from [`FIRST_NAME`] on: no string is looked up for each table.
pub(crate) const NAMES: [&[u8]; 10] = [
    b"err",
    b"ok",
    b"double",
    b"map",
    b"set",
    b"big_number",
    b"verbatim_string",
    b"string",
    b"format",
    b"ignore_error_stats_update",
];
/// The number of the first upvalue with a name.
pub(crate) const FIRST_NAME: c_int = 4;

/// The values that a level of nesting needs on the stack.
const ROOM: c_int = 6;

/// Pops the value on top of the stack and writes it. `script`: the protocol that the script has chosen.
pub(crate) fn write(
    lua: Lua<'_>,
    out: &mut Vec<u8>,
    protocol: Protocol,
    script: Protocol,
) -> Result<(), Raise> {
    let machine = lua.machine();
    machine.open_tables(|open| open.clear());
    let mut writer = Writer::new(out, protocol);
    loop {
        write_top(lua, machine, &mut writer, script)?;
        stop::step(lua)?;
        if writer.out.len() > machine.reply_end.get() {
            return Err(Raise::Memory);
        }
        // The next value of the innermost table that has one.
        while !push_next(lua, machine) {
            if machine.open_tables(|open| open.pop()).is_none() {
                return Ok(());
            }
            lua.pop(1);
        }
    }
}

/// Pushes the next value of the innermost table. `false`: it has no more, or there is no table.
fn push_next(lua: Lua<'_>, machine: &Machine) -> bool {
    let Some(open) = machine.open_tables(|open| open.last().copied()) else {
        return false;
    };
    let (next, has_next) = match open {
        Open::Array { next, count } if next < count => {
            lua.raw_get_at(-1, next + 1);
            let next = next + 1;
            (Open::Array { next, count }, true)
        }
        Open::Array { .. } => (open, false),
        // The value of the key before is on the stack.
        Open::Pairs { has_value: true } => (Open::Pairs { has_value: false }, true),
        Open::Pairs { has_value: false } => {
            let has_next = lua.next(-2);
            if has_next {
                lua.copy(-2);
            }
            (Open::Pairs { has_value: true }, has_next)
        }
        Open::Members => {
            let has_next = lua.next(-2);
            if has_next {
                lua.pop(1);
                lua.copy(-1);
            }
            (Open::Members, has_next)
        }
    };
    machine.open_tables(|open| {
        if let Some(last) = open.last_mut() {
            *last = next;
        }
    });
    has_next
}

/// Writes the top: a value is popped, a table stays, and its values follow.
fn write_top(
    lua: Lua<'_>,
    machine: &Machine,
    writer: &mut Writer<'_>,
    script: Protocol,
) -> Result<(), Raise> {
    match lua.kind(-1) {
        ffi::LUA_TSTRING => {
            let bytes = lua.bytes(-1).unwrap_or_default();
            if bytes.len() > machine.reply_end.get().saturating_sub(writer.out.len()) {
                return Err(Raise::Memory);
            }
            writer.bulk(bytes);
        }
        ffi::LUA_TNUMBER => writer.integer(truncated(lua.number(-1))),
        ffi::LUA_TBOOLEAN => match (script, lua.truth(-1)) {
            (Protocol::Resp3, truth) => writer.boolean(truth),
            (Protocol::Resp2, true) => writer.integer(1),
            (Protocol::Resp2, false) => writer.null(),
        },
        ffi::LUA_TTABLE => return write_table(lua, machine, writer),
        _ => writer.null(),
    }
    lua.pop(1);
    Ok(())
}

/// Pushes the field of the top with one of [`NAMES`], and tells whether it has a type.
fn has_field(lua: Lua<'_>, name: c_int, kind: c_int) -> bool {
    lua.copy(ffi::lua_upvalueindex(FIRST_NAME + name));
    lua.raw_get(-2);
    if lua.is(-1, kind) {
        return true;
    }
    lua.pop(1);
    false
}

fn write_table(lua: Lua<'_>, machine: &Machine, writer: &mut Writer<'_>) -> Result<(), Raise> {
    if !lua.has_room(ROOM) {
        writer.error("ERR reached lua stack limit");
        lua.pop(1);
        return Ok(());
    }
    if has_field(lua, 0, ffi::LUA_TSTRING) {
        let error = text(lua);
        put_line(writer, b'-', error);
        lua.copy(ffi::lua_upvalueindex(FIRST_NAME + 9));
        lua.raw_get(-3);
        let is_counted = lua.truth(-1);
        machine.with_host(|host| host.replied_error(error, is_counted));
        lua.pop(3);
    } else if has_field(lua, 1, ffi::LUA_TSTRING) {
        put_line(writer, b'+', text(lua));
        lua.pop(2);
    } else if has_field(lua, 2, ffi::LUA_TNUMBER) {
        put_double(writer, lua.number(-1));
        lua.pop(2);
    } else if has_field(lua, 3, ffi::LUA_TTABLE) {
        let count = count_pairs(lua)?;
        writer.map(count);
        open_pairs(lua, machine, Open::Pairs { has_value: false });
    } else if has_field(lua, 4, ffi::LUA_TTABLE) {
        let count = count_pairs(lua)?;
        writer.set(count);
        open_pairs(lua, machine, Open::Members);
    } else if has_field(lua, 5, ffi::LUA_TSTRING) {
        put_big_number(writer, text(lua));
        lua.pop(2);
    } else if has_field(lua, 6, ffi::LUA_TTABLE) && put_verbatim(lua, writer) {
        lua.pop(2);
    } else {
        write_array(lua, machine, writer)?;
    }
    Ok(())
}

/// The string on top of the stack.
fn text<'l>(lua: Lua<'l>) -> &'l [u8] {
    lua.bytes(-1).unwrap_or_default()
}

fn write_array(lua: Lua<'_>, machine: &Machine, writer: &mut Writer<'_>) -> Result<(), Raise> {
    let mut count = 0;
    loop {
        lua.raw_get_at(-1, count + 1);
        let is_end = lua.is(-1, ffi::LUA_TNIL);
        lua.pop(1);
        if is_end {
            break;
        }
        stop::step(lua)?;
        count += 1;
    }
    writer.array(count as usize);
    machine.open_tables(|open| open.push(Open::Array { next: 0, count }));
    Ok(())
}

/// Counts the pairs of the table on top of the stack.
fn count_pairs(lua: Lua<'_>) -> Result<usize, Raise> {
    let mut count = 0;
    lua.push_nil();
    while lua.next(-2) {
        lua.pop(1);
        stop::step(lua)?;
        count += 1;
    }
    Ok(count)
}

/// Opens the table on top of the stack in the place of the one below, with a key of nil for `next`.
fn open_pairs(lua: Lua<'_>, machine: &Machine, open: Open) {
    lua.remove(-2);
    lua.push_nil();
    machine.open_tables(|tables| tables.push(open));
}

/// A line of text of the script: line ends in it become spaces.
pub(crate) fn put_line(writer: &mut Writer<'_>, kind: u8, text: &[u8]) {
    let out = &mut *writer.out;
    out.push(kind);
    let from = out.len();
    out.extend_from_slice(text);
    for byte in &mut out[from..] {
        if matches!(*byte, b'\r' | b'\n') {
            *byte = b' ';
        }
    }
    out.extend_from_slice(b"\r\n");
}

fn put_double(writer: &mut Writer<'_>, number: f64) {
    if number.is_nan() && number.is_sign_negative() {
        writer.double_text(b"-nan");
    } else {
        writer.double(number);
    }
}

fn put_big_number(writer: &mut Writer<'_>, digits: &[u8]) {
    if writer.protocol == Protocol::Resp3 {
        put_line(writer, b'(', digits);
        return;
    }
    writer.bulk(digits);
    let end = writer.out.len() - 2;
    for byte in &mut writer.out[end - digits.len()..end] {
        if matches!(*byte, b'\r' | b'\n') {
            *byte = b' ';
        }
    }
}

/// Writes the verbatim string on top of the stack, if it has a text and a format. Otherwise pops it.
fn put_verbatim(lua: Lua<'_>, writer: &mut Writer<'_>) -> bool {
    let top = lua.top();
    let has_both = has_field(lua, 7, ffi::LUA_TSTRING) && {
        lua.copy(ffi::lua_upvalueindex(FIRST_NAME + 8));
        lua.raw_get(-3);
        lua.is(-1, ffi::LUA_TSTRING)
    };
    if has_both {
        let format = lua.bytes(-1).unwrap_or_default();
        let text = lua.bytes(-2).unwrap_or_default();
        if writer.protocol == Protocol::Resp3 {
            let mut three = [b' '; 3];
            for (to, from) in three.iter_mut().zip(format) {
                *to = *from;
            }
            writer.verbatim(std::str::from_utf8(&three).unwrap_or("txt"), text);
        } else {
            writer.bulk(text);
        }
    }
    lua.set_top(if has_both { top } else { top - 1 });
    has_both
}
