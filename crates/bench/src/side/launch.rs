//! Servers that are started to be measured: each on a port and in a directory of its own, on the
//! processors that it was given, and ended with the measurement.
//!
//! Invariant: whatever was started is ended by its process id and its directory removed, also when
//! something fails on the way.

use crate::wire::ask::Asker;
use crate::wire::target::{Greeting, Target};
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use sys::socket::Endpoint;

/// How long a server may take to answer, and to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that can be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Recipe {
    /// What the tables call it.
    pub(crate) name: String,
    /// The program and its arguments, with `{port}`, `{dir}`, `{threads}` and, in the floor's,
    /// `{reply}`.
    pub(crate) words: Vec<String>,
}

impl Recipe {
    /// A recipe as it is written on the command line, `NAME=COMMAND`.
    ///
    /// # Errors
    /// It has another form, or its quotes are not closed.
    pub(crate) fn parse(text: &str) -> Result<Recipe, String> {
        let wrong = || format!("'{text}' is no NAME=COMMAND");
        let (name, command) = text.split_once('=').ok_or_else(wrong)?;
        let words = shlex::split(command).filter(|words| !words.is_empty());
        Ok(Recipe {
            name: name.trim().to_owned(),
            words: words.ok_or_else(wrong)?,
        })
    }

    /// The command says how many worker threads it has.
    pub(crate) fn has_threads(&self) -> bool {
        self.words.iter().any(|word| word.contains("{threads}"))
    }

    /// The floor answers without looking.
    pub(crate) fn is_floor(&self) -> bool {
        self.words.iter().any(|word| word.contains("{reply}"))
    }

    /// The command as it can be typed.
    pub(crate) fn text(&self) -> String {
        let words = self.words.iter().map(String::as_str);
        shlex::try_join(words).unwrap_or_else(|_| self.words.join(" "))
    }
}

/// How a server is to be started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) threads: usize,
    /// The processors that it may use; all if empty.
    pub(crate) cpus: Vec<usize>,
    /// What the floor answers with.
    pub(crate) reply_bytes: Option<u64>,
}

/// A running server.
#[derive(Debug)]
pub(crate) struct Launched {
    child: Child,
    dir: PathBuf,
    pub(crate) target: Target,
    /// What it says it is.
    pub(crate) version: Option<String>,
}

impl Launched {
    /// Starts a server and waits until it answers.
    ///
    /// # Errors
    /// It cannot be started, ends, or does not answer; the text has what it printed.
    pub(crate) fn start(recipe: &Recipe, start: &Start) -> Result<Launched, String> {
        let dir = fresh_dir()?;
        let port = free_port()?;
        let words = fill_in(&recipe.words, port, &dir, start);
        let child = spawn(&words, &dir, &start.cpus).map_err(|error| {
            // Nothing else is in it yet.
            let _ = std::fs::remove_dir_all(&dir);
            format!("{}: {} cannot be started: {error}", recipe.name, words[0])
        })?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut launched = Launched {
            target: Target {
                name: recipe.name.clone(),
                endpoint: Endpoint::Tcp(address),
                greeting: Greeting::default(),
                pid: Some(child.id()),
                nodes: None,
            },
            child,
            dir,
            version: None,
        };
        launched.wait_until_it_answers()?;
        Ok(launched)
    }

