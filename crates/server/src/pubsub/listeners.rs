//! Connections of one worker that may get messages they did not request, and these messages.
//!
//! Invariants:
//!
//! 1. A connection is in the list of a name if and only if it has the name, at the position that it stores.
//!    So leaving a channel costs the same with ten and with a million listeners.
//! 2. `waiting` holds every connection that has parts of a log. A connection without parts is skipped.
//! 3. The logs are empty when no connection waits.
//! 4. A connection that has ended may be listed until all its names are removed, in slices. It gets no
//!    messages. Its slot is not reused before that.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use resp::reply::Protocol;

use super::Addressee;
use super::inbox::{Mail, To};
use super::{Log, NameKind};
use crate::names::{ByHash, steps};
use crate::pubsub::PubSub;
use crate::request::{Pieces, Reply};
use crate::shared::clients::{Client, status};

/// Connections of one worker and their messages.
pub(crate) struct Listeners {
    worker: usize,
    /// Connections by the slot of their token.
    recipients: Vec<Option<Box<Recipient>>>,
    /// Listeners of each name, by kind of name.
    lists: [ByHash<Arc<[u8]>, Slots>; 3],
    /// Messages to be sent, by protocol.
    logs: [Log; 2],
    /// Connections with unsent messages, in order of arrival.
    waiting: VecDeque<u32>,
    /// The last mail, kept for its capacity.
    mail: Mail,
}

/// Listeners of a name, nearly always one.
enum Slots {
    One(u32),
    Several(Vec<u32>),
}

impl Slots {
    fn all(&self) -> &[u32] {
        match self {
            Slots::One(slot) => std::slice::from_ref(slot),
            Slots::Several(slots) => slots,
        }
    }

    /// Adds a listener. Returns its position.
    fn push(&mut self, slot: u32) -> u32 {
        match self {
            Slots::One(first) => *self = Slots::Several(vec![*first, slot]),
            Slots::Several(slots) => slots.push(slot),
        }
        self.all().len() as u32 - 1
    }

    /// Removes the listener at a position and moves the last one there.
    fn swap_remove(&mut self, position: usize) {
        match self {
            Slots::One(_) => *self = Slots::Several(Vec::new()),
            Slots::Several(slots) => {
                slots.swap_remove(position);
                if let [slot] = slots[..] {
                    *self = Slots::One(slot);
                } else if slots.capacity() > 4 * slots.len() {
                    slots.shrink_to(2 * slots.len());
                }
            }
        }
    }
}

/// Entry of a connection in the list of a name.
struct Place {
    position: u32,
    /// Bytes that the name adds to the connection's account.
    bytes: u32,
}

/// Bytes of a subscription beside its name: for each connection, and for the first listener of a name on its
/// worker.
const SUBSCRIPTION_BYTES: usize = 96;
const NAME_BYTES: usize = 160;

/// Connection that may get messages.
struct Recipient {
    token: u64,
    client: Arc<Client>,
    /// Whether it has ended and gets no more messages.
    has_ended: bool,
    protocol: Protocol,
    /// Its parts of the log: ascending, not adjacent.
    parts: Vec<Range<usize>>,
    /// Whether it is in `waiting`.
    is_waiting: bool,
    /// Its names, and its positions in their lists.
    names: [ByHash<Arc<[u8]>, Place>; 3],
}

impl Recipient {
    fn add(&mut self, part: &Range<usize>) {
        match self.parts.last_mut() {
            Some(last) if last.end == part.start => last.end = part.end,
            _ => self.parts.push(part.clone()),
        }
    }
}

/// Messages that a connection is to be sent now.
pub(crate) struct Due<'l> {
    pub(crate) token: u64,
    pub(crate) log: &'l mut Log,
    pub(crate) parts: Vec<Range<usize>>,
}

fn slot_of(token: u64) -> usize {
    token as u32 as usize
}

impl Listeners {
    pub(crate) fn new(worker: usize) -> Listeners {
        Listeners {
            worker,
            recipients: Vec::new(),
            lists: Default::default(),
            logs: Default::default(),
            waiting: VecDeque::new(),
            mail: Mail::default(),
        }
    }

    /// Whether any connection has unsent messages.
    #[inline]
    pub(crate) fn anybody_waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Bytes of unsent messages.
    pub(crate) fn log_bytes(&self) -> usize {
        self.logs.iter().map(Log::len).sum()
    }

    /// Memory of the logs, bytes.
    pub(crate) fn memory(&self) -> usize {
        self.logs.iter().map(Log::memory).sum()
    }

