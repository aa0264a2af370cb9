//! The record of every connection: what CLIENT LIST shows and CLIENT KILL reaches, from any worker.
//!
//! A record is written by its connection's worker with plain atomic stores, once per batch of requests, and read
//! by anybody.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

use parking_lot::{Mutex, RwLock};

/// Names a client gave itself.
#[derive(Default, Clone)]
pub(crate) struct Names {
    /// CLIENT SETNAME.
    pub(crate) name: String,
    /// CLIENT SETINFO LIB-NAME and LIB-VER.
    pub(crate) library: String,
    pub(crate) library_version: String,
}

/// See the module.
pub(crate) struct Client {
    pub(crate) id: u64,
    pub(crate) peer: String,
    pub(crate) local: String,
    pub(crate) fd: i32,
    pub(crate) is_unix: bool,
    /// The worker it lives on, and its token there.
    pub(crate) worker: usize,
    pub(crate) token: AtomicU64,
    pub(crate) created_ms: i64,
    pub(crate) names: Mutex<Names>,
    pub(crate) db: AtomicUsize,
    /// 2 or 3.
    pub(crate) protocol: AtomicU8,
    pub(crate) last_active_ms: AtomicI64,
    /// Counter id of the command that ran last; `u16::MAX` for none.
    pub(crate) last_command: AtomicU16,
    /// Bytes of an incomplete request, and room for more.
    pub(crate) input_bytes: AtomicUsize,
    pub(crate) input_free: AtomicUsize,
    /// Bytes waiting to be sent.
    pub(crate) output_bytes: AtomicUsize,
    /// The letters of CLIENT LIST `flags=`, as bits; see [`status`].
    pub(crate) status: AtomicU32,
    /// Set by CLIENT KILL; the worker closes the connection.
    pub(crate) killed: AtomicBool,
}

/// Bits of [`Client::status`].
pub(crate) mod status {
    pub(crate) const MONITOR: u32 = 1;
    pub(crate) const NO_EVICT: u32 = 1 << 1;
    pub(crate) const NO_TOUCH: u32 = 1 << 2;
    /// Will be closed once its replies are sent.
    pub(crate) const CLOSING: u32 = 1 << 3;
    /// Waits for the end of CLIENT PAUSE or for data.
    pub(crate) const BLOCKED: u32 = 1 << 4;
}

impl Client {
    pub(crate) fn set_status(&self, bit: u32, on: bool) {
        if on {
            self.status.fetch_or(bit, Relaxed);
        } else {
            self.status.fetch_and(!bit, Relaxed);
        }
    }

    pub(crate) fn has_status(&self, bit: u32) -> bool {
        self.status.load(Relaxed) & bit != 0
    }
}

/// All connections, by id.
#[derive(Default)]
pub(crate) struct Clients {
    next_id: AtomicU64,
    by_id: RwLock<BTreeMap<u64, Arc<Client>>>,
}

impl Clients {
    /// The id of the next connection; they ascend from 1 and are never used twice.
    pub(crate) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Relaxed) + 1
    }

    pub(crate) fn add(&self, client: Arc<Client>) {
        self.by_id.write().insert(client.id, client);
    }

    pub(crate) fn remove(&self, id: u64) {
        self.by_id.write().remove(&id);
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.read().len()
    }

    /// All of them now, in order of id.
    pub(crate) fn all(&self) -> Vec<Arc<Client>> {
        self.by_id.read().values().cloned().collect()
    }

    /// Calls `visit` with each of them now, in order of id. Nobody can connect or leave meanwhile.
    pub(crate) fn for_each(&self, visit: impl FnMut(&Arc<Client>)) {
        self.by_id.read().values().for_each(visit);
    }

    pub(crate) fn get(&self, id: u64) -> Option<Arc<Client>> {
        self.by_id.read().get(&id).cloned()
    }
}
