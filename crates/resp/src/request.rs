//! Requests as the server reads them: `*<count>` with length-prefixed arguments, or one inline line
//! of words.
//!
//! Here live the parser and the state of a request that has arrived in part. The quick path that
//! most requests take is in `request/short.rs`, the splitting of an inline line into words in
//! `request/inline.rs`, what a connection may send in `request/limits.rs`. What the arguments mean is
//! not decided here.
//!
//! ```text
//!   *3\r\n  $3\r\n SET \r\n  $5\r\n hello \r\n  $5\r\n world \r\n      multibulk
//!   count   header payload   header payload     header payload
//!
//!   SET hello "wor\x6cd"\r\n                          inline, which `\n` alone ends too
//! ```
//!
//! Invariants:
//! 1. The outcome depends on the bytes alone, never on how they were cut into calls.
//! 2. Every span lies within the request it came from: `at <= start`, `start + len <= end <=
//!    input.len()`.
//! 3. A call costs time linear in the bytes it has not seen before, plus the spans it hands out.
//! 4. `args` grows by one span per argument that is really there, so a claimed count reserves
//!    nothing.
//! 5. The input is changed only where a complete inline line is unescaped.
//!
//! The behaviour is that of Redis 7.0.15, recorded in `tests/data/requests.txt`: the byte behind a
//! header's `\r` and the two bytes behind a payload are skipped unread, and a NUL hides what
//! follows it on a header or inline line, which then can only grow until it is too long. One
//! difference is on purpose: Redis tests the length of a line only while its end is missing, so
//! whether it accepts a line longer than 64 KiB depends on how the line was cut into reads. Here
//! such a line is always an error (invariant 1).

use crate::number::parse_i64;

mod error;
mod inline;
mod limits;
mod short;
mod span;
#[cfg(test)]
mod tests;

pub use error::ProtocolError;
pub use limits::Limits;
use limits::{UNAUTHENTICATED_ARGS, UNAUTHENTICATED_BULK_LEN};
use short::{LONGEST_SHORT_LINE, LONGEST_SHORT_PAYLOAD, MOST_SHORT_ARGS};
use short::{parse_more_short_bulks, parse_short, short_bulk};
pub use span::Span;

/// Bytes of the longest header line: its sign and the 20 characters of the longest number.
const LONGEST_HEADER: usize = 21;

/// What [`parse`] found.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// One whole request, possibly without arguments: then it gets no reply.
    Request {
        /// The position behind its last byte: where the next request starts.
        end: usize,
    },
    /// The request goes on behind the end of the input.
    Incomplete {
        /// The least number of bytes, counted from the request's start, with which another call
        /// gets further. For a payload it comes from the length that the client claims, which
        /// `max_bulk_len` alone bounds.
        need: usize,
    },
}

/// What is known of one request that has arrived in part. All positions count from the request's
/// first byte, so the bytes may be moved between two calls.
#[derive(Default, Debug)]
pub struct Resume {
    stage: Stage,
    /// How many arguments are not in `spans` yet.
    missing: usize,
    /// The arguments that are complete.
    spans: Vec<Span>,
}

/// An argument that has arrived in part. Positions count from the request's first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// Its number; the command's name is 0.
    pub argument: usize,
    /// Where its header begins.
    pub header: usize,
    /// Where its payload begins.
    pub payload: usize,
    /// Bytes of its payload.
    pub len: usize,
}

/// How many spans an idle [`Resume`] keeps room for, so that a request cut in two allocates once
/// per connection and an idle connection holds no more than 128 bytes.
const KEPT_SPANS: usize = 8;

/// Where in the request the bytes ran out.
#[derive(Clone, Copy, Default, Debug)]
enum Stage {
    /// Before the first byte.
    #[default]
    Idle,
    /// In an inline line whose first `scanned` bytes hold no line end.
    Inline { scanned: usize },
    /// In the line of the number of arguments, likewise.
    Count { scanned: usize },
    /// In the argument whose header is at `start`, likewise.
    Bulk { start: usize, scanned: usize },
}

