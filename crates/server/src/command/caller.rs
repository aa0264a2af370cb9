//! The state that commands need beside their session: the turn, the journal, the reply buffer. Each worker
//! has one `Caller` for all its connections; the takeover of a file has one for the file.

use keyspace::Turn;

use super::{Command, Context, Extras, Session, Spares, park, table};
use crate::metrics::WorkerStats;
use crate::observe::waits::ready;
use crate::persistence::journal::Journal;
use crate::pubsub::Listeners;
use crate::request::{Output, Reply};
use crate::server::Server;
use crate::store::Store;
use crate::values::cold::{FetchState, Served};

/// See the module.
pub(crate) struct Caller {
    server: &'static Server,
    /// The number of the worker.
    worker: usize,
    pub(crate) turn: Turn<'static>,
    stats: &'static WorkerStats,
    /// Stands in a new context until a command runs.
    any: &'static Command,
    /// The way into the log; none without a log, and until it is loaded.
    pub(crate) journal: Option<Journal>,
    pub(crate) output: Output,
    /// The connections that may be told something they did not ask for.
    pub(crate) listeners: Listeners,
    /// Transactions that ended, for those that begin.
    pub(crate) spares: Spares,
    /// State that few requests need.
    pub(crate) extras: Extras,
    /// Values that the running command gets though their entries are cold.
    pub(crate) served: Served,
    /// The time of this turn (Unix, ms).
    pub(crate) now: i64,
}

impl Caller {
    /// The caller of a worker. A thread that is no worker passes statistics of its own.
    pub(crate) fn new(
        server: &'static Server,
        worker: usize,
        stats: &'static WorkerStats,
    ) -> Caller {
        Caller {
            server,
            worker,
            turn: server.keyspace.turns().register(),
            stats,
            any: table().any(),
            journal: None,
            output: Output::default(),
            listeners: Listeners::new(worker),
            spares: Spares::default(),
            extras: Extras::default(),
            served: Served::default(),
            now: sys::clock::realtime_ms(),
        }
    }

    /// Serves connections that wait for keys which have changed outside of commands. No shard is locked.
    #[inline]
    pub(crate) fn serve_waits(&mut self) {
        if ready::any() {
            let store = Store::new(
                self.server,
                &mut self.turn,
                self.stats,
                self.journal.as_ref(),
                &mut self.served,
                self.now,
            );
            park::serve(&store, self.server);
        }
    }

    /// The context of commands of a session.
    #[inline(always)]
    pub(crate) fn context<'c>(
        &'c mut self,
        session: &'c mut Session,
        fetch: &'c mut FetchState,
    ) -> Context<'c> {
        let store = Store::new(
            self.server,
            &mut self.turn,
            self.stats,
            self.journal.as_ref(),
            &mut self.served,
            self.now,
        );
        Context {
            server: self.server,
            store: Store {
                db: session.db,
                touch: !session.no_touch && self.server.memory.counts_reads(),
                ..store
            },
            reply: Reply::new(&mut self.output, session.protocol),
            session,
            listeners: &mut self.listeners,
            command: self.any,
            worker: self.worker,
            spares: &mut self.spares,
            fetch,
            extras: &mut self.extras,
            in_transaction: false,
            replies_in_parts: false,
        }
    }
}
