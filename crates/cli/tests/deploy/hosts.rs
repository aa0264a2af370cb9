//! Hosts for the tests of `cluster deploy`: a real sshd on an address of the loopback each, with keys made
//! for the test and a home directory of its own. It runs as the user of the tests. Dropping the hosts ends
//! their nodes and sshds, and removes all.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::{PATIENCE, ferrite_server, fresh_directory};

/// The program has to be started by its whole path.
const SSHD: &str = "/usr/sbin/sshd";

/// Where a root's sshd keeps nothing, and has to be.
const EMPTY: &str = "/run/sshd";

/// A host.
pub(crate) struct Host {
    sshd: Child,
    pub(crate) address: String,
    pub(crate) ssh_port: u16,
    /// A free port for a node.
    pub(crate) port: u16,
    pub(crate) home: PathBuf,
    /// Programs that its sessions find first.
    pub(crate) programs: PathBuf,
}

/// All hosts of a test.
pub(crate) struct Hosts {
    pub(crate) directory: PathBuf,
    pub(crate) hosts: Vec<Host>,
}

/// What a deploy said, and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) out: String,
    pub(crate) errors: String,
    pub(crate) code: i32,
}

impl Hosts {
    /// Starts hosts at 127.0.0.2 and the addresses after it.
    pub(crate) fn start(count: u8) -> Hosts {
        Hosts::start_with(count, start_host)
    }

    /// The same with the programs alone that a node needs.
    pub(crate) fn start_bare(count: u8) -> Hosts {
        Hosts::start_with(count, start_bare_host)
    }

    fn start_with(count: u8, start: fn(&Path, u8) -> Host) -> Hosts {
        assert!(
            Path::new(SSHD).exists(),
            "there is no {SSHD}; `make setup` installs openssh-server"
        );
        let _ = fs::create_dir(EMPTY);
        let directory = fresh_directory("deploy");
        for name in ["key", "other_key", "host_key"] {
            make_key(&directory.join(name));
        }
        fs::copy(directory.join("key.pub"), directory.join("authorized_keys")).expect("it is ours");
        let mut hosts = Hosts {
            hosts: Vec::new(),
            directory,
        };
        for number in 0..count {
            let host = start(&hosts.directory, number);
            hosts.hosts.push(host);
        }
        hosts.write_ssh_config("ssh_config", "key");
        hosts
    }

    /// The configuration of ssh: the user's own is of no use here.
    pub(crate) fn write_ssh_config(&self, name: &str, key: &str) -> PathBuf {
        let known = self.directory.join("known_hosts");
        let key_of_hosts = fs::read_to_string(self.directory.join("host_key.pub")).expect("made");
        let line = |host: &Host| format!("[{}]:{} {key_of_hosts}", host.address, host.ssh_port);
        fs::write(&known, self.hosts.iter().map(line).collect::<String>()).expect("it is ours");
        let path = self.directory.join(name);
        let text = format!(
            "IdentityFile \"{}\"\nIdentitiesOnly yes\nIdentityAgent none\nUserKnownHostsFile \"{}\"\n\
             GlobalKnownHostsFile none\nStrictHostKeyChecking yes\n",
            self.directory.join(key).display(),
            known.display()
        );
        fs::write(&path, text).expect("it is ours");
        path
    }

    /// A file of nodes with a line for each host, and further lines.
    pub(crate) fn nodes(&self, more: &str) -> PathBuf {
        let line = |host: &Host| format!("{}\n", host.line(host.port));
        let lines: String = self.hosts.iter().map(line).collect();
        let path = self.directory.join("nodes.txt");
        fs::write(&path, format!("# all hosts\n{lines}{more}")).expect("it is ours");
        path
    }

    /// Deploys to all hosts.
    pub(crate) fn deploy(&self, options: &[&str]) -> Said {
        self.deploy_to(&self.nodes(""), options)
    }

