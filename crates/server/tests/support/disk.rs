//! A small file system of a test's own, in memory. A mount namespace has it that no other process sees, so it
//! is gone when the test ends, however that is.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::fresh_dir;

/// Bytes that are written to fill it, at first.
const PIECE: usize = 1 << 20;

/// See the module. Dropped behind the servers on it.
pub(crate) struct SmallDisk {
    /// Keeps the namespace.
    holder: Child,
    /// Where it is mounted.
    dir: PathBuf,
}

impl SmallDisk {
    /// A file system for so many bytes.
    ///
    /// # Errors
    /// This process may make none; the text says why.
    pub(crate) fn new(bytes: u64) -> Result<SmallDisk, String> {
        let dir = fresh_dir();
        let script = "mount -t tmpfs -o \"size=$1\" tmpfs \"$0\" && echo ready && exec cat";
        let holder = Command::new("unshare")
            .args(["--mount", "sh", "-c", script])
            .arg(&dir)
            .arg(bytes.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut holder = holder.map_err(|error| format!("unshare: {error}"))?;
        let mut said = String::new();
        let output = holder.stdout.take().map(BufReader::new);
        let _ = output.map(|mut output| output.read_line(&mut said));
        let disk = SmallDisk { holder, dir };
        match said.trim() {
            "ready" => Ok(disk),
            _ => Err("no file system can be mounted in a namespace of its own".into()),
        }
    }

    /// Where it is mounted, for a process in the namespace.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The same command, run where the file system is.
    pub(crate) fn enter(&self, command: &Command) -> Command {
        let mut inside = Command::new("nsenter");
        inside
            .args(["--mount", "--target"])
            .arg(self.holder.id().to_string())
            .arg("--")
            .arg(command.get_program())
            .args(command.get_args());
        inside
    }

    /// A path on the file system, as this process finds it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.holder.id()));
        let dir = self.dir.strip_prefix("/").unwrap_or(&self.dir);
        root.join(dir).join(name)
    }

    /// Takes all space that is left.
    pub(crate) fn fill(&self) {
        let mut file = File::options()
            .create(true)
            .append(true)
            .open(self.path("filler"))
            .expect("the file system is there");
        let (mut piece, zeroes) = (PIECE, vec![0; PIECE]);
        while piece > 0 {
            if file.write_all(&zeroes[..piece]).is_err() {
                piece /= 2;
            }
        }
    }

    /// Gives that space back.
    pub(crate) fn clear(&self) {
        fs::remove_file(self.path("filler")).expect("it was filled");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
        super::remove_data(&self.dir);
    }
}
