//! MONITOR: a line for each command that runs, to each monitoring connection.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;

use super::PubSub;
use super::tray::{Contents, Crowd, Tray};
use crate::limits::INBOX_BYTES;
use crate::shared::clients::Client;

/// Monitoring connections, and the lines on their way to them.
pub(crate) struct Monitors {
    count: AtomicUsize,
    /// Worker and token of each connection.
    list: Mutex<BTreeSet<(usize, u64)>>,
    /// By worker.
    lines: Box<[Tray<Lines>]>,
}

/// Lines, and the tokens of their connections.
#[derive(Default)]
pub(crate) struct Lines {
    pub(crate) all: Vec<(u64, Arc<[u8]>)>,
    bytes: usize,
}

impl Contents for Lines {
    fn memory(&self) -> usize {
        self.bytes
    }
}

impl Monitors {
    pub(super) fn new(workers: usize) -> Monitors {
        Monitors {
            count: AtomicUsize::new(0),
            list: Mutex::default(),
            lines: (0..workers).map(|_| Tray::default()).collect(),
        }
    }

    /// Takes the lines of a worker. The second value says whether this ends the throttle of publishers.
    pub(crate) fn take_lines(&self, crowd: &Crowd, worker: usize) -> (Lines, bool) {
        let mut lines = Lines::default();
        let is_free = self.lines[worker].bytes() > 0 && self.lines[worker].take(crowd, &mut lines);
        (lines, is_free)
    }

    /// Whether any connection monitors. This is the only cost if none does.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.count.load(Relaxed) > 0
    }

    pub(crate) fn add(&self, worker: usize, token: u64) {
        let mut list = self.list.lock();
        list.insert((worker, token));
        self.count.store(list.len(), Relaxed);
    }

    pub(crate) fn remove(&self, worker: usize, token: u64) {
        let mut list = self.list.lock();
        list.remove(&(worker, token));
        self.count.store(list.len(), Relaxed);
    }

    /// Sends a command's line to all monitoring connections. `db`: the connection's database after the
    /// command.
    #[cold]
    pub(crate) fn feed<'a>(
        &self,
        server: &PubSub,
        client: &Client,
        db: usize,
        shown: impl Iterator<Item = &'a [u8]>,
    ) {
        let peer = &client.peer;
        let source = match peer.strip_suffix(":0") {
            Some(path) if client.is_unix => format!("unix:{path}"),
            _ => peer.clone(),
        };
        self.send(server, db, &source, shown);
    }

    /// The same of a command that a script has called.
    #[cold]
    pub(crate) fn feed_script<'a>(
        &self,
        server: &PubSub,
        db: usize,
        shown: impl Iterator<Item = &'a [u8]>,
    ) {
        self.send(server, db, "lua", shown);
    }

    fn send<'a>(
        &self,
        server: &PubSub,
        db: usize,
        source: &str,
        shown: impl Iterator<Item = &'a [u8]>,
    ) {
        let now = sys::clock::realtime_us();
        let mut line = format!(
            "+{}.{:06} [{db} {source}]",
            now / 1_000_000,
            now % 1_000_000
        );
        for argument in shown {
            line.push_str(" \"");
            escape(argument, &mut line);
            line.push('"');
        }
        line.push_str("\r\n");
        let line: Arc<[u8]> = line.into_bytes().into();
        for &(worker, token) in self.list.lock().iter() {
            self.lines[worker].add(&server.crowd, INBOX_BYTES, |lines| {
                lines.all.push((token, Arc::clone(&line)));
                lines.bytes += line.len();
            });
            server.workers[worker].wake();
        }
    }
}

/// Appends bytes with the escapes of a quoted string.
pub(crate) fn escape(bytes: &[u8], line: &mut String) {
    for &byte in bytes {
        match byte {
            b'\\' | b'"' => {
                line.push('\\');
                line.push(char::from(byte));
            }
            b'\n' => line.push_str("\\n"),
            b'\r' => line.push_str("\\r"),
            b'\t' => line.push_str("\\t"),
            7 => line.push_str("\\a"),
            8 => line.push_str("\\b"),
            0x20..0x7f => line.push(char::from(byte)),
            _ => write!(line, "\\x{byte:02x}").expect("a String takes everything"),
        }
    }
}
