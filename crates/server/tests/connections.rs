//! Connections by the thousand, slow and idle ones, other kinds of socket, and the end of the process.
//!
//! Nothing here compares a time; waits are bounded generously and only their order counts.

use crate::support;

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use support::{Client, PATIENCE, Server, Target, Value, encode_request};

const ONE: Target = Target::Ferrite { threads: 1 };
const TWO: Target = Target::Ferrite { threads: 2 };

/// Raises this process's limit of open files as far as it may be; the server inherits it.
fn raise_open_files(needed: u64) {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised).expect("the soft limit may be raised to the hard one");
    let possible = limit.maximum.unwrap_or(u64::MAX);
    assert!(
        possible >= needed,
        "this test needs {needed} open files, the hard limit is {possible} (ulimit -Hn)"
    );
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.addr()).expect("the server accepts");
    stream.set_nodelay(true).expect("a TCP socket");
    stream
        .set_read_timeout(Some(PATIENCE))
        .expect("a timeout above zero");
    stream
}

/// Sends `request` and reads exactly `reply`.
fn exchange(stream: &mut TcpStream, request: &[u8], reply: &[u8]) {
    stream.write_all(request).expect("the server reads");
    expect(stream, reply);
}

fn expect(stream: &mut TcpStream, reply: &[u8]) {
    let mut got = vec![0; reply.len()];
    stream.read_exact(&mut got).expect("the server replies");
    assert_eq!(
        String::from_utf8_lossy(&got),
        String::from_utf8_lossy(reply)
    );
}

/// One line of `INFO section`.
fn info(client: &mut Client, section: &str, field: &str) -> String {
    let text = client.ask(&format!("INFO {section}")).text();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{field}:")));
    line.unwrap_or_else(|| panic!("INFO {section} has no {field}:\n{text}"))
        .to_owned()
}

#[test]
fn ten_thousand_idle_connections_are_cheap() {
    const CONNECTIONS: usize = 10_000;
    const BYTES_EACH: u64 = 2 * 1024;
    raise_open_files(CONNECTIONS as u64 + 2_000);
    let server = Server::start(TWO, &["--maxclients", "10100"]);
    let mut client = server.client();
    // What the server sets up once is not a connection's cost.
    let mut warm: Vec<TcpStream> = (0..50).map(|_| connect(&server)).collect();
    // Often enough to have used every buffer that workers receive into.
    for _ in 0..8 {
        warm.iter_mut()
            .for_each(|stream| exchange(stream, b"PING\r\n", b"+PONG\r\n"));
    }
    let before = server.resident_bytes();

    let mut idle: Vec<TcpStream> = (0..CONNECTIONS).map(|_| connect(&server)).collect();
    idle.iter_mut()
        .for_each(|stream| exchange(stream, b"PING\r\n", b"+PONG\r\n"));
    let connected: usize = info(&mut client, "clients", "connected_clients")
        .parse()
        .expect("a number");
    assert!(connected > CONNECTIONS, "only {connected} connections");
    let each = server.resident_bytes().saturating_sub(before) / CONNECTIONS as u64;
    assert!(
        each < BYTES_EACH,
        "{each} bytes of resident memory for each idle connection"
    );

    // All are served again after they were idle.
    idle.iter_mut()
        .for_each(|stream| exchange(stream, b"ECHO x\r\n", b"$1\r\nx\r\n"));
    drop(idle);
    assert_eq!(client.ask("PING"), Value::Simple(b"PONG".to_vec()));
}

