//! `cmsgpack`: values in the format MessagePack, and back.
//!
//! Numbers that are integers of 64 bits take the fewest bytes; others are floats where nothing is lost, and
//! doubles. A table with the keys 1 to n is an array. Tables in tables beyond [`PACKED_DEPTH`] are nil.

use std::os::raw::c_int;

use mlua_sys as ffi;

use crate::machine::Machine;
use crate::raise::{Functions, Raise, Returned, callback};
use crate::stack::{Lua, truncated};
use crate::stop;

pub(crate) const FUNCTIONS: Functions = &[
    (c"pack", callback!(pack)),
    (c"unpack", callback!(unpack)),
    (c"unpack_limit", callback!(unpack_limit)),
    (c"unpack_one", callback!(unpack_one)),
];

/// Levels of tables that are packed.
const PACKED_DEPTH: u32 = 16;
/// Levels of tables that are unpacked: the stack of the thread is not endless.
const UNPACKED_DEPTH: u32 = 2000;

/// Fields of the library that are no functions, for the table on top of the stack.
pub(crate) fn fill(lua: Lua<'_>) {
    lua.push(b"cmsgpack");
    lua.set_field(-2, c"_NAME");
    lua.push(b"lua-cmsgpack 0.4.0");
    lua.set_field(-2, c"_VERSION");
}

#[derive(Clone, Copy)]
struct Packer<'l> {
    lua: Lua<'l>,
    machine: &'l Machine,
}

fn pack(lua: Lua<'_>) -> Returned {
    let count = lua.top();
    if count == 0 {
        return Err(Raise::Argument(0, c"MessagePack pack needs input."));
    }
    let machine = lua.machine();
    let from = machine.scratch_len();
    let packer = Packer { lua, machine };
    for index in 1..=count {
        lua.copy(index);
        packer.put_top(0)?;
    }
    lua.push(machine.gathered(from));
    machine.truncate_scratch(from);
    Ok(1)
}

impl Packer<'_> {
    fn put(self, bytes: &[u8]) -> Result<(), Raise> {
        if self.machine.gather(bytes) {
            Ok(())
        } else {
            Err(Raise::Memory)
        }
    }

    /// Packs the value on top of the stack, and pops it.
    fn put_top(self, level: u32) -> Result<(), Raise> {
        let lua = self.lua;
        stop::step(lua)?;
        match lua.kind(-1) {
            ffi::LUA_TSTRING => self.put_string(lua.bytes(-1).unwrap_or_default())?,
            ffi::LUA_TBOOLEAN => self.put(&[0xC2 + u8::from(lua.truth(-1))])?,
            ffi::LUA_TNUMBER => self.put_number(lua.number(-1))?,
            ffi::LUA_TTABLE if level < PACKED_DEPTH => self.put_table(level)?,
            _ => self.put(&[0xC0])?,
        }
        lua.pop(1);
        Ok(())
    }

    fn put_string(self, text: &[u8]) -> Result<(), Raise> {
        if self.machine.steps(text.len() / 1024) {
            return Err(Raise::Stop);
        }
        match text.len() {
            len @ ..32 => self.put(&[0xA0 | len as u8])?,
            len @ ..=0xFF => self.put(&[0xD9, len as u8])?,
            len @ ..=0xFFFF => self.put_wide(0xDA, &(len as u16).to_be_bytes())?,
            len => self.put_wide(0xDB, &(len as u32).to_be_bytes())?,
        }
        self.put(text)
    }

    fn put_wide(self, kind: u8, bytes: &[u8]) -> Result<(), Raise> {
        self.put(&[kind])?;
        self.put(bytes)
    }

    fn put_number(self, number: f64) -> Result<(), Raise> {
        let integer = truncated(number);
        if integer as f64 == number {
            return self.put_integer(integer);
        }
        let short = number as f32;
        if f64::from(short) == number {
            self.put_wide(0xCA, &short.to_be_bytes())
        } else {
            self.put_wide(0xCB, &number.to_be_bytes())
        }
    }

    fn put_integer(self, integer: i64) -> Result<(), Raise> {
        let bytes = integer.to_be_bytes();
        match integer {
            -32..=0x7F => self.put(&[integer as u8]),
            0x80..=0xFF => self.put_wide(0xCC, &bytes[7..]),
            0x100..=0xFFFF => self.put_wide(0xCD, &bytes[6..]),
            0x1_0000..=0xFFFF_FFFF => self.put_wide(0xCE, &bytes[4..]),
            0x1_0000_0000.. => self.put_wide(0xCF, &bytes),
            -0x80..=-33 => self.put_wide(0xD0, &bytes[7..]),
            -0x8000..=-0x81 => self.put_wide(0xD1, &bytes[6..]),
            -0x8000_0000..=-0x8001 => self.put_wide(0xD2, &bytes[4..]),
            ..=-0x8000_0001 => self.put_wide(0xD3, &bytes),
        }
    }

    /// The header of an array or a map: `short` with up to 15 items, then two bytes of length, then four.
    fn put_header(self, short: u8, wide: u8, len: usize) -> Result<(), Raise> {
        match len {
            0..=15 => self.put(&[short | len as u8]),
            16..=0xFFFF => self.put_wide(wide, &(len as u16).to_be_bytes()),
            _ => self.put_wide(wide + 1, &(len as u32).to_be_bytes()),
        }
    }

    fn put_table(self, level: u32) -> Result<(), Raise> {
        let lua = self.lua;
        if !lua.has_room(8) {
            lua.set_top(1);
            return Err(Raise::Text(c"stack overflow (in function pack)"));
        }
        let (count, is_array) = self.count()?;
        if is_array {
            self.put_header(0x90, 0xDC, count)?;
            for at in 1..=count {
                lua.raw_get_at(-1, at as c_int);
                self.put_top(level + 1)?;
            }
            return Ok(());
        }
        self.put_header(0x80, 0xDE, count)?;
        lua.push_nil();
        while lua.next(-2) {
            lua.copy(-2);
            self.put_top(level + 1)?;
            self.put_top(level + 1)?;
        }
        Ok(())
    }

    /// The number of pairs of the table on top of the stack, and whether their keys are 1 to that number.
    fn count(self) -> Result<(usize, bool), Raise> {
        let lua = self.lua;
        let (mut largest, mut count, mut is_array) = (0.0_f64, 0_usize, true);
        lua.push_nil();
        while lua.next(-2) {
            lua.pop(1);
            stop::step(lua)?;
            count += 1;
            let key = if lua.is(-1, ffi::LUA_TNUMBER) {
                lua.number(-1)
            } else {
                0.0
            };
            let is_place = key > 0.0 && key <= f64::from(i32::MAX) && key.trunc() == key;
            is_array &= is_place;
            largest = largest.max(key);
        }
        Ok((count, is_array && largest == count as f64))
    }
}

