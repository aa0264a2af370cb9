//! Replies as the server writes them, for both versions of the protocol.
//!
//! Here live the types of RESP3 and what each becomes in RESP2. Which type a command answers with
//! is the command's affair, and sending the bytes is the connection's.
//!
//! | method | RESP2 | RESP3 |
//! |---|---|---|
//! | `simple`, `error`, `integer`, `bulk`, `array` | `+` `-` `:` `$` `*` | the same |
//! | `null`, `null_array` | `$-1`, `*-1` | `_` |
//! | `map`, `set`, `push` | `*` | `%` `~` `>` |
//! | `boolean` | `:1` `:0` | `#t` `#f` |
//! | `double`, `big_number`, `verbatim` | `$` | `,` `(` `=` |
//! | `attribute` | nothing | `\|` |
//!
//! Invariants:
//! 1. Every reply is appended whole; an aggregate's header is followed by as many replies as it
//!    announces, which the caller appends.
//! 2. No text of a line-based type (`+` `-` `(`) contains a line end: it would end the reply.
//! 3. Writing allocates only when the buffer has to grow.

use crate::number::{
    DOUBLE_TEXT_LEN, INTEGER_TEXT_LEN, PAIRS, format_f64, format_i64, format_shortest, write_digits,
};

/// The version of the protocol that a connection has agreed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Protocol {
    /// The version that every connection starts with.
    #[default]
    Resp2,
    /// The version with maps, sets, doubles, booleans and pushes, which a client asks for with
    /// `HELLO 3`.
    Resp3,
}

/// Appends typed replies to a buffer.
#[derive(Debug)]
pub struct Writer<'a> {
    /// Where the replies go.
    pub out: &'a mut Vec<u8>,
    /// The version they are written in.
    pub protocol: Protocol,
    /// How much room there is for what is repeated: bulk strings of [`Writer::bulk`] and
    /// [`Writer::bulks`].
    pub limit: Limit,
}

/// How much memory there is for a buffer of a [`Writer`] that grows. What has no room is left out and
/// counted: the caller takes back what was written since.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limit {
    /// Bytes that a larger buffer may have; the one before is there until its bytes are copied.
    pub room: usize,
    /// Bytes that were left out.
    pub dropped: usize,
}

impl Limit {
    /// There is none.
    pub const NONE: Limit = Limit {
        room: usize::MAX,
        dropped: 0,
    };

    /// Makes room in the buffer for `bytes` more. Returns whether there is some: if not, the caller counts
    /// the bytes that it leaves out.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, out: &mut Vec<u8>, bytes: usize) -> bool {
        let (before, needed) = (out.capacity(), out.len() + bytes);
        if self.dropped > 0 || needed > self.room {
            return false;
        }
        // Twice as many, as far as there is room.
        let wanted = (2 * before).clamp(needed, self.room);
        out.reserve_exact(wanted - out.len());
        self.room -= (out.capacity() - before).min(self.room);
        true
    }

    /// Whether there is room in the buffer for so many bytes.
    #[inline]
    fn has_room(&mut self, out: &mut Vec<u8>, bytes: usize) -> bool {
        out.capacity() - out.len() >= bytes || self.grow(out, bytes)
    }

    /// Counts bytes that are left out.
    #[cold]
    #[inline(never)]
    fn leave_out(&mut self, bytes: usize) {
        self.dropped += bytes;
    }

    /// Counts a bulk string that is left out.
    #[cold]
    fn leave_out_bulk(&mut self, len: usize) {
        self.leave_out(line_len(len) + len + 2);
    }
}

/// Appends `+OK`.
#[inline]
pub fn put_ok(out: &mut Vec<u8>) {
    out.extend_from_slice(b"+OK\r\n");
}

/// Appends a bulk string.
///
/// Budget: 60 instructions and the copy of the payload for 10 to 99 bytes, counted by
/// `examples/instructions.rs`.
#[inline]
pub fn put_bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    if bytes.len() >= PAIRS.len() {
        // Make room at once, so that a large buffer moves only once. A short reply that makes it
        // grow moves it as rarely as any byte that is appended.
        out.reserve(LINE_LEN + bytes.len() + 2);
    }
    put_header(out, b'$', bytes.len());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// Appends an integer.
#[inline]
pub fn put_integer(out: &mut Vec<u8>, value: i64) {
    match usize::try_from(value) {
        Ok(value) => put_header(out, b':', value),
        Err(_) => put_long_line(out, b':', true, value.unsigned_abs()),
    }
}

