//! `struct`: values in bytes of a layout, and back.
//!
//! | option | value |
//! |---|---|
//! | `b B`, `h H`, `l L`, `T` | integer of 1, 2, 8, 8 bytes; small letters are signed |
//! | `i`n, `I`n | integer of n bytes, 4 without n, 32 at most |
//! | `f`, `d` | float, double |
//! | `s` | string up to a zero |
//! | `c`n | n bytes; `c0`: all of a string, or as many as the value before says |
//! | `x` | one byte of padding |
//! | `<`, `>`, `!`n, space | little endian, big endian, alignment of up to n; nothing |

use std::os::raw::c_int;

use crate::machine::Machine;
use crate::raise::{Functions, Raise, Returned, callback};
use crate::stack::Lua;
use crate::stop;

pub(crate) const FUNCTIONS: Functions = &[
    (c"pack", callback!(pack)),
    (c"size", callback!(size)),
    (c"unpack", callback!(unpack)),
];

/// The largest integer, bytes.
const INTEGER_MAX: usize = 32;
/// The alignment of `!` without a number.
const ALIGNMENT: usize = 8;

/// A format that is being read.
struct Format<'f> {
    rest: &'f [u8],
    is_big: bool,
    alignment: usize,
}

/// One option of it.
#[derive(Clone, Copy)]
struct Item {
    option: u8,
    size: usize,
}

impl<'f> Format<'f> {
    fn new(text: &'f [u8]) -> Format<'f> {
        let end = text.iter().position(|&byte| byte == 0);
        Format {
            rest: &text[..end.unwrap_or(text.len())],
            is_big: false,
            alignment: 1,
        }
    }

    fn next(&mut self, lua: Lua<'_>) -> Result<Option<Item>, Raise> {
        let Some((&option, rest)) = self.rest.split_first() else {
            return Ok(None);
        };
        self.rest = rest;
        let size = match option {
            b'b' | b'B' | b'x' => 1,
            b'h' | b'H' => 2,
            b'l' | b'L' | b'T' | b'd' => 8,
            b'f' => 4,
            b'c' => self.number(1)?,
            b'i' | b'I' => {
                let size = self.number(4)?;
                if size > INTEGER_MAX {
                    return Err(too_large(lua, size));
                }
                size
            }
            _ => 0,
        };
        Ok(Some(Item { option, size }))
    }

    /// The number after an option.
    fn number(&mut self, otherwise: usize) -> Result<usize, Raise> {
        let count = self
            .rest
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        if count == 0 {
            return Ok(otherwise);
        }
        let (digits, rest) = self.rest.split_at(count);
        self.rest = rest;
        let mut number = 0_i32;
        for digit in digits {
            number = number
                .checked_mul(10)
                .and_then(|number| number.checked_add(i32::from(digit - b'0')))
                .ok_or(Raise::Text(c"integral size overflow"))?;
        }
        Ok(number as usize)
    }

    /// Bytes of padding before an item at a position.
    fn padding(&self, at: usize, item: Item) -> usize {
        if item.size == 0 || item.option == b'c' {
            return 0;
        }
        let size = item.size.min(self.alignment);
        size.wrapping_sub(at & (size.wrapping_sub(1))) & size.wrapping_sub(1)
    }

    /// An option that is no value.
    fn control(&mut self, lua: Lua<'_>, option: u8) -> Result<(), Raise> {
        match option {
            b' ' => {}
            b'<' => self.is_big = false,
            b'>' => self.is_big = true,
            b'!' => {
                self.alignment = self.number(ALIGNMENT)?;
                if !self.alignment.is_power_of_two() {
                    lua.push_place(1);
                    lua.push(b"alignment ");
                    lua.push_number(self.alignment as f64);
                    lua.push(b" is not a power of 2");
                    lua.concat(4);
                    return Err(Raise::Top);
                }
            }
            _ => {
                lua.push(b"invalid format option '");
                lua.push(&[option]);
                lua.push(b"'");
                lua.concat(3);
                return Err(Raise::ArgumentTop(1));
            }
        }
        Ok(())
    }
}

fn too_large(lua: Lua<'_>, size: usize) -> Raise {
    lua.push_place(1);
    lua.push(b"integral size ");
    lua.push_number(size as f64);
    lua.push(b" is larger than limit of ");
    lua.push_number(INTEGER_MAX as f64);
    lua.concat(5);
    Raise::Top
}

fn gather(machine: &Machine, bytes: &[u8]) -> Result<(), Raise> {
    if machine.gather(bytes) {
        Ok(())
    } else {
        Err(Raise::Memory)
    }
}

fn pack(lua: Lua<'_>) -> Returned {
    let mut format = Format::new(lua.expect_bytes(1));
    let machine = lua.machine();
    let from = machine.scratch_len();
    // A missing argument is nil, in messages too.
    lua.push_nil();
    let mut argument = 2;
    while let Some(item) = format.next(lua)? {
        let at = machine.scratch_len() - from;
        for _ in 0..format.padding(at, item) {
            gather(machine, &[0])?;
        }
        match item.option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let value = as_integer(lua.expect_number(argument));
                pack_integer(machine, value, item.size, format.is_big)?;
                argument += 1;
            }
            b'x' => gather(machine, &[0])?,
            b'f' => {
                let number = lua.expect_number(argument) as f32;
                gather(machine, &ordered(number.to_le_bytes(), format.is_big))?;
                argument += 1;
            }
            b'd' => {
                let number = lua.expect_number(argument);
                gather(machine, &ordered(number.to_le_bytes(), format.is_big))?;
                argument += 1;
            }
            b'c' | b's' => {
                let bytes = lua.expect_bytes(argument);
                argument += 1;
                let size = if item.size == 0 {
                    bytes.len()
                } else {
                    item.size
                };
                let Some(bytes) = bytes.get(..size) else {
                    return Err(Raise::Argument(argument, c"string too short"));
                };
                gather(machine, bytes)?;
                if item.option == b's' {
                    gather(machine, &[0])?;
                }
            }
            option => format.control(lua, option)?,
        }
        stop::step(lua)?;
    }
    lua.push(machine.gathered(from));
    machine.truncate_scratch(from);
    Ok(1)
}

