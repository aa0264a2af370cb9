//! The turn barrier under a model of the memory: loom runs every interleaving, and lets every load see every
//! store that the orderings allow. What is protected are cells that loom watches for races.

use loom::cell::UnsafeCell;
use loom::sync::Arc;

mod atomic {
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
}

#[path = "../src/turn/barrier.rs"]
mod barrier;

use atomic::{AtomicU64, Ordering};
use barrier::Barrier;

struct Model {
    barrier: Barrier,
    /// Where the table is that is in use: a number of `tables`.
    current: AtomicU64,
    tables: [UnsafeCell<u64>; 2],
}

// SAFETY: loom reports an access to a cell that is not ordered with another one; that is the test.
unsafe impl Sync for Model {}
// SAFETY: as above.
unsafe impl Send for Model {}

impl Model {
    fn new(workers: usize) -> Arc<Model> {
        Arc::new(Model {
            barrier: Barrier::new(workers),
            current: AtomicU64::new(0),
            tables: [UnsafeCell::new(1), UnsafeCell::new(2)],
        })
    }

    /// One turn of a worker that reads a table without a lock. Returns what it read, unless the door was
    /// closed: nobody waits here, for a model has no end of waiting.
    fn turn(&self, slot: usize) -> Option<u64> {
        if !self.barrier.try_enter(slot) {
            return None;
        }
        let at = self.current.load(Ordering::Acquire);
        // SAFETY: see `Sync`.
        let seen = self.tables[at as usize].with(|table| unsafe { *table });
        self.barrier.step(slot);
        Some(seen)
    }

    /// Changes the table while the door is closed, if nobody is inside.
    fn change_alone(&self, value: u64) {
        self.barrier.close();
        if (0..self.barrier.slots()).all(|slot| self.barrier.is_outside(slot)) {
            self.change_first(value);
        }
        self.barrier.open();
    }

    fn change_first(&self, value: u64) {
        // SAFETY: see `Sync`.
        self.tables[0].with_mut(|table| unsafe { *table = value });
    }
}

/// Every interleaving with up to three switches that nobody asked for; all of them would take minutes.
fn explore(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

#[test]
fn who_is_alone_is_alone() {
    explore(|| {
        let model = Model::new(2);
        let workers: Vec<_> = (0..2)
            .map(|slot| {
                let model = model.clone();
                loom::thread::spawn(move || {
                    assert!([None, Some(1), Some(3)].contains(&model.turn(slot)))
                })
            })
            .collect();
        model.change_alone(3);
        for worker in workers {
            worker.join().expect("the worker ends");
        }
    });
}

#[test]
fn a_second_turn_sees_what_was_done_alone() {
    explore(|| {
        let model = Model::new(1);
        let worker = loom::thread::spawn({
            let model = model.clone();
            move || {
                let (first, second) = (model.turn(0), model.turn(0));
                if let (Some(first), Some(second)) = (first, second) {
                    assert!(first <= second, "what was done is not undone");
                }
            }
        });
        model.change_alone(3);
        worker.join().expect("the worker ends");
    });
}

#[test]
fn who_steps_back_in_past_the_closed_door_is_alone() {
    explore(|| {
        let model = Model::new(2);
        let worker = loom::thread::spawn({
            let model = model.clone();
            move || assert!([None, Some(1), Some(3)].contains(&model.turn(1)))
        });
        // As a turn becomes alone: out, closed, in; and out behind the door that is open again.
        assert!(model.barrier.try_enter(0), "nobody else closes the door");
        model.barrier.step(0);
        model.barrier.close();
        let is_alone = model.barrier.is_outside(1);
        model.barrier.step(0);
        assert!(model.barrier.is_inside(0) && model.barrier.is_closed());
        if is_alone {
            model.change_first(3);
        }
        model.barrier.open();
        model.barrier.step(0);
        worker.join().expect("the worker ends");
    });
}

#[test]
fn what_was_replaced_is_freed_when_nobody_can_read_it() {
    explore(|| {
        let model = Model::new(2);
        let workers: Vec<_> = (0..2)
            .map(|slot| {
                let model = model.clone();
                loom::thread::spawn(move || {
                    let seen = model.turn(slot);
                    assert_ne!(seen, Some(0), "freed memory was read");
                })
            })
            .collect();
        model.current.store(1, Ordering::Release);
        let snapshot = model.barrier.snapshot();
        // What has not passed now is looked at again later.
        let has_passed = model.barrier.has_passed(&snapshot);
        if has_passed {
            model.change_first(0);
        }
        for worker in workers {
            worker.join().expect("the worker ends");
        }
        assert!(model.barrier.has_passed(&snapshot));
        if !has_passed {
            model.change_first(0);
        }
    });
}