impl Resume {
    /// Whether no request is under way.
    #[inline]
    pub fn is_idle(&self) -> bool {
        matches!(self.stage, Stage::Idle)
    }

    /// How many arguments of the request under way have arrived in full.
    #[inline]
    pub fn arguments(&self) -> usize {
        self.spans.len()
    }

    /// Whether the request under way is an inline line: how much of it is to come is not known.
    #[inline]
    pub fn is_inline(&self) -> bool {
        matches!(self.stage, Stage::Inline { .. })
    }

    /// The argument of which some bytes are missing, if its header is there: `request` is what has arrived of
    /// the request under way.
    pub fn awaited(&self, request: &[u8]) -> Option<Awaited> {
        let Stage::Bulk { start, .. } = self.stage else {
            return None;
        };
        let header = request.get(start..)?.strip_prefix(b"$")?;
        let longest = &header[..header.len().min(LONGEST_HEADER)];
        let digits = longest.iter().position(|&byte| byte == b'\r')?;
        let payload = start + 1 + digits + 2;
        Some(Awaited {
            argument: self.spans.len(),
            header: start,
            payload,
            len: usize::try_from(parse_i64(&header[..digits])?).ok()?,
        })
        .filter(|awaited| awaited.payload <= request.len())
    }

    /// An argument that has arrived in full, as a part of the request.
    pub fn argument(&self, at: usize) -> Option<Span> {
        self.spans.get(at).copied()
    }

    /// Forgets the request that was under way.
    pub fn clear(&mut self) {
        self.stage = Stage::Idle;
        self.missing = 0;
        self.spans.clear();
        self.spans.shrink_to(KEPT_SPANS);
    }
}

/// Parses the one request that starts at `input[at]`.
///
/// On [`Outcome::Request`] its arguments were pushed to `args`: none for an empty line, `*0` and
/// `*-1`, which get no reply. On [`Outcome::Incomplete`] `args` is as it was, and `resume`
/// remembers what was parsed: call again with the same request, at the same or another `at`, once
/// the input holds more of it. Inline lines are unescaped in place, which is why the input is
/// mutable.
///
/// Budget: below 95 instructions for `SET` with a 16-byte key and value, no allocation while `args`
/// has room; counted by `examples/instructions.rs`.
///
/// # Errors
///
/// The request breaks the protocol; `args` is as it was and `resume` is idle.
///
/// # Panics
///
/// If `at` is behind the end of the input, or if the input holds less of an unfinished request than
/// in the call before.
#[inline]
pub fn parse(
    input: &mut [u8],
    at: usize,
    limits: &Limits,
    resume: &mut Resume,
    args: &mut Vec<Span>,
) -> Result<Outcome, ProtocolError> {
    if resume.is_idle()
        && let Some(end) = parse_short(input, at, args)
    {
        return Ok(Outcome::Request { end });
    }
    parse_any(input, at, limits, resume, args)
}

/// How far a request was parsed.
enum Progress {
    Complete {
        end: usize,
    },
    Waiting {
        stage: Stage,
        missing: usize,
        need: usize,
    },
}

