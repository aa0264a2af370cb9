//! Flows: the same bytes sent to redis-server and to Ferrite by clients that write, read and finish in every
//! order. The replies and what the data is afterwards have to agree.
//!
//! A flow is some requests, or the beginning of some, made from a seed. Each server gets it three times, from
//! an empty keyspace: by a client that finishes sending behind the last byte and reads to the end, and by two
//! that finish when they have all replies. How a client cuts its bytes, and when it reads, comes from the
//! seed too. Redis drops what it has not sent yet when its peer has finished, so its replies to the first one
//! are a beginning of ours.
//!
//! `FERRITE_FLOWS=10000 FERRITE_SEED=1` runs as many from a seed (`make flows`); one alone is written to a
//! file, too.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};

use crate::support::{Client, PATIENCE, Server, Target, encode_request};

fn env(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is a number")),
    )
}

#[test]
fn clients_that_write_and_read_in_any_order_get_what_redis_answers() {
    let flows = env("FERRITE_FLOWS").unwrap_or(60);
    let seed = env("FERRITE_SEED").unwrap_or(1);
    let redis = Server::start(Target::Redis, &["--enable-debug-command", "yes"]);
    let ferrites = [
        ("epoll", &["--io", "epoll"][..]),
        ("portable", &["--io", "portable"]),
        ("auto", &["--io", "auto", "--log-blob-size", "16kb"]),
    ]
    .map(|(io, options)| (io, Server::start(Target::Logged { threads: 2 }, options)));
    for number in seed..seed + flows {
        let bytes = flow(&mut Rng::with_seed(number));
        if flows == 1 {
            let file = concat!(env!("CARGO_TARGET_TMPDIR"), "/flow");
            std::fs::write(file, &bytes).expect("the build's folder is writable");
            eprintln!("flow {number} is in {file}");
        }
        // The way of each client.
        let mut ways = Rng::with_seed(number ^ 0x5eed);
        let (io, ferrite) = &ferrites[number as usize % ferrites.len()];
        let what = format!(
            "flow {number} on {io}, {} bytes: {}",
            bytes.len(),
            shown(&bytes)
        );
        let of_redis = format!("redis-server, {what}");
        let finishing = run(&what, ferrite, &bytes, &mut ways, End::AtOnce);
        let until = End::Behind(finishing.replies.len());
        let waiting = run(&what, ferrite, &bytes, &mut ways, until);
        finishing.compare(&waiting, "Ferrite", "itself, not half-closed", &what);
        let redis_waiting = run(&of_redis, &redis, &bytes, &mut ways, until);
        finishing.compare(&redis_waiting, "Ferrite", "Redis", &what);
        let redis_finishing = run(&of_redis, &redis, &bytes, &mut ways, End::AtOnce);
        assert!(
            finishing.replies.starts_with(&redis_finishing.replies),
            "{}: Redis answers a half-closed client something else",
            what
        );
        assert_eq!(finishing.digest, redis_finishing.digest, "{what}");
    }
}

/// When a client finishes sending.
#[derive(Clone, Copy)]
enum End {
    /// Behind its last byte.
    AtOnce,
    /// When it has so many bytes of replies.
    Behind(usize),
}

/// What came of a flow.
struct Outcome {
    replies: Vec<u8>,
    digest: String,
}

impl Outcome {
    fn compare(&self, other: &Outcome, one: &str, another: &str, what: &str) {
        if self.replies != other.replies {
            let same = self.replies.iter().zip(&other.replies);
            let at = same.take_while(|(own, other)| own == other).count();
            let part = |bytes: &[u8]| {
                let from = at.saturating_sub(40).min(bytes.len());
                shown(&bytes[from..])
            };
            panic!(
                "{}\nreplies differ at byte {at}:\n{one} ({} bytes): {}\n{another} ({} bytes): {}",
                what,
                self.replies.len(),
                part(&self.replies),
                other.replies.len(),
                part(&other.replies),
            );
        }
        assert_eq!(
            self.digest, other.digest,
            "{}: {one} and {another} hold other data",
            what
        );
    }
}

fn shown(bytes: &[u8]) -> String {
    bytes[..bytes.len().min(600)].escape_ascii().to_string()
}

