//! The reply of a command as Lua values: RESP2 or RESP3, with large values beside its bytes.
//!
//! | RESP | Lua |
//! |---|---|
//! | `:1` | number |
//! | `$3`, `*2` | string, table |
//! | `$-1`, `*-1` | `false` |
//! | `_` | `nil` |
//! | `+OK`, `-ERR x` | `{ok='OK'}`, `{err='ERR x'}` |
//! | `%`, `~`, `,` | `{map={..}}`, `{set={x=true}}`, `{double=1.5}` |
//! | `#t`, `(1`, `=` | `true`, `{big_number='1'}`, `{verbatim_string={format=, string=}}` |

use crate::errors;
use crate::host::{Captured, Large};
use crate::raise::Raise;
use crate::stack::Lua;

/// How deep replies nest at most.
const DEPTH: u32 = 64;
/// Items that room is made for before they are read.
const RESERVED_MAX: usize = 1 << 16;

const MALFORMED: Raise = Raise::Text(c"the reply of a command is malformed");

/// The kind of reply that was pushed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pushed {
    Value,
    Error,
}

struct Reader<'r> {
    bytes: &'r [u8],
    at: usize,
    large: &'r [Large],
}

/// Pushes a reply.
#[inline]
pub(crate) fn push(lua: Lua<'_>, reply: &Captured) -> Result<Pushed, Raise> {
    let mut reader = Reader {
        bytes: &reply.bytes,
        at: 0,
        large: &reply.large,
    };
    reader.push(lua, 0)
}

