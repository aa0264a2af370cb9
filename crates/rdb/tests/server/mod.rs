//! A redis-server of the distribution for a test, on a unix socket in a directory of its own and on no port.

#![allow(dead_code, reason = "every test uses a part")]

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long a server may take to start, to load or to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// A directory of a test's own, removed with it.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new() -> Scratch {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ferrite-rdb-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("the directory for temporary files is writable");
        Scratch(path)
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.join("dump.rdb")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A process that ends with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A redis-server and a connection to it.
pub(crate) struct Redis {
    _process: Process,
    stream: UnixStream,
}

impl Redis {
    /// Starts the server in a directory, whose file it loads.
    pub(crate) fn start(directory: &Path, options: &[&str]) -> Redis {
        let socket = directory.join("socket");
        let _ = fs::remove_file(&socket);
        let process = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--dir"])
            .arg(directory)
            .arg("--unixsocket")
            .arg(&socket)
            .args(["--enable-debug-command", "yes"])
            .args(options)
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server is installed (make setup does it)");
        let mut process = Process(process);
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if let Some(status) = process.0.try_wait().expect("it is our child") {
                panic!("redis-server ended: {status}");
            }
            if let Ok(stream) = UnixStream::connect(&socket) {
                let mut redis = Redis {
                    _process: process,
                    stream,
                };
                while redis.call(&[b"PING"]) != b"+PONG" {
                    assert!(start.elapsed() < PATIENCE, "redis-server loads for ever");
                    std::thread::sleep(Duration::from_millis(10));
                }
                return redis;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("redis-server does not answer");
    }

    /// Sends a request and returns the reply: a line with its type, or the bytes of a bulk string.
    pub(crate) fn call(&mut self, request: &[&[u8]]) -> Vec<u8> {
        let mut bytes = format!("*{}\r\n", request.len()).into_bytes();
        for word in request {
            bytes.extend(format!("${}\r\n", word.len()).bytes());
            bytes.extend_from_slice(word);
            bytes.extend_from_slice(b"\r\n");
        }
        self.stream.write_all(&bytes).expect("the server listens");
        let line = self.line();
        match line.strip_prefix(b"$") {
            None => line,
            Some(b"-1") => line,
            Some(len) => {
                let len = str::from_utf8(len).expect("digits").parse::<usize>();
                let mut value = vec![0; len.expect("a length") + 2];
                self.stream.read_exact(&mut value).expect("a value");
                value.truncate(value.len() - 2);
                value
            }
        }
    }

    fn line(&mut self) -> Vec<u8> {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            let mut byte = [0];
            self.stream.read_exact(&mut byte).expect("a reply");
            line.push(byte[0]);
        }
        line.truncate(line.len() - 2);
        line
    }

    pub(crate) fn ask(&mut self, request: &str) -> String {
        let words: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
        String::from_utf8_lossy(&self.call(&words)).into_owned()
    }

    pub(crate) fn set(&mut self, db: u64, key: &[u8], value: &[u8], expiry: Option<i64>) {
        assert_eq!(self.ask(&format!("SELECT {db}")), "+OK");
        assert_eq!(self.call(&[b"SET", key, value]), b"+OK");
        if let Some(at) = expiry {
            let at = at.to_string();
            assert_eq!(self.call(&[b"PEXPIREAT", key, at.as_bytes()]), b":1");
        }
    }
}
