//! Which connections a command means: by type, as CLIENT LIST and CLIENT KILL name it, and by the conditions
//! of CLIENT KILL.

use std::sync::Arc;

use resp::number;

use super::handshake::DEFAULT_USER;
use crate::command::{Args, Context, Failure, Handled, Next, failure};
use crate::shared::clients::{Client, ClientKind};

/// The type of a name in any case.
pub(super) fn client_type(name: &[u8]) -> Result<ClientKind, Failure> {
    let types = [
        ("normal", ClientKind::Normal),
        ("slave", ClientKind::Replica),
        ("replica", ClientKind::Replica),
        ("pubsub", ClientKind::PubSub),
        ("master", ClientKind::Master),
    ];
    let found = types
        .into_iter()
        .find(|(word, _)| name.eq_ignore_ascii_case(word.as_bytes()));
    found
        .map(|(_, kind)| kind)
        .ok_or_else(|| Failure::about("ERR Unknown client type '", name, "'"))
}

/// Conditions of CLIENT KILL: all given ones must hold.
struct Conditions<'a> {
    id: Option<u64>,
    kind: Option<ClientKind>,
    peer: Option<&'a [u8]>,
    local: Option<&'a [u8]>,
    /// Spare the connection that asks.
    skip_me: bool,
}

impl<'a> Conditions<'a> {
    /// The old form: an address alone, which may be one's own.
    fn of_address(peer: &'a [u8]) -> Conditions<'a> {
        Conditions {
            id: None,
            kind: None,
            peer: Some(peer),
            local: None,
            skip_me: false,
        }
    }

    fn parse(args: &Args<'a>) -> Result<Conditions<'a>, Failure> {
        let mut conditions = Conditions {
            id: None,
            kind: None,
            peer: None,
            local: None,
            skip_me: true,
        };
        for at in (2..args.len()).step_by(2) {
            let value = args.optional(at + 1).ok_or(failure::SYNTAX)?;
            match () {
                () if args.is(at, "id") => conditions.id = Some(id(value)?),
                () if args.is(at, "type") => conditions.kind = Some(client_type(value)?),
                () if args.is(at, "addr") => conditions.peer = Some(value),
                () if args.is(at, "laddr") => conditions.local = Some(value),
                // All connections are the default user's.
                () if args.is(at, "user") => check_user(value)?,
                () if args.is(at, "skipme") && args.is(at + 1, "yes") => conditions.skip_me = true,
                () if args.is(at, "skipme") && args.is(at + 1, "no") => conditions.skip_me = false,
                () => return Err(failure::SYNTAX),
            }
        }
        Ok(conditions)
    }

    fn are_met_by(&self, client: &Client) -> bool {
        self.id.is_none_or(|id| client.id == id)
            && self.kind.is_none_or(|kind| client.kind() == kind)
            && self.peer.is_none_or(|peer| client.peer.as_bytes() == peer)
            && self
                .local
                .is_none_or(|local| client.local.as_bytes() == local)
    }
}

fn id(value: &[u8]) -> Result<u64, Failure> {
    let id = number::parse_i64(value).filter(|&id| id > 0);
    id.map(i64::unsigned_abs)
        .ok_or(Failure::of("ERR client-id should be greater than 0"))
}

fn check_user(name: &[u8]) -> Result<(), Failure> {
    if name == DEFAULT_USER.as_bytes() {
        return Ok(());
    }
    Err(Failure::about("ERR No such user '", name, "'"))
}

pub(super) fn kill(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let is_old_form = args.len() == 3;
    let conditions = if is_old_form {
        Conditions::of_address(args.get(2))
    } else {
        Conditions::parse(args)?
    };
    let killed = kill_matching(context, &conditions);
    match (is_old_form, killed) {
        (false, _) => context.reply.integer(killed),
        (true, 0) => return Err(Failure::of("ERR No such client")),
        (true, _) => context.reply.ok(),
    }
    Ok(Next::Done)
}

/// Ends the connections that meet the conditions; one's own when it has its reply. Returns how many.
fn kill_matching(context: &mut Context<'_>, conditions: &Conditions<'_>) -> i64 {
    let own = context.session.client.id;
    let clients = &context.server.clients;
    let all = match conditions.id {
        Some(id) => clients.get(id).into_iter().collect(),
        None => clients.all(),
    };
    let (mut others, mut me) = (0, 0);
    for client in all.iter().filter(|client| conditions.are_met_by(client)) {
        if client.id != own {
            others += i64::from(context.server.kill(Arc::clone(client)));
        } else if !conditions.skip_me {
            context.session.closing = true;
            me = 1;
        }
    }
    if others > 0 {
        // A worker in the middle of its turn may be running their requests: none does once this is answered.
        context.store.turn.exclusive(|_| ());
    }
    others + me
}