    /// Deploys to the hosts of a file.
    pub(crate) fn deploy_to(&self, nodes: &Path, options: &[&str]) -> Said {
        let config = self.directory.join("ssh_config");
        let mut command = Command::new(env!("CARGO_BIN_EXE_ferrite-cli"));
        command.args(["cluster", "deploy"]).arg(nodes);
        // Those of the test count, where they say the same.
        command.args(["--threads", "1", "--memory", "100mb", "--server"]);
        command.arg(ferrite_server());
        command.arg("--ssh-config").arg(config).args(options);
        said(command.output().expect("the program runs"))
    }

    /// Runs another subcommand.
    pub(crate) fn cluster(&self, words: &[&str]) -> Said {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ferrite-cli"));
        let output = command.arg("cluster").args(words).output();
        said(output.expect("the program runs"))
    }

    /// What all nodes say to a command, a text each.
    pub(crate) fn tell(&self, command: &str) -> Vec<String> {
        self.hosts.iter().map(|host| host.tell(command)).collect()
    }

    /// The processes of all nodes.
    pub(crate) fn pids(&self) -> Vec<String> {
        self.hosts.iter().map(Host::pid).collect()
    }
}

pub(crate) fn said(output: Output) -> Said {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Said {
        out: text(&output.stdout),
        errors: text(&output.stderr),
        code: output.status.code().expect("no signal ended it"),
    }
}

impl Host {
    /// A line of a file of nodes.
    pub(crate) fn line(&self, port: u16) -> String {
        format!("{}:{} {port}", self.address, self.ssh_port)
    }

    /// The directory of its node.
    pub(crate) fn node(&self) -> PathBuf {
        self.home.join(format!("ferrite-cluster/{}", self.port))
    }

    pub(crate) fn pid(&self) -> String {
        let text = fs::read_to_string(self.node().join("ferrite.pid"));
        text.expect("the node runs").trim().to_owned()
    }

    /// What the node says to a command.
    pub(crate) fn tell(&self, command: &str) -> String {
        let output = Command::new(env!("CARGO_BIN_EXE_ferrite-cli"))
            .args(["-h", &self.address, "-p", &self.port.to_string()])
            .args(command.split(' '))
            .output();
        let said = said(output.expect("the program runs"));
        assert_eq!(said.errors, "", "{command}");
        said.out
    }

    /// Puts a script in front of a program of the host.
    pub(crate) fn replace_program(&self, name: &str, script: &str) {
        write_program(&self.programs.join(name), script);
    }
}

/// Writes a script that can be run.
pub(crate) fn write_program(path: &Path, script: &str) {
    use std::os::unix::fs::PermissionsExt;
    // Written under another name, by a process of its own: a program that is open for writing anywhere cannot
    // be run.
    let draft = path.with_extension("draft");
    fs::write(&draft, format!("#!/bin/sh\n{script}\n")).expect("it is ours");
    fs::set_permissions(&draft, fs::Permissions::from_mode(0o755)).expect("it is ours");
    fs::rename(&draft, path).expect("it is ours");
}

fn make_key(path: &Path) {
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-C", "test", "-f"])
        .arg(path)
        .status();
    assert!(
        made.is_ok_and(|status| status.success()),
        "ssh-keygen makes no key"
    );
}

fn start_host(directory: &Path, number: u8) -> Host {
    let path = std::env::var("PATH").expect("there are programs");
    start_host_with(directory, number, &path)
}

/// What the scripts of a deploy run.
const PROGRAMS: [&str; 23] = [
    "cat", "chmod", "cksum", "cp", "df", "dirname", "grep", "id", "mkdir", "mv", "nohup", "od",
    "rm", "rmdir", "setsid", "sh", "sleep", "tail", "tar", "tr", "uname", "wc", "true",
];

fn start_bare_host(directory: &Path, number: u8) -> Host {
    let only = directory.join(format!("only-{number}"));
    link_programs(&PROGRAMS, &only);
    start_host_with(directory, number, only.to_str().expect("it is text"))
}

