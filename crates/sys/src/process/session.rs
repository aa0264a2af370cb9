//! Programs that outlive whoever starts them.

use crate::syscall::check;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Lets a program begin a session of its own: neither the end of the terminal nor a Ctrl-C there reaches it.
pub fn in_own_session(command: &mut Command) -> &mut Command {
    // SAFETY: the closure runs between fork and exec, where only calls may be made that are safe in signal
    // handlers; this is one. It allocates nothing, an error is a number.
    unsafe {
        command.pre_exec(|| {
            // A child is never the leader of a process group, so it succeeds.
            check(libc::setsid()).map(|_| ())
        })
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_the_leader_of_its_session() {
        let mut command = Command::new("sleep");
        let mut child = in_own_session(command.arg("600"))
            .spawn()
            .expect("every machine can sleep");
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id()));
        let stat = stat.expect("the child is there");
        // Behind the name: state, parent, process group, session.
        let (_, fields) = stat.rsplit_once(')').expect("the name is in brackets");
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let pid = child.id().to_string();
        assert_eq!(fields[2..4], [&pid, &pid]);
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
    }
}
