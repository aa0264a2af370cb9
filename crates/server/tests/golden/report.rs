//! What was not met, written so that it can be found: file, line, command, expected, got, and in which runs.
//!
//! The same difference in several runs is one entry.

use std::collections::BTreeMap;
use std::io::Write as _;

use super::notation::write_outcome;
use super::run::Run;
use super::script::Script;
use super::{Proto, Target};

/// Entries printed in full: more than this is one cause many times over.
const PRINTED_MAX: usize = 60;

/// The outcome of any number of runs.
#[derive(Default)]
pub(super) struct Report {
    commands: usize,
    /// The runs in which each failure came up, by place and text.
    failures: BTreeMap<(String, usize, String), Vec<String>>,
}

impl Report {
    pub(super) fn add_run(&mut self, script: &Script, target: Target, proto: Proto, run: Run) {
        self.commands += run.commands;
        for mismatch in run.mismatches {
            let got = write_outcome(&mismatch.got);
            let text = format!(
                "{}\n  expected: {}\n  got:      {got}",
                mismatch.command, mismatch.expected
            );
            self.add(script, mismatch.line, text, target, proto);
        }
    }

    pub(super) fn add_failure(&mut self, script: &Script, target: Target, proto: Proto, why: &str) {
        self.add(script, 1, why.to_owned(), target, proto);
    }

    fn add(&mut self, script: &Script, line: usize, text: String, target: Target, proto: Proto) {
        let runs = self
            .failures
            .entry((script.name(), line, text))
            .or_default();
        runs.push(format!("{target} RESP{}", proto.number()));
    }

    pub(super) fn merge(mut self, other: Self) -> Self {
        self.commands += other.commands;
        for (failure, runs) in other.failures {
            self.failures.entry(failure).or_default().extend(runs);
        }
        self
    }

    pub(super) fn is_clean(&self) -> bool {
        self.failures.is_empty()
    }

    /// Prints the failures and the totals, past the test harness, which keeps what the print macros write to
    /// itself.
    pub(super) fn print(&self, scripts: usize, targets: usize) {
        let mut out = String::new();
        for ((name, line, text), runs) in self.failures.iter().take(PRINTED_MAX) {
            out.push_str(&format!(
                "tests/scripts/{name}:{line}: {text}\n  in:       {}\n",
                runs.join(", ")
            ));
        }
        if self.failures.len() > PRINTED_MAX {
            let mut by_script = BTreeMap::new();
            self.failures
                .keys()
                .for_each(|(name, ..)| *by_script.entry(name).or_insert(0) += 1);
            out.push_str("not all of them are printed; by script:\n");
            by_script
                .iter()
                .for_each(|(name, count)| out.push_str(&format!("  {count:4} {name}\n")));
        }
        let commands = self.commands;
        let failed = self.failures.len();
        out.push_str(&format!(
            "golden: {scripts} scripts, {commands} commands, {targets} targets, {failed} failures\n"
        ));
        // Nothing is left to be told where standard error is closed.
        let _ = std::io::stderr().write_all(out.as_bytes());
    }
}
