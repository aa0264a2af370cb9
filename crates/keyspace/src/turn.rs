//! Turns: when a worker is inside the keyspace, and how one task gets it alone.
//!
//! A worker *enters* before it looks at shared memory and *leaves* before it waits. Two things rest
//! on that, and cost the worker one store and one fence a turn:
//!
//! 1. **Reclamation.** A table that was replaced is freed only when every worker that was inside
//!    when it was retired has left ([`Turns::snapshot`], [`Turns::has_passed`]). So a worker may read
//!    a table without its shard's lock to decide what to prefetch.
//! 2. **Exclusive tasks.** [`Turn::exclusive`] keeps new turns from starting and waits for running ones to
//!    end: what FLUSHALL and SWAPDB need to be atomic for everybody. A turn can also be *alone* for a while
//!    ([`Turn::begin_alone`]): inside, when nobody else is.
//!
//! Invariants:
//! 1. A slot's counter is odd while its worker is inside, and only that worker changes it ([`barrier`]).
//! 2. While the barrier is closed no counter becomes odd, except for the turn that closed it.
//! 3. The barrier is closed and opened only under `gate`.
//! 4. A turn that is alone or holds shards ([`crate::hold`]) does not end.
//!
//! What this is not: a lock for shards. Inside a turn the shard's own lock still decides.

mod atomic;
mod barrier;
mod holding;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use barrier::Barrier;
use holding::Holding;

/// Pause between two attempts to be alone after all others.
const LAST_PAUSE: Duration = Duration::from_micros(100);

/// The turn counters of all workers.
pub struct Turns {
    /// Closed while an exclusive task runs or waits to run.
    barrier: Barrier,
    /// Slots that nobody has.
    free: Mutex<Vec<usize>>,
    gate: Mutex<()>,
    opened: Condvar,
    /// Workers in the middle of a turn that was interrupted: by a wait to be alone, or for something else.
    interrupted: AtomicUsize,
    /// Those of them that wait to be alone after all others.
    last: AtomicUsize,
}

/// One worker's right to enter; not shared between threads. Dropping it ends its turn and makes room for
/// another.
pub struct Turn<'a> {
    turns: &'a Turns,
    slot: usize,
    /// While this turn is alone.
    alone: Option<Exclusive<'a>>,
    /// The shards it holds, if it does; see [`crate::hold`].
    pub(crate) held: Holding,
    pub(crate) is_holding: bool,
}

/// Proof that no other worker is inside; ends when dropped.
pub struct Exclusive<'a> {
    turns: &'a Turns,
}

impl Turns {
    /// Room for `workers` workers (threads that call [`Turns::register`]).
    pub fn new(workers: usize) -> Turns {
        Turns {
            barrier: Barrier::new(workers),
            free: Mutex::new((0..workers).rev().collect()),
            gate: Mutex::new(()),
            opened: Condvar::new(),
            interrupted: AtomicUsize::new(0),
            last: AtomicUsize::new(0),
        }
    }

    /// Takes a slot. Panics when more threads register than there is room for.
    pub fn register(&self) -> Turn<'_> {
        let slot = self.free.lock().pop();
        let slot = slot.expect("there are no more threads than turn slots");
        Turn {
            turns: self,
            slot,
            alone: None,
            held: Holding::default(),
            is_holding: false,
        }
    }

    /// What every counter says now, for [`Turns::has_passed`].
    pub(crate) fn snapshot(&self) -> Box<[u64]> {
        self.barrier.snapshot()
    }

    /// Whether every worker that was inside at `snapshot` has left since.
    pub(crate) fn has_passed(&self, snapshot: &[u64]) -> bool {
        self.barrier.has_passed(snapshot)
    }
}

impl<'a> Turn<'a> {
    /// Begins a turn; waits while an exclusive task runs.
    #[inline]
    pub fn enter(&mut self) {
        assert!(!self.is_inside(), "turns do not nest");
        while !self.turns.barrier.try_enter(self.slot) {
            self.turns.wait_until_open();
        }
    }

    /// Begins a turn unless an exclusive task runs. Returns whether it has begun.
    #[inline]
    pub fn try_enter(&mut self) -> bool {
        assert!(!self.is_inside(), "turns do not nest");
        self.turns.barrier.try_enter(self.slot)
    }

    /// Begins a turn unless an exclusive task runs for as long as this. Returns whether it has begun.
    #[cold]
    pub fn enter_within(&mut self, patience: Duration) -> bool {
        assert!(!self.is_inside(), "turns do not nest");
        while !self.turns.barrier.try_enter(self.slot) {
            if !self.turns.opens_within(patience) {
                return false;
            }
        }
        true
    }

    /// Ends a turn. No reference taken inside it may be used afterwards.
    #[inline]
    pub fn leave(&mut self) {
        self.assert_free();
        assert!(self.alone.is_none(), "a turn that is alone does not end");
        self.step_out();
    }

