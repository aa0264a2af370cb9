//! CLIENT LIST and CLIENT INFO: a line of `name=value` fields for each connection, in the order of Redis 7.4.
//!
//! The fields say what is true here, which is 0 where there is nothing of the kind: requests are read in
//! place (`argv-mem`), replies that a socket takes at once pass through no buffer of the connection (`rbs`,
//! `rbp`, `obl`), so `omem` is all that waits to be sent, in `oll` pieces.

use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;

use resp::number;

use super::handshake::DEFAULT_USER;
use super::selection::client_type;
use crate::command::{Args, Context, Failure, Handled, Next, failure, table};
use crate::limits::CONNECTION_BYTES;
use crate::shared::clients::{Client, status};

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
    let mut lines = Lines::new(context.store.now);
    match args.len() {
        2 => clients.all().iter().for_each(|client| lines.add(client)),
        4 if args.is(2, "type") => {
            let wanted = client_type(args.get(3))?;
            let all = clients.all();
            all.iter()
                .filter(|client| client.kind() == wanted)
                .for_each(|client| lines.add(client));
        }
        4.. if args.is(2, "id") => {
            for id in args.from(3) {
                let id = number::parse_i64(id).ok_or(Failure::of("ERR Invalid client ID"))?;
                if let Some(client) = u64::try_from(id).ok().and_then(|id| clients.get(id)) {
                    lines.add(&client);
                    context.check_reply(lines.text.len())?;
                }
            }
        }
        _ => return Err(failure::SYNTAX),
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
            "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={} db={} sub={} psub={} ssub={} multi={} watch={} \
             qbuf={held} qbuf-free={free} argv-mem=0 multi-mem={transaction} rbs=0 rbp=0 obl=0 oll={} omem={waiting} tot-mem={} \
             events={} cmd={command} user={DEFAULT_USER} redir={} resp={} lib-name={} lib-ver={}",
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
        );
        written.expect("a String takes everything");
    }
}

/// The field `flags`: a letter for each thing that is special about a connection, `N` if nothing is.
fn letters(client: &Client) -> String {
    let special = [
        (client.has_status(status::MONITOR), 'O'),
        (client.has_status(status::PUBSUB), 'P'),
        (client.has_status(status::MULTI), 'x'),
        (client.has_status(status::BLOCKED), 'b'),
        (client.has_status(status::TRACKING), 't'),
        (client.has_status(status::BROKEN_REDIRECT), 'R'),
        (client.has_status(status::BROADCAST), 'B'),
        (client.has_status(status::DIRTY), 'd'),
        (client.has_status(status::CLOSING), 'c'),
        (client.is_unix, 'U'),
        (client.has_status(status::NO_EVICT), 'e'),
        (client.has_status(status::NO_TOUCH), 'T'),
    ];
    let letters: String = special
        .into_iter()
        .filter(|&(holds, _)| holds)
        .map(|(_, letter)| letter)
        .collect();
    if letters.is_empty() {
        "N".into()
    } else {
        letters
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
