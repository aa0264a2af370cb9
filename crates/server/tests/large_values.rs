//! Large values on their way in and out: the buffer a request arrived in may become the value, so what came
//! before and behind it, and what is done to the value later, must not show.

use crate::support;

use std::io::{Read, Write};
use std::net::TcpStream;

use support::{PATIENCE, Server, Target};

const ONE: Target = Target::Ferrite { threads: 1 };

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.addr()).expect("the server accepts");
    stream
        .set_read_timeout(Some(PATIENCE))
        .expect("a timeout above zero");
    stream
}

/// A request of words of different lengths.
fn encode(words: &[&[u8]]) -> Vec<u8> {
    support::encode_request(words)
}

/// Sends `request` in pieces of `step` bytes and reads exactly `reply`.
fn exchange(stream: &mut TcpStream, request: &[u8], step: usize, reply: &[u8]) {
    for piece in request.chunks(step) {
        stream.write_all(piece).expect("the server reads");
    }
    let mut got = vec![0; reply.len()];
    stream.read_exact(&mut got).expect("the server replies");
    assert!(got == reply, "{} bytes of another reply", got.len());
}

fn bulk(value: &[u8]) -> Vec<u8> {
    let mut reply = format!("${}\r\n", value.len()).into_bytes();
    reply.extend_from_slice(value);
    reply.extend_from_slice(b"\r\n");
    reply
}

/// `len` bytes that differ from each other and between seeds.
fn pattern(len: usize, seed: u8) -> Vec<u8> {
    (0..len)
        .map(|at| ((at as u64 * 2_654_435_761) >> 7) as u8 ^ seed)
        .collect()
}

#[test]
fn values_around_every_threshold_are_kept_exactly() {
    let server = Server::start(ONE, &[]);
    let mut stream = connect(&server);
    let sizes = [
        16_382, 16_383, 16_384, 16_385, 32_700, 32_768, 65_536, 100_000, 1_048_576, 3_000_001,
    ];
    for (seed, len) in sizes.into_iter().enumerate() {
        for (step, options) in [(usize::MAX, 0), (10_007, 1), (usize::MAX, 2), (4096, 0)] {
            let value = pattern(len, seed as u8);
            let mut request: Vec<&[u8]> = vec![b"SET", b"k", &value];
            request.extend([&b"EX"[..], b"100"].iter().take(2 * options));
            if options == 2 {
                request.truncate(3);
                request.push(b"GET");
            }
            let step = step.min(len + 100);
            match options {
                2 => {
                    let before = value.clone();
                    exchange(&mut stream, &encode(&request), step, &bulk(&before));
                }
                _ => exchange(&mut stream, &encode(&request), step, b"+OK\r\n"),
            }
            exchange(&mut stream, &encode(&[b"GET", b"k"]), 100, &bulk(&value));
        }
    }
}

#[test]
fn what_surrounds_a_large_value_in_its_buffer_runs_and_does_not_show() {
    let server = Server::start(ONE, &[]);
    let mut stream = connect(&server);
    let (first, second) = (pattern(200_000, 1), pattern(50_000, 2));
    for cut in [1, 5, 30, 60_000, 199_990, 200_030, 250_000] {
        // Small requests around two large ones, cut at one place: what is behind a value that kept its buffer
        // still runs.
        let requests = [
            encode(&[b"SET", b"small", b"1"]),
            encode(&[b"SET", b"first", &first]),
            encode(&[b"INCR", b"small"]),
            encode(&[b"SET", b"second", &second]),
            encode(&[b"STRLEN", b"first"]),
            encode(&[b"GET", b"small"]),
        ]
        .concat();
        let (head, tail) = requests.split_at(cut);
        stream.write_all(head).expect("the server reads");
        // The server has seen the head by itself when it answers somebody else.
        let mut other = connect(&server);
        exchange(&mut other, b"PING\r\n", 100, b"+PONG\r\n");
        exchange(
            &mut stream,
            tail,
            usize::MAX - 1,
            b"+OK\r\n+OK\r\n:2\r\n+OK\r\n:200000\r\n$1\r\n2\r\n",
        );
        for (key, value) in [(&b"first"[..], &first), (b"second", &second)] {
            exchange(&mut stream, &encode(&[b"GET", key]), 100, &bulk(value));
        }
    }
}

#[test]
fn a_large_value_is_changed_alone() {
    let server = Server::start(ONE, &[]);
    let mut stream = connect(&server);
    let mut value = pattern(70_000, 3);
    let set = encode(&[b"SET", b"k", &value]);
    // Sent twice, so that the second is read into a buffer of its size at once.
    exchange(&mut stream, &set, 70_100, b"+OK\r\n");
    exchange(&mut stream, &set, 70_100, b"+OK\r\n");
    exchange(
        &mut stream,
        &encode(&[b"APPEND", b"k", b"tail"]),
        100,
        b":70004\r\n",
    );
    value.extend_from_slice(b"tail");
    exchange(
        &mut stream,
        &encode(&[b"SETRANGE", b"k", b"0", b"head"]),
        100,
        b":70004\r\n",
    );
    value[..4].copy_from_slice(b"head");
    exchange(&mut stream, &encode(&[b"GET", b"k"]), 100, &bulk(&value));
    exchange(&mut stream, &encode(&[b"COPY", b"k", b"l"]), 100, b":1\r\n");
    exchange(&mut stream, &encode(&[b"GET", b"l"]), 100, &bulk(&value));
}
