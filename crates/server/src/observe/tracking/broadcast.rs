//! Broadcasting mode of CLIENT TRACKING: invalidation of all keys with a prefix.
//!
//! The changes of a worker are collected until its turn is about to send replies, and sent as one list for
//! each prefix. So when a client gets the reply to a change, the invalidations are already on their way. A
//! thread that is not a worker sends at once.

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

/// Connections by prefix.
type ByPrefix = BTreeMap<Arc<[u8]>, Members<Listener>>;

/// Connection that tracks a prefix, and the round of its tracking.
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
    /// Whether the round of its tracking still lasts.
    fn is_alive(&self) -> bool {
        self.client.has_status(status::BROADCAST)
            && self.client.tracking_round.load(Relaxed) == self.round
    }
}

/// Tracked prefixes.
#[derive(Default)]
pub(crate) struct Prefixes {
    named: RwLock<ByPrefix>,
    /// Number of prefixes, readable without the lock.
    count: AtomicUsize,
}

/// Changed keys, each with the id of the connection that changed it last (0: none that tracks).
#[derive(Default)]
struct Changed {
    keys: BTreeMap<Box<[u8]>, u64>,
    bytes: usize,
}

thread_local! {
    /// Changes of this thread that are not sent yet.
    static CHANGED: RefCell<Changed> = const {
        RefCell::new(Changed {
            keys: BTreeMap::new(),
            bytes: 0,
        })
    };
}

impl Prefixes {
    /// Whether there are any prefixes.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.len() > 0
    }

    /// Number of prefixes.
    pub(crate) fn len(&self) -> usize {
        self.count.load(Relaxed)
    }

    /// Adds a prefix of a connection.
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

    /// Removes a prefix of a connection.
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

    /// Records that a connection has changed a key, if the key has a tracked prefix. Returns whether there
    /// are any prefixes.
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

    /// Sends the changes of this thread.
    pub(crate) fn tell(&self, server: &Observed) {
        let changed = CHANGED.take();
        if changed.keys.is_empty() {
            return;
        }
        let named = self.named.read();
        // Keys by prefix, both in order.
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

/// Calls `visit` with each tracked prefix of a key.
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

/// Sends keys to connections, without those that a connection with NOLOOP has changed itself.
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