    /// Adds a connection, or changes its protocol.
    pub(crate) fn admit(&mut self, token: u64, protocol: Protocol, client: &Arc<Client>) {
        let slot = slot_of(token);
        if self.recipients.len() <= slot {
            self.recipients.resize_with(slot + 1, || None);
        }
        let recipient = self.recipients[slot].get_or_insert_with(|| {
            Box::new(Recipient {
                token,
                client: Arc::clone(client),
                has_ended: false,
                protocol,
                parts: Vec::new(),
                is_waiting: false,
                names: Default::default(),
            })
        });
        recipient.protocol = protocol;
    }

    /// Ends the messages to a connection. The caller then repeats [`Listeners::forget`] until that is done.
    pub(crate) fn end(&mut self, token: u64) {
        if let Some(Some(recipient)) = self.recipients.get_mut(slot_of(token)) {
            recipient.has_ended = true;
            recipient.parts = Vec::new();
        }
    }

    /// Removes a connection and at most `most` of its names. Returns whether all are removed.
    pub(crate) fn forget(&mut self, server: &PubSub, token: u64, most: usize) -> bool {
        if !self.knows(token) {
            return true;
        }
        for _ in 0..most {
            if !NameKind::ALL
                .iter()
                .any(|&kind| self.leave_any(server, token, kind).is_some())
            {
                self.recipients[slot_of(token)] = None;
                return true;
            }
        }
        false
    }

    /// Removes an arbitrary name of a kind from a connection. Returns the name.
    pub(crate) fn leave_any(
        &mut self,
        server: &PubSub,
        token: u64,
        kind: NameKind,
    ) -> Option<Arc<[u8]>> {
        let recipient = self.recipient(token)?;
        let name = recipient.names[kind as usize].first()?;
        let name = Arc::clone(name);
        self.leave(server, token, kind, &name);
        Some(name)
    }

    /// Names of a kind that a connection has, sorted.
    pub(crate) fn names(&self, token: u64, kind: NameKind) -> Vec<Arc<[u8]>> {
        let recipient = self.recipient(token);
        let names = recipient.map(|recipient| recipient.names[kind as usize].iter());
        let names = names.into_iter().flatten();
        let mut names: Vec<Arc<[u8]>> = names.map(|(name, _)| Arc::clone(name)).collect();
        names.sort_unstable();
        names
    }

    /// Number of names of a kind that a connection has.
    pub(crate) fn count(&self, token: u64, kind: NameKind) -> usize {
        self.recipient(token)
            .map_or(0, |recipient| recipient.names[kind as usize].len())
    }

    /// Whether a connection was added.
    #[inline]
    pub(crate) fn knows(&self, token: u64) -> bool {
        self.recipient(token)
            .is_some_and(|recipient| recipient.token == token)
    }

    /// Number of names of all kinds that a connection has.
    pub(crate) fn count_all(&self, token: u64) -> usize {
        let counts = NameKind::ALL.map(|kind| self.count(token, kind));
        counts.iter().sum()
    }

    fn recipient(&self, token: u64) -> Option<&Recipient> {
        self.recipients.get(slot_of(token))?.as_deref()
    }

    /// Bytes that are kept for a connection that listens to a name, at most.
    pub(crate) fn bytes_of(name: &[u8]) -> usize {
        name.len() + SUBSCRIPTION_BYTES + NAME_BYTES
    }

    /// Adds a connection to the listeners of a name. No effect if it is one, or if it was not added by
    /// [`Listeners::admit`].
    pub(crate) fn join(&mut self, server: &PubSub, token: u64, kind: NameKind, name: &[u8]) {
        let (slot, hash) = (slot_of(token), server.keyspace.hash(name));
        let is_known = self
            .recipient(token)
            .is_none_or(|recipient| recipient.names[kind as usize].contains(hash, name));
        if is_known {
            return;
        }
        let known = self.lists[kind as usize].find(hash, name);
        let is_new = known.is_none();
        let name: Arc<[u8]> = known.map_or_else(|| name.into(), |(name, _)| Arc::clone(name));
        let mut is_free = false;
        let (registry, inbox) = (&server.registry, &server.inboxes[self.worker]);
        registry.join(kind, (hash, &name), self.worker, || {
            is_free = inbox.take(&server.crowd, &mut self.mail);
        });
        self.hand_out(server, is_free);
        let list = &mut self.lists[kind as usize];
        let position = match list.get_mut(hash, &name) {
            Some(slots) => slots.push(slot as u32),
            None => {
                list.insert(hash, Arc::clone(&name), Slots::One(slot as u32));
                0
            }
        };
        // Each account includes the name, because the first listener may leave before the others.
        let bytes = name.len() + SUBSCRIPTION_BYTES + if is_new { NAME_BYTES } else { 0 };
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let recipient = self.recipients[slot].as_mut().expect("it was found above");
        recipient.client.keep(bytes as usize);
        recipient.names[kind as usize].insert(hash, name, Place { position, bytes });
    }

