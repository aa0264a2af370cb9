//! Another process of this machine, such as a server under load: what it has used, and its end.
//!
//! Nothing here is remembered: each call looks anew, and a process that has ended is `None`.

use crate::syscall::check;
use std::io;
use std::time::Duration;

/// The processor time that all threads of a process have used, those that have ended not included.
/// `None` if there is no such process or the system does not tell.
///
/// To the nanosecond, except that a thread that is running adds its time at the kernel's ticks
/// (1 to 10 ms).
#[must_use]
pub fn cpu_time_of(pid: u32) -> Option<Duration> {
    let mut total_ns = 0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).ok()? {
        // A thread that ends in between is no longer part of the process.
        let Ok(text) = task.and_then(|task| std::fs::read_to_string(task.path().join("schedstat")))
        else {
            continue;
        };
        let first = text.split_ascii_whitespace().next();
        total_ns += first.and_then(|field| field.parse::<u64>().ok())?;
    }
    Some(Duration::from_nanos(total_ns))
}

/// The physical memory that a process occupies, in bytes. `None` if there is no such process or the
/// system does not tell.
#[must_use]
pub fn rss_bytes_of(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let value = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1_024)
}

/// Asks a process to end (SIGTERM), which is its own to do.
///
/// # Errors
/// `NotFound` if there is no such process, `PermissionDenied` if it is somebody else's.
pub fn ask_to_end(pid: u32) -> io::Result<()> {
    let pid = libc::pid_t::try_from(pid).map_err(|_| io::ErrorKind::NotFound)?;
    if pid <= 0 {
        // Zero and less mean whole groups of processes.
        return Err(io::ErrorKind::NotFound.into());
    }
    // SAFETY: the call takes integers.
    match check(unsafe { libc::kill(pid, libc::SIGTERM) }) {
        Ok(_) => Ok(()),
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {
            Err(io::ErrorKind::NotFound.into())
        }
        Err(error) => Err(error),
    }
}

/// Whether there is a process of this number, whoever it belongs to.
#[must_use]
pub fn is_alive(pid: u32) -> bool {
    match libc::pid_t::try_from(pid) {
        // SAFETY: the call takes integers, and signal 0 is never delivered.
        Ok(pid) if pid > 0 => match check(unsafe { libc::kill(pid, 0) }) {
            Ok(_) => true,
            Err(error) => error.raw_os_error() != Some(libc::ESRCH),
        },
        // Zero and less mean whole groups of processes.
        _ => false,
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn this_process_is_seen_like_any_other() {
        let pid = std::process::id();
        let before = cpu_time_of(pid).expect("this process is there");
        let mut value = 1_u64;
        while cpu_time_of(pid).expect("it is there") < before + Duration::from_millis(20) {
            for _ in 0..1_000_000 {
                value = std::hint::black_box(value.wrapping_mul(3));
            }
        }
        let own = super::super::rss_bytes();
        let seen = rss_bytes_of(pid).expect("this process is there");
        assert!(
            seen > own / 2 && seen < own * 2 + (64 << 20),
            "{seen} {own}"
        );
    }

    #[test]
    fn a_child_ends_when_asked() {
        let mut child = Command::new("sleep")
            .arg("600")
            .spawn()
            .expect("every machine can sleep");
        assert!(rss_bytes_of(child.id()).is_some());
        assert!(is_alive(child.id()));
        ask_to_end(child.id()).expect("it is ours");
        let status = child.wait().expect("it is ours");
        assert!(!is_alive(child.id()));
        assert!(!status.success());
    }

    #[test]
    fn nobody_is_nobody() {
        for pid in [0, u32::MAX, i32::MAX as u32] {
            assert_eq!(rss_bytes_of(pid), None);
            assert_eq!(cpu_time_of(pid), None);
            assert!(!is_alive(pid));
            let error = ask_to_end(pid).expect_err("there is no such process");
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
        }
    }
}
