//! Going through all keys, a SCAN at a time; with `-c` at every node of a cluster, one after the other.
//!
//! A person may end it early by Ctrl-C; what was found until then is shown.

use std::collections::VecDeque;
use std::time::Duration;

use resp::Value;
use sys::signal::Interrupts;

use crate::connection::Place;
use crate::failure::{Failure, Result, reason};
use crate::flags::{KeyScan, Options};
use crate::session::Session;

/// A walk on its way.
pub(super) struct Walk<'a> {
    session: Session,
    scan: &'a KeyScan,
    /// Where the next SCAN begins; `None` at the end.
    cursor: Option<Vec<u8>>,
    /// The nodes that have their turn after this one.
    next_nodes: VecDeque<Place>,
    is_cluster: bool,
    /// Keys there were at the beginning, and keys there have been so far.
    pub(super) total: u64,
    done: u64,
    scans: u64,
    /// After how many SCANs to pause, and how long.
    pause_every: u64,
    pause: Duration,
    /// A person has ended it.
    pub(super) is_interrupted: bool,
}

impl<'a> Walk<'a> {
    /// Counts the keys and begins.
    pub(super) fn begin(mut session: Session, options: &'a Options) -> Result<Walk<'a>> {
        if session.interrupts.is_none() {
            let interrupts = Interrupts::catch();
            session.interrupts = Some(interrupts.map_err(|error| Failure::Other(reason(&error)))?);
        }
        let nodes = session.nodes()?;
        let is_cluster = nodes.is_some();
        if is_cluster && options.keys.cursor != 0 {
            return Err(Failure::other(
                "--cursor is a place on one node: it does not go with -c in a cluster",
            ));
        }
        let mut next_nodes = VecDeque::from(nodes.unwrap_or_default());
        let mut total = 0;
        for node in &next_nodes {
            session.go_to(node.clone())?;
            total += count_keys(&mut session)?;
        }
        match next_nodes.pop_front() {
            Some(first) => session.go_to(first)?,
            None => total = count_keys(&mut session)?,
        }
        Ok(Walk {
            session,
            scan: &options.keys,
            cursor: Some(options.keys.cursor.to_string().into_bytes()),
            next_nodes,
            is_cluster,
            total,
            done: 0,
            scans: 0,
            pause_every: 100,
            pause: options.interval,
            is_interrupted: false,
        })
    }

    /// The same with a pause after every SCAN.
    pub(super) fn pausing_always(mut self) -> Walk<'a> {
        self.pause_every = 1;
        self
    }

    /// Calls `visit` for the keys of every SCAN, with the share of all keys that were before them, in
    /// percent. It ends early, and well, when a person presses Ctrl-C.
    ///
    /// # Errors
    /// Those of `visit`, and what goes wrong with SCAN.
    pub(super) fn each(
        &mut self,
        mut visit: impl FnMut(&mut Session, Vec<Vec<u8>>, f64) -> Result,
    ) -> Result {
        while let Some(cursor) = self.cursor.clone() {
            match self.step(cursor, &mut visit) {
                Err(Failure::Interrupted) => {
                    self.is_interrupted = true;
                    return Ok(());
                }
                result => result?,
            }
        }
        Ok(())
    }

    fn step(
        &mut self,
        cursor: Vec<u8>,
        visit: &mut impl FnMut(&mut Session, Vec<Vec<u8>>, f64) -> Result,
    ) -> Result {
        let has_pause = self.scans > 0 && self.scans.is_multiple_of(self.pause_every);
        let pause = if has_pause {
            self.pause
        } else {
            Duration::ZERO
        };
        self.session.pause(pause)?;
        self.scans += 1;
        let reply = self.session.ask(&self.request(cursor))?;
        let (cursor, keys) = take_apart(reply)?;
        let count = keys.len() as u64;
        let percent = self.percent();
        visit(&mut self.session, keys, percent)?;
        // If it is ended before this, these keys come again where it goes on.
        self.cursor = (cursor != b"0").then_some(cursor);
        self.done += count;
        if self.cursor.is_none()
            && let Some(node) = self.next_nodes.pop_front()
        {
            self.session.go_to(node)?;
            self.cursor = Some(b"0".to_vec());
        }
        Ok(())
    }

    fn request(&self, cursor: Vec<u8>) -> Vec<Vec<u8>> {
        let mut request = vec![b"SCAN".to_vec(), cursor];
        if let Some(pattern) = &self.scan.pattern {
            request.extend([b"MATCH".to_vec(), pattern.clone()]);
        }
        if let Some(count) = self.scan.count {
            request.extend([b"COUNT".to_vec(), count.to_string().into_bytes()]);
        }
        request
    }

    /// Gives back the conversation.
    pub(super) fn into_session(self) -> Session {
        self.session
    }

    /// How much of the way is done.
    pub(super) fn percent(&self) -> f64 {
        100.0 * self.done as f64 / self.total.max(1) as f64
    }

    /// Where to go on, if it was ended early and can be continued.
    pub(super) fn cursor(&self) -> Option<String> {
        if self.is_cluster {
            return None;
        }
        let cursor = self.cursor.as_ref()?;
        Some(String::from_utf8_lossy(cursor).into_owned())
    }
}

/// How many keys the server has that is connected.
fn count_keys(session: &mut Session) -> Result<u64> {
    match session.ask(&[b"DBSIZE".to_vec()])? {
        Value::Integer(count) => Ok(u64::try_from(count).unwrap_or(0)),
        Value::Error(text) => {
            let text = String::from_utf8_lossy(&text);
            Err(Failure::Other(format!("Couldn't determine DBSIZE: {text}")))
        }
        _ => Err(Failure::other("Non INTEGER response from DBSIZE!")),
    }
}

/// The cursor and the keys of a reply of SCAN.
fn take_apart(reply: Value) -> Result<(Vec<u8>, Vec<Vec<u8>>)> {
    let wrong = |text: &str| Err(Failure::other(text));
    let mut parts = match reply {
        Value::Array(parts) => parts,
        Value::Error(text) => {
            return wrong(&format!("SCAN error: {}", String::from_utf8_lossy(&text)));
        }
        _ => return wrong("Non ARRAY response from SCAN!"),
    };
    match (parts.pop(), parts.pop(), parts.is_empty()) {
        (Some(Value::Array(keys)), Some(Value::Bulk(cursor)), true) => {
            let keys = keys.into_iter().filter_map(|key| match key {
                Value::Bulk(key) => Some(key),
                _ => None,
            });
            Ok((cursor, keys.collect()))
        }
        _ => wrong("Invalid element count from SCAN!"),
    }
}
