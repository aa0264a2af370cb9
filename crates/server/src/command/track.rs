//! Keys that a connection with tracking reads: remembered before its commands run
//! ([`crate::observe::tracking`]).

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use keyspace::{Key, reason};
use resp::reply::Protocol;

use crate::command::{Command, Context, Reach, Session, flag, key_finder};
use crate::limits::{LEAVE_SLICE, TRACKING_EVICTIONS, TRACKING_GRACE_MS};
use crate::observe::removals::{self, Leftover};
use crate::observe::tracking::{PREFIX_BYTES, Wish, set_current, take_own_changes};
use crate::request::Args;
use crate::server::Server;
use crate::shared::clients::status;

/// Modes of tracking, as bits of the status.
const MODES: u32 = status::BROADCAST | status::OPT_IN | status::OPT_OUT | status::NO_LOOP;

impl Session {
    /// Lets the connection track, or track in another way. Returns whether all shards have to be observed for
    /// it from here on.
    pub(crate) fn begin_tracking(&mut self, server: &Server, wish: Wish) -> bool {
        let (client, tracking) = (&self.client, &server.observers.tracking);
        if !client.has_status(status::TRACKING) {
            tracking.clients.fetch_add(1, Relaxed);
        }
        client.set_status(MODES | status::BROKEN_REDIRECT, false);
        client.set_redirect(wish.redirect);
        client.set_status(wish.modes | status::TRACKING, true);
        set_current(client.id);
        if wish.modes & status::BROADCAST == 0 {
            return false;
        }
        let is_first = self.prefixes.is_empty();
        let round = client.tracking_round.load(Relaxed);
        for prefix in wish.prefixes {
            // Only the empty one may be named again.
            if !self.prefixes.contains(&prefix) {
                client.keep(prefix.len() + PREFIX_BYTES);
                tracking.prefixes.add(&prefix, client, round);
                self.prefixes.insert(prefix);
            }
        }
        is_first
    }

    /// Ends tracking, if the connection tracks. The keys that it has read are forgotten when they change, or
    /// in the next sweep. If the connection stays, a later sweep forgets them: it may track again, and then
    /// they count.
    pub(crate) fn end_tracking(&mut self, server: &Server, stays: bool) {
        let (client, tracking) = (&self.client, &server.observers.tracking);
        if !client.has_status(status::TRACKING) {
            return;
        }
        let round = client.tracking_round.load(Relaxed);
        let mut prefixes = std::mem::take(&mut self.prefixes);
        if !tracking.remove_prefixes(server, client, round, &mut prefixes, LEAVE_SLICE) {
            // Those of this round mean nothing from here on.
            client.tracking_round.store(round + 1, Relaxed);
            let leftover = Leftover::Prefixes(Arc::clone(client), round, prefixes);
            removals::leave(server, leftover);
        }
        client.set_status(
            MODES | status::BROKEN_REDIRECT | status::CACHING | status::TRACKING,
            false,
        );
        client.set_redirect(None);
        tracking.clients.fetch_sub(1, Relaxed);
        let now = sys::clock::realtime_ms();
        client.untracked_ms.store(now, Relaxed);
        let sweeps_from = if stays { now + TRACKING_GRACE_MS } else { 0 };
        tracking.note_dead(client.tracked.load(Relaxed), sweeps_from);
    }
}

/// Remembers the keys that a command is about to read, if the connection tracks what it reads.
pub(crate) fn remember(context: &mut Context<'_>, command: &'static Command, args: &Args<'_>) {
    let status = context.session.client.status.load(Relaxed);
    let is_wanted = match status & (status::OPT_IN | status::OPT_OUT) {
        0 => true,
        status::OPT_IN => status & status::CACHING != 0,
        _ => status & status::CACHING == 0,
    };
    let reads = command.spec.has(flag::READONLY) && !command.spec.has(flag::PUBSUB);
    let tracks = status & (status::TRACKING | status::BROADCAST) == status::TRACKING;
    if !tracks || !is_wanted || !reads {
        return;
    }
    let mut args = *args;
    args.first_key = command.first_key as usize;
    args.key_shift = command.key_shift;
    match command.reach(&args) {
        Reach::Nothing => {}
        Reach::Range => command
            .key_positions(args.len())
            .for_each(|at| remember_key(context, args.key(at))),
        Reach::Found(_) | Reach::Everything => {
            let all: Vec<&[u8]> = args.from(0).collect();
            let found = key_finder::find(command.spec, &all).unwrap_or_default();
            for key in found {
                remember_key(context, args.key(key.at));
            }
        }
    }
    context
        .server
        .observers
        .tracking
        .evict(context.server, TRACKING_EVICTIONS);
}

/// CLIENT CACHING holds for the next command alone, or for the transaction that it begins.
pub(crate) fn end_command(session: &Session, command: Option<&Command>) {
    let is_client = command.is_some_and(|command| command.full_name.starts_with("client"));
    if session.transaction.is_none() && !is_client {
        session.client.set_status(status::CACHING, false);
    }
}

impl Context<'_> {
    /// Tells the connection of the tracked keys that its command has changed.
    #[inline]
    pub(crate) fn tell_own_changes(&mut self) {
        let keys = take_own_changes();
        // Over RESP2 a message can't be distinguished from a reply.
        if self.session.closing || self.session.protocol == Protocol::Resp2 {
            return;
        }
        for key in keys {
            self.reply.push(2);
            self.reply.bulk(b"invalidate");
            self.reply.array(1);
            self.reply.bulk(&key);
        }
    }
}

fn remember_key(context: &Context<'_>, key: Key<'_>) {
    let (server, store) = (context.server, &context.store);
    let mut shard = store.lock(key);
    shard.observe(key, reason::TRACKED);
    let tracking = &server.observers.tracking;
    let number = server.keyspace.shard_of(key.hash);
    tracking.add(number, store.db, key, &context.session.client);
    drop(shard);
    // As many leave the table as come, however many keys the command has.
    tracking.evict(server, 2);
}
