//! What this process is called, and what it runs on.

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
    let names = names();
    format!(
        "{} {} {}",
        text(&names.sysname),
        text(&names.release),
        text(&names.machine)
    )
}

/// The name of this machine on its network.
#[must_use]
pub fn hostname() -> String {
    text(&names().nodename)
}

fn names() -> libc::utsname {
    // SAFETY: a utsname is arrays of characters, for which all bits zero are empty strings.
    let mut names: libc::utsname = unsafe { std::mem::zeroed() };
    // SAFETY: the call may write the structure. Should it fail, the names are empty.
    unsafe { libc::uname(&mut names) };
    names
}

/// The characters before the first zero.
#[allow(
    clippy::unnecessary_cast,
    reason = "a character is signed on x86-64 and unsigned on arm64"
)]
fn text(field: &[libc::c_char]) -> String {
    let bytes: Vec<u8> = field.iter().map(|&character| character as u8).collect();
    CStr::from_bytes_until_nul(&bytes).map_or_else(
        |_| String::new(),
        |name| name.to_string_lossy().into_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    // That the names are those of `uname` is tested in tests/process.rs: a test that starts a
    // program makes descriptors of the tests beside it live longer than they expect.

    #[test]
    fn a_name_ends_at_its_zero() {
        let field = b"ab\0cd\0".map(|byte| byte as libc::c_char);
        assert_eq!(text(&field), "ab");
        assert_eq!(text(&field[..2]), "");
    }

    #[test]
    fn the_executable_is_named_from_the_root() {
        assert!(executable_path().expect("there is a /proc").is_absolute());
        assert_eq!(os_text().split(' ').count(), 3);
    }
}
