//! What the threads of a log do until it is closed. Compaction's is in `compact`.

use std::sync::atomic::Ordering;

use crate::engine::Engine;
use crate::keeper::keep;
use crate::limits::{FULL_RETRY, LONGEST_SLEEP, NAP, NAPS, SYNC_INTERVAL};
use crate::options::SyncPolicy;
use crate::sync::{has_sealed, make_durable};

/// What the log thread does until it may end.
pub(crate) fn run_writer(engine: &Engine) {
    let _ = engine.writer_thread.set(std::thread::current());
    let mut naps = 0;
    while !engine.writer_may_end.load(Ordering::SeqCst) {
        let turn = engine.turn();
        naps = if turn.written > 0 { 0 } else { naps + 1 };
        if turn.is_stuck {
            engine.sleep(FULL_RETRY, false);
        } else if engine.policy() == SyncPolicy::Always && turn.written > 0 {
            // While this turn synced, others may have committed.
        } else if naps > NAPS {
            engine.sleep(LONGEST_SLEEP, true);
        } else {
            engine.sleep(NAP, false);
        }
    }
}

/// What the sync thread does until the log is closed.
pub(crate) fn run_sync(engine: &Engine) {
    while !engine.is_closing.load(Ordering::SeqCst) {
        let interval = match engine.policy() {
            SyncPolicy::EverySecond => SYNC_INTERVAL,
            SyncPolicy::Always | SyncPolicy::Never => LONGEST_SLEEP,
        };
        let policy = engine.policy();
        engine.chores.wait_for(interval, || {
            engine.is_closing.load(Ordering::SeqCst)
                || engine.policy() != policy
                || engine.sync_wanted.load(Ordering::SeqCst)
                || has_sealed(engine)
                || engine.blobs.are_many_waiting()
        });
        if engine.sync_wanted.swap(false, Ordering::SeqCst) {
            let _ = engine.force(engine.tail());
        }
        let is_due = match engine.policy() {
            SyncPolicy::EverySecond => true,
            // The log thread does it; here only what a change of policy left behind.
            SyncPolicy::Always => true,
            SyncPolicy::Never => {
                has_sealed(engine) || engine.blobs.has_doomed() || engine.blobs.are_many_waiting()
            }
        };
        if is_due {
            // A failure is latched where it happens.
            let _ = make_durable(engine);
        }
        if engine.has_failed() {
            engine
                .chores
                .wait(|| engine.is_closing.load(Ordering::SeqCst));
        }
    }
}

/// What the keeper does until the log is closed.
pub(crate) fn run_keeper(engine: &Engine) {
    let (mut version, mut spare_wanted) = (0, false);
    while !engine.is_closing.load(Ordering::SeqCst) {
        keep(engine);
        engine.chores.wait_for(LONGEST_SLEEP, || {
            engine.is_closing.load(Ordering::SeqCst)
                || engine.segments.version() != version
                || engine.spare_wanted.load(Ordering::Relaxed) != spare_wanted
        });
        version = engine.segments.version();
        spare_wanted = engine.spare_wanted.load(Ordering::Relaxed);
    }
}
