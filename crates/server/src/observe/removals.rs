//! What connections leave behind that takes long to remove: a worker does that in slices, between its turns,
//! so that the end of one connection with a million subscriptions delays nobody.
//!
//! What is left behind means nothing any more from the moment on at which it is left: registrations carry the
//! round of their connection ([`Client::watch_round`], [`Client::tracking_round`]), and those of rounds that
//! are over are passed over.
//!
//! Each worker has its own list, which only its own thread reaches. Other threads remove everything at once.

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

/// One connection's part of a registry.
pub(crate) enum Leftover {
    /// The keys that it watched in a round.
    Watched(Arc<Client>, u64, WatchList),
    /// The prefixes that it tracked in a round.
    Prefixes(Arc<Client>, u32, Disjoint),
    /// Keys that connections have read, of databases that were emptied.
    Interests(Interests),
    /// The channels and patterns that it listened to, by the token of the connection, which has ended.
    Names(u64),
}

thread_local! {
    static ANY: Cell<bool> = const { Cell::new(false) };
    static LEFT: RefCell<VecDeque<Leftover>> = const { RefCell::new(VecDeque::new()) };
}

/// Leaves something to be removed in slices.
pub(crate) fn leave(server: &Observed, mut leftover: Leftover) {
    if pubsub::is_worker() {
        LEFT.with_borrow_mut(|left| left.push_back(leftover));
        ANY.set(true);
    } else {
        while !leftover.remove(server, LEAVE_SLICE) {}
    }
}

/// Whether this thread has something to remove.
#[inline]
pub(crate) fn any() -> bool {
    ANY.get()
}

impl Leftover {
    /// Removes so much of it. Returns whether nothing is left.
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
            // [`remove_some`] leaves that to the worker, whose listeners know the names.
            Leftover::Names(_) => true,
        }
    }
}

/// Removes a slice of what was left behind first. `forget` does so with the names of a connection: a slice of
/// the size that it is given; it returns whether none is left.
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
        // The others have their slices, too.
        false => left.push_back(first),
        true if left.is_empty() => {
            *left = VecDeque::new();
            ANY.set(false);
        }
        true => {}
    });
}
