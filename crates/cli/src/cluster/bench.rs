//! `cluster bench`: a load on all nodes at once, by the load generator beside this program, with a line a
//! node and one for the sum.

use std::ffi::{OsStr, OsString};
use std::process::Command;

use super::fleet::{Fleet, PORT_FLAG};
use super::given::Given;
use super::probe;
use super::programs::beside;
use super::subcommand::{Rest, Subcommand};
use crate::access::Access;
use crate::failure::{Failure, Result, reason};
use crate::flags::Options;

pub(super) const SUBCOMMAND: Subcommand = Subcommand {
    name: "bench",
    words: &["NODES|DIR", "REQUESTS", "CONNECTIONS"],
    summary: "Puts a load on all nodes at once, with keys of their own, and prints a line for each and one \
              for the sum. The options are those of ferrite-bench: -t set,get,mset, -P 16, --json FILE, \
              --html FILE.",
    flags: &[PORT_FLAG],
    rest: Rest::Behind("BENCH OPTION"),
    run,
};

/// The load generator.
const PROGRAM: &str = "ferrite-bench";

/// What is measured if nobody says otherwise.
const TESTS: &str = "set,get";

fn run(given: &Given, options: &Options) -> Result {
    let fleet = Fleet::of_given(given)?;
    let [requests, connections] = [1, 2].map(|at| given.word(at));
    drive(&fleet, &options.access, requests, connections, &given.rest)
}

/// Puts a load on all nodes and waits for its end. What is measured goes to standard output.
///
/// # Errors
/// A node is down, or requests failed.
pub(super) fn drive(
    fleet: &Fleet,
    access: &Access,
    requests: &OsStr,
    connections: &OsStr,
    rest: &[OsString],
) -> Result {
    let reports = probe::ask_all(&fleet.members, access);
    for (member, report) in fleet.members.iter().zip(&reports) {
        if report.facts().is_none() {
            let (name, state) = (&member.name, report.state());
            return Err(Failure::Other(format!("{name} is down: {state}")));
        }
    }
    let program = beside(PROGRAM);
    let first = &fleet.members[0];
    // As many threads as separate load generators would have, one for each node.
    let threads = fleet.members.len().min(sys::cpu::usable_cpus());
    // Too few connections are the load generator's to refuse.
    let most = connections.to_str().and_then(|text| text.parse().ok());
    let threads = threads.min(most.unwrap_or(1)).max(1);
    let mut command = Command::new(&program);
    command
        .args(["--cluster", "--hide-histogram", "-h", &first.host])
        .args(["-p", &first.port.to_string(), "-t", TESTS])
        .args(["--threads", &threads.to_string()])
        .arg("-n")
        .arg(requests)
        .arg("-c")
        .arg(connections);
    if let Some(user) = &access.user {
        command.arg("--user").arg(os(user));
    }
    if let Some(password) = &access.password {
        command.arg("-a").arg(os(password));
    }
    let status = command.args(rest).status().map_err(|error| {
        let (program, reason) = (program.display(), reason(&error));
        Failure::Other(format!("{program} cannot be started: {reason}"))
    })?;
    // It has said why.
    if status.success() {
        Ok(())
    } else {
        Err(Failure::Told)
    }
}

fn os(bytes: &[u8]) -> &OsStr {
    use std::os::unix::ffi::OsStrExt;
    OsStr::from_bytes(bytes)
}
