//! The server under torture: a process that is started, stopped, killed and started again in one directory.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{PATIENCE, Value};
use crate::torture::model::DATABASES;
use crate::torture::slots::{self, Slots};
use crate::torture::wire::Connection;

/// The directory of the log in that of the server.
pub(crate) const LOG: &str = "appendonlydir";
/// The map of a node of a cluster.
const MAP: &str = "map.toml";
/// What it prints.
const OUTPUT: &str = "output";

/// What is always so. Options of the script come behind, and count more.
const OPTIONS: &[(&str, &str)] = &[
    ("save", ""),
    ("appendonly", "yes"),
    ("enable-debug-command", "yes"),
    ("log-segment-size", "2mb"),
    ("shards", "16"),
    ("threads", "2"),
    ("unixsocket", "socket"),
];

/// The program: what FERRITE_SERVER names, or as cargo has built it.
pub(crate) fn program() -> PathBuf {
    std::env::var_os("FERRITE_SERVER").map_or_else(
        || PathBuf::from(env!("CARGO_BIN_EXE_ferrite-server")),
        PathBuf::from,
    )
}

/// See the module. Dropping it ends the process and removes the directory.
pub(crate) struct Process {
    child: Option<Child>,
    directory: PathBuf,
    port: u16,
    /// What the map of a node of a cluster gives to it, and how often the map was written.
    pub(crate) slots: Slots,
    epoch: u64,
    /// How much of the output was looked at.
    seen: usize,
}

