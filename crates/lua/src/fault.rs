//! The error that ends a run: its place and its text, and the reply that is made of it.

use std::os::raw::c_int;

use mlua_sys as ffi;
use resp::reply::{Protocol, Writer};

use crate::machine::Fault;
use crate::number::put_number;
use crate::raise::Returned;
use crate::result;
use crate::stack::Lua;

/// The handler of the run's protected call: the text of the error, and its place. The stack is as it was when
/// the error was raised.
pub(crate) fn handle(lua: Lua<'_>) -> Returned {
    let machine = lua.machine();
    let place = match lua.place(1) {
        Some((_, _, true)) => lua.place(2),
        place => place,
    };
    if machine.is_stopping() {
        machine
            .stopped_at
            .set(place.map_or(0, |(_, line, _)| line.max(0)));
        return Ok(1);
    }
    let mut is_counted = false;
    if lua.is(1, ffi::LUA_TTABLE) {
        lua.push_field(1, b"ignore_error_stats_update");
        is_counted = lua.truth(-1);
        lua.push_field(1, b"err");
    }
    let mut fault = machine.fault.borrow_mut();
    fault.is_noted = true;
    fault.is_counted = is_counted;
    fault.line = place.map(|(_, line, _)| line);
    fault.source.clear();
    if let Some((source, _, _)) = place {
        fault.source.extend_from_slice(source);
    }
    if lua.is(1, ffi::LUA_TTABLE) && lua.is(-1, ffi::LUA_TSTRING) {
        fault.text.clear();
        fault
            .text
            .extend_from_slice(lua.bytes(-1).unwrap_or_default());
    } else {
        put_text(lua, 1, &mut fault.text);
    }
    drop(fault);
    lua.set_top(1);
    Ok(1)
}

/// The text of an error that is no table with `err`. Allocates nothing in Lua.
pub(crate) fn put_text(lua: Lua<'_>, index: c_int, text: &mut Vec<u8>) {
    text.clear();
    text.extend_from_slice(b"ERR ");
    match lua.kind(index) {
        ffi::LUA_TSTRING => text.extend_from_slice(lua.bytes(index).unwrap_or_default()),
        ffi::LUA_TNUMBER => put_number(text, lua.number(index)),
        ffi::LUA_TBOOLEAN if lua.truth(index) => text.extend_from_slice(b"true"),
        ffi::LUA_TBOOLEAN => text.extend_from_slice(b"false"),
        ffi::LUA_TTABLE => text.extend_from_slice(b"the error is a table without a text in 'err'"),
        _ => text.extend_from_slice(lua.type_name(index).to_bytes()),
    }
}

/// Appends an error: `-TEXT script: NAME, on SOURCE:LINE.`
pub(crate) fn write(reply: &mut Vec<u8>, fault: &Fault, name: &str) {
    let mut text = fault.text.clone();
    if let Some(line) = fault.line {
        text.extend_from_slice(format!(" script: {name}, on ").as_bytes());
        text.extend_from_slice(&fault.source);
        text.extend_from_slice(format!(":{line}.").as_bytes());
    }
    result::put_line(&mut Writer::new(reply, Protocol::Resp2), b'-', &text);
}
