//! Thread pools for jobs that may block: jobs of one kind, first in, first out. Threads are started on
//! demand, up to the bound of the kind, and stay.
//!
//! Each kind of job has a [`Pool`] of its own, so that jobs don't wait for jobs of other kinds. The job
//! itself reports its end.
//!
//! Invariant: while there are jobs in the queue, a thread that is not idle, or was woken, will look at it.

use std::collections::VecDeque;

use parking_lot::{Condvar, Mutex};

/// Kind of job.
pub(crate) trait Job: Send + 'static {
    /// Name of its threads; a number is appended.
    const NAME: &'static str;
    /// Bound of the number of threads.
    const THREADS: usize;
    /// Increment of the threads' `nice` value.
    const NICE: i32 = 0;

    /// Runs the job. May wait for anything but another job.
    fn run(self);
}

/// Threads for one kind of job.
pub(crate) struct Pool<J> {
    queue: Mutex<Queue<J>>,
    is_there_work: Condvar,
}

struct Queue<J> {
    jobs: VecDeque<J>,
    threads: usize,
    idle: usize,
}

impl<J> Default for Pool<J> {
    fn default() -> Pool<J> {
        let queue = Queue {
            jobs: VecDeque::new(),
            threads: 0,
            idle: 0,
        };
        Pool {
            queue: Mutex::new(queue),
            is_there_work: Condvar::new(),
        }
    }
}

impl<J: Job> Pool<J> {
    /// Adds jobs, and starts threads on demand.
    pub(crate) fn add(&'static self, jobs: impl IntoIterator<Item = J>) {
        let mut queue = self.queue.lock();
        let before = queue.jobs.len();
        queue.jobs.extend(jobs);
        let added = queue.jobs.len() - before;
        while queue.threads < J::THREADS && queue.idle < queue.jobs.len() {
            let name = format!("{}-{}", J::NAME, queue.threads);
            match std::thread::Builder::new().name(name).spawn(|| self.work()) {
                // A new thread counts as idle until it takes a job.
                Ok(_) => {
                    queue.threads += 1;
                    queue.idle += 1;
                }
                Err(error) if queue.threads == 0 => {
                    log::error!(
                        "cannot start a thread {}, so this one does its work: {error}",
                        J::NAME
                    );
                    let jobs = std::mem::take(&mut queue.jobs);
                    drop(queue);
                    return jobs.into_iter().for_each(J::run);
                }
                Err(_) => break,
            }
        }
        drop(queue);
        match added {
            1 => drop(self.is_there_work.notify_one()),
            _ => drop(self.is_there_work.notify_all()),
        }
    }

    fn work(&self) {
        if J::NICE > 0 {
            sys::cpu::give_way(J::NICE);
        }
        let mut queue = self.queue.lock();
        loop {
            let Some(job) = queue.jobs.pop_front() else {
                self.is_there_work.wait(&mut queue);
                continue;
            };
            queue.idle -= 1;
            drop(queue);
            job.run();
            queue = self.queue.lock();
            queue.idle += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// Sends a message when it begins, and ends when it is told to.
    struct Step {
        number: usize,
        begun: Sender<usize>,
        may_end: Arc<Mutex<Receiver<()>>>,
    }

    impl Job for Step {
        const NAME: &'static str = "step";
        const THREADS: usize = 3;
        const NICE: i32 = 1;

        fn run(self) {
            self.begun.send(self.number).expect("the test listens");
            self.may_end.lock().recv().expect("the test says so");
        }
    }

    #[test]
    fn jobs_begin_in_order_as_many_at_a_time_as_there_are_threads() {
        let pool: &'static Pool<Step> = Box::leak(Box::default());
        let (begun, begins) = channel();
        let (end, may_end) = channel();
        let may_end = Arc::new(Mutex::new(may_end));
        let step = |number| Step {
            number,
            begun: begun.clone(),
            may_end: Arc::clone(&may_end),
        };
        pool.add((0..5).map(step));
        let mut first: Vec<usize> = begins.iter().take(3).collect();
        first.sort_unstable();
        assert_eq!(first, [0, 1, 2]);
        assert_eq!(pool.queue.lock().jobs.len(), 2);
        end.send(()).expect("they listen");
        assert_eq!(begins.recv(), Ok(3));
        end.send(()).expect("they listen");
        assert_eq!(begins.recv(), Ok(4));
        (0..3).for_each(|_| end.send(()).expect("they listen"));
        // One after the other, in existing threads.
        for number in 5..50 {
            pool.add([step(number)]);
            assert_eq!(begins.recv(), Ok(number));
            end.send(()).expect("they listen");
        }
        let queue = pool.queue.lock();
        assert!(queue.jobs.is_empty() && queue.threads <= 3);
    }
}
