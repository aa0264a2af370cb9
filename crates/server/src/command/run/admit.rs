//! Whether a request may run: the checks before it, in the order of Redis.

use std::sync::atomic::Ordering::Relaxed;

use super::Request;
use super::protection::protection;
use crate::command::{Command, Context, Control, flag};
use crate::config::Setting;
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

/// A request whose command exists, and its effects.
struct Asked<'a, 'c> {
    context: &'a Context<'c>,
    request: &'a Request,
    args: &'a Args<'a>,
    command: &'static Command,
    /// Effects on data: of EXEC those of the whole transaction.
    flags: u32,
    /// It, or some request of its transaction, may not run while data is loaded.
    needs_data: bool,
}

/// Returns the admission that ends the search, or `None` if the request passes this check.
type Check = fn(&Asked<'_, '_>) -> Option<Admission>;

/// In the order of Redis, but for `busy`: the checks after it look at data.
const CHECKS: [Check; 12] = [
    arity,
    protected,
    authentication,
    in_transaction,
    busy,
    cluster,
    room,
    keeps,
    log_record,
    gate,
    subscriber,
    wait,
];

/// Decides whether a request may run.
pub(super) fn admit(context: &Context<'_>, request: &Request, args: &Args<'_>) -> Admission {
    let Some(command) = find(request, args) else {
        return refuse_unknown(request, args);
    };
    let asked = Asked::new(context, request, args, command);
    let against = CHECKS.iter().find_map(|check| check(&asked));
    against.unwrap_or(match context.session.transaction {
        Some(_) if command.control.is_queued() => Admission::Queue(command),
        _ => Admission::Run(command),
    })
}

impl<'a, 'c> Asked<'a, 'c> {
    fn new(
        context: &'a Context<'c>,
        request: &'a Request,
        args: &'a Args<'a>,
        command: &'static Command,
    ) -> Asked<'a, 'c> {
        let mut flags = command.spec.summed_flags();
        let mut needs_data = !command.spec.has(flag::LOADING);
        if let Some(transaction) = &context.session.transaction {
            if command.control == Control::Exec {
                flags |= transaction.flags;
                needs_data |= transaction.needs_data;
            }
            if !command.control.ends() {
                // Every queued request takes memory.
                flags |= flag::DENYOOM;
            }
        }
        Asked {
            context,
            request,
            args,
            command,
            flags,
            needs_data,
        }
    }

    fn has(&self, flags: u32) -> bool {
        self.flags & flags != 0
    }

    fn refused(&self, failure: Failure) -> Option<Admission> {
        Some(Admission::Refuse(Some(self.command), failure))
    }

    fn waits(&self) -> Option<Admission> {
        Some(Admission::Wait(self.command))
    }
}

fn arity(asked: &Asked<'_, '_>) -> Option<Admission> {
    match asked.command.takes(asked.args.len()) {
        true => None,
        false => asked.refused(Failure::wrong_arity(&asked.command.full_name)),
    }
}

fn protected(asked: &Asked<'_, '_>) -> Option<Admission> {
    let (command, context) = (asked.command, asked.context);
    if !command.spec.has(flag::PROTECTED) {
        return None;
    }
    let failure = protection(command, context.server, context.session)?;
    asked.refused(failure)
}

fn authentication(asked: &Asked<'_, '_>) -> Option<Admission> {
    let (session, server) = (&asked.context.session, asked.context.server);
    let is_admitted =
        asked.command.spec.has(flag::NO_AUTH) || session.is_admitted(|| server.needs_password());
    match is_admitted {
        true => None,
        false => asked.refused(failure::NO_AUTH),
    }
}

fn in_transaction(asked: &Asked<'_, '_>) -> Option<Admission> {
    let is_in_one = asked.context.session.transaction.is_some();
    match is_in_one && asked.command.spec.has(flag::NO_MULTI) {
        true => asked.refused(failure::NO_MULTI),
        false => None,
    }
}

/// While a script keeps others from the data only requests run that need none; the others wait, and are
/// refused once it has lasted long.
fn busy(asked: &Asked<'_, '_>) -> Option<Admission> {
    let (server, command) = (asked.context.server, asked.command);
    if !asked.context.extras.is_outside {
        return None;
    }
    let threshold = server.settings.int(Setting::BusyReplyThreshold);
    let is_long = server.running.any() && server.running.ms() >= threshold;
    let is_allowed = command.spec.has(flag::ALLOW_BUSY);
    if is_long && !is_allowed {
        return asked.refused(failure::busy(server.running.is_function()));
    }
    let runs = match command.spec.name {
        "ping" | "echo" => true,
        // It does not end a script that may end by itself in time.
        "shutdown" => is_long,
        _ => is_allowed && command.spec.keys.is_empty(),
    };
    match runs {
        true => None,
        false => asked.waits(),
    }
}

