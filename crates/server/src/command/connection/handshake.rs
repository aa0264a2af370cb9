//! Begin and end of a connection: AUTH, HELLO, SELECT, PING, ECHO, RESET, QUIT.

use std::hint::black_box;
use std::sync::atomic::Ordering::Relaxed;

use resp::number;
use resp::reply::Protocol;

use super::client::check_name;
use crate::command::deferred::{Around, Progress, Slice, Work};
use crate::command::park::Wait;
use crate::command::session::Session;
use crate::command::{Args, Context, Failure, Handled, Next, failure};
use crate::config::{REDIS_VERSION, Setting};
use crate::limits::{LEAVE_SLICE, SLICE_KEYS};
use crate::request::Pieces;
use crate::server::Server;
use crate::shared::logins::Turn;

/// The one user there is.
pub(super) const DEFAULT_USER: &str = "default";

const WRONG_PASSWORD: Failure =
    Failure::of("WRONGPASS invalid username-password pair or user is disabled.");
const TOO_MANY_ATTEMPTS: Failure = Failure::of(
    "ERR too many wrong passwords came from this address: this one was not looked at, try again later",
);
const NO_PASSWORD_SET: Failure = Failure::of(
    "ERR AUTH <password> called without any password configured for the default user. \
     Are you sure your configuration is correct?",
);
const HELLO_WITHOUT_AUTH: Failure = Failure::of(
    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> option \
     can be used to authenticate the client and select the RESP protocol version at the same time",
);

pub(super) fn auth(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let (user, password) = match args.len() {
        2 if !context.server.needs_password() => return Err(NO_PASSWORD_SET),
        2 => (DEFAULT_USER.as_bytes(), args.get(1)),
        3 => (args.get(1), args.get(2)),
        _ => return Err(failure::SYNTAX),
    };
    let next = log_in(context, user, password)?;
    if next == Next::Done {
        context.reply.ok();
    }
    Ok(next)
}

/// Authenticates the session. One that was authenticated stays so when this fails. It
/// may be that the connection waits for its turn first, and the command comes again then.
fn log_in(context: &mut Context<'_>, user: &[u8], password: &[u8]) -> Handled {
    let (server, origin) = (context.server, context.session.client.origin);
    if server.needs_password() && !context.session.authenticated {
        let turn = wait_for_turn(context)?;
        if turn != Next::Done {
            return Ok(turn);
        }
    }
    let is_right = user == DEFAULT_USER.as_bytes() && is_password(server, password);
    if !is_right {
        if server.logins.note_failure(origin, context.store.now) {
            let peer = &context.session.client.peer;
            log::warn!("many wrong passwords from {peer}: further attempts from its address wait");
        }
        return Err(WRONG_PASSWORD);
    }
    server.logins.note_success(origin);
    context.session.authenticated = true;
    Ok(Next::Done)
}

/// Lets the connection wait until its attempt to log in may be looked at, if that is not now.
fn wait_for_turn(context: &mut Context<'_>) -> Handled {
    let (server, now_ms) = (context.server, context.store.now);
    let turn = match context.session.login_at_ms.take() {
        Some(turn_ms) if turn_ms > now_ms => Turn::At(turn_ms),
        Some(_) => Turn::Now,
        None => server
            .logins
            .take_turn(context.session.client.origin, now_ms),
    };
    match turn {
        Turn::Now => Ok(Next::Done),
        Turn::At(turn_ms) if context.may_wait() => {
            context.session.login_at_ms = Some(turn_ms);
            let _: Next = context.park(Wait {
                until_ms: Some(turn_ms),
                durable: None,
                repeats: true,
                give_up: |_, _| {},
            });
            Ok(Next::Retry)
        }
        Turn::At(_) | Turn::Never => Err(TOO_MANY_ATTEMPTS),
    }
}

/// Whether this is the default user's password; any is where none is set.
fn is_password(server: &Server, given: &[u8]) -> bool {
    let password = server.settings.text(Setting::RequirePass);
    password.is_empty() || is_same_secret(given, password.as_bytes())
}

/// Compares in a time that depends on what is given alone, not on how much of it is right nor on the secret's
/// length.
fn is_same_secret(given: &[u8], secret: &[u8]) -> bool {
    let mut difference = given.len() ^ secret.len();
    for (at, byte) in given.iter().enumerate() {
        let expected = secret.get(at).copied().unwrap_or_default();
        difference |= usize::from(black_box(byte ^ expected));
    }
    black_box(difference) == 0
}

pub(super) fn echo(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    context.reply.bulk(args.get(1));
    Ok(Next::Done)
}

pub(super) fn hello(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let protocol = protocol(args)?;
    let mut at = 2;
    // As in Redis 7.0, an option has taken effect when one behind it turns out to be wrong.
    while at < args.len() {
        let option = HelloOption::at(args, at);
        match option {
            HelloOption::Auth => {
                let next = log_in(context, args.get(at + 1), args.get(at + 2))?;
                if next != Next::Done {
                    return Ok(next);
                }
            }
            HelloOption::SetName => context.session.set_name(check_name(args.get(at + 1))?),
            HelloOption::Wrong => {
                return Err(Failure::about(
                    "ERR Syntax error in HELLO option '",
                    args.get(at),
                    "'",
                ));
            }
        }
        at += option.size();
    }
    let server = context.server;
    if !context.session.is_admitted(|| server.needs_password()) {
        return Err(HELLO_WITHOUT_AUTH);
    }
    if protocol.is_some() {
        // Messages so far are written in the earlier protocol.
        context.receive();
    }
    let token = context.token();
    let session = &mut *context.session;
    if let Some(protocol) = protocol {
        session.set_protocol(protocol);
        context.reply.set_protocol(protocol);
        if context.listeners.knows(token) {
            context.listeners.admit(token, protocol, &session.client);
        }
    }
    let reply = &mut context.reply;
    reply.map(7);
    reply.bulk(b"server");
    // Clients look for the features of what they find here.
    reply.bulk(b"redis");
    reply.bulk(b"version");
    reply.bulk(REDIS_VERSION.as_bytes());
    reply.named_integer("proto", session.protocol_number().into());
    reply.named_integer("id", session.client.id as i64);
    reply.bulk(b"mode");
    reply.bulk(server.mode().as_bytes());
    reply.bulk(b"role");
    reply.bulk(b"master");
    reply.bulk(b"modules");
    reply.empty_array();
    Ok(Next::Done)
}

