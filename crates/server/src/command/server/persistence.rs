//! SAVE, BGSAVE and LASTSAVE. What a snapshot is and who writes it is in [`crate::snapshot`].

use super::{Arg, Args, Context, Failure, Group, Spec, flag};
use crate::command::failure;
use crate::slow::{self, Pieces};
use crate::snapshot::{Busy, Kind, Outcome};

const IN_PROGRESS: Failure = Failure::of("ERR Background save already in progress");

/// What the commands that save have in common.
const SAVES: u32 = flag::ADMIN | flag::NOSCRIPT | flag::NO_ASYNC_LOADING;

pub(super) const SAVE: Spec = Spec {
    name: "save",
    arity: 1,
    flags: SAVES | flag::NO_MULTI,
    group: Group::Server,
    summary: "Writes a snapshot and answers when it is on disk",
    complexity: "O(N) where N is the number of keys in all databases",
    handler: save,
    ..Spec::BASE
};

pub(super) const BGSAVE: Spec = Spec {
    name: "bgsave",
    arity: -1,
    flags: SAVES,
    group: Group::Server,
    summary: "Begins to write a snapshot of this moment",
    args: &[Arg::word("schedule", "SCHEDULE").optional().since("3.2.2")],
    history: &[("3.2.2", "Takes `SCHEDULE`.")],
    handler: background_save,
    ..Spec::BASE
};

pub(super) const LASTSAVE: Spec = Spec {
    name: "lastsave",
    arity: 1,
    flags: flag::LOADING | flag::STALE | flag::FAST,
    group: Group::Server,
    summary: "Returns when data was last saved to disk, in seconds; the start counts",
    categories: &["@admin", "@dangerous"],
    tips: &["nondeterministic_output"],
    handler: last_save,
    ..Spec::BASE
};

/// The connection waits for the disk; everybody else goes on.
fn save(context: &mut Context<'_>, args: &Args<'_>) -> Result<(), Failure> {
    let snapshots = &context.server.snapshots;
    let turn = &mut *context.store.turn;
    let ticket = snapshots
        .start(context.server, turn, Kind::Awaited)
        .map_err(|Busy| IN_PROGRESS)?;
    let wait = move || match snapshots.wait(&ticket) {
        Outcome::Saved => Ok(Pieces::beginning(b"+OK\r\n".into())),
        // As Redis says it; the log says more.
        Outcome::Failed(_) | Outcome::Cancelled => Err(Failure::of("ERR")),
    };
    slow::do_apart(context, args, wait)
}

fn background_save(context: &mut Context<'_>, args: &Args<'_>) -> Result<(), Failure> {
    // SCHEDULE is for a time when something else is in the way, of which there is nothing.
    if args.len() > 2 || (args.len() == 2 && !args.is(1, "schedule")) {
        return Err(failure::SYNTAX);
    }
    let turn = &mut *context.store.turn;
    let started = context
        .server
        .snapshots
        .start(context.server, turn, Kind::Background);
    match started {
        Ok(_) => {
            context.reply.simple("Background saving started");
            Ok(())
        }
        Err(Busy) => Err(IN_PROGRESS),
    }
}

fn last_save(context: &mut Context<'_>, _: &Args<'_>) -> Result<(), Failure> {
    let saved_at_s = context.server.snapshots.history().saved_at_s;
    context.reply.integer(saved_at_s);
    Ok(())
}
