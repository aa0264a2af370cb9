//! SAVE, BGSAVE and LASTSAVE; BACKUP. Snapshots are in [`crate::persistence::snapshot`]; a backup is made of
//! links to the files of the log.

use resp::reply::Writer;

use super::{
    Arg, ArgKind, Args, Context, Failure, Group, Handled, Makes, Next, Spec, category, flag, help,
};
use crate::command::{deferred, failure};
use crate::persistence::backup_directory;
use crate::persistence::snapshot::{Busy, Cancelled, Kind, Outcome};
use crate::request::Pieces;

const IN_PROGRESS: Failure = Failure::of("ERR Background save already in progress");

/// Flags of the commands that save.
const SAVES: u32 = flag::ADMIN | flag::NOSCRIPT | flag::NO_ASYNC_LOADING;

pub(super) const SAVE: Spec = Spec {
    name: "save",
    makes: Makes::Little,
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
    makes: Makes::Little,
    arity: -1,
    flags: SAVES,
    group: Group::Server,
    summary: "Begins to write a snapshot of this moment",
    args: &[Arg::one_of(
        "operation",
        &[
            Arg::word("schedule", "SCHEDULE").since("3.2.2"),
            Arg::word("cancel", "CANCEL").since("8.1.0"),
        ],
    )
    .optional()],
    history: &[
        ("3.2.2", "Takes `SCHEDULE`."),
        ("8.1.0", "Takes `CANCEL`, as Valkey."),
    ],
    handler: background_save,
    ..Spec::BASE
};

pub(super) const LASTSAVE: Spec = Spec {
    name: "lastsave",
    makes: Makes::Little,
    arity: 1,
    flags: flag::LOADING | flag::STALE | flag::FAST,
    group: Group::Server,
    summary: "Returns when data was last saved to disk, in seconds; the start counts",
    categories: category::ADMIN | category::DANGEROUS,
    tips: &["nondeterministic_output"],
    handler: last_save,
    ..Spec::BASE
};

/// Ferrite's own.
pub(super) const BACKUP: Spec = Spec {
    name: "backup",
    makes: Makes::Little,
    arity: 2,
    flags: SAVES | flag::NO_MULTI,
    group: Group::Server,
    since: "0.1.0",
    summary: "Makes a backup of this moment: links to the files of the log, in a new directory of backup-dir that a server can start from",
    complexity: "O(N) where N is the number of files of the log and of large values",
    args: &[Arg::of("name", ArgKind::String)],
    handler: backup,
    ..Spec::BASE
};

/// The connection waits for the disk; other connections go on.
fn save(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
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
    deferred::do_apart(context, args, wait)
}

fn background_save(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    if args.len() == 2 && args.is(1, "cancel") {
        return cancel_save(context);
    }
    // SCHEDULE is for a time when something else is in the way, of which there is nothing.
    if args.len() > 2 || (args.len() == 2 && !args.is(1, "schedule")) {
        return Err(failure::SYNTAX);
    }
    if context.in_transaction {
        let scheduled = context.server.snapshots.schedule();
        scheduled.map_err(|Busy| IN_PROGRESS)?;
        context.reply.simple("Background saving scheduled");
        return Ok(Next::Done);
    }
    let turn = &mut *context.store.turn;
    let started = context
        .server
        .snapshots
        .start(context.server, turn, Kind::Background);
    match started {
        Ok(_) => {
            context.reply.simple("Background saving started");
            Ok(Next::Done)
        }
        Err(Busy) => Err(IN_PROGRESS),
    }
}

/// Ends the snapshot in progress, or drops one that is to begin: the file stays as it is.
fn cancel_save(context: &mut Context<'_>) -> Handled {
    let cancelled = match context.server.snapshots.cancel_background() {
        Cancelled::Running => "Background saving cancelled",
        Cancelled::Scheduled => "Scheduled background saving cancelled",
        Cancelled::None => {
            return Err(Failure::of(
                "ERR Background saving is currently not in progress or scheduled",
            ));
        }
    };
    context.reply.simple(cancelled);
    Ok(Next::Done)
}

/// The connection waits for the disk, as with SAVE.
fn backup(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    if args.is(1, "help") {
        print_help_of_backup(context);
        return Ok(Next::Done);
    }
    let server = context.server;
    let directory = backup_directory(&server.settings, args.get(1)).map_err(Failure::of)?;
    if let Some(journal) = context.store.journal {
        // Records that this worker has not handed over would never become durable.
        journal.flush();
    }
    let protocol = context.reply.protocol();
    deferred::do_apart(context, args, move || {
        let made = server.persistence.back_up(&directory, &server.settings);
        let made =
            made.map_err(|problem| Failure::new(format!("ERR the backup failed: {problem}")))?;
        let mut bytes = Vec::new();
        let mut reply = Writer::new(&mut bytes, protocol);
        let facts = [
            ("position", made.end.get()),
            ("segments", made.segments as u64),
            ("bytes", made.bytes),
            ("large-values", made.blobs as u64),
        ];
        reply.map(facts.len());
        for (name, number) in facts {
            reply.bulk(name.as_bytes());
            reply.integer(number as i64);
        }
        Ok(Pieces::beginning(bytes))
    })
}

/// `BACKUP HELP`. A backup of that name can be made as `./HELP`.
fn print_help_of_backup(context: &mut Context<'_>) {
    help(
        context,
        "BACKUP",
        &[
            "<directory>",
            "    Make a backup of this moment in a new directory, from which a server can start. Return the",
            "    position in the log, segments, bytes, and large values. The files are links: they take no",
            "    space while the log has them, too.",
        ],
    );
}

fn last_save(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    let saved_at_s = context.server.snapshots.history().saved_at_s;
    context.reply.integer(saved_at_s);
    Ok(Next::Done)
}
