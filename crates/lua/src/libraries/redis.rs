//! The table `redis` (and `server`): commands, and the few other things that scripts ask of the server.

use std::ffi::CStr;

use mlua_sys as ffi;
use resp::number::{DOUBLE_TEXT_LEN, INTEGER_TEXT_LEN, format_f64, format_i64};
use resp::reply::Protocol;
use resp::request::Span;
use sha1_smol::Sha1;

use super::register::register;
use crate::api::Api;
use crate::errors::{self, fail};
use crate::host::{Arguments, BUFFER_KEPT, Called, Host, Level};
use crate::machine::{Command, Machine};
use crate::raise::{Functions, Raise, Returned, callback};
use crate::reply::{self, Pushed};
use crate::stack::{Lua, truncated};

const FUNCTIONS: Functions = &[
    (c"acl_check_cmd", callback!(may_call)),
    (c"call", callback!(call)),
    (c"error_reply", callback!(error_reply)),
    (c"log", callback!(log)),
    (c"pcall", callback!(call_protected)),
    (c"set_repl", callback!(set_replication)),
    (c"setresp", callback!(set_protocol)),
    (c"sha1hex", callback!(sha1hex)),
    (c"status_reply", callback!(status_reply)),
];

/// Those of scripts alone.
const FUNCTIONS_OF_SCRIPTS: Functions = &[
    (c"breakpoint", callback!(breakpoint)),
    (c"debug", callback!(debug)),
    (c"replicate_commands", callback!(replicate_commands)),
];

/// Those that a library has while it is loaded.
const FUNCTIONS_AT_LOAD: Functions = &[
    (c"log", callback!(log)),
    (c"register_function", callback!(register)),
];

const LEVELS: [(&CStr, f64); 4] = [
    (c"LOG_DEBUG", 0.0),
    (c"LOG_VERBOSE", 1.0),
    (c"LOG_NOTICE", 2.0),
    (c"LOG_WARNING", 3.0),
];

const REPLICATION: [(&CStr, f64); 5] = [
    (c"REPL_NONE", 0.0),
    (c"REPL_AOF", 1.0),
    (c"REPL_SLAVE", 2.0),
    (c"REPL_REPLICA", 2.0),
    (c"REPL_ALL", 3.0),
];

/// Fills the table on top of the stack.
pub(crate) fn fill(lua: Lua<'_>, api: Api) {
    set_functions(lua, FUNCTIONS);
    if let Api::Scripts(_) = api {
        set_functions(lua, FUNCTIONS_OF_SCRIPTS);
    }
    set_constants(lua, &REPLICATION);
    set_constants(lua, &LEVELS);
    set_version(lua, api);
}

/// Fills the table on top of the stack for a library that is loaded.
pub(crate) fn fill_for_load(lua: Lua<'_>, api: Api) {
    set_functions(lua, FUNCTIONS_AT_LOAD);
    set_constants(lua, &LEVELS);
    set_version(lua, api);
}

fn set_functions(lua: Lua<'_>, functions: Functions) {
    for &(name, function) in functions {
        lua.push_function(function);
        lua.set_field(-2, name);
    }
}

fn set_constants(lua: Lua<'_>, constants: &[(&CStr, f64)]) {
    for &(name, number) in constants {
        lua.push_number(number);
        lua.set_field(-2, name);
    }
}

fn set_version(lua: Lua<'_>, api: Api) {
    let (Api::Scripts(version) | Api::Libraries(version)) = api;
    let [major, minor, patch] = version;
    let mut text = [0; 11];
    let len = write_version(version, &mut text);
    lua.push(&text[..len]);
    lua.set_field(-2, c"REDIS_VERSION");
    let number = u32::from(major) << 16 | u32::from(minor) << 8 | u32::from(patch);
    lua.push_number(f64::from(number));
    lua.set_field(-2, c"REDIS_VERSION_NUM");
}

fn write_version(version: [u8; 3], text: &mut [u8; 11]) -> usize {
    let mut len = 0;
    for (at, part) in version.into_iter().enumerate() {
        if at > 0 {
            text[len] = b'.';
            len += 1;
        }
        let mut buffer = [0; INTEGER_TEXT_LEN];
        let digits = format_i64(part.into(), &mut buffer);
        text[len..len + digits.len()].copy_from_slice(digits);
        len += digits.len();
    }
    len
}

