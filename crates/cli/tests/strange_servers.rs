//! Servers as no real one should be: which end too early, send nonsense, send byte by byte, say nothing, or
//! say where else to go.

#[path = "strange_servers/files.rs"]
mod files;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output, Stdio};
use std::thread;

/// Serves connections as `serve` does, one after the other, for as long as the test runs; the port.
fn server(serve: impl Fn(TcpStream) + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            serve(stream);
        }
    });
    port
}

/// Reads a request of the client: its words.
fn request(input: &mut impl BufRead) -> Option<Vec<String>> {
    let count: usize = line(input)?.strip_prefix('*')?.parse().ok()?;
    let mut words = Vec::new();
    for _ in 0..count {
        let len: usize = line(input)?.strip_prefix('$')?.parse().ok()?;
        let mut word = vec![0; len + 2];
        input.read_exact(&mut word).ok()?;
        word.truncate(len);
        words.push(String::from_utf8(word).expect("the test sends text"));
    }
    Some(words)
}

fn line(input: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    input.read_line(&mut line).ok()?;
    line.strip_suffix("\r\n").map(str::to_owned)
}

/// A server that answers requests as `reply` says, and hangs up when it says nothing.
fn answering(reply: impl Fn(&[String]) -> Option<String> + Send + 'static) -> u16 {
    server(move |stream| {
        let mut input = BufReader::new(stream.try_clone().expect("a descriptor"));
        while let Some(words) = request(&mut input)
            && let Some(text) = reply(&words)
        {
            if (&stream).write_all(text.as_bytes()).is_err() {
                return;
            }
        }
    })
}

fn run(port: u16, arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ferrite-cli"))
        .args(["-p", &port.to_string()])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the client runs");
    let mut pipe = child.stdin.take().expect("it is piped");
    // Whoever ends early does not read it.
    let _ = pipe.write_all(input.as_bytes());
    drop(pipe);
    child.wait_with_output().expect("it is ours")
}

/// Standard output and error, and the exit code.
fn outcome(output: &Output) -> (String, String, Option<i32>) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        text(&output.stdout),
        text(&output.stderr),
        output.status.code(),
    )
}

#[test]
fn an_early_end_is_told() {
    for before in ["", "$5\r\nab", "*2\r\n:1\r\n"] {
        let port = server(move |mut stream| {
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(before.as_bytes());
        });
        let output = run(port, &["GET", "k"], "");
        let told = "Error: Server closed the connection\n".to_owned();
        assert_eq!(
            outcome(&output),
            (String::new(), told, Some(1)),
            "{before:?}"
        );
    }
}

#[test]
fn nonsense_is_told() {
    for (nonsense, told) in [
        (
            "HTTP/1.1 400 Bad Request\r\n\r\n",
            "Protocol error, unknown reply type 'H'",
        ),
        (":12x\r\n", "Protocol error, malformed line in reply"),
        ("$3\r\nabcde", "Protocol error, malformed payload in reply"),
    ] {
        let port = answering(move |_| Some(nonsense.to_owned()));
        let output = run(port, &["GET", "k"], "");
        let told = format!("Error: {told}\n");
        assert_eq!(outcome(&output), (String::new(), told, Some(1)));
    }
    let deep = "*1\r\n".repeat(1000) + ":1\r\n";
    let port = answering(move |_| Some(deep.clone()));
    let (_, told, code) = outcome(&run(port, &["GET", "k"], ""));
    assert_eq!(code, Some(1));
    assert!(told.contains("nested too deeply"), "{told}");
}

#[test]
fn a_reply_may_come_byte_by_byte() {
    let port = server(|mut stream| {
        let _ = stream.read(&mut [0; 1024]);
        for byte in b"*2\r\n$3\r\na\r\n\r\n%1\r\n+k\r\n#t\r\n" {
            stream.write_all(&[*byte]).expect("the client waits");
            stream.flush().expect("nothing is kept");
        }
    });
    let (text, _, code) = outcome(&run(port, &["--no-raw", "GET", "k"], ""));
    assert_eq!(text, "1) \"a\\r\\n\"\n2) 1# k => (true)\n");
    assert_eq!(code, Some(0));
}