/// Sends a flow to an empty server.
fn run(what: &str, server: &Server, bytes: &[u8], ways: &mut Rng, end: End) -> Outcome {
    let mut admin = server.client();
    admin.ask("FLUSHALL");
    let stream = TcpStream::connect(server.addr()).expect("the server accepts");
    if ways.u8(..4) == 0 {
        set_socket_recv_buffer_size(&stream, 64 << 10).expect("a size");
        set_socket_send_buffer_size(&stream, 64 << 10).expect("a size");
    }
    stream.set_nodelay(true).expect("a TCP socket");
    stream.set_write_timeout(Some(PATIENCE)).expect("a time");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time");
    let pieces = cut(bytes, ways);
    let reads_meanwhile = ways.bool();
    let chunk = [7, 4096, 1 << 20][if bytes.len() > 10_000 {
        ways.usize(1..3)
    } else {
        ways.usize(..3)
    }];
    let is_slow = ways.u8(..8) == 0;
    let most = match end {
        End::AtOnce => usize::MAX,
        End::Behind(most) => most,
    };
    let mut replies = Vec::new();
    thread::scope(|scope| {
        let writer = || {
            let mut stream = &stream;
            for piece in &pieces {
                match stream.write_all(piece) {
                    Ok(()) => {}
                    // The server has closed: an error of the protocol, or QUIT.
                    Err(error) if is_closed(&error) => return,
                    Err(error) => panic!("{what}: the server does not read on: {error}"),
                }
            }
            if matches!(end, End::AtOnce) {
                // It may be closed already.
                let _ = stream.shutdown(Shutdown::Write);
            }
        };
        if reads_meanwhile {
            scope.spawn(writer);
        } else {
            writer();
        }
        read(what, &stream, &mut replies, most, chunk, is_slow);
    });
    let _ = stream.shutdown(Shutdown::Write);
    // More than was asked for is a difference.
    read(what, &stream, &mut replies, usize::MAX, 1 << 20, false);
    Outcome {
        digest: digest(&mut admin),
        replies,
    }
}

fn is_closed(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset
    )
}

/// Reads until there are so many bytes, or the server closes.
fn read(
    what: &str,
    mut stream: &TcpStream,
    replies: &mut Vec<u8>,
    most: usize,
    chunk: usize,
    is_slow: bool,
) {
    let mut buffer = vec![0; chunk];
    while replies.len() < most {
        match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => replies.extend_from_slice(&buffer[..count]),
            // It has closed with something unread.
            Err(error) if is_closed(&error) => return,
            Err(error) => {
                let (end, len) = (&replies[replies.len().saturating_sub(60)..], replies.len());
                panic!(
                    "{what}: no reply behind {len} bytes: {error}: {}",
                    shown(end)
                );
            }
        }
        if is_slow {
            thread::sleep(Duration::from_micros(300));
        }
    }
}

/// The state of the data, when what was sent has run: the server has closed the connection by then.
fn digest(admin: &mut Client) -> String {
    admin.ask("DEBUG DIGEST").text()
}

/// Whole, in pieces, or byte by byte.
fn cut<'b>(bytes: &'b [u8], ways: &mut Rng) -> Vec<&'b [u8]> {
    let longest = match ways.u8(..4) {
        0 if bytes.len() < 2000 => 1,
        1 => 40.max(bytes.len() / 200),
        2 => 20_000,
        _ => usize::MAX,
    };
    let mut pieces = Vec::new();
    let mut left = bytes;
    while !left.is_empty() {
        let len = ways.usize(1..=longest.min(left.len()));
        let (piece, behind) = left.split_at(if longest == usize::MAX {
            left.len()
        } else {
            len
        });
        pieces.push(piece);
        left = behind;
    }
    pieces
}