const NO_ARGUMENTS: &[u8] = b"Please specify at least one argument for this redis lib call";
const BAD_ARGUMENTS: &[u8] = b"Lua redis lib command arguments must be strings or integers";

fn call(lua: Lua<'_>) -> Returned {
    run_command(lua, true)
}

fn call_protected(lua: Lua<'_>) -> Returned {
    run_command(lua, false)
}

/// `redis.call` and `redis.pcall`: an error is raised, or returned.
fn run_command(lua: Lua<'_>, raises: bool) -> Returned {
    let machine = lua.machine();
    let pushed = match take_arguments(lua, machine)? {
        Taken::All => {
            if ask_host(machine, |host, command| {
                let arguments =
                    Arguments::of_script(&command.input, &command.spans, &command.known);
                host.call(&arguments, &mut command.reply)
            }) != Some(Called::Replied)
            {
                machine.stop();
                return Err(Raise::Stop);
            }
            push_reply(lua, machine)?
        }
        Taken::Not(text) => {
            errors::push(lua, text);
            Pushed::Error
        }
    };
    if raises && pushed == Pushed::Error {
        return Err(Raise::Top);
    }
    Ok(1)
}

/// Calls the host with the command that is ready. `None`: there is no host.
fn ask_host<R>(machine: &Machine, ask: impl FnOnce(&mut dyn Host, &mut Command) -> R) -> Option<R> {
    machine.with_host(|host| {
        // SAFETY: nothing else has a reference to the command: a callback that uses it calls nothing of Lua
        // meanwhile, and the host can't reach it.
        ask(host, unsafe { &mut *machine.command.get() })
    })
}

fn push_reply(lua: Lua<'_>, machine: &Machine) -> Result<Pushed, Raise> {
    // SAFETY: pushing values runs no code of the script, so nothing else uses the command meanwhile.
    reply::push(lua, unsafe { &(*machine.command.get()).reply })
}