#[test]
fn redirections_are_followed_if_asked_for() {
    let there = answering(|words| {
        Some(match words[0].as_str() {
            "ASKING" => "+OK\r\n".to_owned(),
            "GET" => "+moved here\r\n".to_owned(),
            "INCR" => ":7\r\n".to_owned(),
            other => format!("-ERR {other}\r\n"),
        })
    });
    let here = answering(move |words| {
        Some(match words[0].as_str() {
            "GET" => format!("-MOVED 1234 127.0.0.1:{there}\r\n"),
            "INCR" => format!("-ASK 1234 127.0.0.1:{there}\r\n"),
            "PING" => "-MOVED nonsense\r\n".to_owned(),
            other => format!("-ERR {other}\r\n"),
        })
    });
    let text = |arguments: &[&str]| outcome(&run(here, arguments, "")).0;
    assert_eq!(text(&["-c", "GET", "k"]), "moved here\n");
    assert_eq!(text(&["-c", "INCR", "k"]), "7\n");
    assert_eq!(text(&["-c", "PING"]), "MOVED nonsense\n\n");
    assert!(text(&["GET", "k"]).starts_with("MOVED 1234 "));
}

#[test]
fn a_redirection_that_leads_nowhere_is_told() {
    let gone = crate::support::free_port();
    let here = answering(move |words| {
        Some(match words[0].as_str() {
            "GET" => format!("-MOVED 1234 127.0.0.1:{gone}\r\n"),
            _ => "+still here\r\n".to_owned(),
        })
    });
    let (text, told, code) = outcome(&run(here, &["-c", "GET", "k"], ""));
    let expected = format!("Could not connect to Redis at 127.0.0.1:{gone}: Connection refused\n");
    assert_eq!(
        (text.as_str(), told.as_str(), code),
        ("", expected.as_str(), Some(1))
    );
    // What comes next is asked where it was asked before.
    let (text, told, code) = outcome(&run(here, &["-c"], "GET k\nPING\n"));
    assert_eq!(
        (text.as_str(), told.as_str(), code),
        ("still here\n", expected.as_str(), Some(1))
    );
}

#[test]
fn redirections_in_a_circle_come_to_an_end() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    // A node without an address means itself.
    let reply = format!("-MOVED 1234 :{port}\r\n");
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            if stream.read(&mut [0; 1024]).is_ok_and(|count| count > 0) {
                let _ = stream.write_all(reply.as_bytes());
            }
        }
    });
    let (_, told, code) = outcome(&run(port, &["-c", "GET", "k"], ""));
    assert_eq!(
        told,
        format!("Too many redirections (16), the last: MOVED 1234 :{port}\n")
    );
    assert_eq!(code, Some(1));
}

#[test]
fn loading_gives_up_when_nothing_is_answered() {
    let port = server(|mut stream| {
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let output = run(port, &["--pipe", "--pipe-timeout", "1"], "PING\r\n");
    let (text, told, code) = outcome(&output);
    assert!(text.ends_with("errors: 1, replies: 0\n"), "{text}");
    assert_eq!(told, "No replies for 1 seconds: exiting.\n");
    assert_eq!(code, Some(1));
}

#[test]
fn loading_ends_when_the_server_does() {
    let port = server(|mut stream| {
        let _ = stream.read(&mut [0; 16]);
    });
    let input = "SET k v\r\n".repeat(100_000);
    let (_, told, code) = outcome(&run(port, &["--pipe"], &input));
    assert!(!told.is_empty());
    assert_eq!(code, Some(1));
}

#[test]
fn a_server_without_documentation_will_do() {
    let port = answering(|words| {
        Some(match (words[0].as_str(), words.len()) {
            ("COMMAND", 1) => "*1\r\n*6\r\n+lock\r\n:-2\r\n*0\r\n:1\r\n:1\r\n:1\r\n".to_owned(),
            _ => "-ERR unknown command\r\n".to_owned(),
        })
    });
    let (text, _, _) = outcome(&run(port, &["help", "lock"], ""));
    assert_eq!(text, "\n  LOCK\n\n");
}

#[test]
fn whoever_has_seen_enough_ends_it() {
    let port = answering(|_| Some("+more\r\n".to_owned()));
    let mut child = Command::new(env!("CARGO_BIN_EXE_ferrite-cli"))
        .args(["-p", &port.to_string(), "-r", "-1", "PING"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the client runs");
    let mut first = [0; 5];
    let mut output = child.stdout.take().expect("it is piped");
    output.read_exact(&mut first).expect("it prints for ever");
    drop(output);
    let output = child.wait_with_output().expect("it is ours");
    assert_eq!((&first, output.status.code()), (b"more\n", Some(141)));
    assert!(output.stderr.is_empty());
}
