//! Closing of the largest clients when all together take too much (`maxmemory-clients`).
//!
//! A client takes its requests that have not run, its unsent replies, its queued commands, and the bytes that
//! the server keeps for it ([`Client::kept`]: subscriptions, watched and tracked keys, prefixes, names). Each
//! worker keeps the sum over its clients up to date as buffers grow and shrink
//! ([`crate::net::connection::Connection::note_memory`]). In each turn it compares the sum with its part of
//! the limit, and examines all clients beyond it. The control thread does that for workers without turns.
//! CLIENT NO-EVICT spares a client.
//!
//! The value of an entry is the keyspace's memory, whatever the number of clients that are sent it
//! ([`keyspace::Lent`]). Without a configured limit one request or reply may be larger, if `maxmemory` has
//! room for it: that of the client with the largest one is not counted.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::config::Setting;
use crate::limits::{CLIENTS_SPARED_MS, WARM_SHARE};
use crate::shared::Shared;
use crate::shared::clients::{Client, status};

impl Shared {
    /// Limit of the values that one command needs, bytes.
    pub(crate) fn most_held(&self) -> usize {
        match self.settings.int(Setting::MaxMemory).unsigned_abs() {
            0 => usize::MAX,
            limit => (limit / WARM_SHARE * (WARM_SHARE - 1)) as usize,
        }
    }

    /// Bytes of all clients' buffers.
    pub(crate) fn client_bytes(&self) -> usize {
        let bytes = self
            .workers
            .iter()
            .map(|worker| worker.stats.client_bytes.get());
        // Each worker's sum is exact; the sum over several workers is not, as it is not read at one moment.
        bytes.sum::<u64>() as usize
    }

    /// Closes the largest clients if all together exceed the limit.
    pub(crate) fn bound_clients(&self) {
        if let Some(limit) = self.memory.clients()
            && self.client_bytes() > limit + self.memory.single.load(Relaxed)
        {
            self.drop_largest_clients(limit);
        }
    }

    /// [`Shared::bound_clients`], after a new search for the client with the largest request or reply.
    pub(crate) fn bound_clients_anew(&self) {
        self.memory.single.store(0, Relaxed);
        self.bound_clients();
    }

    #[cold]
    #[inline(never)]
    fn drop_largest_clients(&self, limit: usize) {
        let now = sys::clock::realtime_ms();
        let spared = self.memory.spared_ms.load(Relaxed);
        if (0..CLIENTS_SPARED_MS).contains(&(now - spared))
            || self.memory.is_dropping.swap(true, Relaxed)
        {
            return;
        }
        let mut candidates: Vec<(usize, Arc<Client>)> = Vec::new();
        let mut bytes = 0;
        // Bytes of the largest request with its replies, and the id of its client.
        let mut single = (0, 0);
        self.clients.for_each(|client| {
            // A killed client counts as gone.
            if client.killed.load(Relaxed) {
                return;
            }
            let its = client.memory.load(Relaxed);
            let of_one = client.single_memory.load(Relaxed).min(its);
            if of_one > single.0 {
                single = (of_one, client.id);
            }
            bytes += its;
            if its > 0 && !client.has_status(status::NO_EVICT) {
                candidates.push((its, Arc::clone(client)));
            }
        });
        // A configured limit holds for each client too. No command may need more than that.
        let single_bytes = match self.settings.int(Setting::MaxMemoryClients) {
            0 => single.0.min(self.most_held()),
            _ => 0,
        };
        bytes -= single_bytes;
        let largest = candidates.iter_mut().find(|(_, one)| one.id == single.1);
        if let Some((its, _)) = largest {
            *its -= single_bytes;
        }
        self.memory.single.store(single_bytes, Relaxed);
        candidates.sort_unstable_by_key(|(its, _)| std::cmp::Reverse(*its));
        for (its, client) in candidates {
            if bytes <= limit {
                break;
            }
            bytes -= its;
            log::warn!(
                "closing client {}: clients take more than maxmemory-clients, and it the most with {its} bytes",
                client.id
            );
            if self.kill(client) {
                self.totals.evicted_clients.fetch_add(1, Relaxed);
            }
        }
        if bytes > limit {
            // All that are left are spared: a search in every turn would change nothing.
            self.memory.spared_ms.store(now, Relaxed);
        }
        self.memory.is_dropping.store(false, Relaxed);
    }
}
