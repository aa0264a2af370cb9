//! What a slow, greedy or confused client can do to the HTTP port: nothing to anybody else.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::thread::sleep;
use std::time::Duration;

use super::browser::{Answer, Site, read_answer};
use super::support::PATIENCE;

#[test]
fn what_is_no_plain_request_is_refused_and_the_connection_closed() {
    let site = Site::start(&[]);
    let long = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(9000));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(100));
    for (request, status) in [
        ("POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 405),
        ("DELETE / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 405),
        (
            "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\n\r\nhello",
            413,
        ),
        (
            "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            413,
        ),
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("PING\r\n", 400),
        ("\u{0}\u{1}\u{2}", 400),
        ("GET / HTTP/3.0\r\n\r\n", 400),
        (&long, 431),
        (&many, 431),
    ] {
        let answer = site.send(request.as_bytes());
        let start: String = request.chars().take(40).collect();
        assert_eq!(
            (answer.status, answer.header("connection")),
            (status, Some("close")),
            "{start}"
        );
    }
    assert_eq!(site.get("/healthz").status, 200);
}

#[test]
fn a_connection_serves_request_after_request_however_they_are_cut() {
    let site = Site::start(&[]);
    let request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut stream = site.connect();
    for at in 1..request.len() {
        let (first, rest) = request.split_at(at);
        stream
            .write_all(first.as_bytes())
            .expect("the server reads");
        stream.write_all(rest.as_bytes()).expect("the server reads");
        let answer = read_answer(&mut stream).expect("it is answered");
        assert_eq!(
            (answer.status, answer.header("connection")),
            (200, Some("keep-alive"))
        );
    }
    // Several at once are answered in order, the last one after which the client closes too.
    let last = "HEAD /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let all = format!("{request}GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n{request}{last}");
    stream.write_all(all.as_bytes()).expect("the server reads");
    for status in [200, 404, 200] {
        assert_eq!(
            read_answer(&mut stream).map(|answer| answer.status),
            Some(status)
        );
    }
    let mut rest = String::new();
    stream.read_to_string(&mut rest).expect("the server closes");
    assert!(
        rest.starts_with("HTTP/1.1 200 OK\r\n") && rest.ends_with("\r\n\r\n"),
        "{rest}"
    );
}

#[test]
fn a_client_that_closes_its_half_still_gets_its_answer() {
    let site = Site::start(&[]);
    let mut stream = site.connect();
    stream
        .write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .expect("the server reads");
    stream
        .shutdown(std::net::Shutdown::Write)
        .expect("a half can be closed");
    assert_eq!(
        read_answer(&mut stream).map(|answer| answer.status),
        Some(200)
    );
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).expect("the server closes");
    assert!(rest.is_empty());
}

#[test]
fn idle_and_trickling_connections_lock_nobody_out_and_end() {
    let site = Site::start(&[]);
    // More than there is room for: each further one takes the place of another.
    let mut silent: Vec<TcpStream> = (0..100).map(|_| site.connect()).collect();
    for stream in silent.iter_mut().step_by(2) {
        // It may have been closed by now.
        let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: loc");
    }
    assert_eq!(site.get("/healthz").status, 200);
    let mut client = site.server.client();
    assert_eq!(client.ask("PING").text(), "PONG");
    // A request that comes a byte at a time is not waited for for ever.
    let mut trickling = site.connect();
    let mut byte = [0];
    trickling
        .set_read_timeout(Some(Duration::from_millis(50)))
        .expect("a timeout can be set");
    let is_closed = (0..1200).any(|_| {
        let _ = trickling.write_all(b"x");
        matches!(trickling.read(&mut byte), Ok(0)) || trickling.write_all(b"").is_err() || {
            let failed = trickling.take_error().ok().flatten().is_some();
            failed
                || trickling
                    .peek(&mut byte)
                    .is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset)
        }
    });
    assert!(is_closed, "it was served for a minute");
    assert_eq!(site.get("/healthz").status, 200);
}

