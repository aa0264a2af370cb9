//! What threads have used and what they waited for: how busy an event loop is, told by the kernel, so that it
//! costs the loop nothing.

use std::time::Duration;

/// A thread of this process, as the system numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadId(u32);

/// How a thread has spent its life so far, as far as it did not sleep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadTimes {
    /// On a processor.
    pub running: Duration,
    /// Ready to run while others had the processor.
    pub waiting: Duration,
}

impl ThreadId {
    /// The calling thread.
    #[must_use]
    #[cfg(target_os = "linux")]
    pub fn current() -> ThreadId {
        // SAFETY: the call takes nothing and returns the number of the calling thread.
        ThreadId(unsafe { libc::gettid() }.unsigned_abs())
    }

    /// The calling thread; one is as good as another where nothing is told about them.
    #[must_use]
    #[cfg(not(target_os = "linux"))]
    pub fn current() -> ThreadId {
        ThreadId(0)
    }

    /// What it has spent its time with; `None` where the system does not tell, or when it has ended.
    #[must_use]
    pub fn times(self) -> Option<ThreadTimes> {
        let path = format!("/proc/self/task/{}/schedstat", self.0);
        parse(&std::fs::read_to_string(path).ok()?)
    }
}

/// The first two numbers of a `schedstat` file of `/proc`, both in nanoseconds.
fn parse(text: &str) -> Option<ThreadTimes> {
    let mut fields = text.split_ascii_whitespace();
    let mut next = || Some(Duration::from_nanos(fields.next()?.parse().ok()?));
    Some(ThreadTimes {
        running: next()?,
        waiting: next()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_understood() {
        let times = ThreadTimes {
            running: Duration::from_nanos(1_500),
            waiting: Duration::from_nanos(20),
        };
        assert_eq!(parse("1500 20 3\n"), Some(times));
        for bad in ["", "1", "1 x", "-1 2 3"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_that_works_has_run_and_one_that_has_ended_tells_nothing() {
        let worker = std::thread::spawn(|| {
            let id = ThreadId::current();
            let mut value = 1_u64;
            while id
                .times()
                .is_some_and(|times| times.running < Duration::from_millis(2))
            {
                value = std::hint::black_box(value.wrapping_mul(3));
            }
            (id, id.times())
        });
        let (id, times) = worker.join().expect("it does not panic");
        assert_ne!(id, ThreadId::current());
        // A kernel without this accounting has no such file at all.
        if times.is_some() {
            assert_eq!(id.times(), None);
        }
    }
}
