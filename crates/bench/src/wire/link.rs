//! A connection of a load: opened without waiting, greeted, then a stream of requests and replies.
//!
//! ```text
//! Dialing --writable--> Greeting --all replies--> Open
//!                 \_______no greeting____________/
//! ```
//!
//! What a socket does not take at once waits in the link's backlog, and the link asks to be told when
//! there is room. What does not live here: when a request is sent and what its reply is worth.

use super::replies::{Kind, Replies};
use crate::limits::ERROR_TEXT_BYTES;
use crate::load::data::Data;
use crate::load::outgoing::Outgoing;
use resp::ReplyError;
use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;
use sys::socket::Endpoint;
use sys::{Backend, Event, Interest, Poller, Socket};

/// How the error reply begins that every request gets on a connection without a password.
pub(crate) const NO_AUTH: &str = "NOAUTH";

/// What is said of a server that wants a password.
pub(crate) fn no_auth(name: &str, text: &str) -> String {
    format!("{name}: {text} (-a, --user and --uri say who asks)")
}

/// What can go wrong with a connection.
#[derive(Debug)]
pub(crate) enum LinkError {
    /// The system says so.
    Io(io::Error),
    /// The server closed it.
    Closed,
    /// The server sent something that is no reply.
    NoReply(ReplyError),
    /// The server answered the greeting with an error.
    Refused(String),
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkError::Io(error) => f.write_str(&plain(error)),
            LinkError::Closed => f.write_str("Server closed the connection"),
            LinkError::NoReply(error) => write!(f, "what the server sent is no reply: {error}"),
            LinkError::Refused(text) => f.write_str(text),
        }
    }
}

impl From<io::Error> for LinkError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // Closed with requests unread: the connection had been there.
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => LinkError::Closed,
            _ => LinkError::Io(error),
        }
    }
}

impl From<ReplyError> for LinkError {
    fn from(error: ReplyError) -> Self {
        LinkError::NoReply(error)
    }
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Dialing,
    /// So many replies to the greeting are still to come.
    Greeting(u32),
    Open,
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Link {
    socket: Socket,
    state: State,
    replies: Replies,
    /// What the socket did not take, boxed because few links ever have any.
    backlog: Option<Box<Outgoing>>,
}

/// What an event has led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkEvent {
    /// Nothing to act upon yet.
    None,
    /// The connection has just become usable.
    Opened,
    /// It is usable.
    Open,
}

impl Link {
    /// Begins to connect.
    ///
    /// # Errors
    /// As [`Socket::dial`].
    pub(crate) fn dial(poller: &mut Poller, to: &Endpoint, token: u64) -> io::Result<Link> {
        let socket = Socket::dial(to)?;
        poller.add(socket.as_fd(), token, Interest::WRITE)?;
        Ok(Link {
            socket,
            state: State::Dialing,
            replies: Replies::default(),
            backlog: None,
        })
    }

    /// Requests can be sent.
    pub(crate) fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// There is something that the socket did not take.
    pub(crate) fn is_blocked(&self) -> bool {
        self.backlog.is_some()
    }

    /// Does what an event allows, short of reading replies to requests.
    ///
    /// # Errors
    /// The connection did not come about, is broken, or the greeting was refused.
    pub(crate) fn advance(
        &mut self,
        poller: &mut Poller,
        event: Event,
        greeting: (&[u8], u32),
        data: &Data,
        input: &mut [u8],
    ) -> Result<LinkEvent, LinkError> {
        match self.state {
            State::Dialing => self.greet(poller, event, greeting, data),
            State::Greeting(left) if event.readable || event.hangup => {
                self.hear(poller, left, input)
            }
            State::Greeting(_) => Ok(LinkEvent::None),
            State::Open => {
                if event.writable {
                    self.flush(poller, event.token, data)?;
                }
                Ok(LinkEvent::Open)
            }
        }
    }

    fn greet(
        &mut self,
        poller: &mut Poller,
        event: Event,
        (bytes, count): (&[u8], u32),
        data: &Data,
    ) -> Result<LinkEvent, LinkError> {
        self.socket.take_error()?;
        if !event.writable {
            return Ok(LinkEvent::None);
        }
        poller.modify(self.socket.as_fd(), event.token, Interest::READ)?;
        if count == 0 {
            self.state = State::Open;
            return Ok(LinkEvent::Opened);
        }
        self.state = State::Greeting(count);
        let mut out = Outgoing::default();
        out.bytes.extend_from_slice(bytes);
        self.send(poller, event.token, &mut out, data)?;
        Ok(LinkEvent::None)
    }