/// Makes a directory with these programs alone.
pub(crate) fn link_programs(names: &[&str], directory: &Path) {
    let path = std::env::var_os("PATH").expect("there are programs");
    fs::create_dir(directory).expect("it is ours");
    for name in names {
        let mut all = std::env::split_paths(&path).map(|place| place.join(name));
        let program = all.find(|program| program.exists());
        let program = program.unwrap_or_else(|| panic!("there is no {name}"));
        std::os::unix::fs::symlink(program, directory.join(name)).expect("it is ours");
    }
}

fn start_host_with(directory: &Path, number: u8, path: &str) -> Host {
    let address = format!("127.0.0.{}", 2 + number);
    // Names that a shell would take apart.
    let home = directory.join(format!("it's home $HOME {number}"));
    let programs = directory.join(format!("programs-{number}"));
    fs::create_dir(&home).expect("it is ours");
    fs::create_dir(&programs).expect("it is ours");
    let port = free_port(&address);
    for _ in 0..5 {
        let ssh_port = free_port(&address);
        let config = directory.join(format!("sshd_config-{number}"));
        let text = format!(
            "Port {ssh_port}\nListenAddress {address}\nHostKey \"{0}/host_key\"\nPidFile none\n\
             AuthorizedKeysFile \"{0}/authorized_keys\"\nPasswordAuthentication no\n\
             KbdInteractiveAuthentication no\nUsePAM no\nStrictModes no\nPermitRootLogin yes\n\
             SetEnv \"HOME={1}\" \"PATH={2}:{path}\" \"XDG_CONFIG_HOME={1}/.config\"\n",
            directory.display(),
            home.display(),
            programs.display()
        );
        fs::write(&config, text).expect("it is ours");
        let log =
            fs::File::create(directory.join(format!("sshd-{number}.log"))).expect("it is ours");
        let mut sshd = Command::new(SSHD)
            .args(["-D", "-e", "-f"])
            .arg(&config)
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("sshd can be started");
        let mut has_ended = false;
        eventually("sshd listens, or has ended", || {
            has_ended = sshd.try_wait().expect("it is ours").is_some();
            has_ended || TcpStream::connect((address.as_str(), ssh_port)).is_ok()
        });
        if !has_ended {
            return Host {
                sshd,
                address,
                ssh_port,
                port,
                home,
                programs,
            };
        }
    }
    let log = fs::read_to_string(directory.join(format!("sshd-{number}.log")));
    panic!("sshd does not come up: {log:?}");
}

/// A port of this address that was free a moment ago, below those that the system gives out by itself:
/// another test is not given it meanwhile.
pub(crate) fn free_port(address: &str) -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    const FIRST: u32 = 22_000;
    const COUNT: u32 = 9000;
    loop {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        // Processes begin at different places.
        let port = (FIRST + (std::process::id() * 37 + step) % COUNT) as u16;
        if TcpListener::bind((address, port)).is_ok() {
            return port;
        }
    }
}

/// Waits until something holds.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "not in time: {what}");
        sleep(Duration::from_millis(20));
    }
}

/// The numbers in all pid files below a directory.
fn pids_below(directory: &Path, pids: &mut Vec<String>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            pids_below(&path, pids);
        } else if path.ends_with("ferrite.pid") {
            pids.extend(fs::read_to_string(&path));
        }
    }
}

/// Whether a process lives, by a command of every system.
fn lives(pid: &str) -> bool {
    // One that nobody waits for has no command line any more.
    fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|words| !words.is_empty())
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for host in &mut self.hosts {
            let mut pids = Vec::new();
            pids_below(&host.home, &mut pids);
            for pid in &pids {
                // It may have ended by itself.
                let _ = Command::new("kill")
                    .arg(pid.trim())
                    .stderr(Stdio::null())
                    .status();
            }
            eventually("the nodes have ended", || {
                pids.iter().all(|pid| !lives(pid.trim()))
            });
            let _ = host.sshd.kill();
            let _ = host.sshd.wait();
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}
