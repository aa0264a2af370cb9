//! A server that is killed and started again in its directory.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::crash::change::{DATABASES, Sizes};
use crate::support::{Client, PATIENCE, Value};

/// Small segments, so that compaction has something to do.
const SEGMENT: &str = "2mb";
const SOCKET: &str = "socket";

/// The server that is tested: `FERRITE_SERVER`, or the one that cargo has built.
fn program() -> OsString {
    let built = || env!("CARGO_BIN_EXE_ferrite-server").into();
    std::env::var_os("FERRITE_SERVER").unwrap_or_else(built)
}

/// See the module. Dropping it ends the process and removes the directory, unless a test fails.
pub(crate) struct Process {
    child: Option<Child>,
    directory: PathBuf,
    policy: &'static str,
    threads: usize,
    /// The shortest value that has a file of its own.
    blob_size: &'static str,
}

impl Process {
    /// One that is not started yet.
    pub(crate) fn new(policy: &'static str, threads: usize, sizes: Sizes) -> Process {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("ferrite-crash-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).expect("the directory for temporary files is writable");
        Process {
            child: None,
            directory,
            policy,
            threads,
            blob_size: match sizes {
                Sizes::Small => "16kb",
                Sizes::Large => "256kb",
            },
        }
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    fn spawn(&mut self) {
        let output = File::options()
            .create(true)
            .append(true)
            .open(self.directory.join("output"))
            .expect("the directory is ours");
        let errors = output.try_clone().expect("it is open");
        let mut command = Command::new(program());
        command
            .args(["--save", "", "--appendonly", "yes"])
            .args([
                "--enable-debug-command",
                "yes",
                "--appendfsync",
                self.policy,
            ])
            .args(["--log-segment-size", SEGMENT])
            // Some values are large enough for files of their own.
            .args(["--log-blob-size", self.blob_size])
            .args(["--databases", &DATABASES.to_string()])
            .args(["--threads", &self.threads.to_string()])
            // Nobody else listens there.
            .args(["--port", "0", "--unixsocket", SOCKET])
            .arg("--dir")
            .arg(&self.directory)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors);
        self.child = Some(command.spawn().expect("cargo has built it"));
    }

    /// Starts the server and waits until it takes commands.
    pub(crate) fn start(&mut self) {
        self.spawn();
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if let Ok(mut client) = Client::connect_unix(&self.directory.join(SOCKET))
                && let Ok(Value::Int(_)) = client.call(&["DBSIZE"])
            {
                return;
            }
            let child = self.child.as_mut().expect("it was just started");
            if let Some(status) = child.try_wait().expect("it is ours") {
                panic!("the server ended: {status}\n{}", self.output());
            }
            sleep(Duration::from_millis(5));
        }
        panic!("the server does not answer\n{}", self.output());
    }

    /// Starts the server and kills it after a while, whatever it does by then.
    pub(crate) fn start_and_kill(&mut self, after: Duration) {
        self.spawn();
        sleep(after);
        self.kill();
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("it is ours");
            child.wait().expect("it is ours");
        }
    }

    /// Ends the server in good order.
    pub(crate) fn stop(&mut self) {
        let mut child = self.child.take().expect("it runs");
        let pid = Pid::from_child(&child);
        kill_process(pid, Signal::TERM).expect("it is ours");
        let status = child.wait().expect("it is ours");
        assert!(status.success(), "{status}\n{}", self.output());
    }

    /// Looks at the log that is left: a start must take it as it is.
    pub(crate) fn check_log(&self) {
        let told = Command::new(program())
            .arg("--check-log")
            .arg(self.directory.join("appendonlydir"))
            .output()
            .expect("cargo has built it");
        let text = String::from_utf8_lossy(&told.stdout).into_owned();
        let errors = String::from_utf8_lossy(&told.stderr).into_owned();
        let directory = self.directory.display();
        assert!(told.status.success(), "{text}{errors}\n{directory}");
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect_unix(&self.directory.join(SOCKET)).expect("the server listens")
    }

    /// Everything that was printed, by all lives.
    pub(crate) fn output(&self) -> String {
        fs::read_to_string(self.directory.join("output")).unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!("what is left is in {}", self.directory.display());
        } else {
            crate::support::remove_data(&self.directory);
        }
    }
}
