//! Commands: the meaning of requests.
//!
//! A handler gets a [`Context`] (the store, the reply, the session) and [`Args`]. It sees no socket and no
//! file, and never waits. A family is a folder: its table is in `mod.rs`, its handlers are in files
//! beside it. A small family is one file with both.

pub(crate) mod bitmap;
mod blocking;
mod caller;
pub(crate) mod category;
pub(crate) mod cluster;
pub(crate) mod combining;
pub(crate) mod config;
pub(crate) mod connection;
mod cursor;
pub(crate) mod deferred;
mod engine;
mod errand;
pub(crate) mod families;
pub(crate) mod geo;
pub(crate) mod hash;
pub(crate) mod hyperloglog;
mod items;
pub(crate) mod key;
pub(crate) mod key_finder;
pub(crate) mod list;
pub(crate) mod multi_read;
pub(crate) mod park;
pub(crate) mod prepare;
pub(crate) mod pubsub;
pub(crate) mod queue;
pub(crate) mod received;
mod replication;
pub(crate) mod room;
mod route;
mod row;
pub(crate) mod run;
pub(crate) mod script;
pub(crate) mod server;
pub(crate) mod session;
pub(crate) mod set;
pub(crate) mod sort;
pub(crate) mod sorted_set;
pub(crate) mod spec;
pub(crate) mod stream;
pub(crate) mod string;
pub(crate) mod table;
pub(crate) mod track;
pub(crate) mod transaction;

pub(crate) use caller::Caller;
pub(crate) use engine::Engine;
pub(crate) use queue::Spares;
pub(crate) use row::{Command, Control, Reach, Routing};
pub(crate) use session::Session;
pub(crate) use spec::{Arg, ArgKind, Group, Handler, KeySpec, Makes, Spec, access, flag};
pub(crate) use table::{Table, table};

use park::Parked;

// Types of nearly every handler.
pub(crate) use crate::request::{Args, Failure, failure};

use std::cell::Cell;

use keyspace::collection::stream::EntryScratch;

use crate::pubsub::Listeners;
use crate::request::{Output, Reply};
use crate::server::Server;
use crate::store::Store;
use crate::values::blobs::Received;
use crate::values::cold::{FetchState, Wanted};

/// Context of a handler.
pub(crate) struct Context<'c> {
    pub(crate) server: &'static Server,
    pub(crate) store: Store<'c>,
    pub(crate) session: &'c mut Session,
    pub(crate) reply: Reply<'c>,
    /// The connections of this worker that may be told something.
    pub(crate) listeners: &'c mut Listeners,
    /// The command that runs.
    pub(crate) command: &'static Command,
    /// The number of the worker that runs it.
    pub(crate) worker: usize,
    /// Transactions that ended, for those that begin.
    pub(crate) spares: &'c mut Spares,
    /// State of reading values for the connection's next request.
    pub(crate) fetch: &'c mut FetchState,
    /// State that few requests need.
    pub(crate) extras: &'c mut Extras,
    /// It runs in a transaction, where nothing may wait.
    pub(crate) in_transaction: bool,
    /// CLIENT REPLY was applied to each part of the reply already.
    pub(crate) replies_in_parts: bool,
}

/// Outcome of a request whose command has not failed.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It is answered.
    Done,
    /// Its connection waits until the wait that was begun is over ([`Context::park`]).
    Wait,
    /// The rest of the command is done later ([`Context::defer`]), and the answer with it.
    Defer,
    /// It has not run: it comes again when the values are there that it needs ([`Extras::wanted`]).
    Fetch,
    /// It has not run: it comes again soon, or when the wait is over that was begun.
    Retry,
}

/// Result of a handler.
pub(crate) type Handled = Result<Next, Failure>;

/// State that few requests need. The worker keeps it, empty between lanes, so a [`Context`] drops nothing.
#[derive(Default)]
pub(crate) struct Extras {
    /// Wait that the command has begun.
    pub(crate) parked: Option<Box<Parked>>,
    /// Values that the request needs and that are to be read back before it runs.
    pub(crate) wanted: Vec<Wanted>,
    /// Keys whose values the command uses that are in files of their own as well: database, hash, key.
    pub(crate) borrowed: Vec<(usize, u64, Box<[u8]>)>,
    /// The file of the large value that came with the request, or why there is none.
    pub(crate) received: Option<Box<Received>>,
    /// Bytes of values for which the running transaction has found room.
    pub(crate) foreseen: Cell<usize>,
    /// Messages for the connection whose transaction runs.
    pub(crate) held: Output,
    /// Lua, once a script has come.
    pub(crate) engine: Option<Box<Engine>>,
    /// The worker is outside of its turns: no command may use data.
    pub(crate) is_outside: bool,
    /// The running command is one of a script.
    pub(crate) in_script: bool,
    /// Memory for an entry of a stream.
    pub(crate) entry: EntryScratch,
    /// Values pinned for the running command.
    pub(crate) pins: Vec<(usize, u64)>,
}

/// The handler of a command that only has subcommands: reached when none was named, which the arity prevents.
pub(crate) fn container(_: &mut Context<'_>, _: &Args<'_>) -> Handled {
    Err(failure::SYNTAX)
}

/// Answers HELP of a command with subcommands: its lines, framed as Redis frames them.
pub(crate) fn help(context: &mut Context<'_>, name: &str, lines: &[&str]) {
    context.reply.array(lines.len() + 3);
    context.reply.simple(&format!(
        "{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"
    ));
    lines.iter().for_each(|line| context.reply.simple(line));
    context.reply.simple("HELP");
    context.reply.simple("    Prints this help.");
}
