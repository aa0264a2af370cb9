//! How far a comparison is: each step is a cell or a weighing on one server, and there are as many as can be
//! counted before the first.

use super::Settings;
use super::cells::{Cell, Place};
use super::launch::Recipe;
use super::memory;
use std::time::{Duration, Instant};

/// See the module.
#[derive(Debug)]
pub(crate) struct Steps {
    total: usize,
    begun: usize,
    began: Instant,
    /// What a step is expected to take before one was done.
    expected: Duration,
    is_shown: bool,
}

/// With how many threads a server plays a cell, one time after the other.
pub(crate) fn variants(recipe: &Recipe, cell: &Cell) -> &'static [usize] {
    match cell.place {
        Place::Shared if recipe.has_threads() => &[1, 2],
        _ => &[1],
    }
}

impl Steps {
    /// All steps of a comparison.
    pub(crate) fn new(settings: &Settings) -> Steps {
        let of_server = |recipe: &Recipe| -> usize {
            let cells = settings.cells.iter();
            cells.map(|cell| variants(recipe, cell).len()).sum()
        };
        let round: usize = settings.recipes.iter().map(of_server).sum();
        Steps {
            total: settings.rounds * round + memory::steps(settings),
            begun: 0,
            began: Instant::now(),
            // Connecting, and sometimes starting and filling.
            expected: settings.cell_time + settings.warmup + Duration::from_secs(1),
            is_shown: settings.has_progress,
        }
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
        let left = self.total.saturating_sub(self.begun);
        let each = match self.begun {
            0 => self.expected,
            done => elapsed / u32::try_from(done).unwrap_or(u32::MAX),
        };
        let left_s = each.as_secs_f64() * left as f64;
        let left = match left_s {
            ..90.0 => format!("{left_s:.0} s"),
            ..5_400.0 => format!("{:.0} min", left_s / 60.0),
            _ => format!("{:.1} h", left_s / 3_600.0),
        };
        format!(
            "[{}/{}] {what}  about {left} left",
            self.begun + 1,
            self.total
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_says_how_many_there_are_and_how_long_they_take() {
        let mut steps = Steps {
            total: 40,
            begun: 0,
            began: Instant::now(),
            expected: Duration::from_secs(3),
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
    }
}
