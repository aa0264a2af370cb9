//! SUBSCRIBE, PSUBSCRIBE, SSUBSCRIBE and their opposites.
//!
//! Each name is confirmed with a message of its own, with the number of names the connection listens to by
//! then: channels and patterns together, shard channels on their own. Many names are a slice of work each
//! ([`crate::command::deferred`]), and confirmed slice by slice.

use std::sync::atomic::Ordering::Relaxed;

use resp::reply::Writer;

use crate::command::deferred::{Around, Progress, Slice, Work};
use crate::command::session::Session;
use crate::command::{Args, Context, Failure, Handled, Next};
use crate::limits::LEAVE_SLICE;
use crate::pubsub::{Listeners, NameKind};
use crate::request::Pieces;
use crate::server::Server;
use crate::shared::clients::status;

pub(super) fn subscribe(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    begin(context, args, NameKind::Channel, b"subscribe")
}

pub(super) fn psubscribe(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    begin(context, args, NameKind::Pattern, b"psubscribe")
}

pub(super) fn ssubscribe(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    if context.in_transaction {
        let refused = "ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client";
        return Err(Failure::of(refused));
    }
    begin(context, args, NameKind::Shard, b"ssubscribe")
}

pub(super) fn unsubscribe(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    end(context, args, NameKind::Channel, b"unsubscribe")
}

pub(super) fn punsubscribe(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    end(context, args, NameKind::Pattern, b"punsubscribe")
}

pub(super) fn sunsubscribe(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    end(context, args, NameKind::Shard, b"sunsubscribe")
}

fn begin(
    context: &mut Context<'_>,
    args: &Args<'_>,
    kind: NameKind,
    word: &'static [u8],
) -> Handled {
    context.check_kept(args.from(1).map(Listeners::bytes_of).sum())?;
    let (server, token) = (context.server, context.token());
    let session = &mut *context.session;
    context
        .listeners
        .admit(token, session.protocol, &session.client);
    session.listens = true;
    if args.len() > LEAVE_SLICE && context.may_defer() {
        return Ok(context.defer(args, Naming::of(kind, word, Way::Begin)));
    }
    for name in args.from(1) {
        context.listeners.join(server, token, kind, name);
        context.receive();
        confirm(context, kind, word, Some(name));
    }
    note(server, context.listeners, context.session);
    Ok(Next::Done)
}

fn end(context: &mut Context<'_>, args: &Args<'_>, kind: NameKind, word: &'static [u8]) -> Handled {
    let named = args.len() - 1;
    let count = match named {
        0 => context.listeners.count(context.token(), kind),
        named => named,
    };
    if count > LEAVE_SLICE && context.may_defer() {
        let way = [Way::End, Way::EndAll][usize::from(named == 0)];
        return Ok(context.defer(args, Naming::of(kind, word, way)));
    }
    if named > 0 {
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
    note(context.server, context.listeners, context.session);
    Ok(Next::Done)
}

fn end_one(context: &mut Context<'_>, kind: NameKind, word: &[u8], name: &[u8]) {
    let (server, token) = (context.server, context.token());
    context.listeners.leave(server, token, kind, name);
    // Nothing that was published to the name comes behind the confirmation.
    context.receive();
    confirm(context, kind, word, Some(name));
}

fn confirm(context: &mut Context<'_>, kind: NameKind, word: &[u8], name: Option<&[u8]>) {
    let count = counted(context.listeners, context.token(), kind);
    let reply = &mut context.reply;
    reply.push(3);
    reply.bulk(word);
    match name {
        Some(name) => reply.bulk(name),
        None => reply.null(),
    }
    reply.integer(count as i64);
}

/// The number of names that a confirmation tells.
fn counted(listeners: &Listeners, token: u64, kind: NameKind) -> usize {
    let count = |kind| listeners.count(token, kind);
    match kind {
        NameKind::Shard => count(NameKind::Shard),
        NameKind::Channel | NameKind::Pattern => {
            count(NameKind::Channel) + count(NameKind::Pattern)
        }
    }
}

/// Brings the records of the connection up to date.
fn note(server: &Server, listeners: &mut Listeners, session: &mut Session) {
    let token = session.client.token.load(Relaxed);
    let counts = NameKind::ALL.map(|kind| listeners.count(token, kind));
    session.client.set_subscriptions(counts);
    if counts == [0; 3] && !session.client.has_status(status::TRACKING) {
        listeners.forget(server, token, LEAVE_SLICE);
        session.listens = false;
    }
}

/// Operation on names.
#[derive(Clone, Copy)]
enum Way {
    Begin,
    End,
    /// With all that the connection has.
    EndAll,
}

/// Rest of a command with many names.
struct Naming {
    kind: NameKind,
    /// The first word of each confirmation.
    word: &'static [u8],
    way: Way,
    /// The argument that is next.
    at: usize,
}

impl Naming {
    fn of(kind: NameKind, word: &'static [u8], way: Way) -> Naming {
        Naming {
            kind,
            word,
            way,
            at: 1,
        }
    }
}

impl Work for Naming {
    fn go_on(&mut self, around: &mut Around<'_>, slice: &Slice) -> Progress {
        let (server, kind) = (around.server, self.kind);
        let token = around.session.client.token.load(Relaxed);
        let mut pieces = Pieces::default();
        while slice.goes_on() {
            let own;
            let name = match self.way {
                Way::EndAll => {
                    own = around.listeners.leave_any(server, token, kind);
                    own.as_deref()
                }
                Way::Begin | Way::End => around.args.optional(self.at),
            };
            let Some(name) = name else {
                note(server, around.listeners, around.session);
                return Progress::Done(Ok(pieces));
            };
            match self.way {
                Way::Begin => around.listeners.join(server, token, kind, name),
                Way::End => around.listeners.leave(server, token, kind, name),
                Way::EndAll => {}
            }
            self.at += 1;
            around.listeners.receive_into(server, token, &mut pieces);
            let count = counted(around.listeners, token, kind);
            pieces.write(around.protocol, |reply| {
                put_confirmation(reply, self.word, name, count);
            });
        }
        let counts = NameKind::ALL.map(|kind| around.listeners.count(token, kind));
        around.session.client.set_subscriptions(counts);
        Progress::Part(pieces)
    }
}

fn put_confirmation(reply: &mut Writer<'_>, word: &[u8], name: &[u8], count: usize) {
    reply.push(3);
    reply.bulk(word);
    reply.bulk(name);
    reply.integer(count as i64);
}
