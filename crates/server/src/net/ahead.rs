//! The third sweep of a window: items of large collections, prefetched before the first request that looks
//! for them runs.
//!
//! Most keys have none, and to look at every key would cost as much as it saves. So one request of each
//! window is a sample: if it names items of a large collection, its key is remembered for some windows, and
//! the items that all requests name of it are prefetched together.

use keyspace::Key;
use keyspace::collection::ahead::{AHEAD_MAX, Goes, Sought};
use keyspace::collection::cell::Cell;
use resp::request::Span;

use crate::command::run::Request;
use crate::net::lane::{Lane, Parsing};

/// Bytes of a collection that is larger than the cache of a processor core, and therefore worth the sweep.
/// Builds for tests take every tree for that large.
const FAR_BYTES: usize = match cfg!(any(debug_assertions, feature = "faults")) {
    true => 1,
    false => 1 << 20,
};

/// Keys that are remembered.
const KEYS: usize = 4;
/// Windows without a request for it until a key is forgotten.
const FORGET_AFTER: u32 = 64;
/// A window with fewer requests is not swept, and neither are fewer items of one key.
pub(crate) const REQUESTS_MIN: usize = 3;

/// Keys with large collections that requests have named lately.
#[derive(Default)]
pub(crate) struct FarCollections {
    keys: [Option<Far>; KEYS],
    /// The request of a window that is the next sample.
    sample: usize,
    /// Where the next key is remembered.
    next: usize,
}

/// The key of a large collection.
#[derive(Clone, Copy)]
struct Far {
    database: usize,
    hash: u64,
    /// Windows since a request named it.
    unused: u32,
}

/// The requests of a window.
#[derive(Clone, Copy)]
pub(crate) struct Window<'a> {
    pub(crate) requests: &'a [Request],
    pub(crate) spans: &'a [Span],
    pub(crate) hashes: &'a [u64],
    pub(crate) lanes: &'a [Lane],
}

impl<'a> Window<'a> {
    /// The hash of the key of a request that names items.
    #[inline]
    fn hash(self, request: &Request) -> Option<u64> {
        request.command?.spec.items.names()?;
        let hashes = &self.hashes[request.first_hash..][..request.hashes];
        hashes.first().copied()
    }

    /// The database and the input of a request's connection.
    fn source<'w>(self, request: &Request, around: &'w Parsing<'_>) -> Option<(usize, &'w [u8])> {
        let lane = &self.lanes[request.lane];
        let connection = around.connections.get(lane.token)?;
        let input = lane.input(None, around.scratch, &connection.pending);
        Some((connection.session.db, input))
    }

    /// The key of a request that names items, and these.
    fn items<'w>(
        self,
        request: &Request,
        input: &'w [u8],
    ) -> Option<(&'w [u8], impl Iterator<Item = Sought<'w>> + use<'w, 'a>)> {
        let command = request.command?;
        let (from, step) = command.spec.items.names()?;
        let spans = &self.spans[request.first_span..][..request.spans];
        let argument = move |at: usize| spans[at].of(input);
        let key = spans.get(command.first_key as usize)?.of(input);
        let items = (from..spans.len()).step_by(step).map(move |at| Sought {
            name: Cell::of(argument(at)),
            goes: command.spec.items.goes(at, argument),
        });
        Some((key, items))
    }
}

impl FarCollections {
    /// Prefetches what the requests of a window are about to look for, as far as it is known to be far. There
    /// is one at least.
    pub(crate) fn prefetch(&mut self, window: Window<'_>, around: &Parsing<'_>) {
        self.sample = self.sample.wrapping_add(1);
        let sample = &window.requests[self.sample % window.requests.len()];
        if let Some(hash) = window.hash(sample) {
            self.remember(sample, hash, window, around);
        }
        for remembered in &mut self.keys {
            let stays = |far: &mut Far| far.prefetch(window, around);
            if !remembered.as_mut().is_some_and(stays) {
                *remembered = None;
            }
        }
    }

    /// Remembers the key of a request, if it has a large collection.
    #[inline(never)]
    fn remember(&mut self, request: &Request, hash: u64, window: Window<'_>, around: &Parsing<'_>) {
        let Some((database, input)) = window.source(request, around) else {
            return;
        };
        let far = Far {
            database,
            hash,
            unused: 0,
        };
        let is_same = |other: &Far| other.hash == hash && other.database == database;
        if let Some((key, _)) = window.items(request, input)
            && !self.keys.iter().flatten().any(is_same)
            && far.ask_for(key, &[], around)
        {
            self.keys[self.next % KEYS] = Some(far);
            self.next = self.next.wrapping_add(1);
        }
    }
}

impl Far {
    /// Prefetches the items that requests name. Returns whether the key is to be remembered.
    #[inline(never)]
    fn prefetch(&mut self, window: Window<'_>, around: &Parsing<'_>) -> bool {
        const NONE: Sought<'_> = Sought {
            name: Cell::Int(0),
            goes: Goes::Nowhere,
        };
        let mut items = [NONE; AHEAD_MAX];
        let (mut key, mut count) = (None, 0);
        for request in window.requests {
            if window.hash(request) != Some(self.hash) {
                continue;
            }
            let Some((database, input)) = window.source(request, around) else {
                continue;
            };
            let Some((its, sought)) = window.items(request, input) else {
                continue;
            };
            if database != self.database {
                continue;
            }
            key = Some(its);
            for item in sought.take(AHEAD_MAX) {
                if count == AHEAD_MAX {
                    count = 0;
                    if !self.ask_for(its, &items, around) {
                        return false;
                    }
                }
                items[count] = item;
                count += 1;
            }
        }
        let Some(key) = key else {
            self.unused += 1;
            return self.unused < FORGET_AFTER;
        };
        self.unused = 0;
        count < REQUESTS_MIN || self.ask_for(key, &items[..count], around)
    }

    /// Prefetches items, unless somebody else has the shard. Returns false if there is no large collection.
    fn ask_for(&self, key: &[u8], items: &[Sought<'_>], around: &Parsing<'_>) -> bool {
        let database = around.keyspace.database(around.turn, self.database);
        // At the time 0 nothing has expired: what has is left to the requests.
        let Some(mut guard) = database.try_lock_shard(database.shard_of(self.hash), 0) else {
            return true;
        };
        let entry = guard.find(Key {
            bytes: key,
            hash: self.hash,
        });
        let entry = entry.as_ref();
        match entry
            .and_then(|entry| entry.tree())
            .filter(|tree| tree.bytes() >= FAR_BYTES)
        {
            Some(tree) => {
                tree.ask_for(items);
                true
            }
            None => false,
        }
    }
}
