//! The one line that shows a run while it goes on; only on a terminal.

use super::outcome::Point;
use std::io::{IsTerminal, Write, stderr};
use std::time::Duration;

/// Columns that the line has, unless its figures need more.
const WIDTH: usize = 79;

/// The line of one run.
#[derive(Debug)]
pub(crate) struct Progress {
    title: String,
    is_shown: bool,
    width: usize,
    requests: u64,
    slices: u32,
}

impl Progress {
    /// A line that begins with a title. It goes to the standard error output, so that the report can
    /// go into a file.
    pub(crate) fn new(title: &str, is_wanted: bool) -> Progress {
        Progress {
            title: title.to_owned(),
            is_shown: is_wanted && stderr().is_terminal(),
            width: 0,
            requests: 0,
            slices: 0,
        }
    }

    /// Shows what happened in a slice of time.
    pub(crate) fn show(&mut self, point: &Point, slice: Duration) {
        self.requests += point.requests;
        self.slices += 1;
        if self.is_shown {
            let line = self.line(point, slice);
            self.write(&line);
        }
    }

    fn line(&self, point: &Point, slice: Duration) -> String {
        let seconds = slice.as_secs_f64();
        let rate = point.requests as f64 / seconds;
        let overall = self.requests as f64 / (seconds * f64::from(self.slices));
        let errors = match point.errors {
            0 => String::new(),
            count => format!(" errors={count}"),
        };
        let figures = format!(
            ": rps={rate:.1} (overall: {overall:.1}) p50={:.3} p99={:.3} max={:.3} msec{errors}",
            point.p50_ns as f64 / 1e6,
            point.p99_ns as f64 / 1e6,
            point.max_ns as f64 / 1e6,
        );
        // A line that is wrapped could not be taken away.
        let room = WIDTH.saturating_sub(figures.len()).max(3);
        let title: String = self.title.chars().take(room).collect();
        title + &figures
    }

    /// Takes the line away.
    pub(crate) fn clear(&mut self) {
        if self.is_shown && self.width > 0 {
            self.write("");
            eprint!("\r");
            self.width = 0;
        }
    }

    fn write(&mut self, line: &str) {
        let blank = self.width.saturating_sub(line.len());
        eprint!("\r{line}{:blank$}", "");
        self.width = line.len();
        // The line is a convenience: that it cannot be written is of no consequence.
        let _ = stderr().flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_shows_now_and_so_far() {
        let mut progress = Progress::new("SET", false);
        let point = |requests| Point {
            at_ms: 0,
            requests,
            errors: 2,
            p50_ns: 50_000,
            p99_ns: 1_234_567,
            max_ns: 2_000_000,
        };
        let slice = Duration::from_millis(250);
        progress.show(&point(1_000), slice);
        progress.show(&point(500), slice);
        assert_eq!(
            progress.line(&point(500), slice),
            "SET: rps=2000.0 (overall: 3000.0) p50=0.050 p99=1.235 max=2.000 msec errors=2"
        );
        let long = Progress::new(&"word ".repeat(100), false);
        assert!(long.line(&point(500), slice).len() <= WIDTH);
    }
}
