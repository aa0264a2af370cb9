//! Turns: when a worker is inside the keyspace, and how one task gets it alone.
//!
//! A worker *enters* before it looks at shared memory and *leaves* before it waits. Two things rest
//! on that, and cost the worker one store and one fence a turn:
//!
//! 1. **Reclamation.** A table that was replaced is freed only when every worker that was inside
//!    when it was retired has left ([`Turns::snapshot`], [`Turns::has_passed`]). So a worker may read
//!    a table without its shard's lock to decide what to prefetch.
//! 2. **Exclusive tasks.** [`Turn::exclusive`] keeps new turns from starting and waits for running
//!    ones to end: what FLUSHALL and SWAPDB need to be atomic for everybody.
//!
//! Invariants:
//! 1. A slot's counter is odd while its worker is inside, and only that worker changes it.
//! 2. While `closed` is set no counter becomes odd, except for the task that set it.
//!
//! What this is not: a lock for shards. Inside a turn the shard's own lock still decides.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

use parking_lot::{Condvar, Mutex};

/// One worker's counter, alone on its cache lines.
#[repr(align(128))]
#[derive(Default)]
struct Slot(AtomicU64);

/// The turn counters of all workers.
pub struct Turns {
    slots: Box<[Slot]>,
    /// Slots that nobody has.
    free: Mutex<Vec<usize>>,
    /// Set while an exclusive task runs or waits to run.
    closed: AtomicBool,
    /// Held by the exclusive task for as long as it runs.
    exclusive: Mutex<()>,
    opened: (Mutex<()>, Condvar),
}

/// One worker's right to enter; not shared between threads. Dropping it ends its turn and makes room for another.
pub struct Turn<'a> {
    turns: &'a Turns,
    slot: usize,
}

/// Proof that no other worker is inside; ends when dropped.
pub struct Exclusive<'a> {
    turns: &'a Turns,
    _alone: parking_lot::MutexGuard<'a, ()>,
}

impl Turns {
    /// Room for `workers` workers (threads that call [`Turns::register`]).
    pub fn new(workers: usize) -> Turns {
        Turns {
            slots: (0..workers).map(|_| Slot::default()).collect(),
            free: Mutex::new((0..workers).rev().collect()),
            closed: AtomicBool::new(false),
            exclusive: Mutex::new(()),
            opened: (Mutex::new(()), Condvar::new()),
        }
    }

    /// Takes a slot. Panics when more threads register than there is room for.
    pub fn register(&self) -> Turn<'_> {
        let slot = self.free.lock().pop();
        let slot = slot.expect("there are no more threads than turn slots");
        Turn { turns: self, slot }
    }

    /// What every counter says now, for [`Turns::has_passed`].
    pub(crate) fn snapshot(&self) -> Box<[u64]> {
        // Orders the retirement (a store to the table's word) before the reads of the counters.
        fence(Ordering::SeqCst);
        self.slots
            .iter()
            .map(|slot| slot.0.load(Ordering::Acquire))
            .collect()
    }

    /// Whether every worker that was inside at `snapshot` has left since.
    pub(crate) fn has_passed(&self, snapshot: &[u64]) -> bool {
        self.slots
            .iter()
            .zip(snapshot)
            .all(|(slot, &then)| then % 2 == 0 || slot.0.load(Ordering::Acquire) != then)
    }
}

impl<'a> Turn<'a> {
    /// Begins a turn; waits while an exclusive task runs.
    #[inline]
    pub fn enter(&mut self) {
        assert!(!self.is_inside(), "turns do not nest");
        let slot = &self.turns.slots[self.slot].0;
        loop {
            slot.store(slot.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            // Either this worker sees `closed`, or the exclusive task sees the odd counter.
            fence(Ordering::SeqCst);
            // Acquire: what the last exclusive task did is seen by every turn after it.
            if !self.turns.closed.load(Ordering::Acquire) {
                return;
            }
            slot.store(slot.load(Ordering::Relaxed) + 1, Ordering::Release);
            self.turns.wait_until_open();
        }
    }

    /// Ends a turn. No reference taken inside it may be used afterwards.
    #[inline]
    pub fn leave(&mut self) {
        let slot = &self.turns.slots[self.slot].0;
        slot.store(slot.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    /// Whether this is a turn of those workers.
    #[inline]
    pub(crate) fn is_of(&self, turns: &Turns) -> bool {
        std::ptr::eq(self.turns, turns)
    }

    /// Whether this worker is inside.
    #[inline]
    pub fn is_inside(&self) -> bool {
        self.turns.slots[self.slot].0.load(Ordering::Relaxed) % 2 == 1
    }

    /// Runs `task` while no other worker is inside. Called inside a turn and without any lock held:
    /// the turn ends before the wait (so two such callers cannot wait for each other) and a new one
    /// has begun when this returns.
    pub fn exclusive<R>(&mut self, task: impl FnOnce(&Exclusive<'a>) -> R) -> R {
        assert!(self.is_inside(), "an exclusive task begins inside a turn");
        self.leave();
        let result = {
            let alone = self.turns.exclusive();
            task(&alone)
        };
        self.enter();
        result
    }
}

impl Turn<'_> {
    /// Runs a task that waits for something, outside the turn: it ends before and another has begun when this returns. Called
    /// inside a turn and without any lock held.
    pub fn pause<R>(&mut self, task: impl FnOnce() -> R) -> R {
        assert!(self.is_inside(), "a pause is made inside a turn");
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
        let alone = self.exclusive.lock();
        self.closed.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        for slot in &self.slots {
            let mut spins = 0u32;
            while slot.0.load(Ordering::Acquire) % 2 == 1 {
                spins += 1;
                if spins < 1000 {
                    std::hint::spin_loop();
                } else {
                    std::thread::yield_now();
                }
            }
        }
        Exclusive {
            turns: self,
            _alone: alone,
        }
    }

    #[cold]
    fn wait_until_open(&self) {
        let (lock, opened) = &self.opened;
        let mut guard = lock.lock();
        while self.closed.load(Ordering::Acquire) {
            opened.wait(&mut guard);
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.is_inside() {
            self.leave();
        }
        self.turns.free.lock().push(self.slot);
    }
}

impl Drop for Exclusive<'_> {
    fn drop(&mut self) {
        let (lock, opened) = &self.turns.opened;
        let guard = lock.lock();
        self.turns.closed.store(false, Ordering::Release);
        drop(guard);
        opened.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

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
}
