//! The rounds: every server goes through all cells, then the next server, then the next round. What
//! the machine does at a bad moment then falls on all of them, and the median leaves it out.

use super::Settings;
use super::cells::{Cell, Place, quick};
use super::launch::{Launched, Recipe, Start};
use super::steps::{Steps, variants};
use crate::drive::counts::percentile_ns;
use crate::drive::plan::{Plan, Until};
use crate::drive::run::{Outcome, run};
use crate::load::workload::Workload;
use crate::options;
use crate::wire::target::Target;
use std::collections::BTreeMap;
use std::ffi::OsString;

/// What one server did in one cell of one round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) rate: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    /// Microseconds of the server's processor time per operation.
    pub(crate) cpu_us: f64,
    pub(crate) rss_bytes: u64,
    /// How busy the load was; near 1 it limits the rate.
    pub(crate) load_busy: f64,
}

/// A server with a number of workers, as a line of the tables.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entrant {
    /// The place of its recipe.
    pub(crate) index: usize,
    pub(crate) name: String,
    pub(crate) threads: usize,
}

/// Everything that was measured.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measured {
    /// By cell and server.
    pub(crate) samples: BTreeMap<(String, Entrant), Vec<Sample>>,
    /// What each server says it is.
    pub(crate) versions: BTreeMap<String, String>,
    /// What went wrong, each once.
    pub(crate) problems: Vec<String>,
}

/// Runs all rounds.
///
/// # Errors
/// A server does not start.
pub(crate) fn rounds(settings: &Settings, steps: &mut Steps) -> Result<Measured, String> {
    let mut measured = Measured::default();
    for round in 1..=settings.rounds {
        for (index, recipe) in settings.recipes.iter().enumerate() {
            let mut stage = Stage {
                settings,
                recipe,
                index,
                running: None,
                measured: &mut measured,
            };
            for cell in &settings.cells {
                for &threads in variants(recipe, cell) {
                    let rounds = settings.rounds;
                    steps.begin(&format!(
                        "round {round}/{rounds}  {}  {}",
                        recipe.name, cell.name
                    ));
                    stage.play(cell, threads)?;
                }
            }
        }
    }
    Ok(measured)
}

/// A server and where it is in its cells.
struct Stage<'a> {
    settings: &'a Settings,
    recipe: &'a Recipe,
    index: usize,
    running: Option<Running>,
    measured: &'a mut Measured,
}

struct Running {
    start: Start,
    server: Launched,
    /// The fill that its keys are of.
    filled: Option<String>,
}

impl Stage<'_> {
    fn play(&mut self, cell: &Cell, threads: usize) -> Result<(), String> {
        let start = start(self.recipe, self.settings, cell, threads);
        if self
            .running
            .as_ref()
            .is_none_or(|running| running.start != start)
        {
            // The old one ends before the new one begins, or they would share a processor.
            self.running = None;
            let server = Launched::start(self.recipe, &start)?;
            if let Some(version) = &server.version {
                let name = self.recipe.name.clone();
                self.measured.versions.insert(name, version.clone());
            }
            self.running = Some(Running {
                start,
                server,
                filled: None,
            });
        }
        let Some(running) = &mut self.running else {
            return Ok(());
        };
        if !is_floor(self.recipe) {
            fill(running, cell, self.settings)?;
        }
        let target = match cell.place {
            Place::Unix => running.server.through_socket_file(),
            _ => Some(running.server.target.clone()),
        };
        let Some(target) = target else {
            return Ok(());
        };
        let (plan, workload) = job(cell, self.settings)?;
        match run(&plan, &workload, &target) {
            Ok(outcome) => self.note(cell, threads, &plan, &outcome),
            Err(error) => self.complain(format!("{}: {error}", cell.title)),
        }
        Ok(())
    }

    fn note(&mut self, cell: &Cell, threads: usize, plan: &Plan, outcome: &Outcome) {
        let total = outcome.total();
        if total.errors > 0 {
            let text = total.first_error.clone().unwrap_or_default();
            self.complain(format!("{}: {} says {text}", cell.title, self.recipe.name));
        }
        let sample = Sample {
            rate: outcome.rate(),
            p50_ms: percentile_ns(&total.latency, 50.0) as f64 / 1e6,
            p99_ms: percentile_ns(&total.latency, 99.0) as f64 / 1e6,
            cpu_us: outcome.server_us_per_request().unwrap_or(0.0),
            rss_bytes: outcome.server_rss_bytes.unwrap_or(0),
            load_busy: outcome.load_busy(plan),
        };
        let entrant = Entrant {
            index: self.index,
            name: self.recipe.name.clone(),
            threads,
        };
        let samples = self
            .measured
            .samples
            .entry((cell.name.to_string(), entrant));
        samples.or_default().push(sample);
    }

    fn complain(&mut self, problem: String) {
        eprintln!("PROBLEM: {problem}");
        if !self.measured.problems.contains(&problem) {
            self.measured.problems.push(problem);
        }
    }
}