    fn wait_until_it_answers(&mut self) -> Result<(), String> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(self.complaint(&format!("ended ({status})")));
            }
            if let Ok(mut asker) = Asker::open(&self.target, Duration::from_secs(5))
                && asker.ask(&[b"PING"]).is_ok()
            {
                self.version = asker.info().ok().and_then(|info| info.version());
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err(self.complaint("does not answer"))
    }

    fn complaint(&self, what: &str) -> String {
        let output = std::fs::read(self.dir.join("output")).unwrap_or_default();
        let output = String::from_utf8_lossy(&output);
        let last: Vec<_> = output.lines().rev().take(10).collect();
        let last: Vec<_> = last.into_iter().rev().collect();
        format!(
            "{}: the server {what}\n{}",
            self.target.name,
            last.join("\n")
        )
    }

    /// The same server through its socket file, if it has made one.
    pub(crate) fn through_socket_file(&self) -> Option<Target> {
        let path = self.dir.join("server.sock");
        path.exists().then(|| Target {
            endpoint: Endpoint::Unix(path),
            ..self.target.clone()
        })
    }

    /// A connection for questions.
    ///
    /// # Errors
    /// The server is gone.
    pub(crate) fn asker(&self) -> Result<Asker, String> {
        Asker::open(&self.target, PATIENCE)
    }

    /// What it occupies in memory, in bytes.
    pub(crate) fn rss_bytes(&self) -> u64 {
        sys::process::rss_bytes_of(self.child.id()).unwrap_or(0)
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        // First by request, so that it can take away what it has put elsewhere; then by force. Both
        // fail only where it has ended already, which is what they are for.
        let _ = sys::process::ask_to_end(self.child.id());
        let start = Instant::now();
        while start.elapsed() < PATIENCE / 6 && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        // What is left behind is in the system's directory for such.
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn fill_in(words: &[String], port: u16, dir: &Path, start: &Start) -> Vec<String> {
    let reply = start
        .reply_bytes
        .map_or("ok".to_owned(), |bytes| bytes.to_string());
    words
        .iter()
        .map(|word| {
            word.replace("{port}", &port.to_string())
                .replace("{dir}", &dir.display().to_string())
                .replace("{threads}", &start.threads.to_string())
                .replace("{reply}", &reply)
        })
        .collect()
}

/// Starts a process that inherits its processors from the thread that starts it.
fn spawn(words: &[String], dir: &Path, cpus: &[usize]) -> std::io::Result<Child> {
    let output = File::create(dir.join("output"))?;
    let errors = output.try_clone()?;
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors);
    let start = || {
        if !cpus.is_empty() {
            sys::cpu::confine_current_thread(cpus)?;
        }
        command.spawn()
    };
    std::thread::scope(|scope| {
        let started = scope.spawn(start).join();
        started.unwrap_or_else(|_| Err(std::io::Error::other("the starting thread ended")))
    })
}

fn fresh_dir() -> Result<PathBuf, String> {
    let mut bytes = [0; 8];
    let failed = |error: std::io::Error| format!("no directory for a server: {error}");
    sys::random::fill(&mut bytes).map_err(failed)?;
    let name = format!("ferrite-bench-{:016x}", u64::from_le_bytes(bytes));
    let dir = std::env::temp_dir().join(name);
    std::fs::create_dir(&dir).map_err(failed)?;
    Ok(dir)
}

/// A port that was free a moment ago.
fn free_port() -> Result<u16, String> {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = sys::Listener::tcp(any, 1).map_err(|error| format!("no port: {error}"))?;
    let address = listener.local_addr().ok_or("a port has a number")?;
    Ok(address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipes_are_split_like_a_shells_words() {
        let recipe = Recipe::parse("r=redis-server --port {port} --save ''").expect("it is one");
        assert_eq!(recipe.name, "r");
        assert_eq!(
            recipe.words,
            ["redis-server", "--port", "{port}", "--save", ""]
        );
        assert!(!recipe.has_threads());
        assert_eq!(recipe.text(), "redis-server --port '{port}' --save ''");
        for text in ["redis-server", "r=", "r='x"] {
            assert!(Recipe::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn placeholders_are_filled_in() {
        let recipe =
            Recipe::parse("f=s --dir={dir}/x -t {threads} {port} {reply}").expect("it is one");
        assert!(recipe.has_threads());
        let start = Start {
            threads: 2,
            ..Start::default()
        };
        let words = fill_in(&recipe.words, 7, Path::new("/tmp/d"), &start);
        assert_eq!(words, ["s", "--dir=/tmp/d/x", "-t", "2", "7", "ok"]);
    }

    #[test]
    fn what_does_not_start_is_explained() {
        let missing = Recipe::parse("x=/nonexistent/program").expect("it is one");
        let error = Launched::start(&missing, &Start::default()).expect_err("there is none");
        assert!(
            error.contains("x: /nonexistent/program cannot be started"),
            "{error}"
        );
        let ends = Recipe::parse("x=sh -c 'echo no such setting; exit 3'").expect("it is one");
        let error = Launched::start(&ends, &Start::default()).expect_err("it ends");
        assert!(
            error.contains("no such setting") && error.contains("exit status: 3"),
            "{error}"
        );
    }
}
