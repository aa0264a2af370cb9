//! PUBLISH and SPUBLISH, and PUBSUB, which counts receivers.

use std::ops::ControlFlow;

use resp::reply::{Protocol, Writer};

use crate::command::deferred::{Around, Progress, Slice, Work};
use crate::command::{Args, Context, Failure, Handled, Next};
use crate::names::glob::{self, Case};
use crate::pubsub::{NameKind, Payload, VisitPlace};
use crate::request::Pieces;
use crate::server::Server;

pub(super) fn publish(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let receivers = context.publish(NameKind::Channel, args.get(1), Payload::Argument(args, 2));
    context.reply.integer(receivers as i64);
    Ok(Next::Done)
}

pub(super) fn spublish(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let receivers = context.publish(NameKind::Shard, args.get(1), Payload::Argument(args, 2));
    context.reply.integer(receivers as i64);
    Ok(Next::Done)
}

pub(super) fn channels(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    list(context, args, NameKind::Channel)
}

pub(super) fn shard_channels(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    list(context, args, NameKind::Shard)
}

fn list(context: &mut Context<'_>, args: &Args<'_>, kind: NameKind) -> Handled {
    if args.len() > 3 {
        return Err(Failure::wrong_subcommand("PUBSUB", args.get(1)));
    }
    let listing = Listing {
        kind,
        pattern: args.optional(2).map(<[u8]>::to_vec),
        place: VisitPlace::default(),
        found: 0,
        answer: Pieces::default(),
    };
    let (protocol, slice) = (context.session.protocol, context.slice());
    let mut listing = listing;
    match listing.go_on_with(context.server, protocol, &slice) {
        ControlFlow::Continue(()) => return Ok(context.defer(args, listing)),
        ControlFlow::Break(()) => {
            for piece in listing.finished(protocol).into_iter() {
                context.reply.out.extend_from_slice(piece.as_slice());
            }
        }
    }
    Ok(Next::Done)
}

/// A list of channels that is being made.
struct Listing {
    kind: NameKind,
    pattern: Option<Vec<u8>>,
    place: VisitPlace,
    found: usize,
    answer: Pieces,
}

impl Listing {
    /// Adds names until the slice is over, or all are there.
    fn go_on_with(
        &mut self,
        server: &Server,
        protocol: Protocol,
        slice: &Slice,
    ) -> ControlFlow<()> {
        let Listing {
            kind,
            pattern,
            place,
            found,
            answer,
        } = self;
        while slice.goes_on() {
            server.registry.visit(*kind, place, |name| {
                let matches = |pattern: &Vec<u8>| glob::matches(pattern, name, Case::Sensitive);
                if pattern.as_ref().is_none_or(matches) {
                    answer.write(protocol, |reply| reply.bulk(name));
                    *found += 1;
                }
            })?;
        }
        ControlFlow::Continue(())
    }

    /// The whole answer.
    fn finished(&mut self, protocol: Protocol) -> Pieces {
        let mut head = Vec::new();
        Writer::new(&mut head, protocol).array(self.found);
        self.answer.put_before(head);
        std::mem::take(&mut self.answer)
    }
}

impl Work for Listing {
    fn go_on(&mut self, around: &mut Around<'_>, slice: &Slice) -> Progress {
        match self.go_on_with(around.server, around.protocol, slice) {
            ControlFlow::Continue(()) => Progress::More,
            ControlFlow::Break(()) => Progress::Done(Ok(self.finished(around.protocol))),
        }
    }

    fn memory(&self) -> usize {
        self.answer.len()
    }
}

pub(super) fn count_patterns(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    let patterns = context.server.registry.count(NameKind::Pattern);
    context.reply.integer(patterns as i64);
    Ok(Next::Done)
}

pub(super) fn count_listeners(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    count(context, args, NameKind::Channel)
}

pub(super) fn count_shard_listeners(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    count(context, args, NameKind::Shard)
}

/// Answers names and numbers in turn, in RESP3 as well.
fn count(context: &mut Context<'_>, args: &Args<'_>, kind: NameKind) -> Handled {
    let names = args.from(2);
    context.reply.array(names.len() * 2);
    for name in names {
        let listeners = context
            .server
            .registry
            .listeners(context.server, kind, name);
        context.reply.bulk(name);
        context.reply.integer(listeners as i64);
    }
    Ok(Next::Done)
}
