//! `bit`: operations on the low 32 bits of numbers; results are signed.

use std::os::raw::c_int;

use mlua_sys as ffi;

use crate::raise::{Functions, Raise, Returned, callback};
use crate::stack::Lua;

pub(crate) const FUNCTIONS: Functions = &[
    (c"arshift", callback!(shift_right_signed)),
    (c"band", callback!(and)),
    (c"bnot", callback!(not)),
    (c"bor", callback!(or)),
    (c"bswap", callback!(swap)),
    (c"bxor", callback!(xor)),
    (c"lshift", callback!(shift_left)),
    (c"rol", callback!(rotate_left)),
    (c"ror", callback!(rotate_right)),
    (c"rshift", callback!(shift_right)),
    (c"tobit", callback!(to_bit)),
    (c"tohex", callback!(to_hex)),
];

/// Added to a double below 2^51, it leaves the rounded integer in the low bits.
const ROUNDING: f64 = 6_755_399_441_055_744.0;

fn bits(lua: Lua<'_>, index: c_int) -> Result<u32, Raise> {
    let bits = (lua.number(index) + ROUNDING).to_bits() as u32;
    if bits == 0 && !lua.is_number(index) {
        return Err(Raise::Type(index, c"number"));
    }
    Ok(bits)
}

fn push(lua: Lua<'_>, bits: u32) -> Returned {
    lua.push_number(f64::from(bits as i32));
    Ok(1)
}

/// An operation on all arguments.
fn fold(lua: Lua<'_>, operation: fn(u32, u32) -> u32) -> Returned {
    let mut result = bits(lua, 1)?;
    for index in 2..=lua.top() {
        result = operation(result, bits(lua, index)?);
    }
    push(lua, result)
}

/// An operation on a number and the low five bits of another.
fn shift(lua: Lua<'_>, operation: fn(u32, u32) -> u32) -> Returned {
    let (number, count) = (bits(lua, 1)?, bits(lua, 2)?);
    push(lua, operation(number, count & 31))
}

fn and(lua: Lua<'_>) -> Returned {
    fold(lua, |a, b| a & b)
}

fn or(lua: Lua<'_>) -> Returned {
    fold(lua, |a, b| a | b)
}

fn xor(lua: Lua<'_>) -> Returned {
    fold(lua, |a, b| a ^ b)
}

fn shift_left(lua: Lua<'_>) -> Returned {
    shift(lua, |number, count| number << count)
}

fn shift_right(lua: Lua<'_>) -> Returned {
    shift(lua, |number, count| number >> count)
}

fn shift_right_signed(lua: Lua<'_>) -> Returned {
    shift(lua, |number, count| (number as i32 >> count) as u32)
}

fn rotate_left(lua: Lua<'_>) -> Returned {
    shift(lua, u32::rotate_left)
}

fn rotate_right(lua: Lua<'_>) -> Returned {
    shift(lua, u32::rotate_right)
}

fn to_bit(lua: Lua<'_>) -> Returned {
    push(lua, bits(lua, 1)?)
}

fn not(lua: Lua<'_>) -> Returned {
    push(lua, !bits(lua, 1)?)
}

fn swap(lua: Lua<'_>) -> Returned {
    push(lua, bits(lua, 1)?.swap_bytes())
}

fn to_hex(lua: Lua<'_>) -> Returned {
    let mut number = bits(lua, 1)?;
    let count = if lua.is(2, ffi::LUA_TNONE) {
        8
    } else {
        bits(lua, 2)? as i32
    };
    let digits = if count < 0 {
        b"0123456789ABCDEF"
    } else {
        b"0123456789abcdef"
    };
    let mut text = [0; 8];
    let len = count.unsigned_abs().min(8) as usize;
    for place in text[..len].iter_mut().rev() {
        *place = digits[(number & 15) as usize];
        number >>= 4;
    }
    lua.push(&text[..len]);
    Ok(1)
}
