//! The command line: what was typed (`Options`, by the table) and what it means (`meaning`).

mod fit;
mod help;
#[cfg(test)]
mod manual;
mod meaning;
mod table;
mod uri;
pub(crate) mod values;

pub(crate) use help::{text as help, version};
pub(crate) use meaning::{has_choice, jobs, only_target, understand};
pub(crate) use uri::{Uri, parse as parse_uri};

use crate::drive::schedule::Arrivals;
use crate::load::numbers::Pattern;
use crate::load::sizes::Sizes;
use lexopt::Arg;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::Duration;
use table::{FLAGS, Flag};

pub(crate) use table::Section;

/// What was typed. A field per option; nothing is looked up or checked against another option yet.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    // The server.
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) socket: Option<PathBuf>,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) uri: Option<Uri>,
    pub(crate) database: u32,
    pub(crate) is_resp3: bool,
    pub(crate) has_tracking: bool,
    pub(crate) server_pid: Option<u32>,
    /// Names and where they are, instead of one server.
    pub(crate) targets: Vec<(String, Uri)>,
    pub(crate) is_cluster: bool,
    // How much.
    pub(crate) tests: Option<String>,
    pub(crate) requests: Option<u64>,
    pub(crate) test_time: Option<Duration>,
    pub(crate) warmup: Option<Duration>,
    pub(crate) clients: usize,
    pub(crate) pipeline: u32,
    pub(crate) threads: usize,
    pub(crate) keep_alive: bool,
    pub(crate) subscribers: usize,
    pub(crate) repeats: bool,
    pub(crate) is_idle: bool,
    pub(crate) last_from_stdin: bool,
    pub(crate) seed: Option<u64>,
    pub(crate) timeout: Duration,
    pub(crate) reconnect: Duration,
    pub(crate) reconnect_interval: Option<u64>,
    pub(crate) distinct_seeds: bool,
    pub(crate) run_count: usize,
    pub(crate) cpus: Vec<usize>,
    // The open loop.
    pub(crate) rate: Option<f64>,
    pub(crate) rate_per_client: Option<f64>,
    pub(crate) arrivals: Arrivals,
    pub(crate) find_rate: bool,
    pub(crate) p99: Duration,
    pub(crate) step_time: Duration,
    // Keys and values.
    pub(crate) keyspace: Option<u64>,
    pub(crate) key_minimum: Option<u64>,
    pub(crate) key_maximum: Option<u64>,
    pub(crate) key_prefix: String,
    pub(crate) key_digits: usize,
    pub(crate) key_pattern: (Pattern, Pattern),
    pub(crate) key_exponent: f64,
    pub(crate) key_centre: Option<f64>,
    pub(crate) key_deviation: Option<f64>,
    pub(crate) hot_share: f64,
    pub(crate) sizes: Sizes,
    pub(crate) random_data: bool,
    pub(crate) expiry_s: Option<(u64, u64)>,
    pub(crate) expiry_share: f64,
    pub(crate) multi_keys: usize,
    // Mixes.
    pub(crate) ratio: Option<(u64, u64)>,
    pub(crate) commands: Vec<MixedCommand>,
    // Output.
    pub(crate) is_quiet: bool,
    pub(crate) is_csv: bool,
    pub(crate) precision: usize,
    pub(crate) has_progress: bool,
    pub(crate) shows_errors: bool,
    pub(crate) hides_histogram: bool,
    pub(crate) percentiles: Option<Vec<f64>>,
    pub(crate) out_file: Option<PathBuf>,
    pub(crate) hdr_prefix: Option<String>,
    pub(crate) json: Option<PathBuf>,
    pub(crate) html: Option<PathBuf>,
    pub(crate) hdr: Option<PathBuf>,
    /// The older of two documents; the newer is the word behind the options.
    pub(crate) compare: Option<PathBuf>,
    // Verification.
    pub(crate) verify: bool,
    pub(crate) verify_file: Option<PathBuf>,
    pub(crate) verify_check: Option<PathBuf>,
    pub(crate) may_lose: Duration,
    // Servers side by side, and the floor.
    pub(crate) mode: Mode,
    pub(crate) rounds: Option<usize>,
    pub(crate) is_quick: bool,
    pub(crate) with_log: bool,
    pub(crate) server_cpus: Vec<usize>,
    pub(crate) cells: Option<String>,
    pub(crate) memory_keys: Option<u64>,
    pub(crate) docs: Option<PathBuf>,
    pub(crate) reply_bytes: Option<u64>,
    pub(crate) wants_help: bool,
    pub(crate) wants_version: bool,
    /// The words behind the options: a command to send, or another mode of the program.
    pub(crate) words: Vec<Vec<u8>>,
    /// The options in the order in which they were typed.
    pub(crate) typed: Vec<Typed>,
}

/// An option as it was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Typed {
    /// Its own long name.
    pub(crate) name: &'static str,
    pub(crate) section: Section,
    pub(crate) value: String,
    pub(crate) has_value: bool,
}

impl Typed {
    /// The option as words of a command line.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = vec![format!("--{}", self.name)];
        if self.has_value {
            words.push(self.value.clone());
        }
        words
    }
}

/// What the program is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Put a load on a server.
    Load,
    /// Start servers and compare them.
    SideBySide,
    /// Be the server that costs nothing.
    Floor,
}