/// Requests, of which the last may be cut.
fn flow(random: &mut Rng) -> Vec<u8> {
    let mut bytes = Vec::new();
    if random.u8(..12) == 0 {
        // More than all sockets hold, in both directions.
        let key = "k".repeat(random.usize(200..1000));
        bytes.extend(encode_request(&[
            "SET",
            &key,
            &"v".repeat(random.usize(..2000)),
        ]));
        let count = random.usize(5000..20_000);
        bytes.extend(encode_request(&["GET", &key]).repeat(count));
    }
    // A server that closes with something unread resets the connection, and what it had sent may be lost:
    // nothing follows an end. A message that a transaction sends to its own connection comes behind the reply
    // of EXEC here, and in the middle of it from Redis.
    let left_out = ["MULTI", "PUBLISH"][random.usize(..2)];
    for _ in 0..random.usize(1..60) {
        let words = request(random);
        if words[0] != left_out {
            add(&mut bytes, &words, random);
        }
    }
    if random.u8(..6) == 0 {
        let ends: [&[u8]; 5] = [
            b"QUIT\r\n",
            b"*x\r\n",
            b"*1\r\n$-1\r\n",
            b"SET \"k\r\n",
            b"*1\r\n+\r\n",
        ];
        bytes.extend(ends[random.usize(..ends.len())]);
    }
    if random.u8(..4) == 0 {
        bytes.truncate(random.usize(..=bytes.len()));
    }
    bytes
}

fn key(random: &mut Rng) -> String {
    format!("k{}", random.u8(..8))
}

fn value(random: &mut Rng) -> String {
    let len = match random.u8(..40) {
        0 => random.usize(100_000..700_000),
        1..4 => random.usize(10_000..40_000),
        _ => random.usize(..30),
    };
    let letter = random.lowercase();
    letter.to_string().repeat(len)
}

/// One request, in one form or the other.
fn add(bytes: &mut Vec<u8>, words: &[String], random: &mut Rng) {
    let is_plain = |word: &String| !word.is_empty() && word.len() < 1000;
    if random.u8(..4) == 0 && words.iter().all(is_plain) {
        bytes.extend(words.join(" ").into_bytes());
        bytes.extend(b"\r\n");
    } else {
        bytes.extend(encode_request(words));
    }
}

fn request(random: &mut Rng) -> Vec<String> {
    let many = |name: &str, count: usize| {
        let names = (0..count).map(|number| format!("n{number}"));
        std::iter::once(name.to_owned()).chain(names).collect()
    };
    let (one, other) = (key(random), key(random));
    let line = match random.u8(..48) {
        0..6 => return vec!["SET".into(), one, value(random)],
        6..8 => return vec!["APPEND".into(), one, value(random)],
        8 => return vec!["GETSET".into(), one, value(random)],
        9 => return vec!["MSET".into(), one, value(random), other, value(random)],
        10 => return vec!["ECHO".into(), value(random)],
        11 if random.u8(..8) == 0 => return many("EXISTS", random.usize(2000..6000)),
        12 if random.u8(..8) == 0 => return many("MGET", random.usize(2000..6000)),
        13 if random.u8(..6) == 0 => "SAVE".into(),
        15 if random.u8(..3) == 0 => "RESET".into(),
        16 if random.u8(..3) == 0 => "HELLO 9".into(),
        17 => "DEBUG SLEEP 0".into(),
        18 => "CLIENT REPLY SKIP".into(),
        19 => "CLIENT REPLY OFF".into(),
        20..23 => "CLIENT REPLY ON".into(),
        23 => "MULTI".into(),
        24..26 => "EXEC".into(),
        26 => "DISCARD".into(),
        27 => format!("WATCH {one}"),
        // One channel: in which order several are left is no promise.
        28 => "SUBSCRIBE c".into(),
        29..31 => "UNSUBSCRIBE".into(),
        31 => "PUBLISH c message".into(),
        32 => "WAIT 0 0".into(),
        33 => format!("SELECT {}", random.u8(..2)),
        34 => "KEYS nothing*".into(),
        35 => "DBSIZE".into(),
        36 => format!("INCR {one}"),
        37 => format!("DEL {one} {other}"),
        38 => format!("STRLEN {one}"),
        39 => format!("GETRANGE {one} {} {}", random.i8(..), random.i8(..)),
        40 => format!("SETRANGE {one} {} xyz", random.u16(..3000)),
        41 => format!("MGET {one} {other}"),
        42 => format!("RENAME {one} {other}"),
        43 => format!("GET {one} {other}"),
        44 => "NOSUCH".into(),
        _ => format!("GET {one}"),
    };
    line.split(' ').map(str::to_owned).collect()
}
