//! Leaving the terminal and the program that started us.

use crate::syscall::check;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;

/// Goes on in the background: in a child process, in a session of its own, with `/dev/null` for
/// input, output and errors. The calling process ends with status 0 and does not return from this.
///
/// Called before any thread starts, because a fork takes only the calling thread along; before any
/// poller is opened; and after everything whose failure the terminal should see. The working
/// directory stays.
///
/// # Errors
/// There are threads already, `/dev/null` cannot be opened, or there is no room for a process.
/// Nothing has changed then, unless the error comes after the fork, which no known system does.
pub fn daemonize() -> io::Result<()> {
    if thread_count().is_some_and(|count| count > 1) {
        return Err(io::Error::other(
            "a process with several threads cannot go to the background",
        ));
    }
    let null = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    // What is still in the buffer would otherwise be lost, as the parent ends without writing it.
    let _ = io::stdout().flush();
    // SAFETY: there is one thread, so the child has all that the parent had.
    match check(unsafe { libc::fork() })? {
        0 => become_session_leader(&null),
        // SAFETY: the call does not return; it runs no exit handlers, which belong to the child
        // now.
        _ => unsafe { libc::_exit(0) },
    }
}

fn become_session_leader(null: &File) -> io::Result<()> {
    // SAFETY: the call takes nothing; a child is never the leader of a process group, so it
    // succeeds.
    check(unsafe { libc::setsid() })?;
    for standard in [libc::STDIN_FILENO, libc::STDOUT_FILENO, libc::STDERR_FILENO] {
        // SAFETY: `null` is open, and whoever holds the standard descriptors expects them to be
        // replaced.
        check(unsafe { libc::dup2(null.as_raw_fd(), standard) })?;
    }
    Ok(())
}

/// How many threads this process has; `None` if the system does not tell.
fn thread_count() -> Option<usize> {
    std::fs::read_dir("/proc/self/task")
        .ok()
        .map(Iterator::count)
}

// The tests are in tests/process.rs, because a test harness has threads.
