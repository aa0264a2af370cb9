//! Inbox of a worker: published messages that the worker has not taken yet.
//!
//! ```text
//!  bytes    *3 $7 message $4 news $5 hello | *4 $8 pmessage $2 n* $4 news $5 hello | *1 $1 k            | ...
//!  letters  from 0, to channel `news`      | from 42, to pattern `n*`              | to 2 connections   | ...
//! ```
//!
//! Messages are encoded in RESP2; RESP3 differs in the first byte only. For invalidation messages
//! ([`crate::observe::tracking`]) the inbox holds only the part that is the same in all protocols. The worker
//! takes all messages at once and leaves an empty [`Mail`] in their place, so nothing is allocated once both
//! have grown.
//!
//! The inbox ([`Tray`]) of a worker that falls behind fills up. From [`INBOX_BYTES`] on it is crowded. While
//! any inbox is crowded, publishers are throttled (see [`crate::net::execute`]). The worker that empties the
//! last crowded inbox wakes the publishers. Requests that run already complete their window, so an inbox may
//! slightly exceed the bound.

use std::cell::RefCell;
use std::ops::Range;

use keyspace::{INLINE_VALUE_MAX, LargeValue};
use resp::reply::{Protocol, Writer, put_bulk};

use super::NameKind;
use super::tray::{Contents, Crowd, Tray};
use super::{Addressee, News};
use crate::limits::{INBOX_BYTES, LOG_KEEP_BYTES};
use crate::pubsub::PubSub;
use crate::request::{Args, Pinned};

/// Inbox of a worker.
#[derive(Default)]
pub(crate) struct Inbox(Tray<Mail>);

/// Messages and their recipients.
#[derive(Default)]
pub(super) struct Mail {
    pub(super) bytes: Vec<u8>,
    /// Payloads sent by reference, between the bytes.
    pub(super) large: Vec<Pinned>,
    pub(super) letters: Vec<Entry>,
    /// Connections to which letters refer.
    pub(super) addressees: Vec<Addressee>,
    large_bytes: usize,
}

/// One message of a [`Mail`]. It ends where the next one begins.
pub(super) struct Entry {
    pub(super) to: To,
    /// Its first byte.
    pub(super) from: usize,
}

/// Recipients of a message.
#[derive(Clone)]
pub(super) enum To {
    /// Listeners of a name, which is at this range of the bytes.
    Listeners(NameKind, Range<usize>),
    /// Addressees at this range, for an invalidation message.
    Keepers(Range<usize>),
    /// Addressee at this index: the connection of its REDIRECT has ended.
    Redirected(usize),
}

/// Workers that this thread has to wake because it has written to their inboxes. A wake-up may take a system
/// call, and messages are often published under the lock of a shard, so wake-ups are deferred.
struct ToWake {
    /// Worker of this thread, which takes its own inbox before its turn ends. `None` on other threads, which
    /// wake at once.
    own: Option<usize>,
    others: Vec<usize>,
}

thread_local! {
    static TO_WAKE: RefCell<ToWake> = const {
        RefCell::new(ToWake {
            own: None,
            others: Vec::new(),
        })
    };
}

/// Marks this thread as a worker. From here on it calls [`wake_noted`] in each of its turns.
pub(crate) fn begin_worker(number: usize) {
    TO_WAKE.with_borrow_mut(|to_wake| to_wake.own = Some(number));
}

/// Whether this thread is a worker.
pub(crate) fn is_worker() -> bool {
    TO_WAKE.with_borrow(|to_wake| to_wake.own.is_some())
}

/// Wakes the workers to whose inboxes this worker has written.
#[inline]
pub(crate) fn wake_noted(server: &PubSub) {
    TO_WAKE.with_borrow_mut(|to_wake| {
        to_wake
            .others
            .drain(..)
            .for_each(|worker| server.workers[worker].wake());
    });
}

fn note_to_wake(server: &PubSub, worker: usize) {
    TO_WAKE.with_borrow_mut(|to_wake| match to_wake.own {
        None => server.workers[worker].wake(),
        Some(own) if own == worker || to_wake.others.contains(&worker) => {}
        Some(_) => to_wake.others.push(worker),
    });
}

impl Inbox {
    /// Whether there are messages.
    #[inline]
    pub(crate) fn has_mail(&self) -> bool {
        self.bytes() > 0
    }

    /// Bytes of the messages.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// Swaps the messages for `empty`. Returns whether this ends the throttle of publishers.
    pub(super) fn take(&self, crowd: &Crowd, empty: &mut Mail) -> bool {
        self.0.take(crowd, empty)
    }

    fn add(&self, crowd: &Crowd, write: impl FnOnce(&mut Mail)) {
        self.0.add(crowd, INBOX_BYTES, write);
    }
}

