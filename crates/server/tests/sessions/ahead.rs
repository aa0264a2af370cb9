//! Clients that write all they have to say before they read, and those that finish writing and do not read at
//! all.
//!
//! The sockets of these tests block while they write: a server that waits for such a client to read waits for
//! ever.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::thread;

use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};

use super::*;
use crate::support::{Server, encode_request};

const POLLERS: [&str; 2] = ["epoll", "auto"];

/// A socket of either kind.
trait Stream: Read + Write + Send {
    fn finish_sending(&self);
}

impl Stream for TcpStream {
    fn finish_sending(&self) {
        self.shutdown(Shutdown::Write).expect("it is connected");
    }
}

impl Stream for UnixStream {
    fn finish_sending(&self) {
        self.shutdown(Shutdown::Write).expect("it is connected");
    }
}

/// A connection whose buffers are as large as the system makes them, or of this size.
fn tcp(server: &Server, buffers: Option<usize>) -> TcpStream {
    let stream = TcpStream::connect(server.addr()).expect("the server accepts");
    if let Some(bytes) = buffers {
        set_socket_recv_buffer_size(&stream, bytes).expect("a size");
        set_socket_send_buffer_size(&stream, bytes).expect("a size");
    }
    stream.set_read_timeout(Some(PATIENCE)).expect("a time");
    stream.set_write_timeout(Some(PATIENCE)).expect("a time");
    stream
}

fn unix(server: &Server) -> UnixStream {
    let stream = UnixStream::connect(server.dir().join("socket")).expect("the server accepts");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time");
    stream.set_write_timeout(Some(PATIENCE)).expect("a time");
    stream
}

/// Reads exactly these bytes, `times` times.
fn expect(stream: &mut impl Read, bytes: &[u8], times: usize) {
    let mut got = vec![0; bytes.len()];
    for number in 0..times {
        stream
            .read_exact(&mut got)
            .unwrap_or_else(|error| panic!("reply {number}: {error}"));
        assert!(got == bytes, "reply {number} is another");
    }
}

/// All replies until the server closes.
fn rest(stream: &mut impl Read) -> String {
    let mut got = Vec::new();
    stream.read_to_end(&mut got).expect("it ends in order");
    String::from_utf8(got).expect("it is text")
}

/// Sends requests, and nothing more, and reads what comes.
fn finish_with(mut stream: impl Stream, requests: &[u8]) -> String {
    stream.write_all(requests).expect("the server reads");
    stream.finish_sending();
    rest(&mut stream)
}

/// `SET key value`, then as many GETs of it, and after all of them are written, the replies.
fn write_then_read(mut stream: impl Stream, key: &[u8], value: &[u8], count: usize) {
    let set = encode_request(&[b"SET", key, value]);
    stream.write_all(&set).expect("the server reads");
    expect(&mut stream, b"+OK\r\n", 1);
    let gets = encode_request(&[b"GET", key]).repeat(count);
    stream.write_all(&gets).expect("the server reads on");
    let header = format!("${}\r\n", value.len());
    let reply = [header.as_bytes(), value, b"\r\n"].concat();
    expect(&mut stream, &reply, count);
    stream.write_all(b"PING\r\n").expect("the server reads");
    expect(&mut stream, b"+PONG\r\n", 1);
}

#[test]
fn a_pipeline_that_is_written_whole_before_it_is_read_is_answered() {
    for io in POLLERS {
        let server = Server::start(TWO, &["--io", io, "--unixsocket", "socket"]);
        let small = (vec![b'k'; 17], vec![b'v'; 1000]);
        let large = (vec![b'K'; 100_000], vec![b'V'; 100_000]);
        for buffers in [None, Some(2 << 20), Some(64 << 10)] {
            write_then_read(tcp(&server, buffers), &small.0, &small.1, 60_000);
            write_then_read(tcp(&server, buffers), &large.0, &large.1, 300);
        }
        write_then_read(unix(&server), &small.0, &small.1, 60_000);
        write_then_read(unix(&server), &large.0, &large.1, 300);
    }
}

