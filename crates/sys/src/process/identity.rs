//! What this process is called, and what it runs on.

use rustix::system::uname;
use std::ffi::CStr;
use std::io;
use std::path::PathBuf;

/// The number of this process.
#[must_use]
pub fn pid() -> u32 {
    std::process::id()
}

/// The file that this process was started from, from the root.
///
/// # Errors
/// The system does not tell (no `/proc`).
pub fn executable_path() -> io::Result<PathBuf> {
    std::env::current_exe()
}

/// What supervises this process, in the word of Redis: `systemd`, or `no`.
#[must_use]
pub fn supervisor() -> &'static str {
    match std::env::var_os("NOTIFY_SOCKET") {
        Some(socket) if !socket.is_empty() => "systemd",
        _ => "no",
    }
}

/// System, release and processor: `Linux 6.1.0 x86_64`.
#[must_use]
pub fn os_text() -> String {
    let names = uname();
    [names.sysname(), names.release(), names.machine()]
        .map(CStr::to_string_lossy)
        .join(" ")
}

/// The name of this machine on its network.
#[must_use]
pub fn hostname() -> String {
    uname().nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    // That the names are those of `uname` is tested in tests/process.rs: a test that starts a
    // program makes descriptors of the tests beside it live longer than they expect.

    #[test]
    fn the_executable_is_named_from_the_root() {
        assert!(executable_path().expect("there is a /proc").is_absolute());
        assert_eq!(os_text().split(' ').count(), 3);
    }
}