fn cluster(asked: &Asked<'_, '_>) -> Option<Admission> {
    let (command, args) = (asked.command, asked.args);
    let cluster = asked.context.server.cluster.as_ref()?;
    if cluster.serves(command, args) {
        return None;
    }
    let failure = cluster.refusal(asked.context, command, args)?;
    Some(Admission::Elsewhere(command, failure))
}

fn room(asked: &Asked<'_, '_>) -> Option<Admission> {
    let (context, request) = (asked.context, asked.request);
    if !asked.has(flag::DENYOOM) || !context.server.memory.is_near_with(request.bytes) {
        return None;
    }
    match context.make_room(bytes_for(context, asked.command, request)) {
        Room::Enough => None,
        Room::Later => asked.waits(),
        Room::No => asked.refused(failure::OUT_OF_MEMORY),
    }
}

/// A writing request has to fit into one record of the log.
fn log_record(asked: &Asked<'_, '_>) -> Option<Admission> {
    let is_too_long = asked.request.bytes as u64 > JOURNAL_VALUE_BYTES && asked.has(flag::WRITE);
    match is_too_long && asked.context.server.persistence.is_open() {
        true => asked.refused(failure::TOO_LONG),
        false => None,
    }
}

fn subscriber(asked: &Asked<'_, '_>) -> Option<Admission> {
    let is_subscriber = asked.context.session.is_subscriber_only();
    match is_subscriber && !asked.command.spec.has(flag::OF_SUBSCRIBERS) {
        true => asked.refused(subscriber_only(asked.command)),
        false => None,
    }
}

/// A request waits while subscribers lag behind the messages they are to get, or during CLIENT PAUSE.
fn wait(asked: &Asked<'_, '_>) -> Option<Admission> {
    let (server, context) = (asked.context.server, asked.context);
    if server.crowd.any() && may_publish(server, asked.flags) {
        return asked.waits();
    }
    let (_, kind) = server.pause.until(context.store.now)?;
    let is_paused = kind == PauseKind::All || asked.has(flag::WRITE | flag::MAY_REPLICATE);
    // MONITOR is not paused, as in Redis.
    match is_paused && !context.session.monitor {
        true => asked.waits(),
        false => None,
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
fn keeps(asked: &Asked<'_, '_>) -> Option<Admission> {
    if !asked.has(flag::KEEPS) {
        return None;
    }
    let (server, client) = (asked.context.server, &asked.context.session.client);
    let need = asked.request.bytes + asked.args.len() * KEPT_ARGUMENT_BYTES;
    let kept = client.kept.load(Relaxed) + asked.context.session.transaction_bytes();
    if kept + need <= KEPT_FREELY_BYTES {
        return None;
    }
    if client.has_status(status::NO_EVICT)
        && let Some(limit) = server.memory.clients()
        && server.client_bytes() + need > limit
    {
        return asked.refused(failure::OUT_OF_MEMORY);
    }
    if !server.memory.is_near_with(need) {
        return None;
    }
    match asked.context.make_room(need) {
        Room::Enough => None,
        Room::Later => asked.waits(),
        Room::No => asked.refused(failure::OUT_OF_MEMORY),
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

/// Decides about a request while not every command may run.
fn gate(asked: &Asked<'_, '_>) -> Option<Admission> {
    let server = asked.context.server;
    let gate = &server.gate;
    if gate.is_open() {
        return None;
    }
    // As in Redis a PING finds out, too.
    let writes = asked.has(flag::WRITE) || asked.command.spec.name == "ping";
    if gate.has(Closed::Ending) {
        Some(Admission::End)
    } else if gate.has(Closed::SnapshotFailed) && writes {
        asked.refused(failure::SNAPSHOT_FAILED)
    } else if gate.has(Closed::LogRefuses) && writes && !may_remove(asked.context, asked.flags) {
        asked.refused(server.persistence.failure())
    } else if gate.has(Closed::Loading) && asked.needs_data {
        asked.refused(failure::LOADING)
    } else {
        None
    }
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