impl Contents for Mail {
    fn memory(&self) -> usize {
        self.bytes.len()
            + self.large_bytes
            + self.letters.len() * size_of::<Entry>()
            + self.addressees.len() * size_of::<Addressee>()
    }
}

impl Mail {
    /// End of the message at `at`.
    pub(super) fn end_of(&self, at: usize) -> usize {
        let next = self.letters.get(at + 1);
        next.map_or(self.bytes.len(), |next| next.from)
    }

    /// Removes all messages and keeps capacity for a usual turn.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.large.clear();
        self.letters.clear();
        self.addressees.clear();
        self.large_bytes = 0;
        if self.bytes.capacity() > LOG_KEEP_BYTES {
            self.bytes = Vec::new();
        }
        if self.letters.capacity() > LOG_KEEP_BYTES / size_of::<Entry>() {
            self.letters = Vec::new();
        }
        if self.addressees.capacity() > LOG_KEEP_BYTES / size_of::<Addressee>() {
            self.addressees = Vec::new();
        }
    }
}

/// Sends news to connections, which are sorted by worker.
pub(crate) fn tell(server: &PubSub, all: &[Addressee], news: News<'_>) {
    let is_of_redirection = matches!(news, News::Broken(_));
    let mut text = Vec::new();
    news.write(&mut text);
    for own in all.chunk_by(|one, other| one.client.worker == other.client.worker) {
        let worker = own[0].client.worker;
        server.inboxes[worker].add(&server.crowd, |mail| {
            let (from, first) = (mail.bytes.len(), mail.addressees.len());
            mail.bytes.extend_from_slice(&text);
            mail.addressees.extend_from_slice(own);
            let to = if is_of_redirection {
                To::Redirected(first)
            } else {
                To::Keepers(first..mail.addressees.len())
            };
            mail.letters.push(Entry { to, from });
        });
        note_to_wake(server, worker);
    }
}

/// Message that is being published.
pub(super) struct Letter<'m> {
    channel: &'m [u8],
    payload: Payload<'m>,
    /// Payload in a buffer of its own, made at its first use: all workers send from it.
    large: Option<LargeValue>,
}

/// Payload of a message.
#[derive(Clone, Copy)]
pub(crate) enum Payload<'m> {
    Bytes(&'m [u8]),
    /// Argument of a request. The receive buffer of a large argument is sent as it is.
    Argument(&'m Args<'m>, usize),
}

impl Payload<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Payload::Bytes(bytes) => bytes,
            Payload::Argument(args, at) => args.get(*at),
        }
    }

    fn large(&self) -> LargeValue {
        match self {
            Payload::Bytes(bytes) => LargeValue::new(bytes.to_vec().into()),
            Payload::Argument(args, at) => args.large(*at),
        }
    }
}

impl<'m> Letter<'m> {
    pub(super) fn new(channel: &'m [u8], payload: Payload<'m>) -> Letter<'m> {
        Letter {
            channel,
            payload,
            large: None,
        }
    }

    /// Adds the message to a worker's inbox, for the listeners of the channel or of the pattern.
    pub(super) fn put(
        &mut self,
        server: &PubSub,
        worker: usize,
        kind: NameKind,
        pattern: Option<&[u8]>,
    ) {
        server.inboxes[worker].add(&server.crowd, |mail| self.write(kind, pattern, mail));
        note_to_wake(server, worker);
    }

    fn write(&mut self, kind: NameKind, pattern: Option<&[u8]>, mail: &mut Mail) {
        let from = mail.bytes.len();
        mail.bytes.extend_from_slice(match kind {
            NameKind::Channel => b"*3\r\n$7\r\nmessage\r\n",
            NameKind::Pattern => b"*4\r\n$8\r\npmessage\r\n",
            NameKind::Shard => b"*3\r\n$8\r\nsmessage\r\n",
        });
        let name = pattern.unwrap_or(self.channel);
        put_bulk(&mut mail.bytes, name);
        let name_end = mail.bytes.len() - b"\r\n".len();
        if pattern.is_some() {
            put_bulk(&mut mail.bytes, self.channel);
        }
        let payload = self.payload.bytes();
        if payload.len() <= INLINE_VALUE_MAX {
            put_bulk(&mut mail.bytes, payload);
        } else {
            let large = self.large.get_or_insert_with(|| self.payload.large());
            let mut writer = Writer::new(&mut mail.bytes, Protocol::Resp2);
            writer.bulk_header(payload.len());
            let at = writer.out.len();
            writer.crlf();
            mail.large.push(Pinned {
                at,
                value: LargeValue::clone(large),
            });
            mail.large_bytes += payload.len();
        }
        let name = name_end - name.len()..name_end;
        mail.letters.push(Entry {
            to: To::Listeners(kind, name),
            from,
        });
    }
}
