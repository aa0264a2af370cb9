//! Tests of the parser: whatever the pieces that a stream arrives in, and wherever its bytes are
//! moved meanwhile, it holds the same requests.

use super::*;

/// What a stream holds: its requests up to the first error, and that error.
#[derive(Debug, PartialEq, Default)]
struct Parsed {
    requests: Vec<Args>,
    error: Option<ProtocolError>,
}

/// A connection's buffer as a server keeps it: the bytes not parsed yet start somewhere, and may
/// move.
struct Connection {
    input: Vec<u8>,
    at: usize,
    resume: Resume,
    /// The last call's `need`.
    need: usize,
    parsed: Parsed,
}

impl Connection {
    fn new() -> Connection {
        Connection {
            input: vec![],
            at: 0,
            resume: Resume::default(),
            need: 0,
            parsed: Parsed::default(),
        }
    }

    /// Appends a piece, with the unparsed bytes moved behind `gap` others, and parses all that is
    /// there.
    fn receive(&mut self, piece: &[u8], gap: usize) {
        let mut moved = vec![b'*'; gap];
        moved.extend_from_slice(&self.input[self.at..]);
        moved.extend_from_slice(piece);
        (self.input, self.at) = (moved, gap);
        while self.parsed.error.is_none() && self.parse_next() {}
    }

    fn parse_next(&mut self) -> bool {
        // Spans of earlier requests are still in the list, as in a batch.
        let earlier = Span {
            start: usize::MAX,
            len: 7,
        };
        let mut args = vec![earlier];
        let available = self.input.len() - self.at;
        let outcome = parse(
            &mut self.input,
            self.at,
            &Limits::default(),
            &mut self.resume,
            &mut args,
        );
        assert_eq!(args[0], earlier);
        match outcome {
            Ok(Outcome::Request { end }) => {
                assert!(available >= self.need && self.resume.is_idle());
                assert!(self.at < end && end <= self.input.len());
                assert!(
                    args[1..]
                        .iter()
                        .all(|span| span.start >= self.at && span.start + span.len <= end)
                );
                self.parsed.requests.push(
                    args[1..]
                        .iter()
                        .map(|span| span.of(&self.input).to_vec())
                        .collect(),
                );
                (self.at, self.need) = (end, 0);
                true
            }
            Ok(Outcome::Incomplete { need }) => {
                assert!(args.len() == 1 && need > available);
                assert!(if available < self.need {
                    need == self.need
                } else {
                    need > self.need
                });
                assert_eq!(self.resume.is_idle(), available == 0);
                self.need = need;
                false
            }
            Err(error) => {
                assert!(args.len() == 1 && self.resume.is_idle() && available >= self.need);
                self.parsed.error = Some(error);
                false
            }
        }
    }
}

fn parse_whole(stream: &[u8]) -> Parsed {
    let mut connection = Connection::new();
    connection.receive(stream, 0);
    connection.parsed
}

/// A stream of random requests, and what it holds.
fn random_stream(random: &mut fastrand::Rng) -> (Vec<u8>, Vec<Args>) {
    let (mut stream, mut requests) = (vec![], vec![]);
    for _ in 0..random.usize(1..5) {
        let arg_count = if random.u8(..8) == 0 {
            random.usize(90..110)
        } else {
            random.usize(..6)
        };
        let args: Args = (0..arg_count).map(|_| random_arg(random)).collect();
        if random.u8(..3) == 0 {
            for arg in &args {
                quote(arg, random, &mut stream);
                stream.push(b' ');
            }
            stream.extend_from_slice(if random.bool() { b"\r\n" } else { b"\n" });
        } else {
            let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
            write_request(&mut stream, &args);
        }
        requests.push(args);
    }
    (stream, requests)
}