/// The thorough path: any request, from wherever the last call stopped.
#[inline(never)]
fn parse_any(
    input: &mut [u8],
    at: usize,
    limits: &Limits,
    resume: &mut Resume,
    args: &mut Vec<Span>,
) -> Result<Outcome, ProtocolError> {
    let resumed = !resume.is_idle();
    if !resumed && let Some(end) = parse_more_short_bulks(input, at, limits, args) {
        return Ok(Outcome::Request { end });
    }
    let request = &mut input[at..];
    let args_before = args.len();
    // What was parsed in earlier calls is not touched again until the request is complete. So only
    // a request that comes in one piece pushes its spans to `args` directly.
    let (origin, spans) = if resumed {
        (0, &mut resume.spans)
    } else {
        (at, &mut *args)
    };
    let progress = match resume.stage {
        Stage::Idle => match request.first() {
            None => return Ok(Outcome::Incomplete { need: 1 }),
            Some(b'*') => parse_multibulk(request, 0, origin, limits, spans),
            Some(_) => parse_inline(request, 0, origin, limits, spans),
        },
        Stage::Inline { scanned } => parse_inline(request, scanned, origin, limits, spans),
        Stage::Count { scanned } => parse_multibulk(request, scanned, origin, limits, spans),
        Stage::Bulk { start, scanned } => parse_bulks(
            request,
            start,
            scanned,
            resume.missing,
            origin,
            limits,
            spans,
        ),
    };
    match progress {
        Ok(Progress::Complete { end }) => {
            if resumed {
                args.extend(resume.spans.iter().map(|span| span.counted_from_input(at)));
                resume.clear();
            }
            Ok(Outcome::Request { end: at + end })
        }
        Ok(Progress::Waiting {
            stage,
            missing,
            need,
        }) => {
            if !resumed {
                let parsed = args.drain(args_before..);
                resume
                    .spans
                    .extend(parsed.map(|span| span.counted_from_request(at)));
            }
            resume.stage = stage;
            resume.missing = missing;
            Ok(Outcome::Incomplete { need })
        }
        Err(error) => {
            args.truncate(args_before);
            resume.clear();
            Err(error)
        }
    }
}

/// Parses an inline line whose first `scanned` bytes hold no line end.
fn parse_inline(
    request: &mut [u8],
    scanned: usize,
    origin: usize,
    limits: &Limits,
    spans: &mut Vec<Span>,
) -> Result<Progress, ProtocolError> {
    let longest = limits.max_inline_len.max(LONGEST_SHORT_LINE);
    // A line without an end is refused beyond its limit. One whose end has arrived with it may be longer.
    let whole = longest.saturating_add(limits.whole_inline_extra);
    let newline = match find_line_end(request, 0, scanned, b'\n', whole) {
        Line::Ends { at } => at,
        Line::Waiting { scanned, need } if request.len() <= longest => {
            return Ok(Progress::Waiting {
                stage: Stage::Inline { scanned },
                missing: 0,
                need: need.min(longest.saturating_add(1)),
            });
        }
        Line::Waiting { .. } | Line::TooLong => return Err(ProtocolError::InlineTooBig),
    };
    let line = &mut request[..newline];
    let line = match line {
        [line @ .., b'\r'] => line,
        line => line,
    };
    inline::split(line, origin, spans)?;
    Ok(Progress::Complete { end: newline + 1 })
}

/// Parses a multibulk request from its count, of which the first `scanned` bytes hold no line end.
fn parse_multibulk(
    request: &[u8],
    scanned: usize,
    origin: usize,
    limits: &Limits,
    spans: &mut Vec<Span>,
) -> Result<Progress, ProtocolError> {
    let line_end = match find_header_end(request, 0, scanned) {
        Line::Ends { at } => at,
        Line::Waiting { scanned, need } => {
            return Ok(Progress::Waiting {
                stage: Stage::Count { scanned },
                missing: 0,
                need,
            });
        }
        Line::TooLong => return Err(ProtocolError::CountTooBig),
    };
    let count = parse_i64(&request[1..line_end]).ok_or(ProtocolError::InvalidCount)?;
    // A negative number counts as none.
    let missing = usize::try_from(count.max(0)).map_err(|_| ProtocolError::InvalidCount)?;
    if missing > limits.max_args.max(MOST_SHORT_ARGS) {
        return Err(ProtocolError::InvalidCount);
    }
    if missing > UNAUTHENTICATED_ARGS && !limits.authenticated {
        return Err(ProtocolError::UnauthenticatedCount);
    }
    parse_bulks(request, line_end + 2, 0, missing, origin, limits, spans)
}

