//! Policies of `maxmemory-policy`: one row for each name.
//!
//! ```text
//! name -> number in `Settings` -> MaxMemoryPolicy -> keys that it evicts, and uses that count
//! ```
//!
//! A new policy is a row of [`POLICIES`]. A new way to choose keys is a case of [`Chosen`] beside it,
//! and the compiler names the places that have to know it: [`Chosen::order`], [`Chosen::access`].

use keyspace::{Access, Order};

/// Meaning of `maxmemory-policy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MaxMemoryPolicy {
    /// Writes are refused.
    NoEviction,
    /// Values leave memory and stay in the log.
    Offload,
    /// Keys are evicted.
    Evict { scope: Scope, chosen: Chosen },
}

/// Keys that may be evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All keys.
    All,
    /// Keys with an expiry.
    Volatile,
}

/// Keys that are evicted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chosen {
    /// Least recently used.
    Lru,
    /// Least recently modified.
    Lrm,
    /// Least frequently used.
    Lfu,
    /// Any.
    Random,
    /// Soonest to expire.
    Ttl,
}

const fn evict(scope: Scope, chosen: Chosen) -> MaxMemoryPolicy {
    MaxMemoryPolicy::Evict { scope, chosen }
}

/// Every policy by name. The order is that of the messages, and of the numbers in [`super::Settings`].
const POLICIES: [(&str, MaxMemoryPolicy); 11] = [
    ("volatile-lru", evict(Scope::Volatile, Chosen::Lru)),
    ("volatile-lfu", evict(Scope::Volatile, Chosen::Lfu)),
    ("volatile-random", evict(Scope::Volatile, Chosen::Random)),
    ("volatile-ttl", evict(Scope::Volatile, Chosen::Ttl)),
    ("allkeys-lru", evict(Scope::All, Chosen::Lru)),
    ("allkeys-lfu", evict(Scope::All, Chosen::Lfu)),
    ("allkeys-random", evict(Scope::All, Chosen::Random)),
    ("noeviction", MaxMemoryPolicy::NoEviction),
    ("offload", MaxMemoryPolicy::Offload),
    ("volatile-lrm", evict(Scope::Volatile, Chosen::Lrm)),
    ("allkeys-lrm", evict(Scope::All, Chosen::Lrm)),
];

/// Names of [`POLICIES`], as the row of the setting has them.
pub(super) const POLICY_NAMES: [&str; POLICIES.len()] = {
    let mut names = [""; POLICIES.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = POLICIES[at].0;
        at += 1;
    }
    names
};

impl MaxMemoryPolicy {
    /// The policy of a number in [`super::Settings`].
    pub(super) fn of_number(number: i64) -> MaxMemoryPolicy {
        POLICIES[number as usize].1
    }

    /// Whether uses of a key are counted.
    pub(crate) fn counts_uses(self) -> bool {
        matches!(self, MaxMemoryPolicy::Evict { chosen, .. } if chosen.access() == Access::Frequency)
    }

    /// Whether a read counts as a use of a key.
    pub(crate) fn counts_reads(self) -> bool {
        match self {
            MaxMemoryPolicy::Evict { chosen, .. } => chosen != Chosen::Lrm,
            MaxMemoryPolicy::NoEviction | MaxMemoryPolicy::Offload => true,
        }
    }
}

impl Chosen {
    /// Order in which the keyspace evicts.
    pub(crate) fn order(self) -> Order {
        match self {
            Chosen::Lru | Chosen::Lrm | Chosen::Lfu => Order::Coldest,
            Chosen::Random => Order::Random,
            Chosen::Ttl => Order::Soonest,
        }
    }

    /// Uses that the keyspace notes.
    pub(crate) fn access(self) -> Access {
        match self {
            Chosen::Lfu => Access::Frequency,
            Chosen::Lru | Chosen::Lrm | Chosen::Random | Chosen::Ttl => Access::Heat,
        }
    }
}