#[test]
fn who_does_not_read_holds_nobody_up() {
    let site = Site::start(&[]);
    let ask = "GET /stats.json HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(100);
    let mut deaf: Vec<TcpStream> = (0..8).map(|_| site.connect()).collect();
    for stream in &mut deaf {
        stream
            .set_write_timeout(Some(Duration::from_millis(100)))
            .expect("a timeout can be set");
        for _ in 0..50 {
            // The server stops reading when its answers are not taken.
            if stream.write_all(ask.as_bytes()).is_err() {
                break;
            }
        }
    }
    for _ in 0..10 {
        assert_eq!(site.get("/metrics").status, 200);
        sleep(Duration::from_millis(10));
    }
    let mut client = site.server.client();
    assert_eq!(client.ask("PING").text(), "PONG");
}

/// An address of this machine from which connections come as from another: none of the loopback's.
fn outer_address() -> IpAddr {
    // Nothing is sent: the kernel only looks up which address it would send from.
    let routes = [
        ("0.0.0.0:0", "198.51.100.1:9"),
        ("[::]:0", "[2001:db8::1]:9"),
    ];
    let found = routes.iter().find_map(|(from, to)| {
        let socket = UdpSocket::bind(from).ok()?;
        socket.connect(to).ok()?;
        Some(socket.local_addr().ok()?.ip())
    });
    found.expect("the machine has an address other than the loopback's")
}

/// What somebody on another machine is answered.
fn ask_from_outside(site: &Site, path: &str, host: &str) -> Answer {
    let address = SocketAddr::new(outer_address(), site.http.port());
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).expect("the HTTP port is open");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream
        .write_all(request.as_bytes())
        .expect("the server reads");
    read_answer(&mut stream).expect("it is answered")
}

const OPEN: &[&str] = &["--http-bind", "*", "::*"];
const GUARDED: &[&str] = &["/", "/stats.json", "/metrics", "/dashboard.js", "/nothing"];

#[test]
fn protected_mode_holds_for_strangers_here_as_well() {
    let site = Site::start(OPEN);
    let own = outer_address().to_string();
    for path in GUARDED {
        let answer = ask_from_outside(&site, path, "127.0.0.1");
        assert_eq!(answer.status, 403, "{path}");
        assert!(answer.body.contains("requirepass"), "{}", answer.body);
    }
    // Who looks after the server's life knows no password, and may know it by any name.
    for path in ["/healthz", "/readyz"] {
        let answer = ask_from_outside(&site, path, "balancer.example");
        assert_eq!((answer.status, &*answer.body), (200, "ok\n"), "{path}");
    }
    assert_eq!(site.get("/stats.json").status, 200);
    // It follows the settings as they are now.
    let mut client = site.server.client();
    let mut set = |setting, value| {
        let reply = client.call(&["CONFIG", "SET", setting, value]);
        assert_eq!(reply.expect("it is answered").text(), "OK", "{setting}");
    };
    set("requirepass", "secret");
    assert_eq!(ask_from_outside(&site, "/stats.json", &own).status, 401);
    set("requirepass", "");
    assert_eq!(ask_from_outside(&site, "/stats.json", &own).status, 403);
    set("protected-mode", "no");
    assert_eq!(ask_from_outside(&site, "/stats.json", &own).status, 200);
}

#[test]
fn without_a_password_a_request_is_for_an_address_or_for_a_name_that_is_allowed() {
    let site = Site::start(&[OPEN, &["--protected-mode", "no"]].concat());
    let mut client = site.server.client();
    let outer = |host: &str| ask_from_outside(&site, "/stats.json", host).status;
    let inner = |host: &str| {
        let request = format!("GET /stats.json HTTP/1.1\r\nHost: {host}\r\n\r\n");
        site.send(request.as_bytes()).status
    };
    for host in [
        "evil.example",
        "evil.example:80",
        "127.0.0.1.evil.example",
        "db1",
        "",
    ] {
        assert_eq!((outer(host), inner(host)), (403, 403), "{host}");
    }
    let set = ["CONFIG", "SET", "http-hosts", "db1 Db1.Example"];
    assert_eq!(client.call(&set).expect("it is answered").text(), "OK");
    for host in [
        "db1:9121",
        "DB1.example.",
        "127.0.0.1",
        "[::1]:1",
        "localhost:1",
    ] {
        assert_eq!((outer(host), inner(host)), (200, 200), "{host}");
    }
    assert_eq!((outer("evil.example"), inner("evil.example")), (403, 403));
    // The password of another origin is none that a browser sends by itself.
    client.ask("CONFIG SET requirepass secret");
    assert_eq!((outer("any.example"), inner("any.example")), (401, 403));
}
