//! The requests of one group, parsed before any of them runs.
//!
//! A *lane* is one connection's part of the group. Parsing goes through the lanes in order and stops when a
//! *window* of requests is full; the window runs; parsing goes on where it stopped. While a window is parsed,
//! the bucket of every key is prefetched; when it is full, a second sweep prefetches the entries, and a third
//! the items of large collections ([`super::ahead`]). Nothing here allocates once the vectors have grown.

use keyspace::{Database, INLINE_VALUE_MAX, Keyspace, LargeValue};
use resp::reply::{Protocol, Writer};
use resp::request::{Outcome, ProtocolError, Span, parse};

use crate::command::Command;
use crate::command::run::Request;
use crate::limits::{BACKLOG_STOP_BYTES, OUTPUT_KEEP_BYTES, PREFETCH_KEYS, WINDOW};
use crate::net::ahead::{FarCollections, Window};
use crate::net::worker::Parsing;

/// Where a lane's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// In the worker's scratch buffer.
    Scratch { from: usize, until: usize },
    /// In the connection's own buffer.
    Pending,
}

/// One connection's part of a group.
pub(crate) struct Lane {
    pub(crate) token: u64,
    pub(crate) source: Source,
    /// Bytes of the source that are done with.
    pub(crate) at: usize,
    /// Bytes an incomplete request needs in all.
    pub(crate) need: usize,
    /// Its replies in the worker's output.
    pub(crate) output_from: usize,
    pub(crate) output_until: usize,
    /// No more of its requests run in this group: the connection ends, or they have to wait.
    pub(crate) stopped: bool,
    /// Protocol error after the last request.
    pub(crate) error: Option<ProtocolError>,
    /// Its last window came from a buffer that is large enough to be a large value's.
    pub(crate) large: bool,
}

impl Lane {
    pub(crate) fn new(token: u64, source: Source) -> Lane {
        Lane {
            token,
            source,
            at: 0,
            need: 0,
            output_from: 0,
            output_until: 0,
            stopped: false,
            error: None,
            large: false,
        }
    }

    /// Makes the connection's own buffer one that can be shared, if it is large: a request in it may become a
    /// value as it is.
    #[inline]
    pub(crate) fn share_buffer(&mut self, pending: &mut Vec<u8>) -> Option<LargeValue> {
        self.large = self.source == Source::Pending && pending.len() > INLINE_VALUE_MAX;
        self.large
            .then(|| LargeValue::new(std::mem::take(pending).into()))
    }

    /// The bytes of the source.
    #[inline]
    pub(crate) fn input<'b>(
        &self,
        buffer: Option<&'b LargeValue>,
        scratch: &'b [u8],
        pending: &'b [u8],
    ) -> &'b [u8] {
        match (buffer, self.source) {
            (Some(buffer), _) => buffer.buffer(),
            (None, Source::Scratch { from, until }) => &scratch[from..until],
            (None, Source::Pending) => pending,
        }
    }

    /// Gives the connection its buffer back, without what has become a value; or what [`Lane::take_back`] has
    /// written in its place.
    #[inline]
    pub(crate) fn keep_rest(
        &mut self,
        buffer: Option<LargeValue>,
        rewritten: Option<Vec<u8>>,
        pending: &mut Vec<u8>,
    ) {
        if let Some(buffer) = buffer {
            match LargeValue::try_unwrap(buffer) {
                Ok(large) => *pending = large.into_buffer(),
                Err(value) => {
                    // It is a value now; the bytes after the request stay.
                    *pending = value.buffer()[self.at..].to_vec();
                    self.at = 0;
                }
            }
        }
        if let Some(requests) = rewritten {
            *pending = requests;
            self.source = Source::Pending;
        }
    }

    /// Stops at `from`, before `requests`, its last ones (there may be none), so that they are parsed again
    /// when they may run.
    ///
    /// An inline request was unescaped where it stood and would read differently then. If there is one, what
    /// the lane has left is returned with such requests written in the other form, to take the place of the
    /// source.
    pub(crate) fn take_back(
        &mut self,
        from: usize,
        requests: &[Request],
        spans: &[Span],
        input: &[u8],
    ) -> Option<Vec<u8>> {
        let behind = std::mem::replace(&mut self.at, from);
        self.stopped = true;
        self.need = 0;
        let is_inline = |request: &Request| input[request.from] != b'*';
        let broken_inline = self.error.take() == Some(ProtocolError::UnbalancedQuotes);
        if !broken_inline && !requests.iter().any(is_inline) {
            return None;
        }
        let mut left = Vec::new();
        for request in requests {
            if is_inline(request) {
                let spans = &spans[request.first_span..][..request.spans];
                let mut writer = Writer::new(&mut left, Protocol::Resp2);
                writer.array(spans.len());
                spans.iter().for_each(|span| writer.bulk(span.of(input)));
            } else {
                left.extend_from_slice(&input[request.from..][..request.bytes]);
            }
        }
        // Half of a broken line is unescaped too; the one in its place is wrong in the same way.
        left.extend_from_slice(if broken_inline {
            b"\"\n"
        } else {
            &input[behind..]
        });
        self.at = 0;
        Some(left)
    }
}

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
        let database = around.keyspace.database(around.turn, connection.session.db);
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
                    if let Some(command) = command {
                        let keys = Keys {
                            command,
                            spans,
                            input,
                        };
                        keys.hash(&mut self.hashes, around.keyspace, database);
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
