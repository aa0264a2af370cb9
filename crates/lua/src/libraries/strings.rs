//! `string.find`, `match`, `gmatch`, `gsub` and `rep`. C's others stay.

use std::os::raw::c_int;

use mlua_sys as ffi;

use crate::machine::Machine;
use crate::pattern::{Capture, Matcher, Unmatched, find_plain, is_plain};
use crate::raise::{Functions, Raise, Returned, callback};
use crate::stack::Lua;

pub(crate) const FUNCTIONS: Functions = &[
    (c"find", callback!(find)),
    (c"gfind", callback!(gmatch)),
    (c"gmatch", callback!(gmatch)),
    (c"gsub", callback!(gsub)),
    (c"match", callback!(match_first)),
    (c"rep", callback!(repeat)),
];

impl From<Unmatched> for Raise {
    fn from(unmatched: Unmatched) -> Raise {
        match unmatched {
            Unmatched::Stopped => Raise::Stop,
            Unmatched::Text(text) => Raise::Text(text),
        }
    }
}

/// A matcher that asks the host of the run.
fn matcher<'l>(
    lua: Lua<'l>,
    subject: &'l [u8],
    pattern: &'l [u8],
) -> Matcher<'l, impl Fn() -> bool + 'l> {
    let machine = lua.machine();
    Matcher::new(subject, pattern, move || machine.ask())
}

/// The place that the argument `index` means, from 0 on: negative ones count from the end.
fn start(lua: Lua<'_>, index: c_int, len: usize) -> usize {
    let given = lua.integer_or(index, 1);
    let place = if given < 0 {
        given.wrapping_add(len as i64 + 1).max(0)
    } else {
        given
    };
    usize::try_from(place - 1).unwrap_or(0).min(len)
}

fn find(lua: Lua<'_>) -> Returned {
    search(lua, true)
}

fn match_first(lua: Lua<'_>) -> Returned {
    search(lua, false)
}

fn search(lua: Lua<'_>, is_find: bool) -> Returned {
    let subject = lua.expect_bytes(1);
    let pattern = lua.expect_bytes(2);
    let from = start(lua, 3, subject.len());
    if is_find && (lua.truth(4) || is_plain(pattern)) {
        let machine = lua.machine();
        if machine.steps((subject.len() - from) / 256) {
            return Err(Raise::Stop);
        }
        return match find_plain(subject, pattern, from, || machine.ask())? {
            Some(at) => {
                lua.push_number((at + 1) as f64);
                lua.push_number((at + pattern.len()) as f64);
                Ok(2)
            }
            None => {
                lua.push_nil();
                Ok(1)
            }
        };
    }
    let mut matcher = matcher(lua, subject, pattern);
    let found = if matcher.take_anchor() {
        matcher.match_at(from)?.map(|end| (from, end))
    } else {
        matcher.search(from)?
    };
    let Some((start, end)) = found else {
        lua.push_nil();
        return Ok(1);
    };
    if !is_find {
        return push_captures(lua, &matcher, subject, start, end, true);
    }
    lua.push_number((start + 1) as f64);
    lua.push_number(end as f64);
    Ok(2 + push_captures(lua, &matcher, subject, start, end, false)?)
}

/// Pushes the captures of a match; if there are none and `or_whole`, all of it.
fn push_captures<A: Fn() -> bool>(
    lua: Lua<'_>,
    matcher: &Matcher<'_, A>,
    subject: &[u8],
    start: usize,
    end: usize,
    or_whole: bool,
) -> Returned {
    let count = match matcher.captures() {
        0 => usize::from(or_whole),
        count => count,
    };
    if !lua.has_room(count as c_int + 4) {
        return Err(Raise::Text(c"stack overflow (too many captures)"));
    }
    for index in 0..count {
        push_capture(lua, subject, matcher.capture(index, start, end)?);
    }
    Ok(count as c_int)
}

fn push_capture(lua: Lua<'_>, subject: &[u8], capture: Capture) {
    match capture {
        Capture::Bytes { start, len } => lua.push(&subject[start..start + len]),
        Capture::Place { at } | Capture::Open { start: at } => lua.push_number((at + 1) as f64),
    }
}

fn gmatch(lua: Lua<'_>) -> Returned {
    lua.expect_bytes(1);
    lua.expect_bytes(2);
    lua.set_top(2);
    lua.push_number(0.0);
    lua.push_closure(callback!(next_match), 3);
    Ok(1)
}

/// The iterator of `gmatch`: its upvalues are the subject, the pattern, and the place.
fn next_match(lua: Lua<'_>) -> Returned {
    let text = |index| lua.bytes(ffi::lua_upvalueindex(index)).unwrap_or_default();
    let (subject, pattern) = (text(1), text(2));
    let from = lua.number(ffi::lua_upvalueindex(3)) as usize;
    if from > subject.len() {
        return Ok(0);
    }
    let mut matcher = matcher(lua, subject, pattern);
    let Some((start, end)) = matcher.search(from)? else {
        return Ok(0);
    };
    let next = if end == start { end + 1 } else { end };
    lua.push_number(next as f64);
    lua.replace(ffi::lua_upvalueindex(3));
    push_captures(lua, &matcher, subject, start, end, true)
}

