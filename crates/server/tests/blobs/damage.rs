//! Files of large values that are damaged, too short, or of an earlier build.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::process::Signal;

use super::{SMALL, TWO, call, connect, files, pattern};
use crate::support::{self, Server, Value, bulk, ok};

#[test]
fn a_file_that_ends_too_early_is_named_and_nothing_else_suffers() {
    let server = Server::start(TWO, SMALL);
    let mut client = server.client();
    let value = pattern(3_000_000, 13);
    assert_eq!(call(&mut client, &[b"SET", b"a", &value]), ok());
    let path = &files(&server)[0];
    let file = std::fs::OpenOptions::new().write(true).open(path);
    let file = file.expect("it is there");
    file.set_len(1_000_000).expect("a disk that works");
    // What is left cannot be checked: the checksums were at the end.
    for request in ["GET a", "GETRANGE a 0 99999", "APPEND a x"] {
        expect_damage(&client.ask(request), path, "the file ends too early");
    }
    assert_eq!(client.ask("STRLEN a"), Value::Int(3_000_000));
    assert_eq!(client.ask("SET a b"), ok());
}

/// The reply is an error that names a file and what is wrong with it.
fn expect_damage(reply: &Value, path: &Path, reason: &str) {
    let name = path.file_name().expect("it is a file").to_string_lossy();
    let is_it = matches!(reply, Value::Error(line)
        if line.starts_with(b"IOERR ") && String::from_utf8_lossy(line).contains(&*name)
            && String::from_utf8_lossy(line).contains(reason));
    let short = format!("{reply:?}");
    assert!(is_it, "{name}, {reason}: {short:.300}");
}

/// What is answered before the connection ends, because nothing more is asked for, or because the reply
/// cannot be completed.
fn all_of_the_reply(server: &Server, request: &str) -> Vec<u8> {
    let words: Vec<&str> = request.split(' ').collect();
    let mut reader = connect(server);
    reader
        .write_all(&support::encode_request(&words))
        .and_then(|()| reader.shutdown(std::net::Shutdown::Write))
        .expect("the server reads");
    let mut got = Vec::new();
    let end = reader.read_to_end(&mut got);
    let is_late = end.is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
    assert!(
        !is_late,
        "the connection stays open behind {} bytes",
        got.len()
    );
    got
}

/// Flips a bit of a file.
fn flip(path: &Path, at: u64) {
    let file = fs::OpenOptions::new().read(true).write(true).open(path);
    let file = file.expect("it is there");
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("it is so long");
    byte[0] ^= 4;
    file.write_all_at(&byte, at).expect("a disk that works");
}

#[test]
fn a_flipped_byte_is_never_served() {
    const PIECE: usize = 65_536;
    let server = Server::start(TWO, SMALL);
    let mut client = server.client();
    let (value, other) = (pattern(3_000_000, 14), pattern(70_000, 15));
    assert_eq!(call(&mut client, &[b"SET", b"a", &value]), ok());
    let path = files(&server).remove(0);
    assert_eq!(call(&mut client, &[b"SET", b"b", &other]), ok());
    let limits = ["0", "3mb", "0"];
    flip(&path, PIECE as u64 + 77);
    let piece_1 = "the checksum of piece 1 of 46 ";
    // Past the page cache, through it without memory here, and through it because it is asked for often.
    for limit in limits {
        client.ask(&format!("CONFIG SET maxmemory {limit}"));
        for _ in 0..3 {
            expect_damage(&client.ask("GET a"), &path, piece_1);
            expect_damage(&client.ask("GETRANGE a 70000 70001"), &path, piece_1);
            expect_damage(&client.ask("GETRANGE a 65535 65536"), &path, piece_1);
            for part in [0..PIECE, 2 * PIECE..3_000_000, 2_999_999..3_000_000] {
                let got = client.ask(&format!("GETRANGE a {} {}", part.start, part.end - 1));
                assert!(got == bulk(&value[part.clone()]), "{part:?}");
            }
            let Value::Array(both) = client.ask("MGET b a b") else {
                panic!("MGET answers with an array");
            };
            expect_damage(&both[1], &path, piece_1);
            assert!(both.len() == 3 && both[0] == bulk(&other) && both[2] == bulk(&other));
        }
    }
    // Whatever else reads it says the same.
    for request in ["BITCOUNT a", "APPEND a x", "BACKUP broken"] {
        let Value::Error(line) = client.ask(request) else {
            panic!("{request} reads it");
        };
        let line = String::from_utf8_lossy(&line);
        let is_named = line.contains(piece_1) && !line.contains("broken/");
        assert!(is_named, "{request}: {line}");
    }
    // As in Redis, the reply has no reason.
    for request in ["SAVE", "DEBUG RELOAD"] {
        let told = server.output().matches(piece_1).count();
        assert!(matches!(client.ask(request), Value::Error(_)), "{request}");
        let now = server.output().matches(piece_1).count();
        assert!(now > told, "{request}: {}", server.output());
    }
    // Where the beginning was sent already, nothing but the end of the connection can tell.
    flip(&path, PIECE as u64 + 77);
    flip(&path, 2_900_000);
    for limit in limits {
        client.ask(&format!("CONFIG SET maxmemory {limit}"));
        let got = all_of_the_reply(&server, "GET a");
        match got.strip_prefix(b"$3000000\r\n") {
            Some(got) => assert!(got.len() <= 44 * PIECE && value.starts_with(got)),
            None => assert!(
                got.is_empty() || got.starts_with(b"-IOERR "),
                "{:?}",
                got.len()
            ),
        }
    }
    assert!(server.output().contains("the checksum of piece 44 of 46 "));
    // The way out of it.
    assert_eq!(client.ask("DEL a"), Value::Int(1));
    assert!(!matches!(client.ask("BACKUP whole"), Value::Error(_)));
    assert_eq!(client.ask("SAVE"), ok());
}

#[test]
fn values_of_earlier_builds_are_read_as_before() {
    let mut server = Server::start(TWO, SMALL);
    let mut client = server.client();
    let value = pattern(3_000_000, 16);
    assert_eq!(call(&mut client, &[b"SET", b"a", &value]), ok());
    let path = files(&server).remove(0);
    // Earlier builds ended the file with the block in which the value ends.
    let file = fs::OpenOptions::new().write(true).open(&path);
    let file = file.expect("it is there");
    file.set_len(3_000_000_u64.next_multiple_of(4096))
        .expect("a disk that works");
    server.start_again(TWO, Signal::KILL, SMALL);
    let mut client = server.client();
    for _ in 0..3 {
        assert!(client.ask("GET a") == bulk(&value));
        assert!(client.ask("GETRANGE a 70000 80000") == bulk(&value[70_000..=80_000]));
    }
    assert!(!matches!(client.ask("BACKUP whole"), Value::Error(_)));
    // A value that is sent from its beginning to its end is checked as a whole, before its last piece goes.
    flip(&path, 100_000);
    let got = all_of_the_reply(&server, "GET a");
    assert!(got.len() < 3_000_000, "{}", got.len());
    let reply = client.ask("BITCOUNT a");
    expect_damage(&reply, &path, "the checksum does not match");
}
