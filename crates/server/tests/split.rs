//! A stream of requests gives the same replies however the network cuts it: whole, in two parts at every
//! byte, byte by byte. The expected bytes come from a real redis-server.
//!
//! No test here waits for a time: before the second part is sent, the replies to the requests that are whole
//! in the first part are read, so the server has seen the cut.

use crate::support;

use support::{Client, PATIENCE, Proto, Server, Target, encode_request, parse_value};

/// A request as it is sent, and how many replies it has.
struct Request {
    bytes: Vec<u8>,
    replies: usize,
}

fn request<T: AsRef<[u8]>>(args: &[T]) -> Request {
    Request {
        bytes: encode_request(args),
        replies: 1,
    }
}

fn raw(bytes: &[u8], replies: usize) -> Request {
    Request {
        bytes: bytes.to_vec(),
        replies,
    }
}

/// Requests of every form, small enough to be cut at every byte.
fn small_requests() -> Vec<Request> {
    let binary: Vec<u8> = (0..=255).collect();
    vec![
        raw(b"*1\r\n$4\r\nPING\r\n", 1),
        request(&["FLUSHALL"]),
        request(&["SET", "k", "v"]),
        request(&["GET", "k"]),
        raw(b"PING\r\n", 1),
        raw(b"PING inline\n", 1),
        raw(b"\r\n", 0),
        raw(b"   \n", 0),
        raw(b"*0\r\n", 0),
        raw(b"*-1\r\n", 0),
        raw(b"SET \"quoted key\" \"a\\x41\\r\\n\"\r\n", 1),
        raw(b"GET 'quoted key'\r\n", 1),
        request(&[&b"SET"[..], b"binary", &binary]),
        request(&["GET", "binary"]),
        request(&["SET", "", ""]),
        request(&["GET", ""]),
        request(&["STRLEN", ""]),
        request(&["ECHO", "*1\r\n$4\r\nPING\r\n"]),
        request(&["SET", "protocol", "$-1\r\n*3\r\n"]),
        request(&["GET", "protocol"]),
        request(&["MSET", "a", "1", "b", "2", "c", "3"]),
        request(&["MGET", "a", "missing", "c", "b"]),
        request(&["INCRBY", "a", "41"]),
        request(&["APPEND", "a", "0"]),
        request(&["GETRANGE", "a", "0", "-2"]),
        request(&["NOSUCH", "a", "b"]),
        request(&["GET"]),
        request(&["SET", "k", "v", "EX", "abc"]),
        request(&["INCR", "k"]),
        request(&["SETBIT", "bits", "100", "1"]),
        request(&["BITFIELD", "bits", "GET", "u8", "96", "SET", "u4", "0", "9"]),
        request(&["CONFIG", "GET", "maxmemory-policy"]),
        request(&["LCS", "a", "b", "IDX"]),
        request(&["DEL", "a", "b", "c", "missing"]),
        request(&["EXISTS", "k", "k", "a"]),
        request(&["TYPE", "k"]),
        request(&["SELECT", "1"]),
        request(&["DBSIZE"]),
        request(&["SELECT", "0"]),
        request(&["DBSIZE"]),
        request(&["CLIENT", "REPLY", "ON"]),
        raw(b"*3\r\n$6\r\nclient\r\n$5\r\nreply\r\n$4\r\nskip\r\n", 0),
        raw(b"*1\r\n$4\r\nping\r\n", 0),
        request(&["ECHO", &"x".repeat(600)]),
        request(&["ECHO", "end"]),
    ]
}

/// Requests with values that do not fit into one read.
fn large_requests() -> Vec<Request> {
    let value = |seed: usize, length: usize| -> Vec<u8> {
        (0..length).map(|i| ((i * 31 + seed) % 251) as u8).collect()
    };
    vec![
        raw(b"*1\r\n$4\r\nPING\r\n", 1),
        request(&["FLUSHALL"]),
        request(&[&b"SET"[..], b"k16", &value(1, 16 * 1024)]),
        request(&[&b"SET"[..], b"k100", &value(2, 100_000)]),
        request(&["GET", "k16"]),
        request(&["GET", "k100"]),
        request(&[&b"APPEND"[..], b"k16", &value(3, 70_000)]),
        request(&["STRLEN", "k16"]),
        request(&[
            &b"MSET"[..],
            b"a",
            &value(4, 40_000),
            b"b",
            b"small",
            b"c",
            &value(5, 40_000),
        ]),
        request(&["MGET", "a", "b", "c"]),
        request(&[&b"SET"[..], b"m1", &value(6, 1_100_000)]),
        request(&["GETRANGE", "m1", "1099990", "-1"]),
        request(&["GET", "m1"]),
        request(&["ECHO", "end"]),
    ]
}

/// A stream and, for every request, the replies that a redis-server gave to it.
struct Recorded {
    stream: Vec<u8>,
    /// Where each request ends in the stream, and where its replies end in `replies`.
    ends: Vec<(usize, usize)>,
    replies: Vec<u8>,
}

impl Recorded {
    fn new(requests: &[Request], proto: Proto) -> Self {
        let redis = Server::start(Target::Redis, &[]);
        let mut client = redis.client_with(proto);
        let mut recorded = Self {
            stream: Vec::new(),
            ends: Vec::new(),
            replies: Vec::new(),
        };
        for request in requests {
            client
                .send_bytes(&request.bytes)
                .expect("redis-server reads");
            for _ in 0..request.replies {
                recorded.replies.extend(read_reply_bytes(&mut client));
            }
            recorded.stream.extend_from_slice(&request.bytes);
            recorded
                .ends
                .push((recorded.stream.len(), recorded.replies.len()));
        }
        recorded
    }

