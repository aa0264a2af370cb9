//! `redis.register_function`: a library that is being loaded names its functions.

use mlua_sys as ffi;

use crate::errors::{fail, raise};
use crate::machine::Registration;
use crate::raise::{Raise, Returned};
use crate::stack::Lua;

/// The flags of functions; the place of each is its bit in [`Registration::flags`].
pub(crate) const FLAGS: [&[u8]; 5] = [
    b"no-writes",
    b"allow-oom",
    b"allow-stale",
    b"no-cluster",
    b"allow-cross-slot-keys",
];

const WRONG_NAME: &[u8] =
    b"Library names can only contain letters, numbers, or underscores(_) and must be at least one \
character long";

/// Whether bytes are a name of a function or a library.
pub(crate) fn is_name(name: &[u8]) -> bool {
    !name.is_empty()
        && name
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// Places on the stack of the arguments about a function: 0 for one that is missing.
#[derive(Default)]
struct Given {
    name: i32,
    description: i32,
    callback: i32,
    flags: u32,
}

pub(super) fn register(lua: Lua<'_>) -> Returned {
    let machine = lua.machine();
    if machine.registered.borrow().is_none() {
        return fail(
            lua,
            b"redis.register_function can only be called on FUNCTION LOAD command",
        );
    }
    let given = match lua.top() {
        1 => named(lua)?,
        2 => positional(lua)?,
        _ => {
            return fail(lua, b"wrong number of arguments to redis.register_function");
        }
    };
    let name = lua.bytes(given.name).unwrap_or_default();
    if !is_name(name) {
        return fail(lua, WRONG_NAME);
    }
    let is_known = match &*machine.registered.borrow() {
        Some(all) => all.iter().any(|one| one.name.eq_ignore_ascii_case(name)),
        None => false,
    };
    if is_known {
        return fail(lua, b"Function already exists in the library");
    }
    let description = match given.description {
        0 => None,
        place => lua.bytes(place),
    };
    let bytes = name.len() + description.map_or(0, <[u8]>::len);
    if !machine.memory.has_room(bytes) {
        return Err(Raise::Memory);
    }
    lua.copy(given.callback);
    let reference = lua.reference(ffi::LUA_REGISTRYINDEX);
    if let Some(all) = &mut *machine.registered.borrow_mut() {
        all.push(Registration {
            name: name.to_vec(),
            description: description.map(<[u8]>::to_vec),
            flags: given.flags,
            reference,
        });
    }
    Ok(0)
}

/// Name and function.
fn positional(lua: Lua<'_>) -> Result<Given, Raise> {
    if !lua.is_string(1) {
        return Err(raise(
            lua,
            b"first argument to redis.register_function must be a string",
        ));
    }
    if !lua.is(2, ffi::LUA_TFUNCTION) {
        return Err(raise(
            lua,
            b"second argument to redis.register_function must be a function",
        ));
    }
    Ok(Given {
        name: 1,
        callback: 2,
        ..Given::default()
    })
}

/// A table of arguments by their names.
fn named(lua: Lua<'_>) -> Result<Given, Raise> {
    if !lua.is(1, ffi::LUA_TTABLE) {
        return Err(raise(
            lua,
            b"calling redis.register_function with a single argument is only applicable to \
Lua table (representing named arguments).",
        ));
    }
    // Places of the values: name, description, callback.
    lua.set_top(4);
    let mut given = Given::default();
    lua.push_nil();
    while lua.next(1) {
        if !lua.is_string(-2) {
            return Err(raise(
                lua,
                b"named argument key given to redis.register_function is not a string",
            ));
        }
        let key = match lua.kind(-2) {
            ffi::LUA_TSTRING => lua.bytes(-2).unwrap_or_default(),
            // The text of a number names nothing, and the loop needs the number.
            _ => b"",
        };
        take(lua, key, &mut given)?;
    }
    if given.name == 0 {
        return Err(raise(
            lua,
            b"redis.register_function must get a function name argument",
        ));
    }
    if given.callback == 0 {
        return Err(raise(
            lua,
            b"redis.register_function must get a callback argument",
        ));
    }
    Ok(given)
}

/// Takes the argument of a name from the top of the stack, and pops it.
fn take(lua: Lua<'_>, key: &[u8], given: &mut Given) -> Result<(), Raise> {
    if key.eq_ignore_ascii_case(b"function_name") {
        let wrong = b"function_name argument given to redis.register_function must be a string";
        given.name = keep(lua, 2, lua.is_string(-1), wrong)?;
    } else if key.eq_ignore_ascii_case(b"description") {
        let wrong = b"description argument given to redis.register_function must be a string";
        given.description = keep(lua, 3, lua.is_string(-1), wrong)?;
    } else if key.eq_ignore_ascii_case(b"callback") {
        let wrong = b"callback argument given to redis.register_function must be a function";
        given.callback = keep(lua, 4, lua.is(-1, ffi::LUA_TFUNCTION), wrong)?;
    } else if key.eq_ignore_ascii_case(b"flags") {
        if !lua.is(-1, ffi::LUA_TTABLE) {
            let wrong = b"flags argument to redis.register_function must be a table representing \
function flags";
            return Err(raise(lua, wrong));
        }
        given.flags = flags(lua)?;
        lua.pop(1);
    } else {
        let wrong = b"unknown argument given to redis.register_function";
        return Err(raise(lua, wrong));
    }
    Ok(())
}

/// Moves the argument on top of the stack to its place, if it is of the right type. Returns the place.
fn keep(lua: Lua<'_>, place: i32, is_right: bool, wrong: &[u8]) -> Result<i32, Raise> {
    if !is_right {
        return Err(raise(lua, wrong));
    }
    lua.replace(place);
    Ok(place)
}

/// The flags in the table on top of the stack, up to the first place that is empty.
fn flags(lua: Lua<'_>) -> Result<u32, Raise> {
    let table = lua.top();
    let mut flags = 0;
    for at in 1.. {
        lua.raw_get_at(table, at);
        if lua.is_none_or_nil(-1) {
            break;
        }
        let word = match lua.kind(-1) {
            ffi::LUA_TSTRING => lua.bytes(-1).unwrap_or_default(),
            _ => b"",
        };
        let Some(bit) = FLAGS.iter().position(|flag| *flag == word) else {
            return Err(raise(lua, b"unknown flag given"));
        };
        flags |= 1 << bit;
        lua.pop(1);
        if lua.machine().step() {
            return Err(Raise::Stop);
        }
    }
    lua.set_top(table);
    Ok(flags)
}