struct Unpacker<'l> {
    lua: Lua<'l>,
    rest: &'l [u8],
}

const MISSING: Raise = Raise::Text(c"Missing bytes in input.");
const BAD: Raise = Raise::Text(c"Bad data format in input.");

impl<'l> Unpacker<'l> {
    fn take(&mut self, len: usize) -> Result<&'l [u8], Raise> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(MISSING)?;
        self.rest = rest;
        Ok(taken)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Raise> {
        let mut fixed = [0; N];
        fixed.copy_from_slice(self.take(N)?);
        Ok(fixed)
    }

    /// A length of one, two or four bytes.
    fn len(&mut self, bytes: usize) -> Result<usize, Raise> {
        let bytes = self.take(bytes)?;
        Ok(bytes
            .iter()
            .fold(0, |len, &byte| len << 8 | usize::from(byte)))
    }

    /// Pushes the next value.
    fn push(&mut self, depth: u32) -> Result<(), Raise> {
        let lua = self.lua;
        stop::step(lua)?;
        let kind = self.take(1)?[0];
        match kind {
            0x00..=0x7F => lua.push_number(kind.into()),
            0xE0..=0xFF => lua.push_number((kind as i8).into()),
            0x80..=0x8F => self.push_map(usize::from(kind & 15), depth)?,
            0x90..=0x9F => self.push_array(usize::from(kind & 15), depth)?,
            0xA0..=0xBF => lua.push(self.take(usize::from(kind & 31))?),
            0xC0 => lua.push_nil(),
            0xC2 | 0xC3 => lua.push_boolean(kind == 0xC3),
            0xCA => lua.push_number(f32::from_be_bytes(self.fixed()?).into()),
            0xCB => lua.push_number(f64::from_be_bytes(self.fixed()?)),
            0xCC => lua.push_number(u8::from_be_bytes(self.fixed()?).into()),
            0xCD => lua.push_number(u16::from_be_bytes(self.fixed()?).into()),
            0xCE => lua.push_number(u32::from_be_bytes(self.fixed()?).into()),
            // Unsigned ones beyond 2^63 wrap, as there.
            0xCF | 0xD3 => lua.push_number(i64::from_be_bytes(self.fixed()?) as f64),
            0xD0 => lua.push_number(i8::from_be_bytes(self.fixed()?).into()),
            0xD1 => lua.push_number(i16::from_be_bytes(self.fixed()?).into()),
            0xD2 => lua.push_number(i32::from_be_bytes(self.fixed()?).into()),
            0xD9..=0xDB => {
                let len = self.len(1 << (kind - 0xD9))?;
                lua.push(self.take(len)?);
            }
            0xDC | 0xDD => {
                let len = self.len(2 << (kind - 0xDC))?;
                self.push_array(len, depth)?;
            }
            0xDE | 0xDF => {
                let len = self.len(2 << (kind - 0xDE))?;
                self.push_map(len, depth)?;
            }
            0xC1 | 0xC4..=0xC9 | 0xD4..=0xD8 => return Err(BAD),
        }
        Ok(())
    }

