//! Broadcasting mode: connections that want to know of all keys that begin in some way.
//!
//! What a worker changes is collected until its turn is about to send replies, and told as one list for each
//! prefix: whoever was told that a change is done can rely on everybody else having been told of it. A thread
//! that is no worker tells at once.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use parking_lot::RwLock;

use super::PREFIX_BYTES;
use super::news::Letters;
use crate::limits::BROADCAST_BYTES;
use crate::names::{Member, Members, Who, longest_first, steps};
use crate::observe::Observed;
use crate::pubsub::{self, News};
use crate::shared::clients::{Client, status};

/// Who wants to know of keys, by how they begin.
type ByPrefix = BTreeMap<Arc<[u8]>, Members<Listener>>;

/// A connection that has named a prefix, and in which round of its tracking.
struct Listener {
    round: u32,
    client: Arc<Client>,
}

impl Member for Listener {
    fn who(&self) -> Who {
        (self.round, self.client.id)
    }
}

impl Listener {
    /// Whether it still wants to know.
    fn is_alive(&self) -> bool {
        self.client.has_status(status::BROADCAST)
            && self.client.tracking_round.load(Relaxed) == self.round
    }
}

/// See the module.
#[derive(Default)]
pub(crate) struct Prefixes {
    named: RwLock<ByPrefix>,
    /// How many there are, to be looked at without the lock.
    count: AtomicUsize,
}

/// Keys that have changed, each with the connection that changed it last (0: none that tracks).
#[derive(Default)]
struct Changed {
    keys: BTreeMap<Box<[u8]>, u64>,
    bytes: usize,
}

thread_local! {
    /// What this thread has changed and not told of.
    static CHANGED: RefCell<Changed> = const {
        RefCell::new(Changed {
            keys: BTreeMap::new(),
            bytes: 0,
        })
    };
}

impl Prefixes {
    /// Whether there are any.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.len() > 0
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.count.load(Relaxed)
    }

    /// Lets a connection know of keys that begin so.
    pub(crate) fn add(&self, prefix: &Arc<[u8]>, client: &Arc<Client>, round: u32) {
        steps::add(1);
        let listener = Listener {
            round,
            client: Arc::clone(client),
        };
        let mut named = self.named.write();
        match named.get_mut(prefix) {
            Some(listeners) => listeners.insert(listener),
            None => {
                named.insert(Arc::clone(prefix), Members::of(listener));
            }
        }
        self.count.store(named.len(), Relaxed);
    }

    /// Ends that.
    pub(crate) fn remove(&self, prefix: &[u8], client: &Client, round: u32) {
        steps::add(1);
        let mut named = self.named.write();
        if let Some(listeners) = named.get_mut(prefix)
            && listeners.remove((round, client.id)).is_some()
        {
            client.free(prefix.len() + PREFIX_BYTES);
            if listeners.is_empty() {
                named.remove(prefix);
            }
        }
        self.count.store(named.len(), Relaxed);
    }

    /// Notes that a key was changed by a connection, if somebody wants to know. Returns whether anybody wants
    /// to know of keys.
    pub(crate) fn note(&self, server: &Observed, key: &[u8], by: u64) -> bool {
        if !self.any() {
            return false;
        }
        let named = self.named.read();
        let mut is_wanted = false;
        each_prefix(&named, key, |_| is_wanted = true);
        if !is_wanted {
            return !named.is_empty();
        }
        drop(named);
        let is_much = CHANGED.with_borrow_mut(|changed| {
            if changed.keys.insert(key.into(), by).is_none() {
                changed.bytes += key.len() + size_of::<(Box<[u8]>, u64)>();
            }
            changed.bytes > BROADCAST_BYTES
        });
        if is_much || !pubsub::is_worker() {
            self.tell(server);
        }
        true
    }

    /// Tells of what this thread has changed.
    pub(crate) fn tell(&self, server: &Observed) {
        let changed = CHANGED.take();
        if changed.keys.is_empty() {
            return;
        }
        let named = self.named.read();
        // By prefix, in order; of each the keys in order.
        let mut told: BTreeMap<&[u8], Vec<(&[u8], u64)>> = BTreeMap::new();
        for (key, &by) in &changed.keys {
            each_prefix(&named, key, |prefix| {
                told.entry(prefix).or_default().push((key, by));
            });
        }
        for (prefix, keys) in told {
            if let Some(listeners) = named.get(prefix) {
                tell_of(server, &keys, listeners);
            }
        }
    }
}

/// Calls `visit` with each prefix that a key has.
fn each_prefix<'n>(named: &'n ByPrefix, key: &[u8], visit: impl FnMut(&'n [u8])) {
    let last = |bound: Bound<&[u8]>| {
        let range = (Bound::Unbounded, bound);
        named
            .range::<[u8], _>(range)
            .next_back()
            .map(|(prefix, _)| &**prefix)
    };
    longest_first(key, last, visit);
}

/// Tells connections of keys, but none of those it has changed itself if it does not want to know.
fn tell_of(server: &Observed, keys: &[(&[u8], u64)], listeners: &Members<Listener>) {
    let send = |letters: &mut Letters, keys: &[(&[u8], u64)]| {
        letters.send(server, News::Keys(&mut keys.iter().map(|&(key, _)| key)));
    };
    let writers: BTreeSet<u64> = keys.iter().map(|&(_, by)| by).collect();
    let mut all = Letters::default();
    for listener in listeners.iter().filter(|listener| listener.is_alive()) {
        let client = &listener.client;
        if !client.has_status(status::NO_LOOP) || !writers.contains(&client.id) {
            all.add(server, client);
            continue;
        }
        let foreign: Vec<(&[u8], u64)> = keys
            .iter()
            .filter(|&&(_, by)| by != client.id)
            .copied()
            .collect();
        if !foreign.is_empty() {
            let mut one = Letters::default();
            one.add(server, client);
            send(&mut one, &foreign);
        }
    }
    send(&mut all, keys);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_as_many_prefixes_and_listeners_take_twice_the_steps() {
        let prefix = |at: usize| -> Arc<[u8]> { format!("p:{at:06}:").into_bytes().into() };
        // One connection with many prefixes, and a key for each of them.
        steps::assert_linear(2_000, |n| {
            let (prefixes, client) = (Prefixes::default(), Arc::new(Client::unconnected(1, 0)));
            (0..n).for_each(|at| prefixes.add(&prefix(at), &client, 0));
            for at in 0..n {
                let mut found = 0;
                let key = format!("p:{at:06}:key");
                each_prefix(&prefixes.named.read(), key.as_bytes(), |_| found += 1);
                assert_eq!(found, 1);
            }
            client.keep(usize::MAX / 2);
            (0..n).for_each(|at| prefixes.remove(&prefix(at), &client, 0));
            assert!(!prefixes.any());
        });
        // Many connections with one prefix.
        steps::assert_linear(2_000, |n| {
            let prefixes = Prefixes::default();
            let clients: Vec<Arc<Client>> = (0..n as u64)
                .map(|id| Arc::new(Client::unconnected(id, 0)))
                .collect();
            clients
                .iter()
                .rev()
                .for_each(|client| prefixes.add(&prefix(0), client, 0));
            for client in &clients {
                client.keep(1000);
                prefixes.remove(&prefix(0), client, 0);
            }
            assert!(!prefixes.any());
        });
    }
}
