//! The server process under test: Ferrite as cargo built it, the distribution's redis-server, or one of the
//! later servers that `make setup` has put into .venv (`programs` finds them).
//!
//! Invariants:
//! 1. A [`Server`] listens on the loopback only, on a port of its own, with a directory of its own.
//! 2. Dropping it ends exactly that process, by its process id, and removes the directory.
//! 3. A target that cannot be started is a failed test that says what is missing, never a skipped one.

use std::fmt;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::client::{Client, PATIENCE};
use super::disk::SmallDisk;
use super::group::MemoryGroup;
use super::ports::free_port;
use super::programs;
use super::value::{Proto, Value};

/// The configuration file of a server that has one, in its directory.
const CONFIG_FILE: &str = "server.conf";

/// What is being tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Redis,
    /// redis-server with no option but where it listens and works: all else is as a file says, or at its
    /// default.
    RedisAsIs,
    /// The redis-server 8.2 of .venv.
    Redis8,
    /// The Valkey of .venv.
    Valkey,
    /// Ferrite with no option but where it listens and works.
    AsIs,
    Ferrite {
        threads: usize,
    },
    /// Ferrite with its log.
    Logged {
        threads: usize,
    },
    /// Ferrite with its log, on the disk before each reply.
    Synced {
        threads: usize,
    },
    /// Ferrite with its log, and whatever a command uses is in the log alone when it begins.
    Cold {
        threads: usize,
    },
    /// Ferrite that makes trees of all collections but the smallest.
    Trees {
        threads: usize,
    },
    /// Both.
    ColdTrees {
        threads: usize,
    },
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Redis => write!(f, "redis"),
            Target::RedisAsIs => write!(f, "redis as it is"),
            Target::Redis8 => write!(f, "redis8"),
            Target::Valkey => write!(f, "valkey"),
            Target::AsIs => write!(f, "ferrite as it is"),
            Target::Ferrite { threads } => write!(f, "ferrite{threads}"),
            Target::Logged { threads } => write!(f, "logged{threads}"),
            Target::Synced { threads } => write!(f, "synced{threads}"),
            Target::Cold { threads } => write!(f, "cold{threads}"),
            Target::Trees { threads } => write!(f, "trees{threads}"),
            Target::ColdTrees { threads } => write!(f, "coldtrees{threads}"),
        }
    }
}

impl Target {
    fn is_logged(self) -> bool {
        matches!(
            self,
            Target::AsIs
                | Target::Logged { .. }
                | Target::Synced { .. }
                | Target::Cold { .. }
                | Target::ColdTrees { .. }
        )
    }

    /// Whether it is the distribution's redis-server.
    pub(crate) fn is_redis(self) -> bool {
        matches!(self, Target::Redis | Target::RedisAsIs)
    }

    /// Whether it is this server, in one form or another.
    pub(crate) fn is_ferrite(self) -> bool {
        !self.is_redis() && !matches!(self, Target::Redis8 | Target::Valkey)
    }

    /// Whether nothing is said on the command line that a file might say.
    fn is_as_it_is(self) -> bool {
        matches!(self, Target::AsIs | Target::RedisAsIs)
    }

    /// The command without port and directory. Most targets are caches, without log and save points: what a
    /// script tests is the command, not the disk.
    fn command(self) -> Command {
        match self {
            Target::RedisAsIs => Command::new("redis-server"),
            Target::AsIs => Command::new(env!("CARGO_BIN_EXE_ferrite-server")),
            Target::Redis | Target::Redis8 | Target::Valkey => {
                let mut command = match self {
                    Target::Redis8 => Command::new(programs::redis8()),
                    Target::Valkey => Command::new(programs::valkey()),
                    _ => Command::new("redis-server"),
                };
                command.args([
                    "--save",
                    "",
                    "--appendonly",
                    "no",
                    "--enable-debug-command",
                    "yes",
                ]);
                command
            }
            Target::Ferrite { threads }
            | Target::Logged { threads }
            | Target::Synced { threads }
            | Target::Cold { threads }
            | Target::Trees { threads }
            | Target::ColdTrees { threads } => {
                let sync = match self {
                    Target::Synced { .. } => "always",
                    _ => "everysec",
                };
                let mut command = Command::new(env!("CARGO_BIN_EXE_ferrite-server"));
                command.args([
                    "--threads",
                    &threads.to_string(),
                    "--save",
                    "",
                    "--appendonly",
                    if self.is_logged() { "yes" } else { "no" },
                    "--appendfsync",
                    sync,
                    "--enable-debug-command",
                    "yes",
                ]);
                command
            }
        }
    }
}

