//! MONITOR: every command that runs, as a line to every connection that asked for it.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;

use crate::clients::Client;
use crate::server::Server;

/// The connections that monitor: worker and token.
#[derive(Default)]
pub(crate) struct Monitors {
    count: AtomicUsize,
    list: Mutex<BTreeSet<(usize, u64)>>,
}

impl Monitors {
    /// Whether anybody watches; the only cost when nobody does.
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

    /// Tells everybody who watches about a command, by its arguments; it left its connection in database
    /// `db`.
    #[cold]
    pub(crate) fn feed<'a>(
        &self,
        server: &Server,
        client: &Client,
        db: usize,
        shown: impl Iterator<Item = &'a [u8]>,
    ) {
        let now = sys::clock::realtime_us();
        let peer = &client.peer;
        let source = match peer.strip_suffix(":0") {
            Some(path) if client.is_unix => format!("unix:{path}"),
            _ => peer.clone(),
        };
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
            server.workers[worker].send_line(&server.crowd, token, &line);
        }
    }
}

/// Writes bytes as they would stand in a quoted string.
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
