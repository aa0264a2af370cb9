//! A server that does not keep what it promises, in one way or another: what a verification has to
//! notice.

use resp::Value;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// The last writes are acknowledged and forgotten.
    Forgets,
    /// The last values lose their ends.
    Cuts,
    /// The last MSETs set only their first keys.
    Splits,
    /// The last writes put their values under another key as well.
    Mixes,
}

#[derive(Default)]
struct State {
    values: HashMap<Vec<u8>, Vec<u8>>,
    writes: u64,
}

/// Serves until the test's process ends, and returns the port.
pub(crate) fn start(fault: Fault) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let state = Arc::new(Mutex::new(State::default()));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let state = Arc::clone(&state);
            std::thread::spawn(move || serve(stream, &state, fault));
        }
    });
    port
}

/// Answers until the client has gone.
fn serve(mut stream: TcpStream, state: &Mutex<State>, fault: Fault) -> Option<()> {
    let mut input = Vec::new();
    let mut chunk = [0; 16 << 10];
    loop {
        let mut replies = Vec::new();
        // A request has the form of an array of bulk strings, which the client's parser reads.
        while let Some((value, len)) = resp::parse_value(&input).ok()? {
            input.drain(..len);
            let Value::Array(items) = value else {
                return None;
            };
            let words: Vec<Vec<u8>> = items
                .into_iter()
                .map(|item| match item {
                    Value::Bulk(word) => word,
                    _ => Vec::new(),
                })
                .collect();
            let mut state = state.lock().expect("no thread fails");
            execute(&words, &mut state, fault, &mut replies);
        }
        stream.write_all(&replies).ok()?;
        match stream.read(&mut chunk).ok()? {
            0 => return None,
            count => input.extend_from_slice(&chunk[..count]),
        }
    }
}

fn execute(words: &[Vec<u8>], state: &mut State, fault: Fault, out: &mut Vec<u8>) {
    let name = words[0].to_ascii_uppercase();
    match name.as_slice() {
        b"GET" => match state.values.get(&words[1]) {
            Some(value) => {
                out.extend_from_slice(format!("${}\r\n", value.len()).as_bytes());
                out.extend_from_slice(value);
                out.extend_from_slice(b"\r\n");
            }
            None => out.extend_from_slice(b"$-1\r\n"),
        },
        b"DEL" => {
            for key in &words[1..] {
                state.values.remove(key);
            }
            out.extend_from_slice(b":1\r\n");
        }
        b"SET" | b"MSET" => {
            state.writes += 1;
            write(&words[1..], state, fault);
            out.extend_from_slice(b"+OK\r\n");
        }
        _ => out.extend_from_slice(b"+PONG\r\n"),
    }
}

/// From this write on a fault shows, of nearly 19,000 (the rest of the 20,000 deletes): nothing later makes
/// good what it did.
const FAULTY_FROM: u64 = 18_000;
/// The key that gets what belongs to others.
const MIXED: &[u8] = b"verify:1:0";

fn write(pairs: &[Vec<u8>], state: &mut State, fault: Fault) {
    let is_faulty = state.writes >= FAULTY_FROM;
    if fault == Fault::Forgets && is_faulty {
        return;
    }
    for (index, pair) in pairs.chunks(2).enumerate() {
        let (key, mut value) = (pair[0].clone(), pair[1].clone());
        match fault {
            Fault::Cuts if is_faulty => value.truncate(value.len() / 2),
            Fault::Splits if is_faulty && index > 0 => return,
            Fault::Mixes if is_faulty && key != MIXED => {
                state.values.insert(MIXED.to_vec(), value.clone());
            }
            Fault::Mixes if is_faulty => continue,
            _ => {}
        }
        state.values.insert(key, value);
    }
}