    fn deeper(&self, depth: u32, message: &'static std::ffi::CStr) -> Result<u32, Raise> {
        if depth == UNPACKED_DEPTH || !self.lua.has_room(8) {
            // Room for the message.
            self.lua.set_top(1);
            return Err(Raise::Text(message));
        }
        Ok(depth + 1)
    }

    fn push_array(&mut self, len: usize, depth: u32) -> Result<(), Raise> {
        let message = c"stack overflow (in function mp_decode_to_lua_array)";
        let depth = self.deeper(depth, message)?;
        self.lua.new_table(0, 0);
        for at in 1..=len {
            self.push(depth)?;
            self.lua.raw_set_at(-2, at as c_int);
        }
        Ok(())
    }

    fn push_map(&mut self, len: usize, depth: u32) -> Result<(), Raise> {
        let message = c"stack overflow (in function mp_decode_to_lua_hash)";
        let depth = self.deeper(depth, message)?;
        self.lua.new_table(0, 0);
        for _ in 0..len {
            self.push(depth)?;
            self.push(depth)?;
            self.lua.raw_set(-3);
        }
        Ok(())
    }
}

fn unpack(lua: Lua<'_>) -> Returned {
    unpack_from(lua, 0, 0)
}

fn unpack_one(lua: Lua<'_>) -> Returned {
    let offset = lua.integer_or(2, 0);
    unpack_from(lua, 1, offset)
}

fn unpack_limit(lua: Lua<'_>) -> Returned {
    let limit = lua.expect_integer(2);
    let offset = lua.integer_or(3, 0);
    unpack_from(lua, limit, offset)
}

/// Unpacks values from an offset on. With neither a limit nor an offset all of them are the results;
/// otherwise the next offset comes first, -1 at the end.
fn unpack_from(lua: Lua<'_>, limit: i64, offset: i64) -> Returned {
    let bytes = lua.expect_bytes(1);
    lua.set_top(1);
    if limit < 0 || offset < 0 {
        return Err(refuse(
            lua,
            b"Invalid request to unpack with offset of ",
            offset,
            b" and limit of ",
            bytes.len(),
        ));
    }
    let Some(rest) = bytes.get(offset as usize..) else {
        return Err(refuse(
            lua,
            b"Start offset ",
            offset,
            b" greater than input length ",
            bytes.len(),
        ));
    };
    let takes_all = limit == 0 && offset == 0;
    let limit = if takes_all { i64::MAX } else { limit };
    let mut unpacker = Unpacker { lua, rest };
    let mut count = 0;
    while !unpacker.rest.is_empty() && count < limit {
        if !lua.has_room(8) {
            lua.set_top(1);
            return Err(Raise::Text(
                c"stack overflow (too many return values at once; use unpack_one or unpack_limit instead.)",
            ));
        }
        unpacker.push(0)?;
        count += 1;
    }
    if takes_all {
        return Ok(count as c_int);
    }
    let left = unpacker.rest.len();
    lua.push_number(if left == 0 {
        -1.0
    } else {
        (bytes.len() - left) as f64
    });
    lua.insert(2);
    Ok(count as c_int + 1)
}

fn refuse(lua: Lua<'_>, before: &[u8], offset: i64, between: &[u8], len: usize) -> Raise {
    lua.push_place(1);
    lua.push(before);
    // Messages have the low 32 bits.
    lua.push_number((offset as i32).into());
    lua.push(between);
    lua.push_number(len as f64);
    lua.push(b".");
    lua.concat(6);
    Raise::Top
}
