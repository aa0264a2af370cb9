//! MULTI, EXEC, DISCARD, WATCH, UNWATCH.
//!
//! The queue is in [`crate::command::queue`]; admission decides which requests are queued
//! ([`crate::net::execute`]). This module has begin and end.
//!
//! EXEC holds all shards that its requests and its watched keys are in, from before the check of watched keys
//! until the last request has run: no other client sees, or changes, anything in between. If the keys of a
//! request are unknown, no other worker runs meanwhile.

use std::sync::atomic::Ordering::Relaxed;

use keyspace::{Key, reason};

use super::{
    Arg, Args, Context, Failure, Group, Handled, KeySpec, Makes, Next, Spec, access, failure, flag,
};
use crate::command::queue::Transaction;
use crate::command::run::{Timer, run_inside};
use crate::observe::watch::Watched;

/// Flags of all of them: allowed at any time, and in a transaction they leave data alone.
const ALWAYS: u32 = flag::NOSCRIPT | flag::LOADING | flag::STALE | flag::NO_DATA;

/// Flags of all but EXEC.
const QUICK: u32 = ALWAYS | flag::FAST | flag::ALLOW_BUSY;

/// Common part of the rows of this family.
const ROW: Spec = Spec {
    arity: 1,
    flags: QUICK,
    group: Group::Transactions,
    ..Spec::BASE
};

pub(crate) const COMMANDS: &[Spec] = &[
    Spec {
        name: "multi",
        makes: Makes::Little,
        since: "1.2.0",
        summary: "Begins a transaction: the requests that follow are queued for EXEC",
        handler: multi,
        ..ROW
    },
    Spec {
        name: "exec",
        makes: Makes::Little,
        flags: ALWAYS | flag::SKIP_SLOWLOG,
        since: "1.2.0",
        summary: "Runs the queued requests in one step, unless a watched key has changed",
        complexity: "That of the queued requests",
        handler: exec,
        ..ROW
    },
    Spec {
        name: "discard",
        makes: Makes::Little,
        since: "2.0.0",
        summary: "Ends a transaction without running its requests",
        complexity: "O(N), N being the number of queued requests",
        handler: discard,
        ..ROW
    },
    Spec {
        name: "watch",
        makes: Makes::Little,
        arity: -2,
        flags: QUICK | flag::KEEPS,
        keys: &[KeySpec::rest(1, 1, access::RO)],
        since: "2.2.0",
        summary: "Lets the next transaction fail if one of the keys changes before it runs",
        complexity: "O(1) for each key",
        args: &[Arg::key("key").multiple()],
        handler: watch,
        ..ROW
    },
    Spec {
        name: "unwatch",
        makes: Makes::Little,
        since: "2.2.0",
        summary: "Forgets all watched keys",
        handler: unwatch,
        ..ROW
    },
];

fn multi(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    if context.session.transaction.is_some() {
        return Err(Failure::of("ERR MULTI calls can not be nested"));
    }
    let transaction = context.spares.take();
    context.session.begin(transaction);
    context.reply.ok();
    Ok(Next::Done)
}

fn exec(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    let transaction = context
        .session
        .take_transaction()
        .ok_or(Failure::of("ERR EXEC without MULTI"))?;
    let done = attempt(context, &transaction);
    match done {
        // It comes again when the values are there, or room for them.
        Ok(Next::Fetch | Next::Retry) => context.session.begin(transaction),
        _ => context.spares.give_back(transaction),
    }
    done
}

/// Runs a transaction, or finds out that it may not run. Watches nothing afterwards.
fn attempt(context: &mut Context<'_>, transaction: &Transaction) -> Handled {
    let server = context.server;
    if transaction.refused {
        context.session.unwatch(server);
        return Err(Failure::of(
            "EXECABORT Transaction discarded because of previous errors.",
        ));
    }
    if context.session.is_dirty() {
        context.session.unwatch(server);
        context.reply.null_array();
        return Ok(Next::Done);
    }
    if let Some(failure) = context.fetch.take_failure() {
        context.session.unwatch(server);
        return Err(failure.of_exec());
    }
    if server.offload.is_on() {
        context.offload_for(transaction);
    }
    let holds = reach(context, transaction);
    if server.offload.is_on() && context.wants_of(transaction) {
        let_go(context, holds);
        if !context.has_room_for_wanted() {
            context.extras.wanted.clear();
            return Ok(Next::Retry);
        }
        return Ok(Next::Fetch);
    }
    let may_run = are_watched_keys_unchanged(context);
    // Before the requests run: their own changes are no reason to fail.
    context.session.unwatch(server);
    let mut databases = None;
    if may_run {
        context.store.begin_batch();
        databases = run_all(context, transaction);
        context.store.end_batch();
    } else {
        context.reply.null_array();
    }
    let_go(context, holds);
    // No lock is held while the lines of MONITOR are made.
    for (at, db) in databases.into_iter().flatten().enumerate() {
        let args = transaction.args(at, &server.keyspace);
        context.show_monitors(db, transaction.command(at), &args);
    }
    Ok(Next::Done)
}