    fn hear(
        &mut self,
        poller: &mut Poller,
        mut left: u32,
        input: &mut [u8],
    ) -> Result<LinkEvent, LinkError> {
        let mut refusal = None;
        self.receive(poller, input, &mut |kind, count, bytes| {
            left = left.saturating_sub(count);
            if kind == Kind::Error && refusal.is_none() {
                refusal = Some(error_text(bytes));
            }
        })?;
        if let Some(text) = refusal {
            return Err(LinkError::Refused(text));
        }
        if left > 0 {
            self.state = State::Greeting(left);
            return Ok(LinkEvent::None);
        }
        self.state = State::Open;
        Ok(LinkEvent::Opened)
    }

    /// Receives once, and tells `each` about every whole reply; returns how many bytes came.
    ///
    /// # Errors
    /// The connection is broken or closed, or this is no reply.
    #[inline]
    pub(crate) fn receive(
        &mut self,
        poller: &mut Poller,
        input: &mut [u8],
        each: &mut impl FnMut(Kind, u32, &[u8]),
    ) -> Result<usize, LinkError> {
        match poller.recv(self.socket.as_fd(), input) {
            Ok(0) => Err(LinkError::Closed),
            Ok(count) => {
                self.replies.read(&input[..count], each)?;
                Ok(count)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends, and takes over what the socket does not take: `out` is empty afterwards.
    ///
    /// # Errors
    /// The connection is broken.
    #[inline]
    pub(crate) fn send(
        &mut self,
        poller: &mut Poller,
        token: u64,
        out: &mut Outgoing,
        data: &Data,
    ) -> Result<(), LinkError> {
        if let Some(backlog) = &mut self.backlog {
            // Nothing may overtake what is waiting.
            backlog.append(out);
            return Ok(());
        }
        if out.send(poller, self.socket.as_fd(), data)? {
            out.clear();
            return Ok(());
        }
        self.backlog = Some(Box::new(std::mem::take(out)));
        poller.modify(self.socket.as_fd(), token, Interest::BOTH)?;
        Ok(())
    }

    fn flush(&mut self, poller: &mut Poller, token: u64, data: &Data) -> Result<(), LinkError> {
        let Some(backlog) = &mut self.backlog else {
            return Ok(());
        };
        if backlog.send(poller, self.socket.as_fd(), data)? {
            self.backlog = None;
            poller.modify(self.socket.as_fd(), token, Interest::READ)?;
        }
        Ok(())
    }

    /// Takes the connection out of the poller, before it is dropped and thereby closed.
    pub(crate) fn leave(&self, poller: &mut Poller) {
        // It can only fail if the descriptor is not registered, which is what was asked for.
        let _ = poller.remove(self.socket.as_fd());
    }
}

/// The text of a system error, without its number.
pub(crate) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((reason, _)) => reason.to_owned(),
        None => text,
    }
}

/// The text of an error reply, without its type and cut to what is shown.
pub(crate) fn error_text(bytes: &[u8]) -> String {
    // The newer form of errors has a line with its length in front.
    let text = match bytes.first() {
        Some(b'!') => bytes.splitn(2, |&byte| byte == b'\n').nth(1).unwrap_or(b""),
        _ => bytes.get(1..).unwrap_or(b""),
    };
    let text = &text[..text.len().min(ERROR_TEXT_BYTES)];
    String::from_utf8_lossy(text).trim_end().to_owned()
}

/// Connects and hangs up, to see whether anybody listens.
///
/// # Errors
/// Nobody does, or not within ten seconds.
pub(crate) fn probe(to: &Endpoint) -> io::Result<()> {
    let mut poller = Poller::new(Backend::Auto)?;
    let link = Link::dial(&mut poller, to, 0)?;
    let mut events = Vec::new();
    poller.wait(&mut events, Some(Duration::from_secs(10)))?;
    if events.is_empty() {
        return Err(io::ErrorKind::TimedOut.into());
    }
    link.socket.take_error()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_errors_lose_their_number() {
        let refused = io::Error::from_raw_os_error(111);
        let reset = LinkError::from(io::Error::from_raw_os_error(104));
        assert_eq!(reset.to_string(), "Server closed the connection");
        assert!(!plain(&refused).contains("os error"), "{}", plain(&refused));
        assert_eq!(plain(&io::Error::other("why")), "why");
    }

    #[test]
    fn error_texts_are_cut_and_lose_their_type() {
        assert_eq!(error_text(b"-ERR no such thing\r\n"), "ERR no such thing");
        assert_eq!(error_text(b"!5\r\nERR x\r\n"), "ERR x");
        assert_eq!(error_text(b""), "");
        let long = [b"-".as_slice(), &[b'e'; 1_000], b"\r\n"].concat();
        assert_eq!(error_text(&long).len(), ERROR_TEXT_BYTES);
    }
}
