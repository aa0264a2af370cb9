//! PUBLISH and SPUBLISH, and PUBSUB, which tells who would be reached.

use std::sync::Arc;

use crate::command::{Args, Context, Failure};
use crate::pubsub::{NameKind, Payload};

pub(super) fn publish(context: &mut Context<'_>, args: &Args<'_>) -> Result<(), Failure> {
    let receivers = context.publish(NameKind::Channel, args.get(1), Payload::Argument(args, 2));
    context.reply.integer(receivers as i64);
    Ok(())
}

pub(super) fn spublish(context: &mut Context<'_>, args: &Args<'_>) -> Result<(), Failure> {
    let receivers = context.publish(NameKind::Shard, args.get(1), Payload::Argument(args, 2));
    context.reply.integer(receivers as i64);
    Ok(())
}

pub(super) fn channels(context: &mut Context<'_>, args: &Args<'_>) -> Result<(), Failure> {
    list(context, args, NameKind::Channel)
}

pub(super) fn shard_channels(context: &mut Context<'_>, args: &Args<'_>) -> Result<(), Failure> {
    list(context, args, NameKind::Shard)
}

fn list(context: &mut Context<'_>, args: &Args<'_>, kind: NameKind) -> Result<(), Failure> {
    if args.len() > 3 {
        return Err(Failure::wrong_subcommand("PUBSUB", args.get(1)));
    }
    let names: Vec<Arc<[u8]>> = context.server.registry.names(kind, args.optional(2));
    context.reply.array(names.len());
    names.iter().for_each(|name| context.reply.bulk(name));
    Ok(())
}

pub(super) fn count_patterns(context: &mut Context<'_>, _: &Args<'_>) -> Result<(), Failure> {
    let patterns = context.server.registry.count(NameKind::Pattern);
    context.reply.integer(patterns as i64);
    Ok(())
}

pub(super) fn count_listeners(context: &mut Context<'_>, args: &Args<'_>) -> Result<(), Failure> {
    count(context, args, NameKind::Channel)
}

pub(super) fn count_shard_listeners(
    context: &mut Context<'_>,
    args: &Args<'_>,
) -> Result<(), Failure> {
    count(context, args, NameKind::Shard)
}

/// Answers names and numbers in turn, in RESP3 as well.
fn count(context: &mut Context<'_>, args: &Args<'_>, kind: NameKind) -> Result<(), Failure> {
    let names = args.from(2);
    context.reply.array(names.len() * 2);
    for name in names {
        let listeners = context.server.registry.listeners(kind, name);
        context.reply.bulk(name);
        context.reply.integer(listeners as i64);
    }
    Ok(())
}