#[test]
fn a_thousand_active_connections_each_get_their_own_replies() {
    const THREADS: usize = 4;
    const CONNECTIONS: usize = 250;
    const ROUNDS: usize = 20;
    raise_open_files(4_000);
    let server = Server::start(TWO, &[]);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let server = &server;
            scope.spawn(move || {
                let mut streams: Vec<TcpStream> =
                    (0..CONNECTIONS).map(|_| connect(server)).collect();
                for round in 0..ROUNDS {
                    let value =
                        |index: usize| format!("{thread}-{index}-{round}").repeat(1 + index % 7);
                    for (index, stream) in streams.iter_mut().enumerate() {
                        let key = format!("key:{thread}:{index}");
                        let mut batch = encode_request(&["SET", &key, &value(index)]);
                        batch.extend(encode_request(&["GET", &key]));
                        stream.write_all(&batch).expect("the server reads");
                    }
                    for (index, stream) in streams.iter_mut().enumerate() {
                        let value = value(index);
                        expect(
                            stream,
                            format!("+OK\r\n${}\r\n{value}\r\n", value.len()).as_bytes(),
                        );
                    }
                }
            });
        }
    });
    assert_eq!(
        server.client().ask("DBSIZE"),
        Value::Int((THREADS * CONNECTIONS) as i64)
    );
}

#[test]
fn connections_beyond_maxclients_are_refused() {
    for target in [Target::Redis, ONE, TWO] {
        let server = Server::start(target, &["--maxclients", "5"]);
        // The connection that waited for the server to come up may not have been counted out yet.
        let mut clients: Vec<Client> = Vec::new();
        let start = Instant::now();
        while clients.len() < 5 {
            assert!(
                start.elapsed() < PATIENCE,
                "{target}: only {} connections accepted",
                clients.len()
            );
            let mut client = server.client();
            if client
                .call(&["PING"])
                .is_ok_and(|reply| reply == Value::Simple(b"PONG".to_vec()))
            {
                clients.push(client);
            }
        }
        let mut refused = server.client();
        let (bytes, closed) = refused.read_until_quiet(PATIENCE);
        assert_eq!(
            String::from_utf8_lossy(&bytes),
            "-ERR max number of clients reached\r\n",
            "{target}"
        );
        assert!(closed, "{target}");
        let rejected = info(&mut clients[0], "stats", "rejected_connections").parse::<u64>();
        assert!(rejected.is_ok_and(|rejected| rejected >= 1), "{target}");

        // The limit can be changed while the server runs, and a place that is left is free again.
        assert_eq!(
            clients[0].ask("CONFIG SET maxclients 6"),
            Value::Simple(b"OK".to_vec()),
            "{target}"
        );
        clients.push(server.client());
        assert_eq!(
            clients[5].ask("PING"),
            Value::Simple(b"PONG".to_vec()),
            "{target}"
        );
        clients.pop();
        let start = Instant::now();
        while !server
            .client()
            .call(&["PING"])
            .is_ok_and(|reply| reply == Value::Simple(b"PONG".to_vec()))
        {
            assert!(
                start.elapsed() < PATIENCE,
                "{target}: the place of a closed connection is not given away"
            );
        }
    }
}

#[test]
fn a_client_that_does_not_read_is_bounded() {
    const VALUE: usize = 10_000;
    const MOST_SENT: usize = 64 << 20;
    const MOST_MEMORY: u64 = 96 << 20;
    let server = Server::start(ONE, &["--client-query-buffer-limit", "32mb"]);
    let mut other = server.client();
    let key = "k".repeat(1_000);
    other
        .call(&[b"SET", key.as_bytes(), "v".repeat(VALUE).as_bytes()])
        .expect("a reply");
    let before = server.resident_bytes();

    // Asks for ten times what it sends and reads nothing, until the server closes.
    let request = encode_request(&["GET", &key]);
    let batch = request.repeat(64);
    let mut greedy = connect(&server);
    greedy
        .set_write_timeout(Some(PATIENCE))
        .expect("a timeout above zero");
    let mut sent = 0;
    let mut grown = 0;
    let stopped = loop {
        match greedy.write(&batch[sent % request.len()..]) {
            Ok(count) => sent += count,
            Err(error) => break error,
        }
        assert!(
            sent < MOST_SENT,
            "the server took {sent} bytes of requests from a client that does not read"
        );
        if sent % (1 << 20) < batch.len() {
            assert_eq!(other.ask("PING"), Value::Simple(b"PONG".to_vec()));
            grown = grown.max(server.resident_bytes().saturating_sub(before));
        }
    };
    assert!(
        grown < MOST_MEMORY,
        "{grown} bytes more for one client that does not read"
    );
    for _ in 0..100 {
        assert_eq!(other.ask("STRLEN missing"), Value::Int(0));
    }

    let has_closed = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
    assert!(has_closed.contains(&stopped.kind()), "{stopped}");
    let field = "client_query_buffer_limit_disconnections";
    assert_eq!(info(&mut other, "stats", field), "1");
    assert_eq!(other.ask("PING"), Value::Simple(b"PONG".to_vec()));
}

