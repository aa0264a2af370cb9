//! Small commands about the process as a whole: the time, replication (of which there is none), MONITOR and
//! the end.

use std::sync::atomic::Ordering::Relaxed;

use super::{Args, Context, Failure, Handled, Next};
use crate::command::failure;
use crate::command::park::{self, Unit, Wait};
use crate::persistence::{self, Ending};
use crate::shared::clients::status;

pub(super) fn time(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    let now_us = sys::clock::realtime_us();
    context.reply.array(2);
    context.reply.bulk_integer(now_us / 1_000_000);
    context.reply.bulk_integer(now_us % 1_000_000);
    Ok(Next::Done)
}

pub(super) fn role(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    context.reply.array(3);
    context.reply.bulk(b"master");
    context.reply.integer(0);
    context.reply.empty_array();
    Ok(Next::Done)
}

/// There are no replicas: a wait for any lasts until its timeout, or for ever.
pub(super) fn wait(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let replicas = args.integer(1)?;
    let until_ms = park::deadline(context.store.now, args, 2, Unit::Milliseconds)?;
    if replicas <= 0 || !context.may_wait() {
        context.reply.integer(0);
        return Ok(Next::Done);
    }
    Ok(context.park(Wait {
        until_ms,
        durable: None,
        repeats: false,
        give_up: |context, _| context.reply.integer(0),
    }))
}

pub(super) fn monitor(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    if context.in_transaction {
        let refused = "ERR MONITOR isn't allowed for DENY BLOCKING client";
        return Err(Failure::of(refused));
    }
    let session = &mut *context.session;
    if !session.monitor {
        session.monitor = true;
        session.client.set_status(status::MONITOR, true);
        let token = session.client.token.load(Relaxed);
        context.server.monitors.add(context.worker, token);
    }
    context.reply.ok();
    Ok(Next::Done)
}

/// Options of SHUTDOWN.
#[derive(Default)]
struct End {
    save: bool,
    no_save: bool,
    now: bool,
    force: bool,
    /// Of Valkey: not while other nodes need this one, of which there is no such.
    safe: bool,
    abort: bool,
}

impl End {
    fn parse(args: &Args<'_>) -> Result<End, Failure> {
        let mut end = End::default();
        for at in 1..args.len() {
            let option = match () {
                () if args.is(at, "save") => &mut end.save,
                () if args.is(at, "nosave") => &mut end.no_save,
                () if args.is(at, "now") => &mut end.now,
                () if args.is(at, "force") => &mut end.force,
                () if args.is(at, "safe") => &mut end.safe,
                () if args.is(at, "abort") => &mut end.abort,
                () => return Err(failure::SYNTAX),
            };
            *option = true;
        }
        let alone = !(end.save || end.no_save || end.now || end.force || end.safe);
        if (end.save && end.no_save) || (end.abort && !alone) {
            return Err(failure::SYNTAX);
        }
        Ok(end)
    }
}

/// Ends the server. There are no replicas to wait for, so NOW changes nothing; and an end cannot be aborted,
/// because it is over before another command could run.
pub(super) fn shutdown(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let end = End::parse(args)?;
    if end.abort {
        return Err(Failure::of("ERR No shutdown in progress."));
    }
    log::warn!(
        "Client {} requested the shutdown",
        context.session.client.peer
    );
    let server = context.server;
    if context.extras.is_outside {
        // The changes of a script are kept as a whole or not at all: those of this one are lost.
        if !end.no_save {
            return Err(failure::busy(server.running.is_function()));
        }
        server.running.abandon();
        server.control.wake();
        context.session.closing = true;
        return Ok(Next::Done);
    }
    let ending = Ending {
        save: match (end.save, end.no_save) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        },
        force: end.force,
    };
    server.set_ending(true);
    let turn = &mut *context.store.turn;
    if turn
        .exclusive(|alone| persistence::end(server, alone, ending))
        .is_err()
    {
        server.set_ending(false);
        return Err(Failure::of("ERR Errors trying to SHUTDOWN. Check logs."));
    }
    // The reply is the end of the connection.
    context.session.closing = true;
    Ok(Next::Done)
}
