//! `cjson.encode`. Tables can contain each other many times over: each item is a step, and the text is
//! gathered within the limit of memory.

use mlua_sys as ffi;

use crate::machine::{Invalid, JsonOptions, Machine};
use crate::number::{TEXT_MAX, format_general};
use crate::raise::{Raise, Returned};
use crate::stack::Lua;
use crate::stop;

/// Tables in each other at most, above all that options allow: the stack of the thread is not endless.
const NESTED_MAX: i32 = 2000;

struct Encoder<'l> {
    lua: Lua<'l>,
    machine: &'l Machine,
    options: JsonOptions,
}

pub(super) fn encode(lua: Lua<'_>) -> Returned {
    if lua.top() != 1 {
        return Err(Raise::Argument(1, c"expected 1 argument"));
    }
    let machine = lua.machine();
    let from = machine.scratch_len();
    let options = machine.json.get();
    let encoder = Encoder {
        lua,
        machine,
        options,
    };
    encoder.put_top(0)?;
    lua.push(machine.gathered(from));
    machine.truncate_scratch(from);
    Ok(1)
}

impl Encoder<'_> {
    fn put(&self, bytes: &[u8]) -> Result<(), Raise> {
        if self.machine.gather(bytes) {
            Ok(())
        } else {
            Err(Raise::Memory)
        }
    }

    fn refuse(&self, index: i32, reason: &[u8]) -> Raise {
        let lua = self.lua;
        let kind = lua.type_name(index).to_bytes();
        lua.push_place(1);
        lua.push(b"Cannot serialise ");
        lua.push(kind);
        lua.push(b": ");
        lua.push(reason);
        lua.concat(5);
        Raise::Top
    }

    /// The value on top of the stack, which stays.
    fn put_top(&self, depth: i32) -> Result<(), Raise> {
        let lua = self.lua;
        stop::step(lua)?;
        match lua.kind(-1) {
            ffi::LUA_TSTRING => self.put_string(lua.bytes(-1).unwrap_or_default()),
            ffi::LUA_TNUMBER => self.put_number(-1),
            ffi::LUA_TBOOLEAN if lua.truth(-1) => self.put(b"true"),
            ffi::LUA_TBOOLEAN => self.put(b"false"),
            ffi::LUA_TTABLE => self.put_table(depth + 1),
            ffi::LUA_TNIL => self.put(b"null"),
            ffi::LUA_TLIGHTUSERDATA if lua.light(-1).is_null() => self.put(b"null"),
            _ => Err(self.refuse(-1, b"type not supported")),
        }
    }

    fn put_number(&self, index: i32) -> Result<(), Raise> {
        let number = self.lua.number(index);
        if !number.is_finite() {
            match self.options.encode_invalid {
                Invalid::Refuse => return Err(self.refuse(index, b"must not be NaN or Inf")),
                Invalid::Null => return self.put(b"null"),
                Invalid::Write if number.is_nan() => return self.put(b"nan"),
                Invalid::Write => {}
            }
        }
        let mut bytes = [0; TEXT_MAX];
        let precision = self.options.precision as usize;
        self.put(format_general(number, precision, &mut bytes))
    }

    fn put_string(&self, text: &[u8]) -> Result<(), Raise> {
        if self.machine.steps(text.len() / 64) {
            return Err(Raise::Stop);
        }
        self.put(b"\"")?;
        let mut rest = text;
        while let Some(at) = rest.iter().position(|&byte| needs_escape(byte)) {
            self.put(&rest[..at])?;
            self.put_escape(rest[at])?;
            rest = &rest[at + 1..];
        }
        self.put(rest)?;
        self.put(b"\"")
    }

    fn put_escape(&self, byte: u8) -> Result<(), Raise> {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let letter = match byte {
            b'"' | b'\\' | b'/' => byte,
            8 => b'b',
            9 => b't',
            10 => b'n',
            12 => b'f',
            13 => b'r',
            _ => {
                let high = DIGITS[usize::from(byte >> 4)];
                let low = DIGITS[usize::from(byte & 15)];
                return self.put(&[b'\\', b'u', b'0', b'0', high, low]);
            }
        };
        self.put(&[b'\\', letter])
    }

    fn put_table(&self, depth: i32) -> Result<(), Raise> {
        let lua = self.lua;
        if depth > self.options.encode_depth.min(NESTED_MAX) || !lua.has_room(8) {
            lua.push_place(1);
            lua.push(b"Cannot serialise, excessive nesting (");
            lua.push_number(depth.into());
            lua.push(b")");
            lua.concat(4);
            return Err(Raise::Top);
        }
        match self.array_len()? {
            Some(len) if len > 0 => self.put_array(len, depth),
            _ => self.put_object(depth),
        }
    }

    /// The length of the table on top of the stack as an array; nothing if it has other keys.
    fn array_len(&self) -> Result<Option<i32>, Raise> {
        let lua = self.lua;
        let (mut largest, mut count) = (0, 0_i64);
        lua.push_nil();
        while lua.next(-2) {
            stop::step(lua)?;
            let key = if lua.is(-2, ffi::LUA_TNUMBER) {
                lua.number(-2)
            } else {
                0.0
            };
            if key < 1.0 || key.floor() != key {
                lua.pop(2);
                return Ok(None);
            }
            // Places have 32 bits there.
            let place = if key > f64::from(i32::MAX) {
                i32::MIN
            } else {
                key as i32
            };
            largest = largest.max(place);
            count += 1;
            lua.pop(1);
        }
        let options = self.options;
        let is_sparse = options.sparse_ratio > 0
            && i64::from(largest) > count * i64::from(options.sparse_ratio)
            && largest > options.sparse_safe;
        if is_sparse && !options.sparse_as_object {
            return Err(self.refuse(-1, b"excessively sparse array"));
        }
        Ok((!is_sparse).then_some(largest))
    }

    fn put_array(&self, len: i32, depth: i32) -> Result<(), Raise> {
        self.put(b"[")?;
        for at in 1..=len {
            if at > 1 {
                self.put(b",")?;
            }
            self.lua.raw_get_at(-1, at);
            self.put_top(depth)?;
            self.lua.pop(1);
        }
        self.put(b"]")
    }

    fn put_object(&self, depth: i32) -> Result<(), Raise> {
        let lua = self.lua;
        self.put(b"{")?;
        let mut is_first = true;
        lua.push_nil();
        while lua.next(-2) {
            if !is_first {
                self.put(b",")?;
            }
            is_first = false;
            match lua.kind(-2) {
                ffi::LUA_TNUMBER => {
                    self.put(b"\"")?;
                    self.put_number(-2)?;
                    self.put(b"\":")?;
                }
                ffi::LUA_TSTRING => {
                    self.put_string(lua.bytes(-2).unwrap_or_default())?;
                    self.put(b":")?;
                }
                _ => return Err(self.refuse(-2, b"table key must be a number or string")),
            }
            self.put_top(depth)?;
            lua.pop(1);
        }
        self.put(b"}")
    }
}

fn needs_escape(byte: u8) -> bool {
    byte < b' ' || matches!(byte, b'"' | b'\\' | b'/' | 127)
}
