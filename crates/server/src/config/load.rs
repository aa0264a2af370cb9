//! From a command line to the settings of a server: directives get their meaning.
//!
//! The configuration file counts first, then the standard input, then flags; of several values for one
//! setting the last counts. All mistakes are reported, not only the first one, and the server does not start.
//! Directives of redis-server that change nothing here are accepted and counted ([`foreign`]).

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read};
use std::path::{self, Path, PathBuf};

use super::file::{Collector, Directive, Place, Problem};
use super::first_process::args_of_first_process;
use super::flags::{self, Request, Typed};
use super::foreign::{self, Verdict};
use super::help;
use super::report;
use super::settings::Settings;
use super::table::{Kind, Row, Setting};
use super::value::{self, allowed};

/// The most problems that one message lists: more than any configuration that is meant seriously has.
const MAX_PROBLEMS: usize = 1000;

/// Task of the command line.
pub(crate) enum Startup {
    /// A server.
    Run {
        settings: Settings,
        /// The configuration file as an absolute path, if one was named.
        file: Option<PathBuf>,
        /// Directives of redis-server that are accepted and change nothing, by name.
        ignored: Vec<&'static str>,
    },
    /// Nothing but this text on the standard output.
    Help(String),
    /// Nothing but this text on the standard output.
    Version(String),
    /// A PING for the server that was started with these settings.
    Health(Settings),
    /// Only this text on the standard output: the report of a start on the configuration.
    CheckConfig {
        text: String,
        is_right: bool,
        settings: Settings,
    },
    /// A look at the log in this directory, which no server uses meanwhile.
    CheckLog(PathBuf),
    /// The same, and it is mended.
    RepairLog(PathBuf),
}

/// Why no server can start: every mistake with the place where it was made, ready to be shown.
#[derive(Debug)]
pub(crate) struct StartupError {
    problems: Vec<Problem>,
}

impl StartupError {
    /// A problem that is at no place.
    fn of(wrong: String) -> StartupError {
        StartupError {
            problems: vec![Problem {
                place: Place::CommandLine.to_string(),
                typed: String::new(),
                wrong,
            }],
        }
    }
}

