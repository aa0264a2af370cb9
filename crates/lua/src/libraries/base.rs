//! The basic functions that are not C's: those that have to look through proxies, to stop, or to be bounded.

use std::os::raw::c_int;

use mlua_sys as ffi;

use crate::proxy;
use crate::raise::{Functions, Raise, Returned, callback};
use crate::stack::Lua;
use crate::stop;

/// Functions of the basic library. C's others stay.
pub(crate) const FUNCTIONS: Functions = &[
    (c"collectgarbage", callback!(collect_garbage)),
    (c"load", callback!(load)),
    (c"loadstring", callback!(load_string)),
    (c"next", callback!(next)),
    (c"pairs", callback!(pairs)),
    (c"pcall", callback!(stop::pcall)),
    (c"rawget", callback!(raw_get)),
    (c"rawset", callback!(raw_set)),
    (c"setmetatable", callback!(set_metatable)),
    (c"tonumber", callback!(to_number)),
    (c"tostring", callback!(to_string)),
    (c"unpack", callback!(unpack)),
    (c"xpcall", callback!(stop::xpcall)),
];

/// Functions of `coroutine` that are not C's.
pub(crate) const COROUTINES: Functions = &[
    (c"create", callback!(stop::create)),
    (c"resume", callback!(stop::resume)),
    (c"wrap", callback!(stop::wrap)),
];

/// The longest text that `load` and `loadstring` take, bytes: the parser can't be stopped, and counts in it
/// have 32 bits.
const TEXT_MAX: usize = 16 << 20;
/// Values that `unpack` returns at most, one less than LUAI_MAXCSTACK.
const UNPACKED_MAX: i64 = 8000;
/// Integers below this have at most 14 digits, and `tostring` writes them out.
const SHORT_INTEGERS: f64 = 1e14;

fn next(lua: Lua<'_>) -> Returned {
    lua.expect(1, ffi::LUA_TTABLE);
    lua.set_top(2);
    proxy::look_through(lua, 1);
    if lua.next(1) {
        return Ok(2);
    }
    lua.push_nil();
    Ok(1)
}

fn pairs(lua: Lua<'_>) -> Returned {
    lua.expect(1, ffi::LUA_TTABLE);
    lua.copy(ffi::lua_upvalueindex(1));
    lua.copy(1);
    lua.push_nil();
    Ok(3)
}

/// Sets `pairs` with `next` as its upvalue: no closure is made by a call.
pub(crate) fn set_pairs(lua: Lua<'_>, base: c_int) {
    lua.push_field(base, b"next");
    lua.push_closure(callback!(pairs), 1);
    lua.set_field(base, c"pairs");
}

fn raw_get(lua: Lua<'_>) -> Returned {
    lua.expect(1, ffi::LUA_TTABLE);
    lua.expect_any(2);
    lua.set_top(2);
    proxy::look_through(lua, 1);
    // The base of globals has a metatable; this reads without it.
    lua.raw_get(1);
    Ok(1)
}

fn raw_set(lua: Lua<'_>) -> Returned {
    lua.expect(1, ffi::LUA_TTABLE);
    lua.expect_any(2);
    lua.expect_any(3);
    lua.set_top(3);
    proxy::refuse(lua, 1)?;
    lua.raw_set(1);
    Ok(1)
}

fn set_metatable(lua: Lua<'_>) -> Returned {
    lua.expect(1, ffi::LUA_TTABLE);
    if !matches!(lua.kind(2), ffi::LUA_TNIL | ffi::LUA_TTABLE) {
        return Err(Raise::Argument(2, c"nil or table expected"));
    }
    proxy::refuse(lua, 1)?;
    if lua.push_metatable(1) {
        lua.push_field(-1, b"__metatable");
        if !lua.is(-1, ffi::LUA_TNIL) {
            return Err(Raise::Text(c"cannot change a protected metatable"));
        }
    }
    lua.set_top(2);
    lua.set_metatable(1);
    Ok(1)
}

