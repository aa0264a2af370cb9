//! ferrite-bench: puts a load on a server that speaks the Redis protocol, and says what came of it.
//!
//! Reading order: [`options`] says what was asked for, [`load`] what is sent, [`wire`] is one
//! connection, [`drive`] puts the load on a server and counts, [`report`] writes down what was counted.
//! [`side`] starts servers and compares them, [`floor`] is the one that costs nothing.

#![forbid(unsafe_code)]

mod drive;
mod floor;
mod limits;
mod load;
mod machine;
mod options;
mod report;
mod side;
mod wire;

use drive::plan::Plan;
use drive::run::{Outcome, run};
use floor::Floor;
use load::workload::Workload;
use options::{Mode, Options};
use report::document::{Document, Run};
use report::text::Host;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use wire::ask::Asker;
use wire::target::Target;

fn main() -> ExitCode {
    match start() {
        Ok(true) => ExitCode::SUCCESS,
        // What went wrong is in the report.
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// Does what the command line says; false if requests failed.
fn start() -> Result<bool, String> {
    let options = options::parse(std::env::args_os().skip(1))?;
    if options.wants_help {
        print!("{}", options::help());
        return Ok(true);
    }
    if options.wants_version {
        println!("{}", options::version());
        return Ok(true);
    }
    if let Some(old) = &options.compare {
        return compare(old, &options.words);
    }
    match options.mode {
        Mode::Load => load(&options),
        Mode::SideBySide => side::run(&options),
        Mode::Floor => floor::serve(&Floor {
            port: Some(options.port),
            socket: options.socket.clone(),
            reply_bytes: options.reply_bytes,
        })
        .map(|()| true),
    }
}

/// Puts the load of the command line on its server.
fn load(options: &Options) -> Result<bool, String> {
    // Each connection is a descriptor; if there are too few, the first that fails says so.
    let _ = sys::process::raise_open_files(options.clients as u64 + 64);
    let mut meaning = options::understand(options)?;
    let host = get_acquainted(&mut meaning.target, options.timeout);
    let mut document = Document::new(command_line());
    let mut all_well = true;
    if options.is_csv {
        println!("{}", report::csv::HEADER);
    }
    loop {
        for (plan, workload) in &meaning.jobs {
            let outcome = run(plan, workload, &meaning.target)?;
            print_report(options, plan, workload, &outcome, &host);
            let server = host.version.as_deref();
            document
                .runs
                .push(Run::of(plan, workload, &meaning.target, server, &outcome));
            // After each, so that a run that is stopped has left something.
            write_files(options, &document)?;
            all_well &= !report::text::has_problems(&outcome);
        }
        if !options.repeats {
            return Ok(all_well);
        }
    }
}

fn write_files(options: &Options, document: &Document) -> Result<(), String> {
    if let Some(path) = &options.json {
        document.write(path)?;
    }
    if let Some(path) = &options.html {
        std::fs::write(path, report::html::page(document))
            .map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
    }
    Ok(())
}

fn compare(old: &Path, words: &[Vec<u8>]) -> Result<bool, String> {
    let [new] = words else {
        return Err("--compare needs two files that --json wrote".into());
    };
    let new = Path::new(OsStr::from_bytes(new));
    let (old, new) = (Document::read(old)?, Document::read(new)?);
    print!("{}", report::compare::text(&old, &new));
    Ok(true)
}

/// Asks the server what reports show of it, and for its process if it is on this machine. None of it
/// is needed, so a server that does not tell is loaded all the same.
fn get_acquainted(target: &mut Target, patience: Duration) -> Host {
    let Ok(mut asker) = Asker::open(target, patience) else {
        return Host::default();
    };
    // A server that does not answer the first question is not asked the others.
    let Ok(info) = asker.info() else {
        return Host::default();
    };
    if target.pid.is_none() && is_local(target) {
        let pid = info.field("process_id").and_then(|pid| pid.parse().ok());
        target.pid = pid.filter(|&pid| sys::process::cpu_time_of(pid).is_some());
    }
    Host {
        version: info.version(),
        save: asker.setting("save"),
        appendonly: asker.setting("appendonly"),
    }
}

/// What this program was started with.
fn command_line() -> Vec<String> {
    let words = std::env::args_os();
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

fn is_local(target: &Target) -> bool {
    match &target.endpoint {
        sys::socket::Endpoint::Unix(_) => true,
        sys::socket::Endpoint::Tcp(address) => address.ip().is_loopback(),
    }
}

fn print_report(
    options: &Options,
    plan: &Plan,
    workload: &Workload,
    outcome: &Outcome,
    host: &Host,
) {
    let precision = options.precision;
    if options.is_csv {
        println!("{}", report::csv::line(&workload.title, outcome, precision));
    } else if options.is_quiet {
        print!(
            "{}",
            report::text::quiet(&workload.title, outcome, precision)
        );
    } else {
        print!(
            "{}",
            report::text::full(plan, workload, outcome, host, precision)
        );
    }
}
