//! From a command line to the settings of a server: what was typed gets its meaning.
//!
//! The configuration file counts first, then the standard input, then flags; of several values for one setting the last
//! counts. Everything that is wrong is reported, not only the first thing, and then nothing starts.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read};
use std::path::{self, PathBuf};

use super::file::{Collector, Directive, Place, Problem};
use super::flags::{self, Request};
use super::foreign;
use super::help;
use super::settings::Settings;
use super::table::{Kind, Row, Setting};
use super::value::{self, allowed};

/// The most problems that one message lists.
const MAX_PROBLEMS: usize = 20;

/// What the command line asks for.
pub(crate) enum Startup {
    /// A server.
    Run {
        settings: Settings,
        /// The configuration file as an absolute path, if one was named.
        file: Option<PathBuf>,
    },
    /// Nothing but this text on the standard output.
    Help(String),
    /// Nothing but this text on the standard output.
    Version(String),
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
    match typed.request {
        Some(Request::Help) => return Ok(Startup::Help(help::text())),
        Some(Request::Version) => return Ok(Startup::Version(help::version())),
        Some(Request::CheckLog(_) | Request::RepairLog(_)) if !typed.problems.is_empty() => {
            return Err(StartupError {
                problems: typed.problems,
            });
        }
        Some(Request::CheckLog(directory)) => return Ok(Startup::CheckLog(directory)),
        Some(Request::RepairLog(directory)) => return Ok(Startup::RepairLog(directory)),
        None => {}
    }
    let mut collector = Collector::default();
    // Files are named in full, as the process may work elsewhere later.
    let file = typed.file.map(|file| path::absolute(&file).unwrap_or(file));
    if let Some(file) = &file {
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
    let mut problems = collector.problems;
    for directive in &collector.directives {
        if let Err(wrong) = apply(&settings, directive) {
            problems.push(Problem::with(directive, wrong));
        }
    }
    find_directory(&settings, &mut problems);
    if !problems.is_empty() {
        return Err(StartupError { problems });
    }
    Ok(Startup::Run { settings, file })
}

/// Gives a directive its meaning.
///
/// # Errors
/// What is wrong with it, and what would be right.
pub(super) fn apply(settings: &Settings, directive: &Directive) -> Result<(), String> {
    let Some(row) = Row::find(directive.name.as_bytes()) else {
        return Err(foreign::explain(&directive.name));
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
pub(super) mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A directory of a test's own, removed with it.
    pub(in super::super) struct Scratch(PathBuf);

    impl Scratch {
        pub(in super::super) fn new() -> Scratch {
            static COUNT: AtomicUsize = AtomicUsize::new(0);
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!("ferrite-config-{}-{number}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(&path).expect("the directory for temporary files is writable");
            Scratch(fs::canonicalize(path).expect("it was just made"))
        }

        pub(in super::super) fn path(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }

        /// Writes a file, and the directories that it is in.
        pub(in super::super) fn write(&self, name: &str, text: &str) -> PathBuf {
            let path = self.path(name);
            let directory = path.parent().expect("it is in the directory");
            fs::create_dir_all(directory).expect("the directory is the test's own");
            fs::write(&path, text).expect("the directory is the test's own");
            path
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn start(args: &[&str], standard_input: &str) -> Result<(Settings, Option<PathBuf>), String> {
        let args = args.iter().map(OsString::from);
        match load_from(args, standard_input.as_bytes()) {
            Ok(Startup::Run { settings, file }) => Ok((settings, file)),
            Ok(Startup::Help(text) | Startup::Version(text)) => Err(text),
            Ok(Startup::CheckLog(directory) | Startup::RepairLog(directory)) => {
                Err(directory.display().to_string())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    fn settings(args: &[&str]) -> Settings {
        start(args, "").expect("nothing is wrong").0
    }

    fn error(args: &[&str]) -> String {
        start(args, "").err().expect("something is wrong")
    }

    #[test]
    fn without_arguments_everything_is_at_its_default() {
        let (settings, file) = start(&[], "port 1").expect("nothing is wrong");
        assert_eq!(file, None);
        assert_eq!(settings.int(Setting::Port), 6379);
        let here = std::env::current_dir().and_then(fs::canonicalize);
        let here = here.expect("the tests run somewhere");
        assert_eq!(Path::new(&*settings.text(Setting::Dir)), here);
    }

    #[test]
    fn flags_count_more_than_standard_input_and_that_more_than_the_file() {
        let scratch = Scratch::new();
        let path = scratch.write("a.conf", "timeout 1\nport 1\nmaxclients 1\nport 2\n");
        let path_text = path.to_str().expect("a path of UTF-8");
        let read = start(&[path_text, "-", "--timeout", "3"], "timeout 2\nport 3\n");
        let (settings, file) = read.expect("nothing is wrong");
        assert_eq!(settings.int(Setting::Timeout), 3);
        assert_eq!(settings.int(Setting::Port), 3);
        assert_eq!(settings.int(Setting::MaxClients), 1);
        assert_eq!(file, Some(path));
    }

    #[test]
    fn flags_may_include_a_file() {
        let scratch = Scratch::new();
        let path = scratch.write("a.conf", "timeout 1\n");
        let path = path.to_str().expect("a path of UTF-8");
        let settings = settings(&["--timeout", "2", "--include", path]);
        assert_eq!(settings.int(Setting::Timeout), 1);
    }

    #[test]
    fn save_points_add_up_until_an_empty_one() {
        for (args, points) in [
            (&["--save", "900", "1"][..], "900 1"),
            (&["--save", "900 1 300 10"], "900 1 300 10"),
            (&["--save", "900", "1", "--save", "300 10"], "900 1 300 10"),
            (
                &["--save", "900", "1", "--save", "", "--save", "5 6"],
                "5 6",
            ),
            (&["--save", "900", "1", "--save", ""], ""),
        ] {
            assert_eq!(&*settings(args).text(Setting::Save), points, "{args:?}");
        }
    }

    #[test]
    fn tools_turn_persistence_off() {
        let settings = settings(&["--save", "", "--appendonly", "no", "--port", "0"]);
        assert_eq!(settings.get_text(Setting::Save), "");
        assert_eq!(settings.get_text(Setting::AppendOnly), "no");
        assert_eq!(settings.int(Setting::Port), 0);
    }

    #[test]
    fn lists_may_be_one_word_or_several() {
        for args in [
            &["--bind", "127.0.0.1", "::1"][..],
            &["--bind", "127.0.0.1 ::1"],
            &["--bind=127.0.0.1 ::1"],
            &["--bind", "::2", "--bind", "127.0.0.1", "::1"],
        ] {
            assert_eq!(&*settings(args).text(Setting::Bind), "127.0.0.1 ::1");
        }
        let input = "client-output-buffer-limit normal 1 2 3\n\
                     client-output-buffer-limit replica 4 5 6 pubsub 7 8 9\n\
                     client-output-buffer-limit normal 1kb 2 3\n";
        let (settings, _) = start(&["-"], input).expect("nothing is wrong");
        assert_eq!(
            settings.get_text(Setting::ClientOutputBufferLimit),
            "normal 1024 2 3 slave 4 5 6 pubsub 7 8 9"
        );
    }

    #[test]
    fn the_short_flag_of_memory_counts_megabytes() {
        assert_eq!(settings(&["-m", "100"]).int(Setting::MaxMemory), 100 << 20);
        assert_eq!(settings(&["-m", "1gb"]).int(Setting::MaxMemory), 1 << 30);
        assert_eq!(
            settings(&["--maxmemory", "100"]).int(Setting::MaxMemory),
            100
        );
        assert_eq!(settings(&["-w", "3"]).int(Setting::Threads), 3);
    }

    #[test]
    fn every_mistake_is_reported_with_its_place_and_what_would_be_right() {
        let scratch = Scratch::new();
        let text = "port 1\n\nprot 6379\nport none\ncluster-enabled yes\nmaxmemory 10 gigs\n";
        let path = scratch.write("a.conf", text);
        let path = path.to_str().expect("a path of UTF-8");
        let expected = format!(
            "{path}:3: 'prot 6379'\n  \
               unknown directive; did you mean 'port'?\n\
             {path}:4: 'port none'\n  \
               argument couldn't be parsed into an integer; port takes a number from 0 to 65535\n\
             {path}:5: 'cluster-enabled yes'\n  \
               this directive of redis-server has no meaning here: there is no cluster mode\n\
             {path}:6: 'maxmemory 10 gigs'\n  \
               wrong number of arguments; maxmemory takes a size such as 100mb or a share such as 80%\n\
             command line: '--loglevel loud'\n  \
               argument(s) must be one of the following: debug, verbose, notice, warning; \
               loglevel takes debug, verbose, notice, warning"
        );
        assert_eq!(error(&[path, "--loglevel", "loud"]), expected);
    }

    #[test]
    fn each_mistake_stops_the_start() {
        for (args, wrong) in [
            (&["--port"][..], "wrong number of arguments"),
            (&["--port", "1", "2"], "wrong number of arguments"),
            (&["--port", ""], "couldn't be parsed into an integer"),
            (&["--port", "65536"], "between 0 and 65535 inclusive"),
            (&["--bind"], "wrong number of arguments"),
            (&["--daemonize", "--port"], "must be 'yes' or 'no'"),
            (&["--unixsocketperm", "999"], "parsed as an octal number"),
            (
                &["--client-output-buffer-limit", "normal", "1"],
                "Wrong number of arguments in",
            ),
            (
                &["--save", "900"],
                "Invalid save parameters; save takes pairs of seconds",
            ),
            (&["--save", "900", "--save", "1"], "Invalid save parameters"),
            (&["--dbfilename", "a/b"], "dbfilename can't be a path"),
            (
                &["--appendfsync", "now"],
                "must be one of the following: always, everysec, no",
            ),
            (
                &["--maxmemory-policy", "allkeys"],
                "must be one of the following: volatile-lru, volatile-lfu",
            ),
            (
                &["--dir", "/no/such/directory"],
                "No such file or directory",
            ),
            (&["--shards", "100"], "0 or a power of two"),
            (
                &["--replicaof", "host", "1"],
                "no meaning here: there is no replication",
            ),
            (&["--foo", "1"], "unknown directive"),
            (&["-x"], "unknown flag"),
            (
                &["/no/such/file.conf"],
                "/no/such/file.conf: cannot be read: No such file",
            ),
        ] {
            let error = error(args);
            assert!(error.contains(wrong), "{args:?}: {error}");
        }
    }

    #[test]
    fn a_password_is_in_no_message() {
        let error = error(&["--requirepass", "hidden", "hidden"]);
        assert!(!error.contains("hidden"), "{error}");
    }

    #[test]
    fn a_list_of_problems_has_an_end() {
        let text = "nonsense\n".repeat(MAX_PROBLEMS + 5);
        let error = start(&["-"], &text).err().expect("something is wrong");
        assert_eq!(error.matches("nonsense").count(), MAX_PROBLEMS);
        assert!(error.ends_with("\nand 5 more"));
    }

    #[test]
    fn help_and_version_win_over_mistakes() {
        let text = start(&["--nonsense=1", "--help"], "").err().expect("help");
        assert!(text.starts_with("Usage:"), "{text}");
        let text = start(&["-v"], "").err().expect("a version");
        assert!(text.contains(env!("CARGO_PKG_VERSION")), "{text}");
    }
}
