//! Deferred removal of what connections leave in registries. A worker removes it in slices between its turns,
//! so that the end of a connection with a million subscriptions delays no other.
//!
//! Leftovers have no effect from the moment at which they are left: registrations carry the round of their
//! connection ([`Client::watch_round`], [`Client::tracking_round`]), and earlier rounds are skipped.
//!
//! Each worker has its own list, which only its thread reaches. Other threads remove everything at once.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;

use crate::limits::LEAVE_SLICE;
use crate::names::Disjoint;
use crate::observe::Observed;
use crate::observe::tracking::Interests;
use crate::observe::watch::WatchList;
use crate::pubsub;
use crate::shared::clients::Client;

/// Registrations that are to be removed.
pub(crate) enum Leftover {
    /// Keys that a connection watched in a round.
    Watched(Arc<Client>, u64, WatchList),
    /// Prefixes that a connection tracked in a round.
    Prefixes(Arc<Client>, u32, Disjoint),
    /// Tables of tracked keys of databases that were emptied.
    Interests(Interests),
    /// Channels and patterns of a connection that has ended, by its token.
    Names(u64),
}

thread_local! {
    static ANY: Cell<bool> = const { Cell::new(false) };
    static LEFT: RefCell<VecDeque<Leftover>> = const { RefCell::new(VecDeque::new()) };
}

/// Adds registrations to be removed in slices.
pub(crate) fn leave(server: &Observed, mut leftover: Leftover) {
    if pubsub::is_worker() {
        LEFT.with_borrow_mut(|left| left.push_back(leftover));
        ANY.set(true);
    } else {
        while !leftover.remove(server, LEAVE_SLICE) {}
    }
}

/// Whether this thread has registrations to remove.
#[inline]
pub(crate) fn any() -> bool {
    ANY.get()
}

impl Leftover {
    /// Removes at most `most` registrations. Returns whether none is left.
    fn remove(&mut self, server: &Observed, most: usize) -> bool {
        let tracking = &server.observers.tracking;
        match self {
            Leftover::Watched(client, round, list) => {
                let watches = &server.observers.watches;
                list.remove_some(most, |watched| {
                    watches.remove(server, &watched, client, *round);
                    client.free(watched.memory());
                })
            }
            Leftover::Prefixes(client, round, prefixes) => {
                tracking.remove_prefixes(server, client, *round, prefixes, most)
            }
            Leftover::Interests(interests) => interests.remove(most),
            // Removed by the `forget` of [`remove_some`]: the worker's listeners know the names.
            Leftover::Names(_) => true,
        }
    }
}

/// Removes a slice of the oldest leftover. `forget` removes a slice of the names of a connection, given its
/// token and the size of the slice, and returns whether none is left.
#[cold]
pub(crate) fn remove_some(server: &Observed, forget: impl FnOnce(u64, usize) -> bool) {
    let Some(mut first) = LEFT.with_borrow_mut(VecDeque::pop_front) else {
        return ANY.set(false);
    };
    let is_done = match first {
        Leftover::Names(token) => forget(token, LEAVE_SLICE),
        _ => first.remove(server, LEAVE_SLICE),
    };
    LEFT.with_borrow_mut(|left| match is_done {
        // The other leftovers get their slices too.
        false => left.push_back(first),
        true if left.is_empty() => {
            *left = VecDeque::new();
            ANY.set(false);
        }
        true => {}
    });
}
