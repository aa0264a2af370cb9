//! CLIENT TRACKING, CACHING, GETREDIR and TRACKINGINFO.
//!
//! Invalidations are in [`crate::observe::tracking`].

use std::sync::Arc;

use keyspace::reason;
use resp::number;

use crate::command::{Args, Context, Failure, Handled, Next, failure};
use crate::limits::LEAVE_SLICE;
use crate::names::overlap;
use crate::observe::tracking::Wish;
use crate::shared::clients::{Client, status};

pub(super) fn tracking(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let wish = wish(context, args)?;
    match () {
        () if args.is(2, "on") => begin(context, wish)?,
        () if args.is(2, "off") => end(context),
        () => return Err(failure::SYNTAX),
    }
    context.reply.ok();
    Ok(Next::Done)
}

/// The options, compatible or not.
fn wish(context: &Context<'_>, args: &Args<'_>) -> Result<Wish, Failure> {
    let mut wish = Wish {
        modes: 0,
        redirect: None,
        prefixes: Vec::new(),
    };
    let mut at = 3;
    while at < args.len() {
        let has_more = at + 1 < args.len();
        match () {
            () if args.is(at, "redirect") && has_more => {
                at += 1;
                if wish.redirect.is_some() {
                    return Err(Failure::of(
                        "ERR A client can only redirect to a single other client",
                    ));
                }
                wish.redirect = Some(target(context, args.get(at))?);
            }
            () if args.is(at, "prefix") && has_more => {
                at += 1;
                wish.prefixes.push(args.get(at).into());
            }
            () if args.is(at, "bcast") => wish.modes |= status::BROADCAST,
            () if args.is(at, "optin") => wish.modes |= status::OPT_IN,
            () if args.is(at, "optout") => wish.modes |= status::OPT_OUT,
            () if args.is(at, "noloop") => wish.modes |= status::NO_LOOP,
            () => return Err(failure::SYNTAX),
        }
        at += 1;
    }
    Ok(wish)
}

/// The connection of an id.
fn target(context: &Context<'_>, id: &[u8]) -> Result<Arc<Client>, Failure> {
    let id = number::parse_i64(id).ok_or(failure::NOT_AN_INTEGER)?;
    let client = u64::try_from(id)
        .ok()
        .and_then(|id| context.server.clients.get(id));
    client.ok_or(Failure::of(
        "ERR The client ID you want redirect to does not exist",
    ))
}

fn begin(context: &mut Context<'_>, mut wish: Wish) -> Result<(), Failure> {
    check(context, &wish)?;
    let broadcasts = wish.modes & status::BROADCAST != 0;
    if broadcasts && wish.prefixes.is_empty() {
        wish.prefixes.push([].into());
    }
    let (server, token) = (context.server, context.token());
    // Messages of the earlier mode come first.
    context.receive();
    let session = &mut *context.session;
    context
        .listeners
        .admit(token, session.protocol, &session.client);
    if session.begin_tracking(server, wish) {
        observe_all(context);
    }
    context.session.listens = true;
    Ok(())
}

/// Lets all shards be observed from here on: once for each connection, while no other worker runs.
fn observe_all(context: &mut Context<'_>) {
    let was_alone = context.store.turn.is_alone();
    if !was_alone {
        context.store.begin_alone();
    }
    let (keyspace, now) = (&context.server.keyspace, context.store.now);
    keyspace.observe_everywhere(context.store.turn, reason::TRACKED, now);
    if !was_alone {
        context.store.end_alone();
    }
}