/// Appends a type byte, a number and a line end. A number below 100 costs a copy of fixed size,
/// without a call.
#[inline]
fn put_header(out: &mut Vec<u8>, kind: u8, value: usize) {
    if value < 10 {
        out.extend_from_slice(&[kind, b'0' + value as u8, b'\r', b'\n']);
    } else if let Some(&[tens, ones]) = PAIRS.get(value) {
        out.extend_from_slice(&[kind, tens, ones, b'\r', b'\n']);
    } else {
        put_long_line(out, kind, false, value as u64);
    }
}

/// The longest line of a type byte and an integer: `:-9223372036854775808\r\n`.
const LINE_LEN: usize = 1 + INTEGER_TEXT_LEN + 2;

/// Bytes of a line of a type byte and a number.
fn line_len(value: usize) -> usize {
    4 + value.checked_ilog10().unwrap_or(0) as usize
}

#[inline(never)]
fn put_long_line(out: &mut Vec<u8>, kind: u8, negative: bool, magnitude: u64) {
    let mut line = [0; LINE_LEN];
    line[LINE_LEN - 2..].copy_from_slice(b"\r\n");
    let mut start = write_digits(magnitude, &mut line, LINE_LEN - 2);
    if negative {
        start -= 1;
        line[start] = b'-';
    }
    start -= 1;
    line[start] = kind;
    out.extend_from_slice(&line[start..]);
}

