//! Publish and subscribe between many connections on several workers: who is counted is told, once and in
//! order, and who doesn't read holds nobody up.
//!
//! Replies of single commands are in the golden scripts. Nothing here compares a time; where threads race,
//! every outcome that an order of events allows is accepted and nothing else.

mod counted;
mod order;
mod unread;

use crate::support;

use support::{Client, PATIENCE, Target, Value, eventually, info, integer};

const TWO: Target = Target::Ferrite { threads: 2 };
const FOUR: Target = Target::Ferrite { threads: 4 };

fn read(client: &mut Client) -> Value {
    client
        .read(PATIENCE)
        .unwrap_or_else(|link| panic!("nothing came: {link}"))
}

/// The parts of a message or confirmation, as text.
fn parts(value: &Value) -> Vec<String> {
    match value {
        Value::Push(parts) | Value::Array(parts) => parts.iter().map(Value::text).collect(),
        other => panic!("not a message: {other:?}"),
    }
}

/// Sends a request and returns its reply's parts together with the messages that came before it.
fn confirmed(client: &mut Client, words: &[&str], messages: &mut Vec<Vec<String>>) -> Vec<String> {
    client.send(words).expect("the server reads");
    let word = words[0].to_ascii_lowercase();
    loop {
        let got = parts(&read(client));
        if got[0] == word {
            return got;
        }
        messages.push(got);
    }
}
