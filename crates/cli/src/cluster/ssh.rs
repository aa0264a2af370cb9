//! Runs things on other machines, by the system's `ssh` with the user's configuration.
//!
//! Nobody is asked for anything: what wants a password fails (`BatchMode`). What a host says to a failure is
//! kept, for the person who has to mend it. A script arrives at the standard input of `sh`, so no shell on
//! the way takes it apart, and what a script needs is set in its first lines, by [`quote`].

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::nodes::Node;
use crate::failure::reason;

/// How long a connection may take, in seconds.
const CONNECT_SECONDS: u32 = 10;

/// The exit code of ssh where it is ssh that failed, and not what it ran.
const SSH_FAILED: i32 = 255;

/// How many hosts are talked to at once.
const AT_ONCE: usize = 32;

/// What a host may answer; more is thrown away.
const MAX_OUTPUT: u64 = 16 << 20;

/// What a host may say to a failure; more is thrown away.
const MAX_WORDS: u64 = 64 << 10;

/// The last lines of that which are told.
const MOST_LINES: usize = 8;

/// How often an end is looked for.
const STEP: Duration = Duration::from_millis(10);

/// How long the output of a program that has ended may take to arrive.
const LAST_OUTPUT: Duration = Duration::from_secs(5);

/// How the hosts are reached.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ssh {
    /// A configuration in place of the user's.
    pub(crate) config: Option<PathBuf>,
}

/// What a command on a host reads.
pub(crate) enum RemoteInput<'a> {
    Bytes(&'a [u8]),
    File(File),
}

/// Why a host did not do what it was to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failed {
    /// What was done, in words.
    pub(crate) what: String,
    /// The host's own words, or those of ssh.
    pub(crate) words: String,
    /// What may help.
    pub(crate) hint: Option<&'static str>,
}

impl Failed {
    /// A failure that was found without the host's words.
    pub(crate) fn because(what: impl Into<String>, words: impl Into<String>) -> Failed {
        Failed {
            what: what.into(),
            words: words.into(),
            hint: None,
        }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if !self.words.is_empty() {
            write!(f, ": {}", self.words)?;
        }
        match self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl Ssh {
    /// Runs a script by `sh` on a host, and returns what it printed.
    ///
    /// # Errors
    /// The script or the connection failed, or it took longer than `patience`.
    pub(crate) fn script(
        &self,
        node: &Node,
        what: &str,
        script: &str,
        patience: Duration,
    ) -> Result<String, Failed> {
        // The whole text has to arrive before anything of it is done, and nothing in it reads the rest of it.
        let text = format!("main() {{\n{script}\n}}\nmain </dev/null\n");
        self.run(
            node,
            what,
            "exec sh -s",
            RemoteInput::Bytes(text.as_bytes()),
            patience,
        )
    }

    /// Writes a file on a host. The path is absolute.
    ///
    /// # Errors
    /// As with [`Ssh::script`].
    pub(crate) fn write(
        &self,
        node: &Node,
        what: &str,
        (input, path): (RemoteInput<'_>, &str),
        patience: Duration,
    ) -> Result<(), Failed> {
        let command = format!("cat > {}", quote(path));
        let command = format!("exec sh -c {}", quote(&command));
        self.run(node, what, &command, input, patience).map(|_| ())
    }

    /// Runs a command line on a host.
    fn run(
        &self,
        node: &Node,
        what: &str,
        command: &str,
        input: RemoteInput<'_>,
        patience: Duration,
    ) -> Result<String, Failed> {
        let mut ssh = self.command(node);
        ssh.arg(command);
        let done = run(ssh, input, patience).map_err(|error| {
            let mut failed = Failed::because("cannot run ssh", reason(&error));
            if error.kind() == io::ErrorKind::NotFound {
                failed.hint = Some("is openssh-client installed?");
            }
            failed
        })?;
        if done.status.is_some_and(|status| status.success()) {
            return Ok(String::from_utf8_lossy(&done.output).into_owned());
        }
        let mut words = last_lines(&done.errors);
        if done.status.is_none() {
            words = format!("no end after {} seconds. {words}", patience.as_secs());
        } else if words.is_empty() {
            words = match done.status.and_then(|status| status.code()) {
                Some(code) => format!("it ended with code {code} and without a word"),
                None => "ssh was ended by a signal".to_owned(),
            };
        }
        let code = done.status.and_then(|status| status.code());
        Err(Failed {
            what: match code {
                Some(SSH_FAILED) => "cannot be reached".to_owned(),
                _ => what.to_owned(),
            },
            hint: hint(&words),
            words: words.trim_end().to_owned(),
        })
    }

    /// The command that reaches a host.
    fn command(&self, node: &Node) -> Command {
        let mut ssh = Command::new("ssh");
        if let Some(config) = &self.config {
            ssh.arg("-F").arg(config);
        }
        // A master that stays would hold our pipes open, and a command of the configuration would replace
        // ours.
        for option in [
            "BatchMode=yes",
            "ControlMaster=no",
            "ClearAllForwardings=yes",
            "RemoteCommand=none",
            "ServerAliveInterval=10",
            "ServerAliveCountMax=3",
        ] {
            ssh.args(["-o", option]);
        }
        ssh.args(["-o", &format!("ConnectTimeout={CONNECT_SECONDS}"), "-T"]);
        if let Some(port) = node.ssh_port {
            ssh.args(["-p", &port.to_string()]);
        }
        if let Some(user) = &node.user {
            ssh.args(["-l", user]);
        }
        ssh.args(["--", &node.host]);
        ssh
    }
}

/// How a program ended, and what it said.
struct Done {
    /// `None` if it was ended here, as it took too long.
    status: Option<ExitStatus>,
    output: Vec<u8>,
    errors: Vec<u8>,
}

fn run(mut command: Command, input: RemoteInput<'_>, patience: Duration) -> io::Result<Done> {
    let end = Instant::now() + patience;
    let (stdin, bytes) = match input {
        RemoteInput::Bytes(bytes) => (Stdio::piped(), Some(bytes.to_vec())),
        RemoteInput::File(file) => (file.into(), None),
    };
    let mut child = command
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let (Some(mut stdin), Some(bytes)) = (child.stdin.take(), bytes) {
        // An end before all was read is told by the exit code.
        thread::spawn(move || stdin.write_all(&bytes).is_ok());
    }
    let output = collect(child.stdout.take().expect("it is piped"), MAX_OUTPUT);
    let errors = collect(child.stderr.take().expect("it is piped"), MAX_WORDS);
    let status = wait(&mut child, end)?;
    let rest = |all: Receiver<Vec<u8>>| all.recv_timeout(LAST_OUTPUT).unwrap_or_default();
    Ok(Done {
        status,
        output: rest(output),
        errors: rest(errors),
    })
}

/// Waits for the end of a program. `None` if it was ended here.
fn wait(child: &mut Child, end: Instant) -> io::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(STEP);
    }
}

/// Reads all, and keeps the first `most` bytes.
fn collect(mut from: impl Read + Send + 'static, most: u64) -> Receiver<Vec<u8>> {
    let (send, receive) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What cannot be read is not there; the exit code says the rest.
        let _ = from.by_ref().take(most).read_to_end(&mut bytes);
        let _ = io::copy(&mut from, &mut io::sink());
        let _ = send.send(bytes);
    });
    receive
}