/// A number as 64 bits, as C converts it on x86-64.
fn as_integer(number: f64) -> u64 {
    const HALF: f64 = 9_223_372_036_854_775_808.0;
    if number < 0.0 {
        crate::stack::truncated(number) as u64
    } else if number < HALF {
        number as u64
    } else if number < 2.0 * HALF {
        (number - HALF) as u64 ^ (1 << 63)
    } else if number.is_nan() {
        1 << 63
    } else {
        0
    }
}

fn pack_integer(machine: &Machine, value: u64, size: usize, is_big: bool) -> Result<(), Raise> {
    let mut bytes = [0; INTEGER_MAX];
    for (place, byte) in bytes[..size].iter_mut().zip(value.to_le_bytes()) {
        *place = byte;
    }
    if is_big {
        bytes[..size].reverse();
    }
    gather(machine, &bytes[..size])
}

fn ordered<const N: usize>(mut bytes: [u8; N], is_big: bool) -> [u8; N] {
    if is_big {
        bytes.reverse();
    }
    bytes
}

const TOO_SHORT: Raise = Raise::Argument(2, c"data string too short");

fn unpack(lua: Lua<'_>) -> Returned {
    let mut format = Format::new(lua.expect_bytes(1));
    let data = lua.expect_bytes(2);
    let first = lua.integer_or(3, 1);
    if first == 0 {
        return Err(Raise::Argument(3, c"offset must be 1 or greater"));
    }
    // A negative one is far beyond the data.
    let mut at = first as usize - 1;
    lua.set_top(2);
    let mut count: c_int = 0;
    while let Some(item) = format.next(lua)? {
        at = at.saturating_add(format.padding(at, item));
        let Some(bytes) = data.get(at..).and_then(|rest| rest.get(..item.size)) else {
            return Err(TOO_SHORT);
        };
        if !lua.has_room(8) {
            // Room for the message.
            lua.set_top(2);
            return Err(Raise::Text(c"stack overflow (too many results)"));
        }
        let mut taken = item.size;
        match item.option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let is_signed = item.option.is_ascii_lowercase();
                lua.push_number(unpack_integer(bytes, format.is_big, is_signed));
                count += 1;
            }
            b'x' => {}
            b'f' => {
                let bytes = ordered(fixed(bytes), format.is_big);
                lua.push_number(f32::from_le_bytes(bytes).into());
                count += 1;
            }
            b'd' => {
                let bytes = ordered(fixed(bytes), format.is_big);
                lua.push_number(f64::from_le_bytes(bytes));
                count += 1;
            }
            b'c' => {
                let mut bytes = bytes;
                if item.size == 0 {
                    bytes = unpack_counted(lua, count, &data[at..])?;
                    taken = bytes.len();
                    count -= 1;
                }
                lua.push(bytes);
                count += 1;
            }
            b's' => {
                let rest = &data[at..];
                let Some(end) = rest.iter().position(|&byte| byte == 0) else {
                    return Err(Raise::Text(c"unfinished string in data"));
                };
                lua.push(&rest[..end]);
                taken = end + 1;
                count += 1;
            }
            option => format.control(lua, option)?,
        }
        at += taken;
        stop::step(lua)?;
    }
    lua.push_number((at + 1) as f64);
    Ok(count + 1)
}

