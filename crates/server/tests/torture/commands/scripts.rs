//! Effects of scripts on the model. Memory may end before each command that takes some, so a script here has
//! one such command at most, and before all others.

use super::keys::remove_all;
use crate::torture::model::{Call, Expect};

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
