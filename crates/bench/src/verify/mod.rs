//! Is what a server acknowledged still there? (`--verify`)
//!
//! Every write has a version and a value that says whose it is, and every acknowledgement is noted. What
//! the server has afterwards is held against the notes: after the load, and whenever the server has
//! gone away and come back, so a crash test is this program and somebody who kills the server.
//!
//! Reading order: `history` derives what each version writes, `ledger` notes what was acknowledged and
//! judges what was found, `writer` is the load, `reader` reads everything back, `report` says what came
//! of it.

mod history;
mod ledger;
mod reader;
mod report;
mod writer;

use crate::options::{self, Options};
use crate::wire::ask::Asker;
use crate::wire::link::{NO_AUTH, no_auth};
use crate::wire::target::Target;
use history::History;
use ledger::Ledger;
use reader::Findings;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a server may stay away when nobody says.
const AWAY: Duration = Duration::from_secs(60);

/// Writes and verifies; false if something is not as it was acknowledged.
///
/// # Errors
/// The server cannot be reached, stays away, or a file cannot be written.
pub(crate) fn run(options: &Options) -> Result<bool, String> {
    // Each connection is a descriptor; if there are too few, the first that fails says so.
    let _ = sys::process::raise_open_files(options.clients as u64 + 64);
    let target = options::only_target(options)?;
    let history = History::new(options);
    let mut session = Session {
        options,
        ledger: Ledger::new(history.groups()),
        history,
        target,
        is_good: true,
    };
    reader::clear(&session.history, &mut session.asker()?)?;
    session.write_until_the_end()?;
    if let Some(path) = &options.verify_file {
        session.ledger.write(&session.history, path)?;
    }
    println!("{}", report::verdict(session.is_good));
    Ok(session.is_good)
}

/// Verifies what an earlier run has noted in a file.
///
/// # Errors
/// The file cannot be read or the server not be reached.
pub(crate) fn check_file(options: &Options, path: &Path) -> Result<bool, String> {
    let (history, mut ledger) = Ledger::read(path)?;
    let target = options::only_target(options)?;
    let mut asker = open(&target, options.timeout)?;
    let findings = reader::read_back(&history, &mut asker, &mut ledger)?;
    let is_good = findings.is_within(options.may_lose);
    print!("{}", report::findings(&findings, options.may_lose));
    println!("{}", report::verdict(is_good));
    Ok(is_good)
}

/// A connection that commands may be sent on: a server that wants a password says so to the first of them.
fn open(target: &Target, patience: Duration) -> Result<Asker, String> {
    let mut asker = Asker::open(target, patience)?;
    match asker.ask(&[b"PING"])? {
        resp::Value::Error(text) if text.starts_with(NO_AUTH.as_bytes()) => {
            Err(no_auth(&target.name, &String::from_utf8_lossy(&text)))
        }
        _ => Ok(asker),
    }
}

struct Session<'a> {
    options: &'a Options,
    target: Target,
    history: History,
    ledger: Ledger,
    is_good: bool,
}

impl Session<'_> {
    fn asker(&self) -> Result<Asker, String> {
        open(&self.target, self.options.timeout)
    }

    /// Writes for as long as asked for, and verifies after every loss of the server and at the end.
    fn write_until_the_end(&mut self) -> Result<(), String> {
        let time = self.options.test_time;
        let deadline = time.map(|time| Instant::now() + time);
        let mut left = match (time, self.options.requests) {
            (Some(_), None) => u64::MAX,
            (_, requests) => requests.unwrap_or(100_000),
        };
        loop {
            let load = writer::Load {
                clients: self.options.clients,
                pipeline: self.options.pipeline,
                timeout: self.options.timeout,
                writes: left,
                deadline,
            };
            let end = writer::write(&load, &self.target, &self.history, &mut self.ledger)?;
            left -= end.written.min(left);
            print!("{}", report::load(&end));
            self.is_good &= end.errors == 0;
            match end.lost {
                None => {
                    // The server has been there all the time, so nothing at all may be missing.
                    self.verify(Duration::ZERO)?;
                    return Ok(());
                }
                Some(reason) => {
                    println!("  the server was lost: {reason}");
                    self.wait_for_return()?;
                    self.verify(self.options.may_lose)?;
                }
            }
        }
    }

    fn verify(&mut self, may_lose: Duration) -> Result<(), String> {
        let mut asker = self.asker()?;
        let findings: Findings = reader::read_back(&self.history, &mut asker, &mut self.ledger)?;
        print!("{}", report::findings(&findings, may_lose));
        self.is_good &= findings.is_within(may_lose);
        Ok(())
    }

    /// Waits until the server answers again and has loaded what it keeps.
    fn wait_for_return(&self) -> Result<(), String> {
        let patience = match self.options.reconnect {
            Duration::ZERO => AWAY,
            given => given,
        };
        let start = Instant::now();
        loop {
            let answer = self.asker().and_then(|mut asker| asker.ask(&[b"PING"]));
            match answer {
                Ok(resp::Value::Error(_)) | Err(_) if start.elapsed() < patience => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                Ok(resp::Value::Error(text)) => {
                    return Err(format!(
                        "the server does not come back: {}",
                        String::from_utf8_lossy(&text)
                    ));
                }
                Err(error) => return Err(format!("the server does not come back: {error}")),
                Ok(_) => {
                    println!("  it was away for {:.1} s", start.elapsed().as_secs_f64());
                    return Ok(());
                }
            }
        }
    }
}
