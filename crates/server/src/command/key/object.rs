//! How a value is kept: OBJECT.
//!
//! Encodings are those Redis would have chosen. References are told as they are here: no two keys share a
//! value, where Redis shares the integers up to 9999. How often a key is used is known under the LFU
//! policies, when it was used under all others.

use crate::command::{self, Args, Context, Failure, Handled, Next};
use crate::request::Reply;
use crate::store::Entry;

const NO_FREQUENCY: Failure = Failure::of(
    "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching \
     between policies at runtime LRU and LFU data will take some time to adjust.",
);

const NO_IDLE_TIME: Failure = Failure::of(
    "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching between policies \
     at runtime LRU and LFU data will take some time to adjust.",
);

pub(super) fn help(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    command::help(
        context,
        "OBJECT",
        &[
            "ENCODING <key>",
            "    Tell in which form Redis would hold the value of <key>.",
            "FREQ <key>",
            "    Tell how often <key> is accessed, on a logarithmic scale. Needs an LFU",
            "    maxmemory policy.",
            "IDLETIME <key>",
            "    Tell how many seconds ago <key> was last accessed.",
            "REFCOUNT <key>",
            "    Tell how many references there are to the value of <key>.",
        ],
    );
    Ok(Next::Done)
}

/// Answers what `told` writes about a key, or null if there is no such key.
fn tell(
    context: &mut Context<'_>,
    args: &Args<'_>,
    told: impl FnOnce(Entry<'_, '_>, &mut Reply<'_>) -> Handled,
) -> Handled {
    let key = args.key(2);
    let Context { store, reply, .. } = context;
    match store.lock(key).peek_quietly(key) {
        Some(entry) => told(entry, reply),
        None => {
            reply.null();
            Ok(Next::Done)
        }
    }
}

pub(super) fn encoding(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    tell(context, args, |entry, reply| {
        reply.bulk(entry.encoding().as_bytes());
        Ok(Next::Done)
    })
}

pub(super) fn idletime(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let is_counted = context.server.settings.max_memory_policy().counts_uses();
    tell(context, args, |entry, reply| {
        if is_counted {
            return Err(NO_IDLE_TIME);
        }
        reply.integer(i64::from(entry.idle_seconds()));
        Ok(Next::Done)
    })
}

pub(super) fn freq(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let is_counted = context.server.settings.max_memory_policy().counts_uses();
    tell(context, args, |entry, reply| {
        if !is_counted {
            return Err(NO_FREQUENCY);
        }
        reply.integer(i64::from(entry.frequency()));
        Ok(Next::Done)
    })
}

pub(super) fn refcount(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    tell(context, args, |_, reply| {
        reply.integer(1);
        Ok(Next::Done)
    })
}
