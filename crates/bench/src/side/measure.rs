//! The rounds: every server goes through all cells, then the next server, then the next round. What
//! the machine does at a bad moment then falls on all of them, and the median leaves it out.

use super::cells::{Cell, Place};
use super::launch::{Launched, Recipe, Start};
use super::loads::{fill_line, fills, job, put, start, variants};
use super::settings::Settings;
use super::steps::Steps;
use crate::drive::counts::percentile_ns;
use crate::drive::outcome::Outcome;
use crate::drive::plan::Plan;
use crate::drive::run::run;
use std::collections::BTreeMap;

/// What one server did in one cell of one round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CellSample {
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
    pub(crate) samples: BTreeMap<(String, Entrant), Vec<CellSample>>,
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
        if !self.recipe.is_floor() {
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
        let sample = CellSample {
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
