//! Output of `--check-config`: one line for each ignored or refused directive, then the counts.

use std::fmt::Write as _;

use super::file::{Directive, Problem};
use super::load::Fate;

/// Report on a configuration.
pub(super) fn text(fates: &[(Directive, Fate)], others: &[Problem]) -> String {
    let mut text = String::new();
    let (mut applied, mut ignored, mut refused) = (0, 0, 0);
    for (directive, fate) in fates {
        let (word, reason) = match fate {
            Fate::Applied => {
                applied += 1;
                continue;
            }
            Fate::Ignored { reason, .. } => {
                ignored += 1;
                ("ignored", *reason)
            }
            Fate::Refused(wrong) => {
                refused += 1;
                ("refused", wrong.as_str())
            }
        };
        let _ = writeln!(text, "{}: {word}: {directive} ({reason})", directive.place);
    }
    // Lines that are no directives, files that cannot be read.
    for problem in others {
        let typed = match problem.typed.as_str() {
            "" => String::new(),
            typed => format!("{typed} "),
        };
        let _ = writeln!(
            text,
            "{}: refused: {typed}({})",
            problem.place, problem.wrong
        );
        refused += 1;
    }
    let total = applied + ignored + refused;
    let _ = writeln!(
        text,
        "{total} directives: {applied} take effect, {ignored} are accepted and change nothing, {refused} are refused"
    );
    text
}
