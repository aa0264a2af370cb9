//! REPLCONF and SYNC, as far as they are for tools that ask for the libraries of a server.
//!
//! `redis-cli --functions-rdb` says with REPLCONF that it wants libraries alone, and SYNC sends them as an
//! RDB file. There are no replicas yet.

use rdb::{Options, Writer};

use super::{Args, Context, Failure, Group, Handled, Makes, Next, Spec, flag::*};
use crate::config::{REDIS_VERSION, Setting};
use crate::request::failure;

const NO_REPLICAS: Failure = Failure::of(
    "ERR SYNC sends libraries alone here, after REPLCONF rdb-filter-only functions: there are no replicas \
     yet. `ferrite-cli export` and BGSAVE make a file of all data",
);

const NEITHER: Failure = Failure::of("ERR value is out of range, value must between 0 and 1");

/// Common part of the rows.
const ROW: Spec = Spec {
    group: Group::Server,
    makes: Makes::Little,
    ..Spec::BASE
};

pub(super) const COMMANDS: &[Spec] = &[
    Spec {
        name: "replconf",
        arity: -1,
        flags: ADMIN | NOSCRIPT | LOADING | STALE | ALLOW_BUSY | SYSTEM | NO_DATA,
        since: "3.0.0",
        summary: "Says which part of the data SYNC sends",
        handler: replconf,
        ..ROW
    },
    Spec {
        name: "sync",
        arity: 1,
        flags: ADMIN | NOSCRIPT | NO_ASYNC_LOADING | NO_MULTI | NO_DATA,
        since: "1.0.0",
        summary: "Sends the libraries as an RDB file, and ends the connection",
        complexity: "O(N), N being the bytes of the libraries",
        makes: Makes::Reply,
        handler: sync,
        ..ROW
    },
];

/// REPLCONF option value ...
fn replconf(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    if args.len().is_multiple_of(2) {
        return Err(failure::SYNTAX);
    }
    for at in (1..args.len()).step_by(2) {
        match () {
            () if args.is(at, "listening-port") => {
                args.integer(at + 1)?;
            }
            () if args.is(at, "ip-address") || args.is(at, "capa") => {}
            () if args.is(at, "rdb-only") => {
                if !(0..=1).contains(&args.integer(at + 1)?) {
                    return Err(NEITHER);
                }
            }
            () if args.is(at, "rdb-filter-only") => {
                let words = aof::split_words(args.get(at + 1))
                    .ok_or(Failure::of("ERR Missing rdb-filter-only values"))?;
                let is_known = |word: &&Vec<u8>| word.eq_ignore_ascii_case(b"functions");
                if let Some(other) = words.iter().find(|word| !is_known(word)) {
                    let before = "ERR Unsupported rdb-filter-only option: ";
                    return Err(Failure::about(before, other, ""));
                }
                context.session.wants_libraries = !words.is_empty();
            }
            () => {
                let before = "ERR Unrecognized REPLCONF option: ";
                return Err(Failure::about(before, args.get(at), ""));
            }
        }
    }
    context.reply.ok();
    Ok(Next::Done)
}

fn sync(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    if !context.session.wants_libraries {
        return Err(NO_REPLICAS);
    }
    let libraries = context.server.persistence.libraries.all();
    let bytes = libraries.iter().map(|library| library.text.len()).sum();
    context.check_reply(bytes)?;
    let options = Options {
        compression: context.server.settings.flag(Setting::RdbCompression),
        ..Options::default()
    };
    let write = || {
        let mut writer = Writer::new(Vec::new(), options)?;
        writer.fact("redis-ver", REDIS_VERSION)?;
        for library in &libraries {
            writer.library(&library.text)?;
        }
        writer.finish()
    };
    let file = write().expect("a vector takes everything");
    context.reply.bulk_header(file.len());
    context.reply.encoded(&file);
    context.session.closing = true;
    Ok(Next::Done)
}
