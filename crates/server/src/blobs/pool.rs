//! Threads that wait for the disk in the place of workers. They are started when there is something to do, and stay.

use std::collections::VecDeque;

use parking_lot::{Condvar, Mutex};

use crate::limits::{BLOB_NICE, BLOB_THREADS};
use crate::server::Server;

/// Something that waits for the disk.
type Job = Box<dyn FnOnce() + Send>;

/// See the module.
#[derive(Default)]
pub(crate) struct Pool {
    queue: Mutex<Queue>,
    is_there_work: Condvar,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
}

impl Pool {
    /// Lets a thread do something.
    pub(super) fn run(&self, server: &'static Server, job: impl FnOnce() + Send + 'static) {
        let mut queue = self.queue.lock();
        queue.jobs.push_back(Box::new(job));
        if queue.threads < BLOB_THREADS && queue.idle < queue.jobs.len() {
            let thread = std::thread::Builder::new().name(format!("blob-{}", queue.threads));
            match thread.spawn(move || server.blobs.work()) {
                // It counts as idle until it has taken something.
                Ok(_) => {
                    queue.threads += 1;
                    queue.idle += 1;
                }
                Err(error) if queue.threads == 0 => {
                    log::error!(
                        "cannot start a thread for large values, so this one does it: {error}"
                    );
                    let jobs = std::mem::take(&mut queue.jobs);
                    drop(queue);
                    jobs.into_iter().for_each(|job| job());
                    return;
                }
                Err(_) => {}
            }
        }
        drop(queue);
        self.is_there_work.notify_one();
    }

    fn work(&self) {
        // Copying and checking pieces takes time that those need who send small things.
        sys::cpu::give_way(BLOB_NICE);
        let mut queue = self.queue.lock();
        loop {
            let Some(job) = queue.jobs.pop_front() else {
                self.is_there_work.wait(&mut queue);
                continue;
            };
            queue.idle -= 1;
            drop(queue);
            job();
            queue = self.queue.lock();
            queue.idle += 1;
        }
    }
}
