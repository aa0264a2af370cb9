//! A server that is killed and started again in its directory.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::change::DATABASES;
use crate::support::{Client, PATIENCE, Value};

/// Small segments, so that compaction has something to do.
const SEGMENT: &str = "2mb";
const SOCKET: &str = "socket";

/// See the module. Dropping it ends the process and removes the directory, unless a test fails.
pub(crate) struct Process {
    child: Option<Child>,
    directory: PathBuf,
    policy: &'static str,
    threads: usize,
}

impl Process {
    /// One that is not started yet.
    pub(crate) fn new(policy: &'static str, threads: usize) -> Process {
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
        let mut command = Command::new(env!("CARGO_BIN_EXE_ferrite-server"));
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
            .args(["--log-blob-size", "16kb"])
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
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}