#[test]
fn idle_clients_are_closed_after_timeout() {
    for target in [Target::Redis, TWO] {
        let server = Server::start(target, &["--timeout", "1"]);
        let mut idle: Vec<Client> = (0..4).map(|_| server.client()).collect();
        let mut active = server.client();
        idle.iter_mut()
            .for_each(|client| assert_eq!(client.ask("PING"), Value::Simple(b"PONG".to_vec())));
        // The active one asks more often than the timeout, all the time that the others are waited for.
        let start = Instant::now();
        let mut open = idle;
        while !open.is_empty() {
            assert!(
                start.elapsed() < 3 * PATIENCE,
                "{target}: {} idle connections were not closed",
                open.len()
            );
            assert_eq!(
                active.ask("PING"),
                Value::Simple(b"PONG".to_vec()),
                "{target}"
            );
            open.retain_mut(|client| !client.is_closed(Duration::from_millis(20)));
        }
        assert_eq!(
            active.ask("PING"),
            Value::Simple(b"PONG".to_vec()),
            "{target}"
        );
    }
}

#[test]
fn a_unix_socket_has_its_permissions() {
    for target in [Target::Redis, TWO] {
        let dir =
            std::env::temp_dir().join(format!("ferrite-unix-{}-{target}", std::process::id()));
        fs::create_dir_all(&dir).expect("the temporary directory is writable");
        let path = dir.join("s");
        let mut server = Server::start(
            target,
            &[
                "--unixsocket",
                path.to_str().expect("text"),
                "--unixsocketperm",
                "750",
            ],
        );
        let mode = fs::metadata(&path)
            .expect("the socket exists")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o750, "{target}");
        let mut local = Client::connect_unix(&path).expect("the socket accepts");
        assert_eq!(
            local.ask("SET k local"),
            Value::Simple(b"OK".to_vec()),
            "{target}"
        );
        assert_eq!(
            server.client().ask("GET k"),
            Value::Bulk(b"local".to_vec()),
            "{target}"
        );
        let big = "x".repeat(1 << 20);
        assert_eq!(
            local.call(&["ECHO", &big]).expect("a reply"),
            Value::Bulk(big.into_bytes()),
            "{target}"
        );
        let listed = local.ask("CLIENT INFO").text();
        assert!(
            listed.contains(&format!("addr={}:0 ", path.display())),
            "{target}: {listed}"
        );

        // A clean end removes the socket.
        server.signal(Signal::TERM);
        assert!(
            server
                .wait_for_exit()
                .is_some_and(|status| status.success()),
            "{target}"
        );
        assert!(!path.exists(), "{target}");
        crate::support::remove_data(&dir);
    }
}

#[test]
fn ipv6_works_where_there_is_ipv6() {
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        // A machine without IPv6 has nothing to test.
        return;
    }
    for target in [Target::Redis, TWO] {
        let server = Server::start(target, &["--bind", "127.0.0.1", "::1"]);
        let mut client = Client::connect(SocketAddr::from((
            Ipv6Addr::LOCALHOST,
            server.addr().port(),
        )))
        .expect("[::1] accepts");
        assert_eq!(
            client.ask("PING"),
            Value::Simple(b"PONG".to_vec()),
            "{target}"
        );
        let listed = client.ask("CLIENT INFO").text();
        assert!(
            listed.contains(&format!(" laddr=[::1]:{} ", server.addr().port())),
            "{target}: {listed}"
        );
        assert_eq!(
            server.client().ask("PING"),
            Value::Simple(b"PONG".to_vec()),
            "{target}"
        );
    }
}

