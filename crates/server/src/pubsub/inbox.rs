//! What is under way to a worker: messages that others have published and it has not looked at yet.
//!
//! ```text
//!  bytes    *3 $7 message $4 news $5 hello | *4 $8 pmessage $2 n* $4 news $5 hello | ...
//!  letters  from 0, to channel `news`      | from 42, to pattern `n*`              | ...
//! ```
//!
//! Messages are written as RESP2 has them; RESP3 differs in the first byte alone. The worker takes all of it at once and leaves an
//! emptied one in its place, so that nothing is allocated once both have grown.
//!
//! A worker that is slow to look lets its inbox fill up. From [`INBOX_BYTES`] on it counts as crowded, and as long as any is,
//! whoever publishes is held back (see [`crate::execute`]); the worker that empties the last crowded inbox wakes those that
//! wait. What runs already may go on to the end of its window, so an inbox is a little larger at most.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use keyspace::{INLINE_VALUE_MAX, LargeValue};
use parking_lot::Mutex;
use resp::reply::{Protocol, Writer, put_bulk};

use super::NameKind;
use crate::command::Pinned;
use crate::limits::{INBOX_BYTES, LOG_KEEP_BYTES};
use crate::server::Server;

/// See the module.
#[derive(Default)]
pub(crate) struct Inbox {
    mail: Mutex<Mail>,
    /// What `mail` takes, to be looked at without its lock.
    waiting: AtomicUsize,
}

/// Messages and whom they are for.
#[derive(Default)]
pub(super) struct Mail {
    pub(super) bytes: Vec<u8>,
    /// Payloads that are sent from where they are; they belong between the bytes.
    pub(super) large: Vec<Pinned>,
    pub(super) letters: Vec<Entry>,
    large_bytes: usize,
    is_crowded: bool,
}

/// One message of a [`Mail`]. It reaches to the next one's beginning.
pub(super) struct Entry {
    pub(super) kind: NameKind,
    /// Where it begins in the bytes.
    pub(super) from: usize,
    /// Where the name stands to whose listeners it goes.
    pub(super) name: Range<usize>,
}

/// The workers in whose inboxes something was left, to be woken once no lock is held any more.
#[derive(Default)]
pub(crate) struct Post {
    /// The worker that leaves it. It looks into its own inbox before its turn ends.
    pub(super) own: usize,
    pub(super) others: Vec<usize>,
}

impl Post {
    pub(super) fn of_worker(own: usize) -> Post {
        Post {
            own,
            others: Vec::new(),
        }
    }

    fn note(&mut self, worker: usize) {
        if worker != self.own && !self.others.contains(&worker) {
            self.others.push(worker);
        }
    }
}

/// How many inboxes are crowded.
#[derive(Default)]
pub(crate) struct Crowd(AtomicUsize);

impl Crowd {
    /// Whether publishers have to wait.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.0.load(Relaxed) > 0
    }
}

impl Inbox {
    /// Whether something waits.
    #[inline]
    pub(crate) fn has_mail(&self) -> bool {
        self.bytes() > 0
    }

    /// Bytes that wait.
    pub(crate) fn bytes(&self) -> usize {
        self.waiting.load(Relaxed)
    }

    /// Exchanges what waits for `empty`. Returns whether publishers were held back for it alone, and may go on.
    pub(super) fn take(&self, crowd: &Crowd, empty: &mut Mail) -> bool {
        let mut mail = self.mail.lock();
        std::mem::swap(&mut *mail, empty);
        self.waiting.store(0, Relaxed);
        std::mem::take(&mut empty.is_crowded) && crowd.0.fetch_sub(1, Relaxed) == 1
    }

    fn add(&self, crowd: &Crowd, write: impl FnOnce(&mut Mail)) {
        let mut mail = self.mail.lock();
        write(&mut mail);
        let waiting = mail.memory();
        self.waiting.store(waiting, Relaxed);
        if waiting > INBOX_BYTES && !mail.is_crowded {
            mail.is_crowded = true;
            crowd.0.fetch_add(1, Relaxed);
        }
    }
}

impl Mail {
    fn memory(&self) -> usize {
        self.bytes.len() + self.large_bytes + self.letters.len() * size_of::<Entry>()
    }

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
        self.large_bytes = 0;
        if self.bytes.capacity() > LOG_KEEP_BYTES {
            self.bytes = Vec::new();
        }
        if self.letters.capacity() > LOG_KEEP_BYTES / size_of::<Entry>() {
            self.letters = Vec::new();
        }
    }
}

/// A message that is being published.
pub(super) struct Letter<'m> {
    channel: &'m [u8],
    payload: &'m [u8],
    /// The payload in a buffer of its own, made when it is first needed: all workers send from it.
    large: Option<LargeValue>,
}

impl<'m> Letter<'m> {
    pub(super) fn new(channel: &'m [u8], payload: &'m [u8]) -> Letter<'m> {
        Letter {
            channel,
            payload,
            large: None,
        }
    }

    /// Leaves it in a worker's inbox, for those who listen to the channel or to the pattern.
    pub(super) fn put(
        &mut self,
        server: &Server,
        worker: usize,
        kind: NameKind,
        pattern: Option<&[u8]>,
        post: &mut Post,
    ) {
        post.note(worker);
        server.workers[worker]
            .published
            .add(&server.crowd, |mail| self.write(kind, pattern, mail));
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
        if self.payload.len() <= INLINE_VALUE_MAX {
            put_bulk(&mut mail.bytes, self.payload);
        } else {
            let payload = self.payload;
            let large = self
                .large
                .get_or_insert_with(|| LargeValue::new(payload.to_vec()));
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
        mail.letters.push(Entry {
            kind,
            from,
            name: name_end - name.len()..name_end,
        });
    }
}