impl Mode {
    /// The mode of a word in front of all others. No command of a server has such a name.
    fn of(word: &OsString) -> Option<Mode> {
        match word.to_str()? {
            "side-by-side" => Some(Mode::SideBySide),
            "floor" => Some(Mode::Floor),
            _ => None,
        }
    }
}

/// A command of a mix, as `--command` and its companions say it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MixedCommand {
    pub(crate) line: String,
    pub(crate) weight: u64,
    pub(crate) pattern: Option<Pattern>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            host: "127.0.0.1".into(),
            port: 6379,
            socket: None,
            user: None,
            password: None,
            uri: None,
            database: 0,
            is_resp3: false,
            has_tracking: false,
            server_pid: None,
            targets: Vec::new(),
            is_cluster: false,
            tests: None,
            requests: None,
            test_time: None,
            warmup: None,
            clients: 50,
            pipeline: 1,
            threads: 1,
            keep_alive: true,
            subscribers: 10,
            repeats: false,
            is_idle: false,
            last_from_stdin: false,
            seed: None,
            timeout: Duration::from_secs(30),
            reconnect: Duration::ZERO,
            reconnect_interval: None,
            distinct_seeds: false,
            run_count: 1,
            cpus: Vec::new(),
            rate: None,
            rate_per_client: None,
            arrivals: Arrivals::Even,
            find_rate: false,
            p99: Duration::from_millis(1),
            step_time: Duration::from_secs(5),
            keyspace: None,
            key_minimum: None,
            key_maximum: None,
            key_prefix: "key:".into(),
            key_digits: crate::load::template::SLOT_DIGITS,
            key_pattern: (Pattern::Uniform, Pattern::Uniform),
            key_exponent: 0.99,
            key_centre: None,
            key_deviation: None,
            hot_share: 1.0,
            sizes: Sizes::Fixed(3),
            random_data: false,
            expiry_s: None,
            expiry_share: 1.0,
            multi_keys: 10,
            ratio: None,
            commands: Vec::new(),
            is_quiet: false,
            is_csv: false,
            precision: 3,
            has_progress: true,
            shows_errors: false,
            hides_histogram: false,
            percentiles: None,
            out_file: None,
            hdr_prefix: None,
            json: None,
            html: None,
            hdr: None,
            compare: None,
            verify: false,
            verify_file: None,
            verify_check: None,
            may_lose: Duration::ZERO,
            mode: Mode::Load,
            rounds: None,
            is_quick: false,
            with_log: false,
            server_cpus: Vec::new(),
            cells: None,
            memory_keys: None,
            docs: None,
            reply_bytes: None,
            wants_help: false,
            wants_version: false,
            words: Vec::new(),
            typed: Vec::new(),
        }
    }
}

/// Reads a command line, the program's name not included.
///
/// # Errors
/// An option is unknown or what is behind it makes no sense; the text says so.
pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Options, String> {
    let mut options = Options::default();
    let mut parser = lexopt::Parser::from_args(words);
    loop {
        let flag = match parser.next().map_err(|error| error.to_string())? {
            None => break,
            Some(Arg::Short(letter)) => FLAGS
                .iter()
                .find(|flag| flag.short == Some(letter))
                .ok_or_else(|| format!("there is no option -{letter}; --help lists them all"))?,
            Some(Arg::Long(name)) => long(name)?,
            Some(Arg::Value(word)) if options.mode != Mode::Load => {
                options.words.push(word.into_vec());
                continue;
            }
            Some(Arg::Value(first)) => {
                if let Some(mode) = Mode::of(&first) {
                    options.mode = mode;
                    continue;
                }
                // Everything behind the first word belongs to the command.
                let rest = parser.raw_args().map_err(|error| error.to_string())?;
                let words = std::iter::once(first).chain(rest);
                options.words = words.map(OsString::into_vec).collect();
                break;
            }
        };
        apply(&mut options, flag, &mut parser)?;
    }
    fit::check(&options)?;
    Ok(options)
}

fn apply(options: &mut Options, flag: &Flag, parser: &mut lexopt::Parser) -> Result<(), String> {
    let mut value = String::new();
    if !flag.value.is_empty() {
        let given = parser.value().map_err(|error| error.to_string())?;
        value = given
            .into_string()
            .map_err(|_| format!("the value of {} is not UTF-8", flag.shown()))?;
    }
    (flag.set)(options, &value).map_err(|reason| format!("{}: {reason}", flag.shown()))?;
    options.typed.push(Typed {
        name: flag.names[0],
        section: flag.section,
        value,
        has_value: !flag.value.is_empty(),
    });
    Ok(())
}

fn long(name: &str) -> Result<&'static Flag, String> {
    if let Some(flag) = FLAGS.iter().find(|flag| flag.names.contains(&name)) {
        return Ok(flag);
    }
    let names = FLAGS.iter().flat_map(|flag| flag.names);
    let nearest = names.max_by(|a, b| strsim::jaro(a, name).total_cmp(&strsim::jaro(b, name)));
    match nearest {
        Some(near) if strsim::jaro(near, name) > 0.8 => Err(format!(
            "there is no option --{name}; did you mean --{near}?"
        )),
        _ => Err(format!(
            "there is no option --{name}; --help lists them all"
        )),
    }
}

#[cfg(test)]
mod tests;
