//! Servers for the tests of the client: Ferrite as cargo builds it, or the distribution's redis-server, each
//! on a free port of the loopback with a directory of its own.
//!
//! Dropping a server ends exactly that process. What cannot be started is a failed test that says what is
//! missing.

#![allow(dead_code, reason = "every test target uses a part")]

pub(crate) mod cluster;

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long anything may take on a machine that does other things as well.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What runs behind the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Ferrite,
    Redis,
}

impl Kind {
    fn command(self) -> Command {
        let mut command = match self {
            Kind::Ferrite => Command::new(ferrite_server()),
            Kind::Redis => Command::new("redis-server"),
        };
        command.args([
            "--save",
            "",
            "--appendonly",
            "no",
            "--enable-debug-command",
            "yes",
        ]);
        if self == Kind::Redis {
            command.args(["--save", "", "--enable-protected-configs", "yes"]);
        }
        command
    }
}

/// A running server.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    pub(crate) directory: PathBuf,
}

impl Server {
    /// Starts a server with further options and waits until it answers.
    ///
    /// # Panics
    /// It does not.
    pub(crate) fn start(kind: Kind, options: &[&str]) -> Server {
        Server::start_at(free_port, kind, options)
    }

    /// The same at a port that is chosen otherwise.
    ///
    /// # Panics
    /// It does not come up.
    pub(crate) fn start_at(port: fn() -> u16, kind: Kind, options: &[&str]) -> Server {
        // Another process may take the port between our look and the server's, or it cannot start at all.
        if let Some(server) = (0..5).find_map(|_| Server::try_start(port(), kind, options)) {
            return server;
        }
        panic!(
            "{kind:?} does not come up; is Debian's package redis-server installed (`make setup`)?"
        );
    }

    /// The same at this port. `None` if it does not come up.
    pub(crate) fn try_start(port: u16, kind: Kind, options: &[&str]) -> Option<Server> {
        let directory = fresh_directory("server");
        let mut server = Server {
            child: spawn(kind, port, &directory, options),
            port,
            directory,
        };
        server.answers().then_some(server)
    }

    /// Starts another server in the same place, after [`Server::stop`].
    pub(crate) fn start_again(&mut self, kind: Kind, options: &[&str]) {
        self.child = spawn(kind, self.port, &self.directory, options);
        assert!(self.answers(), "{kind:?} does not come up again");
    }

    /// Ends the process, as an operator's mistake would.
    pub(crate) fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.join("socket")
    }

    /// Sends one inline command and drops the connection once something came back.
    pub(crate) fn tell(&self, command: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the server listens");
        stream
            .write_all(format!("{command}\r\n").as_bytes())
            .expect("connected");
        let mut reply = [0; 4096];
        let count = stream.read(&mut reply).expect("connected");
        String::from_utf8_lossy(&reply[..count]).into_owned()
    }

    /// Whether the process answers, through its own socket: at the port may be somebody else who was quicker.
    fn answers(&mut self) -> bool {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if self.child.try_wait().expect("it is ours").is_some() {
                return false;
            }
            if let Ok(mut stream) = UnixStream::connect(self.socket()) {
                let _ = stream.write_all(b"PING\r\n");
                let mut reply = [0; 16];
                if stream.read(&mut reply).is_ok_and(|count| count > 0) {
                    return true;
                }
            }
            sleep(Duration::from_millis(20));
        }
        false
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn spawn(kind: Kind, port: u16, directory: &Path, options: &[&str]) -> Child {
    let log = fs::File::create(directory.join("log")).expect("the directory is ours");
    let result = kind
        .command()
        .args(["--bind", "127.0.0.1", "--port"])
        .arg(port.to_string())
        .arg("--unixsocket")
        .arg(directory.join("socket"))
        .arg("--dir")
        .arg(directory)
        .args(options)
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("a descriptor"))
        .stderr(log)
        .spawn();
    result.unwrap_or_else(|error| {
        panic!("{kind:?} cannot be started ({error}); `make setup` installs redis-server")
    })
}

/// The server beside the client that is being tested, brought up to date first: cargo builds only the
/// binaries of the package that a test belongs to.
pub(crate) fn ferrite_server() -> &'static Path {
    static SERVER: OnceLock<PathBuf> = OnceLock::new();
    SERVER.get_or_init(|| built("ferrite-server"))
}

/// The same for the load generator.
pub(crate) fn ferrite_bench() -> &'static Path {
    static BENCH: OnceLock<PathBuf> = OnceLock::new();
    BENCH.get_or_init(|| built("ferrite-bench"))
}

fn built(package: &str) -> PathBuf {
    let client = Path::new(env!("CARGO_BIN_EXE_ferrite-cli"));
    let directory = client.parent().expect("a file is in a directory");
    // `make test` has built everything before.
    if std::env::var_os("FERRITE_SERVER_IS_BUILT").is_some() {
        return directory.join(package);
    }
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--package", package]);
    if directory.ends_with("release") {
        build.arg("--release");
    }
    let target = directory
        .parent()
        .expect("the profile is in the target directory");
    build.arg("--target-dir").arg(target);
    let status = build.status().expect("cargo runs this test");
    assert!(status.success(), "{package} does not build");
    directory.join(package)
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("bound").port()
}

/// An empty directory of this process.
pub(crate) fn fresh_directory(name: &str) -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let pid = std::process::id();
    let directory = std::env::temp_dir().join(format!("ferrite-cli-{name}-{pid}-{number}"));
    fs::create_dir_all(&directory).expect("the temporary directory is writable");
    directory
}
