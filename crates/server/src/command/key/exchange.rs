//! MIGRATE's conversation with its target: a connection, AUTH, SELECT, a RESTORE for each key, and their
//! replies. It blocks, so it runs on a thread of its own, or in a transaction.
//!
//! Nothing is sent before AUTH and SELECT have succeeded: no key comes to a wrong database. Of the replies to
//! RESTORE only `+OK` says that the target has the key.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::time::Duration;

use resp::reply::{Protocol, Writer};
use sys::socket::{Family, Stream};

use super::payload;
use crate::limits::{MIGRATE_AHEAD_KEYS, MIGRATE_REPLY_BYTES, PIECE_BYTES};
use crate::store::Still;

/// Where keys are sent, and how.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Recipient {
    /// As it was sent; not all bytes are a name.
    pub(super) host: Vec<u8>,
    pub(super) port: u16,
    pub(super) db: i64,
    pub(super) timeout: Duration,
    /// Arguments of AUTH.
    pub(super) login: Option<Vec<Vec<u8>>>,
    /// Keys that it has are replaced.
    pub(super) replaces: bool,
    /// Both servers are nodes of a cluster.
    pub(super) asks: bool,
    /// Strings are compressed.
    pub(super) compresses: bool,
}

/// A key as it is sent.
pub(super) struct Parcel {
    pub(super) key: Box<[u8]>,
    /// When it expires (Unix, ms).
    pub(super) expiry: Option<i64>,
    pub(super) value: Still,
}

/// Reason for which a conversation has ended before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    Connecting,
    Writing,
    Reading,
}

/// Result of a conversation.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Delivery {
    /// Numbers of the keys that the recipient has now.
    pub(super) taken: Vec<usize>,
    /// The first error that it has replied.
    pub(super) refused: Option<Vec<u8>>,
    pub(super) lost: Option<Lost>,
}

/// Sends keys, and reads the replies.
pub(super) fn deliver(to: &Recipient, parcels: Vec<Parcel>) -> Delivery {
    let mut delivery = Delivery::default();
    delivery.lost = converse(to, parcels, &mut delivery).err();
    delivery
}

fn converse(to: &Recipient, parcels: Vec<Parcel>, delivery: &mut Delivery) -> Result<(), Lost> {
    let mut wire = Wire::open(to)?;
    if !wire.introduce(to, delivery)? {
        return Ok(());
    }
    // Keys whose replies have not come, by number.
    let mut unanswered = VecDeque::new();
    for (number, parcel) in parcels.into_iter().enumerate() {
        let Some(ttl) = ttl(parcel.expiry) else {
            continue;
        };
        let payload = payload::dump(&parcel.value, to.compresses);
        wire.restore(to, &parcel.key, ttl, &payload)?;
        unanswered.push_back(number);
        if unanswered.len() == MIGRATE_AHEAD_KEYS {
            wire.flush()?;
            while unanswered.len() > MIGRATE_AHEAD_KEYS / 2 {
                take(&mut wire, unanswered.pop_front(), delivery)?;
            }
        }
    }
    wire.flush()?;
    while !unanswered.is_empty() {
        take(&mut wire, unanswered.pop_front(), delivery)?;
    }
    Ok(())
}

/// Reads the reply to the RESTORE of a key.
fn take(wire: &mut Wire, number: Option<usize>, delivery: &mut Delivery) -> Result<(), Lost> {
    match wire.reply()? {
        Reply::Status(text) if text == b"OK" => delivery.taken.extend(number),
        Reply::Status(_) => return Err(Lost::Reading),
        Reply::Error(text) => {
            delivery.refused.get_or_insert(text);
        }
    }
    Ok(())
}

/// The TTL of a key that is sent now: 0 for none. `None`: its time has come.
fn ttl(expiry: Option<i64>) -> Option<i64> {
    match expiry {
        None => Some(0),
        Some(moment) => match moment - sys::clock::realtime_ms() {
            ..0 => None,
            left => Some(left.max(1)),
        },
    }
}

/// A reply of one line.
enum Reply {
    Status(Vec<u8>),
    Error(Vec<u8>),
}

/// A connection to a recipient.
struct Wire {
    stream: Stream,
    /// Requests that are not sent yet.
    out: Vec<u8>,
    /// Bytes that were read, and how many of them were taken.
    input: Vec<u8>,
    at: usize,
}

