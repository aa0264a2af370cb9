//! Broadcasting mode: connections that want to know of all keys that begin in some way.
//!
//! What a worker changes is collected until its turn is about to send replies, and told as one list for each prefix: whoever
//! was told that a change is done can rely on everybody else having been told of it. A thread that is no worker tells at once.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use parking_lot::RwLock;

use super::news::{Letters, News};
use crate::clients::{Client, status};
use crate::limits::BROADCAST_BYTES;
use crate::pubsub;
use crate::server::Server;

/// Who wants to know of keys, by how they begin.
type ByPrefix = BTreeMap<Arc<[u8]>, Vec<Arc<Client>>>;

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
    pub(super) fn any(&self) -> bool {
        self.len() > 0
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.count.load(Relaxed)
    }

    /// Lets a connection know of keys that begin so.
    pub(super) fn add(&self, prefix: &Arc<[u8]>, client: &Arc<Client>) {
        let mut named = self.named.write();
        let clients = named.entry(Arc::clone(prefix)).or_default();
        clients.push(Arc::clone(client));
        self.count.store(named.len(), Relaxed);
    }

    /// Ends that.
    pub(super) fn remove(&self, prefix: &[u8], client: &Client) {
        let mut named = self.named.write();
        if let Some(clients) = named.get_mut(prefix) {
            clients.retain(|other| other.id != client.id);
            if clients.is_empty() {
                named.remove(prefix);
            }
        }
        self.count.store(named.len(), Relaxed);
    }

    /// Notes that a key was changed by a connection, if somebody wants to know. Returns whether anybody wants to know of keys.
    pub(super) fn note(&self, server: &Server, key: &[u8], by: u64) -> bool {
        if !self.any() {
            return false;
        }
        let named = self.named.read();
        if !named.keys().any(|prefix| key.starts_with(prefix)) {
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
    pub(super) fn tell(&self, server: &Server) {
        let changed = CHANGED.take();
        if changed.keys.is_empty() {
            return;
        }
        for (prefix, clients) in &*self.named.read() {
            let begin = (Bound::Included(&**prefix), Bound::Unbounded);
            let matching: Vec<(&[u8], u64)> = changed
                .keys
                .range::<[u8], _>(begin)
                .take_while(|(key, _)| key.starts_with(prefix))
                .map(|(key, &by)| (&**key, by))
                .collect();
            if !matching.is_empty() {
                tell_of(server, &matching, clients);
            }
        }
    }
}

/// Tells connections of keys, but none of those it has changed itself if it does not want to know.
fn tell_of(server: &Server, keys: &[(&[u8], u64)], clients: &[Arc<Client>]) {
    let send = |letters: &mut Letters, keys: &[(&[u8], u64)]| {
        letters.send(server, News::Keys(&mut keys.iter().map(|&(key, _)| key)));
    };
    let mut all = Letters::default();
    for client in clients {
        let is_own = |&(_, by): &(&[u8], u64)| by == client.id;
        if !client.has_status(status::NO_LOOP) || !keys.iter().any(is_own) {
            all.add(server, client);
            continue;
        }
        let foreign: Vec<(&[u8], u64)> = keys.iter().filter(|key| !is_own(key)).copied().collect();
        if !foreign.is_empty() {
            let mut one = Letters::default();
            one.add(server, client);
            send(&mut one, &foreign);
        }
    }
    send(&mut all, keys);
}

/// Two prefixes of which one begins with the other, if there are any: among new ones, or of a new one and one of before.
pub(crate) fn overlap<'p>(
    before: &'p [Arc<[u8]>],
    new: &'p [Arc<[u8]>],
) -> Option<(&'p [u8], &'p [u8], bool)> {
    let meet = |one: &[u8], other: &[u8]| one.starts_with(other) || other.starts_with(one);
    for (at, prefix) in new.iter().enumerate() {
        if let Some(known) = before.iter().find(|known| meet(known, prefix)) {
            return Some((prefix, known, true));
        }
        if let Some(other) = new[at + 1..].iter().find(|other| meet(other, prefix)) {
            return Some((prefix, other, false));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_overlap_if_one_begins_with_the_other() {
        let list = |words: &[&str]| -> Vec<Arc<[u8]>> {
            words.iter().map(|word| word.as_bytes().into()).collect()
        };
        let check = |before: &[&str], new: &[&str]| {
            let (before, new) = (list(before), list(new));
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            overlap(&before, &new).map(|(one, other, known)| (text(one), text(other), known))
        };
        assert_eq!(check(&[], &["a", "b", "ca", "cb"]), None);
        assert_eq!(check(&["a"], &["b", "c"]), None);
        let both = |one: &str, other: &str, known| Some((one.into(), other.into(), known));
        assert_eq!(check(&[], &["x", "ab", "a"]), both("ab", "a", false));
        assert_eq!(check(&["ab"], &["x", "a"]), both("a", "ab", true));
        assert_eq!(check(&["a"], &["ab"]), both("ab", "a", true));
        assert_eq!(check(&[""], &["q"]), both("q", "", true));
        assert_eq!(check(&[], &["a", "a"]), both("a", "a", false));
    }
}