/// Appends a line of a prefix and a text without line ends.
fn put_line(out: &mut Vec<u8>, prefix: &[u8], text: &[u8]) {
    out.reserve(prefix.len() + text.len() + 2);
    out.extend_from_slice(prefix);
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

/// Appends a line whose text may come from a client: line ends in it become spaces.
fn put_untrusted_line(out: &mut Vec<u8>, prefix: &[u8], text: &[u8]) {
    let start = out.len() + prefix.len();
    put_line(out, prefix, text);
    for byte in &mut out[start..start + text.len()] {
        if matches!(*byte, b'\r' | b'\n') {
            *byte = b' ';
        }
    }
}

impl<'a> Writer<'a> {
    /// A writer that appends to `out`.
    #[inline]
    pub fn new(out: &'a mut Vec<u8>, protocol: Protocol) -> Writer<'a> {
        let limit = Limit::NONE;
        Writer {
            out,
            protocol,
            limit,
        }
    }

    #[inline]
    fn resp3(&self) -> bool {
        self.protocol == Protocol::Resp3
    }

    /// A status. Line ends in it become spaces.
    pub fn simple(&mut self, text: &str) {
        put_untrusted_line(self.out, b"+", text.as_bytes());
    }

    /// The status `OK`.
    #[inline]
    pub fn ok(&mut self) {
        put_ok(self.out);
    }

    /// An error, its text starting with the code that clients look at: `ERR syntax error`. Line
    /// ends in it become spaces. It may repeat bytes of a request that are no text.
    pub fn error(&mut self, text: impl AsRef<[u8]>) {
        put_untrusted_line(self.out, b"-", text.as_ref());
    }

    #[inline]
    fn has_room(&mut self, bytes: usize) -> bool {
        self.limit.has_room(self.out, bytes)
    }

    /// A line of a type byte and a number.
    #[inline]
    fn header(&mut self, kind: u8, value: usize) {
        if self.out.capacity() - self.out.len() < LINE_LEN {
            return self.header_in_more_room(kind, value);
        }
        put_header(self.out, kind, value);
    }

    #[cold]
    #[inline(never)]
    fn header_in_more_room(&mut self, kind: u8, value: usize) {
        match self.limit.grow(self.out, LINE_LEN) {
            true => put_header(self.out, kind, value),
            false => self.limit.leave_out(line_len(value)),
        }
    }

    /// A few bytes.
    #[inline]
    fn short(&mut self, bytes: &[u8]) {
        match self.has_room(LINE_LEN) {
            true => self.out.extend_from_slice(bytes),
            false => self.limit.leave_out(bytes.len()),
        }
    }

    /// An integer.
    #[inline]
    pub fn integer(&mut self, value: i64) {
        match usize::try_from(value) {
            Ok(value) => self.header(b':', value),
            Err(_) => self.negative(value),
        }
    }

    #[inline(never)]
    fn negative(&mut self, value: i64) {
        match self.has_room(LINE_LEN) {
            true => put_integer(self.out, value),
            false => self.limit.leave_out(LINE_LEN),
        }
    }

    /// A bulk string.
    #[inline]
    pub fn bulk(&mut self, bytes: &[u8]) {
        match self.has_room(LINE_LEN + bytes.len() + 2) {
            true => put_bulk(self.out, bytes),
            false => self.limit.leave_out_bulk(bytes.len()),
        }
    }

    /// A bulk string, whatever the limit.
    #[inline]
    pub fn one_bulk(&mut self, bytes: &[u8]) {
        put_bulk(self.out, bytes);
    }

    /// Many short bulk strings.
    #[inline]
    pub fn bulks(&mut self) -> Bulks<'_> {
        Bulks::new(self.out, &mut self.limit)
    }

    /// The header of a bulk string whose `len` bytes the caller sends in some other way, and then
    /// [`Writer::crlf`].
    #[inline]
    pub fn bulk_header(&mut self, len: usize) {
        put_header(self.out, b'$', len);
    }

    /// The line end behind a bulk string's payload.
    #[inline]
    pub fn crlf(&mut self) {
        self.out.extend_from_slice(b"\r\n");
    }

    /// A bulk string that holds the decimal digits of `value`.
    pub fn bulk_integer(&mut self, value: i64) {
        self.bulk(format_i64(value, &mut [0; INTEGER_TEXT_LEN]));
    }

    /// The absence of a value.
    #[inline]
    pub fn null(&mut self) {
        match self.protocol {
            Protocol::Resp2 => self.short(b"$-1\r\n"),
            Protocol::Resp3 => self.short(b"_\r\n"),
        }
    }

    /// The absence of an array.
    #[inline]
    pub fn null_array(&mut self) {
        match self.protocol {
            Protocol::Resp2 => self.short(b"*-1\r\n"),
            Protocol::Resp3 => self.short(b"_\r\n"),
        }
    }

    /// The header of an array of `len` replies.
    #[inline]
    pub fn array(&mut self, len: usize) {
        self.header(b'*', len);
    }

    /// An array of nothing.
    #[inline]
    pub fn empty_array(&mut self) {
        self.short(b"*0\r\n");
    }

    /// The header of a map of `len` pairs: two replies each.
    #[inline]
    pub fn map(&mut self, len: usize) {
        if self.resp3() {
            self.header(b'%', len);
        } else {
            self.header(b'*', len * 2);
        }
    }

    /// The header of a set of `len` replies.
    #[inline]
    pub fn set(&mut self, len: usize) {
        self.header(if self.resp3() { b'~' } else { b'*' }, len);
    }

    /// The header of a push of `len` replies: a message that answers no request.
    #[inline]
    pub fn push(&mut self, len: usize) {
        put_header(self.out, if self.resp3() { b'>' } else { b'*' }, len);
    }

    /// The header of `len` pairs that annotate the next reply. RESP2 has no such thing: nothing is
    /// written then, and `false` tells the caller to leave out the pairs too.
    #[must_use]
    pub fn attribute(&mut self, len: usize) -> bool {
        if self.resp3() {
            put_header(self.out, b'|', len);
        }
        self.resp3()
    }

    /// A truth value.
    #[inline]
    pub fn boolean(&mut self, value: bool) {
        self.short(match (self.protocol, value) {
            (Protocol::Resp2, true) => b":1\r\n",
            (Protocol::Resp2, false) => b":0\r\n",
            (Protocol::Resp3, true) => b"#t\r\n",
            (Protocol::Resp3, false) => b"#f\r\n",
        });
    }

    /// A double, in the digits of [`format_f64`].
    pub fn double(&mut self, value: f64) {
        let mut buf = [0; DOUBLE_TEXT_LEN];
        self.double_text(format_f64(value, &mut buf));
    }

    /// A double that is a text already.
    pub fn double_text(&mut self, text: &[u8]) {
        if self.resp3() {
            match self.has_room(text.len() + 3) {
                true => put_line(self.out, b",", text),
                false => self.limit.leave_out(text.len() + 3),
            }
        } else {
            self.bulk(text);
        }
    }

    /// A score of a sorted set: a double, in the digits of [`format_shortest`].
    pub fn score(&mut self, value: f64) {
        let mut buf = [0; DOUBLE_TEXT_LEN];
        self.double_text(format_shortest(value, &mut buf));
    }

    /// A text for people, with its format: `txt` or `mkd`.
    ///
    /// # Panics
    ///
    /// If the format is not three bytes long.
    pub fn verbatim(&mut self, format: &str, text: &[u8]) {
        assert_eq!(
            format.len(),
            3,
            "a verbatim string's format is three bytes long"
        );
        if self.resp3() {
            self.out.reserve(text.len() + INTEGER_TEXT_LEN + 9);
            put_header(self.out, b'=', text.len() + 4);
            self.out.extend_from_slice(format.as_bytes());
            self.out.push(b':');
            self.out.extend_from_slice(text);
            self.crlf();
        } else {
            self.bulk(text);
        }
    }

    /// An integer of any size, given by its digits. Line ends among them become spaces.
    pub fn big_number(&mut self, digits: &str) {
        if self.resp3() {
            put_untrusted_line(self.out, b"(", digits.as_bytes());
        } else {
            self.bulk(digits.as_bytes());
        }
    }
}

/// Bytes of bulk strings that are put together before they are appended.
const BLOCK_LEN: usize = 512;
/// The longest bulk string that a block takes: its length has two digits.
const BULK_ROOM: usize = 5 + 99 + 2;

/// Appends many short bulk strings: they are put together in a block of fixed size, which needs no check of
/// the buffer's room for each part, and few calls of `memcpy`.
///
/// Budget: 60 instructions for 16 bytes, where [`put_bulk`] needs 75, counted by `examples/instructions.rs`.
#[derive(Debug)]
pub struct Bulks<'o> {
    out: &'o mut Vec<u8>,
    limit: &'o mut Limit,
    block: [u8; BLOCK_LEN],
    used: usize,
}