impl<'r> Reader<'r> {
    /// The next line, without its end.
    #[inline]
    fn line(&mut self) -> Result<&'r [u8], Raise> {
        let rest = &self.bytes[self.at..];
        let end = rest
            .iter()
            .position(|&byte| byte == b'\r')
            .ok_or(MALFORMED)?;
        self.at += end + 1;
        self.end_of_line()?;
        Ok(&rest[..end])
    }

    fn end_of_line(&mut self) -> Result<(), Raise> {
        if self.bytes.get(self.at) != Some(&b'\n') {
            return Err(MALFORMED);
        }
        self.at += 1;
        Ok(())
    }

    #[inline]
    fn integer(&mut self) -> Result<i64, Raise> {
        resp::number::parse_i64(self.line()?).ok_or(MALFORMED)
    }

    /// A length, or `None` for -1.
    #[inline]
    fn len(&mut self) -> Result<Option<usize>, Raise> {
        match self.integer()? {
            -1 => Ok(None),
            len => Ok(Some(usize::try_from(len).map_err(|_| MALFORMED)?)),
        }
    }

    fn count(&mut self) -> Result<usize, Raise> {
        self.len()?.ok_or(MALFORMED)
    }

    /// The bytes of a bulk string. Reads its end, too.
    #[inline]
    fn bulk(&mut self, len: usize) -> Result<&'r [u8], Raise> {
        let value = match self.large.first() {
            Some(large) if large.at == self.at => {
                self.large = &self.large[1..];
                (*large.value).as_ref()
            }
            _ => {
                let rest = &self.bytes[self.at..];
                let value = rest.get(..len).ok_or(MALFORMED)?;
                self.at += len;
                value
            }
        };
        if value.len() != len || self.bytes.get(self.at) != Some(&b'\r') {
            return Err(MALFORMED);
        }
        self.at += 1;
        self.end_of_line()?;
        Ok(value)
    }

    fn push(&mut self, lua: Lua<'_>, depth: u32) -> Result<Pushed, Raise> {
        let kind = *self.bytes.get(self.at).ok_or(MALFORMED)?;
        self.at += 1;
        match kind {
            b'$' => match self.len()? {
                Some(len) => lua.push(self.bulk(len)?),
                None => lua.push_boolean(false),
            },
            b':' => lua.push_number(self.integer()? as f64),
            b'+' => {
                lua.new_table(0, 1);
                lua.push(self.line()?);
                lua.set_field(-2, c"ok");
            }
            b'-' => {
                errors::push_coded(lua, self.line()?, true);
                return Ok(Pushed::Error);
            }
            b'*' => match self.len()? {
                Some(count) => self.push_array(lua, count, depth)?,
                None => lua.push_boolean(false),
            },
            _ => return self.push_typed(lua, kind, depth),
        }
        Ok(Pushed::Value)
    }

    /// The types of RESP3.
    fn push_typed(&mut self, lua: Lua<'_>, kind: u8, depth: u32) -> Result<Pushed, Raise> {
        match kind {
            b'_' => {
                self.line()?;
                lua.push_nil();
            }
            b'#' => {
                let is_true = self.line()? == b"t";
                lua.push_boolean(is_true);
            }
            b',' => {
                let number = double(self.line()?).ok_or(MALFORMED)?;
                lua.new_table(0, 1);
                lua.push_number(number);
                lua.set_field(-2, c"double");
            }
            b'(' => {
                lua.new_table(0, 1);
                lua.push(self.line()?);
                lua.set_field(-2, c"big_number");
            }
            b'=' => self.push_verbatim(lua)?,
            b'%' | b'~' => {
                let count = self.count()?;
                lua.new_table(0, 1);
                self.push_pairs(lua, count, kind == b'~', depth)?;
                lua.set_field(-2, if kind == b'~' { c"set" } else { c"map" });
            }
            b'>' => {
                let count = self.count()?;
                self.push_array(lua, count, depth)?;
            }
            b'|' => {
                // Annotations of the next reply.
                let count = self.count()?;
                self.push_pairs(lua, count, false, depth)?;
                lua.pop(1);
                return self.push(lua, deeper(lua, depth)?);
            }
            _ => return Err(MALFORMED),
        }
        Ok(Pushed::Value)
    }

    fn push_array(&mut self, lua: Lua<'_>, count: usize, depth: u32) -> Result<(), Raise> {
        let depth = deeper(lua, depth)?;
        lua.new_table(count.min(RESERVED_MAX) as i32, 0);
        for at in 0..count {
            self.push(lua, depth)?;
            lua.raw_set_at(-2, at as i32 + 1);
        }
        Ok(())
    }

    /// A table of pairs, or of the members of a set.
    fn push_pairs(
        &mut self,
        lua: Lua<'_>,
        count: usize,
        is_set: bool,
        depth: u32,
    ) -> Result<(), Raise> {
        let depth = deeper(lua, depth)?;
        lua.new_table(0, count.min(RESERVED_MAX) as i32);
        for _ in 0..count {
            self.push(lua, depth)?;
            if is_set {
                lua.push_boolean(true);
            } else {
                self.push(lua, depth)?;
            }
            if lua.is_none_or_nil(-2) {
                // Lua has no such key.
                lua.pop(2);
            } else {
                lua.raw_set(-3);
            }
        }
        Ok(())
    }

    fn push_verbatim(&mut self, lua: Lua<'_>) -> Result<(), Raise> {
        let len = self.count()?;
        let value = self.bulk(len)?;
        let (format, text) = match value {
            [a, b, c, b':', text @ ..] => ([*a, *b, *c], text),
            _ => return Err(MALFORMED),
        };
        lua.new_table(0, 1);
        lua.new_table(0, 2);
        lua.push(text);
        lua.set_field(-2, c"string");
        lua.push(&format);
        lua.set_field(-2, c"format");
        lua.set_field(-2, c"verbatim_string");
        Ok(())
    }
}

/// The depth of the items of a reply; makes room for them.
fn deeper(lua: Lua<'_>, depth: u32) -> Result<u32, Raise> {
    if depth == DEPTH || !lua.has_room(8) {
        return Err(MALFORMED);
    }
    Ok(depth + 1)
}

fn double(text: &[u8]) -> Option<f64> {
    if text == b"nan" || text == b"-nan" {
        return Some(f64::NAN);
    }
    resp::number::parse_f64(text)
}