/// Parses the last `missing` arguments, of which the first has its header at `start`; `scanned`
/// bytes of that header hold no line end.
fn parse_bulks(
    request: &[u8],
    mut start: usize,
    mut scanned: usize,
    mut missing: usize,
    origin: usize,
    limits: &Limits,
    spans: &mut Vec<Span>,
) -> Result<Progress, ProtocolError> {
    while missing > 0 {
        let payload = match short_bulk(request, start) {
            Some(payload) => payload,
            None => match find_header_end(request, start, scanned) {
                Line::Ends { at } => Span {
                    start: at + 2,
                    len: parse_header(&request[start..at], limits)?,
                },
                Line::Waiting { scanned, need } => {
                    return Ok(Progress::Waiting {
                        stage: Stage::Bulk { start, scanned },
                        missing,
                        need,
                    });
                }
                Line::TooLong => return Err(ProtocolError::LengthTooBig),
            },
        };
        let end = payload.start.saturating_add(payload.len).saturating_add(2);
        if end > request.len() {
            // The header is decoded again in the next call, which is cheaper than to remember it.
            return Ok(Progress::Waiting {
                stage: Stage::Bulk { start, scanned: 0 },
                missing,
                need: end,
            });
        }
        spans.push(Span {
            start: origin + payload.start,
            len: payload.len,
        });
        missing -= 1;
        start = end;
        scanned = 0;
    }
    Ok(Progress::Complete { end: start })
}

/// Decodes an argument's header of any form: the length of its payload.
fn parse_header(line: &[u8], limits: &Limits) -> Result<usize, ProtocolError> {
    let digits = match line {
        [b'$', digits @ ..] => digits,
        // An empty line: what stands there is its end.
        _ => {
            return Err(ProtocolError::ExpectedDollar(
                line.first().copied().unwrap_or(b'\r'),
            ));
        }
    };
    let len = parse_i64(digits).ok_or(ProtocolError::InvalidLength)?;
    let payload_len = usize::try_from(len).map_err(|_| ProtocolError::InvalidLength)?;
    if payload_len > limits.max_bulk_len.max(LONGEST_SHORT_PAYLOAD) {
        return Err(ProtocolError::InvalidLength);
    }
    if payload_len > UNAUTHENTICATED_BULK_LEN && !limits.authenticated {
        return Err(ProtocolError::UnauthenticatedLength);
    }
    Ok(payload_len)
}

/// The end of the line that is being parsed.
enum Line {
    /// The terminator is at this position of the request.
    Ends { at: usize },
    /// It has not arrived: the line's first `scanned` bytes hold none, and another look pays from
    /// `need` bytes on.
    Waiting { scanned: usize, need: usize },
    /// It is not where it has to be at the latest.
    TooLong,
}

/// Finds the `\r` of a header line. The byte behind it has to be there, though nobody looks at it.
fn find_header_end(request: &[u8], start: usize, scanned: usize) -> Line {
    match find_line_end(request, start, scanned, b'\r', LONGEST_HEADER) {
        Line::Ends { at } if at + 1 == request.len() => Line::Waiting {
            scanned: at - start,
            need: at + 2,
        },
        line => line,
    }
}

/// Finds the terminator of the line at `start`, of which the first `scanned` bytes hold none.
fn find_line_end(
    request: &[u8],
    start: usize,
    scanned: usize,
    terminator: u8,
    longest: usize,
) -> Line {
    let line = &request[start..];
    let searched = &line[..line.len().min(longest.saturating_add(1))];
    // The limit may have changed since the bytes were scanned.
    let scanned = scanned.min(searched.len());
    let stop = searched[scanned..]
        .iter()
        .position(|&byte| byte == terminator || byte == 0);
    match stop.map(|offset| scanned + offset) {
        Some(found) if line[found] == terminator => Line::Ends { at: start + found },
        _ if line.len() > longest => Line::TooLong,
        // A NUL hides the end of the line for ever, so the line has to become too long.
        Some(nul) => Line::Waiting {
            scanned: nul,
            need: start.saturating_add(longest).saturating_add(1),
        },
        None => Line::Waiting {
            scanned: line.len(),
            need: request.len() + 1,
        },
    }
}
