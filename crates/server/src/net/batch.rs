//! The requests of one group, parsed before any of them runs.
//!
//! A *lane* is one connection's part of the group. Parsing goes through the lanes in order and stops when a
//! *window* of requests is full; the window runs; parsing goes on where it stopped. While a window is parsed,
//! the bucket of every key is prefetched; when it is full, a second sweep prefetches the entries, and a third
//! the items of large collections ([`super::ahead`]). Nothing here allocates once the vectors have grown.

use keyspace::{Database, Keyspace};
use resp::request::{Outcome, Span, parse};

use crate::command::Command;
use crate::command::run::Request;
use crate::limits::{BACKLOG_STOP_BYTES, OUTPUT_KEEP_BYTES, PREFETCH_KEYS, WINDOW};
use crate::net::ahead::{FarCollections, Window};
use crate::net::lane::{Lane, Parsing, Source};

/// See the module.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) lanes: Vec<Lane>,
    /// The lane that parsing has reached.
    pub(crate) at: usize,
    /// The first lane of this window.
    pub(crate) window_from: usize,
    pub(crate) requests: Vec<Request>,
    pub(crate) spans: Vec<Span>,
    pub(crate) hashes: Vec<u64>,
    far: FarCollections,
}

impl Batch {
    /// Adds a lane for input that a connection has sent before. A connection may be added twice in a turn, by
    /// a message and by its socket: two lanes would run its requests twice.
    pub(crate) fn add_pending(&mut self, token: u64) {
        let is_pending =
            |lane: &Lane| lane.token == token && matches!(lane.source, Source::Pending);
        if !self.lanes[self.at..].iter().any(is_pending) {
            self.lanes.push(Lane::new(token, Source::Pending));
        }
    }

    /// Whether something that a connection has sent has yet to run.
    pub(crate) fn has_lane(&self, token: u64) -> bool {
        self.lanes.iter().any(|lane| lane.token == token)
    }

    /// Gives room back that only a request of very many arguments needed. No request is under way.
    pub(crate) fn trim(&mut self) {
        if self.spans.capacity() * size_of::<Span>() > OUTPUT_KEEP_BYTES {
            self.spans = Vec::new();
        }
        if self.hashes.capacity() * size_of::<u64>() > OUTPUT_KEEP_BYTES {
            self.hashes = Vec::new();
        }
    }

    /// Fills the next window. Returns whether there was anything left to parse.
    #[inline]
    pub(crate) fn parse_window(&mut self, around: &mut Parsing<'_>) -> bool {
        self.window_from = self.at;
        self.requests.clear();
        self.spans.clear();
        self.hashes.clear();
        while self.at < self.lanes.len() && self.requests.len() < WINDOW {
            if self.parse_lane(around) {
                self.at += 1;
            } else {
                break;
            }
        }
        self.prefetch_entries(around);
        !self.requests.is_empty() || self.at > self.window_from
    }

    /// The third sweep: by now the entries have arrived.
    pub(crate) fn prefetch_items(&mut self, around: &Parsing<'_>) {
        let window = Window {
            requests: &self.requests,
            spans: &self.spans,
            hashes: &self.hashes,
            lanes: &self.lanes,
        };
        self.far.prefetch(window, around);
    }

