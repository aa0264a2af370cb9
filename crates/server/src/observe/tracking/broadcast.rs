//! Broadcasting mode of CLIENT TRACKING: invalidation of all keys with a prefix.
//!
//! The changes of a worker are collected until its turn is about to send replies, and sent as one list for
//! each prefix. So when a client gets the reply to a change, the invalidations are already on their way. A
//! thread that is not a worker sends at once.
//!
//! A change belongs to the prefixes that are tracked when it happens. A prefix that is tracked no more, and
//! then again, is another one ([`Named::serial`]).

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use parking_lot::RwLock;

use super::PREFIX_BYTES;
use super::news::Letters;
use crate::limits::BROADCAST_BYTES;
use crate::names::{Member, Members, Who, longest_first, steps};
use crate::observe::Observed;
use crate::pubsub::{self, News};
use crate::shared::clients::{Client, status};

/// Tracked prefixes by their bytes.
type ByPrefix = BTreeMap<Arc<[u8]>, Named>;

/// Tracked prefix.
struct Named {
    /// Number of the prefix: no other has it, before or after.
    serial: u64,
    listeners: Members<Listener>,
}

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
    /// Serial of the last new prefix.
    last_serial: AtomicU64,
}

/// Changed keys by prefix.
#[derive(Default)]
struct Changed {
    prefixes: BTreeMap<Arc<[u8]>, ChangedKeys>,
    bytes: usize,
}

/// Changed keys of one prefix, each with the id of the connection that changed it last (0: none that tracks).
#[derive(Default)]
struct ChangedKeys {
    /// [`Named::serial`] of the prefix.
    serial: u64,
    keys: BTreeMap<Box<[u8]>, u64>,
}

impl Changed {
    /// Adds a changed key of a tracked prefix.
    fn add(&mut self, (prefix, named): (&Arc<[u8]>, &Named), key: &[u8], by: u64) {
        if !self.prefixes.contains_key(prefix) {
            self.prefixes
                .insert(Arc::clone(prefix), ChangedKeys::default());
            self.bytes += size_of::<(Arc<[u8]>, ChangedKeys)>();
        }
        let changed = self.prefixes.get_mut(prefix).expect("it was inserted");
        if changed.serial != named.serial {
            changed.serial = named.serial;
            changed.keys.clear();
        }
        match changed.keys.get_mut(key) {
            Some(last) => *last = by,
            None => {
                changed.keys.insert(key.into(), by);
                self.bytes += key.len() + size_of::<(Box<[u8]>, u64)>();
            }
        }
    }
}

thread_local! {
    /// Changes of this thread that are not sent yet.
    static CHANGED: RefCell<Changed> = const {
        RefCell::new(Changed {
            prefixes: BTreeMap::new(),
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
            Some(named) => named.listeners.insert(listener),
            None => {
                let of_prefix = Named {
                    serial: self.last_serial.fetch_add(1, Relaxed) + 1,
                    listeners: Members::of(listener),
                };
                named.insert(Arc::clone(prefix), of_prefix);
            }
        }
        self.count.store(named.len(), Relaxed);
    }

    /// Removes a prefix of a connection.
    pub(crate) fn remove(&self, prefix: &[u8], client: &Client, round: u32) {
        steps::add(1);
        let mut named = self.named.write();
        if let Some(of_prefix) = named.get_mut(prefix)
            && of_prefix.listeners.remove((round, client.id)).is_some()
        {
            client.free(prefix.len() + PREFIX_BYTES);
            if of_prefix.listeners.is_empty() {
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
        let has_any = !named.is_empty();
        let is_much = CHANGED.with_borrow_mut(|changed| {
            each_prefix(&named, key, |prefix| changed.add(prefix, key, by));
            changed.bytes > BROADCAST_BYTES
        });
        drop(named);
        if is_much || !pubsub::is_worker() {
            self.tell(server);
        }
        has_any
    }

    /// Sends the changes of this thread.
    pub(crate) fn tell(&self, server: &Observed) {
        let changed = CHANGED.take();
        if changed.prefixes.is_empty() {
            return;
        }
        let named = self.named.read();
        for (prefix, ChangedKeys { serial, keys }) in &changed.prefixes {
            if let Some(named) = named.get(prefix)
                && named.serial == *serial
            {
                let keys: Vec<(&[u8], u64)> = keys.iter().map(|(key, &by)| (&**key, by)).collect();
                tell_of(server, &keys, &named.listeners);
            }
        }
    }
}

/// Calls `visit` with each tracked prefix of a key.
fn each_prefix<'n>(
    named: &'n ByPrefix,
    key: &[u8],
    mut visit: impl FnMut((&'n Arc<[u8]>, &'n Named)),
) {
    let last = |bound: Bound<&[u8]>| {
        let range = (Bound::Unbounded, bound);
        named
            .range::<[u8], _>(range)
            .next_back()
            .map(|(prefix, _)| &**prefix)
    };
    longest_first(key, last, |prefix| {
        visit(named.get_key_value(prefix).expect("it is one of them"));
    });
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