    /// Removes a connection from the listeners of a name. It may still receive messages that were published
    /// before.
    pub(crate) fn leave(&mut self, server: &PubSub, token: u64, kind: NameKind, name: &[u8]) {
        let hash = server.keyspace.hash(name);
        let has_name = self
            .recipient(token)
            .is_some_and(|recipient| recipient.names[kind as usize].contains(hash, name));
        if !has_name {
            return;
        }
        let mut is_free = false;
        let (registry, inbox) = (&server.registry, &server.inboxes[self.worker]);
        registry.leave(kind, (hash, name), self.worker, || {
            is_free = inbox.take(&server.crowd, &mut self.mail);
        });
        self.hand_out(server, is_free);
        self.unlist(slot_of(token), kind, hash, name);
    }

    fn unlist(&mut self, slot: usize, kind: NameKind, hash: u64, name: &[u8]) {
        steps::add(1);
        let recipient = self.recipients[slot].as_mut().expect("it has the name");
        let place = recipient.names[kind as usize].remove(hash, name);
        let Place { position, bytes } = place.expect("it has the name");
        recipient.client.free(bytes as usize);
        let lists = &mut self.lists[kind as usize];
        let list = lists.get_mut(hash, name).expect("it has a listener");
        list.swap_remove(position as usize);
        if let Some(&moved) = list.all().get(position as usize) {
            let moved = self.recipients[moved as usize].as_mut();
            let names = &mut moved.expect("it is listed").names[kind as usize];
            let place = names.get_mut(hash, name).expect("it is listed");
            place.position = position;
        } else if list.all().is_empty() {
            lists.remove(hash, name);
        }
    }

    /// Takes the messages out of this worker's inbox.
    pub(crate) fn collect(&mut self, server: &PubSub) {
        let inbox = &server.inboxes[self.worker];
        if inbox.has_mail() {
            let is_free = inbox.take(&server.crowd, &mut self.mail);
            self.hand_out(server, is_free);
        }
    }

    /// Distributes the taken mail to its listeners. `is_free`: the throttle of publishers has ended.
    fn hand_out(&mut self, server: &PubSub, is_free: bool) {
        let mail = std::mem::take(&mut self.mail);
        let mut at = 0;
        while at < mail.letters.len() {
            let To::Listeners(kind, name) = &mail.letters[at].to else {
                self.tell(&mail, at);
                at += 1;
                continue;
            };
            let (kind, name) = (*kind, &mail.bytes[name.clone()]);
            // Consecutive messages to the same listeners are one part.
            let mut end = at + 1;
            while let Some(next) = mail.letters.get(end)
                && let To::Listeners(next_kind, next_name) = &next.to
                && *next_kind == kind
                && mail.bytes[next_name.clone()] == *name
            {
                end += 1;
            }
            self.give(&mail, at..end, kind, (server.keyspace.hash(name), name));
            at = end;
        }
        self.mail = mail;
        self.mail.clear();
        if is_free {
            server.wake_workers();
        }
    }

    /// Distributes consecutive messages to the listeners of their name.
    fn give(
        &mut self,
        mail: &Mail,
        letters: Range<usize>,
        kind: NameKind,
        (hash, name): (u64, &[u8]),
    ) {
        // All listeners at the time of publishing may have ended since.
        let Some(list) = self.lists[kind as usize].get(hash, name) else {
            return;
        };
        let messages = mail.letters[letters.start].from..mail.end_of(letters.end - 1);
        let mut written: [Option<Range<usize>>; 2] = [None, None];
        for &slot in list.all() {
            let recipient = self.recipients[slot as usize]
                .as_mut()
                .expect("it is listed");
            if recipient.has_ended {
                continue;
            }
            let protocol = recipient.protocol as usize;
            let part = written[protocol].get_or_insert_with(|| {
                write(
                    &mut self.logs[protocol],
                    recipient.protocol,
                    mail,
                    &letters,
                    &messages,
                )
            });
            if !recipient.is_waiting {
                recipient.is_waiting = true;
                self.waiting.push_back(slot);
            }
            recipient.add(part);
        }
    }

