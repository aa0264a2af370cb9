//! What is under way to a worker: messages that others have published and it has not looked at yet.
//!
//! ```text
//!  bytes    *3 $7 message $4 news $5 hello | *4 $8 pmessage $2 n* $4 news $5 hello | *1 $1 k                     | ...
//!  letters  from 0, to channel `news`      | from 42, to pattern `n*`              | to these two connections    | ...
//! ```
//!
//! Messages are written as RESP2 has them; RESP3 differs in the first byte alone. Of what connections are
//! told by name ([`crate::observe::tracking`]), only what all protocols have in common is here. The worker
//! takes all of it at once and leaves an emptied one in its place, so that nothing is allocated once both
//! have grown.
//!
//! A worker that is slow to look lets its inbox, a [`Tray`], fill up. From [`INBOX_BYTES`] on it counts as
//! crowded, and as long as any is, whoever publishes is held back (see [`crate::net::execute`]); the worker
//! that empties the last crowded inbox wakes those that wait. What runs already may go on to the end of its
//! window, so an inbox is a little larger at most.

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

/// See the module.
#[derive(Default)]
pub(crate) struct Inbox(Tray<Mail>);

/// Messages and whom they are for.
#[derive(Default)]
pub(super) struct Mail {
    pub(super) bytes: Vec<u8>,
    /// Payloads that are sent from where they are; they belong between the bytes.
    pub(super) large: Vec<Pinned>,
    pub(super) letters: Vec<Entry>,
    /// Those whom letters name.
    pub(super) addressees: Vec<Addressee>,
    large_bytes: usize,
}

/// One message of a [`Mail`]. It reaches to the next one's beginning.
pub(super) struct Entry {
    pub(super) to: To,
    /// Where it begins in the bytes.
    pub(super) from: usize,
}

/// Whom a message is for.
#[derive(Clone)]
pub(super) enum To {
    /// Those who listen to the name that stands at a place in the bytes.
    Listeners(NameKind, Range<usize>),
    /// Those at a place in the list of addressees: copies of keys are worth nothing.
    Keepers(Range<usize>),
    /// The one at a place in that list: who was told in its place has ended.
    Redirected(usize),
}

/// Whom this thread has to wake because it left something in their inboxes. Waking may take a system call,
/// and what is published is often published under the lock of a shard, so it comes later.
struct ToWake {
    /// The worker that this thread is; it looks into its own inbox before its turn ends. Other threads have
    /// none, and nobody who comes later: they wake at once.
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

/// Says that this thread is a worker: from here on it calls [`wake_noted`] in each of its turns.
pub(crate) fn begin_worker(number: usize) {
    TO_WAKE.with_borrow_mut(|to_wake| to_wake.own = Some(number));
}

/// Whether this thread is a worker.
pub(crate) fn is_worker() -> bool {
    TO_WAKE.with_borrow(|to_wake| to_wake.own.is_some())
}

/// Wakes the workers in whose inboxes this worker has left something.
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
    /// Whether something waits.
    #[inline]
    pub(crate) fn has_mail(&self) -> bool {
        self.bytes() > 0
    }

    /// Bytes that wait.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// Exchanges what waits for `empty`. Returns whether publishers were held back for it alone, and may go
    /// on.
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
    /// Where the message behind the one at `at` begins, or the last one ends.
    pub(super) fn end_of(&self, at: usize) -> usize {
        let next = self.letters.get(at + 1);
        next.map_or(self.bytes.len(), |next| next.from)
    }

    /// Empties it and keeps room for as much as a turn usually brings.
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

/// Leaves news for connections, in order of their workers.
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

/// A message that is being published.
pub(super) struct Letter<'m> {
    channel: &'m [u8],
    payload: Payload<'m>,
    /// The payload in a buffer of its own, made when it is first needed: all workers send from it.
    large: Option<LargeValue>,
}

/// What a message says.
#[derive(Clone, Copy)]
pub(crate) enum Payload<'m> {
    Bytes(&'m [u8]),
    /// An argument of a request. If it is large, the buffer in which it came is sent as it is.
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

    /// Leaves it in a worker's inbox, for those who listen to the channel or to the pattern.
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
