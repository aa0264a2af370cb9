//! The sources as one file, for hosts that build the server themselves.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

use crate::failure::{Failure, Result, reason};

/// A tar file of the sources.
pub(super) struct Archive {
    pub(super) bytes: Vec<u8>,
    /// What `cksum` says of it.
    pub(super) sum: String,
}

/// Packs what git knows of the sources, and what is new there, as it is on the disk; without git all but
/// `target`.
///
/// # Errors
/// There are none, or a program fails.
pub(super) fn pack(given: Option<&Path>) -> Result<Archive> {
    let root = find(given)?;
    let mut tar = Command::new("tar");
    tar.args(["-cf", "-", "-C"]).arg(&root);
    let files = files_of_git(&root);
    match &files {
        Some(_) => tar.args(["--null", "-T", "-"]),
        None => tar.args(["--exclude=./target", "--exclude=./.git", "."]),
    };
    let bytes = run(tar, "tar", files.unwrap_or_default())?.stdout;
    let sum = run(Command::new("cksum"), "cksum", bytes.clone())?.stdout;
    Ok(Archive {
        sum: String::from_utf8_lossy(&sum).trim().to_owned(),
        bytes,
    })
}

/// The workspace of the sources.
fn find(given: Option<&Path>) -> Result<PathBuf> {
    let is_it =
        |root: &&Path| root.join("Cargo.toml").is_file() && root.join("crates/server").is_dir();
    if let Some(given) = given {
        return match is_it(&given) {
            true => Ok(given.to_owned()),
            false => Err(Failure::Other(format!(
                "{} has no Cargo.toml and no crates/server: these are not the sources of Ferrite",
                given.display()
            ))),
        };
    }
    let own = std::env::current_exe().unwrap_or_default();
    let current = std::env::current_dir().unwrap_or_default();
    let found = own.ancestors().chain(current.ancestors()).find(is_it);
    found.map(Path::to_owned).ok_or_else(|| {
        Failure::other(
            "the sources are neither above this program nor above the current directory: --source \
             DIR says where",
        )
    })
}

/// The names of all files that git has or would take, each ended by a zero byte.
fn files_of_git(root: &Path) -> Option<Vec<u8>> {
    let mut git = Command::new("git");
    git.arg("-C").arg(root);
    git.args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]);
    let listed = run(git, "git", Vec::new()).ok()?.stdout;
    let is_there = |name: &&[u8]| {
        !name.is_empty()
            && root
                .join(OsStr::from_bytes(name))
                .symlink_metadata()
                .is_ok()
    };
    let names: Vec<&[u8]> = listed.split(|&byte| byte == 0).filter(is_there).collect();
    // A workspace that is in somebody else's repository.
    names.contains(&&b"Cargo.toml"[..]).then(|| {
        let mut text = names.join(&0);
        text.push(0);
        text
    })
}

/// What `cksum` says of a file, without its name.
///
/// # Errors
/// It cannot be read.
pub(super) fn sum(path: &Path) -> Result<String> {
    let failed = |error| {
        Failure::Other(format!(
            "cannot read {}: {}",
            path.display(),
            reason(&error)
        ))
    };
    let mut cksum = Command::new("cksum");
    cksum.stdin(File::open(path).map_err(failed)?);
    let output = cksum.output().map_err(failed)?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn run(mut command: Command, name: &str, input: Vec<u8>) -> Result<Output> {
    let failed = |why: String| Failure::Other(format!("{name}: {why}"));
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(reason(&error)))?;
    let mut stdin = child.stdin.take().expect("it is piped");
    // What is not read is told by the exit code.
    thread::spawn(move || stdin.write_all(&input).is_ok());
    let output = child
        .wait_with_output()
        .map_err(|error| failed(reason(&error)))?;
    match output.status.success() {
        true => Ok(output),
        false => Err(failed(
            String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        )),
    }
}
