//! How far a comparison is: each step is a cell or a weighing on one server. How long each may take is
//! estimated before the first; what is left is told by how long those took that are done.

use super::launch::Recipe;
use super::loads::{filled_keys, start, variants};
use super::settings::Settings;
use std::time::{Duration, Instant};

/// Keys that are written in a second, about, to fill a server for a cell or to weigh them.
const KEYS_PER_S: f64 = 300_000.0;

/// Requests of a load in a second, about, where a number of them is wanted.
const REQUESTS_PER_S: f64 = 100_000.0;

/// What starting a server takes, and connecting to it.
const START: Duration = Duration::from_millis(500);

/// See the module.
#[derive(Debug)]
pub(crate) struct Steps {
    /// What each step was expected to take before the first.
    expected: Vec<Duration>,
    begun: usize,
    began: Instant,
    is_shown: bool,
}

impl Steps {
    /// All steps of a comparison, which ends with weighings of so many keys each.
    ///
    /// # Errors
    /// A cell is no command line.
    pub(crate) fn new(settings: &Settings, weighings: &[u64]) -> Result<Steps, String> {
        let mut round = Vec::new();
        for recipe in &settings.recipes {
            of_server(recipe, settings, &mut round)?;
        }
        let mut expected = round.repeat(settings.rounds);
        expected.extend(weighings.iter().map(|&keys| START + filling(keys)));
        Ok(Steps {
            expected,
            begun: 0,
            began: Instant::now(),
            is_shown: settings.has_progress,
        })
    }

    /// A step begins.
    pub(crate) fn begin(&mut self, what: &str) {
        let line = self.line(what, self.began.elapsed());
        self.begun += 1;
        if self.is_shown {
            eprintln!("{line}");
        }
    }

    fn line(&self, what: &str, elapsed: Duration) -> String {
        let (done, left) = self.expected.split_at(self.begun.min(self.expected.len()));
        let seconds = |steps: &[Duration]| steps.iter().sum::<Duration>().as_secs_f64();
        let times_as_long = match self.begun {
            0 => 1.0,
            _ => elapsed.as_secs_f64() / seconds(done).max(1e-9),
        };
        let left_s = times_as_long * seconds(left);
        let left = match left_s {
            ..90.0 => format!("{left_s:.0} s"),
            ..5_400.0 => format!("{:.0} min", left_s / 60.0),
            _ => format!("{:.1} h", left_s / 3_600.0),
        };
        format!(
            "[{}/{}] {what}  about {left} left",
            self.begun + 1,
            self.expected.len()
        )
    }
}

/// What the steps of a server in one round may take.
fn of_server(
    recipe: &Recipe,
    settings: &Settings,
    steps: &mut Vec<Duration>,
) -> Result<(), String> {
    // What the server was started with and filled with last.
    let (mut running, mut filled) = (None, None);
    for cell in &settings.cells {
        for &threads in variants(recipe, cell) {
            let length = match settings.requests {
                Some(count) => Duration::from_secs_f64(count as f64 / REQUESTS_PER_S),
                None => settings.cell_time,
            };
            let mut step = length + settings.warmup;
            let start = start(recipe, settings, cell, threads);
            if running.as_ref() != Some(&start) {
                step += START;
                (running, filled) = (Some(start), None);
            }
            if !recipe.is_floor() && filled != Some(&cell.fill) {
                step += filling(filled_keys(cell, settings)?);
                filled = Some(&cell.fill);
            }
            steps.push(step);
        }
    }
    Ok(())
}

/// What writing so many keys may take.
fn filling(keys: u64) -> Duration {
    Duration::from_secs_f64(keys as f64 / KEYS_PER_S)
}

#[cfg(test)]
mod tests {
    use super::super::{cells, memory};
    use super::*;

    fn steps(settings: &Settings) -> Steps {
        Steps::new(settings, &memory::writings(settings)).expect("cells are command lines")
    }

    fn settings(memory_keys: u64) -> Settings {
        let recipe = |text| Recipe::parse(text).expect("it is one");
        Settings {
            recipes: vec![recipe("a=x"), recipe("floor=x {reply}")],
            cells: cells::select(Some("set-p1,get-p1,set-64k")).expect("there are such"),
            rounds: 2,
            server_cpus: vec![0],
            load_cpus: vec![1],
            cell_time: Duration::from_secs(2),
            requests: None,
            has_range: false,
            has_progress: false,
            warmup: Duration::ZERO,
            is_quick: false,
            with_log: false,
            memory_keys,
        }
    }

    #[test]
    fn what_fills_a_server_and_what_weighs_keys_is_a_part_of_the_estimate() {
        let with = steps(&settings(300_000));
        let ms: Vec<u128> = with.expected.iter().map(Duration::as_millis).collect();
        // A million keys, then the same ones, then a thousand; the floor is not filled.
        let round = [5_833, 2_000, 2_003, 2_500, 2_500, 2_500];
        assert_eq!((&ms[..6], &ms[6..12]), (&round[..], &round[..]));
        // Three of the weighings write once, two five times.
        assert_eq!(ms[12..], [1_500, 1_500, 5_500, 5_500, 1_500]);
        let without = steps(&settings(0));
        assert_eq!(without.expected.len(), 12);
    }

    #[test]
    fn a_step_says_how_many_there_are_and_how_long_they_take() {
        let mut steps = Steps {
            expected: vec![Duration::from_secs(3); 40],
            begun: 0,
            began: Instant::now(),
            is_shown: false,
        };
        assert_eq!(
            steps.line("a", Duration::ZERO),
            "[1/40] a  about 2 min left"
        );
        steps.begin("a");
        assert_eq!(
            steps.line("b", Duration::from_secs(2)),
            "[2/40] b  about 78 s left"
        );
        steps.begun = 39;
        assert_eq!(
            steps.line("c", Duration::from_secs(39)),
            "[40/40] c  about 1 s left"
        );
        // One that is longer than the others.
        steps.expected[39] = Duration::from_secs(30);
        assert_eq!(
            steps.line("c", Duration::from_secs(39)),
            "[40/40] c  about 10 s left"
        );
    }
}
