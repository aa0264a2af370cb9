//! Dropping clients whose buffers take too much together, the largest first (`maxmemory-clients`).
//!
//! What a client takes is what it has sent that has not run, what it has not read, what it has queued, and
//! what the server keeps for it beside ([`Client::kept`]: subscriptions, watched and tracked keys, prefixes,
//! names). Each worker keeps the sum over its own up to date as buffers grow and shrink
//! ([`crate::net::connection::Connection::note_memory`]); each turn it compares that with its part of the
//! limit, and beyond it looks at all. The control thread looks for those that have no turns. CLIENT NO-EVICT
//! spares a client.
//!
//! A value that an entry has is the keyspace's memory, however many are sent it ([`keyspace::Lent`]). Unless
//! somebody has set the limit, one request or reply may be larger, if there is room for it within
//! `maxmemory`: it is not counted of the one client that has the largest.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::config::Setting;
use crate::limits::{CLIENTS_SPARED_MS, WARM_SHARE};
use crate::shared::Shared;
use crate::shared::clients::{Client, status};

impl Shared {
    /// Bytes that the values which one command needs may take together.
    pub(crate) fn most_held(&self) -> usize {
        match self.settings.int(Setting::MaxMemory).unsigned_abs() {
            0 => usize::MAX,
            limit => (limit / WARM_SHARE * (WARM_SHARE - 1)) as usize,
        }
    }

    /// Bytes that all clients' buffers take.
    pub(crate) fn client_bytes(&self) -> usize {
        let bytes = self
            .workers
            .iter()
            .map(|worker| worker.stats.client_bytes.get());
        // Each worker's own sum is right; what is read of several at once may not be.
        bytes.sum::<u64>() as usize
    }

    /// Drops the largest clients if all together take too much.
    pub(crate) fn bound_clients(&self) {
        if let Some(limit) = self.memory.clients()
            && self.client_bytes() > limit + self.memory.single.load(Relaxed)
        {
            self.drop_largest_clients(limit);
        }
    }

    /// As [`Shared::bound_clients`], with another look at which client has the largest request or reply.
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
        // The bytes of the largest request with its replies, and its client.
        let mut single = (0, 0);
        self.clients.for_each(|client| {
            // One that was killed already is as good as gone.
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
        // A limit that somebody has set holds for each of them. No command may need more than that.
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
            // All that are left are spared: to look at them in every turn would change nothing.
            self.memory.spared_ms.store(now, Relaxed);
        }
        self.memory.is_dropping.store(false, Relaxed);
    }
}