/// Excludes others from the data of the transaction. Returns whether its shards are held: otherwise no other
/// worker is inside a turn.
fn reach(context: &mut Context<'_>, transaction: &Transaction) -> bool {
    let Context { store, session, .. } = context;
    let holds = transaction.want(store, context.server.selectable_databases());
    if holds {
        for watched in session.watched.iter() {
            store.want(watched.db, watched.hash);
        }
        store.hold();
    } else {
        store.release();
        store.begin_alone();
    }
    holds
}

/// Lets others reach what the transaction uses.
fn let_go(context: &mut Context<'_>, holds: bool) {
    if holds {
        context.store.release();
    } else {
        context.store.end_alone();
    }
}

/// Checks all watched keys, whose shards are held: an expired key is removed now, and that is a change.
fn are_watched_keys_unchanged(context: &Context<'_>) -> bool {
    for Watched { db, hash, key } in context.session.watched.iter() {
        let (bytes, hash) = (&key[..], *hash);
        context.store.contains_in(*db, Key { bytes, hash });
    }
    !context.session.is_dirty()
}

/// Runs the requests one after the other. With MONITOR it returns the database selected after each.
fn run_all(context: &mut Context<'_>, transaction: &Transaction) -> Option<Vec<usize>> {
    let exec = context.command;
    let mut databases = context.server.monitors.any().then(Vec::new);
    let mut timer = Timer::new(context.server, context.store.stats);
    context.replies_in_parts = true;
    if !context.session.reply_mode.is_silent() {
        context.reply.array(transaction.len());
    }
    context.in_transaction = true;
    context.extras.foreseen.set(0);
    for at in 0..transaction.len() {
        let before = context.reply.mark();
        // A connection that has killed itself runs the rest, and hears nothing of it.
        let has_ended = context.session.closing;
        let mut args = transaction.args(at, context.store.keyspace);
        let command = transaction.command(at);
        match context.may_reply(command) {
            true => run_inside(context, command, &mut args, &mut timer),
            false => context.refuse(&failure::OUT_OF_MEMORY),
        }
        let is_silent = context.session.reply_mode.is_silent() && !command.spec.has(flag::PUSHES);
        if is_silent || has_ended {
            context.reply.take_back(before);
        }
        if let Some(databases) = &mut databases {
            databases.push(context.session.db);
        }
    }
    timer.finish_run();
    if context.session.listens {
        context.receive();
    }
    context.in_transaction = false;
    context.tell_held();
    context.command = exec;
    databases
}

fn discard(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    if context.session.transaction.is_none() {
        return Err(Failure::of("ERR DISCARD without MULTI"));
    }
    context.discard();
    context.reply.ok();
    Ok(Next::Done)
}

fn watch(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    if context.session.transaction.is_some() {
        return Err(Failure::of("ERR WATCH inside MULTI is not allowed"));
    }
    // A transaction that has failed already need not watch more.
    if !context.session.is_dirty() {
        let watched = args.keys().map(|key| Watched::bytes_of(key.bytes.len()));
        context.check_queue_limit(watched.sum())?;
        let Context {
            server,
            store,
            session,
            ..
        } = context;
        let mut shards = store.lock_keys(args.keys());
        for key in args.keys() {
            if session.watched.contains(store.db, key) {
                continue;
            }
            shards.of(key).observe(key, reason::WATCHED);
            let shard = server.keyspace.shard_of(key.hash);
            let watches = &server.observers.watches;
            let watched = Watched {
                db: store.db,
                hash: key.hash,
                key: watches.add(shard, store.db, key, &session.client),
            };
            session.client.keep(watched.memory());
            session.watched.add(watched);
        }
        session.client.watched.store(session.watched.len(), Relaxed);
    }
    context.reply.ok();
    Ok(Next::Done)
}

fn unwatch(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    context.session.unwatch(context.server);
    context.reply.ok();
    Ok(Next::Done)
}
