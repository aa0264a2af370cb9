//! Listeners in the whole server: for each name the workers that have listeners, and their number.
//!
//! Channels are spread over parts with a lock each, so that publishers to different channels rarely contend.
//! PUBLISH holds the lock of the part until the message is in all inboxes. Joining and leaving empty the
//! worker's inbox while they hold that lock. So every message in an inbox was counted with exactly the
//! listeners that are sent it:
//!
//! - *join*: messages in the inbox were published before and don't count the new listener, so they are
//!   distributed before it is added. Later ones count it.
//! - *leave*: messages in the inbox count the leaving listener, so they are distributed before it is removed.
//!
//! Every publisher reads the patterns, so these have one read-write lock; see [`super::patterns`].

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use parking_lot::{Mutex, RwLock};

use super::NameKind;
use super::inbox::{Letter, Payload};
use super::patterns::Patterns;
use crate::limits::{CHANNEL_PARTS, SLICE_KEYS};
use crate::names::ByHash;
use crate::pubsub::PubSub;

/// Names and their listeners.
type Names = ByHash<Arc<[u8]>, Audience>;

/// Listeners of a name: their number for each worker. Nearly always it is one worker.
pub(super) enum Audience {
    One(u32, u32),
    Several(Vec<(u32, u32)>),
}

impl Default for Audience {
    fn default() -> Audience {
        Audience::Several(Vec::new())
    }
}

impl Audience {
    /// Number of listeners.
    fn total(&self) -> usize {
        let counts = self.workers().map(|(_, count)| count as usize);
        counts.sum()
    }

    fn workers(&self) -> impl Iterator<Item = (usize, u32)> {
        let (one, several) = match self {
            Audience::One(worker, count) => (Some((*worker, *count)), None),
            Audience::Several(list) => (None, Some(list)),
        };
        let all = one
            .into_iter()
            .chain(several.into_iter().flatten().copied());
        all.map(|(worker, count)| (worker as usize, count))
    }

    /// Adds a listener. Returns whether it is the first.
    pub(super) fn add(&mut self, worker: usize) -> bool {
        let worker = worker as u32;
        match self {
            Audience::One(known, count) if *known == worker => *count += 1,
            Audience::One(known, count) => {
                *self = Audience::Several(vec![(*known, *count), (worker, 1)]);
            }
            Audience::Several(list) if list.is_empty() => {
                *self = Audience::One(worker, 1);
                return true;
            }
            Audience::Several(list) => match list.iter_mut().find(|(known, _)| *known == worker) {
                Some((_, count)) => *count += 1,
                None => list.push((worker, 1)),
            },
        }
        false
    }

    /// Removes a listener. Returns whether any is left.
    fn remove(&mut self, worker: usize) -> bool {
        let worker = worker as u32;
        match self {
            Audience::One(_, count) => {
                *count -= 1;
                *count > 0
            }
            Audience::Several(list) => {
                let at = list.iter().position(|(known, _)| *known == worker);
                let at = at.expect("who leaves has joined");
                list[at].1 -= 1;
                if list[at].1 == 0 {
                    list.swap_remove(at);
                }
                if let [(worker, count)] = list[..] {
                    *self = Audience::One(worker, count);
                }
                true
            }
        }
    }
}

/// Listeners of all names.
pub(crate) struct Registry {
    channels: Box<[Mutex<Names>]>,
    shards: Box<[Mutex<Names>]>,
    patterns: RwLock<Patterns>,
    /// Number of distinct names, by kind.
    counts: [AtomicUsize; 3],
}

impl Default for Registry {
    fn default() -> Registry {
        let parts = || (0..CHANNEL_PARTS).map(|_| Mutex::default()).collect();
        Registry {
            channels: parts(),
            shards: parts(),
            patterns: RwLock::default(),
            counts: Default::default(),
        }
    }
}

impl Registry {
    /// Number of distinct names of a kind.
    pub(crate) fn count(&self, kind: NameKind) -> usize {
        self.counts[kind as usize].load(Relaxed)
    }

    /// Whether a message to a channel may have listeners.
    #[inline]
    pub(crate) fn has_listeners(&self) -> bool {
        self.count(NameKind::Channel) + self.count(NameKind::Pattern) > 0
    }

