//! A server with an HTTP port, and an HTTP client of a few lines: what it sends is exactly what a test says.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

use super::support::{PATIENCE, Server, Target};

/// A running server, and where it serves HTTP.
pub(crate) struct Site {
    pub(crate) server: Server,
    pub(crate) http: SocketAddr,
}

/// An answer, taken apart.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The head, in lower case.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let prefix = format!("{name}: ");
        self.head
            .lines()
            .find_map(|line| line.strip_prefix(&*prefix))
    }
}

impl Site {
    /// Starts a server that serves HTTP, with further options.
    pub(crate) fn start(options: &[&str]) -> Site {
        Site::start_with(&[], options)
    }

    /// The same, with lines of a configuration file.
    pub(crate) fn start_with(config: &[String], options: &[&str]) -> Site {
        for _ in 0..5 {
            let probe =
                TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("the loopback has a free port");
            let http = probe.local_addr().expect("a bound socket has an address");
            drop(probe);
            let port = http.port().to_string();
            let mut all = vec!["--http-bind", "127.0.0.1", "--http-port", &port];
            all.extend(options);
            match Server::try_start(Target::Ferrite { threads: 2 }, config, &all) {
                Ok(server) => return Site { server, http },
                // Another process took the port between our look and the server's.
                Err(failure) if failure.output.contains("in use") => {}
                Err(failure) => panic!("{failure}"),
            }
        }
        panic!("no port stays free");
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream =
            TcpStream::connect_timeout(&self.http, PATIENCE).expect("the HTTP port is open");
        stream
            .set_read_timeout(Some(PATIENCE))
            .expect("a timeout can be set");
        stream
    }

    /// Asks for a path and closes.
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.get_with(path, "")
    }

    /// The same, with further header lines.
    pub(crate) fn get_with(&self, path: &str, lines: &str) -> Answer {
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{lines}\r\n",
            self.http
        );
        self.send(request.as_bytes())
    }

    /// Sends bytes on a connection of their own and reads the first answer.
    pub(crate) fn send(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect();
        // A server that refuses early may not take all of it.
        let _ = stream.write_all(bytes);
        read_answer(&mut stream)
            .unwrap_or_else(|| panic!("no answer to {:?}", String::from_utf8_lossy(bytes)))
    }
}

/// Reads one answer; `None` if the connection ends before it is whole.
pub(crate) fn read_answer(stream: &mut TcpStream) -> Option<Answer> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head)
        .expect("a head is text")
        .to_lowercase();
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|word| word.parse().ok())
        .expect("a status line has a code");
    let mut answer = Answer {
        status,
        head,
        body: String::new(),
    };
    let length = answer
        .header("content-length")
        .and_then(|text| text.parse().ok())
        .expect("every answer says how long it is");
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    answer.body = String::from_utf8(body).expect("all bodies are text");
    Some(answer)
}
