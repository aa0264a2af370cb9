//! Gives an opened log to the server, and each worker its journal.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use ferrite_log::Log;

use super::compaction::Relocator;
use super::durable::Durable;
use super::journal::Journal;
use super::state::Persistence;

impl Persistence {
    /// Journal for a worker; `None` without a log or before it is loaded.
    pub(crate) fn journal(server: &'static Durable, worker: usize) -> Option<Journal> {
        let own = &server.persistence;
        if !own.is_open() {
            return None;
        }
        let handle = &server.workers[worker];
        let wake = Arc::new(move || handle.wake());
        let log = own.log.read();
        let appender = log.as_ref()?.appender(Some(wake));
        let appender = appender.expect("the log was opened for that many workers");
        Some(Journal::new(appender, own))
    }

    /// Lets workers write to a log from their next turns on. No worker is inside a turn.
    pub(super) fn install(server: &'static Durable, mut log: Log) {
        let own = &server.persistence;
        log.start_compaction(Arc::new(Relocator::new(server)));
        *own.lost.lock() = log.appender(None);
        *own.reading.reader.write() = Some(log.value_reader());
        *own.reading.blobs.write() = Some(log.blob_store());
        *own.log.write() = Some(log);
        server.keyspace.set_logged(true);
        own.current
            .store(1 + own.opened.fetch_add(1, Relaxed), Relaxed);
    }
}
