//! `ferrite-cli cluster` with real servers.

mod bench;
mod hosts;
mod local;
mod rebalance;
mod refused;
mod status;
mod stop;

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::{PATIENCE, ferrite_bench, ferrite_server, fresh_directory};

/// Standard output, standard error and exit code of `ferrite-cli`.
fn client(arguments: &[&str]) -> (String, String, i32) {
    let output = Command::new(env!("CARGO_BIN_EXE_ferrite-cli"))
        .args(arguments)
        .output()
        .expect("the program runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().expect("no signal ended it");
    (text(&output.stdout), text(&output.stderr), code)
}

/// The same of `ferrite-cli cluster`.
fn cluster(arguments: &[&str]) -> (String, String, i32) {
    // The machine may be slow.
    client(&[&["-t", "60", "cluster"], arguments].concat())
}

/// A directory for `cluster local`, and what it has started there, which ends with it.
struct Local {
    /// Around the cluster's.
    home: PathBuf,
    directory: PathBuf,
    first: u16,
    count: u16,
}

impl Local {
    /// Starts nothing yet.
    fn new(count: u16) -> Local {
        // They are beside the client.
        ferrite_server();
        ferrite_bench();
        let home = fresh_directory("local");
        Local {
            directory: home.join("cluster"),
            home,
            first: free_range(count),
            count,
        }
    }

    /// Starts a cluster. A port may have got another owner between the look and the start.
    fn start(count: u16, options: &[&str]) -> Local {
        Local::start_and_tell(count, options).0
    }

    /// The same, with what is told.
    fn start_and_tell(count: u16, options: &[&str]) -> (Local, String) {
        for _ in 0..5 {
            let local = Local::new(count);
            let (text, told, code) = local.call(options);
            if code == 0 {
                assert_eq!(told, "");
                return (local, text);
            }
            assert!(told.contains("in use"), "{text}{told}");
        }
        panic!("no ports are free for long enough");
    }

    /// `cluster local` with this directory and these ports.
    fn call(&self, options: &[&str]) -> (String, String, i32) {
        let (count, port) = (self.count.to_string(), self.first.to_string());
        let own = ["local", &count, "--port", &port, "--dir", self.path()];
        cluster(&[&own[..], options].concat())
    }

    fn path(&self) -> &str {
        self.directory.to_str().expect("it is text")
    }

    fn map(&self) -> PathBuf {
        self.directory.join("map.toml")
    }

    fn name(&self, node: u16) -> String {
        format!("node-{}", self.first + node)
    }

    fn node(&self, node: u16) -> PathBuf {
        self.directory.join(self.name(node))
    }

    /// The number in the pid file of a node.
    fn pid(&self, node: u16) -> Option<u32> {
        let text = fs::read_to_string(self.node(node).join("ferrite.pid")).ok()?;
        text.trim().parse().ok()
    }

    fn pids(&self) -> Vec<Option<u32>> {
        (0..self.count).map(|node| self.pid(node)).collect()
    }

    /// What a node answers to a command.
    fn ask(&self, node: u16, words: &[&str]) -> String {
        let port = (self.first + node).to_string();
        let (text, told, code) = client(&[&["-p", &port], words].concat());
        assert_eq!((told.as_str(), code), ("", 0));
        text.trim_end().to_owned()
    }

    /// Asks a node to end, and waits for that.
    fn end(&self, node: u16) {
        let pid = self.pid(node).expect("it runs");
        signal("TERM", pid);
        eventually("the node ends", || self.pid(node).is_none());
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        if self.map().exists() {
            cluster(&["stop", self.path()]);
        }
        for node in 0..self.count {
            if let Some(pid) = self.pid(node)
                && works_in(pid, &self.node(node))
            {
                signal("KILL", pid);
            }
        }
        let _ = fs::remove_dir_all(&self.home);
    }
}

/// Whether a process works in a directory.
fn works_in(pid: u32, directory: &Path) -> bool {
    fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|place| place == directory)
}

/// Sends a signal to a process that a test has started.
fn signal(name: &str, pid: u32) {
    let status = Command::new("kill")
        .args([format!("-{name}"), pid.to_string()])
        .status();
    assert!(status.expect("kill runs").success(), "{name} {pid}");
}

/// Waits until something is so.
fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}: not within {PATIENCE:?}");
        sleep(Duration::from_millis(10));
    }
}

/// The first of so many ports that were free a moment ago, one behind the other.
fn free_range(count: u16) -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Below the ports that systems give out by themselves, and of the tests of this module alone.
    const FIRST: u16 = 22_000;
    const COUNT: u16 = 8_000;
    // Ports of one test.
    const STRIDE: u16 = 16;
    // Processes begin at different places.
    let begin = (std::process::id() % u32::from(COUNT / STRIDE)) as u16;
    loop {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let first = FIRST + (begin.wrapping_add(step) % (COUNT / STRIDE)) * STRIDE;
        let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
        if (first..first + count).all(is_free) {
            return first;
        }
    }
}