fn random_arg(random: &mut fastrand::Rng) -> Vec<u8> {
    let len = match random.u8(..20) {
        0 => random.usize(95..105),
        1 => random.usize(995..1005),
        2..6 => random.usize(8..12),
        _ => random.usize(..20),
    };
    (0..len)
        .map(|_| {
            *random
                .choice(b"\r\n\0 '\"\\x41$*abn\xff".iter())
                .expect("there are some")
        })
        .collect()
}

/// Writes an argument in quotes of either kind, in which an inline line can hold any byte.
fn quote(arg: &[u8], random: &mut fastrand::Rng, stream: &mut Vec<u8>) {
    let single = random.bool() && !arg.iter().any(|byte| matches!(byte, b'\n' | b'\0' | b'\\'));
    if single {
        let text = String::from_utf8_lossy(arg);
        if let std::borrow::Cow::Borrowed(text) = text {
            stream.extend_from_slice(format!("'{}'", text.replace('\'', "\\'")).as_bytes());
            return;
        }
    }
    stream.push(b'"');
    for &byte in arg {
        match byte {
            b'"' | b'\\' => stream.extend_from_slice(&[b'\\', byte]),
            b'\n' => stream.extend_from_slice(b"\\n"),
            b'\0' => stream.extend_from_slice(b"\\x00"),
            _ => stream.push(byte),
        }
    }
    stream.push(b'"');
}

#[test]
fn random_streams_hold_what_was_written() {
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..2_000 {
        let (stream, requests) = random_stream(&mut random);
        let parsed = parse_whole(&stream);
        assert_eq!(
            parsed,
            Parsed {
                requests,
                error: None
            },
            "{}",
            stream.escape_ascii()
        );
    }
}

#[test]
fn every_cut_in_two_parses_the_same() {
    let mut random = fastrand::Rng::with_seed(2);
    for _ in 0..50 {
        let (stream, requests) = random_stream(&mut random);
        let expected = Parsed {
            requests,
            error: None,
        };
        for cut in 0..stream.len() {
            let mut connection = Connection::new();
            connection.receive(&stream[..cut], 0);
            connection.receive(&stream[cut..], random.usize(..9));
            assert_eq!(
                connection.parsed,
                expected,
                "cut at {cut}: {}",
                stream.escape_ascii()
            );
        }
    }
}

#[test]
fn headers_of_any_length_may_be_cut_anywhere() {
    // A header that was seen in part is shorter or longer than the next one.
    let args = [100_000, 1, 10_000, 10, 123_456, 1_000, 10_000, 0].map(|len| vec![b'v'; len]);
    let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
    let stream = request_of(&args);
    let headers = (0..stream.len()).filter(|&at| stream[at] == b'$');
    for cut in headers.flat_map(|at| at..(at + 12).min(stream.len())) {
        let mut connection = Connection::new();
        connection.receive(&stream[..cut], 0);
        connection.receive(&stream[cut..], 3);
        assert!(connection.parsed.requests == [args.clone()], "cut at {cut}");
    }
}

#[test]
fn damaged_streams_parse_the_same_however_they_are_cut() {
    let mut random = fastrand::Rng::with_seed(3);
    let mut errors = 0;
    for _ in 0..2_000 {
        let (mut stream, _) = random_stream(&mut random);
        for _ in 0..random.usize(..4) {
            let at = random.usize(..stream.len());
            stream[at] = *random
                .choice(b"\r\n\0 '\"\\x019$*-+\xff".iter())
                .expect("there are some");
        }
        let expected = parse_whole(&stream);
        errors += usize::from(expected.error.is_some());
        let mut connection = Connection::new();
        let most = *random
            .choice([1, 2, 30, 300].iter())
            .expect("there are some");
        let mut rest = &stream[..];
        while !rest.is_empty() && connection.parsed.error.is_none() {
            let (piece, behind) = rest.split_at(random.usize(1..=most).min(rest.len()));
            connection.receive(piece, random.usize(..9));
            rest = behind;
        }
        assert_eq!(connection.parsed, expected, "{}", stream.escape_ascii());
    }
    assert!(errors > 200, "enough of the streams are damaged: {errors}");
}
