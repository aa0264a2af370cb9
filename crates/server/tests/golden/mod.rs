//! The golden scripts: every file of `tests/scripts`, run against a real redis-server and against Ferrite
//! with one and with two threads, over RESP2 and over RESP3 (those of later releases against Redis 8.2 and
//! Valkey, as they say). The expectation itself is thereby tested; where
//! Ferrite differs on purpose, the script says so.
//!
//! - `cargo test --test all golden` runs all.
//! - `UPDATE_GOLDEN=1` rewrites expectations that redis-server does not meet, and fills in missing ones.
//! - `GOLDEN_TARGETS=synced1` runs them against Ferrite whose log is on the disk before each reply.
//! - `GOLDEN_TARGETS=redis,ferrite1` and `GOLDEN_ONLY=strings/set` (a part of the path) select.
//!
//! The format is described in `script.rs`, the notation of expectations in `notation.rs`.

mod expect;
mod notation;
mod report;
mod run;
mod script;
mod tests;
mod update;
mod words;

use crate::support;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use report::Report;
use run::run_script;
use script::Script;
use support::{Proto, Server, Target};

const TARGETS: [Target; 9] = [
    Target::Redis,
    Target::Redis8,
    Target::Valkey,
    Target::Ferrite { threads: 1 },
    Target::Ferrite { threads: 2 },
    Target::Logged { threads: 2 },
    Target::Synced { threads: 1 },
    Target::Cold { threads: 2 },
    Target::ColdTrees { threads: 2 },
];
const PROTOS: [Proto; 2] = [Proto::Resp2, Proto::Resp3];

#[test]
fn golden_scripts() {
    let paths = script_paths();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        return update::update(&paths);
    }
    let scripts = load(&paths);
    assert!(!scripts.is_empty(), "no script found");
    let targets = selected_targets();
    // A thread for each target: they share nothing but the scripts.
    let reports: Vec<Report> = thread::scope(|scope| {
        let scripts = &scripts;
        let running: Vec<_> = targets
            .iter()
            .map(|&target| scope.spawn(move || run_target(target, scripts)))
            .collect();
        running
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|cause| std::panic::resume_unwind(cause))
            })
            .collect()
    });
    let report = reports.into_iter().fold(Report::default(), Report::merge);
    report.print(scripts.len(), targets.len() * PROTOS.len());
    assert!(report.is_clean(), "expectations were not met");
}

/// Runs every script over both protocols: one server for all that need no options, one for each that does.
fn run_target(target: Target, scripts: &[Script]) -> Report {
    let mut report = Report::default();
    let mut shared = Server::start(target, &[]);
    for script in scripts {
        for proto in PROTOS
            .into_iter()
            .filter(|&proto| script.admits(target, proto))
        {
            if !script.needs_own_server() {
                report.add_run(
                    script,
                    target,
                    proto,
                    run_script(script, &shared, target, proto, false),
                );
                if let Some(status) = shared.has_ended() {
                    report.add_failure(
                        script,
                        target,
                        proto,
                        &format!("the server ended ({status}):\n{}", shared.output()),
                    );
                    shared = Server::start(target, &[]);
                }
                continue;
            }
            match own_server(target, script) {
                Ok(server) => report.add_run(
                    script,
                    target,
                    proto,
                    run_script(script, &server, target, proto, false),
                ),
                Err(why) => report.add_failure(script, target, proto, &why),
            }
        }
    }
    report
}

fn own_server(target: Target, script: &Script) -> Result<Server, String> {
    let options: Vec<&str> = script.server.iter().map(String::as_str).collect();
    Server::try_start(target, &script.config, &options).map_err(|failure| failure.to_string())
}

fn scripts_dir() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripts"))
}

/// All script files in order of their names, less those that `GOLDEN_ONLY` leaves out.
fn script_paths() -> Vec<PathBuf> {
    let only = std::env::var("GOLDEN_ONLY").unwrap_or_default();
    let mut paths = Vec::new();
    let mut dirs = vec![scripts_dir().to_owned()];
    while let Some(dir) = dirs.pop() {
        let entries =
            fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
        for path in entries.map(|entry| entry.expect("a directory can be listed").path()) {
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|extension| extension == "txt")
                && path.to_string_lossy().contains(&only)
            {
                paths.push(path);
            }
        }
    }
    paths.sort();
    paths
}

fn load(paths: &[PathBuf]) -> Vec<Script> {
    let (scripts, errors): (Vec<_>, Vec<_>) = paths
        .iter()
        .map(|path| Script::load(path, false))
        .partition(Result::is_ok);
    let errors: Vec<String> = errors.into_iter().filter_map(Result::err).collect();
    assert!(
        errors.is_empty(),
        "scripts that cannot be read:\n{}",
        errors.join("\n")
    );
    scripts.into_iter().filter_map(Result::ok).collect()
}

fn selected_targets() -> Vec<Target> {
    let Ok(names) = std::env::var("GOLDEN_TARGETS") else {
        return TARGETS.to_vec();
    };
    let find = |name: &str| {
        TARGETS
            .into_iter()
            .find(|target| target.to_string() == name.trim())
    };
    names
        .split(',')
        .map(|name| find(name).unwrap_or_else(|| panic!("GOLDEN_TARGETS: no target {name}")))
        .collect()
}