impl fmt::Display for StartupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().take(MAX_PROBLEMS).enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{problem}")?;
        }
        match self.problems.len().saturating_sub(MAX_PROBLEMS) {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

impl std::error::Error for StartupError {}

/// Reads the arguments behind the program's name, and the files that they name.
///
/// # Errors
/// Everything that is wrong with what was typed, or a file that cannot be read.
pub(crate) fn load(args: impl Iterator<Item = OsString>) -> Result<Startup, StartupError> {
    load_from(args, io::stdin().lock())
}

fn load_from(
    args: impl Iterator<Item = OsString>,
    standard_input: impl Read,
) -> Result<Startup, StartupError> {
    let typed = flags::read(args);
    match &typed.request {
        Some(Request::Help) => return Ok(Startup::Help(help::text())),
        Some(Request::Version) => return Ok(Startup::Version(help::version())),
        Some(Request::CheckLog(_) | Request::RepairLog(_)) if !typed.problems.is_empty() => {
            return Err(StartupError {
                problems: typed.problems,
            });
        }
        Some(Request::CheckLog(directory)) => return Ok(Startup::CheckLog(directory.clone())),
        Some(Request::RepairLog(directory)) => return Ok(Startup::RepairLog(directory.clone())),
        Some(Request::CheckConfig | Request::Health) | None => {}
    }
    let request = typed.request.clone();
    let typed = match &request {
        Some(Request::Health) if typed.is_bare() && typed.problems.is_empty() => {
            let args = args_of_first_process().map_err(StartupError::of)?;
            flags::read(args.into_iter())
        }
        _ => typed,
    };
    // Files are named in full, as the process may work elsewhere later.
    let file = typed
        .file
        .as_deref()
        .map(|file| path::absolute(file).unwrap_or(file.to_owned()));
    let read = Meaning::of(typed, file.as_deref(), standard_input);
    if request == Some(Request::CheckConfig) {
        let is_right = read.problems().next().is_none();
        return Ok(Startup::CheckConfig {
            text: report::text(&read.fates, &read.others),
            is_right,
            settings: read.settings,
        });
    }
    let problems: Vec<Problem> = read.problems().collect();
    if !problems.is_empty() {
        return Err(StartupError { problems });
    }
    if request == Some(Request::Health) {
        return Ok(Startup::Health(read.settings));
    }
    let mut ignored: Vec<&'static str> = Vec::new();
    for (_, fate) in &read.fates {
        if let Fate::Ignored { name, .. } = fate
            && !ignored.contains(name)
        {
            ignored.push(name);
        }
    }
    Ok(Startup::Run {
        settings: read.settings,
        file,
        ignored,
    })
}

/// Fate of a directive.
pub(super) enum Fate {
    Applied,
    /// It is accepted and changes nothing, for a reason.
    Ignored {
        name: &'static str,
        reason: &'static str,
    },
    Refused(String),
}

/// Everything that was typed, with its meaning.
struct Meaning {
    settings: Settings,
    /// Directives in the order in which they count.
    fates: Vec<(Directive, Fate)>,
    /// Mistakes beside refused directives: lines that are no directives, files that cannot be read.
    others: Vec<Problem>,
}

impl Meaning {
    fn of(typed: Typed, file: Option<&Path>, standard_input: impl Read) -> Meaning {
        let mut collector = Collector::default();
        if let Some(file) = file {
            collector.file(file);
        }
        if typed.reads_standard_input {
            collector.standard_input(standard_input);
        }
        collector.problems.extend(typed.problems);
        typed
            .directives
            .into_iter()
            .for_each(|directive| collector.directive(directive, None));

        let settings = Settings::new();
        let give_fate = |directive: Directive| {
            let fate = fate(&settings, &directive);
            (directive, fate)
        };
        let fates = collector.directives.into_iter().map(give_fate).collect();
        settings.follow_workers();
        let mut others = collector.problems;
        find_directory(&settings, &mut others);
        Meaning {
            settings,
            fates,
            others,
        }
    }

    /// Everything that stops the start.
    fn problems(&self) -> impl Iterator<Item = Problem> {
        let refused = self
            .fates
            .iter()
            .filter_map(|(directive, fate)| match fate {
                Fate::Refused(wrong) => Some(Problem::with(directive, wrong)),
                _ => None,
            });
        self.others.iter().cloned().chain(refused)
    }
}

/// Gives a directive its meaning.
fn fate(settings: &Settings, directive: &Directive) -> Fate {
    if Row::find(directive.name.as_bytes()).is_some() {
        return match apply(settings, directive) {
            Ok(()) => Fate::Applied,
            Err(wrong) => Fate::Refused(wrong),
        };
    }
    match foreign::judge(directive) {
        Verdict::Ignored { row, value, reason } => {
            settings.set_foreign(row, &value);
            Fate::Ignored {
                name: row.name,
                reason,
            }
        }
        Verdict::Refused(wrong) => Fate::Refused(wrong),
    }
}

/// Gives a directive that names a setting its meaning.
///
/// # Errors
/// What is wrong with it, and what would be right.
pub(super) fn apply(settings: &Settings, directive: &Directive) -> Result<(), String> {
    let Some(row) = Row::find(directive.name.as_bytes()) else {
        return Err("no setting has this name".into());
    };
    let text = text_of(row, &directive.words)?;
    let wrong = |wrong| format!("{wrong}; {} takes {}", row.name, allowed(row.kind));
    settings
        .set(row.setting, &added(row, text, settings)?)
        .map_err(wrong)
}

/// A value with those of earlier directives before it, if they add up: save points do, until an empty value.
///
/// # Errors
/// What is wrong with it.
fn added(row: &Row, text: String, settings: &Settings) -> Result<String, String> {
    if !matches!(row.kind, Kind::SavePoints) || text.trim().is_empty() {
        return Ok(text);
    }
    // Two wrong values may be right together.
    value::parse(row, &text)
        .map_err(|wrong| format!("{wrong}; {} takes {}", row.name, allowed(row.kind)))?;
    // The default is no line before this one.
    if !settings.is_chosen(row.setting) {
        return Ok(text);
    }
    Ok(format!("{} {text}", settings.text(row.setting)))
}

/// The value that a directive's words are.
///
/// # Errors
/// There are too few or too many.
pub(super) fn text_of(row: &Row, words: &[String]) -> Result<String, String> {
    match words {
        [word] => Ok(word.clone()),
        [_, ..] if row.kind.takes_many_words() => Ok(words.join(" ")),
        _ => Err(format!(
            "wrong number of arguments; {} takes {}",
            row.name,
            allowed(row.kind)
        )),
    }
}

/// Replaces the relative directory of the default by the one that it is.
fn find_directory(settings: &Settings, problems: &mut Vec<Problem>) {
    let directory = settings.text(Setting::Dir);
    if let Err(wrong) = settings.set(Setting::Dir, &directory) {
        let default = Directive {
            name: Setting::Dir.row().name.to_owned(),
            words: vec![directory.to_string()],
            place: Place::CommandLine,
        };
        problems.push(Problem::with(&default, wrong));
    }
}

#[cfg(test)]
pub(super) mod tests;