impl Process {
    /// One that is not started yet, in a new directory.
    pub(crate) fn new() -> Process {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("ferrite-torture-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).expect("the directory for temporary files is writable");
        Process {
            child: None,
            directory,
            port: 0,
            slots: Slots::All,
            epoch: 0,
            seen: 0,
        }
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn is_running(&self) -> bool {
        self.child.is_some()
    }

    /// Starts the program; options are `name=value`.
    pub(crate) fn spawn(&mut self, options: &[String]) {
        let output = File::options()
            .create(true)
            .append(true)
            .open(self.directory.join(OUTPUT));
        let output = output.expect("the directory is ours");
        let errors = output.try_clone().expect("it is open");
        self.port = crate::support::free_port();
        let config = self.directory.join("server.conf");
        if !config.exists() {
            fs::write(&config, "# CONFIG REWRITE writes here.\n").expect("the directory is ours");
        }
        let mut command = Command::new(program());
        command.arg(config);
        let fixed = OPTIONS
            .iter()
            .map(|&(name, value)| (name.to_owned(), value.to_owned()));
        if options.iter().any(|option| option == slots::OPTION) {
            self.write_map();
            command.args([
                "--cluster-enabled",
                "yes",
                "--cluster-map",
                MAP,
                "--cluster-node",
                "a",
            ]);
        }
        let options = options.iter().filter(|option| *option != slots::OPTION);
        let asked = options.map(|option| {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            (name.to_owned(), value.replace(',', " "))
        });
        // What the configuration file has of an earlier life counts for nothing.
        let defaults = [
            ("appendfsync", "everysec"),
            ("maxmemory-policy", "offload"),
            ("maxmemory", "0"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        for (name, value) in fixed.chain(defaults).chain(asked) {
            command.arg(format!("--{name}")).arg(value);
        }
        // The last one is for connections that wait.
        let databases = (DATABASES + 1).to_string();
        command
            .args(["--bind", "127.0.0.1", "--databases", &databases])
            .args(["--port", &self.port.to_string(), "--dir"])
            .arg(&self.directory)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors);
        self.child = Some(command.spawn().expect("the program is there"));
    }

    /// Writes the map that the server reads next.
    pub(crate) fn write_map(&mut self) {
        self.epoch += 1;
        let text = self.slots.text(self.epoch, self.port);
        fs::write(self.directory.join(MAP), text).expect("the directory is ours");
    }

    /// Waits until the server takes commands.
    ///
    /// # Errors
    /// It ends, or does not answer.
    pub(crate) fn wait_until_ready(&mut self, clock: &Arc<AtomicU64>) -> Result<(), String> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if let Ok(mut connection) = self.connect(true, clock)
                && let Ok(Value::Int(_)) = connection.ask("DBSIZE", PATIENCE)
            {
                return Ok(());
            }
            if let Some(status) = self.has_ended() {
                return Err(format!("the server ended: {status}\n{}", self.tail()));
            }
            sleep(Duration::from_millis(3));
        }
        Err(format!("the server does not answer\n{}", self.silent()))
    }

    fn has_ended(&mut self) -> Option<ExitStatus> {
        let child = self.child.as_mut()?;
        let status = child.try_wait().expect("it is ours")?;
        self.child = None;
        Some(status)
    }

    /// Ends it with SIGKILL.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("it is ours");
            child.wait().expect("it is ours");
        }
    }

    /// Where it listens over TCP.
    pub(crate) fn addr(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }

    /// Waits until it has ended, which it is asked for with SIGTERM, unless it was asked already.
    ///
    /// # Errors
    /// It does not, or not as it should.
    pub(crate) fn stop(&mut self, by_signal: bool) -> Result<(), String> {
        let Some(child) = &self.child else {
            return Ok(());
        };
        if by_signal {
            kill_process(Pid::from_child(child), Signal::TERM).expect("it is ours");
        }
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            match self.has_ended() {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(format!("{status}\n{}", self.tail())),
                None => sleep(Duration::from_millis(3)),
            }
        }
        Err(format!("it does not end\n{}", self.silent()))
    }

    /// A new connection, over one or the other kind of socket.
    ///
    /// # Errors
    /// Those of the connection attempt.
    pub(crate) fn connect(
        &self,
        is_unix: bool,
        clock: &Arc<AtomicU64>,
    ) -> std::io::Result<Connection> {
        if is_unix {
            Connection::unix(&self.directory.join("socket"), clock)
        } else {
            Connection::tcp(self.addr(), clock)
        }
    }

    /// Runs the program on the log of the stopped server: `--check-log`. The exit code and what it says.
    pub(crate) fn check_log(&self) -> (i32, String) {
        let mut command = Command::new(program());
        let output = command
            .arg("--check-log")
            .arg(self.directory.join(LOG))
            .output();
        let output = output.expect("the program is there");
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        (output.status.code().unwrap_or(-1), text)
    }

    /// Resident memory in bytes; the most that there was.
    pub(crate) fn most_resident_bytes(&self) -> Option<u64> {
        let pid = self.child.as_ref()?.id();
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))?;
        let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
        Some(kibibytes * 1024)
    }

    /// The lines printed since the last time.
    pub(crate) fn new_output(&mut self) -> String {
        let output = self.output();
        let new = output.get(self.seen..).unwrap_or_default().to_owned();
        self.seen = output.len();
        new
    }

    fn output(&self) -> String {
        let bytes = fs::read(self.directory.join(OUTPUT)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The last lines of the output of a server that does not answer, and where its threads are if there is a
    /// debugger.
    pub(crate) fn silent(&self) -> String {
        let threads = self.child.as_ref().and_then(|child| {
            let output = Command::new("gdb")
                .args(["-batch", "-p", &child.id().to_string()])
                .args(["-ex", "set print frame-arguments none"])
                .args(["-ex", "thread apply all backtrace 24"])
                .stdin(Stdio::null())
                .output()
                .ok()?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            text.find("Thread ").map(|from| text[from..].to_owned())
        });
        format!("{}\n{}", self.tail(), threads.unwrap_or_default())
    }

    /// The last lines of the output; from the first panic on, if there is one.
    pub(crate) fn tail(&self) -> String {
        let output = self.output();
        let lines: Vec<&str> = output.lines().collect();
        let panicked = lines.iter().position(|line| line.contains(" panicked at "));
        let last = lines.len().saturating_sub(12);
        let from = panicked.map_or(last, |line| line.min(last));
        let to = lines.len().min(from + 100);
        lines[from..to].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if std::env::var_os("FERRITE_TORTURE_KEEP").is_some() {
            eprintln!("what is left is in {}", self.directory.display());
        } else {
            crate::support::remove_data(&self.directory);
        }
    }
}