/// A client is stopped at 1 MiB of unsent replies here, and reads until the rest is below that, but not below
/// the half at which it would go on. Then it writes without reading.
#[test]
fn a_client_that_reads_a_part_of_what_stopped_it_may_write_on() {
    const STOP: usize = 1 << 20;
    for io in POLLERS {
        let options = [
            "--io",
            io,
            "--unixsocket",
            "socket",
            "--maxmemory-clients",
            "16mb",
        ];
        let server = Server::start(TWO, &options);
        let mut observer = server.client();
        let mut stream = unix(&server);
        let value = vec![b'v'; 50_000];
        let set = encode_request(&[&b"SET"[..], b"k", &value]);
        stream.write_all(&set).expect("the server reads");
        expect(&mut stream, b"+OK\r\n", 1);
        let gets = encode_request(&["GET", "k"]).repeat(60);
        stream.write_all(&gets).expect("the server reads");
        let mut unsent = || {
            let list = observer.ask("CLIENT LIST").text();
            let mut figures = list.split_whitespace();
            let most = figures
                .by_ref()
                .filter_map(|figure| figure.strip_prefix("omem=")?.parse().ok());
            most.max().unwrap_or(0_usize)
        };
        eventually("the client is stopped", || unsent() > STOP);
        let header = format!("${}\r\n", value.len());
        let reply = [header.as_bytes(), &value, b"\r\n"].concat();
        let mut read = 0;
        while unsent() > STOP - 100_000 {
            expect(&mut stream, &reply, 1);
            read += 1;
        }
        let left = unsent();
        assert!(left > STOP / 2 + 50_000, "{left} bytes are unsent");
        let pings = b"PING\r\n".repeat(500_000);
        stream.write_all(&pings).expect("the server reads on");
        expect(&mut stream, &reply, 60 - read);
        expect(&mut stream, b"+PONG\r\n", 500_000);
    }
}

#[test]
fn large_values_behind_unread_replies_arrive() {
    for io in POLLERS {
        let server = Server::start(TWO, &["--io", io, "--log-blob-size", "1mb"]);
        let mut stream = tcp(&server, None);
        let value = vec![b'v'; 3 << 20];
        let mut requests = encode_request(&[&b"SET"[..], b"k", &value]);
        let get = encode_request(&["GET", "k"]);
        let set = encode_request(&[&b"SET"[..], b"l", &value]);
        (0..10).for_each(|_| requests.extend([&get[..], &get, &set].concat()));
        stream.write_all(&requests).expect("the server reads on");
        let header = format!("${}\r\n", value.len());
        let reply = [header.as_bytes(), &value, b"\r\n"].concat();
        expect(&mut stream, b"+OK\r\n", 1);
        for _ in 0..10 {
            expect(&mut stream, &reply, 2);
            expect(&mut stream, b"+OK\r\n", 1);
        }
    }
}

#[test]
fn a_client_that_publishes_to_itself_or_to_its_like_need_not_read_meanwhile() {
    const MESSAGES: usize = 10_000;
    for io in POLLERS {
        let server = Server::start(TWO, &["--io", io]);
        let text = vec![b'x'; 1000];
        let subscribed = |channel: &str| {
            let mut client = server.client();
            client.ask("HELLO 3");
            client.ask(&format!("SUBSCRIBE {channel}"));
            client
        };
        let publish = |client: &mut Client, channel: &str| {
            let requests = encode_request(&[&b"PUBLISH"[..], channel.as_bytes(), &text]);
            let requests = requests.repeat(MESSAGES);
            client.send_bytes(&requests).expect("the server reads on");
            let (mut pushed, mut counts) = (0, 0);
            while pushed < MESSAGES || counts < MESSAGES {
                match read(client) {
                    Value::Push(_) => pushed += 1,
                    Value::Int(1) => counts += 1,
                    other => panic!("{other:?}"),
                }
            }
        };
        publish(&mut subscribed("own"), "own");
        let pair = [("a", "b"), ("b", "a")].map(|(own, other)| (subscribed(own), other));
        thread::scope(|scope| {
            for (mut client, other) in pair {
                scope.spawn(move || publish(&mut client, other));
            }
        });
    }
}