    /// Adds a listener of a worker. `meanwhile` runs under the lock: no message is published to the name.
    pub(super) fn join(
        &self,
        kind: NameKind,
        (hash, name): (u64, &Arc<[u8]>),
        worker: usize,
        meanwhile: impl FnOnce(),
    ) {
        let is_first = match self.parts(kind) {
            Some(parts) => {
                let mut names = part(parts, hash).lock();
                let is_first = match names.get_mut(hash, name) {
                    Some(audience) => audience.add(worker),
                    None => {
                        let mut audience = Audience::default();
                        audience.add(worker);
                        names.insert(hash, Arc::clone(name), audience);
                        true
                    }
                };
                meanwhile();
                is_first
            }
            None => {
                let mut patterns = self.patterns.write();
                let is_first = patterns.entry(name).add(worker);
                meanwhile();
                is_first
            }
        };
        if is_first {
            self.counts[kind as usize].fetch_add(1, Relaxed);
        }
    }

    /// Removes a listener of a worker. `meanwhile` runs under the lock: no message is published to the name.
    pub(super) fn leave(
        &self,
        kind: NameKind,
        (hash, name): (u64, &[u8]),
        worker: usize,
        meanwhile: impl FnOnce(),
    ) {
        const JOINED: &str = "who leaves has joined";
        let is_last = match self.parts(kind) {
            Some(parts) => {
                let mut names = part(parts, hash).lock();
                let is_last = !names.get_mut(hash, name).expect(JOINED).remove(worker);
                if is_last {
                    names.remove(hash, name);
                }
                meanwhile();
                is_last
            }
            None => {
                let mut patterns = self.patterns.write();
                let is_last = !patterns.get_mut(name).expect(JOINED).remove(worker);
                if is_last {
                    patterns.remove(name);
                }
                meanwhile();
                is_last
            }
        };
        if is_last {
            self.counts[kind as usize].fetch_sub(1, Relaxed);
        }
    }

    fn parts(&self, kind: NameKind) -> Option<&[Mutex<Names>]> {
        match kind {
            NameKind::Channel => Some(&self.channels),
            NameKind::Shard => Some(&self.shards),
            NameKind::Pattern => None,
        }
    }

    /// Publishes a message to the listeners of a channel and of its patterns, or of a shard channel. Returns
    /// their number. Wakes no worker; `post` collects the workers to wake.
    pub(crate) fn publish(
        &self,
        server: &PubSub,
        kind: NameKind,
        channel: &[u8],
        payload: Payload<'_>,
    ) -> usize {
        let parts = self.parts(kind).expect("one publishes to channels");
        let has_patterns = kind == NameKind::Channel && self.count(NameKind::Pattern) > 0;
        if self.count(kind) == 0 && !has_patterns {
            return 0;
        }
        let mut receivers = 0;
        let mut letter = Letter::new(channel, payload);
        let hash = server.keyspace.hash(channel);
        let part = part(parts, hash).lock();
        if let Some(audience) = part.get(hash, channel) {
            receivers += audience.total();
            for (worker, _) in audience.workers() {
                letter.put(server, worker, kind, None);
            }
        }
        if has_patterns {
            self.patterns.read().matching(channel, |pattern, audience| {
                receivers += audience.total();
                for (worker, _) in audience.workers() {
                    letter.put(server, worker, NameKind::Pattern, Some(pattern));
                }
            });
        }
        receivers
    }

    /// Number of listeners of a channel or shard channel, without patterns.
    pub(crate) fn listeners(&self, server: &PubSub, kind: NameKind, channel: &[u8]) -> usize {
        let parts = self.parts(kind).expect("patterns are counted as a whole");
        let hash = server.keyspace.hash(channel);
        let part = part(parts, hash).lock();
        part.get(hash, channel).map_or(0, Audience::total)
    }

    /// Calls `visit` with the channels or shard channels from a position on; names may be added and removed
    /// meanwhile. Returns whether these were the last. Otherwise the next call continues there.
    pub(crate) fn visit(
        &self,
        kind: NameKind,
        place: &mut VisitPlace,
        mut visit: impl FnMut(&Arc<[u8]>),
    ) -> ControlFlow<()> {
        let parts = self.parts(kind).expect("patterns are not listed");
        let Some(part) = parts.get(place.part) else {
            return ControlFlow::Break(());
        };
        place.after = part
            .lock()
            .visit(place.after, SLICE_KEYS, |_, name, _| visit(name));
        place.part += usize::from(place.after.is_none());
        ControlFlow::Continue(())
    }
}

/// Position of a walk over all names.
#[derive(Default)]
pub(crate) struct VisitPlace {
    part: usize,
    /// Hash of the last visited name of this part.
    after: Option<u64>,
}

/// The part of a name. Inside a part, the other bits of the hash order the names.
fn part(parts: &[Mutex<Names>], hash: u64) -> &Mutex<Names> {
    &parts[hash as usize % parts.len()]
}
