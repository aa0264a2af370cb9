//! Starting the nodes of `cluster local`: each detached, with a directory, a log and settings of its own; and
//! waiting until all serve.
//!
//! Invariant: what was started is stopped again, unless it is kept.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Instant;

use sys::signal::Interrupts;

use super::fleet::{Fleet, Member};
use super::node_process::{self, LOG, PID_FILE, PROGRAM, SETTINGS};
use super::probe::{self, Report};
use super::programs::beside;
use crate::access::Access;
use crate::failure::{Failure, Result, reason};
use crate::limits::{NODE_PATIENCE, NODE_PAUSE};

/// Lines of the log that are shown of a node that did not start.
const LINES: usize = 5;

/// The nodes that this program has started.
pub(super) struct Launch {
    children: Vec<Started>,
    /// Some slots have no node.
    has_gaps: bool,
    is_kept: bool,
}

struct Started {
    name: String,
    child: Child,
    directory: PathBuf,
    /// Where the log ended before.
    log_end: u64,
}

impl Launch {
    /// Starts a node each of these members, whose directories are there.
    ///
    /// # Errors
    /// One cannot be started.
    pub(super) fn start(members: &[&Member], map: &Path) -> Result<Launch> {
        let mut launch = Launch {
            children: Vec::new(),
            has_gaps: false,
            is_kept: false,
        };
        let program = program();
        for member in members {
            let directory = member.directory.clone().expect("it is of `cluster local`");
            let started = start(&program, member, &directory, map);
            let (child, log_end) = started.map_err(|error| {
                Failure::Other(format!(
                    "{}: {} cannot be started: {}",
                    member.name,
                    program.display(),
                    reason(&error)
                ))
            })?;
            launch.children.push(Started {
                name: member.name.clone(),
                child,
                directory,
                log_end,
            });
        }
        Ok(launch)
    }

    /// Waits until all members serve, those that ran before too. A map with gaps is served as far as its
    /// settings allow.
    ///
    /// # Errors
    /// One does not come up, or a person wants it to end.
    pub(super) fn wait(&mut self, fleet: &Fleet, access: &Access) -> Result<Vec<Report>> {
        let members = &fleet.members;
        self.has_gaps = !fleet.own_map().gaps().is_empty();
        // Ctrl-C ends this program, but not what it has started.
        let interrupts = Interrupts::catch().ok();
        let mut end = Instant::now() + NODE_PATIENCE;
        loop {
            let reports = probe::ask_all(members, access);
            self.look()?;
            if members.iter().zip(&reports).all(|one| self.serves(one)) {
                return Ok(reports);
            }
            // Data may be large.
            if (reports.iter()).any(|report| matches!(report, Report::Loading(_))) {
                end = Instant::now() + NODE_PATIENCE;
            }
            if Instant::now() >= end {
                let mut both = members.iter().zip(&reports);
                let late = both.find(|&one| !self.serves(one));
                let (member, report) = late.expect("otherwise all serve");
                return Err(Failure::Other(format!(
                    "{} does not serve within {} s: {}",
                    member.name,
                    NODE_PATIENCE.as_secs(),
                    report.state()
                )));
            }
            match &interrupts {
                Some(interrupts) if interrupts.sleep(NODE_PAUSE) => {
                    return Err(Failure::Interrupted);
                }
                Some(_) => {}
                None => sleep(NODE_PAUSE),
            }
        }
    }

    /// Whether a member serves, and is not another process at its port.
    fn serves(&self, (member, report): (&Member, &Report)) -> bool {
        match report {
            Report::Up(facts) => {
                let pid = facts.info.number("process_id");
                let own = self.children.iter().find(|own| own.name == member.name);
                (facts.state == "ok" || self.has_gaps)
                    && own.is_none_or(|own| i64::from(own.child.id()) == pid)
            }
            // Whoever has the password can go on.
            Report::Closed(_) => member.process().is_some(),
            Report::Loading(_) | Report::Down(_) => false,
        }
    }

    /// Fails if a node has ended.
    fn look(&mut self) -> Result {
        for started in &mut self.children {
            if let Ok(Some(status)) = started.child.try_wait() {
                let log = started.directory.join(LOG);
                let lines = last_lines(&log, started.log_end).unwrap_or_default();
                return Err(Failure::Other(format!(
                    "{} did not start ({status}), its log is {}:\n{lines}",
                    started.name,
                    log.display()
                )));
            }
        }
        Ok(())
    }

    /// How many were started.
    pub(super) fn count(&self) -> usize {
        self.children.len()
    }

    /// They run on when this program has ended.
    pub(super) fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Launch {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        for started in &self.children {
            // It may have ended.
            let _ = node_process::ask_to_end(started.child.id());
        }
        let end = Instant::now() + NODE_PATIENCE;
        for started in &mut self.children {
            while matches!(started.child.try_wait(), Ok(None)) && Instant::now() < end {
                sleep(NODE_PAUSE);
            }
        }
    }
}

/// The server beside this program, else that of the PATH.
fn program() -> PathBuf {
    beside(PROGRAM)
}

/// Starts a node, and says where its log ended before.
fn start(
    program: &Path,
    member: &Member,
    directory: &Path,
    map: &Path,
) -> io::Result<(Child, u64)> {
    let log = File::options()
        .append(true)
        .create(true)
        .open(directory.join(LOG))?;
    let log_end = log.metadata()?.len();
    let mut command = Command::new(program);
    command
        .arg(directory.join(SETTINGS))
        .args(["--port", &member.port.to_string(), "--bind", &member.host])
        .args(["--cluster-enabled", "yes", "--cluster-node", &member.name])
        .arg("--cluster-map")
        .arg(map)
        .arg("--dir")
        .arg(directory)
        .arg("--logfile")
        .arg(directory.join(LOG))
        .arg("--pidfile")
        .arg(directory.join(PID_FILE))
        .args(["--daemonize", "no"])
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        // What a server says before it has its log.
        .stderr(log);
    let child = sys::process::in_own_session(&mut command).spawn()?;
    Ok((child, log_end))
}

/// The last lines behind a place of a log.
fn last_lines(log: &Path, from: u64) -> io::Result<String> {
    let mut file = File::open(log)?;
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.len().saturating_sub(LINES);
    Ok(lines[first..].join("\n"))
}

/// Writes the settings of a node. A password may be among them.
///
/// # Errors
/// The directory cannot be written.
pub(super) fn write_settings(directory: &Path, settings: &str) -> io::Result<()> {
    let path = directory.join(SETTINGS);
    let draft = directory.join(format!("{SETTINGS}.partial"));
    // What a start that was killed has left may be readable for others.
    let _ = fs::remove_file(&draft);
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)?;
    file.write_all(settings.as_bytes())?;
    fs::rename(draft, path)
}