/// 30 MB of requests behind one that waits.
fn much_behind(first: &str) -> (Vec<u8>, usize) {
    const COUNT: usize = 30_000;
    let set = encode_request(&["SET", "k", &"v".repeat(1000)]).repeat(COUNT);
    ([first.as_bytes(), b"\r\n", &set].concat(), COUNT)
}

#[test]
fn what_is_sent_behind_a_wait_is_read_before_it_is_over() {
    for io in POLLERS {
        let server = Server::start(TWO, &["--io", io]);
        let (mut admin, mut client) = (server.client(), server.client());
        let id = id_of(&mut client);
        let (requests, count) = much_behind("WAIT 1 0");
        client.send_bytes(&requests).expect("the server reads on");
        assert_eq!(admin.ask("EXISTS k"), Value::Int(0));
        assert_eq!(admin.ask(&format!("CLIENT UNBLOCK {id}")), Value::Int(1));
        assert_eq!(read(&mut client), Value::Int(0));
        (0..count).for_each(|_| assert_eq!(read(&mut client), ok()));

        assert_eq!(admin.ask("DEL k"), Value::Int(1));
        admin.ask("CLIENT PAUSE 1000000 WRITE");
        let (requests, count) = much_behind("SET l 1");
        client.send_bytes(&requests).expect("the server reads on");
        assert_eq!(admin.ask("EXISTS k"), Value::Int(0));
        admin.ask("CLIENT UNPAUSE");
        (0..=count).for_each(|_| assert_eq!(read(&mut client), ok()));

        // A transaction that is queued, and one that fails for what it is.
        let (requests, count) = much_behind("MULTI");
        client.send_bytes(&requests).expect("the server reads on");
        assert_eq!(read(&mut client), ok());
        let queued = Value::Simple(b"QUEUED".to_vec());
        (0..count).for_each(|_| assert_eq!(read(&mut client), queued));
        client.ask("DISCARD");
    }
}

#[test]
fn what_is_read_ahead_is_the_clients_own_memory_and_has_a_limit() {
    for io in POLLERS {
        let server = Server::start(TWO, &["--io", io, "--client-query-buffer-limit", "4mb"]);
        let (mut admin, mut client) = (server.client(), server.client());
        let id = id_of(&mut client);
        let requests = encode_request(&["SET", "k", &"v".repeat(1000)]);
        client
            .send_bytes(b"WAIT 1 0\r\n")
            .expect("the server reads");
        client
            .send_bytes(&requests.repeat(2000))
            .expect("the server reads on");
        eventually("what was read ahead", || {
            listed(&mut admin, id, "qbuf") == Some((2000 * requests.len()).to_string())
        });
        let memory: usize = listed(&mut admin, id, "tot-mem")
            .expect("it is there")
            .parse()
            .expect("a number");
        assert!(memory > 2000 * requests.len(), "{memory}");
        let before = info(&mut admin, "client_query_buffer_limit_disconnections");
        // The server may close while this is sent.
        let _ = client.send_bytes(&requests.repeat(20_000));
        assert!(client.is_closed(PATIENCE), "{io}");
        let after = info(&mut admin, "client_query_buffer_limit_disconnections");
        assert_eq!((&*before, &*after), ("0", "1"), "{io}");
        assert_eq!(admin.ask("EXISTS k"), Value::Int(0));
    }
}

