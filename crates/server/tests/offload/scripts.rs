//! Scripts that need values that are in the log alone: they begin again when these are in memory, as long as
//! they have had no effect.

use super::support::{Client, Server, Value};
use super::{TWO, info, set_cold};

/// Bytes of a value.
const LEN: usize = 5000;

/// Runs a script on keys. Returns its reply, and how often it began again.
fn eval(client: &mut Client, text: &str, keys: &[&str]) -> (Value, u64) {
    let before = info(client, "script_restarts");
    let count = keys.len().to_string();
    let words = [&["EVAL", text, &count], keys].concat();
    let reply = client.call(&words).expect("the server replies");
    (reply, info(client, "script_restarts") - before)
}

/// A sum of the lengths of so many keys, one GET after the other.
fn lengths(count: usize) -> String {
    let terms: Vec<String> = (1..=count)
        .map(|at| format!("#redis.call('get', KEYS[{at}])"))
        .collect();
    format!("return {}", terms.join(" + "))
}

#[test]
fn a_script_begins_again_for_each_command_that_needs_a_cold_value() {
    let server = Server::start(TWO, &[]);
    let mut client = server.client();
    for key in ["a", "b", "c"] {
        set_cold(&mut client, key, LEN);
    }
    client.ask("SET here x");
    let all = Value::Int(3 * LEN as i64 + 1);
    let keys = ["a", "here", "b", "c"];
    assert_eq!(eval(&mut client, &lengths(4), &keys), (all.clone(), 3));
    // One command needs them all.
    for key in ["a", "b", "c"] {
        set_cold(&mut client, key, LEN);
    }
    let at_once = "local t = redis.call('mget', unpack(KEYS)) return #t[1] + #t[2] + #t[3] + #t[4]";
    assert_eq!(eval(&mut client, at_once, &keys), (all, 1));
}

#[test]
fn a_script_that_has_had_an_effect_does_not_begin_again() {
    let server = Server::start(TWO, &[]);
    let mut client = server.client();
    set_cold(&mut client, "a", LEN);
    let text = "redis.call('incr', KEYS[2]) return #redis.call('get', KEYS[1])";
    let reply = eval(&mut client, text, &["a", "n"]);
    assert_eq!(reply, (Value::Int(LEN as i64), 0));
    // The first needs a value before it has an effect.
    set_cold(&mut client, "a", LEN);
    let text = "local n = #redis.call('get', KEYS[1]) redis.call('incr', KEYS[2]) return n";
    let reply = eval(&mut client, text, &["a", "n"]);
    assert_eq!(reply, (Value::Int(LEN as i64), 1));
    assert_eq!(client.ask("GET n"), Value::Bulk(b"2".to_vec()));
}

/// However many values are cold, the server is not kept busy by beginnings.
#[test]
fn a_script_begins_again_a_few_times_only() {
    const KEYS: usize = 40;
    let server = Server::start(TWO, &[]);
    let mut client = server.client();
    let names: Vec<String> = (0..KEYS).map(|at| format!("key:{at}")).collect();
    for name in &names {
        set_cold(&mut client, name, LEN);
    }
    let keys: Vec<&str> = names.iter().map(String::as_str).collect();
    let (reply, restarts) = eval(&mut client, &lengths(KEYS), &keys);
    assert_eq!(reply, Value::Int((KEYS * LEN) as i64));
    assert!((1..=8).contains(&restarts), "{restarts}");
}