/// The bytes of `c0`: the value before says how many, and goes.
fn unpack_counted<'d>(lua: Lua<'_>, count: c_int, rest: &'d [u8]) -> Result<&'d [u8], Raise> {
    if count == 0 || !lua.is_number(-1) {
        return Err(Raise::Text(c"format 'c0' needs a previous size"));
    }
    let size = as_integer(lua.number(-1));
    lua.pop(1);
    usize::try_from(size)
        .ok()
        .and_then(|size| rest.get(..size))
        .ok_or(TOO_SHORT)
}

fn unpack_integer(bytes: &[u8], is_big: bool, is_signed: bool) -> f64 {
    let mut value = 0_u64;
    let mut add = |byte: u8| value = value << 8 | u64::from(byte);
    if is_big {
        bytes.iter().for_each(|&byte| add(byte));
    } else {
        bytes.iter().rev().for_each(|&byte| add(byte));
    }
    if !is_signed {
        return value as f64;
    }
    // Beyond 64 bits the processor takes the shift modulo 64.
    let mask = u64::MAX.wrapping_shl((bytes.len() as u32 * 8).wrapping_sub(1));
    if value & mask != 0 {
        value |= mask;
    }
    value as i64 as f64
}

/// Bytes of a number; there are as many as its option says.
fn fixed<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut fixed = [0; N];
    fixed.copy_from_slice(bytes);
    fixed
}

fn size(lua: Lua<'_>) -> Returned {
    let mut format = Format::new(lua.expect_bytes(1));
    let mut at = 0_usize;
    while let Some(item) = format.next(lua)? {
        at = at.wrapping_add(format.padding(at, item));
        match item.option {
            b's' => return Err(Raise::Argument(1, c"option 's' has no fixed size")),
            b'c' if item.size == 0 => {
                return Err(Raise::Argument(1, c"option 'c0' has no fixed size"));
            }
            option if !option.is_ascii_alphanumeric() => format.control(lua, option)?,
            _ => {}
        }
        at = at.wrapping_add(item.size);
    }
    lua.push_number(at as f64);
    Ok(1)
}