enum Taken {
    All,
    /// They are no arguments of a command.
    Not(&'static [u8]),
}

/// Copies the arguments of the running function into the command: one buffer, as the server takes them.
fn take_arguments(lua: Lua<'_>, machine: &Machine) -> Result<Taken, Raise> {
    let count = lua.top();
    if count == 0 {
        return Ok(Taken::Not(NO_ARGUMENTS));
    }
    // SAFETY: reading strings and numbers runs no code of the script and raises nothing.
    let command = unsafe { &mut *machine.command.get() };
    command.input.clear();
    command.spans.clear();
    command.known.clear();
    command.reply.clear();
    command.reply.protocol = machine.protocol.get();
    let keys = machine.key_addresses.borrow();
    for index in 1..=count {
        let start = command.input.len();
        match lua.kind(index) {
            ffi::LUA_TSTRING => {
                let bytes = lua.bytes(index).unwrap_or_default();
                let needed = start + bytes.len();
                if needed > BUFFER_KEPT && !machine.memory.has_room(needed) {
                    machine.memory.set_short();
                    drop(keys);
                    return Err(Raise::Memory);
                }
                if !keys.is_empty() {
                    let address = bytes.as_ptr() as usize;
                    let known = keys.iter().position(|&key| key == address);
                    command.known.push(known.map(|at| at as u32));
                }
                command.input.extend_from_slice(bytes);
            }
            ffi::LUA_TNUMBER => {
                if !keys.is_empty() {
                    command.known.push(None);
                }
                put_number(&mut command.input, lua.number(index));
            }
            _ => return Ok(Taken::Not(BAD_ARGUMENTS)),
        }
        let len = command.input.len() - start;
        command.spans.push(Span { start, len });
    }
    Ok(Taken::All)
}

/// A number as `%.17g` writes it.
fn put_number(out: &mut Vec<u8>, number: f64) {
    let integer = number as i64;
    // All integers of so many digits are written out.
    if number.abs() < 1e17
        && integer as f64 == number
        && (integer != 0 || number.is_sign_positive())
    {
        let mut buffer = [0; INTEGER_TEXT_LEN];
        out.extend_from_slice(format_i64(integer, &mut buffer));
    } else if number.is_nan() {
        // The sign of 0/0 on x86-64 is negative.
        let text: &[u8] = if number.is_sign_negative() {
            b"-nan"
        } else {
            b"nan"
        };
        out.extend_from_slice(text);
    } else {
        let mut buffer = [0; DOUBLE_TEXT_LEN];
        out.extend_from_slice(format_f64(number, &mut buffer));
    }
}

fn may_call(lua: Lua<'_>) -> Returned {
    let machine = lua.machine();
    if let Taken::Not(text) = take_arguments(lua, machine)? {
        return fail(lua, text);
    }
    let answer = ask_host(machine, |host, command| {
        host.may_call(&Arguments::of_script(
            &command.input,
            &command.spans,
            &command.known,
        ))
    });
    match answer.flatten() {
        Some(may) => {
            lua.push_boolean(may);
            Ok(1)
        }
        None => fail(lua, b"Invalid command passed to redis.acl_check_cmd()"),
    }
}

/// There is no debugger of scripts.
fn breakpoint(lua: Lua<'_>) -> Returned {
    lua.push_boolean(false);
    Ok(1)
}

fn debug(_: Lua<'_>) -> Returned {
    Ok(0)
}

/// A table of one field from the only argument, or an error that is returned, not raised.
fn is_one_text(lua: Lua<'_>) -> bool {
    let is_one = lua.top() == 1 && lua.is(1, ffi::LUA_TSTRING);
    if !is_one {
        errors::push(lua, b"wrong number or type of arguments");
    }
    is_one
}

fn error_reply(lua: Lua<'_>) -> Returned {
    if is_one_text(lua) {
        let text = lua.expect_bytes(1);
        errors::push_coded(lua, text.strip_prefix(b"-").unwrap_or(text), false);
    }
    Ok(1)
}

fn status_reply(lua: Lua<'_>) -> Returned {
    if is_one_text(lua) {
        lua.new_table(0, 1);
        lua.copy(1);
        lua.set_field(-2, c"ok");
    }
    Ok(1)
}

fn log(lua: Lua<'_>) -> Returned {
    let count = lua.top();
    if count < 2 {
        return fail(lua, b"redis.log() requires two arguments or more.");
    }
    if !lua.is_number(1) {
        return fail(lua, b"First argument must be a number (log level).");
    }
    let level = match truncated(lua.number(1)) {
        0 => Level::Debug,
        1 => Level::Verbose,
        2 => Level::Notice,
        3 => Level::Warning,
        _ => return fail(lua, b"Invalid debug level."),
    };
    let machine = lua.machine();
    let from = machine.scratch_len();
    for index in 2..=count {
        let Some(bytes) = lua.bytes(index) else {
            continue;
        };
        if (index > 2 && !machine.gather(b" ")) || !machine.gather(bytes) {
            return Err(Raise::Memory);
        }
    }
    machine.with_host(|host| host.log(level, machine.gathered(from)));
    machine.truncate_scratch(from);
    Ok(0)
}

/// Effects are replicated in any case.
fn replicate_commands(lua: Lua<'_>) -> Returned {
    lua.push_boolean(true);
    Ok(1)
}

/// Checks its argument and changes nothing: the log has all effects.
fn set_replication(lua: Lua<'_>) -> Returned {
    if lua.top() != 1 {
        return fail(lua, b"redis.set_repl() requires two arguments.");
    }
    if truncated(lua.number(1)) & !3 != 0 {
        return fail(
            lua,
            b"Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.",
        );
    }
    Ok(0)
}

fn set_protocol(lua: Lua<'_>) -> Returned {
    if lua.top() != 1 {
        return fail(lua, b"redis.setresp() requires one argument.");
    }
    let protocol = match truncated(lua.number(1)) {
        2 => Protocol::Resp2,
        3 => Protocol::Resp3,
        _ => return fail(lua, b"RESP version must be 2 or 3."),
    };
    lua.machine().protocol.set(protocol);
    Ok(0)
}

fn sha1hex(lua: Lua<'_>) -> Returned {
    if lua.top() != 1 {
        return fail(lua, b"wrong number of arguments");
    }
    let text = lua.bytes(1).unwrap_or_default();
    if lua.machine().steps(text.len() / 64) {
        return Err(Raise::Stop);
    }
    let digest = Sha1::from(text).digest().bytes();
    let mut digits = [0; 40];
    for (pair, byte) in digits.chunks_exact_mut(2).zip(digest) {
        pair[0] = b"0123456789abcdef"[usize::from(byte >> 4)];
        pair[1] = b"0123456789abcdef"[usize::from(byte & 15)];
    }
    lua.push(&digits);
    Ok(1)
}
