//! What a client says when it comes and goes: AUTH, HELLO, SELECT, PING, ECHO, RESET, QUIT.

use std::hint::black_box;
use std::sync::atomic::Ordering::Relaxed;

use resp::number;
use resp::reply::Protocol;

use super::client::check_name;
use crate::command::{Args, Context, Failure, failure};
use crate::config::Setting;
use crate::server::{REDIS_VERSION, Server};

/// The one user there is.
pub(super) const DEFAULT_USER: &str = "default";

const WRONG_PASSWORD: Failure = Failure::of("WRONGPASS invalid username-password pair or user is disabled.");
const NO_PASSWORD_SET: Failure = Failure::of(
    "ERR AUTH <password> called without any password configured for the default user. \
     Are you sure your configuration is correct?",
);
const HELLO_WITHOUT_AUTH: Failure = Failure::of(
    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> option \
     can be used to authenticate the client and select the RESP protocol version at the same time",
);
const WRONG_PROTOCOL: Failure = Failure::of("NOPROTO unsupported protocol version");

pub(super) fn auth(context: &mut Context<'_>, args: &Args<'_>) -> Result<(), Failure> {
    let (user, password) = match args.len() {
        2 if !context.server.needs_password() => return Err(NO_PASSWORD_SET),
        2 => (DEFAULT_USER.as_bytes(), args.get(1)),
        3 => (args.get(1), args.get(2)),
        _ => return Err(failure::SYNTAX),
    };
    log_in(context, user, password)?;
    context.reply.ok();
    Ok(())
}

/// Authenticates the session. One that was authenticated stays so when this fails.
fn log_in(context: &mut Context<'_>, user: &[u8], password: &[u8]) -> Result<(), Failure> {
    let is_right = user == DEFAULT_USER.as_bytes() && is_password(context.server, password);
    if !is_right {
        return Err(WRONG_PASSWORD);
    }
    context.session.authenticated = true;
    Ok(())
}

/// Whether this is the default user's password; any is where none is set.
fn is_password(server: &Server, given: &[u8]) -> bool {
    let password = server.settings.text(Setting::RequirePass);
    password.is_empty() || is_same_secret(given, password.as_bytes())
}

/// Compares in a time that depends on what is given alone, not on how much of it is right nor on the secret's length.
fn is_same_secret(given: &[u8], secret: &[u8]) -> bool {
    let mut difference = given.len() ^ secret.len();
    for (at, byte) in given.iter().enumerate() {
        let expected = secret.get(at).copied().unwrap_or_default();
        difference |= usize::from(black_box(byte ^ expected));
    }
    black_box(difference) == 0
}

pub(super) fn echo(context: &mut Context<'_>, args: &Args<'_>) -> Result<(), Failure> {
    context.reply.bulk(args.get(1));
    Ok(())
}

/// What HELLO was told.
#[derive(Default)]
struct Greeting<'a> {
    protocol: Option<Protocol>,
    login: Option<(&'a [u8], &'a [u8])>,
    name: Option<&'a str>,
}

impl<'a> Greeting<'a> {
    fn parse(args: &Args<'a>) -> Result<Greeting<'a>, Failure> {
        let mut greeting = Greeting::default();
        if args.len() == 1 {
            return Ok(greeting);
        }
        let version = number::parse_i64(args.get(1));
        greeting.protocol = match version {
            None => return Err(Failure::of("ERR Protocol version is not an integer or out of range")),
            Some(2) => Some(Protocol::Resp2),
            Some(3) => Some(Protocol::Resp3),
            Some(_) => return Err(WRONG_PROTOCOL),
        };
        let mut at = 2;
        while at < args.len() {
            let behind = args.len() - at - 1;
            if args.is(at, "auth") && behind >= 2 {
                greeting.login = Some((args.get(at + 1), args.get(at + 2)));
                at += 3;
            } else if args.is(at, "setname") && behind >= 1 {
                greeting.name = Some(check_name(args.get(at + 1))?);
                at += 2;
            } else {
                let option = failure::quoted(args.get(at));
                return Err(Failure::new(format!("ERR Syntax error in HELLO option '{option}'")));
            }
        }
        Ok(greeting)
    }
}

pub(super) fn hello(context: &mut Context<'_>, args: &Args<'_>) -> Result<(), Failure> {
    let greeting = Greeting::parse(args)?;
    if let Some((user, password)) = greeting.login {
        log_in(context, user, password)?;
    }
    let (server, session) = (context.server, &mut *context.session);
    if !session.is_admitted(server) {
        return Err(HELLO_WITHOUT_AUTH);
    }
    if let Some(name) = greeting.name {
        session.client.names.lock().name = name.to_owned();
    }
    if let Some(protocol) = greeting.protocol {
        session.set_protocol(protocol);
        context.reply.set_protocol(protocol);
    }
    let reply = &mut context.reply;
    reply.map(7);
    reply.bulk(b"server");
    // Clients look for the features of what they find here.
    reply.bulk(b"redis");
    reply.bulk(b"version");
    reply.bulk(REDIS_VERSION.as_bytes());
    reply.bulk(b"proto");
    reply.integer(session.protocol_number().into());
    reply.bulk(b"id");
    reply.integer(session.client.id as i64);
    reply.bulk(b"mode");
    reply.bulk(b"standalone");
    reply.bulk(b"role");
    reply.bulk(b"master");
    reply.bulk(b"modules");
    reply.empty_array();
    Ok(())
}

/// Whether the argument at `at` of HELLO is not for the eyes of others: user and password behind AUTH. Read as
/// [`Greeting::parse`] does, so that an AUTH that is somebody's name hides nothing.
pub(super) fn is_hello_secret(args: &Args<'_>, at: usize) -> bool {
    let mut option = 2;
    while option < at {
        let size = match () {
            () if args.is(option, "auth") => 3,
            () if args.is(option, "setname") => 2,
            () => 1,
        };
        if at < option + size {
            return size == 3;
        }
        option += size;
    }
    false
}

pub(super) fn ping(context: &mut Context<'_>, args: &Args<'_>) -> Result<(), Failure> {
    match args.len() {
        1 => context.reply.simple("PONG"),
        2 => context.reply.bulk(args.get(1)),
        _ => return Err(Failure::wrong_arity("ping")),
    }
    Ok(())
}

pub(super) fn quit(context: &mut Context<'_>, _: &Args<'_>) -> Result<(), Failure> {
    context.reply.ok();
    context.session.closing = true;
    Ok(())
}

/// What the library said about itself stays: it is still the same library. NO-EVICT and NO-TOUCH end, as they do since
/// Redis 7.2.
pub(super) fn reset(context: &mut Context<'_>, _: &Args<'_>) -> Result<(), Failure> {
    let (server, session) = (context.server, &mut *context.session);
    if session.monitor {
        server.monitors.remove(context.worker, session.client.token.load(Relaxed));
    }
    session.reset(!server.needs_password());
    context.reply.set_protocol(session.protocol);
    context.reply.simple("RESET");
    Ok(())
}

pub(super) fn select(context: &mut Context<'_>, args: &Args<'_>) -> Result<(), Failure> {
    let index = args.integer_i32(1)?;
    match usize::try_from(index) {
        Ok(db) if db < context.server.keyspace.databases() => context.session.select(db),
        _ => return Err(failure::DB_INDEX),
    }
    context.reply.ok();
    Ok(())
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
            assert_eq!(is_same_secret(given.as_bytes(), secret.as_bytes()), same, "{given:?} {secret:?}");
        }
    }
}
