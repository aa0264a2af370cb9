//! `redis.register_function`: a library that is being loaded names its functions.

use mlua_sys as ffi;

use crate::errors::fail;
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
        return failed(
            lua,
            b"first argument to redis.register_function must be a string",
        );
    }
    if !lua.is(2, ffi::LUA_TFUNCTION) {
        return failed(
            lua,
            b"second argument to redis.register_function must be a function",
        );
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
        return failed(
            lua,
            b"calling redis.register_function with a single argument is only applicable to Lua table \
(representing named arguments).",
        );
    }
    // Places of the values: name, description, callback.
    lua.set_top(4);
    let mut given = Given::default();
    lua.push_nil();
    while lua.next(1) {
        if !lua.is_string(-2) {
            return failed(
                lua,
                b"named argument key given to redis.register_function is not a string",
            );
        }
        let key = match lua.kind(-2) {
            ffi::LUA_TSTRING => lua.bytes(-2).unwrap_or_default(),
            // The text of a number names nothing, and the loop needs the number.
            _ => b"",
        };
        take(lua, key, &mut given)?;
    }
    if given.name == 0 {
        return failed(
            lua,
            b"redis.register_function must get a function name argument",
        );
    }
    if given.callback == 0 {
        return failed(lua, b"redis.register_function must get a callback argument");
    }
    Ok(given)
}

/// Takes the argument of a name from the top of the stack, and pops it.
fn take(lua: Lua<'_>, key: &[u8], given: &mut Given) -> Result<(), Raise> {
    if key.eq_ignore_ascii_case(b"function_name") {
        if !lua.is_string(-1) {
            return failed(
                lua,
                b"function_name argument given to redis.register_function must be a string",
            );
        }
        given.name = 2;
        lua.replace(2);
    } else if key.eq_ignore_ascii_case(b"description") {
        if !lua.is_string(-1) {
            return failed(
                lua,
                b"description argument given to redis.register_function must be a string",
            );
        }
        given.description = 3;
        lua.replace(3);
    } else if key.eq_ignore_ascii_case(b"callback") {
        if !lua.is(-1, ffi::LUA_TFUNCTION) {
            return failed(
                lua,
                b"callback argument given to redis.register_function must be a function",
            );
        }
        given.callback = 4;
        lua.replace(4);
    } else if key.eq_ignore_ascii_case(b"flags") {
        if !lua.is(-1, ffi::LUA_TTABLE) {
            return failed(
                lua,
                b"flags argument to redis.register_function must be a table representing function flags",
            );
        }
        given.flags = flags(lua)?;
        lua.pop(1);
    } else {
        return failed(lua, b"unknown argument given to redis.register_function");
    }
    Ok(())
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
            return failed(lua, b"unknown flag given");
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

fn failed<T>(lua: Lua<'_>, text: &[u8]) -> Result<T, Raise> {
    match fail(lua, text) {
        Err(raise) => Err(raise),
        Ok(_) => unreachable!("it raises"),
    }
}