/// A server that did not come up: how it ended and what it printed.
#[derive(Debug)]
pub(crate) struct StartFailure {
    /// `None`: it was still running but did not answer.
    pub(crate) status: Option<ExitStatus>,
    pub(crate) command: String,
    pub(crate) output: String,
}

impl fmt::Display for StartFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Some(status) => write!(f, "the server ended ({status}) before it answered a PING")?,
            None => write!(
                f,
                "the server did not answer a PING within {} s",
                PATIENCE.as_secs()
            )?,
        }
        write!(
            f,
            "\n  command: {}\n  its output:\n{}",
            self.command,
            indented(&self.output)
        )
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

/// Lines of a server's output that are shown if a test fails.
const LAST_LINES: usize = 30;

/// A running server process.
pub(crate) struct Server {
    child: Child,
    addr: SocketAddr,
    dir: PathBuf,
}

impl Server {
    /// Starts `target` with further command line options and waits until it answers.
    ///
    /// # Panics
    /// When it does not come up; the message holds everything it printed.
    pub(crate) fn start(target: Target, options: &[&str]) -> Self {
        Self::try_start(target, &[], options)
            .unwrap_or_else(|failure| panic!("{target}: {failure}"))
    }

    /// As [`Server::start`], with a configuration file of these lines where there are any.
    ///
    /// # Errors
    /// The process ended, or did not answer in time.
    pub(crate) fn try_start(
        target: Target,
        config: &[String],
        options: &[&str],
    ) -> Result<Self, StartFailure> {
        Self::start_as(target, config, options, |command| command)
    }

    /// As [`Server::start`], inside of a group.
    ///
    /// # Panics
    /// As [`Server::start`].
    pub(crate) fn start_in(group: &MemoryGroup, target: Target, options: &[&str]) -> Self {
        Self::start_as(target, &[], options, |command| group.enter(&command))
            .unwrap_or_else(|failure| panic!("{target}: {failure}"))
    }

    /// As [`Server::try_start`], by the command that `made_of` makes of its own.
    fn start_as(
        target: Target,
        config: &[String],
        options: &[&str],
        made_of: impl Fn(Command) -> Command,
    ) -> Result<Self, StartFailure> {
        programs::require(target);
        let mut attempt = 0;
        loop {
            let dir = fresh_dir();
            let port = free_port();
            let mut command = target.command();
            // Both programs take a configuration file as the first argument only.
            if !config.is_empty() {
                command = with_config(&command, &dir, config);
            }
            place(&mut command, target, port, &dir);
            let command = made_of(command);
            match Self::spawn(target, command, options, loopback(port), dir) {
                // Another process took the port between our look and the server's.
                Err(failure) if failure.output.contains("in use") && attempt < 5 => attempt += 1,
                result => return result,
            }
        }
    }

    /// As [`Server::try_start`], at an address that somebody else has chosen, in a directory that exists.
    ///
    /// # Errors
    /// As [`Server::try_start`].
    pub(crate) fn start_at(
        target: Target,
        addr: SocketAddr,
        dir: PathBuf,
        options: &[&str],
    ) -> Result<Self, StartFailure> {
        programs::require(target);
        let mut command = target.command();
        command.args(["--bind", &addr.ip().to_string()]);
        command.args(["--port", &addr.port().to_string(), "--dir"]);
        command.arg(&dir);
        Self::spawn(target, command, options, addr, dir)
    }

