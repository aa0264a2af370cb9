//! Torture: everything at once, against a model that knows which states are allowed.
//!
//! | file | what |
//! |---|---|
//! | `commands` | the table of commands: shapes of their requests, and what they do to the model |
//! | `values`, `streams`, `model` | what a key holds; what a connection has, and what replies have to be |
//! | `script` | what a run does, as lines of text |
//! | `plan` | a script from a seed |
//! | `run`, `disturb`, `lives`, `operate` | a script against a server: requests; cut connections; starts and ends; maintenance, trouble, copies |
//! | `readers` | connections that wait for entries of a stream |
//! | `slots` | a server that is a node of a cluster, and the maps it has |
//! | `wire`, `process` | connections; the server's process |
//! | `history`, `verdict`, `inspect` | what can be there; whether it is; reading it |
//! | `crash` | plans of crashes alone, a policy each: what is acknowledged, and lost |
//! | `shrink` | the short script of a find |
//! | `finds` | scripts of former finds |
//!
//! `make torture SECONDS=600 SEED=1` runs it for longer on the optimised server, `make torture SCRIPT=file`
//! runs a script. Environment: `FERRITE_TORTURE_SECONDS`, `FERRITE_SEED`, `FERRITE_TORTURE_SCRIPT`,
//! `FERRITE_SERVER` (another program), `FERRITE_TORTURE_SHRINK` (seconds for making a find short),
//! `FERRITE_TORTURE_KEEP` (directories stay, unless `make` runs it).
//!
//! A new command is a row of `commands/mod.rs`. A new type is a variant of `values::Data`, a row of
//! `values::KINDS`, and the rows of its commands. A new kind of maintenance is a line of `script.rs`, its
//! effect in `operate.rs`, its place in `plan.rs`.

use crate::support;

mod commands;
mod crash;
mod disturb;
mod history;
mod inspect;
mod lives;
mod model;
mod operate;
mod plan;
pub(crate) mod process;
mod readers;
mod run;
mod script;
mod shrink;
mod slots;
mod streams;
mod values;
mod verdict;
mod wire;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use commands::COMMANDS;
use plan::Plan;
use run::{Find, Runner};
use script::Line;
use shrink::{Shrinker, replay};
use support::{Server, Target, Value};

/// Seconds that the test runs if nothing else is asked for, and its seed.
const SECONDS: u64 = 20;
const SEED: u64 = 1;
/// Lives in one directory; then all begins anew, so that the script of a find has an end.
const LIVES: usize = 12;

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok().filter(|text| !text.is_empty())?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{name} is a number")))
}

/// Runs lives of a plan, in one directory. The lines so far are left in `lines`.
fn run_lives(
    plan: &mut Plan,
    lives: usize,
    ends: Instant,
    lines: &mut Vec<Line>,
    rounds: &mut u64,
) -> Result<run::Totals, Find> {
    let mut runner = Runner::new();
    for _ in 0..lives {
        if Instant::now() >= ends {
            break;
        }
        *rounds += 1;
        for line in plan.life() {
            lines.push(line);
            runner.line(&lines[lines.len() - 1])?;
        }
    }
    runner.finish()?;
    Ok(runner.totals)
}

/// Makes a find short and says everything about it.
fn report(find: &Find, lines: Vec<Line>, seed: u64, rounds: u64, began: Instant) -> ! {
    // What is in the folder for temporary files does not outlive the tests.
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("torture-{seed}-{rounds}.txt"));
    let write = |lines: &[Line], find: &Find| {
        let comment: String = find
            .to_string()
            .lines()
            .map(|line| format!("# {line}\n"))
            .collect();
        let text = format!(
            "# seed {seed}, round {rounds}\n{comment}{}",
            script::print(lines)
        );
        std::fs::write(&file, &text).expect("cargo has made the directory");
        text
    };
    let _ = write(&lines, find);
    println!(
        "found in round {rounds} of seed {seed}, after {:.0} s: {find}\n{} lines are in {}; making them short",
        began.elapsed().as_secs_f64(),
        lines.len(),
        file.display()
    );
    let time = Duration::from_secs(setting("FERRITE_TORTURE_SHRINK").unwrap_or(120));
    let (short, runs) = Shrinker::new(find.clone(), time).shrink(lines);
    let again = replay(&short).err();
    let text = write(&short, again.as_ref().unwrap_or(find));
    panic!(
        "seed {seed}, round {rounds}: {find}\n\nafter {runs} runs the script has {} lines, in {}:\n{}",
        short.len(),
        file.display(),
        if short.len() < 200 { &text } else { "" }
    );
}

