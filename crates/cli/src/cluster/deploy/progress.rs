//! How far each host is: a line each. In a terminal it changes in its place; elsewhere each change is a line.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cluster::ssh::Failed;

/// See the module.
pub(super) struct Progress {
    labels: Vec<String>,
    width: usize,
    /// Empty if this is no terminal.
    lines: Vec<ProgressBar>,
}

impl Progress {
    pub(super) fn new(labels: Vec<String>) -> Progress {
        let width = labels.iter().map(String::len).max().unwrap_or(0);
        let mut progress = Progress {
            labels,
            width,
            lines: Vec::new(),
        };
        if io::stdout().is_terminal() {
            let all = MultiProgress::with_draw_target(ProgressDrawTarget::stdout());
            let style = ProgressStyle::with_template("{prefix}  {msg} {elapsed:.dim}")
                .expect("it is a template");
            for label in &progress.labels {
                let line = all.add(ProgressBar::new_spinner().with_style(style.clone()));
                line.set_prefix(format!("{label:width$}"));
                line.enable_steady_tick(Duration::from_millis(200));
                progress.lines.push(line);
            }
        }
        progress
    }

    /// Says what a host does now.
    pub(super) fn say(&self, at: usize, text: &str) {
        match self.lines.get(at) {
            Some(line) => line.set_message(text.to_owned()),
            // The exit code counts, and not whether somebody still reads.
            None => {
                let _ = writeln!(
                    io::stdout(),
                    "{:width$}  {text}",
                    self.labels[at],
                    width = self.width
                );
            }
        }
    }

    /// Ends the lines. All that follows stands below them.
    pub(super) fn finish(&self) {
        for line in &self.lines {
            line.abandon();
        }
    }

    /// Says on standard error why hosts failed. Returns how many did.
    pub(super) fn tell_failures<'a>(
        &self,
        failures: impl Iterator<Item = (usize, &'a Failed)>,
    ) -> usize {
        let mut count = 0;
        for (at, failed) in failures {
            if count == 0 {
                self.finish();
            }
            count += 1;
            // Lines of a host stand below its first.
            let text = failed.to_string().replace('\n', "\n    ");
            eprintln!("{}: {text}", self.labels[at]);
        }
        count
    }
}
