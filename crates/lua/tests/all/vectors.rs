//! Scripts and their replies, as redis-server gives them: the files in `tests/vectors`.
//!
//! ```text
//!   # a remark
//!   > the script        bytes that are not printable, and `\`, as \n, \r, \\, \xHH
//!   < the reply         in RESP2; the script's SHA is `SHA`
//!   = our reply         only where it differs on purpose, after a remark that says why
//! ```
//!
//! `UPDATE_VECTORS=1 cargo test -p ferrite-lua --test all vectors` asks redis-server for the replies anew,
//! and writes them. New scripts need no reply. Keys of a script are `k`, arguments `v`; each file has a new
//! server.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::{Fake, eval, state};

struct Vector {
    /// Remarks and empty lines in front.
    remarks: Vec<String>,
    script: Vec<u8>,
    reply: Option<Vec<u8>>,
    /// The reply that we give on purpose.
    ours: Option<Vec<u8>>,
}

#[test]
fn replies_are_those_of_redis_server() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let mut wrong = Vec::new();
    let mut count = 0;
    for path in files(&folder) {
        let text = fs::read_to_string(&path).expect("vectors are text");
        let (mut vectors, end) = parse(&text);
        if std::env::var_os("UPDATE_VECTORS").is_some() {
            let mut server = Server::start();
            for vector in &mut vectors {
                vector.reply = Some(server.eval(&vector.script));
            }
            fs::write(&path, write(&vectors, &end)).expect("the folder is writable");
        }
        let mut state = state();
        let mut host = Fake::default();
        for vector in &vectors {
            count += 1;
            let reply = eval(&mut state, &mut host, &vector.script);
            let expected = vector.ours.as_ref().or(vector.reply.as_ref());
            if expected != Some(&reply) {
                wrong.push(format!(
                    "{}\n  > {}\n  < {}\n  = {}",
                    path.file_name().unwrap_or_default().display(),
                    escape(&vector.script),
                    expected.map(|reply| escape(reply)).unwrap_or_default(),
                    escape(&reply)
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {count} replies are others:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("there are vectors");
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("the folder is readable").path())
        .collect();
    files.sort();
    files
}

/// The vectors of a file, and the lines after the last.
fn parse(text: &str) -> (Vec<Vector>, Vec<String>) {
    let mut vectors: Vec<Vector> = Vec::new();
    let mut remarks = Vec::new();
    for line in text.lines() {
        let (kind, rest) = line.split_at(line.len().min(2));
        let last = vectors.last_mut();
        match (kind, last) {
            ("> ", _) => vectors.push(Vector {
                remarks: std::mem::take(&mut remarks),
                script: unescape(rest),
                reply: None,
                ours: None,
            }),
            ("< ", Some(last)) => last.reply = Some(unescape(rest)),
            ("= ", Some(last)) => last.ours = Some(unescape(rest)),
            _ => remarks.push(line.to_owned()),
        }
    }
    (vectors, remarks)
}

fn write(vectors: &[Vector], end: &[String]) -> String {
    let mut text = String::new();
    for vector in vectors {
        for remark in &vector.remarks {
            text.push_str(&format!("{remark}\n"));
        }
        text.push_str(&format!("> {}\n", escape(&vector.script)));
        if let Some(reply) = &vector.reply {
            text.push_str(&format!("< {}\n", escape(reply)));
        }
        if let Some(ours) = &vector.ours {
            text.push_str(&format!("= {}\n", escape(ours)));
        }
    }
    for line in end {
        text.push_str(&format!("{line}\n"));
    }
    text
}

fn escape(bytes: &[u8]) -> String {
    let mut text = String::new();
    for &byte in bytes {
        match byte {
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\\' => text.push_str("\\\\"),
            b' '..=b'~' => text.push(byte.into()),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text
}

fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let (&kind, after) = rest.split_first().expect("an escape has a letter");
        rest = after;
        match kind {
            b'n' => bytes.push(b'\n'),
            b'r' => bytes.push(b'\r'),
            b'\\' => bytes.push(b'\\'),
            b'x' => {
                let digits = std::str::from_utf8(&rest[..2]).expect("digits are text");
                bytes.push(u8::from_str_radix(digits, 16).expect("two digits"));
                rest = &rest[2..];
            }
            _ => panic!("unknown escape in {text}"),
        }
    }
    bytes
}

/// A redis-server of its own.
pub(crate) struct Server {
    process: Child,
    stream: BufReader<TcpStream>,
}

impl Server {
    pub(crate) fn start() -> Server {
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .expect("a port is free")
            .port();
        let process = Command::new("redis-server")
            .args([
                "--port",
                &port.to_string(),
                "--save",
                "",
                "--appendonly",
                "no",
            ])
            .args(["--dir", &std::env::temp_dir().display().to_string()])
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server is installed");
        let stream = (0..100).find_map(|_| {
            std::thread::sleep(Duration::from_millis(50));
            TcpStream::connect(("127.0.0.1", port)).ok()
        });
        Server {
            process,
            stream: BufReader::new(stream.expect("redis-server listens")),
        }
    }

    fn eval(&mut self, script: &[u8]) -> Vec<u8> {
        self.try_eval(script).expect("redis-server answers")
    }

    /// The reply to a script. `None`: the server has ended, or has been silent for seconds.
    pub(crate) fn try_eval(&mut self, script: &[u8]) -> Option<Vec<u8>> {
        let mut request = Vec::new();
        resp::client::write_request(&mut request, &[b"EVAL", script, b"1", b"k", b"v"]);
        let stream = self.stream.get_mut();
        let timeout = Some(Duration::from_secs(3));
        stream.set_read_timeout(timeout).ok()?;
        stream.write_all(&request).ok()?;
        let mut reply = Vec::new();
        self.read(&mut reply)?;
        Some(without_sha(&reply))
    }

    /// Reads a reply in RESP2.
    fn read(&mut self, reply: &mut Vec<u8>) -> Option<()> {
        let from = reply.len();
        let read = self.stream.read_until(b'\n', reply).ok()?;
        if read == 0 {
            return None;
        }
        let line = String::from_utf8_lossy(&reply[from + 1..reply.len() - 2]).into_owned();
        let len = || -> Option<usize> { line.parse().ok() };
        match reply[from] {
            b'$' => {
                if let Some(len) = len() {
                    let mut bytes = vec![0; len + 2];
                    self.stream.read_exact(&mut bytes).ok()?;
                    reply.extend(bytes);
                }
            }
            b'*' => {
                for _ in 0..len().unwrap_or(0) {
                    self.read(reply)?;
                }
            }
            _ => {}
        }
        Some(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().expect("it is our process");
        self.process.wait().expect("it ends");
    }
}

/// Puts `SHA` in the place of the script's digits.
fn without_sha(reply: &[u8]) -> Vec<u8> {
    let mark = b"script: ";
    let Some(at) = reply.windows(mark.len()).position(|part| part == mark) else {
        return reply.to_vec();
    };
    let digits = at + mark.len();
    let is_sha = reply
        .get(digits..digits + 40)
        .is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
    if !is_sha {
        return reply.to_vec();
    }
    [&reply[..digits], b"SHA", &reply[digits + 40..]].concat()
}