impl<'o> Bulks<'o> {
    /// Appends to `out`; what was put is there after [`Bulks::finish`].
    #[inline]
    pub fn new(out: &'o mut Vec<u8>, limit: &'o mut Limit) -> Bulks<'o> {
        Bulks {
            out,
            limit,
            block: [0; BLOCK_LEN],
            used: 0,
        }
    }

    /// One more.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) {
        let len = bytes.len();
        let Some(&[tens, ones]) = PAIRS.get(len) else {
            return self.put_long(bytes);
        };
        if self.used > BLOCK_LEN - BULK_ROOM {
            self.flush();
        }
        // Of fixed size, so that lengths below 100 need no further check.
        let space = self.block[self.used..].first_chunk_mut::<BULK_ROOM>();
        let space = space.expect("there is room for one");
        space[0] = b'$';
        let start = if len < 10 {
            space[1..4].copy_from_slice(&[ones, b'\r', b'\n']);
            4
        } else {
            space[1..5].copy_from_slice(&[tens, ones, b'\r', b'\n']);
            5
        };
        let (payload, end) = space[start..].split_at_mut(len);
        copy_short(payload, bytes);
        end[..2].copy_from_slice(b"\r\n");
        self.used += start + len + 2;
    }

    #[inline(never)]
    fn put_long(&mut self, bytes: &[u8]) {
        self.flush();
        match self.has_room(LINE_LEN + bytes.len() + 2) {
            true => put_bulk(self.out, bytes),
            false => self.limit.leave_out_bulk(bytes.len()),
        }
    }

    #[inline]
    fn has_room(&mut self, bytes: usize) -> bool {
        self.limit.has_room(self.out, bytes)
    }

    #[inline(never)]
    fn flush(&mut self) {
        match self.has_room(self.used) {
            true => self.out.extend_from_slice(&self.block[..self.used]),
            false => self.limit.leave_out(self.used),
        }
        self.used = 0;
    }

    /// Appends what is in the block.
    pub fn finish(mut self) {
        self.flush();
    }
}

/// Copies bytes to as many: up to 32 by two copies of fixed size that overlap.
#[inline(always)]
fn copy_short(to: &mut [u8], from: &[u8]) {
    fn ends<const N: usize>(to: &mut [u8], from: &[u8]) {
        if let (Some(start), Some(end)) = (from.first_chunk::<N>(), from.last_chunk::<N>()) {
            let at = to.len() - N;
            to[..N].copy_from_slice(start);
            to[at..].copy_from_slice(end);
        }
    }
    match from.len() {
        33.. => to.copy_from_slice(from),
        16.. => ends::<16>(to, from),
        8.. => ends::<8>(to, from),
        4.. => ends::<4>(to, from),
        2.. => ends::<2>(to, from),
        1 => to[0] = from[0],
        0 => (),
    }
}

#[cfg(test)]
mod tests;
