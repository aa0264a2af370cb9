//! Processors: how many this process may use, and on which of them a thread runs.
//!
//! Ask [`usable_cpus`] before any thread is pinned: the answer is about the thread that asks.

#[cfg(target_os = "linux")]
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;

/// How many processors this process can keep busy, at least 1: what the affinity of the calling
/// thread allows, and no more than the whole processors in the quota of its cgroup (version 1 or 2,
/// or any group around it).
#[must_use]
pub fn usable_cpus() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The numbers of the processors that the calling thread may run on, ascending: what
/// [`pin_current_thread`] accepts.
///
/// There can be more of them than [`usable_cpus`], because a quota limits time and not places.
///
/// # Errors
/// The kernel refuses to tell (a machine with more than 1024 processors).
#[cfg(target_os = "linux")]
pub fn usable_cpu_numbers() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    let all = 0..CpuSet::MAX_CPU;
    Ok(all.filter(|&cpu| set.is_set(cpu)).collect())
}

/// The numbers of the processors that the calling thread may run on, ascending.
///
/// # Errors
/// None on this system, which has no affinity: all processors are named.
#[cfg(not(target_os = "linux"))]
pub fn usable_cpu_numbers() -> io::Result<Vec<usize>> {
    Ok((0..usable_cpus()).collect())
}

/// Binds the calling thread to one processor, by the kernel's number of it (see
/// [`usable_cpu_numbers`]).
///
/// # Errors
/// `InvalidInput` if there is no such processor or the process may not use it.
#[cfg(target_os = "linux")]
pub fn pin_current_thread(cpu: usize) -> io::Result<()> {
    confine_current_thread(&[cpu])
}

/// Binds the calling thread to several processors, by the kernel's numbers of them; threads and
/// processes that it starts from then on are bound with it.
///
/// # Errors
/// `InvalidInput` if one does not exist, or the process may use none of them.
#[cfg(target_os = "linux")]
pub fn confine_current_thread(cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu >= CpuSet::MAX_CPU {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        set.set(cpu);
    }
    Ok(sched_setaffinity(None, &set)?)
}

/// Binds the calling thread to one processor.
///
/// # Errors
/// `Unsupported`: this system offers no binding.
#[cfg(not(target_os = "linux"))]
pub fn pin_current_thread(_cpu: usize) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Binds the calling thread to several processors.
///
/// # Errors
/// `Unsupported`: this system offers no binding.
#[cfg(not(target_os = "linux"))]
pub fn confine_current_thread(_cpus: &[usize]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Lets the system prefer other threads to the calling one from here on, as `nice` would with a process. The
/// other way is for the privileged alone, so this is for good. Where priorities belong to whole processes
/// nothing happens.
pub fn give_way(nice: i32) {
    // A priority is a wish: whether the kernel grants it is of no consequence.
    #[cfg(target_os = "linux")]
    // SAFETY: the call touches no memory; on Linux 0 names the calling thread.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, nice);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = nice;
}

/// Names the calling thread for `top`, `ps` and debuggers. Linux keeps 15 bytes: a longer name is
/// cut, between characters, and so is one with a zero byte in it.
pub fn set_thread_name(name: &str) {
    const LONGEST: usize = 15;
    let mut buffer = [0_u8; LONGEST + 1];
    let mut length = name.find('\0').unwrap_or(name.len()).min(LONGEST);
    while !name.is_char_boundary(length) {
        length -= 1;
    }
    buffer[..length].copy_from_slice(&name.as_bytes()[..length]);
    // A name is a convenience: whether the kernel took it is of no consequence.
    #[cfg(not(target_os = "macos"))]
    // SAFETY: the buffer is longer than the name and zero after it, so it holds a terminated
    // string.
    unsafe {
        libc::pthread_setname_np(libc::pthread_self(), buffer.as_ptr().cast());
    }
    #[cfg(target_os = "macos")]
    // SAFETY: the buffer is longer than the name and zero after it, so it holds a terminated
    // string.
    unsafe {
        libc::pthread_setname_np(buffer.as_ptr().cast());
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// Runs `test` on a thread of its own, so that what it pins or names does not touch other
    /// tests.
    fn on_a_thread(test: impl FnOnce() + Send + 'static) {
        std::thread::spawn(test)
            .join()
            .expect("the test thread passes");
    }

    fn thread_name() -> String {
        let name = std::fs::read_to_string("/proc/thread-self/comm").expect("a thread has a name");
        name.trim_end().to_owned()
    }

    #[test]
    fn there_is_a_processor_for_each_that_is_counted() {
        let numbers = usable_cpu_numbers().expect("the kernel tells");
        assert!(usable_cpus() >= 1 && usable_cpus() <= numbers.len());
        assert!(numbers.is_sorted());
    }

    #[test]
    fn a_pinned_thread_has_one_processor() {
        for cpu in usable_cpu_numbers().expect("the kernel tells") {
            on_a_thread(move || {
                pin_current_thread(cpu).expect("the processor is usable");
                assert_eq!(usable_cpu_numbers().expect("the kernel tells"), [cpu]);
                assert_eq!(usable_cpus(), 1);
            });
        }
    }

    #[test]
    fn a_confined_thread_passes_its_processors_on() {
        let all = usable_cpu_numbers().expect("the kernel tells");
        on_a_thread(move || {
            confine_current_thread(&all).expect("all of them are usable");
            assert_eq!(usable_cpu_numbers().expect("the kernel tells"), all);
            let last = &all[all.len() - 1..];
            confine_current_thread(last).expect("it is usable");
            let heir = std::thread::spawn(usable_cpu_numbers).join();
            assert_eq!(heir.expect("it ends").expect("the kernel tells"), last);
            confine_current_thread(&[]).expect_err("a thread has to run somewhere");
        });
    }

    #[test]
    fn a_processor_that_does_not_exist_is_refused() {
        on_a_thread(|| {
            let before = usable_cpu_numbers().expect("the kernel tells");
            for cpu in [1023, 1024, usize::MAX] {
                let error = pin_current_thread(cpu).expect_err("no machine here has as many");
                assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            }
            assert_eq!(usable_cpu_numbers().expect("the kernel tells"), before);
        });
    }

    #[test]
    fn names_are_cut_to_what_the_kernel_keeps() {
        for (given, kept) in [
            ("worker-7", "worker-7"),
            ("exactly-15-long", "exactly-15-long"),
            ("a-name-of-16-byt", "a-name-of-16-by"),
            ("fourteen-bytesé", "fourteen-bytes"),
            ("before\0after", "before"),
        ] {
            on_a_thread(move || {
                set_thread_name(given);
                assert_eq!(thread_name(), kept);
            });
        }
    }
}
