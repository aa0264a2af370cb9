//! Who listens, in the whole server: for each name the workers that have listeners, and how many.
//!
//! Channels are spread over parts with a lock each, so that publishers to different channels rarely meet. Publishing
//! holds the part's lock until the message is in all inboxes, and joining or leaving takes the worker's inbox out while it
//! holds that lock. So every message in an inbox was counted with exactly those that are sent it:
//!
//! - *join*: what is in the inbox by then was published before and doesn't count the new listener, so it is handed out
//!   before the listener is added; what comes later counts it.
//! - *leave*: what is in the inbox by then counts the leaving listener, so it is handed out before it is removed.
//!
//! Patterns are few and looked at by every publisher, so they have one lock that publishers share.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use parking_lot::{Mutex, RwLock};

use super::NameKind;
use super::inbox::{Letter, Payload};
use crate::glob::{self, Case};
use crate::limits::CHANNEL_PARTS;
use crate::server::Server;

/// Names and who listens to them.
type Names = HashMap<Arc<[u8]>, Audience>;

/// Those who listen to a name.
#[derive(Default)]
struct Audience {
    total: usize,
    /// The workers they live on, and how many each has.
    workers: Vec<(usize, usize)>,
}

impl Audience {
    fn add(&mut self, worker: usize) {
        self.total += 1;
        match self.workers.iter_mut().find(|(known, _)| *known == worker) {
            Some((_, count)) => *count += 1,
            None => self.workers.push((worker, 1)),
        }
    }

    /// Takes one away. Returns whether anybody is left.
    fn remove(&mut self, worker: usize) -> bool {
        let at = self.workers.iter().position(|(known, _)| *known == worker);
        let at = at.expect("who leaves has joined");
        self.total -= 1;
        self.workers[at].1 -= 1;
        if self.workers[at].1 == 0 {
            self.workers.swap_remove(at);
        }
        self.total > 0
    }
}

/// See the module.
pub(crate) struct Registry {
    channels: Box<[Mutex<Names>]>,
    shards: Box<[Mutex<Names>]>,
    patterns: RwLock<Names>,
    /// Different names of each kind.
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
    /// How many different names of a kind somebody listens to.
    pub(crate) fn count(&self, kind: NameKind) -> usize {
        self.counts[kind as usize].load(Relaxed)
    }

    /// Whether a message to some channel may reach anybody.
    #[inline]
    pub(crate) fn has_listeners(&self) -> bool {
        self.count(NameKind::Channel) + self.count(NameKind::Pattern) > 0
    }

    /// Notes one more listener of a worker. `meanwhile` runs while nobody can publish to the name.
    pub(crate) fn join(
        &self,
        kind: NameKind,
        name: &Arc<[u8]>,
        worker: usize,
        meanwhile: impl FnOnce(),
    ) {
        self.change(kind, name, |names| {
            let audience = names.entry(Arc::clone(name)).or_default();
            audience.add(worker);
            if audience.total == 1 {
                self.counts[kind as usize].fetch_add(1, Relaxed);
            }
            meanwhile();
        });
    }

    /// Forgets a listener of a worker. `meanwhile` runs while nobody can publish to the name.
    pub(crate) fn leave(
        &self,
        kind: NameKind,
        name: &[u8],
        worker: usize,
        meanwhile: impl FnOnce(),
    ) {
        self.change(kind, name, |names| {
            let audience = names.get_mut(name).expect("who leaves has joined");
            if !audience.remove(worker) {
                names.remove(name);
                self.counts[kind as usize].fetch_sub(1, Relaxed);
            }
            meanwhile();
        });
    }

    fn change(&self, kind: NameKind, name: &[u8], change: impl FnOnce(&mut Names)) {
        match self.parts(kind) {
            Some(parts) => change(&mut part(parts, name).lock()),
            None => change(&mut self.patterns.write()),
        }
    }

    fn parts(&self, kind: NameKind) -> Option<&[Mutex<Names>]> {
        match kind {
            NameKind::Channel => Some(&self.channels),
            NameKind::Shard => Some(&self.shards),
            NameKind::Pattern => None,
        }
    }

    /// Leaves a message for all who listen to a channel (or a pattern that it matches), or to a shard channel. Returns how
    /// many they are. Wakes nobody: `post` says who has to be.
    pub(crate) fn publish(
        &self,
        server: &Server,
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
        let part = part(parts, channel).lock();
        if let Some(audience) = part.get(channel) {
            receivers += audience.total;
            for &(worker, _) in &audience.workers {
                letter.put(server, worker, kind, None);
            }
        }
        if has_patterns {
            let patterns = self.patterns.read();
            let matching = patterns
                .iter()
                .filter(|(pattern, _)| glob::matches(pattern, channel, Case::Sensitive));
            for (pattern, audience) in matching {
                receivers += audience.total;
                for &(worker, _) in &audience.workers {
                    letter.put(server, worker, NameKind::Pattern, Some(pattern));
                }
            }
        }
        receivers
    }

    /// How many listen to a channel or shard channel by its name.
    pub(crate) fn listeners(&self, kind: NameKind, channel: &[u8]) -> usize {
        let parts = self.parts(kind).expect("patterns are counted as a whole");
        let part = part(parts, channel).lock();
        part.get(channel).map_or(0, |audience| audience.total)
    }

    /// The channels or shard channels that a pattern matches, or all of them.
    pub(crate) fn names(&self, kind: NameKind, pattern: Option<&[u8]>) -> Vec<Arc<[u8]>> {
        let parts = self.parts(kind).expect("patterns are counted as a whole");
        let mut found = Vec::new();
        for part in parts {
            let part = part.lock();
            let matching = part.keys().filter(|name| {
                pattern.is_none_or(|pattern| glob::matches(pattern, name, Case::Sensitive))
            });
            found.extend(matching.cloned());
        }
        found
    }
}

/// The part that a name belongs to: names that differ little are spread well enough by FNV-1a.
fn part<'p>(parts: &'p [Mutex<Names>], name: &[u8]) -> &'p Mutex<Names> {
    let hash = name.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    &parts[(hash >> 32) as usize % parts.len()]
}