/// The version that HELLO asks for, if it does.
fn protocol(args: &Args<'_>) -> Result<Option<Protocol>, Failure> {
    let Some(version) = args.optional(1) else {
        return Ok(None);
    };
    match number::parse_i64(version) {
        Some(2) => Ok(Some(Protocol::Resp2)),
        Some(3) => Ok(Some(Protocol::Resp3)),
        Some(_) => Err(Failure::of("NOPROTO unsupported protocol version")),
        None => Err(Failure::of(
            "ERR Protocol version is not an integer or out of range",
        )),
    }
}

/// An option of HELLO.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HelloOption {
    /// With a user and a password behind it.
    Auth,
    /// With a name behind it.
    SetName,
    Wrong,
}

impl HelloOption {
    /// The option at `at`, which is there.
    fn at(args: &Args<'_>, at: usize) -> HelloOption {
        let behind = args.len() - at - 1;
        match () {
            () if args.is(at, "auth") && behind >= 2 => HelloOption::Auth,
            () if args.is(at, "setname") && behind >= 1 => HelloOption::SetName,
            () => HelloOption::Wrong,
        }
    }

    /// Arguments that it is, with what belongs to it.
    fn size(self) -> usize {
        match self {
            HelloOption::Auth => 3,
            HelloOption::SetName => 2,
            HelloOption::Wrong => 1,
        }
    }
}

/// Whether the argument at `at` of HELLO is a user or a password. After a wrong option the rest has no known
/// meaning.
pub(super) fn is_hello_secret(args: &Args<'_>, at: usize) -> bool {
    let mut option_at = 2;
    while option_at < at {
        let option = HelloOption::at(args, option_at);
        if at < option_at + option.size() || option == HelloOption::Wrong {
            return option != HelloOption::SetName;
        }
        option_at += option.size();
    }
    false
}

pub(super) fn ping(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    if args.len() > 2 {
        return Err(Failure::wrong_arity("ping"));
    }
    let reply = &mut context.reply;
    match args.optional(1) {
        // Looks like a message, as everything does that such a connection gets.
        message if context.session.is_subscriber_only() => {
            reply.array(2);
            reply.bulk(b"pong");
            reply.bulk(message.unwrap_or_default());
        }
        None => reply.simple("PONG"),
        Some(message) => reply.bulk(message),
    }
    Ok(Next::Done)
}

pub(super) fn quit(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    context.reply.ok();
    context.session.closing = true;
    Ok(Next::Done)
}

/// Name and version of the library stay: it is still the same library. NO-EVICT and NO-TOUCH end, as they do
/// since Redis 7.2.
pub(super) fn reset(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    context.discard();
    let (server, token) = (context.server, context.token());
    if context.listeners.count_all(token) > LEAVE_SLICE && context.may_defer() {
        return Ok(context.defer(args, Resetting));
    }
    while !context.listeners.forget(server, token, LEAVE_SLICE) {}
    finish_reset(server, context.session);
    context.reply.set_protocol(context.session.protocol);
    context.reply.simple("RESET");
    Ok(Next::Done)
}

/// Makes a connection that listens to nothing any more what it was.
fn finish_reset(server: &Server, session: &mut Session) {
    let token = session.client.token.load(Relaxed);
    if session.monitor {
        server.monitors.remove(session.client.worker, token);
    }
    session.end_tracking(server, true);
    session.client.set_subscriptions([0; 3]);
    session.reset(!server.needs_password());
}

/// RESET of a connection that listens to very many names.
struct Resetting;

impl Work for Resetting {
    fn go_on(&mut self, around: &mut Around<'_>, slice: &Slice) -> Progress {
        let token = around.session.client.token.load(Relaxed);
        while slice.goes_on() {
            if around.listeners.forget(around.server, token, SLICE_KEYS) {
                finish_reset(around.server, around.session);
                let mut pieces = Pieces::default();
                pieces.write(around.session.protocol, |reply| reply.simple("RESET"));
                return Progress::Done(Ok(pieces));
            }
        }
        Progress::More
    }
}

pub(super) fn select(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let index = args.integer_i32(1)?;
    if context.server.cluster.is_some() && index != 0 {
        return Err(Failure::of("ERR SELECT is not allowed in cluster mode"));
    }
    match usize::try_from(index) {
        Ok(db) if db < context.server.keyspace.databases() => context.session.select(db),
        _ => return Err(failure::DB_INDEX),
    }
    context.reply.ok();
    Ok(Next::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_the_same_or_not() {
        for (given, secret, same) in [
            ("", "", true),
            ("a", "a", true),
            ("open sesame", "open sesame", true),
            ("open sesamf", "open sesame", false),
            ("open sesam", "open sesame", false),
            ("open sesamee", "open sesame", false),
            ("", "a", false),
            ("a", "", false),
            ("a\0", "a", false),
            ("a", "a\0", false),
        ] {
            assert_eq!(
                is_same_secret(given.as_bytes(), secret.as_bytes()),
                same,
                "{given:?} {secret:?}"
            );
        }
    }
}
