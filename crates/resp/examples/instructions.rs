//! Counts what parsing a request and writing a reply cost, in instructions.
//!
//! Here live the loops; the counting is valgrind's. Run a case with two numbers of rounds and
//! divide the difference of the totals by the difference of the rounds, so that start and end
//! cancel out:
//!
//! ```text
//! cargo build --release -p ferrite-resp --example instructions
//! for rounds in 1000 11000; do
//!     valgrind --tool=callgrind --callgrind-out-file=/dev/null \
//!         target/release/examples/instructions set16 $rounds
//! done
//! ```

use std::hint::black_box;

use resp::{Limits, Outcome, Protocol, Resume, Writer, client, request};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let case = arguments.next().unwrap_or_else(|| "set16".to_owned());
    let rounds = arguments
        .next()
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(1000);
    match case.as_str() {
        "set16" => parse(&[b"SET", &[b'k'; 16], &[b'v'; 16]], rounds),
        "set1" => parse(&[b"SET", b"k", b"v"], rounds),
        "set500" => parse(&[b"SET", &[b'k'; 16], &[b'v'; 500]], rounds),
        "set_ex" => parse(&[b"SET", &[b'k'; 16], &[b'v'; 16], b"EX", b"60"], rounds),
        "get16" => parse(&[b"GET", &[b'k'; 16]], rounds),
        "ping" => parse(&[b"PING"], rounds),
        "mset10" => {
            let mut args: Vec<&[u8]> = vec![b"MSET"];
            args.extend([&[b'k'; 16][..]; 20]);
            parse(&args, rounds);
        }
        "ok" => write(rounds, |writer| writer.ok()),
        "integer7" => write(rounds, |writer| writer.integer(black_box(7))),
        "integer42" => write(rounds, |writer| writer.integer(black_box(42))),
        "integer_long" => write(rounds, |writer| writer.integer(black_box(1_234_567_890))),
        "bulk16" => write(rounds, |writer| writer.bulk(black_box(&[b'v'; 16]))),
        "bulk500" => write(rounds, |writer| writer.bulk(black_box(&[b'v'; 500]))),
        "bulks16" => write(rounds / 20, |writer| {
            let mut bulks = writer.bulks();
            (0..20).for_each(|_| bulks.put(black_box(&[b'v'; 16])));
            bulks.finish();
        }),
        "null" => write(rounds, |writer| writer.null()),
        _ => eprintln!("no such case: {case}"),
    }
}

/// Parses the same request over and over, 16 per buffer, as a pipeline arrives.
fn parse(args: &[&[u8]], rounds: usize) {
    const PIPELINE: usize = 16;
    let mut input = Vec::new();
    for _ in 0..PIPELINE {
        client::write_request(&mut input, args);
    }
    let limits = Limits::default();
    let (mut resume, mut spans) = (Resume::default(), Vec::with_capacity(args.len() * PIPELINE));
    for _ in 0..rounds / PIPELINE {
        let mut at = 0;
        spans.clear();
        while at < input.len() {
            match request::parse(black_box(&mut input), at, &limits, &mut resume, &mut spans) {
                Ok(Outcome::Request { end }) => at = end,
                Ok(Outcome::Incomplete { .. }) | Err(_) => {
                    unreachable!("the input holds whole requests")
                }
            }
        }
        assert_eq!(spans.len(), args.len() * PIPELINE);
        black_box(&spans);
    }
}

/// Writes the same reply over and over, 16 per buffer.
fn write(rounds: usize, mut reply: impl FnMut(&mut Writer<'_>)) {
    const PIPELINE: usize = 16;
    let mut out = Vec::with_capacity(64 << 10);
    for _ in 0..rounds / PIPELINE {
        out.clear();
        for _ in 0..PIPELINE {
            reply(&mut Writer::new(
                black_box(&mut out),
                black_box(Protocol::Resp3),
            ));
        }
        black_box(&out);
    }
}
