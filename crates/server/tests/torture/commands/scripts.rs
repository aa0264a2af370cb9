//! Effects of scripts and libraries on the model. Memory may end before each command that takes some, so a
//! script here has one such command at most, and before all others. A library is a key of a database of its
//! own.

use super::keys::remove_all;
use crate::torture::model::{Call, Expect};
use crate::torture::script::Arg;
use crate::torture::values::{Data, Key};

/// The number of the database of libraries. Servers have no such database.
pub(crate) const LIBRARIES: u16 = u16::MAX;

/// Libraries of a connection.
const NAMES: u32 = 2;

/// Requests without their names: a script has no blanks.
#[rustfmt::skip]
pub(super) const SHAPES: &[&str] = &[
    "return(redis.call('set',KEYS[1],ARGV[1])) 1 {v} {text}",
    "redis.call('set',KEYS[1],ARGV[1])return(redis.call('del',KEYS[2])) 2 {v} {v} {text}",
    "return(redis.call('set',KEYS[1]..'',ARGV[1])) 1 {v} {text}",
    "redis.call('set',KEYS[1],ARGV[1])error('half') 1 {v} {tail}",
    "repeat(rawset)(ARGV,2,(ARGV[2]or(0))+1)until(ARGV[2]>9e4)redis.call('set',KEYS[1],ARGV[1]) 1 {v} {text}",
    "return( 1 {v}",
];

/// Those that last long enough for SCRIPT KILL to come before their end: it ends the first, but not the last.
#[rustfmt::skip]
pub(crate) const LASTING: [&str; 2] = [
    "repeat(rawset)(ARGV,2,(ARGV[2]or(0))+1)until(ARGV[2]>2e5)redis.call('set',KEYS[1],ARGV[1]) 1 {v} {text}",
    "redis.call('set',KEYS[1],ARGV[1])repeat(rawset)(ARGV,2,(ARGV[2]or(0))+1)until(ARGV[2]>1e5) 1 {v} {text}",
];

pub(super) fn eval(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    let calls = |command: &str| String::from_utf8_lossy(&args[0]).contains(command);
    if !calls("'set'") {
        // The text is no Lua, and nothing runs.
        return Expect::Error("ERR Error compiling script");
    }
    let value = args.last().expect("shapes have a value").clone();
    call.set(&args[2], value, None);
    match (calls("error"), calls("'del'")) {
        (true, _) => Expect::Error("ERR user_script:1: half"),
        (false, true) => remove_all(call, &args[3..4]),
        (false, false) if calls("until") => Expect::Null,
        (false, false) => Expect::ok(),
    }
}

/// The argument in the place of a word of a shape: a text, or the name of a library or a function.
pub(crate) fn words(random: &mut fastrand::Rng, lane: usize, word: &str) -> Option<Arg> {
    let name = format!("{lane}_{}", random.u32(..NAMES));
    match word {
        "code" => {
            let (version, filling) = (random.u32(..), ".".repeat(random.usize(..2000)));
            Some(Arg::word(text_of(&name, version, &filling)))
        }
        "library" => Some(Arg::word(format!("L{name}"))),
        "writer" => Some(Arg::word(format!("w{name}"))),
        "reader" => Some(Arg::word(format!("r{name}"))),
        _ => None,
    }
}

/// The text of a library of two functions, which reply with its version.
fn text_of(name: &str, version: u32, filling: &str) -> String {
    let (title, version) = (
        format!("#!lua name=L{name}"),
        format!("local version = '{version}'"),
    );
    let writes = "function(keys, args) redis.call('set', keys[1], args[1]) return version end";
    let reads = "callback=function() return version end, flags={'no-writes'}";
    format!(
        "{title}\n{version}\nredis.register_function('w{name}', {writes})\n\
         redis.register_function{{function_name='r{name}', {reads}}}\n--{filling}"
    )
}

/// The connection of a library, and its key, by the rest of its name after the first letter.
pub(crate) fn key_of(rest: &str) -> Option<(usize, Key)> {
    let (lane, number) = rest.split_once('_')?;
    let key = (LIBRARIES, format!("{lane}:L{number}").into_bytes());
    Some((lane.parse().ok()?, key))
}

/// The same by the name.
fn key_of_name(name: &[u8]) -> Key {
    let name = String::from_utf8_lossy(&name[1..]);
    let (_, key) = key_of(&name).expect("it is a name");
    key
}

/// The part of a text between two others.
fn between<'t>(text: &'t str, start: &str, end: &str) -> &'t str {
    let (_, rest) = text.split_once(start).expect("it is there");
    rest.split_once(end).expect("it is there").0
}

pub(super) fn function(call: &mut Call<'_>) -> Expect {
    let (args, last) = (call.args, call.args.last().expect("there are some"));
    if args[0] == b"DELETE" {
        return match call.remove_key(&key_of_name(last)) {
            Some(_) => Expect::ok(),
            None => Expect::Error("ERR Library not found"),
        };
    }
    let text = String::from_utf8_lossy(last);
    let name = between(&text, "name=", "\n").as_bytes();
    let key = key_of_name(name);
    if args.len() == 2 && call.keys.contains_key(&key) {
        return Expect::Error("ERR Library '");
    }
    call.put(key, Data::string(last.clone()), None);
    Expect::bulk(name)
}

pub(super) fn fcall(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    let entry = call.keys.get(&key_of_name(&args[0]));
    let Some(Data::String(text)) = entry.map(|entry| &entry.data) else {
        return Expect::Error("ERR Function not found");
    };
    let text = String::from_utf8_lossy(text);
    let version = between(&text, "version = '", "'").as_bytes().to_vec();
    if args[0].starts_with(b"w") {
        call.set(&args[2], args[3].clone(), None);
    }
    Expect::bulk(&version)
}