    /// Ends the process with a signal and starts it again in the same directory, on another port. A server
    /// that is as it is starts with the configuration file that it had.
    ///
    /// # Panics
    /// When it does not end, or does not come up again.
    pub(crate) fn start_again(&mut self, target: Target, signal: Signal, options: &[&str]) {
        if self.has_ended().is_none() {
            self.signal(signal);
        }
        assert!(self.wait_for_exit().is_some(), "{}", self.output());
        let dir = std::mem::take(&mut self.dir);
        *self = Self::start_with(&dir, target, options, |command| command);
    }

    /// As [`Server::start`], with the data on a disk.
    ///
    /// # Panics
    /// As [`Server::start`].
    pub(crate) fn start_on(disk: &SmallDisk, target: Target, options: &[&str]) -> Self {
        Self::start_with(disk.dir(), target, options, |command| disk.enter(&command))
    }

    /// As [`Server::start_again`], of a server with its data on a disk.
    ///
    /// # Panics
    /// As [`Server::start_again`].
    pub(crate) fn start_again_on(
        &mut self,
        disk: &SmallDisk,
        target: Target,
        signal: Signal,
        options: &[&str],
    ) {
        if self.has_ended().is_none() {
            self.signal(signal);
        }
        assert!(self.wait_for_exit().is_some(), "{}", self.output());
        // The directory goes with the disk.
        self.dir = PathBuf::new();
        *self = Self::start_on(disk, target, options);
    }

    /// Starts a server in a directory, by the command that `made_of` makes of its own.
    fn start_with(
        dir: &Path,
        target: Target,
        options: &[&str],
        made_of: impl Fn(Command) -> Command,
    ) -> Self {
        let mut attempt = 0;
        loop {
            let (port, mut command) = (free_port(), target.command());
            let config = dir.join(CONFIG_FILE);
            if target.is_as_it_is() && config.exists() {
                command.arg(config);
            }
            place(&mut command, target, port, dir);
            let command = made_of(command);
            match Self::spawn(target, command, options, loopback(port), dir.to_owned()) {
                Err(failure) if failure.output.contains("in use") && attempt < 5 => attempt += 1,
                result => return result.unwrap_or_else(|failure| panic!("{target}: {failure}")),
            }
        }
    }