#[test]
fn the_end_of_what_a_client_sends_is_not_its_end() {
    for io in POLLERS {
        for fsync in ["always", "everysec", "no"] {
            let options = ["--io", io, "--appendfsync", fsync, "--unixsocket", "socket"];
            let server = Server::start(TWO, &options);
            let each = |requests: &[u8], replies: &str| {
                for got in [
                    finish_with(tcp(&server, None), requests),
                    finish_with(unix(&server), requests),
                ] {
                    assert_eq!(got, replies, "{io} {fsync}");
                }
            };
            each(b"SAVE\r\nSET a 1\r\nGET a\r\n", "+OK\r\n+OK\r\n$1\r\n1\r\n");
            each(b"DEL b\r\nSET a 1", ":0\r\n");
            each(
                b"SET q 1\r\nWAITAOF 1 0 0\r\nPING\r\n",
                "+OK\r\n*2\r\n:1\r\n:0\r\n+PONG\r\n",
            );
            each(b"PING\r\nWAIT 1 0\r\nSET lost 1\r\n", "+PONG\r\n");
            each(b"EXISTS lost\r\n", ":0\r\n");
            let names: Vec<String> = (0..10_000).map(|number| format!("n{number}")).collect();
            let mut exists = vec!["EXISTS"];
            exists.extend(names.iter().map(String::as_str));
            each(
                &[&encode_request(&exists)[..], b"PING\r\n"].concat(),
                ":0\r\n+PONG\r\n",
            );
            exists[0] = "MGET";
            let nils = format!(
                "*{}\r\n{}+PONG\r\n",
                names.len(),
                "$-1\r\n".repeat(names.len())
            );
            each(&[&encode_request(&exists)[..], b"PING\r\n"].concat(), &nils);
            each(b"KEYS nothing\r\nPING\r\n", "*0\r\n+PONG\r\n");
            each(
                b"DEBUG SLEEP 0.1\r\nCONFIG REWRITE\r\nPING\r\n",
                "+OK\r\n-ERR The server is running without a config file\r\n+PONG\r\n",
            );
            let large = [
                &encode_request(&[&b"SET"[..], b"large", &vec![b'x'; 1_000_000]])[..],
                &encode_request(&["APPEND", "large", "y"]),
                &encode_request(&["STRLEN", "large"]),
                &encode_request(&["DEL", "large"]),
            ];
            each(&large.concat(), "+OK\r\n:1000001\r\n:1000001\r\n:1\r\n");
        }
    }
}

#[test]
fn requests_that_need_what_is_on_the_disk_run_though_their_client_has_finished() {
    for io in POLLERS {
        let options = [
            "--io",
            io,
            "--maxmemory",
            "64mb",
            "--maxmemory-policy",
            "offload",
        ];
        let server = Server::start(TWO, &options);
        let mut client = server.client();
        let value = "v".repeat(100_000);
        for number in 0..1500 {
            let set = client.call(&["SET", &format!("f{number}"), &value]);
            assert_eq!(set.expect("a reply"), ok());
        }
        let header = format!("${}\r\n{value}\r\n", value.len());
        for number in 0..150 {
            let requests = format!(
                "GET f{number}\r\nSET g{number} 1\r\nAPPEND f{} x\r\n",
                number + 200
            );
            let got = finish_with(tcp(&server, None), requests.as_bytes());
            assert!(
                got == format!("{header}+OK\r\n:100001\r\n"),
                "{io} {number}: {} bytes",
                got.len()
            );
        }
    }
}

/// A client that sends and never reads: all it has sent is done, though its replies find no room.
#[test]
fn whoever_finishes_and_reads_nothing_is_served_and_given_up() {
    const COUNT: usize = 6000;
    let mut running: Vec<(Server, Vec<TcpStream>)> = Vec::new();
    for io in POLLERS {
        let server = Server::start(TWO, &["--io", io]);
        // Replies that fit into what may wait, and replies that do not.
        let sets: String = (0..100_000)
            .map(|number| format!("SET s{number} 1\r\n"))
            .collect();
        let swaps = (0..COUNT).map(|number| format!("GETSET g {number:010000}\r\n"));
        let swaps: String = std::iter::once("SET g 0\r\n".to_owned())
            .chain(swaps)
            .collect();
        let streams = [sets, swaps].map(|requests| {
            let mut stream = tcp(&server, None);
            stream
                .write_all(requests.as_bytes())
                .expect("the server reads on");
            stream.finish_sending();
            stream
        });
        running.push((server, streams.into()));
    }
    for (server, streams) in &mut running {
        let mut admin = server.client();
        eventually("the last of what was sent", || {
            admin.ask("EXISTS s99999") == Value::Int(1)
        });
        eventually("the last of what has no room for replies", || {
            admin.ask("GET g").text().trim_start_matches('0') == (COUNT - 1).to_string()
        });
        // Who reads after all finds the replies there was room for.
        assert!(rest(&mut streams[0]) == "+OK\r\n".repeat(100_000));
        eventually("the end", || info(&mut admin, "connected_clients") == "1");
    }
}