#[test]
fn everything_at_once() {
    if let Ok(path) = std::env::var("FERRITE_TORTURE_SCRIPT")
        && !path.is_empty()
    {
        let Err(find) = run_script(Path::new(&path)) else {
            return;
        };
        match setting("FERRITE_TORTURE_SHRINK") {
            Some(1..) => report(&find, read_script(Path::new(&path)), 0, 0, Instant::now()),
            _ => panic!("{path}: {find}"),
        }
    }
    let asked = setting("FERRITE_TORTURE_SECONDS");
    let seed = setting("FERRITE_SEED").unwrap_or(SEED);
    let began = Instant::now();
    let ends = began + Duration::from_secs(asked.unwrap_or(SECONDS));
    println!("torture: seed {seed}, {}", process::program().display());
    let (mut rounds, mut generation) = (0, 0);
    while Instant::now() < ends {
        // Each directory has a seed of its own, so that a find does not need the rounds before.
        let mut plan = Plan::new(seed.wrapping_mul(1000) + generation, asked.is_none());
        generation += 1;
        let mut lines = Vec::new();
        match run_lives(&mut plan, LIVES, ends, &mut lines, &mut rounds) {
            Ok(totals) => println!(
                "{:.0} s, {rounds} rounds; the last {LIVES}: {totals}",
                began.elapsed().as_secs_f64()
            ),
            Err(find) => report(&find, lines, seed, rounds, began),
        }
    }
}

fn read_script(path: &Path) -> Vec<Line> {
    let text = std::fs::read_to_string(path);
    let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    script::parse(&text).unwrap_or_else(|problem| panic!("{}: {problem}", path.display()))
}

fn run_script(path: &Path) -> Result<(), Find> {
    replay(&read_script(path))
}

#[test]
fn former_finds_are_gone() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/torture/finds");
    let entries = std::fs::read_dir(&folder).expect("the repository has the folder");
    let paths = entries.flatten().map(|entry| entry.path());
    let mut paths: Vec<_> = paths.filter(|path| path.is_file()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} is empty", folder.display());
    let finds: Vec<String> = paths
        .iter()
        .filter_map(|path| {
            let find = run_script(path).err()?;
            Some(format!("{}: {find}", path.display()))
        })
        .collect();
    assert!(finds.is_empty(), "{}", finds.join("\n\n"));
}

#[test]
fn every_write_command_has_a_row() {
    let server = Server::start(Target::Ferrite { threads: 1 }, &[]);
    let Value::Array(rows) = server.client().ask("COMMAND") else {
        panic!("COMMAND answers an array");
    };
    let (mut there, mut writes) = (BTreeSet::new(), BTreeSet::new());
    for row in rows {
        let Value::Array(facts) = row else {
            panic!("a command is an array");
        };
        let name = facts[0].text();
        let Value::Array(flags) = &facts[2] else {
            panic!("flags are an array");
        };
        if flags.iter().any(|flag| flag.text() == "write") {
            writes.insert(name.clone());
        }
        there.insert(name);
    }
    let is_operator = |row: &commands::Row| matches!(row.effect, commands::Effect::Operator);
    let kinds: BTreeSet<_> = COMMANDS
        .iter()
        .map(|row| (row.name, is_operator(row)))
        .collect();
    assert_eq!(kinds.len(), COMMANDS.len(), "a command has two rows");
    let ours: BTreeSet<String> = COMMANDS.iter().map(|row| row.name.to_owned()).collect();
    let missing: Vec<_> = writes.difference(&ours).collect();
    assert!(
        missing.is_empty(),
        "{missing:?} need a row in crates/server/tests/torture/commands/mod.rs"
    );
    let unknown: Vec<_> = ours.difference(&there).collect();
    assert!(unknown.is_empty(), "the server has no {unknown:?}");
}

#[test]
fn every_shape_is_a_request_that_the_model_runs() {
    let mut plan = Plan::new(1, true);
    plan.is_scarce = true;
    let mut model = model::Model::new(values::Keys::new());
    model.limit = Some(64 << 20);
    let is_operator = |row: &commands::Row| matches!(row.effect, commands::Effect::Operator);
    for row in COMMANDS.iter().filter(|row| !is_operator(row)) {
        for _ in 0..row.shapes.len() * 8 {
            let request = plan.shape(0, row);
            model.apply(&request, values::Span::exactly(1_000_000), &mut Vec::new());
        }
    }
}

/// A server that nothing happens to answers one connection as the model says.
#[test]
fn the_model_says_what_a_server_answers() {
    let server = Server::start(Target::Trees { threads: 1 }, &[]);
    let mut client = server.client();
    let mut plan = Plan::new(3, true);
    plan.is_idempotent = true;
    let mut model = model::Model::new(values::Keys::new());
    for _ in 0..6_000 {
        let request = model.with_cursor(&plan.request(0));
        let words: Vec<Vec<u8>> = request.iter().map(script::Arg::bytes).collect();
        let least = wire::now_ms();
        let reply = client.call(&words).expect("the server answers");
        let at = values::Span {
            least,
            most: wire::now_ms(),
        };
        model.chosen.told = Some(model.ids_of(&request, &reply));
        model.chosen.tells_duplicates = true;
        let expect = model.apply(&request, at, &mut Vec::new());
        let name = model::command_name(&request);
        assert!(
            expect.admits(&reply),
            "{name}: {reply:?} in place of {expect:?}"
        );
        if let model::Expect::Page(page) = &expect {
            model.learn_page(&request, page, &reply);
        }
    }
}
