//! Commands that publish messages and listen to them.
//!
//! Here is the table; `subscription` begins and ends listening, `message` publishes and counts receivers.
//!
//! Subscriptions and the delivery of messages are in [`crate::pubsub`].

mod message;
mod subscription;

use std::sync::atomic::Ordering::Relaxed;

use super::{
    Arg, ArgKind, Args, Context, Group, Handled, KeySpec, Makes, Next, Spec, access, flag, help,
};
use crate::pubsub::{NameKind, Payload};
use crate::request::Reply;

/// Commands that begin or end listening.
const LISTENING: u32 = flag::PUBSUB
    | flag::NOSCRIPT
    | flag::LOADING
    | flag::STALE
    | flag::OF_SUBSCRIBERS
    | flag::PUSHES
    | flag::NO_DATA;

/// Commands that publish.
const PUBLISHING: u32 = flag::PUBSUB
    | flag::LOADING
    | flag::STALE
    | flag::FAST
    | flag::MAY_REPLICATE
    | flag::PUBLISHES
    | flag::NO_DATA;

/// Flags of commands that count receivers.
const ASKING: u32 = flag::PUBSUB | flag::LOADING | flag::STALE | flag::NO_DATA;

/// Common part of the rows of this family.
const ROW: Spec = Spec {
    group: Group::PubSub,
    since: "2.0.0",
    ..Spec::BASE
};

/// A shard channel is no key, but a cluster finds the node that has it as it finds keys.
const SHARD_CHANNEL: &[KeySpec] = &[KeySpec::one(1, access::NOT_KEY)];
const SHARD_CHANNELS: &[KeySpec] = &[KeySpec::rest(1, 1, access::NOT_KEY)];

const CHANNEL: Arg = Arg::of("channel", ArgKind::String);
const SHARD: Arg = Arg::of("shardchannel", ArgKind::String);
const PATTERN: Arg = Arg::of("pattern", ArgKind::Pattern);
const MESSAGE: Arg = Arg::of("message", ArgKind::String);

pub(crate) const COMMANDS: &[Spec] = &[
    Spec {
        name: "psubscribe",
        makes: Makes::Little,
        arity: -2,
        flags: LISTENING | flag::KEEPS,
        summary: "Listens to all channels whose names match patterns",
        complexity: "O(N) where N is the number of patterns given",
        args: &[Arg {
            multiple: true,
            ..Arg::block("pattern", &[PATTERN])
        }],
        handler: subscription::psubscribe,
        ..ROW
    },
    Spec {
        name: "publish",
        makes: Makes::Little,
        arity: 3,
        flags: PUBLISHING,
        summary: "Sends a message to all who listen to a channel",
        complexity: "O(N+M) where N is the number of listeners and M the number of patterns that anybody listens to",
        args: &[CHANNEL, MESSAGE],
        handler: message::publish,
        ..ROW
    },
    Spec {
        name: "pubsub",
        makes: Makes::Little,
        arity: -2,
        since: "2.8.0",
        summary: "Tells which channels and patterns are listened to",
        complexity: "Depends on subcommand.",
        subcommands: SUBCOMMANDS,
        ..ROW
    },
    Spec {
        name: "punsubscribe",
        makes: Makes::Little,
        arity: -1,
        flags: LISTENING,
        summary: "Ends listening to patterns, or to all of them",
        complexity: "O(N) where N is the number of patterns given",
        args: &[PATTERN.optional().multiple()],
        handler: subscription::punsubscribe,
        ..ROW
    },
    Spec {
        name: "spublish",
        makes: Makes::Little,
        arity: 3,
        flags: PUBLISHING,
        keys: SHARD_CHANNEL,
        since: "7.0.0",
        summary: "Sends a message to all who listen to a shard channel",
        complexity: "O(N) where N is the number of listeners",
        args: &[SHARD, MESSAGE],
        handler: message::spublish,
        ..ROW
    },
    Spec {
        name: "ssubscribe",
        makes: Makes::Little,
        arity: -2,
        flags: LISTENING | flag::KEEPS,
        keys: SHARD_CHANNELS,
        since: "7.0.0",
        summary: "Listens to shard channels",
        complexity: "O(N) where N is the number of shard channels given",
        args: &[SHARD.multiple()],
        handler: subscription::ssubscribe,
        ..ROW
    },
    Spec {
        name: "subscribe",
        makes: Makes::Little,
        arity: -2,
        flags: LISTENING | flag::KEEPS,
        summary: "Listens to channels",
        complexity: "O(N) where N is the number of channels given",
        args: &[CHANNEL.multiple()],
        handler: subscription::subscribe,
        ..ROW
    },
    Spec {
        name: "sunsubscribe",
        makes: Makes::Little,
        arity: -1,
        flags: LISTENING,
        keys: SHARD_CHANNELS,
        since: "7.0.0",
        summary: "Ends listening to shard channels, or to all of them",
        complexity: "O(N) where N is the number of shard channels given",
        args: &[SHARD.optional().multiple()],
        handler: subscription::sunsubscribe,
        ..ROW
    },
    Spec {
        name: "unsubscribe",
        makes: Makes::Little,
        arity: -1,
        flags: LISTENING,
        summary: "Ends listening to channels, or to all of them",
        complexity: "O(N) where N is the number of channels given",
        args: &[CHANNEL.optional().multiple()],
        handler: subscription::unsubscribe,
        ..ROW
    },
];