    /// Makes the counter even.
    #[inline]
    fn step_out(&mut self) {
        self.turns.barrier.step(self.slot);
    }

    /// Makes the counter odd again though the gate is closed: by this very turn.
    fn step_in(&mut self) {
        self.turns.barrier.step(self.slot);
    }

    /// Makes sure that the turn holds no shards.
    #[inline]
    pub(crate) fn assert_free(&self) {
        assert!(
            !self.is_holding,
            "a turn that holds shards has nothing but them"
        );
    }

    /// Whether this is a turn of those workers.
    #[inline]
    pub(crate) fn is_of(&self, turns: &Turns) -> bool {
        std::ptr::eq(self.turns, turns)
    }

    /// Whether this worker is inside.
    #[inline]
    pub fn is_inside(&self) -> bool {
        self.turns.barrier.is_inside(self.slot)
    }

    /// Runs `task` while no other worker is inside. Called inside a turn and without any lock held:
    /// the turn ends before the wait (so two such callers cannot wait for each other) and a new one
    /// has begun when this returns.
    pub fn exclusive<R>(&mut self, task: impl FnOnce(&Exclusive<'a>) -> R) -> R {
        assert!(self.is_inside(), "an exclusive task begins inside a turn");
        if let Some(alone) = self.alone.take() {
            // Nobody else is inside already. This turn steps out so that it is as for any other task.
            self.assert_free();
            self.step_out();
            let result = task(&alone);
            self.step_in();
            self.alone = Some(alone);
            return result;
        }
        let turns = self.turns;
        self.pause(|| {
            let alone = turns.exclusive();
            task(&alone)
        })
    }

    /// Waits until no other worker is inside, and keeps it so until [`Turn::end_alone`]. Called inside a turn
    /// and without any lock held: that turn ends before the wait, and another has begun when this returns.
    pub fn begin_alone(&mut self) {
        assert!(self.is_inside(), "being alone begins inside a turn");
        let _interrupted = Interrupted::new(self.turns);
        self.leave();
        let alone = self.turns.exclusive();
        self.step_in();
        self.alone = Some(alone);
    }

    /// As [`Turn::begin_alone`], after all others that are interrupted now: for a task that lasts.
    pub fn begin_alone_last(&mut self) {
        assert!(self.is_inside(), "being alone begins inside a turn");
        let turns = self.turns;
        let _interrupted = Interrupted::new(turns);
        turns.last.fetch_add(1, Ordering::SeqCst);
        self.leave();
        let alone = loop {
            let alone = turns.exclusive();
            if turns.interrupted.load(Ordering::SeqCst) == turns.last.load(Ordering::SeqCst) {
                break alone;
            }
            drop(alone);
            std::thread::sleep(LAST_PAUSE);
        };
        turns.last.fetch_sub(1, Ordering::SeqCst);
        self.step_in();
        self.alone = Some(alone);
    }

    /// Lets the others in again, and goes on as any turn.
    pub fn end_alone(&mut self) {
        let alone = self.alone.take();
        assert!(alone.is_some(), "the turn was alone");
    }

    /// Whether no other worker is inside, nor will be before [`Turn::end_alone`].
    pub fn is_alone(&self) -> bool {
        self.alone.is_some()
    }
}

impl Turn<'_> {
    /// Runs a task that waits for something, outside the turn: it ends before and another has begun when this
    /// returns. Called inside a turn and without any lock held.
    pub fn pause<R>(&mut self, task: impl FnOnce() -> R) -> R {
        assert!(self.is_inside(), "a pause is made inside a turn");
        let _interrupted = Interrupted::new(self.turns);
        self.leave();
        let result = task();
        self.enter();
        result
    }
}

impl Turns {
    /// Waits until no worker is inside and keeps it so until the result is dropped. For a thread that
    /// is not inside a turn itself; workers call [`Turn::exclusive`].
    pub fn exclusive(&self) -> Exclusive<'_> {
        let mut gate = self.gate.lock();
        while self.barrier.is_closed() {
            self.opened.wait(&mut gate);
        }
        self.barrier.close();
        drop(gate);
        for slot in 0..self.barrier.slots() {
            let mut times = 0;
            while !self.barrier.is_outside(slot) {
                times += 1;
                if times < 1000 {
                    std::hint::spin_loop();
                } else {
                    std::thread::yield_now();
                }
            }
        }
        Exclusive { turns: self }
    }

    /// As [`Turns::exclusive`], if no worker is in the middle of a turn that was interrupted either: such a
    /// one goes on with what it found when its turn began. `None` if one is.
    pub fn exclusive_between_turns(&self) -> Option<Exclusive<'_>> {
        let alone = self.exclusive();
        // Whoever is interrupted says so inside its turn, which is over by now, and takes it back inside the
        // next one.
        (self.interrupted.load(Ordering::SeqCst) == 0).then_some(alone)
    }

    #[cold]
    fn wait_until_open(&self) {
        let mut gate = self.gate.lock();
        while self.barrier.is_closed() {
            self.opened.wait(&mut gate);
        }
    }

    /// Waits until the barrier opens, at most so long. Returns whether it has.
    fn opens_within(&self, patience: Duration) -> bool {
        let mut gate = self.gate.lock();
        if self.barrier.is_closed() {
            return !self.opened.wait_for(&mut gate, patience).timed_out();
        }
        true
    }
}