    fn spawn(
        target: Target,
        mut command: Command,
        options: &[&str],
        addr: SocketAddr,
        dir: PathBuf,
    ) -> Result<Self, StartFailure> {
        let output =
            fs::File::create(dir.join("output")).expect("the test's own directory is writable");
        let errors = output.try_clone().expect("a file handle can be duplicated");
        command
            .args(options)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors);
        let described = format!("{command:?}");
        let child = command
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {described}: {error}"));
        let mut server = Self { child, addr, dir };
        match server.wait_until_it_answers(target) {
            Ok(()) => Ok(server),
            Err(status) => Err(StartFailure {
                status,
                command: described,
                output: server.output(),
            }),
        }
    }

    /// # Errors
    /// The exit status, or `None` when it is alive but silent.
    fn wait_until_it_answers(&mut self, target: Target) -> Result<(), Option<ExitStatus>> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if let Some(status) = self.has_ended() {
                return Err(Some(status));
            }
            if let Ok(mut client) = Client::connect(self.addr) {
                // Any other reply will do: a server with a password answers NOAUTH. What others do until a
                // snapshot is loaded is for tests to see.
                match client.call(&["PING"]) {
                    Ok(Value::Error(text))
                        if text.starts_with(b"LOADING") && target.is_logged() => {}
                    Ok(_) => {
                        // One with a password refuses it, and is as any other.
                        let _ = match target {
                            Target::Cold { .. } => client.call(&["DEBUG", "OFFLOAD-ALL", "1"]),
                            Target::Trees { .. } => client.call(&["DEBUG", "SMALL-BYTES", "64"]),
                            Target::ColdTrees { .. } => client
                                .call(&["DEBUG", "SMALL-BYTES", "64"])
                                .and_then(|_| client.call(&["DEBUG", "OFFLOAD-ALL", "1"])),
                            _ => Ok(Value::Null),
                        };
                        // Behind its end the server has forgotten it: connections of the test are spread over
                        // workers as if there had been none before.
                        client.finish_sending();
                        let _ = client.read_until_quiet(PATIENCE);
                        return Ok(());
                    }
                    Err(_) => {}
                }
            }
            sleep(Duration::from_millis(10));
        }
        Err(None)
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The server's working directory, removed with it.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Everything the process has printed so far.
    pub(crate) fn output(&self) -> String {
        let bytes = fs::read(self.dir.join("output")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// A new connection that speaks RESP2.
    pub(crate) fn client(&self) -> Client {
        Client::connect(self.addr).unwrap_or_else(|error| {
            panic!(
                "cannot connect to {}: {error}\n{}",
                self.addr,
                self.output()
            )
        })
    }

    /// A new connection that speaks `proto`.
    pub(crate) fn client_with(&self, proto: Proto) -> Client {
        let mut client = self.client();
        if proto == Proto::Resp3 {
            let reply = client.ask("HELLO 3");
            assert!(matches!(reply, Value::Map(_)), "HELLO 3 answered {reply:?}");
        }
        client
    }

    /// Sends the process a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("our own child can be signalled");
    }

    /// How the process ended, if it has.
    pub(crate) fn has_ended(&mut self) -> Option<ExitStatus> {
        self.child
            .try_wait()
            .expect("our own child can be waited for")
    }

    /// Waits for the process to end by itself; `None` when it has not within a generous wait.
    pub(crate) fn wait_for_exit(&mut self) -> Option<ExitStatus> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if let Some(status) = self.has_ended() {
                return Some(status);
            }
            sleep(Duration::from_millis(10));
        }
        None
    }

    /// Resident memory in bytes.
    pub(crate) fn resident_bytes(&self) -> u64 {
        self.status_bytes("VmRSS:")
    }

    /// The most resident memory that there ever was, in bytes.
    pub(crate) fn most_resident_bytes(&self) -> u64 {
        self.status_bytes("VmHWM:")
    }

    /// Whether the process has a thread of this name now.
    pub(crate) fn has_thread(&self, name: &str) -> bool {
        let threads = fs::read_dir(format!("/proc/{}/task", self.pid())).expect("the process runs");
        threads.flatten().any(|thread| {
            let comm = fs::read_to_string(thread.path().join("comm"));
            comm.is_ok_and(|comm| comm.trim_end() == name)
        })
    }

    /// A figure of what the system tells of the process.
    fn status_bytes(&self, field: &str) -> u64 {
        let status =
            fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("the process runs");
        let line = status.lines().find_map(|line| line.strip_prefix(field));
        let kibibytes: Option<u64> = line
            .and_then(|line| line.split_whitespace().next())
            .and_then(|word| word.parse().ok());
        kibibytes.unwrap_or_else(|| panic!("{field} is a number, unless the server has ended"))
            * 1024
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only where the process has ended already, which is what they are for.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let output = self.output();
            let lines: Vec<&str> = output.lines().collect();
            let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
            eprintln!("a server of the test wrote last:\n{}", indented(&last));
        }
        super::remove_data(&self.dir);
    }
}

/// Where a server listens and works.
fn place(command: &mut Command, target: Target, port: u16, dir: &Path) {
    if !target.is_as_it_is() {
        command.args(["--bind", "127.0.0.1"]);
    }
    command
        .arg("--port")
        .arg(port.to_string())
        .arg("--dir")
        .arg(dir);
}

/// The same program with a configuration file before its options.
fn with_config(command: &Command, dir: &Path, config: &[String]) -> Command {
    let path = dir.join(CONFIG_FILE);
    fs::write(&path, config.join("\n") + "\n").expect("the test's own directory is writable");
    let mut changed = Command::new(command.get_program());
    changed.arg(path).args(command.get_args());
    changed
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// A new directory for the data of a server, which removes it.
pub(crate) fn fresh_dir() -> PathBuf {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let name = format!(
        "ferrite-test-{}-{}",
        std::process::id(),
        NUMBER.fetch_add(1, Ordering::Relaxed)
    );
    let dir = std::env::temp_dir().join(name);
    fs::create_dir_all(&dir)
        .unwrap_or_else(|error| panic!("cannot create {}: {error}", dir.display()));
    dir
}