/// Refuses what doesn't go together, or not with how the connection tracks already.
fn check(context: &Context<'_>, wish: &Wish) -> Result<(), Failure> {
    let has = |bit| wish.modes & bit != 0;
    let client = &context.session.client;
    let broadcasts = has(status::BROADCAST);
    let refusal = match () {
        () if !broadcasts && !wish.prefixes.is_empty() => {
            "ERR PREFIX option requires BCAST mode to be enabled"
        }
        () if client.has_status(status::TRACKING)
            && client.has_status(status::BROADCAST) != broadcasts =>
        {
            "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it \
             with a different mode."
        }
        () if broadcasts && (has(status::OPT_IN) || has(status::OPT_OUT)) => {
            "ERR OPTIN and OPTOUT are not compatible with BCAST"
        }
        () if has(status::OPT_IN) && has(status::OPT_OUT) => {
            "ERR You can't specify both OPTIN mode and OPTOUT mode"
        }
        () if (has(status::OPT_IN) && client.has_status(status::OPT_OUT))
            || (has(status::OPT_OUT) && client.has_status(status::OPT_IN)) =>
        {
            "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it \
             with a different mode."
        }
        () => return check_prefixes(context, wish),
    };
    Err(Failure::of(refusal))
}

/// A key must not be told of twice.
fn check_prefixes(context: &Context<'_>, wish: &Wish) -> Result<(), Failure> {
    let Some((prefix, other, is_known)) = overlap(&context.session.prefixes, &wish.prefixes) else {
        return Ok(());
    };
    let kind = if is_known {
        "an existing prefix"
    } else {
        "another provided prefix"
    };
    Err(Failure::new(format!(
        "ERR Prefix '{}' overlaps with {kind} '{}'. Prefixes for a single client must not overlap.",
        String::from_utf8_lossy(prefix),
        String::from_utf8_lossy(other),
    )))
}

fn end(context: &mut Context<'_>) {
    context.session.end_tracking(context.server, true);
    let is_subscriber = context.session.client.has_status(status::PUBSUB);
    if context.session.listens && !is_subscriber {
        let (server, token) = (context.server, context.token());
        // Messages up to now belong to the time before.
        context.receive();
        context.listeners.forget(server, token, LEAVE_SLICE);
        context.session.listens = false;
    }
}

pub(super) fn caching(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let client = &context.session.client;
    if !client.has_status(status::TRACKING) {
        return Err(Failure::of(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled",
        ));
    }
    match () {
        () if args.is(2, "yes") && !client.has_status(status::OPT_IN) => {
            return Err(Failure::of(
                "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.",
            ));
        }
        () if args.is(2, "no") && !client.has_status(status::OPT_OUT) => {
            return Err(Failure::of(
                "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.",
            ));
        }
        () if !args.is(2, "yes") && !args.is(2, "no") => return Err(failure::SYNTAX),
        () => client.set_status(status::CACHING, true),
    }
    context.reply.ok();
    Ok(Next::Done)
}

/// The id of the connection that is told in place of this one; 0: this one is told itself, -1: it doesn't
/// track.
pub(super) fn redirection(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    let id = context.session.client.redirection();
    context.reply.integer(id);
    Ok(Next::Done)
}

pub(super) fn info(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    let (client, reply) = (&context.session.client, &mut context.reply);
    let has = |bit| client.has_status(bit);
    let caches = has(status::CACHING);
    let flags: Vec<&str> = [
        (!has(status::TRACKING), "off"),
        (has(status::TRACKING), "on"),
        (has(status::BROADCAST), "bcast"),
        (has(status::OPT_IN), "optin"),
        (has(status::OPT_IN) && caches, "caching-yes"),
        (has(status::OPT_OUT), "optout"),
        (has(status::OPT_OUT) && caches, "caching-no"),
        (has(status::NO_LOOP), "noloop"),
        (has(status::BROKEN_REDIRECT), "broken_redirect"),
    ]
    .into_iter()
    .filter_map(|(holds, name)| holds.then_some(name))
    .collect();
    reply.map(3);
    reply.bulk(b"flags");
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.named_integer("redirect", client.redirection());
    reply.bulk(b"prefixes");
    let prefixes = &context.session.prefixes;
    reply.array(prefixes.len());
    prefixes.iter().for_each(|prefix| reply.bulk(prefix));
    Ok(Next::Done)
}