/// One turn that is interrupted, as long as this lives.
struct Interrupted<'a>(&'a AtomicUsize);

impl<'a> Interrupted<'a> {
    fn new(turns: &'a Turns) -> Interrupted<'a> {
        turns.interrupted.fetch_add(1, Ordering::SeqCst);
        Interrupted(&turns.interrupted)
    }
}

impl Drop for Interrupted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.is_inside() {
            // What it still holds stays locked: nobody is told of half a transaction.
            self.step_out();
        }
        self.turns.free.lock().push(self.slot);
    }
}

impl Drop for Exclusive<'_> {
    fn drop(&mut self) {
        let gate = self.turns.gate.lock();
        self.turns.barrier.open();
        drop(gate);
        self.turns.opened.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_that_is_interrupted_is_waited_for() {
        let turns = Turns::new(2);
        let mut worker = turns.register();
        worker.enter();
        worker.pause(|| assert!(turns.exclusive_between_turns().is_none()));
        worker.exclusive(|_| ());
        worker.begin_alone();
        worker.end_alone();
        worker.leave();
        assert!(turns.exclusive_between_turns().is_some());
    }

    #[test]
    fn alone_last_comes_after_those_that_are_interrupted() {
        let turns = Turns::new(2);
        let order = Mutex::new(Vec::new());
        let mut first = turns.register();
        first.enter();
        std::thread::scope(|scope| {
            first.pause(|| {
                scope.spawn(|| {
                    let mut last = turns.register();
                    last.enter();
                    last.begin_alone_last();
                    order.lock().push("last");
                    last.end_alone();
                    last.leave();
                });
                while turns.last.load(Ordering::SeqCst) == 0 {
                    std::thread::yield_now();
                }
                order.lock().push("first");
            });
            first.leave();
        });
        assert_eq!(*order.lock(), ["first", "last"]);
    }

    #[test]
    fn a_snapshot_passes_when_those_inside_have_left() {
        let turns = Turns::new(2);
        let (mut a, mut b) = (turns.register(), turns.register());
        a.enter();
        let snapshot = turns.snapshot();
        assert!(!turns.has_passed(&snapshot));
        b.enter();
        a.leave();
        assert!(turns.has_passed(&snapshot));
        a.enter();
        assert!(turns.has_passed(&snapshot), "a later turn doesn't count");
        a.leave();
        b.leave();
    }

    #[test]
    fn a_turn_that_is_dropped_has_left_and_makes_room() {
        let turns = Turns::new(1);
        for _ in 0..3 {
            let mut turn = turns.register();
            turn.enter();
        }
        drop(turns.exclusive());
    }

    #[test]
    fn exclusive_tasks_see_nobody_inside() {
        let turns = Turns::new(3);
        let inside = AtomicUsize::new(0);
        let tasks = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for worker in 0..3 {
                let (turns, inside, tasks) = (&turns, &inside, &tasks);
                scope.spawn(move || {
                    let mut turn = turns.register();
                    for round in 0..2000 {
                        turn.enter();
                        inside.fetch_add(1, Ordering::SeqCst);
                        std::hint::spin_loop();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        if round % 50 == worker {
                            turn.exclusive(|_| {
                                assert_eq!(inside.load(Ordering::SeqCst), 0);
                                std::thread::yield_now();
                                assert_eq!(inside.load(Ordering::SeqCst), 0);
                                tasks.fetch_add(1, Ordering::SeqCst);
                            });
                        }
                        turn.leave();
                    }
                });
            }
        });
        assert_eq!(tasks.load(Ordering::SeqCst), 120);
    }

    #[test]
    fn a_turn_that_is_alone_is_inside_when_nobody_else_is() {
        const ROUNDS: usize = 500;
        let turns = Turns::new(3);
        let inside = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut turn = turns.register();
                    for round in 0..ROUNDS {
                        turn.enter();
                        inside.fetch_add(1, Ordering::SeqCst);
                        std::hint::spin_loop();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        if round % 10 == 0 {
                            turn.begin_alone();
                            assert!(turn.is_inside() && turn.is_alone());
                            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                            std::thread::yield_now();
                            turn.exclusive(|_| std::thread::yield_now());
                            assert!(turn.is_inside() && turn.is_alone());
                            assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1);
                            turn.end_alone();
                        }
                        assert!(turn.is_inside() && !turn.is_alone());
                        turn.leave();
                    }
                });
            }
        });
    }
}