#[test]
fn signals_and_shutdown_end_the_process_cleanly() {
    type End = fn(&Server);
    let ends: [(&str, End); 3] = [
        ("SIGTERM", |server| server.signal(Signal::TERM)),
        ("SIGINT", |server| server.signal(Signal::INT)),
        ("SHUTDOWN NOSAVE", |server| {
            let reply = server.client().call(&["SHUTDOWN", "NOSAVE"]);
            assert!(reply.is_err(), "SHUTDOWN replied {reply:?}");
        }),
    ];
    for target in [Target::Redis, ONE, TWO] {
        for (name, end) in ends {
            let mut server = Server::start(target, &[]);
            let mut idle = server.client();
            idle.ask("PING");
            end(&server);
            let status = server.wait_for_exit();
            assert_eq!(
                status.and_then(|status| status.code()),
                Some(0),
                "{target}, {name}\n{}",
                server.output()
            );
            assert!(idle.is_closed(PATIENCE), "{target}, {name}");
        }
    }
}

#[test]
fn a_bad_configuration_stops_the_start_and_says_where() {
    for (line, word) in [
        ("maxmemory-policy sometimes", "maxmemory-policy"),
        ("no-such-directive 1", "no-such-directive"),
        ("timeout", "timeout"),
        ("timeout abc", "timeout"),
        ("port 1 2 3", "port"),
        ("maxmemory 12 \"open", "maxmemory"),
    ] {
        let config = [
            "# The third line is wrong.".to_owned(),
            "maxclients 100".to_owned(),
            line.to_owned(),
        ];
        let failure = match Server::try_start(ONE, &config, &[]) {
            Ok(_) => panic!("started with: {line}"),
            Err(failure) => failure,
        };
        assert!(
            failure.status.is_some_and(|status| !status.success()),
            "{line}: {failure}"
        );
        assert!(
            failure.output.contains("server.conf:3") && failure.output.contains(word),
            "{line}: {failure}"
        );
    }
    let failure = Server::try_start(ONE, &[], &["--maxmemory-policy", "sometimes"])
        .err()
        .expect("a bad option");
    assert!(failure.output.contains("--maxmemory-policy"), "{failure}");
}

#[test]
fn what_config_rewrite_wrote_is_read_at_the_next_start() {
    let config = [
        "# Kept.".to_owned(),
        "timeout 77".to_owned(),
        "maxmemory 64mb".to_owned(),
    ];
    let first = Server::try_start(TWO, &config, &[]).unwrap_or_else(|failure| panic!("{failure}"));
    let mut client = first.client();
    for words in [
        "CONFIG SET timeout 88",
        "CONFIG SET loglevel warning",
        "CONFIG REWRITE",
    ] {
        assert_eq!(client.ask(words), Value::Simple(b"OK".to_vec()), "{words}");
    }
    let written =
        fs::read_to_string(first.dir().join("server.conf")).expect("the file is still there");
    assert!(written.contains("# Kept."), "{written}");
    // The first server stays until the end: the file names its directory.

    let lines: Vec<String> = written.lines().map(str::to_owned).collect();
    let second = Server::try_start(TWO, &lines, &[])
        .unwrap_or_else(|failure| panic!("{failure}\n{written}"));
    let mut client = second.client();
    for (name, value) in [
        ("timeout", "88"),
        ("maxmemory", "67108864"),
        ("loglevel", "warning"),
    ] {
        let reply = client.ask(&format!("CONFIG GET {name}"));
        assert_eq!(
            reply,
            Value::Array(vec![Value::Bulk(name.into()), Value::Bulk(value.into())])
        );
    }
}

#[test]
fn a_port_that_is_taken_stops_the_start() {
    let first = Server::start(ONE, &[]);
    let port = first.addr().port().to_string();
    let failure = Server::try_start(ONE, &[], &["--port", &port])
        .err()
        .expect("the port is taken");
    assert!(
        failure.status.is_some_and(|status| !status.success()),
        "{failure}"
    );
    assert!(failure.output.contains(&port), "{failure}");
}
