//! What is to be compared, and how.

use super::cells::{self, Cell};
use super::launch::Recipe;
use crate::options::{Options, has_choice};
use crate::report::numbers::thousands;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) recipes: Vec<Recipe>,
    pub(crate) cells: Vec<Cell>,
    pub(crate) rounds: usize,
    pub(crate) server_cpus: Vec<usize>,
    pub(crate) load_cpus: Vec<usize>,
    /// How long a cell takes, unless it ends after so many requests.
    pub(crate) cell_time: Duration,
    pub(crate) requests: Option<u64>,
    /// How many keys the fills write is as many as there are to be.
    pub(crate) has_range: bool,
    pub(crate) has_progress: bool,
    pub(crate) warmup: Duration,
    pub(crate) is_quick: bool,
    /// What a log costs is compared, not what memory does.
    pub(crate) with_log: bool,
    /// How many keys are weighed; none with 0.
    pub(crate) memory_keys: u64,
}

impl Settings {
    /// How the comparison is made, in a line.
    pub(crate) fn text(&self) -> String {
        let length = match self.requests {
            Some(1) => "one request".to_owned(),
            Some(count) => format!("{} requests", thousands(count)),
            None => format!("{} s", self.cell_time.as_secs_f64()),
        };
        format!(
            "server on processors {:?}, load on {:?}; {} rounds of {length} a cell",
            self.server_cpus, self.load_cpus, self.rounds,
        )
    }
}

/// What a command line asks for.
///
/// # Errors
/// It names a cell or test that is not there, or a server that is no NAME=COMMAND.
pub(super) fn settings(options: &Options) -> Result<Settings, String> {
    let cpus = sys::cpu::usable_cpu_numbers().unwrap_or_default();
    let (mut server_cpus, mut load_cpus) = (options.server_cpus.clone(), options.cpus.clone());
    if let [first, .., last] = cpus[..] {
        // The first for the server, the last for the load.
        if server_cpus.is_empty() {
            server_cpus = vec![first];
        }
        if load_cpus.is_empty() {
            load_cpus = vec![last];
        }
    }
    let quick = |time: Duration| if options.is_quick { time / 8 } else { time };
    Ok(Settings {
        recipes: recipes(options)?,
        cells: cells::chosen(options)?,
        rounds: options
            .rounds
            .unwrap_or(if options.is_quick { 1 } else { 5 }),
        server_cpus,
        load_cpus,
        cell_time: options.test_time.unwrap_or(quick(Duration::from_secs(2))),
        requests: options.requests.filter(|_| options.test_time.is_none()),
        has_range: cells::has_range(options),
        has_progress: options.has_progress,
        warmup: options.warmup.unwrap_or(quick(Duration::from_millis(400))),
        is_quick: options.is_quick,
        with_log: options.with_log,
        memory_keys: options.memory_keys.unwrap_or(default_memory_keys(options)),
    })
}

/// Who compares a choice of loads, or what a log costs, does not ask what keys weigh.
fn default_memory_keys(options: &Options) -> u64 {
    let is_choice = options.cells.is_some() || has_choice(options);
    match options.is_quick {
        _ if is_choice || options.with_log => 0,
        true => 20_000,
        false => 3_000_000,
    }
}

/// The servers that are always compared, and those of the command line behind them or in their place.
fn recipes(options: &Options) -> Result<Vec<Recipe>, String> {
    let mut recipes = Vec::new();
    if let Some(redis) = find_program("redis-server") {
        let mut add = |name: &str, line: &str| {
            recipes.push(Recipe {
                name: name.into(),
                // No snapshots, which is said with an empty word.
                words: words(&redis, &format!("{PLACES} {line} --save"), &[""]),
            });
        };
        add("redis", "--appendonly no");
        if options.with_log {
            add("redis, log", EVERYSEC);
        }
    }
    let own = std::env::current_exe().map_err(|error| format!("where am I? {error}"))?;
    recipes.push(Recipe {
        name: "floor".into(),
        words: words(
            &own,
            "floor --port {port} --socket {dir}/server.sock --reply {reply}",
            &[],
        ),
    });
    // Beside this program, as cargo and packages put it.
    let beside = own.with_file_name("ferrite-server");
    let ferrite = beside.exists().then_some(beside);
    if let Some(ferrite) = ferrite.or_else(|| find_program("ferrite-server")) {
        let (name, log) = if options.with_log {
            ("ferrite, log", EVERYSEC)
        } else {
            ("ferrite", "--appendonly no")
        };
        recipes.push(Recipe {
            name: name.into(),
            // No snapshots, as above.
            words: words(
                &ferrite,
                &format!("{PLACES} {log} --threads {{threads}} --save"),
                &[""],
            ),
        });
    }
    for word in &options.words {
        let recipe = Recipe::parse(&String::from_utf8_lossy(word))?;
        match recipes.iter_mut().find(|known| known.name == recipe.name) {
            Some(known) => *known = recipe,
            None => recipes.push(recipe),
        }
    }
    Ok(recipes)
}

/// Where a server listens and keeps its files.
const PLACES: &str = "--port {port} --unixsocket {dir}/server.sock --dir {dir}";
const EVERYSEC: &str = "--appendonly yes --appendfsync everysec";

fn words(program: &Path, line: &str, more: &[&str]) -> Vec<String> {
    let mut words = vec![program.display().to_string()];
    words.extend(line.split_whitespace().map(str::to_owned));
    words.extend(more.iter().map(|&word| word.to_owned()));
    words
}

fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|dir| dir.join(name))
        .find(|path| path.is_file())
}
