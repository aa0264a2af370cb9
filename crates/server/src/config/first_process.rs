//! The arguments of the server that a container runs, for `--health` without arguments of its own.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The arguments of the first process.
const FIRST_PROCESS: &str = "/proc/1/cmdline";

/// The name of this program's file.
const PROGRAM: &str = "ferrite-server";

/// The arguments of the server that is the first process, or that the first process has started (`docker run
/// --init`).
///
/// # Errors
/// It is neither.
pub(super) fn args_of_first_process() -> Result<Vec<OsString>, String> {
    let line =
        fs::read(FIRST_PROCESS).map_err(|error| format!("cannot read {FIRST_PROCESS}: {error}"))?;
    args_behind_program(&line).ok_or_else(|| {
        format!(
            "the first process is no {PROGRAM}: --health needs the arguments of the server's start"
        )
    })
}

/// The words of a command line behind the one that names this program.
fn args_behind_program(line: &[u8]) -> Option<Vec<OsString>> {
    let line = line.strip_suffix(b"\0").unwrap_or(line);
    let mut words = line.split(|&byte| byte == 0).map(OsStr::from_bytes);
    words.find(|word| Path::new(word).file_name() == Some(OsStr::new(PROGRAM)))?;
    Some(words.map(OsStr::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_those_behind_the_program() {
        for (line, expected) in [
            (&b"ferrite-server\0"[..], Some(&[][..])),
            (
                b"ferrite-server\0/etc/ferrite/ferrite.conf\0--port\08000\0--save\0\0",
                Some(&["/etc/ferrite/ferrite.conf", "--port", "8000", "--save", ""]),
            ),
            (
                b"/sbin/docker-init\0--\0/usr/bin/ferrite-server\0-p\08000\0",
                Some(&["-p", "8000"]),
            ),
            (b"/sbin/init\0", None),
            (b"", None),
        ] {
            let args = args_behind_program(line);
            let args = args.map(|args| {
                args.into_iter()
                    .map(|arg| arg.into_string().expect("text"))
                    .collect()
            });
            let expected: Option<Vec<String>> =
                expected.map(|args| args.iter().map(|&arg| arg.to_owned()).collect());
            assert_eq!(args, expected, "{line:?}");
        }
    }
}
