//! What happens between a connection and its worker: pauses, kills, half-closed sockets, clients that read
//! slowly or not at all, monitors that leave, limits that are reached.
//!
//! Every test asserts an order or an outcome. Where two threads race, the test repeats the race and accepts
//! what either order allows and nothing else. Replies of single commands are in the golden scripts.

mod ahead;
mod cached;
mod held_back;
mod killed;
mod parked;
mod slow;
mod told;

use crate::support;

use std::time::Duration;

use support::{
    Client, Link, PATIENCE, Target, Value, bulk, eventually, info_text as info, integer, ok,
};

const ONE: Target = Target::Ferrite { threads: 1 };
const TWO: Target = Target::Logged { threads: 2 };

/// How long to listen for something that must not come.
const SILENCE: Duration = Duration::from_millis(50);

fn read(client: &mut Client) -> Value {
    client
        .read(PATIENCE)
        .unwrap_or_else(|link| panic!("no reply: {link}"))
}

fn id_of(client: &mut Client) -> i64 {
    integer(&client.ask("CLIENT ID"))
}

/// A field of a connection's line of CLIENT LIST; none when it is not listed.
fn listed(asker: &mut Client, id: i64, field: &str) -> Option<String> {
    let line = asker.ask(&format!("CLIENT LIST ID {id}")).text();
    let field = format!("{field}=");
    line.split_whitespace()
        .find_map(|pair| pair.strip_prefix(&field).map(str::to_owned))
}

/// The field of INFO that counts who was disconnected for leaving replies unread.
const DISCONNECTIONS: &str = "client_output_buffer_limit_disconnections";

/// A value that no socket takes at once.
const BIG: usize = 32 << 20;

fn store_big(client: &mut Client) {
    let value = "v".repeat(BIG);
    assert_eq!(client.call(&["SET", "big", &value]).expect("a reply"), ok());
}

fn is_big(value: Result<Value, Link>) -> bool {
    matches!(value, Ok(Value::Bulk(bytes)) if bytes.len() == BIG && bytes.iter().all(|&byte| byte == b'v'))
}
