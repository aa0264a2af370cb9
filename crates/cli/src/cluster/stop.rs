//! `cluster stop`: ends the nodes in order. A node of `cluster local` is asked by a signal, after a look
//! whether the process is that server; others by SHUTDOWN.

use std::io::{self, Write as _};
use std::thread::sleep;
use std::time::{Duration, Instant};

use resp::Value;

use super::fleet::{Fleet, Member, PORT_FLAG};
use super::given::Given;
use super::node_process;
use super::probe::{self, Report};
use super::subcommand::{Rest, Subcommand, SubcommandFlag};
use crate::access::Access;
use crate::connection::Connection;
use crate::failure::{Broken, Failure, Result, reason};
use crate::flags::Options;
use crate::limits::{NODE_PATIENCE, NODE_PAUSE};

pub(super) const SUBCOMMAND: Subcommand = Subcommand {
    name: "stop",
    words: &["NODES|DIR"],
    summary: "Ends all nodes in order and waits for them. Exit status 1 if one does not end.",
    flags: &[
        PORT_FLAG,
        SubcommandFlag {
            long: "save",
            value: "",
            summary: "Each saves a snapshot before, also those that keep a log (SHUTDOWN SAVE).",
        },
        SubcommandFlag {
            long: "timeout",
            value: "SECONDS",
            summary: "How long a node may take (60).",
        },
    ],
    rest: Rest::Nothing,
    run,
};

/// What is to be waited for.
enum Asked {
    /// It runs no more.
    Nothing,
    /// The process of this number ends.
    Process(u32),
    /// The port is given up.
    Port,
}

fn run(given: &Given, options: &Options) -> Result {
    let fleet = Fleet::of_given(given)?;
    let limit = given.number("timeout", 0..=86_400)?;
    let limit = limit.map_or(NODE_PATIENCE, Duration::from_secs);
    let lines = end_all(&fleet.members, &options.access, given.has("save"), limit);
    let mut out = io::stdout().lock();
    let width = fleet.members.iter().map(|member| member.name.len()).max();
    let mut has_failed = false;
    for (member, line) in fleet.members.iter().zip(lines) {
        let (Ok(text) | Err(text)) = &line;
        writeln!(
            out,
            "{:<width$}  {text}",
            member.name,
            width = width.unwrap_or(0)
        )?;
        has_failed |= line.is_err();
    }
    if has_failed {
        Err(Failure::Told)
    } else {
        Ok(())
    }
}

/// Asks all members to end, and waits for them: what came of it, an error where one has not ended.
pub(super) fn end_all(
    members: &[Member],
    access: &Access,
    saves: bool,
    limit: Duration,
) -> Vec<std::result::Result<String, String>> {
    let ask = |member: &Member| ask(member, access, saves, limit);
    let asked: Vec<_> = std::thread::scope(|scope| {
        let asked: Vec<_> = members
            .iter()
            .map(|member| scope.spawn(|| ask(member)))
            .collect();
        let failed = |_| Err("cannot be asked".to_owned());
        asked
            .into_iter()
            .map(|asked| asked.join().unwrap_or_else(failed))
            .collect()
    });
    let end = Instant::now() + limit;
    let both = members.iter().zip(asked);
    both.map(|(member, asked)| wait(member, access, &asked?, end, limit))
        .collect()
}

/// Asks a member to end.
fn ask(
    member: &Member,
    access: &Access,
    saves: bool,
    limit: Duration,
) -> std::result::Result<Asked, String> {
    let process = member.process();
    if let Some(pid) = process
        && !saves
    {
        let asked = node_process::ask_to_end(pid);
        return match asked {
            Ok(()) => Ok(Asked::Process(pid)),
            Err(error) => Err(format!("cannot be ended (pid {pid}): {}", reason(&error))),
        };
    }
    if process.is_none() {
        // Somebody else may have got the port of a node that was there.
        match probe::ask(&member.place(), access) {
            Report::Up(facts) if member.is(&facts.id) => {}
            Report::Up(_) => return Ok(Asked::Nothing),
            Report::Loading(_) if member.directory.is_none() => {}
            Report::Loading(_) => return Ok(Asked::Nothing),
            Report::Closed(why) => return Err(why),
            Report::Down(why) if why == "connection refused" => return Ok(Asked::Nothing),
            Report::Down(why) => return Err(format!("does not answer: {why}")),
        }
    }
    let words: &[&str] = if saves {
        &["SHUTDOWN", "SAVE"]
    } else {
        &["SHUTDOWN"]
    };
    let sent =
        probe::open(&member.place(), access).and_then(|connection| shut(connection, words, limit));
    match sent {
        Ok(()) => Ok(process.map_or(Asked::Port, Asked::Process)),
        Err(failure) => Err(failure.to_string()),
    }
}

/// Sends SHUTDOWN: no answer is the good one.
fn shut(mut connection: Connection, words: &[&str], limit: Duration) -> Result {
    connection.queue(words);
    connection.flush()?;
    match connection.read_within(limit) {
        Err(Failure::Broken(Broken::Closed | Broken::Io(_))) | Ok(None) => Ok(()),
        Ok(Some(Value::Error(text))) => Err(Failure::other(String::from_utf8_lossy(&text))),
        Ok(Some(_)) => Ok(()),
        Err(failure) => Err(failure),
    }
}

/// Waits until a member has ended.
fn wait(
    member: &Member,
    access: &Access,
    asked: &Asked,
    end: Instant,
    limit: Duration,
) -> std::result::Result<String, String> {
    let late = format!("did not end within {} s", limit.as_secs());
    match (asked, &member.directory) {
        (Asked::Nothing, _) => Ok("did not run".to_owned()),
        (Asked::Process(pid), Some(directory)) => {
            if node_process::has_ended(*pid, directory, end) {
                Ok("ended".to_owned())
            } else {
                Err(format!("{late} (pid {pid})"))
            }
        }
        (Asked::Process(_) | Asked::Port, _) => {
            while probe::open(&member.place(), access).is_ok() {
                if Instant::now() >= end {
                    return Err(late);
                }
                sleep(NODE_PAUSE);
            }
            Ok("ended".to_owned())
        }
    }
}