/// `count`, `collect` and `step`: scripts don't change the collector.
fn collect_garbage(lua: Lua<'_>) -> Returned {
    let option = if lua.is_none_or_nil(1) {
        b"collect"
    } else {
        lua.expect_bytes(1)
    };
    let number = lua.integer_or(2, 0).clamp(0, 1 << 20) as c_int;
    match option {
        b"count" => {
            let kilobytes = f64::from(lua.collect(ffi::LUA_GCCOUNT, 0));
            let rest = f64::from(lua.collect(ffi::LUA_GCCOUNTB, 0));
            lua.push_number(kilobytes + rest / 1024.0);
        }
        b"collect" => lua.push_number(f64::from(lua.collect(ffi::LUA_GCCOLLECT, 0))),
        b"step" => lua.push_boolean(lua.collect(ffi::LUA_GCSTEP, number) != 0),
        // They exist in Redis, and would outlast the run.
        b"stop" | b"restart" | b"setpause" | b"setstepmul" => lua.push_number(0.0),
        _ => {
            lua.push(b"invalid option '");
            lua.copy(1);
            lua.push(b"'");
            lua.concat(3);
            return Err(Raise::ArgumentTop(1));
        }
    }
    if lua.machine().ask() {
        return Err(Raise::Stop);
    }
    Ok(1)
}

/// Reads the text of a chunk. Returns the function, or nil and a message.
fn load_chunk(lua: Lua<'_>, name: &[u8], text: &[u8]) -> Returned {
    let machine = lua.machine();
    if text.len() > TEXT_MAX {
        return refuse_text(lua);
    }
    if machine.ask() {
        return Err(Raise::Stop);
    }
    // The name is a C string: up to its first zero.
    let len = name
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(name.len());
    lua.push(&name[..len]);
    let is_function = lua.load_named(-1, text);
    if is_function {
        return Ok(1);
    }
    lua.push_nil();
    lua.insert(-2);
    Ok(2)
}

fn refuse_text(lua: Lua<'_>) -> Returned {
    lua.push_nil();
    lua.push(b"chunk is too large");
    Ok(2)
}

fn load_string(lua: Lua<'_>) -> Returned {
    let text = lua.expect_bytes(1);
    let name = if lua.is_none_or_nil(2) {
        text
    } else {
        lua.expect_bytes(2)
    };
    load_chunk(lua, name, text)
}

/// `load`: the pieces are gathered before the parser begins, so nothing of Lua runs inside of it.
fn load(lua: Lua<'_>) -> Returned {
    let name = if lua.is_none_or_nil(2) {
        b"=(load)"
    } else {
        lua.expect_bytes(2)
    };
    lua.expect(1, ffi::LUA_TFUNCTION);
    lua.set_top(2);
    let machine = lua.machine();
    let from = machine.scratch_len();
    loop {
        if machine.ask() {
            return Err(Raise::Stop);
        }
        lua.copy(1);
        let status = lua.protected_call(0, 1, 0);
        if machine.is_stopping() {
            return Err(Raise::Stop);
        }
        let is_failed = status != ffi::LUA_OK;
        if is_failed || !(lua.is(-1, ffi::LUA_TNIL) || lua.is_string(-1)) {
            machine.truncate_scratch(from);
            if !is_failed {
                lua.push(b"reader function must return a string");
            }
            lua.push_nil();
            lua.insert(-2);
            return Ok(2);
        }
        let piece = lua.bytes(-1).unwrap_or_default();
        if piece.is_empty() {
            break;
        }
        if !machine.gather(piece) {
            return Err(Raise::Memory);
        }
        lua.pop(1);
        if machine.scratch_len() - from > TEXT_MAX {
            machine.truncate_scratch(from);
            return refuse_text(lua);
        }
    }
    lua.set_top(2);
    lua.push(machine.gathered(from));
    machine.truncate_scratch(from);
    let text = lua.expect_bytes(3);
    load_chunk(lua, name, text)
}

fn to_number(lua: Lua<'_>) -> Returned {
    // Nearly always it is the text of a number.
    if lua.kind(1) == ffi::LUA_TSTRING
        && lua.top() == 1
        && let Some(number) = lua.bytes(1).and_then(plain_number)
    {
        lua.push_number(number);
        return Ok(1);
    }
    let base = lua.integer_or(2, 10) as c_int;
    if base == 10 {
        lua.expect_any(1);
        if lua.is_number(1) {
            lua.push_number(lua.number(1));
        } else {
            lua.push_nil();
        }
        return Ok(1);
    }
    let text = lua.expect_bytes(1);
    if !(2..=36).contains(&base) {
        return Err(Raise::Argument(2, c"base out of range"));
    }
    match in_base(text, base as u32) {
        Some(number) => lua.push_number(number),
        None => lua.push_nil(),
    }
    Ok(1)
}