/// How a server is started for a cell.
pub(crate) fn start(recipe: &Recipe, settings: &Settings, cell: &Cell, threads: usize) -> Start {
    let cpus = match cell.place {
        Place::Shared => all_cpus(settings),
        _ => settings.server_cpus.clone(),
    };
    Start {
        threads,
        cpus,
        reply_bytes: cell.reply_bytes.filter(|_| is_floor(recipe)),
    }
}

/// The floor answers without looking.
pub(crate) fn is_floor(recipe: &Recipe) -> bool {
    recipe.words.iter().any(|word| word.contains("{reply}"))
}

fn all_cpus(settings: &Settings) -> Vec<usize> {
    let mut cpus = [&settings.server_cpus[..], &settings.load_cpus].concat();
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

/// The command line that writes a cell's keys.
fn fill_line(cell: &Cell, settings: &Settings) -> String {
    match settings.is_quick {
        true => quick(&cell.fill),
        false => cell.fill.to_string(),
    }
}

/// The loads that write a cell's keys.
fn fills(line: &str, settings: &Settings) -> Result<Vec<(Plan, Workload)>, String> {
    if line.is_empty() {
        return Ok(Vec::new());
    }
    let mut fills = jobs(line)?;
    for (plan, workload) in &mut fills {
        if settings.has_range {
            plan.until = Until::Requests(workload.numbers[0].count);
        }
    }
    Ok(fills)
}

/// How many requests write a cell's keys.
pub(crate) fn filled_keys(cell: &Cell, settings: &Settings) -> Result<u64, String> {
    let fills = fills(&fill_line(cell, settings), settings)?;
    let requests = fills.iter().map(|(plan, _)| match plan.until {
        Until::Requests(count) => count,
        Until::Time(_) => 0,
    });
    Ok(requests.sum())
}

/// Gives the server the keys that a cell is about, if it has not got them.
fn fill(running: &mut Running, cell: &Cell, settings: &Settings) -> Result<(), String> {
    let line = fill_line(cell, settings);
    // A cell without keys adds its own, so it never finds what it wants.
    let is_there = !line.is_empty() && running.filled.as_ref() == Some(&line);
    if is_there {
        return Ok(());
    }
    running.server.asker()?.ask(&[b"FLUSHALL"])?;
    let (target, cpus) = (&running.server.target, &settings.load_cpus);
    for (plan, workload) in fills(&line, settings)? {
        put(plan, &workload, cpus, target)?;
    }
    running.filled = Some(line);
    Ok(())
}

/// Runs a command line of this program to its end, for what it leaves behind.
///
/// # Errors
/// The server breaks off or answers with errors.
pub(crate) fn load(line: &str, cpus: &[usize], target: &Target) -> Result<(), String> {
    for (plan, workload) in jobs(line)? {
        put(plan, &workload, cpus, target)?;
    }
    Ok(())
}

/// Runs a load for what it leaves behind.
fn put(mut plan: Plan, workload: &Workload, cpus: &[usize], target: &Target) -> Result<(), String> {
    plan.cpus = cpus.to_vec();
    match run(&plan, workload, target)?.total().first_error {
        Some(error) => Err(format!("{}: {}: {error}", target.name, workload.title)),
        None => Ok(()),
    }
}

fn jobs(line: &str) -> Result<Vec<(Plan, Workload)>, String> {
    let words = shlex::split(line).ok_or_else(|| format!("a quote is not closed: {line}"))?;
    let words = words.into_iter().map(OsString::from);
    let mut options = options::parse(words)?;
    options.has_progress = false;
    options::jobs(&options)
}

/// A cell's load, for as long as a cell takes.
fn job(cell: &Cell, settings: &Settings) -> Result<(Plan, Workload), String> {
    let line = match settings.is_quick {
        true => quick(&cell.options),
        false => cell.options.to_string(),
    };
    let warmup = settings.warmup.as_secs_f64();
    let line = match settings.requests {
        Some(_) => format!("{line} --warmup {warmup}"),
        None => {
            let time = settings.cell_time.as_secs_f64();
            format!("{line} --test-time {time} --warmup {warmup}")
        }
    };
    let mut jobs = jobs(&line)?;
    let (mut plan, workload) = jobs.pop().ok_or("a cell has a load")?;
    plan.cpus = match cell.place {
        // Two threads beside the server's, wherever there is room.
        Place::Shared => Vec::new(),
        _ => settings.load_cpus.clone(),
    };
    Ok((plan, workload))
}