    /// Parses one lane until the window is full (false) or the lane has no more (true).
    #[inline(never)]
    fn parse_lane(&mut self, around: &mut Parsing<'_>) -> bool {
        let number = self.at;
        let lane = &mut self.lanes[number];
        let Some(connection) = around.connections.get_mut(lane.token) else {
            return true;
        };
        if lane.stopped || lane.error.is_some() {
            return true;
        }
        if connection.backlog.weight() > BACKLOG_STOP_BYTES
            && connection.backlog.weight() > around.server.most_unsent(around.stats)
        {
            // The rest runs when the client has read what it got.
            lane.stopped = true;
            return true;
        }
        let input = match lane.source {
            Source::Scratch { from, until } => &mut around.scratch[from..until],
            Source::Pending => &mut connection.pending[..],
        };
        let mut limits = *around.limits;
        limits.authenticated = connection
            .session
            .is_admitted(|| around.server.needs_password());
        // Outside of a turn nothing of the data may be looked at.
        let (keyspace, turn, db) = (around.keyspace, around.turn, connection.session.db);
        let database = (!around.is_outside).then(|| keyspace.database(turn, db));
        while lane.at < input.len() {
            if self.requests.len() == WINDOW {
                return false;
            }
            let (first_span, from) = (self.spans.len(), lane.at);
            match parse(
                input,
                from,
                &limits,
                &mut connection.resume,
                &mut self.spans,
            ) {
                Ok(Outcome::Request { end }) => {
                    lane.at = end;
                    let spans = &self.spans[first_span..];
                    let Some(name) = spans.first() else { continue };
                    let command = around.table.find(name.of(input));
                    let first_hash = self.hashes.len();
                    if let (Some(command), Some(database)) = (command, database) {
                        let keys = Keys {
                            command,
                            spans,
                            input,
                        };
                        keys.hash(&mut self.hashes, keyspace, database);
                    }
                    self.requests.push(Request {
                        lane: number,
                        from,
                        bytes: end - from,
                        first_span,
                        spans: spans.len(),
                        first_hash,
                        hashes: self.hashes.len() - first_hash,
                        command,
                    });
                    if !limits.authenticated {
                        // Input after AUTH is parsed with the limits of a logged-in client.
                        return false;
                    }
                }
                Ok(Outcome::Incomplete { need }) => {
                    lane.need = need;
                    return true;
                }
                Err(error) => {
                    lane.error = Some(error);
                    return true;
                }
            }
        }
        true
    }

    /// The second sweep: by now the buckets have arrived.
    #[inline]
    fn prefetch_entries(&self, around: &mut Parsing<'_>) {
        if around.is_outside {
            return;
        }
        let mut requests = &self.requests[..];
        while let Some(first) = requests.first() {
            let own = requests
                .iter()
                .take_while(|request| request.lane == first.lane)
                .count();
            let (lane, rest) = requests.split_at(own);
            requests = rest;
            let Some(connection) = around.connections.get_mut(self.lanes[first.lane].token) else {
                continue;
            };
            let database = around.keyspace.database(around.turn, connection.session.db);
            for request in lane {
                let keys = request.hashes.min(PREFETCH_KEYS);
                for &hash in &self.hashes[request.first_hash..][..keys] {
                    database.prefetch_entry(hash);
                }
            }
        }
    }
}

/// The keys of a request, where a plain range of its arguments has them.
struct Keys<'a> {
    command: &'a Command,
    spans: &'a [Span],
    input: &'a [u8],
}

impl Keys<'_> {
    /// Appends their hashes, and fetches the buckets of the first.
    #[inline(always)]
    fn hash(self, hashes: &mut Vec<u64>, keyspace: &Keyspace, database: &Database) {
        let Keys {
            command,
            spans,
            input,
        } = self;
        if command.first_key == 0 {
            return;
        }
        if spans.len() == 2 || command.last_key == command.first_key {
            // One key, where nearly all commands have it.
            if let Some(span) = spans.get(command.first_key as usize) {
                let hash = keyspace.hash(span.of(input));
                database.prefetch_bucket(hash);
                hashes.push(hash);
            }
            return;
        }
        let before = hashes.len();
        for position in command.key_positions(spans.len()) {
            let hash = keyspace.hash(spans[position].of(input));
            if hashes.len() - before < PREFETCH_KEYS {
                database.prefetch_bucket(hash);
            }
            hashes.push(hash);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(batch: &Batch) -> Vec<(u64, Source)> {
        let lanes = batch.lanes.iter();
        lanes.map(|lane| (lane.token, lane.source)).collect()
    }

    #[test]
    fn a_connection_that_is_let_on_twice_goes_on_once() {
        let mut batch = Batch::default();
        let scratch = Source::Scratch { from: 0, until: 9 };
        batch.lanes.push(Lane::new(1, scratch));
        for token in [1, 2, 1, 2] {
            batch.add_pending(token);
        }
        let once = [(1, scratch), (1, Source::Pending), (2, Source::Pending)];
        assert_eq!(sources(&batch), once);
        // A lane that parsing has passed takes nothing more; one that it has reached may.
        batch.at = 2;
        batch.add_pending(1);
        batch.add_pending(2);
        assert_eq!(sources(&batch)[..3], once);
        assert_eq!(sources(&batch)[3..], [(1, Source::Pending)]);
    }
}