fn gsub(lua: Lua<'_>) -> Returned {
    let subject = lua.expect_bytes(1);
    let pattern = lua.expect_bytes(2);
    let kind = lua.kind(3);
    let most = lua.integer_or(4, subject.len() as i64 + 1) as i32;
    if !matches!(
        kind,
        ffi::LUA_TNUMBER | ffi::LUA_TSTRING | ffi::LUA_TFUNCTION | ffi::LUA_TTABLE
    ) {
        return Err(Raise::Argument(3, c"string/function/table expected"));
    }
    let replacement = if kind == ffi::LUA_TNUMBER || kind == ffi::LUA_TSTRING {
        lua.bytes(3)
    } else {
        None
    };
    let machine = lua.machine();
    let from = machine.scratch_len();
    let mut matcher = matcher(lua, subject, pattern);
    let is_anchored = matcher.take_anchor();
    let (mut at, mut copied, mut count) = (0, 0, 0);
    while count < most {
        let found = if is_anchored {
            matcher.match_at(at)?.map(|end| (at, end))
        } else {
            matcher.search(at)?
        };
        let Some((start, end)) = found else {
            break;
        };
        count += 1;
        gather(machine, &subject[copied..start])?;
        copied = end;
        match replacement {
            Some(text) => gather_replacement(lua, &matcher, subject, text, start, end)?,
            None => gather_value(lua, &matcher, subject, start, end)?,
        }
        // An empty match: the byte there stays, and the search goes on after it.
        at = if end > start { end } else { end + 1 };
        if is_anchored || at > subject.len() {
            break;
        }
    }
    gather(machine, &subject[copied..])?;
    lua.push(machine.gathered(from));
    machine.truncate_scratch(from);
    lua.push_number(f64::from(count));
    Ok(2)
}

fn gather(machine: &Machine, bytes: &[u8]) -> Result<(), Raise> {
    if machine.gather(bytes) {
        Ok(())
    } else {
        Err(Raise::Memory)
    }
}

/// A replacement that is a text: `%0` to `%9` are captures.
fn gather_replacement<A: Fn() -> bool>(
    lua: Lua<'_>,
    matcher: &Matcher<'_, A>,
    subject: &[u8],
    text: &[u8],
    start: usize,
    end: usize,
) -> Result<(), Raise> {
    let machine = lua.machine();
    let mut rest = text;
    while let Some(escape) = rest.iter().position(|&byte| byte == b'%') {
        gather(machine, &rest[..escape])?;
        // After the last byte of a string there is a zero.
        let byte = rest.get(escape + 1).copied().unwrap_or(0);
        rest = rest.get(escape + 2..).unwrap_or_default();
        match byte {
            b'0' => gather(machine, &subject[start..end])?,
            b'1'..=b'9' => match matcher.capture(usize::from(byte - b'1'), start, end)? {
                Capture::Bytes { start, len } => gather(machine, &subject[start..start + len])?,
                place => {
                    push_capture(lua, subject, place);
                    let digits = lua.bytes(-1).unwrap_or_default();
                    gather(machine, digits)?;
                    lua.pop(1);
                }
            },
            byte => gather(machine, &[byte])?,
        }
    }
    gather(machine, rest)
}

/// A replacement from a function or a table.
fn gather_value<A: Fn() -> bool>(
    lua: Lua<'_>,
    matcher: &Matcher<'_, A>,
    subject: &[u8],
    start: usize,
    end: usize,
) -> Result<(), Raise> {
    let machine = lua.machine();
    if lua.is(3, ffi::LUA_TFUNCTION) {
        lua.copy(3);
        let count = push_captures(lua, matcher, subject, start, end, true)?;
        lua.call(count, 1);
    } else {
        push_capture(lua, subject, matcher.capture(0, start, end)?);
        lua.get(3);
    }
    if !lua.truth(-1) {
        gather(machine, &subject[start..end])?;
    } else if let Some(text) = lua.bytes(-1) {
        gather(machine, text)?;
    } else {
        lua.push_place(1);
        lua.push(b"invalid replacement value (a ");
        lua.push(lua.type_name(-3).to_bytes());
        lua.push(b")");
        lua.concat(4);
        return Err(Raise::Top);
    }
    lua.pop(1);
    Ok(())
}

fn repeat(lua: Lua<'_>) -> Returned {
    let text = lua.expect_bytes(1);
    let count = usize::try_from(lua.expect_integer(2) as i32).unwrap_or(0);
    let machine = lua.machine();
    let from = machine.scratch_len();
    let Some(len) = text.len().checked_mul(count) else {
        return Err(Raise::Memory);
    };
    if len > 0 {
        if !machine.reserve(len) {
            return Err(Raise::Memory);
        }
        for _ in 0..count {
            gather(machine, text)?;
        }
    }
    if machine.steps(len / 1024) {
        return Err(Raise::Stop);
    }
    lua.push(machine.gathered(from));
    machine.truncate_scratch(from);
    Ok(1)
}
