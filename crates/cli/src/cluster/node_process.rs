//! The process of a node on this machine: found by the pid file in the node's directory, and known again by
//! its program and its working directory, for a number may belong to another process by now.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::limits::NODE_PAUSE;

/// What is in the directory of a node, beside its data.
pub(super) const PID_FILE: &str = "ferrite.pid";
pub(super) const LOG: &str = "ferrite.log";
pub(super) const SETTINGS: &str = "ferrite.conf";

/// What the program of a node is called.
pub(super) const PROGRAM: &str = "ferrite-server";

/// The server that works in a directory, if one does.
pub(super) fn running_in(directory: &Path) -> Option<u32> {
    let text = fs::read_to_string(directory.join(PID_FILE)).ok()?;
    let pid = text.trim().parse().ok()?;
    works_in(pid, directory).then_some(pid)
}

/// Whether a process is a server that works in a directory.
pub(super) fn works_in(pid: u32, directory: &Path) -> bool {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let (Ok(program), Ok(place), Ok(directory)) = (
        fs::read_link(process.join("exe")),
        fs::read_link(process.join("cwd")),
        directory.canonicalize(),
    ) else {
        return false;
    };
    // Of a program that was replaced meanwhile the system says so behind its name.
    let name = program.file_name().map(|name| name.to_string_lossy());
    name.is_some_and(|name| name.starts_with(PROGRAM)) && place == directory
}

/// Asks the server in a directory to end.
///
/// # Errors
/// In the system's words; not that there is none any more.
pub(super) fn ask_to_end(pid: u32) -> io::Result<()> {
    match sys::process::ask_to_end(pid) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Waits until a server has ended; whether it has before `end`.
pub(super) fn has_ended(pid: u32, directory: &Path, end: Instant) -> bool {
    while works_in(pid, directory) {
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(NODE_PAUSE);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_in_a_file_is_no_server() {
        let name = format!("ferrite-cli-process-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).expect("the temporary directory is writable");
        for text in ["", "x", "0", "4294967295", &std::process::id().to_string()] {
            fs::write(directory.join(PID_FILE), text).expect("it is ours");
            assert_eq!(running_in(&directory), None, "{text}");
        }
        fs::remove_dir_all(&directory).expect("it is ours");
        assert_eq!(running_in(&directory), None);
    }
}
