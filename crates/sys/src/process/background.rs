//! Threads that have time.
//!
//! What Linux does about them: a thread of policy `SCHED_BATCH` does not interrupt others when it wakes up,
//! and one that asked for long slices (Linux 6.12) is interrupted at once by whoever wakes up with shorter
//! ones; without that, whoever wakes up on the processor of a thread that computes waits for the next tick of
//! the clock, up to 4 ms. Its share of the processor stays what it was, so that somebody who waits for what
//! it does, or for a lock that it has, does not wait for long.

/// Nanoseconds that such a thread asks for at a time.
#[cfg(target_os = "linux")]
const SLICE_NS: u64 = 20_000_000;

/// Says that the calling thread has time. Does nothing for a thread that somebody has given a policy of its
/// own, nor where the system has nothing of the kind or does not allow it: it is a wish.
#[cfg(target_os = "linux")]
pub fn work_in_background() {
    // SAFETY: the call takes a number, 0 for the calling thread, and returns one.
    if unsafe { libc::sched_getscheduler(0) } != libc::SCHED_OTHER {
        return;
    }
    // SAFETY: the call takes numbers, 0 for the calling thread, and returns one.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    let wish = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: libc::SCHED_BATCH.unsigned_abs(),
        sched_flags: 0,
        sched_nice: nice,
        sched_priority: 0,
        sched_runtime: SLICE_NS,
        sched_deadline: 0,
        sched_period: 0,
    };
    // By number, because C libraries have hardly begun to have a function for it.
    // SAFETY: the structure says how long it is, and the call only reads it.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const wish, 0) };
}

/// Says that the calling thread has time, which this system does not ask for.
#[cfg(not(target_os = "linux"))]
pub fn work_in_background() {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_in_the_background_keeps_its_share() {
        std::thread::spawn(|| {
            // SAFETY: as in `work_in_background`.
            let (policy, nice) = unsafe {
                (
                    libc::sched_getscheduler(0),
                    libc::getpriority(libc::PRIO_PROCESS, 0),
                )
            };
            work_in_background();
            // SAFETY: as above.
            let (then, nice_then) = unsafe {
                (
                    libc::sched_getscheduler(0),
                    libc::getpriority(libc::PRIO_PROCESS, 0),
                )
            };
            assert_eq!(nice_then, nice);
            let is_plain = policy == libc::SCHED_OTHER;
            assert!(then == policy || is_plain && then == libc::SCHED_BATCH);
        })
        .join()
        .expect("the thread ends");
    }
}
