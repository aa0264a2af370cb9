//! Commands: what a request means.
//!
//! A handler gets a [`Context`] (the store, the reply, the session) and [`Args`]; it sees no socket, no file
//! and no protocol version, and never waits. One family is one file: its table on top, its handlers below in
//! the same order.

pub(crate) mod bitmap;
mod blocking;
pub(crate) mod cluster;
pub(crate) mod config;
pub(crate) mod connection;
mod cursor;
pub(crate) mod deferred;
pub(crate) mod geo;
pub(crate) mod hash;
mod items;
pub(crate) mod key;
pub(crate) mod list;
pub(crate) mod multi_read;
pub(crate) mod park;
pub(crate) mod prepare;
pub(crate) mod pubsub;
pub(crate) mod queue;
pub(crate) mod received;
pub(crate) mod room;
pub(crate) mod run;
pub(crate) mod server;
pub(crate) mod session;
pub(crate) mod set;
pub(crate) mod sorted_set;
pub(crate) mod spec;
pub(crate) mod string;
pub(crate) mod table;
pub(crate) mod transaction;

pub(crate) use queue::Spares;
pub(crate) use session::Session;
pub(crate) use spec::{Arg, ArgKind, Group, Handler, KeySpec, Spec, flag};
pub(crate) use table::{Command, Control, Reach, Routing, Table, table};

use park::Parked;

// What nearly every handler names.
pub(crate) use crate::request::{Args, Failure, failure};

use crate::pubsub::Listeners;
use crate::request::Reply;
use crate::server::Server;
use crate::store::Store;
use crate::values::blobs::Received;
use crate::values::cold::{FetchState, Wanted};

/// What a handler may reach.
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
    /// What the connection knows of values that its next request needs.
    pub(crate) fetch: &'c mut FetchState,
    /// What few requests need.
    pub(crate) extras: &'c mut Extras,
    /// It runs in a transaction, where nothing may wait.
    pub(crate) in_transaction: bool,
    /// What CLIENT REPLY says was applied to each part of the reply already.
    pub(crate) replies_in_parts: bool,
}

/// What becomes of a request whose command has not failed.
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

/// What a handler returns.
pub(crate) type Handled = Result<Next, Failure>;

/// What few requests need. Empty between the lanes of a worker, which keeps it: so a [`Context`] has nothing
/// that is dropped.
#[derive(Default)]
pub(crate) struct Extras {
    /// What the connection waits for from here on.
    pub(crate) parked: Option<Box<Parked>>,
    /// Values that the request needs and that are to be read back before it runs.
    pub(crate) wanted: Vec<Wanted>,
    /// Keys whose values the command uses that are in files of their own as well: database, hash, key.
    pub(crate) borrowed: Vec<(usize, u64, Box<[u8]>)>,
    /// The file of the large value that came with the request, or why there is none.
    pub(crate) received: Option<Box<Received>>,
    /// What was pinned for the command that runs.
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
