//! Whether a request may run: the checks before it, in the order of Redis.

use std::sync::atomic::Ordering::Relaxed;

use super::Request;
use crate::command::server::protection;
use crate::command::{Command, Context, Control, flag};
use crate::limits::{
    ERROR_ECHO_BYTES, JOURNAL_VALUE_BYTES, KEPT_ARGUMENT_BYTES, KEPT_FREELY_BYTES,
};
use crate::observe::notify;
use crate::persistence::journal::Journal;
use crate::request::{Args, Failure, failure};
use crate::server::Server;
use crate::shared::PauseKind;
use crate::shared::clients::status;
use crate::shared::gate::Closed;
use crate::shared::memory::Room;

/// Whether a request may run.
pub(super) enum Admission {
    Run(&'static Command),
    /// With the other requests of its transaction.
    Queue(&'static Command),
    Refuse(Option<&'static Command>, Failure),
    /// Another node of the cluster has its keys, or no node.
    Elsewhere(&'static Command, Failure),
    /// Later: CLIENT PAUSE holds it back, or workers that have not caught up with what is published, or there
    /// is no room for it yet.
    Wait(&'static Command),
    /// Never, nor anything else of this connection, which gets no answer either.
    HangUp,
    /// Never: the server ends, and the connection with it.
    End,
}

/// The command of a request, or its subcommand, if it exists.
#[inline(always)]
fn find(request: &Request, args: &Args<'_>) -> Option<&'static Command> {
    let command = request.command?;
    if command.subcommands.is_empty() || args.len() == 1 {
        return Some(command);
    }
    command.subcommand(args.get(1))
}

/// Refuses a request for a command that does not exist.
#[cold]
fn refuse_unknown(request: &Request, args: &Args<'_>) -> Admission {
    match request.command {
        Some(command) => Admission::Refuse(None, unknown_subcommand(command, args)),
        None if args.is(0, "post") || args.is(0, "host:") => Admission::HangUp,
        None => Admission::Refuse(None, unknown_command(args)),
    }
}

/// Decides whether a request may run, in the order in which Redis checks.
#[inline]
pub(super) fn admit(context: &Context<'_>, request: &Request, args: &Args<'_>) -> Admission {
    let (server, session, now) = (context.server, &*context.session, context.store.now);
    let Some(command) = find(request, args) else {
        return refuse_unknown(request, args);
    };
    let refuse = |failure| Admission::Refuse(Some(command), failure);
    if !command.takes(args.len()) {
        return refuse(Failure::wrong_arity(&command.full_name));
    }
    if command.spec.has(flag::PROTECTED)
        && let Some(failure) = protection(command, server, session)
    {
        return refuse(failure);
    }
    if !command.spec.has(flag::NO_AUTH) && !session.is_admitted(|| server.needs_password()) {
        return refuse(failure::NO_AUTH);
    }
    let mut flags = command.spec.summed_flags();
    let mut needs_data = !command.spec.has(flag::LOADING);
    let is_queued = match &session.transaction {
        None => false,
        Some(_) if command.spec.has(flag::NO_MULTI) => return refuse(failure::NO_MULTI),
        Some(transaction) => {
            if command.control == Control::Exec {
                flags |= transaction.flags;
                needs_data |= transaction.needs_data;
            }
            if !command.control.ends() {
                // Every queued request takes memory.
                flags |= flag::DENYOOM;
            }
            command.control.is_queued()
        }
    };
    if let Some(cluster) = &server.cluster
        && !cluster.serves(command, args)
        && let Some(failure) = cluster.refusal(context, command, args)
    {
        return Admission::Elsewhere(command, failure);
    }
    if flags & flag::DENYOOM != 0 && server.memory.is_near_with(request.bytes) {
        match context.make_room(bytes_for(context, command, request)) {
            Room::Enough => {}
            Room::Later => return Admission::Wait(command),
            Room::No => return refuse(failure::OUT_OF_MEMORY),
        }
    }
    if flags & flag::KEEPS != 0
        && let Some(admission) = keeps(context, command, request, args)
    {
        return admission;
    }
    // It has to fit into one record of the log.
    let is_too_long = request.bytes as u64 > JOURNAL_VALUE_BYTES && flags & flag::WRITE != 0;
    if is_too_long && server.persistence.is_open() {
        return refuse(failure::TOO_LONG);
    }
    if !server.gate.is_open()
        && let Some(admission) = at_gate(context, command, flags, needs_data)
    {
        return admission;
    }
    if session.is_subscriber_only() && !command.spec.has(flag::OF_SUBSCRIBERS) {
        return refuse(subscriber_only(command));
    }
    if server.crowd.any() && may_publish(server, flags) {
        return Admission::Wait(command);
    }
    // MONITOR is not paused, as in Redis.
    if let Some((_, kind)) = server.pause.until(now)
        && !session.monitor
        && (kind == PauseKind::All || flags & (flag::WRITE | flag::MAY_REPLICATE) != 0)
    {
        return Admission::Wait(command);
    }
    match is_queued {
        true => Admission::Queue(command),
        false => Admission::Run(command),
    }
}

/// Bytes that a request may take, with what its transaction has queued.
#[cold]
fn bytes_for(context: &Context<'_>, command: &Command, request: &Request) -> usize {
    let queued = context.session.transaction_bytes();
    // The values of its requests, and their records in a buffer that grows.
    let records = match command.control == Control::Exec && context.server.persistence.is_open() {
        true => 2 * queued,
        false => 0,
    };
    request.bytes + queued + records
}

/// Decides about a command that makes the server keep something for the connection. A client with little
/// memory is always admitted: every client gives itself a name. A client that is never evicted has to stay
/// within the limit of clients itself.
#[cold]
fn keeps(
    context: &Context<'_>,
    command: &'static Command,
    request: &Request,
    args: &Args<'_>,
) -> Option<Admission> {
    let (server, client) = (context.server, &context.session.client);
    let need = request.bytes + args.len() * KEPT_ARGUMENT_BYTES;
    let kept = client.kept.load(Relaxed) + context.session.transaction_bytes();
    if kept + need <= KEPT_FREELY_BYTES {
        return None;
    }
    let refused = || Admission::Refuse(Some(command), failure::OUT_OF_MEMORY);
    if client.has_status(status::NO_EVICT)
        && let Some(limit) = server.memory.clients()
        && server.client_bytes() + need > limit
    {
        return Some(refused());
    }
    if !server.memory.is_near_with(need) {
        return None;
    }
    match context.make_room(need) {
        Room::Enough => None,
        Room::Later => Some(Admission::Wait(command)),
        Room::No => Some(refused()),
    }
}

/// Whether a command of these flags may publish messages: by itself, or as keyspace events.
#[cold]
fn may_publish(server: &Server, flags: u32) -> bool {
    // Every command is shown to MONITOR.
    if server.monitors.any() {
        return true;
    }
    let changes = flag::WRITE | flag::READONLY;
    let is_heard = || notify::is_on(server) || server.observers.tracking.any();
    flags & flag::PUBLISHES != 0 || (flags & changes != 0 && is_heard())
}

/// Decides what happens to a command while not every command may run. `flags` are those of a whole
/// transaction, and `needs_data` says whether some of it may not run while data is loaded.
#[cold]
fn at_gate(
    context: &Context<'_>,
    command: &'static Command,
    flags: u32,
    needs_data: bool,
) -> Option<Admission> {
    let server = context.server;
    let gate = &server.gate;
    // As in Redis a PING finds out, too.
    let writes = flags & flag::WRITE != 0 || command.spec.name == "ping";
    let refused = if gate.has(Closed::Ending) {
        return Some(Admission::End);
    } else if gate.has(Closed::SnapshotFailed) && writes {
        failure::SNAPSHOT_FAILED
    } else if gate.has(Closed::LogRefuses) && writes && !may_remove(context, flags) {
        server.persistence.failure()
    } else if gate.has(Closed::Loading) && needs_data {
        failure::LOADING
    } else {
        return None;
    };
    Some(Admission::Refuse(Some(command), refused))
}

/// Whether a command, or a transaction, does nothing to data but remove keys, and a full disk has room for
/// that.
fn may_remove(context: &Context<'_>, flags: u32) -> bool {
    let removes = flags & (flag::WRITE | flag::ADDS) == flag::WRITE;
    removes && context.store.journal.is_some_and(Journal::may_remove)
}

/// The error for an unknown command: its name and the beginning of its arguments.
#[cold]
fn unknown_command(args: &Args<'_>) -> Failure {
    let mut echoed = Vec::new();
    for arg in args.from(1) {
        if echoed.len() >= ERROR_ECHO_BYTES {
            break;
        }
        let room = ERROR_ECHO_BYTES - echoed.len();
        echoed.extend([b"'", failure::quoted(failure::start(arg, room)), b"' "].concat());
    }
    let name = failure::start(args.get(0), ERROR_ECHO_BYTES);
    let mut failure = Failure::about(
        "ERR unknown command '",
        name,
        "', with args beginning with: ",
    );
    failure.0.to_mut().extend(echoed);
    failure
}

/// The text about a command that a connection may not send while it gets messages over RESP2.
#[cold]
fn subscriber_only(command: &Command) -> Failure {
    Failure::new(format!(
        "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context",
        command.full_name
    ))
}

#[cold]
fn unknown_subcommand(command: &Command, args: &Args<'_>) -> Failure {
    let name = failure::start(args.get(1), ERROR_ECHO_BYTES);
    let behind = format!("'. Try {} HELP.", command.full_name.to_uppercase());
    Failure::about("ERR unknown subcommand '", name, &behind)
}
