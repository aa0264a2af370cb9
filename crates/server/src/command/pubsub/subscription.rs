//! SUBSCRIBE, PSUBSCRIBE, SSUBSCRIBE and their opposites.
//!
//! Each name is confirmed with a message of its own, with the number of names the connection listens to by then: channels
//! and patterns together, shard channels on their own.

use crate::clients::status;
use crate::command::{Args, Context, Failure};
use crate::pubsub::NameKind;

pub(super) fn subscribe(context: &mut Context<'_>, args: &Args<'_>) -> Result<(), Failure> {
    begin(context, args, NameKind::Channel, b"subscribe")
}

pub(super) fn psubscribe(context: &mut Context<'_>, args: &Args<'_>) -> Result<(), Failure> {
    begin(context, args, NameKind::Pattern, b"psubscribe")
}

pub(super) fn ssubscribe(context: &mut Context<'_>, args: &Args<'_>) -> Result<(), Failure> {
    begin(context, args, NameKind::Shard, b"ssubscribe")
}

pub(super) fn unsubscribe(context: &mut Context<'_>, args: &Args<'_>) -> Result<(), Failure> {
    end(context, args, NameKind::Channel, b"unsubscribe")
}

pub(super) fn punsubscribe(context: &mut Context<'_>, args: &Args<'_>) -> Result<(), Failure> {
    end(context, args, NameKind::Pattern, b"punsubscribe")
}

pub(super) fn sunsubscribe(context: &mut Context<'_>, args: &Args<'_>) -> Result<(), Failure> {
    end(context, args, NameKind::Shard, b"sunsubscribe")
}

fn begin(
    context: &mut Context<'_>,
    args: &Args<'_>,
    kind: NameKind,
    word: &[u8],
) -> Result<(), Failure> {
    let (server, token) = (context.server, context.token());
    context.listeners.admit(token, context.session.protocol);
    context.session.listens = true;
    for name in args.from(1) {
        context.listeners.join(server, token, kind, name);
        context.receive();
        confirm(context, kind, word, Some(name));
    }
    note(context);
    Ok(())
}

fn end(
    context: &mut Context<'_>,
    args: &Args<'_>,
    kind: NameKind,
    word: &[u8],
) -> Result<(), Failure> {
    if args.len() > 1 {
        args.from(1)
            .for_each(|name| end_one(context, kind, word, name));
    } else {
        let names = context.listeners.names(context.token(), kind);
        for name in &names {
            end_one(context, kind, word, name);
        }
        if names.is_empty() {
            confirm(context, kind, word, None);
        }
    }
    note(context);
    Ok(())
}

fn end_one(context: &mut Context<'_>, kind: NameKind, word: &[u8], name: &[u8]) {
    let (server, token) = (context.server, context.token());
    context.listeners.leave(server, token, kind, name);
    // Nothing that was published to the name comes behind the confirmation.
    context.receive();
    confirm(context, kind, word, Some(name));
}

fn confirm(context: &mut Context<'_>, kind: NameKind, word: &[u8], name: Option<&[u8]>) {
    let token = context.token();
    let count = |kind| context.listeners.count(token, kind);
    let count = match kind {
        NameKind::Shard => count(NameKind::Shard),
        NameKind::Channel | NameKind::Pattern => {
            count(NameKind::Channel) + count(NameKind::Pattern)
        }
    };
    let reply = &mut context.reply;
    reply.push(3);
    reply.bulk(word);
    match name {
        Some(name) => reply.bulk(name),
        None => reply.null(),
    }
    reply.integer(count as i64);
}

/// Brings the records of the connection up to date.
fn note(context: &mut Context<'_>) {
    let (server, token) = (context.server, context.token());
    let counts = NameKind::ALL.map(|kind| context.listeners.count(token, kind));
    context.session.client.set_subscriptions(counts);
    if counts == [0; 3] && !context.session.client.has_status(status::TRACKING) {
        context.listeners.dismiss(server, token);
        context.session.listens = false;
    }
}