/// The last lines of what was said, as one that a terminal can show.
fn last_lines(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let is_said = |line: &&str| !line.trim().is_empty();
    let lines: Vec<&str> = text.lines().filter(is_said).collect();
    let first = lines.len().saturating_sub(MOST_LINES);
    let printable = |line: &&str| {
        let shown = line.trim_end().chars().filter(|sign| !sign.is_control());
        shown.collect::<String>()
    };
    let lines: Vec<String> = lines[first..].iter().map(printable).collect();
    lines.join("\n")
}

/// What may help where ssh says this.
fn hint(words: &str) -> Option<&'static str> {
    let hints = [
        (
            "Permission denied (",
            "no password is asked for here: a key has to be enough, in an agent or without a passphrase",
        ),
        (
            "Host key verification failed",
            "log in once by hand, `ssh user@host`, to look at its key and to accept it",
        ),
        ("No space left on device", "the disk of the host is full"),
    ];
    let found = hints.iter().find(|(sign, _)| words.contains(sign));
    found.map(|(_, hint)| *hint)
}

/// A word for a POSIX shell that stands for exactly this text.
pub(crate) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Does something for all nodes, many at once. The results are in the order of the nodes.
pub(crate) fn for_all<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                return done;
            }
            done.push((at, work(at)));
        }
    };
    let mut all: Vec<(usize, T)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..count.min(AT_ONCE))
            .map(|_| scope.spawn(worker))
            .collect();
        let results = workers.into_iter().map(|worker| worker.join());
        results
            .flat_map(|done| done.expect("a worker does not panic"))
            .collect()
    });
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, result)| result).collect()
}

/// Opens a file that is to be written on hosts.
///
/// # Errors
/// It cannot be read.
pub(crate) fn open(path: &Path) -> Result<File, Failed> {
    let what = format!("cannot read {}", path.display());
    File::open(path).map_err(|error| Failed::because(what, reason(&error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_word_is_one_word() {
        for text in [
            "",
            "plain",
            "two words",
            "it's",
            "'",
            "''",
            "$HOME `x` \"q\" \\ !",
            "a\nb",
            "-n",
            "*",
        ] {
            let output = Command::new("sh")
                .args(["-c", &format!("printf %s {}", quote(text))])
                .output()
                .expect("every system has sh");
            assert_eq!(String::from_utf8_lossy(&output.stdout), text);
        }
        // Through two shells, as a command on a host goes.
        let inner = format!("printf %s {}", quote("it's \"$0\""));
        let output = Command::new("sh")
            .args(["-c", &format!("exec sh -c {}", quote(&inner))])
            .output()
            .expect("every system has sh");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "it's \"$0\"");
    }

    #[test]
    fn what_takes_too_long_is_ended() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo out; echo err >&2; exec sleep 600"]);
        let done = run(command, RemoteInput::Bytes(b"x"), Duration::from_secs(1)).expect("sh runs");
        assert!(done.status.is_none());
        assert_eq!(
            (done.output.as_slice(), done.errors.as_slice()),
            (&b"out\n"[..], &b"err\n"[..])
        );
    }

    #[test]
    fn the_last_words_are_kept() {
        let many: String = (0..20)
            .map(|number| format!("line {number}\r\n\n"))
            .collect();
        let told = last_lines(many.as_bytes());
        assert_eq!(
            (told.lines().count(), told.lines().next()),
            (MOST_LINES, Some("line 12"))
        );
        assert_eq!(last_lines(b"\x1b[31mred\x1b[m\n"), "[31mred[m");
        assert!(hint("ann@h: Permission denied (publickey,password).").is_some());
        assert_eq!(hint("cat: x: Permission denied"), None);
    }

    #[test]
    fn all_are_done_in_order() {
        let squares = for_all(100, |at| at * at);
        assert_eq!(squares, (0..100).map(|at| at * at).collect::<Vec<_>>());
        assert_eq!(for_all(0, |at| at), Vec::<usize>::new());
    }
}
