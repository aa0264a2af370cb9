//! Which options each mode of the program has. One that a mode would ignore is refused by name.

use super::table::{FLAGS, Flag};
use super::typed::{Mode, Options, Section, Typed};
use crate::load::numbers::Pattern;

/// Options of a load that make no sense where the program starts the servers itself.
const NOT_SIDE_BY_SIDE: &[&str] = &[
    "subscribers",
    "loop",
    "idle",
    "stdin",
    "run-count",
    "find-rate",
    "p99",
    "step-time",
];

/// What side-by-side has of the output's options.
const SIDE_BY_SIDE_OUTPUT: &[&str] =
    &["out-file", "json", "html", "no-progress", "help", "version"];

/// What the floor has.
const FLOOR: &[&str] = &["port", "socket", "reply", "help", "version"];

/// What a load has of the options for side-by-side.
const LOAD_ROUNDS: &str = "rounds";

/// Whether a mode has an option.
pub(super) fn fits(mode: Mode, section: Section, name: &str) -> bool {
    match (mode, section) {
        (Mode::Floor, _) => FLOOR.contains(&name),
        (Mode::Load, Section::Side) => name == LOAD_ROUNDS,
        (Mode::Load, _) => true,
        (Mode::SideBySide, Section::Server | Section::Verify) => false,
        (Mode::SideBySide, Section::Output) => SIDE_BY_SIDE_OUTPUT.contains(&name),
        (Mode::SideBySide, Section::Side) => name != "reply",
        (Mode::SideBySide, _) => !NOT_SIDE_BY_SIDE.contains(&name),
    }
}

/// Refuses what the mode would ignore, and what does not go with a cluster.
pub(super) fn check(options: &Options) -> Result<(), String> {
    if options.is_cluster {
        check_cluster(options)?;
    }
    let does_not_fit = |typed: &&Typed| !fits(options.mode, typed.section, typed.name);
    let Some(typed) = options.typed.iter().find(does_not_fit) else {
        return Ok(());
    };
    let flag = FLAGS.iter().find(|flag| flag.names[0] == typed.name);
    let shown = flag.map_or_else(|| typed.words().join(" "), Flag::shown);
    Err(match options.mode {
        Mode::SideBySide => {
            format!(
                "side-by-side has no option {shown}; `ferrite-bench side-by-side --help` lists its options"
            )
        }
        Mode::Floor => {
            format!("floor has no option {shown}; `ferrite-bench floor --help` lists its options")
        }
        Mode::Load => format!("{shown} is an option of side-by-side and floor alone"),
    })
}

/// Refuses what is about a single server, and patterns whose numbers belong to connections or were all
/// written.
fn check_cluster(options: &Options) -> Result<(), String> {
    let patterns = [options.key_pattern.0, options.key_pattern.1];
    let commands = options
        .commands
        .iter()
        .filter_map(|command| command.pattern);
    let has_pattern =
        |wanted| patterns.contains(&wanted) || commands.clone().any(|own| own == wanted);
    let needs_one = [
        (!options.targets.is_empty(), "--target"),
        (options.socket.is_some(), "--socket"),
        (options.verify, "--verify"),
        (options.is_idle, "--idle"),
        (has_pattern(Pattern::Parallel), "the key pattern parallel"),
        (has_pattern(Pattern::Latest), "the key pattern latest"),
    ];
    match needs_one.iter().find(|(is_there, _)| *is_there) {
        Some((_, name)) => Err(format!("{name} does not go with --cluster")),
        None => Ok(()),
    }
}
