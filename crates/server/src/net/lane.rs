//! One connection's part of a group of requests, and the surroundings in which it is parsed.

use keyspace::{INLINE_VALUE_MAX, Keyspace, LargeValue, Turn};
use resp::reply::{Protocol, Writer};
use resp::request::{Limits, ProtocolError, Span};

use crate::command::Table;
use crate::command::run::Request;
use crate::metrics::WorkerStats;
use crate::net::connections::Connections;
use crate::server::Server;

/// Place of the bytes of a lane.
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

    /// Gives the connection its buffer back, without a part that has become a value; or the requests that
    /// [`Lane::take_back`] has written in its place.
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
    /// An inline request was unescaped where it stood and would read differently then. If there is one, the
    /// rest of the lane is returned with such requests written in the other form, to take the place of the
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

/// State of the worker that parsing needs.
pub(crate) struct Parsing<'a> {
    pub(crate) connections: &'a mut Connections,
    pub(crate) scratch: &'a mut [u8],
    pub(crate) limits: &'a Limits,
    pub(crate) table: &'static Table,
    pub(crate) server: &'static Server,
    pub(crate) stats: &'static WorkerStats,
    pub(crate) keyspace: &'static Keyspace,
    pub(crate) turn: &'a Turn<'static>,
    /// See [`crate::net::outside`].
    pub(crate) is_outside: bool,
}