    /// How many bytes of replies belong to the requests that are whole within the first `position` bytes.
    fn replies_before(&self, position: usize) -> usize {
        self.ends
            .iter()
            .take_while(|(end, _)| *end <= position)
            .last()
            .map_or(0, |(_, replies)| *replies)
    }

    /// Sends the stream cut at `positions` and checks every reply byte.
    fn check_cut(&self, client: &mut Client, positions: &[usize]) {
        let mut sent = 0;
        let mut received = 0;
        for &position in positions.iter().chain([&self.stream.len()]) {
            client
                .send_bytes(&self.stream[sent..position])
                .expect("the server reads");
            sent = position;
            let due = self.replies_before(position);
            let got = client.read_bytes(due - received, PATIENCE);
            let wanted = &self.replies[received..due];
            assert!(
                got == wanted,
                "cut at {positions:?}: expected {} got {}",
                excerpt(wanted, &got),
                excerpt(&got, wanted)
            );
            received = due;
        }
    }
}

/// The bytes of `this` around the first one that is different from `other`.
fn excerpt(this: &[u8], other: &[u8]) -> String {
    let same = this.iter().zip(other).take_while(|(a, b)| a == b).count();
    let part = &this[same.saturating_sub(40)..this.len().min(same + 40)];
    format!(
        "{} bytes, from {}: {:?};",
        this.len(),
        same.saturating_sub(40),
        String::from_utf8_lossy(part)
    )
}

/// Reads one reply and returns its bytes as they came.
fn read_reply_bytes(client: &mut Client) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let byte = client.read_bytes(1, PATIENCE);
        assert!(
            !byte.is_empty(),
            "no whole reply: {:?}",
            String::from_utf8_lossy(&bytes)
        );
        bytes.extend(byte);
        // Decoding is tried at line ends only: that is where replies end.
        if bytes.ends_with(b"\r\n") && parse_value(&bytes).expect("a valid reply").is_some() {
            return bytes;
        }
    }
}

/// Runs `check` against Ferrite with one and with two threads.
fn on_ferrite(check: impl Fn(&Server)) {
    for threads in [1, 2] {
        check(&Server::start(Target::Ferrite { threads }, &[]));
    }
}

#[test]
fn every_cut_in_two_gives_the_same_replies() {
    let recorded = Recorded::new(&small_requests(), Proto::Resp2);
    on_ferrite(|server| {
        let mut client = server.client();
        recorded.check_cut(&mut client, &[]);
        for position in 1..recorded.stream.len() {
            recorded.check_cut(&mut client, &[position]);
        }
    });
}

#[test]
fn byte_by_byte_gives_the_same_replies() {
    for proto in [Proto::Resp2, Proto::Resp3] {
        let recorded = Recorded::new(&small_requests(), proto);
        let every_byte: Vec<usize> = (1..recorded.stream.len()).collect();
        on_ferrite(|server| recorded.check_cut(&mut server.client_with(proto), &every_byte));
    }
}

#[test]
fn large_requests_can_be_cut_anywhere() {
    let recorded = Recorded::new(&large_requests(), Proto::Resp2);
    // Every byte around the ends of requests and of their headers, and some in between.
    let near_an_end = |position: usize| {
        recorded
            .ends
            .iter()
            .any(|(end, _)| position.abs_diff(*end) < 24)
    };
    let positions = (1..recorded.stream.len())
        .filter(|&position| near_an_end(position) || position % 50_021 == 0);
    let positions: Vec<usize> = positions.collect();
    on_ferrite(|server| {
        let mut client = server.client();
        for &position in &positions {
            recorded.check_cut(&mut client, &[position]);
        }
        let pieces: Vec<usize> = (1..recorded.stream.len())
            .filter(|position| position % 4_099 == 0)
            .collect();
        recorded.check_cut(&mut client, &pieces);
    });
}

/// Streams that end in something which is not the protocol.
const BROKEN: [&[u8]; 10] = [
    b"PING\r\n*x\r\n",
    b"PING\r\n*1\r\n$x\r\n",
    b"PING\r\n*1\r\n$-1\r\n",
    b"PING\r\n*1\r\n:4\r\n",
    b"PING\r\n*2\r\n$4\r\nECHO\r\n!2\r\n",
    b"PING\r\n*2147483648\r\n",
    b"PING\r\n*1\r\n$536870913\r\n",
    b"PING\r\nECHO \"open\r\n",
    b"PING\r\nECHO 'a'b\r\n",
    b"PING\r\n*1\r\n$9999999999999999999\r\n",
];

#[test]
fn errors_are_the_same_wherever_the_cut_is() {
    let redis = Server::start(Target::Redis, &[]);
    on_ferrite(|server| {
        for stream in BROKEN {
            let mut client = redis.client();
            client.send_bytes(stream).expect("redis-server reads");
            let (wanted, closed) = client.read_until_quiet(PATIENCE);
            assert!(
                closed && wanted.starts_with(b"+PONG\r\n-ERR Protocol error"),
                "{wanted:?}"
            );
            for position in 1..stream.len() {
                let mut client = server.client();
                client
                    .send_bytes(&stream[..position])
                    .expect("the server reads");
                if position >= b"PING\r\n".len() {
                    assert_eq!(client.read_bytes(7, PATIENCE), b"+PONG\r\n");
                }
                // The server may have closed the connection by now: what it said is read below either way.
                let _ = client.send_bytes(&stream[position..]);
                let (rest, closed) = client.read_until_quiet(PATIENCE);
                let wanted = if position >= b"PING\r\n".len() {
                    &wanted[7..]
                } else {
                    &wanted[..]
                };
                let shown = String::from_utf8_lossy(&rest);
                assert!(
                    closed && rest == wanted,
                    "{:?} cut at {position}: {shown:?}",
                    String::from_utf8_lossy(stream)
                );
            }
        }
    });
}
