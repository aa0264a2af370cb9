//! CLIENT LIST and CLIENT INFO: a line of `name=value` fields for each connection, in the order of Redis 8,
//! and `capa` of Valkey behind them.
//!
//! The fields say what is true here, which is 0 where there is nothing of the kind: requests are read in
//! place (`argv-mem`), replies that a socket takes at once pass through no buffer of the connection (`rbs`,
//! `rbp`, `obl`), so `omem` is all that waits to be sent, in `oll` pieces.

use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;

use super::handshake::DEFAULT_USER;
use super::selection::{Conditions, Purpose};
use crate::command::{Args, Context, Handled, Next, table};
use crate::limits::CONNECTION_BYTES;
use crate::shared::clients::{Client, letters, status};

/// Bytes of a connection that has sent nothing and waits for nothing.
const IDLE_BYTES: usize = CONNECTION_BYTES + size_of::<Client>();

pub(super) fn info(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    let mut lines = Lines::new(context.store.now);
    lines.add(&context.session.client);
    context.reply.verbatim("txt", lines.text.as_bytes());
    Ok(Next::Done)
}

pub(super) fn list(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let clients = &context.server.clients;
    let databases = context.server.keyspace.databases();
    let conditions = Conditions::parse(args, Purpose::List, databases)?;
    let (now, own) = (context.store.now, context.session.client.id);
    let mut lines = Lines::new(now);
    match conditions.ids() {
        // In the order in which they were given, each as often.
        Some(ids) => {
            for client in ids.iter().filter_map(|&id| clients.get(id)) {
                if conditions.are_met_by(&client, now, own) {
                    lines.add(&client);
                    context.check_reply(lines.text.len())?;
                }
            }
        }
        None => {
            let all = clients.all();
            all.iter()
                .filter(|client| conditions.are_met_by(client, now, own))
                .for_each(|client| lines.add(client));
        }
    }
    context.reply.verbatim("txt", lines.text.as_bytes());
    Ok(Next::Done)
}

/// The text of a list.
struct Lines {
    text: String,
    now_ms: i64,
    /// The names of commands, by the ids of their counters.
    commands: Vec<&'static str>,
}

impl Lines {
    fn new(now_ms: i64) -> Lines {
        let mut commands = vec![""; table().counters()];
        table()
            .all()
            .for_each(|command| commands[usize::from(command.id)] = &command.full_name);
        Lines {
            text: String::new(),
            now_ms,
            commands,
        }
    }

    /// Adds the line of a connection, unless it has been killed: then it is as good as gone.
    fn add(&mut self, client: &Client) {
        if client.killed.load(Relaxed) {
            return;
        }
        let seconds_since = |then_ms: i64| (self.now_ms - then_ms).max(0) / 1000;
        let names = client.names.lock().clone();
        let command = self
            .commands
            .get(usize::from(client.last_command.load(Relaxed)))
            .unwrap_or(&"NULL");
        let (held, free) = (
            client.input_bytes.load(Relaxed),
            client.input_free.load(Relaxed),
        );
        let waiting = client.output_bytes.load(Relaxed);
        let transaction = client.queued_bytes.load(Relaxed);
        let written = writeln!(
            self.text,
            "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={} db={} sub={} psub={} ssub={} \
             multi={} watch={} qbuf={held} qbuf-free={free} argv-mem=0 multi-mem={transaction} \
             rbs=0 rbp=0 obl=0 oll={} omem={waiting} tot-mem={} events={} cmd={command} \
             user={DEFAULT_USER} redir={} resp={} lib-name={} lib-ver={} \
             io-thread={} tot-net-in={} tot-net-out={} tot-cmds={} capa={}",
            client.id,
            client.peer,
            client.local,
            client.fd,
            names.name,
            seconds_since(client.created_ms),
            seconds_since(client.last_active_ms.load(Relaxed)),
            letters(client),
            client.db.load(Relaxed),
            client.subscriptions[0].load(Relaxed),
            client.subscriptions[1].load(Relaxed),
            client.subscriptions[2].load(Relaxed),
            queued(client),
            client.watched_keys(),
            client.output_pieces.load(Relaxed),
            IDLE_BYTES + held + free + waiting + transaction + client.kept.load(Relaxed),
            events(client),
            client.redirection(),
            client.protocol.load(Relaxed),
            names.library,
            names.library_version,
            client.worker,
            client.received.load(Relaxed),
            client.sent.load(Relaxed),
            client.commands.load(Relaxed),
            client.capabilities(),
        );
        written.expect("a String takes everything");
    }
}

/// The field `multi`: requests in its transaction, -1 if there is none.
fn queued(client: &Client) -> i64 {
    if client.has_status(status::MULTI) {
        client.queued.load(Relaxed) as i64
    } else {
        -1
    }
}

/// Events that the connection's worker waits for: readable, writable.
fn events(client: &Client) -> &'static str {
    match (
        client.has_status(status::READS),
        client.has_status(status::WRITES),
    ) {
        (true, true) => "rw",
        (true, false) => "r",
        (false, true) => "w",
        (false, false) => "",
    }
}
