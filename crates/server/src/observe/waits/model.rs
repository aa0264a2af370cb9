//! Model of the protocol of waits, explored in every order that the memory model allows (with few
//! preemptions): one key, one waiter, one or two writers, and the waiter's timeout.
//!
//! Shard, queue and claim are simplified versions of those in [`super`].

use std::sync::Arc;

use loom::sync::Mutex;
use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering::AcqRel, Ordering::Relaxed};
use loom::thread;

/// Shard with one key, whose values are counted, and the queue of that key.
struct Model {
    /// Number of values, and whether the shard is observed.
    shard: Mutex<(usize, bool)>,
    /// Whether the waiter is in the queue.
    queue: Mutex<bool>,
    /// Number of the wait; 0: none, or claimed.
    wait: AtomicU64,
    /// Whether the waiter got a value.
    is_served: AtomicBool,
    is_late: AtomicBool,
}

impl Model {
    fn new() -> Arc<Model> {
        Arc::new(Model {
            shard: Mutex::new((0, false)),
            queue: Mutex::new(false),
            wait: AtomicU64::new(0),
            is_served: AtomicBool::new(false),
            is_late: AtomicBool::new(false),
        })
    }

    fn claim(&self) -> bool {
        self.wait.compare_exchange(1, 0, AcqRel, Relaxed).is_ok()
    }

    /// [`crate::command::Context::park_at_keys`], after a read of its own.
    fn block(&self) {
        let mut shard = self.shard.lock().expect("no test has panicked");
        if shard.0 > 0 {
            shard.0 -= 1;
            self.is_served.store(true, Relaxed);
            return;
        }
        self.wait.store(1, Relaxed);
        shard.1 = true;
        *self.queue.lock().expect("no test has panicked") = true;
    }

    /// A command that writes the key, followed by [`crate::command::park::serve`].
    fn write(&self) {
        let is_awaited = {
            let mut shard = self.shard.lock().expect("no test has panicked");
            shard.0 += 1;
            shard.1 && *self.queue.lock().expect("no test has panicked")
        };
        if !is_awaited {
            return;
        }
        loop {
            // The first in the queue that still waits.
            let queue = self.queue.lock().expect("no test has panicked");
            if !*queue || self.wait.load(Relaxed) != 1 {
                break;
            }
            drop(queue);
            let mut shard = self.shard.lock().expect("no test has panicked");
            if shard.0 == 0 {
                break;
            }
            if self.claim() {
                shard.0 -= 1;
                self.is_served.store(true, Relaxed);
            }
        }
    }

    /// The timeout, or CLIENT UNBLOCK.
    fn end(&self) {
        if self.claim() {
            self.is_late.store(true, Relaxed);
            *self.queue.lock().expect("no test has panicked") = false;
        }
    }

    /// No value is lost or given twice, and no connection waits while there is a value.
    fn check(&self, written: usize) {
        let left = self.shard.lock().expect("no test has panicked").0;
        let (is_served, is_late) = (self.is_served.load(Relaxed), self.is_late.load(Relaxed));
        let is_waiting = self.wait.load(Relaxed) != 0;
        assert_eq!(left + usize::from(is_served), written);
        assert!(!is_waiting || left == 0, "a wake is lost");
        let ends = [is_served, is_late, is_waiting];
        assert_eq!(ends.into_iter().filter(|&end| end).count(), 1);
    }
}

fn explore(writers: usize, ends: usize) {
    let mut model = loom::model::Builder::new();
    // Bound of unforced preemptions. Known faults appear with fewer.
    model.preemption_bound = Some(2);
    model.check(move || {
        let model = Model::new();
        let start = |act: fn(&Model)| {
            let model = Arc::clone(&model);
            thread::spawn(move || act(&model))
        };
        let mut threads: Vec<_> = (0..writers).map(|_| start(Model::write)).collect();
        model.block();
        threads.extend((0..ends).map(|_| start(Model::end)));
        for thread in threads {
            thread.join().expect("it has not panicked");
        }
        model.check(writers);
    });
}

#[test]
fn a_value_that_comes_while_somebody_begins_to_wait_is_seen() {
    explore(1, 0);
    explore(2, 0);
}

#[test]
fn a_value_and_the_end_of_the_time_both_count_or_neither() {
    explore(1, 1);
    explore(2, 1);
}

#[test]
fn of_a_value_the_end_of_the_time_and_client_unblock_one_counts() {
    explore(1, 2);
}