    /// Distributes a message to its addressees. An addressee that is not in the list gets it only if it is
    /// the target of a REDIRECT, which did not add itself.
    fn tell(&mut self, mail: &Mail, at: usize) {
        let text = mail.letters[at].from..mail.end_of(at);
        let (to, is_broken) = match &mail.letters[at].to {
            To::Listeners(..) => return,
            To::Keepers(to) => (to.clone(), false),
            To::Redirected(to) => (*to..*to + 1, true),
        };
        let mut written: [Option<Range<usize>>; 2] = [None, None];
        for Addressee { client, redirected } in &mail.addressees[to] {
            let token = client.token.load(Relaxed);
            if client.has_status(status::ENDED) || (!redirected && !self.knows(token)) {
                continue;
            }
            if !self.knows(token) {
                let protocol = client.protocol.load(Relaxed);
                let protocol = [Protocol::Resp2, Protocol::Resp3][usize::from(protocol > 2)];
                self.admit(token, protocol, client);
            }
            let slot = slot_of(token);
            let recipient = self.recipients[slot].as_mut().expect("it is known");
            let protocol = recipient.protocol;
            // Over RESP2 only a subscriber can distinguish the message from a reply.
            let hears = *redirected && recipient.names.iter().any(|names| !names.is_empty());
            if protocol == Protocol::Resp2 && !hears {
                continue;
            }
            let log = &mut self.logs[protocol as usize];
            let part = written[protocol as usize].get_or_insert_with(|| {
                write_news(log, protocol, &mail.bytes[text.clone()], is_broken)
            });
            recipient.add(part);
            if !recipient.is_waiting {
                recipient.is_waiting = true;
                self.waiting.push_back(slot as u32);
            }
        }
    }

    /// Moves a connection's messages to the end of its replies, between two of its commands.
    pub(crate) fn receive(&mut self, server: &PubSub, token: u64, reply: &mut Reply<'_>) {
        self.collect(server);
        let slot = slot_of(token);
        let Some(recipient) = self.recipients.get_mut(slot).and_then(Option::as_mut) else {
            return;
        };
        if recipient.parts.is_empty() {
            return;
        }
        let log = &self.logs[recipient.protocol as usize];
        recipient.parts.drain(..).for_each(|part| {
            reply.append(&log.bytes()[part.clone()], log.large_in(&part), part.start)
        });
    }

    /// [`Listeners::receive`] for a reply that is made in slices.
    pub(crate) fn receive_into(&mut self, server: &PubSub, token: u64, reply: &mut Pieces) {
        self.collect(server);
        let Some(Some(recipient)) = self.recipients.get_mut(slot_of(token)) else {
            return;
        };
        let log = &self.logs[recipient.protocol as usize];
        recipient.parts.drain(..).for_each(|part| {
            reply.append(&log.bytes()[part.clone()], log.large_in(&part), part.start)
        });
    }

    /// The connection that has waited longest, and its messages.
    pub(crate) fn next_due(&mut self) -> Option<Due<'_>> {
        while let Some(slot) = self.waiting.pop_front() {
            // It may have ended since, or got its messages between its replies.
            let Some(recipient) = &mut self.recipients[slot as usize] else {
                continue;
            };
            recipient.is_waiting = false;
            if !recipient.parts.is_empty() {
                return Some(Due {
                    token: recipient.token,
                    log: &mut self.logs[recipient.protocol as usize],
                    parts: std::mem::take(&mut recipient.parts),
                });
            }
        }
        self.logs.iter_mut().for_each(Log::clear);
        None
    }

    /// Returns the vector of parts, for its capacity.
    pub(crate) fn give_back(&mut self, token: u64, mut parts: Vec<Range<usize>>) {
        parts.clear();
        if let Some(Some(recipient)) = self.recipients.get_mut(slot_of(token))
            && recipient.parts.is_empty()
            && parts.capacity() <= 8
        {
            recipient.parts = parts;
        }
    }
}

/// Writes an invalidation message to the log of a protocol, or (`is_broken`) the end of a REDIRECT. Returns
/// its range.
fn write_news(log: &mut Log, protocol: Protocol, text: &[u8], is_broken: bool) -> Range<usize> {
    let begin: &[u8] = match protocol {
        Protocol::Resp3 if is_broken => b">2\r\n$21\r\ntracking-redir-broken\r\n",
        Protocol::Resp3 => b">2\r\n$10\r\ninvalidate\r\n",
        Protocol::Resp2 => b"*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n",
    };
    let from = log.append(begin, &[], 0).start;
    let null = [b"$-1\r\n".as_slice(), b"_\r\n"][protocol as usize];
    let text = if text.is_empty() { null } else { text };
    from..log.append(text, &[], 0).end
}

/// Writes messages to the log of a protocol. Returns their range.
fn write(
    log: &mut Log,
    protocol: Protocol,
    mail: &Mail,
    letters: &Range<usize>,
    messages: &Range<usize>,
) -> Range<usize> {
    let first = mail
        .large
        .partition_point(|pinned| pinned.at < messages.start);
    let large = &mail.large[first..];
    let large = &large[..large.partition_point(|pinned| pinned.at < messages.end)];
    let part = log.append(&mail.bytes[messages.clone()], large, messages.start);
    if protocol == Protocol::Resp3 {
        for letter in &mail.letters[letters.clone()] {
            log.make_push(letter.from - messages.start + part.start);
        }
    }
    part
}