const SUBCOMMANDS: &[Spec] = &[
    Spec {
        name: "channels",
        makes: Makes::Little,
        arity: -2,
        flags: ASKING,
        since: "2.8.0",
        summary: "Lists the channels that somebody listens to by name",
        complexity: "O(N) where N is the number of such channels",
        args: &[PATTERN.optional()],
        handler: message::channels,
        ..ROW
    },
    Spec {
        name: "help",
        makes: Makes::Item,
        arity: 2,
        flags: flag::LOADING | flag::STALE,
        since: "6.2.0",
        summary: "Describes the subcommands",
        handler: describe,
        ..ROW
    },
    Spec {
        name: "numpat",
        makes: Makes::Little,
        arity: 2,
        flags: ASKING,
        since: "2.8.0",
        summary: "Counts the different patterns that somebody listens to",
        handler: message::count_patterns,
        ..ROW
    },
    Spec {
        name: "numsub",
        makes: Makes::Little,
        arity: -2,
        flags: ASKING,
        since: "2.8.0",
        summary: "Counts who listens to channels by name",
        complexity: "O(N) where N is the number of channels given",
        args: &[CHANNEL.optional().multiple()],
        handler: message::count_listeners,
        ..ROW
    },
    Spec {
        name: "shardchannels",
        makes: Makes::Little,
        arity: -2,
        flags: ASKING,
        since: "7.0.0",
        summary: "Lists the shard channels that somebody listens to",
        complexity: "O(N) where N is the number of such channels",
        args: &[PATTERN.optional()],
        handler: message::shard_channels,
        ..ROW
    },
    Spec {
        name: "shardnumsub",
        makes: Makes::Little,
        arity: -2,
        flags: ASKING,
        since: "7.0.0",
        summary: "Counts who listens to shard channels",
        complexity: "O(N) where N is the number of shard channels given",
        args: &[SHARD.optional().multiple()],
        handler: message::count_shard_listeners,
        ..ROW
    },
];

fn describe(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    let lines = [
        "CHANNELS [<pattern>]",
        "    The channels that somebody listens to by name, or those of them that match.",
        "NUMPAT",
        "    How many different patterns somebody listens to.",
        "NUMSUB [<channel> ...]",
        "    How many listen to each channel by name.",
        "SHARDCHANNELS [<pattern>]",
        "    The shard channels that somebody listens to, or those of them that match.",
        "SHARDNUMSUB [<shardchannel> ...]",
        "    How many listen to each shard channel.",
    ];
    help(context, "PUBSUB", &lines);
    Ok(Next::Done)
}

impl Context<'_> {
    /// The token of the connection that runs the command.
    pub(crate) fn token(&self) -> u64 {
        self.session.client.token.load(Relaxed)
    }

    /// Tells the connection, at this point among its replies, what has come for it by now. In a transaction
    /// it is held until the reply to EXEC is complete ([`Context::tell_held`]): messages between its elements
    /// would be taken for elements.
    pub(crate) fn receive(&mut self) {
        let token = self.token();
        if self.in_transaction {
            let mut held = Reply::new(&mut self.extras.held, self.session.protocol);
            self.listeners.receive(self.server, token, &mut held);
        } else {
            self.listeners.receive(self.server, token, &mut self.reply);
        }
    }

    /// Tells the connection what was held during its transaction.
    pub(crate) fn tell_held(&mut self) {
        let held = std::mem::take(&mut self.extras.held);
        if !self.session.closing {
            self.reply.append_output(held);
        }
    }

    /// Publishes a message. Returns how many connections are sent it.
    pub(crate) fn publish(
        &mut self,
        kind: NameKind,
        channel: &[u8],
        payload: Payload<'_>,
    ) -> usize {
        let server = self.server;
        server.registry.publish(server, kind, channel, payload)
    }
}
