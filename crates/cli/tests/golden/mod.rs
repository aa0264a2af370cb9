//! Golden scripts: what the client prints, run three times: by redis-cli against redis-server, so that the
//! expectation itself is tested, then by ferrite-cli against redis-server and against Ferrite.
//!
//! A script is a text file in `tests/scripts`:
//!
//! ```text
//!   # a comment
//!   @ ferrite-cli            the next run is not redis-cli's: it lacks this, or differs on purpose (say why)
//!   @ redis-server           the next run needs what Ferrite does not have yet
//!   @ ferrite-server         the next run is about what Ferrite alone has
//!   @ NAME=VALUE             the next run has this in its environment
//!   @ lines 3                the next run would go on for ever, and is ended after so many lines
//!   $ -n 1 SET "a b" v       runs the program; the connection's flags come in front, unless `$-` is written
//!   < a line                 of its standard input
//!   <- a\r\n                 the same with escapes, and without an end of line
//!   > a line                 of its standard output
//!   >- a line                the same without an end of line
//!   >/ ^a .* line$           a line that matches an expression
//!   >...                     any number of lines
//!   ! a line                 of its standard error
//!   ? 1                      its exit code, if not 0
//! ```
//!
//! `{port}`, `{socket}` and `{dir}` stand for the server's port and unix socket and for an empty directory.
//! Bytes that are no printable text are written as `<0d>`.
//!
//! `UPDATE_GOLDEN=1` writes down what redis-cli says, or ferrite-cli where it alone runs; then read what was
//! written.

use crate::support;

mod run;
mod script;

use std::fs;
use std::path::{Path, PathBuf};

use run::{Program, Setting};
use script::{Script, Step};
use support::{Kind, Server};

#[test]
fn the_client_prints_what_it_should() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut paths: Vec<PathBuf> = fs::read_dir(&directory)
        .expect("the scripts are there")
        .map(|entry| entry.expect("a directory entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .filter(|path| match std::env::var("GOLDEN") {
            Ok(part) => path.to_string_lossy().contains(&part),
            Err(_) => true,
        })
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "no scripts");
    let redis = Server::start(Kind::Redis, &[]);
    let ferrite = Server::start(Kind::Ferrite, &[]);
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut failures = String::new();
    let mut count = 0;
    for path in &paths {
        let text = fs::read_to_string(path).expect("a script is text");
        let mut script = Script::parse(path, &text);
        if update {
            record(&mut script, &redis);
            fs::write(path, script.to_string()).expect("the scripts can be written");
        }
        for (program, server, kind) in [
            (Program::Redis, &redis, Kind::Redis),
            (Program::Ferrite, &redis, Kind::Redis),
            (Program::Ferrite, &ferrite, Kind::Ferrite),
        ] {
            let mut setting = Setting::new(program, server);
            for step in &script.steps {
                if step.is_for(program == Program::Redis, kind == Kind::Ferrite) {
                    count += 1;
                    if let Some(difference) = difference(step, &mut setting) {
                        failures.push_str(&format!(
                            "{}:{}: {program:?} with {kind:?}\n{difference}\n",
                            path.display(),
                            step.line
                        ));
                    }
                }
            }
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
    println!("{} scripts, {count} runs", paths.len());
}

/// Runs a step and says in what it differs from what is expected.
fn difference(step: &Step, setting: &mut Setting<'_>) -> Option<String> {
    let found = setting.run(step);
    if step.expects(&found) {
        return None;
    }
    Some(format!(
        "$ {}\n--- expected\n{}--- found\n{found}",
        step.command, step.expected
    ))
}

/// Replaces the expectations by what is found.
fn record(script: &mut Script, server: &Server) {
    let mut theirs = Setting::new(Program::Redis, server);
    for step in &mut script.steps {
        if step.is_for(true, false) {
            let found = theirs.run(step);
            step.learn(found);
        }
    }
    let mut ours = Setting::new(Program::Ferrite, server);
    for step in &mut script.steps {
        let found = ours.run(step);
        if step.only_ferrite_cli {
            step.learn(found);
        }
    }
}
