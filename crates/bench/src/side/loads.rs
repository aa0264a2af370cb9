//! What a cell asks for on a server: how the server is started, what fills it, and the load itself.

use super::cells::{Cell, Place, quick};
use super::launch::{Recipe, Start};
use super::settings::Settings;
use crate::drive::plan::{Plan, Until};
use crate::drive::run::run;
use crate::load::workload::Workload;
use crate::options;
use crate::wire::target::Target;
use std::ffi::OsString;

/// With how many threads a server plays a cell, one time after the other.
pub(super) fn variants(recipe: &Recipe, cell: &Cell) -> &'static [usize] {
    match cell.place {
        Place::Shared if recipe.has_threads() => &[1, 2],
        _ => &[1],
    }
}

/// How a server is started for a cell.
pub(super) fn start(recipe: &Recipe, settings: &Settings, cell: &Cell, threads: usize) -> Start {
    let cpus = match cell.place {
        Place::Shared => all_cpus(settings),
        _ => settings.server_cpus.clone(),
    };
    Start {
        threads,
        cpus,
        reply_bytes: cell.reply_bytes.filter(|_| recipe.is_floor()),
    }
}

fn all_cpus(settings: &Settings) -> Vec<usize> {
    let mut cpus = [&settings.server_cpus[..], &settings.load_cpus].concat();
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

/// The command line that writes a cell's keys.
pub(super) fn fill_line(cell: &Cell, settings: &Settings) -> String {
    match settings.is_quick {
        true => quick(&cell.fill),
        false => cell.fill.to_string(),
    }
}

/// The loads that write a cell's keys.
pub(super) fn fills(line: &str, settings: &Settings) -> Result<Vec<(Plan, Workload)>, String> {
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
pub(super) fn filled_keys(cell: &Cell, settings: &Settings) -> Result<u64, String> {
    let fills = fills(&fill_line(cell, settings), settings)?;
    let requests = fills.iter().map(|(plan, _)| match plan.until {
        Until::Requests(count) => count,
        Until::Time(_) => 0,
    });
    Ok(requests.sum())
}

/// Runs a command line of this program to its end, for what it leaves behind.
///
/// # Errors
/// The server breaks off or answers with errors.
pub(super) fn load(line: &str, cpus: &[usize], target: &Target) -> Result<(), String> {
    for (plan, workload) in jobs(line)? {
        put(plan, &workload, cpus, target)?;
    }
    Ok(())
}

/// Runs a load for what it leaves behind.
pub(super) fn put(
    mut plan: Plan,
    workload: &Workload,
    cpus: &[usize],
    target: &Target,
) -> Result<(), String> {
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
pub(super) fn job(cell: &Cell, settings: &Settings) -> Result<(Plan, Workload), String> {
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