/// The number of a text of digits, perhaps with a sign and a point: nearly all that scripts read. `None`: it
/// takes C to read it.
fn plain_number(text: &[u8]) -> Option<f64> {
    if let Some(number) = short_integer(text) {
        return Some(number);
    }
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_plain = digits.first().is_some_and(u8::is_ascii_digit)
        && digits
            .iter()
            .all(|&byte| byte.is_ascii_digit() || byte == b'.');
    match is_plain {
        true => std::str::from_utf8(text).ok()?.parse().ok(),
        false => None,
    }
}

/// The number of a text of up to 15 digits, perhaps with a sign. `None`: it takes C to read it.
fn short_integer(text: &[u8]) -> Option<f64> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > 15 {
        return None;
    }
    let mut value = 0_u64;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    let value = value as f64;
    Some(if is_negative { -value } else { value })
}

/// Reads a whole text as `strtoul` does: spaces, a sign that wraps, `0x` in base 16; the largest where it
/// is too large.
fn in_base(text: &[u8], base: u32) -> Option<f64> {
    let text = text.split(|&byte| byte == 0).next()?;
    let is_space = |byte: &u8| matches!(byte, b' ' | 9..=13);
    let text = &text[text.iter().take_while(|byte| is_space(byte)).count()..];
    let (is_negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let digit = |byte: u8| (byte as char).to_digit(base);
    let text = match text {
        [b'0', b'x' | b'X', rest @ ..]
            if base == 16 && rest.first().is_some_and(|&byte| digit(byte).is_some()) =>
        {
            rest
        }
        text => text,
    };
    let digits = text
        .iter()
        .take_while(|&&byte| digit(byte).is_some())
        .count();
    let mut value = Some(0_u64);
    for &byte in &text[..digits] {
        let next = u64::from(digit(byte)?);
        value = value.and_then(|value| value.checked_mul(base.into())?.checked_add(next));
    }
    let is_whole = digits > 0 && text[digits..].iter().all(is_space);
    let value = match value {
        Some(value) if is_negative => value.wrapping_neg(),
        Some(value) => value,
        None => u64::MAX,
    };
    is_whole.then_some(value as f64)
}

fn to_string(lua: Lua<'_>) -> Returned {
    lua.expect_any(1);
    if lua.kind(1) == ffi::LUA_TNUMBER {
        push_number_text(lua, 1);
        return Ok(1);
    }
    if lua.kind(1) == ffi::LUA_TSTRING {
        lua.set_top(1);
        return Ok(1);
    }
    // C's, which knows `__tostring`.
    lua.copy(ffi::lua_upvalueindex(1));
    lua.copy(1);
    lua.call(1, 1);
    Ok(1)
}

/// Sets `tostring` with C's as its upvalue.
pub(crate) fn set_to_string(lua: Lua<'_>, base: c_int, original: c_int) {
    lua.copy(original);
    lua.push_closure(callback!(to_string), 1);
    lua.set_field(base, c"tostring");
}

/// Pushes the text of a number as `%.14g` writes it.
pub(crate) fn push_number_text(lua: Lua<'_>, index: c_int) {
    let number = lua.number(index);
    let integer = number as i64;
    let is_short = number.abs() < SHORT_INTEGERS
        && integer as f64 == number
        && (integer != 0 || number.is_sign_positive());
    if is_short {
        let mut buffer = [0; resp::number::INTEGER_TEXT_LEN];
        lua.push(resp::number::format_i64(integer, &mut buffer));
    } else {
        lua.copy(index);
        lua.bytes(-1);
    }
}

fn unpack(lua: Lua<'_>) -> Returned {
    lua.expect(1, ffi::LUA_TTABLE);
    // Places have 32 bits in Lua 5.1, and wrap.
    let from = i64::from(lua.integer_or(2, 1) as i32);
    let until = if lua.is_none_or_nil(3) {
        lua.raw_len(1) as i64
    } else {
        i64::from(lua.expect_integer(3) as i32)
    };
    let count = (until - from + 1).max(0);
    if count == 0 {
        return Ok(0);
    }
    if count >= UNPACKED_MAX || !lua.has_room(count as c_int) {
        return Err(Raise::Text(c"too many results to unpack"));
    }
    for at in from..=until {
        lua.raw_get_at(1, at as c_int);
    }
    Ok(count as c_int)
}
