//! Processor time used, as `INFO cpu` shows it.

use std::time::Duration;

/// Processor time, split into that of the program and that of the kernel on its behalf.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// Running the program.
    pub user: Duration,
    /// Running the kernel.
    pub system: Duration,
}

/// The time that all threads of this process have used so far.
#[must_use]
pub fn cpu_times() -> CpuTimes {
    usage(libc::RUSAGE_SELF)
}

/// The time that the children of this process have used, of those that have ended and been waited
/// for.
#[must_use]
pub fn children_cpu_times() -> CpuTimes {
    usage(libc::RUSAGE_CHILDREN)
}

/// The time that the calling thread has used. macOS does not split it: all of it counts as `user`.
#[must_use]
#[cfg(not(target_os = "macos"))]
pub fn thread_cpu_times() -> CpuTimes {
    usage(libc::RUSAGE_THREAD)
}

/// The time that the calling thread has used. macOS does not split it: all of it counts as `user`.
#[must_use]
#[cfg(target_os = "macos")]
pub fn thread_cpu_times() -> CpuTimes {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a timespec that the call may write. Should it fail, the time is zero.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    let user = Duration::new(
        time.tv_sec.unsigned_abs(),
        time.tv_nsec.unsigned_abs() as u32,
    );
    CpuTimes {
        user,
        system: Duration::ZERO,
    }
}

/// The time that the first thread of the process has used, asked by any thread. From another thread
/// it comes in steps of the kernel's clock (10 ms).
#[must_use]
#[cfg(target_os = "linux")]
pub fn main_thread_cpu_times() -> CpuTimes {
    let pid = std::process::id();
    // SAFETY: the call takes nothing and returns the number of the calling thread.
    if u32::try_from(unsafe { libc::gettid() }) == Ok(pid) {
        return thread_cpu_times();
    }
    // SAFETY: the call takes an integer and returns one.
    let ticks_per_second = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) })
        .unwrap_or(100)
        .max(1);
    let stat = std::fs::read_to_string(format!("/proc/self/task/{pid}/stat")).unwrap_or_default();
    parse_stat(&stat, ticks_per_second).unwrap_or_default()
}

/// The time that the first thread of the process has used; zero unless that thread asks, as the
/// system does not tell others.
#[must_use]
#[cfg(not(target_os = "linux"))]
pub fn main_thread_cpu_times() -> CpuTimes {
    // SAFETY: the call takes nothing and returns whether this is the first thread.
    #[cfg(target_os = "macos")]
    let is_main = unsafe { libc::pthread_main_np() } == 1;
    #[cfg(not(target_os = "macos"))]
    let is_main = false;
    if is_main {
        thread_cpu_times()
    } else {
        CpuTimes::default()
    }
}

/// The times in a `stat` file of `/proc`: the 14th and 15th field, where the second is a name in
/// parentheses that may hold anything, parentheses and spaces too.
#[cfg(target_os = "linux")]
fn parse_stat(stat: &str, ticks_per_second: u64) -> Option<CpuTimes> {
    const USER: usize = 14 - 3;
    let (_, from_third) = stat.rsplit_once(')')?;
    let mut times = from_third.split_ascii_whitespace().skip(USER).map(|field| {
        let ticks: u64 = field.parse().ok()?;
        let rest_ns = ticks % ticks_per_second * 1_000_000_000 / ticks_per_second;
        // The rest is less than a second.
        Some(Duration::new(ticks / ticks_per_second, rest_ns as u32))
    });
    Some(CpuTimes {
        user: times.next()??,
        system: times.next()??,
    })
}

fn usage(of: libc::c_int) -> CpuTimes {
    // SAFETY: a rusage is integers, for which all bits zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the call may write the structure. Should it fail, the times are zero.
    unsafe { libc::getrusage(of, &mut usage) };
    CpuTimes {
        user: duration(usage.ru_utime),
        system: duration(usage.ru_stime),
    }
}

fn duration(time: libc::timeval) -> Duration {
    // Neither is negative, and the microseconds are less than a second, whatever their type.
    #[allow(clippy::unnecessary_cast, reason = "64 bits on Linux, 32 on macOS")]
    let microseconds = time.tv_usec.unsigned_abs() as u32;
    Duration::new(time.tv_sec.unsigned_abs(), microseconds * 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    // The times of children and of the main thread are tested in tests/process.rs as well.

    fn total(times: CpuTimes) -> Duration {
        times.user + times.system
    }

    #[test]
    fn work_costs_the_thread_and_the_process() {
        let (thread, process) = (total(thread_cpu_times()), total(cpu_times()));
        let mut value = 1_u64;
        while total(thread_cpu_times()) < thread + Duration::from_millis(5) {
            value = std::hint::black_box(value.wrapping_mul(3));
        }
        let used = total(thread_cpu_times()) - thread;
        // The process' times are read in another moment and may be rounded, but hold what its
        // threads have used.
        assert!(total(cpu_times()) + Duration::from_millis(2) >= process + used);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_main_threads_time_is_part_of_the_process_time() {
        let main = total(main_thread_cpu_times());
        assert!(main <= total(cpu_times()) + Duration::from_millis(20));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_stat_file_is_understood_whatever_the_name() {
        let fields = "S 1 2 3 4 5 6 7 8 9 10 150 225 0 0 20";
        let expected = CpuTimes {
            user: Duration::from_millis(1_500),
            system: Duration::from_millis(2_250),
        };
        for name in ["ferrite", "a b", "a) S 1 (b", "(", ")"] {
            assert_eq!(
                parse_stat(&format!("42 ({name}) {fields}"), 100),
                Some(expected),
                "{name}"
            );
        }
        for bad in [
            "",
            "42 (x) S 1 2",
            "42 (x) S 1 2 3 4 5 6 7 8 9 10 x 1",
            "no parenthesis",
        ] {
            assert_eq!(parse_stat(bad, 100), None, "{bad}");
        }
    }
}
