//! Servers for the load generator to load, and the generator's own process.
//!
//! Lives here: starting redis-server and ferrite-server on free ports with directories of their own, and
//! running ferrite-bench. A server that is dropped is ended by its process id, and its directory removed.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long to wait for what must happen: a machine may be slow, but a hang is a failure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A running server.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) port: u16,
    pub(crate) dir: PathBuf,
    command: Vec<String>,
}

impl Server {
    /// The distribution's redis-server, without any persistence.
    pub(crate) fn redis(options: &[&str]) -> Server {
        let mut command = vec!["redis-server", "--save", "", "--appendonly", "no"];
        command.extend(options);
        Server::start(&command)
    }

    /// Ferrite as cargo builds it, with two workers.
    pub(crate) fn ferrite() -> Server {
        let program = ferrite_server().display().to_string();
        Server::start(&[
            &program,
            "--save",
            "",
            "--appendonly",
            "no",
            "--threads",
            "2",
        ])
    }

    /// Any server that takes the options of redis-server.
    pub(crate) fn start(command: &[&str]) -> Server {
        Server::start_at(free_port, command)
    }

    /// The same at a port that is chosen otherwise.
    pub(crate) fn start_at(port: fn() -> u16, command: &[&str]) -> Server {
        // Another process may take the port between our look and the server's.
        let server = (0..5).find_map(|_| Server::try_start(port(), command));
        server.unwrap_or_else(|| panic!("{command:?} does not start"))
    }

    /// The same at this port. `None` if it does not start.
    pub(crate) fn try_start(port: u16, command: &[&str]) -> Option<Server> {
        let dir = fresh_dir();
        let mut words: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
        let port_word = port.to_string();
        let dir_word = dir.display().to_string();
        let place = [
            "--bind",
            "127.0.0.1",
            "--port",
            &port_word,
            "--dir",
            &dir_word,
        ];
        words.extend(place.map(str::to_owned));
        let mut server = Server {
            child: spawn(&words),
            port,
            dir,
            command: words,
        };
        server.wait_until_it_answers().then_some(server)
    }

    /// Ends it without any warning.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it is our child");
        self.child.wait().expect("it is our child");
    }

    /// Starts the same command again after it has ended.
    pub(crate) fn restart(&mut self) {
        self.child = spawn(&self.command);
        assert!(self.wait_until_it_answers(), "{:?}", self.command);
    }

    fn wait_until_it_answers(&mut self) -> bool {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if self.child.try_wait().expect("it is our child").is_some() {
                return false;
            }
            if ask(self.port, "PING").is_some() {
                return true;
            }
            sleep(Duration::from_millis(10));
        }
        panic!("{:?} does not answer", self.command);
    }

    pub(crate) fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.child)
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(self.pid(), signal).expect("it is our child");
    }

    /// What the server answers to an inline command, as it is on the wire.
    pub(crate) fn ask(&self, line: &str) -> String {
        ask(self.port, line).expect("it runs")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only where the process has ended already, which is what they are for.
        let _ = self.child.kill();
        let _ = self.child.wait();
        // A directory left behind harms no later run: no name is used twice.
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn spawn(words: &[String]) -> Child {
    Command::new(&words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| {
            panic!(
                "{} cannot be started ({error}); make setup installs it",
                words[0]
            )
        })
}

fn ask(port: u16, line: &str) -> Option<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream
        .write_all(format!("{line}\r\nQUIT\r\n").as_bytes())
        .ok()?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply).ok()?;
    Some(reply.strip_suffix("+OK\r\n")?.to_owned())
}

/// The server's program, which belongs to another package, so cargo is asked to build it; it does
/// nothing when it is there already.
pub(crate) fn ferrite_server() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        // Beside our own program, in the directory of the profile that is being tested.
        let beside =
            Path::new(env!("CARGO_BIN_EXE_ferrite-bench")).with_file_name("ferrite-server");
        // `make test` has built everything before.
        if std::env::var_os("FERRITE_SERVER_IS_BUILT").is_some() {
            return beside;
        }
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
        let status = Command::new(cargo)
            .args(["build", "--quiet", "-p", "ferrite-server"])
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
            .status()
            .expect("cargo runs these tests");
        assert!(status.success(), "ferrite-server does not build");
        beside
    })
}

/// A directory of its own, which is removed with whatever it belongs to.
pub(crate) fn fresh_dir() -> PathBuf {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("ferrite-bench-{}-{number}", std::process::id());
    let dir = std::env::temp_dir().join(name);
    fs::create_dir_all(&dir).expect("the temporary directory is writable");
    dir
}

pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a free port");
    listener.local_addr().expect("it is bound").port()
}

/// ferrite-bench with the words of a line and a server's port.
pub(crate) fn bench(server: &Server, line: &str) -> Output {
    bench_words(&[&["-p", &server.port.to_string()], &words(line)[..]].concat())
}

/// A line's words.
pub(crate) fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// ferrite-bench with these words.
pub(crate) fn bench_words(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ferrite-bench"))
        .args(words)
        .stdin(Stdio::null())
        .output()
        .expect("it was built for these tests")
}

/// What a run that must succeed has printed.
pub(crate) fn printed(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{text}{errors}", output.status);
    text
}

/// What a run that must fail has printed, on both streams.
pub(crate) fn failed(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "it succeeded:\n{text}{errors}");
    text + &errors
}