impl Wire {
    fn open(to: &Recipient) -> Result<Wire, Lost> {
        let host = str::from_utf8(&to.host).map_err(|_| Lost::Connecting)?;
        let connected = Stream::connect_tcp(host, to.port, Family::Any, Some(to.timeout));
        // redis-server finds out with its first request that a connection was refused.
        let stream = connected.map_err(|error| match error.kind() {
            ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => Lost::Writing,
            _ => Lost::Connecting,
        })?;
        let is_bounded = stream.set_patience(to.timeout);
        is_bounded.map_err(|_| Lost::Connecting)?;
        Ok(Wire {
            stream,
            out: Vec::new(),
            input: Vec::new(),
            at: 0,
        })
    }

    /// Logs in and chooses the database; whether both have succeeded.
    fn introduce(&mut self, to: &Recipient, delivery: &mut Delivery) -> Result<bool, Lost> {
        let mut requests = 1;
        if let Some(login) = &to.login {
            self.request(1 + login.len(), b"AUTH");
            login.iter().for_each(|word| self.word(word));
            requests += 1;
        }
        self.request(2, b"SELECT");
        self.word(to.db.to_string().as_bytes());
        self.flush()?;
        for _ in 0..requests {
            if let Reply::Error(text) = self.reply()? {
                delivery.refused.get_or_insert(text);
            }
        }
        Ok(delivery.refused.is_none())
    }

    /// Sends a RESTORE, or keeps it for [`Wire::flush`].
    fn restore(
        &mut self,
        to: &Recipient,
        key: &[u8],
        ttl: i64,
        payload: &[u8],
    ) -> Result<(), Lost> {
        let name: &[u8] = if to.asks {
            b"RESTORE-ASKING"
        } else {
            b"RESTORE"
        };
        self.request(4 + usize::from(to.replaces), name);
        self.word(key);
        self.word(ttl.to_string().as_bytes());
        if payload.len() < PIECE_BYTES {
            self.word(payload);
        } else {
            self.writer().bulk_header(payload.len());
            self.flush()?;
            self.send(payload)?;
            self.writer().crlf();
        }
        if to.replaces {
            self.word(b"REPLACE");
        }
        match self.out.len() {
            PIECE_BYTES.. => self.flush(),
            _ => Ok(()),
        }
    }

    fn writer(&mut self) -> Writer<'_> {
        Writer::new(&mut self.out, Protocol::Resp2)
    }

    /// Begins a request of so many words.
    fn request(&mut self, words: usize, name: &[u8]) {
        self.writer().array(words);
        self.word(name);
    }

    fn word(&mut self, bytes: &[u8]) {
        self.writer().bulk(bytes);
    }

    fn flush(&mut self) -> Result<(), Lost> {
        let mut out = std::mem::take(&mut self.out);
        self.send(&out)?;
        out.clear();
        self.out = out;
        Ok(())
    }

    fn send(&self, bytes: &[u8]) -> Result<(), Lost> {
        (&self.stream).write_all(bytes).map_err(|_| Lost::Writing)
    }

    /// Reads a line that is a reply.
    fn reply(&mut self) -> Result<Reply, Lost> {
        let line = self.read_line().map_err(|_| Lost::Reading)?;
        match line.split_first() {
            Some((b'+', text)) => Ok(Reply::Status(text.to_vec())),
            Some((b'-', text)) => Ok(Reply::Error(text.to_vec())),
            _ => Err(Lost::Reading),
        }
    }

    fn read_line(&mut self) -> io::Result<&[u8]> {
        let end = loop {
            let unread = &self.input[self.at..];
            if let Some(end) = unread.iter().position(|&byte| byte == b'\n') {
                break self.at + end;
            }
            if unread.len() >= MIGRATE_REPLY_BYTES {
                return Err(ErrorKind::InvalidData.into());
            }
            self.input.drain(..std::mem::take(&mut self.at));
            let mut bytes = [0; MIGRATE_REPLY_BYTES];
            match (&self.stream).read(&mut bytes)? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                count => self.input.extend_from_slice(&bytes[..count]),
            }
        };
        let line = &self.input[std::mem::replace(&mut self.at, end + 1)..end];
        Ok(line.strip_suffix(b"\r").unwrap_or(line))
    }
}
